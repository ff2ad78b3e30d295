//! Control of permalink checks: the page of a post that the feed shows now. Before an answer about
//! a missing item counts, the page of one that is certainly there must be found, and be told apart
//! from that answer; a site that refuses robots, is down, or has one page for all says nothing of
//! any post. Of a feed without posts it is the front page of its site. Not the asking.

use super::{CheckResult, ControlFinding};
use crate::{item::ItemId, stamp::Stamp};

/// The last control of a feed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PageControl {
    /// Time at which it was asked for.
    pub at: Stamp,
    /// The page of the post that is in the feed.
    pub finding: ControlFinding,
    /// The first of the controls in a row that failed.
    pub failing_since: Option<Stamp>,
    /// Number of controls in a row that failed.
    pub failed: u8,
    /// Missing items whose words stand on that page, too, and how often, at most [`ALIKE_MAX`].
    pub alike: Vec<(ItemId, u32)>,
    /// The address at which that page stands, after redirects.
    pub landing: String,
}

/// The page that answered a request for the page of an item.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AnsweredPage {
    /// Its address, after redirects.
    pub landing: String,
    /// Number of times that it holds the words of the item.
    pub words: u32,
}

/// Action of a permalink check before it asks for the page of an item.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ControlNeed {
    /// A control must be asked for; so many have failed just before.
    Ask(u8),
    /// There is one. The page may be asked for.
    Ready,
    /// Pages say nothing for now.
    Useless(ControlFinding),
}

/// Seconds for which a control holds.
const HOLDS_SECS: u64 = 3600;

/// Posts that are tried one after the other, since the page of one may be broken.
const TRIED_MAX: u8 = 2;

/// Controls in a row that fail until pages are taken to say nothing on the whole.
const HOPELESS_MIN: u8 = 3;

/// Seconds for which they have failed then.
const HOPELESS_AFTER_SECS: u64 = 86_400;

/// Seconds between two controls of such a feed.
const HOPELESS_SECS: u64 = 3 * 86_400;

/// Items that are remembered as standing on every page.
pub const ALIKE_MAX: usize = 200;

impl PageControl {
    /// The need of a control before the page of an item that is missing since then is asked for.
    pub(super) fn need(&self, since: Stamp, now: Stamp) -> ControlNeed {
        let age = now.secs_since(self.at);
        if self.at == Stamp::ZERO || self.at > now {
            return ControlNeed::Ask(0);
        }
        if !self.is_failed() {
            return if age < HOLDS_SECS && since <= self.at {
                ControlNeed::Ready
            } else {
                ControlNeed::Ask(0)
            };
        }
        let holds_secs = if self.is_hopeless(now) {
            HOPELESS_SECS
        } else {
            HOLDS_SECS
        };
        if age >= holds_secs || self.failed < TRIED_MAX && self.finding != ControlFinding::Refused {
            ControlNeed::Ask(self.failed)
        } else {
            ControlNeed::Useless(self.finding)
        }
    }

    /// After another control.
    #[must_use]
    pub(super) fn after(&self, asked: Self) -> Self {
        let (failing_since, failed) = if asked.is_failed() {
            (
                self.failing_since.or(Some(asked.at)),
                self.failed.saturating_add(1),
            )
        } else {
            (None, 0)
        };
        Self {
            failing_since,
            failed,
            ..asked
        }
    }

    /// True when it tells nothing apart, so that no other page counts.
    fn is_failed(&self) -> bool {
        // A shell without the words of its post is found all the same: a 404 can be told apart from
        // it.
        !matches!(
            self.finding,
            ControlFinding::Shown | ControlFinding::Silent | ControlFinding::FrontPage
        )
    }

    /// True when the last one tells other pages apart.
    pub(super) fn tells(&self) -> bool {
        self.at != Stamp::ZERO && !self.is_failed()
    }

    /// Number of times that the words of an item stand on the page of another post.
    fn count_of(&self, id: ItemId) -> u32 {
        self.alike
            .iter()
            .find(|(other, _)| *other == id)
            .map_or(0, |(_, count)| *count)
    }

    /// True while controls have failed for so long that another one is not waited for, as at a site
    /// that refuses robots.
    pub fn is_hopeless(&self, now: Stamp) -> bool {
        let Some(since) = self.failing_since else {
            return false;
        };
        let has_failed = self.failed >= HOPELESS_MIN && self.is_failed();
        let is_lasting = self.at.secs_since(since) >= HOPELESS_AFTER_SECS;
        has_failed && is_lasting && now.secs_since(self.at) < HOPELESS_SECS
    }

