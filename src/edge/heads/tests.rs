//! Requests in pieces: wherever they are cut, the same is found. The whole program is asked in
//! `tests/program/heads.rs`.

use super::{
    frames::{CheckedBytes, RequestFrames, Then},
    head::{check_decoded, check_request_line, escaped},
    limits::{HEADER_LINES_MAX, REQUEST_LINE_BYTES_MAX},
    malformed::MalformedRequest,
};
use http::Uri;

/// Bytes that pass of those that come in two pieces, and the fault behind them. None of them is
/// written in another way.
fn check(bytes: &[u8], cut: usize) -> (usize, Option<(u64, MalformedRequest)>) {
    let mut frames = RequestFrames::default();
    let mut passed = 0;
    for end in [cut, bytes.len()] {
        let CheckedBytes { passed: more, then } = frames.check(&bytes[passed..end]);
        passed += more;
        if let Then::Refuse(refused) = then {
            return (passed, Some((refused.request, refused.fault)));
        }
    }
    (passed, None)
}

#[test]
fn a_request_is_found_good_or_bad_wherever_it_is_cut() {
    let good = "POST /a HTTP/1.1\r\nHost: h\r\nContent-Length: 5\r\n\r\nhello\r\n\
                POST /b HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n5;x\r\nhello\r\n0\r\nX: y\r\n\r\n";
    for (text, expect) in [
        (good.to_owned(), None),
        (
            format!("{good}GET / HTTP/1.1\r\nHost: h\r\nX : y\r\n\r\n"),
            Some((3, MalformedRequest::SpaceBeforeColon)),
        ),
        (
            format!("{good}GET / HTTP/1.1\nHost: h\n\n"),
            Some((3, MalformedRequest::LineEnd)),
        ),
        (
            good.replace("hello\r\n0", "hello0"),
            Some((2, MalformedRequest::ChunkEnd)),
        ),
        (
            good.replace("X: y", "Host: y"),
            Some((2, MalformedRequest::ForbiddenTrailer)),
        ),
        (
            good.replace("Length: 5", "Length: 4"),
            Some((2, MalformedRequest::RequestLine)),
        ),
    ] {
        let whole = check(text.as_bytes(), 0);
        assert_eq!(whole.1, expect, "{text:?}");
        assert!(expect.is_some() || whole.0 == text.len(), "{text:?}");
        for cut in 1..text.len() {
            assert_eq!(check(text.as_bytes(), cut), whole, "{text:?} cut at {cut}");
        }
    }
}

#[test]
fn a_host_is_a_name_or_an_address_with_a_port_an_empty_one_or_none() {
    // RFC 3986 section 3.2.3.
    for (host, is_good) in [
        ("h", true),
        ("a-b.c_d~1", true),
        ("h:80", true),
        ("h:", true),
        ("h:x", false),
        ("h:+80", false),
        ("h:65536", false),
        ("h:80:80", false),
        (":80", false),
        ("", false),
        ("u@h", false),
        ("[::1]", true),
        ("[::1]:8080", true),
        ("[::1]:", true),
        ("[::1]80", false),
        ("[::1", false),
        ("[h]", false),
        ("[]", false),
        ("::1", false),
    ] {
        let text = format!("GET / HTTP/1.1\r\nHost: {host}\r\n\r\n");
        let fault = (1, MalformedRequest::Host);
        let expect = Some(fault).filter(|_| !is_good);
        assert_eq!(check(text.as_bytes(), 0).1, expect, "{host}");
    }
}

#[test]
fn http_2_passes_as_it_is_and_what_only_begins_like_it_does_not() {
    let preface = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
    for cut in 0..=preface.len() {
        assert_eq!(
            check(&[preface, &b"\0\0\n\x16"[..]].concat(), cut),
            (28, None)
        );
        assert_eq!(
            check(b"PRI * HTTP/2.0\r\n\r\nXX\r\n\r\n", cut),
            (0, Some((1, MalformedRequest::Version))),
            "{cut}"
        );
    }
}

