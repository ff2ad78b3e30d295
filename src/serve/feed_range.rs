//! The part of all feeds that a list of them shows: `?after=NAME&max=N`; not what it says of each.

use std::borrow::Cow;
use url::form_urlencoded::{Serializer, parse};

/// Feeds in a list when nobody says how many.
const FEEDS_DEFAULT: usize = 1000;
/// Feeds in a list at most.
const FEEDS_MAX: usize = 10_000;

/// A part of all feeds, by name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FeedRange {
    /// The name after which it begins; `None` at the first.
    pub after: Option<String>,
    /// Feeds in it at most.
    pub max: usize,
}

impl Default for FeedRange {
    fn default() -> Self {
        Self { after: None, max: FEEDS_DEFAULT }
    }
}

impl FeedRange {
    /// The range that a query asks for; else what is wrong with it.
    pub(super) fn parse(query: &str) -> Result<Self, Cow<'static, str>> {
        let mut range = Self::default();
        for (name, value) in parse(query.as_bytes()) {
            match &*name {
                "after" => range.after = Some(value.into_owned()).filter(|name| !name.is_empty()),
                "max" => {
                    let max = value.parse().ok().filter(|max| *max > 0);
                    range.max = max.ok_or("`max` must be a whole number from 1 on")?;
                }
                _ => {}
            }
        }
        range.max = range.max.min(FEEDS_MAX);
        Ok(range)
    }

    /// The query of the range after this one, of which `last` is the last feed.
    pub fn next(&self, last: &str) -> String {
        let max = (self.max != FEEDS_DEFAULT).then(|| self.max.to_string());
        let mut query = Serializer::new(String::new());
        query.append_pair("after", last);
        if let Some(max) = max {
            query.append_pair("max", &max);
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
        assert_eq!(range, FeedRange { after: Some("a b".into()), max: 2 });
        assert_eq!(
            FeedRange::parse(&range.next("c&d")).unwrap(),
            FeedRange { after: Some("c&d".into()), max: 2 }
        );
        assert_eq!(FeedRange::parse("").unwrap().next("z"), "after=z");
        assert_eq!(FeedRange::parse("max=99999999").unwrap().max, FEEDS_MAX);
        for bad in ["max=0", "max=-1", "max=x", "max="] {
            assert!(FeedRange::parse(bad).is_err(), "{bad}");
        }
    }
}
