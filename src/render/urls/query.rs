//! The query of a page request, both ways: since, until, max, order, filters, timeout, callback;
//! not what they select.

use crate::feed::{
    filter::{BadFilter, Filter},
    order::{Order, UnknownOrder},
};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, PercentEncode, utf8_percent_encode};
use std::fmt;
use thiserror::Error;
use url::form_urlencoded;

/// Bytes at most of the words that a list of feeds is searched for.
pub const LIST_WORDS_BYTES_MAX: usize = 256;

/// Seconds at most after which a browser loads a page again.
const REFRESH_SECS_MAX: u64 = 3600;

/// Seconds after which a browser that shows a page for people is to load it again, by a raw query;
/// `None` where it does not say.
///
/// # Errors
/// The value is no number of seconds, or out of bounds.
pub fn refresh_secs(raw: &str) -> Result<Option<u64>, BadQuery> {
    let mut values = form_urlencoded::parse(raw.as_bytes()).filter(|(key, _)| key == "refresh");
    let value = values.next().map(|(_, value)| value).unwrap_or_default();
    match count(&value) {
        _ if values.next().is_some() => Err(BadQuery::Twice("refresh")),
        Ok(None) => Ok(None),
        Ok(Some(secs)) if (1..=REFRESH_SECS_MAX).contains(&secs) => Ok(Some(secs)),
        Ok(Some(_)) | Err(NotWhole) => Err(BadQuery::Refresh),
    }
}

/// The parameters of a page request. Positions as written, decoded once.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Query {
    /// After this position; empty when absent.
    pub since: String,
    /// Before this position; empty when absent.
    pub until: String,
    /// Items at most; `None` for the server's default. Clamped by whoever knows the cap.
    pub max: Option<usize>,
    /// The order of the items.
    pub order: Order,
    /// The items that are shown.
    pub filter: Filter,
    /// Seconds to hold an empty answer; `None` when not given.
    pub timeout_secs: Option<u64>,
    /// The JSON-P function; `None` for no JSON-P.
    pub callback: Option<String>,
}

