//! Events and results of checks in the operator's words.

use crate::feed::{
    absence::{CheckResult, ControlFinding, SuspectBasis, WindowEvent},
    group::MemberStage,
    reconcile::{Agreement, EntryPart},
};

/// An event of a window as a whole.
pub const fn event(event: WindowEvent) -> &'static str {
    match event {
        WindowEvent::Gap => "nothing of the last document was in the next one",
        WindowEvent::Rebaselined => {
            "the order of the documents could not be followed, so the window began anew"
        }
        WindowEvent::Quarantined => "too much was missing at once, so nothing was concluded",
        WindowEvent::QuarantineEnded => {
            "too much stayed missing for a week, so the window began anew"
        }
        WindowEvent::QuarantineDecided => "the pages of the missing posts decided",
        WindowEvent::DailyLimit => {
            "more items seem to be gone than is believed in one day, so the rest waits"
        }
        WindowEvent::Reformatted => {
            "most of the window was edited at once, and no post says so: the feed was reformatted"
        }
        WindowEvent::Doubted => {
            "missing posts came back, so a deletion takes seven days of absence for a month"
        }
        WindowEvent::AbsenceOff => {
            "posts came back after seven days, so absence proves nothing for a month"
        }
        WindowEvent::Pinned => {
            "posts roll off before an end that stays, so documents prove no deletion"
        }
    }
}

/// Reason why documents do not decide on a missing item.
pub const fn basis(basis: SuspectBasis) -> Option<&'static str> {
    match basis {
        SuspectBasis::Documents => None,
        SuspectBasis::PageBeforeFew => {
            Some("it may have rolled off before a few posts that are pinned to the end")
        }
        SuspectBasis::PageOfMany => Some("it is one of many that are missing at once"),
        SuspectBasis::PageOfModified => Some(
            "the server says that something was modified, but no post in the feed was: this one may have been dated back",
        ),
        SuspectBasis::PageOfDeparted => Some(
            "everfeed does not know where new posts enter this feed, so documents do not tell a deletion from rolling off",
        ),
    }
}

/// The stage of a membership.
pub const fn stage(stage: MemberStage) -> &'static str {
    match stage {
        MemberStage::Joining { .. } => "its posts are being taken in",
        MemberStage::Joined => "all of its posts are in",
        MemberStage::Leaving => "its posts are being taken out",
    }
}

/// The last control of permalink checks.
pub const fn control(finding: ControlFinding) -> &'static str {
    match finding {
        ControlFinding::Shown => {
            "pages tell a deletion: the page of a post in the feed shows the post"
        }
        ControlFinding::Silent => {
            "a page without its post proves nothing: the page of a post in the feed does not show the post either"
        }
        ControlFinding::NoPost => {
            "pages prove nothing: no post of the feed has a page at the feed's own host"
        }
        ControlFinding::NotFound => {
            "pages prove nothing: the page of a post in the feed is not found (404)"
        }
        ControlFinding::Gone => "pages prove nothing: the page of a post in the feed is gone (410)",
        ControlFinding::Refused => {
            "pages prove nothing: the page of a post in the feed is refused, or does not answer"
        }
        ControlFinding::Elsewhere => {
            "pages prove nothing: the page of a post in the feed leads to another host"
        }
        ControlFinding::FrontPage => {
            "a page that is not found (404) counts: the feed shows no post, and the front page is there"
        }
    }
}

/// The result of a request for an item's own page.
pub const fn page(said: CheckResult) -> &'static str {
    match said {
        CheckResult::Gone => "it is gone (410)",
        CheckResult::NotFound => "it is not found (404)",
        CheckResult::Shown => "it is there and shows the item",
        CheckResult::Another => "there is another page, without the item",
        CheckResult::Elsewhere => "it leads to another host, which is not asked",
        CheckResult::Nothing => "no answer that says anything",
        CheckResult::NoPage => "the item has no page at its feed's own address",
        CheckResult::Uninformative(finding) => uninformative(finding),
    }
}

/// Reason why the page of an item says nothing, from the page of a post that is in the feed.
const fn uninformative(finding: ControlFinding) -> &'static str {
    match finding {
        ControlFinding::NoPost => {
            "it says nothing: no post in the feed has a page to compare it with"
        }
        ControlFinding::Shown | ControlFinding::Silent => {
            "it says nothing: the page of a post that is in the feed looks the same"
        }
        ControlFinding::NotFound => {
            "it says nothing: the page of a post that is in the feed is not found either"
        }
        ControlFinding::Gone => {
            "it says nothing: the page of a post that is in the feed is gone, too"
        }
        ControlFinding::Refused => {
            "it says nothing: the page of a post that is in the feed is refused, too"
        }
        ControlFinding::FrontPage => "it says nothing: the front page of the site looks the same",
        ControlFinding::Elsewhere => {
            "it says nothing: the page of a post that is in the feed leads to another host, too"
        }
    }
}

/// A part of an entry.
pub const fn part(part: EntryPart) -> &'static str {
    match part {
        EntryPart::Title => "title",
        EntryPart::Summary => "summary",
        EntryPart::Content => "content",
        EntryPart::Links => "links",
        EntryPart::Files => "files",
        EntryPart::People => "authors",
        EntryPart::Categories => "categories",
        EntryPart::Other => "dates and other markup",
    }
}

/// Agreement beside its text and its place that makes a corrected post one.
pub const fn agreement(agreement: Agreement) -> &'static str {
    match agreement {
        Agreement::Date => "and its date",
        Agreement::Title => "and its title",
        Agreement::Place => "in a feed without dates",
    }
}
