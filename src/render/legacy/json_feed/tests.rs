//! Links in JSON Feeds: where they go, and that nothing else changes.

use super::super::{LegacyLinks, with_links};
use crate::feed::legacy_document::LegacySyntax;
use everfeed_adapters::{Hints, parse};
use proptest::{collection::vec, prelude::*};

const OWN: &str = "\"http://b.example/f\\\"?a\"";
const HUB: &str = "{\"type\":\"WebSub\",\"url\":\"http://b.example/hub\"}";

fn links() -> LegacyLinks {
    LegacyLinks {
        own: "http://b.example/f\"?a".to_owned(),
        hub: "http://b.example/hub".to_owned(),
        cloud: None,
    }
}

fn rewritten(document: &[u8]) -> Option<String> {
    let out = with_links(document, LegacySyntax::JsonFeed, &links())?;
    Some(String::from_utf8(out).unwrap())
}

fn check(document: &str, expect: &str) {
    assert_eq!(
        rewritten(document.as_bytes()).as_deref(),
        Some(expect),
        "{document}"
    );
    // A document with our links has no use for more.
    assert_eq!(rewritten(expect.as_bytes()).as_deref(), Some(expect));
}

#[test]
fn links_come_behind_the_first_member_or_where_others_are_and_nothing_else_changes() {
    let rest = ",\n \"items\" : [ {\"feed_url\": \"x\", \"hubs\":[], \"t\": \"]}\\\"\"} ], \"n\": -1.5e3 , \"b\":null }\n";
    let version = "\u{feff} {\r\n\t\"version\" : \"https://jsonfeed.org/version/1.1\"";
    check(
        &format!("{version}{rest}"),
        &format!("{version},\"feed_url\":{OWN},\"hubs\":[{HUB}]{rest}"),
    );
    check(
        &format!("{version},\"hubs\": [ ],\"feed_url\" :\"old\"{rest}"),
        &format!("{version},\"hubs\": [{HUB} ],\"feed_url\" :{OWN}{rest}"),
    );
    check(
        &format!(
            "{version},\"feed\\u005furl\":\"old\",\"hubs\":[\n{{\"type\":\"x\",\"url\":\"y\"}},1]{rest}"
        ),
        &format!(
            "{version},\"feed\\u005furl\":{OWN},\"hubs\":[{HUB},\n{{\"type\":\"x\",\"url\":\"y\"}},1]{rest}"
        ),
    );
    // The address and the hub may be the first members, and be ours already in another spelling.
    check(
        "{\"feed_url\":1}",
        &format!("{{\"feed_url\":{OWN},\"hubs\":[{HUB}]}}"),
    );
    check(
        "{ \"hubs\" : null }",
        &format!("{{ \"hubs\" : [{HUB}],\"feed_url\":{OWN} }}"),
    );
    let ours = "{\"feed_url\":\"http:\\/\\/b.example\\/f\\u0022?a\",\"hubs\":[{\"url\":\"http://b.example/hub\",\"type\":\"websub\"}]}";
    check(ours, ours);
}

#[test]
fn members_with_one_name_have_our_links_whichever_of_them_a_reader_takes() {
    check(
        "{\"feed_url\":\"a\",\"hubs\":[],\"feed_url\":\"b\",\"hubs\":[2],\"x\":1,\"x\":2}",
        &format!(
            "{{\"feed_url\":{OWN},\"hubs\":[{HUB}],\"feed_url\":{OWN},\"hubs\":[{HUB},2],\"x\":1,\"x\":2}}"
        ),
    );
    check(
        "{\"a\":1,\"hubs\":\"none\"}",
        &format!("{{\"a\":1,\"feed_url\":{OWN},\"hubs\":\"none\"}}"),
    );
}

#[test]
fn what_is_no_json_stays_as_it_is() {
    let other = [
        "",
        "[]",
        "{}",
        "{\"a\":1",
        "{\"a\" 1}",
        "{\"a\":1,}",
        "{\"a\":[}",
        "\"x\"",
        "{\"a\":",
        "{\"a\":1}x",
        "f({\"a\":1})",
        "{\"a\":\"\n\"}",
        "{'a':1}",
        "{\"a\":01}",
        "// c\n{\"a\":1}",
        "{\"a\":NaN}",
        "\u{feff}\u{feff}{\"a\":1}",
    ];
    for document in other {
        assert_eq!(rewritten(document.as_bytes()), None, "{document}");
    }
    assert_eq!(rewritten(b"{\"a\":\"caf\xe9\"}"), None, "no UTF-8");
    let wide: Vec<u8> = "{\"a\":1}"
        .encode_utf16()
        .flat_map(u16::to_le_bytes)
        .collect();
    assert_eq!(rewritten(&wide), None);
    let deep = format!("{{\"a\":{}1{}}}", "[".repeat(100_000), "]".repeat(100_000));
    assert!(
        rewritten(deep.as_bytes()).is_some(),
        "nesting costs nothing"
    );
}

