//! One push: the page after the acknowledged cursor, sent once, and what the answer means; not when to try again.

use super::{Shared, sign};
use crate::{
    clock::Clock as _,
    feed::view::View,
    layers::{FetchError, Request, parse_retry_after},
    readers::{ReadError, ReadRequest, Rendered},
    render::Representation,
    secret::Secret,
    store::{StoreError, subscriptions::Algo},
};
use bytes::Bytes;
use http::{
    Response, StatusCode,
    header::{CONTENT_TYPE, LINK, RETRY_AFTER, USER_AGENT},
};
use std::{
    sync::Arc,
    time::{Duration, SystemTime},
};

/// A push to make. It holds no items: they are read when there is room to send them, so every try carries the
/// newest state.
#[derive(Clone, Debug)]
pub(super) struct Push {
    pub(super) view: View,
    pub(super) representation: Representation,
    /// The stored cursor; `None` until the feed is served.
    pub(super) acked: Option<String>,
    pub(super) callback: String,
    pub(super) secret: Option<Secret>,
    pub(super) algo: Algo,
    pub(super) items_max: usize,
}

/// End of a push.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Outcome {
    /// Nothing stands after the cursor, or the feed is not served yet.
    Nothing,
    /// The feed is served now; this is the cursor that the subscription starts from.
    Settled(String),
    /// The position has moved.
    Moved(Moved),
    /// The callback answered 410: it wants no more (HUB-21).
    Gone,
    /// It did not take the push.
    Failed { why: String, retry_after: Option<Duration>, too_large: bool },
    /// We could not even try.
    Ours(String),
    /// We are stopping.
    Stopped,
}

impl Outcome {
    /// The word under which the request is counted.
    fn word(&self) -> &'static str {
        match self {
            Self::Moved(_) => "delivered",
            Self::Gone => "gone",
            _ => "failed",
        }
    }
}

/// A step forward.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Moved {
    pub(super) from: String,
    pub(super) to: String,
    /// True while more is waiting.
    pub(super) more: bool,
}

/// Sends the page after `push.acked`, when there is one.
pub(super) async fn deliver(shared: Arc<Shared>, push: Push) -> Outcome {
    match attempt(&shared, &push).await {
        Ok(outcome) => outcome,
        Err(ReadError::NotReady | ReadError::UnknownFeed) => Outcome::Nothing,
        Err(ReadError::Store(error)) => Outcome::Ours(error.to_string()),
    }
}

async fn attempt(shared: &Shared, push: &Push) -> Result<Outcome, ReadError> {
    // A feed that is no longer on offer is not pushed; its subscriptions end with their leases.
    let Some(link) = shared.link(push.view, push.representation) else { return Ok(Outcome::Nothing) };
    let Some(acked) = push.acked.as_deref() else { return settle(shared, push).await };
    let reading = ReadRequest::push(push.view, push.representation, acked, push.items_max);
    if let Some(outcome) = unless_due(acked, &*shared.readers.read(&reading).await?) {
        return Ok(outcome);
    }
    let host = super::host_of(&push.callback);
    let _permit = tokio::select! {
        biased;
        () = shared.stop.cancelled() => return Ok(Outcome::Stopped),
        permit = shared.limits.enter(&host) => permit,
    };
    // Read again: what was newest when we queued may be old by now.
    let page = shared.readers.read(&reading).await?;
    if let Some(outcome) = unless_due(acked, &page) {
        return Ok(outcome);
    }
    let Some(request) = request(shared, push, &link, acked, &page) else {
        return Ok(Outcome::Ours("the request could not be put together".to_owned()));
    };
    let answer = shared.send(request).await;
    let outcome = judge(&answer, acked, &page, shared.clock.now());
    shared.metrics.push(outcome.word());
    Ok(outcome)
}

/// The outcome when there is nothing to send.
fn unless_due(acked: &str, page: &Rendered) -> Option<Outcome> {
    if page.count > 0 {
        return None;
    }
    // In a form without tombstones a page may be empty and yet lie further on.
    let moved = page.more || page.last_cursor != acked;
    let to = page.last_cursor.clone();
    Some(if moved {
        Outcome::Moved(Moved { from: acked.to_owned(), to, more: page.more })
    } else {
        Outcome::Nothing
    })
}

/// The first position of a subscription that was made before its feed was served.
async fn settle(shared: &Shared, push: &Push) -> Result<Outcome, ReadError> {
    let record = shared.store.feed(push.view.feed).await.map_err(Arc::<StoreError>::new)?;
    Ok(record.first_cursor.map_or(Outcome::Nothing, Outcome::Settled))
}

/// The request. Its headers are these and no others; nothing of upstream's is passed on. The body goes uncompressed,
/// since the signature is over the bytes sent (W-18).
fn request(shared: &Shared, push: &Push, link: &str, acked: &str, page: &Rendered) -> Option<Request> {
    let mut request = http::Request::post(push.callback.as_str())
        .header(CONTENT_TYPE, push.representation.content_type())
        .header(LINK, link)
        .header(USER_AGENT, &shared.user_agent)
        .header("smart-feed-prev", acked)
        .header("smart-feed-last", page.last_cursor.as_str());
    if let Some(secret) = &push.secret {
        let signature = sign::signature(push.algo, secret.reveal().as_bytes(), &page.body);
        request = request.header("x-hub-signature", signature);
    }
    request.body(page.body.clone()).ok()
}

/// The meaning of an answer: any 2xx is a yes and its body is not looked at, 410 is the end, and all else, redirects
/// included, is a failure (HUB-20, P-53).
fn judge(
    answer: &Result<Response<Bytes>, FetchError>,
    acked: &str,
    page: &Rendered,
    now: SystemTime,
) -> Outcome {
    let answer = match answer {
        Ok(answer) => answer,
        Err(error) => {
            let (why, retry_after) = (error.to_string(), error.wait());
            return Outcome::Failed { why, retry_after, too_large: false };
        }
    };
    match answer.status() {
        status if status.is_success() => {
            Outcome::Moved(Moved { from: acked.to_owned(), to: page.last_cursor.clone(), more: page.more })
        }
        StatusCode::GONE => Outcome::Gone,
        status => Outcome::Failed {
            why: format!("it answered with status {}", status.as_u16()),
            retry_after: answer.headers().get(RETRY_AFTER).and_then(|at| parse_retry_after(at, now)),
            too_large: status == StatusCode::PAYLOAD_TOO_LARGE,
        },
    }
}
