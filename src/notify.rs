//! Wake-ups: "feed F has moved" and hints, "poll F soon". Carries no items: a waiter that wakes
//! reads the store.

use crate::{
    feed::{
        record::{FeedNo, FeedRecord, Head},
        stamp::Stamp,
    },
    locks::{lock, read, write},
    mistakes::{Mistake, is_made},
};
use hints::HintBudget;
use std::{
    collections::{BTreeMap, BTreeSet, HashMap, VecDeque},
    sync::{
        Arc, Mutex, RwLock, Weak,
        atomic::{AtomicU64, Ordering},
    },
};
use tokio::sync::{Notify as Bell, watch};

mod hints;
mod upstream_push;

pub use hints::{DelayCause, HintDelay, HintDelays, HintFate};
pub use upstream_push::{PushedDocument, UpstreamPush};

/// The wake-ups of all feeds.
#[derive(Debug, Default)]
pub struct Notify {
    feeds: RwLock<Heads>,
    /// The feeds forgotten last: a commit that was under way may end after that.
    forgotten: Mutex<VecDeque<FeedNo>>,
    hinted: Mutex<Hinted>,
    bell: Bell,
    /// Those who hear of every feed that moves.
    listeners: Mutex<Vec<Weak<Heard>>>,
    /// Nothing before there is a poller.
    delays: RwLock<Option<Arc<dyn HintDelays>>>,
    /// Nothing where no news are pushed to us.
    upstream_push: RwLock<Option<Arc<dyn UpstreamPush>>>,
    /// Times that a document was kept of each feed that is served at its own address.
    documents: RwLock<HashMap<FeedNo, u64>>,
    /// Times that any document may have been kept by another process.
    all_documents: AtomicU64,
    /// Changes whose outcome was not known, and how many of them are settled.
    doubts: AtomicU64,
    settled_doubts: AtomicU64,
}

/// The heads of all feeds, and the way to those who wait.
#[derive(Debug, Default)]
struct Heads {
    known: HashMap<FeedNo, Head>,
    /// Channels of the feeds that somebody waits for: one takes ten times the memory of a head.
    channels: HashMap<FeedNo, watch::Sender<Head>>,
}

/// A listener to the moves of all feeds. Moves of one feed until they are taken are one.
#[derive(Debug)]
pub struct Moves(Arc<Heard>);

#[derive(Debug, Default)]
struct Heard {
    feeds: Mutex<BTreeSet<FeedNo>>,
    bell: Bell,
}

impl Moves {
    /// Waits for moves and takes them all. Safe to drop while it waits: no move is lost.
    pub async fn next(&self) -> BTreeSet<FeedNo> {
        loop {
            let taken = std::mem::take(&mut *lock(&self.0.feeds));
            if !taken.is_empty() {
                return taken;
            }
            self.0.bell.notified().await;
        }
    }
}

/// The hints of all feeds.
#[derive(Debug, Default)]
struct Hinted {
    /// Feeds with a hint that nobody has heard of yet.
    new: BTreeSet<FeedNo>,
    /// Feeds with a hint whose poll has not begun.
    waiting: BTreeMap<FeedNo, WaitingHint>,
    budgets: HashMap<FeedNo, HintBudget>,
}

/// A hint whose poll has not begun.
#[derive(Clone, Copy, Debug)]
pub struct WaitingHint {
    /// Time at which it came.
    pub since: Stamp,
    /// Time from which on the budget of the feed allows its poll.
    pub not_before: Stamp,
}

/// Forgotten feeds that are kept in mind at most.
const FORGOTTEN_MAX: usize = 1024;

impl Notify {
    /// No feeds yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Announces the head of a feed. Waiters wake only when it is new to them. Called after the
    /// commit is durable. What is said late of a feed that was forgotten is not kept.
    pub fn moved(&self, feed: FeedNo, head: Head) {
        self.announce(feed, head, |_| true);
    }