/// A query that cannot be meant: always the consumer's mistake, always 400.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum BadQuery {
    /// A parameter of ours was given twice.
    #[error("the parameter `{0}` is given more than once")]
    Twice(&'static str),
    /// `max` is no positive integer.
    #[error("`max` must be a whole number of at least 1")]
    Max,
    /// `timeout` is no integer.
    #[error("`timeout` must be a whole number of seconds, 0 or more")]
    Timeout,
    /// `order` is none of ours.
    #[error(transparent)]
    Order(#[from] UnknownOrder),
    /// A filter cannot be meant.
    #[error(transparent)]
    Filter(#[from] BadFilter),
    /// `refresh` is no number of seconds that a browser should wait.
    #[error("`refresh` must be a whole number of seconds, 1 to {REFRESH_SECS_MAX}")]
    Refresh,
    /// A classic view is asked for a part of it that it does not have.
    #[error("`{0}` is not for classic views, which show the newest posts: ask the Smart Feed")]
    NotClassic(&'static str),
    /// A classic view is asked for tombstones.
    #[error(
        "`deleted=only` is not for classic views, which show nothing that is deleted: ask the Smart Feed"
    )]
    NothingDeleted,
}

impl Query {
    /// The parameters that have a meaning, beside those of a filter.
    const OWN_NAMES: [&str; 6] = ["since", "until", "max", "order", "timeout", "callback"];

    /// The parameters that have a meaning; all others are ignored and never echoed (SF-43).
    pub fn names() -> impl Iterator<Item = &'static str> {
        Self::OWN_NAMES.into_iter().chain(Filter::names())
    }

    /// Reads a raw query string.
    pub fn parse(raw: &str) -> Result<Self, BadQuery> {
        let mut given: Vec<(&'static str, String)> = Vec::new();
        for (key, value) in form_urlencoded::parse(raw.as_bytes()) {
            let Some(name) = Self::names().find(|name| *name == key) else {
                continue;
            };
            if given.iter().any(|(before, _)| *before == name) {
                return Err(BadQuery::Twice(name));
            }
            given.push((name, value.into_owned()));
        }
        let given: Vec<(&str, &str)> = given
            .iter()
            .map(|(name, value)| (*name, &**value))
            .collect();
        let value = |name: &str| {
            let found = given.iter().find(|(known, _)| *known == name);
            found.map_or("", |(_, value)| *value)
        };
        let callback = value("callback");
        Self {
            since: value("since").to_owned(),
            until: value("until").to_owned(),
            max: count(value("max"))
                .map_err(|NotWhole| BadQuery::Max)?
                .map(|max| usize::try_from(max).unwrap_or(usize::MAX)),
            order: match value("order") {
                "" => Order::default(),
                order => order.parse()?,
            },
            filter: Filter::of(&given)?,
            timeout_secs: count(value("timeout")).map_err(|NotWhole| BadQuery::Timeout)?,
            callback: (!callback.is_empty()).then(|| callback.to_owned()),
        }
        .checked()
    }

    /// True when a raw query string names an order.
    pub fn names_order(raw: &str) -> bool {
        form_urlencoded::parse(raw.as_bytes())
            .any(|(key, value)| key == "order" && !value.is_empty())
    }

    /// True when a raw query string holds nothing but parameters that have a meaning.
    pub(super) fn is_ours(raw: &str) -> bool {
        form_urlencoded::parse(raw.as_bytes()).all(|(key, _)| Self::names().any(|name| name == key))
    }

    /// An old address in two: that of the feed itself, with the parameters of somebody else, and the
    /// raw query of those that have a meaning here. Filters are among these only if it is asked for.
    pub fn split_address(address: &str, with_filters: bool) -> (String, String) {
        let (path, query) = address.split_once('?').unwrap_or((address, ""));
        let (theirs, ours) = Self::split(query, with_filters);
        if theirs.is_empty() {
            return (path.to_owned(), ours);
        }
        (format!("{path}?{theirs}"), ours)
    }

    /// The parameters of somebody else in a raw query, and those that have a meaning here, each as
    /// it was spelt.
    fn split(raw: &str, with_filters: bool) -> (String, String) {
        let is_ours = |part: &&str| {
            let name = part.split('=').next().unwrap_or_default();
            Self::OWN_NAMES.contains(&name)
                || (with_filters && Filter::names().any(|known| known == name))
        };
        let (ours, theirs): (Vec<&str>, Vec<&str>) = raw
            .split('&')
            .filter(|part| !part.is_empty())
            .partition(is_ours);
        (theirs.join("&"), ours.join("&"))
    }

    /// True for a raw query of a consumer that speaks of positions, waits, wants a script, or names
    /// what only a Smart Feed has: what no plain reader asks for. Searches, authors, categories and
    /// languages are parameters of many an old server, and do not tell.
    pub fn is_smart(raw: &str) -> bool {
        form_urlencoded::parse(raw.as_bytes()).any(|(key, value)| match &*key {
            "since" | "until" | "timeout" | "callback" => true,
            "max" => value.bytes().all(|byte| byte.is_ascii_digit()) && !value.is_empty(),
            "order" => value.parse::<Order>().is_ok(),
            name @ ("deleted" | "has") => {
                Filter::of(&[(name, &value)]).is_ok_and(|filter| filter.has_terms())
            }
            _ => false,
        })
    }

    /// The part of it that spells the filter.
    pub(super) fn of_filter(&self) -> String {
        let spelling = self.filter.spelling().into_iter();
        let terms = spelling.map(|(name, value)| format!("{name}={}", escaped(&value)));
        terms.collect::<Vec<_>>().join("&")
    }

    fn checked(self) -> Result<Self, BadQuery> {
        if self.max == Some(0) {
            Err(BadQuery::Max)
        } else {
            Ok(self)
        }
    }

    /// True while the whole view is meant, and nothing is said of the answer.
    pub fn is_whole(&self) -> bool {
        let Self {
            since,
            until,
            max,
            order: _,
            filter: _,
            timeout_secs,
            callback,
        } = self;
        since.is_empty()
            && until.is_empty()
            && max.is_none()
            && timeout_secs.is_none()
            && callback.is_none()
    }

    /// True where the answer belongs to this one request and must not be cached (D-26).
    pub fn is_personal(&self) -> bool {
        !self.since.is_empty()
            || !self.until.is_empty()
            || self.timeout_secs.is_some()
            || self.callback.is_some()
    }
}

/// The parameters of a view for ordinary readers, who send parameters of all kinds: those that mean
/// nothing anywhere are ignored, those that mean something elsewhere are not.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ClassicQuery {
    /// Posts at most; `None` for all that the view shows.
    pub max: Option<usize>,
    /// The posts that are shown.
    pub filter: Filter,
    /// The JSON-P function; `None` for no JSON-P.
    pub callback: Option<String>,
}

