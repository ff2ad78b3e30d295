//! Generations of a feed: its store was restored from a copy, and what the former one gave out
//! since the copy is gone. Not how a restored store is noticed.

use super::{moment::Moment, stamp::Stamp};

/// The header that names the generation of a feed on pages, pushes and streams: the T at which it
/// began, as cursors write it, 0 for the first.
pub const GENERATION: &str = "smart-feed-generation";

/// Lost stretches that are remembered of a feed; of more, the two oldest become one.
// Limit: after more restores a cursor of a good T between the two oldest that has moved on is
// `ahead`, and its reader reads the whole feed again.
pub const LOST_STRETCHES_MAX: usize = 16;

/// The stretches of T that stores before this one gave out and this one does not know, oldest
/// first.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Lineage {
    /// Oldest first, at most [`LOST_STRETCHES_MAX`]; empty for a feed that was never restored.
    pub lost: Vec<LostStretch>,
}

/// Every T after one and up to another: changes that a restored store does not know.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LostStretch {
    /// The last T of the copy.
    pub after: Stamp,
    /// The time of the restore, at which a new generation began. Every later T is of it.
    pub until: Stamp,
}

impl Lineage {
    /// The generation: the time at which it began, [`Stamp::ZERO`] for the first. No two restores
    /// give the same one.
    pub fn generation(&self) -> Stamp {
        self.lost.last().map_or(Stamp::ZERO, |lost| lost.until)
    }

    /// True for a T of a store before this one that this one does not know.
    pub fn is_lost(&self, t: Moment) -> bool {
        let holds = |lost: &LostStretch| Moment::from(lost.after) < t && t <= lost.until.into();
        self.lost.iter().any(holds)
    }

    /// The lineage after a restore of a copy whose last T was this one. The new generation begins
    /// at `until`, or right after the last one or the last T if that is later.
    #[must_use]
    pub fn restored(&self, last_t: Stamp, until: Stamp) -> Self {
        let until = until.max(self.generation().next()).max(last_t.next());
        let mut lost = self.lost.clone();
        lost.push(LostStretch {
            after: last_t,
            until,
        });
        if lost.len() > LOST_STRETCHES_MAX {
            let oldest = lost.remove(0);
            lost[0].after = oldest.after;
        }
        Self { lost }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn secs(secs: u64) -> Stamp {
        Stamp::from_secs(secs)
    }

    #[test]
    fn what_was_given_out_after_the_copy_and_before_the_restore_is_lost() {
        let lineage = Lineage::default().restored(secs(100), secs(300));
        assert_eq!(lineage.generation(), secs(300));
        let is_lost = |t| lineage.is_lost(secs(t).into());
        assert!(!is_lost(100) && is_lost(101) && is_lost(300) && !is_lost(301));
        // Another copy of the restored store, restored later.
        let again = lineage.restored(secs(400), secs(500));
        let is_lost = |t| again.is_lost(secs(t).into());
        assert!(is_lost(200) && !is_lost(350) && !is_lost(400) && is_lost(450));
    }

    #[test]
    fn no_two_restores_give_the_same_generation() {
        let mut lineage = Lineage::default();
        for _ in 0..3 {
            let next = lineage.restored(secs(100), secs(300));
            assert!(next.generation() > lineage.generation());
            lineage = next;
        }
    }

    #[test]
    fn of_more_restores_than_are_remembered_no_lost_t_is_forgotten() {
        let mut lineage = Lineage::default();
        for at in 0..40 {
            lineage = lineage.restored(secs(at * 10 + 5), secs(at * 10 + 9));
        }
        assert_eq!(lineage.lost.len(), LOST_STRETCHES_MAX);
        assert!((0..40).all(|at| lineage.is_lost(secs(at * 10 + 7).into())));
        assert!(!lineage.is_lost(secs(392).into()));
    }
}
