//! History: how far back the memory of a feed reaches, and the reason why no further (H-4, H-11); not how archives are read.

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
    /// The archives exceed the configured number of pages.
    TooManyPages {
        /// The limit.
        pages_max: u32,
    },
    /// The server never gives more entries than this in its one document.
    ServerLimit {
        /// The server's limit.
        entries_max: u32,
    },
}

impl History {
    /// History after one more walk that came to `found`. Nothing that is held is forgotten, so a complete history stays
    /// complete; of two reasons for a partial one the newer counts.
    #[must_use]
    pub fn after(&self, found: Self) -> Self {
        match (self, found) {
            (Self::Complete, _) => Self::Complete,
            (Self::Partial(reason), Self::Unknown) => Self::Partial(reason.clone()),
            (_, found) => found,
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
        self.reason().map_or(Ok(()), |reason| write!(f, " ({reason})"))
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
            Self::TooManyPages { pages_max } => write!(f, "it has more than {pages_max} pages"),
            Self::ServerLimit { entries_max } => {
                write!(f, "its server gives no more than {entries_max} entries")
            }
        }
    }
}
