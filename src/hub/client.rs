//! Requests to callbacks: sent once, with an end to their wait, and their place told how they end;
//! not what they say.

use super::{
    callback_permits::CallbackPermit,
    health::{Ending, SLOW_AFTER},
    process_addresses::ProcessAddresses,
};
use crate::layers::{Awaited, FetchError, Refused, Request};
use bytes::Bytes;
use http::{HeaderValue, Response};
use std::{pin::pin, sync::Arc, time::Duration};
use tower::{ServiceExt as _, util::BoxCloneSyncService};

/// Service for requests to callbacks: no redirects, guarded addresses, a bounded answer.
/// [`crate::layers::callback`] makes one.
pub type Callbacks = BoxCloneSyncService<Request, Response<Bytes>, FetchError>;

/// Client for requests to callbacks.
#[derive(Clone)]
pub(super) struct CallbackClient {
    pub(super) service: Callbacks,
    pub(super) user_agent: HeaderValue,
    /// The longest wait for an answer.
    pub(super) within: Duration,
    /// The places that are no callbacks.
    pub(super) own: Arc<ProcessAddresses>,
}

impl CallbackClient {
    /// Sends a request. One to a place of our own is not sent.
    pub(super) async fn send(
        &self,
        request: Request,
        place: &mut CallbackPermit,
    ) -> Result<Response<Bytes>, FetchError> {
        if self.own.holds(&request.uri().to_string(), &[]) {
            place.ended(Ending::Answered);
            return Err(Refused::Own.into());
        }
        let mut sent = pin!(tokio::time::timeout(
            self.within,
            self.service.clone().oneshot(request)
        ));
        let early = tokio::time::timeout(SLOW_AFTER, sent.as_mut()).await;
        let (answer, answered) = match early {
            Ok(answer) => (answer, Ending::Answered),
            Err(_) => {
                place.slowed();
                (sent.await, Ending::AnsweredSlowly)
            }
        };
        let answer = answer.unwrap_or(Err(FetchError::Timeout {
            after: self.within,
            awaited: Awaited::Whole,
        }));
        place.ended(if answer.is_ok() {
            answered
        } else {
            Ending::Silent
        });
        answer
    }
}
