//! All subscriptions in a few words each: its number, its feed, its standing, and either the way to
//! its task or the time at which it is called up. No addresses, no secrets, no positions: those are
//! in its row.

use super::{admission::ClientNet, command::TaskCommand};
use crate::{
    catalog::Destination,
    feed::{record::FeedNo, stamp::Stamp},
    locks::lock,
};
use rest::{AtRest, RestTable};
use sha2::{Digest as _, Sha256};
use std::{
    collections::{BTreeSet, HashMap},
    hash::Hash,
    sync::{Arc, Mutex, MutexGuard},
};
use subscription_limits::Unverified;
use tokio::sync::{Notify, mpsc};
use tokio_util::sync::CancellationToken;

mod rest;
mod subscription_limits;

pub(super) use rest::{CalledUp, GroupKey, GroupOffer, NoRest, Rest, RestKind, Rested};
pub(super) use subscription_limits::{IndexLimit, SubscriptionLimits};

/// Identity of a subscription: the canonical topic and the exact address of the target (HUB-6), as
/// the first half of their SHA-256.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Key([u64; 2]);

impl Key {
    /// The identity of a subscription of this address to this canonical topic.
    pub(super) fn of(topic: &str, address: &str) -> Self {
        let mut hash = Sha256::new();
        hash.update((topic.len() as u64).to_be_bytes());
        hash.update(topic);
        hash.update(address);
        let bytes: [u8; 32] = hash.finalize().into();
        let half = |at: usize| {
            let part = bytes[at..at + 8].try_into();
            u64::from_be_bytes(part.expect("8 bytes of 32"))
        };
        Self([half(0), half(8)])
    }
}

/// The number of an entry: rises with each, and is never given twice.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct EntryNo(u64);

/// Standing of a subscription.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Standing {
    /// Never verified yet.
    Unverified,
    /// Never verified yet, though its callback was asked, or is not asked as it confirms nothing.
    Unanswered,
    /// Verified, and its last push was taken.
    Well,
    /// Verified, and its last push was not taken.
    Failing,
}

impl Standing {
    fn is_verified(self) -> bool {
        matches!(self, Self::Well | Self::Failing)
    }
}

/// The subscriptions of one feed, counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SubscriptionCounts {
    /// Verified and within their lease, failing ones included.
    pub active: usize,
    /// Waiting for their first verification.
    pub pending: usize,
    /// Active ones whose last push was not taken.
    pub failing: usize,
}

impl SubscriptionCounts {
    /// Counts one more, or one less, of a standing.
    fn count(&mut self, standing: Standing, change: impl Fn(&mut usize)) {
        if !standing.is_verified() {
            return change(&mut self.pending);
        }
        change(&mut self.active);
        if standing == Standing::Failing {
            change(&mut self.failing);
        }
    }
}

/// A subscription whose pushes are not taken.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FailingSubscriber {
    /// The host of its callback: all of it that is shown.
    pub host: String,
    /// Reason of the last failure.
    pub why: String,
    /// Time of the first failure in a row.
    pub since: Stamp,
    /// Failures in a row; 0 where others of its host failed and it was not tried.
    pub failures: u32,
    /// Time of the next try.
    pub next_try: Stamp,
}

/// The subscriptions, at work and at rest.
#[derive(Debug, Default)]
pub(super) struct Index {
    entries: Mutex<Entries>,
    /// Rung when a subscription is to be called up before all others.
    earlier: Notify,
}

/// The entries, and what is counted of them.
#[derive(Debug, Default)]
struct Entries {
    of_no: HashMap<EntryNo, Entry>,
    nos: HashMap<Key, EntryNo>,
    last_no: u64,
    unverified: Unverified,
    /// Subscriptions of each callback host.
    of_host: HashMap<Arc<str>, usize>,
    /// Subscriptions of each client that is known.
    of_client: HashMap<ClientNet, usize>,
    of_feed: HashMap<FeedNo, SubscriptionCounts>,
    failing: BTreeSet<EntryNo>,
    rest: RestTable,
}

#[derive(Debug)]
struct Entry {
    key: Key,
    applicant: Applicant,
    /// The host that it counts for.
    host: Arc<str>,
    failing: Option<Box<FailingSubscriber>>,
    /// Time of the last answer to a delivery since the start.
    answered_at: Option<Stamp>,
    /// True while there is something to push.
    is_behind: bool,
    state: State,
}

/// The state of an entry.
#[derive(Debug)]
enum State {
    /// It has a task.
    AtWork {
        mailbox: Mailbox,
        /// Cancelled when it is to give way.
        leave: CancellationToken,
    },
    /// It waits, without a task.
    AtRest(AtRest),
}

impl Entry {
    fn gives_way(&self) -> bool {
        match &self.state {
            State::AtWork { leave, .. } => leave.is_cancelled(),
            State::AtRest(rest) => rest.gives_way,
        }
    }

    fn is_unverified(&self) -> bool {
        !self.applicant.standing.is_verified() && !self.gives_way()
    }

    /// True for one that may give way: its callback did not confirm it.
    fn is_hopeless(&self) -> bool {
        self.applicant.standing == Standing::Unanswered && !self.gives_way()
    }
}

