//! A site whose feeds are for its readers alone: at their old addresses, in every spelling of
//! those, and at addresses that nobody told us. The pages stay open. Rows: SF-130, SF-131.

use super::{
    credentials::{PASSWORD, add_user, basic},
    legacy::{AFTER, BEFORE, LINKS, body, header},
    rig::Sidecar,
};
use everfeed::config::Config;
use testkit::wait::until;

/// A blog that takes every spelling of its feed's address for the same, and has it elsewhere, too.
async fn behind(site: &str) -> Sidecar {
    let sidecar = Sidecar::start(site, |_, mut origin| async move {
        while let Some(head) = origin.head().await {
            let target = head.split(' ').nth(1).unwrap().to_lowercase();
            // As a server does behind some rewriting proxy.
            let lower = head.to_lowercase();
            let other = lower.lines().find_map(|line| {
                line.strip_prefix("x-original-url: ")
                    .or(line.strip_prefix("x_rewrite_url: "))
            });
            let target = other.map_or(target, str::to_owned);
            let rss = format!("{BEFORE}{AFTER}");
            let is_form = |line: &str| matches!(line.strip_prefix("content-length: "), Some(length) if length != "0");
            let has_form = lower.lines().any(is_form);
            let (media, body) = match target.as_str() {
                target if target.contains("feed.xml") => ("text/xml; charset=UTF-8", rss.as_str()),
                "/other.rss" => ("application/rss+xml", rss.as_str()),
                "/?feed=rss2" | "/open.xml" | "/open.xml?x=1" | "/" => ("text/html", rss.as_str()),
                "/other" => ("text/xml", rss.as_str()),
                "/form" if has_form => ("text/html", rss.as_str()),
                "/old.txt" => ("text/plain", rss.as_str()),
                "/old.bin" => ("application/octet-stream", rss.as_str()),
                "/old.html" => ("text/html", rss.as_str()),
                "/old.json" => (
                    "application/json",
                    "{\"version\": \"https://jsonfeed.org/version/1\"}",
                ),
                "/data.json" => ("application/json", "{\"version\": 1}"),
                "/parts" => ("multipart/byteranges; boundary=x", rss.as_str()),
                "/photo.png" => ("image/png", "<rss"),
                "/sitemap.xml" => ("text/xml", "<?xml version='1.0'?><urlset/>"),
                _ => ("text/html", "a page"),
            };
            let length = body.len();
            let head = format!(
                "HTTP/1.1 200 OK\r\nContent-Type: {media}\r\nContent-Length: {length}\r\n\r\n"
            );
            origin.write(head + body).await;
        }
    })
    .await;
    add_user(&sidecar, "alice").await;
    add_user(&sidecar, "bob").await;
    until("it is served", async || {
        let page = get(&sidecar, "/feeds/site-feed-xml", "alice").await;
        page.starts_with("HTTP/1.1 200 ")
    })
    .await;
    sidecar
}

async fn ask(sidecar: &Sidecar, method: &str, target: &str, user: &str) -> String {
    let lines = if user.is_empty() {
        String::new()
    } else {
        basic(user, PASSWORD) + "\r\n"
    };
    let request = format!(
        "{method} {target} HTTP/1.1\r\nHost: blog.example\r\n{lines}Connection: close\r\n\r\n"
    );
    sidecar.exchange(request).await
}

