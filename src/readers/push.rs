//! A push: the items after the position of a subscription; not how they are delivered.

use super::{ReadError, ReadRequest, Readers, Rendered, body::Contents};
use crate::feed::{
    filter::Filter,
    order::Axis,
    page::{Degraded, Page, PageQuery},
    view::{Deletions, View},
};
use crate::mistakes::{Mistake, is_made};

impl Readers {
    // Decides: Which cursor is the last of a push?
    /// The items of a push. Its last cursor is that of its last item, or, without any, the one that
    /// was pushed before; the place up to which items were hidden stands apart from it, so that the
    /// chain names only what was pushed.
    pub(super) async fn push(
        &self,
        reading: &ReadRequest,
        deletions: Deletions,
        bytes_max: usize,
        is_fresh: bool,
    ) -> Result<Contents, ReadError> {
        let filter = reading.view.filter.clone();
        let mut page = self.range(reading, filter, bytes_max, is_fresh).await?;
        if page.degraded == Some(Degraded::Ahead) {
            return self.told_ahead(reading, page).await;
        }
        let is_empty = page.items.is_empty();
        if deletions == Deletions::Omit || is_made(Mistake::PushOmitsDeletions) {
            page.items.retain(|item| !item.is_gone());
            if reading.view.filter == Filter::All {
                page.total = Some(page.record.items.live);
            }
        }
        let last = match last_cursor(&page, reading.view.order.axis) {
            Some(last) => last,
            // Where the store has nothing behind the position, it may send to another one.
            None if is_empty => return Ok(page.into()),
            None => reading.kept_cursor().unwrap_or_default().to_owned(),
        };
        let scanned = page.scanned.take().unwrap_or(page.last_cursor);
        page.scanned = Some(scanned).filter(|scanned| *scanned != last);
        page.last_cursor = last;
        Ok(page.into())
    }

    // Decides: Which push follows on a cursor of a former generation?
    /// The push after a cursor of a former generation: it says so, ends at the head, and has no
    /// items. A mirror pulls, and is told the same; whoever only shows posts must not get twenty
    /// years of them again.
    async fn told_ahead(&self, reading: &ReadRequest, page: Page) -> Result<Contents, ReadError> {
        let View { feed, order, .. } = reading.view;
        let last = PageQuery::last(feed, order, Filter::All);
        let last_cursor = self.store.page(last).await?.last_cursor;
        let told = Page {
            items: Vec::new(),
            more: false,
            scanned: None,
            last_cursor,
            ..page
        };
        Ok(told.into())
    }
}

impl Contents {
    /// The same push where it has no items: it ends at the cursor that was pushed before.
    pub(super) fn standing(mut self, reading: &ReadRequest) -> Self {
        let is_at_end = self.page.items.is_empty() && self.page.degraded.is_none();
        if let Some(place) = reading.chain_place().filter(|_| is_at_end) {
            place.prev_cursor.clone_into(&mut self.page.last_cursor);
            self.page.scanned = None;
        }
        self
    }
}

/// The cursor of the last item of a page in an order in which items have places of their own.
fn last_cursor(page: &Page, axis: Axis) -> Option<String> {
    let last = page.items.last()?;
    let t = match axis {
        Axis::Modified => last.modified,
        Axis::Created | Axis::Published => last.created,
    };
    page.record.cursor(t, last.id)
}

impl Rendered {
    /// True when a subscriber at this position gets on by the page, be it empty.
    pub fn lies_beyond(&self, position: &str) -> bool {
        self.count > 0 || self.more || self.last_cursor != position
    }

    /// The position behind everything that was looked at.
    pub fn goes_on_at(&self) -> &str {
        self.scanned.as_deref().unwrap_or(&self.last_cursor)
    }
}
