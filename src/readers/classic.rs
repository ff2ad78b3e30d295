//! The documents of classic views: the newest posts, and the archives behind them (RFC 5005 section
//! 4); not what they look like.

use super::{ReadError, ReadRequest, Readers, request::Purpose};
use crate::{
    feed::{
        filter::Filter,
        item::Item,
        order::Order,
        page::{Page, PageQuery},
        position::{Position, Span},
        record::FeedRecord,
        stamp::Stamp,
    },
    render::{ArchiveLinks, ArchivePlace, archived},
};
use std::{cmp::Reverse, collections::HashSet, sync::Arc};

/// A page of a classic view, and what stands before and behind it.
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
const ARCHIVE_BYTES_MAX: usize = 64 << 20;

/// Changes among which edited posts are looked for, in multiples of the posts that a classic view
/// shows: new posts do not hide them at once.
const EDITED_LOOK: usize = 10;

impl Readers {
    /// The newest live items and those of older ones that were edited last, as many of each at most
    /// as were asked for. A filter or a smaller number shows a part of them, behind which there are
    /// no archives.
    pub(super) async fn newest(&self, reading: &ReadRequest) -> Result<ClassicPage, ReadError> {
        if reading.view.filter != Filter::All || reading.max < self.config.classic_items {
            let mut page = self.range(reading, false).await?;
            by_date(&mut page.items);
            return Ok(page.into());
        }
        let window = self
            .listed(
                reading,
                Order::CREATED_REVERSE,
                Filter::All.live(),
                reading.max,
            )
            .await?;
        let record = window.record.clone();
        let is_cut = window.more && window.items.len() < reading.max;
        let last = if is_cut {
            // Larger items than fit: each stands for one at least.
            record.items.total.saturating_sub(window.items.len() as u64)
        } else {
            archived::newest_last(record.items.total, reading.max)
        };
        let mut page = window;
        let mut links = ArchiveLinks::default();
        if last > 0 {
            let newer = usize::try_from(record.items.total - last).unwrap_or(usize::MAX);
            let max = newer.saturating_add(archived::items_up_to(last));
            let all = self
                .listed(reading, Order::CREATED_REVERSE, Filter::All, max)
                .await?;
            // Another commit came between: the archive is named in the next document.
            let is_same = all.record.rev == record.rev;
            let archive = all.items.get(newer..).filter(|_| is_same);
            let place = archive.and_then(|items| ArchivePlace::of(last, items));
            if let Some(place) = place {
                let looked_at = reading.max.saturating_mul(EDITED_LOOK);
                let changed = self
                    .listed(
                        reading,
                        Order::MODIFIED_REVERSE,
                        Filter::All.live(),
                        looked_at,
                    )
                    .await?;
                add_edited(&mut page.items, (changed.items, reading.max), place.created);
                links.prev = Some(self.archive_url(reading, &record, place));
            }
        }
        by_date(&mut page.items);
        Ok(ClassicPage {
            page,
            links,
            is_lasting: false,
        })
    }

