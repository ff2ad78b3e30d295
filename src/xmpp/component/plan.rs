//! What is pushed next: the feeds that hold something new, and for whom each is read; not what is
//! pushed.

use crate::{
    feed::record::{FeedNo, Head},
    notify::Notify,
    store::SubscriptionNo,
};
use futures_util::{future::BoxFuture, stream::FuturesUnordered};
use std::collections::{BTreeSet, HashMap, HashSet};
use tokio::sync::watch;

/// A feed that has moved, or may not be watched any more.
pub(super) type Moved = BoxFuture<'static, (FeedNo, Option<watch::Receiver<Head>>)>;

/// Feeds that are read for subscribers, and who reads each.
#[derive(Default)]
pub(super) struct Plan {
    pub(super) readers: HashMap<FeedNo, BTreeSet<SubscriptionNo>>,
    /// The feed that is read for each.
    pub(super) read_for: HashMap<SubscriptionNo, FeedNo>,
    watched: HashSet<FeedNo>,
    pub(super) moves: FuturesUnordered<Moved>,
    /// Feeds that may hold something new.
    pub(super) due: BTreeSet<FeedNo>,
}

impl Plan {
    /// Puts a subscriber to the feed that is read for it, which is due.
    pub(super) fn put(&mut self, no: SubscriptionNo, read: FeedNo, notify: &Notify) {
        if self.read_for.get(&no) != Some(&read) {
            self.take(no);
            self.read_for.insert(no, read);
            self.readers.entry(read).or_default().insert(no);
            self.due.insert(read);
        }
        if self.watched.insert(read) {
            match notify.watch(read) {
                Some(changes) => self.moves.push(next_move(read, changes)),
                None => {
                    self.watched.remove(&read);
                }
            }
        }
    }

    pub(super) fn take(&mut self, no: SubscriptionNo) {
        let Some(read) = self.read_for.remove(&no) else {
            return;
        };
        if let Some(readers) = self.readers.get_mut(&read) {
            readers.remove(&no);
            if readers.is_empty() {
                self.readers.remove(&read);
            }
        }
    }

    /// Notes that a feed has moved, and waits for its next move as long as somebody reads it.
    pub(super) fn note(&mut self, (feed, changes): (FeedNo, Option<watch::Receiver<Head>>)) {
        self.due.insert(feed);
        match changes {
            Some(changes) if self.readers.contains_key(&feed) => {
                self.moves.push(next_move(feed, changes));
            }
            Some(_) => {
                self.watched.remove(&feed);
            }
            // A look after a pause, beside the watch.
            None => {}
        }
    }
}

/// The next move of a feed.
fn next_move(feed: FeedNo, mut changes: watch::Receiver<Head>) -> Moved {
    Box::pin(async move {
        match changes.changed().await {
            Ok(()) => (feed, Some(changes)),
            // It was forgotten: the catalog says so, too.
            Err(_) => std::future::pending().await,
        }
    })
}
