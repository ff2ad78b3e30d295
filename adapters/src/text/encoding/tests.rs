//! Labels that are right, wrong or missing; not the markup behind them.

use super::*;

fn check(bytes: &[u8], content_type: Option<&str>, text: &str, note: Option<&str>) {
    let decoded = decode(bytes, content_type);
    assert_eq!(decoded.text, text);
    assert_eq!(
        decoded.note,
        note.map(|name| Note::Encoding(name.to_owned()))
    );
}

#[test]
fn a_byte_order_mark_beats_every_label() {
    check(
        b"\xEF\xBB\xBF<a>\xC3\xA9",
        Some("text/xml; charset=iso-8859-1"),
        "<a>é",
        None,
    );
    check(
        b"\xFE\xFF\0<\0a\0\xE9",
        Some("text/xml; charset=utf-8"),
        "<aé",
        None,
    );
    check(b"\xFF\xFE<\0a\0\xE9\0", None, "<aé", None);
    check(b"\xFF\xFE\0\0<\0\0\0\xE9\0\0\0", None, "<é", None);
    check(b"\0\0\xFE\xFF\0\0\0<\0\0\0\xE9", None, "<é", None);
}

#[test]
fn wide_encodings_are_seen_without_a_mark() {
    check(b"\0<\0?\0x", Some("text/xml; charset=utf-8"), "<?x", None);
    check(b"<\0?\0x\0", None, "<?x", None);
    check(b"<\0\0\0?\0\0\0", None, "<?", None);
}

#[test]
fn the_http_charset_beats_the_declaration() {
    let bytes = b"<?xml version='1.0' encoding='iso-8859-1'?>\xE9\xD0";
    check(
        bytes,
        Some("text/xml; charset=\"KOI8-R\""),
        "<?xml version='1.0' encoding='iso-8859-1'?>И\u{43F}",
        None,
    );
    check(
        bytes,
        None,
        "<?xml version='1.0' encoding='iso-8859-1'?>éÐ",
        None,
    );
}

#[test]
fn a_late_declaration_still_counts() {
    let mut bytes = vec![b'\n'; 70];
    bytes.extend_from_slice(b"<?xml version=\"1.0\" encoding = \"iso-8859-7\"?>\xE1");
    assert!(decode(&bytes, None).text.ends_with("?>α"));
}

#[test]
fn utf8_labelled_latin1_is_utf8_and_said_so() {
    check(
        "<?xml encoding='iso-8859-1'?>é".as_bytes(),
        None,
        "<?xml encoding='iso-8859-1'?>é",
        Some("UTF-8"),
    );
    check(
        "é".as_bytes(),
        Some("text/xml; charset=us-ascii"),
        "é",
        Some("UTF-8"),
    );
}

#[test]
fn latin1_labelled_utf8_is_mended_byte_by_byte() {
    check(
        b"<?xml encoding='utf-8'?>caf\xE9 \xE2\x82\xAC",
        None,
        "<?xml encoding='utf-8'?>café €",
        Some("windows-1252"),
    );
    check(
        b"\x93caf\xE9\x94",
        None,
        "\u{201C}café\u{201D}",
        Some("windows-1252"),
    );
}

#[test]
fn a_utf16_label_on_single_bytes_is_ignored() {
    check(
        b"<?xml encoding='utf-16'?>x",
        None,
        "<?xml encoding='utf-16'?>x",
        None,
    );
}

#[test]
fn labels_that_stand_for_no_encoding_are_ignored() {
    for label in [
        "hz-gb-2312",
        "iso-2022-kr",
        "x-user-defined",
        "utf-7",
        "unknown",
        "",
        "\u{e9}",
    ] {
        let content_type = format!("text/xml; charset={label}");
        check(
            b"caf\xE9",
            Some(&content_type),
            "café",
            Some("windows-1252"),
        );
        check("café".as_bytes(), Some(&content_type), "café", None);
    }
}

