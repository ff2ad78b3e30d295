//! The validators of an answer: its tag and its date, and the comparison with those of a copy (RFC
//! 9110 section 13); not what they are made of.

use super::{accept, refusal::Refusal};
use crate::edge::{
    body::Response,
    fields::{list_value, set, text},
};
use http::{
    HeaderMap, HeaderName, Method, StatusCode,
    header::{
        ETAG, IF_MATCH, IF_MODIFIED_SINCE, IF_NONE_MATCH, IF_UNMODIFIED_SINCE, LAST_MODIFIED,
    },
    request::Parts,
};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// The validators of an answer in one coding.
pub(crate) struct AnswerValidators {
    /// The tag, as in `ETag`.
    pub(crate) etag: String,
    /// The second of the last change, once it is over: until then another change may carry the same
    /// date.
    pub(crate) modified: Option<u64>,
}

/// The tag of an answer that is written anew each time, made of its bytes before they are coded,
/// and of the tag of the coding.
pub(crate) fn tag_of(body: &[u8], coding_tag: &str) -> String {
    format!(
        "\"{:08x}.{:x}{coding_tag}\"",
        crc32fast::hash(body),
        body.len()
    )
}

/// The answer to a consumer that has a fresh copy.
pub(crate) fn not_modified() -> Response {
    let mut response = Response::default();
    *response.status_mut() = StatusCode::NOT_MODIFIED;
    response
}

impl AnswerValidators {
    /// True while the consumer's copy is the one that we would send. `If-None-Match` goes before
    /// `If-Modified-Since`.
    pub(crate) fn are_fresh(&self, request: &HeaderMap) -> bool {
        if let Some(known) = list_value(request, &IF_NONE_MATCH) {
            return accept::names_tag(&known, &self.etag);
        }
        match (date(request, &IF_MODIFIED_SINCE), self.modified) {
            (Some(since), Some(modified)) => UNIX_EPOCH + Duration::from_secs(modified) <= since,
            _ => false,
        }
    }

    /// Writes them, alike on 200 and 304 (RFC 9110 section 15.4.5).
    pub(crate) fn write(&self, headers: &mut HeaderMap) {
        set(headers, ETAG, &self.etag);
        if let Some(secs) = self.modified {
            let date = UNIX_EPOCH + Duration::from_secs(secs);
            set(headers, LAST_MODIFIED, httpdate::fmt_http_date(date));
        }
    }
}

/// An answer, unless the request asks for another state than the one in it. `If-Match` goes before
/// `If-Unmodified-Since`, and both go before what makes a 304 (RFC 9110 section 13.2.2).
pub(crate) fn if_unchanged(request: &Parts, answer: Response) -> Result<Response, Refusal> {
    let is_read = matches!(request.method, Method::GET | Method::HEAD);
    let has_state = answer.status().is_success() || answer.status() == StatusCode::NOT_MODIFIED;
    if is_read && has_state && !is_asked_state(&request.headers, answer.headers()) {
        return Err(Refusal::other_state());
    }
    Ok(answer)
}

fn is_asked_state(asked: &HeaderMap, had: &HeaderMap) -> bool {
    if let Some(tags) = list_value(asked, &IF_MATCH) {
        // A weak tag equals none here, not even itself.
        let own = text(had, &ETAG).filter(|tag| !tag.starts_with("W/"));
        return tags
            .split(',')
            .map(str::trim)
            .any(|tag| tag == "*" || Some(tag) == own);
    }
    match (date(asked, &IF_UNMODIFIED_SINCE), date(had, &LAST_MODIFIED)) {
        (Some(since), Some(modified)) => modified <= since,
        _ => true,
    }
}

/// The date of a header; `None` where there is none that can be read.
fn date(headers: &HeaderMap, name: &HeaderName) -> Option<SystemTime> {
    httpdate::parse_http_date(text(headers, name)?).ok()
}
