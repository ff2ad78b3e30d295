//! Which form and coding is sent, and what is said of it.
//!
//! Rows: SF-44, SF-45, SF-47, SF-48, SF-54, SF-58; D-18, D-25.

use super::rig::{ROOT, Site};
use http::Method;
use std::io::Read as _;

const ATOM: &str = "application/atom+xml; charset=utf-8";
const JSON: &str = "application/json; charset=utf-8";

#[tokio::test(start_paused = true)]
async fn every_accept_header_of_the_vectors_is_answered_as_expected() {
    // SF-45, SF-47, SF-48, SF-54; D-18; point 7 of the minimal list.
    let site = Site::of(1..=2).await;
    for case in testkit::data::section("accept") {
        let callback = case["callback"].as_bool().unwrap();
        let target = if callback {
            "/feeds/blog?callback=cb"
        } else {
            "/feeds/blog"
        };
        let headers: Vec<_> = case["accept"]
            .as_str()
            .into_iter()
            .map(|accept| ("accept", accept))
            .collect();
        let answer = site.get_with(target, &headers).await;
        // Browsers get the page for people, of which the vectors know nothing.
        if case["accept"]
            .as_str()
            .is_some_and(|it| it.starts_with("text/html"))
        {
            assert_eq!(
                (
                    answer.status,
                    answer.header("content-type"),
                    answer.header("vary")
                ),
                (200, "text/html; charset=utf-8", "accept, accept-encoding"),
                "{case}"
            );
            continue;
        }
        match case["expect"].as_str() {
            Some(media) if callback => {
                assert_eq!(
                    answer.header("content-type"),
                    "application/javascript; charset=utf-8"
                );
                let opening = if media == "application/json" {
                    "/**/cb({"
                } else {
                    "/**/cb(\""
                };
                assert!(
                    answer.text().starts_with(opening),
                    "{case}: {}",
                    answer.text()
                );
            }
            Some(media) => {
                assert_eq!(
                    (answer.status, answer.header("content-type")),
                    (200, &*format!("{media}; charset=utf-8"))
                );
            }
            None => {
                assert_eq!(
                    (answer.status, answer.header("content-type")),
                    (406, "text/plain; charset=utf-8")
                );
                for media in ["application/atom+xml", "application/json"] {
                    assert!(
                        answer.text().contains(media),
                        "it lists what there is: {}",
                        answer.text()
                    );
                }
            }
        }
        let vary = if answer.status == 406 {
            "accept"
        } else {
            "accept, accept-encoding"
        };
        assert_eq!(answer.header("vary"), vary, "{case}");
    }
}

#[tokio::test(start_paused = true)]
async fn the_negotiated_url_names_the_canonical_one_and_that_one_does_not_negotiate() {
    // SF-44, SF-58; D-18.
    let site = Site::of(1..=2).await;
    let json = site
        .get_with(
            "/feeds/blog?order=created",
            &[("accept", "application/json")],
        )
        .await;
    assert_eq!(
        json.json()["url"],
        format!("{ROOT}/feeds/blog.json?order=created")
    );
    assert!(json.header("link").starts_with(&format!(
        "<{ROOT}/feeds/blog.json?order=created>; rel=\"self\""
    )));
    let atom = site
        .get_with(
            "/feeds/blog.atom",
            &[("accept", "application/json, text/html;q=0")],
        )
        .await;
    assert_eq!(
        (atom.header("content-type"), atom.header("vary")),
        (ATOM, "accept-encoding")
    );
    let json = site
        .get_with("/feeds/blog.json", &[("accept", "application/atom+xml")])
        .await;
    assert_eq!(
        (json.header("content-type"), json.header("vary")),
        (JSON, "accept-encoding")
    );
}

#[tokio::test(start_paused = true)]
async fn a_header_on_several_lines_is_one_list() {
    let site = Site::of(1..=2).await;
    let lines = [("accept", "text/html"), ("accept", "application/json")];
    assert_eq!(
        site.get_with("/feeds/blog", &lines)
            .await
            .header("content-type"),
        JSON
    );
    let lines = [
        ("accept-encoding", "identity;q=0.1"),
        ("accept-encoding", "gzip"),
    ];
    assert_eq!(
        site.get_with("/feeds/blog", &lines)
            .await
            .header("content-encoding"),
        "gzip"
    );
}

