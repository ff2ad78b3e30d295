//! The making of a body: its contents read and written, at a place and with memory that it waits
//! for; not which items stand in it.

use super::{
    ReadError, ReadRequest, Readers, Rendered,
    body_permits::{BUSY_WAIT, LARGE_BYTES, LARGE_ITEMS, TIDY_EVERY, held, weight},
    coding::{Codings, aside},
    request::Purpose,
    store_read::INLINE_ITEMS_MAX,
};
use crate::{
    byte_budget::ByteLease,
    feed::page::Page,
    render::{self, ArchiveLinks, Links},
};
use bytes::Bytes;
use std::sync::Arc;

/// The items of a body, and what stands before and behind them.
pub(super) struct Contents {
    pub(super) page: Page,
    /// The URL of the next page.
    pub(super) next: Option<String>,
    pub(super) archives: ArchiveLinks,
    /// True for an archive that was asked for by the name of its present version.
    pub(super) is_lasting: bool,
}

impl From<Page> for Contents {
    fn from(page: Page) -> Self {
        Self {
            page,
            next: None,
            archives: ArchiveLinks::default(),
            is_lasting: false,
        }
    }
}

impl Readers {
    /// Reads the store and renders. Large pages are made one or two at a time, so that ordinary
    /// ones find a place.
    pub(super) async fn make(
        &self,
        reading: &ReadRequest,
        is_fresh: bool,
    ) -> Result<Arc<Rendered>, ReadError> {
        // Pushes are few at once and small, and must not wait for consumers that do not read.
        let is_push = matches!(reading.purpose, Purpose::Push { .. });
        let _scan_place = if reading.view.filter.has_terms() {
            Some(self.room.scan_place().await?)
        } else {
            None
        };
        let mut large_place = if reading.max > LARGE_ITEMS && !is_push {
            Some(self.room.large_place().await?)
        } else {
            None
        };
        loop {
            // What a page costs before its size is known is bounded by the number of pages that are
            // made at once.
            let place = self.room.place().await?;
            let contents = self.contents(reading, is_fresh).await?;
            let (rendered, body) = self.rendered(reading, contents).await?;
            if body.len() > LARGE_BYTES && !is_push && large_place.is_none() {
                large_place = self.room.large_places.try_acquire().ok();
                if large_place.is_none() {
                    drop((place, rendered, body));
                    large_place = Some(self.room.large_place().await?);
                    continue;
                }
            }
            let lease = match reading.purpose {
                Purpose::Push { .. } | Purpose::Look => None,
                _ => Some(self.lease(body.len(), weight(body.len())).await?),
            };
            return Ok(Arc::new(Rendered {
                body: held(body, lease.clone()),
                codings: Codings::within(lease),
                ..rendered
            }));
        }
    }

    /// A body that is made for one consumer alone, within the budget.
    pub async fn held(&self, body: Vec<u8>) -> Result<Bytes, ReadError> {
        let lease = self.lease(body.len(), body.len()).await?;
        Ok(held(body.into(), Some(lease)))
    }

    /// Memory for a body of so many bytes, if there is some in time. Bodies that the cache has let
    /// go hold theirs until it is tidied, which it does only now and then by itself.
    async fn lease(&self, bytes: usize, weight: usize) -> Result<Arc<ByteLease>, ReadError> {
        let budget = if bytes <= LARGE_BYTES {
            &*self.room.ordinary
        } else {
            &self.room.large
        };
        if let Some(lease) = budget.try_lease(weight) {
            return Ok(Arc::new(lease));
        }
        let lease = budget.lease(weight, BUSY_WAIT);
        tokio::pin!(lease);
        loop {
            self.bodies.run_pending_tasks().await;
            tokio::select! {
                lease = &mut lease => return lease.map(Arc::new).ok_or(ReadError::Busy),
                () = tokio::time::sleep(TIDY_EVERY) => {}
            }
        }
    }