    // Decides: Does the answer of a page count beside its control?
    // Limit: a site that refuses robots, or has one page for everything, proves nothing by pages.
    /// The result that an answer about an item comes to beside this control.
    pub fn weigh(&self, said: CheckResult, id: ItemId, page: &AnsweredPage) -> CheckResult {
        let is_alike = || self.finding != ControlFinding::Shown || self.landing == page.landing;
        match said {
            CheckResult::Gone | CheckResult::NotFound if self.is_failed() => {
                CheckResult::Uninformative(self.finding)
            }
            CheckResult::Another if is_alike() => {
                CheckResult::Uninformative(ControlFinding::Silent)
            }
            // The words of a post that stand as often on the page of another one are words of every
            // page.
            CheckResult::Shown if self.count_of(id) >= page.words => {
                CheckResult::Uninformative(ControlFinding::Silent)
            }
            said => said,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use CheckResult::{Another, Gone, NotFound, Shown, Uninformative};

    const NOW: Stamp = Stamp::from_secs(1_700_000_000);
    const ID: ItemId = ItemId([1; 10]);

    fn control(finding: ControlFinding) -> PageControl {
        PageControl {
            at: NOW,
            finding,
            landing: "http://x/2".into(),
            ..PageControl::default()
        }
    }

    fn page(words: u32) -> AnsweredPage {
        AnsweredPage {
            landing: "http://x/1".into(),
            words,
        }
    }

    #[test]
    fn an_answer_counts_beside_a_page_that_is_found_and_differs() {
        let weigh = |finding, said| control(finding).weigh(said, ID, &page(1));
        for said in [Gone, NotFound, Another, Shown] {
            assert_eq!(weigh(ControlFinding::Shown, said), said);
        }
        for finding in [
            ControlFinding::NotFound,
            ControlFinding::Gone,
            ControlFinding::Refused,
            ControlFinding::NoPost,
        ] {
            assert_eq!(weigh(finding, NotFound), Uninformative(finding));
            assert_eq!(weigh(finding, Gone), Uninformative(finding));
            assert_eq!(
                weigh(finding, Shown),
                Shown,
                "nothing speaks against the words of the post"
            );
        }
        assert_eq!(
            weigh(ControlFinding::Silent, NotFound),
            NotFound,
            "a shell is found, and this is not"
        );
        assert_eq!(
            weigh(ControlFinding::FrontPage, NotFound),
            NotFound,
            "the site is up, and this is not there"
        );
        assert_eq!(
            weigh(ControlFinding::FrontPage, Another),
            Uninformative(ControlFinding::Silent)
        );
        assert_eq!(
            weigh(ControlFinding::Silent, Another),
            Uninformative(ControlFinding::Silent)
        );
    }

    #[test]
    fn a_page_that_stands_where_another_does_or_has_the_words_of_all_says_nothing() {
        let silent = Uninformative(ControlFinding::Silent);
        let there = AnsweredPage {
            landing: "http://x/2".into(),
            words: 0,
        };
        assert_eq!(
            control(ControlFinding::Shown).weigh(Another, ID, &there),
            silent
        );
        let alike = PageControl {
            alike: vec![(ID, 2)],
            ..control(ControlFinding::Shown)
        };
        assert_eq!(alike.weigh(Shown, ID, &page(2)), silent);
        assert_eq!(
            alike.weigh(Shown, ID, &page(3)),
            Shown,
            "its own page names it more often"
        );
        assert_eq!(alike.weigh(Shown, ItemId([2; 10]), &page(1)), Shown);
    }

    #[test]
    fn a_control_is_shared_for_an_hour_and_two_posts_are_tried() {
        let need = |control: &PageControl, secs: u64| control.need(NOW, NOW.plus_secs(secs));
        let none = PageControl::default();
        assert_eq!(need(&none, 0), ControlNeed::Ask(0));
        let good = none.after(control(ControlFinding::Shown));
        assert_eq!(
            (need(&good, 3599), need(&good, 3600)),
            (ControlNeed::Ready, ControlNeed::Ask(0))
        );
        assert_eq!(
            good.need(NOW.plus_secs(1), NOW.plus_secs(2)),
            ControlNeed::Ask(0),
            "it was not compared with it"
        );
        let once = good.after(control(ControlFinding::NotFound));
        assert_eq!(need(&once, 60), ControlNeed::Ask(1));
        let twice = once.after(control(ControlFinding::NotFound));
        assert_eq!(
            need(&twice, 120),
            ControlNeed::Useless(ControlFinding::NotFound)
        );
        assert_eq!(need(&twice, 3600), ControlNeed::Ask(2));
        let later = PageControl {
            at: NOW.plus_secs(86_400),
            ..control(ControlFinding::NotFound)
        };
        let hopeless = twice.after(later);
        assert_eq!(
            need(&hopeless, 2 * 86_400),
            ControlNeed::Useless(ControlFinding::NotFound)
        );
        assert!(hopeless.is_hopeless(NOW.plus_secs(2 * 86_400)));
        assert_eq!(need(&hopeless, 4 * 86_400), ControlNeed::Ask(3));
        assert_eq!(hopeless.after(control(ControlFinding::Shown)).failed, 0);
    }
}
