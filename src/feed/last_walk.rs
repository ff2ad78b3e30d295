//! The last completed walk through a feed's archives, and the time of the next one.

use super::{history::History, stamp::Stamp};

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
}

/// Seconds from a walk that missed something to the one that decides (POLLING 2.3: two walks, 24 h apart at least).
pub(super) const APART_SECS: u64 = 86_400;

impl LastWalk {
    /// Of one that came to its end before its first page.
    pub fn at_once(found: History, now: Stamp) -> Self {
        Self { began_at: now, ended_at: now, found, ..Self::default() }
    }

    /// Time of the next walk, if archives are walked every so many seconds; `None` for 0.
    pub fn again_at(&self, again_secs: u64) -> Option<Stamp> {
        let secs = if self.missed > 0 { again_secs.min(APART_SECS) } else { again_secs };
        (again_secs > 0 && self.found != History::Unknown).then(|| self.ended_at.plus_secs(secs))
    }
}
