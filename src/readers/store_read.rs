//! The range of a view that a read asks the store for, and the totals that are remembered; not what
//! it is shown in.

use super::{ReadError, ReadRequest, Readers};
use crate::feed::{
    filter::Filter,
    order::Axis,
    page::{Page, PageQuery},
    record::Head,
    view::View,
};

/// Items that are read and rendered in place; more would keep the tasks waiting that share the
/// thread.
pub(super) const INLINE_ITEMS_MAX: usize = 100;

impl Readers {
    // Decides: Is the store read on the thread that asks, or beside it?
    /// The items in the range of a read that a filter shows. A read is fresh when nothing but what
    /// was just committed can be in it.
    pub(super) async fn range(
        &self,
        reading: &ReadRequest,
        filter: Filter,
        bytes_max: usize,
        is_fresh: bool,
    ) -> Result<Page, ReadError> {
        let is_hidden = reading.hides_deletions;
        if is_hidden && filter.shows_gone_alone() {
            // Not even how many there are.
            let nothing = PageQuery {
                max: 1,
                ..PageQuery::all(reading.view.feed, reading.view.order)
            };
            let mut page = self.store.page(nothing).await?;
            page.items.clear();
            (page.more, page.total, page.scanned) = (false, Some(0), None);
            page.last_cursor = reading.kept_cursor().unwrap_or_default().to_owned();
            return Ok(page);
        }
        let filter = if is_hidden { filter.untold() } else { filter };
        let query = PageQuery {
            feed: reading.view.feed,
            order: reading.view.order,
            since: reading.since.as_ref().map(|spec| spec.position.clone()),
            until: reading.until.as_ref().map(|spec| spec.position.clone()),
            max: reading.max,
            bytes_max,
            filter,
            with_total: reading.tells_total(),
            numbering: reading.numbering,
            is_last: false,
        };
        // Totals are remembered as they are told with deletions.
        if query.with_total && !is_hidden {
            return self.counted(&reading.view, query).await;
        }
        // By the order of change the rows of a page stand side by side, in all others they are read
        // one by one. Pages with terms read more than they show.
        let is_short = reading.max <= INLINE_ITEMS_MAX && query.order.axis == Axis::Modified;
        if (is_short || is_fresh) && !query.filter.has_terms() {
            return Ok(self.store.page_in_place(query).await?);
        }
        Ok(self.store.page(query).await?)
    }

    /// A page with its total, which is counted once while the feed is as it was.
    async fn counted(&self, view: &View, query: PageQuery) -> Result<Page, ReadError> {
        let known = self.filtered.totals.get(view).await;
        if let Some((head, total)) = known
            && self.is_at(query.feed, head)
        {
            let uncounted = PageQuery {
                with_total: false,
                ..query.clone()
            };
            let page = self.store.page(uncounted).await?;
            if page.record.head() == head {
                return Ok(Page { total, ..page });
            }
            // The feed has moved on since its head was looked up.
        }
        let page = self.store.page(query).await?;
        let total = (page.record.head(), page.total);
        self.filtered.totals.insert(view.clone(), total).await;
        Ok(page)
    }

    /// True while the total of a view is remembered that it has in this state.
    pub(super) async fn is_counted(&self, view: &View, head: Head) -> bool {
        let known = self.filtered.totals.get(view).await;
        known.is_some_and(|(counted, _)| counted == head)
    }
}
