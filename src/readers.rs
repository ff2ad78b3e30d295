//! Readers: a view of a feed with a position. One wait, one page and one rendered body for
//! identical reads, whether the reader pulls, polls long or is pushed; not the protocols they
//! speak.

use crate::{
    byte_budget::ByteBudget,
    clock::Clock,
    feed::{
        filter::Filter,
        item::{Content, Item},
        order::Order,
        page::{Degraded, PageQuery},
        record::{FeedNo, Head},
        stamp::Stamp,
    },
    mistakes::{Mistake, is_made},
    notify::Notify,
    render::Site,
    setting::{RefusedSetting, all_at_least_one},
    store::{Store, StoreError},
};
use body_permits::{BodyPermits, weight};
use bytes::Bytes;
use feed_changes::FilteredViews;
use futures_util::FutureExt as _;
use moka::future::Cache;
use serde::{Deserialize, Serialize};
use std::sync::Arc;
use thiserror::Error;
use tokio::sync::watch;

mod archive;
mod body;
mod body_permits;
pub mod coding;
mod feed_changes;
mod follow;
mod items;
mod legacy;
mod newest;
mod page;
mod push;
mod request;
mod store_read;
mod stream;
mod tag;

pub use coding::Coding;
pub use follow::Pages;
pub use legacy::{LegacyKey, PlainDocument};
pub use request::{PushMax, ReadRequest, usual_deletions};

#[cfg(test)]
pub(crate) mod testing;

#[cfg(test)]
mod tests;

/// Keys of `[server]` that bound what one read may cost.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Config {
    /// Items on a page at most: larger `max` are clamped.
    pub page_items_max: usize,
    /// Bytes of stored items on a page at most.
    pub page_bytes_max: usize,
    /// Bytes of rendered bodies kept at most.
    pub render_cache_bytes: u64,
    /// Bytes of answers at most that consumers have not read to their end, beside those kept.
    pub answers_bytes_max: usize,
    /// Items in a view for ordinary readers.
    pub classic_items: usize,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            page_items_max: 1000,
            page_bytes_max: 8 << 20,
            render_cache_bytes: 64 << 20,
            answers_bytes_max: 256 << 20,
            classic_items: 15,
        }
    }
}

impl Config {
    /// Refuses values that cannot work.
    pub fn check(&self) -> Result<(), RefusedSetting> {
        let counts = [
            ("page_items_max", self.page_items_max as u64),
            ("page_bytes_max", self.page_bytes_max as u64),
            ("classic_items", self.classic_items as u64),
        ];
        all_at_least_one(counts, "give at least 1")
    }
}

/// A rendered body, shared by everybody who asked for the same.
#[derive(Debug)]
pub struct Rendered {
    /// The bytes.
    pub body: Bytes,
    /// Items in it.
    pub count: usize,
    /// True while more items stand in the range.
    pub more: bool,
    /// Number of items in the view, where it was counted.
    pub total: Option<u64>,
    /// The cursor to go on from.
    pub last_cursor: String,
    /// The URL of the next page, while more items stand in the range.
    pub next: Option<String>,
    /// The cursor of the last item that was looked at, where a filter hid those behind
    /// `last_cursor`.
    pub scanned: Option<String>,
    /// Degree to which a cursor had to be degraded.
    pub degraded: Option<Degraded>,
    /// True for an archive by the name of its present version, which stays as it is.
    pub is_lasting: bool,
    /// The visible state of the feed that was read.
    pub head: Head,
    codings: coding::Codings,
}

impl Rendered {
    /// A page without items and without a body: from a cursor that a reader keeps, up to that of an
    /// item that a filter hid.
    fn passed(head: Head, last_cursor: String, scanned: String) -> Self {
        Self {
            body: Bytes::new(),
            count: 0,
            more: false,
            total: None,
            last_cursor,
            next: None,
            scanned: Some(scanned),
            degraded: None,
            head,
            is_lasting: false,
            codings: coding::Codings::default(),
        }
    }

    /// The body in a content coding, made once.
    pub async fn coded(&self, coding: Coding) -> Bytes {
        self.codings.get(coding, &self.body).await
    }
}

