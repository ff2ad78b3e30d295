//! Documents broken on purpose: no hang, no growth without bound, and no entry lost without a word;
//! `tests/fuzz` breaks them at random.

use everfeed_adapters::{ENTRIES_MAX, Hints, Key, NotAFeed, Note, slice};

/// Reads a document in whole.
fn read(bytes: &[u8]) {
    let hints = Hints {
        base_url: Some("http://example.org/"),
        ..Hints::default()
    };
    let Ok(sliced) = slice(bytes, &hints) else {
        return;
    };
    for raw in &sliced.entries {
        raw.parse().0.digest();
    }
}

/// DESIGN section 4: whole entries before the cut count, the cut one is dropped.
#[test]
fn a_cut_anywhere_leaves_the_whole_entries_before_it() {
    let items: String = (0..6)
        .map(|n| format!("<item><title>a &amp; b {n}</title><guid>{n}</guid><description><![CDATA[<p>{n}</p>]]></description></item>\n"))
        .collect();
    let document = format!(
        "<?xml version='1.0'?>\n<rss version='2.0'><channel><title>t</title>\n{items}</channel></rss>"
    );
    let ends: Vec<_> = document
        .match_indices("</item>")
        .map(|(at, tag)| at + tag.len())
        .collect();
    for length in 0..document.len() {
        let whole = ends.iter().filter(|end| **end <= length).count();
        match slice(&document.as_bytes()[..length], &Hints::default()) {
            Ok(sliced) => {
                let expect: Vec<_> = (0..whole).map(|n| Key::Id(n.to_string())).collect();
                assert_eq!(
                    sliced
                        .entries
                        .iter()
                        .map(|raw| raw.key.clone())
                        .collect::<Vec<_>>(),
                    expect,
                    "at {length}"
                );
                assert!(sliced.is_truncated(), "at {length}");
            }
            Err(_) => assert_eq!(whole, 0, "at {length}"),
        }
    }
}

/// Each of these would take minutes if anything looked twice at what is left.
#[test]
fn hostile_documents_take_linear_time_and_bounded_room() {
    let inside = |what: String| format!("<rss><channel><title>t</title><item><guid>1</guid>{what}");
    let many = |tag: &str| {
        (0..30_000)
            .map(|n| format!("<{tag}>{n}</{tag}>"))
            .collect::<String>()
    };
    for document in [
        inside(
            many("link")
                + &many("category")
                + &many("author")
                + &many("dc:contributor")
                + "</item>",
        ),
        "<rss><channel>".to_owned() + &many("link") + &many("category") + &many("dc:creator"),
        inside(
            (0..30_000)
                .map(|n| format!("<enclosure url='{n}'/>"))
                .collect::<String>()
                + "</item>",
        ),
        inside("<a>".repeat(100_000)),
        inside("</a>".repeat(100_000)),
        inside("<a ".repeat(100_000)),
        inside("<a b='".repeat(100_000)),
        inside("&a;".repeat(200_000)),
        inside("&".repeat(200_000)),
        inside("<![CDATA[".repeat(50_000)),
        inside("<link>x</link>".repeat(50_000) + "</item>"),
        inside(format!("<a {}>", "x='' ".repeat(100_000)) + "</item>"),
        inside("<a xmlns:b='urn:b' xml:base='c/'>".repeat(20_000)),
        inside("<media:content url='http://e.org/'/>".repeat(5_000) + "</item>"),
        "<rss><channel>".to_owned() + &"<x><y/></x>".repeat(50_000),
        "<rss>".to_owned() + &"<channel>".repeat(50_000),
        "<feed xmlns='http://www.w3.org/2005/Atom'>".to_owned() + &"<author>".repeat(50_000),
        "<".repeat(200_000),
        "<x>".repeat(100_000),
    ] {
        read(document.as_bytes());
    }
}

