//! ActivityStreams 2.0 documents as values.

use crate::{
    feed::{item::Item, stamp::Stamp},
    render::{
        document::Audience,
        representation::Representation,
        samples::{Around, bare, gone, rendered_with, rich},
    },
};
use serde_json::{Value, json};

fn page(items: Vec<Item>, change: impl FnOnce(&mut Around)) -> Value {
    let representation = Representation::with_suffix(Audience::Full, "as2").unwrap();
    serde_json::from_str(&rendered_with(representation, items, change)).unwrap()
}

#[test]
fn a_page_is_part_of_the_feed_and_says_how_to_go_on() {
    // S-3.
    let document = page(vec![], |around| {
        around.page.more = true;
        around.links.next = Some("http://127.0.0.1/next".into());
    });
    assert_eq!(
        document,
        json!({
            "@context": [
                "https://www.w3.org/ns/activitystreams", {"fo": "http://fanout.org/protocol/atom#"}
            ],
            "type": "OrderedCollectionPage",
            "partOf": {
                "id": "http://127.0.0.1/feeds/x.as2?order=modified", "type": "OrderedCollection",
                "totalItems": 3, "name": "Old & good", "summary": "A blog", "url": "http://example.org/"
            },
            "next": "http://127.0.0.1/next",
            "fo:last_cursor": "1389003999_0_2040335985",
            "orderedItems": []
        })
    );
}

#[test]
fn a_post_is_created_and_a_version_of_it_has_an_id_of_its_own() {
    let document = page(vec![rich()], |_| {});
    let activity = &document["orderedItems"][0];
    let id = activity["id"].as_str().unwrap();
    assert!(id.starts_with("urn:uuid:"), "{id}");
    let file = |name: &str| {
        json!({
            "type": "Audio", "mediaType": "audio/mpeg", "url": format!("http://example.org/{name}.mp3"),
            "fo:length": 1234
        })
    };
    let ann = json!({"type": "Person", "name": "Ann", "url": "http://example.org/Ann"});
    assert_eq!(
        *activity,
        json!({
            "id": id,
            "type": "Create",
            "published": "2014-01-06T10:18:48Z",
            "actor": ann,
            "object": {
                "@context": {"@language": "en"},
                "id": "tag:example.org,2005:1",
                "type": "Article",
                "name": "Fish & chips",
                "summary": "1 &lt; 2",
                "content": "<p>hi &amp; bye</p>",
                "url": "http://example.org/1?a=b&c=d",
                "attributedTo": [ann],
                "published": "2005-11-15T03:22:41Z",
                "updated": "2014-01-06T10:18:47Z",
                "tag": [{"type": "Object", "name": "Fish"}],
                "attachment": [file("a"), file("b")],
                "replies": {"type": "Collection", "url": "http://example.org/1#comments"}
            },
            "fo:id": "01010101010101010101",
            "fo:created": "2014-01-06T10:18:48Z"
        })
    );
    let edited = Item {
        modified: Stamp::from_secs(1_400_000_000),
        ..rich()
    };
    let edited = &page(vec![edited], |_| {})["orderedItems"][0];
    assert_eq!(
        (edited["type"].as_str(), edited["id"] == activity["id"]),
        (Some("Update"), false)
    );
    assert_eq!(edited["object"]["id"], activity["object"]["id"]);
}

#[test]
fn a_deletion_leaves_a_tombstone() {
    let document = page(vec![gone(3), bare()], |around| {
        around.prev_cursor = Some("1_0_2".into())
    });
    assert_eq!(document["fo:prev_cursor"], "1_0_2");
    let activity = &document["orderedItems"][0];
    assert_eq!(
        (&activity["type"], &activity["fo:reason"]),
        (&json!("Delete"), &json!("explicit"))
    );
    assert_eq!(
        activity["object"],
        json!({
            "id": "tag:example.org,2005:3", "type": "Tombstone", "formerType": "Article",
            "deleted": "2014-01-06T10:18:50Z"
        })
    );
    let service = json!({
        "type": "Service", "id": "urn:uuid:ce131090-7622-5725-96e5-0ac6c19dd563", "name": "Old & good"
    });
    assert_eq!(
        (&activity["actor"], &document["orderedItems"][1]["actor"]),
        (&service, &service)
    );
}
