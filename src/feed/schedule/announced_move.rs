//! A move that the documents of a feed announce (`itunes:new-feed-url`, `redirect` of RSS): from when
//! on the new address is asked. Not redirects of the server.

use super::{FaultKind, NoAnswerCause};
use crate::stamp::Stamp;

/// Seconds for which documents must agree before their word is followed (UPSTREAM U-62; POLLING 0.7
/// has as many for redirects).
const ANNOUNCED_SECS: u64 = 7 * 86_400;

/// A move that documents announce.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AnnouncedMove {
    /// The new address.
    pub url: String,
    /// Since when every document says so.
    pub since: Stamp,
    /// True once the new address has answered with the same feed.
    pub is_taken: bool,
}

impl AnnouncedMove {
    /// The move after a document that names this address as the new one, or none.
    pub(super) fn after(held: Option<Self>, to: Option<&str>, now: Stamp) -> Option<Self> {
        let to = to?;
        let held = held.filter(|held| held.url == to);
        held.or_else(|| {
            Some(Self {
                url: to.to_owned(),
                since: now,
                is_taken: false,
            })
        })
    }

    // Decides: From when on is a feed polled at the address that its documents announce?
    /// True when they have agreed for days.
    pub(super) fn is_believed(&self, now: Stamp) -> bool {
        self.is_taken || now >= self.since.plus_secs(ANNOUNCED_SECS)
    }

    /// True for a failure at the new address that takes the move back. Before the feed was read there,
    /// any does; afterwards only the word that there is none.
    pub(super) fn is_undone_by(&self, failure: &FaultKind) -> bool {
        let leads_elsewhere = matches!(
            failure,
            FaultKind::NoAnswer {
                cause: Some(NoAnswerCause::Redirect),
                ..
            }
        );
        !self.is_taken || failure.says_no_feed() || leads_elsewhere
    }
}
