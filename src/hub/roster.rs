//! The subscriptions that are at work: the way to the task of each, and its standing; not their leases or positions.

use super::command::SubscriptionCommand;
use crate::feed::record::FeedNo;
use std::{
    collections::HashMap,
    sync::{
        Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
};
use tokio::sync::mpsc;

/// Identity of a subscription: the canonical topic and the exact address of the target (HUB-6).
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Key {
    pub(super) topic: String,
    pub(super) address: String,
}

/// Standing of a subscription.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Standing {
    /// Never verified yet.
    Unverified,
    /// Verified, and its last push was taken.
    Well,
    /// Verified, and its last push was not taken.
    Failing,
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

/// The tasks at work.
#[derive(Debug, Default)]
pub(super) struct Roster {
    entries: Mutex<HashMap<Key, Entry>>,
    tickets: AtomicU64,
}

#[derive(Debug)]
struct Entry {
    feed: FeedNo,
    mailbox: mpsc::Sender<SubscriptionCommand>,
    standing: Standing,
    ticket: Ticket,
}

/// Tells a task from its successor under the same key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Ticket(u64);

/// A way to a subscription's task.
pub(super) enum Way {
    /// There is one; here is its mailbox.
    Known(mpsc::Sender<SubscriptionCommand>),
    /// There was none: start one, with this mailbox and ticket.
    New(mpsc::Receiver<SubscriptionCommand>, mpsc::Sender<SubscriptionCommand>, Ticket),
    /// There was none, and no room for another.
    Full,
}

/// Commands that wait for one subscription's task at most; the senders of more wait.
const MAILBOX_COMMANDS: usize = 4;

impl Roster {
    fn lock(&self) -> MutexGuard<'_, HashMap<Key, Entry>> {
        self.entries.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The way to a subscription. A new one takes its place at once, so that two requests never start two tasks.
    pub(super) fn way(&self, key: &Key, feed: FeedNo, standing: Standing, room: Room) -> Way {
        let mut entries = self.lock();
        if let Some(entry) = entries.get(key) {
            return Way::Known(entry.mailbox.clone());
        }
        let unverified = |entry: &&Entry| entry.standing == Standing::Unverified;
        if entries.len() >= room.subscriptions_max
            || (standing == Standing::Unverified
                && entries.len() >= room.unverified_max
                && entries.values().filter(unverified).count() >= room.unverified_max)
        {
            return Way::Full;
        }
        let (mailbox, commands) = mpsc::channel(MAILBOX_COMMANDS);
        let ticket = Ticket(self.tickets.fetch_add(1, Ordering::Relaxed));
        entries.insert(key.clone(), Entry { feed, mailbox: mailbox.clone(), standing, ticket });
        Way::New(commands, mailbox, ticket)
    }

    pub(super) fn knows(&self, key: &Key) -> bool {
        self.lock().contains_key(key)
    }

    /// Notes the standing of a subscription.
    pub(super) fn note(&self, key: &Key, ticket: Ticket, standing: Standing) {
        if let Some(entry) = self.lock().get_mut(key).filter(|entry| entry.ticket == ticket) {
            entry.standing = standing;
        }
    }

    /// Forgets a task that ends, unless its successor is already there.
    pub(super) fn remove(&self, key: &Key, ticket: Ticket) {
        let mut entries = self.lock();
        if entries.get(key).is_some_and(|entry| entry.ticket == ticket) {
            entries.remove(key);
        }
    }

    /// The counts of every feed that has a subscription.
    pub(super) fn counts(&self) -> HashMap<FeedNo, SubscriptionCounts> {
        let mut counts: HashMap<FeedNo, SubscriptionCounts> = HashMap::new();
        for entry in self.lock().values() {
            let feed = counts.entry(entry.feed).or_default();
            match entry.standing {
                Standing::Unverified => feed.pending += 1,
                Standing::Well | Standing::Failing => {
                    feed.active += 1;
                    feed.failing += usize::from(entry.standing == Standing::Failing);
                }
            }
        }
        counts
    }
}

/// Subscriptions that may be on the roster.
#[derive(Clone, Copy, Debug)]
pub(super) struct Room {
    pub(super) subscriptions_max: usize,
    pub(super) unverified_max: usize,
}

#[cfg(test)]
mod tests {
    use super::*;

    const FEED: FeedNo = FeedNo(1);
    const ROOM: Room = Room { subscriptions_max: 3, unverified_max: 2 };

    fn key(callback: &str) -> Key {
        Key { topic: "http://h/f".into(), address: callback.into() }
    }

    #[test]
    fn there_is_one_task_for_a_key_and_a_named_number_of_keys() {
        let roster = Roster::default();
        let way = |callback: &str| roster.way(&key(callback), FEED, Standing::Unverified, ROOM);
        let Way::New(_commands, _, first) = way("a") else { panic!("the first is new") };
        assert!(matches!(way("a"), Way::Known(_)));
        assert!(matches!(way("b"), Way::New(..)));
        assert!(matches!(way("c"), Way::Full), "two wait for their verification already");
        roster.note(&key("a"), first, Standing::Failing);
        assert!(matches!(way("c"), Way::New(..)));
        assert!(matches!(way("d"), Way::Full));
        let counts = roster.counts()[&FEED];
        assert_eq!(counts, SubscriptionCounts { active: 1, pending: 2, failing: 1 });
    }

    #[test]
    fn a_task_that_ends_late_does_not_forget_its_successor() {
        let roster = Roster::default();
        let way = || roster.way(&key("a"), FEED, Standing::Unverified, ROOM);
        let Way::New(_, _, first) = way() else { panic!("new") };
        roster.remove(&key("a"), first);
        let Way::New(..) = way() else { panic!("new again") };
        roster.remove(&key("a"), first);
        assert!(roster.knows(&key("a")));
    }
}