    /// The items of a body, by its purpose.
    async fn contents(&self, reading: &ReadRequest, is_fresh: bool) -> Result<Contents, ReadError> {
        match reading.purpose {
            // Their next page is not asked for by a look.
            Purpose::Page | Purpose::Look => self.page(reading, is_fresh).await,
            Purpose::Newest { changed_since } => self.newest(reading, changed_since).await,
            Purpose::Archive(place) => self.archive(reading, place).await,
            Purpose::Push {
                deletions,
                bytes_max,
                is_old: _,
                is_still,
            } => {
                let push = self.push(reading, deletions, bytes_max, is_fresh).await?;
                Ok(if is_still {
                    push.standing(reading)
                } else {
                    push
                })
            }
            Purpose::Stream => self.events(reading, is_fresh).await,
        }
    }

    /// A page and its bytes, which are not in it yet.
    async fn rendered(
        &self,
        reading: &ReadRequest,
        contents: Contents,
    ) -> Result<(Rendered, Bytes), ReadError> {
        let head = contents.page.record.head();
        if !head.ready {
            // What it holds is being chosen anew.
            return Err(ReadError::NotReady);
        }
        let page = Arc::new(contents.page);
        let body = match reading.purpose {
            Purpose::Look => Bytes::new(),
            Purpose::Stream => {
                let (shown, order) = (page.clone(), reading.view.order);
                let events = move || render::event_stream::events(&shown, order);
                written(page.items.len(), events).await
            }
            _ => {
                let links = self.links(reading, &page, contents.next.clone(), contents.archives);
                let (shown, representation) = (page.clone(), reading.representation);
                let reading = reading.clone();
                let ttl_mins = match reading.purpose {
                    Purpose::Archive(_) => None,
                    _ => (self.ttl_mins)(reading.view.feed),
                };
                let document = move || {
                    representation.write(&render::Document {
                        page: &shown,
                        links: &links,
                        push: reading.chain_place(),
                        ttl_mins,
                    })
                };
                written(page.items.len(), document).await
            }
        };
        let page = Arc::unwrap_or_clone(page);
        let rendered = Rendered {
            body: Bytes::new(),
            count: page.items.len(),
            more: page.more,
            total: page.total,
            head,
            last_cursor: page.last_cursor,
            next: contents.next,
            scanned: page.scanned,
            degraded: page.degraded,
            is_lasting: contents.is_lasting,
            codings: Codings::default(),
        };
        Ok((rendered, body))
    }

    /// The links of a document.
    fn links(
        &self,
        reading: &ReadRequest,
        page: &Page,
        next: Option<String>,
        archives: ArchiveLinks,
    ) -> Links {
        let (name, view) = (&page.record.name, &reading.view);
        let mut links = self.site_of(reading).links(
            name,
            reading.representation,
            view.order,
            &view.filter,
            next,
        );
        // An archive gains nothing.
        if !matches!(reading.purpose, Purpose::Archive(_)) && (self.takes_cloud)(view.feed) {
            links.cloud = self.site.cloud();
        }
        links.archives = archives;
        if matches!(reading.purpose, Purpose::Push { .. }) {
            links.topic.clone_from(&links.base);
        }
        if let Some(own_url) = &reading.own_url {
            own_url.as_ref().clone_into(&mut links.base);
            // The Smart Feed at an old address is no document of its publisher.
            links.is_old_address = reading.representation.is_classic();
        }
        links
    }
}

/// The bytes of a page, large ones made on a thread that nobody waits for. Room that was not
/// written to is given back: a body is kept for long, and weighs what it holds.
pub(super) async fn written(
    items: usize,
    write: impl FnOnce() -> Vec<u8> + Send + 'static,
) -> Bytes {
    let write = move || -> Bytes {
        let mut body = write();
        body.shrink_to_fit();
        body.into()
    };
    if items <= INLINE_ITEMS_MAX {
        write()
    } else {
        aside(write).await
    }
}
