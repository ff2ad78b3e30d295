//! Validators and what may be kept: a copy is fresh exactly as long as nothing visible has changed.
//!
//! Rows: SF-58, SF-78; D-11, D-26; LEGACY T-1, T-2.

use super::rig::{Answer, ROOT, Site};
use crate::{
    readers::{
        self,
        testing::{add, edit},
    },
    serve::Config,
};
use std::time::Duration;

const VIEWS: [&str; 7] = [
    "/feeds/blog",
    "/feeds/blog.atom",
    "/feeds/blog.json?order=created",
    "/feeds/blog.json?max=2",
    "/feeds/blog/classic.atom",
    "/feeds/blog/classic.rss",
    "/feeds/blog/classic.html",
];

/// Headers that a 304 repeats (RFC 9110 section 15.4.5), and Link, by which a subscriber finds the
/// hub.
const KEPT: [&str; 7] = [
    "etag",
    "last-modified",
    "vary",
    "cache-control",
    "link",
    "access-control-allow-origin",
    "access-control-expose-headers",
];

fn assert_not_modified(answer: &Answer, full: &Answer) {
    assert_eq!((answer.status, answer.body.len()), (304, 0));
    for name in KEPT {
        assert_eq!(answer.header(name), full.header(name), "{name}");
    }
    for name in ["content-type", "content-encoding"] {
        assert_eq!(answer.header(name), "", "{name}");
    }
    // A browser would take another one for that of its copy.
    let policy = answer.header("content-security-policy");
    assert!(
        policy.is_empty() || policy == full.header("content-security-policy"),
        "{policy}"
    );
}

#[tokio::test(start_paused = true)]
async fn whoever_has_a_page_is_told_so_by_its_etag() {
    // D-26, T-1.
    let site = Site::of(1..=3).await;
    for view in VIEWS {
        let full = site.get(view).await;
        let tag = full.header("etag").to_owned();
        assert!(
            tag.starts_with("W/\"") && tag.ends_with('"') && !tag.contains([' ', ',']),
            "{tag}"
        );
        let strong = tag.trim_start_matches("W/").to_owned();
        for known in [
            tag.clone(),
            strong.clone(),
            "*".to_owned(),
            format!("\"other\", {tag}"),
            format!("{tag},W/\"other\""),
            format!("  \"a\" ,\t{strong}  "),
        ] {
            assert_not_modified(
                &site.get_with(view, &[("if-none-match", &known)]).await,
                &full,
            );
        }
        let lines = [
            ("if-none-match", "\"other\""),
            ("if-none-match", tag.as_str()),
        ];
        assert_not_modified(&site.get_with(view, &lines).await, &full);
        for other in [
            "\"other\"",
            "",
            "W/",
            &tag[..tag.len() - 1],
            &tag.replace('"', ""),
        ] {
            let answer = site.get_with(view, &[("if-none-match", other)]).await;
            assert_eq!(
                (answer.status, answer.body == full.body),
                (200, true),
                "{other}"
            );
        }
    }
}

#[tokio::test(start_paused = true)]
async fn every_visible_change_ends_a_copy_and_no_view_has_the_tag_of_another() {
    let site = Site::of(1..=3).await;
    let tags = async || {
        let mut tags = Vec::new();
        for view in VIEWS.into_iter().filter(|view| !view.contains("max")) {
            tags.push(site.get(view).await.header("etag").to_owned());
        }
        tags
    };
    let before = tags().await;
    // The negotiated URL shows what the Atom URL shows.
    assert_eq!(
        before
            .iter()
            .collect::<std::collections::BTreeSet<_>>()
            .len(),
        before.len() - 1
    );
    assert_eq!(before, tags().await, "nothing changed");
    site.rig.change(vec![edit(2, "edited")]).await;
    let edited = tags().await;
    site.rig.entitle("Another title").await;
    let entitled = tags().await;
    site.rig.change(Vec::new()).await;
    assert_eq!(
        entitled,
        tags().await,
        "a commit of nothing changes nothing"
    );
    for ((before, edited), entitled) in before.iter().zip(&edited).zip(&entitled) {
        assert!(before != edited && edited != entitled && before != entitled);
    }
}