#[test]
fn a_document_has_a_limited_number_of_entries() {
    let document = format!(
        "<rss><channel>{}</channel></rss>",
        "<item><guid>x</guid></item>".repeat(ENTRIES_MAX + 5)
    );
    let sliced = slice(document.as_bytes(), &Hints::default()).unwrap();
    assert_eq!(sliced.entries.len(), ENTRIES_MAX);
    assert_eq!(sliced.notes, [Note::TooManyEntries]);
    let document = format!(
        "<rss><channel>{}</channel></rss>",
        "<item/>".repeat(ENTRIES_MAX + 5)
    );
    assert_eq!(
        slice(document.as_bytes(), &Hints::default())
            .unwrap()
            .entries
            .len(),
        ENTRIES_MAX
    );
    // Without end tags every start tag ends the item before it.
    let document = format!(
        "<rss><channel>{}</channel></rss>",
        "<item><guid>x</guid>".repeat(ENTRIES_MAX + 5)
    );
    assert_eq!(
        slice(document.as_bytes(), &Hints::default())
            .unwrap()
            .entries
            .len(),
        ENTRIES_MAX
    );
}

#[test]
fn entries_that_are_there_are_never_silently_none() {
    for document in [
        "<rss><channel><item><guid>1</guid>",
        "<rss><channel><title>t</title><!-- <item><guid>1</guid></item></channel></rss>",
        "<rss><channel><x:item xmlns:x='urn:x'><guid>1</guid></x:item></channel></rss>",
        "<feed xmlns='http://www.w3.org/2005/Atom'><entry xmlns='urn:x'><id>1</id></entry></feed>",
    ] {
        let error = slice(document.as_bytes(), &Hints::default()).unwrap_err();
        assert!(
            matches!(error, NotAFeed::NoWholeEntry { .. }),
            "{document}: {error}"
        );
    }
}

/// Every limit that keeps something out says so, and none of them passes for a broken tag.
#[test]
fn no_limit_is_silent() {
    let many = |element: &dyn Fn(u32) -> String, count| (0..count).map(element).collect::<String>();
    let element = |name: &'static str| move |n: u32| format!("<{name}>{n}</{name}>");
    for (inside, expect) in [
        (
            many(&element("category"), 1025),
            "more than 1024 categories in one entry",
        ),
        (
            many(
                &|n| format!("<atom:link rel='related' href='http://e.org/{n}'/>"),
                1025,
            ),
            "more than 1024 links in one entry",
        ),
        (
            many(&|n| format!("<enclosure url='http://e.org/{n}'/>"), 1025),
            "more than 1024 enclosures in one entry",
        ),
        (
            many(&element("dc:creator"), 1025),
            "more than 1024 authors in one entry",
        ),
        (
            many(&element("dc:contributor"), 1025),
            "more than 1024 contributors in one entry",
        ),
        (
            many(&element("category"), 40_000),
            "more than 32768 elements in one",
        ),
        (
            format!("<x:a>{}{}</x:a>", "<x:b>".repeat(300), "</x:b>".repeat(300)),
            "more than 240 levels of them",
        ),
    ] {
        let document = format!("<rss><channel><item><guid>1</guid>{inside}</item></channel></rss>");
        let sliced = slice(document.as_bytes(), &Hints::default()).unwrap();
        let (_, notes) = sliced.entries[0].parse();
        assert!(
            notes.iter().any(|note| note.to_string().contains(expect)),
            "{expect}: {notes:?}"
        );
        assert!(
            !notes.contains(&Note::Mismatched) && sliced.notes.is_empty(),
            "{expect}: {notes:?}"
        );
    }
    let declared: String = (0..300).map(|n| format!("<!ENTITY e{n} 'v'>")).collect();
    let document = format!(
        "<!DOCTYPE rss [{declared}]><rss><channel><item><guid>&e299;</guid></item></channel></rss>"
    );
    let sliced = slice(document.as_bytes(), &Hints::default()).unwrap();
    assert!(
        sliced.notes[0].to_string().contains("entities"),
        "{:?}",
        sliced.notes
    );
}
