//! The address of an old feed: plain readers get the old document, whatever becomes of the origin,
//! and whoever speaks of cursors gets the Smart Feed. Rows: W-1, W-5, HUB-8, SF-58, T-1.

use super::rig::{Origin, Sidecar};
use http::Method;
use std::{
    collections::BTreeMap,
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, Ordering},
    },
};
use testkit::{
    client::{self, Answer, ask},
    publisher::Publisher,
    wait::until,
};

pub(crate) const BEFORE: &str = "<?xml version=\"1.0\"?>\n<rss version=\"2.0\"><channel>";
pub(crate) const AFTER: &str =
    "<title>Old &amp; good</title><item><guid>1</guid><title>One</title></item></channel></rss>";
pub(crate) const LINKS: &str = "<atom:link xmlns:atom=\"http://www.w3.org/2005/Atom\" rel=\"self\" \
    href=\"http://blog.example/feed.xml\" type=\"application/rss+xml\"/>\
    <atom:link xmlns:atom=\"http://www.w3.org/2005/Atom\" rel=\"hub\" href=\"http://blog.example/hub\"/>";

/// The place at which listeners of rssCloud register, in an old document of RSS.
pub(crate) const CLOUD: &str = "<cloud domain=\"blog.example\" port=\"80\" path=\"/pleaseNotify\" registerProcedure=\"\" protocol=\"http-post\"/>";

/// An old blog that can be stopped, and whose feed can change.
#[derive(Clone)]
pub(crate) struct Blog {
    document: Arc<Mutex<String>>,
    is_up: Arc<AtomicBool>,
}

impl Blog {
    pub(crate) fn new(document: String) -> Self {
        Self {
            document: Arc::new(Mutex::new(document)),
            is_up: Arc::new(AtomicBool::new(true)),
        }
    }

    pub(crate) async fn answer(self, mut origin: Origin) {
        while let Some(head) = origin.head().await {
            if !self.is_up.load(Ordering::Relaxed) {
                return;
            }
            let document = self.document.lock().unwrap().clone();
            let (media_type, body) = match head.split(' ').nth(1).unwrap() {
                "/feed.xml" | "/?feed=rss2" => ("text/xml; charset=UTF-8", document),
                _ => ("text/html", "a page".to_owned()),
            };
            let length = body.len();
            let head = format!(
                "HTTP/1.1 200 OK\r\nContent-Type: {media_type}\r\nContent-Length: {length}\r\n"
            );
            origin
                .write(format!(
                    "{head}Last-Modified: Thu, 01 Jan 2026 00:00:00 GMT\r\n\r\n{body}"
                ))
                .await;
        }
    }

    pub(crate) async fn behind(&self, site: &str) -> Sidecar {
        let blog = self.clone();
        let sidecar = Sidecar::start(site, move |_, origin| blog.clone().answer(origin)).await;
        let name = if site.contains("feed=rss2") {
            "site-feed-rss2-1877d22b"
        } else if site.contains("host = ") {
            "old-feed-xml"
        } else {
            "site-feed-xml"
        };
        served(&sidecar, name).await;
        sidecar
    }
}

/// Waits until a feed is served.
async fn served(sidecar: &Sidecar, name: &str) {
    sidecar.answers(&format!("/feeds/{name}.json"), 200).await;
}

pub(crate) fn body(answer: &str) -> &str {
    answer.split_once("\r\n\r\n").map_or("", |(_, body)| body)
}

/// The value of a header of an answer.
pub(crate) fn header<'a>(answer: &'a str, name: &str) -> &'a str {
    let head = answer.split("\r\n\r\n").next().unwrap_or_default();
    let found = head
        .lines()
        .find(|line| line.to_lowercase().starts_with(&format!("{name}: ")));
    found.map_or("", |line| &line[name.len() + 2..])
}

#[tokio::test]
async fn plain_readers_get_the_old_document_with_our_links_also_while_the_origin_is_down() {
    let blog = Blog::new(format!("{BEFORE}{AFTER}"));
    let sidecar = blog.behind("feeds = [\"/feed.xml\"]").await;
    let got = sidecar.get("/feed.xml").await;
    assert_eq!(body(&got), format!("{BEFORE}{LINKS}{CLOUD}{AFTER}"));
    assert_eq!(header(&got, "content-type"), "text/xml; charset=UTF-8");
    assert_eq!(
        header(&got, "link"),
        "<http://blog.example/feed.xml>; rel=\"self\", <http://blog.example/hub>; rel=\"hub\""
    );
    assert_eq!(
        header(&got, "last-modified"),
        "Thu, 01 Jan 2026 00:00:00 GMT"
    );
    let etag = header(&got, "etag");
    let ask = |header: String| {
        sidecar.exchange(format!(
            "GET /feed.xml HTTP/1.1\r\nHost: blog.example\r\n{header}\r\nConnection: close\r\n\r\n"
        ))
    };
    assert!(
        ask(format!("If-None-Match: {etag}"))
            .await
            .starts_with("HTTP/1.1 304 ")
    );
    let same_date = ask("If-Modified-Since: Thu, 01 Jan 2026 00:00:00 GMT".to_owned()).await;
    assert!(same_date.starts_with("HTTP/1.1 304 "), "{same_date}");
    assert!(
        ask("If-None-Match: \"other\"".to_owned())
            .await
            .starts_with("HTTP/1.1 200 ")
    );
    assert!(
        header(
            &ask("Accept-Encoding: gzip".to_owned()).await,
            "content-encoding"
        )
        .contains("gzip")
    );
    assert_eq!(
        sidecar
            .heads()
            .iter()
            .filter(|head| head.contains(" /feed.xml "))
            .count(),
        0,
        "we alone poll"
    );
    blog.is_up.store(false, Ordering::Relaxed);
    assert_eq!(
        body(&sidecar.get("/feed.xml").await),
        format!("{BEFORE}{LINKS}{CLOUD}{AFTER}")
    );
    assert!(sidecar.get("/page").await.starts_with("HTTP/1.1 502 "));
}