/// A read that gave no body.
#[derive(Clone, Debug, Error)]
pub enum ReadError {
    /// The first good document is not in yet: 503 with `Retry-After`.
    #[error("everfeed is still reading this feed or its archives for the first time")]
    NotReady,
    /// No such feed: 404.
    #[error("there is no such feed")]
    UnknownFeed,
    /// No such archive: 404.
    #[error("there is no such archive; begin with the newest posts")]
    UnknownArchive,
    /// Others have not read their answers yet, and no memory is left for more: 503 with
    /// `Retry-After`.
    #[error("too many answers are being sent; try again soon")]
    Busy,
    /// The store could not answer.
    #[error(transparent)]
    Store(Arc<StoreError>),
}

impl From<StoreError> for ReadError {
    fn from(error: StoreError) -> Self {
        Self::Store(Arc::new(error))
    }
}

/// Reads for all consumers.
pub struct Readers {
    store: Arc<dyn Store>,
    notify: Arc<Notify>,
    clock: Arc<dyn Clock>,
    site: Arc<Site>,
    config: Config,
    ttl_mins: Box<TtlMins>,
    takes_cloud: Box<TakesCloud>,
    announces: Box<Announces>,
    bodies: Cache<(ReadRequest, Head), Arc<Rendered>>,
    room: BodyPermits,
    filtered: FilteredViews,
    documents: Cache<LegacyKey, Arc<PlainDocument>>,
}

/// The `ttl` of a feed in RSS, minutes; `None` for none.
type TtlMins = dyn Fn(FeedNo) -> Option<u32> + Send + Sync;

/// True for a feed of which everybody is told what is gone.
type Announces = dyn Fn(FeedNo) -> bool + Send + Sync;

/// True for a feed of which listeners of rssCloud are told.
type TakesCloud = dyn Fn(FeedNo) -> bool + Send + Sync;

/// Bytes that a cached body weighs beside itself: key, lists, compressed forms not counted before
/// they are made.
const BODY_OVERHEAD_BYTES: usize = 512;
/// Bytes of publishers' documents, as plain readers get them, that are kept in memory.
const DOCUMENT_CACHE_BYTES: u64 = 32 << 20;

/// Bytes that a body weighs in a cache whose key holds so many beside it.
fn kept_weight(body: &Bytes, key_bytes: usize) -> u32 {
    let bytes = weight(body.len()) + key_bytes + BODY_OVERHEAD_BYTES;
    u32::try_from(bytes).unwrap_or(u32::MAX)
}

impl Readers {
    /// Readers of a store.
    pub fn new(
        store: Arc<dyn Store>,
        notify: Arc<Notify>,
        clock: Arc<dyn Clock>,
        site: Arc<Site>,
        config: Config,
    ) -> Self {
        let body_weight = |(reading, _): &(ReadRequest, Head), body: &Arc<Rendered>| {
            kept_weight(&body.body, reading.spelt_bytes())
        };
        let document_weight =
            |_: &LegacyKey, document: &Arc<PlainDocument>| kept_weight(&document.body, 0);
        Self {
            store,
            notify,
            clock,
            site,
            ttl_mins: Box::new(|_| None),
            takes_cloud: Box::new(|_| false),
            announces: Box::new(|_| true),
            bodies: Cache::builder()
                .weigher(body_weight)
                .max_capacity(config.render_cache_bytes)
                .build(),
            room: BodyPermits::new(config.answers_bytes_max, config.render_cache_bytes),
            filtered: FilteredViews::default(),
            documents: Cache::builder()
                .weigher(document_weight)
                .max_capacity(DOCUMENT_CACHE_BYTES)
                .build(),
            config,
        }
    }

    /// Readers that tell ordinary RSS readers how long a copy stays fresh: so many minutes for each
    /// feed.
    #[must_use]
    pub fn with_ttl_mins(
        self,
        ttl_mins: impl Fn(FeedNo) -> Option<u32> + Send + Sync + 'static,
    ) -> Self {
        Self {
            ttl_mins: Box::new(ttl_mins),
            ..self
        }
    }

