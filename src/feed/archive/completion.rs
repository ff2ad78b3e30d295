//! Completion of a walk: retries of a page that cannot be had, the change to the next strategy, and the end with its reason;
//! not the step from a good page to the next.

use super::{ArchiveWalk, WalkPhase, WalkRules, WalkedDocument, strategy::Strategy};
use crate::feed::{
    history::{History, PartialReason},
    last_walk::LastWalk,
    stamp::Stamp,
};

/// Result of a walk that has stopped for good.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Completion {
    /// The first item of the feed was reached.
    Complete,
    /// No strategy led anywhere, which says nothing of the history.
    Unknown,
    /// Entries may be missing, for this reason.
    Partial(PartialReason),
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

/// Seconds until a page that could not be read is asked for again, the first, second and third time.
const AGAIN_SECS: [u64; 3] = [60, 600, 3600];

/// Seconds until it is then asked for once more (H-12: stop at the gap, keep what there is, retry later).
pub(super) const PAUSE_SECS: u64 = 86_400;

/// Number of such pauses before the gap counts as final.
const ROUNDS_MAX: u8 = 7;

impl LastWalk {
    /// Record of a walk that is at its end.
    pub fn of(walk: &ArchiveWalk, now: Stamp) -> Self {
        let (began_at, pages, found) = (walk.started_at, walk.pages, walk.history());
        Self { began_at, ended_at: now, pages, found, missed: 0, remark: None }
    }
}

impl ArchiveWalk {
    /// True when a damaged page may come whole the second time. Archives that nobody ever mended are not asked for twice, all of
    /// them: after the first one the walk is not whole anyhow.
    pub(super) fn asks_again_for(&self, seen: &WalkedDocument<'_>) -> bool {
        let is_at_page = matches!(self.phase, WalkPhase::At(_) | WalkPhase::Paused { .. });
        seen.damaged && !self.damaged && self.tries == 0 && is_at_page
    }

    /// Asks for a damaged page the second time.
    pub(super) fn ask_once_more(&mut self, rules: &WalkRules, now: Stamp) {
        self.tries = 1;
        self.next_at = now.plus_secs(AGAIN_SECS[0].max(rules.page_gap_secs));
    }

    /// Takes in a 404, 410 or 403.
    pub(super) fn missing(&mut self, status: u16, now: Stamp) {
        let follows_links = self.strategy().is_some_and(Strategy::follows_links);
        let is_at_page = matches!(self.phase, WalkPhase::At(_) | WalkPhase::Paused { .. });
        let reason = PartialReason::MissingPage { status };
        if self.counts_pages() && is_at_page && matches!(status, 404 | 410) {
            if self.on_way > 0 {
                // What follows the last page.
                return self.end(Completion::Complete);
            }
            // Without a first one nobody knows whether pages are counted here at all, but of software that counts them.
            self.alone |=
                self.fits && status == 404 && self.strategy().is_some_and(Strategy::asks_for_the_second_page);
            self.next_strategy(None);
        } else if status == 410 || !follows_links {
            self.refuse(reason);
        } else {
            self.again(reason, None, now);
        }
    }

    /// Asks for the same page later: soon, then once a day, then never.
    pub(super) fn again(&mut self, reason: PartialReason, retry_after_secs: Option<u64>, now: Stamp) {
        let asked = retry_after_secs.unwrap_or(0);
        if let Some(wait_secs) = AGAIN_SECS.get(usize::from(self.tries)) {
            self.tries += 1;
            self.next_at = now.plus_secs((*wait_secs).max(asked));
            return;
        }
        let (url, rounds) = match &self.phase {
            WalkPhase::At(url) => (url.clone(), 0),
            WalkPhase::Paused { url, rounds, .. } => (url.clone(), *rounds),
            _ => return self.refuse(reason),
        };
        if rounds >= ROUNDS_MAX {
            return self.refuse(reason);
        }
        self.tries = 0;
        self.next_at = now.plus_secs(PAUSE_SECS.max(asked));
        self.phase = WalkPhase::Paused { url, reason, rounds: rounds + 1 };
    }

    /// Gives up a page: the strategy was wrong from the start, or ends here.
    pub(super) fn refuse(&mut self, reason: PartialReason) {
        match self.phase {
            // The second look was a precaution; the pages themselves are all there.
            WalkPhase::Recount | WalkPhase::Boundary => self.phase = WalkPhase::Done(Completion::Complete),
            _ if self.on_way == 0 => self.next_strategy(Some(reason)),
            _ => self.end(Completion::Partial(reason)),
        }
    }

    /// Drops the current strategy for the next one; ends the walk after the last.
    pub(super) fn next_strategy(&mut self, reason: Option<PartialReason>) {
        self.flaw = self.flaw.take().or(reason);
        if !self.ways.is_empty() {
            self.ways.remove(0);
        }
        (self.on_way, self.barren, self.tries) = (0, 0, 0);
        self.phase = match self.ways.first() {
            Some((_, first)) => WalkPhase::At(first.clone()),
            None => WalkPhase::Done(match self.flaw.clone() {
                Some(reason) => Completion::Partial(reason),
                None if self.alone => Completion::Complete,
                None => Completion::Unknown,
            }),
        };
    }

    /// Completion of a walk that came to the last page.
    pub(super) fn at_last_page(&self) -> Completion {
        if self.damaged { Completion::Partial(PartialReason::DamagedPage) } else { Completion::Complete }
    }

    /// Ends the walk. Counted pages shift when the live document moves, so a complete walk over them looks at it once more.
    pub(super) fn end(&mut self, completion: Completion) {
        let completion = if completion == Completion::Complete { self.at_last_page() } else { completion };
        self.phase = if self.counts_pages() && completion == Completion::Complete {
            WalkPhase::Recount
        } else {
            WalkPhase::Done(completion)
        };
    }

    fn counts_pages(&self) -> bool {
        matches!(self.strategy(), Some(Strategy::CountedPages(_)))
    }
}
