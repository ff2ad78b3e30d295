//! The question whether a callback wants what was asked in its name, and what its answer means; not
//! what follows.

use super::{Shared, admission::ClientNet, deliver::cloud::notification, places::Errand};
use crate::{
    catalog::Destination,
    clock::Clock as _,
    feed::stamp::Stamp,
    layers::{FetchError, Request, error::Refused, parse_retry_after},
    store::subscriptions::{CallbackTarget, CloudTarget, Dialect, Target},
};
use bytes::Bytes;
use http::{Response, StatusCode, header::RETRY_AFTER};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use std::{
    sync::Arc,
    time::{Duration, SystemTime},
};

#[cfg(test)]
mod tests;

/// Everything but unreserved characters is escaped in a query value.
const QUERY_VALUE: &AsciiSet = &NON_ALPHANUMERIC
    .remove(b'-')
    .remove(b'.')
    .remove(b'_')
    .remove(b'~');
/// Longest wait for room of somebody who waits for the answer, and the shortest of all others.
pub(super) const ROOM: Duration = Duration::from_secs(5);

/// The reason told of a callback whose host has no address that we may call.
const UNREACHED: &str = "its host leads to no address on the public internet";

/// A question to a callback.
#[derive(Clone, Debug)]
pub(super) struct Question {
    /// `subscribe` or `unsubscribe`.
    pub(super) mode: &'static str,
    /// The target; a callback with the topic as the subscriber spelt it (W-7) and its token.
    pub(super) target: Target,
    /// The canonical topic.
    pub(super) topic: String,
    /// On subscribing only (HUB-13).
    pub(super) lease_secs: Option<u64>,
    /// The cursor that the first push will follow on: no subscriber has to guess its base (HUBS
    /// 5.1).
    pub(super) cursor: Option<String>,
    /// True while somebody waits for the outcome of this very try.
    pub(super) awaited: bool,
    /// True for a callback that is subscribed already.
    pub(super) is_known: bool,
    /// The client that caused it.
    pub(super) client: ClientNet,
    /// The longest wait for room to ask.
    pub(super) wait_max: Duration,
}

/// End of a question.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    /// The callback echoed the challenge.
    Confirmed,
    /// It said no, once and for all.
    Refused(String),
    /// No usable answer now.
    Later {
        why: String,
        retry_after: Option<Duration>,
    },
    /// We did not even ask.
    Busy,
}

impl Verdict {
    /// The word under which the verification is counted.
    pub(super) fn word(&self) -> &'static str {
        match self {
            Self::Confirmed => "confirmed",
            Self::Refused(_) => "refused",
            Self::Later { .. } | Self::Busy => "postponed",
        }
    }
}

/// A verdict, and when the question was put: a lease counts from there (HUB-13).
#[derive(Clone, Debug)]
pub(super) struct Answered {
    pub(super) verdict: Verdict,
    pub(super) sent_at: Stamp,
}

/// Puts a question, with a challenge that is used this once (HUB-14). `held` is called when too
/// many questions to its destination were not answered as asked: it waits then.
pub(super) async fn ask(shared: Arc<Shared>, question: Question, held: impl Fn()) -> Answered {
    let questions = &shared.questions;
    let room = if question.awaited {
        ROOM
    } else {
        question.wait_max.max(ROOM)
    };
    let entering = async {
        let url = question.target.url();
        let counted = questions
            .counted(&question.topic, url, question.is_known, question.client)
            .await;
        if shared.client.own.holds(url, &counted.addresses) {
            return Err(Verdict::Refused(FetchError::from(Refused::Own).to_string()));
        }
        questions.enter(&counted, held).await;
        let destination = Destination::of(url);
        match shared.places.enter(&destination, Errand::Question).await {
            Ok(place) => Ok((counted, place)),
            Err(_) => Err(Verdict::Busy),
        }
    };
    let entered = tokio::time::timeout(room, entering).await;
    let sent_at = shared.now();
    let (counted, mut place) = match entered.unwrap_or(Err(Verdict::Busy)) {
        Ok(entered) => entered,
        Err(verdict) => return Answered { verdict, sent_at },
    };
    let challenge = hex::encode(rand::random::<[u8; 20]>());
    let (request, proof) = match &question.target {
        Target::Callback(target) => (
            request(&shared, &question, target, &challenge),
            Some(&*challenge),
        ),
        Target::Cloud(target) => cloud_request(&shared, target, &challenge),
    };
    let Some(request) = request else {
        return Answered {
            verdict: Verdict::Refused("it is no URL that can be asked".into()),
            sent_at,
        };
    };
    let answer = shared.client.send(request, &mut place).await;
    let is_legacy =
        matches!(&question.target, Target::Callback(target) if target.dialect == Dialect::Legacy);
    let lenient = is_legacy && !question.awaited;
    let verdict = judge(&answer, proof, lenient, shared.clock.now());
    if verdict == Verdict::Confirmed {
        questions.confirmed(&counted);
    }
    Answered { verdict, sent_at }
}

