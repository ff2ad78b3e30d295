//! The links of the pages for people, and what they never do.

use super::{about, error, list};
use crate::{
    feed::{
        record::{Completeness, FeedNo, FeedRecord},
        schedule::{FaultKind, NoAnswerCause, Whose},
        stamp::Stamp,
    },
    render::{
        about::{About, Caps, Origin},
        list::List,
        samples::{feed, link, metadata, site},
    },
};
use everfeed_adapters::{Metadata, Text};
use std::{collections::HashMap, sync::Arc};

fn list_of(feeds: &[FeedRecord]) -> String {
    let reached_at = Some(Stamp::from_secs(1_389_003_000));
    let fresh = Origin {
        reached_at,
        ..Origin::default()
    };
    list_with(feeds, fresh)
}

fn list_with(feeds: &[FeedRecord], origin: Origin) -> String {
    list_of_origins(feeds, feeds.iter().map(|feed| (feed.no, origin)).collect())
}

fn list_of_origins(feeds: &[FeedRecord], origins: HashMap<FeedNo, Origin>) -> String {
    String::from_utf8(list(&List {
        site: &site(),
        feeds: feeds.to_vec(),
        parts: std::collections::HashSet::new(),
        origins,
        total: feeds.len(),
        words: String::new(),
        found: None,
        title: "",
        next: None,
    }))
    .unwrap()
}

fn about_of(feed: &FeedRecord) -> String {
    let caps = Caps {
        max_default: 50,
        max_cap: 1000,
        timeout_default_secs: 55,
        timeout_cap_secs: 300,
    };
    let upstream = Some("http://example.org/index.rdf");
    let about_it = About {
        deleted: None,
        feed,
        is_part: false,
        site: &site(),
        upstream,
        members: None,
        origin: Origin::default(),
        caps,
    };
    String::from_utf8(about(&about_it)).unwrap()
}

#[track_caller]
fn check(page: &str, holds: &[&str]) {
    for text in holds {
        assert!(page.contains(text), "no {text} in\n{page}");
    }
}

#[test]
fn the_list_leads_readers_to_the_classic_views() {
    // C-1.
    let page = list_of(&[feed(metadata())]);
    check(
        &page,
        &[
            r#"<link rel="alternate" type="application/atom+xml" title="Old &amp; good" href="http://127.0.0.1/feeds/x/classic.atom"/>"#,
            r#"<link rel="alternate" type="application/rss+xml" title="Old &amp; good" href="http://127.0.0.1/feeds/x/classic.rss"/>"#,
            r#"<th scope="col">Last change</th>"#,
            r#"<div class="title" dir="auto"><a href="http://127.0.0.1/feeds/x">Old &amp; good</a></div>"#,
            r#"<a href="http://127.0.0.1/feeds/x/classic.rss">RSS</a>"#,
            r#"<a href="http://127.0.0.1/feeds/x/about">About</a>"#,
            "<code>x</code>",
            r#"<td data-column="Posts">3 posts, 1 of them deleted</td>"#,
            "<span>fresh</span>",
            r#"<time datetime="2014-01-06T10:18:47Z">2014-01-06 10:18 UTC</time>"#,
        ],
    );
    let discovered = page.split("</head>").next().unwrap();
    assert!(
        !discovered.contains("x.atom?order"),
        "autodiscovery never leads to the Smart Feed"
    );
}

#[test]
fn titles_run_in_their_own_direction_and_are_no_longer_than_titles() {
    let title = format!("{}end", "long ".repeat(10_000));
    let feed = feed(Metadata {
        title: Some(Text::plain(&title)),
        ..metadata()
    });
    for page in [list_of(std::slice::from_ref(&feed)), about_of(&feed)] {
        assert!(page.contains("class=\"title\" dir=\"auto\""), "{page}");
        assert!(
            page.contains("long long…") && !page.contains("end<") && page.len() < 20_000,
            "{}",
            page.len()
        );
    }
}

