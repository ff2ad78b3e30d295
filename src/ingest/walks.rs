//! Archive walks, a request a step: the first import goes on, and archives are walked again. The
//! walk itself is `feed::archive`; the time of its steps is the worker's.

use super::{Context, FeedSpec, Upstream};
use crate::feed::{
    archive::{ArchiveWalk, LastWalk, WalkRules},
    record::FeedRecord,
    schedule::PollState,
    stamp::Stamp,
};

mod again;

mod late;

mod page;

mod silence;

mod step;

/// One step of an archive walk of a feed.
pub struct ArchiveReader<'a> {
    context: &'a Context,
    upstream: &'a Upstream,
    feed: &'a FeedSpec,
    state: &'a PollState,
}

/// Result of one step of a walk.
#[derive(Debug)]
pub struct Stepped {
    /// The walk from now on; `None` when nothing is left to do.
    pub walk: Option<ArchiveWalk>,
    /// Time at which it goes on, or the next one begins; `None`: never.
    pub next_at: Option<Stamp>,
    /// True when the live document is to be read now, for the first commit.
    pub wants_poll: bool,
    /// A pause of a host, and its end.
    pub host_pause: Option<(String, Stamp)>,
    /// True when the step failed on our side. It is done again at `next_at` or later: how long it
    /// rests depends on the failures before it, which the poller counts.
    pub failed: bool,
}

impl Stepped {
    /// A step that left no walk behind.
    fn without_walk(next_at: Option<Stamp>) -> Self {
        Self {
            walk: None,
            next_at,
            wants_poll: false,
            host_pause: None,
            failed: false,
        }
    }
}

/// Seconds between two pages of a walk that was done before at least: as for permalink checks, one
/// a minute (POLLING 2.3).
const AGAIN_PAGE_GAP_SECS_MIN: u64 = 60;

impl<'a> ArchiveReader<'a> {
    /// A step for this feed.
    pub fn new(
        context: &'a Context,
        upstream: &'a Upstream,
        feed: &'a FeedSpec,
        state: &'a PollState,
    ) -> Self {
        Self {
            context,
            upstream,
            feed,
            state,
        }
    }

    /// Limits of a walk: nobody waits for one that was done before.
    fn rules(&self, walk: &ArchiveWalk) -> WalkRules {
        let rules = self.feed.archive_rules();
        let gap_secs = if walk.is_repeated() {
            AGAIN_PAGE_GAP_SECS_MIN
        } else {
            0
        };
        WalkRules {
            page_gap_secs: rules.page_gap_secs.max(gap_secs),
            ..rules
        }
    }
}

/// True when the end of a walk is committed.
pub fn is_settled(walk: &ArchiveWalk, record: &FeedRecord) -> bool {
    let of_it = |walked: &LastWalk| walked.began_at == walk.started_at;
    walk.is_done() && record.is_ready() && record.completeness.last_walk.as_ref().is_some_and(of_it)
}