impl ClassicQuery {
    /// The parameters that have a meaning.
    #[cfg(test)]
    pub(in crate::render) fn names() -> impl Iterator<Item = &'static str> {
        ["max", "callback"].into_iter().chain(Filter::names())
    }

    /// Reads a raw query string.
    pub fn parse(raw: &str) -> Result<Self, BadQuery> {
        let Query {
            since,
            until,
            max,
            order,
            filter,
            timeout_secs,
            callback,
        } = Query::parse(raw)?;
        let is_other = [
            ("since", !since.is_empty()),
            ("until", !until.is_empty()),
            ("order", order != Order::default()),
            ("timeout", timeout_secs.is_some()),
        ];
        if let Some((name, _)) = is_other.into_iter().find(|(_, is_other)| *is_other) {
            return Err(BadQuery::NotClassic(name));
        }
        if filter.shows_gone_alone() {
            return Err(BadQuery::NothingDeleted);
        }
        Ok(Self {
            max,
            filter,
            callback,
        })
    }
}

fn escaped(value: &str) -> PercentEncode<'_> {
    utf8_percent_encode(value, QUERY_VALUE)
}

/// Everything but unreserved characters is escaped in a query value.
const QUERY_VALUE: &AsciiSet = &NON_ALPHANUMERIC
    .remove(b'-')
    .remove(b'.')
    .remove(b'_')
    .remove(b'~');

impl fmt::Display for Query {
    /// The order always, all else when it is there.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "order={}", self.order)?;
        if self.filter.has_terms() {
            write!(f, "&{}", self.of_filter())?;
        }
        if !self.since.is_empty() {
            write!(f, "&since={}", escaped(&self.since))?;
        }
        if let Some(max) = self.max {
            write!(f, "&max={max}")?;
        }
        if !self.until.is_empty() {
            write!(f, "&until={}", escaped(&self.until))?;
        }
        if let Some(secs) = self.timeout_secs {
            write!(f, "&timeout={secs}")?;
        }
        if let Some(callback) = &self.callback {
            write!(f, "&callback={}", escaped(callback))?;
        }
        Ok(())
    }
}

/// The name of the function that a raw query asks for, where nothing else of it is read.
pub fn callback(raw: &str) -> Result<Option<String>, BadQuery> {
    let mut names = form_urlencoded::parse(raw.as_bytes()).filter(|(key, _)| key == "callback");
    let name = names.next().map(|(_, name)| name.into_owned());
    if names.next().is_some() {
        return Err(BadQuery::Twice("callback"));
    }
    Ok(name.filter(|name| !name.is_empty()))
}

/// True where a raw query, good or bad, asks for JSON-P.
pub fn asks_for_script(raw: &str) -> bool {
    form_urlencoded::parse(raw.as_bytes())
        .any(|(key, value)| key == "callback" && !value.is_empty())
}

/// Text that is no whole number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("no whole number")]
pub struct NotWhole;