#[tokio::test(start_paused = true)]
async fn lists_and_descriptions_have_validators_and_run_nothing() {
    let site = Site::of(1..=3).await;
    for target in ["/feeds", "/feeds/blog/about"] {
        let full = site.get(target).await;
        assert_eq!(
            (full.status, full.header("x-content-type-options")),
            (200, "nosniff"),
            "{target}"
        );
        assert!(
            full.header("content-security-policy")
                .starts_with("default-src 'none'"),
            "{target}"
        );
        let again = site
            .get_with(target, &[("if-none-match", full.header("etag"))])
            .await;
        assert_not_modified(&again, &full);
        assert_eq!(
            site.get_with(target, &[("if-none-match", "\"other\"")])
                .await
                .status,
            200
        );
    }
    assert_eq!(site.get("/feeds?max=none").await.status, 400);
    let none_after = site.get("/feeds?after=blog").await.json();
    assert_eq!(
        (
            &none_after["total"],
            none_after["feeds"].as_array().unwrap().len()
        ),
        (&1.into(), 0)
    );
    let feed = site.get("/feeds/blog.atom?since=cursor:&timeout=0").await;
    assert_eq!(feed.header("x-content-type-options"), "nosniff");
    assert!(feed.header("content-security-policy").contains("sandbox"));
}

#[tokio::test(start_paused = true)]
async fn a_copy_from_under_another_configuration_is_not_fresh() {
    let tag = async |setting: Config| {
        let site = Site::set(setting).await;
        site.rig.change((1..=3).map(add).collect()).await;
        site.get(&format!("{}/feeds/blog/classic.rss", setting_prefix(&site)))
            .await
            .header("etag")
            .to_owned()
    };
    let usual = tag(Config::default()).await;
    assert_eq!(
        usual,
        tag(Config::default()).await,
        "a restart keeps copies fresh"
    );
    assert_ne!(
        usual,
        tag(Config {
            prefix: "/moved".to_owned(),
            ..Config::default()
        })
        .await
    );
    let shorter = readers::Config {
        classic_items: 2,
        ..readers::Config::default()
    };
    assert_ne!(
        usual,
        tag(Config {
            readers: shorter,
            ..Config::default()
        })
        .await
    );
}

fn setting_prefix(site: &Site) -> String {
    let hub = site.rig.readers.site().hub();
    hub.trim_start_matches(ROOT)
        .trim_end_matches("/hub")
        .to_owned()
}

#[tokio::test(start_paused = true)]
async fn dates_validate_once_their_second_is_over() {
    // T-2.
    let site = Site::of(1..=3).await;
    let view = "/feeds/blog.atom";
    assert_eq!(
        site.get(view).await.header("last-modified"),
        "",
        "another change may still carry this date"
    );
    tokio::time::advance(Duration::from_secs(1)).await;
    let full = site.get(view).await;
    assert_eq!(
        full.header("last-modified"),
        "Mon, 01 Jun 2026 00:00:00 GMT"
    );
    let since = async |date: &str| site.get_with(view, &[("if-modified-since", date)]).await;
    assert_not_modified(&since("Mon, 01 Jun 2026 00:00:00 GMT").await, &full);
    assert_not_modified(&since("Monday, 01-Jun-26 00:00:09 GMT").await, &full);
    for date in [
        "Sun, 31 May 2026 23:59:59 GMT",
        "yesterday",
        "",
        "2026-06-01T00:00:00Z",
    ] {
        assert_eq!(since(date).await.status, 200, "{date}");
    }
    tokio::time::advance(Duration::from_secs(60)).await;
    site.rig.entitle("Another title").await;
    assert_eq!(
        since("Mon, 01 Jun 2026 00:00:00 GMT").await.status,
        200,
        "what a feed says of itself counts"
    );
    tokio::time::advance(Duration::from_secs(1)).await;
    for view in VIEWS {
        assert_eq!(
            site.get(view).await.header("last-modified"),
            "Mon, 01 Jun 2026 00:01:01 GMT",
            "{view}"
        );
    }
    let both = [
        ("if-none-match", "\"other\""),
        ("if-modified-since", "Mon, 01 Jun 2026 00:00:00 GMT"),
    ];
    assert_eq!(
        site.get_with(view, &both).await.status,
        200,
        "the tag goes before the date"
    );
}

