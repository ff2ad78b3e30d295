//! Questions and answers, as values.

use super::*;
use crate::layers::error::{Awaited, ConnectFault, NameFault};
use http::{HeaderValue, header::RETRY_AFTER};

// W-7, HUB-9; VECTORS verification_urls.
#[test]
fn parameters_are_appended_and_the_callbacks_own_query_stays_as_it_is() {
    for case in testkit::data::section("verification_urls") {
        let params: Vec<(&str, &str)> = case["params"]
            .as_array()
            .unwrap()
            .iter()
            .map(|pair| (pair[0].as_str().unwrap(), pair[1].as_str().unwrap()))
            .collect();
        let callback = case["callback"].as_str().unwrap();
        assert_eq!(
            url(callback, &params).as_deref(),
            case["expect"].as_str(),
            "{callback}"
        );
    }
}

fn check(answer: Result<(u16, &'static str), FetchError>, lenient: bool, expect: &str) {
    let answer = answer.map(|(status, body)| {
        let mut answer = Response::new(Bytes::from_static(body.as_bytes()));
        *answer.status_mut() = StatusCode::from_u16(status).unwrap();
        answer
    });
    let verdict = judge(&answer, Some("c1"), lenient, SystemTime::UNIX_EPOCH);
    let told = match verdict {
        Verdict::Confirmed(_) => "yes",
        Verdict::Refused(_) => "no",
        Verdict::Later { .. } => "later",
        Verdict::Busy => "busy",
    };
    assert_eq!(told, expect, "{answer:?}");
}

// W-8, HUB-15.
#[test]
fn only_a_2xx_with_the_challenge_is_a_yes() {
    for body in ["c1", "c1\n", "c1\r\n"] {
        check(Ok((200, body)), false, "yes");
    }
    check(Ok((204, "c1")), false, "yes");
    for body in [
        "",
        "c2",
        "c1 ",
        " c1",
        "\"c1\"",
        "c1\n\n",
        "c1\r\n\r\n",
        "C1",
    ] {
        check(Ok((200, body)), false, "no");
    }
    for status in [301, 302, 307, 400, 401, 403, 404, 410] {
        check(Ok((status, "c1")), false, "no");
    }
}

#[test]
fn what_may_pass_is_asked_again() {
    for status in [500, 502, 503, 429, 408] {
        check(Ok((status, "")), false, "later");
    }
    check(
        Err(FetchError::Timeout {
            after: Duration::from_secs(10),
            awaited: Awaited::Whole,
        }),
        false,
        "later",
    );
    check(
        Err(FetchError::Connect(ConnectFault::Refused, "refused".into())),
        false,
        "later",
    );
    // SSRF: no connection is made, and a name that leads inside is told from no name that leads
    // nowhere.
    check(Err(FetchError::Refused(Refused::Address)), false, "later");
    check(
        Err(FetchError::Resolve(NameFault::Unknown, "nowhere".into())),
        false,
        "later",
    );
    check(Err(FetchError::Refused(Refused::Port(22))), true, "no");
}

// P03-3.
#[test]
fn in_the_old_dialect_only_404_is_a_final_no() {
    check(Ok((404, "")), true, "no");
    for answer in [(200, "wrong"), (403, ""), (302, ""), (410, ""), (500, "")] {
        check(Ok(answer), true, "later");
    }
    check(Ok((200, "c1")), true, "yes");
}

#[test]
fn a_callback_may_say_when_to_ask_again() {
    let mut answer = Response::new(Bytes::new());
    *answer.status_mut() = StatusCode::SERVICE_UNAVAILABLE;
    answer
        .headers_mut()
        .insert(RETRY_AFTER, HeaderValue::from(77));
    let verdict = judge(&Ok(answer), Some("c1"), false, SystemTime::UNIX_EPOCH);
    let Verdict::Later { retry_after, .. } = verdict else {
        panic!("{verdict:?}")
    };
    assert_eq!(retry_after, Some(Duration::from_secs(77)));
}
