//! The store over the rows of any engine: everything that is kept, written once; not how rows are
//! kept, which is the engine's business.

use super::{
    AccountStore, CatalogStore, Commit, Feeds, FoundFeeds, GroupStep, Groups, HostPause, Polls,
    Receipt, RegistryChange, RegistryEntry, RegistryStore, SiteStore, Snapshot, StoreCounts,
    StoreError, StoreFuture, Subscription, SubscriptionNo, Subscriptions, Walks, WantedGroup,
    Witnessed,
    engine::RowReader,
    subscriptions::{Acknowledged, Attempts, NewSubscription, Progress},
};
use crate::{
    auth::{AccessToken, NewAccessToken, NewUser, TokenNo, User, UserNo},
    feed::{
        archive::{ArchiveWalk, StagedPage, StagedWalk},
        group::{GroupRecord, Holder},
        item::{Item, ItemId, KeyHash},
        legacy_document::LegacyDocument,
        observation_record::ObservationRecord,
        page::{Page, PageQuery},
        part::WantedPart,
        reconcile::Evidence,
        record::{FeedNo, FeedRecord},
        schedule::PollState,
        stamp::Stamp,
    },
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

pub(in crate::store) mod catalog;

pub(in crate::store) mod accounts;

mod sites;

mod registry;

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
        self.write(move |writing| {
            feeds
                .iter()
                .map(|(name, namespace)| catalog::register(writing, name, namespace))
                .collect()
        })
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

impl<E: Engine> Polls for E {
    fn polls(
        &self,
        after: Option<FeedNo>,
        max: usize,
    ) -> StoreFuture<'_, Vec<(FeedNo, PollState)>> {
        self.read(move |snapshot| reads::polls(snapshot, after, max))
    }

    fn poll(&self, feed: FeedNo) -> StoreFuture<'_, Option<PollState>> {
        self.read(move |snapshot| reads::poll(snapshot, feed))
    }

    fn save_polls(
        &self,
        polls: Vec<(FeedNo, PollState)>,
        pauses: Vec<HostPause>,
    ) -> StoreFuture<'_, ()> {
        self.write(move |writing| {
            commit::save_polls(writing, &polls, &pauses)?;
            writing.sync();
            Ok(())
        })
    }

    fn note_polls(&self, polls: Vec<(FeedNo, PollState)>) -> StoreFuture<'_, ()> {
        self.write(move |writing| commit::save_polls(writing, &polls, &[]))
    }

    fn host_pauses(&self, after: Option<String>, max: usize) -> StoreFuture<'_, Vec<HostPause>> {
        self.read(move |snapshot| reads::host_pauses(snapshot, after.as_deref(), max))
    }
}

impl<E: Engine> Walks for E {
    fn walks(
        &self,
        after: Option<FeedNo>,
        max: usize,
    ) -> StoreFuture<'_, Vec<(FeedNo, ArchiveWalk)>> {
        self.read(move |snapshot| reads::walks(snapshot, after, max))
    }

    fn walk(&self, feed: FeedNo) -> StoreFuture<'_, Option<ArchiveWalk>> {
        self.read(move |snapshot| reads::walk(snapshot, feed))
    }

    fn stage(
        &self,
        feed: FeedNo,
        walk: ArchiveWalk,
        page: Option<StagedPage>,
    ) -> StoreFuture<'_, ()> {
        self.write(move |writing| commit::stage(writing, feed, &walk, page.as_ref()))
    }

    fn staged(&self, feed: FeedNo) -> StoreFuture<'_, StagedWalk> {
        self.read(move |snapshot| reads::staged(snapshot, feed))
    }
}