#[test]
fn a_target_is_escaped_only_where_the_library_takes_it_in_no_other_way() {
    let check = |line: &str, expect: Option<&str>| {
        let found = escaped(line.as_bytes()).map(|line| String::from_utf8(line).unwrap());
        assert_eq!(found.as_deref(), expect, "{line}");
        if let Some(line) = found {
            assert_eq!(check_request_line(line.as_bytes()), Ok(()), "{line}");
        }
    };
    check(
        "GET /a\"b`c?d=\"e\"&f=` HTTP/1.1",
        Some("GET /a\"b%60c?d=%22e%22&f=` HTTP/1.1"),
    );
    check(
        "GET http://h/a?\" HTTP/1.0",
        Some("GET http://h/a?%22 HTTP/1.0"),
    );
    for as_it_is in [
        "/a\"b?x=`",
        "/%22?%22",
        "/",
        "*",
        "/<a>?\"",
        "/a#\"",
        "/?\"#",
    ] {
        check(&format!("GET {as_it_is} HTTP/1.1"), None);
    }
    check("\"", None);
    let mut frames = RequestFrames::default();
    let bytes = b"GET /1 HTTP/1.1\r\nHost: h\r\n\r\nGET /?\" HTTP/1.1\r\nHost: h\r\n\r\n";
    let first = frames.check(bytes);
    let as_one = b"GET /?%22 HTTP/1.1".to_vec();
    assert_eq!(
        first,
        CheckedBytes {
            passed: 28,
            then: Then::Escape {
                line: 16,
                as_one: as_one.clone()
            }
        }
    );
    let rest = [&as_one, &bytes[28 + 16..]].concat();
    assert_eq!(
        frames.check(&rest),
        CheckedBytes {
            passed: rest.len(),
            then: Then::More
        }
    );
}

#[test]
fn every_target_that_passes_is_one_to_the_library() {
    for byte in 0..=255_u8 {
        for before in ["/", "/?", "http://h/", "http://h?"] {
            let target = [before.as_bytes(), &[byte], b"a"].concat();
            let line = [b"GET ", &target[..], b" HTTP/1.1"].concat();
            if check_request_line(&line).is_ok() {
                assert!(
                    Uri::try_from(&target[..]).is_ok(),
                    "{}",
                    target.escape_ascii()
                );
            }
        }
    }
    let longest = format!("GET /{} HTTP/1.1", "\u{e9}".repeat(8000));
    assert_eq!(check_request_line(longest.as_bytes()), Ok(()));
    assert!(Uri::try_from(longest.split(' ').nth(1).unwrap()).is_ok());
}

#[test]
fn what_http_2_brought_keeps_to_the_rules_of_http_1() {
    let request = || http::Request::get("http://h.example/x");
    let check = |request: http::request::Builder, expect: Result<(), MalformedRequest>| {
        let request = request.body(()).unwrap();
        assert_eq!(check_decoded(&request), expect, "{request:?}");
    };
    check(
        request()
            .header("content-length", "5")
            .header("cookie", "a=b"),
        Ok(()),
    );
    let crumbs = (0..200).fold(request(), |request, _| request.header("cookie", "a=b"));
    check(crumbs, Ok(()));
    let lengths = request()
        .header("content-length", "5")
        .header("content-length", "5");
    check(lengths, Err(MalformedRequest::TwoContentLengths));
    check(
        request().header("content-length", "05"),
        Err(MalformedRequest::ContentLength),
    );
    check(
        request().header("content_length", "5"),
        Err(MalformedRequest::LookAlike),
    );
    check(
        request().header("transfer_encoding", "chunked"),
        Err(MalformedRequest::LookAlike),
    );
    check(
        request().uri("http://u@h.example/"),
        Err(MalformedRequest::Host),
    );
    check(
        request().uri("http://e.example:80@h.example/"),
        Err(MalformedRequest::Host),
    );
    check(request().uri("*"), Err(MalformedRequest::Asterisk));
    check(request().method("OPTIONS").uri("*"), Ok(()));
    let long = "x".repeat(REQUEST_LINE_BYTES_MAX);
    check(
        request().uri(format!("/{long}")),
        Err(MalformedRequest::LongRequestLine),
    );
    let many = (0..=HEADER_LINES_MAX).fold(request(), |request, _| request.header("x", "y"));
    check(many, Err(MalformedRequest::ManyHeaders));
    let large = (0..4).fold(request(), |request, _| request.header("x", &long));
    check(large, Err(MalformedRequest::LongHead));
}
