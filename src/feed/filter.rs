//! Filters: the items that a view shows, and the one spelling of each filter; not how they are
//! found, nor how a URL holds them.

use super::{
    inheritance,
    item::{Content, Item, PublisherId, Reason},
    order::Order,
    record::FeedRecord,
};
use everfeed_adapters::{
    Enclosure, Entry, Person,
    text::uri::{is_image_data, may_be_followed},
};
use folding::{FoldedWords, folded, phrase};
use sha2::{Digest as _, Sha256};
use std::{
    fmt,
    sync::{Arc, OnceLock},
};
use thiserror::Error;
use url::form_urlencoded;

mod folding;

mod folded_texts;

pub mod index_terms;

pub mod changed_items;

#[cfg(test)]
mod tests;

/// The choice of items that a view shows.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub enum Filter {
    /// Every item, tombstones included.
    #[default]
    All,
    /// Every item that is there, and no word of others: what ordinary readers are shown.
    Live,
    /// The items that meet some terms. What was changed and does not meet them is shown as having
    /// left the view, so that a mirror of it ends with what it holds.
    Terms(Arc<FilterTerms>),
}

/// Terms of a filter, all of which an item must meet. Folded and sorted, so that two filters that
/// mean the same are equal.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct FilterTerms {
    /// Words and phrases, each of which stands in the title or in a text.
    phrases: Vec<String>,
    /// The name, address or page of an author.
    author: Option<String>,
    /// The term or the label of a category.
    category: Option<String>,
    deletion: Deletion,
    has_enclosure: bool,
    /// The beginning of a language tag, up to a hyphen or its end.
    language: Option<String>,
}

/// The choice between items and tombstones.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
enum Deletion {
    #[default]
    Any,
    No,
    /// As `No`; and nobody is told that an item was in the view before it was gone.
    Untold,
    Only,
}

/// Bytes of a value of a filter at most.
pub const VALUE_BYTES_MAX: usize = 512;
/// Words and phrases of a filter at most.
pub const PHRASES_MAX: usize = 16;
/// Bytes of the language tag at most; RFC 5646 section 4.4.1 asks for 35.
const LANGUAGE_BYTES_MAX: usize = 35;

