//! Permanent redirects of a feed: from when on its new address is asked; not how they are followed.

use crate::stamp::Stamp;

/// Seconds for which permanent redirects must agree before they are believed (POLLING 0.7).
const MOVED_SECS: u64 = 7 * 86_400;

/// Permanent redirects that agree.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PermanentMove {
    /// The URL to which they lead.
    pub url: String,
    /// Since when every answer says so.
    pub since: Stamp,
}

impl PermanentMove {
    /// Those after an answer to a request for `asked`, if it came by permanent redirects alone to
    /// `to`. One that ceases is forgotten.
    pub(super) fn after(
        held: Option<Self>,
        to: Option<&str>,
        asked: &str,
        now: Stamp,
    ) -> Option<Self> {
        // What is asked at its new address already needs no redirect.
        let url = to.unwrap_or(asked);
        let held = held.filter(|held| held.url == url);
        held.or_else(|| {
            to.map(|to| Self {
                url: to.to_owned(),
                since: now,
            })
        })
    }

    // Decides: From when on is a feed polled at the address to which it redirects?
    /// True when they have agreed for days.
    pub(super) fn is_believed(&self, now: Stamp) -> bool {
        now >= self.since.plus_secs(MOVED_SECS)
    }
}