#[test]
fn the_list_says_first_what_fails_since_when_and_why_and_names_no_address() {
    let origin = |kind: FaultKind| Origin {
        reached_at: Some(Stamp::from_secs(1_389_003_000)),
        fails_since: Some(Stamp::from_secs(1_389_003_600)),
        fault: Some(kind.public()),
    };
    let silent = FaultKind::NoAnswer {
        whose: Whose::Network,
        reason: "10.0.0.7:8080: connection refused".into(),
        cause: Some(NoAnswerCause::Connect),
    };
    let page = list_with(&[feed(metadata())], origin(silent.clone()));
    check(
        &page,
        &[
            "One feed is remembered here. One below fails.",
            "<h2>Failing</h2>",
            r#"<span class="state">fails</span>"#,
            r#"<time datetime="2014-01-06T10:20:00Z">2014-01-06 10:20 UTC</time>"#,
            r#"<time datetime="2014-01-06T10:10:00Z">2014-01-06 10:10 UTC</time>"#,
            "<div>its server cannot be reached</div>",
        ],
    );
    assert!(
        !page.contains("10.0.0.7") && !page.contains("Others"),
        "{page}"
    );
    let refused = FaultKind::Refused {
        status: 503,
        has_credentials: true,
    };
    let named = |no: u32, name: &str| FeedRecord {
        no: FeedNo(no),
        name: name.to_owned(),
        ..feed(metadata())
    };
    let feeds = [named(1, "a"), named(2, "b"), named(3, "c")];
    let origins = [(FeedNo(2), origin(refused)), (FeedNo(3), origin(silent))];
    let many = list_of_origins(&feeds, origins.into_iter().collect());
    check(
        &many,
        &["2 below fail.", "its server is out of order (503)"],
    );
    let places = [
        "Failing</h2>",
        "<code>b<",
        "<code>c<",
        "Others</h2>",
        "<code>a<",
    ]
    .map(|part| many.find(part).unwrap());
    assert!(places.is_sorted(), "{places:?}");
    assert!(!page.contains("fresh"), "{page}");
    let group = list_with(&[feed(metadata())], Origin::default());
    assert!(
        group.contains("<span>ready</span>") && !group.contains("fail"),
        "nothing is said of an origin that there is not: {group}"
    );
}

#[test]
fn a_page_of_an_error_says_what_is_wrong_and_leads_to_the_list() {
    let list = "http://127.0.0.1/feeds";
    let page = |text: &str, list| String::from_utf8(error("404 Not Found", text, list)).unwrap();
    let told = page("there is <no> such feed", Some(list));
    check(
        &told,
        &[
            "<title>404 Not Found</title>",
            "<h1>404 Not Found</h1>",
            "<p>There is &lt;no&gt; such feed.</p>",
            r#"<nav><a href="http://127.0.0.1/feeds">All feeds</a></nav>"#,
        ],
    );
    let named = page("nothing; http://127.0.0.1/feeds lists them", Some(list));
    check(
        &named,
        &[
            r#"<p>Nothing; <a href="http://127.0.0.1/feeds">http://127.0.0.1/feeds</a> lists them.</p>"#,
        ],
    );
    assert!(!page("gone", None).contains("<a "));
}

#[test]
fn a_feed_that_waits_and_a_list_without_feeds_say_so() {
    let waiting = FeedRecord {
        completeness: Completeness::default(),
        ..feed(Metadata::default())
    };
    check(
        &list_of(&[waiting]),
        &["waiting for its first document", "example.org</a>"],
    );
    check(&list_of(&[]), &["No feed is configured yet."]);
}

#[test]
fn the_page_about_a_feed_says_what_the_description_document_says() {
    // SF-132..SF-134, PUSH X-3.
    check(
        &about_of(&feed(metadata())),
        &[
            r#"<link rel="hub" href="http://127.0.0.1/hub"/>"#,
            r#"<link rel="self" type="text/html" href="http://127.0.0.1/feeds/x/about"/>"#,
            r#"<link rel="alternate" type="application/json" href="http://127.0.0.1/feeds/x/about"/>"#,
            r#"href="http://127.0.0.1/feeds/x.atom?order=modified">/feeds/x.atom?order=modified</a>"#,
            r#"<a href="http://127.0.0.1/feeds/x/classic.rss">RSS</a>"#,
            "stand behind <code>http://127.0.0.1</code>",
            r#"href="http://127.0.0.1/feeds/x""#,
            r#"<a href="http://example.org/index.rdf">"#,
            "positions: cursor, id, time",
            "posts in a page: 50, at most 1000",
            "seconds to wait for news: 55, at most 300",
            "from the first document seen here",
        ],
    );
}

#[test]
fn nothing_from_upstream_becomes_markup_or_a_script() {
    let hostile = Metadata {
        title: Some(Text::plain("<script>alert(1)</script>\"'&")),
        description: Some(Text::html("<img src=x onerror=alert(1)>&lt;script&gt;")),
        links: vec![link("alternate", "javascript:alert(1)")],
        language: Some("en\" onload=\"x".into()),
        ..Metadata::default()
    };
    let feed = FeedRecord {
        metadata: Arc::new(hostile),
        ..feed(Metadata::default())
    };
    for page in [list_of(std::slice::from_ref(&feed)), about_of(&feed)] {
        for absent in ["<script", "<img", "javascript:", "onload"] {
            assert!(!page.contains(absent), "{absent} in\n{page}");
        }
        check(&page, &["&lt;script&gt;alert(1)&lt;/script&gt;"]);
    }
}
