//! Numbers of what is held, by whom: who holds most, and what anybody has held longest; not who may
//! hold it.

use std::{
    collections::{BTreeSet, HashMap},
    hash::Hash,
};

/// The numbers that each holder holds, which rise. Nothing is kept of a holder that has none.
#[derive(Clone, Debug)]
pub struct Tally<K> {
    counts: HashMap<K, usize>,
    /// Every holder with its count, the one with most last.
    by_count: BTreeSet<(usize, K)>,
    numbers: BTreeSet<(K, u64)>,
}

impl<K> Default for Tally<K> {
    fn default() -> Self {
        Self {
            counts: HashMap::new(),
            by_count: BTreeSet::new(),
            numbers: BTreeSet::new(),
        }
    }
}

impl<K: Copy + Eq + Hash + Ord> Tally<K> {
    /// Counts one more for a holder.
    pub fn add(&mut self, holder: K, no: u64) {
        if self.numbers.insert((holder, no)) {
            let count = self.count(holder);
            self.set(holder, count, count + 1);
        }
    }

    /// Counts one less. True where the holder has none left.
    pub fn remove(&mut self, holder: K, no: u64) -> bool {
        let count = self.count(holder);
        if self.numbers.remove(&(holder, no)) {
            self.set(holder, count, count - 1);
        }
        !self.counts.contains_key(&holder)
    }

    /// The count of a holder.
    pub fn count(&self, holder: K) -> usize {
        self.counts.get(&holder).copied().unwrap_or_default()
    }

    /// The holders with their counts, the one with most first.
    pub fn by_count(&self) -> impl Iterator<Item = (K, usize)> {
        let most_first = self.by_count.iter().rev();
        most_first.map(|(count, holder)| (*holder, *count))
    }

    /// The numbers of a holder, the oldest first.
    pub fn numbers(&self, holder: K) -> impl Iterator<Item = u64> {
        let its = self.numbers.range((holder, u64::MIN)..=(holder, u64::MAX));
        its.map(|(_, no)| *no)
    }

    fn set(&mut self, holder: K, before: usize, after: usize) {
        self.by_count.remove(&(before, holder));
        if after == 0 {
            self.counts.remove(&holder);
        } else {
            self.counts.insert(holder, after);
            self.by_count.insert((after, holder));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_follow_what_is_held_and_nothing_is_kept_of_who_holds_nothing() {
        let mut tally = Tally::default();
        for (holder, no) in [('a', 1), ('b', 2), ('b', 3), ('b', 3), ('c', 4)] {
            tally.add(holder, no);
        }
        assert_eq!(
            tally.by_count().collect::<Vec<_>>(),
            [('b', 2), ('c', 1), ('a', 1)]
        );
        assert_eq!(tally.numbers('b').collect::<Vec<_>>(), [2, 3]);
        assert!(!tally.remove('b', 2));
        assert!(tally.remove('b', 3) && tally.remove('b', 3));
        assert!(tally.remove('a', 1) && tally.remove('c', 4));
        assert_eq!((tally.count('b'), tally.by_count().count()), (0, 0));
        assert!(tally.numbers.is_empty() && tally.counts.is_empty());
    }
}
