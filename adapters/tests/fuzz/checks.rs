//! Checks that hold for every document, and of a sound one to which something happened.

use everfeed_adapters::text::markup::{XHTML, write_element};
use everfeed_adapters::{
    Element, Entry, Hints, Key, SlicedDocument, Text, TextKind, cross_check_count, neutral, slice,
    text,
};

use crate::chance::Chance;

/// Reads a document in whole, twice, and looks at all that comes out; returns how many entries it
/// has.
pub(crate) fn any(bytes: &[u8], content_type: Option<&str>) -> usize {
    let hints = Hints {
        content_type,
        base_url: Some("http://example.org/a/"),
        ..Hints::default()
    };
    cross_check_count(bytes, &hints);
    let (once, again) = (slice(bytes, &hints), slice(bytes, &hints));
    let (once, again) = match (once, again) {
        (Ok(once), Ok(again)) => (once, again),
        (Err(once), Err(again)) => {
            assert_eq!(once, again, "an error is the same twice");
            return 0;
        }
        _ => panic!("a document is a feed or not"),
    };
    assert_eq!(
        names(&once),
        names(&again),
        "keys and digests are the same twice"
    );
    assert_eq!(once.notes, again.notes);
    assert_legal(&serde_json::to_value(&once.metadata).unwrap());
    check_text(once.metadata.title.as_ref());
    check_text(once.metadata.description.as_ref());
    check_foreign(&once.metadata.foreign);
    for raw in &once.entries {
        assert!(!is_empty(&raw.key), "an empty key");
        assert_legal(&serde_json::to_value(&raw.key).unwrap());
        let (entry, notes) = raw.parse();
        check_entry(&entry);
        assert_eq!(
            raw.parse().0.digest(),
            entry.digest(),
            "parsing twice is parsing once"
        );
        assert_legal(&serde_json::to_value((entry, notes)).unwrap());
    }
    for deletion in &once.deletions {
        assert_legal(&serde_json::to_value(deletion).unwrap());
    }
    assert_legal(&neutral(&once));
    once.entries.len()
}

fn names(sliced: &SlicedDocument) -> Vec<(Key, String)> {
    sliced
        .entries
        .iter()
        .map(|raw| (raw.key.clone(), raw.raw.to_string()))
        .collect()
}

fn is_empty(key: &Key) -> bool {
    let (Key::Id(text) | Key::Link(text) | Key::Title(text) | Key::Digest(text)) = key;
    text::trim(text).is_empty()
}

/// Reads a document as it is.
pub(crate) fn resource(bytes: &[u8], content_type: Option<&str>) {
    let url = "http://example.org/a/file";
    let sliced = slice(
        bytes,
        &Hints {
            content_type,
            base_url: Some(url),
            resource: Some(url),
            ..Hints::default()
        },
    )
    .unwrap();
    assert_eq!(sliced.entries.len(), 1);
    let (entry, notes) = sliced.entries[0].parse();
    check_entry(&entry);
    assert_eq!(sliced.entries[0].parse().0.digest(), entry.digest());
    assert_legal(&serde_json::to_value((&sliced.metadata, entry, notes)).unwrap());
}

/// Asserts that every string below is made of characters that XML has (LEGACY A-15).
fn assert_legal(value: &serde_json::Value) {
    match value {
        serde_json::Value::String(string) => {
            assert!(
                string.chars().all(text::is_legal),
                "an illegal character in {string:?}"
            )
        }
        serde_json::Value::Array(values) => values.iter().for_each(assert_legal),
        serde_json::Value::Object(fields) => fields.values().for_each(assert_legal),
        _ => {}
    }
}

fn check_entry(entry: &Entry) {
    check_text(entry.title.as_ref());
    check_text(entry.summary.as_ref());
    check_text(entry.content.as_ref().map(|content| &content.text));
    check_foreign(&entry.foreign);
}

fn check_foreign(foreign: &[Element]) {
    for element in foreign {
        let mut out = String::new();
        write_element(&mut out, element, &[("", "http://www.w3.org/2005/Atom")]);
        assert_well_formed(&out);
    }
}

fn check_text(text: Option<&Text>) {
    if let Some(Text {
        kind: TextKind::Xhtml,
        value,
        ..
    }) = text
    {
        assert_well_formed(&format!("<div xmlns=\"{XHTML}\">{value}</div>"));
    }
}

