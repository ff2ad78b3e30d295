//! The body of an answer that holds a place at the origin: it breaks off when the place is taken
//! away, also while its reader takes nothing.

use super::{
    idle_body::IdleBody,
    site_permits::{PermitProgress, SitePermit},
    watched::BusyConnection,
};
use crate::locks::lock;
use bytes::Bytes;
use http_body::{Body, Frame};
use std::{
    pin::Pin,
    sync::{Arc, Mutex},
    task::{Context, Poll},
};
use tower::BoxError;

/// A body with the connection that it comes by.
type ConnectedBody<B> = Arc<Mutex<Option<(IdleBody<B>, BusyConnection)>>>;

/// The body of an answer that holds a place.
pub(super) struct PermitBody<B> {
    held: ConnectedBody<B>,
    /// Behind the body, so that its connection is free before its place.
    place: SitePermit,
    progress: PermitProgress,
}

impl<B: Send + 'static> PermitBody<B> {
    pub(super) fn new(body: IdleBody<B>, connection: BusyConnection, place: SitePermit) -> Self {
        let held = Arc::new(Mutex::new(Some((body, connection))));
        let let_go = Arc::downgrade(&held);
        place.when_taken_away(move || {
            let held = let_go.upgrade();
            drop(held.and_then(|held| lock(&held).take()));
        });
        let progress = place.progress();
        Self {
            held,
            place,
            progress,
        }
    }
}

impl<B: Body<Data = Bytes, Error: Into<BoxError>> + Unpin> Body for PermitBody<B> {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        self.place.wakes(cx.waker());
        let mut held = lock(&self.held);
        let Some((body, _)) = held.as_mut().filter(|_| !self.place.is_taken_away()) else {
            return Poll::Ready(Some(Err(
                "the place of this answer was needed for others".into()
            )));
        };
        let polled = Pin::new(body).poll_frame(cx);
        if let Poll::Ready(Some(Ok(frame))) = &polled {
            self.progress.moved(frame.data_ref().map_or(0, Bytes::len));
        }
        polled
    }

    fn is_end_stream(&self) -> bool {
        let held = lock(&self.held);
        held.as_ref().is_some_and(|(body, _)| body.is_end_stream())
    }
}