    /// An archive document.
    pub(super) async fn archive(
        &self,
        reading: &ReadRequest,
        place: ArchivePlace,
    ) -> Result<ClassicPage, ReadError> {
        if reading.view.filter != Filter::All {
            // A part of the items has no archives.
            return Err(ReadError::UnknownArchive);
        }
        let up_to = Position::Time {
            span: span_of(place.created),
            degraded: false,
        };
        let items = place.items();
        let has_older = place.last > items as u64;
        let max = if has_older {
            items + archived::items_up_to(place.last - items as u64)
        } else {
            items
        };
        let since = ReadRange {
            since: Some(up_to),
            bytes_max: ARCHIVE_BYTES_MAX,
            filter: Filter::All,
            max,
        };
        let page = self.ranged(reading, Order::CREATED_REVERSE, since).await?;
        let own = page
            .items
            .get(..items)
            .filter(|own| own[0].created == place.created);
        // The first archive begins with the first item, and no other does.
        let is_possible = place.last <= page.record.items.total && (has_older || !page.more);
        let (Some(own), true) = (own, is_possible) else {
            return Err(ReadError::UnknownArchive);
        };
        let Some(present) = ArchivePlace::of(place.last, own) else {
            return Err(ReadError::UnknownArchive);
        };
        let older = ArchivePlace::of(place.last - items as u64, &page.items[items..]);
        if has_older != older.is_some() {
            return Err(ReadError::UnknownArchive);
        }
        let newer = if place.is_full() {
            self.next_archive(reading, place).await?
        } else {
            None
        };
        let record = page.record.clone();
        let url = |place| self.archive_url(reading, &record, place);
        let other = |place: ArchivePlace| url(place.unversioned());
        let links = ArchiveLinks {
            prev: older.map(other),
            next: newer.map(other),
            archive: Some(url(present)),
        };
        let mut items: Vec<_> = own.iter().filter(|item| !item.is_gone()).cloned().collect();
        by_date(&mut items);
        let page = Page {
            items,
            more: false,
            record: as_of(&record, present.changed),
            ..page
        };
        // A full archive gets its next one when that is full, too, and stays as it is from then on.
        let is_lasting = present == place && (!place.is_full() || links.next.is_some());
        Ok(ClassicPage {
            page,
            links,
            is_lasting,
        })
    }

    /// The URL of the present version of the archive at a place.
    pub async fn present_archive(&self, reading: &ReadRequest) -> Result<String, ReadError> {
        let Purpose::Archive(place) = reading.purpose else {
            return Err(ReadError::UnknownArchive);
        };
        self.archive(reading, place)
            .await?
            .links
            .archive
            .ok_or(ReadError::UnknownArchive)
    }

    /// The full archive after a full one.
    async fn next_archive(
        &self,
        reading: &ReadRequest,
        place: ArchivePlace,
    ) -> Result<Option<ArchivePlace>, ReadError> {
        let from = Position::Time {
            span: span_of(place.created.next()),
            degraded: false,
        };
        let max = archived::ARCHIVE_ITEMS as usize;
        let after = ReadRange {
            since: Some(from),
            bytes_max: ARCHIVE_BYTES_MAX,
            filter: Filter::All,
            max,
        };
        let mut items = self.ranged(reading, Order::CREATED, after).await?.items;
        items.reverse();
        let next = ArchivePlace::of(place.last + archived::ARCHIVE_ITEMS, &items);
        Ok(next.filter(|_| items.len() == max))
    }

    fn archive_url(
        &self,
        reading: &ReadRequest,
        record: &FeedRecord,
        place: ArchivePlace,
    ) -> String {
        self.site_of(reading)
            .archive(&record.name, reading.representation, place)
    }

    async fn listed(
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

    async fn ranged(
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
struct ReadRange {
    since: Option<Position>,
    max: usize,
    bytes_max: usize,
    filter: Filter,
}

/// The one microsecond of a stamp, at which one item stands at most.
fn span_of(at: Stamp) -> Span {
    let us = i64::try_from(at.micros()).unwrap_or(i64::MAX);
    Span {
        low_us: us,
        high_us: us,
    }
}

/// Adds items that stand in archives and were edited since they were first seen: whoever knows
/// their archives learns of it (RFC 5005 section 4.1).
fn add_edited(
    items: &mut Vec<Arc<Item>>,
    (changed, max): (Vec<Arc<Item>>, usize),
    archived_until: Stamp,
) {
    let known: HashSet<_> = items.iter().map(|item| item.id).collect();
    let is_edited =
        |item: &Arc<Item>| item.modified != item.created && item.created <= archived_until;
    let edited = changed
        .into_iter()
        .filter(|item| is_edited(item) && !known.contains(&item.id));
    items.extend(edited.take(max));
}

/// An old post that we saw late is among the newest for us, yet its readers expect it by its date.
fn by_date(items: &mut [Arc<Item>]) {
    items.sort_by_key(|item| Reverse(item.dated()));
}

/// The feed as an archive tells of it: what changed elsewhere since does not show in it.
fn as_of(record: &FeedRecord, changed: Stamp) -> Arc<FeedRecord> {
    Arc::new(FeedRecord {
        last_t: changed,
        ..record.clone()
    })
}
