//! Rows of CSV and TSV, read back.

use super::{COLUMNS, has_odd, is_odd, without_controls, without_formula};
use crate::{
    feed::item::Item,
    render::{
        document::Audience,
        representation::Representation,
        samples::{bare, gone, live, rendered, rich},
    },
};
use everfeed_adapters::{Body, Entry, Text};
use proptest::prelude::*;

fn document(suffix: &str, items: Vec<Item>) -> String {
    rendered(
        Representation::with_suffix(Audience::Full, suffix).unwrap(),
        items,
    )
}

/// The rows as a reader of CSV has them, the header first.
fn csv_rows(items: Vec<Item>) -> Vec<Vec<String>> {
    let text = document("csv", items);
    let mut reader = csv::ReaderBuilder::new()
        .has_headers(false)
        .from_reader(text.as_bytes());
    reader
        .records()
        .map(|row| row.unwrap().iter().map(str::to_owned).collect())
        .collect()
}

/// The rows as one has them who splits lines and cells, and undoes the escapes.
fn tsv_rows(items: Vec<Item>) -> Vec<Vec<String>> {
    document("tsv", items)
        .lines()
        .map(|line| line.split('\t').map(unescaped).collect())
        .collect()
}

fn unescaped(cell: &str) -> String {
    let mut out = String::new();
    let mut chars = cell.chars();
    while let Some(c) = chars.next() {
        out.push(match c {
            '\\' => match chars.next().unwrap() {
                't' => '\t',
                'n' => '\n',
                'r' => '\r',
                other => other,
            },
            other => other,
        });
    }
    out
}

#[test]
fn a_row_holds_an_item_and_a_tombstone_keeps_its_ids() {
    // V-1.
    let rows = csv_rows(vec![rich(), bare(), gone(3)]);
    assert_eq!(rows[0], COLUMNS);
    assert_eq!(
        rows[1],
        [
            "01010101010101010101",
            "http://example.org/1?a=b&c=d",
            "Fish & chips",
            "2005-11-15T03:22:41Z",
            "2014-01-06T10:18:47Z",
            "2014-01-06T10:18:48Z",
            "false",
            "Ann",
            "http://example.org/Ann",
            "<p>hi &amp; bye</p>",
            "tag:example.org,2005:1",
            "2014-01-06T10:18:48Z",
            "",
            "1 &lt; 2",
            "fish",
            "http://example.org/a.mp3 http://example.org/b.mp3",
            "http://example.org/1#comments",
            "en",
        ]
    );
    let of = |row: usize, column: &str| {
        rows[row][COLUMNS.iter().position(|name| *name == column).unwrap()].as_str()
    };
    assert_eq!(
        (of(2, "title"), of(2, "published"), of(2, "deleted")),
        ("", "", "false")
    );
    assert_eq!(
        (of(3, "id"), of(3, "guid")),
        ("03030303030303030303", "tag:example.org,2005:3")
    );
    assert_eq!(
        (of(3, "deleted"), of(3, "reason"), of(3, "updated")),
        ("true", "explicit", of(3, "modified"))
    );
    assert_eq!(tsv_rows(vec![rich(), bare(), gone(3)]), rows);
}

#[test]
fn lines_end_as_each_syntax_ends_them() {
    let csv = document("csv", vec![bare()]);
    assert!(
        csv.starts_with("id,url,title,")
            && csv.ends_with("\r\n")
            && csv.matches("\r\n").count() == 2
    );
    let tsv = document("tsv", vec![bare()]);
    assert!(
        tsv.starts_with("id\turl\ttitle\t")
            && tsv.matches('\n').count() == 2
            && !tsv.contains('\r')
    );
}

#[test]
fn a_formula_is_a_text_in_every_spreadsheet_and_can_be_told_from_it() {
    // V-2.
    for formula in [
        "=1+1",
        "+1",
        "-1",
        "@SUM(A1)",
        "\t=1",
        "\r1",
        "\n1",
        " =1",
        "'=1",
        "＝1",
        " '@x",
        "\u{200B}=1",
        "\u{FEFF} +1",
    ] {
        assert_eq!(without_formula(formula.into()), format!("'{formula}"));
    }
    for words in ["", "a=b", "'tis", "1-1", " x", "''"] {
        assert_eq!(without_formula(words.into()), words);
    }
    let rows = csv_rows(vec![live(
        1,
        Entry {
            title: Some(Text::plain("=cmd|' /C calc'!A0")),
            ..Entry::default()
        },
    )]);
    assert_eq!(rows[1][2], "'=cmd|' /C calc'!A0");
}

/// The cell as a consumer has it who wants the publisher's words.
fn restored(cell: &str) -> String {
    match cell.strip_prefix('\'') {
        Some(rest) if without_formula(rest.into()) == cell => rest.to_owned(),
        _ => cell.to_owned(),
    }
}

/// Ends of lines that some readers of tables know and others do not.
const ODD_BREAKS: [char; 5] = ['\u{b}', '\u{c}', '\u{85}', '\u{2028}', '\u{2029}'];

#[test]
fn a_row_is_one_line_for_whoever_knows_other_ends_of_lines() {
    let text = ODD_BREAKS
        .iter()
        .fold("a".to_owned(), |text, end| format!("{text}{end}b"));
    let body = Body {
        text: Text::html(text.clone()),
        ..Body::default()
    };
    let entry = Entry {
        title: Some(Text::plain(text)),
        content: Some(body),
        ..Entry::default()
    };
    let items = vec![live(1, entry)];
    for suffix in ["csv", "tsv"] {
        assert!(
            !document(suffix, items.clone()).contains(ODD_BREAKS),
            "{suffix}"
        );
    }
    for rows in [csv_rows(items.clone()), tsv_rows(items)] {
        assert_eq!(
            (&*rows[1][2], &*rows[1][9]),
            ("a b b b b b", "a\nb\nb\nb\nb\nb")
        );
    }
}

proptest! {
    #[test]
    fn every_text_reads_back_from_its_cell(text in prop_oneof![any::<String>(), "[\\\\'\"=,;\\t\\r\\n\u{2028}\u{85} -]{0,8}"]) {
        let body = Body { text: Text::html(text.clone()), ..Body::default() };
        let items = vec![live(1, Entry { content: Some(body), ..Entry::default() })];
        let is_kept = |c: &char| !c.is_control() || matches!(c, '\t' | '\n' | '\r');
        let expect: String = text.replace(ODD_BREAKS, "\n").chars().filter(is_kept).collect();
        let expect = if text.trim().is_empty() { String::new() } else { expect };
        for rows in [csv_rows(items.clone()), tsv_rows(items)] {
            prop_assert_eq!(rows.len(), 2);
            prop_assert_eq!(restored(&rows[1][9]), expect.clone());
        }
    }
}

#[test]
fn every_odd_character_is_found_by_its_bytes() {
    for c in '\0'..=char::MAX {
        assert_eq!(has_odd(&format!("é{c}…")), is_odd(c), "{c:?}");
    }
    assert!(!has_odd("") && !has_odd("a\tb\r\n— Â \u{2027}\u{202A}"));
    assert_eq!(without_controls("a\u{2028}b\u{9F}c\0d".into()), "a\nbcd");
}