#[tokio::test]
async fn a_browser_runs_nothing_of_an_old_document_unless_it_has_a_style_sheet_of_its_own() {
    let blog = Blog::new(format!("{BEFORE}{AFTER}"));
    let sidecar = blog.behind("feeds = [\"/feed.xml\"]").await;
    let guards = |answer: &str| {
        let policy = header(answer, "content-security-policy").to_owned();
        (header(answer, "x-content-type-options").to_owned(), policy)
    };
    let got = sidecar.get("/feed.xml").await;
    let own = guards(&sidecar.get("/feeds/site-feed-xml.rss").await);
    assert!(own.1.starts_with("default-src 'none'"), "{own:?}");
    assert_eq!(guards(&got), own);
    let etag = header(&got, "etag");
    let known = sidecar
        .exchange(format!(
            "GET /feed.xml HTTP/1.1\r\nHost: blog.example\r\nIf-None-Match: {etag}\r\nConnection: close\r\n\r\n"
        ))
        .await;
    assert!(
        known.starts_with("HTTP/1.1 304 ") && guards(&known) == own,
        "{known}"
    );
    assert_eq!(
        guards(&sidecar.get("/page").await),
        (String::new(), String::new()),
        "the blog's own business"
    );
    assert_eq!(
        guards(&sidecar.get("/feed.xml?page=2").await),
        (String::new(), String::new())
    );

    let styled = BEFORE.replace(
        "<rss",
        "<?xml-stylesheet type=\"text/xsl\" href=\"/feed.xsl\"?>\n<rss",
    );
    let blog = Blog::new(format!("{styled}{AFTER}"));
    let sidecar = blog.behind("feeds = [\"/feed.xml\"]").await;
    let got = sidecar.get("/feed.xml").await;
    assert!(got.contains("/feed.xsl"), "{got}");
    assert_eq!(
        guards(&got),
        ("nosniff".to_owned(), String::new()),
        "its own style sheet may work"
    );
}

#[tokio::test]
async fn the_smart_feed_is_at_the_old_address_for_whoever_asks_for_it() {
    let blog = Blog::new(format!("{BEFORE}{AFTER}"));
    let sidecar = blog
        .behind("feeds = [\"/feed.xml\"]\nserve_plain = \"untouched\"")
        .await;
    assert_eq!(
        body(&sidecar.get("/feed.xml").await),
        format!("{BEFORE}{AFTER}")
    );
    let smart = sidecar.get("/feed.xml?since=").await;
    assert!(
        smart.contains("<fo:last_cursor>") || smart.contains("last_cursor"),
        "{smart}"
    );
    assert!(sidecar.get("/feed.xml?callback=f").await.contains("f({"));
    assert!(
        sidecar
            .get("/feed.xml?since=nonsense")
            .await
            .starts_with("HTTP/1.1 400 ")
    );
    let json = "GET /feed.xml HTTP/1.1\r\nHost: blog.example\r\nAccept: application/json\r\nConnection: close\r\n\r\n";
    assert!(sidecar.exchange(json).await.contains("\"One\""));
    for ours in ["max=1", "order=-modified", "order=created&max=5"] {
        let json = json.replace("/feed.xml", &format!("/feed.xml?{ours}"));
        let got = sidecar.exchange(&json).await;
        assert!(
            got.starts_with("HTTP/1.1 200 ") && got.contains("\"One\""),
            "{ours}: {got}"
        );
    }
    let other = json.replace("/feed.xml", "/feed.xml?source=x");
    assert_eq!(body(&sidecar.exchange(other).await), "a page");
    let tracked = json.replace("/feed.xml", "/feed.xml?utm_source=x&max=1");
    assert!(sidecar.exchange(tracked).await.contains("\"One\""));
    for ours in [
        "max=1",
        "order=-modified",
        "deleted=no",
        "has=enclosure&timeout=0",
        "q=one&max=1",
    ] {
        let got = sidecar.get(&format!("/feed.xml?{ours}")).await;
        assert!(
            got.starts_with("HTTP/1.1 200 ") && got.contains("last_cursor"),
            "{ours}: {got}"
        );
    }
    // Parameters that mean nothing here, or may mean something there, are the origin's business.
    for theirs in [
        "source=x",
        "order=DESC",
        "q=one",
        "author=5",
        "category=x&lang=de",
        "max=all",
    ] {
        assert_eq!(
            body(&sidecar.get(&format!("/feed.xml?{theirs}")).await),
            "a page",
            "{theirs}"
        );
    }
}

