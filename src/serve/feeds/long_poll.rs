//! Which requests are held, how many at once, and for how long; not what wakes them.

use crate::{
    client_net::{client_net, surrounding_net, tally::Tally},
    feed::record::FeedNo,
    locks::lock,
    render::Query,
    serve::{Config, answers::refusal::Refusal},
};
use http::Method;
use ipnet::IpNet;
use std::{
    collections::{BTreeMap, HashMap, hash_map::Entry},
    net::IpAddr,
    sync::{Arc, Mutex},
    time::Duration,
};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

/// Seconds that a request is held when it does not say: below the usual idle limit of proxies, 60 s
/// (SF-42).
pub(super) const TIMEOUT_SECS: u64 = 55;

/// No connection lives longer, whatever is configured; and a moment so far ahead can still be
/// reckoned.
const HOLD_MAX: Duration = Duration::from_secs(86_400);

/// Time for which a request is held at least before it gives way to one of a client that holds as
/// many.
const HELD_LEAST: Duration = Duration::from_secs(30);

/// Room for requests that are held, and for streams of events.
#[derive(Clone, Debug)]
pub struct Waiters {
    books: Arc<Mutex<WaiterTables>>,
    places_max: usize,
    per_client_max: usize,
    timeout_max: Duration,
}

/// The requests that are held, by client, network and feed.
#[derive(Debug, Default)]
struct WaiterTables {
    next_no: u64,
    /// The requests that are held, the oldest first.
    held: BTreeMap<u64, HeldRequest>,
    of_clients: Tally<IpAddr>,
    of_nets: Tally<IpNet>,
    of_feeds: HashMap<FeedNo, usize>,
}

#[derive(Debug)]
struct HeldRequest {
    /// `None` for what is counted in all only.
    client: Option<IpAddr>,
    feed: FeedNo,
    since: Instant,
    end: CancellationToken,
}

/// A place of one request; dropping it gives it back.
#[derive(Debug)]
pub(crate) struct WaiterPermit {
    books: Arc<Mutex<WaiterTables>>,
    no: u64,
    end: CancellationToken,
}

impl WaiterTables {
    fn enter(&mut self, client: Option<IpAddr>, feed: FeedNo) -> (u64, CancellationToken) {
        let no = self.next_no;
        self.next_no += 1;
        let end = CancellationToken::new();
        let held = HeldRequest {
            client,
            feed,
            since: Instant::now(),
            end: end.clone(),
        };
        self.held.insert(no, held);
        if let Some(client) = client {
            self.of_clients.add(client, no);
            self.of_nets.add(surrounding_net(client), no);
        }
        *self.of_feeds.entry(feed).or_default() += 1;
        (no, end)
    }

    /// Counts a request no more; `None` for one that is not counted.
    fn leave(&mut self, no: u64) -> Option<HeldRequest> {
        let held = self.held.remove(&no)?;
        if let Some(client) = held.client {
            self.of_clients.remove(client, no);
            self.of_nets.remove(surrounding_net(client), no);
        }
        if let Entry::Occupied(mut count) = self.of_feeds.entry(held.feed) {
            *count.get_mut() -= 1;
            if *count.get() == 0 {
                count.remove();
            }
        }
        Some(held)
    }

    // Decides: Which waiting request gives way to another?
    /// The request that gives way to one more of a client: the oldest of the network with most of
    /// them, or of the client in it with most, where the other has at least two less. Where all
    /// have as many, the oldest of all, once it was held for a while: it asks again, as after every
    /// wait, and is behind those who waited for it.
    fn giving_way(&self, client: Option<IpAddr>) -> Option<u64> {
        let net = client.map(surrounding_net);
        let own_of_net = net.map_or(0, |net| self.of_nets.count(net));
        let own = client.map_or(0, |client| self.of_clients.count(client));
        let greedy = self.of_clients.by_count().next();
        if let Some((most, count)) = self.of_nets.by_count().next() {
            let in_most = greedy.filter(|(greedy, _)| surrounding_net(*greedy) == most);
            if net != Some(most) && count >= own_of_net + 2 {
                return match in_most {
                    Some((greedy, count)) if count >= 2 => self.of_clients.numbers(greedy).next(),
                    _ => self.of_nets.numbers(most).next(),
                };
            }
            if let Some((greedy, count)) = in_most
                && net == Some(most)
                && count >= own + 2
            {
                return self.of_clients.numbers(greedy).next();
            }
        }
        let (no, oldest) = self.held.first_key_value()?;
        (oldest.since.elapsed() >= HELD_LEAST).then_some(*no)
    }
}

impl WaiterPermit {
    /// Completes when it is to give way.
    pub(super) fn ended(&self) -> impl Future<Output = ()> + Send + 'static {
        self.end.clone().cancelled_owned()
    }
}

