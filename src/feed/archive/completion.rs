//! Completion of a walk whose page cannot be had: it asks again, goes another way, or ends; not how it goes from a page
//! that is there to the next.

use super::{
    ArchiveWalk, History, WalkPhase, WalkRules, WalkedDocument,
    strategy::{CountedPages, Strategy},
};
use crate::feed::{last_walk::LastWalk, stamp::Stamp};

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

    /// 404, 410, 403.
    pub(super) fn missing(&mut self, status: u16, now: Stamp) {
        let follows_links = self.way().is_some_and(Strategy::follows_links);
        let is_counted = matches!(self.way(), Some(Strategy::CountedPages(_)));
        let is_at_page = matches!(self.phase, WalkPhase::At(_) | WalkPhase::Paused { .. });
        let why = format!("a page of the archives is missing ({status})");
        if is_counted && is_at_page && matches!(status, 404 | 410) {
            if self.on_way > 0 {
                // What follows the last page.
                return self.end(History::Complete);
            }
            // Without a first one nobody knows whether pages are counted here at all, but of software that counts them.
            self.alone |=
                self.fits && status == 404 && self.way().is_some_and(Strategy::asks_for_the_second_page);
            self.give_way(None);
        } else if status == 410 || !follows_links {
            self.refuse(why);
        } else {
            self.again(why, None, now);
        }
    }

    /// Asks for the same page later: soon, then once a day, then never.
    pub(super) fn again(&mut self, why: String, retry_after_secs: Option<u64>, now: Stamp) {
        let asked = retry_after_secs.unwrap_or(0);
        if let Some(wait_secs) = AGAIN_SECS.get(usize::from(self.tries)) {
            self.tries += 1;
            self.next_at = now.plus_secs((*wait_secs).max(asked));
            return;
        }
        let (url, rounds) = match &self.phase {
            WalkPhase::At(url) => (url.clone(), 0),
            WalkPhase::Paused { url, rounds, .. } => (url.clone(), *rounds),
            _ => return self.refuse(why),
        };
        if rounds >= ROUNDS_MAX {
            return self.refuse(why);
        }
        self.tries = 0;
        self.next_at = now.plus_secs(PAUSE_SECS.max(asked));
        self.phase = WalkPhase::Paused { url, why, rounds: rounds + 1 };
    }

    /// A page that will not be had: the way was wrong from the start, or ends here.
    pub(super) fn refuse(&mut self, why: String) {
        match self.phase {
            // Looking twice was a courtesy; the pages themselves are all there.
            WalkPhase::Recount | WalkPhase::Boundary => self.phase = WalkPhase::Done(History::Complete),
            _ if self.on_way == 0 => self.give_way(Some(why)),
            _ => self.end(History::Partial(why)),
        }
    }

    /// Tries the next rung of the ladder.
    pub(super) fn give_way(&mut self, why: Option<String>) {
        self.flaw = self.flaw.take().or(why);
        if !self.ways.is_empty() {
            self.ways.remove(0);
        }
        (self.on_way, self.barren, self.tries) = (0, 0, 0);
        self.phase = match self.ways.first() {
            Some((_, first)) => WalkPhase::At(first.clone()),
            None => WalkPhase::Done(match self.flaw.clone() {
                Some(why) => History::Partial(why),
                None if self.alone => History::Complete,
                None => History::Unknown,
            }),
        };
    }

    /// History by a walk that came to the last page.
    pub(super) fn whole(&self) -> History {
        if self.damaged {
            return History::Partial("a page of its archives is damaged".to_owned());
        }
        History::Complete
    }

    pub(super) fn end(&mut self, history: History) {
        let history = if history == History::Complete { self.whole() } else { history };
        let is_counted = self
            .ways
            .first()
            .is_some_and(|(way, _)| matches!(way, Strategy::CountedPages(CountedPages { .. })));
        // CountedPages pages shift when the live document moves.
        self.phase = if is_counted && history == History::Complete {
            WalkPhase::Recount
        } else {
            WalkPhase::Done(history)
        };
    }
}