/// True for well-formed XML, by the strict reader.
fn assert_well_formed(markup: &str) {
    let mut reader = quick_xml::Reader::from_str(markup);
    loop {
        match reader.read_event() {
            Ok(quick_xml::events::Event::Eof) => return,
            Ok(quick_xml::events::Event::Start(tag) | quick_xml::events::Event::Empty(tag)) => {
                tag.attributes().for_each(|attribute| {
                    drop(attribute.unwrap_or_else(|error| panic!("{error}: {markup}")))
                });
            }
            Ok(_) => {}
            Err(error) => panic!("{error}: {markup}"),
        }
    }
}

/// A document that reads without a note and has at least two entries, and where they stand in it.
pub(crate) struct Sound {
    text: String,
    names: Vec<(Key, String)>,
    places: Vec<std::ops::Range<usize>>,
}

impl Sound {
    /// `None` if the document is not sound, or if its entries do not stand in it as they were read.
    pub(crate) fn of(bytes: &[u8]) -> Option<Self> {
        let text = std::str::from_utf8(bytes).ok()?.to_owned();
        let sliced = slice(bytes, &Hints::default()).ok()?;
        if sliced.entries.len() < 2 || !sliced.notes.is_empty() {
            return None;
        }
        let mut from = 0;
        let mut places = Vec::new();
        for raw in &sliced.entries {
            let start = from + text[from..].find(raw.markup())?;
            from = start + raw.markup().len();
            places.push(start..from);
        }
        Some(Self {
            names: names(&sliced),
            text,
            places,
        })
    }

    /// DESIGN section 4: whole entries before a cut count, the cut one is dropped.
    pub(crate) fn cut(&self, chance: &mut Chance) {
        let at = chance.below(self.text.len());
        let whole = self.places.iter().filter(|place| place.end <= at).count();
        match slice(&self.text.as_bytes()[..at], &Hints::default()) {
            Ok(sliced) => {
                let found: Vec<_> = names(&sliced).into_iter().map(|(_, raw)| raw).collect();
                let expect: Vec<_> = self.names[..whole]
                    .iter()
                    .map(|(_, raw)| raw.clone())
                    .collect();
                assert_eq!(found, expect, "cut at {at}");
            }
            Err(error) => assert_eq!(whole, 0, "cut at {at}: {error}"),
        }
    }

    /// Something is wrong in the text of one entry: the others stay as they were, and none appears
    /// or goes.
    pub(crate) fn hurt(&self, chance: &mut Chance) {
        if self.text.trim_start().starts_with('{') {
            return;
        }
        let hurt = chance.below(self.places.len());
        let place = self.places[hurt].clone();
        let inside = &self.text[place.clone()];
        // With an entry in an entry, nobody can tell where a section without an end was meant to
        // end.
        let below = inside[1..].to_ascii_lowercase();
        if ["<item", "<entry"].iter().any(|tag| below.contains(tag)) {
            return;
        }
        // Right behind the start tag of a child.
        let ends: Vec<_> = inside
            .match_indices('>')
            .map(|(at, _)| at + 1)
            .filter(|&at| {
                let before = &inside[..at];
                let opens = before.rfind('<').is_some_and(|open| {
                    open > 0
                        && !before[open..].starts_with("</")
                        && !before[open..].starts_with("<!")
                        && !before[open..].starts_with("<?")
                });
                let literal = before.rfind("<![CDATA[") > before.rfind("]]>");
                let comment = before.rfind("<!--") > before.rfind("-->");
                opens
                    && !literal
                    && !comment
                    && !before.ends_with("/>")
                    && !inside[at..].starts_with("<![CDATA[")
            })
            .collect();
        if ends.is_empty() {
            return;
        }
        let at = place.start + *chance.one_of(&ends);
        let hurting = *chance.one_of(HURTS);
        let (before, after) = self.text.as_bytes().split_at(at);
        let bytes = [before, hurting, after].concat();
        let what = || {
            format!(
                "{:?} in entry {hurt} at {at}",
                String::from_utf8_lossy(hurting)
            )
        };
        let sliced =
            slice(&bytes, &Hints::default()).unwrap_or_else(|error| panic!("{error}: {}", what()));
        let found = names(&sliced);
        assert_eq!(found.len(), self.names.len(), "{}", what());
        for (n, (found, expect)) in found.iter().zip(&self.names).enumerate() {
            // A link or a title names an entry only as long as no other entry has the same one.
            let is_strong = matches!(expect.0, Key::Id(_));
            assert!(
                n == hurt || found.1 == expect.1,
                "entry {n} has other bytes: {}",
                what()
            );
            assert!(
                n == hurt || !is_strong || found.0 == expect.0,
                "entry {n} has another key: {}",
                what()
            );
        }
    }
}

