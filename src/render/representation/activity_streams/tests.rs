//! ActivityStreams documents, as values and, where the order of fields matters, as text.

use crate::{
    feed::{item::Item, stamp::Stamp},
    render::representation::Representation,
    render::samples::{Around, bare, gone, live, metadata, rendered, rendered_with, rich},
};
use everfeed_adapters::{
    Attribute, Body, Category, Element, Entry, Image, Metadata, Node, Person, Source, Text,
    TextKind,
};
use serde_json::{Value, json};
use std::sync::Arc;

fn page(items: Vec<Item>, change: impl FnOnce(&mut Around)) -> Value {
    serde_json::from_str(&rendered_with(Representation::JSON, items, change)).unwrap()
}

fn only(item: Item) -> Value {
    page(vec![item], |_| {})["items"][0].clone()
}

#[test]
fn a_page_says_where_it_stands_and_how_to_go_on() {
    // SF-49..SF-53, PUSH X-3.
    let document = rendered_with(Representation::JSON, vec![], |around| {
        around.page.more = true;
        around.links.next =
            Some("http://127.0.0.1/feeds/x.json?order=modified&since=cursor%3A1_0_2".into());
    });
    assert_eq!(
        document,
        concat!(
            r#"{"count":0,"totalItems":3,"url":"http://127.0.0.1/feeds/x.json?order=modified","#,
            r#""links":{"hub":["http://127.0.0.1/hub"]},"last_cursor":"1389003999_0_2040335985","#,
            r#""next":"http://127.0.0.1/feeds/x.json?order=modified&since=cursor%3A1_0_2","#,
            r#""feed":{"objectType":"service","id":"urn:uuid:ce131090-7622-5725-96e5-0ac6c19dd563","#,
            r#""displayName":"Old & good","summary":"A blog","url":"http://example.org/"},"items":[]}"#
        )
    );
}

#[test]
fn next_is_named_only_when_there_is_more() {
    // SF-53, SF-84.
    let next = |more, prev: Option<&str>| {
        let page = page(vec![bare()], |around| {
            around.page.more = more;
            around.links.next = Some("http://127.0.0.1/next".into());
            around.prev_cursor = prev.map(str::to_owned);
        });
        (page.get("next").is_some(), page.get("prev_cursor").cloned())
    };
    assert_eq!(next(true, None), (true, None));
    assert_eq!(next(false, None), (false, None));
    assert_eq!(next(true, Some("1_0_2")), (false, Some(json!("1_0_2"))));
}

#[test]
fn a_post_is_an_activity() {
    // SF-55, S-1, SMART_FEEDS "JSON item shape".
    assert_eq!(
        only(rich()),
        json!({
            "id": "01010101010101010101",
            "published": "2005-11-15T03:22:41Z",
            "updated": "2014-01-06T10:18:48Z",
            "modified": "2014-01-06T10:18:48Z",
            "verb": "post",
            "actor": {
                "objectType": "person", "displayName": "Ann", "url": "http://example.org/Ann",
                "email": "ann@example.org"
            },
            "object": {
                "objectType": "article",
                "id": "tag:example.org,2005:1",
                "displayName": "Fish & chips",
                "summary": "1 &lt; 2",
                "content": "<p>hi &amp; bye</p>",
                "url": "http://example.org/1?a=b&c=d",
                "author": {
                    "objectType": "person", "displayName": "Ann", "url": "http://example.org/Ann",
                    "email": "ann@example.org"
                },
                "contributors": [{"objectType": "person", "displayName": "Cal"}],
                "published": "2005-11-15T03:22:41Z",
                "updated": "2014-01-06T10:18:47Z",
                "tags": [{
                    "objectType": "tag", "displayName": "Fish", "term": "fish",
                    "scheme": "http://example.org/tags"
                }],
                "attachments": [
                    {"objectType": "audio", "url": "http://example.org/a.mp3", "mimeType": "audio/mpeg", "length": 1234},
                    {"objectType": "audio", "url": "http://example.org/b.mp3", "mimeType": "audio/mpeg", "length": 1234}
                ],
                "replies": {"url": "http://example.org/1#comments"},
                "rights": "© Ann",
                "language": "en",
                "source": {
                    "id": "tag:example.com,2005:feed", "displayName": "Elsewhere", "url": "http://example.com/feed"
                },
                "extensions": [{
                    "ns": "http://search.yahoo.com/mrss/", "name": "credit", "attributes": {"role": "author"},
                    "content": "Ann & Bob"
                }]
            },
            "title": "Fish & chips",
            "created": "2014-01-06T10:18:48Z"
        })
    );
}

