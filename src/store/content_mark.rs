//! High-water mark of a store: how far its content has come. The store holds one, and a file beside
//! it another; a store behind that file is an older copy. Not how either is written.

use crate::feed::stamp::Stamp;

/// Microseconds by which the last T of a mark may lie after now; behind that it is a wrong clock's,
/// and says nothing of T.
const AHEAD_US_MAX: u64 = 86_400 * 1_000_000;

/// The state of a store's content in three numbers. States of polls do not count.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct ContentMark {
    /// A random number that the store was given when it was made; copies share it.
    pub(super) store: u64,
    /// Durable commits so far that changed an item.
    pub(super) commits: u64,
    /// The last T that any of its feeds has given out.
    pub(super) last_t: Stamp,
    /// The generation of feeds that are made from now on: the time of the last restore. What a
    /// former store gave out under their names is not known.
    pub(super) generation: Stamp,
}

impl ContentMark {
    /// The mark after another commit.
    #[must_use]
    pub(super) fn after_commit(self, last_t: Stamp) -> Self {
        Self {
            commits: self.commits + 1,
            last_t: self.last_t.max(last_t),
            ..self
        }
    }

    /// True for a store behind the mark that was left of the content at its place: some of that
    /// is not in it.
    pub(super) fn is_behind(&self, left: &Self) -> bool {
        if self.store != left.store {
            return left.commits > 0;
        }
        self.commits < left.commits || self.last_t < left.last_t
    }

    /// The mark of a store that goes on where this one is, with new generations that begin at
    /// `until`; `left` is the mark that was left at its place.
    #[must_use]
    pub(super) fn restored(self, left: Option<&Self>, until: Stamp) -> Self {
        let left = left.map_or(0, |left| left.commits);
        Self {
            store: self.store,
            commits: self.commits.max(left) + 1,
            last_t: self.last_t.max(until),
            generation: until,
        }
    }

    /// The beginning of the generation after this mark: now, or its last T if a clock that runs
    /// somewhat ahead has given that out.
    pub(super) fn generation_after(left: Option<&Self>, now: Stamp) -> Stamp {
        let latest = Stamp::from_micros(now.micros().saturating_add(AHEAD_US_MAX));
        let left = left.map(|left| left.last_t).filter(|t| *t <= latest);
        left.map_or(now, |t| t.max(now))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mark(store: u64, commits: u64, secs: u64) -> ContentMark {
        ContentMark {
            store,
            commits,
            last_t: Stamp::from_secs(secs),
            generation: Stamp::ZERO,
        }
    }

    #[test]
    fn a_mark_behind_the_store_is_normal_and_a_store_behind_the_mark_is_a_copy() {
        let store = mark(7, 10, 100);
        assert!(!store.is_behind(&store));
        assert!(!store.is_behind(&mark(7, 9, 90)), "a crash before the mark");
        assert!(store.is_behind(&mark(7, 11, 110)));
        // Another store: what was left is not in it, unless nothing was.
        assert!(store.is_behind(&mark(8, 1, 1)));
        assert!(!store.is_behind(&mark(8, 0, 0)));
    }

    #[test]
    fn a_restored_store_is_never_behind_the_mark_that_was_left() {
        for left in [mark(7, 40, 900), mark(8, 4, 50)] {
            let until = ContentMark::generation_after(Some(&left), Stamp::from_secs(500));
            let restored = mark(7, 10, 100).restored(Some(&left), until);
            let same_store = ContentMark {
                store: restored.store,
                ..left
            };
            assert!(!restored.is_behind(&same_store) && same_store.is_behind(&restored));
        }
    }

    #[test]
    fn a_mark_from_the_future_does_not_take_t_there() {
        let now = Stamp::from_secs(1_000_000);
        let left = mark(7, 1, 1_000_050);
        assert_eq!(
            ContentMark::generation_after(Some(&left), now),
            left.last_t,
            "clocks differ"
        );
        let left = mark(7, 1, 90_000_000);
        assert_eq!(ContentMark::generation_after(Some(&left), now), now);
    }
}
