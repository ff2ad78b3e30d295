//! Permalink check: the request times for the page of a suspect and the meaning of its answers (POLLING 2.3). Asking is done
//! elsewhere.

use crate::feed::stamp::Stamp;
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
    /// A page without the item: a front page, or one that says "not found" with 200. It proves nothing.
    Another,
    /// It leads to another host, where nobody asks.
    Elsewhere,
    /// No answer, or one that says nothing of the page.
    Nothing,
    /// Nobody may ask: the item has no page at its feed's own origin.
    NoPage,
}

impl CheckResult {
    /// The same in the operator's words.
    pub const fn words(self) -> &'static str {
        match self {
            Self::Gone => "it is gone (410)",
            Self::NotFound => "it is not found (404)",
            Self::Shown => "it is there and shows the item",
            Self::Another => "there is another page, without the item",
            Self::Elsewhere => "it leads to another host, which is not asked",
            Self::Nothing => "no answer that says anything",
            Self::NoPage => "the item has no page at its feed's own address",
        }
    }
}

/// State of the permalink check of a suspect.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PermalinkCheck {
    /// Time of the next request; `None`: no further one.
    pub due: Option<Stamp>,
    /// The last answer, and when it came.
    pub last: Option<(Stamp, CheckResult)>,
    /// Number of requests.
    pub asked: u8,
    /// Since when it has not been found, if it has not.
    pub(crate) not_found_since: Option<Stamp>,
    /// Requests in a row that brought nothing.
    pub(crate) silent: u8,
    pub(crate) finding: PageFinding,
}

/// Finding from all answers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum PageFinding {
    /// Nothing for or against.
    #[default]
    Open,
    /// The item lives, only not in this document: it was dated back, or filtered.
    Hidden,
    /// The page is gone.
    Gone,
}

/// Requests in a row that may bring nothing. A server in trouble gets a day to recover in before documents decide.
const SILENT_MAX: u8 = 3;

/// By how much the wait grows with each of them: an hour, then a day.
const SILENT_FACTOR: u64 = 24;

/// Seconds until a page is asked for again that said nothing, or that was there for the first time.
const AGAIN_SECS: u64 = 3600;

/// By how much the wait grows each time that the page is still there.
const SHOWN_FACTOR: u64 = 4;

/// The longest wait for a page that is still there, in seconds.
const SHOWN_SECS_MAX: u64 = 30 * 86_400;

/// Longest time for which documents wait for a page that nobody asks for, in seconds from the first miss.
const WAIT_SECS_MAX: u64 = 2 * 86_400;

impl PermalinkCheck {
    /// To be asked at once.
    pub(super) fn begun(now: Stamp) -> Self {
        Self { due: Some(now), ..Self::default() }
    }

    /// After an answer. A page that is not found counts as gone the second time, `apart_secs` later.
    pub(super) fn told(self, said: CheckResult, apart_secs: u64, now: Stamp) -> Self {
        let again = |secs: u64| Some(now.plus_secs(secs));
        let mut next = Self { last: Some((now, said)), asked: self.asked.saturating_add(1), ..self };
        match said {
            CheckResult::Gone => (next.finding, next.due) = (PageFinding::Gone, None),
            CheckResult::NotFound => {
                let since = self.not_found_since.unwrap_or(now);
                next.not_found_since = Some(since);
                let is_second = self.not_found_since.is_some() && now.secs_since(since) >= apart_secs;
                next.finding = if is_second { PageFinding::Gone } else { PageFinding::Open };
                next.due = if is_second { None } else { Some(since.plus_secs(apart_secs)) };
            }
            CheckResult::Shown => {
                let wait = self.wait_secs();
                (next.finding, next.not_found_since, next.due) = (PageFinding::Hidden, None, again(wait));
            }
            CheckResult::Another | CheckResult::Elsewhere | CheckResult::NoPage => {
                (next.finding, next.not_found_since, next.due) = (PageFinding::Open, None, None);
            }
            CheckResult::Nothing => {
                next.silent = self.silent.saturating_add(1);
                let is_enough = next.silent >= SILENT_MAX && self.finding != PageFinding::Hidden;
                let in_trouble = AGAIN_SECS * SILENT_FACTOR.saturating_pow(u32::from(self.silent));
                let wait = if self.is_hidden() { self.wait_secs() } else { in_trouble };
                next.due = if is_enough { None } else { again(wait) };
            }
        }
        if said != CheckResult::Nothing {
            next.silent = 0;
        }
        next
    }

