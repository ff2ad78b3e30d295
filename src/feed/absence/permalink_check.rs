//! Permalink check: the request times for the page of a suspect and the meaning of its answers
//! (POLLING 2.3). Asking is done elsewhere.

use super::ControlFinding;
use crate::stamp::Stamp;
use serde::{Deserialize, Serialize};

/// Result of a request for an item's own page.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum CheckResult {
    /// 410: its publisher deleted it, and says so.
    Gone,
    /// 404.
    NotFound,
    /// The page is there and holds the item.
    Shown,
    /// A page without the item: a front page, or one that says "not found" with 200. It proves
    /// nothing.
    Another,
    /// It leads to another host, where nobody asks.
    Elsewhere,
    /// No answer, or one that says nothing of the page.
    Nothing,
    /// Nobody may ask: the item has no page at its feed's own origin.
    NoPage,
    /// An answer that proves nothing, because the page of a post that is in the feed cannot be told
    /// apart from it.
    Uninformative(ControlFinding),
}

impl CheckResult {
    /// True for a silence that may pass: no answer, or a site that is down or refuses robots for
    /// now.
    fn may_pass(self) -> bool {
        matches!(
            self,
            Self::Nothing
                | Self::Uninformative(
                    ControlFinding::Refused | ControlFinding::NotFound | ControlFinding::Gone
                )
        )
    }

    /// True when the answer speaks for a deletion: the page is gone, not found, or another one.
    pub(super) fn is_against(self) -> bool {
        matches!(self, Self::Gone | Self::NotFound | Self::Another)
    }
}

/// State of the permalink check of a suspect.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PermalinkCheck {
    /// The next request.
    pub next: NextCheck,
    /// The last answer, and when it came.
    pub last: Option<(Stamp, CheckResult)>,
    /// Number of requests.
    pub asked: u8,
    /// Requests in a row that brought nothing.
    pub silent: u8,
    pub finding: PageFinding,
}

/// The next request for the page of a suspect.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum NextCheck {
    /// Its page is not asked for at all.
    #[default]
    Never,
    /// From this time on.
    At(Stamp),
    /// No further one: its page has said what it can.
    Over,
}

/// Finding from all answers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum PageFinding {
    /// Nothing for or against.
    #[default]
    Open,
    /// Not found (404), since then.
    NotFoundSince(Stamp),
    /// The item lives, only not in this document: it was dated back, or filtered.
    Hidden,
    /// The page is gone.
    Gone,
}

/// Requests in a row that may bring nothing. A server in trouble gets a day to recover in before
/// documents decide.
const SILENT_MAX: u8 = 3;

/// By how much the wait grows with each of them: an hour, then a day.
const SILENT_FACTOR: u64 = 24;

/// Seconds until a page is asked for again that said nothing, or that was there for the first time.
const AGAIN_SECS: u64 = 3600;

/// By how much the wait grows each time that the page is still there.
const SHOWN_FACTOR: u64 = 4;

/// The longest wait for a page that is still there, in seconds.
const SHOWN_SECS_MAX: u64 = 30 * 86_400;

/// Longest time for which documents wait for a page that nobody asks for, in seconds from the first
/// miss.
const WAIT_SECS_MAX: u64 = 2 * 86_400;

impl PermalinkCheck {
    /// To be asked at once.
    pub(super) fn begun(now: Stamp) -> Self {
        Self::due_at(now)
    }

    /// Time of the next request, if there is to be one.
    pub fn due(&self) -> Option<Stamp> {
        match self.next {
            NextCheck::At(at) => Some(at),
            NextCheck::Never | NextCheck::Over => None,
        }
    }

    // Decides: What does the page of a missing item prove?
    /// After an answer. A page that is not found counts as gone the second time, `apart_secs`
    /// later.
    pub(super) fn told(self, said: CheckResult, apart_secs: u64, now: Stamp) -> Self {
        let silent = if said.may_pass() {
            self.silent.saturating_add(1)
        } else {
            0
        };
        let (finding, next) = match said {
            CheckResult::Gone => (PageFinding::Gone, NextCheck::Over),
            CheckResult::NotFound => self.not_found(apart_secs, now),
            CheckResult::Shown => (PageFinding::Hidden, self.shown_again(now)),
            CheckResult::Another | CheckResult::Elsewhere | CheckResult::NoPage => {
                (PageFinding::Open, NextCheck::Over)
            }
            CheckResult::Nothing | CheckResult::Uninformative(_) => {
                (self.finding, self.after_silence(said, silent, now))
            }
        };
        Self {
            next,
            last: Some((now, said)),
            asked: self.asked.saturating_add(1),
            silent,
            finding,
        }
    }

