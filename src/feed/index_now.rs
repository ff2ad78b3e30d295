//! `IndexNow` for a site: which URLs are due, in which batch, and what an answer means.
//! Pure: `now` is an argument; the requests are elsewhere.

use super::{
    cursor::Toc,
    item::{Item, ItemId},
    moment::Moment,
    record::{FeedNo, FeedRecord},
    site_page::page_of,
    stamp::Stamp,
};
use crate::secret::Secret;
use sha2::{Digest as _, Sha256};
use std::collections::{BTreeMap, HashMap, HashSet};
use url::Url;

#[cfg(test)]
mod tests;

/// URLs of one batch at most.
pub const BATCH_URLS_MAX: usize = 10_000;
/// Bytes of the URLs of one batch at most.
const BATCH_BYTES_MAX: usize = 4 << 20;
/// Seconds between two pings of one URL at least.
pub const URL_PAUSE_SECS: u64 = 600;
/// Seconds between two batches of one site at least.
pub const BATCH_GAP_SECS: u64 = 10;
/// URLs of one site at most within [`URL_PAUSE_SECS`]: each of them has to be remembered.
const PAUSED_MAX: usize = 50_000;
/// Seconds for which a ping is remembered beyond its pause, so that another feed with the same post
/// pings its URL no second time.
const REMEMBERED_SECS: u64 = 86_400;
/// Pings at most that are remembered beyond their pauses.
const REMEMBERED_MAX: usize = 20_000;
/// Seconds until the first repetition of a batch that an engine did not take, if it names none.
const RETRY_FIRST_SECS: u64 = 60;
/// The longest wait for a repetition that is doubled each time, seconds.
const RETRY_MAX_SECS: u64 = 6 * 3600;
/// The longest `Retry-After` that is waited for, seconds.
const RETRY_AFTER_MAX_SECS: u64 = 86_400;

/// The state of `IndexNow` for a site. Kept in the store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IndexNow {
    /// The key of the site, by which an engine knows that we may speak for its host.
    pub key: Secret,
    /// The start of use: nothing older is sent.
    pub since: Stamp,
    /// The T up to which each feed was sent.
    pub cursors: Vec<(FeedNo, Stamp)>,
    /// URLs that were sent last, oldest first.
    pub pings: Vec<UrlPing>,
    /// Items before the cursors that wait for the pause of their URLs.
    pub postponed: Vec<PostponedPage>,
    /// Time before which nothing is sent.
    pub next_at: Stamp,
    /// Requests in a row that failed.
    pub failures: u32,
    /// The fault of the last request, if it had one.
    pub fault: Option<IndexNowFault>,
    /// Number of URLs that an engine has accepted.
    pub accepted: u64,
    /// Time of the last batch that an engine has accepted.
    pub accepted_at: Option<Stamp>,
}

/// A ping of a URL. The URL itself is not kept: what is forgotten leaves no trace here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UrlPing {
    /// The URL.
    pub url: UrlHash,
    /// Time of the ping.
    pub at: Stamp,
    /// True if it was a ping of a deletion.
    pub is_gone: bool,
}

/// The first 8 bytes of SHA-256 of a URL.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct UrlHash(pub [u8; 8]);

impl UrlHash {
    fn of(url: &str) -> Self {
        let mut short = [0; 8];
        short.copy_from_slice(&Sha256::digest(url)[..8]);
        Self(short)
    }
}

/// An item that waits for the pause of its URL.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PostponedPage {
    /// Its feed.
    pub feed: FeedNo,
    /// The item.
    pub item: ItemId,
    /// The end of the pause.
    pub until: Stamp,
}

/// A fault of `IndexNow` for a site.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IndexNowFault {
    /// The kind of the fault.
    pub kind: IndexNowFaultKind,
    /// Since when.
    pub since: Stamp,
    /// The answer in words, without the key.
    pub why: String,
}

/// The kind of a fault of `IndexNow`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IndexNowFaultKind {
    /// The key file cannot be read at its address.
    KeyUnread,
    /// The engine takes nothing now. The batch is sent again.
    Failing,
    /// The engine refused a batch (400, 422), which is dropped.
    Refused,
    /// The engine does not take the key (403). Nothing is sent until the next start.
    Forbidden,
}

/// The answer to a batch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EngineAnswer {
    /// 200, 202.
    Accepted,
    /// 400, 422.
    Refused {
        /// In words.
        why: String,
    },
    /// 403.
    Forbidden {
        /// In words.
        why: String,
    },
    /// 429, 5xx, no answer, and whatever else says nothing of the batch.
    Later {
        /// In words.
        why: String,
        /// Seconds after which the engine wants to be asked again.
        retry_after_secs: Option<u64>,
    },
    /// Nothing was sent, because the key file cannot be read.
    KeyUnread {
        /// In words.
        why: String,
    },
}

/// An item that may be news for an engine.
#[derive(Clone, Copy, Debug)]
pub struct OfferedItem<'a> {
    /// Its feed.
    pub feed: FeedNo,
    /// The item.
    pub item: &'a Item,
    /// The root of the site.
    pub root: &'a Url,
    /// False if nobody is told what is gone of the feed.
    pub announces_deletions: bool,
}

