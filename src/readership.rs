//! The readers of the feeds of this process: requests by feed and software, as aggregates. No address of
//! a client and no `User-Agent` is kept beyond a minute. Not who may read.
//!
//! A request is noted in a table, and not looked at further. Once a minute, and before figures are
//! given, what the tables hold is named and counted. Each process counts what it answers itself.

use crate::{
    feed::{record::FeedNo, stamp::Stamp},
    locks::lock,
};
use counts::{ClientBits, Counts};
use std::{
    cell::Cell,
    collections::HashMap,
    hash::{BuildHasher as _, RandomState},
    net::IpAddr,
    sync::{
        Mutex,
        atomic::{AtomicU64, AtomicUsize, Ordering},
    },
    time::Duration,
};
use tallies::Tallies;
use tokio::{sync::Notify, time::sleep};
use tokio_util::sync::CancellationToken;

mod software;

mod counts;

mod tallies;

mod report;

pub use report::{OTHER_SOFTWARE, ReaderFigures, ReaderList, RequestFigures, SoftwareFigures};
pub use software::{CLAIMED_READERS_MAX, SoftwareKind, USER_AGENT_BYTES_MAX};
pub use tallies::{COUNTED_FEEDS_MAX, SOFTWARE_ROWS_MAX, UNKNOWN_SOFTWARE_MAX};

/// Time after which noted requests are counted at the latest.
const COUNT_EVERY: Duration = Duration::from_secs(60);

/// Tables of noted requests: threads rarely wait for each other.
const TABLES: usize = 8;

/// Pairs of a feed and a `User-Agent` in one table at most. A request with one more is not
/// attributed.
const NOTES_PER_TABLE_MAX: usize = 1024;

/// Pairs in one table from which on it is counted at once.
const NOTES_PER_TABLE_MANY: usize = NOTES_PER_TABLE_MAX / 2;

/// Outcome of a request, as far as software has to heed it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// It was answered.
    Answered,
    /// It was answered by 410.
    Gone,
    /// It was answered by 429.
    Refused,
}

impl Outcome {
    /// The outcome of an answer with this status; `None` for one that tells nothing of a reader: the
    /// feed is not there, not ready, or not for everybody.
    pub fn of_status(status: u16) -> Option<Self> {
        match status {
            200..=399 => Some(Self::Answered),
            410 => Some(Self::Gone),
            429 => Some(Self::Refused),
            _ => None,
        }
    }
}

/// A request for a feed.
#[derive(Clone, Copy, Debug)]
pub struct FeedRequest<'a> {
    /// The feed.
    pub feed: FeedNo,
    /// Its `User-Agent`; empty without one.
    pub user_agent: &'a [u8],
    /// The address of its client, if it is known. It is only hashed.
    pub client: Option<IpAddr>,
    /// True if it has a validator or a position.
    pub is_conditional: bool,
    /// Its outcome.
    pub outcome: Outcome,
}

impl FeedRequest<'_> {
    fn counts(&self, clients: ClientBits) -> Counts {
        Counts {
            requests: 1,
            conditional: u32::from(self.is_conditional),
            gone: u32::from(self.outcome == Outcome::Gone),
            refused: u32::from(self.outcome == Outcome::Refused),
            clients,
            ..Counts::default()
        }
    }
}

/// Requests that are noted and not counted yet, by feed and `User-Agent`.
#[derive(Debug, Default)]
struct Notes {
    by_feed: HashMap<FeedNo, HashMap<Box<[u8]>, Counts>>,
    /// Pairs of a feed and a `User-Agent`.
    pairs: usize,
}

/// The outcome of a note.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Noted {
    /// It is in the table.
    Kept,
    /// It is in the table, and the table is to be counted soon.
    Many,
    /// There is no room for it.
    Full,
}

