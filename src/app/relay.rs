//! The way of requests from a process that follows to the one that works; not what comes of them.

use super::status::Status;
use crate::{
    auth::PrincipalId,
    edge::body::{PLAIN_TEXT, short_of},
    feed::record::FeedNo,
    store::{Store, StoreError},
};
use bytes::Bytes;
use http::{HeaderValue, Request, Response, StatusCode, Uri, header::RETRY_AFTER};
use std::{net::IpAddr, sync::Arc, time::Duration};
use thiserror::Error;
use tokio::time::timeout;

mod relay_request;

use relay_request::read_reply;
pub(super) use relay_request::{RelayRequest, RelayTarget, reply_words};

/// Time for the answer of the hub, which may ask a callback before.
const HUB_MAX: Duration = Duration::from_secs(30);

/// Time for the state of the process that works: the operator wants to know what is wrong.
const STATUS_MAX: Duration = Duration::from_secs(3);

/// Time for the answer of a look, for which its reader does not wait so long.
const LOOK_MAX: Duration = Duration::from_secs(5);

/// Time for an answer to the operator, who may wait for a poll.
const OPERATOR_MAX: Duration = Duration::from_secs(130);

/// Seconds after which a request is worth another try: another process has taken over by then.
const RETRY_SECS: u64 = 5;

/// Hands requests to the process that works. Cheap to clone.
#[derive(Clone)]
pub(super) struct Relay(pub(super) Arc<dyn Store>);

impl Relay {
    /// The answer of the hub to a request of this sender.
    pub(super) async fn hub(
        &self,
        request: &Request<Bytes>,
        client: Option<IpAddr>,
        sender: Option<PrincipalId>,
    ) -> Response<Bytes> {
        let letter = RelayRequest::of(RelayTarget::Hub, request, client, sender);
        self.ask(&letter, HUB_MAX).await.unwrap_or_else(|why| {
            // Strangers need not know what is behind us.
            tracing::warn!("A request to the hub could not be handed on: {why}");
            away(match why {
                Unanswered::NotDone(_) => {
                    "the hub cannot be reached now; try again after the time in Retry-After"
                }
                Unanswered::MayBeDone(_) => {
                    "the hub did not answer in time. The request may have been done; to send it \
                     again after the time in Retry-After does no harm"
                }
            })
        })
    }

    /// The state of the process that works; else the reason for which it is not told.
    pub(super) async fn status(&self, query: &str) -> Result<Status, String> {
        let mut request = Request::new(Bytes::new());
        *request.uri_mut() = Uri::try_from(format!("/status?{query}")).unwrap_or_default();
        let letter = RelayRequest::of(RelayTarget::Operator, &request, None, None);
        // A question is taken back, too, and a store that stands still takes its time for that.
        let asked = timeout(STATUS_MAX, self.ask(&letter, STATUS_MAX)).await;
        let late = || format!("it did not answer within {} s", STATUS_MAX.as_secs());
        let answer = asked.map_err(|_| late())?.map_err(|why| why.to_string())?;
        serde_json::from_slice(answer.body()).map_err(|_| text_of(&answer))
    }

    /// The answer to a request at the callback with this token.
    pub(super) async fn callback(
        &self,
        token: &str,
        mut request: Request<Bytes>,
        is_whole: bool,
    ) -> Response<Bytes> {
        let query = request.uri().query().unwrap_or_default();
        let target = format!("/{token}?{query}");
        *request.uri_mut() = Uri::try_from(target).unwrap_or_default();
        let letter = RelayRequest::of(RelayTarget::Callback { is_whole }, &request, None, None);
        self.ask(&letter, HUB_MAX).await.unwrap_or_else(|why| {
            tracing::warn!("A request of a hub could not be handed on: {why}");
            away("try again after the time in Retry-After")
        })
    }

    /// The answer to the operator.
    pub(super) async fn operator(&self, request: &Request<Bytes>) -> Response<Bytes> {
        let letter = RelayRequest::of(RelayTarget::Operator, request, None, None);
        self.send(&letter, OPERATOR_MAX).await
    }

    /// Has the process that works look at the origin of a feed, if the copy is older than that. The
    /// document that it finds is in the store.
    pub(super) async fn look(&self, feed: FeedNo, fresh_secs: u64) {
        let mut request = Request::new(Bytes::new());
        let target = format!("/{}/{fresh_secs}", feed.0);
        *request.uri_mut() = Uri::try_from(target).unwrap_or_default();
        let letter = RelayRequest::of(RelayTarget::Look, &request, None, None);
        if let Err(why) = self.ask(&letter, LOOK_MAX).await {
            tracing::debug!("No look at an old feed could be asked for: {why}");
        }
    }

    /// The answer, or 503 with the reason, for the operator.
    async fn send(&self, letter: &RelayRequest, within: Duration) -> Response<Bytes> {
        let answer = self.ask(letter, within).await;
        answer.unwrap_or_else(|why| {
            away(&format!(
                "the everfeed that polls and pushes did not answer: {why}"
            ))
        })
    }

    async fn ask(
        &self,
        letter: &RelayRequest,
        within: Duration,
    ) -> Result<Response<Bytes>, Unanswered> {
        let Some(nodes) = self.0.nodes() else {
            let why = "this one does not work yet, or not any more";
            return Err(Unanswered::NotDone(why.to_owned()));
        };
        let words = nodes.ask(letter.words(), within).await?;
        let other = || Unanswered::MayBeDone("it is of another version".to_owned());
        read_reply(&words).ok_or_else(other)
    }
}

/// The reason for which no answer came.
#[derive(Debug, Error)]
enum Unanswered {
    /// Nothing was done, and nothing will be.
    #[error("{0}")]
    NotDone(String),
    /// Nobody knows.
    #[error("{0}. It may have been done: look before you repeat what adds something each time")]
    MayBeDone(String),
}

impl From<StoreError> for Unanswered {
    fn from(error: StoreError) -> Self {
        match error {
            StoreError::OutcomeUnknown(why) => Self::MayBeDone(why),
            error => Self::NotDone(error.to_string()),
        }
    }
}

fn text_of(answer: &Response<Bytes>) -> String {
    String::from_utf8_lossy(answer.body()).trim().to_owned()
}

/// The feed and the seconds of a look that was asked for.
pub(super) fn asked_look(target: &Uri) -> Option<(FeedNo, u64)> {
    let (feed, fresh_secs) = target.path().strip_prefix('/')?.split_once('/')?;
    Some((FeedNo(feed.parse().ok()?), fresh_secs.parse().ok()?))
}

/// 503, and when to come again.
fn away(why: &str) -> Response<Bytes> {
    let text = format!("{why}\n");
    let mut answer = short_of(StatusCode::SERVICE_UNAVAILABLE, PLAIN_TEXT, text.into());
    let headers = answer.headers_mut();
    headers.insert(RETRY_AFTER, HeaderValue::from(RETRY_SECS));
    answer
}
