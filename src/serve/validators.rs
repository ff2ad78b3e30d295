//! The validators of an answer: its tag and its date, and the comparison with those of a copy (RFC 9110 section 13); not what they
//! are made of.

use super::accept;
use http::{
    HeaderMap, HeaderValue,
    header::{ETAG, IF_MODIFIED_SINCE, IF_NONE_MATCH, LAST_MODIFIED},
};
use std::time::{Duration, UNIX_EPOCH};

/// The validators of an answer in one coding.
pub(super) struct AnswerValidators {
    /// The tag, as in `ETag`.
    pub(super) etag: String,
    /// The second of the last change, once it is over: until then another change may carry the same date.
    pub(super) modified: Option<u64>,
}

/// The tag of an answer that is written anew each time, made of its bytes before they are coded, and of the tag of the coding.
pub(super) fn tag_of(body: &[u8], coding_tag: &str) -> String {
    format!("\"{:08x}.{:x}{coding_tag}\"", crc32fast::hash(body), body.len())
}

impl AnswerValidators {
    /// True while the consumer's copy is the one that we would send. `If-None-Match` goes before `If-Modified-Since`.
    pub(super) fn are_fresh(&self, request: &HeaderMap) -> bool {
        if let Some(known) = accept::joined(request, &IF_NONE_MATCH) {
            return accept::names_tag(&known, &self.etag);
        }
        let since = request.get(IF_MODIFIED_SINCE).and_then(|date| date.to_str().ok());
        let since = since.and_then(|date| httpdate::parse_http_date(date).ok());
        match (since, self.modified) {
            (Some(since), Some(modified)) => UNIX_EPOCH + Duration::from_secs(modified) <= since,
            _ => false,
        }
    }

    /// Writes them, alike on 200 and 304 (RFC 9110 section 15.4.5).
    pub(super) fn write(&self, headers: &mut HeaderMap) {
        if let Ok(etag) = HeaderValue::try_from(&self.etag) {
            headers.insert(ETAG, etag);
        }
        let date = self.modified.map(|secs| httpdate::fmt_http_date(UNIX_EPOCH + Duration::from_secs(secs)));
        if let Some(Ok(date)) = date.map(HeaderValue::try_from) {
            headers.insert(LAST_MODIFIED, date);
        }
    }
}