    /// The finding, and the next request, after a page was not found.
    fn not_found(self, apart_secs: u64, now: Stamp) -> (PageFinding, NextCheck) {
        let PageFinding::NotFoundSince(since) = self.finding else {
            let again = NextCheck::At(now.plus_secs(apart_secs));
            return (PageFinding::NotFoundSince(now), again);
        };
        if now.secs_since(since) >= apart_secs {
            return (PageFinding::Gone, NextCheck::Over);
        }
        (self.finding, NextCheck::At(since.plus_secs(apart_secs)))
    }

    /// The next request after an answer that says nothing; `silent` counts such answers in a row.
    fn after_silence(self, said: CheckResult, silent: u8, now: Stamp) -> NextCheck {
        if !said.may_pass() {
            return NextCheck::Over;
        }
        if self.finding == PageFinding::Hidden {
            return self.shown_again(now);
        }
        if silent >= SILENT_MAX {
            return NextCheck::Over;
        }
        let waits = SILENT_FACTOR.saturating_pow(u32::from(self.silent));
        NextCheck::At(now.plus_secs(AGAIN_SECS * waits))
    }

    /// After an answer about one of many that are missing at once. Pages are believed from
    /// `decide_at` on at once, because the pages of a sample said so before and the documents have
    /// lacked the item ever since. Before that, a page that is gone or not found is believed the
    /// second time, `apart_secs` later.
    pub(super) fn told_as_one_of_many(
        self,
        said: CheckResult,
        decide_at: Stamp,
        apart_secs: u64,
        now: Stamp,
    ) -> Self {
        if !said.is_against() && said != CheckResult::Shown {
            return Self {
                finding: self.finding,
                ..self.told(said, 0, now)
            };
        }
        let (finding, next) = if said == CheckResult::Shown {
            (PageFinding::Hidden, NextCheck::Over)
        } else if now >= decide_at || self.is_denied_again(said, apart_secs, now) {
            (PageFinding::Gone, NextCheck::Over)
        } else if said == CheckResult::Another {
            (PageFinding::NotFoundSince(now), NextCheck::At(decide_at))
        } else {
            let again_at = now.plus_secs(apart_secs).min(decide_at);
            (PageFinding::NotFoundSince(now), NextCheck::At(again_at))
        };
        Self {
            next,
            finding,
            silent: 0,
            last: Some((now, said)),
            asked: self.asked.saturating_add(1),
        }
    }

    /// True when the page is gone or not found, as it was `apart_secs` ago.
    fn is_denied_again(&self, said: CheckResult, apart_secs: u64, now: Stamp) -> bool {
        let is_denial = |said| matches!(said, CheckResult::Gone | CheckResult::NotFound);
        let was_denied = |(at, before): (Stamp, CheckResult)| {
            is_denial(before) && now.secs_since(at) >= apart_secs
        };
        is_denial(said) && self.last.is_some_and(was_denied)
    }

    /// The same without a further request.
    pub(super) fn over(self) -> Self {
        Self {
            next: NextCheck::Over,
            ..self
        }
    }

    /// To be asked from then on.
    pub(super) fn due_at(at: Stamp) -> Self {
        Self {
            next: NextCheck::At(at),
            ..Self::default()
        }
    }

    /// True when an answer spoke against the item.
    pub(super) fn is_doubted(&self) -> bool {
        matches!(
            self.finding,
            PageFinding::NotFoundSince(_) | PageFinding::Gone
        )
    }

    /// The next request for a page that is there: after an hour, then four, sixteen ...
    fn shown_again(&self, now: Stamp) -> NextCheck {
        let times = if self.finding == PageFinding::Hidden {
            u32::from(self.asked)
        } else {
            0
        };
        let secs = SHOWN_FACTOR
            .saturating_pow(times)
            .saturating_mul(AGAIN_SECS)
            .min(SHOWN_SECS_MAX);
        NextCheck::At(now.plus_secs(secs))
    }

    /// True when the page shows that the item lives.
    pub fn is_hidden(&self) -> bool {
        self.finding == PageFinding::Hidden
    }

    /// True when the page is gone.
    pub fn is_gone(&self) -> bool {
        self.finding == PageFinding::Gone
    }

    /// True when an answer of it, or the time that its answer takes, is still to come.
    pub(super) fn is_awaited(&self) -> bool {
        self.is_gone() || self.due().is_some() && !self.is_hidden()
    }

