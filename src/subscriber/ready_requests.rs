//! One request to a hub or a cloud, and what its answer means; not when it is sent.

use super::{HubClient, Parts};
use crate::{
    feed::pushed_feed::{DueRequest, PushService, RequestEnd},
    layers::{FetchError, Landing, Trusted, parse_retry_after},
    secret::logged_text,
};
use bytes::Bytes;
use http::{
    HeaderMap, HeaderValue, Request, Response, StatusCode,
    header::{ACCEPT, CONTENT_TYPE, RETRY_AFTER, USER_AGENT},
};
use std::time::{Duration, UNIX_EPOCH};
use tower::ServiceExt as _;
use url::Url;

/// Characters of a hub's words that are kept.
const WORDS_CHARS_MAX: usize = 200;
/// Seconds after which a request is sent for which there was no room.
const CROWDED_SECS: u64 = 30;

/// A request that is ready to be sent.
pub(super) struct ReadyRequest {
    client: HubClient,
    request: Request<Bytes>,
    is_cloud: bool,
    now_us: u64,
}

impl ReadyRequest {
    /// The request of an errand.
    pub(super) fn of(errand: &DueRequest, parts: &Parts) -> Result<Self, RequestEnd> {
        let is_cloud = errand.to == PushService::Cloud;
        let accept = if is_cloud {
            "application/json, */*;q=0.5"
        } else {
            "*/*"
        };
        let request = Request::post(&errand.url)
            .header(CONTENT_TYPE, "application/x-www-form-urlencoded")
            .header(ACCEPT, HeaderValue::from_static(accept))
            .header(USER_AGENT, parts.user_agent.clone())
            .body(Bytes::from(errand.form.clone()));
        let mut request = request.map_err(|_| RequestEnd::Refused {
            why: FetchError::BadUrl.to_string(),
        })?;
        if parts.config.hubs_private
            && let Ok(url) = Url::parse(&errand.url)
        {
            request.extensions_mut().insert(Trusted::origin_of(&url));
        }
        Ok(Self {
            client: parts.client.clone(),
            request,
            is_cloud,
            now_us: parts.clock.now_us(),
        })
    }

    /// Sends it.
    pub(super) async fn send(self) -> RequestEnd {
        match self.client.oneshot(self.request).await {
            Ok(answer) => end_of(&answer, self.is_cloud, self.now_us),
            Err(FetchError::Throttled { wait }) => RequestEnd::Postponed {
                wait_secs: wait.as_secs() + 1,
            },
            Err(FetchError::Crowded) => RequestEnd::Postponed {
                wait_secs: CROWDED_SECS,
            },
            Err(error @ (FetchError::Refused(_) | FetchError::LeadsBack | FetchError::BadUrl)) => {
                RequestEnd::Refused {
                    why: error.to_string(),
                }
            }
            Err(error) => RequestEnd::Failed {
                why: error.to_string(),
                retry_after_secs: None,
            },
        }
    }
}

// Decides: Did a hub or a cloud take a request?
/// The meaning of an answer.
fn end_of(answer: &Response<Bytes>, is_cloud: bool, now_us: u64) -> RequestEnd {
    let status = answer.status();
    let words = words_of(answer.body());
    let why = if words.is_empty() {
        format!("it answered {status}")
    } else {
        format!("it answered {status}: {words}")
    };
    if status.is_success() {
        let landing = answer.extensions().get::<Landing>();
        // A redirect that makes a GET of a POST leads to a page.
        let is_page = status == StatusCode::OK
            && !is_cloud
            && landing.is_some_and(|landing| landing.redirects > 0);
        if is_page || is_cloud && !is_success(answer.body()) {
            return RequestEnd::Refused { why };
        }
        return RequestEnd::Taken;
    }
    let is_passing = matches!(
        status,
        StatusCode::REQUEST_TIMEOUT | StatusCode::TOO_EARLY | StatusCode::TOO_MANY_REQUESTS
    );
    if status.is_server_error() || is_passing {
        return RequestEnd::Failed {
            why,
            retry_after_secs: retry_after_secs(answer.headers(), now_us),
        };
    }
    RequestEnd::Refused { why }
}

fn retry_after_secs(headers: &HeaderMap, now_us: u64) -> Option<u64> {
    let now = UNIX_EPOCH + Duration::from_micros(now_us);
    let wait = parse_retry_after(headers.get(RETRY_AFTER)?, now)?;
    Some(wait.as_secs() + u64::from(wait.subsec_nanos() > 0))
}

/// True unless a cloud says that it did not register us: it does so with 200 (UPSTREAM U-21).
fn is_success(body: &[u8]) -> bool {
    if let Ok(json) = serde_json::from_slice::<serde_json::Value>(body) {
        return json["success"] != serde_json::Value::Bool(false);
    }
    let text = String::from_utf8_lossy(body).to_ascii_lowercase();
    !(text.contains("success=\"false\"") || text.contains("success='false'"))
}

/// The beginning of an answer in a line.
fn words_of(body: &[u8]) -> String {
    let text = String::from_utf8_lossy(&body[..body.len().min(4 * WORDS_CHARS_MAX)]);
    let text = text.replace(char::is_control, " ");
    let words: Vec<&str> = text.split_whitespace().collect();
    let line: String = words.join(" ").chars().take(WORDS_CHARS_MAX).collect();
    logged_text(&line)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(status: u16, body: &'static str, is_cloud: bool, expect: &str) {
        let mut answer = Response::new(Bytes::from_static(body.as_bytes()));
        *answer.status_mut() = StatusCode::from_u16(status).unwrap();
        answer
            .headers_mut()
            .insert(RETRY_AFTER, HeaderValue::from_static("120"));
        let told = match end_of(&answer, is_cloud, 0) {
            RequestEnd::Taken => "taken".to_owned(),
            RequestEnd::Refused { why } => format!("refused, {why}"),
            RequestEnd::Failed {
                why,
                retry_after_secs,
            } => {
                format!("failed, {why}, {}", retry_after_secs.unwrap())
            }
            RequestEnd::Postponed { .. } => "postponed".to_owned(),
        };
        assert_eq!(told, expect);
    }

    #[test]
    fn a_hub_takes_with_any_good_status_and_says_why_not_in_its_text_u_2() {
        check(202, "", false, "taken");
        check(204, "", false, "taken");
        check(200, "ok", false, "taken");
        check(
            422,
            "no\n such \x1b topic",
            false,
            "refused, it answered 422 Unprocessable Entity: no such topic",
        );
        check(
            503,
            "",
            false,
            "failed, it answered 503 Service Unavailable, 120",
        );
        check(
            429,
            "slow",
            false,
            "failed, it answered 429 Too Many Requests: slow, 120",
        );
        check(404, "", false, "refused, it answered 404 Not Found");
    }

    #[test]
    fn a_cloud_may_refuse_with_200_u_21() {
        check(200, "{\"success\":true,\"msg\":\"x\"}", true, "taken");
        check(
            200,
            "<notifyResult success=\"true\" msg=\"\"/>",
            true,
            "taken",
        );
        check(200, "", true, "taken");
        let json = "{\"success\":false,\"msg\":\"x\"}";
        check(
            200,
            json,
            true,
            &format!("refused, it answered 200 OK: {json}"),
        );
        let xml = "<notifyResult success=\"false\" msg=\"x\"/>";
        check(
            200,
            xml,
            true,
            &format!("refused, it answered 200 OK: {xml}"),
        );
    }
}
