//! Readers: a view of a feed with a position. One wait, one page and one rendered body for
//! identical reads, whether the reader pulls, polls long or is pushed; not the protocols they
//! speak.

use crate::{
    byte_budget::{ByteBudget, ByteLease},
    clock::Clock,
    feed::{
        order::Axis,
        page::{Degraded, Growth, Page, PageQuery},
        record::{FeedNo, Head},
        stamp::Stamp,
        view::View,
    },
    notify::Notify,
    render::{self, Links, Query, Site},
    store::{Store, StoreError},
};
use bytes::Bytes;
use futures_util::FutureExt as _;
use moka::future::Cache;
use std::{sync::Arc, time::Duration};
use thiserror::Error;
use tokio::{sync::watch, time::Instant};
use tokio_util::sync::CancellationToken;

pub mod coding;

mod follow;

mod feed_changes;

mod body_room;

mod legacy;

mod request;

mod classic;

use classic::ClassicPage;

use feed_changes::FilteredViews;

use body_room::{BUSY_WAIT, BodyRoom, HeldBody, LARGE_BYTES, LARGE_ITEMS, TIDY_EVERY, weight};

pub use coding::Coding;
pub use follow::Pages;
pub use legacy::{LegacyKey, PlainDocument};
pub use request::ReadRequest;

use request::Purpose;

#[cfg(test)]
pub(crate) mod testing;

#[cfg(test)]
mod tests;

