//! The subscriptions that are at work: the way to the task of each, and its standing; not their
//! leases or positions.

use super::{admission::ClientNet, command::TaskCommand};
use crate::{
    catalog::Destination,
    feed::{record::FeedNo, stamp::Stamp},
    locks::lock,
};
use std::{
    collections::{BTreeSet, HashMap},
    hash::Hash,
    sync::{
        Arc, Mutex, MutexGuard,
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
    book: Mutex<Book>,
    tickets: AtomicU64,
}

/// The entries, and the counts of those that are not verified.
#[derive(Debug, Default)]
struct Book {
    entries: HashMap<Arc<Key>, Entry>,
    unverified: Unverified,
    /// Subscriptions of each callback host.
    of_host: HashMap<Arc<str>, usize>,
    /// Subscriptions of each client that is known.
    of_client: HashMap<ClientNet, usize>,
}

#[derive(Debug)]
struct Entry {
    mailbox: Mailbox,
    applicant: Applicant,
    /// The host that it counts for while it is not verified.
    host: Arc<str>,
    ticket: Ticket,
    failing: Option<FailingSubscriber>,
    /// Time of the last answer to a delivery since the start.
    answered_at: Option<Stamp>,
    /// True while there is something to push.
    is_behind: bool,
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

    /// True for one that may give way: its callback did not confirm it.
    fn is_hopeless(&self) -> bool {
        self.applicant.standing == Standing::Unanswered && !self.leave.is_cancelled()
    }
}

/// The way of commands to a task. Commands are small, as their queue has room for 32 from the
/// start.
pub(super) type Mailbox = mpsc::Sender<TaskCommand>;

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
    Known(Mailbox),
    /// There was none: start one.
    New(NewTask),
    /// There was none, and no room for another.
    Full(RosterLimit),
}

/// The limit that leaves no room for another subscription.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RosterLimit {
    /// All subscriptions, or all that are not verified.
    Hub,
    /// Those of one callback host.
    Host,
    /// Those of one client.
    Client,
}

impl RosterLimit {
    /// The words for the subscriber.
    pub(super) fn told(self) -> &'static str {
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

/// A task to start.
pub(super) struct NewTask {
    pub(super) key: Arc<Key>,
    pub(super) commands: mpsc::Receiver<TaskCommand>,
    pub(super) mailbox: Mailbox,
    pub(super) ticket: Ticket,
    pub(super) client: ClientNet,
    pub(super) leave: CancellationToken,
}

/// A subscription at work.
pub(super) struct AtWork {
    pub(super) mailbox: Mailbox,
    pub(super) failing: Option<FailingSubscriber>,
    pub(super) answered_at: Option<Stamp>,
    pub(super) is_behind: bool,
}

/// Parts of the room for what is not verified that one client, and the callbacks of one host, may
/// have: one divided by these. One client alone fills the room of no host.
const CLIENT_SHARE: usize = 16;
const HOST_SHARE: usize = 4;

/// Commands that wait for one subscription's task at most; the senders of more wait.
const MAILBOX_COMMANDS: usize = 4;

impl Roster {
    fn lock(&self) -> MutexGuard<'_, Book> {
        lock(&self.book)
    }

    /// The way to a subscription. A new one takes its place at once, so that two requests never
    /// start two tasks. Where there is no room for it, one that was not confirmed by its callback
    /// gives way.
    pub(super) fn way(&self, key: &Key, applicant: Applicant, room: Room) -> Way {
        let mut book = self.lock();
        if let Some(entry) = book.entries.get(key) {
            return Way::Known(entry.mailbox.clone());
        }
        let host: Arc<str> = Destination::of(&key.address).host.into();
        if let Err(limit) = book.make_room(applicant, &host, room) {
            return Way::Full(limit);
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
            answered_at: None,
            is_behind: false,
            leave: leave.clone(),
        };
        let key = Arc::new(key.clone());
        book.unverified.join(&key, &entry);
        *book.of_host.entry(entry.host.clone()).or_default() += 1;
        if applicant.client.is_known() {
            *book.of_client.entry(applicant.client).or_default() += 1;
        }
        book.entries.insert(key.clone(), entry);
        Way::New(NewTask {
            key,
            commands,
            mailbox,
            ticket,
            client: applicant.client,
            leave,
        })
    }

    /// True for a subscription that is verified.
    pub(super) fn is_verified(&self, key: &Key) -> bool {
        self.lock().entries.get(key).is_some_and(|entry| {
            matches!(entry.applicant.standing, Standing::Well | Standing::Failing)
        })
    }

    pub(super) fn knows(&self, key: &Key) -> bool {
        self.lock().entries.contains_key(key)
    }

