//! Queue of feeds by the time at which they are due; not what happens then.

use crate::feed::{record::FeedNo, stamp::Stamp};
use std::collections::{BTreeSet, HashMap};

/// Feeds by the moment at which they are due. A feed stands in it at most once.
#[derive(Debug, Default)]
pub(super) struct DueQueue {
    due: BTreeSet<(Stamp, FeedNo)>,
    at: HashMap<FeedNo, Stamp>,
}

impl DueQueue {
    /// Puts a feed in its place, taking it out of the one that it had.
    pub(super) fn put(&mut self, feed: FeedNo, at: Stamp) {
        if let Some(old) = self.at.insert(feed, at) {
            self.due.remove(&(old, feed));
        }
        self.due.insert((at, feed));
    }

    /// The same, unless the feed is due earlier already.
    pub(super) fn put_sooner(&mut self, feed: FeedNo, at: Stamp) {
        if self.at.get(&feed).is_none_or(|held| at < *held) {
            self.put(feed, at);
        }
    }

    /// Takes out the feed that has been due for longest, and tells since when.
    pub(super) fn pop_due(&mut self, now: Stamp) -> Option<(FeedNo, Stamp)> {
        let (at, feed) = self.due.first().copied().filter(|(at, _)| *at <= now)?;
        self.due.remove(&(at, feed));
        self.at.remove(&feed);
        Some((feed, at))
    }

    /// Makes all feeds due so many microseconds earlier, but those that are due at no time.
    pub(super) fn bring_forward(&mut self, us: u64) {
        for (feed, at) in self.at.clone() {
            if at != Stamp::MAX {
                self.put(feed, Stamp::from_micros(at.micros().saturating_sub(us)));
            }
        }
    }

    /// Takes a feed out.
    pub(super) fn remove(&mut self, feed: FeedNo) {
        if let Some(at) = self.at.remove(&feed) {
            self.due.remove(&(at, feed));
        }
    }

    /// Time at which the next feed is due.
    pub(super) fn next_at(&self) -> Option<Stamp> {
        self.due.first().map(|(at, _)| *at)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn feeds_come_out_in_the_order_in_which_they_are_due_and_once() {
        let mut queue = DueQueue::default();
        let (a, b) = (FeedNo(1), FeedNo(2));
        let at = Stamp::from_secs;
        queue.put(a, at(30));
        queue.put(b, at(20));
        queue.put(a, at(10));
        assert_eq!(queue.next_at(), Some(at(10)));
        assert_eq!(queue.pop_due(at(9)), None);
        assert_eq!(
            (queue.pop_due(at(30)), queue.pop_due(at(30))),
            (Some((a, at(10))), Some((b, at(20))))
        );
        assert_eq!((queue.pop_due(Stamp::MAX), queue.next_at()), (None, None));
        queue.put(a, at(10));
        queue.put(b, Stamp::MAX);
        queue.bring_forward(4_000_000);
        assert_eq!(
            (queue.pop_due(at(6)), queue.next_at()),
            (Some((a, at(6))), Some(Stamp::MAX))
        );
        queue.remove(b);
        [20, 10, 30]
            .into_iter()
            .for_each(|secs| queue.put_sooner(a, at(secs)));
        assert_eq!(
            (queue.pop_due(Stamp::MAX), queue.next_at()),
            (Some((a, at(10))), None)
        );
    }
}