    /// Announces a head, if what is known of the feed wants it.
    fn announce(&self, feed: FeedNo, head: Head, is_wanted: impl FnOnce(Option<&Head>) -> bool) {
        let mut feeds = write(&self.feeds);
        if self.is_forgotten(feed) || !is_wanted(feeds.known.get(&feed)) {
            return;
        }
        feeds.known.insert(feed, head);
        if let Some(channel) = feeds.channels.get(&feed)
            && !is_made(Mistake::WakeUpLost)
        {
            tell(channel, head);
            if channel.receiver_count() == 0 {
                feeds.channels.remove(&feed);
            }
        }
        drop(feeds);
        if !is_made(Mistake::WakeUpLost) {
            self.tell_listeners(feed);
        }
    }

    /// Announces a head that was read, of a feed that is announced already, unless a newer one was
    /// announced since.
    pub fn seen(&self, feed: FeedNo, head: Head) {
        self.announce(feed, head, |known| {
            known.is_some_and(|known| {
                head.last_t > known.last_t
                    || head.metadata_t > known.metadata_t
                    || head.ready && !known.ready
            })
        });
    }

    /// Notes a change whose outcome is not known: feeds may have moved without a word.
    pub fn doubt(&self) {
        self.doubts.fetch_add(1, Ordering::SeqCst);
    }

    /// The number of changes in doubt, where one is not settled yet.
    pub fn doubts(&self) -> Option<u64> {
        let doubts = self.doubts.load(Ordering::SeqCst);
        (doubts > self.settled_doubts.load(Ordering::SeqCst)).then_some(doubts)
    }

    /// Notes that the heads of all feeds were read after so many changes in doubt.
    pub fn settled(&self, doubts: u64) {
        self.settled_doubts.fetch_max(doubts, Ordering::SeqCst);
    }

    /// Hears of every feed that moves from now on.
    pub fn moves(&self) -> Moves {
        let heard = Arc::new(Heard::default());
        let mut listeners = lock(&self.listeners);
        listeners.retain(|listener| listener.strong_count() > 0);
        listeners.push(Arc::downgrade(&heard));
        Moves(heard)
    }

    fn tell_listeners(&self, feed: FeedNo) {
        for listener in lock(&self.listeners).iter().filter_map(Weak::upgrade) {
            lock(&listener.feeds).insert(feed);
            listener.bell.notify_one();
        }
    }

    /// Announces a commit: the head of its feed, and those of the groups that moved with it. Called
    /// after it is durable.
    pub fn committed(&self, feed: &FeedRecord, groups: &[FeedRecord]) {
        for moved in std::iter::once(feed).chain(groups) {
            self.moved(moved.no, moved.head());
        }
    }

    /// Announces that a document of a feed was kept. Called after it is durable.
    pub fn document_kept(&self, feed: FeedNo) {
        *write(&self.documents).entry(feed).or_default() += 1;
    }

    /// Announces that another process may have kept documents of any feeds.
    pub fn documents_may_differ(&self) {
        self.all_documents.fetch_add(1, Ordering::Relaxed);
    }

    /// Times that a document of a feed was kept since the start, or may have been.
    pub fn documents(&self, feed: FeedNo) -> u64 {
        let of_feed = read(&self.documents).get(&feed).copied();
        of_feed.unwrap_or_default() + self.all_documents.load(Ordering::Relaxed)
    }

    /// Forgets a feed, whose number is never given again. Whoever waits for it is told that nothing
    /// comes any more.
    pub fn forget(&self, feed: FeedNo) {
        let mut feeds = write(&self.feeds);
        let mut forgotten = lock(&self.forgotten);
        forgotten.truncate(FORGOTTEN_MAX - 1);
        forgotten.push_front(feed);
        feeds.known.remove(&feed);
        feeds.channels.remove(&feed);
        write(&self.documents).remove(&feed);
        let mut hinted = lock(&self.hinted);
        hinted.new.remove(&feed);
        hinted.waiting.remove(&feed);
        hinted.budgets.remove(&feed);
    }

