//! The newest posts, as ordinary readers get them; not the archives behind them.

use super::{ReadError, ReadRequest, Readers, body::Contents};
use crate::{
    feed::{
        filter::Filter,
        item::Item,
        order::Order,
        page::{Page, PageQuery},
        record::FeedNo,
        stamp::Stamp,
    },
    render::{ArchiveAddress, archived},
};
use std::{cmp::Reverse, collections::HashSet, sync::Arc};

/// Changes among which edited posts are looked for, in multiples of the posts that a classic view
/// shows: new posts do not hide them at once.
const EDITED_LOOK: usize = 10;

impl Readers {
    /// The newest live items, newest first; those alone that changed after a state, where one is
    /// given. A filter or a smaller number shows a part of them, behind which there are no archives.
    pub(super) async fn newest(
        &self,
        reading: &ReadRequest,
        changed_since: Option<Stamp>,
    ) -> Result<Contents, ReadError> {
        let is_part = reading.view.filter != Filter::All || reading.max < self.config.classic_items;
        let mut contents = if is_part {
            let (live, bytes_max) = (reading.view.filter.live(), self.config.page_bytes_max);
            self.range(reading, live, bytes_max, false).await?.into()
        } else {
            self.newest_and_edited(reading).await?
        };
        let items = &mut contents.page.items;
        // An old post that we saw late is among the newest for us, yet its readers expect it by its
        // date.
        items.sort_by_key(|item| Reverse(item.dated()));
        if let Some(state) = changed_since {
            items.retain(|item| item.modified > state);
        }
        Ok(contents)
    }

    /// The newest live items and those of older ones that were edited last, as many of each at most
    /// as were asked for, with the link to the archive behind them.
    async fn newest_and_edited(&self, reading: &ReadRequest) -> Result<Contents, ReadError> {
        let feed = reading.view.feed;
        let newest = self
            .live_items(feed, Order::CREATED_REVERSE, reading.max)
            .await?;
        let mut contents = Contents::from(newest);
        let page = &mut contents.page;
        let total = page.record.items.total;
        let is_cut = page.more && page.items.len() < reading.max;
        let last = if is_cut {
            // Larger items than fit: each stands for one at least.
            total.saturating_sub(page.items.len() as u64)
        } else {
            archived::newest_last(total, reading.max)
        };
        if last == 0 {
            return Ok(contents);
        }
        let newer = usize::try_from(total - last).unwrap_or(usize::MAX);
        let max = newer.saturating_add(archived::items_up_to(last));
        let all = self
            .archived_items(feed, Order::CREATED_REVERSE, None, max)
            .await?;
        // Another commit came between: the archive is named in the next document.
        let is_same = all.record.rev == page.record.rev;
        let archive = all.items.get(newer..).filter(|_| is_same);
        if let Some(place) = archive.and_then(|items| ArchiveAddress::of(last, items)) {
            let looked_at = reading.max.saturating_mul(EDITED_LOOK);
            let changed = self
                .live_items(feed, Order::MODIFIED_REVERSE, looked_at)
                .await?;
            let edited = edited(&page.items, changed.items, place.created);
            page.items.extend(edited.into_iter().take(reading.max));
            contents.archives.prev = Some(self.archive_url(reading, &page.record, place));
        }
        Ok(contents)
    }

    async fn live_items(&self, feed: FeedNo, order: Order, max: usize) -> Result<Page, ReadError> {
        let query = PageQuery {
            max,
            bytes_max: self.config.page_bytes_max,
            filter: Filter::All.live(),
            ..PageQuery::all(feed, order)
        };
        Ok(self.store.page(query).await?)
    }
}

/// The changed items that stand in archives and were edited since they were first seen: whoever
/// knows their archives learns of it (RFC 5005 section 4.1).
fn edited(shown: &[Arc<Item>], changed: Vec<Arc<Item>>, archived_until: Stamp) -> Vec<Arc<Item>> {
    let shown: HashSet<_> = shown.iter().map(|item| item.id).collect();
    let mut edited = changed;
    edited.retain(|item| {
        let is_archived = item.created <= archived_until && !shown.contains(&item.id);
        is_archived && item.modified != item.created
    });
    edited
}
