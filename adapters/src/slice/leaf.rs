//! Which children of an entry hold text and never an entry, so that the start tag of an entry
//! inside means that somebody lost their end; what they say is read elsewhere.

use crate::Format;
use crate::reading::Dialect;
use crate::text::is_one_of;
use crate::text::markup::split;
use crate::text::markup::tokens::{Token, Tokens, attributes};
use crate::text::markup::tree::Bindings;
use crate::vocabulary::Vocabulary;

/// Contents that a child of an entry may have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Leaf {
    /// Perhaps an entry of somebody else: foreign markup, Atom's XML content.
    No,
    /// Elements of a feed, of which those that hold text have no entry in them: the source of a
    /// copy.
    Inner,
    /// Text, perhaps with HTML in it that was not escaped, where anything may be shown as an
    /// example.
    Text,
    /// Nothing that has an entry anywhere in it: a person, or XHTML, which has no element of that
    /// name.
    Deep,
}

impl Leaf {
    /// Of the element that a text begins with.
    pub(super) fn of(text: &str, bindings: &Bindings, dialect: &Dialect) -> Self {
        let Some((
            Token::Start {
                name,
                attributes: raw,
                ..
            },
            span,
        )) = Tokens::new(text).next()
        else {
            return Self::No;
        };
        if !text[span].ends_with('>') {
            // Cut in the middle of its tag: `<desc<item>`.
            return Self::Deep;
        }
        let mut bindings = bindings.clone();
        bindings.declare(attributes(raw));
        let (prefix, local) = split(name);
        let vocabulary = dialect.vocabulary(&bindings.namespace(prefix));
        if vocabulary != dialect.native() && vocabulary != Vocabulary::Atom {
            return if is_of_text(vocabulary) {
                Self::Text
            } else {
                Self::No
            };
        }
        let is_atom = vocabulary == Vocabulary::Atom;
        match local.to_ascii_lowercase().as_str() {
            "author" | "contributor" => Self::Deep,
            "content" | "summary" | "title" | "rights" | "subtitle" if is_atom => of_construct(raw),
            "source" if dialect.format != Format::Atom && !is_atom => Self::Text,
            "source" => Self::Inner,
            local if is_name_of_text(local) => Self::Text,
            _ => Self::No,
        }
    }
}

/// True for names of elements that hold text in feeds, and are not HTML's.
pub(super) fn is_name_of_text(local: &str) -> bool {
    const NAMES: &str = "title link guid id description summary pubdate updated published modified issued \
        created managingeditor category comments content enclosure rights copyright \
        generator abstract name uri email subtitle icon logo";
    is_one_of(local, NAMES)
}

/// True when an element that is open at the start of a text ends in it before it begins anew, and
/// before an entry begins or ends: then what opened before was a mere mention, as in
/// `<description>the <item> element</description>`.
pub(super) fn ends_first(name: &str, text: &str) -> bool {
    let is_part = |c: char| !(c.is_whitespace() || matches!(c, '>' | '/' | '<'));
    let tags = memchr::memchr_iter(b'<', text.as_bytes()).map(|at| {
        let tag = &text[at + 1..];
        let bare = tag.strip_prefix('/').unwrap_or(tag);
        (
            tag.starts_with('/'),
            bare.split(|c| !is_part(c)).next().unwrap_or_default(),
        )
    });
    for (is_end, tag) in tags {
        let local = split(tag).1;
        if tag == name {
            return is_end;
        }
        if local.eq_ignore_ascii_case("item") || local.eq_ignore_ascii_case("entry") {
            return false;
        }
    }
    false
}

/// Of one of Atom's text constructs or contents (RFC 4287 sections 3.1 and 4.1.3), or of those of
/// 0.3.
fn of_construct(raw: &str) -> Leaf {
    let kind = attributes(raw)
        .find(|(name, _)| *name == "type")
        .map(|(_, value)| value.to_ascii_lowercase());
    match kind.as_deref().map(str::trim) {
        Some("xhtml" | "application/xhtml+xml") => Leaf::Deep,
        Some(kind) if kind.ends_with("/xml") || kind.ends_with("+xml") => Leaf::No,
        _ => Leaf::Text,
    }
}

/// True for a vocabulary that entries borrow from and of which no element holds an entry.
fn is_of_text(vocabulary: Vocabulary) -> bool {
    use Vocabulary::*;
    matches!(
        vocabulary,
        DublinCore
            | DublinCoreTerms
            | Content
            | Itunes
            | MediaRss
            | FeedBurner
            | Slash
            | CommentApi
    )
}
