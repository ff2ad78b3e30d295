//! The part of all feeds that a list of them shows: `?after=NAME&max=N&q=WORDS`; not what it says
//! of each. The operator may also ask for those that fail, for one, and for an order.

use crate::render::urls::{BadQuery, LIST_WORDS_BYTES_MAX, count};
use std::{borrow::Cow, fmt};
use url::form_urlencoded::{Serializer, parse};

/// Feeds in a list for programs when nobody says how many.
pub const FEEDS_DEFAULT: usize = 1000;
/// Feeds in a list at most.
const FEEDS_MAX: usize = 10_000;
/// The parameter of the operator that asks for feeds that fail.
const FAILING: &str = "failing";
/// The parameter of the operator that asks for one feed.
const NAME: &str = "name";
/// The parameter of the operator that asks for an order.
const SORT: &str = "sort";
/// The parameter of the operator with the place in that order behind which a range begins.
const AT: &str = "at";
/// The parameters that have a meaning.
const NAMES: [&str; 3] = ["after", "max", "q"];

/// A part of all feeds, by name.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FeedRange {
    /// The name after which it begins; `None` at the first.
    pub after: Option<String>,
    /// Feeds in it at most, where somebody says how many.
    pub max: Option<usize>,
    /// Words that name or title of each hold, in any case; empty for all feeds.
    pub words: String,
    /// True for feeds that fail alone, which only the operator is told of.
    pub failing_only: bool,
    /// The name of the only feed that is shown, which the operator may ask for.
    pub name: Option<String>,
    /// The order, which the operator may ask for.
    pub sort: FeedSort,
    /// The place in the order of the feed after which it begins, where the order is not that of names.
    pub at: u64,
}

/// Order of the feeds of a range. Feeds with equal places in it are in the order of their names.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FeedSort {
    /// The value that is compared.
    pub by: FeedSortKey,
    /// True where the last come first.
    pub is_reversed: bool,
}

/// Property by which feeds are sorted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum FeedSortKey {
    /// The name.
    #[default]
    Name,
    /// The state: those that fail first.
    State,
    /// Time of the last good answer, oldest first.
    LastGood,
    /// Number of live items, most first.
    Items,
}

impl FeedSortKey {
    /// All of them, in the order in which they are shown.
    pub const ALL: [Self; 4] = [Self::Name, Self::State, Self::LastGood, Self::Items];

    /// Its name in a query.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Name => "name",
            Self::State => "state",
            Self::LastGood => "last",
            Self::Items => "items",
        }
    }
}

impl FeedSort {
    /// Reads `KEY`, or `-KEY` for the reverse.
    fn parse(text: &str) -> Option<Self> {
        let (is_reversed, name) = match text.strip_prefix('-') {
            Some(name) => (true, name),
            None => (false, text),
        };
        let by = FeedSortKey::ALL
            .into_iter()
            .find(|key| key.name() == name)?;
        Some(Self { by, is_reversed })
    }

    /// The same in reverse.
    #[must_use]
    pub const fn reversed(self) -> Self {
        Self {
            is_reversed: !self.is_reversed,
            ..self
        }
    }
}

impl fmt::Display for FeedSort {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let sign = if self.is_reversed { "-" } else { "" };
        write!(f, "{sign}{}", self.by.name())
    }
}