impl<E: Engine> Subscriptions for E {
    fn subscribe(&self, new: NewSubscription) -> StoreFuture<'_, Subscription> {
        self.write(move |writing| subscriptions::subscribe(writing, &new))
    }

    fn change_subscription(
        &self,
        subscription: Subscription,
        progress: Option<Progress>,
    ) -> StoreFuture<'_, u64> {
        self.write(move |writing| {
            subscriptions::change(writing, subscription.clone(), progress.as_ref())
        })
    }

    fn subscription(
        &self,
        no: SubscriptionNo,
    ) -> StoreFuture<'_, Option<(Subscription, Progress)>> {
        self.read(move |snapshot| subscriptions::subscription(snapshot, no))
    }

    fn find_subscription<'a>(
        &'a self,
        topic: &'a str,
        address: &'a str,
    ) -> StoreFuture<'a, Option<(Subscription, Progress)>> {
        let (topic, address) = (topic.to_owned(), address.to_owned());
        self.read(move |snapshot| subscriptions::find(snapshot, &topic, &address))
    }

    fn subscriptions(
        &self,
        feed: Option<FeedNo>,
        after: Option<SubscriptionNo>,
        max: usize,
    ) -> StoreFuture<'_, Vec<(Subscription, Progress)>> {
        self.read(move |snapshot| subscriptions::list(snapshot, feed, after, max))
    }

    fn count_active(&self, feed: FeedNo, now: Stamp) -> StoreFuture<'_, usize> {
        let counted = move |snapshot: &dyn RowReader, read_max| {
            subscriptions::count_active(snapshot, feed, now, read_max)
        };
        Box::pin(async move {
            // Every poll asks, and most feeds have few: nobody is woken for that.
            let few = self.read_in_place(move |snapshot| counted(snapshot, subscriptions::FEW));
            if let Some(active) = few.await? {
                return Ok(active);
            }
            let all = self.read(move |snapshot| counted(snapshot, usize::MAX));
            Ok(all.await?.unwrap_or_default())
        })
    }

    fn end_subscription(&self, no: SubscriptionNo) -> StoreFuture<'_, bool> {
        self.write(move |writing| subscriptions::end(writing, no))
    }

    fn acknowledge(&self, acknowledged: Vec<Acknowledged>) -> StoreFuture<'_, Vec<bool>> {
        self.write(move |writing| subscriptions::acknowledge(writing, &acknowledged))
    }

    fn save_attempts(&self, attempts: Vec<(SubscriptionNo, Attempts)>) -> StoreFuture<'_, ()> {
        self.write(move |writing| subscriptions::save_attempts(writing, &attempts))
    }
}

impl<E: Engine> AccountStore for E {
    fn add_user(&self, new: NewUser) -> StoreFuture<'_, Option<User>> {
        self.write(move |writing| accounts::add_user(writing, &new))
    }

    fn users(&self, after: Option<UserNo>, max: usize) -> StoreFuture<'_, Vec<User>> {
        self.read(move |snapshot| accounts::users(snapshot, after, max))
    }

    fn change_user(&self, changed: User) -> StoreFuture<'_, bool> {
        self.write(move |writing| accounts::change_user(writing, &changed))
    }

    fn remove_user(&self, user: UserNo) -> StoreFuture<'_, bool> {
        self.write(move |writing| accounts::remove_user(writing, user))
    }

    fn add_token(&self, new: NewAccessToken) -> StoreFuture<'_, Option<AccessToken>> {
        self.write(move |writing| accounts::add_token(writing, &new))
    }

    fn tokens(&self, after: Option<TokenNo>, max: usize) -> StoreFuture<'_, Vec<AccessToken>> {
        self.read(move |snapshot| accounts::tokens(snapshot, after, max))
    }

    fn remove_token(&self, token: TokenNo) -> StoreFuture<'_, bool> {
        self.write(move |writing| accounts::remove_token(writing, token))
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

impl<E: Engine> SiteStore for E {
    fn keep_document(&self, feed: FeedNo, document: Arc<LegacyDocument>) -> StoreFuture<'_, ()> {
        self.write(move |writing| sites::keep_document(writing, feed, &document))
    }

    fn document(&self, feed: FeedNo) -> StoreFuture<'_, Option<LegacyDocument>> {
        self.read(move |snapshot| sites::document(snapshot, feed))
    }

    fn keep_found_feeds<'a>(&'a self, site: &'a str, found: FoundFeeds) -> StoreFuture<'a, ()> {
        let site = site.to_owned();
        self.write(move |writing| sites::keep_found_feeds(writing, &site, &found))
    }

    fn found_feeds<'a>(&'a self, site: &'a str) -> StoreFuture<'a, FoundFeeds> {
        let site = site.to_owned();
        self.read(move |snapshot| sites::found_feeds(snapshot, &site))
    }
}

impl<E: Engine> RegistryStore for E {
    fn change_registry(&self, changes: Vec<RegistryChange>) -> StoreFuture<'_, ()> {
        self.write(move |writing| registry::change(writing, &changes))
    }

    fn registry(&self, after: Option<String>, max: usize) -> StoreFuture<'_, Vec<RegistryEntry>> {
        self.read(move |snapshot| registry::entries(snapshot, after.as_deref(), max))
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