#[test]
fn multi_byte_labels_are_honoured_unless_the_text_is_plainly_utf8() {
    check(b"\xCD\xA8", Some("text/xml; charset=gb2312"), "通", None);
    let chinese = "联通联通联通联通";
    check(
        chinese.as_bytes(),
        Some("text/xml; charset=gb2312"),
        chinese,
        Some("UTF-8"),
    );
    check(
        b"\x1B$B8&\x1B(B",
        Some("text/xml; charset=iso-2022-jp"),
        "研",
        None,
    );
}

// LEGACY A-15, XML 1.0 section 2.11.
#[test]
fn illegal_characters_go_and_lines_end_in_line_feeds() {
    check(b"a\x08b\0\r\nc\rd\xEF\xBF\xBE", None, "ab\nc\nd", None);
}

#[test]
fn lone_bytes_are_weighed_against_sequences() {
    // French in Latin-1 beside two letters that happen to be UTF-8.
    let latin = b"caf\xE9 \xE0 c\xF4t\xE9 d'\xC3\xA9t\xE9";
    let read = "caf\u{e9} \u{e0} c\u{f4}t\u{e9} d'\u{c3}\u{a9}t\u{e9}";
    check(latin, None, read, Some("windows-1252"));
    check(
        latin,
        Some("text/xml; charset=utf-8"),
        read,
        Some("windows-1252"),
    );
    check(latin, Some("text/xml; charset=iso-8859-1"), read, None);
    // UTF-8 with one pasted quotation mark, whatever its label says.
    let utf8 = [
        "\u{e9}t\u{e9} \u{e0} c\u{f4}t\u{e9} fran\u{e7}ais na\u{ef}f d\u{e9}j\u{e0}".as_bytes(),
        b" it\x92s",
    ]
    .concat();
    let read =
        "\u{e9}t\u{e9} \u{e0} c\u{f4}t\u{e9} fran\u{e7}ais na\u{ef}f d\u{e9}j\u{e0} it\u{2019}s";
    check(&utf8, None, read, Some("windows-1252"));
    check(
        &utf8,
        Some("text/xml; charset=iso-8859-1"),
        read,
        Some("windows-1252"),
    );
}

#[test]
fn controls_of_c1_are_what_windows_1252_has_there() {
    check(
        "it\u{92}s \u{93}so\u{94} \u{85} \u{a0}\u{c2}".as_bytes(),
        None,
        "it\u{2019}s \u{201C}so\u{201D} \u{2026} \u{a0}\u{c2}",
        None,
    );
    check(
        b"\x92",
        Some("text/xml; charset=iso-8859-15"),
        "\u{2019}",
        None,
    );
}

#[test]
fn a_text_is_decoded_twice_only_when_it_was_certainly_encoded_twice() {
    let twice = |text: &str| -> String { text.bytes().map(char::from).collect() };
    let as_windows = |text: &str| {
        WINDOWS_1252
            .decode_without_bom_handling(text.as_bytes())
            .0
            .into_owned()
    };
    let repaired = |text: &str| decode(text.as_bytes(), None).text.into_owned();
    let text = "d\u{e9}j\u{e0} vu \u{2014} \u{201C}caf\u{e9}\u{201D}";
    assert_eq!(repaired(&twice(text)), text);
    assert_eq!(repaired(&as_windows(text)), text);
    // One letter that is right as it stands, too little to tell, and letters that are meant.
    for kept in [
        format!("\u{fc} {}", as_windows(text)),
        format!("{} \u{fc}", as_windows(text)),
        as_windows("caf\u{e9}"),
        "\u{c3}\u{84}\u{d6}\u{dc}".into(),
    ] {
        let expect: String = kept
            .chars()
            .map(|c| {
                if ('\u{80}'..='\u{9F}').contains(&c) {
                    of_windows_1252(c)
                } else {
                    c
                }
            })
            .collect();
        assert_eq!(repaired(&kept), expect);
    }
}

#[test]
fn a_forbidden_control_between_two_words_leaves_a_space() {
    check(
        b"one\x0Btwo\x0C\x0Cthree \x1Ffour<b>\x01five\x02</b>",
        None,
        "one two three four<b>five</b>",
        None,
    );
}