/// A value of a filter that cannot be meant.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum BadFilter {
    /// It is longer than [`VALUE_BYTES_MAX`].
    #[error("`{0}` must be at most {VALUE_BYTES_MAX} bytes")]
    TooLong(&'static str),
    /// Control characters stand in it, or nothing else than white space.
    #[error("`{0}` must be text, without control characters")]
    NoText(&'static str),
    /// There is nothing to search for.
    #[error("`q` must hold a letter or a digit")]
    NoWord,
    /// A quotation mark stands alone.
    #[error("`q` holds a quotation mark without its second")]
    OpenQuote,
    /// There are more words than [`PHRASES_MAX`].
    #[error("`q` takes at most {PHRASES_MAX} words and phrases")]
    ManyWords,
    /// `deleted` is something else.
    #[error("`deleted` must be no or only")]
    Deleted,
    /// `has` is something else.
    #[error("`has` must be enclosure")]
    Has,
    /// `lang` is no language tag.
    #[error("`lang` must be a language tag such as en or de-AT")]
    Language,
}

impl Filter {
    /// The parameters of a filter in the order in which they are spelt, and what each shows.
    pub const PARAMETERS: [(&'static str, &'static str); 6] = [
        (
            "q",
            "posts with all these words, or these \"words in a row\"",
        ),
        ("author", "posts by an author of this name, address or page"),
        ("category", "posts with this tag"),
        (
            "deleted",
            "no: without deleted posts; only: deleted posts alone",
        ),
        ("has", "enclosure: posts with attached media"),
        ("lang", "posts in this language, such as de or de-AT"),
    ];

    /// The names of its parameters, in the same order.
    pub fn names() -> impl Iterator<Item = &'static str> {
        Self::PARAMETERS.into_iter().map(|(name, _)| name)
    }

    /// The filter with these values of its parameters. An empty value says nothing, and neither do
    /// parameters of other names.
    pub fn of(given: &[(&str, &str)]) -> Result<Self, BadFilter> {
        let value = |name: &str| {
            let found = given.iter().find(|(known, _)| *known == name);
            found.map_or("", |(_, value)| *value)
        };
        let terms = FilterTerms {
            phrases: phrases(value("q"))?,
            author: line("author", value("author"))?,
            category: line("category", value("category"))?,
            deletion: match value("deleted") {
                "" => Deletion::Any,
                "no" => Deletion::No,
                "only" => Deletion::Only,
                _ => return Err(BadFilter::Deleted),
            },
            has_enclosure: match value("has") {
                "" => false,
                "enclosure" => true,
                _ => return Err(BadFilter::Has),
            },
            language: language_range(value("lang"))?,
        };
        Ok(if terms == FilterTerms::default() {
            Self::All
        } else {
            Self::Terms(Arc::new(terms))
        })
    }

    /// The same choice for ordinary readers, who are shown nothing of what is gone.
    #[must_use]
    pub fn live(&self) -> Self {
        match self {
            Self::All | Self::Live => Self::Live,
            Self::Terms(terms) => {
                let deletion = if terms.deletion == Deletion::Any {
                    Deletion::No
                } else {
                    terms.deletion
                };
                Self::Terms(Arc::new(FilterTerms {
                    deletion,
                    ..(**terms).clone()
                }))
            }
        }
    }

    /// The same choice where nobody is told what is gone, neither by tombstones nor as having left
    /// the view.
    #[must_use]
    pub fn untold(&self) -> Self {
        match self.live() {
            Self::Terms(terms) if terms.deletion == Deletion::No => {
                Self::Terms(Arc::new(FilterTerms {
                    deletion: Deletion::Untold,
                    ..(*terms).clone()
                }))
            }
            live => live,
        }
    }

    /// True where an item that is gone is not told of as one that has left the view.
    pub fn leaves_out(&self, item: &Item) -> bool {
        item.is_gone() && matches!(self, Self::Terms(terms) if terms.deletion == Deletion::Untold)
    }

    /// True where terms choose among the items, for which its URL has parameters.
    pub const fn has_terms(&self) -> bool {
        matches!(self, Self::Terms(_))
    }

    /// True where nothing but tombstones is shown.
    pub fn shows_gone_alone(&self) -> bool {
        matches!(self, Self::Terms(terms) if terms.deletion == Deletion::Only)
    }

    // Decides: Is a reader shown a post for what is gone?
    /// True where nothing that is gone was asked for, by `deleted=no`.
    pub fn asks_for_live_alone(&self) -> bool {
        match self {
            Self::All => false,
            Self::Live => true,
            Self::Terms(terms) => matches!(terms.deletion, Deletion::No | Deletion::Untold),
        }
    }

    /// The filter that a query spells, each parameter at most once; an empty one shows all items.
    ///
    /// The error is a sentence for whoever wrote it.
    pub fn spelt(query: &str) -> Result<Self, String> {
        let given: Vec<_> = form_urlencoded::parse(query.as_bytes()).collect();
        for (at, (name, value)) in given.iter().enumerate() {
            if !Self::names().any(|known| known == name) {
                let names = Vec::from_iter(Self::names()).join(", ");
                return Err(format!(
                    "`{name}` is no parameter of a filter; give {names}, as in \"category=news&lang=en\""
                ));
            }
            if value.is_empty() || given[..at].iter().any(|(before, _)| before == name) {
                return Err(format!("`{name}` must be given once, with a value"));
            }
        }
        let given: Vec<(&str, &str)> = given
            .iter()
            .map(|(name, value)| (&**name, &**value))
            .collect();
        Self::of(&given).map_err(|bad| bad.to_string())
    }

    /// A query that spells it, as [`Filter::spelt`] reads it; empty for all items.
    pub fn query(&self) -> String {
        let mut query = form_urlencoded::Serializer::new(String::new());
        query.extend_pairs(self.spelling());
        query.finish()
    }

    /// The parameters that spell it and their values, in one order; none for all items.
    pub fn spelling(&self) -> Vec<(&'static str, String)> {
        let terms = match self {
            Self::All | Self::Live => return Vec::new(),
            Self::Terms(terms) => terms,
        };
        let mut spelling = Vec::new();
        if !terms.phrases.is_empty() {
            let quoted = |phrase: &String| {
                if phrase.contains(' ') {
                    format!("\"{phrase}\"")
                } else {
                    phrase.clone()
                }
            };
            spelling.push((
                "q",
                terms
                    .phrases
                    .iter()
                    .map(quoted)
                    .collect::<Vec<_>>()
                    .join(" "),
            ));
        }
        spelling.extend(terms.author.clone().map(|value| ("author", value)));
        spelling.extend(terms.category.clone().map(|value| ("category", value)));
        match terms.deletion {
            Deletion::Any => {}
            Deletion::No | Deletion::Untold => spelling.push(("deleted", "no".to_owned())),
            Deletion::Only => spelling.push(("deleted", "only".to_owned())),
        }
        if terms.has_enclosure {
            spelling.push(("has", "enclosure".to_owned()));
        }
        spelling.extend(terms.language.clone().map(|value| ("lang", value)));
        spelling
    }

    /// A mark of the terms for validators, empty without terms.
    pub fn tag(&self) -> String {
        if !self.has_terms() {
            return String::new();
        }
        let hash = Sha256::digest(format!("{:?}", self.spelling()));
        hash[..8]
            .iter()
            .fold(String::from("."), |tag, byte| format!("{tag}{byte:02x}"))
    }

    /// True where it depends on what the feed says of itself, from which entries inherit authors
    /// and a language.
    pub fn is_of_feed(&self) -> bool {
        match self {
            Self::All | Self::Live => false,
            Self::Terms(terms) => terms.author.is_some() || terms.language.is_some(),
        }
    }

    // Decides: Which changed items does a view show as having left it?
    /// True for an item that a view in this order shows as having left it, if this filter does not
    /// show it: one that was changed. What it was before is not kept. Where deletions alone are
    /// shown, only an item that was gone before can have been there; any other edit is no news.
    pub fn shows_as_left(&self, item: &Item, order: Order) -> bool {
        if order != Order::MODIFIED || item.modified <= item.created {
            return false;
        }
        match self {
            Self::Terms(terms) if terms.deletion == Deletion::Only => {
                !terms.are_of_content() && item.was_gone()
            }
            _ => true,
        }
    }

    // Decides: Which items does a filter show?
    /// True when it shows an item of this feed.
    pub fn shows(&self, item: &Item, feed: &FeedRecord) -> bool {
        self.shows_folded(item, feed, &ItemWords::default())
    }

    /// The same of an item whose words may be folded already.
    fn shows_folded(&self, item: &Item, feed: &FeedRecord, words: &ItemWords) -> bool {
        match self {
            Self::All => true,
            Self::Live => !item.is_gone(),
            Self::Terms(terms) => terms.are_met(item, feed, words),
        }
    }
}

