//! Pages of posts: what they hold, and what never gets into them.

use crate::{
    feed::{filter::left_view, item::Item},
    render::{
        document::Audience,
        representation::Representation,
        samples::{bare, gone, live, part, rendered, rendered_with, rich},
    },
};
use everfeed_adapters::{Body, Category, Element, Enclosure, Entry, Metadata, Person, Text};
use std::sync::Arc;

fn representation(audience: Audience) -> Representation {
    Representation::with_suffix(audience, "html").unwrap()
}

#[test]
fn a_page_of_the_smart_feed_leads_to_the_next_and_readers_to_the_newest_posts() {
    let page = rendered_with(representation(Audience::Full), vec![bare()], |around| {
        around.page.more = true;
        around.links.next = Some("http://127.0.0.1/next?a=1&b=2".into());
    });
    for text in [
        r#"<link rel="canonical" href="http://127.0.0.1/feeds/x.html?order=modified"/>"#,
        r#"<link rel="self" href="http://127.0.0.1/feeds/x"/>"#,
        r#"<link rel="hub" href="http://127.0.0.1/hub"/>"#,
        r#"<a href="http://127.0.0.1/feeds">All feeds</a>"#,
        r#"<link rel="next" type="text/html" href="http://127.0.0.1/next?a=1&amp;b=2"/>"#,
        r#"<a rel="next" href="http://127.0.0.1/next?a=1&amp;b=2">Next page</a>"#,
        r#"type="application/rss+xml" title="Newest posts (RSS)" href="http://127.0.0.1/feeds/x/classic.rss"/>"#,
        r#"<a href="http://127.0.0.1/feeds/x/about">About this feed</a>"#,
        r#"<h1 class="p-name title" dir="auto"><a class="u-url" href="http://example.org/">Old &amp; good</a></h1>"#,
        r#"<main class="h-feed">"#,
    ] {
        assert!(page.contains(text), "no {text} in\n{page}");
    }
    assert!(
        !page.contains("x.rss?order"),
        "autodiscovery never leads to the Smart Feed"
    );
    let newest = rendered_with(representation(Audience::Classic), vec![], |around| {
        around.page.more = true
    });
    assert!(
        !newest.contains("rel=\"next\"") && newest.contains("There is nothing here."),
        "{newest}"
    );
}

#[test]
fn a_post_has_the_classes_that_programs_know() {
    let page = rendered(representation(Audience::Classic), vec![rich()]);
    assert_eq!(
        part(&page, "<article", "</article>"),
        [
            r#"<article class="h-entry" lang="en">"#,
            r#"<h2 class="p-name title" dir="auto"><a class="u-url" href="http://example.org/1?a=b&amp;c=d">Fish &amp; chips</a></h2>"#,
            r#"<p class="quiet byline">"#,
            r#"<data class="u-uid" value="tag:example.org,2005:1"></data>"#,
            r#"<time class="dt-published" datetime="2005-11-15T03:22:41Z">2005-11-15 03:22 UTC</time>"#,
            "edited ",
            r#"<time class="dt-updated" datetime="2014-01-06T10:18:47Z">2014-01-06 10:18 UTC</time>"#,
            r#"<a class="p-author h-card" dir="auto" href="http://example.org/Ann">Ann</a>"#,
            r#"<span class="p-category tag" dir="auto">Fish</span>"#,
            r#"<a class="u-comments" href="http://example.org/1#comments">comments</a>"#,
            "</p>",
            r#"<div class="p-summary" dir="auto">1 &lt; 2</div>"#,
            r#"<div class="e-content" dir="auto"><p>hi &amp; bye</p></div>"#,
            r#"<ul class="files">"#,
            "<li>",
            r#"<a class="u-audio" type="audio/mpeg" href="http://example.org/a.mp3">http://example.org/a.mp3</a>"#,
            "</li>",
            "<li>",
            r#"<a class="u-audio" type="audio/mpeg" href="http://example.org/b.mp3">http://example.org/b.mp3</a>"#,
            "</li>",
            "</ul>",
            "</article>",
        ]
        .map(str::trim)
    );
}

