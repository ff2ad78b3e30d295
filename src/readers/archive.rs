//! The archives behind the newest posts of a classic view (RFC 5005 section 4); not what they look
//! like.

use super::{ReadError, ReadRequest, Readers, body::Contents, request::Purpose};
use crate::{
    feed::{
        order::Order,
        page::{Page, PageQuery},
        position::Position,
        record::{FeedNo, FeedRecord},
        stamp::Stamp,
    },
    render::{ArchiveAddress, ArchiveLinks, archived},
};
use std::{cmp::Reverse, sync::Arc};

/// Bytes of the items of an archive at most. A hundred posts have a few; its items are fixed, so it
/// cannot be parted.
const ARCHIVE_BYTES_MAX: usize = 64 << 20;

impl Readers {
    /// An archive document.
    pub(super) async fn archive(
        &self,
        reading: &ReadRequest,
        place: ArchiveAddress,
    ) -> Result<Contents, ReadError> {
        let count = place.items();
        let older_last = place.last - count as u64;
        let has_older = older_last > 0;
        let max = if has_older {
            count + archived::items_up_to(older_last)
        } else {
            count
        };
        let mut page = self
            .archived_items(
                reading.view.feed,
                Order::CREATED_REVERSE,
                Some(place.created),
                max,
            )
            .await?;
        // The first archive begins with the first item, and no other does.
        let is_possible = place.last <= page.record.items.total && (has_older || !page.more);
        if !is_possible || page.items.len() < count || page.items[0].created != place.created {
            return Err(ReadError::UnknownArchive);
        }
        let older = ArchiveAddress::of(older_last, &page.items.split_off(count));
        if has_older != older.is_some() {
            return Err(ReadError::UnknownArchive);
        }
        let present =
            ArchiveAddress::of(place.last, &page.items).ok_or(ReadError::UnknownArchive)?;
        let newer = if place.is_full() {
            self.next_archive(reading.view.feed, place).await?
        } else {
            None
        };
        let url = |place| self.archive_url(reading, &page.record, place);
        let archives = ArchiveLinks {
            prev: older.map(|older| url(older.unversioned())),
            next: newer.map(|newer| url(newer.unversioned())),
            archive: Some(url(present)),
        };
        page.items.retain(|item| !item.is_gone());
        page.items.sort_by_key(|item| Reverse(item.dated()));
        page.more = false;
        // The feed as an archive tells of it: what changed elsewhere since does not show in it.
        page.record = Arc::new(FeedRecord {
            last_t: present.changed,
            ..(*page.record).clone()
        });
        Ok(Contents {
            // A full archive gets its next one when that is full, too, and stays as it is from then
            // on.
            is_lasting: present == place && (!place.is_full() || newer.is_some()),
            archives,
            ..page.into()
        })
    }

    /// The URL of the present version of the archive at a place.
    pub async fn present_archive(&self, reading: &ReadRequest) -> Result<String, ReadError> {
        let Purpose::Archive(place) = reading.purpose else {
            return Err(ReadError::UnknownArchive);
        };
        let present = self.archive(reading, place).await?.archives.archive;
        present.ok_or(ReadError::UnknownArchive)
    }

    /// The full archive after a full one.
    async fn next_archive(
        &self,
        feed: FeedNo,
        place: ArchiveAddress,
    ) -> Result<Option<ArchiveAddress>, ReadError> {
        let (from, max) = (place.created.next(), archived::ARCHIVE_ITEMS as usize);
        let mut items = self
            .archived_items(feed, Order::CREATED, Some(from), max)
            .await?
            .items;
        if items.len() < max {
            return Ok(None);
        }
        items.reverse();
        let last = place.last + archived::ARCHIVE_ITEMS;
        Ok(ArchiveAddress::of(last, &items))
    }

    pub(super) fn archive_url(
        &self,
        reading: &ReadRequest,
        record: &FeedRecord,
        place: ArchiveAddress,
    ) -> String {
        self.site_of(reading)
            .archive(&record.name, reading.representation, place)
    }

    /// Items of a feed, tombstones included, from the first sight of one of them on.
    pub(super) async fn archived_items(
        &self,
        feed: FeedNo,
        order: Order,
        from: Option<Stamp>,
        max: usize,
    ) -> Result<Page, ReadError> {
        let query = PageQuery {
            since: from.map(Position::at),
            max,
            bytes_max: ARCHIVE_BYTES_MAX,
            ..PageQuery::all(feed, order)
        };
        Ok(self.store.page(query).await?)
    }
}
