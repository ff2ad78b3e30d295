//! `parse` against `slice`: a whole feed in one call is the same feed.

use std::path::{Path, PathBuf};

use everfeed_adapters::{Feed, Hints, Note, ParsedEntry, parse, slice};

/// Our own documents: fixtures of formats, some broken on purpose, and of platforms.
fn documents() -> Vec<PathBuf> {
    let folders = ["tests/fixtures", "tests/platforms"];
    let folders = folders.map(|folder| Path::new(env!("CARGO_MANIFEST_DIR")).join(folder));
    let paths = folders
        .iter()
        .flat_map(|folder| std::fs::read_dir(folder).unwrap());
    let mut paths: Vec<_> = paths.map(|entry| entry.unwrap().path()).collect();
    paths.retain(|path| {
        path.extension()
            .is_some_and(|extension| extension != "expect")
    });
    paths.sort();
    paths
}

/// Compares both ways over one document; tells the number of its entries, `None` when both refuse
/// it.
fn check(bytes: &[u8], hints: &Hints<'_>, name: &str) -> Option<usize> {
    match (parse(bytes, hints), slice(bytes, hints)) {
        (Ok(feed), Ok(sliced)) => {
            let Feed {
                format,
                version,
                encoding,
                metadata,
                entries,
                deletions,
                notes,
            } = feed;
            assert_eq!(
                (format, version, encoding),
                (sliced.format, sliced.version, sliced.encoding),
                "{name}"
            );
            assert_eq!(metadata, sliced.metadata, "{name}");
            assert_eq!(
                (deletions, notes),
                (sliced.deletions, sliced.notes),
                "{name}"
            );
            assert_eq!(entries.len(), sliced.entries.len(), "{name}");
            for (ParsedEntry { key, entry, notes }, raw) in entries.iter().zip(&sliced.entries) {
                assert_eq!(key, &raw.key, "{name}");
                assert_eq!((entry, notes), (&raw.parse().0, &raw.parse().1), "{name}");
            }
            Some(entries.len())
        }
        (Err(parsed), Err(sliced)) => {
            assert_eq!(parsed, sliced, "{name}");
            None
        }
        (parsed, sliced) => panic!(
            "{name}: parse is ok {}, slice {}",
            parsed.is_ok(),
            sliced.is_ok()
        ),
    }
}

#[test]
fn a_whole_feed_is_its_slices_parsed() {
    let hints = Hints {
        base_url: Some("http://example.org/feeds/fixture.xml"),
        ..Hints::default()
    };
    let (mut entries, mut refused) = (0, 0);
    let documents = documents();
    for path in &documents {
        let bytes = std::fs::read(path).unwrap();
        let name = path.display().to_string();
        for bytes in [&bytes[..], &bytes[..bytes.len() * 2 / 3]] {
            match check(bytes, &hints, &name) {
                Some(count) => entries += count,
                None => refused += 1,
            }
        }
    }
    assert!(documents.len() > 80, "only {} documents", documents.len());
    assert!(
        entries > 200 && refused > 5,
        "{entries} entries, {refused} documents refused"
    );
}

#[test]
fn a_resource_is_a_feed_of_one_entry() {
    let hints = Hints {
        resource: Some("http://example.org/notes.txt"),
        content_type: Some("text/plain"),
        ..Hints::default()
    };
    assert_eq!(check(b"Milk, bread", &hints, "a resource"), Some(1));
}

#[test]
fn a_cut_document_says_so() {
    let document =
        "<rss><channel><item><guid>1</guid></item><item><guid>2</guid></item></channel></rss>";
    let feed = |length: usize| parse(&document.as_bytes()[..length], &Hints::default()).unwrap();
    assert!(!feed(document.len()).is_truncated());
    let cut = feed(60);
    assert!(cut.is_truncated() && cut.notes.contains(&Note::Truncated));
    assert_eq!(cut.entries.len(), 1);
}
