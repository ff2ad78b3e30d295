//! A view followed from a position on: its pages in order, each as soon as there is one; not the
//! protocols that carry them.

use super::{ReadError, ReadRequest, Readers, Rendered, request::Purpose};
use crate::{
    feed::{page::Degraded, record::Head, stamp::Stamp},
    mistakes::{Mistake, is_made},
    render::PositionLocation,
};
use futures_util::{
    future::{BoxFuture, FutureExt as _},
    stream::{self, BoxStream, StreamExt as _},
};
use std::{future, sync::Arc};
use tokio::{sync::watch, time::Instant};

/// Pages as they come, of a reader whose position is kept.
pub type Pages = BoxStream<'static, Result<Arc<Rendered>, ReadError>>;

impl Readers {
    /// A reader of the pages of a read that hold something, each going on from the last cursor of
    /// the one before, and then of every later change. Nothing that is committed after this call is
    /// missed.
    ///
    /// The pages end once `end` is ready (the reader leaves, the feed is withdrawn, the server
    /// stops), though not before the first look; when the range can gain nothing more; and after an
    /// error.
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
            looked: None,
            is_wanted: ReadRequest::is_answered_by,
            channel_t: None,
        })
    }

    /// The same pages for a reader whose position is kept: a page that holds nothing and yet lies
    /// further on is given, too, because the position moves with it.
    pub fn follow_position(
        self: &Arc<Self>,
        reading: ReadRequest,
        end: impl Future<Output = ()> + Send + 'static,
    ) -> Result<Pages, ReadError> {
        let follower = Follower {
            is_wanted: |reading, page| reading.is_answered_by(page) || reading.is_moved_by(page),
            ..self.follow(reading, end)?
        };
        let next = |mut follower: Follower| async move {
            let page = follower.next().await?;
            Ok(page.map(|page| (page, follower)))
        };
        Ok(stream::try_unfold(follower, next).boxed())
    }

    /// The first of these pages, if there is one now. Up to the state `seen` there was none.
    pub async fn look_behind(
        self: &Arc<Self>,
        reading: ReadRequest,
        seen: Option<Head>,
    ) -> Result<Option<Arc<Rendered>>, ReadError> {
        let mut follower = Follower {
            is_wanted: |reading, page| reading.is_answered_by(page) || reading.is_moved_by(page),
            looked: seen,
            ..self.follow(reading, future::pending())?
        };
        loop {
            let (_, page) = follower.step().await?;
            if page.is_some() || follower.looked.is_some() {
                return Ok(page);
            }
        }
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
    /// The state at which a page came to the end of the view, or up to which changes were passed
    /// since; what follows was committed later. `None` while more may stand there.
    looked: Option<Head>,
    is_wanted: fn(&ReadRequest, &Rendered) -> bool,
    /// The last change of the channel when it began to wait, where a later one ends the wait.
    channel_t: Option<Stamp>,
}

/// The end of a try to pass changes without a read.
enum Passed {
    /// The view has to be read.
    MustRead,
    /// The view is as it was, and so is the position.
    Nothing,
    /// The view is as it was. The position moves with this page, which has no items.
    UpTo(Arc<Rendered>),
}

