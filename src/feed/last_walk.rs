//! The last completed walk through a feed's archives, and the time of the next one.

use super::{
    history::{EndProof, History, PartialReason},
    stamp::Stamp,
};

/// The last walk through a feed's archives that came to its end.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LastWalk {
    /// Start of the walk.
    pub began_at: Stamp,
    /// End of the walk.
    pub ended_at: Stamp,
    /// Pages that it read.
    pub pages: u32,
    /// History by this walk alone.
    pub found: History,
    /// Items that it missed and that the next one may prove gone.
    pub missed: u32,
    /// Note for the operator.
    pub remark: Option<String>,
    /// Proof that it reached the first item, if it did.
    pub proof: Option<EndProof>,
}

/// Seconds from a walk that missed something to the one that decides (POLLING 2.3: two walks, 24 h
/// apart at least).
pub(super) const APART_SECS: u64 = 86_400;

/// Seconds at most from a walk that fell short by a fault that may pass to the next one.
const MEND_SECS: u64 = 7 * 86_400;

impl LastWalk {
    /// Of one that came to its end before its first page.
    pub fn at_once(found: History, now: Stamp) -> Self {
        Self {
            began_at: now,
            ended_at: now,
            found,
            ..Self::default()
        }
    }

    /// Time of the next walk, if archives are walked every so many seconds; `None` for 0, and where
    /// there was nothing to walk through. One that fell short of the first item by a fault that may
    /// pass is due sooner.
    pub fn again_at(&self, again_secs: u64) -> Option<Stamp> {
        let found_no_archives = self.found == History::Unknown && self.began_at == self.ended_at;
        let may_pass = self.found.reason().is_some_and(PartialReason::may_pass);
        if again_secs == 0 || found_no_archives {
            return None;
        }
        let secs_max = if self.missed > 0 {
            APART_SECS
        } else if may_pass {
            MEND_SECS
        } else {
            u64::MAX
        };
        Some(self.ended_at.plus_secs(again_secs.min(secs_max)))
    }
}
