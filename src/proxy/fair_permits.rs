//! The books of the places of one site: who holds how many, and which one is to go when they run
//! short; not how a place ends.

use super::permit_progress_times::{DUE_LEAST_US, PermitProgressTimes, micros};
use crate::client_net::{client_net, surrounding_net, tally::Tally};
use ipnet::IpNet;
use std::{collections::HashMap, net::IpAddr, sync::Arc, time::Duration};

/// The part of the places that is kept for others than those with too many of them: one of so many,
/// and at least one.
const KEPT_PART: usize = 5;
/// The part of the places that is too much for a client with more of them than one: one of so many.
const CLIENT_PART: usize = 10;
/// A network counts as much as one client with this part of its places: it may be of many clients
/// who have nothing to do with each other.
const NET_PART: usize = 2;
/// Microseconds for which a client or network that has lost a place takes none of its others away:
/// its next request is refused, and the origin hears nothing of it.
const LOSS_GAP_US: u64 = 1_000_000;

/// Whose places are counted as one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) enum PermitHolder {
    /// A client by its address, or by its network.
    Client(IpAddr),
    /// A network, with the places of all clients in it.
    Net(IpNet),
    /// An address that may stand for many clients: it never has too many places.
    Many(IpAddr),
    /// Requests whose client is not known. They are never too many.
    Unknown,
}

impl PermitHolder {
    /// The holder of the places of a client.
    pub(super) fn client(address: IpAddr) -> Self {
        Self::Client(client_net(address))
    }

    /// The holder of the places of an address that may stand for many clients.
    pub(super) fn many(address: IpAddr) -> Self {
        Self::Many(address.to_canonical())
    }

    /// The network around a client.
    fn net(self) -> Option<Self> {
        match self {
            Self::Client(address) => Some(Self::Net(surrounding_net(address))),
            Self::Net(_) | Self::Many(_) | Self::Unknown => None,
        }
    }

    /// The weight of so many places, in places of one client; `None` where they never are too many.
    fn weight(self, count: usize) -> Option<usize> {
        match self {
            Self::Client(_) => Some(count),
            Self::Net(_) => Some(count / NET_PART),
            Self::Many(_) | Self::Unknown => None,
        }
    }
}

/// A place that was taken, by its holder and its number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct PermitNo {
    pub(super) holder: PermitHolder,
    no: u64,
}

/// A reason for which a place is taken away.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Loss {
    /// Its client, or the network of that, has too many.
    TooMany,
    /// No place is free, and this is the slowest.
    Slowest,
}

/// A place that a request got, and the one that was taken away for it.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Entered<E> {
    pub(super) place: PermitNo,
    /// The end of what held a place that is lost.
    pub(super) lost: Option<(Loss, E)>,
}

#[derive(Debug)]
struct HeldPermit<E> {
    holder: PermitHolder,
    progress: Arc<PermitProgressTimes>,
    end: E,
}

/// The places of one site. `E` is what ends a place that is taken away; its place is free at once.
#[derive(Debug)]
pub(super) struct FairPermits<E> {
    max: usize,
    next_no: u64,
    places: HashMap<u64, HeldPermit<E>>,
    /// The places of clients, and of those that may be many.
    of_clients: Tally<PermitHolder>,
    of_nets: Tally<PermitHolder>,
    /// The moment at which a client or network last lost a place because it has too many.
    lost_us: HashMap<PermitHolder, u64>,
    /// No place is due before, so that nobody looks while many are refused.
    none_due_before_us: u64,
}

impl<E> FairPermits<E> {
    pub(super) fn new(max: usize) -> Self {
        Self {
            max,
            next_no: 0,
            places: HashMap::new(),
            of_clients: Tally::default(),
            of_nets: Tally::default(),
            lost_us: HashMap::new(),
            none_due_before_us: 0,
        }
    }

    /// Places that are taken.
    pub(super) fn taken(&self) -> usize {
        self.places.len()
    }

    /// Places in all.
    pub(super) fn max(&self) -> usize {
        self.max
    }

    /// The holder with most places, and how many those are: a network where its places weigh more
    /// than those of any client.
    pub(super) fn most(&self) -> Option<(PermitHolder, usize)> {
        let client = self.of_clients.by_count().next();
        let net = self.of_nets.by_count().next();
        let heavier = net.filter(|(_, count)| {
            let most = client.map_or(0, |(_, count)| count);
            count / NET_PART > most
        });
        heavier.or(client)
    }

    /// The number of places of a holder.
    pub(super) fn count(&self, holder: PermitHolder) -> usize {
        self.of_clients.count(holder)
    }

