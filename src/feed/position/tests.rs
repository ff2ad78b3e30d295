//! Every position spec of the vectors.

use super::*;
use serde_json::{Value, json};

fn neutral(parsed: Result<Option<Position>, BadPosition>) -> Value {
    match parsed {
        Ok(None) => json!({"kind": "absent"}),
        Ok(Some(Position::Start { degraded: false })) => json!({"kind": "start"}),
        Ok(Some(Position::Start { degraded: true })) => json!({"kind": "start", "degraded": true}),
        Ok(Some(Position::Cursor { toc, .. })) => {
            json!({"kind": "toc", "T_us": toc.t.micros(), "O": toc.o, "C": toc.c})
        }
        Ok(Some(Position::Id(id))) => json!({"kind": "id", "id": id}),
        Ok(Some(Position::Time { span, degraded })) => {
            let mut value = json!({"kind": "time", "lo_us": span.low_us, "hi_us": span.high_us});
            if degraded {
                value["degraded"] = json!(true);
            }
            value
        }
        Err(bad) => {
            let error = match bad {
                BadPosition::Syntax => "bad_syntax",
                BadPosition::UnsupportedType => "unsupported_type",
                BadPosition::EmptyId => "empty_id",
                BadPosition::BadTime => "bad_time",
            };
            json!({"kind": "error", "error": error, "status": 400})
        }
    }
}

#[test]
fn every_position_spec_of_the_vectors_is_read_as_expected() {
    // SF-21, SF-25..SF-29, D-8, D-9.
    for case in testkit::data::section("position_specs") {
        let raw = case["raw"].as_str().unwrap();
        let mut expect = case["expect"].clone();
        expect.as_object_mut().unwrap().remove("precision");
        assert_eq!(
            neutral(Position::parse(raw)),
            expect,
            "{raw:?}: {}",
            case["note"]
        );
    }
}

#[test]
fn only_our_own_spelling_of_a_cursor_is_canonical() {
    let canonical = |text: &str| match Position::of_cursor(text) {
        Position::Cursor { canonical, .. } => canonical,
        other => panic!("{text} is {other:?}"),
    };
    assert!(canonical("1389003527_0_3678689003"));
    assert!(canonical("1389003527.500000_0_3678689003"));
    assert!(!canonical("1389003527_00_3678689003"));
    assert!(!canonical("1389003527.5_0_3678689003"));
    assert!(!canonical("1389003527.000000_0_3678689003"));
}

#[test]
fn a_moment_before_1970_is_a_legal_time() {
    let Ok(Some(Position::Time { span, .. })) = Position::parse("time:1969-12-31") else {
        panic!()
    };
    assert_eq!((span.low_us, span.high_us), (-DAY, -1));
}