impl Follower {
    /// The same reader, whose pages end when the channel alone changes (P03-10), where its form
    /// shows the channel.
    pub(super) fn minding_channel(self) -> Self {
        let is_shown = self.reading.representation.position_place() == PositionLocation::Body;
        let channel_t = is_shown.then(|| self.changes.borrow().metadata_t);
        Self { channel_t, ..self }
    }

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
            let (announced, page) = self.step().await?;
            if page.is_some() {
                return Ok(page);
            }
            // It is as it was when the wait began, or before the read.
            if self
                .channel_t
                .is_some_and(|known| known < announced.metadata_t)
            {
                return Ok(None);
            }
            if self.looked.is_some() && !self.wait().await {
                return Ok(None);
            }
        }
    }

    /// Looks once behind the position, and moves it; the head that was announced by then, and the
    /// page that was found, if it is wanted.
    async fn step(&mut self) -> Result<(Head, Option<Arc<Rendered>>), ReadError> {
        let announced = *self.changes.borrow_and_update();
        let page = match Box::pin(self.pass_changes(announced)).await {
            Passed::MustRead => {
                let page = Box::pin(self.look(announced)).await?;
                if is_made(Mistake::WatchedAfterTheRead) {
                    self.changes.mark_unchanged();
                }
                page
            }
            Passed::UpTo(page) => page,
            Passed::Nothing => return Ok((announced, None)),
        };
        // A page of a form without tombstones may be empty and yet lie further on.
        let is_wanted = (self.is_wanted)(&self.reading, &page);
        self.go_on_behind(&page, is_wanted);
        Ok((announced, is_wanted.then_some(page)))
    }

    /// Reads the page at the position. Where its total would have to be counted, it looks first
    /// whether there is anything: most who wait find nothing, and are told nothing.
    async fn look(&mut self, announced: Head) -> Result<Arc<Rendered>, ReadError> {
        let is_fresh = self.looked.is_some();
        let (readers, reading) = (&self.readers, &self.reading);
        if reading.tells_total() && !readers.is_counted(&reading.view, announced).await {
            let page = readers.read_as(&reading.look(), is_fresh).await?;
            if page.count == 0 && !page.more && !(self.is_wanted)(reading, &page) {
                self.looked = Some(page.head);
                return Ok(page);
            }
        }
        let page = readers.read_as(reading, is_fresh).await?;
        self.looked = (!page.more).then_some(page.head);
        Ok(page)
    }

    /// Moves the position behind a page.
    fn go_on_behind(&mut self, page: &Rendered, is_wanted: bool) {
        if is_wanted || page.more {
            self.reading = self.reading.after(self.reading.goes_on_at(page));
        }
        let order = self.reading.view.order;
        if let Some(scanned) = &page.scanned
            && !is_wanted
            && order.is_to_sync_by()
            && !order.reverse
        {
            // What a filter has hidden is not looked at again. In other orders what comes later may
            // stand before it.
            self.reading = self.reading.after(scanned);
        }
    }

    // Decides: Which changes does a waiter with a filter pass without a read?
    /// Passes the changes since the last look, if the view shows none of them: then it is as it
    /// was, and nothing is read, counted or rendered for it alone.
    async fn pass_changes(&mut self, announced: Head) -> Passed {
        let Some(looked) = self.looked else {
            return Passed::MustRead;
        };
        let view = &self.reading.view;
        let filter = &view.filter;
        // Entries inherit what the feed says of itself.
        let is_same_feed =
            |head: Head| head.metadata_t == looked.metadata_t || !filter.is_of_feed();
        if !filter.has_terms() || !announced.ready || !is_same_feed(announced) {
            return Passed::MustRead;
        }
        let mut passed: Option<String> = None;
        let mut at = looked;
        while at.last_t < announced.last_t {
            let changes = self.readers.changes(view.feed, at.last_t, announced).await;
            let Ok(changes) = changes else {
                // The read of the page tells the error.
                return Passed::MustRead;
            };
            let is_further = changes.end.last_t > at.last_t;
            if !is_further || !is_same_feed(changes.end) {
                return Passed::MustRead;
            }
            let change = changes.in_view(filter, view.order);
            if let Some(added) = change.added {
                self.readers.carry_total(view, at, &changes, added).await;
            }
            if change.is_shown {
                return Passed::MustRead;
            }
            at = changes.end;
            if let Some((t, cursor)) = changes.last(view.order)
                && self.reading.is_before(*t)
            {
                passed = Some(cursor.clone());
            }
        }
        self.looked = Some(at);
        let Some(cursor) = passed else {
            return Passed::Nothing;
        };
        let kept = self.reading.kept_cursor().unwrap_or_default().to_owned();
        Passed::UpTo(Arc::new(Rendered::passed(at, kept, cursor)))
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

impl ReadRequest {
    // Limit: where a range has an end, too, what is told of its beginning waits for an item.
    /// True for a page that its reader is to have now: it has items, or says that what the reader
    /// holds may be of no use.
    pub(super) fn is_answered_by(&self, page: &Rendered) -> bool {
        let begins_anew = page.degraded.is_some_and(Degraded::begins_anew);
        page.count > 0 || (begins_anew && self.until.is_none())
    }

    /// True for a page with which the position moves that a reader keeps.
    fn is_moved_by(&self, page: &Rendered) -> bool {
        self.kept_cursor()
            .is_some_and(|kept| page.lies_beyond(kept) || self.leaves_at(page) != kept)
    }

    /// The cursor at which a page leaves its reader. That of a stream of events passes what a
    /// filter has hidden at its end.
    fn leaves_at<'a>(&self, page: &'a Rendered) -> &'a str {
        match self.purpose {
            Purpose::Stream => page.goes_on_at(),
            _ => &page.last_cursor,
        }
    }

    /// The cursor from which the next page is read. A push passes what was hidden in the middle of
    /// its range, too.
    fn goes_on_at<'a>(&self, page: &'a Rendered) -> &'a str {
        match self.purpose {
            Purpose::Push { .. } if page.more => page.goes_on_at(),
            _ => self.leaves_at(page),
        }
    }
}
