//! One document in every encoding and under every label that feeds came in; what single bytes mean
//! is tested beside the code.

use encoding_rs::{BIG5, EUC_JP, Encoding, GBK, ISO_8859_2, KOI8_R, SHIFT_JIS, WINDOWS_1252};
use everfeed_adapters::{Hints, Note, slice};

/// The document with a declaration, or what stands in its place, and a title.
fn document(before: &str, title: &str) -> String {
    format!(
        "{before}<rss version='2.0'><channel><item><guid>1</guid><title>{title}</title></item></channel></rss>"
    )
}

fn check(what: &str, bytes: &[u8], content_type: Option<&str>, title: &str, note: Option<&str>) {
    let sliced = slice(
        bytes,
        &Hints {
            content_type,
            ..Hints::default()
        },
    )
    .unwrap_or_else(|error| panic!("{what}: {error}"));
    assert_eq!(sliced.entries.len(), 1, "{what}");
    let (entry, _) = sliced.entries[0].parse();
    assert_eq!(entry.title.unwrap().value, title, "{what}");
    let expect: Vec<_> = note
        .into_iter()
        .map(|name| Note::Encoding(name.to_owned()))
        .collect();
    assert_eq!(sliced.notes, expect, "{what}");
}

fn utf16(text: &str, big: bool) -> Vec<u8> {
    text.encode_utf16()
        .flat_map(|unit| {
            if big {
                unit.to_be_bytes()
            } else {
                unit.to_le_bytes()
            }
        })
        .collect()
}

fn utf32(text: &str, big: bool) -> Vec<u8> {
    let four = |c: char| {
        if big {
            u32::from(c).to_be_bytes()
        } else {
            u32::from(c).to_le_bytes()
        }
    };
    text.chars().flat_map(four).collect()
}

#[test]
fn wide_encodings_are_read_with_and_without_a_mark_whatever_the_label_says() {
    let title = "Ünï “x” € 通 😀";
    for label in [
        "",
        "encoding='utf-16'",
        "encoding='utf-8'",
        "encoding='utf-16be'",
        "encoding='ucs-4'",
        "encoding='iso-8859-1'",
    ] {
        for mark in ["\u{FEFF}", ""] {
            let text = document(&format!("{mark}<?xml version='1.0' {label}?>"), title);
            for content_type in [
                None,
                Some("text/xml; charset=utf-8"),
                Some("text/xml; charset=utf-16"),
            ] {
                for big in [false, true] {
                    let what = format!("{label:?} {mark:?} {content_type:?} big: {big}");
                    check(&what, &utf16(&text, big), content_type, title, None);
                    check(&what, &utf32(&text, big), content_type, title, None);
                }
            }
        }
        // Without a declaration and without a mark, white space first.
        check(
            "bare",
            &utf16(&document("\n ", title), true),
            None,
            title,
            None,
        );
        check(
            "bare",
            &utf16(&document("\n ", title), false),
            None,
            title,
            None,
        );
    }
}

#[test]
fn labels_of_every_kind_are_honoured_when_the_bytes_agree() {
    let in_encoding =
        |encoding: &'static Encoding, text: &str| encoding.encode(text).0.into_owned();
    for (encoding, title) in [
        (WINDOWS_1252, "café “x” €"),
        (ISO_8859_2, "Łódź"),
        (KOI8_R, "Привет"),
        (SHIFT_JIS, "日本語"),
        (EUC_JP, "日本語"),
        (GBK, "联通"),
        (BIG5, "中文"),
    ] {
        let name = encoding.name();
        let declaration = format!("<?xml version='1.0' encoding='{name}'?>");
        let declared = in_encoding(encoding, &document(&declaration, title));
        check(name, &declared, None, title, None);
        // HTTP is right, the declaration is wrong; and the other way round.
        let bare = in_encoding(
            encoding,
            &document("<?xml version='1.0' encoding='utf-8'?>", title),
        );
        check(
            name,
            &bare,
            Some(&format!("application/rss+xml; Charset = \"{name}\"")),
            title,
            None,
        );
        check(
            name,
            &declared,
            Some("text/xml; charset=utf-8"),
            title,
            Some(name),
        );
        // Late, and long.
        let late = in_encoding(
            encoding,
            &document(&format!("{}{declaration}", "\n".repeat(500)), title),
        );
        check(name, &late, None, title, None);
        let long = declaration.replace(" enc", &format!("{} enc", " ".repeat(1000)));
        check(
            name,
            &in_encoding(encoding, &document(&long, title)),
            None,
            title,
            None,
        );
    }
}

#[test]
fn single_bytes_without_a_label_are_windows_1252() {
    let bytes = WINDOWS_1252
        .encode(&document("", "café “x” €"))
        .0
        .into_owned();
    check("none", &bytes, None, "café “x” €", Some("windows-1252"));
    check(
        "text/xml",
        &bytes,
        Some("text/xml"),
        "café “x” €",
        Some("windows-1252"),
    );
    check(
        "ascii",
        &bytes,
        Some("text/xml; charset=us-ascii"),
        "café “x” €",
        None,
    );
    let utf8 = document("<?xml version='1.0' encoding='iso-8859-1'?>", "café “x” €");
    check("wrong", utf8.as_bytes(), None, "café “x” €", Some("UTF-8"));
}

#[test]
fn references_mean_the_same_in_every_encoding() {
    let text = document(
        "",
        "&eacute;&#233;&#xE9;&#151;&#8212;&NotEqualTilde;&bogus;&#0;&#x1F;",
    );
    let title = "ééé——≂̸&bogus;";
    check("UTF-8", text.as_bytes(), None, title, None);
    check("UTF-16", &utf16(&text, true), None, title, None);
    check("UTF-32", &utf32(&text, false), None, title, None);
}

#[test]
fn characters_that_xml_cannot_hold_are_left_out() {
    check(
        "controls",
        document("", "a\u{0}b\u{8}c\u{B}d\u{FFFE}e\u{1F}").as_bytes(),
        None,
        "abcde",
        None,
    );
    check(
        "in UTF-16",
        &utf16(&document("\u{FEFF}", "a\u{1}b\u{FFFF}"), false),
        None,
        "ab",
        None,
    );
    let lone = [utf16(&document("\u{FEFF}", "a"), true), vec![0xD8, 0x00]].concat();
    check("half a pair", &lone, None, "a", None);
}
