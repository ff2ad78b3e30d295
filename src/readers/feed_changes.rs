//! The changes of a feed since a state, read back once for all who wait with a filter; each filter
//! is held against them once. Not who waits, nor what a page shows.

use super::{ReadError, Readers};
use crate::{
    feed::{
        filter::{
            Filter,
            changed_items::{ChangedItems, ViewChange},
        },
        order::{Axis, Order},
        page::PageQuery,
        position::Position,
        record::{FeedNo, Head},
        stamp::Stamp,
        view::View,
    },
    locks::lock,
    store::COUNT_ROWS_MAX,
};
use moka::{future::Cache, policy::EvictionPolicy};
use std::{
    collections::HashMap,
    sync::{Arc, Mutex, OnceLock},
    time::Duration,
};

/// Items that are read at once; of more changes, every so many are held against all filters before
/// the next are read.
const ITEMS_MAX: usize = 100;
/// Bytes of stored items that are read at once, though never less than one item.
const BYTES_MAX: usize = 1 << 20;
/// Reads that are kept: those who wait for a feed ask for the same within milliseconds.
const KEPT_MAX: u64 = 32;
/// Seconds for which a read is kept: what is forgotten for good is not to lie about.
const KEPT_SECS: u64 = 10;
/// Views whose totals are remembered.
const TOTALS_MAX: u64 = 20_000;
/// Filters at most of which one read remembers what it means to them.
const FILTERS_MAX: usize = 100_000;

/// Facts that are remembered of views with terms, and of their feeds.
pub(super) struct FilteredViews {
    /// Number of items of views, and the head at which they were counted.
    pub(super) totals: Cache<View, (Head, Option<u64>)>,
    /// Changes that were read, by feed, the stamp after which they begin, and the state that was
    /// announced.
    changes: Cache<(FeedNo, Stamp, Head), Arc<FeedChanges>>,
}

impl Default for FilteredViews {
    fn default() -> Self {
        // The newest read is always kept, however often former ones were asked for.
        let newest_first = EvictionPolicy::lru();
        let changes = Cache::builder()
            .max_capacity(KEPT_MAX)
            .eviction_policy(newest_first);
        let changes = changes.time_to_live(Duration::from_secs(KEPT_SECS)).build();
        Self {
            totals: Cache::new(TOTALS_MAX),
            changes,
        }
    }
}

/// Items of a feed that were changed after a state, up to another.
pub(super) struct FeedChanges {
    items: ChangedItems,
    /// The state up to which they are all.
    pub(super) end: Head,
    /// The cursor of the last of them by each axis that is read in the order of first sight or of
    /// change; `None` where there is none, or where more are to be read before it may be passed.
    last_modified: Option<(Stamp, String)>,
    last_created: Option<(Stamp, String)>,
    in_views: Mutex<InViews>,
}

/// Meaning of changes for each view that was held against them.
type InViews = HashMap<(Order, Filter), Arc<OnceLock<ViewChange>>>;

impl FeedChanges {
    /// Their meaning for a view; the same view is held against them once.
    pub(super) fn in_view(&self, filter: &Filter, order: Order) -> ViewChange {
        let key = (order, filter.clone());
        let slot = {
            let mut in_views = lock(&self.in_views);
            match in_views.get(&key) {
                Some(known) => known.clone(),
                None => {
                    let slot = Arc::<OnceLock<_>>::default();
                    if in_views.len() < FILTERS_MAX {
                        in_views.insert(key, slot.clone());
                    }
                    slot
                }
            }
        };
        *slot.get_or_init(|| self.items.in_view(filter, order))
    }

    /// The place behind the last of them in an order; `None` where a reader must not pass them by.
    pub(super) fn last(&self, order: Order) -> Option<&(Stamp, String)> {
        match order.axis {
            _ if order.reverse => None,
            Axis::Modified => self.last_modified.as_ref(),
            Axis::Created => self.last_created.as_ref(),
            Axis::Published => None,
        }
    }

    /// Filters, each with its order, that were held against them.
    #[cfg(test)]
    pub(super) fn held_against(&self) -> usize {
        lock(&self.in_views).len()
    }

    /// True where the totals of views with terms are counted.
    fn is_counted(&self) -> bool {
        self.items.feed().items.total <= COUNT_ROWS_MAX
    }
}

impl Readers {
    /// The changes of a feed after a stamp, as far as they are read at once. `announced` is what
    /// the feed has come to.
    pub(super) async fn changes(
        &self,
        feed: FeedNo,
        after: Stamp,
        announced: Head,
    ) -> Result<Arc<FeedChanges>, ReadError> {
        let key = (feed, after, announced);
        if let Some(known) = self.filtered.changes.get(&key).await {
            return Ok(known);
        }
        let read = Box::pin(
            self.filtered
                .changes
                .try_get_with(key, self.read_changes(feed, after)),
        )
        .await;
        read.map_err(|error: Arc<ReadError>| (*error).clone())
    }

    async fn read_changes(
        &self,
        feed: FeedNo,
        after: Stamp,
    ) -> Result<Arc<FeedChanges>, ReadError> {
        let query = PageQuery {
            since: Some(Position::at(after.next())),
            max: ITEMS_MAX,
            bytes_max: BYTES_MAX,
            ..PageQuery::all(feed, Order::MODIFIED)
        };
        // What was just committed is in memory, and thousands may wait for it.
        let page = self.store.page_in_place(query).await?;
        let cursor = |t: Stamp, id| page.record.cursor(t, id).map(|cursor| (t, cursor));
        let last = page.items.last();
        let last_modified = last.and_then(|item| cursor(item.modified, item.id));
        let new = page.items.iter().filter(|item| item.created > after);
        // One that was seen first among these may have been changed since, and stands behind them
        // then.
        let newest = new.max_by_key(|item| item.created).filter(|_| !page.more);
        let last_created = newest.and_then(|item| cursor(item.created, item.id));
        let head = page.record.head();
        let last_t = if page.more {
            last.map_or(after, |item| item.modified)
        } else {
            head.last_t
        };
        Ok(Arc::new(FeedChanges {
            end: Head { last_t, ..head },
            items: ChangedItems::new(page.items, page.record),
            last_modified,
            last_created,
            in_views: Mutex::default(),
        }))
    }

    /// Keeps the total of a view that some changes have made greater by so many items, or by none:
    /// it need not be counted again.
    pub(super) async fn carry_total(
        &self,
        view: &View,
        from: Head,
        changes: &FeedChanges,
        added: u64,
    ) {
        let totals = &self.filtered.totals;
        if changes.is_counted()
            && let Some((head, total)) = totals.get(view).await
            && head == from
        {
            let total = total.map(|total| total + added);
            totals.insert(view.clone(), (changes.end, total)).await;
        }
    }
}
