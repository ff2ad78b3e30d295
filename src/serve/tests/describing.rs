//! The OpenAPI document says what the server does: whatever is asked, status and media type of the
//! answer stand in it. And a generator of requests that nobody means: each gets an answer, and none
//! of them is a fault of ours.

use super::rig::{Answer, Site};
use crate::render::{Query, Representation};
use http::{HeaderValue, Method, Request, Uri};
use http_body_util::Full;
use serde_json::{Value, json};
use std::collections::BTreeSet;

async fn document(site: &Site) -> Value {
    let answer = site.get("/openapi.json").await;
    assert_eq!(
        answer.header("content-type"),
        "application/json; charset=utf-8"
    );
    let again = site
        .get_with("/openapi.json", &[("if-none-match", answer.header("etag"))])
        .await;
    assert_eq!(again.status, 304);
    answer.json()
}

/// The answers of an operation, references followed.
fn answer_of<'a>(document: &'a Value, operation: &'a Value, status: u16) -> Option<&'a Value> {
    let answer = operation["responses"].get(status.to_string())?;
    match answer["$ref"].as_str() {
        Some(reference) => document.pointer(reference.trim_start_matches('#')),
        None => Some(answer),
    }
}

#[track_caller]
fn check(document: &Value, operation: &Value, answer: &Answer, what: &str) {
    let Some(described) = answer_of(document, operation, answer.status) else {
        panic!(
            "{what}: {} is not described: {}",
            answer.status,
            answer.text()
        );
    };
    let media = answer.header("content-type");
    let is_described = match described.get("content") {
        Some(content) => content.get(media).is_some(),
        None => media.is_empty(),
    };
    assert!(
        is_described,
        "{what}: {} {media:?} is not in {described}",
        answer.status
    );
}

const ACCEPTED: [&str; 6] = [
    "*/*",
    "application/json",
    "text/html",
    "image/png",
    "application/atom+xml",
    "application/problem+json",
];
const QUERIES: [&str; 19] = [
    "",
    "since=cursor:&timeout=0",
    "since=time:2014-01-01&max=1&order=created",
    "until=time:2014-01-01&order=-created",
    "since=id:none&order=created",
    "since=id:none",
    "since=nonsense",
    "order=best",
    "max=0",
    "max=2",
    "timeout=x",
    "callback=f",
    "callback=1",
    "after=a&q=b",
    "q=blog&q=blog",
    "q=x&deleted=no&lang=en",
    "deleted=maybe",
    "order=published&max=1",
    "order=-modified&since=cursor:9",
];
const HEADERS: [(&str, &str); 6] = [
    ("x-none", ""),
    ("if-none-match", "*"),
    ("if-none-match", "\"x\""),
    ("a-im", "feed"),
    ("last-event-id", "x"),
    ("if-modified-since", "Mon, 01 Jun 2099 00:00:00 GMT"),
];

#[tokio::test(start_paused = true)]
async fn every_answer_is_described() {
    let site = Site::of(1..=16).await;
    let newest = site.get("/feeds/blog/classic.atom").await;
    let (_, link) = newest.text().split_once("/feeds/blog/archive/").unwrap();
    let archive = link.split('.').next().unwrap().to_owned();
    let document = document(&site).await;
    let unread = Site::unread().await;
    let paths = document["paths"].as_object().unwrap();
    // The hub here is none.
    for (path, operations) in paths.iter().filter(|(path, _)| !path.ends_with("/hub")) {
        for name in ["blog", "none"] {
            for query in QUERIES {
                let path = path.replace("{name}", name).replace("{archive}", &archive);
                let target = format!("{path}?{query}");
                // Of a name that nobody has there is nothing to hold a condition against.
                let headers = if name == "none" {
                    &HEADERS[..1]
                } else {
                    &HEADERS
                };
                for accept in ACCEPTED {
                    for header in headers.iter().copied() {
                        let method = if accept == "*/*" {
                            Method::HEAD
                        } else {
                            Method::GET
                        };
                        let operation = &operations[method.as_str().to_lowercase()];
                        let headers = [("accept", accept), header];
                        let opened = site.open_method(method.clone(), &target, &headers).await;
                        check(
                            &document,
                            operation,
                            &opened,
                            &format!("{target} {headers:?}"),
                        );
                    }
                }
                let answer = unread.open_method(Method::GET, &target, &[]).await;
                check(&document, &operations["get"], &answer, &target);
            }
        }
    }
    let long = format!("/feeds/blog.json?x={}", "x".repeat(9000));
    check(
        &document,
        &document["paths"]["/feeds/{name}.json"]["get"],
        &site.get(&long).await,
        "a long one",
    );
}

