//! JSON Feed documents as values.

use crate::{
    feed::item::Item,
    render::{
        document::Audience,
        representation::Representation,
        samples::{Around, bare, gone, live, rendered_with, rich},
    },
};
use everfeed_adapters::{
    Attribute, Body, Category, Element, Enclosure, Entry, Image, Metadata, Node, Person, Text,
    TextKind,
};
use serde_json::{Value, json};
use std::sync::Arc;

fn representation(audience: Audience) -> Representation {
    Representation::with_suffix(audience, "jsonfeed").unwrap()
}

fn page(audience: Audience, items: Vec<Item>, change: impl FnOnce(&mut Around)) -> Value {
    serde_json::from_str(&rendered_with(representation(audience), items, change)).unwrap()
}

fn only(entry: Entry) -> Value {
    page(Audience::Classic, vec![live(1, entry)], |_| {})["items"][0].clone()
}

#[test]
fn a_page_says_what_the_format_demands_and_where_it_stands() {
    // J-1, J-2, J-4, J-7, J-8.
    let document = page(Audience::Full, vec![], |around| {
        around.page.more = true;
        around.links.next = Some("http://127.0.0.1/next".into());
        around.feed.metadata = Arc::new(Metadata {
            authors: vec![Person {
                name: Some("Ann".into()),
                email: Some("a@e.org".into()),
                ..Person::default()
            }],
            language: Some("en-GB".into()),
            image: Some(Image {
                url: "http://example.org/i.png".into(),
                ..Image::default()
            }),
            icon: Some("http://example.org/f.ico".into()),
            ..(*around.feed.metadata).clone()
        });
    });
    let ann = json!({"name": "Ann", "url": "mailto:a@e.org"});
    assert_eq!(
        document,
        json!({
            "version": "https://jsonfeed.org/version/1.1",
            "title": "Old & good",
            "home_page_url": "http://example.org/",
            "feed_url": "http://127.0.0.1/feeds/x.jsonfeed?order=modified",
            "description": "A blog",
            "next_url": "http://127.0.0.1/next",
            "icon": "http://example.org/i.png",
            "favicon": "http://example.org/f.ico",
            "authors": [ann],
            "author": ann,
            "language": "en-GB",
            "hubs": [{"type": "WebSub", "url": "http://127.0.0.1/hub"}],
            "items": [],
            "_everfeed": {
                "about": "http://127.0.0.1/feeds/x/about",
                "id": "urn:uuid:ce131090-7622-5725-96e5-0ac6c19dd563",
                "total": 3,
                "last_cursor": "1389003999_0_2040335985"
            }
        })
    );
}

#[test]
fn ordinary_readers_get_no_position_and_no_tombstone() {
    let document = page(Audience::Classic, vec![gone(3), bare()], |around| {
        around.page.more = true
    });
    assert_eq!(
        document["_everfeed"],
        json!({"about": "http://127.0.0.1/feeds/x/about"})
    );
    assert_eq!(
        document["feed_url"],
        "http://127.0.0.1/feeds/x/classic.jsonfeed"
    );
    assert_eq!(document.get("next_url"), None);
    assert_eq!(
        document["items"],
        json!([{"id": "tag:example.org,2005:2", "content_text": "", "date_modified": "2014-01-06T10:18:49Z"}])
    );
}

#[test]
fn a_tombstone_is_no_item_and_stands_in_the_extension() {
    // J-3, D-13.
    let document = page(Audience::Full, vec![gone(3)], |around| {
        around.prev_cursor = Some("1_0_2".into())
    });
    assert_eq!(document["items"], json!([]));
    assert_eq!(document["_everfeed"]["prev_cursor"], "1_0_2");
    assert_eq!(
        document["_everfeed"]["deleted"],
        json!([{
            "id": "03030303030303030303", "item_id": "tag:example.org,2005:3", "modified": "2014-01-06T10:18:50Z",
            "created": "2014-01-06T10:18:50Z", "reason": "explicit"
        }])
    );
}

#[test]
fn a_post_keeps_what_the_format_and_the_extension_can_say() {
    let ann = json!({"name": "Ann", "url": "http://example.org/Ann"});
    let file = |name: &str| {
        let url = format!("http://example.org/{name}.mp3");
        json!({"url": url, "mime_type": "audio/mpeg", "size_in_bytes": 1234})
    };
    assert_eq!(
        page(Audience::Full, vec![rich()], |_| {})["items"],
        json!([{
            "id": "tag:example.org,2005:1",
            "url": "http://example.org/1?a=b&c=d",
            "external_url": "http://example.org/2",
            "title": "Fish & chips",
            "content_html": "<p>hi &amp; bye</p>",
            "summary": "1 < 2",
            "date_published": "2005-11-15T03:22:41Z",
            "date_modified": "2014-01-06T10:18:47Z",
            "authors": [ann],
            "author": ann,
            "tags": ["fish"],
            "language": "en",
            "attachments": [file("a"), file("b")],
            "_everfeed": {
                "id": "01010101010101010101",
                "modified": "2014-01-06T10:18:48Z",
                "created": "2014-01-06T10:18:48Z",
                "contributors": [{"name": "Cal"}],
                "tags": [{"term": "fish", "scheme": "http://example.org/tags", "label": "Fish"}],
                "comments": "http://example.org/1#comments",
                "rights": "© Ann",
                "source": {
                    "id": "tag:example.com,2005:feed", "title": "Elsewhere", "url": "http://example.com/feed"
                },
                "extensions": [{
                    "ns": "http://search.yahoo.com/mrss/", "name": "credit", "attributes": {"role": "author"},
                    "content": "Ann & Bob"
                }]
            }
        }])
    );
}

