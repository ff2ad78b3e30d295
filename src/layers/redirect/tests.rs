//! Chains of redirects against a table of answers.

use std::sync::{Arc, Mutex};

use super::*;
use crate::layers::testing::{answering, body_of, get, untouchable_body};

/// `(URL, status, Location)`; a URL that is not in the table answers 200.
type Table = &'static [(&'static str, u16, &'static str)];

const REDIRECTS_MAX: usize = 5;

async fn walk(request: Request, table: Table) -> (Result<Reply, FetchError>, Vec<Request>) {
    let seen = Arc::new(Mutex::new(Vec::new()));
    let log = seen.clone();
    let stack = Redirect::layer(REDIRECTS_MAX).layer(answering(move |request: Request| {
        log.lock().unwrap().push(request.clone());
        let url = request.uri().to_string();
        Ok(match table.iter().find(|(from, ..)| *from == url) {
            None => http::Response::new(body_of(&["here"])),
            Some((_, status, "")) => http::Response::builder()
                .status(*status)
                .body(body_of(&[]))
                .unwrap(),
            Some((_, status, to)) => {
                let reply = http::Response::builder()
                    .status(*status)
                    .header(LOCATION, to.as_bytes());
                reply.body(untouchable_body()).unwrap()
            }
        })
    }));
    let answer = stack.oneshot(request).await;
    let seen = seen.lock().unwrap().clone();
    (answer, seen)
}

async fn landing(from: &str, table: Table) -> Landing {
    walk(get(from), table)
        .await
        .0
        .unwrap()
        .extensions()
        .get::<Landing>()
        .unwrap()
        .clone()
}

async fn check_error(from: &str, table: Table, expect: &str) {
    let error = walk(get(from), table).await.0.unwrap_err();
    assert_eq!(error.to_string(), expect, "{table:?}");
}

#[tokio::test]
async fn the_answer_says_where_it_came_from() {
    let plain = landing("http://a.example/f", &[]).await;
    assert_eq!(
        (plain.url.as_str(), plain.moved_to, plain.redirects),
        ("http://a.example/f", None, 0)
    );

    for status in [301, 302, 303, 307, 308] {
        let table: Table = Box::leak(Box::new([("http://a.example/f", status, "../g?q#frag")]));
        let moved = landing("http://a.example/f", table).await;
        assert_eq!(
            (moved.url.as_str(), moved.redirects),
            ("http://a.example/g?q", 1)
        );
        assert_eq!(
            moved.is_permanent(),
            matches!(status, 301 | 308),
            "{status}"
        );
    }
}

/// Asks the origin of a site that readers know as `https://blog.example/`; where the last request
/// went, and its `Host`.
async fn ends_of_a_site(location: &'static str) -> (String, Option<String>) {
    const ORIGIN: &str = "http://127.0.0.1:8081/feed";
    let mut request = get(ORIGIN);
    let known_as = KnownAs::new(
        &Url::parse("http://me:secret@127.0.0.1:8081/feed").unwrap(),
        &Url::parse("https://blog.example/feed").unwrap(),
    );
    request.extensions_mut().insert(known_as);
    for name in NAME_HEADERS {
        request
            .headers_mut()
            .insert(name, http::HeaderValue::from_static("blog.example"));
    }
    let table: Table = Box::leak(Box::new([(ORIGIN, 301, location)]));
    let (answer, seen) = walk(request, table).await;
    let last = seen.last().unwrap();
    let named = NAME_HEADERS.map(|name| last.headers().contains_key(name));
    assert!(
        named.iter().all(|is_there| *is_there == named[0]),
        "{named:?}"
    );
    let host = last
        .headers()
        .get(HOST)
        .map(|host| host.to_str().unwrap().to_owned());
    let end = answer.map_or_else(|error| error.to_string(), |_| last.uri().to_string());
    (end, host)
}