#[tokio::test(start_paused = true)]
async fn a_body_travels_in_the_coding_that_is_preferred_and_comes_back_the_same() {
    // LEGACY T-1, T-3.
    let site = Site::of(1..=300).await;
    // The last is large enough to be rendered and compressed on another thread.
    for target in [
        "/feeds/blog.json",
        "/feeds/blog.atom?since=cursor:",
        "/feeds/blog/classic.rss",
        "/feeds/blog.atom?max=300",
    ] {
        let plain = site.get(target).await;
        assert_eq!(plain.header("content-encoding"), "");
        assert!(!target.ends_with("300") || plain.body.len() > 64 << 10);
        let gzip = site
            .get_with(target, &[("accept-encoding", "gzip, deflate")])
            .await;
        let mut back = Vec::new();
        flate2::read::GzDecoder::new(&gzip.body[..])
            .read_to_end(&mut back)
            .unwrap();
        assert_eq!(
            (gzip.header("content-encoding"), back),
            ("gzip", plain.body.to_vec())
        );
        let br = site
            .get_with(target, &[("accept-encoding", "gzip, deflate, br")])
            .await;
        let mut back = Vec::new();
        brotli::Decompressor::new(&br.body[..], 4096)
            .read_to_end(&mut back)
            .unwrap();
        assert_eq!(
            (br.header("content-encoding"), back),
            ("br", plain.body.to_vec())
        );
        let zstd = site
            .get_with(target, &[("accept-encoding", "gzip, zstd")])
            .await;
        let back = zstd::decode_all(&zstd.body[..]).unwrap();
        assert_eq!(
            (zstd.header("content-encoding"), back),
            ("zstd", plain.body.to_vec())
        );
        let all = [("", plain), ("gzip", gzip), ("br", br), ("zstd", zstd)];
        let tags: std::collections::BTreeSet<_> = all
            .iter()
            .map(|(_, answer)| answer.header("etag"))
            .collect();
        assert_eq!(
            tags.len(),
            if target.contains("since") {
                1
            } else {
                all.len()
            },
            "{tags:?}"
        );
        for (coding, answer) in &all {
            assert_eq!(answer.header("vary"), "accept-encoding");
            for tag in tags.iter().filter(|tag| !tag.is_empty()) {
                let headers = [("accept-encoding", *coding), ("if-none-match", *tag)];
                let again = site.get_with(target, &headers).await;
                let is_own = *tag == answer.header("etag");
                assert_eq!(
                    again.status,
                    if is_own { 304 } else { 200 },
                    "{target} {coding} {tag}"
                );
                assert_eq!(again.header("etag"), answer.header("etag"));
            }
        }
    }
}