#[test]
fn a_post_that_was_edited_says_so_by_its_publisher_or_by_its_version() {
    let page = |item: Item| rendered(representation(Audience::Classic), vec![item]);
    let first = live(1, Entry::default());
    let edited = Item {
        modified: first.modified.plus_secs(60),
        ..first.clone()
    };
    let told = page(edited.clone());
    let at = edited.modified.rfc3339();
    let time = format!("<time datetime=\"{}", &at[..19]);
    assert!(told.contains("edited ") && told.contains(&time), "{told}");
    // Back from a deletion, as it was.
    let back = Item {
        revived: Some(edited.modified),
        ..edited
    };
    for unedited in [first, back] {
        let told = page(unedited);
        assert!(!told.contains("edited "), "{told}");
    }
}

#[test]
fn an_address_has_no_blank_in_it() {
    let file = Enclosure {
        url: "http://example.org/a file.mp3".into(),
        ..Enclosure::default()
    };
    let entry = Entry {
        enclosures: vec![file],
        ..Entry::default()
    };
    let page = rendered(representation(Audience::Classic), vec![live(1, entry)]);
    assert!(
        page.contains(r#"href="http://example.org/a%20file.mp3""#),
        "{page}"
    );
}

#[test]
fn a_deleted_post_is_told_to_those_who_follow_and_to_nobody_else() {
    let page = rendered(representation(Audience::Full), vec![gone(3)]);
    assert!(
        page.contains("<del>tag:example.org,2005:3</del>")
            && page.contains("<code>explicit</code>")
    );
    let page = rendered(representation(Audience::Classic), vec![gone(3)]);
    assert!(!page.contains("2005:3"), "{page}");
    // One that only left a view with a filter is not called deleted.
    let page = rendered(representation(Audience::Full), vec![left_view(&gone(3))]);
    assert!(
        page.contains("2005:3") && !page.contains("<del>") && !page.contains("deleted ·"),
        "{page}"
    );
}

#[test]
fn nothing_of_a_post_runs_loads_or_leaves_its_place() {
    let evil = "<script>alert(1)</script>\"'><img src=x onerror=alert(2)></article></main><style>*{}</style>\
                <base href='//evil'><meta http-equiv=refresh content='0;url=//evil'><form action=//evil><input>\
                <iframe src=//evil></iframe><a href='javascript:alert(3)'>x</a><svg onload=alert(4)>";
    let text = || Some(Text::html(evil));
    let entry = Entry {
        title: text(),
        summary: text(),
        content: Some(Body {
            text: Text::html(evil),
            ..Body::default()
        }),
        rights: text(),
        authors: vec![Person {
            name: Some(evil.into()),
            uri: Some("javascript:alert(5)".into()),
            ..Person::default()
        }],
        categories: vec![Category {
            term: evil.into(),
            ..Category::default()
        }],
        comments: Some("javascript:alert(6)".into()),
        enclosures: vec![Enclosure {
            url: "javascript:alert(7)".into(),
            title: Some(evil.into()),
            media_type: Some(evil.into()),
            ..Enclosure::default()
        }],
        language: Some("en\" onload=\"x".into()),
        foreign: vec![Element {
            name: "script".into(),
            ..Element::default()
        }],
        ..Entry::default()
    };
    let mut item = live(1, entry);
    item.iri = evil.into();
    let page = rendered_with(representation(Audience::Full), vec![item], |around| {
        let language = Some("en\" onload=\"x".into());
        around.feed.metadata = Arc::new(Metadata {
            title: text(),
            description: text(),
            language,
            ..Metadata::default()
        });
    });
    let body = page.split_once("</style>").unwrap().1;
    for absent in [
        "<script",
        "<style",
        "<base",
        "<meta",
        "<form",
        "<input",
        "<iframe",
        "<svg",
        "href=\"javascript",
        "onload=\"x",
    ] {
        assert!(!body.contains(absent), "{absent} in\n{page}");
    }
    assert!(
        !body.contains("<img src=\"x\" onerror") && !body.contains("<img src=x"),
        "{page}"
    );
    assert_eq!(
        (
            page.matches("</main>").count(),
            page.matches("</article>").count()
        ),
        (1, 1),
        "{page}"
    );
}

#[test]
fn a_long_title_has_all_its_words() {
    let title = "word ".repeat(100).trim_end().to_owned() + " last";
    let entry = Entry {
        title: Some(Text::plain(&title)),
        ..Entry::default()
    };
    let page = rendered(representation(Audience::Full), vec![live(1, entry)]);
    assert!(page.contains(&title), "{page}");
}
