//! A view followed from a position on: its pages in order, each as soon as there is one; not the protocols that carry them.

use super::{ReadError, ReadRequest, Readers, Rendered};
use crate::feed::record::Head;
use futures_util::{
    future::{BoxFuture, FutureExt as _},
    stream::{self, BoxStream, StreamExt as _},
};
use std::{future, sync::Arc};
use tokio::{sync::watch, time::Instant};

/// Pages as they come, of a reader whose position is kept.
pub type Pages = BoxStream<'static, Result<Arc<Rendered>, ReadError>>;

impl Readers {
    /// A reader of the pages of a read that hold something, each going on from the last cursor of the one before, and then
    /// of every later change. Nothing that is committed after this call is missed.
    ///
    /// The pages end once `end` is ready (the reader leaves, the feed is withdrawn, the server stops), though not before
    /// the first look; when the range can gain nothing more; and after an error.
    pub(super) fn follow(
        self: &Arc<Self>,
        reading: ReadRequest,
        end: impl Future<Output = ()> + Send + 'static,
    ) -> Result<Follower, ReadError> {
        Ok(Follower {
            // Registered before the first read, so that no change falls between the two.
            changes: self.watch(reading.view.feed)?,
            readers: self.clone(),
            reading,
            end: end.boxed(),
            has_looked: false,
            was_at_end: false,
            is_wanted: |_, page| page.count > 0,
        })
    }

    /// The same pages for a reader whose position is kept: a page that holds nothing and yet lies further on is given, too,
    /// because the position moves with it.
    pub fn follow_position(
        self: &Arc<Self>,
        reading: ReadRequest,
        end: impl Future<Output = ()> + Send + 'static,
    ) -> Result<Pages, ReadError> {
        let follower = Follower {
            is_wanted: |reading, page| page.count > 0 || reading.is_moved_by(page),
            ..self.follow(reading, end)?
        };
        let next = |mut follower: Follower| async move {
            let page = follower.next().await?;
            Ok(page.map(|page| (page, follower)))
        };
        Ok(stream::try_unfold(follower, next).boxed())
    }
}

/// A reader between two pages.
pub(super) struct Follower {
    readers: Arc<Readers>,
    /// The read that the next page answers.
    reading: ReadRequest,
    changes: watch::Receiver<Head>,
    end: BoxFuture<'static, ()>,
    has_looked: bool,
    /// True once a page has come to the end of the view: what follows was committed since.
    was_at_end: bool,
    is_wanted: fn(&ReadRequest, &Rendered) -> bool,
}

impl Follower {
    /// The read that the next page answers: behind all that was looked at.
    pub(super) fn reading(&self) -> &ReadRequest {
        &self.reading
    }

    /// The next page that is wanted; `None` at the end.
    pub(super) async fn next(&mut self) -> Result<Option<Arc<Rendered>>, ReadError> {
        loop {
            if self.has_looked && (&mut self.end).now_or_never().is_some() {
                return Ok(None);
            }
            self.has_looked = true;
            self.changes.borrow_and_update();
            let page = self.readers.read_as(&self.reading, self.was_at_end).await?;
            self.was_at_end = !page.more;
            // A page of a form without tombstones may be empty and yet lie further on.
            let is_wanted = (self.is_wanted)(&self.reading, &page);
            if is_wanted || page.more {
                self.reading = self.reading.clone().after(self.reading.goes_on_at(&page));
            }
            if is_wanted {
                return Ok(Some(page));
            }
            if let Some(scanned) = &page.scanned {
                // What a filter has hidden is not looked at again after each change.
                self.reading = self.reading.clone().after(scanned);
            }
            if !page.more && !self.wait().await {
                return Ok(None);
            }
        }
    }

    /// Waits for a change; false when none is to be waited for any more.
    async fn wait(&mut self) -> bool {
        let growth_end = self.readers.growth_end(&self.reading);
        if growth_end.is_some_and(|end| end <= Instant::now()) {
            return false;
        }
        let grown = async {
            match growth_end {
                Some(end) => tokio::time::sleep_until(end).await,
                None => future::pending().await,
            }
        };
        tokio::select! {
            biased;
            changed = self.changes.changed() => changed.is_ok(),
            () = &mut self.end => false,
            () = grown => false,
        }
    }
}
