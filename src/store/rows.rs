//! The store over the rows of any engine: everything that is kept, written once; not how rows are
//! kept, which is the engine's business.

use super::{
    CatalogStore, Commit, Feeds, GroupStep, Groups, Receipt, Snapshot, StoreCounts, StoreError,
    StoreFuture, WantedGroup, Witnessed, engine::RowReader,
};
use crate::feed::{
    group::{GroupRecord, Holder},
    item::{Item, ItemId, KeyHash},
    observation_record::ObservationRecord,
    page::{Page, PageQuery},
    part::WantedPart,
    reconcile::Evidence,
    record::{FeedNo, FeedRecord},
    stamp::Stamp,
};
use std::sync::Arc;
pub(in crate::store) use writing::Writing;

pub(in crate::store) mod tables;

pub(in crate::store) mod open_table;

pub(in crate::store) mod writing;

pub(in crate::store) mod removed;

pub(in crate::store) mod reads;

pub(in crate::store) mod derived;

pub(in crate::store) mod counted;

pub(in crate::store) mod salvage;

mod listing;

pub(in crate::store) mod word_index;

pub(in crate::store) mod planned;

mod groups;

pub(in crate::store) mod commit;

mod polls;

pub(in crate::store) mod catalog;

pub(in crate::store) mod accounts;

mod sites;

mod registry;

mod events;

mod pushed_feeds;

mod index_now;
mod opml_lists;

mod forgotten;

pub(in crate::store) mod subscriptions;

/// An engine that runs the work of the store.
pub(in crate::store) trait Engine: Send + Sync {
    /// Reads one snapshot. It may be read again, if the storage fails.
    fn read<T: Send + 'static>(
        &self,
        work: impl Fn(&dyn RowReader) -> Result<T, StoreError> + Send + 'static,
    ) -> StoreFuture<'_, T>;

    /// The same for few rows, on the thread of the caller where the engine allows it.
    fn read_in_place<T: Send + 'static>(
        &self,
        work: impl Fn(&dyn RowReader) -> Result<T, StoreError> + Send + 'static,
    ) -> StoreFuture<'_, T> {
        self.read(work)
    }

    /// Writes in a transaction, and answers when it is durable. The work may be done again in
    /// another transaction, so it depends on nothing but what it reads there.
    fn write<T: Send + 'static>(
        &self,
        work: impl FnMut(&mut Writing<'_>) -> Result<T, StoreError> + Send + 'static,
    ) -> StoreFuture<'_, T>;
}

impl<E: Engine> CatalogStore for E {
    fn register_all(&self, feeds: Vec<(String, String)>) -> StoreFuture<'_, Vec<FeedRecord>> {
        self.write(move |writing| catalog::register_all(writing, &feeds))
    }

    fn feed_named<'a>(&'a self, name: &'a str) -> StoreFuture<'a, Option<FeedRecord>> {
        let name = name.to_owned();
        self.read(move |snapshot| catalog::named(snapshot, &name))
    }

    fn feeds(&self, after: Option<FeedNo>, max: usize) -> StoreFuture<'_, Vec<FeedRecord>> {
        self.read(move |snapshot| reads::records(snapshot, after, max))
    }

    fn feed_names(
        &self,
        after: Option<String>,
        max: usize,
    ) -> StoreFuture<'_, Vec<(String, FeedNo)>> {
        self.read(move |snapshot| catalog::names(snapshot, after.as_deref(), max))
    }

    fn forget(&self, feed: FeedNo) -> StoreFuture<'_, bool> {
        self.write(move |writing| catalog::forget(writing, feed))
    }

    fn counts(&self) -> StoreFuture<'_, StoreCounts> {
        self.read(catalog::counts)
    }
}

impl<E: Engine> Feeds for E {
    fn feed(&self, feed: FeedNo) -> StoreFuture<'_, FeedRecord> {
        self.read(move |snapshot| reads::record(snapshot, feed))
    }

    fn snapshot(&self, feed: FeedNo, keys: Vec<KeyHash>) -> StoreFuture<'_, Snapshot> {
        read_items(self, feed, move |snapshot| {
            reads::snapshot(snapshot, feed, &keys)
        })
    }

    fn witnessed(&self, feed: FeedNo, witnesses: Vec<KeyHash>) -> StoreFuture<'_, Witnessed> {
        read_items(self, feed, move |snapshot| {
            reads::witnessed(snapshot, feed, &witnesses)
        })
    }

    fn ids(&self, feed: FeedNo, keys: Vec<KeyHash>) -> StoreFuture<'_, Vec<(KeyHash, ItemId)>> {
        self.read(move |snapshot| reads::ids(snapshot, feed, &keys))
    }

    fn commit(&self, commit: Commit) -> StoreFuture<'_, Receipt> {
        self.write(move |writing| commit::commit(writing, &commit))
    }

    fn page(&self, query: PageQuery) -> StoreFuture<'_, Page> {
        read_items(self, query.feed, move |snapshot| {
            listing::page(snapshot, &query)
        })
    }

    fn page_in_place(&self, query: PageQuery) -> StoreFuture<'_, Page> {
        self.read_in_place(move |snapshot| {
            salvage::named(snapshot, query.feed, listing::page(snapshot, &query))
        })
    }

    fn item(&self, feed: FeedNo, id: ItemId) -> StoreFuture<'_, Option<Arc<Item>>> {
        read_items(self, feed, move |snapshot| {
            reads::Items::of(snapshot, feed)?.item(id)
        })
    }

    fn evidence(&self, feed: FeedNo, id: ItemId) -> StoreFuture<'_, Vec<(Stamp, Evidence)>> {
        self.read(move |snapshot| reads::evidence(snapshot, feed, id))
    }

    fn observations(&self, feed: FeedNo) -> StoreFuture<'_, Vec<(u64, ObservationRecord)>> {
        self.read(move |snapshot| reads::observations(snapshot, feed))
    }
}

impl<E: Engine> Groups for E {
    fn set_group(&self, group: FeedNo, wanted: WantedGroup) -> StoreFuture<'_, GroupStep> {
        self.write(move |writing| groups::set(writing, group, &wanted))
    }

    fn advance_group(&self, group: FeedNo, items_max: usize) -> StoreFuture<'_, GroupStep> {
        self.write(move |writing| groups::advance(writing, group, items_max))
    }

    fn set_parts(&self, feed: FeedNo, wanted: Vec<WantedPart>) -> StoreFuture<'_, Vec<FeedRecord>> {
        self.write(move |writing| catalog::set_parts(writing, feed, &wanted))
    }

    fn group(&self, group: FeedNo) -> StoreFuture<'_, Option<GroupRecord>> {
        self.read(move |snapshot| groups::group(snapshot, group))
    }

    fn holders(&self, group: FeedNo, post: ItemId) -> StoreFuture<'_, Vec<Holder>> {
        self.read(move |snapshot| groups::holders(snapshot, group, post))
    }
}

/// Reads one snapshot; damage of an item of the feed is told with the item.
fn read_items<E: Engine, T: Send + 'static>(
    engine: &E,
    feed: FeedNo,
    work: impl Fn(&dyn RowReader) -> Result<T, StoreError> + Send + 'static,
) -> StoreFuture<'_, T> {
    engine.read(move |snapshot| salvage::named(snapshot, feed, work(snapshot)))
}
