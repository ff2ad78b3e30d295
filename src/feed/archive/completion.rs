//! Completion of a walk: retries of a page that cannot be had, the change to the next strategy, and
//! the end with its reason; not what proves the end.

use super::{ArchiveWalk, WalkPhase, WalkRules, WalkedDocument, strategy::Strategy};
use crate::{
    history::{History, PartialReason},
    last_walk::LastWalk,
    stamp::Stamp,
};

/// Result of a walk that has stopped for good.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Completion {
    /// The first item of the feed was reached.
    Complete,
    /// No strategy led anywhere, which says nothing of the history.
    Unknown,
    /// Entries may be missing, for this reason.
    Partial(PartialReason),
}

/// A request that failed, and is sent again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PageRetry {
    /// Reason of the last failure.
    pub reason: PartialReason,
    /// Requests that failed, since the last pause.
    pub tries: u8,
    /// Pauses of a day so far; from the first one on nobody waits for the walk.
    pub rounds: u8,
}

impl From<Completion> for History {
    fn from(completion: Completion) -> Self {
        match completion {
            Completion::Complete => Self::Complete,
            Completion::Unknown => Self::Unknown,
            Completion::Partial(reason) => Self::Partial(reason),
        }
    }
}

/// Seconds until a page that could not be read is asked for again, the first, second and third
/// time.
pub(super) const AGAIN_SECS: [u64; 3] = [60, 600, 3600];

/// Seconds until it is then asked for once more (H-12: stop at the gap, keep what there is, retry
/// later).
pub(super) const PAUSE_SECS: u64 = 86_400;

/// Number of such pauses before the gap counts as final.
const ROUNDS_MAX: u8 = 7;

impl LastWalk {
    /// Record of a walk that is at its end.
    pub fn of(walk: &ArchiveWalk, now: Stamp) -> Self {
        let found = walk.history();
        let proof = match found {
            History::Complete => walk.proof().cloned(),
            _ => None,
        };
        Self {
            began_at: walk.started_at,
            ended_at: now,
            pages: walk.pages(),
            found,
            missed: 0,
            remark: None,
            proof,
        }
    }
}

impl ArchiveWalk {
    /// True when a page may come whole the second time: it is damaged, or lacks every entry.
    /// Archives that nobody ever mended are not asked for twice, all of them: after the first one
    /// the walk is not whole anyhow.
    pub(super) fn asks_page_again(&self, seen: &WalkedDocument<'_>) -> bool {
        let is_emptied =
            seen.keys.is_empty() && self.strategy().is_some_and(Strategy::follows_links);
        let may_be_whole = seen.damaged && !self.findings.damaged;
        self.retry.is_none() && (may_be_whole || is_emptied && self.findings.lacks.is_none())
    }

    /// Asks for such a page the second time.
    pub(super) fn ask_page_again(&mut self, rules: &WalkRules, now: Stamp) {
        self.retry = Some(PageRetry {
            reason: PartialReason::DamagedPage,
            tries: 1,
            rounds: 0,
        });
        self.next_at = now.plus_secs(AGAIN_SECS[0].max(rules.page_gap_secs));
    }

    /// True when the request that has just failed was the last before a pause.
    pub(super) fn is_last_try(&self) -> bool {
        self.retry
            .as_ref()
            .is_some_and(|retry| usize::from(retry.tries) >= AGAIN_SECS.len())
    }

    // Decides: When is a failed page of archives asked for again?
    /// Asks for the same page later: soon, then once a day. False, and nothing is done, when that
    /// was done for long enough.
    pub(super) fn retry_page(
        &mut self,
        reason: &PartialReason,
        retry_after_secs: Option<u64>,
        now: Stamp,
    ) -> bool {
        let asked = retry_after_secs.unwrap_or(0);
        let (tries, rounds) = self
            .retry
            .as_ref()
            .map_or((0, 0), |retry| (retry.tries, retry.rounds));
        if let Some(wait_secs) = AGAIN_SECS.get(usize::from(tries)) {
            self.retry = Some(PageRetry {
                reason: reason.clone(),
                tries: tries + 1,
                rounds,
            });
            self.next_at = now.plus_secs((*wait_secs).max(asked));
            return true;
        }
        if rounds >= ROUNDS_MAX {
            return false;
        }
        self.pause_page(reason.clone(), now);
        self.next_at = now.plus_secs(PAUSE_SECS.max(asked));
        true
    }

    /// Asks for the same page tomorrow.
    pub(super) fn pause_page(&mut self, reason: PartialReason, now: Stamp) {
        let rounds = self
            .retry
            .as_ref()
            .map_or(0, |retry| retry.rounds)
            .saturating_add(1);
        self.retry = Some(PageRetry {
            reason,
            tries: 0,
            rounds,
        });
        self.next_at = now.plus_secs(PAUSE_SECS);
    }

    /// Asks for a page on the way later, or gives it up: a way that fails at its first page makes
    /// room for the next one before anybody waits for days.
    pub(super) fn retry_or_give_up_page(
        &mut self,
        reason: PartialReason,
        retry_after_secs: Option<u64>,
        now: Stamp,
    ) {
        let is_wrong_way = self.counts.on_way == 0 && self.ways.len() > 1 && self.is_last_try();
        if is_wrong_way || !self.retry_page(&reason, retry_after_secs, now) {
            self.give_up_page(reason);
        }
    }

    /// Gives up a page: the strategy was wrong from the start, or ends here.
    pub(super) fn give_up_page(&mut self, reason: PartialReason) {
        if self.counts.on_way == 0 {
            self.begin_next_strategy(Some(reason));
        } else {
            self.end_way_partial(reason);
        }
    }

    /// Ends a way that does not show everything: the next one may.
    pub(super) fn end_way_partial(&mut self, reason: PartialReason) {
        if self.ways.len() > 1 {
            self.begin_next_strategy(Some(reason));
        } else {
            self.end_walk(Completion::Partial(reason));
        }
    }

    /// Drops the current strategy for the next one; ends the walk after the last.
    pub(super) fn begin_next_strategy(&mut self, reason: Option<PartialReason>) {
        self.findings.flaw = self.findings.flaw.take().or(reason);
        if !self.ways.is_empty() {
            self.ways.remove(0);
        }
        self.retry = None;
        (self.findings.lacks, self.findings.marked) = (None, false);
        self.findings.holes.clear();
        (self.counts.on_way, self.counts.barren, self.counts.backs) = (0, 0, 0);
        self.counts.way_from = self.counts.kept;
        self.trail.leave_way();
        self.phase = match self.ways.first() {
            Some((_, first)) => WalkPhase::At(first.clone()),
            None => WalkPhase::Done(match self.findings.flaw.clone() {
                Some(reason) => Completion::Partial(reason),
                None => Completion::Unknown,
            }),
        };
    }

    /// Ends the walk.
    pub(super) fn end_walk(&mut self, completion: Completion) {
        self.retry = None;
        self.phase = WalkPhase::Done(match completion {
            Completion::Complete if self.findings.damaged => {
                Completion::Partial(PartialReason::DamagedPage)
            }
            completion => completion,
        });
    }
}
