//! The events as the operator asks for them: form and range; not what they are.

use super::parameter;
use crate::feed::stamp::Stamp;
use http::{HeaderMap, header::HOST};

/// Events of a document, if no number is asked for.
const EVENTS_DEFAULT: usize = 100;
/// Events of a document at most.
const EVENTS_MOST: usize = 1000;

/// Form of a document of events.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EventForm {
    /// A feed of Atom.
    Atom,
    /// A JSON Feed.
    Json,
}

/// The part of the events that is asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EventRange {
    /// Those before this time; `None` for the newest.
    pub before: Option<Stamp>,
    /// So many at most.
    pub max: usize,
    /// The URL that was asked for; `None` where the request names no host.
    pub own_url: Option<String>,
}

impl EventForm {
    /// The form at a path; `None` for another path.
    pub(super) fn at(path: &str) -> Option<Self> {
        match path {
            "/events.atom" => Some(Self::Atom),
            "/events.json" => Some(Self::Json),
            _ => None,
        }
    }

    /// Its media type.
    pub(super) const fn media_type(self) -> &'static str {
        match self {
            Self::Atom => "application/atom+xml; charset=utf-8",
            Self::Json => "application/feed+json; charset=utf-8",
        }
    }
}

impl EventRange {
    /// Reads `max` and `before` of a query; the error is its mistake.
    pub(super) fn read(path: &str, query: &str, headers: &HeaderMap) -> Result<Self, String> {
        let max = match parameter(query, "max") {
            None => EVENTS_DEFAULT,
            Some(max) => max
                .parse()
                .ok()
                .filter(|max| (1..=EVENTS_MOST).contains(max))
                .ok_or_else(|| format!("`max` is a number from 1 to {EVENTS_MOST}"))?,
        };
        let before = parameter(query, "before").map(|before| {
            let at = chrono::DateTime::parse_from_rfc3339(&before).ok();
            let micros = at.and_then(|at| u64::try_from(at.timestamp_micros()).ok());
            micros.map(Stamp::from_micros).ok_or_else(|| {
                "`before` is the time of an event, as \"2026-11-28T12:00:00.123456Z\"".to_owned()
            })
        });
        let host = headers.get(HOST).and_then(|host| host.to_str().ok());
        Ok(Self {
            before: before.transpose()?,
            max,
            own_url: host.map(|host| format!("http://{host}{path}")),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_range_is_read_and_a_mistake_is_told() {
        let read = |query| EventRange::read("/events.atom", query, &HeaderMap::new());
        let usual = read("").unwrap();
        assert_eq!((usual.max, usual.before), (EVENTS_DEFAULT, None));
        let range = read("max=7&before=2026-11-28T12:00:00.000001Z").unwrap();
        assert_eq!(range.max, 7);
        assert_eq!(
            range.before.unwrap().rfc3339(),
            "2026-11-28T12:00:00.000001Z"
        );
        for query in [
            "max=0",
            "max=1001",
            "max=x",
            "before=now",
            "before=1960-01-01T00:00:00Z",
        ] {
            assert!(read(query).is_err(), "{query}");
        }
    }
}
