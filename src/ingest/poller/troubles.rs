//! The feeds that fail or have moved, indexed as polls end: nobody looks through those that are well.

use crate::{
    events::{FeedTrouble, LASTING_POLLS},
    feed::{
        record::FeedNo,
        schedule::{PollState, Whose},
        stamp::Stamp,
    },
    ingest::FeedSpec,
    locks::lock,
};
use std::{
    collections::{BTreeMap, HashMap, HashSet},
    sync::{Arc, Mutex},
};
use url::Url;

/// The feeds that fail or have moved. Cheap to clone.
#[derive(Clone, Debug, Default)]
pub struct Troubles(Arc<Mutex<TroubledFeeds>>);

#[derive(Debug, Default)]
struct TroubledFeeds {
    feeds: BTreeMap<FeedNo, Arc<FeedTrouble>>,
    /// Number of changes so far.
    changes: u64,
}

impl Troubles {
    /// Number of changes so far: while it is the same, so are the feeds.
    pub fn changes(&self) -> u64 {
        lock(&self.0).changes
    }

    /// All of them.
    pub fn all(&self) -> Vec<Arc<FeedTrouble>> {
        lock(&self.0).feeds.values().cloned().collect()
    }

    /// Numbers of those that fail.
    pub fn failing_feeds(&self) -> HashSet<FeedNo> {
        let troubled = lock(&self.0);
        let failing = troubled.feeds.iter();
        let failing = failing.filter(|(_, trouble)| trouble.fault.is_some());
        failing.map(|(no, _)| *no).collect()
    }

    /// Number of those that fail, by whose fault that is.
    pub(super) fn failing(&self) -> HashMap<Whose, usize> {
        let mut failing = HashMap::new();
        for trouble in lock(&self.0).feeds.values() {
            if let Some(fault) = &trouble.fault {
                *failing.entry(fault.kind.whose()).or_default() += 1;
            }
        }
        failing
    }

    /// Notes the state of a feed after a poll.
    pub(super) fn note(&self, feed: FeedNo, spec: Option<&FeedSpec>, state: &PollState) {
        let trouble = spec.and_then(|spec| trouble(spec, state));
        let mut troubled = lock(&self.0);
        match trouble {
            Some(trouble) => {
                let held = troubled.feeds.get(&feed);
                if held.is_none_or(|held| **held != trouble) {
                    troubled.feeds.insert(feed, Arc::new(trouble));
                    troubled.changes += 1;
                }
            }
            None => troubled.remove(feed),
        }
    }

    /// Forgets a feed.
    pub(super) fn forget(&self, feed: FeedNo) {
        lock(&self.0).remove(feed);
    }
}

impl TroubledFeeds {
    fn remove(&mut self, feed: FeedNo) {
        if self.feeds.remove(&feed).is_some() {
            self.changes += 1;
        }
    }
}

/// The trouble of a feed in this state; `None` for one that is well.
fn trouble(spec: &FeedSpec, state: &PollState) -> Option<FeedTrouble> {
    let health = &state.health;
    let polled_at = state.timetable.polled_at.unwrap_or_default();
    // A redirect of a page that names its feed is none of the feed.
    let redirected = health.moved.as_ref().filter(|_| state.named.is_none());
    let redirected = redirected.map(|moved| (&moved.url, moved.since));
    let announced = health
        .announced
        .as_ref()
        .map(|moved| (&moved.url, moved.since));
    let agrees = |moved: &(&String, Stamp)| polled_at.secs_since(moved.1) > 0;
    let moved = redirected.or(announced).filter(agrees);
    if health.fault.is_none() && moved.is_none() {
        return None;
    }
    let shown = |(url, since): (&String, Stamp)| (crate::secret::public_text(url), since);
    Some(FeedTrouble {
        feed: spec.name.clone(),
        host: host(&spec.url),
        // More makes no difference, and each poll would be a change.
        failures: health.failures.min(LASTING_POLLS),
        fault: health.fault.clone(),
        moved: moved.map(shown),
    })
}

/// The host of a URL, with the port where that is not the usual one.
fn host(url: &Url) -> String {
    let host = url.host_str().unwrap_or_default();
    url.port()
        .map_or_else(|| host.to_owned(), |port| format!("{host}:{port}"))
}
