//! The store in one redb file: one thread writes, a bounded pool reads; the tables are in
//! [`tables`], not here.

pub use super::settings::Config;
use super::{
    AccountStore, BackupReport, CatalogStore, Commit, Feeds, FoundFeeds, GroupStep, Groups,
    HostPause, Polls, Receipt, SiteStore, Snapshot, StoreCounts, StoreError, StoreFuture,
    Subscription, SubscriptionNo, Subscriptions, Upkeep, Walks, WantedGroup, Watched, Witnessed,
    condition::{FileFigures, RemovalFaults, StoreCondition},
    stored::item::decode_item,
    subscriptions::{Acknowledged, Attempts, NewSubscription, Progress},
};
use crate::{
    auth::{AccessToken, NewAccessToken, NewUser, TokenNo, User, UserNo},
    clock::Clock,
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
pub use compact::{CompactReport, compact};
use file::{SeenFile, StoreFile};
pub use file::{begin_anew, missing_store};
use guarded::sheltered;
use open_file::{FileOpener as _, OpenFile};
use reader::Reader;
use redb::ReadTransaction;
pub use report::{StoreReport, TableReport, report};
pub use restore::{RestoreReport, restore};
use std::{
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};
pub use store_copy::{CopyReport, copy_store, move_store};
pub use verify::{DamageEffect, VerifiedKind, VerifyReport, verify};
use writer::{Writer, Writing};

mod tables;

mod sealed;

mod guarded;

mod overlay;

mod backup;

mod restore;

mod copy_note;

mod leaving;

mod store_copy;

#[cfg(feature = "postgres")]
pub(super) mod row_moves;

mod compact;

mod report;

mod generation;

mod mark_file;

mod removed_log;

mod removed_again;

mod verify;

mod watched_backend;

mod open_file;

mod commit_order;

mod file;

mod rows;

mod counted;

mod salvage;

mod listing;

mod word_index;

mod reader;

mod writer;

mod planned;

mod groups;

mod commit;

mod catalog;

mod accounts;

mod sites;

mod registry;

mod forgotten;

mod subscriptions;

#[cfg(test)]
mod tests;

/// A store in a file. What was answered with `Ok` is on the disk. Dropping it finishes what was
/// queued, too, but blocks meanwhile; [`Upkeep::close`] does not.
pub struct Redb {
    // Above the reader, and so dropped first: it ends with a commit, for which the file must still
    // be open.
    writer: Writer,
    reader: Reader,
    file: Arc<OpenFile>,
    clock: Arc<dyn Clock>,
    /// True once it is to be closed: a copy under way is given up.
    is_closing: Arc<AtomicBool>,
}

impl Redb {
    /// Opens the file at `path`, which is `config.path` as the caller resolved it, or makes it.
    /// Blocks; after a kill for less than a second (quick repair).
    ///
    /// `Schema` when the file is none of ours or a newer everfeed's, `Failed` when another process
    /// has it open.
    pub fn open(path: &Path, config: &Config, clock: Arc<dyn Clock>) -> Result<Self, StoreError> {
        let file = StoreFile::new(path, config.cache_bytes);
        let now = Stamp::from_micros(clock.now_us());
        let database = sheltered(|| file.open_or_make(now))?;
        Self::over(
            OpenFile::new(Box::new(file), database, clock.clone()),
            clock,
        )
    }

    /// Opens the file at a path to look at it: nothing is written to it and nothing is made, and
    /// what redb mends in it stays in memory. Blocks.
    pub fn look(path: &Path, config: &Config, clock: Arc<dyn Clock>) -> Result<Self, StoreError> {
        let file = SeenFile::new(path, config.cache_bytes);
        let database = sheltered(|| file.open())?;
        Self::over(
            OpenFile::new(Box::new(file), database, clock.clone()),
            clock,
        )
    }

    /// Reads in a snapshot.
    fn read<T: Send + 'static>(
        &self,
        work: impl Fn(&ReadTransaction) -> Result<T, StoreError> + Send + 'static,
    ) -> StoreFuture<'_, T> {
        Box::pin(self.reader.run(work))
    }

    /// The same; damage of an item of the feed is told with the item.
    fn read_items<T: Send + 'static>(
        &self,
        feed: FeedNo,
        work: impl Fn(&ReadTransaction) -> Result<T, StoreError> + Send + 'static,
    ) -> StoreFuture<'_, T> {
        self.read(move |snapshot| salvage::named(snapshot, feed, work(snapshot)))
    }

    /// Writes in a transaction.
    fn write<T: Send + 'static>(
        &self,
        work: impl FnMut(&mut Writing<'_>) -> Result<T, StoreError> + Send + 'static,
    ) -> StoreFuture<'_, T> {
        Box::pin(self.writer.run(work))
    }

    fn over(file: OpenFile, clock: Arc<dyn Clock>) -> Result<Self, StoreError> {
        let file = Arc::new(file);
        let writer = sheltered(|| Writer::start(Arc::clone(&file), clock.clone()))?;
        Ok(Self {
            writer,
            reader: Reader::new(Arc::clone(&file)),
            file,
            clock,
            is_closing: Arc::default(),
        })
    }
}

impl Watched for Redb {
    fn condition(&self) -> StoreCondition {
        self.file.condition()
    }

    fn figures(&self) -> FileFigures {
        self.file.figures()
    }

    fn keeps_forgotten(&self) -> Option<String> {
        self.file.keeps_forgotten()
    }

    fn ended_uncleanly(&self) -> bool {
        self.file.ended_uncleanly()
    }

