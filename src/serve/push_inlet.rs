//! The callbacks at which hubs and clouds of others tell of feeds: bodies are read here, within
//! limits; not what they tell. A token that is not known gets what every path gets at which there is
//! nothing.

use super::{answers::refusal::Refusal, feeds::context::ServeContext, routing::mount::Handler};
use crate::{
    edge::body::{self, Response, ServeBody},
    render::Endpoint,
};
use bytes::{Bytes, BytesMut};
use futures_util::future::BoxFuture;
use http::{Method, Request, StatusCode, request::Parts};
use http_body_util::BodyExt as _;
use std::{sync::Arc, time::Duration};
use tokio::sync::Semaphore;

/// Pushes whose bodies are read at once; of more the body is left unread, and they are hints.
const READ_AT_ONCE_MAX: usize = 8;
/// Time in which the body of a push must be here.
const READ_MAX: Duration = Duration::from_secs(30);

/// Whoever answers at callbacks.
pub trait PushInlet: Send + Sync {
    /// True for the token of a callback that is answered, or may be.
    fn takes(&self, token: &str) -> bool;

    /// The answer to a request at a callback. `is_whole` is false where its body was not read, or
    /// not to its end.
    fn answer(
        &self,
        token: &str,
        request: Request<Bytes>,
        is_whole: bool,
    ) -> BoxFuture<'static, http::Response<Bytes>>;
}

/// Nobody: there are no callbacks.
pub(super) struct NoInlet;

impl PushInlet for NoInlet {
    fn takes(&self, _: &str) -> bool {
        false
    }

    fn answer(
        &self,
        _: &str,
        _: Request<Bytes>,
        _: bool,
    ) -> BoxFuture<'static, http::Response<Bytes>> {
        let mut answer = http::Response::new(Bytes::new());
        *answer.status_mut() = StatusCode::NOT_FOUND;
        Box::pin(std::future::ready(answer))
    }
}

/// The callbacks.
#[derive(Clone)]
pub(super) struct PushCallbacks {
    context: Arc<ServeContext>,
    inlet: Arc<dyn PushInlet>,
    /// The longest body that is read, bytes.
    body_bytes_max: usize,
    reads: Arc<Semaphore>,
}

impl PushCallbacks {
    pub(super) fn new(
        context: Arc<ServeContext>,
        inlet: Arc<dyn PushInlet>,
        body_bytes_max: usize,
    ) -> Self {
        Self {
            context,
            inlet,
            body_bytes_max,
            reads: Arc::new(Semaphore::new(READ_AT_ONCE_MAX)),
        }
    }

    // Decides: How much of a push is read?
    /// The body of a push, and true if that is all of it.
    async fn read(&self, mut body: ServeBody) -> (Bytes, bool) {
        let Ok(_read) = self.reads.try_acquire() else {
            return (Bytes::new(), false);
        };
        let reading = async {
            let mut whole = BytesMut::new();
            while let Some(frame) = body.frame().await {
                let Ok(Ok(data)) = frame.map(http_body::Frame::into_data) else {
                    return None;
                };
                if whole.len() + data.len() > self.body_bytes_max {
                    return None;
                }
                whole.extend_from_slice(&data);
            }
            Some(whole.freeze())
        };
        match tokio::time::timeout(READ_MAX, reading).await {
            Ok(Some(whole)) => (whole, true),
            _ => (Bytes::new(), false),
        }
    }
}

impl Handler for PushCallbacks {
    const METHODS: &'static str = "GET, POST, OPTIONS";

    async fn handle(&self, request: &Parts, body: ServeBody) -> Result<Response, Refusal> {
        let unknown = || self.context.unknown("there is nothing here");
        let endpoint = self.context.readers.site().endpoint(request.uri.path());
        let Some(Endpoint::Callback(token)) = endpoint else {
            return Err(unknown());
        };
        if !self.inlet.takes(&token) {
            return Err(unknown());
        }
        let (body, is_whole) = if request.method == Method::POST {
            self.read(body).await
        } else {
            (Bytes::new(), true)
        };
        let asked = Request::from_parts(request.clone(), body);
        let answer = self.inlet.answer(&token, asked, is_whole).await;
        if answer.status() == StatusCode::NOT_FOUND {
            return Err(unknown());
        }
        Ok(answer.map(body::whole))
    }
}
