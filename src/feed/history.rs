//! History: how far back the memory of a feed reaches, and the reason why no further (H-4, H-11);
//! not how archives are read.

use std::fmt;

/// Reach of a feed's memory into the past.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum History {
    /// Back to the first document that we read; nothing tells whether there was more before.
    #[default]
    Unknown,
    /// Back to the first item of the feed.
    Complete,
    /// Not back to the first item, for this reason.
    Partial(PartialReason),
    /// The archives are being read for the first time.
    Running,
}

/// Reason for a history that is not complete.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PartialReason {
    /// The publisher's links name another host, which is not asked.
    LinksToAnotherHost,
    /// A page redirects to another host.
    RedirectsToAnotherHost,
    /// The publisher answers a page with this status: 403, 404 or 410.
    MissingPage {
        /// HTTP status.
        status: u16,
    },
    /// A page is no feed document.
    NoFeed,
    /// A page could not be read; the error, without secrets.
    Unreadable(String),
    /// A page belongs to another feed.
    DifferentFeed,
    /// The last linked page has no entries.
    EmptyPage,
    /// The pages link to each other in a circle.
    Circle,
    /// Two pages in a row have only entries that were read before.
    NothingNew,
    /// A page is cut off or was repaired, so that it may lack entries.
    DamagedPage,
    /// The archives exceed the limit for one commit.
    TooManyBytes {
        /// The limit in MiB.
        mib_max: u64,
    },
    /// The archives take more requests than are configured.
    TooManyPages {
        /// The limit.
        pages_max: u32,
    },
    /// The server never gives more entries than this in its one document.
    ServerLimit {
        /// The server's limit.
        entries_max: u32,
    },
    /// The server does not show the live entries as the first page, so that no page proves to be
    /// the last.
    PagingUnproven,
    /// A page shows the live feed once more.
    LeadsToFeed,
    /// The pages, or the one document with everything, do not show what the live document shows.
    LiveNotMet,
    /// Entries moved from page to page while they were read.
    PagesMoved,
    /// A page is an older copy than the page before it, as a cache keeps one.
    OlderCopy,
    /// The page that leads nowhere names another one as the last.
    NotTheLast,
    /// The document that names none before it does not say that it is an archive, as the others do.
    NoArchive,
    /// A page redirects to another document, so that its own was not read.
    Redirected,
    /// An archive between two others was passed over.
    PassedOver,
    /// As many pages as are guessed at most were found where no document names any.
    UnlinkedPages,
    /// The last page is as full as the others: a server that gives no more looks the same.
    LastPageFull,
    /// The publisher counts more entries than the archives show.
    FewerThanSaid {
        /// Entries by the publisher's count.
        total: u64,
        /// Entries that were found.
        found: u64,
    },
}

/// Proof that a walk reached the first item of a feed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EndProof {
    /// As many entries were read as the publisher counts.
    Total {
        /// The count.
        items: u64,
    },
    /// The last archive names none before it, and did so again later.
    LastArchive,
    /// Behind the last page, which is not full, is none, and was none later; the first one shows
    /// the live entries.
    LastPage,
    /// The pages in the order of edits meet the live document; behind them is none, and was none
    /// later.
    MeetsLive,
    /// There is a first page and no second one.
    OnlyPage,
    /// One document shows everything.
    WholeDocument,
}

impl PartialReason {
    /// True when another walk may well find more: the publisher's fault may pass. A limit, or a
    /// page that is gone for good, stays.
    pub const fn may_pass(&self) -> bool {
        match self {
            Self::LinksToAnotherHost
            | Self::MissingPage { status: 410 }
            | Self::TooManyBytes { .. }
            | Self::TooManyPages { .. }
            | Self::ServerLimit { .. } => false,
            Self::RedirectsToAnotherHost
            | Self::MissingPage { .. }
            | Self::NoFeed
            | Self::Unreadable(_)
            | Self::DifferentFeed
            | Self::EmptyPage
            | Self::Circle
            | Self::NothingNew
            | Self::DamagedPage
            | Self::PagingUnproven
            | Self::LeadsToFeed
            | Self::LiveNotMet
            | Self::PagesMoved
            | Self::OlderCopy
            | Self::NotTheLast
            | Self::NoArchive
            | Self::Redirected
            | Self::PassedOver
            | Self::UnlinkedPages
            | Self::LastPageFull
            | Self::FewerThanSaid { .. } => true,
        }
    }
}

