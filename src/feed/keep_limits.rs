//! Limits of what is kept of a feed; not what happens at them.

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

impl Default for KeepLimits {
    fn default() -> Self {
        Self {
            item_bytes_max: ITEM_BYTES_MAX,
            quota_bytes: None,
        }
    }
}