    fn restored(&self) -> Option<String> {
        self.file.restored()
    }

    fn removal_faults(&self) -> RemovalFaults {
        self.file.removal_faults()
    }
}

/// Reads an item from the bytes that a file keeps of it under a key that ends with T, for tools
/// that look into a file.
pub fn stored_item(key: &[u8], bytes: &[u8]) -> Result<Item, StoreError> {
    let bytes = sealed::unseal(tables::ITEMS.name(), key, bytes)?;
    decode_item(tables::stamp_of(key), bytes)
}

impl CatalogStore for Redb {
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
        self.read(move |snapshot| rows::records(snapshot, after, max))
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

impl Feeds for Redb {
    fn feed(&self, feed: FeedNo) -> StoreFuture<'_, FeedRecord> {
        self.read(move |snapshot| rows::record(snapshot, feed))
    }

    fn snapshot(&self, feed: FeedNo, keys: Vec<KeyHash>) -> StoreFuture<'_, Snapshot> {
        self.read_items(feed, move |snapshot| rows::snapshot(snapshot, feed, &keys))
    }

    fn witnessed(&self, feed: FeedNo, witnesses: Vec<KeyHash>) -> StoreFuture<'_, Witnessed> {
        self.read_items(feed, move |snapshot| {
            rows::witnessed(snapshot, feed, &witnesses)
        })
    }

    fn ids(&self, feed: FeedNo, keys: Vec<KeyHash>) -> StoreFuture<'_, Vec<(KeyHash, ItemId)>> {
        self.read(move |snapshot| rows::ids(snapshot, feed, &keys))
    }

    fn commit(&self, commit: Commit) -> StoreFuture<'_, Receipt> {
        self.write(move |writing| commit::commit(writing, &commit))
    }

    fn page(&self, query: PageQuery) -> StoreFuture<'_, Page> {
        self.read_items(query.feed, move |snapshot| listing::page(snapshot, &query))
    }

    fn page_in_place(&self, query: PageQuery) -> StoreFuture<'_, Page> {
        Box::pin(self.reader.run_in_place(move |snapshot| {
            salvage::named(snapshot, query.feed, listing::page(snapshot, &query))
        }))
    }

    fn item(&self, feed: FeedNo, id: ItemId) -> StoreFuture<'_, Option<Arc<Item>>> {
        self.read_items(feed, move |snapshot| {
            rows::Items::of(snapshot, feed)?.item(id)
        })
    }

    fn evidence(&self, feed: FeedNo, id: ItemId) -> StoreFuture<'_, Vec<(Stamp, Evidence)>> {
        self.read(move |snapshot| rows::evidence(snapshot, feed, id))
    }

    fn observations(&self, feed: FeedNo) -> StoreFuture<'_, Vec<(u64, ObservationRecord)>> {
        self.read(move |snapshot| rows::observations(snapshot, feed))
    }
}

impl Polls for Redb {
    fn polls(
        &self,
        after: Option<FeedNo>,
        max: usize,
    ) -> StoreFuture<'_, Vec<(FeedNo, PollState)>> {
        self.read(move |snapshot| rows::polls(snapshot, after, max))
    }

    fn poll(&self, feed: FeedNo) -> StoreFuture<'_, Option<PollState>> {
        self.read(move |snapshot| rows::poll(snapshot, feed))
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
        self.read(move |snapshot| rows::host_pauses(snapshot, after.as_deref(), max))
    }
}

impl Walks for Redb {
    fn walks(
        &self,
        after: Option<FeedNo>,
        max: usize,
    ) -> StoreFuture<'_, Vec<(FeedNo, ArchiveWalk)>> {
        self.read(move |snapshot| rows::walks(snapshot, after, max))
    }

    fn walk(&self, feed: FeedNo) -> StoreFuture<'_, Option<ArchiveWalk>> {
        self.read(move |snapshot| rows::walk(snapshot, feed))
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
        self.read(move |snapshot| rows::staged(snapshot, feed))
    }
}

impl Subscriptions for Redb {
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
        let counted = move |snapshot: &ReadTransaction, read_max| {
            subscriptions::count_active(snapshot, feed, now, read_max)
        };
        Box::pin(async move {
            // Every poll asks, and most feeds have few: nobody is woken for that.
            let few = self
                .reader
                .run_in_place(move |snapshot| counted(snapshot, subscriptions::FEW));
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

impl AccountStore for Redb {
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

impl Groups for Redb {
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

impl SiteStore for Redb {
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

impl Upkeep for Redb {
    fn check(&self) -> StoreFuture<'_, ()> {
        self.write(|writing| writing.check_clock())
    }

    fn accept_clock(&self) -> StoreFuture<'_, ()> {
        self.write(|writing| {
            writing.accept_clock();
            Ok(())
        })
    }

    fn back_up<'a>(&'a self, file: &'a Path) -> StoreFuture<'a, BackupReport> {
        let (file, stop) = (file.to_owned(), Arc::clone(&self.is_closing));
        let open = Arc::clone(&self.file);
        let now = Stamp::from_micros(self.clock.now_us());
        self.read(move |snapshot| {
            if open.is_at(&file) {
                return Err(StoreError::Failed(format!(
                    "{} is the store itself",
                    file.display()
                )));
            }
            backup::back_up(snapshot, &file, now, &stop)
        })
    }

    fn close(&self) -> StoreFuture<'_, ()> {
        self.is_closing.store(true, Ordering::Relaxed);
        Box::pin(async {
            self.writer.close().await?;
            self.reader.close().await;
            Ok(())
        })
    }
}