/// The way of commands to a task. Commands are small, as their queue has room for all of them from
/// the start.
pub(super) type Mailbox = mpsc::Sender<TaskCommand>;

/// A subscription that asks for its place.
#[derive(Clone, Copy, Debug)]
pub(super) struct Applicant {
    pub(super) feed: FeedNo,
    pub(super) standing: Standing,
    /// The client that asked for it.
    pub(super) client: ClientNet,
}

/// A way to a subscription's task.
pub(super) enum Way {
    /// There is one; here is its mailbox.
    Known(Mailbox),
    /// It is called up for the command: start it.
    AtRest(CalledUp, Mailbox),
    /// There was none: start one.
    New(NewTask),
    /// There was none, and no room for another.
    Full(IndexLimit),
}

/// A task to start.
pub(super) struct NewTask {
    pub(super) entry: EntryNo,
    pub(super) commands: mpsc::Receiver<TaskCommand>,
    pub(super) mailbox: Mailbox,
    pub(super) client: ClientNet,
    pub(super) leave: CancellationToken,
}

/// The state of a subscription, for the operator.
#[derive(Clone, Debug, Default)]
pub(super) struct Shown {
    pub(super) failing: Option<FailingSubscriber>,
    pub(super) answered_at: Option<Stamp>,
    pub(super) is_behind: bool,
}

/// Commands that wait for one subscription's task at most; the senders of more wait.
const MAILBOX_COMMANDS: usize = 4;

impl Index {
    fn lock(&self) -> MutexGuard<'_, Entries> {
        lock(&self.entries)
    }

    /// The way to a subscription. A new one takes its place at once, so that two requests never
    /// start two tasks. Where there is no room for it, one that was not confirmed by its callback
    /// gives way.
    pub(super) fn way(
        &self,
        key: Key,
        applicant: Applicant,
        address: &str,
        room: SubscriptionLimits,
    ) -> Way {
        let mut entries = self.lock();
        if let Some(known) = entries.way_to(key) {
            return known;
        }
        let host = host_of(address);
        let made_room = entries.make_room(applicant, &host, room);
        if entries.rest.is_due() {
            // One at rest gives way.
            self.earlier.notify_one();
        }
        if let Err(limit) = made_room {
            return Way::Full(limit);
        }
        let entry = entries.new_no();
        let (mailbox, commands) = mpsc::channel(MAILBOX_COMMANDS);
        let leave = CancellationToken::new();
        let state = State::AtWork {
            mailbox: mailbox.clone(),
            leave: leave.clone(),
        };
        entries.insert(entry, key, applicant, host, state);
        Way::New(NewTask {
            entry,
            commands,
            mailbox,
            client: applicant.client,
            leave,
        })
    }

    /// The way to a subscription that is known.
    pub(super) fn known_way(&self, key: Key) -> Option<Way> {
        self.lock().way_to(key)
    }

    /// True for a subscription that is verified.
    pub(super) fn is_verified(&self, key: Key) -> bool {
        let entries = self.lock();
        let entry = entries.of_key(key);
        entry.is_some_and(|entry| entry.applicant.standing.is_verified())
    }

    pub(super) fn knows(&self, key: Key) -> bool {
        self.lock().nos.contains_key(&key)
    }

    /// Notes the standing of a subscription.
    pub(super) fn note(&self, no: EntryNo, standing: Standing) {
        let mut entries = self.lock();
        let Some(known) = entries.of_no.get(&no).map(|entry| entry.applicant.standing) else {
            return;
        };
        // That a callback is not asked is known here alone.
        let is_kept = known == Standing::Unanswered && standing == Standing::Unverified;
        if known != standing && !is_kept {
            entries.recount(no, |entry| entry.applicant.standing = standing);
        }
    }

    /// Notes that there is something to push, or nothing.
    pub(super) fn note_behind(&self, no: EntryNo, is_behind: bool) {
        if let Some(entry) = self.lock().of_no.get_mut(&no) {
            entry.is_behind = is_behind;
        }
    }

    /// Notes that a callback has answered a delivery.
    pub(super) fn note_answer(&self, no: EntryNo, at: Stamp) {
        if let Some(entry) = self.lock().of_no.get_mut(&no) {
            entry.answered_at = Some(at);
        }
    }

    /// The state of a subscription.
    pub(super) fn shown(&self, key: Key) -> Shown {
        let entries = self.lock();
        let entry = entries.of_key(key);
        entry.map_or_else(Shown::default, |entry| Shown {
            failing: entry.failing.as_deref().cloned(),
            answered_at: entry.answered_at,
            is_behind: entry.is_behind,
        })
    }

    /// Notes that pushes of a subscription fail, or that they are taken. What was known of the
    /// beginning stays.
    pub(super) fn note_failing(&self, no: EntryNo, failing: Option<FailingSubscriber>) {
        let mut entries = self.lock();
        let Entries {
            of_no,
            failing: all_failing,
            ..
        } = &mut *entries;
        let Some(entry) = of_no.get_mut(&no) else {
            return;
        };
        if failing.is_some() {
            all_failing.insert(no);
        } else {
            all_failing.remove(&no);
        }
        let since = entry.failing.as_ref().map(|failing| failing.since);
        entry.failing = failing.map(|failing| {
            let since = since.unwrap_or(failing.since);
            Box::new(FailingSubscriber { since, ..failing })
        });
    }

    /// The subscriptions of every feed whose pushes are not taken, so many of each at most.
    pub(super) fn failing(&self, of_feed_max: usize) -> HashMap<FeedNo, Vec<FailingSubscriber>> {
        let mut all: HashMap<FeedNo, Vec<FailingSubscriber>> = HashMap::new();
        let entries = self.lock();
        for entry in entries
            .failing
            .iter()
            .filter_map(|no| entries.of_no.get(no))
        {
            let of_feed = all.entry(entry.applicant.feed).or_default();
            if of_feed.len() < of_feed_max {
                of_feed.extend(entry.failing.as_deref().cloned());
            }
        }
        drop(entries);
        all.values_mut().for_each(|of_feed| {
            of_feed.sort_by(|a, b| (a.since, &a.host).cmp(&(b.since, &b.host)))
        });
        all
    }

    /// Forgets a subscription that has ended.
    pub(super) fn remove(&self, no: EntryNo) {
        self.lock().remove(no);
    }

    /// Subscriptions that have a task.
    #[cfg(test)]
    pub(super) fn at_work(&self) -> usize {
        let entries = self.lock();
        let states = entries.of_no.values().map(|entry| &entry.state);
        states
            .filter(|state| matches!(state, State::AtWork { .. }))
            .count()
    }

    /// The counts of every feed that has a subscription.
    pub(super) fn counts(&self) -> HashMap<FeedNo, SubscriptionCounts> {
        self.lock().of_feed.clone()
    }
}