#[tokio::test(start_paused = true)]
async fn every_form_and_parameter_is_described() {
    let site = Site::of(1..=1).await;
    let document = document(&site).await;
    let paths = document["paths"].as_object().unwrap();
    for representation in Representation::all() {
        let infix = if representation.is_classic() {
            "/classic."
        } else {
            "."
        };
        assert!(paths.contains_key(&format!(
            "/feeds/{{name}}{infix}{}",
            representation.suffix()
        )));
    }
    let parameters = document["components"]["parameters"].as_object().unwrap();
    let named: BTreeSet<_> = parameters
        .values()
        .filter_map(|one| one["name"].as_str())
        .collect();
    for name in Query::names() {
        assert!(named.contains(name), "{name}");
    }
    // Whatever is referred to is there.
    let text = document.to_string();
    for reference in text.split("\"$ref\":\"#").skip(1) {
        let reference = reference.split('"').next().unwrap();
        assert!(document.pointer(reference).is_some(), "{reference}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_parameter_is_described_with_its_limits() {
    let site = Site::of(1..=1).await;
    let document = document(&site).await;
    let schema = |key: &str| &document["components"]["parameters"][key]["schema"];
    let classic = document["paths"]["/feeds/{name}/classic.rss"]["get"]["parameters"].to_string();
    assert!(
        classic.contains("/classic-deleted\"") && !classic.contains("/deleted\""),
        "{classic}"
    );
    assert_eq!(schema("classic-deleted")["enum"], json!(["", "no"]));
    assert_eq!(
        site.get("/feeds/blog/classic.rss?deleted=only")
            .await
            .status,
        400
    );
    for (key, url, bytes) in [
        ("words", "/feeds?q=", 256),
        ("q", "/feeds/blog.json?timeout=0&q=", 512),
    ] {
        assert_eq!(schema(key)["maxLength"], bytes, "{key}");
        assert_eq!(
            site.get(&format!("{url}{}", "x".repeat(bytes)))
                .await
                .status,
            200,
            "{key}"
        );
        assert_eq!(
            site.get(&format!("{url}{}", "x".repeat(bytes + 1)))
                .await
                .status,
            400,
            "{key}"
        );
        assert_eq!(
            schema(key)["pattern"],
            r"^[^\x00-\x1f\x7f-\x9f\ufffd]*$",
            "{key}"
        );
        for control in ["%00", "%1f", "%7f", "%c2%80", "%c2%9f", "%ef%bf%bd"] {
            assert_eq!(
                site.get(&format!("{url}a{control}")).await.status,
                400,
                "{key} {control}"
            );
        }
    }
    assert!(
        schema("after").get("maxLength").is_none(),
        "a name that is too long is behind the last one"
    );
    assert!(
        schema("callback")["pattern"]
            .as_str()
            .unwrap()
            .contains(r"\[[0-9]{1,4}\]")
    );
    for (index, status) in [("1234", 200), ("12345", 400)] {
        let url = format!("/feeds/blog.json?timeout=0&callback=a%5B{index}%5D");
        assert_eq!(site.get(&url).await.status, status, "{index}");
    }
}

#[tokio::test(start_paused = true)]
async fn streams_and_hubs_are_described_as_they_are() {
    let site = Site::of(1..=1).await;
    let document = document(&site).await;
    let described = &document["components"]["parameters"]["event-order"]["schema"]["enum"];
    let described: BTreeSet<_> = described
        .as_array()
        .unwrap()
        .iter()
        .filter_map(Value::as_str)
        .collect();
    for order in crate::feed::order::Order::ALL {
        let target = format!("/feeds/blog.events?order={order}");
        let answer = site.open_method(Method::HEAD, &target, &[]).await;
        assert_eq!(
            answer.status == 200,
            described.contains(order.name()),
            "{order}"
        );
    }
    // The hub of a feed is not there where the feed is not.
    let of_feed = &document["paths"]["/feeds/{name}/hub"]["get"]["responses"];
    assert!(
        of_feed.get("404").is_some() && of_feed.get("410").is_some(),
        "{of_feed}"
    );
    assert!(
        document["paths"]["/hub"]["get"]["responses"]
            .get("404")
            .is_none()
    );
}

/// Requests of the generator: enough to meet each pair of parts, few enough for every run. The same
/// runs for long by hand.
const REQUESTS: u32 = 4000;

const PATHS: [&str; 20] = [
    "/",
    "/feeds",
    "/feeds/blog",
    "/feeds/blog.json",
    "/feeds/blog.atom",
    "/feeds/blog/classic.rss",
    "/feeds/blog/classic.atom",
    "/feeds/blog/about",
    "/feeds/blog.events",
    "/hub",
    "/feeds/blog/hub",
    "/openapi.json",
    "/feeds/none",
    "/s/x/feeds/blog",
    "/s/%00/feeds",
    "/feeds/%2e%2e/blog",
    "/feeds/blog%00",
    "//",
    "/feeds/%ff",
    "*",
];
const NAMES: [&str; 12] = [
    "since", "until", "max", "order", "callback", "q", "after", "author", "category", "x",
    "hub.mode", "",
];
const VALUES: [&str; 32] = [
    "",
    "cursor:",
    "cursor:1_2_3",
    "cursor:99999999999999999999_1_1",
    "time:",
    "time:2014",
    "time:99999999999",
    "time:-1",
    "time:0000-00-00",
    "time:9999-12-31T23:59:60.999999999Z",
    "id:",
    "id:x",
    "id:%00",
    "%00",
    "%ff%fe",
    "\"",
    "<script>",
    "((((",
    "-1",
    "0",
    "1",
    "1e9",
    "99999999999999999999999",
    "-modified",
    "created",
    "best",
    "f",
    "a.b",
    "%E2%80%A8",
    "%",
    "%0d%0aX:y",
    "+",
];
const FIELDS: [&str; 10] = [
    "accept",
    "accept-encoding",
    "if-none-match",
    "if-modified-since",
    "a-im",
    "last-event-id",
    "authorization",
    "x-wsse",
    "origin",
    "access-control-request-method",
];
const FIELD_VALUES: [&[u8]; 24] = [
    b"",
    b"*/*",
    b"application/json;q=2",
    b"text/event-stream",
    b";;;,,,=",
    b"a/b;q=",
    b"*;q=0",
    b"identity;q=0",
    b"\"x\"",
    b"W/\"1.2.a\"",
    b"W/\"",
    b"*",
    b"feed",
    b"feed;q=0",
    b"Basic",
    b"Basic AAAA",
    b"Bearer",
    b"Bearer x",
    b"UsernameToken Username=\"a\"",
    b"gzip, br, zstd",
    b"Mon, 01 Jun 2026 00:00:00 GMT",
    b"\xff\xfe",
    b"1_2_3",
    b"GET",
];

#[tokio::test(start_paused = true)]
async fn requests_that_nobody_means_get_an_answer_that_says_what_is_wrong() {
    let site = Site::of(1..=3).await;
    let mut chance = 1_u64;
    let mut roll = |sides: usize| {
        chance = chance
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(chance >> 33).unwrap() % sides
    };
    let methods = [
        "GET", "GET", "GET", "HEAD", "POST", "OPTIONS", "PUT", "DELETE", "TRACE", "get", "X",
    ];
    for _ in 0..REQUESTS {
        let pairs: Vec<_> = (0..roll(4))
            .map(|_| {
                format!(
                    "{}={}",
                    NAMES[roll(NAMES.len())],
                    VALUES[roll(VALUES.len())]
                )
            })
            .collect();
        let path = PATHS[roll(PATHS.len())];
        let target = if path == "*" {
            path.to_owned()
        } else {
            format!("{path}?timeout=0&{}", pairs.join("&"))
        };
        let Ok(uri) = target.parse::<Uri>() else {
            continue;
        };
        let method = Method::from_bytes(methods[roll(methods.len())].as_bytes()).unwrap();
        let mut request = Request::builder().method(method.clone()).uri(uri);
        for _ in 0..roll(4) {
            let value = HeaderValue::from_bytes(FIELD_VALUES[roll(FIELD_VALUES.len())]).unwrap();
            request = request.header(FIELDS[roll(FIELDS.len())], value);
        }
        let request = request.body(Full::default()).unwrap();
        let what = format!("{request:?}");
        let mut opened = site.open_any(request).await;
        assert!(opened.status < 500, "{what}: {}", opened.status);
        let first = opened.frame().await.unwrap_or_default();
        let media = opened
            .headers
            .get("content-type")
            .map_or(&b""[..], HeaderValue::as_bytes);
        if opened.status >= 400 && method != Method::HEAD && media.starts_with(b"text/plain") {
            let line = std::str::from_utf8(&first).unwrap();
            assert!(
                line.len() > 8 && line.lines().count() == 1,
                "{what}: {line:?}"
            );
        }
    }
    assert_eq!(site.held(), 0);
}

#[tokio::test(start_paused = true)]
async fn feeds_are_found_by_words_of_their_names_and_titles() {
    let site = Site::of(1..=1).await;
    site.rig.entitle("Über Größe & more").await;
    for (q, expect) in [
        ("", 1),
        ("blo", 1),
        ("BLOG", 1),
        ("gr%C3%B6%C3%9Fe+%C3%BCber", 1),
        ("blog+more", 1),
        ("blog+less", 0),
        ("%26amp;", 0),
        ("%26", 1),
    ] {
        let list = site.get(&format!("/feeds?q={q}")).await.json();
        assert_eq!(list["feeds"].as_array().unwrap().len(), expect, "{q}");
        let browser = [("accept", "text/html")];
        let page = site
            .get_with(&format!("/feeds?q={q}%22%3E%3Cb%3E"), &browser)
            .await;
        assert!(
            !page.text().contains("<b>") && page.text().contains("name=\"q\""),
            "{}",
            page.text()
        );
    }
    for refused in [
        "q=a&q=b",
        "q=%ff",
        "after=%ff",
        "q=%00",
        "max=0",
        "callback=a&callback=b",
    ] {
        for path in ["/feeds", "/feeds.opml"] {
            let answer = site.get(&format!("{path}?{refused}")).await;
            // OPML is no script.
            let is_script = refused.starts_with("callback") && path.ends_with("opml");
            assert_eq!(
                answer.status,
                if is_script { 200 } else { 400 },
                "{path} {refused}: {}",
                answer.text()
            );
        }
    }
}

#[tokio::test(start_paused = true)]
async fn the_total_of_a_search_is_that_of_what_was_found() {
    let site = Site::of(1..=1).await;
    for name in ["alpha-1", "alpha-2", "alpha-3", "beta"] {
        site.join(name).await;
    }
    let list = async |query: &str| site.get(&format!("/feeds?{query}")).await.json();
    let names = |list: &Value| -> Vec<String> {
        list["feeds"]
            .as_array()
            .unwrap()
            .iter()
            .map(|feed| feed["name"].as_str().unwrap().to_owned())
            .collect()
    };
    assert_eq!(list("").await["total"], 5);
    let all = list("q=ALPHA").await;
    assert_eq!(
        (all["total"].clone(), all["next"].clone()),
        (3.into(), Value::Null)
    );
    let first = list("q=alpha&max=2").await;
    assert_eq!(
        (first["total"].clone(), names(&first)),
        (3.into(), vec!["alpha-1".into(), "alpha-2".into()])
    );
    assert!(
        first["url"].as_str().unwrap().ends_with("/feeds?q=alpha"),
        "{first}"
    );
    let next = first["next"].as_str().unwrap();
    let rest = list(next.split_once('?').unwrap().1).await;
    assert_eq!(
        (rest["total"].clone(), names(&rest)),
        (3.into(), vec!["alpha-3".into()])
    );
    assert_eq!(rest["next"], Value::Null);
    let exact = list("q=alpha&max=3").await;
    assert_eq!(exact["next"], Value::Null, "there is nothing behind");
    assert_eq!(list("q=nothing").await["total"], 0);
    let page = site
        .get_with("/feeds?q=alpha&max=2", &[("accept", "text/html")])
        .await;
    assert!(
        page.text().contains("3 of them hold these words."),
        "{}",
        page.text()
    );
    // People get shorter lists than programs.
    for n in 0..100 {
        site.join(&format!("more-{n:03}")).await;
    }
    assert_eq!(names(&list("").await).len(), 105);
    let page = site.get_with("/feeds", &[("accept", "text/html")]).await;
    assert!(
        page.text().contains("/feeds?after=more-094") && !page.text().contains("more-095"),
        "{}",
        page.text()
    );
}