impl FeedRange {
    /// The range that a query asks for; else what is wrong with it.
    pub(crate) fn parse(query: &str) -> Result<Self, Cow<'static, str>> {
        let mut range = Self::default();
        let mut seen: Vec<&str> = Vec::new();
        for (name, value) in parse(query.as_bytes()) {
            let Some(known) = NAMES.into_iter().find(|known| *known == name) else {
                continue;
            };
            if seen.contains(&known) {
                return Err(BadQuery::Twice(known).to_string().into());
            }
            seen.push(known);
            // As with filters: what was no text cannot be meant.
            if value.chars().any(|c| c.is_control() || c == '\u{FFFD}') {
                return Err(format!("`{known}` must be text, without control characters").into());
            }
            match known {
                "q" if value.len() > LIST_WORDS_BYTES_MAX => {
                    return Err(format!("`q` holds {LIST_WORDS_BYTES_MAX} bytes at most").into());
                }
                "q" => value.trim().clone_into(&mut range.words),
                "after" => range.after = Some(value.into_owned()).filter(|name| !name.is_empty()),
                "max" => {
                    let max = count(&value).ok().filter(|max| *max != Some(0));
                    let max = max.ok_or_else(|| BadQuery::Max.to_string())?;
                    range.max =
                        max.map(|max| usize::try_from(max).unwrap_or(FEEDS_MAX).min(FEEDS_MAX));
                }
                _ => {}
            }
        }
        Ok(range)
    }

    /// The range that an operator's query asks for, who may ask for those that fail, or for one feed.
    pub(crate) fn of_operator(query: &str) -> Result<Self, Cow<'static, str>> {
        let range = Self::parse(query)?;
        let mut pairs = parse(query.as_bytes());
        let failing_only = pairs.any(|(name, _)| name == FAILING);
        let value = |wanted: &str| {
            let mut pairs = parse(query.as_bytes());
            pairs.find_map(|(name, value)| (name == wanted).then_some(value))
        };
        let sort = match value(SORT).filter(|sort| !sort.is_empty()) {
            None => FeedSort::default(),
            Some(sort) => FeedSort::parse(&sort).ok_or(
                "`sort` must be name, state, last or items, or one of these behind a minus sign",
            )?,
        };
        let at = match value(AT) {
            None => 0,
            Some(at) => at.parse().map_err(|_| "`at` must be a whole number")?,
        };
        Ok(Self {
            failing_only,
            name: value(NAME).map(Cow::into_owned),
            sort,
            at,
            ..range
        })
    }

    /// The same from the first feed on, in another order.
    #[must_use]
    pub fn sorted(&self, sort: FeedSort) -> Self {
        Self {
            after: None,
            at: 0,
            sort,
            ..self.clone()
        }
    }

    /// True for a feed that holds all of the words.
    pub(crate) fn shows(&self, name: &str, title: &str) -> bool {
        self.word_search().shows([name, title])
    }

    /// The words, made ready for many feeds.
    pub(crate) fn word_search(&self) -> WordSearch {
        let words = self.words.to_lowercase();
        WordSearch(words.split_whitespace().map(str::to_owned).collect())
    }

    /// The query of the range after this one, of which `last` is the last feed.
    pub fn next(&self, last: &str) -> String {
        self.query_after(Some(last))
    }

    /// The same where that feed has this place in the order.
    pub fn next_at(&self, last: &str, at: u64) -> String {
        let behind = Self { at, ..self.clone() };
        behind.query_after(Some(last))
    }

    /// The query of this range.
    pub fn query(&self) -> String {
        self.query_after(self.after.as_deref())
    }

    fn query_after(&self, after: Option<&str>) -> String {
        let mut query = Serializer::new(String::new());
        if let Some(after) = after {
            query.append_pair("after", after);
        }
        if let Some(max) = self.max {
            query.append_pair("max", &max.to_string());
        }
        if !self.words.is_empty() {
            query.append_pair("q", &self.words);
        }
        if self.failing_only {
            query.append_pair(FAILING, "");
        }
        if let Some(name) = &self.name {
            query.append_pair(NAME, name);
        }
        if self.sort != FeedSort::default() {
            query.append_pair(SORT, &self.sort.to_string());
        }
        if self.at > 0 && after.is_some() {
            query.append_pair(AT, &self.at.to_string());
        }
        query.finish()
    }
}

/// Words that are looked for in the texts of many feeds. No text is copied, unless it has other
/// letters than ASCII.
pub(crate) struct WordSearch(Vec<String>);