impl Entries {
    fn of_key(&self, key: Key) -> Option<&Entry> {
        self.of_no.get(self.nos.get(&key)?)
    }

    /// The way to a subscription that is known. One at rest is called up.
    fn way_to(&mut self, key: Key) -> Option<Way> {
        let no = *self.nos.get(&key)?;
        if let State::AtWork { mailbox, .. } = &self.of_no.get(&no)?.state {
            return Some(Way::Known(mailbox.clone()));
        }
        let (called_up, mailbox) = self.call_up(no)?;
        Some(Way::AtRest(called_up, mailbox))
    }

    fn new_no(&mut self) -> EntryNo {
        self.last_no += 1;
        EntryNo(self.last_no)
    }

    fn insert(
        &mut self,
        no: EntryNo,
        key: Key,
        applicant: Applicant,
        host: Arc<str>,
        state: State,
    ) {
        let known = self.of_host.get_key_value(&host);
        let host = known.map_or(host.clone(), |(known, _)| known.clone());
        *self.of_host.entry(host.clone()).or_default() += 1;
        if applicant.client.is_known() {
            *self.of_client.entry(applicant.client).or_default() += 1;
        }
        let entry = Entry {
            key,
            applicant,
            host,
            failing: None,
            answered_at: None,
            is_behind: false,
            state,
        };
        self.unverified.join(no, &entry);
        let of_feed = self.of_feed.entry(applicant.feed).or_default();
        of_feed.count(applicant.standing, |count| *count += 1);
        self.nos.insert(key, no);
        self.of_no.insert(no, entry);
    }

    /// Changes an entry with all counts of it.
    fn recount(&mut self, no: EntryNo, change: impl FnOnce(&mut Entry)) {
        let Some(entry) = self.of_no.get_mut(&no) else {
            return;
        };
        let of_feed = self.of_feed.entry(entry.applicant.feed).or_default();
        self.unverified.leave(no, entry);
        of_feed.count(entry.applicant.standing, |count| *count -= 1);
        change(entry);
        of_feed.count(entry.applicant.standing, |count| *count += 1);
        self.unverified.join(no, entry);
    }

    fn remove(&mut self, no: EntryNo) {
        let Some(entry) = self.of_no.remove(&no) else {
            return;
        };
        self.nos.remove(&entry.key);
        self.failing.remove(&no);
        self.unverified.leave(no, &entry);
        one_less(&mut self.of_host, &entry.host);
        one_less(&mut self.of_client, &entry.applicant.client);
        let feed = entry.applicant.feed;
        if let Some(of_feed) = self.of_feed.get_mut(&feed) {
            of_feed.count(entry.applicant.standing, |count| *count -= 1);
            if *of_feed == SubscriptionCounts::default() {
                self.of_feed.remove(&feed);
            }
        }
        if let State::AtRest(at_rest) = entry.state {
            self.rest.leave(no, at_rest);
        }
    }
}

/// The host for which a subscription of this address counts.
fn host_of(address: &str) -> Arc<str> {
    Destination::of(address).host.into()
}

/// Counts one less; a count of none is forgotten.
fn one_less<K: Eq + Hash>(counts: &mut HashMap<K, usize>, key: &K) {
    if let Some(count) = counts.get_mut(key) {
        *count -= 1;
        if *count == 0 {
            counts.remove(key);
        }
    }
}

#[cfg(test)]
mod tests;