#[tokio::test]
async fn a_condition_that_is_not_met_is_told_and_the_origins_pages_have_their_own() {
    // RFC 9110 sections 13.1.1, 13.1.4 and 13.2.2: tags of ours are weak, and compared as strong
    // ones.
    let blog = Blog::new(format!("{BEFORE}{AFTER}"));
    let sidecar = blog.behind("feeds = [\"/feed.xml\"]").await;
    let status = async |method: &str, target: &str, lines: &str| {
        let request = format!(
            "{method} {target} HTTP/1.1\r\nHost: blog.example\r\n{lines}\r\nConnection: close\r\n\r\n"
        );
        sidecar.exchange(request).await[9..12].to_owned()
    };
    let etag = header(&sidecar.get("/feed.xml").await, "etag").to_owned();
    let before = "If-Unmodified-Since: Wed, 31 Dec 2025 23:59:59 GMT";
    for target in ["/feed.xml", "/feeds/site-feed-xml.rss"] {
        for (lines, expect) in [
            ("If-Match: *".to_owned(), "200"),
            ("If-Match: \"other\"".to_owned(), "412"),
            (format!("If-Match: {etag}"), "412"),
            (
                format!("If-Match: \"other\"\r\nIf-None-Match: {etag}"),
                "412",
            ),
            (
                "If-Unmodified-Since: Tue, 01 Jan 2999 00:00:00 GMT".to_owned(),
                "200",
            ),
            ("If-Unmodified-Since: nonsense".to_owned(), "200"),
            (format!("If-Match: *\r\n{before}"), "200"),
        ] {
            for method in ["GET", "HEAD"] {
                assert_eq!(
                    status(method, target, &lines).await,
                    expect,
                    "{method} {target} {lines}"
                );
            }
        }
    }
    assert_eq!(status("GET", "/feed.xml", before).await, "412");
    assert_eq!(
        status(
            "GET",
            "/feed.xml",
            &format!("{before}\r\nIf-None-Match: {etag}")
        )
        .await,
        "412"
    );
    let same = "If-Unmodified-Since: Thu, 01 Jan 2026 00:00:00 GMT";
    assert_eq!(status("GET", "/feed.xml", same).await, "200");
    assert_eq!(
        status("GET", "/page", &format!("If-Match: \"other\"\r\n{before}")).await,
        "200"
    );
}

#[tokio::test]
async fn parameters_of_trackers_and_an_empty_query_are_no_other_document() {
    let blog = Blog::new(format!("{BEFORE}{AFTER}"));
    let sidecar = blog
        .behind("feeds = [\"/feed.xml\", \"/?feed=rss2\"]")
        .await;
    served(&sidecar, "site-feed-xml").await;
    let document = sidecar.get("/feed.xml").await;
    for same in [
        "?",
        "?utm_source=x&utm_medium=rss",
        "?fbclid=IwAR0",
        "?gclid=1&",
        "?mc_cid=1&mc_eid=2",
    ] {
        assert_eq!(
            body(&sidecar.get(&format!("/feed.xml{same}")).await),
            body(&document),
            "{same}"
        );
    }
    assert!(
        sidecar
            .get("/?feed=rss2&utm_source=x")
            .await
            .contains("rel=\"hub\"")
    );
    assert!(
        sidecar
            .get("/feed.xml?utm_source=x&since=")
            .await
            .contains("last_cursor")
    );
    assert_eq!(sidecar.heads(), [""; 0], "the origin is not asked");
    for other in ["?utm_source=x&page=2", "?ref=x", "?utm=x"] {
        assert_eq!(
            body(&sidecar.get(&format!("/feed.xml{other}")).await),
            "a page",
            "{other}"
        );
    }
}

#[tokio::test]
async fn a_range_of_a_kept_document_is_the_whole_of_it() {
    // RFC 9110 section 14.2: a server may ignore Range.
    let blog = Blog::new(format!("{BEFORE}{AFTER}"));
    let sidecar = blog.behind("feeds = [\"/feed.xml\"]").await;
    let whole = format!("{BEFORE}{LINKS}{CLOUD}{AFTER}");
    for lines in [
        "Range: bytes=0-3",
        "Range: bytes=-5",
        "Range: bytes=999999-",
        "Range: bytes=0-3\r\nIf-Range: \"x\"",
    ] {
        let got = sidecar
            .exchange(format!(
                "GET /feed.xml HTTP/1.1\r\nHost: blog.example\r\n{lines}\r\nConnection: close\r\n\r\n"
            ))
            .await;
        assert!(got.starts_with("HTTP/1.1 200 "), "{got}");
        assert_eq!(
            (body(&got), header(&got, "accept-ranges")),
            (whole.as_str(), "none")
        );
        assert_eq!(header(&got, "content-range"), "");
    }
}