#[tokio::test(start_paused = true)]
async fn an_answer_to_one_request_is_kept_by_nobody() {
    // D-26, D-11.
    let site = Site::of(1..=3).await;
    for query in [
        "since=cursor:",
        "until=time:2030-01-01",
        "timeout=0",
        "callback=cb",
        "since=time:2020-01-01&max=1",
    ] {
        for form in ["atom", "json"] {
            let target = format!("/feeds/blog.{form}?{query}");
            let answer = site
                .get_with(
                    &target,
                    &[
                        ("if-none-match", "*"),
                        ("if-modified-since", "Tue, 02 Jun 2026 00:00:00 GMT"),
                    ],
                )
                .await;
            assert_eq!(
                (answer.status, answer.header("cache-control")),
                (200, "no-store"),
                "{target}"
            );
            assert_eq!(
                (answer.header("etag"), answer.header("last-modified")),
                ("", "")
            );
            assert!(!answer.header("link").is_empty());
        }
    }
    assert_eq!(
        site.get("/feeds/blog.json?max=2&order=created")
            .await
            .header("cache-control"),
        "no-cache"
    );
}

#[tokio::test(start_paused = true)]
async fn one_link_header_names_self_first_and_then_the_hub() {
    // SF-58, SF-78; DESIGN section 9, PUSH X-2.
    let site = Site::of(1..=3).await;
    for (target, base) in [
        ("/feeds/blog", "/feeds/blog.atom?order=modified"),
        (
            "/feeds/blog.json?order=-created&since=cursor:&max=1&timeout=3",
            "/feeds/blog.json?order=-created",
        ),
        ("/feeds/blog/classic.rss", "/feeds/blog/classic.rss"),
        ("/feeds/blog/classic.atom?x=y", "/feeds/blog/classic.atom"),
    ] {
        let answer = site.get(target).await;
        assert_eq!(
            answer.header("link"),
            format!("<{ROOT}{base}>; rel=\"self\", <{ROOT}/hub>; rel=\"hub\"")
        );
    }
}

#[tokio::test(start_paused = true)]
async fn lists_and_descriptions_have_codings_and_validators_as_pages_have() {
    // T-1..T-3.
    let site = Site::of(1..=3).await;
    let browser = ("accept", "text/html");
    for (target, accept) in [
        ("/feeds", ("accept", "*/*")),
        ("/feeds", browser),
        ("/feeds?q=blog", ("accept", "*/*")),
        ("/feeds.opml", ("accept", "*/*")),
        ("/feeds/blog/about", ("accept", "*/*")),
        ("/feeds/blog/about", browser),
        ("/openapi.json", ("accept", "*/*")),
    ] {
        // Until its second is over, a change may carry the same date.
        assert_eq!(
            site.get_with(target, &[accept])
                .await
                .header("last-modified"),
            "",
            "{target}"
        );
        tokio::time::advance(Duration::from_secs(1)).await;
        let plain = site.get_with(target, &[accept]).await;
        assert!(
            plain.header("vary").ends_with("accept-encoding"),
            "{target}: {}",
            plain.header("vary")
        );
        let mut tags = vec![plain.header("etag").to_owned()];
        for coding in ["gzip", "br", "zstd"] {
            let coded = site
                .get_with(target, &[accept, ("accept-encoding", coding)])
                .await;
            assert_eq!(
                (coded.status, coded.header("content-encoding")),
                (200, coding),
                "{target}"
            );
            assert!(coded.body.len() < plain.body.len(), "{target} {coding}");
            let tag = coded.header("etag").to_owned();
            let fresh = site
                .get_with(
                    target,
                    &[accept, ("accept-encoding", coding), ("if-none-match", &tag)],
                )
                .await;
            assert_not_modified(&fresh, &coded);
            assert!(
                !tags.contains(&tag),
                "a copy in each coding has a tag of its own"
            );
            tags.push(tag);
        }
        let date = plain.header("last-modified");
        assert!(!date.is_empty(), "{target}");
        assert_not_modified(
            &site
                .get_with(target, &[accept, ("if-modified-since", date)])
                .await,
            &plain,
        );
        let other = [
            accept,
            ("if-modified-since", date),
            ("if-none-match", "\"x\""),
        ];
        assert_eq!(
            site.get_with(target, &other).await.status,
            200,
            "the tag goes before the date"
        );
    }
    // What changes has another date, although nothing of the feeds' own dates tells of it.
    let before = site.get("/feeds").await;
    tokio::time::advance(Duration::from_secs(1)).await;
    site.withdraw();
    let since = ("if-modified-since", before.header("last-modified"));
    assert_eq!(site.get_with("/feeds", &[since]).await.status, 200);
}
