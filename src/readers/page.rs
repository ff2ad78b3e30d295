//! A page of a Smart Feed: what stands in it, the page after it, and how long a read of it is held.

use super::{ReadError, ReadRequest, Readers, Rendered, body::Contents};
use crate::{
    feed::{page::Growth, stamp::Stamp},
    render::Query,
};
use std::{sync::Arc, time::Duration};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

impl Readers {
    /// A page, with the URL of the next (SF-53): the same question, from the last cursor on.
    pub(super) async fn page(
        &self,
        reading: &ReadRequest,
        is_fresh: bool,
    ) -> Result<Contents, ReadError> {
        let (view, bytes_max) = (&reading.view, self.config.page_bytes_max);
        let page = self
            .range(reading, view.filter.clone(), bytes_max, is_fresh)
            .await?;
        if !page.more {
            return Ok(page.into());
        }
        // What follows a page that has looked at as many items as it may can be empty, and is not
        // held then.
        let is_cut = view.filter.has_terms() && page.items.len() < reading.max;
        let until = reading.until.as_ref().map(|until| until.raw.clone());
        let query = Query {
            timeout_secs: is_cut.then_some(0),
            since: format!("cursor:{}", page.last_cursor),
            until: until.unwrap_or_default(),
            max: Some(reading.max),
            order: view.order,
            filter: view.filter.clone(),
            ..Query::default()
        };
        let site = self.site_of(reading);
        let next = site.page(&page.record.name, reading.representation, &query);
        Ok(Contents {
            next: Some(next),
            ..page.into()
        })
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
            let _ = tokio::time::timeout_at(deadline, stop.cancelled()).await;
        };
        // In boxes, because whoever is answered at once keeps room for this, too.
        let mut follower = Box::new(self.follow(reading.clone(), end)?.minding_channel());
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
        let end = self.growth_end(reading).unwrap_or(deadline);
        reading.is_answered_by(body) || end.min(deadline) <= Instant::now()
    }

    /// The moment from which on the range of a read gains nothing more; `None` while it has no end.
    pub(super) fn growth_end(&self, reading: &ReadRequest) -> Option<Instant> {
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
}