impl WordSearch {
    /// True where nothing is looked for.
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// True where each of the words is in one of these texts, in any case.
    pub(crate) fn shows<const N: usize>(&self, texts: [&str; N]) -> bool {
        let is_in = |word: &String| texts.iter().any(|text| holds(text, word));
        self.0.iter().all(is_in)
    }
}

/// True for a text with a word that is in lower case.
fn holds(text: &str, word: &str) -> bool {
    if !text.is_ascii() {
        return text.to_lowercase().contains(word);
    }
    let (text, word) = (text.as_bytes(), word.as_bytes());
    let Some((first, rest)) = word.split_first() else {
        return true;
    };
    let upper = first.to_ascii_uppercase();
    memchr::memchr2_iter(*first, upper, text).any(|at| {
        let behind = text.get(at + 1..at + 1 + rest.len());
        behind.is_some_and(|behind| behind.eq_ignore_ascii_case(rest))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_range_is_what_its_query_says_and_leads_to_the_next() {
        let range = FeedRange::parse("max=2&after=a%20b&x=1").unwrap();
        assert_eq!(
            range,
            FeedRange {
                after: Some("a b".into()),
                max: Some(2),
                ..FeedRange::default()
            }
        );
        assert_eq!(
            FeedRange::parse(&range.next("c&d")).unwrap(),
            FeedRange {
                after: Some("c&d".into()),
                max: Some(2),
                ..FeedRange::default()
            }
        );
        assert_eq!(FeedRange::parse("").unwrap().next("z"), "after=z");
        assert_eq!(
            FeedRange::parse("max=99999999").unwrap().max,
            Some(FEEDS_MAX)
        );
        let long = format!("q={}", "x".repeat(257));
        assert_eq!(
            FeedRange::parse("max=").unwrap(),
            FeedRange::default(),
            "an empty one is none"
        );
        assert_eq!(
            FeedRange::parse("max=99999999999999999999999").unwrap().max,
            Some(FEEDS_MAX)
        );
        let odd = ["q=%ff", "after=%ff", "q=a%00b", "after=a%0a"];
        for bad in ["max=0", "max=-1", "max=x", "max=1&max=1", "q=a&q=", &long]
            .into_iter()
            .chain(odd)
        {
            assert!(FeedRange::parse(bad).is_err(), "{bad}");
        }
        let failing = FeedRange::of_operator("failing&max=2").unwrap();
        let next = failing.next("x");
        assert!(failing.failing_only && FeedRange::of_operator(&next).unwrap().failing_only);
        assert!(!FeedRange::parse(&next).unwrap().failing_only);
        let one = FeedRange::of_operator("name=a%26b").unwrap();
        assert_eq!(one.name.as_deref(), Some("a&b"));
        assert_eq!(FeedRange::of_operator(&one.query()).unwrap(), one);
        let range = FeedRange::of_operator("sort=-items&q=x&after=a&at=7").unwrap();
        assert_eq!(FeedRange::of_operator(&range.query()).unwrap(), range);
        let next = FeedRange::of_operator(&range.next_at("b", 5)).unwrap();
        assert_eq!((next.after.as_deref(), next.at), (Some("b"), 5));
        let other = range.sorted(range.sort.reversed());
        assert_eq!(other.query(), "q=x&sort=items");
        for bad in ["sort=size", "sort=--name", "at=-1"] {
            assert!(FeedRange::of_operator(bad).is_err(), "{bad}");
        }
        let search = FeedRange::parse("q=Blog+EXAMPLE").unwrap().word_search();
        assert!(
            search.shows(["my-bLOg", "http://x.example/"]) && search.shows(["", "BLOG.example"])
        );
        assert!(!search.shows(["blo", "gexample"]) && !search.shows(["blog", "exampl"]));
        let range = FeedRange::parse("q=%20Old+ß&max=2").unwrap();
        assert_eq!(FeedRange::parse(&range.next("x")).unwrap().words, "Old ß");
        assert!(
            range.shows("blog", "Groß und OLD")
                && range.shows("old-ß", "")
                && !range.shows("old", "")
        );
    }
}