#[tokio::test(start_paused = true)]
async fn an_error_is_told_in_json_to_whoever_prefers_that() {
    // D-25.
    let site = Site::of(1..=2).await;
    let (text, problem) = ("text/plain; charset=utf-8", "application/problem+json");
    for (accept, is_json) in [
        ("application/json", true),
        ("application/problem+json", true),
        ("*/*", false),
        ("application/atom+xml", false),
        ("text/html, application/xml", false),
    ] {
        for (method, target, status) in [
            (Method::GET, "/feeds/nothing.json", 404),
            (Method::GET, "/feeds/blog.json?max=0", 400),
            (Method::GET, "/feeds/blog.atom?max=0", 400),
            (Method::GET, "/feeds/blog.json?callback=f&max=0", 400),
            (Method::PUT, "/feeds/blog.json", 405),
            (Method::GET, "/nowhere", 404),
            (Method::GET, "/feeds?max=none", 400),
            (Method::POST, "/hub?refuse=1", 400),
        ] {
            let is_json = !target.contains("callback") && (is_json || target.contains(".json"));
            let media = if is_json { problem } else { text };
            let answer = site.ask(method, target, &[("accept", accept)]).await;
            assert_eq!(
                (answer.status, answer.header("content-type")),
                (status, media),
                "{target} {accept}"
            );
            assert_eq!(answer.header("x-content-type-options"), "nosniff");
            if !target.starts_with("/hub") {
                assert_eq!(
                    (answer.header("vary"), answer.header("cache-control")),
                    ("accept", "no-store")
                );
            }
            if is_json {
                // RFC 9457 section 3.1.
                let told: serde_json::Value = serde_json::from_slice(&answer.body).unwrap();
                assert_eq!(
                    (&told["status"], &told["type"]),
                    (&status.into(), &"about:blank".into())
                );
                for member in ["title", "detail"] {
                    let line = told[member].as_str().unwrap();
                    assert!(!line.is_empty() && !line.contains('\n'), "{told}");
                }
            } else {
                assert_eq!(answer.text().lines().count(), 1, "{}", answer.text());
            }
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_form_without_a_place_for_positions_has_them_in_its_headers() {
    // V-3.
    let site = Site::of(1..=5).await;
    let of_page = links_of_page();
    for suffix in ["csv", "tsv", "html"] {
        for query in ["max=2", "max=2&since=cursor:"] {
            let page = site.get(&format!("/feeds/blog.{suffix}?{query}")).await;
            let json = site.page(query).await;
            assert_eq!(
                page.header("smart-feed-last-cursor"),
                json["last_cursor"].as_str().unwrap()
            );
            let next = json["next"]
                .as_str()
                .unwrap()
                .replace(".json?", &format!(".{suffix}?"));
            let own = format!("{ROOT}/feeds/blog.{suffix}?order=modified");
            let own = match suffix {
                "html" => of_page.clone(),
                _ => format!("<{own}>; rel=\"self\", <{ROOT}/hub>; rel=\"hub\""),
            };
            assert_eq!(
                page.header("link"),
                format!("{own}, <{next}>; rel=\"next\"")
            );
            let last = site
                .get(&format!("/feeds/blog.{suffix}?{query}&max=5").replace("max=2&", "&"))
                .await;
            assert_eq!(last.header("link"), own, "there is no next");
        }
    }
    let atom = site.get("/feeds/blog.atom?max=2").await;
    assert_eq!(
        atom.header("smart-feed-last-cursor"),
        "",
        "the document says it"
    );
    assert_eq!(
        site.get("/feeds/blog/classic.html")
            .await
            .header("smart-feed-last-cursor"),
        ""
    );
}

#[tokio::test(start_paused = true)]
async fn a_page_of_posts_may_show_pictures_and_run_nothing() {
    let site = Site::of(1..=2).await;
    for target in [
        "/feeds/blog.html",
        "/feeds/blog/classic.html",
        "/feeds/blog.html?since=cursor:",
    ] {
        let page = site.get(target).await;
        assert_eq!(page.header("content-type"), "text/html; charset=utf-8");
        let policy = page.header("content-security-policy");
        assert!(
            policy.starts_with("default-src 'none'")
                && policy.contains("img-src http: https: data:"),
            "{policy}"
        );
        assert!(
            !policy.contains("script-src") && !policy.contains("unsafe"),
            "{policy}"
        );
    }
    assert!(
        !site
            .get("/feeds/blog.atom")
            .await
            .header("content-security-policy")
            .contains("img-src")
    );
}

/// The `Link` header of the page for people, whatever its order.
fn links_of_page() -> String {
    let formats = [
        ("atom", "application/atom+xml"),
        ("rss", "application/rss+xml"),
        ("jsonfeed", "application/feed+json"),
        ("html", "text/html"),
    ];
    let formats = formats.map(|(suffix, media)| {
        format!(", <{ROOT}/feeds/blog/classic.{suffix}>; rel=\"alternate\"; type=\"{media}\"")
    });
    format!(
        "<{ROOT}/feeds/blog>; rel=\"self\", <{ROOT}/hub>; rel=\"hub\"{}",
        formats.concat()
    )
}

const BROWSER: (&str, &str) = (
    "accept",
    "text/html,application/xhtml+xml,application/xml;q=0.9,image/avif,image/webp,*/*;q=0.8",
);

#[tokio::test(start_paused = true)]
async fn a_browser_gets_the_page_of_a_feed_with_what_changed_last_first() {
    let site = Site::of(1..=5).await;
    let page = site.get_with("/feeds/blog", &[BROWSER]).await;
    assert_eq!(
        (
            page.status,
            page.header("content-type"),
            page.header("vary")
        ),
        (200, "text/html; charset=utf-8", "accept, accept-encoding")
    );
    let next = page.header("link").strip_prefix(&links_of_page());
    assert_eq!(next, Some(""), "{}", page.header("link"));
    for link in [
        format!(r#"<link rel="self" href="{ROOT}/feeds/blog"/>"#),
        format!(r#"<link rel="hub" href="{ROOT}/hub"/>"#),
        format!(r#"href="{ROOT}/feeds/blog/classic.atom"/>"#),
        format!(r#"<link rel="canonical" href="{ROOT}/feeds/blog.html?order=-modified"/>"#),
    ] {
        assert!(page.text().contains(&link), "no {link} in {}", page.text());
    }
    let tag = page.header("etag").to_owned();
    let again = [BROWSER, ("if-none-match", &*tag)];
    assert_eq!(site.get_with("/feeds/blog", &again).await.status, 304);
    let feed = site
        .get_with("/feeds/blog", &[("if-none-match", &*tag)])
        .await;
    assert_eq!((feed.status, feed.header("content-type")), (200, ATOM));
    // What a consumer says of the order counts, and a filter is part of the topic.
    let mirror = site
        .get_with("/feeds/blog?order=created&q=a", &[BROWSER])
        .await;
    let canonical = format!("{ROOT}/feeds/blog.html?order=created&amp;q=a");
    assert!(mirror.text().contains(&canonical), "{}", mirror.text());
    let own = format!("<{ROOT}/feeds/blog?q=a>; rel=\"self\"");
    assert!(mirror.header("link").starts_with(&own), "{own}");
}

#[tokio::test(start_paused = true)]
async fn a_page_is_loaded_again_as_often_as_is_asked() {
    let site = Site::of(1..=2).await;
    for target in ["/feeds", "/feeds/blog"] {
        let page = site
            .get_with(&format!("{target}?refresh=2"), &[BROWSER])
            .await;
        assert_eq!(
            (page.status, page.header("refresh")),
            (200, "2"),
            "{target}"
        );
        let other = site.get(&format!("{target}?refresh=2")).await;
        assert_eq!(
            (other.status, other.header("refresh")),
            (200, ""),
            "{target}"
        );
        assert_eq!(
            site.get_with(target, &[BROWSER]).await.header("refresh"),
            ""
        );
        for bad in [
            "refresh=0",
            "refresh=x",
            "refresh=3601",
            "refresh=1&refresh=2",
        ] {
            let refused = site.get_with(&format!("{target}?{bad}"), &[BROWSER]).await;
            assert_eq!(refused.status, 400, "{target} {bad}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_browser_is_told_of_errors_by_a_page() {
    let site = Site::of(1..=2).await;
    for (method, target, status) in [
        (Method::GET, "/feeds/nothing", 404),
        (Method::GET, "/feeds/nothing.json", 404),
        (Method::GET, "/feeds/blog?max=0", 400),
        (Method::GET, "/feeds/blog/classic.rss?since=cursor:", 400),
        (Method::PUT, "/feeds/blog", 405),
        (Method::GET, "/nowhere", 404),
        (Method::GET, "/feeds?max=%3Cscript%3E", 400),
        (Method::POST, "/hub?refuse=1", 400),
    ] {
        let page = site.ask(method, target, &[BROWSER]).await;
        assert_eq!(
            (page.status, page.header("content-type")),
            (status, "text/html; charset=utf-8"),
            "{target}"
        );
        let text = page.text();
        assert!(text.contains(&format!("<h1>{status} ")), "{text}");
        assert!(
            text.contains(&format!(r#"<a href="{ROOT}/feeds">All feeds</a>"#)),
            "{text}"
        );
        assert!(!text.contains("<script"), "{text}");
        let policy = page.header("content-security-policy");
        assert!(
            policy.starts_with("default-src 'none'; style-src 'sha256-")
                && !policy.contains("script"),
            "{policy}"
        );
    }
    let script = site
        .get_with("/feeds/blog?callback=f&max=0", &[BROWSER])
        .await;
    assert_eq!(script.header("content-type"), "text/plain; charset=utf-8");
    // A page of a feed that is not read yet comes again by itself.
    let waiting = Site::unread()
        .await
        .get_with("/feeds/blog", &[BROWSER])
        .await;
    assert_eq!(
        (waiting.status, waiting.header("refresh")),
        (503, waiting.header("retry-after"))
    );
}
