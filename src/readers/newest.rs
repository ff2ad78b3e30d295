//! The newest posts, as a classic view shows them; not the archives behind them.

use super::{ReadError, ReadRequest, Readers, range::ClassicPage};
use crate::{
    feed::{filter::Filter, item::Item, order::Order, stamp::Stamp},
    render::{ArchiveLinks, ArchivePlace, archived},
};
use std::{cmp::Reverse, collections::HashSet, sync::Arc};

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
pub(super) fn by_date(items: &mut [Arc<Item>]) {
    items.sort_by_key(|item| Reverse(item.dated()));
}
