//! Who holds the places for requests that wait, and which one gives way when none is free; not how
//! a request ends.

use crate::client_net::{client_net, client_site};
use std::{
    collections::{BTreeMap, HashMap},
    hash::Hash,
    net::IpAddr,
};

/// The part of the places that the clients of one site hold at most: one of so many. A site is a
/// /48 network in version 6 and a /24 network in version 4.
const SITE_PART: usize = 5;

/// The places for requests that wait. `E` ends a request that gives way.
#[derive(Debug)]
pub(super) struct WaiterTable<E> {
    places_max: usize,
    per_client_max: usize,
    next_no: u64,
    /// The places in the order in which they were taken.
    held: BTreeMap<u64, (Option<IpAddr>, E)>,
    of_clients: HashMap<IpAddr, usize>,
    of_sites: HashMap<IpAddr, usize>,
}

/// A place that was taken, and the end of the request that gave way to it.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct WaiterEntered<E> {
    pub(super) no: u64,
    pub(super) gives_way: Option<E>,
}

/// Reason for which there is no place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum NoPlace {
    /// None is free.
    Full,
    /// The client, or its site, holds its share.
    Share(usize),
}

impl<E> WaiterTable<E> {
    pub(super) fn new(places_max: usize, per_client_max: usize) -> Self {
        Self {
            places_max,
            per_client_max,
            next_no: 0,
            held: BTreeMap::new(),
            of_clients: HashMap::new(),
            of_sites: HashMap::new(),
        }
    }

    /// Number of places that are taken.
    pub(super) fn taken(&self) -> usize {
        self.held.len()
    }

    // Decides: How many requests may wait, and which one gives way?
    /// Takes a place for a client; `None` for one that is not known or is this machine, and counts
    /// in all only. When none is free, the oldest of the client with most gives way to a client with
    /// less than half as many.
    pub(super) fn enter(
        &mut self,
        client: Option<IpAddr>,
        end: E,
    ) -> Result<WaiterEntered<E>, NoPlace> {
        let client = client
            .map(client_net)
            .filter(|client| !client.is_loopback());
        let count = |counts: &HashMap<IpAddr, usize>, of: IpAddr| {
            counts.get(&of).copied().unwrap_or_default()
        };
        let mut own = 0;
        if let Some(client) = client {
            own = count(&self.of_clients, client);
            let site_max = self.places_max.div_ceil(SITE_PART).max(self.per_client_max);
            if own >= self.per_client_max {
                return Err(NoPlace::Share(self.per_client_max));
            }
            if count(&self.of_sites, client_site(client)) >= site_max {
                return Err(NoPlace::Share(site_max));
            }
        }
        let mut gives_way = None;
        if self.held.len() >= self.places_max {
            let most = self
                .of_clients
                .iter()
                .max_by_key(|(client, count)| (**count, **client));
            let (most, of_most) = most.ok_or(NoPlace::Full)?;
            if *of_most < 2 * (own + 1) {
                return Err(NoPlace::Full);
            }
            let mut places = self.held.iter();
            let oldest = places.find(|(_, (holder, _))| *holder == Some(*most));
            let no = *oldest.ok_or(NoPlace::Full)?.0;
            gives_way = self.leave(no);
        }
        let no = self.next_no;
        self.next_no += 1;
        self.held.insert(no, (client, end));
        if let Some(client) = client {
            *self.of_clients.entry(client).or_default() += 1;
            *self.of_sites.entry(client_site(client)).or_default() += 1;
        }
        Ok(WaiterEntered { no, gives_way })
    }

    /// Gives a place back, unless it was given up before.
    pub(super) fn leave(&mut self, no: u64) -> Option<E> {
        let (client, end) = self.held.remove(&no)?;
        if let Some(client) = client {
            take_one(&mut self.of_clients, client);
            take_one(&mut self.of_sites, client_site(client));
        }
        Some(end)
    }
}

/// Counts one less, and keeps nothing of what has none.
pub(super) fn take_one<K: Hash + Eq>(counts: &mut HashMap<K, usize>, key: K) {
    if let Some(count) = counts.get_mut(&key) {
        *count -= 1;
        if *count == 0 {
            counts.remove(&key);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn client(address: &str) -> Option<IpAddr> {
        Some(address.parse().unwrap())
    }

    /// A client of another site for each number.
    fn elsewhere(no: u8) -> Option<IpAddr> {
        Some(IpAddr::from([198, 51, no, 1]))
    }

    #[test]
    fn the_networks_of_one_site_hold_a_fifth_and_an_honest_client_finds_room() {
        let mut places = WaiterTable::new(100, 10);
        let refused = (0..1000).filter(|no| {
            places
                .enter(client(&format!("2001:db8:7:{no:x}::1")), 0)
                .is_err()
        });
        assert_eq!(refused.count(), 980);
        assert_eq!(
            places.enter(client("2001:db8:7:ffff::1"), 0),
            Err(NoPlace::Share(20))
        );
        let of_24 =
            (0..200).filter(|no| places.enter(client(&format!("203.0.113.{no}")), 0).is_ok());
        assert_eq!(of_24.count(), 20);
        assert!(places.enter(client("2001:db8:8::1"), 0).is_ok());
    }

    #[test]
    fn the_oldest_of_the_client_with_most_gives_way_and_the_many_do_not_take_turns() {
        let mut places = WaiterTable::new(10, 5);
        for no in 0..10_u8 {
            places.enter(elsewhere(no / 5), no).unwrap();
        }
        let entered = places.enter(elsewhere(9), 100).unwrap();
        assert_eq!((entered.gives_way, places.taken()), (Some(5), 10));
        assert_eq!(
            places.enter(elsewhere(1), 101),
            Err(NoPlace::Full),
            "it has most itself"
        );
        let mut places = WaiterTable::new(10, 5);
        let numbers: Vec<u64> = (0..10)
            .map(|no| places.enter(elsewhere(no), no).unwrap().no)
            .collect();
        assert_eq!(
            places.enter(elsewhere(20), 20),
            Err(NoPlace::Full),
            "nobody has two"
        );
        assert_eq!(places.enter(None, 21), Err(NoPlace::Full));
        for no in numbers {
            assert!(places.leave(no).is_some() && places.leave(no).is_none());
        }
        assert!(places.of_clients.is_empty() && places.of_sites.is_empty());
    }
}
