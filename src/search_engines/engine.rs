//! The requests of `IndexNow`: a batch to the engine, and a look at the key file; and what
//! their answers mean. Not which URLs are in a batch.

use super::{AnnouncedSite, SearchEngineParts};
use crate::{
    feed::index_now::EngineAnswer,
    layers::{FetchError, Request, Trusted, parse_retry_after},
    one_line::one_line,
    secret::{Secret, logged_text},
};
use bytes::Bytes;
use http::{
    HeaderMap, Response, StatusCode,
    header::{CONTENT_TYPE, RETRY_AFTER, USER_AGENT},
};
use std::time::{Duration, UNIX_EPOCH};
use tower::ServiceExt as _;
use url::Url;

/// Characters of the words of an engine that are kept.
const WORDS_CHARS_MAX: usize = 200;

/// The result of a look at a key file.
pub(super) enum KeySeen {
    /// It is there, or could not be looked at from here: many a machine cannot reach its own public
    /// address. The engine looks itself.
    Maybe,
    /// Something else is there, for this reason.
    No(String),
}

/// The address of the key file of a site.
fn key_url(site: &AnnouncedSite, key: &Secret) -> Url {
    let mut url = site.root.clone();
    url.set_path(&format!("/{}.txt", key.reveal()));
    url
}

/// Looks if the key file can be read, before the first batch: an engine that once found another one
/// refuses the host for long.
pub(super) async fn look_at_key(
    parts: &SearchEngineParts,
    site: &AnnouncedSite,
    key: &Secret,
) -> KeySeen {
    let url = key_url(site, key);
    let request = http::Request::get(url.as_str())
        .header(USER_AGENT, &parts.user_agent)
        // The operator named this host.
        .extension(Trusted::origin_of(&url))
        .body(Bytes::new());
    let Ok(request) = request else {
        return KeySeen::Maybe;
    };
    match parts.client.clone().oneshot(request).await {
        Ok(answer) if answer.status() != StatusCode::OK => {
            KeySeen::No(format!("its address answers {}", answer.status()))
        }
        Ok(answer) if answer.body().trim_ascii() != key.reveal().as_bytes() => {
            KeySeen::No("its address answers with something else".to_owned())
        }
        Ok(_) => KeySeen::Maybe,
        Err(error) => {
            tracing::debug!("The key file of {} was not looked at: {error}", site.root);
            KeySeen::Maybe
        }
    }
}

/// Sends a batch. The key is in the body only, so that no log of URLs has it.
pub(super) async fn send(
    parts: &SearchEngineParts,
    site: &AnnouncedSite,
    key: &Secret,
    urls: &[String],
) -> EngineAnswer {
    let Some(request) = request(parts, site, key, urls) else {
        return EngineAnswer::Later {
            why: FetchError::BadUrl.to_string(),
            retry_after_secs: None,
        };
    };
    match parts.client.clone().oneshot(request).await {
        Ok(answer) => answer_of(&answer, key, parts.clock.now_us()),
        Err(error) => EngineAnswer::Later {
            why: error.to_string(),
            retry_after_secs: None,
        },
    }
}

fn request(
    parts: &SearchEngineParts,
    site: &AnnouncedSite,
    key: &Secret,
    urls: &[String],
) -> Option<Request> {
    let engine = &parts.config.indexnow_url;
    let body = serde_json::json!({
        "host": site.root.host_str()?,
        "key": key.reveal(),
        "keyLocation": key_url(site, key).as_str(),
        "urlList": urls,
    });
    http::Request::post(engine.as_str())
        .header(CONTENT_TYPE, "application/json; charset=utf-8")
        .header(USER_AGENT, &parts.user_agent)
        // The operator named this address.
        .extension(Trusted::origin_of(engine))
        .body(Bytes::from(body.to_string()))
        .ok()
}

// Decides: Did a search engine take a batch?
/// The meaning of an answer.
fn answer_of(answer: &Response<Bytes>, key: &Secret, now_us: u64) -> EngineAnswer {
    let status = answer.status();
    let words = words_of(answer.body(), key);
    let why = if words.is_empty() {
        format!("it answered {status}")
    } else {
        format!("it answered {status}: {words}")
    };
    match status.as_u16() {
        200 | 202 => EngineAnswer::Accepted,
        400 | 422 => EngineAnswer::Refused { why },
        403 => EngineAnswer::Forbidden { why },
        _ => EngineAnswer::Later {
            why,
            retry_after_secs: retry_after_secs(answer.headers(), now_us),
        },
    }
}

fn retry_after_secs(headers: &HeaderMap, now_us: u64) -> Option<u64> {
    let now = UNIX_EPOCH + Duration::from_micros(now_us);
    let wait = parse_retry_after(headers.get(RETRY_AFTER)?, now)?;
    Some(wait.as_secs() + u64::from(wait.subsec_nanos() > 0))
}

/// The beginning of an answer in a line, without the key.
fn words_of(body: &[u8], key: &Secret) -> String {
    let text = String::from_utf8_lossy(&body[..body.len().min(8 * WORDS_CHARS_MAX)]);
    let text = text.replace(key.reveal(), "***");
    one_line(&logged_text(&text), WORDS_CHARS_MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_status_has_its_meaning_r_3() {
        let check = |status: u16, expect: &str| {
            let body = Bytes::from_static(b"no\n key hushhush");
            let mut answer = Response::new(body);
            *answer.status_mut() = StatusCode::from_u16(status).unwrap();
            let retry = http::HeaderValue::from_static("120");
            answer.headers_mut().insert(RETRY_AFTER, retry);
            let answer = answer_of(&answer, &Secret::new("hushhush"), 0);
            let shown = match answer {
                EngineAnswer::Accepted => "accepted".to_owned(),
                EngineAnswer::Refused { why } => format!("refused, {why}"),
                EngineAnswer::Forbidden { why } => format!("forbidden, {why}"),
                EngineAnswer::Later {
                    why,
                    retry_after_secs,
                } => format!("later, {why}, {}", retry_after_secs.unwrap()),
                EngineAnswer::KeyUnread { why } => why,
            };
            assert_eq!(shown, expect);
        };
        check(200, "accepted");
        check(202, "accepted");
        check(400, "refused, it answered 400 Bad Request: no key ***");
        check(
            422,
            "refused, it answered 422 Unprocessable Entity: no key ***",
        );
        check(403, "forbidden, it answered 403 Forbidden: no key ***");
        check(
            429,
            "later, it answered 429 Too Many Requests: no key ***, 120",
        );
        check(
            503,
            "later, it answered 503 Service Unavailable: no key ***, 120",
        );
        check(404, "later, it answered 404 Not Found: no key ***, 120");
    }
}
