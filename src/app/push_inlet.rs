//! The way of requests at callbacks to whoever subscribes at hubs: to this process while it works,
//! else to the process that does; not what they tell.

use super::{current_work::CurrentWork, relay::Relay};
use crate::serve::push_inlet::PushInlet;
use bytes::Bytes;
use futures_util::future::BoxFuture;
use http::{Request, Response, StatusCode};
use std::sync::Arc;
use tokio::sync::Semaphore;

/// Requests that are handed on at once. More are told to come again.
const RELAYED_MAX: usize = 16;
/// The longest body that is handed on, bytes; what is longer is a hint alone.
const RELAYED_BYTES_MAX: usize = 64 << 10;

/// The way to whoever subscribes at hubs.
pub(super) struct WorkInlet {
    workplace: CurrentWork,
    relay: Relay,
    relayed: Arc<Semaphore>,
}

impl WorkInlet {
    pub(super) fn new(workplace: CurrentWork, relay: Relay) -> Self {
        Self {
            workplace,
            relay,
            relayed: Arc::new(Semaphore::new(RELAYED_MAX)),
        }
    }
}

impl PushInlet for WorkInlet {
    fn takes(&self, token: &str) -> bool {
        match self.workplace.work() {
            Some(work) => {
                let subscriber = work.subscriber.as_ref();
                subscriber.is_some_and(|subscriber| subscriber.takes(token))
            }
            // The process that works knows.
            None => self.relay.0.nodes().is_some(),
        }
    }

    fn answer(
        &self,
        token: &str,
        mut request: Request<Bytes>,
        mut is_whole: bool,
    ) -> BoxFuture<'static, Response<Bytes>> {
        let (work, relay) = (self.workplace.work(), self.relay.clone());
        let (token, relayed) = (token.to_owned(), self.relayed.clone());
        Box::pin(async move {
            if let Some(work) = work {
                let Some(subscriber) = &work.subscriber else {
                    return status(StatusCode::NOT_FOUND);
                };
                return subscriber.answer(&token, &request, is_whole).await;
            }
            let Ok(_relayed) = relayed.try_acquire() else {
                return status(StatusCode::SERVICE_UNAVAILABLE);
            };
            if request.body().len() > RELAYED_BYTES_MAX {
                *request.body_mut() = Bytes::new();
                is_whole = false;
            }
            relay.callback(&token, request, is_whole).await
        })
    }
}

fn status(status: StatusCode) -> Response<Bytes> {
    let mut answer = Response::new(Bytes::new());
    *answer.status_mut() = status;
    answer
}
