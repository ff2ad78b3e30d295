//! Items of a view as they go into stanzas: read back from the store, each written once as an Atom
//! entry, and no more of them than one stanza takes; not the stanzas.

use crate::{
    feed::{
        item::{Content, Item},
        item_cap::shortened,
        order::{Axis, Order},
        page::{Degraded, Numbering, Page},
        record::{FeedRecord, Head},
        stamp::Stamp,
        view::View,
    },
    readers::{ReadError, ReadRequest, Readers},
    render::{Representation, atom_entry},
};
use bytes::Bytes;
use moka::future::Cache;
use std::sync::Arc;

/// An item.
#[derive(Clone, Debug)]
pub(super) struct ShownItem {
    /// Its id.
    pub(super) id: String,
    /// The cursor behind it.
    pub(super) cursor: String,
    /// True for a tombstone.
    pub(super) is_gone: bool,
    /// Its Atom entry.
    pub(super) entry: Bytes,
}

/// Items that stand side by side, in the order of their view.
#[derive(Debug)]
pub(super) struct ShownPage {
    pub(super) items: Vec<ShownItem>,
    /// The number of items of the view; `None` where they are too many to be counted.
    pub(super) total: Option<u64>,
    /// The number of the first in the view, where it is known.
    pub(super) index: Option<u64>,
    /// True while more items stand in the range.
    pub(super) more: bool,
    /// The cursor to go on from.
    pub(super) last_cursor: String,
    /// The cursor of the last item that a filter hid behind them.
    pub(super) scanned: Option<String>,
    /// The way in which a cursor of the range was taken that could not be applied.
    pub(super) degraded: Option<Degraded>,
    /// The generation of the feed.
    pub(super) generation: Stamp,
}

/// The range of a view that is wanted. Positions are spelt as in URLs; an empty one is none.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Wanted {
    /// The first items of a range.
    First { since: String, until: String },
    /// The items from a number on.
    From { index: u64 },
    /// The last items before a position.
    Last { until: String },
}

/// Bytes of pages that are kept in memory.
const PAGES_BYTES_MAX: u64 = 16 << 20;
/// Bytes that a page weighs beside its entries.
const PAGE_OVERHEAD_BYTES: usize = 1_024;
/// Bytes of an item once shortened, before the note on it.
const SHORT_BYTES_MAX: usize = 8 << 10;

/// A read, the state of its feed, and true where its items are told in the other direction.
type PageKey = (ReadRequest, Head, bool);

/// Reads pages; identical reads of an unchanged feed share one.
pub(super) struct ShownPages {
    readers: Arc<Readers>,
    /// Bytes of entries in one stanza at most, though never less than one.
    bytes_max: usize,
    kept: Cache<PageKey, Arc<ShownPage>>,
}

impl ShownPages {
    /// Pages of so many bytes at most.
    pub(super) fn new(readers: Arc<Readers>, bytes_max: usize) -> Self {
        let weigh = |_: &PageKey, page: &Arc<ShownPage>| {
            let bytes = page.items.iter().map(|item| item.entry.len() + 128);
            u32::try_from(bytes.sum::<usize>() + PAGE_OVERHEAD_BYTES).unwrap_or(u32::MAX)
        };
        Self {
            readers,
            bytes_max,
            kept: Cache::builder()
                .weigher(weigh)
                .max_capacity(PAGES_BYTES_MAX)
                .build(),
        }
    }

    /// Bytes of entries in one stanza at most.
    pub(super) fn bytes_max(&self) -> usize {
        self.bytes_max
    }

    /// The items of a range of a view, at most so many.
    pub(super) async fn read(
        &self,
        view: View,
        wanted: &Wanted,
        max: usize,
    ) -> Result<Arc<ShownPage>, ReadError> {
        let head = self.readers.head(view.feed)?;
        let reading = reading(view, wanted, max)?;
        let made = self
            .kept
            .try_get_with(
                (reading.clone(), head, matches!(wanted, Wanted::Last { .. })),
                self.make(reading, wanted),
            )
            .await;
        made.map_err(|error: Arc<ReadError>| (*error).clone())
    }