impl Sound {
    /// The end of an element and that of its entry are lost: the entries around keep their names.
    pub(crate) fn lose_ends(&self, chance: &mut Chance) {
        let hurt = chance.below(self.places.len());
        let place = self.places[hurt].clone();
        let inside = &self.text[place.clone()];
        let below = inside.get(1..).unwrap_or_default().to_ascii_lowercase();
        if self.text.trim_start().starts_with('{')
            || ["<item", "<entry"].iter().any(|tag| below.contains(tag))
        {
            return;
        }
        // XML of another kind may hold entries, and so may what stands between these.
        let next = self
            .places
            .get(hurt + 1)
            .map_or("", |next| &self.text[place.end..next.start]);
        if below.contains("xml\"") || below.contains("xml'") || !next.trim().is_empty() {
            return;
        }
        let Some(end_of_entry) = inside.rfind("</") else {
            return;
        };
        let ends: Vec<_> = LEAVES
            .iter()
            .flat_map(|name| {
                inside[..end_of_entry]
                    .match_indices(&format!("</{name}>"))
                    .map(|(at, _)| at)
                    .collect::<Vec<_>>()
            })
            .collect();
        if ends.is_empty() {
            return;
        }
        // Behind it nothing is left of the entry: a response that was cut, and one that was joined
        // to it.
        let at = place.start + *chance.one_of(&ends);
        // What was copied with an entry may hold elements of any kind, an entry among them, so it
        // is never broken up.
        let before = &self.text[place.start..at];
        if before
            .rfind("<source")
            .is_some_and(|open| !before[open..].contains("</source"))
        {
            return;
        }
        let text = [&self.text[..at], &self.text[place.end..]].concat();
        let what = || {
            format!(
                "entry {hurt} is cut at {at}, after {}",
                &text[place.start..at]
            )
        };
        let others = |names: &[(Key, String)], all: usize| -> Vec<String> {
            let before = names.iter().take(hurt);
            let after = names
                .iter()
                .skip(names.len().saturating_sub(all - hurt - 1).max(hurt));
            before.chain(after).map(|(_, raw)| raw.clone()).collect()
        };
        let count = self.names.len();
        let sliced = slice(text.as_bytes(), &Hints::default())
            .unwrap_or_else(|error| panic!("{error}: {}", what()));
        let found = names(&sliced);
        if hurt + 1 == count {
            // What ends the list ends the last entry too.
            assert_eq!(
                others(&found, count),
                others(&self.names, count),
                "{}",
                what()
            );
            return;
        }
        assert!(
            (count - 1..=count).contains(&found.len()),
            "{} of {count} entries: {}",
            found.len(),
            what()
        );
        assert_eq!(
            others(&found, count),
            others(&self.names, count),
            "{}",
            what()
        );
        for (key, raw) in &found {
            let known = self.names.iter().find(|(_, other)| other == raw);
            let is_strong = known.is_some_and(|(known, _)| matches!(known, Key::Id(_)));
            assert!(
                !is_strong || known.is_some_and(|(known, _)| known == key),
                "another key: {}",
                what()
            );
        }
        if found.len() == count && matches!(found[hurt].0, Key::Id(_)) {
            assert_eq!(
                found[hurt].0,
                self.names[hurt].0,
                "an invented key: {}",
                what()
            );
        }
    }
}

/// Elements of an entry that hold text.
const LEAVES: &[&str] = &[
    "title",
    "link",
    "guid",
    "id",
    "description",
    "summary",
    "content",
    "pubDate",
    "updated",
    "published",
    "author",
    "category",
    "comments",
    "name",
    "content:encoded",
    "dc:creator",
    "dc:date",
    "ABSTRACT",
    "TITLE",
];

/// Damage inside of a text.
const HURTS: &[&[u8]] = &[
    b"&",
    b"&bogus;",
    b"&#0;",
    b"<",
    b"< b",
    b"<3",
    b"<>",
    b"<b>",
    b"</b>",
    b"<br>",
    b"<br></br>",
    b"<b <i>",
    b"<b",
    b"</b",
    b"<p class=x y>",
    b"<img src=\"x>",
    b"<img src='x>",
    b"<img src=\"x'>",
    b"<p class=\"a\"b\">",
    b"<p class='it's'>",
    b"<p \">",
    b"\"",
    b"'",
    b">",
    b"]]>",
    b"-->",
    b"<!x>",
    b"<!--",
    b"<![CDATA[",
    b"<![CDATA[x]] >",
    b"<?",
    b"<?x?>",
    b"<?x>",
    b"<x:y>",
    b"</x:y>",
    b"<div><p><div>",
    b"<img src='x' src='y'>",
    b"\0",
    b"\x80",
    b"\xE9",
    b"\xEF\xBF\xBE",
];