    /// Notes the standing of a subscription.
    pub(super) fn note(&self, key: &Key, ticket: Ticket, standing: Standing) {
        let mut book = self.lock();
        let Book {
            entries,
            unverified,
            ..
        } = &mut *book;
        let Some((key, _)) = entries.get_key_value(key) else {
            return;
        };
        let key = key.clone();
        let Some(entry) = entries
            .get_mut(&key)
            .filter(|entry| entry.ticket == ticket && entry.applicant.standing != standing)
        else {
            return;
        };
        let known = entry.applicant.standing;
        if known == Standing::Unanswered && standing == Standing::Unverified {
            // That a callback is not asked is known here alone.
            return;
        }
        unverified.leave(entry);
        entry.applicant.standing = standing;
        unverified.join(&key, entry);
    }

    /// Notes that there is something to push, or nothing.
    pub(super) fn note_behind(&self, key: &Key, ticket: Ticket, is_behind: bool) {
        self.of_task(key, ticket, |entry| entry.is_behind = is_behind);
    }

    /// Notes that a callback has answered a delivery.
    pub(super) fn note_answer(&self, key: &Key, ticket: Ticket, at: Stamp) {
        self.of_task(key, ticket, |entry| entry.answered_at = Some(at));
    }

    fn of_task(&self, key: &Key, ticket: Ticket, note: impl FnOnce(&mut Entry)) {
        let mut book = self.lock();
        let entry = book.entries.get_mut(key);
        if let Some(entry) = entry.filter(|entry| entry.ticket == ticket) {
            note(entry);
        }
    }

    /// The state of a subscription at work, and the way to its task.
    pub(super) fn at_work(&self, key: &Key) -> Option<AtWork> {
        let book = self.lock();
        let entry = book.entries.get(key)?;
        Some(AtWork {
            mailbox: entry.mailbox.clone(),
            failing: entry.failing.clone(),
            answered_at: entry.answered_at,
            is_behind: entry.is_behind,
        })
    }

    /// Notes that pushes of a subscription fail, or that they are taken. What was known of the
    /// beginning stays.
    pub(super) fn note_failing(
        &self,
        key: &Key,
        ticket: Ticket,
        failing: Option<FailingSubscriber>,
    ) {
        self.of_task(key, ticket, |entry| {
            let since = entry.failing.as_ref().map(|failing| failing.since);
            entry.failing = failing.map(|failing| FailingSubscriber {
                since: since.unwrap_or(failing.since),
                ..failing
            });
        });
    }