/// Bounds on what one read may cost.
#[derive(Clone, Debug)]
pub struct Config {
    /// Items on a page at most.
    pub page_items_max: usize,
    /// Bytes of stored items on a page at most.
    pub page_bytes_max: usize,
    /// Bytes of rendered bodies kept at most.
    pub render_cache_bytes: u64,
    /// Bytes of rendered bodies that are not kept, but not read to their end yet, at most.
    pub answers_bytes_max: usize,
    /// Items in a view for ordinary readers.
    pub classic_items: usize,
    /// Items in a push at most.
    pub push_items_max: usize,
    /// Bytes of stored items in a push at most.
    pub push_bytes_max: usize,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            page_items_max: 1000,
            page_bytes_max: 8 << 20,
            render_cache_bytes: 64 << 20,
            answers_bytes_max: 256 << 20,
            classic_items: 15,
            push_items_max: 200,
            push_bytes_max: 1 << 20,
        }
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
            last_cursor,
            next: None,
            scanned: Some(scanned),
            degraded: None,
            head,
            is_lasting: false,
            codings: coding::Codings::default(),
        }
    }

    /// True when a subscriber who has acknowledged this cursor gets on by the page, be it empty.
    pub fn lies_beyond(&self, acked: &str) -> bool {
        self.count > 0 || self.more || self.last_cursor != acked
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
    #[error("the feed has not been read from its origin yet, or its archives are being read first")]
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
    Store(#[from] Arc<StoreError>),
}

/// Reads for all consumers.
pub struct Readers {
    store: Arc<dyn Store>,
    notify: Arc<Notify>,
    clock: Arc<dyn Clock>,
    site: Arc<Site>,
    config: Config,
    ttl_mins: Box<TtlMins>,
    bodies: Cache<(ReadRequest, Head), Arc<Rendered>>,
    room: BodyRoom,
    filtered: FilteredViews,
    documents: Cache<LegacyKey, Arc<PlainDocument>>,
}

/// The `ttl` of a feed in RSS, minutes; `None` for none.
type TtlMins = dyn Fn(FeedNo) -> Option<u32> + Send + Sync;

/// Bytes that a cached body weighs beside itself: key, lists, compressed forms not counted before
/// they are made.
const BODY_OVERHEAD_BYTES: usize = 512;
/// Bytes of publishers' documents, as plain readers get them, that are kept in memory.
const DOCUMENT_CACHE_BYTES: u64 = 32 << 20;

impl Readers {
    /// Readers of a store.
    pub fn new(
        store: Arc<dyn Store>,
        notify: Arc<Notify>,
        clock: Arc<dyn Clock>,
        site: Arc<Site>,
        config: Config,
    ) -> Self {
        let weigh = |(reading, _): &(ReadRequest, Head), body: &Arc<Rendered>| {
            let bytes = weight(body.body.len()) + reading.spelt_bytes() + BODY_OVERHEAD_BYTES;
            u32::try_from(bytes).unwrap_or(u32::MAX)
        };
        let room = BodyRoom::new(config.answers_bytes_max, config.render_cache_bytes);
        let bodies = Cache::builder()
            .weigher(weigh)
            .max_capacity(config.render_cache_bytes)
            .build();
        let ttl_mins = Box::new(|_: FeedNo| None);
        let weigh_document = |_: &LegacyKey, document: &Arc<PlainDocument>| {
            u32::try_from(weight(document.body.len()) + BODY_OVERHEAD_BYTES).unwrap_or(u32::MAX)
        };
        let documents = Cache::builder()
            .weigher(weigh_document)
            .max_capacity(DOCUMENT_CACHE_BYTES)
            .build();
        let filtered = FilteredViews::default();
        Self {
            store,
            notify,
            clock,
            site,
            config,
            ttl_mins,
            bodies,
            room,
            filtered,
            documents,
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

    /// The budget for ordinary bodies; it is short while that for large ones is.
    pub fn budget(&self) -> &Arc<ByteBudget> {
        &self.room.ordinary
    }

    /// A body that is made for one consumer alone, within the budget.
    pub async fn held(&self, body: Vec<u8>) -> Result<Bytes, ReadError> {
        let budget = if body.len() <= LARGE_BYTES {
            &*self.room.ordinary
        } else {
            &self.room.large
        };
        let lease = self
            .lease(budget, body.len())
            .await
            .ok_or(ReadError::Busy)?;
        Ok(Bytes::from_owner(HeldBody {
            bytes: body.into(),
            _lease: Some(Arc::new(lease)),
        }))
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
        let key = (reading.clone(), head);
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

    /// The body of a read, held while its range is empty and can still grow (D-11), at the longest
    /// until `deadline` or until `stop`. Then the empty page, which stands behind all that was
    /// looked at where that is more than a page looks at.
    pub async fn read_held(
        self: &Arc<Self>,
        reading: &ReadRequest,
        deadline: Instant,
        stop: &CancellationToken,
    ) -> Result<Arc<Rendered>, ReadError> {
        let stop = stop.clone();
        let end = async move {
            tokio::select! {
                () = stop.cancelled() => {}
                () = tokio::time::sleep_until(deadline) => {}
            }
        };
        // In boxes, because whoever is answered at once keeps room for this, too.
        let mut follower = Box::new(self.follow(reading.clone(), end)?);
        if let Some(first) = Box::pin(follower.next()).await? {
            return Ok(first);
        }
        let nothing = self.read(reading).await?;
        // What was looked at meanwhile is not to be looked at again.
        if nothing.more && nothing.count == 0 {
            self.read(follower.reading()).await
        } else {
            Ok(nothing)
        }
    }

    /// True when an answer is due now, be it empty: no change before `deadline` could make it
    /// another.
    pub fn is_due(&self, reading: &ReadRequest, body: &Rendered, deadline: Instant) -> bool {
        let end = self
            .growth_end(reading)
            .map_or(deadline, |end| end.min(deadline));
        body.count > 0 || end <= Instant::now()
    }

    /// The moment from which on the range of a read gains nothing more; `None` while it has no end.
    fn growth_end(&self, reading: &ReadRequest) -> Option<Instant> {
        let now = Stamp::from_micros(self.clock.now_us());
        match reading.ask().growth(now) {
            Growth::Never => Some(Instant::now()),
            Growth::Open => None,
            Growth::Until(end) => {
                let left = Duration::from_micros(end.micros().saturating_sub(now.micros()));
                Some(Instant::now() + left)
            }
        }
    }

    /// The page after this one (SF-53): the same question, from the last cursor on. What follows a
    /// page that has looked at as many items as it may can be empty, and is not held then.
    fn next(&self, reading: &ReadRequest, page: &Page) -> String {
        let is_cut = reading.view.filter.has_terms() && page.items.len() < reading.max;
        let query = Query {
            timeout_secs: is_cut.then_some(0),
            since: format!("cursor:{}", page.last_cursor),
            until: reading
                .until
                .as_ref()
                .map(|until| until.raw.clone())
                .unwrap_or_default(),
            max: Some(reading.max),
            order: reading.view.order,
            filter: reading.view.filter.clone(),
            ..Query::default()
        };
        self.site_of(reading)
            .page(&page.record.name, reading.representation, &query)
    }

    /// Reads the store and renders. Large pages are made one or two at a time, so that ordinary
    /// ones find a place.
    async fn make(
        &self,
        reading: &ReadRequest,
        is_fresh: bool,
    ) -> Result<Arc<Rendered>, ReadError> {
        let is_large = reading.purpose != Purpose::Push && reading.max > LARGE_ITEMS;
        let _scan_place = match reading.view.filter.has_terms() {
            true => Some(self.room.scan_place().await?),
            false => None,
        };
        let mut large_place = if is_large {
            Some(self.room.large_place().await?)
        } else {
            None
        };
        loop {
            // What a page costs before its size is known is bounded by the number of pages that are
            // made at once.
            let place = self.room.place().await?;
            let (rendered, body) = self.make_body(reading, is_fresh).await?;
            let weight = weight(body.len());
            let lease = match reading.purpose {
                // Pushes are few at once and small, and must not wait for consumers that do not
                // read.
                Purpose::Push => None,
                _ if body.len() <= LARGE_BYTES => self.lease(&self.room.ordinary, weight).await,
                Purpose::Page | Purpose::Archive(_) | Purpose::Events => {
                    large_place = large_place.or_else(|| self.room.large_places.try_acquire().ok());
                    if large_place.is_none() {
                        drop((place, rendered, body));
                        large_place = Some(self.room.large_place().await?);
                        continue;
                    }
                    self.lease(&self.room.large, weight).await
                }
            };
            if lease.is_none() && reading.purpose != Purpose::Push {
                return Err(ReadError::Busy);
            }
            let lease = lease.map(Arc::new);
            let body = Bytes::from_owner(HeldBody {
                bytes: body,
                _lease: lease.clone(),
            });
            return Ok(Arc::new(Rendered {
                body,
                codings: coding::Codings::within(lease),
                ..rendered
            }));
        }
    }

    /// Memory for a body, if there is some in time. Bodies that the cache has let go hold theirs
    /// until it is tidied, which it does only now and then by itself.
    async fn lease(&self, budget: &ByteBudget, weight: usize) -> Option<ByteLease> {
        if let Some(lease) = budget.try_lease(weight) {
            return Some(lease);
        }
        let lease = budget.lease(weight, BUSY_WAIT);
        tokio::pin!(lease);
        loop {
            self.bodies.run_pending_tasks().await;
            tokio::select! {
                lease = &mut lease => return lease,
                () = tokio::time::sleep(TIDY_EVERY) => {}
            }
        }
    }

    /// A page from the store. Pages with terms read more than they show, so few are read at once
    /// (see [`BodyRoom::scan_place`]), and their totals are remembered while the feed is as it was.
    async fn page(&self, reading: &ReadRequest, query: PageQuery) -> Result<Page, ReadError> {
        let read = async |query| {
            self.store
                .page(query)
                .await
                .map_err(|error| ReadError::Store(Arc::new(error)))
        };
        if !reading.view.filter.has_terms() {
            return read(query).await;
        }
        let known = self.filtered.totals.get(&reading.view).await;
        let with_total = query.with_total
            && !known.is_some_and(|(head, _)| self.head(query.feed).is_ok_and(|now| now == head));
        let mut page = read(PageQuery {
            with_total,
            ..query.clone()
        })
        .await?;
        if !query.with_total {
            return Ok(page);
        }
        if let Some((head, total)) = known.filter(|_| !with_total) {
            if head == page.record.head() {
                page.total = total;
                return Ok(page);
            }
            // The feed has moved on since its head was looked up.
            page = read(query).await?;
        }
        self.filtered
            .totals
            .insert(reading.view.clone(), (page.record.head(), page.total))
            .await;
        Ok(page)
    }

    /// True while the total of a view is remembered that it has in this state.
    async fn is_counted(&self, view: &View, head: Head) -> bool {
        self.filtered
            .totals
            .get(view)
            .await
            .is_some_and(|(counted, _)| counted == head)
    }

    /// The part of a view that a page or a push shows.
    async fn range(&self, reading: &ReadRequest, is_fresh: bool) -> Result<Page, ReadError> {
        let query = PageQuery {
            feed: reading.view.feed,
            order: reading.view.order,
            since: reading.since.as_ref().map(|spec| spec.position.clone()),
            until: reading.until.as_ref().map(|spec| spec.position.clone()),
            max: reading.max,
            bytes_max: match reading.purpose {
                Purpose::Push => self.config.push_bytes_max,
                Purpose::Page | Purpose::Archive(_) => self.config.page_bytes_max,
                Purpose::Events => self.config.page_bytes_max.min(EVENTS_BYTES_MAX),
            },
            filter: reading.filter(),
            with_total: reading.tells_total(),
        };
        // By the order of change the rows of a page stand side by side, in all others they are read
        // one by one.
        let is_short = reading.max <= INLINE_ITEMS_MAX && reading.view.order.axis == Axis::Modified;
        let mut page = match (is_short || is_fresh) && !reading.view.filter.has_terms() {
            true => self.store.page_in_place(query).await.map_err(Arc::new)?,
            false => self.page(reading, query).await?,
        };
        if reading.representation.is_classic() {
            // A push in a form without tombstones leaves them out, yet its cursor still moves past
            // them.
            page.items.retain(|item| !item.is_gone());
        }
        Ok(page)
    }

    /// A page and its bytes, which are not in it yet.
    async fn make_body(
        &self,
        reading: &ReadRequest,
        is_fresh: bool,
    ) -> Result<(Rendered, Bytes), ReadError> {
        let is_classic = reading.representation.is_classic();
        let ClassicPage {
            mut page,
            links: archives,
            is_lasting,
        } = match reading.purpose {
            Purpose::Archive(place) => self.archive(reading, place).await?,
            Purpose::Page if is_classic => self.newest(reading).await?,
            Purpose::Page | Purpose::Push | Purpose::Events => {
                self.range(reading, is_fresh).await?.into()
            }
        };
        if let Some(base) = reading.base {
            page.items.retain(|item| item.modified > base);
        }
        let next = (page.more && reading.purpose == Purpose::Page && !is_classic)
            .then(|| self.next(reading, &page));
        let view = (reading.view.order, &reading.view.filter);
        let links = self.site_of(reading).links(
            &page.record.name,
            reading.representation,
            view,
            next.clone(),
        );
        let base = reading
            .own_url
            .as_deref()
            .map_or_else(|| links.base.clone(), str::to_owned);
        let links = Links {
            base,
            archives,
            is_old_address: reading.own_url.is_some(),
            ..links
        };
        let prev_cursor = reading.acked().map(str::to_owned);
        let head = page.record.head();
        if !head.ready {
            // What it holds is being chosen anew.
            return Err(ReadError::NotReady);
        }
        let page = Arc::new(page);
        let ttl_mins = (self.ttl_mins)(reading.view.feed)
            .filter(|_| !matches!(reading.purpose, Purpose::Archive(_)));
        let (shown, representation) = (page.clone(), reading.representation);
        let (purpose, order) = (reading.purpose, reading.view.order);
        let is_look = reading.is_look;
        let body = rendered(page.items.len(), move || match purpose {
            _ if is_look => Vec::new(),
            Purpose::Events => render::event_stream::events(&shown, order),
            Purpose::Page | Purpose::Push | Purpose::Archive(_) => {
                let prev_cursor = prev_cursor.as_deref();
                representation.write(&render::Document {
                    page: &shown,
                    links: &links,
                    prev_cursor,
                    ttl_mins,
                })
            }
        })
        .await;
        let page = Arc::unwrap_or_clone(page);
        let rendered = Rendered {
            body: Bytes::new(),
            count: page.items.len(),
            more: page.more,
            head,
            last_cursor: page.last_cursor,
            next,
            scanned: page.scanned,
            degraded: page.degraded,
            is_lasting,
            codings: coding::Codings::default(),
        };
        Ok((rendered, body))
    }
}

/// Bytes of stored items at most that a stream of events hands on at once.
const EVENTS_BYTES_MAX: usize = 1 << 20;

/// Items that are read and rendered in place; more would keep the tasks waiting that share the
/// thread.
const INLINE_ITEMS_MAX: usize = 100;

/// The bytes of a page, large ones made on a thread that nobody waits for. Room that was not
/// written to is given back: a body is kept for long, and weighs what it holds.
async fn rendered(items: usize, render: impl FnOnce() -> Vec<u8> + Send + 'static) -> Bytes {
    let render = || {
        let mut body = render();
        body.shrink_to_fit();
        body
    };
    if items <= INLINE_ITEMS_MAX {
        return render().into();
    }
    match tokio::task::spawn_blocking(render).await {
        Ok(body) => body.into(),
        Err(broken) => match broken.try_into_panic() {
            Ok(panic) => std::panic::resume_unwind(panic),
            // The runtime ends, and with it whoever waits for this.
            Err(_) => std::future::pending().await,
        },
    }
}
