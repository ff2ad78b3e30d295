//! Where entries begin and end, and what they are called; fixtures show the rest.

use crate::{Hints, Key, Note, Window, slice};

fn window(document: &str) -> Window {
    slice(document.as_bytes(), &Hints::default()).unwrap_or_else(|error| panic!("{error}: {document}"))
}

fn ids(window: &Window) -> Vec<String> {
    window.entries.iter().map(|raw| raw.key.stripped()).collect()
}

fn rss(inside: &str) -> Window {
    window(&format!("<rss version='2.0'><channel><title>t</title>{inside}</channel></rss>"))
}

#[test]
fn an_entry_that_did_not_change_has_the_same_raw_digest_wherever_it_stands() {
    let one = rss("<item><guid>1</guid></item>");
    let two = rss("<item><guid>0</guid></item>\n<item><guid>1</guid></item>");
    assert_eq!(one.entries[0].raw, two.entries[1].raw);
    assert_ne!(two.entries[0].raw, two.entries[1].raw);
    assert_eq!(two.entries[1].markup(), "<item><guid>1</guid></item>");
}

#[test]
fn an_entry_outlives_its_document_with_all_that_it_inherited() {
    let document = "<feed xmlns='http://www.w3.org/2005/Atom' xmlns:x='urn:x' xml:base='http://e.org/a/'>\
        <entry><id>1</id><link href='b'/><x:y/></entry></feed>";
    let raw = window(document).entries.remove(0);
    let (entry, notes) = raw.parse();
    assert_eq!(entry.permalink(), Some("http://e.org/a/b"));
    assert_eq!(entry.foreign[0].ns, "urn:x");
    assert_eq!(notes, []);
}

#[test]
fn markup_inside_an_entry_is_not_taken_for_structure() {
    let found = rss(
        "<item><guid>1</guid><description><div><item><guid>no</guid></item></channel></div></description>\
        <title>x</title></item><item><guid>2</guid></item>",
    );
    // The stray `</channel>` closes what is open; the entry after it is found all the same.
    assert_eq!(ids(&found), ["1", "2"]);
    assert_eq!(found.notes, [Note::Mismatched]);
    let atom = window(
        "<feed xmlns='http://www.w3.org/2005/Atom'><entry><id>1</id><source><id>no</id></source>\
        <content type='application/xml'><entry><id>no</id></entry></content></entry></feed>",
    );
    assert_eq!(ids(&atom), ["1"]);
}

#[test]
fn one_bad_entry_harms_no_other() {
    let found = rss("<item><guid>1</guid></item><item><guid>2</guid><title><b></i></title>\
        <description><![CDATA[ ]] > <item> ]]></description></item><item><guid>3</guid></item>");
    assert_eq!(ids(&found), ["1", "2", "3"]);
    assert_eq!(found.entries[0].parse().1, []);
    assert_eq!(found.entries[1].parse().1, [Note::Mismatched]);
    assert_eq!(found.entries[2].parse().1, []);
}

// DESIGN section 3, LEGACY I-2.
#[test]
fn the_digest_names_what_nothing_else_names_and_survives_a_second_reading() {
    let document = "<rss><channel><item><description>a</description></item><item><description>b</description></item></channel></rss>";
    let (first, second) = (window(document), window(document));
    assert!(first.entries.iter().all(|raw| matches!(raw.key, Key::Digest(_)) && raw.key.is_weak()));
    assert_eq!(ids(&first), ids(&second));
    assert_ne!(first.entries[0].key, first.entries[1].key);
}

#[test]
fn ids_are_kept_byte_for_byte() {
    let found = rss(
        "<item><guid>\n HTTP://E.org:80/%7Ea?b#c \t</guid></item><item><guid><![CDATA[a&amp;b]]></guid></item>\
        <item><guid>a&amp;b</guid></item><item><guid>é&#160;</guid></item>",
    );
    assert_eq!(ids(&found), ["HTTP://E.org:80/%7Ea?b#c", "a&amp;b", "a&b", "é\u{A0}"]);
}

#[test]
fn the_alternate_link_names_an_atom_entry_without_id() {
    let found = window(
        "<feed xmlns='http://www.w3.org/2005/Atom' xml:base='http://e.org/'>\
        <entry><link rel='self' href='no'/><link rel='alternate' href='a'/><title>x</title></entry>\
        <entry><title>y</title></entry></feed>",
    );
    assert_eq!(found.entries[0].key, Key::Link("a".into()), "unresolved, as written");
    assert_eq!(found.entries[1].key, Key::Title("y".into()));
}

#[test]
fn elements_after_the_channel_or_the_root_are_still_found() {
    let found = window(
        "<rss><channel><title>t</title></channel><item><guid>1</guid></item></rss><item><guid>2</guid></item>",
    );
    assert_eq!(ids(&found), ["1", "2"]);
}

#[test]
fn the_charset_of_the_response_counts() {
    let hints = Hints { content_type: Some("text/xml; charset=iso-8859-7"), ..Hints::default() };
    let found = slice(b"<rss><channel><item><guid>\xE1</guid></item></channel></rss>", &hints).unwrap();
    assert_eq!(found.entries[0].key, Key::Id("α".into()));
    assert_eq!(found.notes, []);
}