#[tokio::test]
async fn events_are_at_the_old_address_for_whoever_listens() {
    let blog = Blog::new(format!("{BEFORE}{AFTER}"));
    let sidecar = blog.behind("feeds = [\"/feed.xml\"]").await;
    let newest = sidecar
        .get("/feeds/site-feed-xml.json?order=-modified&max=1")
        .await;
    let cursor = newest
        .split("\"last_cursor\":\"")
        .nth(1)
        .and_then(|rest| rest.split('"').next())
        .unwrap();
    let listen = async |target: &str, header: String| {
        let mut wire = sidecar.connect().await;
        let head = format!(
            "GET {target} HTTP/1.1\r\nHost: blog.example\r\nAccept: text/event-stream\r\n{header}\r\n"
        );
        wire.write(head).await;
        let head = wire.head().await.unwrap();
        assert!(
            head.starts_with("HTTP/1.1 200 ") && head.contains("text/event-stream"),
            "{head}"
        );
        wire
    };
    let mut old = listen("/feed.xml", String::new()).await;
    assert!(
        old.until("\"One\"")
            .await
            .contains(&format!("id: {cursor}\n"))
    );
    let mut waits = listen("/feed.xml", format!("Last-Event-ID: {cursor}\r\n")).await;
    let mut other = listen(
        &format!("/feed.xml?order=created&since=cursor:{cursor}"),
        String::new(),
    )
    .await;
    let more = AFTER.replace(
        "<item>",
        "<item><guid>2</guid><title>Two</title></item><item>",
    );
    *blog.document.lock().unwrap() = format!("{BEFORE}{more}");
    sidecar.exchange(hint()).await;
    for wire in [&mut waits, &mut other] {
        let told = wire.until("\"Two\"").await;
        assert!(told.contains("data: ") && !told.contains("One"), "{told}");
    }
    let preflight = "OPTIONS /feed.xml HTTP/1.1\r\nHost: blog.example\r\nOrigin: http://reader.example\r\n\
        Access-Control-Request-Method: GET\r\nAccess-Control-Request-Headers: if-none-match\r\nConnection: close\r\n\r\n";
    let allowed = sidecar.exchange(preflight).await;
    assert!(
        allowed.starts_with("HTTP/1.1 200 ")
            && header(&allowed, "access-control-allow-origin") == "*"
    );
    // The end of the server is the end of the stream, in the manner of HTTP: a browser comes again.
    sidecar.app.stop().await.unwrap();
    assert!(waits.rest().await.ends_with("\r\n0\r\n\r\n"));
}

#[tokio::test]
async fn an_old_address_is_as_fresh_as_its_origin_though_nobody_pings() {
    for site in ["", "serve_plain = \"untouched\"\n", "access = \"public\"\n"] {
        let blog = Blog::new(format!("{BEFORE}{AFTER}"));
        let sidecar = blog
            .behind(&format!("feeds = [\"/feed.xml\"]\nfresh_secs = 1\n{site}"))
            .await;
        let before = sidecar.get("/feed.xml").await;
        let etag = header(&before, "etag").to_owned();
        let newer = AFTER.replace(
            "</channel>",
            "<item><guid>9</guid><title>Nine</title></item></channel>",
        );
        *blog.document.lock().unwrap() = format!("{BEFORE}{newer}");
        let read = |condition: String| {
            format!(
                "GET /feed.xml HTTP/1.1\r\nHost: blog.example\r\n{condition}Connection: close\r\n\r\n"
            )
        };
        let conditional = read(format!("If-None-Match: {etag}\r\n"));
        until(
            "the reader gets the new post, who asked for nothing but a change",
            async || {
                let answer = sidecar.exchange(&conditional).await;
                answer.contains("<title>Nine</title>")
            },
        )
        .await;
        assert!(
            sidecar
                .exchange(&read("Range: bytes=0-99999\r\n".into()))
                .await
                .contains("Nine")
        );
        assert!(
            sidecar
                .get("/feeds/site-feed-xml.json")
                .await
                .contains("Nine"),
            "it is in the Smart Feed, too"
        );
        assert_eq!(
            sidecar.heads(),
            [""; 0],
            "the origin was asked by polls alone"
        );
        assert!(
            sidecar.polls()[1].contains("if-modified-since:"),
            "with validators: {:?}",
            sidecar.polls()
        );
    }
}

