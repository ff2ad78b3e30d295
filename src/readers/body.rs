//! The making of a body: its page read and rendered, at a place and with memory that it waits for;
//! not which items stand in it.

use super::{
    ReadError, ReadRequest, Readers, Rendered,
    body_room::{BUSY_WAIT, HeldBody, LARGE_BYTES, LARGE_ITEMS, TIDY_EVERY, weight},
    coding,
    range::{ClassicPage, INLINE_ITEMS_MAX},
    request::Purpose,
};
use crate::{
    byte_budget::{ByteBudget, ByteLease},
    render::{self, Links},
};
use bytes::Bytes;
use std::sync::Arc;

impl Readers {
    /// A body that is made for one consumer alone, within the budget.
    pub async fn held(&self, body: Vec<u8>) -> Result<Bytes, ReadError> {
        let budget = if body.len() <= LARGE_BYTES {
            &*self.room.ordinary
        } else {
            &self.room.large
        };
        let lease = self
            .lease(budget, body.len())
            .await
            .ok_or(ReadError::Busy)?;
        Ok(Bytes::from_owner(HeldBody {
            bytes: body.into(),
            _lease: Some(Arc::new(lease)),
        }))
    }

    /// Reads the store and renders. Large pages are made one or two at a time, so that ordinary
    /// ones find a place.
    pub(super) async fn make(
        &self,
        reading: &ReadRequest,
        is_fresh: bool,
    ) -> Result<Arc<Rendered>, ReadError> {
        let is_large = reading.purpose != Purpose::Push && reading.max > LARGE_ITEMS;
        let _scan_place = match reading.view.filter.has_terms() {
            true => Some(self.room.scan_place().await?),
            false => None,
        };
        let mut large_place = if is_large {
            Some(self.room.large_place().await?)
        } else {
            None
        };
        loop {
            // What a page costs before its size is known is bounded by the number of pages that are
            // made at once.
            let place = self.room.place().await?;
            let (rendered, body) = self.make_body(reading, is_fresh).await?;
            let weight = weight(body.len());
            let lease = match reading.purpose {
                // Pushes are few at once and small, and must not wait for consumers that do not
                // read.
                Purpose::Push => None,
                _ if body.len() <= LARGE_BYTES => self.lease(&self.room.ordinary, weight).await,
                Purpose::Page | Purpose::Archive(_) | Purpose::Events => {
                    large_place = large_place.or_else(|| self.room.large_places.try_acquire().ok());
                    if large_place.is_none() {
                        drop((place, rendered, body));
                        large_place = Some(self.room.large_place().await?);
                        continue;
                    }
                    self.lease(&self.room.large, weight).await
                }
            };
            if lease.is_none() && reading.purpose != Purpose::Push {
                return Err(ReadError::Busy);
            }
            let lease = lease.map(Arc::new);
            let body = Bytes::from_owner(HeldBody {
                bytes: body,
                _lease: lease.clone(),
            });
            return Ok(Arc::new(Rendered {
                body,
                codings: coding::Codings::within(lease),
                ..rendered
            }));
        }
    }

    /// Memory for a body, if there is some in time. Bodies that the cache has let go hold theirs
    /// until it is tidied, which it does only now and then by itself.
    async fn lease(&self, budget: &ByteBudget, weight: usize) -> Option<ByteLease> {
        if let Some(lease) = budget.try_lease(weight) {
            return Some(lease);
        }
        let lease = budget.lease(weight, BUSY_WAIT);
        tokio::pin!(lease);
        loop {
            self.bodies.run_pending_tasks().await;
            tokio::select! {
                lease = &mut lease => return lease,
                () = tokio::time::sleep(TIDY_EVERY) => {}
            }
        }
    }

    /// A page and its bytes, which are not in it yet.
    async fn make_body(
        &self,
        reading: &ReadRequest,
        is_fresh: bool,
    ) -> Result<(Rendered, Bytes), ReadError> {
        let is_classic = reading.representation.is_classic();
        let ClassicPage {
            mut page,
            links: archives,
            is_lasting,
        } = match reading.purpose {
            Purpose::Archive(place) => self.archive(reading, place).await?,
            Purpose::Page if is_classic => self.newest(reading).await?,
            Purpose::Page | Purpose::Push | Purpose::Events => {
                self.range(reading, is_fresh).await?.into()
            }
        };
        if let Some(base) = reading.base {
            page.items.retain(|item| item.modified > base);
        }
        let next = (page.more && reading.purpose == Purpose::Page && !is_classic)
            .then(|| self.next(reading, &page));
        let view = (reading.view.order, &reading.view.filter);
        let links = self.site_of(reading).links(
            &page.record.name,
            reading.representation,
            view,
            next.clone(),
        );
        let base = reading
            .own_url
            .as_deref()
            .map_or_else(|| links.base.clone(), str::to_owned);
        let links = Links {
            base,
            archives,
            is_old_address: reading.own_url.is_some(),
            ..links
        };
        let prev_cursor = reading.acked().map(str::to_owned);
        let head = page.record.head();
        if !head.ready {
            // What it holds is being chosen anew.
            return Err(ReadError::NotReady);
        }
        let page = Arc::new(page);
        let ttl_mins = (self.ttl_mins)(reading.view.feed)
            .filter(|_| !matches!(reading.purpose, Purpose::Archive(_)));
        let (shown, representation) = (page.clone(), reading.representation);
        let (purpose, order) = (reading.purpose, reading.view.order);
        let is_look = reading.is_look;
        let body = rendered(page.items.len(), move || match purpose {
            _ if is_look => Vec::new(),
            Purpose::Events => render::event_stream::events(&shown, order),
            Purpose::Page | Purpose::Push | Purpose::Archive(_) => {
                let prev_cursor = prev_cursor.as_deref();
                representation.write(&render::Document {
                    page: &shown,
                    links: &links,
                    prev_cursor,
                    ttl_mins,
                })
            }
        })
        .await;
        let page = Arc::unwrap_or_clone(page);
        let rendered = Rendered {
            body: Bytes::new(),
            count: page.items.len(),
            more: page.more,
            head,
            last_cursor: page.last_cursor,
            next,
            scanned: page.scanned,
            degraded: page.degraded,
            is_lasting,
            codings: coding::Codings::default(),
        };
        Ok((rendered, body))
    }
}

/// The bytes of a page, large ones made on a thread that nobody waits for. Room that was not
/// written to is given back: a body is kept for long, and weighs what it holds.
pub(super) async fn rendered(
    items: usize,
    render: impl FnOnce() -> Vec<u8> + Send + 'static,
) -> Bytes {
    let render = || {
        let mut body = render();
        body.shrink_to_fit();
        body
    };
    if items <= INLINE_ITEMS_MAX {
        return render().into();
    }
    match tokio::task::spawn_blocking(render).await {
        Ok(body) => body.into(),
        Err(broken) => match broken.try_into_panic() {
            Ok(panic) => std::panic::resume_unwind(panic),
            // The runtime ends, and with it whoever waits for this.
            Err(_) => std::future::pending().await,
        },
    }
}