impl Notes {
    fn add(&mut self, feed: FeedNo, user_agent: &[u8], counts: Counts) -> Noted {
        let known = self.by_feed.get_mut(&feed);
        if let Some(known) = known.and_then(|agents| agents.get_mut(user_agent)) {
            known.add(counts);
            return Noted::Kept;
        }
        if self.pairs >= NOTES_PER_TABLE_MAX {
            return Noted::Full;
        }
        self.pairs += 1;
        let agents = self.by_feed.entry(feed).or_default();
        agents.insert(user_agent.into(), counts);
        if self.pairs >= NOTES_PER_TABLE_MANY {
            Noted::Many
        } else {
            Noted::Kept
        }
    }
}

/// The readers of the feeds of this process.
#[derive(Debug, Default)]
pub struct Readership {
    /// Time since which it counts.
    since: Stamp,
    tables: [Mutex<Notes>; TABLES],
    /// Key by which addresses are hashed. It is never written anywhere.
    key: RandomState,
    /// Wakes the task that counts.
    many: Notify,
    /// Requests that belong to no software.
    unattributed: AtomicU64,
    tallies: Mutex<Tallies>,
}

impl Readership {
    /// Nothing counted yet.
    pub fn new(since: Stamp) -> Self {
        Self {
            since,
            ..Self::default()
        }
    }

    // Decides: Which facts about a request of a reader are stored?
    /// Notes a request. It is cheap: nothing of the `User-Agent` is looked at, and of the address one
    /// bit of 64 is kept.
    pub fn note(&self, request: FeedRequest<'_>) {
        let clients = match request.client {
            Some(client) => ClientBits::of(self.key.hash_one(client)),
            None => ClientBits::default(),
        };
        let agent = request.user_agent;
        let agent = &agent[..agent.len().min(USER_AGENT_BYTES_MAX)];
        let mut table = lock(&self.tables[own_table()]);
        let noted = table.add(request.feed, agent, request.counts(clients));
        drop(table);
        match noted {
            Noted::Kept => {}
            Noted::Many => self.many.notify_one(),
            Noted::Full => {
                self.unattributed.fetch_add(1, Ordering::Relaxed);
                self.many.notify_one();
            }
        }
    }

    /// Counts what is noted.
    fn count(&self, now: Stamp) {
        for table in &self.tables {
            let notes = std::mem::take(&mut *lock(table));
            if notes.pairs == 0 {
                continue;
            }
            let mut tallies = lock(&self.tallies);
            for (feed, agents) in notes.by_feed {
                for (agent, counts) in agents {
                    let software = software::software(&agent);
                    if !tallies.add(feed, &software, counts, now) {
                        let requests = counts.requests.into();
                        self.unattributed.fetch_add(requests, Ordering::Relaxed);
                    }
                }
            }
        }
    }

    /// Counts what is noted, again and again, until the end.
    pub async fn run(&self, now: impl Fn() -> Stamp, stop: CancellationToken) {
        loop {
            tokio::select! {
                () = stop.cancelled() => return,
                () = sleep(COUNT_EVERY) => {}
                () = self.many.notified() => {}
            }
            self.count(now());
        }
    }

    /// Figures of a feed, without its name and its push subscribers; `None` if nobody asked for it
    /// in the last month.
    pub fn figures(&self, feed: FeedNo, now: Stamp) -> Option<ReaderFigures> {
        self.count(now);
        lock(&self.tallies).figures(feed, now)
    }

    /// The feeds among these that somebody asked for in the last month, about.
    pub fn asked_for(&self, feeds: impl IntoIterator<Item = FeedNo>, now: Stamp) -> Vec<FeedNo> {
        self.count(now);
        let tallies = lock(&self.tallies);
        feeds
            .into_iter()
            .filter(|feed| tallies.has(*feed))
            .collect()
    }

    /// Time since which it counts.
    pub fn since(&self) -> Stamp {
        self.since
    }

    /// Requests since then that belong to no software.
    pub fn unattributed(&self) -> u64 {
        self.unattributed.load(Ordering::Relaxed)
    }
}

/// The table of this thread.
fn own_table() -> usize {
    static NEXT: AtomicUsize = AtomicUsize::new(0);
    thread_local! {
        static OWN: Cell<usize> = Cell::new(NEXT.fetch_add(1, Ordering::Relaxed) % TABLES);
    }
    OWN.with(Cell::get)
}

#[cfg(test)]
mod tests;
