//! The way of requests from a process that follows to the one that works; not what comes of them.

use crate::{
    auth::PrincipalId,
    edge::body::{PLAIN_TEXT, short_of},
    feed::record::FeedNo,
    store::Store,
};
use bytes::Bytes;
use http::{HeaderValue, Request, Response, StatusCode, Uri, header::RETRY_AFTER};
use std::{net::IpAddr, sync::Arc, time::Duration};

mod letter;

use letter::read_reply;
pub(super) use letter::{Door, Letter, reply_words};

/// Time for the answer of the hub, which may ask a callback before.
const HUB_MAX: Duration = Duration::from_secs(30);

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
        let letter = Letter::of(Door::Hub, request, client, sender);
        self.send(&letter, HUB_MAX).await
    }

    /// The answer to the operator.
    pub(super) async fn operator(&self, request: &Request<Bytes>) -> Response<Bytes> {
        let letter = Letter::of(Door::Operator, request, None, None);
        self.send(&letter, OPERATOR_MAX).await
    }

    /// Has the process that works look at the origin of a feed, if the copy is older than that.
    /// What comes of it is in the store.
    pub(super) async fn look(&self, feed: FeedNo, fresh_secs: u64) {
        let mut request = Request::new(Bytes::new());
        let target = format!("/{}/{fresh_secs}", feed.0);
        *request.uri_mut() = Uri::try_from(target).unwrap_or_default();
        let letter = Letter::of(Door::Look, &request, None, None);
        self.send(&letter, LOOK_MAX).await;
    }

    async fn send(&self, letter: &Letter, within: Duration) -> Response<Bytes> {
        let Some(nodes) = self.0.nodes() else {
            return away("this everfeed does not work yet, or not any more");
        };
        match nodes.ask(letter.words(), within).await {
            Ok(words) => read_reply(&words)
                .unwrap_or_else(|| away("the everfeed that works is of another version")),
            Err(error) => away(&format!(
                "the everfeed that polls and pushes did not answer: {error}"
            )),
        }
    }
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
