//! The specification's JSON-P vectors (D-12).

use everfeed::render::jsonp::{CONTENT_TYPE, is_callback, wrap};
use serde_json::Value;

fn names(vectors: &Value, key: &str) -> Vec<String> {
    let names: Vec<String> = serde_json::from_value(vectors[key].clone()).unwrap();
    assert!(!names.is_empty(), "the vectors have {key}");
    names
}

#[test]
fn names_are_told_apart_as_the_vectors_say() {
    let vectors = &testkit::data::vectors()["jsonp"];
    for name in names(vectors, "valid_callbacks") {
        assert!(is_callback(&name), "{name:?} is valid");
    }
    for name in names(vectors, "invalid_callbacks") {
        assert!(!is_callback(&name), "{name:?} is invalid");
    }
}

#[test]
fn bodies_are_wrapped_as_the_vectors_say() {
    let vectors = &testkit::data::vectors()["jsonp"];
    let bodies = vectors["bodies"].as_array().unwrap();
    assert!(!bodies.is_empty());
    for case in bodies {
        let text = |key: &str| case[key].as_str().unwrap();
        let body = wrap(
            text("callback"),
            "application/json",
            text("payload_json").as_bytes(),
        );
        assert_eq!(String::from_utf8(body).unwrap(), text("expect_body"));
    }
    assert_eq!(vectors["headers"]["Content-Type"], CONTENT_TYPE);
}
