//! Which paths and methods there are; what stands at them is elsewhere.
//!
//! Rows: SF-40, SF-132..SF-134; D-25, D-26.

use super::rig::{ROOT, Site};
use crate::{
    readers::{self, testing::add},
    serve::Config,
};
use bytes::Bytes;
use http::{Method, Request};
use http_body_util::Full;
use std::{
    sync::{
        Arc,
        atomic::{AtomicU8, Ordering},
    },
    time::Duration,
};
use tokio::time::Instant;

#[tokio::test(start_paused = true)]
async fn paths_lead_where_they_should_and_others_nowhere() {
    let site = Site::of(1..=3).await;
    let check = async |target: &str, status: u16| {
        let answer = site.get(target).await;
        assert_eq!(answer.status, status, "{target}: {}", answer.text());
        if status == 404 {
            assert!(
                answer.text().contains(&format!("{ROOT}/feeds lists")),
                "{target}: {}",
                answer.text()
            );
        }
    };
    for target in [
        "/",
        "/feeds",
        "/feeds/",
        "/feeds?x=y",
        "/feeds/blog",
        "/feeds/blog.atom",
        "/feeds/blog.json",
        "/feeds/blog/about",
        "/feeds/blog/classic.atom",
        "/feeds/blog/classic.rss",
        "/feeds/blog.rss",
        "/feeds/blog.rdf",
        "/feeds/blog.jsonfeed",
        "/feeds/blog.as2",
        "/feeds/blog.jsonl",
        "/feeds/blog.csv",
        "/feeds/blog.tsv",
        "/feeds/blog.html",
        "/feeds/blog/classic.rdf",
        "/feeds/blog/classic.jsonfeed",
        "/feeds/blog/classic.html",
        "http://other.example:99/feeds/blog.json",
        // Escaped without need, it is the same path (RFC 3986 section 6.2.2.2).
        "/feeds/%62log.js%6Fn",
        "/%66eeds/blog/abou%74",
    ] {
        check(target, 200).await;
    }
    for target in [
        "/feed",
        "/feedss",
        "//feeds",
        "/feeds//blog.json",
        "/feeds/blog.json/",
        "/feeds/blog/",
        "/feeds/blog/about/",
        "/feeds/blog.xml",
        "/feeds/blog/classic.csv",
        "/feeds/blog.JSON",
        "/feeds/Blog.json",
        "/feeds/blog.json.atom",
        "/feeds/.json",
        "/feeds/other",
        "/feeds/other/about",
        "/feeds/other/classic.rss",
        "/feeds/blog/classic",
        "/feeds/blog/classic.json",
        "/feeds/../feeds/blog",
        "/feeds/blog%00",
        "/feeds/%FF",
        "/feeds/blog%2Ejson%20",
        "/favicon.ico",
    ] {
        check(target, 404).await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_prefix_moves_everything_and_stands_in_every_url() {
    let site = Site::set(Config {
        prefix: "/smart/blogs".to_owned(),
        ..Config::default()
    })
    .await;
    site.rig.change((1..=3).map(add).collect()).await;
    let page = site.get("/smart/blogs/feeds/blog.json?max=1").await;
    let root = format!("{ROOT}/smart/blogs");
    let base = format!("{root}/feeds/blog.json?order=modified");
    assert_eq!(
        page.header("link"),
        format!("<{base}>; rel=\"self\", <{root}/hub>; rel=\"hub\"")
    );
    let page = page.json();
    assert_eq!(page["url"], base);
    assert!(
        page["next"]
            .as_str()
            .unwrap()
            .starts_with(&format!("{base}&since="))
    );
    assert_eq!(page["links"]["hub"][0], format!("{root}/hub"));
    for target in [
        "/smart/blogs",
        "/smart/blogs/",
        "/smart/blogs/feeds",
        "/smart/blogs/feeds/blog/about",
    ] {
        assert_eq!(site.get(target).await.status, 200, "{target}");
    }
    for target in [
        "/",
        "/feeds",
        "/feeds/blog.json",
        "/smart",
        "/smart/blogsfeeds",
        "/smart/blogs/smart/blogs/feeds",
    ] {
        let answer = site.get(target).await;
        assert_eq!(answer.status, 404, "{target}");
        assert!(
            answer.text().contains(&format!("{root}/feeds lists")),
            "{}",
            answer.text()
        );
    }
    assert_eq!(site.ask(Method::POST, "/hub", &[]).await.status, 404);
    assert_eq!(
        site.ask(Method::POST, "/smart/blogs/hub", &[]).await.status,
        202
    );
}

#[tokio::test(start_paused = true)]
async fn only_get_and_head_are_for_feeds_and_only_where_there_is_something() {
    // SF-40.
    let site = Site::of(1..=3).await;
    for method in ["POST", "PUT", "DELETE", "PATCH", "PROPFIND", "get"] {
        let method = Method::from_bytes(method.as_bytes()).unwrap();
        for target in [
            "/feeds",
            "/feeds/blog",
            "/feeds/blog.atom",
            "/feeds/blog/about",
            "/feeds/blog/classic.rss",
        ] {
            let answer = site.ask(method.clone(), target, &[]).await;
            assert_eq!(
                (answer.status, answer.header("allow")),
                (405, "GET, HEAD, OPTIONS"),
                "{method} {target}"
            );
        }
        assert_eq!(site.ask(method, "/nowhere", &[]).await.status, 404);
    }
    for (target, methods) in [
        ("/feeds", "GET, HEAD, OPTIONS"),
        ("/feeds/blog", "GET, HEAD, OPTIONS"),
        ("/feeds/blog.events", "GET, HEAD, OPTIONS"),
        ("/feeds/blog/classic.rss", "GET, HEAD, OPTIONS"),
        ("/hub", "GET, HEAD, POST, OPTIONS"),
    ] {
        let answer = site.ask(Method::OPTIONS, target, &[]).await;
        assert_eq!(
            (answer.status, answer.header("allow"), answer.body.len()),
            (200, methods, 0),
            "{target}"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn head_says_what_get_says() {
    // SF-40: the server in front of the router leaves the body out.
    let site = Site::of(1..=3).await;
    for target in [
        "/feeds",
        "/feeds/blog",
        "/feeds/blog.json?callback=cb",
        "/feeds/blog.atom?max=2",
        "/feeds/blog/classic.rss",
        "/feeds/blog/about",
        "/feeds/blog.json?max=0",
        "/feeds/none",
        "/openapi.json",
        "/hub",
        "/nowhere",
    ] {
        let (get, head) = (
            site.get(target).await,
            site.ask(Method::HEAD, target, &[]).await,
        );
        assert_eq!(
            (get.status, get.headers),
            (head.status, head.headers),
            "{target}"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn requests_to_the_hub_arrive_whole_or_not_at_all() {
    let site = Site::of(1..=3).await;
    let post = |target: &str, body: Vec<u8>| {
        let request = Request::post(target.to_owned())
            .body(Full::new(Bytes::from(body)))
            .unwrap();
        site.send(request)
    };
    for target in ["/hub", "/hub/", "/feeds/blog/hub"] {
        let form = b"hub.mode=subscribe&x=%26".to_vec();
        let answer = post(target, form.clone()).await;
        assert_eq!(
            (answer.status, answer.body.to_vec()),
            (202, form),
            "{target}"
        );
    }
    assert_eq!(post("/hub", vec![b'a'; 64 << 10]).await.status, 202);
    let large = post("/hub", vec![b'a'; (64 << 10) + 1]).await;
    assert_eq!(
        (large.status, large.header("access-control-allow-origin")),
        (413, "*")
    );
    assert!(large.text().contains("65536"), "{}", large.text());
}

#[tokio::test(start_paused = true)]
async fn a_body_that_does_not_come_is_not_waited_for_without_end() {
    use http_body_util::{BodyExt as _, StreamBody};
    let site = Site::of(1..=3).await;
    let never = StreamBody::new(futures_util::stream::pending::<
        Result<http_body::Frame<Bytes>, std::io::Error>,
    >());
    let request = Request::post("/hub").body(never.boxed_unsync()).unwrap();
    let started = Instant::now();
    assert_eq!(site.send_any(request).await.status, 408);
    assert_eq!(started.elapsed().as_secs(), 30);
}

#[tokio::test(start_paused = true)]
async fn a_question_that_is_longer_than_any_position_is_refused() {
    let site = Site::of(1..=3).await;
    let ask = async |bytes: usize| {
        let target = format!("/feeds/blog.json?since=cursor:{}", "x".repeat(bytes));
        site.get(&target).await.status
    };
    assert_eq!(ask(8 << 10).await, 414);
    assert_eq!(ask((8 << 10) - 32).await, 200);
}

#[tokio::test(start_paused = true)]
async fn every_answer_may_be_read_by_every_page_of_the_web() {
    // D-26.
    let site = Site::of(1..=3).await;
    let origin = [("origin", "https://reader.example")];
    for (method, target) in [
        (Method::GET, "/feeds/blog.json"),
        (Method::GET, "/feeds/blog.atom?since=cursor:"),
        (Method::GET, "/feeds"),
        (Method::GET, "/feeds/none"),
        (Method::GET, "/feeds/blog.json?max=0"),
        (Method::PUT, "/feeds/blog.json"),
        (Method::POST, "/hub"),
    ] {
        let answer = site.ask(method, target, &origin).await;
        assert_eq!(
            answer.header("access-control-allow-origin"),
            "*",
            "{target}"
        );
        let exposed = answer.header("access-control-expose-headers");
        for name in [
            "etag",
            "last-modified",
            "link",
            "retry-after",
            "allow",
            "im",
            "delta-base",
            "smart-feed-cursor",
            "smart-feed-last-cursor",
        ] {
            assert!(exposed.contains(name), "{exposed}");
        }
        assert!(
            !answer.header("vary").contains("origin"),
            "caches need not keep one copy for each page"
        );
    }
    let preflight = [
        ("origin", "https://reader.example"),
        ("access-control-request-method", "GET"),
        (
            "access-control-request-headers",
            "authorization, if-none-match, last-event-id",
        ),
    ];
    for target in [
        "/feeds/blog.json",
        "/feeds/blog.events",
        "/feeds",
        "/feeds/blog/about",
        "/hub",
        "/nowhere",
    ] {
        let answer = site.ask(Method::OPTIONS, target, &preflight).await;
        assert_eq!(
            (answer.status, answer.header("access-control-allow-origin")),
            (200, "*"),
            "{target}"
        );
        let methods = |name| {
            let methods = answer
                .header(name)
                .split(',')
                .map(str::trim)
                .map(str::to_owned);
            methods.collect::<std::collections::BTreeSet<_>>()
        };
        assert_eq!(
            methods("access-control-allow-methods"),
            methods("allow"),
            "{target}"
        );
        assert_eq!(
            methods("allow").contains("POST"),
            target == "/hub",
            "{target}"
        );
        // A star does not stand for this one.
        assert_eq!(
            answer.header("access-control-allow-headers"),
            "*,authorization"
        );
        assert_eq!(answer.header("access-control-max-age"), "86400");
        assert_eq!(answer.header("access-control-allow-credentials"), "");
    }
}

#[tokio::test(start_paused = true)]
async fn what_there_is_is_listed_for_programs_and_for_people() {
    // SF-132..SF-134.
    let site = Site::of(1..=3).await;
    let list = site.get("/feeds").await;
    assert_eq!(
        (list.header("content-type"), list.header("vary")),
        ("application/json; charset=utf-8", "accept, accept-encoding")
    );
    let list = list.json();
    assert_eq!(
        (&list["feeds"][0]["name"], &list["feeds"][0]["items"]),
        (&"blog".into(), &3.into())
    );
    let browser = [(
        "accept",
        "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8",
    )];
    for target in ["/", "/feeds", "/feeds/blog/about"] {
        let page = site.get_with(target, &browser).await;
        assert_eq!(
            (page.status, page.header("content-type")),
            (200, "text/html; charset=utf-8")
        );
        assert!(
            page.text()
                .contains(&format!("{ROOT}/feeds/blog/classic.rss")),
            "autodiscovery: {}",
            page.text()
        );
        assert!(!page.header("content-security-policy").is_empty());
    }
    let about = site.get("/feeds/blog/about").await.json();
    assert_eq!(
        (&about["max"]["default"], &about["max"]["cap"]),
        (&50.into(), &1000.into())
    );
    assert_eq!(
        (&about["timeout"]["default"], &about["timeout"]["cap"]),
        (&55.into(), &300.into())
    );
    assert_eq!(
        about["orders"].as_object().map(|orders| orders.len()),
        Some(6),
        "{about}"
    );
}

#[tokio::test(start_paused = true)]
async fn a_default_is_never_more_than_its_cap() {
    let readers = readers::Config {
        page_items_max: 20,
        ..readers::Config::default()
    };
    let site = Site::set(Config {
        readers,
        timeout_max_secs: 30,
        ..Config::default()
    })
    .await;
    site.rig.change((1..=30).map(add).collect()).await;
    let about = site.get("/feeds/blog/about").await.json();
    for (key, least) in [("max", 20), ("timeout", 30)] {
        assert_eq!(
            (&about[key]["default"], &about[key]["cap"]),
            (&least.into(), &least.into())
        );
    }
    assert_eq!(site.page("").await["count"], 20);
    let started = Instant::now();
    assert_eq!(site.page("since=time:2027-01-01").await["count"], 0);
    assert_eq!(started.elapsed(), Duration::from_secs(30));
}

#[tokio::test(start_paused = true)]
async fn until_the_first_document_a_feed_asks_for_patience_and_the_rest_answers() {
    // DESIGN section 4; D-25.
    let site = Site::unread().await;
    for target in [
        "/feeds/blog",
        "/feeds/blog.atom",
        "/feeds/blog.json?since=cursor:&timeout=10",
        "/feeds/blog.json?callback=cb",
        "/feeds/blog/classic.atom",
        "/feeds/blog/classic.rss",
    ] {
        let answer = site.get_with(target, &[("if-none-match", "*")]).await;
        assert_eq!(
            (answer.status, answer.header("retry-after")),
            (503, "5"),
            "{target}"
        );
        assert_eq!(answer.header("cache-control"), "no-store");
    }
    for target in ["/", "/feeds", "/feeds/blog/about"] {
        assert_eq!(site.get(target).await.status, 200, "{target}");
    }
    assert_eq!(
        site.ask(Method::POST, "/feeds/blog/hub", &[]).await.status,
        202
    );
    assert_eq!(
        site.get("/feeds/blog.json?max=0").await.status,
        400,
        "what is wrong stays wrong"
    );
    site.rig.change(Vec::new()).await;
    assert_eq!(site.page("").await["count"], 0, "an empty feed is served");
}

#[tokio::test(start_paused = true)]
async fn a_store_that_fails_is_our_fault_and_its_trouble_nobodys_business() {
    let site = Site::of(1..=3).await;
    site.rig.store.break_down(true);
    let answer = site.get("/feeds/blog.json?callback=cb").await;
    assert_eq!(
        (answer.status, answer.header("content-type")),
        (500, "text/plain; charset=utf-8")
    );
    assert!(!answer.text().contains("fire"), "{}", answer.text());
    site.rig.store.break_down(false);
    assert_eq!(site.get("/feeds/blog.json?callback=cb").await.status, 200);
}

#[tokio::test(start_paused = true)]
async fn a_mount_answers_beside_ours_as_a_stream_and_gets_its_body_unread() {
    use crate::edge::body::ServeBody;
    use crate::serve::routing::{mount::Mount, router::Router};
    use http_body_util::{BodyExt as _, StreamBody};
    use tower::{ServiceExt as _, util::BoxCloneSyncService};

    // It sends back what it is sent, piece by piece.
    let echo = tower::service_fn(|request: Request<ServeBody>| async move {
        Ok::<_, std::convert::Infallible>(http::Response::new(request.into_body()))
    });
    let takes = |request: &http::request::Parts| request.uri.path() == "/echo";
    let router = Router::new(vec![Mount::new(takes, BoxCloneSyncService::new(echo))]);
    let sent = Arc::new(AtomicU8::new(0));
    let counter = sent.clone();
    let pieces = futures_util::stream::repeat_with(move || {
        let piece = counter.fetch_add(1, Ordering::SeqCst);
        Ok::<_, std::io::Error>(http_body::Frame::data(Bytes::from(vec![piece])))
    });
    let sent = || sent.load(Ordering::SeqCst);
    let request = Request::post("/echo")
        .body(StreamBody::new(pieces))
        .unwrap();
    let mut body = router.clone().oneshot(request).await.unwrap().into_body();
    assert_eq!(sent(), 0, "nothing was read before the answer");
    let first = body.frame().await.unwrap().unwrap().into_data().unwrap();
    assert_eq!((&first[..], sent()), (&[0][..], 1));
    let nowhere = Request::get("/feeds")
        .body(Full::<Bytes>::default())
        .unwrap();
    assert_eq!(router.oneshot(nowhere).await.unwrap().status(), 404);
}

#[tokio::test(start_paused = true)]
async fn the_feeds_are_an_outline_for_readers_to_import() {
    // O-1, O-3.
    let site = Site::of(1..=3).await;
    let outline = site.get("/feeds.opml").await;
    assert_eq!(
        (outline.status, outline.header("content-type")),
        (200, "text/x-opml; charset=utf-8")
    );
    assert!(
        outline
            .text()
            .contains(&format!("xmlUrl=\"{ROOT}/feeds/blog/classic.rss\"")),
        "{}",
        outline.text()
    );
    let known = site
        .get_with("/feeds.opml", &[("if-none-match", outline.header("etag"))])
        .await;
    assert_eq!((known.status, known.body.len()), (304, 0));
    assert_eq!(site.get("/feeds.opml?max=0").await.status, 400);
    site.withdraw();
    assert!(site.get("/feeds.opml").await.text().contains("isComment"));
}
