//! Requests to callbacks: sent once, with an end to their wait; not what they say, and not how many there are at once.

use crate::layers::{FetchError, Request};
use bytes::Bytes;
use http::{HeaderValue, Response};
use std::time::Duration;
use tower::{ServiceExt as _, util::BoxCloneSyncService};

/// Service for requests to callbacks: no redirects, guarded addresses, a bounded answer. [`crate::layers::callback`]
/// makes one.
pub type Callbacks = BoxCloneSyncService<Request, Response<Bytes>, FetchError>;

/// Client for requests to callbacks.
#[derive(Clone)]
pub(super) struct CallbackClient {
    pub(super) service: Callbacks,
    pub(super) user_agent: HeaderValue,
    /// The longest wait for an answer.
    pub(super) within: Duration,
}

impl CallbackClient {
    /// Sends a request.
    pub(super) async fn send(&self, request: Request) -> Result<Response<Bytes>, FetchError> {
        let answer = tokio::time::timeout(self.within, self.service.clone().oneshot(request)).await;
        answer.unwrap_or(Err(FetchError::Timeout { after: self.within }))
    }
}