    /// True for a feed that was forgotten a short while ago.
    pub fn is_forgotten(&self, feed: FeedNo) -> bool {
        lock(&self.forgotten).contains(&feed)
    }

    /// The head of a feed; `None` for one that was never announced.
    pub fn head(&self, feed: FeedNo) -> Option<Head> {
        read(&self.feeds).known.get(&feed).copied()
    }

    /// Registers for a feed's wake-ups. Register before the first read, or a change in between is
    /// slept through.
    pub fn watch(&self, feed: FeedNo) -> Option<watch::Receiver<Head>> {
        let channel = |feeds: &Heads| feeds.channels.get(&feed).map(watch::Sender::subscribe);
        if let Some(receiver) = channel(&read(&self.feeds)) {
            return Some(receiver);
        }
        let mut feeds = write(&self.feeds);
        let head = *feeds.known.get(&feed)?;
        Some(
            feeds
                .channels
                .entry(feed)
                .or_insert_with(|| watch::Sender::new(head))
                .subscribe(),
        )
    }

    /// Number of receivers that are registered for a feed.
    pub fn watchers(&self, feed: FeedNo) -> usize {
        read(&self.feeds)
            .channels
            .get(&feed)
            .map_or(0, watch::Sender::receiver_count)
    }

    /// Asks these for the delays of hints from now on.
    pub fn delay_hints(&self, delays: Arc<dyn HintDelays>) {
        *write(&self.delays) = Some(delays);
    }

    /// Tells this of polls from now on, and asks it for what was pushed.
    pub fn be_pushed(&self, push: Arc<dyn UpstreamPush>) {
        *write(&self.upstream_push) = Some(push);
    }

    /// Whoever is pushed the news of feeds.
    pub fn upstream_push(&self) -> Option<Arc<dyn UpstreamPush>> {
        read(&self.upstream_push).clone()
    }

    /// Says that a feed may have changed upstream. Many hints for one feed until it is polled are
    /// one hint; one beyond the budget of the feed waits until it is within.
    pub fn hint(&self, feed: FeedNo, now: Stamp) -> HintFate {
        let delays = read(&self.delays).clone();
        let delay = delays.and_then(|delays| delays.delay(feed, now));
        let WaitingHint { since, not_before } = self.waiting_hint(feed, now);
        let of_budget = (not_before > now).then_some(HintDelay {
            until: not_before,
            since: Some(since),
            cause: DelayCause::Budget,
        });
        let longest = delay.into_iter().chain(of_budget);
        longest
            .max_by_key(|delay| delay.until)
            .map_or(HintFate::Taken, HintFate::Delayed)
    }

    /// The hint of a feed that waits for its poll, else one that begins to wait now.
    fn waiting_hint(&self, feed: FeedNo, now: Stamp) -> WaitingHint {
        let mut hinted = lock(&self.hinted);
        if let Some(waiting) = hinted.waiting.get(&feed) {
            return *waiting;
        }
        let not_before = hinted.budgets.entry(feed).or_default().take(now);
        let since = now;
        let hint = WaitingHint { since, not_before };
        hinted.waiting.insert(feed, hint);
        hinted.new.insert(feed);
        self.bell.notify_one();
        hint
    }

    /// The poll for the hints of a feed has begun, or there will be none. Later hints are new ones.
    pub fn hint_heard(&self, feed: FeedNo) {
        lock(&self.hinted).waiting.remove(&feed);
    }

    /// The hint of a feed that waits for its poll.
    pub fn hinted(&self, feed: FeedNo) -> Option<WaitingHint> {
        lock(&self.hinted).waiting.get(&feed).copied()
    }

    /// The poll for a hint has ended.
    pub fn hint_ended(&self, feed: FeedNo, was_right: bool) {
        let mut hinted = lock(&self.hinted);
        if let Some(budget) = hinted.budgets.get_mut(&feed) {
            budget.ended(was_right);
        }
    }