#[tokio::test]
async fn a_redirect_to_the_name_that_readers_know_stays_at_the_origin_and_nobody_else_is_told_the_name()
 {
    let named = Some("blog.example".to_owned());
    let at_origin = |path: &str| (format!("http://127.0.0.1:8081{path}"), named.clone());
    assert_eq!(
        ends_of_a_site("https://blog.example/feed/").await,
        at_origin("/feed/")
    );
    assert_eq!(
        ends_of_a_site("http://blog.example/?feed=rss2#x").await,
        at_origin("/?feed=rss2")
    );
    assert_eq!(ends_of_a_site("/feed/").await, at_origin("/feed/"));
    // By the name it would lead to us, who have nothing newer.
    let to_itself = FetchError::from(BadRedirect::Loop).to_string();
    assert_eq!(
        ends_of_a_site("https://blog.example/feed").await,
        (to_itself, named.clone())
    );
    for elsewhere in [
        "https://feeds.example/blog",
        "https://blog.example:8443/feed",
        "http://127.0.0.1:82/feed",
    ] {
        assert_eq!(
            ends_of_a_site(elsewhere).await,
            (elsewhere.to_owned(), None)
        );
    }
}

#[tokio::test]
async fn only_the_leading_run_of_permanent_redirects_moves_a_feed() {
    let mixed = landing(
        "http://a.example/1",
        &[
            ("http://a.example/1", 301, "https://a.example/2"),
            ("https://a.example/2", 308, "https://b.example/3"),
            ("https://b.example/3", 302, "/4"),
            ("https://b.example/4", 301, "/5"),
        ],
    )
    .await;
    assert_eq!(mixed.url.as_str(), "https://b.example/5");
    assert_eq!(
        mixed.moved_to.as_ref().unwrap().as_str(),
        "https://b.example/3"
    );
    assert!(!mixed.is_permanent());
    assert_eq!(mixed.redirects, 4);

    let temporary = landing(
        "http://a.example/1",
        &[
            ("http://a.example/1", 302, "/2"),
            ("http://a.example/2", 301, "/3"),
        ],
    )
    .await;
    assert_eq!(temporary.moved_to, None);
}

#[tokio::test]
async fn a_redirect_that_cannot_be_followed_is_an_error() {
    let bad = |why: BadRedirect| FetchError::from(why).to_string();
    let from = "https://a.example/";
    check_error(
        from,
        &[("https://a.example/", 301, "")],
        &bad(BadRedirect::NoLocation),
    )
    .await;
    check_error(
        from,
        &[("https://a.example/", 301, "http://")],
        &bad(BadRedirect::Unreadable),
    )
    .await;
    check_error(
        from,
        &[("https://a.example/", 301, "ftp://b.example/")],
        &bad(BadRedirect::Unreadable),
    )
    .await;
    check_error(
        from,
        &[("https://a.example/", 301, "javascript:x")],
        &bad(BadRedirect::Unreadable),
    )
    .await;
    check_error(
        from,
        &[("https://a.example/", 301, "http://a.example/")],
        &bad(BadRedirect::Downgrade),
    )
    .await;
    check_error(
        from,
        &[("https://a.example/", 301, "#top")],
        &bad(BadRedirect::Loop),
    )
    .await;
    check_error(
        from,
        &[
            ("https://a.example/", 302, "/b"),
            ("https://a.example/b", 302, "/"),
        ],
        &bad(BadRedirect::Loop),
    )
    .await;
}

#[tokio::test]
async fn five_redirects_are_followed_and_a_sixth_is_an_error() {
    const CHAIN: Table = &[
        ("http://a.example/0", 302, "/1"),
        ("http://a.example/1", 302, "/2"),
        ("http://a.example/2", 302, "/3"),
        ("http://a.example/3", 302, "/4"),
        ("http://a.example/4", 302, "/5"),
        ("http://a.example/5", 302, "/6"),
    ];
    assert_eq!(landing("http://a.example/1", CHAIN).await.redirects, 5);
    check_error("http://a.example/0", CHAIN, "more than 5 redirects").await;
}

