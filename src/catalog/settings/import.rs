//! `import` of a feed: how its archives are read.

use serde::{Deserialize, Serialize};

/// `import` of a feed: how its archives are read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ImportSettings {
    /// Seconds for which the feed is not served yet, so that it begins with its oldest item. Items
    /// found later are added after those served by then.
    pub serve_after_secs: u64,
    /// Requests of a walk at most, whatever they bring; 0 reads no archives.
    pub pages_max: u32,
    /// Seconds between two of them at least. Besides, every host has a pace of its own.
    pub page_gap_secs: u64,
    /// The same for an origin on this machine, in the place of `page_gap_secs`. Its host has no other
    /// pace for them.
    pub loopback_gap_secs: u64,
    /// Seconds after which they are read again, at most a page a minute; 0: never.
    pub again_secs: u64,
}

impl Default for ImportSettings {
    fn default() -> Self {
        Self {
            serve_after_secs: 60,
            pages_max: 1000,
            page_gap_secs: PAGE_GAP_SECS_USUAL,
            loopback_gap_secs: 0,
            again_secs: AGAIN_SECS_USUAL,
        }
    }
}

impl ImportSettings {
    /// Warnings about values that are merely risky.
    pub fn warnings(&self) -> Vec<String> {
        let again = if self.again_secs == 0 {
            u64::MAX
        } else {
            self.again_secs
        };
        let times = [
            ("page_gap_secs", self.page_gap_secs, PAGE_GAP_SECS_USUAL),
            ("again_secs", again, AGAIN_SECS_USUAL),
        ];
        let short = times.into_iter().filter(|(_, secs, usual)| secs < usual);
        short
            .map(|(key, secs, usual)| {
                format!(
                    "`import.{key}` is {secs}, shorter than the usual {usual}; give that or more, or leave it out"
                )
            })
            .collect()
    }
}

/// One page a second, as the governor has it for every host.
const PAGE_GAP_SECS_USUAL: u64 = 1;
/// Thirty days: archives change rarely (H-9).
const AGAIN_SECS_USUAL: u64 = 2_592_000;