/// A batch that is being filled, and what it settles.
#[derive(Clone, Debug)]
pub struct UrlBatch {
    /// The URLs, each once.
    pub urls: Vec<String>,
    now: Stamp,
    since: Stamp,
    /// The last ping of each URL that is remembered.
    pings: HashMap<UrlHash, UrlPing>,
    /// URLs that may be sent now.
    room: usize,
    bytes: usize,
    held: HashMap<UrlHash, bool>,
    reached: BTreeMap<FeedNo, Stamp>,
    settled: HashSet<(FeedNo, ItemId)>,
    postponed: Vec<PostponedPage>,
}

impl IndexNow {
    /// The start of use with this key.
    pub fn begin(key: Secret, now: Stamp) -> Self {
        Self {
            key,
            since: now,
            cursors: Vec::new(),
            pings: Vec::new(),
            postponed: Vec::new(),
            next_at: Stamp::ZERO,
            failures: 0,
            fault: None,
            accepted: 0,
            accepted_at: None,
        }
    }

    /// The T up to which a feed was sent; `None` for a feed that is new here.
    pub fn cursor(&self, feed: FeedNo) -> Option<Stamp> {
        let mut cursors = self.cursors.iter();
        cursors.find(|(known, _)| *known == feed).map(|(_, t)| *t)
    }

    // Decides: From where on are changes of a feed sent to search engines?
    /// Takes up a feed that is new here: behind its first document, if that came after the start of
    /// use, else at its present end. What it has before is history.
    pub fn take_up(&mut self, record: &FeedRecord) {
        if self.cursor(record.no).is_some() {
            return;
        }
        let first_cursor = record.completeness.first_cursor.as_deref();
        let first_t = first_cursor
            .and_then(Toc::parse)
            .and_then(|toc| toc.t.stamp());
        let from = first_t.filter(|first_t| *first_t >= self.since);
        self.cursors
            .push((record.no, from.unwrap_or(record.last_t)));
    }

    /// The items whose pauses are over.
    pub fn due(&self, now: Stamp) -> Vec<PostponedPage> {
        let due = |page: &&PostponedPage| page.until <= now;
        self.postponed.iter().filter(due).copied().collect()
    }

    /// A batch without URLs yet.
    pub fn batch(&self, now: Stamp) -> UrlBatch {
        let in_pause = self.pings.iter().filter(|ping| is_in_pause(ping, now));
        let room = PAUSED_MAX.saturating_sub(in_pause.count());
        UrlBatch {
            urls: Vec::new(),
            now,
            since: self.since,
            pings: self.pings.iter().map(|ping| (ping.url, *ping)).collect(),
            room: room.min(BATCH_URLS_MAX),
            bytes: 0,
            held: HashMap::new(),
            reached: BTreeMap::new(),
            settled: HashSet::new(),
            postponed: Vec::new(),
        }
    }

    /// Settles a batch without URLs. True if that changes anything.
    pub fn passed(&mut self, batch: &UrlBatch, now: Stamp) -> bool {
        debug_assert!(batch.urls.is_empty(), "these URLs were not sent");
        let before = (self.cursors.clone(), self.postponed.clone());
        self.settle(batch, now);
        before != (self.cursors.clone(), self.postponed.clone())
    }

    // Decides: What becomes of a batch that search engines have answered?
    /// Takes in the answer to a batch.
    pub fn answered(&mut self, batch: &UrlBatch, answer: EngineAnswer, now: Stamp) {
        let (kind, why, retry_after_secs) = match answer {
            EngineAnswer::Accepted => {
                self.settle(batch, now);
                self.accepted += batch.urls.len() as u64;
                self.accepted_at = Some(now);
                (self.failures, self.fault) = (0, None);
                self.next_at = now.plus_secs(BATCH_GAP_SECS);
                return;
            }
            EngineAnswer::Refused { why } => {
                self.settle(batch, now);
                self.failures = 0;
                self.next_at = now.plus_secs(BATCH_GAP_SECS);
                self.note_fault(IndexNowFaultKind::Refused, why, now);
                return;
            }
            EngineAnswer::Forbidden { why } => {
                self.note_fault(IndexNowFaultKind::Forbidden, why, now);
                return;
            }
            EngineAnswer::KeyUnread { why } => (IndexNowFaultKind::KeyUnread, why, None),
            EngineAnswer::Later {
                why,
                retry_after_secs,
            } => (IndexNowFaultKind::Failing, why, retry_after_secs),
        };
        let doubled = RETRY_FIRST_SECS << self.failures.min(16);
        let wait_secs = match retry_after_secs {
            Some(secs) => secs.clamp(BATCH_GAP_SECS, RETRY_AFTER_MAX_SECS),
            None => doubled.min(RETRY_MAX_SECS),
        };
        self.failures = self.failures.saturating_add(1);
        self.next_at = now.plus_secs(wait_secs);
        self.note_fault(kind, why, now);
    }