#[tokio::test]
async fn credentials_stay_with_their_origin() {
    const TABLE: Table = &[
        ("http://a.example/", 302, "/own"),
        ("http://a.example/own", 302, "http://b.example/"),
    ];
    let mut request = get("http://a.example/");
    request
        .headers_mut()
        .insert(AUTHORIZATION, "Bearer x".parse().unwrap());
    request
        .headers_mut()
        .insert("accept", "application/atom+xml".parse().unwrap());
    let (_, seen) = walk(request, TABLE).await;
    let authorized = |seen: &[Request]| -> Vec<bool> {
        seen.iter()
            .map(|r| r.headers().contains_key(AUTHORIZATION))
            .collect()
    };
    assert_eq!(authorized(&seen), [true, true, false]);
    assert!(seen.iter().all(|r| r.headers().contains_key("accept")));
    const FOLDERS: Table = &[
        ("http://a.example/b/feed", 302, "/b/c/feed"),
        ("http://a.example/b/c/feed", 302, "/bc/feed"),
    ];
    let mut request = get("http://a.example/b/feed");
    request
        .headers_mut()
        .insert(AUTHORIZATION, "Bearer x".parse().unwrap());
    let (_, seen) = walk(request, FOLDERS).await;
    assert_eq!(
        authorized(&seen),
        [true, true, false],
        "no longer below its folder"
    );
}

#[tokio::test]
async fn a_post_becomes_a_get_or_stays_one_as_the_status_says() {
    for (status, method) in [
        (301, "GET"),
        (302, "GET"),
        (303, "GET"),
        (307, "POST"),
        (308, "POST"),
    ] {
        let table: Table = Box::leak(Box::new([("http://a.example/", status, "/b")]));
        let request = http::Request::post("http://a.example/")
            .body("x".into())
            .unwrap();
        let (_, seen) = walk(request, table).await;
        assert_eq!(
            (seen[1].method().as_str(), seen[1].body().len()),
            (method, usize::from(method == "POST"))
        );
    }
}

#[tokio::test]
async fn other_statuses_pass_as_they_are() {
    for status in [200, 204, 300, 304, 305, 404, 500] {
        let table: Table = Box::leak(Box::new([(
            "http://a.example/",
            status,
            "http://b.example/",
        )]));
        let (answer, seen) = walk(get("http://a.example/"), table).await;
        assert_eq!((answer.unwrap().status().as_u16(), seen.len()), (status, 1));
    }
}

#[tokio::test]
async fn a_request_that_stays_home_is_not_sent_elsewhere() {
    let check = async |from: &str, table: Table, expect: Result<&str, &str>| {
        let mut request = get(from);
        request.extensions_mut().insert(HomeOnly);
        let (answer, seen) = walk(request, table).await;
        let landed =
            answer.map(|reply| reply.extensions().get::<Landing>().unwrap().url.to_string());
        assert_eq!(
            landed.map_err(|error| error.to_string()),
            expect.map(str::to_owned).map_err(str::to_owned)
        );
        assert!(seen.iter().all(|request| {
            request
                .uri()
                .host()
                .is_some_and(|host| host.ends_with("a.example"))
        }));
    };
    let elsewhere = "a redirect that cannot be followed: it leads to another host";
    check(
        "http://a.example/1",
        &[("http://a.example/1", 301, "/2")],
        Ok("http://a.example/2"),
    )
    .await;
    check(
        "http://a.example/1",
        &[("http://a.example/1", 301, "https://a.example/1")],
        Ok("https://a.example/1"),
    )
    .await;
    check(
        "http://a.example/1",
        &[("http://a.example/1", 301, "https://www.a.example/1")],
        Ok("https://www.a.example/1"),
    )
    .await;
    check(
        "http://a.example/1",
        &[("http://a.example/1", 302, "http://b.example/1")],
        Err(elsewhere),
    )
    .await;
    check(
        "http://a.example/1",
        &[("http://a.example/1", 302, "http://a.example:8080/1")],
        Err(elsewhere),
    )
    .await;
}