    /// True when documents may decide without a further answer of it: it is not there, or there is
    /// none to be had.
    pub(super) fn lets_decide(&self, since: Stamp, now: Stamp) -> bool {
        let is_asked =
            matches!(self.finding, PageFinding::NotFoundSince(_)) || self.due().is_none();
        !self.is_hidden() && (is_asked || now >= since.plus_secs(WAIT_SECS_MAX))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const START: Stamp = Stamp::from_secs(1_700_000_000);

    /// Checks the finding after these answers, each given when it was due, and the hours until the
    /// next request.
    fn check(answers: &[CheckResult], finding: PageFinding, hours: Option<u64>) {
        let mut probe = PermalinkCheck::begun(START);
        let mut now = START;
        for said in answers {
            now = probe
                .due()
                .expect("a page that is not asked for answers nothing");
            probe = probe.told(*said, 3600, now);
        }
        let due = probe.due().map(|due| due.secs_since(now) / 3600);
        assert_eq!((probe.finding, due), (finding, hours), "{answers:?}");
    }

    #[test]
    fn a_page_is_gone_by_its_own_word_or_when_it_is_not_found_twice() {
        use CheckResult::{Gone, NotFound, Nothing, Shown};
        check(&[Gone], PageFinding::Gone, None);
        check(&[NotFound], PageFinding::NotFoundSince(START), Some(1));
        check(&[NotFound, NotFound], PageFinding::Gone, None);
        check(
            &[NotFound, Shown, NotFound],
            PageFinding::NotFoundSince(START.plus_secs(7200)),
            Some(1),
        );
        check(&[NotFound, Nothing, NotFound], PageFinding::Gone, None);
        check(&[Nothing, Gone], PageFinding::Gone, None);
    }

    #[test]
    fn a_page_that_is_not_found_again_too_soon_is_no_second_word() {
        let probe = PermalinkCheck::begun(START).told(CheckResult::NotFound, 3600, START);
        let soon = probe.told(CheckResult::NotFound, 3600, START.plus_secs(60));
        assert_eq!(
            (soon.finding, soon.due()),
            (
                PageFinding::NotFoundSince(START),
                Some(START.plus_secs(3600))
            )
        );
    }

    #[test]
    fn a_page_that_is_there_is_asked_for_ever_more_seldom() {
        use CheckResult::{Nothing, Shown};
        check(&[Shown], PageFinding::Hidden, Some(1));
        check(&[Shown; 2], PageFinding::Hidden, Some(4));
        check(&[Shown; 4], PageFinding::Hidden, Some(64));
        check(&[Shown; 9], PageFinding::Hidden, Some(720));
        check(
            &[Shown, Nothing, Nothing, Nothing],
            PageFinding::Hidden,
            Some(64),
        );
    }

    #[test]
    fn a_page_that_says_nothing_leaves_it_to_the_documents() {
        use CheckResult::{Another, NoPage, NotFound, Nothing, Shown};
        check(&[Another], PageFinding::Open, None);
        check(&[CheckResult::Elsewhere], PageFinding::Open, None);
        check(&[NoPage], PageFinding::Open, None);
        check(&[Nothing], PageFinding::Open, Some(1));
        check(&[Nothing, Nothing], PageFinding::Open, Some(24));
        check(&[Nothing, Nothing, Nothing], PageFinding::Open, None);
        check(&[NotFound, Another], PageFinding::Open, None);
        let refused = CheckResult::Uninformative(ControlFinding::Refused);
        let silent = CheckResult::Uninformative(ControlFinding::Silent);
        check(&[refused], PageFinding::Open, Some(1));
        check(&[refused, Nothing], PageFinding::Open, Some(24));
        check(&[silent], PageFinding::Open, None);
        check(&[Shown, silent], PageFinding::Hidden, None);
        check(&[Shown, Another], PageFinding::Open, None);
    }

    #[test]
    fn documents_wait_for_the_first_word_of_a_page_but_not_for_ever() {
        let decides = |probe: PermalinkCheck, hours: u64| {
            probe.lets_decide(START, START.plus_secs(hours * 3600))
        };
        let begun = PermalinkCheck::begun(START);
        assert!(
            !decides(begun, 47) && decides(begun, 48),
            "nobody ever asked"
        );
        assert!(decides(begun.told(CheckResult::NotFound, 3600, START), 1));
        assert!(decides(begun.told(CheckResult::Another, 3600, START), 1));
        assert!(!decides(begun.told(CheckResult::Nothing, 3600, START), 1));
        assert!(
            !decides(begun.told(CheckResult::Shown, 3600, START), 1000),
            "it lives"
        );
        assert!(decides(PermalinkCheck::default(), 0), "nobody is to ask");
    }
}