    async fn make(
        &self,
        reading: ReadRequest,
        wanted: &Wanted,
    ) -> Result<Arc<ShownPage>, ReadError> {
        let page = self.readers.items(&reading, self.bytes_max).await?;
        let (order, is_last) = (reading.view().order, matches!(wanted, Wanted::Last { .. }));
        let mut left = self.bytes_max;
        let mut items = Vec::with_capacity(page.items.len());
        for item in &page.items {
            let shown = shown(item, &page.record, order, self.bytes_max);
            if shown.entry.len() > left && !items.is_empty() {
                break;
            }
            left = left.saturating_sub(shown.entry.len());
            items.push(shown);
        }
        let is_cut = items.len() < page.items.len();
        let more = page.more || is_cut;
        if order.axis == Axis::Published {
            // Several may have one date, so that a cursor is known only by a page that ends there.
            let last = items.len().saturating_sub(1);
            for at in [0, last] {
                let until_there = reading.of_at_most(at + 1);
                let page = self.readers.items(&until_there, usize::MAX).await?;
                if let Some(item) = items.get_mut(at) {
                    item.cursor = page.last_cursor;
                }
            }
        }
        let last_cursor = match items.last() {
            Some(last) if !is_last => last.cursor.clone(),
            _ => page.last_cursor.clone(),
        };
        let total = total(&page, &reading);
        let mut index = page.index;
        if is_last {
            items.reverse();
            // It was counted in the other direction, where the last of them is the first.
            let behind = |index| total?.checked_sub(index + items.len() as u64);
            index = index.and_then(behind);
        }
        Ok(Arc::new(ShownPage {
            items,
            total,
            index,
            more,
            last_cursor,
            scanned: page.scanned.filter(|_| !is_cut),
            degraded: page.degraded,
            generation: page.record.head().generation,
        }))
    }

    /// One item by itself, as pages show it.
    pub(super) fn single(&self, item: &Item, record: &FeedRecord) -> ShownItem {
        shown(item, record, Order::MODIFIED, self.bytes_max)
    }
}

/// The read of a range. The last items of one are the first of the other direction.
fn reading(view: View, wanted: &Wanted, max: usize) -> Result<ReadRequest, ReadError> {
    let form = Representation::ATOM;
    let max = max.max(1);
    let mut numbering = Numbering::Told;
    let (view, since, until) = match wanted {
        Wanted::First { since, until } => (view, since.as_str(), until.as_str()),
        Wanted::From { index } => {
            numbering = Numbering::From(*index);
            (view, "", "")
        }
        Wanted::Last { until } => {
            let order = Order {
                reverse: !view.order.reverse,
                ..view.order
            };
            (View { order, ..view }, until.as_str(), "")
        }
    };
    // Whoever asks has read the positions before.
    let request = ReadRequest::page(view, form, since, until, max);
    let request = request.map_err(|_| ReadError::UnknownArchive)?;
    Ok(request.numbered(numbering))
}

fn total(page: &Page, reading: &ReadRequest) -> Option<u64> {
    if reading.view().filter.has_terms() {
        page.total
    } else {
        Some(page.record.items.total)
    }
}

fn shown(item: &Item, record: &FeedRecord, order: Order, bytes_max: usize) -> ShownItem {
    let t = match order.axis {
        Axis::Created => item.created,
        Axis::Modified | Axis::Published => item.modified,
    };
    ShownItem {
        id: item.id.to_string(),
        cursor: record.cursor(t, item.id).unwrap_or_default(),
        is_gone: item.is_gone(),
        entry: entry(item, bytes_max),
    }
}

// Decides: How long may a post be in a stanza, and what is left out?
/// The entry of an item; of one that no stanza takes a note stands in the place of its text.
fn entry(item: &Item, bytes_max: usize) -> Bytes {
    let whole = atom_entry(item).unwrap_or_default();
    let Content::Live(content) = &item.content else {
        return whole.into();
    };
    if whole.len() <= bytes_max {
        return whole.into();
    }
    let Some(mut short) = shortened(content, SHORT_BYTES_MAX.min(bytes_max / 4)) else {
        return whole.into();
    };
    if let Some(body) = &mut Arc::make_mut(&mut short).content {
        body.text.value = format!(
            "The text of this post is left out here: it has {} bytes, and at most {bytes_max} go into a stanza. Follow its link.",
            whole.len()
        );
    }
    let short = Item {
        content: Content::Live(short),
        ..item.clone()
    };
    atom_entry(&short).unwrap_or_default().into()
}
