//! The key of each entry: the elements and attributes that may name it, and which of them does.

use std::borrow::Cow;
use std::collections::HashSet;

use crate::formats::cdf;
use crate::reading::Dialect;
use crate::text::entities::unescape;
use crate::text::markup::tokens::{Token, Tokens};
use crate::text::markup::tree::{Bindings, grow};
use crate::text::markup::{is_name, split};
use crate::text::present;
use crate::vocabulary::Vocabulary;
use crate::{Element, Key, RawEntry};

/// The names of an entry, trimmed of XML white space and otherwise byte-exact. Its key is one of
/// them.
#[derive(Debug, Default)]
pub(super) struct EntryNames {
    pub(super) guid: Option<String>,
    pub(super) id: Option<String>,
    pub(super) about: Option<String>,
    pub(super) link: Option<String>,
    pub(super) title: Option<String>,
}

impl EntryNames {
    /// True with a name that is the entry's for certain.
    pub(super) fn is_certain(&self) -> bool {
        self.guid.is_some() || self.id.is_some() || self.about.is_some()
    }

    /// Takes the name that the markup of an element gives. An element that declares no namespaces
    /// and has one text is read without a tree.
    pub(super) fn read(&mut self, markup: &str, dialect: &Dialect, bindings: &Bindings) {
        if let Some((name, text)) = plain_element(markup) {
            let (prefix, local) = split(name);
            let vocabulary = dialect.vocabulary(&bindings.namespace(prefix));
            if let Some(field) = self.field(vocabulary, local) {
                *field = field.take().or_else(|| present(&text));
                return;
            }
        }
        if let Some(grown) = grow(markup, bindings) {
            self.take(&grown.element, dialect.vocabulary(&grown.element.ns));
        }
    }

    fn take(&mut self, element: &Element, vocabulary: Vocabulary) {
        if let Some(field) = self.field(vocabulary, &element.name) {
            *field = field.take().or_else(|| present(&element.characters()));
            return;
        }
        match vocabulary {
            Vocabulary::Cdf if element.name.eq_ignore_ascii_case("a") => {
                self.id = self.id.take().or_else(|| cdf::href(element));
            }
            Vocabulary::Rss | Vocabulary::Atom if element.name.eq_ignore_ascii_case("link") => {
                let is_alternate = element
                    .attribute("rel")
                    .is_none_or(|rel| rel.trim() == "alternate");
                if self.link.is_none() && is_alternate {
                    self.link = present(&element.characters())
                        .or_else(|| present(element.attribute("href")?));
                }
            }
            _ => {}
        }
    }

    /// The field that the text of an element belongs to, if it is an element of which only the text
    /// counts.
    fn field(&mut self, vocabulary: Vocabulary, name: &str) -> Option<&mut Option<String>> {
        let is = |known: &str| name.eq_ignore_ascii_case(known);
        match vocabulary {
            Vocabulary::Rss if is("guid") => Some(&mut self.guid),
            Vocabulary::Atom if is("id") => Some(&mut self.id),
            Vocabulary::Rss | Vocabulary::Atom | Vocabulary::Cdf if is("title") => {
                Some(&mut self.title)
            }
            _ => None,
        }
    }
}

/// Strength of the name that a child gives its entry.
pub(super) enum NameStrength {
    /// The entry's own for certain.
    Certain,
    /// Counts if nothing better names the entry.
    Possible,
}

impl NameStrength {
    /// Strength by the name of the child's tag; `None` for a child that names nothing.
    pub(super) fn of(name: &str) -> Option<Self> {
        let (_, local) = split(name);
        let is_one_of =
            |known: &[&str]| known.iter().any(|known| local.eq_ignore_ascii_case(known));
        if is_one_of(&["guid", "id", "a"]) {
            return Some(Self::Certain);
        }
        is_one_of(&["link", "title"]).then_some(Self::Possible)
    }
}

// Decides: Which part of an entry becomes its key?
/// Gives every entry its key (DESIGN section 3, LEGACY I-2). A link or title that several entries
/// share names none.
pub(super) fn assign_keys(entries: Vec<(RawEntry, EntryNames)>) -> Vec<RawEntry> {
    let shared_links = shared(entries.iter().filter_map(|(_, names)| names.link.as_ref()));
    let shared_titles = shared(entries.iter().filter_map(|(_, names)| names.title.as_ref()));
    let mut named = Vec::with_capacity(entries.len());
    for (mut entry, names) in entries {
        let strong = names.guid.or(names.id).or(names.about);
        let link = names.link.filter(|link| !shared_links.contains(link));
        let title = names.title.filter(|title| !shared_titles.contains(title));
        entry.key = strong
            .map(Key::Id)
            .or(link.map(Key::Link))
            .or(title.map(Key::Title))
            .unwrap_or_else(|| Key::Digest(entry.parse().0.digest().to_string()));
        named.push(entry);
    }
    named
}

/// The names that several entries have.
fn shared<'e>(names: impl Iterator<Item = &'e String>) -> HashSet<String> {
    let mut met = HashSet::new();
    names.filter(|name| !met.insert(*name)).cloned().collect()
}

/// Name and text of an element that has one text and declares nothing, as nearly all elements that
/// name an entry. It means the same as the tree would.
fn plain_element(markup: &str) -> Option<(&str, Cow<'_, str>)> {
    let mut tokens = Tokens::new(markup);
    let (
        Token::Start {
            name,
            attributes,
            empty: false,
        },
        _,
    ) = tokens.next()?
    else {
        return None;
    };
    let text = match tokens.next()?.0 {
        Token::Text(text) => unescape(text),
        Token::Literal(text) => Cow::Borrowed(text),
        Token::Start { .. } | Token::End { .. } => return None,
    };
    let (Token::End { name: ended }, _) = tokens.next()? else {
        return None;
    };
    let (prefix, local) = split(name);
    let is_plain = name == ended && is_name(local) && (prefix.is_empty() || is_name(prefix));
    (is_plain && !attributes.contains("xmlns")).then_some((name, text))
}