    fn note_fault(&mut self, kind: IndexNowFaultKind, why: String, now: Stamp) {
        let before = self.fault.as_ref().filter(|fault| fault.kind == kind);
        let since = before.map_or(now, |fault| fault.since);
        self.fault = Some(IndexNowFault { kind, since, why });
    }

    /// Moves the cursors behind a batch, and remembers its URLs.
    fn settle(&mut self, batch: &UrlBatch, now: Stamp) {
        for (feed, t) in &batch.reached {
            match self.cursors.iter_mut().find(|(known, _)| known == feed) {
                Some((_, cursor)) => *cursor = (*cursor).max(*t),
                None => self.cursors.push((*feed, *t)),
            }
        }
        self.postponed
            .retain(|page| !batch.settled.contains(&(page.feed, page.item)));
        let waiting = self.postponed.iter().map(|page| (page.feed, page.item));
        let mut waiting: HashSet<(FeedNo, ItemId)> = waiting.collect();
        let new = batch.postponed.iter();
        self.postponed
            .extend(new.filter(|page| waiting.insert((page.feed, page.item))));
        let is_kept = |ping: &UrlPing| {
            !batch.held.contains_key(&ping.url) && now.secs_since(ping.at) < REMEMBERED_SECS
        };
        self.pings.retain(is_kept);
        let new = batch.held.iter().map(|(url, is_gone)| UrlPing {
            url: *url,
            at: now,
            is_gone: *is_gone,
        });
        self.pings.extend(new);
        self.pings.sort_by_key(|ping| (ping.at, ping.url));
        let too_many = self.pings.len().saturating_sub(REMEMBERED_MAX);
        let rested = self
            .pings
            .iter()
            .take_while(|ping| !is_in_pause(ping, now))
            .count();
        self.pings.drain(..too_many.min(rested));
    }
}

impl UrlBatch {
    /// Offers an item behind the cursor of its feed, in the order of T. False if the batch is full:
    /// the item belongs to the next one.
    pub fn offer(&mut self, offered: OfferedItem<'_>) -> bool {
        let has_room = match self.news_of(offered) {
            Some(url) => self.add(offered, url),
            None => true,
        };
        if has_room {
            self.reached.insert(offered.feed, offered.item.modified);
        }
        has_room
    }

    /// Offers an item whose pause is over; `None` for one that is there no more. False if the batch
    /// is full.
    pub fn offer_due(&mut self, page: PostponedPage, offered: Option<OfferedItem<'_>>) -> bool {
        let url = offered.and_then(|offered| Some((offered, url_of(offered)?)));
        let has_room = match url {
            Some((offered, url)) => self.add(offered, url),
            None => true,
        };
        if has_room {
            self.settled.insert((page.feed, page.item));
        }
        has_room
    }

    // Decides: Which changes of posts are sent to search engines?
    /// The URL of an item, if its newest version is news: it is not imported as history, and no other
    /// feed of the site has brought the same post before.
    fn news_of(&self, offered: OfferedItem<'_>) -> Option<String> {
        let url = url_of(offered)?;
        let item = offered.item;
        let is_first_version = item.modified == item.created && !item.is_gone();
        if !is_first_version {
            return Some(url);
        }
        let is_history = item.listed() < Moment::from(self.since);
        let last = self.pings.get(&UrlHash::of(&url));
        let is_known = last.is_some_and(|ping| !ping.is_gone);
        (!is_history && !is_known).then_some(url)
    }

    // Decides: May a URL be sent to search engines now?
    /// Adds a URL, unless its pause lasts. False if there is no room.
    fn add(&mut self, offered: OfferedItem<'_>, url: String) -> bool {
        let hash = UrlHash::of(&url);
        let is_gone = offered.item.is_gone();
        if let Some(held) = self.held.get_mut(&hash) {
            // One of several posts on a page may be gone while the page lives.
            *held &= is_gone;
            return true;
        }
        // A clock that was set back does not make a pause longer.
        let pause_of = |ping: &UrlPing| ping.at.min(self.now).plus_secs(URL_PAUSE_SECS);
        let pause = self.pings.get(&hash).map(pause_of);
        if let Some(until) = pause.filter(|until| *until > self.now) {
            self.postponed.push(PostponedPage {
                feed: offered.feed,
                item: offered.item.id,
                until,
            });
            return true;
        }
        if self.urls.len() >= self.room || self.bytes + url.len() > BATCH_BYTES_MAX {
            return false;
        }
        self.bytes += url.len();
        self.held.insert(hash, is_gone);
        self.urls.push(url);
        true
    }
}

fn is_in_pause(ping: &UrlPing, now: Stamp) -> bool {
    now < ping.at.plus_secs(URL_PAUSE_SECS)
}

/// The URL of an item, if engines may be told of its newest version.
fn url_of(offered: OfferedItem<'_>) -> Option<String> {
    if offered.item.is_gone() && !offered.announces_deletions {
        return None;
    }
    page_of(offered.item, offered.root)
}