/// Tells a subscriber once that its subscription is no more, for a reason that is not its own
/// (W-10). Its answer means nothing.
pub(super) async fn deny(shared: &Shared, target: &Target, reason: &str) {
    // rssCloud has no word for it.
    let Target::Callback(target) = target else {
        return;
    };
    let params = [
        ("hub.mode", "denied"),
        ("hub.topic", target.topic_as_sent.as_str()),
        ("hub.reason", reason),
    ];
    let request = url(&target.url, &params).and_then(|url| get(shared, url));
    if let Some(request) = request
        && let Ok(mut place) = shared
            .places
            .enter(&Destination::of(&target.url), Errand::Push)
            .await
    {
        let _ = shared.client.send(request, &mut place).await;
    }
}

fn request(
    shared: &Shared,
    question: &Question,
    target: &CallbackTarget,
    challenge: &str,
) -> Option<Request> {
    let lease = question.lease_secs.map(|secs| secs.to_string());
    let mut params = vec![
        ("hub.mode", question.mode),
        ("hub.topic", target.topic_as_sent.as_str()),
        ("hub.challenge", challenge),
    ];
    for (name, value) in [
        ("hub.lease_seconds", &lease),
        ("hub.verify_token", &target.verify_token),
        ("hub.cursor", &question.cursor),
    ] {
        params.extend(value.as_deref().map(|value| (name, value)));
    }
    get(shared, url(&target.url, &params)?)
}

/// The question to a listener of rssCloud, and the body that confirms it: one that named its domain
/// is to echo the challenge; one at the address from which the request came is tried, and any 2xx
/// will do (LEGACY C-4).
fn cloud_request<'a>(
    shared: &Shared,
    target: &CloudTarget,
    challenge: &'a str,
) -> (Option<Request>, Option<&'a str>) {
    if !target.is_challenged {
        return (notification(target, &shared.client.user_agent), None);
    }
    let params = [("url", target.feed_url.as_str()), ("challenge", challenge)];
    (
        url(target.url(), &params).and_then(|url| get(shared, url)),
        Some(challenge),
    )
}

fn get(shared: &Shared, url: String) -> Option<Request> {
    let request =
        http::Request::get(url).header(http::header::USER_AGENT, &shared.client.user_agent);
    request.body(Bytes::new()).ok()
}

/// The callback with parameters appended. Its own query is kept byte for byte, same-named
/// parameters included (HUB-9). `None` for a callback with a fragment.
pub(super) fn url(callback: &str, params: &[(&str, &str)]) -> Option<String> {
    if callback.contains('#') {
        return None;
    }
    let mut url = callback.to_owned();
    let mut glue = match callback.split_once('?') {
        None => "?",
        Some((_, "")) => "",
        Some(_) => "&",
    };
    for (name, value) in params {
        url.push_str(glue);
        url.push_str(name);
        url.push('=');
        url.extend(utf8_percent_encode(value, QUERY_VALUE));
        glue = "&";
    }
    Some(url)
}

/// The meaning of an answer, which must be the challenge where there is one. `lenient` as 0.3
/// section 6.2.1 has it for requests that were answered first: everything but 404 may still turn
/// into a yes.
fn judge(
    answer: &Result<Response<Bytes>, FetchError>,
    challenge: Option<&str>,
    lenient: bool,
    now: SystemTime,
) -> Verdict {
    let answer = match answer {
        Ok(answer) => answer,
        // One answer for names that lead inside and for names that lead nowhere: nobody learns of
        // us which there are.
        Err(FetchError::Resolve(..) | FetchError::Refused(Refused::Address | Refused::Rebound)) => {
            return Verdict::Later {
                why: UNREACHED.to_owned(),
                retry_after: None,
            };
        }
        Err(error) if error.may_pass() => {
            return Verdict::Later {
                why: error.to_string(),
                retry_after: error.wait(),
            };
        }
        Err(error) => return Verdict::Refused(error.to_string()),
    };
    let status = answer.status();
    if status.is_success() && challenge.is_none_or(|challenge| echoes(answer.body(), challenge)) {
        return Verdict::Confirmed;
    }
    let mut why = format!("it answered with status {}", status.as_u16());
    if status.is_success() {
        "its body was not the challenge".clone_into(&mut why);
    }
    let transient = status.is_server_error() || matches!(status.as_u16(), 408 | 429);
    if transient || (lenient && status != StatusCode::NOT_FOUND) {
        let retry_after = answer
            .headers()
            .get(RETRY_AFTER)
            .and_then(|at| parse_retry_after(at, now));
        return Verdict::Later { why, retry_after };
    }
    Verdict::Refused(why)
}

/// The challenge and nothing else, but for one line end at the end, which many a framework adds
/// (W-8).
fn echoes(body: &[u8], challenge: &str) -> bool {
    let body = body.strip_suffix(b"\n").unwrap_or(body);
    body.strip_suffix(b"\r").unwrap_or(body) == challenge.as_bytes()
}