/// Digits only; more than fit are as many as fit. Empty is absent.
pub fn count(text: &str) -> Result<Option<u64>, NotWhole> {
    if text.is_empty() {
        return Ok(None);
    }
    if !text.bytes().all(|b| b.is_ascii_digit()) {
        return Err(NotWhole);
    }
    Ok(Some(text.parse().unwrap_or(u64::MAX)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::feed::position::Position;

    fn status(raw: &str) -> u16 {
        let positions = |query: Query| {
            Position::parse(&query.since)
                .and(Position::parse(&query.until))
                .is_ok()
        };
        if Query::parse(raw).is_ok_and(positions) {
            200
        } else {
            400
        }
    }

    #[test]
    fn every_query_of_the_vectors_is_decoded_or_refused_as_expected() {
        // SF-20, SF-42, SF-43, D-9.
        for case in testkit::data::section("queries") {
            let raw = case["raw"].as_str().unwrap();
            if let Some(expect) = case["expect_status"].as_u64() {
                assert_eq!(u64::from(status(raw)), expect, "{case}");
            }
            let Ok(query) = Query::parse(raw) else {
                continue;
            };
            if let Some(since) = case["decoded"]["since"].as_str() {
                assert_eq!(query.since, since, "{case}");
            }
            if let Some(callback) = case["decoded"]["callback"].as_str() {
                assert_eq!(
                    query.callback.as_deref().unwrap_or_default(),
                    callback,
                    "{case}"
                );
            }
            if let Some(order) = case["decoded"]["order"].as_str() {
                assert_eq!(query.order.name(), order, "{case}");
            }
        }
    }

    #[test]
    fn parameters_of_others_are_kept_apart_as_they_are_spelt() {
        let check = |raw: &str, theirs: &str, ours: &str, is_smart: bool| {
            assert_eq!(
                Query::split(raw, true),
                (theirs.to_owned(), ours.to_owned()),
                "{raw}"
            );
            assert_eq!(Query::is_smart(ours), is_smart, "{raw}");
        };
        check("feed=rss2&since=&x=%2f", "feed=rss2&x=%2f", "since=", true);
        check("max=5&order=created", "", "max=5&order=created", true);
        for ours in [
            "max=5",
            "order=-published",
            "deleted=only",
            "has=enclosure",
            "q=a&max=1",
        ] {
            check(ours, "", ours, true);
        }
        for any in [
            "max=",
            "max=many",
            "order=DESC",
            "deleted=1",
            "has=x",
            "q=a",
            "author=5",
            "category=a&lang=de",
        ] {
            check(any, "", any, false);
        }
        check("sincerely=1&a", "sincerely=1&a", "", false);
        assert_eq!(
            Query::split("q=a&max=1&b", false),
            ("q=a&b".to_owned(), "max=1".to_owned())
        );
        check("", "", "", false);
        for (address, own, ours) in [
            ("/f", "/f", ""),
            ("/f?since=", "/f", "since="),
            ("/f?a=1&since=&q=x", "/f?a=1&q=x", "since="),
        ] {
            let found = Query::split_address(address, false);
            assert_eq!(found, (own.to_owned(), ours.to_owned()), "{address}");
        }
    }

    #[test]
    fn a_number_too_large_is_clamped_and_not_refused() {
        let query = Query::parse("max=99999999999999999999&timeout=99999999999999999999").unwrap();
        assert_eq!(
            (query.max, query.timeout_secs),
            (Some(usize::MAX), Some(u64::MAX))
        );
    }

    #[test]
    fn classic_views_take_what_they_can_honour_and_refuse_the_rest() {
        let parsed =
            ClassicQuery::parse("max=5&callback=f&deleted=no&utm_source=x&since=&order=modified")
                .unwrap();
        assert_eq!(
            (parsed.max, parsed.callback.as_deref()),
            (Some(5), Some("f"))
        );
        assert!(parsed.filter.has_terms());
        for (raw, bad) in [
            ("since=cursor:", BadQuery::NotClassic("since")),
            ("until=time:2014", BadQuery::NotClassic("until")),
            ("order=-modified", BadQuery::NotClassic("order")),
            ("timeout=0", BadQuery::NotClassic("timeout")),
            ("deleted=only", BadQuery::NothingDeleted),
            ("max=0", BadQuery::Max),
            ("max=1&max=1", BadQuery::Twice("max")),
            ("q=a&q=b", BadQuery::Twice("q")),
        ] {
            assert_eq!(ClassicQuery::parse(raw), Err(bad), "{raw}");
        }
    }

    #[test]
    fn an_unknown_order_is_refused_and_an_unknown_parameter_is_not() {
        assert_eq!(
            Query::parse("order=best"),
            Err(BadQuery::Order(UnknownOrder))
        );
        assert_eq!(Query::parse("_=1&_=2&utm_source=x"), Ok(Query::default()));
        assert_eq!(
            Query::parse("order=created&order=created"),
            Err(BadQuery::Twice("order"))
        );
    }
}