    /// Waits for hints and takes them all. Safe to drop while it waits: no hint is lost.
    pub async fn hints(&self) -> BTreeSet<FeedNo> {
        loop {
            let taken = std::mem::take(&mut lock(&self.hinted).new);
            if !taken.is_empty() {
                return taken;
            }
            self.bell.notified().await;
        }
    }
}

/// Wakes the waiters of a feed, unless they know the head.
fn tell(known: &watch::Sender<Head>, head: Head) {
    known.send_if_modified(|held| std::mem::replace(held, head) != head);
}

#[cfg(test)]
mod tests {
    use super::*;

    const FEED: FeedNo = FeedNo(1);
    const NOW: Stamp = Stamp::from_secs(1_000_000);

    fn head(t: u64) -> Head {
        Head {
            last_t: Stamp::from_secs(t),
            metadata_t: Stamp::ZERO,
            ready: true,
            generation: Stamp::ZERO,
        }
    }

    #[tokio::test]
    async fn a_waiter_that_registered_first_sleeps_through_nothing() {
        let notify = Notify::new();
        assert!(notify.watch(FEED).is_none());
        notify.moved(FEED, head(1));
        let mut waiter = notify.watch(FEED).unwrap();
        notify.moved(FEED, head(2));
        waiter.changed().await.unwrap();
        assert_eq!(*waiter.borrow_and_update(), head(2));
        notify.moved(FEED, head(2));
        assert!(!waiter.has_changed().unwrap(), "the same head wakes nobody");
        assert_eq!(
            (notify.head(FEED), notify.watchers(FEED)),
            (Some(head(2)), 1)
        );
    }

    #[tokio::test]
    async fn only_a_feed_that_somebody_waits_for_has_a_channel() {
        let notify = Notify::new();
        let channels = || notify.feeds.read().unwrap().channels.len();
        notify.moved(FEED, head(1));
        assert_eq!((channels(), notify.head(FEED)), (0, Some(head(1))));
        let mut waiter = notify.watch(FEED).unwrap();
        let other = notify.watch(FEED).unwrap();
        assert_eq!((channels(), notify.watchers(FEED)), (1, 2));
        assert!(
            !waiter.has_changed().unwrap(),
            "the head at which it registered is no news"
        );
        drop(other);
        notify.moved(FEED, head(2));
        assert!(waiter.has_changed().unwrap());
        assert_eq!(*waiter.borrow_and_update(), head(2));
        drop(waiter);
        notify.moved(FEED, head(3));
        assert_eq!((channels(), notify.head(FEED)), (0, Some(head(3))));
    }

    #[tokio::test]
    async fn a_feed_that_was_forgotten_is_not_kept_and_does_not_come_back() {
        let notify = Notify::new();
        notify.moved(FEED, head(1));
        notify.hint(FEED, NOW);
        let mut waiter = notify.watch(FEED).unwrap();
        notify.forget(FEED);
        assert!(waiter.changed().await.is_err(), "whoever waits is told");
        // A commit that was under way ends late.
        notify.moved(FEED, head(2));
        assert!(notify.watch(FEED).is_none() && notify.head(FEED).is_none());
        assert!(notify.is_forgotten(FEED) && !notify.is_forgotten(FeedNo(2)));
        notify.hint(FeedNo(2), NOW);
        assert_eq!(
            notify.hints().await,
            BTreeSet::from([FeedNo(2)]),
            "nor are its hints"
        );
    }

    #[tokio::test]
    async fn many_hints_for_one_feed_are_one_and_none_is_lost() {
        let notify = Notify::new();
        notify.hint(FEED, NOW);
        notify.hint(FEED, NOW);
        notify.hint(FeedNo(2), NOW);
        assert_eq!(notify.hints().await, BTreeSet::from([FEED, FeedNo(2)]));
        notify.hint_heard(FEED);
        let (hints, ()) = tokio::join!(notify.hints(), async { _ = notify.hint(FEED, NOW) });
        assert_eq!(hints, BTreeSet::from([FEED]));
    }
}