#[test]
fn a_tombstone_keeps_its_ids_and_says_why() {
    // D-13, DESIGN "Tombstones".
    let expected = json!({
        "id": "03030303030303030303",
        "published": "2014-01-06T10:18:50Z",
        "updated": "2014-01-06T10:18:50Z",
        "modified": "2014-01-06T10:18:50Z",
        "verb": "delete",
        "actor": {
            "objectType": "service", "id": "urn:uuid:ce131090-7622-5725-96e5-0ac6c19dd563",
            "displayName": "Old & good"
        },
        "object": {"objectType": "article", "id": "tag:example.org,2005:3"},
        "created": "2014-01-06T10:18:50Z",
        "deleted": true,
        "reason": "explicit"
    });
    assert_eq!(only(gone(3)), expected);
}

#[test]
fn a_date_that_the_publisher_did_not_give_is_that_of_the_first_sight() {
    let item = only(Item {
        modified: Stamp::from_secs(1_400_000_000),
        ..bare()
    });
    assert_eq!(item["published"], item["created"]);
    assert_eq!(item["modified"], item["updated"]);
    assert_ne!(item["modified"], item["created"]);
    assert_eq!(item["object"].get("published"), None);
}

#[test]
fn a_channel_says_of_itself_what_an_item_would_in_the_same_shape() {
    let element = |name: &str, attributes: Vec<Attribute>, children: Vec<Node>| Element {
        ns: "http://www.itunes.com/dtds/podcast-1.0.dtd".into(),
        prefix: "itunes".into(),
        name: name.into(),
        attributes,
        children,
    };
    let attribute = |name: &str, value: &str| Attribute {
        name: name.into(),
        value: value.into(),
        ..Attribute::default()
    };
    let person = |name: &str| Person {
        name: Some(name.into()),
        ..Person::default()
    };
    let change = |around: &mut Around| {
        around.feed.metadata = Arc::new(Metadata {
            title: Some(Text::plain("Pod")),
            authors: vec![person("Ann"), person("Bob")],
            contributors: vec![person("Cal")],
            categories: vec![Category {
                term: "fish".into(),
                ..Category::default()
            }],
            language: Some("de".into()),
            rights: Some(Text::html("&copy; Ann")),
            image: Some(Image {
                url: "http://example.org/logo.png".into(),
                ..Image::default()
            }),
            icon: Some("javascript:x".into()),
            foreign: vec![
                element("explicit", vec![], vec![Node::Text(" no ".into())]),
                element(
                    "image",
                    vec![attribute("href", "javascript:x"), attribute("title", "A")],
                    vec![],
                ),
                element(
                    "owner",
                    vec![],
                    vec![Node::Element(element(
                        "name",
                        vec![],
                        vec![Node::Text("Ann".into())],
                    ))],
                ),
                Element {
                    name: "ttl".into(),
                    children: vec![Node::Text("5".into())],
                    ..Element::default()
                },
                element("huge", vec![], vec![Node::Text("x".repeat(100_000))]),
            ],
            ..Metadata::default()
        });
    };
    let ns = "http://www.itunes.com/dtds/podcast-1.0.dtd";
    let expect = json!({
        "objectType": "service", "id": "urn:uuid:ce131090-7622-5725-96e5-0ac6c19dd563", "displayName": "Pod",
        "author": {"objectType": "person", "displayName": "Ann"},
        "authors": [{"objectType": "person", "displayName": "Ann"}, {"objectType": "person", "displayName": "Bob"}],
        "contributors": [{"objectType": "person", "displayName": "Cal"}],
        "tags": [{"objectType": "tag", "displayName": "fish"}],
        "rights": "© Ann", "language": "de",
        "image": {"url": "http://example.org/logo.png"},
        "extensions": [
            {"ns": ns, "name": "explicit", "content": "no"},
            {"ns": ns, "name": "image", "attributes": {"title": "A"}},
            {"ns": ns, "name": "owner", "children": [{"ns": ns, "name": "name", "content": "Ann"}]},
        ],
    });
    assert_eq!(page(vec![], change)["feed"], expect);
}

#[test]
fn an_actor_has_no_name_that_only_we_know() {
    for namespace in [
        "127.0.0.1:8081/rss.xml",
        "blog/rss.xml",
        "10.0.0.7/feed",
        "[::1]:81/x",
        "localhost/x",
    ] {
        let told = page(vec![bare(), gone(3)], |around| {
            around.feed.metadata = Arc::default();
            around.feed.ids.namespace = namespace.into();
        });
        for item in told["items"].as_array().unwrap() {
            assert_eq!(item["actor"]["displayName"], "x", "{namespace}");
        }
    }
}

