//! `keep` of a feed: how much is kept of it; not what happens when that is reached.

use crate::{
    feed::{item_cap::ITEM_BYTES_MAX, keep_limits::KeepLimits},
    setting::RefusedSetting,
};
use serde::{Deserialize, Serialize};

/// `keep` of a feed: how much is kept of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct KeepSettings {
    /// Bytes of one item at most, as they are once escaped in XML. A longer one is kept without the
    /// parts that make it so long.
    pub item_bytes_max: usize,
    /// Bytes of all its items at most, as they are stored; 0: any number. What would pass them is
    /// not kept, and nothing is deleted for it.
    pub quota_bytes: u64,
}

/// The smallest cap of an item, bytes: room for its names and for the note that its text is left
/// out.
const ITEM_BYTES_MIN: usize = 4096;

/// The usual quota, bytes.
const QUOTA_BYTES_USUAL: u64 = 1 << 30;

impl Default for KeepSettings {
    fn default() -> Self {
        Self {
            item_bytes_max: ITEM_BYTES_MAX,
            quota_bytes: QUOTA_BYTES_USUAL,
        }
    }
}

impl KeepSettings {
    /// Values that cannot work.
    pub fn problems(&self) -> Vec<RefusedSetting> {
        if self.item_bytes_max >= ITEM_BYTES_MIN {
            return Vec::new();
        }
        let wanted = format!("give at least {ITEM_BYTES_MIN}; {ITEM_BYTES_MAX} is usual");
        vec![RefusedSetting::new(
            "keep.item_bytes_max",
            self.item_bytes_max,
            wanted,
        )]
    }

    /// The limits of a commit.
    pub fn limits(&self) -> KeepLimits {
        let quota_bytes = (self.quota_bytes > 0).then_some(self.quota_bytes);
        KeepLimits {
            item_bytes_max: self.item_bytes_max,
            quota_bytes,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_quota_of_0_is_none_and_a_cap_that_holds_no_note_is_refused() {
        let settings = |text: &str| toml::from_str::<KeepSettings>(text).unwrap();
        assert_eq!(settings("quota_bytes = 0").limits().quota_bytes, None);
        let usual = KeepLimits {
            quota_bytes: Some(1 << 30),
            ..KeepLimits::default()
        };
        assert_eq!(
            (settings("").limits(), settings("").problems()),
            (usual, vec![])
        );
        let refused = settings("item_bytes_max = 4095").problems();
        assert_eq!(
            refused[0].to_string(),
            "keep.item_bytes_max: found 4095; give at least 4096; 4194304 is usual"
        );
    }
}
