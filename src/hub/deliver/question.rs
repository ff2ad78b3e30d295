//! The question whether a target wants what was asked in its name, and the meaning of its answer in
//! all protocols over HTTP; not when it is put, nor what follows.

use super::answer::retry_after;
use crate::{
    hub::{
        admission::ClientNet,
        renewal::{Confirmation, Term},
    },
    layers::{FetchError, error::Refused},
    store::subscriptions::{Directive, NamedMethods, Target},
};
use bytes::Bytes;
use http::{Response, StatusCode};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use std::time::{Duration, SystemTime};

#[cfg(test)]
mod tests;

/// Everything but unreserved characters is escaped in a query value.
const QUERY_VALUE: &AsciiSet = &NON_ALPHANUMERIC
    .remove(b'-')
    .remove(b'.')
    .remove(b'_')
    .remove(b'~');
/// The reason told of a callback whose host has no address that we may call.
const UNREACHED: &str = "its host leads to no address on the public internet";

/// A question to a target.
#[derive(Clone, Debug)]
pub(in crate::hub) struct Question {
    /// `subscribe` or `unsubscribe`.
    pub(in crate::hub) mode: &'static str,
    /// The target; a callback with the topic as the subscriber spelt it (W-7) and its token.
    pub(in crate::hub) target: Target,
    /// The canonical topic.
    pub(in crate::hub) topic: String,
    /// The name of the form that is pushed; `None` for a resource as it is.
    pub(in crate::hub) form: Option<String>,
    /// On subscribing only (HUB-13).
    pub(in crate::hub) lease_secs: Option<u64>,
    /// The cursor that the first push will follow on: no subscriber has to guess its base (HUBS
    /// 5.1).
    pub(in crate::hub) cursor: Option<String>,
    /// True while somebody waits for the outcome of this very try.
    pub(in crate::hub) awaited: bool,
    /// True for a callback that is subscribed already.
    pub(in crate::hub) is_known: bool,
    /// The client that caused it.
    pub(in crate::hub) client: ClientNet,
    /// The longest wait for room to ask.
    pub(in crate::hub) wait_max: Duration,
}

/// End of a question.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::hub) enum Verdict {
    /// The callback echoed the challenge, and named these methods and terms that it takes.
    Confirmed(Confirmation),
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
    /// The verdict on a target to which no request can be made.
    pub(super) fn unaskable() -> Self {
        Self::Refused("it is no URL that can be asked".into())
    }

    /// The word under which the verification is counted.
    pub(in crate::hub) fn word(&self) -> &'static str {
        match self {
            Self::Confirmed(_) => "confirmed",
            Self::Refused(_) => "refused",
            Self::Later { .. } | Self::Busy => "postponed",
        }
    }
}

/// A challenge, which is used this once (HUB-14).
pub(super) fn challenge() -> String {
    hex::encode(rand::random::<[u8; 20]>())
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
pub(super) fn judge(
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
        return Verdict::Confirmed(confirmation(answer));
    }
    let why = match status {
        _ if status.is_success() => "its body was not the challenge".to_owned(),
        _ => format!("it answered with status {}", status.as_u16()),
    };
    let transient = status.is_server_error()
        || matches!(
            status,
            StatusCode::REQUEST_TIMEOUT | StatusCode::TOO_MANY_REQUESTS
        );
    if transient || (lenient && status != StatusCode::NOT_FOUND) {
        let retry_after = retry_after(answer, now);
        return Verdict::Later { why, retry_after };
    }
    Verdict::Refused(why)
}

/// The header in which a callback names the methods that it takes.
const METHODS: &str = "x-hub-methods";
/// The header in which a callback names the terms that a renewal may change.
const TERMS: &str = "x-hub-confirms";

/// The words of a callback: what it takes in general (`Allow`), and what merely comes back of the
/// question, is no such word. `override` and `explicit` beside methods say how it wants them.
fn confirmation(answer: &Response<Bytes>) -> Confirmation {
    let words = |header| {
        let lists = answer.headers().get_all(header).into_iter();
        let texts = lists.filter_map(|list| list.to_str().ok());
        texts.flat_map(|list| list.split(',')).map(str::trim)
    };
    let mut methods = NamedMethods::default();
    for word in words(METHODS) {
        match (word, Directive::named(word)) {
            (_, Some(directive)) => methods.directives = methods.directives.with(directive),
            ("override", None) => methods.overrides_method = Some(true),
            ("explicit", None) => methods.overrides_method = Some(false),
            _ => {}
        }
    }
    Confirmation {
        methods,
        terms: words(TERMS).filter_map(Term::named).collect(),
    }
}

/// The challenge and nothing else, but for one line end at the end, which many a framework adds
/// (W-8).
fn echoes(body: &[u8], challenge: &str) -> bool {
    let body = body.strip_suffix(b"\n").unwrap_or(body);
    body.strip_suffix(b"\r").unwrap_or(body) == challenge.as_bytes()
}
