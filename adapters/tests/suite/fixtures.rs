//! Our own fixtures: files that say themselves what they show and what is expected.
//!
//! A comment in the file holds one `Description:` line and any number of `Expect: PATH = VALUE`
//! lines; JSON, which has no comments and may be broken on purpose, has them in a file
//! `NAME.json.expect` beside it. The path walks the JSON form of the window (`head.title.value`,
//! `entries.0.key`, `entries.length`); the value is JSON, `null` for what is absent; in an object,
//! what is absent need not be named. `Expect: error = "text"` wants the document refused with an
//! error that holds the text. The document's URL is http://example.org/feeds/fixture.xml.

use std::path::Path;

use everfeed_adapters::{Hints, slice};
use serde_json::{Value, json};

/// The window as JSON; `markup` is left out, every entry is parsed and carries its key and its
/// notes.
fn read(bytes: &[u8]) -> Value {
    let hints = Hints {
        base_url: Some("http://example.org/feeds/fixture.xml"),
        ..Hints::default()
    };
    let sliced = match slice(bytes, &hints) {
        Ok(sliced) => sliced,
        Err(error) => return json!({ "error": error.to_string() }),
    };
    let entries = sliced.entries.iter().map(|raw| {
        let (entry, notes) = raw.parse();
        let mut value = serde_json::to_value(entry).unwrap();
        value["key"] = serde_json::to_value(&raw.key).unwrap();
        value["named_by"] = raw.named_by().into();
        value["notes"] = serde_json::to_value(notes).unwrap();
        value
    });
    json!({
        "format": sliced.format,
        "version": sliced.version,
        "encoding": sliced.encoding,
        "head": sliced.metadata,
        "entries": entries.collect::<Vec<_>>(),
        "deletions": sliced.deletions,
        "notes": sliced.notes,
    })
}

pub(crate) fn find<'v>(value: &'v Value, path: &str) -> std::borrow::Cow<'v, Value> {
    use std::borrow::Cow;
    if let Some(path) = path.strip_suffix(".length") {
        let found = find(value, path);
        return Cow::Owned(json!(found.as_array().map_or(0, Vec::len)));
    }
    let pointer = format!("/{}", path.replace('.', "/"));
    value
        .pointer(&pointer)
        .map_or(Cow::Owned(Value::Null), Cow::Borrowed)
}

/// Without the fields that are `null`: those are absent, in what is expected too.
fn bare(value: &Value) -> Value {
    match value {
        Value::Object(fields) => {
            let present = fields.iter().filter(|(_, value)| !value.is_null());
            present
                .map(|(name, value)| (name.clone(), bare(value)))
                .collect()
        }
        Value::Array(items) => items.iter().map(bare).collect(),
        other => other.clone(),
    }
}

fn check(path: &Path) -> Vec<String> {
    let bytes = std::fs::read(path).unwrap();
    let sliced = read(&bytes);
    let beside = path.with_extension("json.expect");
    let words = if beside.exists() {
        std::fs::read(&beside).unwrap()
    } else {
        bytes
    };
    let text = String::from_utf8_lossy(&words);
    let expectations: Vec<_> = text
        .lines()
        .filter_map(|line| line.trim().strip_prefix("Expect: "))
        .collect();
    assert!(
        !expectations.is_empty(),
        "{} expects nothing",
        path.display()
    );
    assert!(
        text.contains("Description: "),
        "{} says nothing",
        path.display()
    );
    let failure = |expectation: &str| {
        let (at, expect) = expectation
            .split_once(" = ")
            .unwrap_or_else(|| panic!("{}: {expectation}", path.display()));
        let expect: Value =
            serde_json::from_str(expect).unwrap_or_else(|error| panic!("{expectation}: {error}"));
        let found = find(&sliced, at);
        let holds = match (at, found.as_str(), expect.as_str()) {
            ("error", Some(found), Some(expect)) => found.contains(expect),
            _ => bare(&found) == bare(&expect),
        };
        (!holds).then(|| format!("{}: {at} is {found} instead of {expect}", path.display()))
    };
    expectations.into_iter().filter_map(failure).collect()
}

#[test]
fn every_fixture_reads_as_it_says() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures");
    let mut paths: Vec<_> = std::fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect();
    paths.retain(|path| {
        path.extension()
            .is_some_and(|extension| extension != "expect")
    });
    paths.sort();
    let failures: Vec<_> = paths.iter().flat_map(|path| check(path)).collect();
    assert!(paths.len() >= 20, "only {} fixtures", paths.len());
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}
