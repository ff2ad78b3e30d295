//! The subscriptions that are at work: the way to the task of each, and its standing; not their
//! leases or positions.

use super::{admission::ClientNet, command::SubscriptionCommand};
use crate::{
    catalog::Destination,
    feed::{record::FeedNo, stamp::Stamp},
    locks::lock,
};
use std::{
    collections::HashMap,
    sync::{
        Mutex, MutexGuard,
        atomic::{AtomicU64, Ordering},
    },
};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

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
    /// Never verified yet, though its callback was asked, or is not asked as it confirms nothing.
    Unanswered,
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

/// The tasks at work.
#[derive(Debug, Default)]
pub(super) struct Roster {
    entries: Mutex<HashMap<Key, Entry>>,
    tickets: AtomicU64,
}

#[derive(Debug)]
struct Entry {
    mailbox: mpsc::Sender<SubscriptionCommand>,
    applicant: Applicant,
    /// The host that it counts for while it is not verified.
    host: Box<str>,
    ticket: Ticket,
    failing: Option<FailingSubscriber>,
    /// Cancelled when it is to give way.
    leave: CancellationToken,
}

impl Entry {
    fn is_unverified(&self) -> bool {
        matches!(
            self.applicant.standing,
            Standing::Unverified | Standing::Unanswered
        ) && !self.leave.is_cancelled()
    }
}

/// A subscription that asks for its place.
#[derive(Clone, Copy, Debug)]
pub(super) struct Applicant {
    pub(super) feed: FeedNo,
    pub(super) standing: Standing,
    /// The client that asked for it.
    pub(super) client: ClientNet,
}

/// Tells a task from its successor under the same key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Ticket(u64);

/// A way to a subscription's task.
pub(super) enum Way {
    /// There is one; here is its mailbox.
    Known(mpsc::Sender<SubscriptionCommand>),
    /// There was none: start one.
    New(NewTask),
    /// There was none, and no room for another.
    Full,
}

/// A task to start.
pub(super) struct NewTask {
    pub(super) commands: mpsc::Receiver<SubscriptionCommand>,
    pub(super) mailbox: mpsc::Sender<SubscriptionCommand>,
    pub(super) ticket: Ticket,
    pub(super) client: ClientNet,
    pub(super) leave: CancellationToken,
}

/// Parts of the room for what is not verified that one client, and the callbacks of one host, may
/// have: one divided by these. One client alone fills the room of no host.
const CLIENT_SHARE: usize = 16;
const HOST_SHARE: usize = 4;

/// Commands that wait for one subscription's task at most; the senders of more wait.
const MAILBOX_COMMANDS: usize = 4;

impl Roster {
    fn lock(&self) -> MutexGuard<'_, HashMap<Key, Entry>> {
        lock(&self.entries)
    }

    /// The way to a subscription. A new one takes its place at once, so that two requests never
    /// start two tasks. Where there is no room for it, one that was not confirmed by its callback
    /// gives way.
    pub(super) fn way(&self, key: &Key, applicant: Applicant, room: Room) -> Way {
        let mut entries = self.lock();
        if let Some(entry) = entries.get(key) {
            return Way::Known(entry.mailbox.clone());
        }
        let host = Destination::of(&key.address).host;
        if !make_room(&mut entries, applicant, &host, room) {
            return Way::Full;
        }
        let (mailbox, commands) = mpsc::channel(MAILBOX_COMMANDS);
        let ticket = Ticket(self.tickets.fetch_add(1, Ordering::Relaxed));
        let leave = CancellationToken::new();
        let entry = Entry {
            mailbox: mailbox.clone(),
            applicant,
            host,
            ticket,
            failing: None,
            leave: leave.clone(),
        };
        entries.insert(key.clone(), entry);
        Way::New(NewTask {
            commands,
            mailbox,
            ticket,
            client: applicant.client,
            leave,
        })
    }

    /// True for a subscription that is verified.
    pub(super) fn is_verified(&self, key: &Key) -> bool {
        self.lock().get(key).is_some_and(|entry| {
            matches!(entry.applicant.standing, Standing::Well | Standing::Failing)
        })
    }

    pub(super) fn knows(&self, key: &Key) -> bool {
        self.lock().contains_key(key)
    }

    /// Notes the standing of a subscription.
    pub(super) fn note(&self, key: &Key, ticket: Ticket, standing: Standing) {
        if let Some(entry) = self
            .lock()
            .get_mut(key)
            .filter(|entry| entry.ticket == ticket)
        {
            // That a callback is not asked is known here alone.
            if (entry.applicant.standing, standing) != (Standing::Unanswered, Standing::Unverified)
            {
                entry.applicant.standing = standing;
            }
        }
    }

    /// Notes that pushes of a subscription fail, or that they are taken. What was known of the
    /// beginning stays.
    pub(super) fn note_failing(
        &self,
        key: &Key,
        ticket: Ticket,
        failing: Option<FailingSubscriber>,
    ) {
        if let Some(entry) = self
            .lock()
            .get_mut(key)
            .filter(|entry| entry.ticket == ticket)
        {
            let since = entry.failing.as_ref().map(|failing| failing.since);
            entry.failing = failing.map(|failing| FailingSubscriber {
                since: since.unwrap_or(failing.since),
                ..failing
            });
        }
    }

    /// The subscriptions of every feed whose pushes are not taken, so many of each at most.
    pub(super) fn failing(&self, of_feed_max: usize) -> HashMap<FeedNo, Vec<FailingSubscriber>> {
        let mut all: HashMap<FeedNo, Vec<FailingSubscriber>> = HashMap::new();
        for entry in self.lock().values() {
            let Some(failing) = &entry.failing else {
                continue;
            };
            let of_feed = all.entry(entry.applicant.feed).or_default();
            if of_feed.len() < of_feed_max {
                of_feed.push(failing.clone());
            }
        }
        all.values_mut().for_each(|of_feed| {
            of_feed.sort_by(|a, b| (a.since, &a.host).cmp(&(b.since, &b.host)))
        });
        all
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
            let feed = counts.entry(entry.applicant.feed).or_default();
            match entry.applicant.standing {
                Standing::Unverified | Standing::Unanswered => feed.pending += 1,
                Standing::Well | Standing::Failing => {
                    feed.active += 1;
                    feed.failing += usize::from(entry.applicant.standing == Standing::Failing);
                }
            }
        }
        counts
    }
}