impl fmt::Display for Filter {
    /// For people: `q=rust, lang=de`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let spelling: Vec<String> = self
            .spelling()
            .into_iter()
            .map(|(name, value)| format!("{name}={value}"))
            .collect();
        f.write_str(&spelling.join(", "))
    }
}

impl FilterTerms {
    fn are_met(&self, item: &Item, feed: &FeedRecord, words: &ItemWords) -> bool {
        match self.deletion {
            Deletion::Any => {}
            Deletion::No | Deletion::Untold if item.is_gone() => return false,
            Deletion::Only if !item.is_deleted() => return false,
            Deletion::No | Deletion::Untold | Deletion::Only => {}
        }
        let Some(entry) = item.entry() else {
            return !self.are_of_content();
        };
        // The cheap ones first: words ask for the whole text.
        (!self.has_enclosure || entry.attached().any(|file| is_shown(&file)))
            && self
                .language
                .as_deref()
                .is_none_or(|range| is_in(entry, feed, range))
            && self
                .category
                .as_deref()
                .is_none_or(|category| is_tagged(entry, category))
            && self
                .author
                .as_deref()
                .is_none_or(|author| is_by(entry, feed, author))
            && self.holds_phrases(entry, words)
    }

    /// True when a tombstone, which has no content, cannot meet them.
    fn are_of_content(&self) -> bool {
        let Self {
            phrases,
            author,
            category,
            deletion: _,
            has_enclosure,
            language,
        } = self;
        !phrases.is_empty()
            || author.is_some()
            || category.is_some()
            || *has_enclosure
            || language.is_some()
    }

    fn holds_phrases(&self, entry: &Entry, words: &ItemWords) -> bool {
        self.phrases.is_empty()
            || self
                .phrases
                .iter()
                .all(|phrase| words.of(entry).hold(phrase))
    }
}

/// The words of one item, folded when a filter asks for them first.
#[derive(Debug, Default)]
struct ItemWords(OnceLock<Arc<FoldedWords>>);

impl ItemWords {
    fn of(&self, entry: &Entry) -> &FoldedWords {
        self.0.get_or_init(|| folded_texts::words_of(entry))
    }
}

