//! Figures about who reads a feed, as they are told to operators and owners; not how they are
//! counted.

use super::software::SoftwareKind;
use serde::{Deserialize, Serialize};

/// Requests of a time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct RequestFigures {
    /// All requests.
    pub requests: u64,
    /// Those with a validator (`If-None-Match`, `If-Modified-Since`), or a position (`since`).
    pub conditional: u64,
}

impl RequestFigures {
    /// Share of conditional requests in percent; `None` without any request.
    pub fn conditional_percent(self) -> Option<u64> {
        (self.conditional * 100).checked_div(self.requests)
    }

    /// Adds others.
    pub fn add(&mut self, other: Self) {
        self.requests += other.requests;
        self.conditional += other.conditional;
    }
}

/// Figures of one kind of software that reads a feed. Moments are RFC 3339.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct SoftwareFigures {
    /// Its name. [`OTHER_SOFTWARE`] is all that had no row of its own.
    pub software: String,
    /// Its kind.
    pub kind: SoftwareKind,
    /// Readers that it claims, the greatest claim of the newest three days with one; `None` without
    /// a claim.
    pub claimed: Option<u32>,
    /// Different client addresses of the last day, about; `None` where they are too many to count.
    pub clients_about: Option<u32>,
    /// The last day.
    pub day: RequestFigures,
    /// The last thirty days.
    pub month: RequestFigures,
    /// Time of its first request.
    pub first_seen: String,
    /// Time of its last request, to the minute.
    pub last_seen: String,
    /// Its faults, in words; empty if it behaves.
    pub misbehaves: Vec<String>,
}

/// Figures of a feed.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ReaderFigures {
    /// Name of the feed.
    pub feed: String,
    /// True for a feed that is not configured any more, and answers 410.
    pub is_gone: bool,
    /// Readers that all software claims.
    pub claimed: u64,
    /// Active push subscriptions; `None` on a process that does not push.
    pub push_subscribers: Option<usize>,
    /// The last day.
    pub day: RequestFigures,
    /// The last thirty days.
    pub month: RequestFigures,
    /// Each kind of software, those with the most claimed readers and then the most requests first.
    pub software: Vec<SoftwareFigures>,
}

impl ReaderFigures {
    /// Number of kinds of software that misbehave.
    pub fn misbehaving(&self) -> usize {
        let faulty = |it: &&SoftwareFigures| !it.misbehaves.is_empty();
        self.software.iter().filter(faulty).count()
    }
}

/// Name of the software of a feed that has no row of its own, because the feed has too many.
pub const OTHER_SOFTWARE: &str = "(other software)";

/// Figures of several feeds.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ReaderList {
    /// Time since which this process counts.
    pub since: String,
    /// Requests since then that belong to no software, because too many new ones came at once.
    pub unattributed: u64,
    /// The feeds that somebody asked for.
    pub feeds: Vec<ReaderFigures>,
    /// Path of the feeds after these, if there are more.
    pub next: Option<String>,
}
