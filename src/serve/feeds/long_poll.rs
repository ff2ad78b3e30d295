//! Which requests are held, how many at once, and for how long; not what wakes them.

use super::waiter_table::{NoPlace, WaiterTable, take_one};
use crate::{
    feed::record::FeedNo,
    locks::lock,
    render::Query,
    serve::{Config, answers::refusal::Refusal},
};
use http::Method;
use std::{
    collections::HashMap,
    net::IpAddr,
    sync::{Arc, Mutex},
    time::Duration,
};
use tokio_util::sync::CancellationToken;

/// Seconds that a request is held when it does not say: below the usual idle limit of proxies, 60 s
/// (SF-42).
pub(super) const TIMEOUT_SECS: u64 = 55;

/// No connection lives longer, whatever is configured; and a moment so far ahead can still be
/// reckoned.
const HOLD_MAX: Duration = Duration::from_secs(86_400);

/// Number of places that are taken for each feed.
type OfFeeds = Arc<Mutex<HashMap<FeedNo, usize>>>;

/// The places by client, with what ends a request that gives way.
type Places = Arc<Mutex<WaiterTable<CancellationToken>>>;

/// Room for requests that are held, and for streams of events.
#[derive(Clone, Debug)]
pub struct Waiters {
    places: Places,
    of_feeds: OfFeeds,
    timeout_max: Duration,
}

/// A place of one request; dropping it gives it back.
#[derive(Debug)]
pub(crate) struct WaiterPlace {
    no: u64,
    places: Places,
    /// Cancelled once the request is to give way to another client.
    gives_way: CancellationToken,
    feed: (FeedNo, OfFeeds),
}

impl Waiters {
    /// Room for as many as are configured.
    pub fn new(config: &Config) -> Self {
        let timeout_max = Duration::from_secs(config.timeout_max_secs);
        let table = WaiterTable::new(config.waiters_max, config.waiters_per_client_max);
        Self {
            places: Arc::new(Mutex::new(table)),
            of_feeds: Arc::default(),
            timeout_max: timeout_max.min(HOLD_MAX),
        }
    }

    // Decides: Is a request held, and for how long?
    /// For how long a request may be held (D-11): only with `since` or an explicit `timeout`, and
    /// never a HEAD.
    pub(crate) fn hold(&self, method: &Method, query: &Query) -> Option<Duration> {
        let asked = !query.since.is_empty() || query.timeout_secs.is_some();
        let timeout =
            Duration::from_secs(query.timeout_secs.unwrap_or(TIMEOUT_SECS)).min(self.timeout_max);
        (asked && method != Method::HEAD && !timeout.is_zero()).then_some(timeout)
    }

    /// A place for one request of a client for a feed, or for one stream of its events. Requests of
    /// this machine count in all only: a proxy in front of us sends those of everybody.
    pub(super) fn enter(
        &self,
        client: Option<IpAddr>,
        feed: FeedNo,
    ) -> Result<WaiterPlace, Refusal> {
        let gives_way = CancellationToken::new();
        let entered = lock(&self.places).enter(client, gives_way.clone());
        let entered = entered.map_err(|none| match none {
            NoPlace::Full => Refusal::busy(),
            NoPlace::Share(max) => Refusal::too_many(max),
        })?;
        if let Some(other) = entered.gives_way {
            other.cancel();
        }
        *lock(&self.of_feeds).entry(feed).or_default() += 1;
        Ok(WaiterPlace {
            no: entered.no,
            places: self.places.clone(),
            gives_way,
            feed: (feed, self.of_feeds.clone()),
        })
    }

    /// Requests for a feed that are held now, and streams of its events.
    pub fn held_of(&self, feed: FeedNo) -> usize {
        lock(&self.of_feeds).get(&feed).copied().unwrap_or_default()
    }

    /// The longest hold, seconds.
    pub(crate) fn timeout_max_secs(&self) -> u64 {
        self.timeout_max.as_secs()
    }

    /// Requests held now, and streams of events.
    pub fn held(&self) -> usize {
        lock(&self.places).taken()
    }
}

impl WaiterPlace {
    /// Cancelled once the request is to give way to another client: it is answered at once.
    pub(super) fn gives_way(&self) -> &CancellationToken {
        &self.gives_way
    }
}

impl Drop for WaiterPlace {
    fn drop(&mut self) {
        let (feed, of_feeds) = &self.feed;
        take_one(&mut lock(of_feeds), *feed);
        lock(&self.places).leave(self.no);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FEED: FeedNo = FeedNo(1);

    fn waiters(places_max: usize, per_client_max: usize) -> Waiters {
        Waiters::new(&Config {
            waiters_max: places_max,
            waiters_per_client_max: per_client_max,
            ..Config::default()
        })
    }

    fn from(address: &str) -> Option<IpAddr> {
        Some(address.parse().unwrap())
    }

    #[test]
    fn only_a_get_that_asked_for_it_is_held() {
        // SF-40, SF-42, D-11.
        let waiters = waiters(1, 1);
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

    #[test]
    fn one_more_than_fit_is_refused() {
        let places = waiters(1, 1);
        let place = places.enter(None, FEED).unwrap();
        assert!(places.enter(None, FEED).is_err());
        assert_eq!(
            (
                places.held(),
                places.held_of(FEED),
                places.held_of(FeedNo(2))
            ),
            (1, 1, 0)
        );
        drop(place);
        assert!(places.enter(None, FEED).is_ok());
    }

    #[test]
    fn one_client_takes_no_more_than_its_share_and_gives_it_back() {
        let places = waiters(100, 2);
        let held: Vec<_> = ["192.0.2.1", "::ffff:192.0.2.1"]
            .map(|a| places.enter(from(a), FEED).unwrap())
            .into();
        assert!(places.enter(from("192.0.2.1"), FEED).is_err());
        assert_eq!(places.held(), 2, "whoever is refused takes no place");
        let others: Vec<_> = ["192.0.2.2", "2001:db8::1", "2001:db8::2"]
            .map(|a| places.enter(from(a), FEED).unwrap())
            .into();
        assert!(
            places.enter(from("2001:db8::3:4"), FEED).is_err(),
            "one network of version 6 is one client"
        );
        assert!(places.enter(from("2001:db8:0:1::1"), FEED).is_ok());
        drop(held);
        assert!(places.enter(from("192.0.2.1"), FEED).is_ok());
        drop(others);
        assert_eq!(places.held(), 0);
        assert!(lock(&places.of_feeds).is_empty());
    }

    #[test]
    fn requests_of_this_machine_are_counted_in_all_only() {
        let places = waiters(3, 1);
        let held: Vec<_> = ["127.0.0.1", "127.0.0.1", "::1"]
            .map(|a| places.enter(from(a), FEED).unwrap())
            .into();
        assert!(places.enter(from("::1"), FEED).is_err());
        assert_eq!(held.len(), 3);
    }
}