    /// The subscriptions of every feed whose pushes are not taken, so many of each at most.
    pub(super) fn failing(&self, of_feed_max: usize) -> HashMap<FeedNo, Vec<FailingSubscriber>> {
        let mut all: HashMap<FeedNo, Vec<FailingSubscriber>> = HashMap::new();
        for entry in self.lock().entries.values() {
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
        let mut book = self.lock();
        if book
            .entries
            .get(key)
            .is_some_and(|entry| entry.ticket == ticket)
            && let Some(entry) = book.entries.remove(key)
        {
            book.unverified.leave(&entry);
            one_less(&mut book.of_host, &entry.host);
            one_less(&mut book.of_client, &entry.applicant.client);
        }
    }

    /// The counts of every feed that has a subscription.
    pub(super) fn counts(&self) -> HashMap<FeedNo, SubscriptionCounts> {
        let mut counts: HashMap<FeedNo, SubscriptionCounts> = HashMap::new();
        for entry in self.lock().entries.values() {
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

/// Subscriptions that are not verified, counted for what limits them. A look at a limit costs the
/// same however many there are.
#[derive(Debug, Default)]
struct Unverified {
    all: Share,
    of_client: HashMap<ClientNet, Share>,
    of_host: HashMap<Arc<str>, Share>,
    /// Those that may give way, by ticket.
    hopeless: HashMap<u64, Arc<Key>>,
}

/// A part of them.
#[derive(Debug, Default)]
struct Share {
    count: usize,
    /// Tickets of those that may give way; the lowest is the oldest.
    hopeless: BTreeSet<u64>,
}

impl Share {
    fn join(&mut self, entry: &Entry) {
        self.count += 1;
        if entry.is_hopeless() {
            self.hopeless.insert(entry.ticket.0);
        }
    }

    fn leave(&mut self, entry: &Entry) {
        self.count -= 1;
        self.hopeless.remove(&entry.ticket.0);
    }
}

impl Unverified {
    fn join(&mut self, key: &Arc<Key>, entry: &Entry) {
        if !entry.is_unverified() {
            return;
        }
        self.all.join(entry);
        let of_client = self.of_client.entry(entry.applicant.client);
        of_client.or_default().join(entry);
        self.of_host
            .entry(entry.host.clone())
            .or_default()
            .join(entry);
        if entry.is_hopeless() {
            self.hopeless.insert(entry.ticket.0, key.clone());
        }
    }

    fn leave(&mut self, entry: &Entry) {
        if !entry.is_unverified() {
            return;
        }
        self.all.leave(entry);
        if let Some(share) = self.of_client.get_mut(&entry.applicant.client) {
            share.leave(entry);
            if share.count == 0 {
                self.of_client.remove(&entry.applicant.client);
            }
        }
        if let Some(share) = self.of_host.get_mut(&entry.host) {
            share.leave(entry);
            if share.count == 0 {
                self.of_host.remove(&entry.host);
            }
        }
        self.hopeless.remove(&entry.ticket.0);
    }
}

impl Book {
    /// Makes room for one more, if there is any: each limit that is reached lets the oldest go that
    /// it counts and that is not confirmed.
    fn make_room(
        &mut self,
        applicant: Applicant,
        host: &str,
        room: Room,
    ) -> Result<(), RosterLimit> {
        let has_room = self.entries.len() < room.subscriptions_max
            || self.let_go(self.unverified.all.hopeless.first().copied());
        if !has_room {
            return Err(RosterLimit::Hub);
        }
        if self
            .of_host
            .get(host)
            .is_some_and(|count| *count >= room.host_max)
        {
            return Err(RosterLimit::Host);
        }
        let of_client = self.of_client.get(&applicant.client);
        if of_client.is_some_and(|count| *count >= room.client_max) {
            return Err(RosterLimit::Client);
        }
        if applicant.standing == Standing::Unverified
            && !self.make_unverified_room(applicant, host, room)
        {
            return Err(RosterLimit::Hub);
        }
        Ok(())
    }

    fn make_unverified_room(&mut self, applicant: Applicant, host: &str, room: Room) -> bool {
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
    fn let_go(&mut self, ticket: Option<u64>) -> bool {
        let key = ticket.and_then(|ticket| self.unverified.hopeless.get(&ticket).cloned());
        let Some(entry) = key.and_then(|key| self.entries.get(&key)) else {
            return false;
        };
        self.unverified.leave(entry);
        entry.leave.cancel();
        true
    }
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

fn count_and_oldest(share: Option<&Share>) -> (usize, Option<u64>) {
    share.map_or((0, None), |share| {
        (share.count, share.hopeless.first().copied())
    })
}

/// Subscriptions that may be on the roster.
#[derive(Clone, Copy, Debug)]
pub(super) struct Room {
    pub(super) subscriptions_max: usize,
    pub(super) unverified_max: usize,
    /// Those of callbacks of one host.
    pub(super) host_max: usize,
    /// Those of one client, as far as clients are known.
    pub(super) client_max: usize,
}

#[cfg(test)]
mod tests {
    use super::*;

    const FEED: FeedNo = FeedNo(1);
    const ROOM: Room = Room {
        subscriptions_max: 3,
        unverified_max: 2,
        host_max: 100,
        client_max: 100,
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
            matches!(way("http://c/", 3), Way::Full(RosterLimit::Hub)),
            "two wait for their verification already"
        );
        roster.note(&key("http://a/"), first.ticket, Standing::Failing);
        assert!(matches!(way("http://c/", 3), Way::New(_)));
        assert!(matches!(way("http://d/", 4), Way::Full(_)));
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
            ..ROOM
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
            matches!(way("http://flood/4", 1), Way::Full(_)),
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

    #[test]
    fn one_host_and_one_client_have_their_limits_and_give_them_back() {
        let roster = Roster::default();
        let room = Room {
            subscriptions_max: 1000,
            unverified_max: 1000,
            host_max: 3,
            client_max: 2,
        };
        let way = |callback: &str, client| {
            let way = roster.way(&key(callback), unverified(client), room);
            match way {
                Way::New(new) => Ok(new.ticket),
                Way::Known(_) => panic!("`{callback}` is new"),
                Way::Full(limit) => Err(limit),
            }
        };
        let first = way("http://a/1", 1).unwrap();
        way("http://b/1", 1).unwrap();
        assert_eq!(way("http://c/1", 1), Err(RosterLimit::Client));
        way("http://a/2", 2).unwrap();
        way("http://a/3", 3).unwrap();
        assert_eq!(way("http://a/4", 4), Err(RosterLimit::Host));
        roster.remove(&key("http://a/1"), first);
        assert!(way("http://a/4", 1).is_ok());
    }
}
