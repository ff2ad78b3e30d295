//! The store in one redb file: one thread writes, a bounded pool reads; the tables are in [`tables`], not here.

use super::{Answer, Commit, Receipt, Store, StoreError, Subscription, SubscriptionNo};
use crate::{
    clock::Clock,
    feed::{
        archive::{ArchiveWalk, StagedPage, StagedWalk},
        item::{Item, ItemId, KeyHash},
        observation_record::ObservationRecord,
        page::{Page, PageQuery},
        reconcile::{Evidence, Known},
        record::{FeedNo, FeedRecord},
        schedule::PollState,
        stamp::Stamp,
    },
};
use reader::Reader;
use serde::{Deserialize, Serialize};
use std::{
    path::{Path, PathBuf},
    sync::Arc,
};
use writer::Writer;

mod tables;

mod file;

mod rows;

mod listing;

mod reader;

mod writer;

mod commit;

mod subs;

#[cfg(test)]
mod tests;

/// `[store]`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Config {
    /// The file, made when it is missing; its folder must exist. Relative paths count from the working directory.
    pub path: PathBuf,
    /// Memory for pages of the file, in bytes.
    pub cache_bytes: usize,
}

impl Default for Config {
    fn default() -> Self {
        Self { path: PathBuf::from("everfeed.redb"), cache_bytes: 128 << 20 }
    }
}

/// A store in a file. What was answered with `Ok` is on the disk. Dropping it finishes what was queued, too, but blocks
/// meanwhile; [`Store::close`] does not.
pub struct Redb {
    // Above the reader, and so dropped first: it ends with a commit, for which the file must still be open.
    writer: Writer,
    reader: Reader,
}

impl Redb {
    /// Opens the file at `path`, which is `config.path` as the caller resolved it, or makes it. Blocks; after a kill for less than a second (quick repair).
    ///
    /// `Schema` when the file is none of ours or a newer everfeed's, `Failed` when another process has it open.
    pub fn open(path: &Path, config: &Config, clock: Arc<dyn Clock>) -> Result<Self, StoreError> {
        Self::over(file::open(path, config.cache_bytes)?, clock)
    }

    fn over(database: ::redb::Database, clock: Arc<dyn Clock>) -> Result<Self, StoreError> {
        let database = Arc::new(database);
        let writer = Writer::start(Arc::clone(&database), clock)?;
        Ok(Self { writer, reader: Reader::new(database) })
    }
}

impl Store for Redb {
    fn register<'a>(&'a self, name: &'a str, namespace: &'a str) -> Answer<'a, FeedRecord> {
        let (name, namespace) = (name.to_owned(), namespace.to_owned());
        Box::pin(self.writer.run(move |writing| commit::register(writing, &name, &namespace)))
    }

    fn feeds(&self) -> Answer<'_, Vec<FeedRecord>> {
        Box::pin(self.reader.run(rows::records))
    }

    fn feed(&self, feed: FeedNo) -> Answer<'_, FeedRecord> {
        Box::pin(self.reader.run(move |snapshot| rows::record(snapshot, feed)))
    }

    fn known(&self, feed: FeedNo, keys: Vec<KeyHash>) -> Answer<'_, Known> {
        Box::pin(self.reader.run(move |snapshot| rows::known(snapshot, feed, &keys)))
    }

    fn commit(&self, commit: Commit) -> Answer<'_, Receipt> {
        Box::pin(self.writer.run(move |writing| commit::commit(writing, &commit)))
    }

    fn polls(&self) -> Answer<'_, Vec<(FeedNo, PollState)>> {
        Box::pin(self.reader.run(rows::polls))
    }

    fn save_polls(&self, polls: Vec<(FeedNo, PollState)>, hosts: Vec<(String, Stamp)>) -> Answer<'_, ()> {
        Box::pin(self.writer.run(move |writing| commit::save_polls(writing, &polls, &hosts)))
    }

    fn hosts(&self) -> Answer<'_, Vec<(String, Stamp)>> {
        Box::pin(self.reader.run(rows::hosts))
    }

    fn stage(&self, feed: FeedNo, walk: ArchiveWalk, page: Option<StagedPage>) -> Answer<'_, ()> {
        Box::pin(self.writer.run(move |writing| commit::stage(writing, feed, &walk, page.as_ref())))
    }

    fn staged(&self, feed: FeedNo) -> Answer<'_, StagedWalk> {
        Box::pin(self.reader.run(move |snapshot| rows::staged(snapshot, feed)))
    }

    fn walks(&self) -> Answer<'_, Vec<(FeedNo, ArchiveWalk)>> {
        Box::pin(self.reader.run(rows::walks))
    }

    fn page(&self, query: PageQuery) -> Answer<'_, Page> {
        Box::pin(self.reader.run(move |snapshot| listing::page(snapshot, &query)))
    }

    fn item(&self, feed: FeedNo, id: ItemId) -> Answer<'_, Option<Arc<Item>>> {
        Box::pin(self.reader.run(move |snapshot| rows::Items::of(snapshot, feed)?.item(id)))
    }

    fn evidence(&self, feed: FeedNo, id: ItemId) -> Answer<'_, Vec<(Stamp, Evidence)>> {
        Box::pin(self.reader.run(move |snapshot| rows::evidence(snapshot, feed, id)))
    }

    fn observations(&self, feed: FeedNo) -> Answer<'_, Vec<(u64, ObservationRecord)>> {
        Box::pin(self.reader.run(move |snapshot| rows::observations(snapshot, feed)))
    }

    fn put_sub(&self, sub: Subscription) -> Answer<'_, SubscriptionNo> {
        Box::pin(self.writer.run(move |writing| subs::put(writing, &sub)))
    }

    fn sub(&self, sub: SubscriptionNo) -> Answer<'_, Option<Subscription>> {
        Box::pin(self.reader.run(move |snapshot| subs::sub(snapshot, sub)))
    }

    fn find_sub<'a>(&'a self, topic: &'a str, callback: &'a str) -> Answer<'a, Option<Subscription>> {
        let (topic, callback) = (topic.to_owned(), callback.to_owned());
        Box::pin(self.reader.run(move |snapshot| subs::find(snapshot, &topic, &callback)))
    }

    fn subs(&self) -> Answer<'_, Vec<Subscription>> {
        Box::pin(self.reader.run(subs::all))
    }

    fn subs_of(&self, feed: FeedNo) -> Answer<'_, Vec<Subscription>> {
        Box::pin(self.reader.run(move |snapshot| subs::of_feed(snapshot, feed)))
    }

    fn drop_sub(&self, sub: SubscriptionNo) -> Answer<'_, bool> {
        Box::pin(self.writer.run(move |writing| subs::end(writing, sub)))
    }

    fn advance(&self, sub: SubscriptionNo, from: String, to: String) -> Answer<'_, bool> {
        Box::pin(self.writer.run(move |writing| subs::advance(writing, sub, &from, &to)))
    }

    fn check(&self) -> Answer<'_, ()> {
        Box::pin(self.writer.run(|writing| writing.check_clock()))
    }

    fn accept_clock(&self) -> Answer<'_, ()> {
        Box::pin(self.writer.run(|writing| {
            writing.accept_clock();
            Ok(())
        }))
    }

    fn close(&self) -> Answer<'_, ()> {
        Box::pin(async {
            self.writer.close().await?;
            self.reader.close().await;
            Ok(())
        })
    }
}