#[test]
fn plain_text_stays_plain_and_a_summary_alone_is_the_content() {
    let body = |text| {
        Some(Body {
            text,
            ..Body::default()
        })
    };
    let item = only(Entry {
        content: body(Text::plain("1 < 2\n& 3")),
        ..Entry::default()
    });
    assert_eq!(
        (item["content_text"].as_str(), item.get("content_html")),
        (Some("1 < 2\n& 3"), None)
    );
    let item = only(Entry {
        summary: Some(Text::html("<b>x</b>")),
        ..Entry::default()
    });
    assert_eq!(
        (item["content_html"].as_str(), item.get("summary")),
        (Some("<b>x</b>"), None)
    );
    let markdown = Body {
        media_type: Some("text/markdown".into()),
        text: Text::plain("*a*"),
        ..Body::default()
    };
    assert_eq!(
        only(Entry {
            content: Some(markdown),
            ..Entry::default()
        })["content_text"],
        "*a*"
    );
    let bytes = Text {
        kind: TextKind::Base64,
        value: "iVBORw0K".into(),
        ..Text::default()
    };
    let picture = Body {
        media_type: Some("image/png".into()),
        text: bytes,
        ..Body::default()
    };
    assert_eq!(
        only(Entry {
            content: Some(picture),
            ..Entry::default()
        })["content_text"],
        ""
    );
}

#[test]
fn a_tag_without_words_is_none() {
    let category = |term: &str| Category {
        term: term.into(),
        ..Category::default()
    };
    let item = only(Entry {
        categories: vec![category(" "), category(" a ")],
        ..Entry::default()
    });
    assert_eq!(
        (&item["tags"], item.get("_everfeed")),
        (&json!(["a"]), None)
    );
}

#[test]
fn files_have_types_and_the_only_one_has_the_duration() {
    let element = |ns: &str, name: &str, text: &str| Element {
        ns: ns.into(),
        name: name.into(),
        children: vec![Node::Text(text.into())],
        ..Element::default()
    };
    let file = |url: &str| Enclosure {
        url: url.into(),
        ..Enclosure::default()
    };
    let of = |enclosures: Vec<Enclosure>, duration: &str| {
        let foreign = vec![element(
            "http://www.itunes.com/dtds/podcast-1.0.dtd",
            "duration",
            duration,
        )];
        only(Entry {
            enclosures,
            foreign,
            ..Entry::default()
        })["attachments"]
            .clone()
    };
    let duration = |text: &str| {
        of(vec![file("http://e/a")], text)[0]
            .get("duration_in_seconds")
            .cloned()
    };
    assert_eq!(
        of(vec![file("http://e/a"), file("http://e/b")], "7")[0].get("duration_in_seconds"),
        None
    );
    assert_eq!(
        of(vec![file("http://e/a")], "x")[0]["mime_type"],
        "application/octet-stream"
    );
    assert_eq!(duration("90"), Some(json!(90)));
    assert_eq!(duration(" 1:01:05 "), Some(json!(3665)));
    for bad in ["1:2:3:4", "", "a:b", "9999999999:1"] {
        assert_eq!(duration(bad), None, "{bad}");
    }
}

#[test]
fn the_picture_is_what_is_named_as_such_else_the_first_illustration() {
    let attribute = Attribute {
        name: "url".into(),
        value: "http://e/t.png".into(),
        ..Attribute::default()
    };
    let thumbnail = Element {
        ns: "http://search.yahoo.com/mrss/".into(),
        name: "thumbnail".into(),
        attributes: vec![attribute],
        ..Element::default()
    };
    let illustration = Enclosure {
        url: "http://e/i.png".into(),
        is_illustration: true,
        ..Enclosure::default()
    };
    let entry = Entry {
        enclosures: vec![illustration],
        ..Entry::default()
    };
    let item = only(entry.clone());
    assert_eq!(
        (&item["image"], item.get("attachments")),
        (&json!("http://e/i.png"), None)
    );
    assert_eq!(
        only(Entry {
            foreign: vec![thumbnail],
            ..entry
        })["image"],
        "http://e/t.png"
    );
}