    /// Readers that tell ordinary RSS readers where listeners of rssCloud register, for some feeds.
    #[must_use]
    pub fn with_cloud(self, takes_cloud: impl Fn(FeedNo) -> bool + Send + Sync + 'static) -> Self {
        Self {
            takes_cloud: Box::new(takes_cloud),
            ..self
        }
    }

    /// Readers that tell nobody what is gone of some feeds.
    #[must_use]
    pub fn with_announced(
        self,
        announces: impl Fn(FeedNo) -> bool + Send + Sync + 'static,
    ) -> Self {
        Self {
            announces: Box::new(announces),
            ..self
        }
    }

    /// True where readers of a feed are told what is gone of it.
    pub fn announces(&self, feed: FeedNo) -> bool {
        (self.announces)(feed)
    }

    /// Time since which a resource, a feed with one item, is gone.
    pub async fn deleted_at(&self, feed: FeedNo) -> Result<Option<Stamp>, ReadError> {
        let newest = PageQuery::last(feed, Order::MODIFIED, Filter::All);
        let newest = self.store.page(newest).await?.items;
        let gone_at = |item: &Arc<Item>| match item.content {
            Content::Gone { first_missing, .. } => Some(first_missing.unwrap_or(item.modified)),
            Content::Live(_) => None,
        };
        Ok(newest.first().and_then(gone_at))
    }

    /// The budget for ordinary bodies; it is short while that for large ones is.
    pub fn budget(&self) -> &Arc<ByteBudget> {
        &self.room.ordinary
    }

    /// The bounds in force.
    pub fn config(&self) -> &Config {
        &self.config
    }

    /// The URLs of every view.
    pub fn site(&self) -> &Site {
        &self.site
    }

    fn site_of<'a>(&'a self, reading: &'a ReadRequest) -> &'a Site {
        reading.site.as_deref().unwrap_or(&self.site)
    }

    /// The head of a feed.
    pub fn head(&self, feed: FeedNo) -> Result<Head, ReadError> {
        self.notify.head(feed).ok_or(ReadError::UnknownFeed)
    }

    /// Registers for a feed's wake-ups; do so before the first read.
    pub fn watch(&self, feed: FeedNo) -> Result<watch::Receiver<Head>, ReadError> {
        self.notify.watch(feed).ok_or(ReadError::UnknownFeed)
    }

    /// The body of a read. Identical reads of an unchanged feed share one store read and one
    /// rendering.
    pub async fn read(&self, reading: &ReadRequest) -> Result<Arc<Rendered>, ReadError> {
        self.read_as(reading, false).await
    }

    /// The same. A read is fresh when nothing but what was just committed can be in it.
    async fn read_as(
        &self,
        reading: &ReadRequest,
        is_fresh: bool,
    ) -> Result<Arc<Rendered>, ReadError> {
        let head = self.head(reading.view.feed)?;
        if !head.ready {
            return Err(ReadError::NotReady);
        }
        let mut reading = reading.clone();
        reading.hides_deletions = !self.announces(reading.view.feed);
        let mut key = (reading.clone(), head);
        if is_made(Mistake::BodyOutlivesItsHead) {
            key.1 = Head::default();
        }
        let reading = &reading;
        if let Some(body) = self.bodies.get(&key).await {
            return Ok(body);
        }
        // In a box, because whoever reads keeps room for all that may be done, and most readers do
        // nothing but wait.
        let made = Box::pin(
            self.bodies
                .try_get_with_by_ref(&key, self.make(reading, is_fresh)),
        )
        .await;
        made.map_err(|error: Arc<ReadError>| (*error).clone())
    }

    /// The body of a read in a coding, if it was made before and its feed is still in that state.
    pub fn at_hand(&self, key: &(ReadRequest, Head), coding: Coding) -> Option<Bytes> {
        let (reading, head) = key;
        if !self.is_at(reading.view.feed, *head) {
            return None;
        }
        let body = self.bodies.get(key).now_or_never()??;
        body.codings
            .known(coding, &body.body)
            .filter(|_| body.head == *head)
    }

    /// True while a feed is in this state.
    pub fn is_at(&self, feed: FeedNo, head: Head) -> bool {
        self.notify.head(feed) == Some(head)
    }
}
