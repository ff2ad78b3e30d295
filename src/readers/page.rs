//! A page of a Smart Feed: how long a read of it is held, and the page after it; not the items in it.

use super::{ReadError, ReadRequest, Readers, Rendered};
use crate::{
    feed::{
        page::{Growth, Page},
        stamp::Stamp,
    },
    render::Query,
};
use std::{sync::Arc, time::Duration};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

impl Readers {
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
            tokio::select! {
                () = stop.cancelled() => {}
                () = tokio::time::sleep_until(deadline) => {}
            }
        };
        // In boxes, because whoever is answered at once keeps room for this, too.
        let mut follower = Box::new(self.follow(reading.clone(), end)?);
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
        let end = self
            .growth_end(reading)
            .map_or(deadline, |end| end.min(deadline));
        body.count > 0 || end <= Instant::now()
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

    /// The page after this one (SF-53): the same question, from the last cursor on. What follows a
    /// page that has looked at as many items as it may can be empty, and is not held then.
    pub(super) fn next(&self, reading: &ReadRequest, page: &Page) -> String {
        let is_cut = reading.view.filter.has_terms() && page.items.len() < reading.max;
        let query = Query {
            timeout_secs: is_cut.then_some(0),
            since: format!("cursor:{}", page.last_cursor),
            until: reading
                .until
                .as_ref()
                .map(|until| until.raw.clone())
                .unwrap_or_default(),
            max: Some(reading.max),
            order: reading.view.order,
            filter: reading.view.filter.clone(),
            ..Query::default()
        };
        self.site_of(reading)
            .page(&page.record.name, reading.representation, &query)
    }
}
