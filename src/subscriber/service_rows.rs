//! The rows of all feeds in memory: by feed, by token, and by the time at which something is to be
//! done; not what that is.

use crate::feed::{pushed_feed::PushedFeed, record::FeedNo, stamp::Stamp};
use std::collections::{BTreeSet, HashMap};

/// The rows of all feeds.
#[derive(Default)]
pub(super) struct ServiceRows {
    rows: HashMap<FeedNo, PushedFeed>,
    tokens: HashMap<String, FeedNo>,
    due: BTreeSet<(Stamp, FeedNo)>,
    /// Times at which the rows stand in `due`.
    due_at: HashMap<FeedNo, Stamp>,
    /// Rows that are not in the store as they are.
    unwritten: BTreeSet<FeedNo>,
}

impl ServiceRows {
    /// The row of a feed.
    pub(super) fn row(&self, feed: FeedNo) -> Option<&PushedFeed> {
        self.rows.get(&feed)
    }

    /// The feeds that have rows.
    pub(super) fn feeds(&self) -> Vec<FeedNo> {
        self.rows.keys().copied().collect()
    }

    /// Takes in a row as it is in the store.
    pub(super) fn put(&mut self, feed: FeedNo, row: PushedFeed) {
        self.take_out(feed);
        for token in row.tokens() {
            self.tokens.insert(token.to_owned(), feed);
        }
        self.put_off(feed, row.next_at());
        self.rows.insert(feed, row);
    }

    /// Changes the row of a feed, which begins empty. One that is over is removed.
    pub(super) fn change<T>(
        &mut self,
        feed: FeedNo,
        change: impl FnOnce(&mut PushedFeed) -> T,
    ) -> T {
        let before = self.rows.get(&feed).cloned().unwrap_or_default();
        let mut row = before.clone();
        let result = change(&mut row);
        if row == before {
            return result;
        }
        self.unwritten.insert(feed);
        if row.is_over() {
            self.take_out(feed);
        } else {
            self.put(feed, row);
        }
        result
    }

    /// Removes the row of a feed that was forgotten.
    pub(super) fn remove(&mut self, feed: FeedNo) {
        self.take_out(feed);
        self.unwritten.remove(&feed);
    }

    fn take_out(&mut self, feed: FeedNo) {
        if let Some(at) = self.due_at.remove(&feed) {
            self.due.remove(&(at, feed));
        }
        for token in self.rows.remove(&feed).iter().flat_map(PushedFeed::tokens) {
            self.tokens.remove(token);
        }
    }

    /// The feed whose callback has this token.
    pub(super) fn of_token(&self, token: &str) -> Option<FeedNo> {
        self.tokens.get(token).copied()
    }

    /// Sets the time at which a feed is looked at.
    pub(super) fn put_off(&mut self, feed: FeedNo, until: Stamp) {
        if let Some(at) = self.due_at.insert(feed, until) {
            self.due.remove(&(at, feed));
        }
        self.due.insert((until, feed));
    }

    /// Time at which the next feed is looked at.
    pub(super) fn next_at(&self) -> Stamp {
        self.due.first().map_or(Stamp::MAX, |(at, _)| *at)
    }

    /// Takes the feed that has been due for longest out of the queue.
    pub(super) fn pop_due(&mut self, now: Stamp) -> Option<FeedNo> {
        let (at, feed) = *self.due.first().filter(|(at, _)| *at <= now)?;
        self.due.remove(&(at, feed));
        self.due_at.remove(&feed);
        Some(feed)
    }

    /// The rows that are not in the store as they are.
    pub(super) fn unwritten(&self) -> Vec<FeedNo> {
        self.unwritten.iter().copied().collect()
    }

    /// Takes a row that is to be written, `None` for one that is to be removed; or nothing where it
    /// is written already.
    #[expect(
        clippy::option_option,
        reason = "a row that is removed is written, too"
    )]
    pub(super) fn take_unwritten(&mut self, feed: FeedNo) -> Option<Option<PushedFeed>> {
        let is_unwritten = self.unwritten.remove(&feed);
        is_unwritten.then(|| self.rows.get(&feed).cloned())
    }

    /// Notes that a row could not be written.
    pub(super) fn not_written(&mut self, feed: FeedNo) {
        self.unwritten.insert(feed);
    }
}
