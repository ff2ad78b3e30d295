//! The claim that a walk has reached the last page: what it rests on, and the steps that prove it;
//! not the answers to them.

use crate::history::PartialReason;

/// The claim that a walk has reached the last page.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EndClaim {
    /// The address behind the last page; of linked pages the last one itself.
    pub url: String,
    /// The reason to believe it.
    pub sign: EndSign,
}

/// The answer that looked like the end, or like no page at all.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EndSign {
    /// The publisher says that there is nothing.
    Missing {
        /// 404 or 410; a 403 ends nothing.
        status: u16,
    },
    /// A document without entries.
    Empty,
    /// The last page once more.
    Repeat,
    /// The last entry, alone, where pages overlap by one.
    Tail,
    /// Pages that hold nothing new.
    NothingNew,
    /// A page that names no other one.
    NoLink,
    /// The publisher's count of entries is reached.
    Total {
        /// The count.
        items: u64,
    },
    /// The live document.
    Feed,
    /// A page that was read before and is not the last.
    Circle,
    /// No feed at all.
    NoFeed,
    /// A page of another feed.
    Foreign,
    /// A page that should be the last and says that it is not, or shows it.
    Denied(PartialReason),
    /// No answer, or an error, again and again.
    Failing(PartialReason),
}

/// A step of the proof that a page was the last.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EndStep {
    /// Asks one page further.
    Further,
    /// Asks far behind, at twice the number: several pages in a row may be missing.
    Beyond,
    /// Asks again, a while later.
    Again,
    /// Asks again for a page that was passed over.
    Hole,
    /// Reads a page once more, from the last to the first: what moved meanwhile is met.
    Check {
        /// The number under which the page is kept.
        no: u32,
        /// From one number to the next: more than 1 in large archives.
        stride: u32,
    },
    /// Asks for the first page, which shows the live entries where pages are counted at all.
    First,
}

impl EndClaim {
    /// A claim by what this address answered.
    pub(super) fn new(url: &str, sign: EndSign) -> Self {
        Self {
            url: url.to_owned(),
            sign,
        }
    }
}

impl EndSign {
    /// True when the end of archives looks so; the rest are faults, however long they last.
    pub(super) fn is_believable(&self) -> bool {
        match self {
            Self::Missing { status } => matches!(status, 404 | 410),
            Self::Empty
            | Self::Repeat
            | Self::Tail
            | Self::NothingNew
            | Self::NoLink
            | Self::Total { .. } => true,
            Self::Feed
            | Self::Circle
            | Self::NoFeed
            | Self::Foreign
            | Self::Denied(_)
            | Self::Failing(_) => false,
        }
    }

    /// The reason that this is against a way that has led to no page.
    pub(super) fn flaw(&self) -> Option<PartialReason> {
        match self {
            Self::NoFeed => Some(PartialReason::NoFeed),
            _ => None,
        }
    }

    /// The reason that this is for a history that is not complete.
    pub(super) fn reason(&self) -> PartialReason {
        match self {
            Self::Missing { status } => PartialReason::MissingPage { status: *status },
            Self::Empty => PartialReason::EmptyPage,
            Self::Repeat | Self::Circle => PartialReason::Circle,
            Self::Tail | Self::NothingNew | Self::NoLink | Self::Total { .. } => {
                PartialReason::NothingNew
            }
            Self::Feed => PartialReason::LeadsToFeed,
            Self::NoFeed => PartialReason::NoFeed,
            Self::Foreign => PartialReason::DifferentFeed,
            Self::Denied(reason) | Self::Failing(reason) => reason.clone(),
        }
    }
}