/// The blog's own word that there is something new.
fn hint() -> String {
    let form = "hub.mode=publish&hub.url=http://blog.example/feed.xml";
    format!(
        "POST /hub HTTP/1.1\r\nHost: blog.example\r\nContent-Type: application/x-www-form-urlencoded\r\n\
         Content-Length: {}\r\nConnection: close\r\n\r\n{form}",
        form.len()
    )
}

#[tokio::test]
async fn a_feed_at_a_query_of_its_own_keeps_it() {
    let blog = Blog::new(format!("{BEFORE}{AFTER}"));
    let sidecar = blog.behind("feeds = [\"/?feed=rss2\"]").await;
    assert!(sidecar.get("/?feed=rss2").await.contains("rel=\"hub\""));
    assert!(
        sidecar
            .get("/?since=&feed=rss2")
            .await
            .contains("last_cursor")
    );
    assert_eq!(body(&sidecar.get("/").await), "a page");
    assert_eq!(body(&sidecar.get("/?feed=atom").await), "a page");
}

#[tokio::test]
async fn the_origin_is_polled_under_the_name_that_readers_know() {
    let blog = Blog::new(format!("{BEFORE}{AFTER}"));
    let sidecar = blog
        .behind("feeds = [\"/feed.xml\"]\nhost = \"old.example\"")
        .await;
    let polls = sidecar.polls();
    assert!(!polls.is_empty());
    for poll in polls {
        assert!(poll.contains("\r\nhost: old.example\r\n"), "{poll}");
        assert!(poll.contains("\r\nx-forwarded-proto: http\r\n"), "{poll}");
    }
    let elsewhere = sidecar.get("/page").await;
    assert!(
        elsewhere.starts_with("HTTP/1.1 404 "),
        "no site of that host: {elsewhere}"
    );
}