impl History {
    /// History after one more walk that came to `found`. Nothing that is held is forgotten, so a
    /// complete history stays complete; of two reasons for a partial one the newer counts.
    #[must_use]
    pub fn after(&self, found: Self) -> Self {
        match (self, found) {
            (Self::Complete, _) => Self::Complete,
            (Self::Partial(reason), Self::Unknown) => Self::Partial(reason.clone()),
            (_, found) => found,
        }
    }

    // Decides: Is the history of a feed complete that says so of its documents?
    /// History of a feed that no walk has read, after a document: complete by the word of its
    /// publisher until documents prove to be capped at so many entries, and again once a longer one
    /// has shown that there was no cap. `None` where nothing changes.
    pub fn under_cap(&self, cap: Option<u16>) -> Option<Self> {
        match (self, cap) {
            (Self::Complete, Some(cap)) => Some(Self::Partial(PartialReason::ServerLimit {
                entries_max: cap.into(),
            })),
            (Self::Partial(PartialReason::ServerLimit { .. }), None) => Some(Self::Complete),
            _ => None,
        }
    }

    /// Stable name, as written in documents and `/status`.
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Unknown => "unknown",
            Self::Complete => "complete",
            Self::Partial(_) => "partial",
            Self::Running => "running",
        }
    }

    /// Reason for a partial history.
    pub const fn reason(&self) -> Option<&PartialReason> {
        match self {
            Self::Partial(reason) => Some(reason),
            Self::Unknown | Self::Complete | Self::Running => None,
        }
    }
}

impl fmt::Display for History {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())?;
        self.reason()
            .map_or(Ok(()), |reason| write!(f, " ({reason})"))
    }
}

impl fmt::Display for PartialReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::LinksToAnotherHost => f.write_str("its archives lead to another host"),
            Self::RedirectsToAnotherHost => f.write_str("a page of the archives leads to another host"),
            Self::MissingPage { status } => write!(f, "a page of the archives is missing ({status})"),
            Self::NoFeed => f.write_str("a page of the archives is no feed"),
            Self::Unreadable(error) => write!(f, "a page of the archives could not be read: {error}"),
            Self::DifferentFeed => f.write_str("a page of its archives is of another feed"),
            Self::EmptyPage => f.write_str("a page of its archives holds no entries"),
            Self::Circle => f.write_str("its archives lead in a circle"),
            Self::NothingNew => f.write_str("two pages of its archives in a row hold nothing new"),
            Self::DamagedPage => f.write_str("a page of its archives is damaged"),
            Self::TooManyBytes { mib_max } => write!(f, "its archives hold more than {mib_max} MiB"),
            Self::TooManyPages { pages_max } => {
                write!(f, "its archives take more than {pages_max} requests")
            },
            Self::ServerLimit { entries_max } => {
                write!(f, "its server gives no more than {entries_max} entries")
            }
            Self::PagingUnproven => f.write_str(
                "its server does not show the live entries as page 1, so the end of its pages proves nothing",
            ),
            Self::LeadsToFeed => f.write_str("a page of its archives shows the live feed once more"),
            Self::LiveNotMet => f.write_str("its archives do not show what its live document shows"),
            Self::PagesMoved => f.write_str("entries moved from page to page while its archives were read"),
            Self::OlderCopy => {
                f.write_str("a page of its archives is an older copy than the page before it, as a cache keeps one")
            }
            Self::NotTheLast => f.write_str("the last page that was found names another one as the last"),
            Self::NoArchive => f.write_str(
                "the last page that was found does not say that it is an archive, as the others do",
            ),
            Self::Redirected => f.write_str("a page of its archives redirects to another document"),
            Self::PassedOver => f.write_str("an archive between two others could not be read"),
            Self::UnlinkedPages => {
                f.write_str("it has pages that no page links to, and more of them may follow")
            }
            Self::LastPageFull => f.write_str(
                "the last page that was found is as full as the others, so nothing tells whether more should follow",
            ),
            Self::FewerThanSaid { total, found } => {
                write!(f, "its publisher counts {total} entries, and its archives show {found}")
            }
        }
    }
}

impl fmt::Display for EndProof {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Total { items } => write!(f, "all {items} entries that the publisher counts were read"),
            Self::LastArchive => f.write_str("the last archive names none before it, asked twice"),
            Self::LastPage => f.write_str(
                "the last page is not full, no page is behind it (asked twice, and one page further), and page 1 shows the live entries",
            ),
            Self::MeetsLive => f.write_str(
                "the pages in the order of edits reach the live entries, and there is no page behind them, asked twice",
            ),
            Self::OnlyPage => f.write_str("page 1 shows the live entries and there is no page 2, asked twice"),
            Self::WholeDocument => f.write_str("one document shows everything"),
        }
    }
}