    // Decides: Who loses a place at an origin when they run short?
    /// Takes a place. Above four fifths of them, the client or network with too many loses its
    /// slowest. When none is free, the slowest of all goes, whoever has it, once it is due. `None`
    /// when none is, and for a client or network that has just lost one and would lose the next.
    pub(super) fn enter(
        &mut self,
        holder: PermitHolder,
        progress: Arc<PermitProgressTimes>,
        end: E,
        now: Duration,
    ) -> Option<Entered<E>> {
        let now_us = micros(now);
        let place = PermitNo {
            holder,
            no: self.next_no,
        };
        self.next_no += 1;
        self.take(place, progress, end);
        let share = self.max - self.max.div_ceil(KEPT_PART);
        let mut lost = None;
        if self.taken() > share
            && let Some((most, slowest)) = self.too_many(place)
        {
            let is_own = most == holder || Some(most) == holder.net();
            if is_own && self.has_just_lost(most, now_us) {
                self.leave(place);
                return None;
            }
            self.lost_us.insert(most, now_us);
            lost = self.leave(slowest).map(|end| (Loss::TooMany, end));
        }
        if self.taken() > self.max {
            let slowest = self.slowest_of_all(place, now_us);
            lost = slowest
                .and_then(|slowest| self.leave(slowest))
                .map(|end| (Loss::Slowest, end));
        }
        if self.taken() > self.max {
            self.leave(place);
            return None;
        }
        Some(Entered { place, lost })
    }

    fn take(&mut self, place: PermitNo, progress: Arc<PermitProgressTimes>, end: E) {
        let PermitNo { holder, no } = place;
        let held = HeldPermit {
            holder,
            progress,
            end,
        };
        self.places.insert(no, held);
        self.of_clients.add(holder, no);
        if let Some(net) = holder.net() {
            self.of_nets.add(net, no);
        }
    }

    /// Gives a place back, unless it was taken away.
    pub(super) fn leave(&mut self, place: PermitNo) -> Option<E> {
        let PermitNo { holder, no } = place;
        let held = self.places.remove(&no)?;
        if self.of_clients.remove(holder, no) {
            self.lost_us.remove(&holder);
        }
        if let Some(net) = holder.net()
            && self.of_nets.remove(net, no)
        {
            self.lost_us.remove(&net);
        }
        Some(held.end)
    }

    fn has_just_lost(&self, holder: PermitHolder, now_us: u64) -> bool {
        let lost_us = self.lost_us.get(&holder);
        lost_us.is_some_and(|lost_us| now_us < lost_us + LOSS_GAP_US)
    }

    /// The client or network that has too many places, and its slowest; not the newest of all.
    fn too_many(&self, newest: PermitNo) -> Option<(PermitHolder, PermitNo)> {
        let weighed = |tally: &Tally<PermitHolder>| {
            let mut holders = tally.by_count();
            holders.find_map(|(holder, count)| Some((holder.weight(count)?, holder)))
        };
        let client = weighed(&self.of_clients);
        let net = weighed(&self.of_nets);
        // The client, where both weigh the same.
        let (weight, most) = match (client, net) {
            (Some(client), Some(net)) if net.0 > client.0 => net,
            (client, net) => client.or(net)?,
        };
        if weight < 2 || weight * CLIENT_PART <= self.max {
            return None;
        }
        let tally = match most {
            PermitHolder::Net(_) => &self.of_nets,
            _ => &self.of_clients,
        };
        let older = tally.numbers(most).filter(|no| *no != newest.no);
        let due = older.filter_map(|no| Some((self.places.get(&no)?.progress.due_us(), no)));
        let (_, no) = due.min()?;
        Some((most, self.numbered(no)?))
    }

    /// The slowest place of all, if it is due; not the newest.
    fn slowest_of_all(&mut self, newest: PermitNo, now_us: u64) -> Option<PermitNo> {
        if now_us < self.none_due_before_us {
            return None;
        }
        let older = self.places.iter().filter(|(no, _)| **no != newest.no);
        let due = older.map(|(no, held)| (held.progress.due_us(), *no)).min();
        let (due_us, no) = due?;
        if due_us > now_us {
            // Others may begin, or be answered, and are due no earlier than this.
            self.none_due_before_us = due_us.min(now_us + DUE_LEAST_US);
            return None;
        }
        self.numbered(no)
    }

    fn numbered(&self, no: u64) -> Option<PermitNo> {
        let holder = self.places.get(&no)?.holder;
        Some(PermitNo { holder, no })
    }
}

#[cfg(test)]
mod tests;
