//! The description document and the list, as values.

use super::{About, Caps, Origin, json};
use crate::{
    feed::{absence::WindowEvent, archive::History, record::Gap},
    render::{
        list::{self, List},
        representation::Representation,
        samples::{bare, feed, gone, metadata, rendered, rich, site},
    },
};
use serde_json::{Value, json as value};

const CAPS: Caps = Caps {
    max_default: 50,
    max_cap: 1000,
    timeout_default_secs: 55,
    timeout_cap_secs: 300,
};

#[test]
fn a_feed_states_how_to_reach_it_and_which_positions_it_takes() {
    // SF-132..SF-134, D-1.
    let (mut feed, site) = (feed(metadata()), site());
    feed.completeness.history = History::Complete;
    let about = About {
        deleted: None,
        is_part: false,
        feed: &feed,
        site: &site,
        upstream: Some("http://example.org/index.rdf"),
        members: None,
        origin: Origin::default(),
        caps: CAPS,
    };
    let mut found: Value = serde_json::from_slice(&json(&about)).unwrap();
    let schema = found
        .as_object_mut()
        .unwrap()
        .remove("item_schema")
        .expect("an item is described");
    assert_eq!(schema["properties"]["id"]["type"], "string");
    let filters = found
        .as_object_mut()
        .unwrap()
        .remove("filters")
        .expect("the filters are listed");
    assert_eq!(filters.as_object().unwrap().len(), 6, "{filters}");
    let mirroring = found
        .as_object_mut()
        .unwrap()
        .remove("mirroring")
        .expect("the way to mirror is spelt out");
    assert_eq!(
        mirroring["begin"],
        "http://127.0.0.1/feeds/x.json?order=modified&since=cursor:"
    );
    assert_eq!(
        mirroring["go_on"],
        "http://127.0.0.1/feeds/x.json?order=modified&since=cursor:LAST_CURSOR"
    );
    assert_eq!(
        found,
        value!({
            "name": "x",
            "title": "Old & good",
            "description": "A blog",
            "id": "urn:uuid:ce131090-7622-5725-96e5-0ac6c19dd563",
            "site": "http://example.org/",
            "upstream": "http://example.org/index.rdf",
            "state": "ready",
            "items": 3,
            "live": 2,
            "updated": "2014-01-06T10:18:47Z",
            "history": "complete",
            "access": {
                "http_atom": "http://127.0.0.1/feeds/x.atom?order=modified",
                "http_json": "http://127.0.0.1/feeds/x.json?order=modified",
                "http_rss": "http://127.0.0.1/feeds/x.rss?order=modified",
                "http_jsonfeed": "http://127.0.0.1/feeds/x.jsonfeed?order=modified",
                "http_rdf": "http://127.0.0.1/feeds/x.rdf?order=modified",
                "http_as2": "http://127.0.0.1/feeds/x.as2?order=modified",
                "http_jsonl": "http://127.0.0.1/feeds/x.jsonl?order=modified",
                "http_csv": "http://127.0.0.1/feeds/x.csv?order=modified",
                "http_tsv": "http://127.0.0.1/feeds/x.tsv?order=modified",
                "http_html": "http://127.0.0.1/feeds/x.html?order=modified",
                "http": "http://127.0.0.1/feeds/x",
                "classic_atom": "http://127.0.0.1/feeds/x/classic.atom",
                "classic_rss": "http://127.0.0.1/feeds/x/classic.rss",
                "classic_jsonfeed": "http://127.0.0.1/feeds/x/classic.jsonfeed",
                "classic_rdf": "http://127.0.0.1/feeds/x/classic.rdf",
                "classic_html": "http://127.0.0.1/feeds/x/classic.html",
                "events": "http://127.0.0.1/feeds/x.events",
                "hub": "http://127.0.0.1/hub",
                "about": "http://127.0.0.1/feeds/x/about"
            },
            "orders": {
                "modified": {"positions": ["cursor", "time"]},
                "-modified": {"positions": ["cursor", "time"]},
                "created": {"positions": ["cursor", "id", "time"]},
                "-created": {"positions": ["cursor", "id", "time"]},
                "published": {"positions": ["cursor", "time"]},
                "-published": {"positions": ["cursor", "time"]}
            },
            "default_order": "modified",
            "item_format": {
                "json": "ActivityStreams 1.0",
                "atom": "Atom 1.0 (RFC 4287) + RFC 6721",
                "rss": "RSS 2.0",
                "jsonfeed": "JSON Feed 1.1",
                "rdf": "RSS 1.0 (RDF)",
                "as2": "ActivityStreams 2.0",
                "jsonl": "ActivityStreams 1.0, one activity a line, and the page last",
                "csv": "CSV (RFC 4180)",
                "tsv": "tab-separated values, escaped by \\t, \\n, \\r and \\\\",
                "html": "HTML with h-feed and h-entry"
            },
            "max": {"default": 50, "cap": 1000},
            "timeout": {"default": 55, "cap": 300}
        })
    );
}