/// True for an entry that counts towards a limit.
type IsCounted<'a> = &'a dyn Fn(&Entry) -> bool;

/// Makes room for one more, if there is any: each limit that is reached lets the oldest go that it
/// counts and that is not confirmed.
fn make_room(
    entries: &mut HashMap<Key, Entry>,
    applicant: Applicant,
    host: &str,
    room: Room,
) -> bool {
    let mut has_room = entries.len() < room.subscriptions_max || let_go(entries, |_| true);
    if applicant.standing == Standing::Unverified {
        let max = room.unverified_max;
        let counted = |entries: &HashMap<Key, Entry>, is_counted: &dyn Fn(&Entry) -> bool| {
            entries
                .values()
                .filter(|entry| entry.is_unverified() && is_counted(entry))
                .count()
        };
        let of_client = |entry: &Entry| entry.applicant.client == applicant.client;
        let of_host = |entry: &Entry| &*entry.host == host;
        let limits: [(usize, IsCounted<'_>); 3] = [
            ((max / CLIENT_SHARE).max(1), &of_client),
            ((max / HOST_SHARE).max(1), &of_host),
            (max, &|_| true),
        ];
        for (most, is_counted) in limits {
            has_room =
                has_room && (counted(entries, is_counted) < most || let_go(entries, is_counted));
        }
    }
    has_room
}

/// Lets the oldest go that was not confirmed, of those that count. False when there is none.
fn let_go(entries: &mut HashMap<Key, Entry>, is_counted: impl Fn(&Entry) -> bool) -> bool {
    let hopeless = |entry: &&Entry| {
        entry.applicant.standing == Standing::Unanswered
            && !entry.leave.is_cancelled()
            && is_counted(entry)
    };
    let oldest = entries
        .values()
        .filter(hopeless)
        .min_by_key(|entry| entry.ticket.0);
    oldest.map(|entry| entry.leave.cancel()).is_some()
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
    const ROOM: Room = Room {
        subscriptions_max: 3,
        unverified_max: 2,
    };

    fn key(callback: &str) -> Key {
        Key {
            topic: "http://h/f".into(),
            address: callback.into(),
        }
    }

    fn unverified(client: u8) -> Applicant {
        let client = ClientNet::of(Some([192, 0, 2, client].into()));
        Applicant {
            feed: FEED,
            standing: Standing::Unverified,
            client,
        }
    }

    #[test]
    fn there_is_one_task_for_a_key_and_a_named_number_of_keys() {
        let roster = Roster::default();
        let way = |callback: &str, client| roster.way(&key(callback), unverified(client), ROOM);
        let Way::New(first) = way("http://a/", 1) else {
            panic!("the first is new")
        };
        assert!(matches!(way("http://a/", 1), Way::Known(_)));
        assert!(matches!(way("http://b/", 2), Way::New(_)));
        assert!(
            matches!(way("http://c/", 3), Way::Full),
            "two wait for their verification already"
        );
        roster.note(&key("http://a/"), first.ticket, Standing::Failing);
        assert!(matches!(way("http://c/", 3), Way::New(_)));
        assert!(matches!(way("http://d/", 4), Way::Full));
        let counts = roster.counts()[&FEED];
        assert_eq!(
            counts,
            SubscriptionCounts {
                active: 1,
                pending: 2,
                failing: 1
            }
        );
    }

    #[test]
    fn a_task_that_ends_late_does_not_forget_its_successor() {
        let roster = Roster::default();
        let way = || roster.way(&key("http://a/"), unverified(1), ROOM);
        let Way::New(first) = way() else {
            panic!("new")
        };
        roster.remove(&key("http://a/"), first.ticket);
        let Way::New(_) = way() else {
            panic!("new again")
        };
        roster.remove(&key("http://a/"), first.ticket);
        assert!(roster.knows(&key("http://a/")));
    }

    #[test]
    fn one_client_fills_the_room_of_nobody_and_the_hopeless_give_way() {
        let roster = Roster::default();
        let room = Room {
            subscriptions_max: 1000,
            unverified_max: 64,
        };
        let way = |callback: &str, client| roster.way(&key(callback), unverified(client), room);
        let mut news = Vec::new();
        for n in 0..4 {
            let callback = format!("http://flood/{n}");
            let Way::New(new) = way(&callback, 1) else {
                panic!("{n} has room")
            };
            news.push((callback, new));
        }
        assert!(
            matches!(way("http://flood/4", 1), Way::Full),
            "a client has a sixteenth"
        );
        assert!(
            matches!(way("http://flood/5", 2), Way::New(_)),
            "and another one has its own"
        );
        for (callback, new) in &news {
            roster.note(&key(callback), new.ticket, Standing::Unanswered);
            // It does not count as untried again.
            roster.note(&key(callback), new.ticket, Standing::Unverified);
        }
        assert!(matches!(way("http://flood/6", 1), Way::New(_)));
        let left: Vec<bool> = news
            .iter()
            .map(|(_, new)| new.leave.is_cancelled())
            .collect();
        assert_eq!(left, [true, false, false, false], "the oldest gives way");
    }
}
