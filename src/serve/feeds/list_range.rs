//! The part of all feeds that a list of them shows: `?after=NAME&max=N&q=WORDS`; not what it says
//! of each.

use crate::render::urls::{BadQuery, LIST_WORDS_BYTES_MAX, count};
use std::borrow::Cow;
use url::form_urlencoded::{Serializer, parse};

/// Feeds in a list for programs when nobody says how many.
pub const FEEDS_DEFAULT: usize = 1000;
/// Feeds in a list at most.
const FEEDS_MAX: usize = 10_000;
/// The parameter of the operator that asks for feeds that fail.
const FAILING: &str = "failing";
/// The parameter of the operator that asks for one feed.
const NAME: &str = "name";
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
        let mut pairs = parse(query.as_bytes());
        let name = pairs.find_map(|(name, value)| (name == NAME).then_some(value));
        Ok(Self {
            failing_only,
            name: name.map(Cow::into_owned),
            ..range
        })
    }

    /// True for a feed that holds all of the words.
    pub(crate) fn shows(&self, name: &str, title: &str) -> bool {
        if self.words.is_empty() {
            return true;
        }
        let text = format!("{name}\n{title}").to_lowercase();
        self.words
            .to_lowercase()
            .split_whitespace()
            .all(|word| text.contains(word))
    }

    /// The query of the range after this one, of which `last` is the last feed.
    pub fn next(&self, last: &str) -> String {
        self.query_after(Some(last))
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
        query.finish()
    }
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
        let range = FeedRange::parse("q=%20Old+ß&max=2").unwrap();
        assert_eq!(FeedRange::parse(&range.next("x")).unwrap().words, "Old ß");
        assert!(
            range.shows("blog", "Groß und OLD")
                && range.shows("old-ß", "")
                && !range.shows("old", "")
        );
    }
}
