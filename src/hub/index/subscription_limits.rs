//! Room for subscriptions: the limits of all, of one host and of one client, and which of those that
//! nobody confirmed give way to others.

use super::{Applicant, Entries, Entry, EntryNo, Standing, State};
use crate::{feed::stamp::Stamp, hub::admission::ClientNet};
use std::{
    collections::{BTreeSet, HashMap},
    sync::Arc,
};

/// Subscriptions that there may be.
#[derive(Clone, Copy, Debug)]
pub(in crate::hub) struct SubscriptionLimits {
    pub(in crate::hub) subscriptions_max: usize,
    pub(in crate::hub) unverified_max: usize,
    /// Those of callbacks of one host.
    pub(in crate::hub) host_max: usize,
    /// Those of one client, as far as clients are known.
    pub(in crate::hub) client_max: usize,
}

/// The limit that leaves no room for another subscription.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::hub) enum IndexLimit {
    /// All subscriptions, or all that are not verified.
    Hub,
    /// Those of one callback host.
    Host,
    /// Those of one client.
    Client,
}

impl IndexLimit {
    /// The words for the subscriber.
    pub(in crate::hub) fn told(self) -> &'static str {
        match self {
            Self::Hub => "this hub has as many subscriptions as it takes",
            Self::Host => {
                "this hub has as many subscriptions as it takes for callbacks of one host; unsubscribe others of yours, or ask its operator (hub.subscriptions_per_host_max)"
            }
            Self::Client => {
                "this hub has as many subscriptions as it takes from one client; unsubscribe others of yours, or ask its operator (hub.subscriptions_per_client_max)"
            }
        }
    }
}

/// Parts of the room for what is not verified that one client, and the callbacks of one host, may
/// have: one divided by these. One client alone fills the room of no host.
const CLIENT_SHARE: usize = 16;
const HOST_SHARE: usize = 4;

/// Subscriptions that are not verified, counted for what limits them. A check of a limit costs the
/// same however many there are.
#[derive(Debug, Default)]
pub(super) struct Unverified {
    all: Share,
    of_client: HashMap<ClientNet, Share>,
    of_host: HashMap<Arc<str>, Share>,
}

/// A part of them.
#[derive(Debug, Default)]
struct Share {
    count: usize,
    /// Those that may give way; the lowest is the oldest.
    hopeless: BTreeSet<EntryNo>,
}

impl Share {
    fn join(&mut self, no: EntryNo, entry: &Entry) {
        self.count += 1;
        if entry.is_hopeless() {
            self.hopeless.insert(no);
        }
    }

    fn leave(&mut self, no: EntryNo) {
        self.count -= 1;
        self.hopeless.remove(&no);
    }
}

impl Unverified {
    pub(super) fn join(&mut self, no: EntryNo, entry: &Entry) {
        if !entry.is_unverified() {
            return;
        }
        self.all.join(no, entry);
        let of_client = self.of_client.entry(entry.applicant.client);
        of_client.or_default().join(no, entry);
        let of_host = self.of_host.entry(entry.host.clone());
        of_host.or_default().join(no, entry);
    }

    pub(super) fn leave(&mut self, no: EntryNo, entry: &Entry) {
        if !entry.is_unverified() {
            return;
        }
        self.all.leave(no);
        if let Some(share) = self.of_client.get_mut(&entry.applicant.client) {
            share.leave(no);
            if share.count == 0 {
                self.of_client.remove(&entry.applicant.client);
            }
        }
        if let Some(share) = self.of_host.get_mut(&entry.host) {
            share.leave(no);
            if share.count == 0 {
                self.of_host.remove(&entry.host);
            }
        }
    }
}

impl Entries {
    /// Makes room for one more, if there is any: each limit that is reached lets the oldest go that
    /// it counts and that is not confirmed.
    pub(super) fn make_room(
        &mut self,
        applicant: Applicant,
        host: &str,
        room: SubscriptionLimits,
    ) -> Result<(), IndexLimit> {
        let has_room = self.of_no.len() < room.subscriptions_max
            || self.let_go(self.unverified.all.hopeless.first().copied());
        if !has_room {
            return Err(IndexLimit::Hub);
        }
        let of_host = self.of_host.get(host);
        if of_host.is_some_and(|count| *count >= room.host_max) {
            return Err(IndexLimit::Host);
        }
        let of_client = self.of_client.get(&applicant.client);
        if of_client.is_some_and(|count| *count >= room.client_max) {
            return Err(IndexLimit::Client);
        }
        if applicant.standing == Standing::Unverified
            && !self.make_unverified_room(applicant, host, room)
        {
            return Err(IndexLimit::Hub);
        }
        Ok(())
    }

    fn make_unverified_room(
        &mut self,
        applicant: Applicant,
        host: &str,
        room: SubscriptionLimits,
    ) -> bool {
        let max = room.unverified_max;
        let of_client = self.unverified.of_client.get(&applicant.client);
        let (count, oldest) = count_and_oldest(of_client);
        if count >= (max / CLIENT_SHARE).max(1) && !self.let_go(oldest) {
            return false;
        }
        let (count, oldest) = count_and_oldest(self.unverified.of_host.get(host));
        if count >= (max / HOST_SHARE).max(1) && !self.let_go(oldest) {
            return false;
        }
        let (count, oldest) = count_and_oldest(Some(&self.unverified.all));
        count < max || self.let_go(oldest)
    }

    /// Lets one go. False when there is none.
    fn let_go(&mut self, oldest: Option<EntryNo>) -> bool {
        let Some((no, entry)) = oldest.and_then(|no| Some((no, self.of_no.get_mut(&no)?))) else {
            return false;
        };
        self.unverified.leave(no, entry);
        match &mut entry.state {
            State::AtWork { leave, .. } => leave.cancel(),
            State::AtRest(rest) => {
                rest.gives_way = true;
                self.rest.call_up_at(no, rest, Stamp::ZERO);
            }
        }
        true
    }
}

fn count_and_oldest(share: Option<&Share>) -> (usize, Option<EntryNo>) {
    share.map_or((0, None), |share| {
        (share.count, share.hopeless.first().copied())
    })
}
