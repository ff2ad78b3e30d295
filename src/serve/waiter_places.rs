//! Places for requests that wait: held ones and streams of events, in all and for each client; not
//! how long they wait.

use super::refusal::Refusal;
use crate::client_net::client_net;
use crate::feed::record::FeedNo;
use crate::locks::lock;
use std::{
    collections::HashMap,
    hash::Hash,
    net::IpAddr,
    sync::{Arc, Mutex},
};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// Number of places that each client has taken.
type TakenPlaces = Arc<Mutex<HashMap<IpAddr, usize>>>;

/// Number of places that are taken for each feed.
type TakenOfFeeds = Arc<Mutex<HashMap<FeedNo, usize>>>;

/// Places, taken and free.
#[derive(Clone, Debug)]
pub(super) struct WaiterPlaces {
    free: Arc<Semaphore>,
    max: usize,
    taken: TakenPlaces,
    of_feeds: TakenOfFeeds,
    each_max: usize,
}

/// A place of one request; dropping it gives it back.
#[derive(Debug)]
pub(super) struct WaiterPlace {
    _place: OwnedSemaphorePermit,
    client: Option<(IpAddr, TakenPlaces)>,
    feed: (FeedNo, TakenOfFeeds),
}

impl WaiterPlaces {
    /// So many places, of which one client takes so many at most.
    pub(super) fn new(max: usize, each_max: usize) -> Self {
        let max = max.min(Semaphore::MAX_PERMITS);
        Self {
            free: Arc::new(Semaphore::new(max)),
            max,
            taken: Arc::default(),
            of_feeds: Arc::default(),
            each_max,
        }
    }

    /// A place for a request of a client for a feed. Requests of this machine count in all only: a
    /// proxy in front of us sends those of everybody.
    pub(super) fn enter(
        &self,
        client: Option<IpAddr>,
        feed: FeedNo,
    ) -> Result<WaiterPlace, Refusal> {
        let place = self
            .free
            .clone()
            .try_acquire_owned()
            .map_err(|_| Refusal::busy())?;
        let client = client
            .map(client_net)
            .filter(|client| !client.is_loopback());
        if let Some(client) = client {
            let mut taken = lock(&self.taken);
            let count = taken.entry(client).or_default();
            if *count >= self.each_max {
                return Err(Refusal::too_many(self.each_max));
            }
            *count += 1;
        }
        let client = client.map(|client| (client, self.taken.clone()));
        *lock(&self.of_feeds).entry(feed).or_default() += 1;
        Ok(WaiterPlace {
            _place: place,
            client,
            feed: (feed, self.of_feeds.clone()),
        })
    }

    /// Places that are taken for a feed.
    pub(super) fn taken_of(&self, feed: FeedNo) -> usize {
        lock(&self.of_feeds).get(&feed).copied().unwrap_or_default()
    }

    /// Places that are taken.
    pub(super) fn taken(&self) -> usize {
        self.max - self.free.available_permits()
    }
}

impl Drop for WaiterPlace {
    fn drop(&mut self) {
        let (feed, of_feeds) = &self.feed;
        give_back(feed, of_feeds);
        if let Some((client, taken)) = &self.client {
            give_back(client, taken);
        }
    }
}

/// Counts one place less for a client or a feed, and keeps nothing of one that has none.
fn give_back<K: Hash + Eq>(key: &K, taken: &Mutex<HashMap<K, usize>>) {
    let mut taken = lock(taken);
    if let Some(count) = taken.get_mut(key) {
        *count -= 1;
        if *count == 0 {
            taken.remove(key);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FEED: FeedNo = FeedNo(1);

    fn from(address: &str) -> Option<IpAddr> {
        Some(address.parse().unwrap())
    }

    #[test]
    fn one_more_than_fit_is_refused() {
        let places = WaiterPlaces::new(1, 1);
        let place = places.enter(None, FEED).unwrap();
        assert!(places.enter(None, FEED).is_err());
        assert_eq!(
            (
                places.taken(),
                places.taken_of(FEED),
                places.taken_of(FeedNo(2))
            ),
            (1, 1, 0)
        );
        drop(place);
        assert!(places.enter(None, FEED).is_ok());
    }

    #[test]
    fn one_client_takes_no_more_than_its_share_and_gives_it_back() {
        let places = WaiterPlaces::new(100, 2);
        let held: Vec<_> = ["192.0.2.1", "::ffff:192.0.2.1"]
            .map(|a| places.enter(from(a), FEED).unwrap())
            .into();
        assert!(places.enter(from("192.0.2.1"), FEED).is_err());
        assert_eq!(places.taken(), 2, "whoever is refused takes no place");
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
        assert_eq!(
            (places.taken(), lock(&places.taken).len()),
            (0, 0),
            "nothing is kept of who has gone"
        );
        assert!(lock(&places.of_feeds).is_empty());
    }

    #[test]
    fn requests_of_this_machine_are_counted_in_all_only() {
        let places = WaiterPlaces::new(3, 1);
        let held: Vec<_> = ["127.0.0.1", "127.0.0.1", "::1"]
            .map(|a| places.enter(from(a), FEED).unwrap())
            .into();
        assert!(places.enter(from("::1"), FEED).is_err());
        assert_eq!(held.len(), 3);
    }
}
