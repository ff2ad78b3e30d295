//! Limits of what is kept of a feed, and which changes they refuse; not how bytes are counted.

use super::item_cap::ITEM_BYTES_MAX;

/// Limits of what is kept of a feed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KeepLimits {
    /// Bytes of one item at most, as they are once escaped in XML; what is longer is kept without
    /// the parts that make it so.
    pub item_bytes_max: usize,
    /// Bytes of all its items at most, as they are stored; `None`: any number.
    pub quota_bytes: Option<u64>,
}

impl KeepLimits {
    // Decides: Does a feed at its quota take a change in?
    /// The quota that refuses a change which adds and removes so many bytes and comes to so many in
    /// all; `None` where it is made. One that takes away at least as much as it adds always is.
    pub fn quota_against(&self, added: u64, removed: u64, in_all: u64) -> Option<u64> {
        if added <= removed {
            return None;
        }
        self.quota_bytes.filter(|quota| in_all > *quota)
    }
}

impl Default for KeepLimits {
    fn default() -> Self {
        Self {
            item_bytes_max: ITEM_BYTES_MAX,
            quota_bytes: None,
        }
    }
}