/// White space of JSON.
fn space() -> impl Strategy<Value = String> {
    "[ \t\r\n]{0,3}"
}

/// A value, spelt in any way.
fn value() -> impl Strategy<Value = String> {
    let leaf = prop_oneof![
        Just("null".to_owned()),
        Just("true".to_owned()),
        "-?(0|[1-9][0-9]{0,18})(\\.[0-9]{1,3})?([eE][+-]?[0-9]{1,2})?",
        text(),
    ];
    leaf.prop_recursive(3, 24, 4, |inner| {
        let element = (space(), inner, space())
            .prop_map(|(a, value, b)| format!("{a}{value}{b}"))
            .boxed();
        let member = (space(), text(), space(), element.clone())
            .prop_map(|(a, n, b, v)| format!("{a}{n}{b}:{v}"));
        prop_oneof![
            vec(element, 0..4).prop_map(|all| format!("[{}]", all.join(","))),
            vec(member, 0..4).prop_map(|all| format!("{{{}}}", all.join(","))),
        ]
    })
}

/// A string, with escapes and what looks like the end of something.
fn text() -> impl Strategy<Value = String> {
    let piece = prop_oneof![
        "[a-z ,:{}\\[\\]é日]{0,6}",
        Just("\\\"".to_owned()),
        Just("\\\\".to_owned()),
        Just("\\u0041".to_owned()),
        Just("\\ud83d\\ude00".to_owned()),
        Just("hubs".to_owned()),
        Just("feed_url".to_owned()),
    ];
    vec(piece, 0..4).prop_map(|pieces| format!("\"{}\"", pieces.concat()))
}

/// An item as a JSON Feed has it.
fn item(no: usize) -> impl Strategy<Value = String> {
    (space(), text(), value()).prop_map(move |(space, text, value)| {
        format!("{{\"id\":\"{no}\",{space}\"content_text\":{text},\"_x\":{value}}}")
    })
}

proptest! {
    #[test]
    fn an_insertion_changes_nothing_else(
        mark in prop_oneof![Just(""), Just("\u{feff}")],
        outside in space(),
        members in vec((text(), space(), value()), 0..5),
        items in (item(1), item(2)),
    ) {
        let members: String = members.iter().map(|(name, space, value)| format!(",{name}{space}:{space}{value}")).collect();
        prop_assume!(!members.contains("\"hubs\"") && !members.contains("\"feed_url\""));
        let head = format!("{mark}{outside}{{{outside}\"version\":\"https://jsonfeed.org/version/1.1\"");
        let tail = format!("{members},\"items\":[{},{}]{outside}}}{outside}", items.0, items.1);
        let document = format!("{head}{tail}");
        let ours = format!(",\"feed_url\":{OWN},\"hubs\":[{HUB}]");
        let out = rewritten(document.as_bytes());
        prop_assert_eq!(out.as_deref(), Some(&*format!("{head}{ours}{tail}")));
        let read = |document: &str| parse(document.as_bytes(), &Hints::default()).unwrap();
        let (before, after) = (read(&document), read(&out.unwrap_or_default()));
        prop_assert_eq!(before.entries.len(), 2);
        prop_assert_eq!(before.entries, after.entries);
        let hubs: Vec<_> = after.metadata.hubs().collect();
        prop_assert_eq!(hubs, ["http://b.example/hub"]);
    }

    #[test]
    fn whatever_stands_in_a_document_it_is_json_afterwards_when_it_was_before(
        members in vec((prop_oneof![Just("\"hubs\"".to_owned()), Just("\"feed_url\"".to_owned()), text()], value()), 1..6),
    ) {
        let members: Vec<_> = members.iter().map(|(name, value)| format!("{name}:{value}")).collect();
        let document = format!("{{{}}}", members.join(","));
        let out = rewritten(document.as_bytes()).unwrap();
        let value: serde_json::Value = serde_json::from_str(&out).unwrap();
        prop_assert_eq!(&value["feed_url"], "http://b.example/f\"?a");
        prop_assert_eq!(rewritten(out.as_bytes()), Some(out));
    }
}
