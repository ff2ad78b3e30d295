//! Ranges of a view as readers ask the store for them, and the totals that are remembered; not what
//! they are shown in.

use super::{ReadError, ReadRequest, Readers, request::Purpose};
use crate::{
    feed::{
        filter::Filter,
        order::{Axis, Order},
        page::{Page, PageQuery},
        position::{Position, Span},
        record::Head,
        stamp::Stamp,
        view::View,
    },
    render::ArchiveLinks,
};
use std::sync::Arc;

pub(super) struct ClassicPage {
    pub(super) page: Page,
    pub(super) links: ArchiveLinks,
    /// True for an archive that was asked for by the name of its present version.
    pub(super) is_lasting: bool,
}

impl From<Page> for ClassicPage {
    /// A page that is no part of a classic view.
    fn from(page: Page) -> Self {
        Self {
            page,
            links: ArchiveLinks::default(),
            is_lasting: false,
        }
    }
}

/// Bytes of the items of an archive at most. A hundred posts have a few; its items are fixed, so it
/// cannot be parted.
pub(super) const ARCHIVE_BYTES_MAX: usize = 64 << 20;

impl Readers {
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
    pub(super) async fn is_counted(&self, view: &View, head: Head) -> bool {
        self.filtered
            .totals
            .get(view)
            .await
            .is_some_and(|(counted, _)| counted == head)
    }

    /// The part of a view that a page or a push shows.
    pub(super) async fn range(
        &self,
        reading: &ReadRequest,
        is_fresh: bool,
    ) -> Result<Page, ReadError> {
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

    pub(super) async fn listed(
        &self,
        reading: &ReadRequest,
        order: Order,
        filter: Filter,
        max: usize,
    ) -> Result<Page, ReadError> {
        let bytes_max = if filter == Filter::All {
            ARCHIVE_BYTES_MAX
        } else {
            self.config.page_bytes_max
        };
        self.ranged(
            reading,
            order,
            ReadRange {
                since: None,
                bytes_max,
                filter,
                max,
            },
        )
        .await
    }

    pub(super) async fn ranged(
        &self,
        reading: &ReadRequest,
        order: Order,
        range: ReadRange,
    ) -> Result<Page, ReadError> {
        let ReadRange {
            since,
            max,
            bytes_max,
            filter,
        } = range;
        let query = PageQuery {
            feed: reading.view.feed,
            order,
            since,
            until: None,
            max,
            bytes_max,
            filter,
            with_total: false,
        };
        self.store
            .page(query)
            .await
            .map_err(|error| ReadError::Store(Arc::new(error)))
    }
}

/// A part of a listing.
pub(super) struct ReadRange {
    pub(super) since: Option<Position>,
    pub(super) max: usize,
    pub(super) bytes_max: usize,
    pub(super) filter: Filter,
}

/// The one microsecond of a stamp, at which one item stands at most.
pub(super) fn span_of(at: Stamp) -> Span {
    let us = i64::try_from(at.micros()).unwrap_or(i64::MAX);
    Span {
        low_us: us,
        high_us: us,
    }
}

/// Bytes of stored items at most that a stream of events hands on at once.
const EVENTS_BYTES_MAX: usize = 1 << 20;

/// Items that are read and rendered in place; more would keep the tasks waiting that share the
/// thread.
pub(super) const INLINE_ITEMS_MAX: usize = 100;
