//! When a feed is polled next, and what is remembered between polls; not the polling.

use super::stamp::Stamp;
use everfeed_adapters::Digest;
use serde::{Deserialize, Serialize};

/// What is remembered of a feed's polls. Saved after every poll.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PollState {
    /// `ETag` of the last answer that carried one, verbatim, with `last_modified` as one pair (FRB 014).
    pub etag: Option<String>,
    /// `Last-Modified` of the same answer, verbatim.
    pub last_modified: Option<String>,
    /// Digest of the last good body.
    pub body: Option<Digest>,
    /// When the feed is due.
    pub next_at: Stamp,
    /// When it was last polled, whatever came of it.
    pub polled_at: Option<Stamp>,
    /// When it last answered well, 304 included.
    pub good_at: Option<Stamp>,
    /// When an unconditional GET last succeeded.
    pub unconditional_at: Option<Stamp>,
    /// When new items last came, newest last, at most [`PollState::ARRIVALS_MAX`].
    pub arrivals: Vec<Stamp>,
    /// Polls that failed in a row.
    pub failures: u32,
    /// What is wrong now, and whose fault it is.
    pub fault: Option<FaultNote>,
    /// Set by 410: polling is paused.
    pub gone_at: Option<Stamp>,
    /// Where permanent redirects have led, and since when they agree.
    pub moved: Option<Moved>,
    /// Seconds that the publisher asks for between polls, from headers and the document.
    pub hinted_secs: Option<u64>,
    /// Hours of the day, GMT, in which the publisher wants no polls.
    pub skip_hours: Vec<u8>,
    /// Days of the week, Monday 0, in which the publisher wants no polls.
    pub skip_days: Vec<u8>,
}

impl PollState {
    /// Arrivals remembered.
    pub const ARRIVALS_MAX: usize = 10;
}

/// Permanent redirects that agree.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Moved {
    /// Where to.
    pub url: String,
    /// Since when every answer says so.
    pub since: Stamp,
}

/// What is wrong with a feed, for its operator.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FaultNote {
    /// Whose fault it is.
    pub whose: Whose,
    /// What happened, without secrets.
    pub text: String,
    /// The HTTP status, if an answer came.
    pub status: Option<u16>,
    /// Since when.
    pub since: Stamp,
}

/// Whose fault something is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Whose {
    /// The publisher's server or what lies on the way to it.
    Upstream,
    /// Ours: configuration, disk, clock.
    Ours,
}
