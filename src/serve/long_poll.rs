//! Which requests are held, and for how long; not what wakes them.

use super::{
    refusal::Refusal,
    waiter_places::{WaiterPlace, WaiterPlaces},
};
use crate::{feed::record::FeedNo, render::Query};
use http::Method;
use std::{net::IpAddr, time::Duration};

/// Seconds that a request is held when it does not say: below the usual idle limit of proxies, 60 s
/// (SF-42).
pub(super) const TIMEOUT_SECS: u64 = 55;

/// No connection lives longer, whatever is configured; and a moment so far ahead can still be
/// reckoned.
const HOLD_MAX: Duration = Duration::from_secs(86_400);

/// Room for requests that are held.
#[derive(Clone, Debug)]
pub struct Waiters {
    places: WaiterPlaces,
    timeout_max: Duration,
}

impl Waiters {
    /// Room for so many at once, and so many of one client, each held for so long at most.
    pub fn new(places_max: usize, per_client_max: usize, timeout_max: Duration) -> Self {
        let places = WaiterPlaces::new(places_max, per_client_max);
        Self {
            places,
            timeout_max: timeout_max.min(HOLD_MAX),
        }
    }

    /// For how long a request may be held (D-11): only with `since` or an explicit `timeout`, and
    /// never a HEAD.
    pub fn hold(&self, method: &Method, query: &Query) -> Option<Duration> {
        let asked = !query.since.is_empty() || query.timeout_secs.is_some();
        let timeout =
            Duration::from_secs(query.timeout_secs.unwrap_or(TIMEOUT_SECS)).min(self.timeout_max);
        (asked && method != Method::HEAD && !timeout.is_zero()).then_some(timeout)
    }

    /// A place for one request of a client for a feed, or for one stream of its events.
    pub(super) fn enter(
        &self,
        client: Option<IpAddr>,
        feed: FeedNo,
    ) -> Result<WaiterPlace, Refusal> {
        self.places.enter(client, feed)
    }

    /// Requests for a feed that are held now, and streams of its events.
    pub fn held_of(&self, feed: FeedNo) -> usize {
        self.places.taken_of(feed)
    }

    /// The longest hold, seconds.
    pub fn timeout_max_secs(&self) -> u64 {
        self.timeout_max.as_secs()
    }

    /// Requests held now, and streams of events.
    pub fn held(&self) -> usize {
        self.places.taken()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_get_that_asked_for_it_is_held() {
        // SF-40, SF-42, D-11.
        let waiters = Waiters::new(1, 1, Duration::from_secs(300));
        let hold = |method, raw: &str| {
            waiters
                .hold(&method, &Query::parse(raw).unwrap())
                .map(|held| held.as_secs())
        };
        assert_eq!(hold(Method::GET, ""), None);
        assert_eq!(hold(Method::GET, "max=5"), None);
        assert_eq!(hold(Method::GET, "since=cursor:"), Some(55));
        assert_eq!(hold(Method::GET, "since=cursor:&timeout=0"), None);
        assert_eq!(hold(Method::GET, "timeout=7"), Some(7));
        assert_eq!(hold(Method::GET, "timeout=86400"), Some(300));
        assert_eq!(hold(Method::HEAD, "since=cursor:"), None);
    }
}