/// Headers and body of a delivery.
type Push = (BTreeMap<&'static str, String>, String);

/// Sends a form to a path of ours.
async fn post_form(sidecar: &Sidecar, path: &str, form: &str) -> Answer {
    let headers = [("content-type", "application/x-www-form-urlencoded")];
    ask(sidecar.app.address(), Method::POST, path, &headers, form)
        .await
        .unwrap()
}

/// The first push to a subscriber of `/feed.xml`, after the feed has changed.
async fn push_of(sidecar: &Sidecar, change: impl FnOnce()) -> Push {
    let pushed: Arc<Mutex<Vec<Push>>> = Arc::default();
    let seen = pushed.clone();
    let subscriber = Publisher::of(move |asked| {
        if !asked.is_post() {
            let challenge = asked
                .path()
                .split("hub.challenge=")
                .nth(1)
                .and_then(|rest| rest.split('&').next());
            return testkit::publisher::ok("text/plain", challenge.unwrap_or_default());
        }
        let headers = ["content-type", "link"]
            .map(|name| (name, asked.header(name).to_owned()))
            .into();
        seen.lock()
            .unwrap()
            .push((headers, String::from_utf8_lossy(&asked.body).into_owned()));
        testkit::publisher::ok("text/plain", "")
    })
    .await;
    let form = format!(
        "hub.mode=subscribe&hub.topic=http://blog.example/feed.xml&hub.callback={}",
        subscriber.url("/callback")
    );
    let accepted = post_form(sidecar, "/hub", &form).await;
    assert_eq!(accepted.status, 202, "{accepted:?}");
    until("it is verified", async || {
        let status = client::get(sidecar.app.admin_address(), "/status").await;
        status.text().contains("\"active\": 1")
    })
    .await;
    change();
    let published = post_form(
        sidecar,
        "/hub",
        "hub.mode=publish&hub.url=http://blog.example/feed.xml",
    )
    .await;
    assert_eq!(published.status, 204, "{published:?}");
    until("it is pushed", async || !pushed.lock().unwrap().is_empty()).await;
    pushed.lock().unwrap()[0].clone()
}

#[tokio::test]
async fn whoever_subscribes_to_the_old_address_is_pushed_documents_of_its_format() {
    let blog = Blog::new(format!("{BEFORE}{AFTER}"));
    let sidecar = blog
        .behind("feeds = [\"/feed.xml\"]\n[hub]\ncallbacks_private = true")
        .await;
    let unknown =
        "hub.mode=subscribe&hub.topic=http://blog.example/page&hub.callback=http://127.0.0.1:1/";
    let unknown = post_form(&sidecar, "/hub", unknown).await;
    assert_eq!(unknown.status, 404, "{unknown:?}");
    let more = AFTER.replace(
        "<item>",
        "<item><guid>2</guid><title>Two</title></item><item>",
    );
    let change = || *blog.document.lock().unwrap() = format!("{BEFORE}{more}");
    let (headers, document) = push_of(&sidecar, change).await;
    assert_eq!(
        headers["content-type"],
        "application/rss+xml; charset=utf-8"
    );
    assert_eq!(
        headers["link"],
        "<http://blog.example/feed.xml>; rel=\"self\", <http://blog.example/hub>; rel=\"hub\""
    );
    assert!(
        document.contains("Two") && !document.contains("One"),
        "{document}"
    );
    assert!(
        document.contains("href=\"http://blog.example/feed.xml\""),
        "{document}"
    );
    assert!(
        sidecar.get("/feed.xml").await.contains("Two"),
        "plain readers have it, too"
    );
}

#[tokio::test]
async fn the_feeds_that_the_front_page_names_join_while_it_runs_and_stay_when_it_forgets_them() {
    let rss = format!("{BEFORE}{AFTER}");
    let page = Arc::new(Mutex::new(String::new()));
    let shown = page.clone();
    let up = Arc::new(AtomicBool::new(false));
    let is_up = up.clone();
    let sidecar = Sidecar::start("feeds = \"auto\"", move |_, mut origin| {
        let (rss, shown, is_up) = (rss.clone(), shown.clone(), is_up.clone());
        async move {
            while let Some(head) = origin.head().await {
                if !is_up.load(Ordering::Relaxed) {
                    return;
                }
                let page = shown.lock().unwrap().clone();
                let (status, body) = match head.split(' ').nth(1).unwrap() {
                    "/" => ("200 OK", page),
                    "/rss.xml" | "/comments/feed/" => ("200 OK", rss.clone()),
                    _ => ("404 Not Found", "nothing".to_owned()),
                };
                origin
                    .write(format!(
                        "HTTP/1.1 {status}\r\nContent-Length: {}\r\n\r\n{body}",
                        body.len()
                    ))
                    .await;
            }
        }
    })
    .await;
    let link = |href: &str| format!("<link rel=alternate type=application/rss+xml href='{href}'>");
    *page.lock().unwrap() = [
        "<title>b</title>",
        &link("http://blog.example/comments/feed/"),
        &link("/gone.xml"),
        &link("http://elsewhere.example/rss.xml"),
    ]
    .concat();
    assert!(
        sidecar.get("/feeds").await.contains("\"total\": 0"),
        "{}",
        sidecar.get("/feeds").await
    );
    // The first look has failed: the next one comes by itself.
    up.store(true, Ordering::Relaxed);
    sidecar.answers("/feeds/site-comments-feed.json", 200).await;
    let list = sidecar.get("/feeds").await;
    assert!(
        !list.contains("gone") && !list.contains("elsewhere"),
        "{list}"
    );
    // A poll keeps the document after its items.
    until("its document is kept", async || {
        sidecar.get("/comments/feed/").await.contains("rel=\"hub\"")
    })
    .await;
    let sidecar = sidecar.restart().await;
    up.store(false, Ordering::Relaxed);
    assert!(
        sidecar.get("/comments/feed/").await.contains("rel=\"hub\""),
        "it is remembered without its origin"
    );
    // It counts as configured while nobody serves, too.
    sidecar.app.stop().await.unwrap();
    assert_eq!(
        everfeed::app::beside_store(&sidecar.config, std::path::Path::new("everfeed.toml"))
            .await
            .unwrap()
            .kept
            .len(),
        0
    );
    let refused = everfeed::app::forget(&sidecar.config, "site-comments-feed")
        .await
        .unwrap_err();
    assert!(refused.to_string().contains("configured"), "{refused}");
}

/// Polls a feed now, whatever its publisher asked for.
async fn poll(sidecar: &Sidecar, name: &str) {
    let target = format!("/poll/{name}?now");
    let polled = ask(sidecar.app.admin_address(), Method::POST, &target, &[], "")
        .await
        .unwrap();
    assert_eq!(polled.status, 200, "{polled:?}");
}

#[tokio::test]
async fn a_document_that_is_cut_short_or_empty_does_not_take_the_place_of_a_good_one_at_once() {
    let two = AFTER.replace(
        "</channel>",
        "<item><guid>2</guid><title>Two</title></item></channel>",
    );
    let (good, newer) = (
        format!("{BEFORE}{two}"),
        format!("{BEFORE}<!-- newer -->{two}"),
    );
    let cut = good[..good.find("Two").unwrap()].to_owned();
    let empty = format!("{BEFORE}<title>Old &amp; good</title></channel></rss>");
    let blog = Blog::new(good.clone());
    let sidecar = blog.behind("feeds = [\"/feed.xml\"]").await;
    let shows = async |words: &str| sidecar.get("/feed.xml").await.contains(words);
    for broken in [&cut, &empty] {
        for whole in [&good, &newer] {
            *blog.document.lock().unwrap() = (*whole).clone();
            poll(&sidecar, "site-feed-xml").await;
            *blog.document.lock().unwrap() = broken.clone();
            poll(&sidecar, "site-feed-xml").await;
            assert!(shows("<title>Two</title>").await, "{broken}");
            assert_eq!(shows("newer").await, *whole == newer);
        }
        // Nor is it the next time: documents must agree for a quarter of an hour.
        poll(&sidecar, "site-feed-xml").await;
        assert!(shows("<title>Two</title>").await, "{broken}");
    }
    *blog.document.lock().unwrap() = good;
    poll(&sidecar, "site-feed-xml").await;
    assert!(shows("<title>Two</title>").await);
}

#[tokio::test]
async fn the_feeds_that_a_platform_usually_has_are_found_by_one_request_each() {
    let asked: Arc<Mutex<Vec<String>>> = Arc::default();
    let seen = asked.clone();
    let rss = format!("{BEFORE}{AFTER}");
    let sidecar = Sidecar::start("feeds = \"auto\"", move |_, mut origin| {
        let (rss, seen) = (rss.clone(), seen.clone());
        async move {
            while let Some(head) = origin.head().await {
                let path = head.split(' ').nth(1).unwrap().to_owned();
                let (status, body) = match path.as_str() {
                    "/" => (
                        "200 OK",
                        "<head><meta name=generator content='WordPress 6.4'></head>",
                    ),
                    "/feed/" | "/feed/atom/" | "/?feed=comments-rss2" | "/rss.xml" => {
                        ("200 OK", rss.as_str())
                    }
                    _ => ("404 Not Found", "nothing"),
                };
                seen.lock().unwrap().push(path);
                origin
                    .write(format!(
                        "HTTP/1.1 {status}\r\nContent-Length: {}\r\n\r\n{body}",
                        body.len()
                    ))
                    .await;
            }
        }
    })
    .await;
    until("they are found", async || {
        sidecar.get("/feeds").await.contains("\"total\": 2")
    })
    .await;
    let list = sidecar.get("/feeds").await;
    assert!(
        list.contains("site-feed\"") && list.contains("site-feed-comments-rss2"),
        "{list}"
    );
    let looked: Vec<String> = asked.lock().unwrap().iter().take(4).cloned().collect();
    assert_eq!(
        looked,
        ["/", "/feed/", "/comments/feed/", "/?feed=comments-rss2"]
    );
}

const RDF_ROOT: &str = "<rdf:RDF xmlns:rdf=\"http://www.w3.org/1999/02/22-rdf-syntax-ns#\" xmlns=\"http://purl.org/rss/1.0/\">";

#[tokio::test]
async fn an_old_address_of_any_syntax_has_our_links_and_pushes_that_syntax() {
    let rdf = |items: &str| {
        format!(
            "{RDF_ROOT}<channel rdf:about=\"http://b/\"><title>b</title></channel>{items}</rdf:RDF>"
        )
    };
    let rdf_item = |no: u32| {
        format!(
            "<item rdf:about=\"http://b/{no}\"><title>Post {no}</title><link>http://b/{no}</link></item>"
        )
    };
    let json = |items: &str| {
        format!(
            "{{\"version\": \"https://jsonfeed.org/version/1.1\",\r\n \"title\": \"b\", \"items\": [{items}]}}"
        )
    };
    let json_item = |no: u32| format!("{{\"id\": \"{no}\", \"content_text\": \"Post {no}\"}}");
    let rdf_link = "<atom:link xmlns:atom=\"http://www.w3.org/2005/Atom\" rel=\"hub\" href=\"http://blog.example/hub\"/>";
    let json_link = "\"hubs\":[{\"type\":\"WebSub\",\"url\":\"http://blog.example/hub\"}]";
    let atom = |entries: &str| {
        format!(
            "<feed xmlns=\"http://www.w3.org/2005/Atom\"><id>tag:b,2020:a</id><title>b</title>{entries}</feed>"
        )
    };
    let atom_entry = |no: u32| {
        format!(
            "<entry><id>tag:b,2020:{no}</id><title>Post {no}</title><updated>2026-01-01T00:00:00Z</updated></entry>"
        )
    };
    let atom_link = "rel=\"hub\" href=\"http://blog.example/hub\"";
    let both = [rdf_item(2), rdf_item(1)].concat();
    let cases = [
        (
            rdf(&rdf_item(1)),
            rdf(&both),
            rdf_link,
            "application/rdf+xml; charset=utf-8",
        ),
        (
            atom(&atom_entry(1)),
            atom(&[atom_entry(2), atom_entry(1)].concat()),
            atom_link,
            "application/atom+xml; charset=utf-8",
        ),
        (
            json(&json_item(1)),
            json(&[json_item(2), json_item(1)].join(",")),
            json_link,
            "application/feed+json; charset=utf-8",
        ),
    ];
    for (before, after, link, media_type) in cases {
        let blog = Blog::new(before);
        let sidecar = blog
            .behind("feeds = [\"/feed.xml\"]\n[hub]\ncallbacks_private = true")
            .await;
        let got = sidecar.get("/feed.xml").await;
        assert!(body(&got).contains(link), "{got}");
        assert!(header(&got, "link").contains("rel=\"hub\""), "{got}");
        let (headers, document) =
            push_of(&sidecar, || *blog.document.lock().unwrap() = after).await;
        assert_eq!(headers["content-type"], media_type);
        assert!(
            headers["link"].starts_with("<http://blog.example/feed.xml>; rel=\"self\""),
            "{headers:?}"
        );
        assert!(
            document.contains("Post 2") && !document.contains("Post 1"),
            "{document}"
        );
        // The pushed feed is the one that is read there.
        assert_eq!(
            document.contains("<id>tag:b,2020:a</id>"),
            media_type.contains("atom"),
            "{document}"
        );
    }
}

#[tokio::test]
async fn a_listener_of_rss_cloud_registers_by_the_old_document_and_is_told_of_a_post() {
    let told: Arc<Mutex<Vec<String>>> = Arc::default();
    let seen = told.clone();
    let listener = Publisher::of(move |asked| {
        seen.lock()
            .unwrap()
            .push(String::from_utf8_lossy(&asked.body).into_owned());
        testkit::publisher::ok("text/plain", "")
    })
    .await;
    let before = BEFORE.to_owned()
        + "<cloud domain='old.example' port='80' path='/' registerProcedure='' protocol='http-post'></cloud>";
    let blog = Blog::new(format!("{before}{AFTER}"));
    let sidecar = blog
        .behind("feeds = [\"/feed.xml\"]\n[hub]\ncallbacks_private = true")
        .await;
    let got = sidecar.get("/feed.xml").await;
    assert_eq!(
        body(&got),
        format!("{BEFORE}{LINKS}{CLOUD}{AFTER}"),
        "never two"
    );
    let port = listener
        .url("/")
        .rsplit(':')
        .next()
        .unwrap()
        .trim_end_matches('/')
        .to_owned();
    let form = format!(
        "notifyProcedure=&port={port}&path=/told&protocol=http-post&url1=http://blog.example/feed.xml"
    );
    let answer = post_form(&sidecar, "/pleaseNotify", &form).await;
    assert_eq!(answer.status, 200, "{answer:?}");
    let text = String::from_utf8_lossy(&answer.body).into_owned();
    assert!(text.contains("<notifyResult success=\"true\""), "{text}");
    let notification = "url=http%3A%2F%2Fblog.example%2Ffeed.xml";
    assert_eq!(
        std::mem::take(&mut *told.lock().unwrap()),
        [notification],
        "it was tried"
    );
    let more = AFTER.replace(
        "<item>",
        "<item><guid>2</guid><title>Two</title></item><item>",
    );
    *blog.document.lock().unwrap() = format!("{before}{more}");
    post_form(
        &sidecar,
        "/hub",
        "hub.mode=publish&hub.url=http://blog.example/feed.xml",
    )
    .await;
    until("it is told", async || !told.lock().unwrap().is_empty()).await;
    assert!(
        sidecar.get("/feed.xml").await.contains("Two"),
        "and finds what it is told of"
    );
    assert_eq!(*told.lock().unwrap(), [notification]);
}

#[tokio::test]
async fn without_rss_cloud_the_path_and_the_element_are_the_publishers_own() {
    let own = "<cloud domain='old.example' port='80' path='/' registerProcedure='' protocol='http-post'/>";
    let blog = Blog::new(format!("{BEFORE}{own}{AFTER}"));
    let sidecar = blog
        .behind("feeds = [\"/feed.xml\"]\n[hub]\nrsscloud = false")
        .await;
    assert_eq!(
        body(&sidecar.get("/feed.xml").await),
        format!("{BEFORE}{LINKS}{own}{AFTER}")
    );
    assert_eq!(body(&sidecar.get("/pleaseNotify").await), "a page");
}

#[tokio::test]
async fn no_hub_is_named_for_a_format_that_is_not_pushed() {
    let cdf = "<?xml version=\"1.0\"?><CHANNEL HREF=\"http://b/\"><TITLE>b</TITLE><ITEM HREF=\"http://b/1\"><TITLE>One</TITLE></ITEM></CHANNEL>";
    let sidecar = Blog::new(cdf.to_owned())
        .behind("feeds = [\"/feed.xml\"]")
        .await;
    let got = sidecar.get("/feed.xml").await;
    assert_eq!((body(&got), header(&got, "link")), (cdf, ""));
    let form = "hub.mode=subscribe&hub.topic=http://blog.example/feed.xml&hub.callback=http://reader.example/";
    let refused = post_form(&sidecar, "/hub", form).await;
    assert_eq!(refused.status, 404, "{refused:?}");
    assert!(
        String::from_utf8_lossy(&refused.body).contains("CDF"),
        "{refused:?}"
    );
    let from_origin = Blog::new(format!("{BEFORE}{AFTER}"));
    let sidecar = from_origin
        .behind("feeds = [\"/feed.xml\"]\nserve_plain = \"origin\"")
        .await;
    let got = sidecar.get("/feed.xml").await;
    assert!(
        header(&got, "link").contains("rel=\"hub\"") && body(&got) == format!("{BEFORE}{AFTER}"),
        "{got}"
    );
    // T-3: whoever prefers JSON gets the Smart Feed there.
    assert_eq!(header(&got, "vary"), "accept", "{got}");
}
