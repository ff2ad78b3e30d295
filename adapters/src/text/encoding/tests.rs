//! Labels that are right, wrong or missing; not the markup behind them.

use super::*;

fn check(bytes: &[u8], content_type: Option<&str>, text: &str, note: Option<&str>) {
    let decoded = decode(bytes, content_type);
    assert_eq!(decoded.text, text);
    assert_eq!(decoded.note, note.map(|name| Note::Encoding(name.to_owned())));
}

#[test]
fn a_byte_order_mark_beats_every_label() {
    check(b"\xEF\xBB\xBF<a>\xC3\xA9", Some("text/xml; charset=iso-8859-1"), "<a>é", None);
    check(b"\xFE\xFF\0<\0a\0\xE9", Some("text/xml; charset=utf-8"), "<aé", None);
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
    check(bytes, None, "<?xml version='1.0' encoding='iso-8859-1'?>éÐ", None);
}

#[test]
fn a_late_declaration_still_counts() {
    let mut bytes = vec![b'\n'; 70];
    bytes.extend_from_slice(b"<?xml version=\"1.0\" encoding = \"iso-8859-7\"?>\xE1");
    assert!(decode(&bytes, None).text.ends_with("?>α"));
}

#[test]
fn utf8_labelled_latin1_is_utf8_and_said_so() {
    check("<?xml encoding='iso-8859-1'?>é".as_bytes(), None, "<?xml encoding='iso-8859-1'?>é", Some("UTF-8"));
    check("é".as_bytes(), Some("text/xml; charset=us-ascii"), "é", Some("UTF-8"));
}

#[test]
fn latin1_labelled_utf8_is_mended_byte_by_byte() {
    check(
        b"<?xml encoding='utf-8'?>caf\xE9 \xE2\x82\xAC",
        None,
        "<?xml encoding='utf-8'?>café €",
        Some("windows-1252"),
    );
    check(b"\x93caf\xE9\x94", None, "\u{201C}café\u{201D}", Some("windows-1252"));
}

#[test]
fn a_utf16_label_on_single_bytes_is_ignored() {
    check(b"<?xml encoding='utf-16'?>x", None, "<?xml encoding='utf-16'?>x", None);
}

#[test]
fn labels_that_stand_for_no_encoding_are_ignored() {
    for label in ["hz-gb-2312", "iso-2022-kr", "x-user-defined", "utf-7", "unknown", "", "\u{e9}"] {
        let content_type = format!("text/xml; charset={label}");
        check(b"caf\xE9", Some(&content_type), "café", Some("windows-1252"));
        check("café".as_bytes(), Some(&content_type), "café", None);
    }
}

#[test]
fn multi_byte_labels_are_honoured_unless_the_text_is_plainly_utf8() {
    check(b"\xCD\xA8", Some("text/xml; charset=gb2312"), "通", None);
    let chinese = "联通联通联通联通";
    check(chinese.as_bytes(), Some("text/xml; charset=gb2312"), chinese, Some("UTF-8"));
    check(b"\x1B$B8&\x1B(B", Some("text/xml; charset=iso-2022-jp"), "研", None);
}

// LEGACY A-15, XML 1.0 section 2.11.
#[test]
fn illegal_characters_go_and_lines_end_in_line_feeds() {
    check(b"a\x08b\0\r\nc\rd\xEF\xBF\xBE", None, "ab\nc\nd", None);
}