impl Waiters {
    /// Room for as many as are configured.
    pub fn new(config: &Config) -> Self {
        let timeout_max = Duration::from_secs(config.timeout_max_secs);
        Self {
            books: Arc::default(),
            places_max: config.waiters_max,
            per_client_max: config.waiters_per_client_max,
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

    // Decides: How many requests may wait?
    /// A place for one request of a client for a feed, or for one stream of its events. Requests of
    /// this machine count in all only: a proxy in front of us sends those of everybody.
    pub(super) fn enter(
        &self,
        client: Option<IpAddr>,
        feed: FeedNo,
    ) -> Result<WaiterPermit, Refusal> {
        let client = client.map(client_net);
        let client = client.filter(|client| !client.is_loopback());
        let mut books = lock(&self.books);
        if client.is_some_and(|client| books.of_clients.count(client) >= self.per_client_max) {
            return Err(Refusal::too_many(self.per_client_max));
        }
        let mut gone = None;
        if books.held.len() >= self.places_max {
            let no = books.giving_way(client).ok_or_else(Refusal::busy)?;
            gone = books.leave(no);
        }
        let (no, end) = books.enter(client, feed);
        drop(books);
        // It wakes while nobody waits for the books.
        if let Some(gone) = gone {
            gone.end.cancel();
        }
        Ok(WaiterPermit {
            books: self.books.clone(),
            no,
            end,
        })
    }

    /// Requests for a feed that are held now, and streams of its events.
    pub fn held_of(&self, feed: FeedNo) -> usize {
        let books = lock(&self.books);
        books.of_feeds.get(&feed).copied().unwrap_or_default()
    }

    /// The longest hold, seconds.
    pub(crate) fn timeout_max_secs(&self) -> u64 {
        self.timeout_max.as_secs()
    }

    /// Requests held now, and streams of events.
    pub fn held(&self) -> usize {
        lock(&self.books).held.len()
    }
}

impl Drop for WaiterPermit {
    fn drop(&mut self) {
        lock(&self.books).leave(self.no);
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
        let books = lock(&places.books);
        assert!(books.held.is_empty() && books.of_feeds.is_empty());
        assert_eq!(
            (
                books.of_clients.by_count().count(),
                books.of_nets.by_count().count()
            ),
            (0, 0),
            "nothing is kept of who has gone"
        );
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

    /// The clients that were told to give way.
    fn gone(held: &[WaiterPermit]) -> Vec<usize> {
        let ended = held.iter().enumerate();
        let ended = ended.filter(|(_, place)| place.end.is_cancelled());
        ended.map(|(at, _)| at).collect()
    }

    // The attack: each request is of another network of one site, or of some sites.
    #[tokio::test(start_paused = true)]
    async fn a_thousand_networks_of_a_few_sites_keep_nobody_from_waiting() {
        for sites in [1, 7] {
            let places = waiters(1000, 50);
            let enter = |no: usize| {
                let site = no % sites;
                places.enter(from(&format!("2001:db8:{site:x}:{no:x}::1")), FEED)
            };
            let held: Vec<_> = (0..1000).map(|no| enter(no).unwrap()).collect();
            assert!(enter(1000).is_err(), "the site itself has no room");
            let honest: Vec<_> = (0..100)
                .map(|no| places.enter(from(&format!("198.51.{no}.7")), FEED).unwrap())
                .collect();
            assert_eq!(gone(&held).len(), 100);
            // Neither the next ones of the site nor others end one that has few.
            assert!(enter(1001).is_err());
            places.enter(from("203.0.113.1"), FEED).unwrap();
            assert!(gone(&honest).is_empty());
            assert_eq!(places.held(), 1000 - 1, "what has gone is counted no more");
        }
    }

    // The same from everywhere: nobody has more than another.
    #[tokio::test(start_paused = true)]
    async fn who_has_waited_longest_gives_way_where_all_have_as_many() {
        let places = waiters(1000, 50);
        let held: Vec<_> = (0..1000)
            .map(|no| {
                places
                    .enter(from(&format!("2001:db8:{no:x}::1")), FEED)
                    .unwrap()
            })
            .collect();
        let honest = || places.enter(from("198.51.100.7"), FEED);
        assert!(honest().is_err());
        tokio::time::advance(HELD_LEAST).await;
        let first = honest().unwrap();
        let second = places.enter(None, FEED).unwrap();
        assert_eq!(gone(&held), [0, 1]);
        assert!(gone(&[first, second]).is_empty());
    }

    #[tokio::test(start_paused = true)]
    async fn a_client_with_many_gives_way_and_not_its_neighbours() {
        let places = waiters(100, 90);
        let enter = |address: &str| places.enter(from(address), FEED).unwrap();
        let neighbours: Vec<_> = (0..20)
            .map(|no| enter(&format!("198.51.100.{no}")))
            .collect();
        let greedy: Vec<_> = (0..80).map(|_| enter("198.51.100.200")).collect();
        let others = [enter("203.0.113.1"), enter("198.51.100.201")];
        assert_eq!(gone(&greedy), [0, 1]);
        assert!(gone(&neighbours).is_empty() && gone(&others).is_empty());
    }
}