async fn get(sidecar: &Sidecar, target: &str, user: &str) -> String {
    ask(sidecar, "GET", target, user).await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_private_feed_of_a_site_is_for_its_readers_in_every_spelling() {
    let sidecar = behind("feeds = [\"/feed.xml\"]\naccess = [\"alice\"]").await;
    let got = get(&sidecar, "/feed.xml", "alice").await;
    assert_eq!(body(&got), format!("{BEFORE}{LINKS}{AFTER}"));
    assert!(
        header(&got, "cache-control").starts_with("private"),
        "{got}"
    );
    assert!(
        get(&sidecar, "/feed.xml?since=", "alice")
            .await
            .contains("last_cursor")
    );
    for spelling in [
        "/feed.xml",
        "/feed.xml?since=&timeout=0",
        "/feed.xml?callback=f",
        "/feed.xml?x=1",
        "/feed.xml/",
        "/Feed.XML",
        "//feed.xml",
        "/./feed.xml",
        "/a/../feed.xml",
        "/%66eed.xml",
        "/feed%2exml",
        "/%2566eed.xml",
        "/feed.xml;v=1",
        "/feed.xml%00",
        "/feed.xml%20",
        "/feed.xml/page/2",
        "/a/%2e%2e/feed.xml",
        "/a%2f..%2ffeed.xml",
        "/\\feed.xml",
        "http://blog.example/feed.xml",
    ] {
        for (user, status) in [("", "401"), ("bob", "404")] {
            let got = get(&sidecar, spelling, user).await;
            assert!(
                got.starts_with(&format!("HTTP/1.1 {status} ")),
                "{spelling} {user}: {got}"
            );
            assert!(!got.contains("One"), "{spelling}");
        }
        // Whoever may read it gets it or nothing, and from here.
        let got = get(&sidecar, spelling, "alice").await;
        assert!(
            matches!(&got[9..12], "200" | "403" | "404"),
            "{spelling}: {got}"
        );
    }
    assert_eq!(&get(&sidecar, "/Feed.xml?x=1", "alice").await[9..12], "200");
    for method in ["POST", "PUT", "PROPFIND", "OPTIONS", "DELETE"] {
        assert_eq!(
            &ask(&sidecar, method, "/feed.xml", "").await[9..12],
            "401",
            "{method}"
        );
        assert_eq!(
            &ask(&sidecar, method, "/feed.xml", "alice").await[9..12],
            "405",
            "{method}"
        );
    }
    assert_eq!(sidecar.heads(), [""; 0], "nothing of that was passed on");
    // Where the origin has the same document, and pages that are none.
    for (other, status) in [
        ("/other.rss", "403"),
        ("/other", "403"),
        ("/old.txt", "403"),
        ("/old.bin", "403"),
        ("/old.html", "403"),
        ("/old.json", "403"),
        ("/parts", "403"),
        ("/data.json", "200"),
        ("/photo.png", "200"),
        ("/sitemap.xml", "200"),
        ("/page", "200"),
    ] {
        assert_eq!(&get(&sidecar, other, "").await[9..12], status, "{other}");
    }
    assert_eq!(
        &ask(&sidecar, "HEAD", "/sitemap.xml", "").await[9..12],
        "200"
    );
    assert!(
        get(&sidecar, "/sitemap.xml", "")
            .await
            .ends_with("<?xml version='1.0'?><urlset/>")
    );
    let list = get(&sidecar, "/feeds", "").await;
    assert!(list.contains("\"total\": 0"), "{list}");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_origin_of_a_private_site_is_asked_for_gzip_by_whoever_takes_it_alone() {
    let sidecar = behind("feeds = [\"/feed.xml\"]\naccess = [\"alice\"]").await;
    for (takes, asked) in [
        ("br, gzip;q=0.5", "gzip"),
        ("*", "gzip"),
        ("gzip;q=0", "identity"),
        ("gzip;q=0, *;q=0.5", "identity"),
        ("br", "identity"),
    ] {
        let before = sidecar.heads().len();
        let request = format!(
            "GET /page HTTP/1.1\r\nHost: blog.example\r\nAccept-Encoding: {takes}\r\nConnection: close\r\n\r\n"
        );
        assert_eq!(&sidecar.exchange(request).await[9..12], "200", "{takes}");
        let head = sidecar.heads()[before].clone();
        assert_eq!(header(&head, "accept-encoding"), asked, "{takes}: {head}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_private_feed_of_an_open_site_is_as_private() {
    let site = "feeds = [\"/feed.xml\"]\n[[feed]]\nname = \"site-feed-xml\"\naccess = \"private\"\nurl = \"ORIGIN/feed.xml\"";
    let sidecar = behind(site).await;
    for (spelling, user, status) in [
        ("/feed.xml", "", "401"),
        ("/FEED.xml", "", "401"),
        ("/feed.xml", "bob", "200"),
        ("/page", "", "200"),
    ] {
        assert_eq!(
            &get(&sidecar, spelling, user).await[9..12],
            status,
            "{spelling} {user}"
        );
    }
    // It may be that feed under another address, for its own readers too.
    for other in [
        "/other.rss",
        "/other",
        "/index.php/feed.xml",
        "/?feed=rss2",
        "/old.html",
        "/old.json",
    ] {
        for user in ["", "bob"] {
            let got = get(&sidecar, other, user).await;
            assert_eq!(&got[9..12], "403", "{other}: {got}");
            assert!(
                !got.contains("One") && got.contains("`feeds` of the [[site]]"),
                "{got}"
            );
        }
    }
    for method in ["POST", "PUT", "PROPFIND"] {
        assert_eq!(
            &ask(&sidecar, method, "/?feed=rss2", "").await[9..12],
            "403",
            "{method}"
        );
    }
    for (page, status) in [
        ("/sitemap.xml", "200"),
        ("/data.json", "200"),
        ("/photo.png", "200"),
    ] {
        assert_eq!(&get(&sidecar, page, "").await[9..12], status, "{page}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_form_in_the_body_of_a_request_for_an_open_feed_gets_no_private_one() {
    // Nothing of the open feed has been read, so that its origin answers.
    let site = "feeds = [\"/feed.xml\", \"/form\"]\n[[feed]]\nname = \"site-feed-xml\"\n\
                access = \"private\"\nurl = \"ORIGIN/feed.xml\"";
    let sidecar = behind(site).await;
    for (form, status, part) in [("", "200", "a page"), ("feed=rss2", "403", "`feeds`")] {
        let length = form.len();
        let request = format!(
            "GET /form HTTP/1.1\r\nHost: blog.example\r\nContent-Type: application/x-www-form-urlencoded\r\n\
             Content-Length: {length}\r\nConnection: close\r\n\r\n{form}"
        );
        let got = sidecar.exchange(request).await;
        assert_eq!(&got[9..12], status, "{form:?}: {got}");
        assert!(
            got.contains(part) && !got.contains("One"),
            "{form:?}: {got}"
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn feeds_that_are_named_pass_at_a_site_with_a_private_one_and_no_header_names_another() {
    let site = "feeds = [\"/feed.xml\", \"/open.xml\"]\nserve_plain = \"rewritten\"\n[[feed]]\nname = \"site-feed-xml\"\n\
                access = \"private\"\nurl = \"ORIGIN/feed.xml\"";
    let sidecar = behind(site).await;
    for (target, status) in [
        ("/open.xml", "200"),
        ("/open.xml?utm_source=x", "200"),
        ("/open.xml?x=1", "403"),
        ("/", "403"),
    ] {
        assert_eq!(&get(&sidecar, target, "").await[9..12], status, "{target}");
    }
    let with = async |lines: &str| {
        let request = format!(
            "GET /page HTTP/1.1\r\nHost: blog.example\r\n{lines}\r\nConnection: close\r\n\r\n"
        );
        let before = sidecar.heads().len();
        let answer = sidecar.exchange(request).await;
        (
            answer,
            sidecar
                .heads()
                .get(before)
                .cloned()
                .unwrap_or_default()
                .to_lowercase(),
        )
    };
    for lines in [
        "X-Original-URL: /feed.xml",
        "X_Rewrite_Url: /feed.xml",
        "x-original-url: /x\r\nX-Original-URL: /feed.xml",
    ] {
        let (answer, head) = with(lines).await;
        assert!(answer.ends_with("a page"), "{lines}: {answer}");
        assert!(!head.contains("feed.xml"), "{head}");
    }
    // What a copy or a part tells of a document, it tells of no feed.
    let (answer, head) =
        with("If-None-Match: \"x\"\r\nIf-Modified-Since: Mon, 01 Jan 2024 00:00:00 GMT\r\nRange: bytes=5-")
            .await;
    assert!(answer.starts_with("HTTP/1.1 200 "), "{answer}");
    assert!(
        !head.contains("\r\nif-") && !head.contains("\r\nrange"),
        "{head}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn another_site_before_the_same_server_holds_a_private_feed_back_too() {
    let site = "feeds = [\"/feed.xml\"]\n[[site]]\nhost = \"b.example\"\norigin = \"ORIGIN\"\nfeeds = [\"/open.xml\"]\n\
                [[feed]]\nname = \"site-feed-xml\"\naccess = \"private\"\nurl = \"ORIGIN/feed.xml\"";
    let sidecar = behind(site).await;
    let at_other = async |target: &str| {
        let request =
            format!("GET {target} HTTP/1.1\r\nHost: b.example\r\nConnection: close\r\n\r\n");
        sidecar.exchange(request).await
    };
    for (target, status) in [
        ("/feed.xml", "403"),
        ("/?feed=rss2", "403"),
        ("/index.php/feed.xml", "403"),
        ("/other.rss", "403"),
        ("/open.xml", "200"),
        ("/page", "200"),
        ("/sitemap.xml", "200"),
    ] {
        let got = at_other(target).await;
        assert_eq!(&got[9..12], status, "{target}: {got}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_site_without_a_private_feed_is_not_touched() {
    let sidecar = behind("feeds = [\"/feed.xml\"]").await;
    let lines = "X-Original-URL: /other.rss\r\nAccept-Encoding: br\r\nIf-None-Match: \"x\"\r\nRange: bytes=0-";
    let request =
        format!("GET /page HTTP/1.1\r\nHost: blog.example\r\n{lines}\r\nConnection: close\r\n\r\n");
    assert!(sidecar.exchange(request).await.contains("One"));
    let head = sidecar.heads().last().unwrap().to_lowercase();
    for line in lines.to_lowercase().split("\r\n") {
        assert!(head.contains(line), "{line}: {head}");
    }
    assert!(get(&sidecar, "/other.rss", "").await.contains("One"));
    // A private feed that is polled at its origin, and is at no address that the site is told of.
    let hidden = "feeds = [\"/feed.xml\"]\n[[feed]]\nname = \"hidden\"\naccess = \"private\"\nurl = \"ORIGIN/?feed=rss2\"";
    let sidecar = behind(hidden).await;
    assert_eq!(&get(&sidecar, "/?feed=rss2", "").await[9..12], "403");
    assert_eq!(&get(&sidecar, "/feed.xml", "").await[9..12], "200");
}

#[test]
fn a_private_feed_at_an_address_of_a_site_that_is_not_told_is_warned_of() {
    let warned = |site: &str, feed: &str| {
        let text = format!(
            "[server]\npublic_url = \"http://blog.example\"\n[[site]]\norigin = \"http://127.0.0.1:8081\"\n{site}\n\
             [[feed]]\nname = \"closed\"\naccess = \"private\"\n{feed}\n"
        );
        let config = Config::parse("x", &text).unwrap_or_else(|error| panic!("{error}"));
        config
            .warnings()
            .into_iter()
            .filter(|line| line.starts_with("feed.closed.access"))
            .collect::<Vec<_>>()
    };
    let listed = "feeds = [\"/feed.xml\"]";
    let lines = warned(
        listed,
        "url = \"http://blog.example/feed.xml\"\nid_namespace = \"x\"",
    );
    assert_eq!(lines.len(), 1);
    assert!(
        lines[0].contains("http://blog.example/feed.xml")
            && lines[0].contains("http://127.0.0.1:8081/feed.xml")
    );
    let elsewhere = "url = \"http://127.0.0.1:9/x\"\naliases = [\"https://blog.example/feed.xml\"]";
    assert_eq!(warned(listed, elsewhere).len(), 1);
    assert_eq!(
        warned(
            "feeds = \"auto\"",
            "url = \"http://127.0.0.1:8081/feed.xml\""
        )
        .len(),
        1
    );
    // The same server by another name, known or not.
    let spelt = "url = \"http://LOCALHOST.:8081/feed.xml\"";
    assert_eq!(warned(listed, spelt).len(), 1);
    let lines = warned(listed, "url = \"http://the-machine:8081/feed.xml?key=abc\"");
    assert!(
        lines.len() == 1 && lines[0].contains("another name") && !lines[0].contains("abc"),
        "{lines:?}"
    );
    let lines = warned(listed, "url = \"http://127.0.0.1:8081/q.xml?key=abc\"");
    assert!(
        lines.len() == 1 && lines[0].contains("q.xml?key=***") && !lines[0].contains("abc"),
        "{lines:?}"
    );
    for safe in [
        (listed, "url = \"http://127.0.0.1:8081/feed.xml\""),
        (listed, "url = \"http://other.example/feed.xml\""),
        (
            "feeds = [\"/feed.xml\"]\naccess = \"private\"",
            "url = \"http://blog.example/feed.xml\"\nid_namespace = \"x\"",
        ),
    ] {
        assert_eq!(warned(safe.0, safe.1), [""; 0], "{safe:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn who_sees_a_part_gets_it_at_the_old_address_and_never_the_publishers_document() {
    let site = "feeds = [\"/feed.xml\"]\n[[feed]]\nname = \"site-feed-xml\"\nurl = \"ORIGIN/feed.xml\"\n\
        show = [{ access = [\"alice\"], filter = \"\" }, { access = \"public\", filter = \"q=nothing\" }]";
    let sidecar = behind(site).await;
    assert_eq!(
        body(&get(&sidecar, "/feed.xml", "alice").await),
        format!("{BEFORE}{LINKS}{AFTER}")
    );
    for user in ["", "bob"] {
        for target in [
            "/feed.xml",
            "/feed.xml?since=&timeout=0",
            "/feed.xml?max=1&since=cursor:&timeout=0",
            "/Feed.xml",
            "/feed.xml/",
            "//feed.xml",
            "/feed.xml?x=1",
            "/%66eed.xml",
        ] {
            let got = get(&sidecar, target, user).await;
            assert!(!got.contains("One"), "{user} {target}: {got}");
        }
        let part = get(&sidecar, "/feed.xml", user).await;
        assert!(
            part.starts_with("HTTP/1.1 200 ") && body(&part).contains("<rss "),
            "{part}"
        );
        assert!(
            header(&part, "link").starts_with("<http://blog.example/feed.xml>; rel=\"self\""),
            "{part}"
        );
        assert!(
            header(&part, "cache-control").starts_with("private"),
            "{part}"
        );
    }
}