    /// Wait before a page that is there is asked for again: an hour, then four, sixteen ...
    fn wait_secs(&self) -> u64 {
        let times = if self.finding == PageFinding::Hidden { u32::from(self.asked) } else { 0 };
        SHOWN_FACTOR.saturating_pow(times).saturating_mul(AGAIN_SECS).min(SHOWN_SECS_MAX)
    }

    /// True when the page shows that the item lives.
    pub fn is_hidden(&self) -> bool {
        self.finding == PageFinding::Hidden
    }

    /// True when the page is gone.
    pub fn is_gone(&self) -> bool {
        self.finding == PageFinding::Gone
    }

    /// True when its word, or the time that its word takes, is still to come.
    pub(super) fn is_awaited(&self) -> bool {
        self.is_gone() || self.due.is_some() && !self.is_hidden()
    }

    /// True when documents may decide without a further word of it: it is not there, or there is none to be had.
    pub(super) fn lets_decide(&self, since: Stamp, now: Stamp) -> bool {
        let is_asked = self.not_found_since.is_some() || self.due.is_none();
        !self.is_hidden() && (is_asked || now >= since.plus_secs(WAIT_SECS_MAX))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const START: Stamp = Stamp::from_secs(1_700_000_000);

    /// Checks the finding after these answers, each given when it was due, and the hours until the next request.
    fn check(answers: &[CheckResult], finding: PageFinding, hours: Option<u64>) {
        let mut probe = PermalinkCheck::begun(START);
        let mut now = START;
        for said in answers {
            now = probe.due.expect("a page that is not asked for answers nothing");
            probe = probe.told(*said, 3600, now);
        }
        let due = probe.due.map(|due| due.secs_since(now) / 3600);
        assert_eq!((probe.finding, due), (finding, hours), "{answers:?}");
    }

    #[test]
    fn a_page_is_gone_by_its_own_word_or_when_it_is_not_found_twice() {
        use CheckResult::{Gone, NotFound, Nothing, Shown};
        check(&[Gone], PageFinding::Gone, None);
        check(&[NotFound], PageFinding::Open, Some(1));
        check(&[NotFound, NotFound], PageFinding::Gone, None);
        check(&[NotFound, Shown, NotFound], PageFinding::Open, Some(1));
        check(&[NotFound, Nothing, NotFound], PageFinding::Gone, None);
        check(&[Nothing, Gone], PageFinding::Gone, None);
    }

    #[test]
    fn a_page_that_is_not_found_again_too_soon_is_no_second_word() {
        let probe = PermalinkCheck::begun(START).told(CheckResult::NotFound, 3600, START);
        let soon = probe.told(CheckResult::NotFound, 3600, START.plus_secs(60));
        assert_eq!((soon.finding, soon.due), (PageFinding::Open, Some(START.plus_secs(3600))));
    }

    #[test]
    fn a_page_that_is_there_is_asked_for_ever_more_seldom() {
        use CheckResult::{Nothing, Shown};
        check(&[Shown], PageFinding::Hidden, Some(1));
        check(&[Shown; 2], PageFinding::Hidden, Some(4));
        check(&[Shown; 4], PageFinding::Hidden, Some(64));
        check(&[Shown; 9], PageFinding::Hidden, Some(720));
        check(&[Shown, Nothing, Nothing, Nothing], PageFinding::Hidden, Some(64));
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
        check(&[Shown, Another], PageFinding::Open, None);
    }

    #[test]
    fn documents_wait_for_the_first_word_of_a_page_but_not_for_ever() {
        let decides =
            |probe: PermalinkCheck, hours: u64| probe.lets_decide(START, START.plus_secs(hours * 3600));
        let begun = PermalinkCheck::begun(START);
        assert!(!decides(begun, 47) && decides(begun, 48), "nobody ever asked");
        assert!(decides(begun.told(CheckResult::NotFound, 3600, START), 1));
        assert!(decides(begun.told(CheckResult::Another, 3600, START), 1));
        assert!(!decides(begun.told(CheckResult::Nothing, 3600, START), 1));
        assert!(!decides(begun.told(CheckResult::Shown, 3600, START), 1000), "it lives");
        assert!(decides(PermalinkCheck::default(), 0), "nobody is to ask");
    }
}
