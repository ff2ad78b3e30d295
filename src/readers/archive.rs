//! The archives behind the newest posts of a classic view (RFC 5005 section 4); not what they look
//! like.

use super::{
    ReadError, ReadRequest, Readers,
    newest::by_date,
    range::{ARCHIVE_BYTES_MAX, ClassicPage, ReadRange, span_of},
    request::Purpose,
};
use crate::{
    feed::{
        filter::Filter, order::Order, page::Page, position::Position, record::FeedRecord,
        stamp::Stamp,
    },
    render::{ArchiveLinks, ArchivePlace, archived},
};
use std::sync::Arc;

impl Readers {
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

    pub(super) fn archive_url(
        &self,
        reading: &ReadRequest,
        record: &FeedRecord,
        place: ArchivePlace,
    ) -> String {
        self.site_of(reading)
            .archive(&record.name, reading.representation, place)
    }
}

/// The feed as an archive tells of it: what changed elsewhere since does not show in it.
fn as_of(record: &FeedRecord, changed: Stamp) -> Arc<FeedRecord> {
    Arc::new(FeedRecord {
        last_t: changed,
        ..record.clone()
    })
}