// Decides: What becomes of a changed item that is not in a view?
// Limit: one that was not in the view before is announced as well.
/// The tombstone in whose form a view shows that a changed item is not in it: with its id and its
/// dates, and nothing else.
pub fn left_view(item: &Item) -> Item {
    let publisher_id =
        PublisherId::with_source(item.publisher_id.as_ref(), item.remaining_source());
    Item {
        content: Content::Gone {
            reason: Reason::LeftView,
            first_missing: None,
            last_seen: None,
        },
        publisher_id,
        ..item.clone()
    }
}

/// True for a file that documents name: not one whose URL leads nowhere known, or would run
/// something.
pub(super) fn is_shown(file: &Enclosure) -> bool {
    let barred =
        |c: char| c.is_whitespace() || c.is_control() || matches!(c, '\u{FFFE}' | '\u{FFFF}');
    let url = file.url.trim();
    !url.chars().all(barred) && (may_be_followed(url) || is_image_data(url))
}

fn is_by(entry: &Entry, feed: &FeedRecord, author: &str) -> bool {
    let is_named = |person: &Person| {
        let names = [&person.name, &person.email, &person.uri];
        names
            .into_iter()
            .flatten()
            .any(|name| folded(name) == author)
    };
    inheritance::authors(entry, feed).iter().any(is_named)
}

fn is_tagged(entry: &Entry, category: &str) -> bool {
    let is_it = |name: &String| folded(name) == category;
    entry
        .categories
        .iter()
        .any(|tag| is_it(&tag.term) || tag.label.as_ref().is_some_and(is_it))
}

/// True for an entry in a language of the range (RFC 4647 section 3.3.1).
fn is_in(entry: &Entry, feed: &FeedRecord, range: &str) -> bool {
    let Some(language) = inheritance::language(entry, feed) else {
        return false;
    };
    let language = language.trim().to_ascii_lowercase().replace('_', "-");
    language
        .strip_prefix(range)
        .is_some_and(|rest| rest.is_empty() || rest.starts_with('-'))
}

/// The words and phrases of a search, folded and sorted, each once.
fn phrases(words: &str) -> Result<Vec<String>, BadFilter> {
    let Some(words) = text("q", words)? else {
        return Ok(Vec::new());
    };
    let mut phrases = Vec::new();
    // Every second part stands between quotation marks.
    let parts: Vec<&str> = words.split('"').collect();
    if parts.len().is_multiple_of(2) {
        return Err(BadFilter::OpenQuote);
    }
    for (at, part) in parts.into_iter().enumerate() {
        if at % 2 == 1 {
            phrases.push(phrase(part));
        } else {
            phrases.extend(part.split_whitespace().map(phrase));
        }
    }
    phrases.retain(|phrase| !phrase.is_empty());
    phrases.sort_unstable();
    phrases.dedup();
    match phrases.len() {
        0 => Err(BadFilter::NoWord),
        1..=PHRASES_MAX => Ok(phrases),
        _ => Err(BadFilter::ManyWords),
    }
}

/// A value of one line, folded; `None` for none.
fn line(name: &'static str, value: &str) -> Result<Option<String>, BadFilter> {
    let Some(value) = text(name, value)? else {
        return Ok(None);
    };
    match folded(value) {
        line if line.is_empty() => Err(BadFilter::NoText(name)),
        line => Ok(Some(line)),
    }
}

/// A value that may be text; `None` for none.
fn text<'a>(name: &'static str, value: &'a str) -> Result<Option<&'a str>, BadFilter> {
    if value.len() > VALUE_BYTES_MAX {
        return Err(BadFilter::TooLong(name));
    }
    let is_text = !value.chars().any(|c| c.is_control() || c == '\u{FFFD}');
    if !is_text {
        return Err(BadFilter::NoText(name));
    }
    Ok((!value.is_empty()).then_some(value))
}

/// A basic language range in lower case (RFC 4647 section 2.1); `None` for none.
fn language_range(value: &str) -> Result<Option<String>, BadFilter> {
    if value.is_empty() {
        return Ok(None);
    }
    let mut subtags = value.split('-');
    let is_subtag =
        |tag: &str| (1..=8).contains(&tag.len()) && tag.bytes().all(|b| b.is_ascii_alphanumeric());
    let is_primary = |tag: &str| tag.bytes().all(|b| b.is_ascii_alphabetic());
    let is_range = value.len() <= LANGUAGE_BYTES_MAX
        && subtags
            .next()
            .is_some_and(|tag| is_subtag(tag) && is_primary(tag))
        && subtags.all(is_subtag);
    if is_range {
        Ok(Some(value.to_ascii_lowercase()))
    } else {
        Err(BadFilter::Language)
    }
}