/// Checks a value against the part of JSON Schema that the description of an item uses; every key
/// must be described.
fn conforms(value: &Value, schema: &Value, whole: &Value, at: &str) {
    let schema = match schema["$ref"].as_str() {
        Some(reference) => whole
            .pointer(reference.trim_start_matches('#'))
            .expect("it is there"),
        None => schema,
    };
    if let Some(constant) = schema.get("const") {
        assert_eq!(value, constant, "{at}");
    }
    if let Some(values) = schema["enum"].as_array() {
        assert!(values.contains(value), "{at}: {value}");
    }
    match schema["type"].as_str() {
        Some("string") => assert!(value.is_string(), "{at}"),
        Some("integer") => assert!(value.is_u64(), "{at}"),
        Some("array") => {
            let list = value.as_array().unwrap_or_else(|| panic!("{at} is a list"));
            list.iter()
                .for_each(|value| conforms(value, &schema["items"], whole, at));
        }
        Some("object") => {
            let object = value
                .as_object()
                .unwrap_or_else(|| panic!("{at} is an object"));
            for required in schema["required"].as_array().into_iter().flatten() {
                assert!(
                    object.contains_key(required.as_str().unwrap()),
                    "{at} lacks {required}"
                );
            }
            for (key, value) in object {
                let described = schema["properties"]
                    .get(key)
                    .unwrap_or_else(|| panic!("{at}.{key} is described"));
                conforms(value, described, whole, &format!("{at}.{key}"));
            }
        }
        _ => {}
    }
}

#[test]
fn items_are_as_the_schema_describes_them() {
    let (feed, site) = (feed(metadata()), site());
    let about = About {
        deleted: None,
        feed: &feed,
        is_part: false,
        site: &site,
        upstream: None,
        members: None,
        origin: Origin::default(),
        caps: CAPS,
    };
    let described: Value = serde_json::from_slice(&json(&about)).unwrap();
    let schema = &described["item_schema"];
    let page: Value = serde_json::from_str(&rendered(
        Representation::JSON,
        vec![rich(), bare(), gone(3)],
    ))
    .unwrap();
    for item in page["items"].as_array().unwrap() {
        conforms(item, schema, schema, "item");
    }
}

#[test]
fn a_feed_that_waits_for_its_first_document_says_so() {
    let (mut feed, site) = (feed(metadata()), site());
    feed.completeness.first_cursor = None;
    feed.last_t = crate::feed::stamp::Stamp::ZERO;
    let about = About {
        deleted: None,
        feed: &feed,
        is_part: false,
        site: &site,
        upstream: None,
        members: None,
        origin: Origin::default(),
        caps: CAPS,
    };
    let found: Value = serde_json::from_slice(&json(&about)).unwrap();
    assert_eq!(found["state"], "starting");
    assert_eq!(found["history"], "unknown");
    for absent in ["updated", "upstream"] {
        assert_eq!(found.get(absent), None);
    }
    feed.completeness.history =
        History::Partial(crate::feed::history::PartialReason::MissingPage { status: 404 });
    let about = About {
        deleted: None,
        feed: &feed,
        is_part: false,
        site: &site,
        upstream: None,
        members: None,
        origin: Origin::default(),
        caps: CAPS,
    };
    let found: Value = serde_json::from_slice(&json(&about)).unwrap();
    assert_eq!(found["history"], "partial");
    assert_eq!(
        found["history_reason"],
        "a page of the archives is missing (404)"
    );
}

#[test]
fn the_list_names_every_feed_and_the_ways_to_it() {
    let (feeds, site) = ([feed(metadata()), feed(Default::default())], site());
    let list = List {
        site: &site,
        feeds: feeds.to_vec(),
        parts: std::collections::HashSet::new(),
        origins: std::collections::HashMap::new(),
        total: feeds.len(),
        words: String::new(),
        found: None,
        title: "",
        next: None,
    };
    let found: Value = serde_json::from_slice(&list::json(&list)).unwrap();
    assert_eq!(found["url"], "http://127.0.0.1/feeds");
    assert_eq!(found["feeds"].as_array().unwrap().len(), 2);
    let first = &found["feeds"][0];
    assert_eq!(
        (&first["name"], &first["title"]),
        (&value!("x"), &value!("Old & good"))
    );
    assert_eq!(
        (&first["items"], &first["live"], &first["state"]),
        (&value!(3), &value!(2), &value!("ready"))
    );
    assert_eq!(
        first["access"]["classic_rss"],
        "http://127.0.0.1/feeds/x/classic.rss"
    );
}

#[test]
fn a_feed_says_between_which_cursors_posts_may_be_missing() {
    let (mut feed, site) = (feed(metadata()), site());
    let at = crate::feed::stamp::Stamp::from_secs(1_389_003_527);
    let (before, after) = ("1_0_2".to_owned(), "3_0_4".to_owned());
    feed.completeness.gaps = vec![Gap {
        at,
        event: WindowEvent::Gap,
        before,
        after,
    }];
    let about = About {
        deleted: None,
        feed: &feed,
        is_part: false,
        site: &site,
        upstream: None,
        members: None,
        origin: Origin::default(),
        caps: CAPS,
    };
    let found: Value = serde_json::from_slice(&json(&about)).unwrap();
    let expect = value!([{"before": "1_0_2", "after": "3_0_4", "found": "2014-01-06T10:18:47Z"}]);
    assert_eq!(found["gaps"], expect);
    let page = String::from_utf8(crate::render::html::about(&about)).unwrap();
    assert!(
        page.contains("posts between the cursors <code>1_0_2</code> and <code>3_0_4</code>"),
        "{page}"
    );
}