#[test]
fn fields_come_in_the_order_of_the_sample() {
    let document = rendered(Representation::JSON, vec![gone(3)]);
    let fields = [
        "\"id\"",
        "\"published\"",
        "\"updated\"",
        "\"verb\"",
        "\"actor\"",
        "\"object\"",
        "\"created\"",
        "\"deleted\"",
    ];
    let places: Vec<_> = fields.iter().map(|field| document.find(field)).collect();
    assert!(places.is_sorted() && places[0].is_some(), "{places:?}");
}

#[test]
fn a_changed_post_is_an_update() {
    let edited = Item {
        created: Stamp::from_secs(1_389_003_000),
        ..rich()
    };
    assert_eq!(only(edited)["verb"], "update");
}

#[test]
fn the_actor_is_the_author_of_the_entry_else_of_its_source_else_of_its_feed_else_the_feed() {
    // SMART_FEEDS section 1.7.
    let people = |names: &[&str]| {
        let person = |name: &&str| Person {
            name: Some((*name).into()),
            ..Person::default()
        };
        names.iter().map(person).collect::<Vec<_>>()
    };
    let post = |own: &[&str], of_source: &[&str]| {
        let source = Some(Box::new(Source {
            authors: people(of_source),
            ..Source::default()
        }));
        live(
            1,
            Entry {
                authors: people(own),
                source,
                ..Entry::default()
            },
        )
    };
    let actors = |of_feed: &[&str], items: Vec<Item>| {
        let page = page(items, |around| {
            around.feed.metadata = Arc::new(Metadata {
                authors: people(of_feed),
                ..metadata()
            });
        });
        let actor = |item: &Value| {
            let word = |key: &str| item["actor"][key].as_str().unwrap_or_default().to_owned();
            (word("objectType"), word("displayName"))
        };
        page["items"]
            .as_array()
            .unwrap()
            .iter()
            .map(actor)
            .collect::<Vec<_>>()
    };
    let person = |name: &str| ("person".to_owned(), name.to_owned());
    let service = ("service".to_owned(), "Old & good".to_owned());
    let items = || {
        vec![
            post(&["Own", "Two"], &["Src"]),
            post(&[], &["Src"]),
            post(&[], &[]),
            gone(3),
        ]
    };
    assert_eq!(
        actors(&["Ed", "Itor"], items()),
        [person("Own"), person("Src"), person("Ed"), service.clone()]
    );
    assert_eq!(actors(&[], items())[2..], [service.clone(), service]);
}

#[test]
fn content_that_is_only_pointed_to_is_attached() {
    let body = Body {
        src: Some("http://e/a.ogg".into()),
        media_type: Some("audio/ogg".into()),
        ..Body::default()
    };
    let item = only(live(
        1,
        Entry {
            content: Some(body),
            ..Entry::default()
        },
    ));
    assert_eq!(
        item["object"]["attachments"],
        json!([{"objectType": "audio", "url": "http://e/a.ogg", "mimeType": "audio/ogg"}])
    );
    assert_eq!(item["object"].get("content"), None);
}

#[test]
fn content_that_is_no_html_says_what_it_is() {
    let object = |kind, media_type: &str, value: &str| {
        let text = Text {
            kind,
            value: value.into(),
            ..Text::default()
        };
        let body = Body {
            text,
            media_type: Some(media_type.into()),
            ..Body::default()
        };
        only(live(
            1,
            Entry {
                content: Some(body),
                ..Entry::default()
            },
        ))["object"]
            .clone()
    };
    let image = object(TextKind::Base64, "image/png", "iVBORw0K");
    assert_eq!(
        (&image["content"], &image["mimeType"], &image["encoding"]),
        (&json!("iVBORw0K"), &json!("image/png"), &json!("base64"))
    );
    let data = object(TextKind::Plain, "application/json", "{\"a<b\":1}");
    assert_eq!(
        (&data["content"], &data["mimeType"]),
        (&json!("{\"a<b\":1}"), &json!("application/json"))
    );
    assert_eq!(data.get("encoding"), None);
}

#[test]
fn several_authors_are_all_named() {
    let person = |name: &str| Person {
        name: Some(name.into()),
        ..Person::default()
    };
    let entry = Entry {
        authors: vec![Person::default(), person("A"), person("B")],
        ..Entry::default()
    };
    let item = only(live(1, entry));
    assert_eq!(item["actor"]["displayName"], "A");
    assert_eq!(item["object"]["author"]["displayName"], "A");
    assert_eq!(item["object"]["authors"][1]["displayName"], "B");
}
