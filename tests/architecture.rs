//! Who may import whom (ARCHITECTURE.md, "The dependency rule"). Changing a table is a design change: say why.

use std::{
    collections::BTreeSet,
    fs,
    path::{Path, PathBuf},
};

/// Every room below `src/` and the rooms it may name, besides itself and the foundations.
const ROOMS: &[(&str, &[&str])] = &[
    ("feed", &[]),
    ("render", &["feed"]),
    ("store", &["feed"]),
    ("notify", &["feed"]),
    ("readers", &["feed", "render", "store", "notify"]),
    ("layers", &[]),
    ("ingest", &["feed", "store", "notify", "layers"]),
    ("serve", &["feed", "render", "store", "notify", "readers", "layers"]),
    ("hub", &["feed", "render", "store", "notify", "readers", "layers"]),
    ("config", &["feed", "store", "readers", "layers", "ingest", "serve", "hub"]),
    ("app", &["feed", "render", "store", "notify", "readers", "layers", "ingest", "serve", "hub", "config"]),
    // `render` for the words of a title: `probe` shows them as the outputs do.
    ("cli", &["feed", "render", "store", "config", "app"]),
    ("clock", &[]),
    ("secret", &[]),
    ("telemetry", &[]),
];

/// What any room may name, because it names nothing of ours.
const FOUNDATIONS: &[&str] = &["clock", "secret", "telemetry"];

/// Rooms that never await, open anything or ask the time.
const PURE: &[&str] = &["feed", "render"];

/// What a pure room never says, and why.
const IMPURE: &[(&str, &str)] = &[
    ("async ", "pure code does not await"),
    (".await", "pure code does not await"),
    ("tokio::", "pure code knows no runtime"),
    ("SystemTime::now", "`now` is an argument"),
    ("Instant::now", "`now` is an argument"),
    ("Utc::now", "`now` is an argument"),
    ("crate::clock", "`now` is an argument"),
    ("std::fs", "bytes are an argument"),
    ("std::net", "pure code opens nothing"),
    ("std::env", "configuration is an argument"),
    ("rand::", "chance is an argument"),
];

fn source() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("src")
}

/// Every file of a room that is not a test, with its text.
fn files(room: &str) -> Vec<(PathBuf, String)> {
    let mut found = Vec::new();
    let mut folders = vec![source().join(room)];
    let own = source().join(format!("{room}.rs"));
    if own.exists() {
        found.push(own);
    }
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).into_iter().flatten().flatten() {
            let path = entry.path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                found.push(path);
            }
        }
    }
    found.into_iter().filter(|path| !is_test(path)).map(|path| (path.clone(), text(&path))).collect()
}

fn is_test(path: &Path) -> bool {
    let inside = path.strip_prefix(source()).expect("a file of ours");
    inside.components().any(|part| {
        let name = part.as_os_str().to_string_lossy();
        ["tests", "tests.rs", "conformance", "conformance.rs", "vectors.rs", "testing.rs"]
            .contains(&name.as_ref())
    })
}

/// A file without its comments and without the tests at its end.
fn text(path: &Path) -> String {
    let whole = fs::read_to_string(path).expect("a readable file");
    let code = whole.split("#[cfg(test)]\nmod tests {").next().unwrap_or_default().to_owned();
    code.lines().map(|line| line.split("//").next().unwrap_or_default()).collect::<Vec<_>>().join("\n")
}

/// The rooms that a text names, as `crate::room` or inside `use crate::{room, ...}`.
fn named(text: &str) -> BTreeSet<String> {
    let mut rooms = BTreeSet::new();
    for after in text.split("crate::").skip(1) {
        match after.strip_prefix('{') {
            None => rooms.extend(word(after)),
            Some(group) => rooms.extend(first_words(group)),
        }
    }
    rooms
}

fn word(text: &str) -> Option<String> {
    let end = text.find(|c: char| !c.is_ascii_alphanumeric() && c != '_').unwrap_or(text.len());
    (end > 0).then(|| text[..end].to_owned())
}

/// The first word of each branch of a braced import, whose opening brace is already gone.
fn first_words(group: &str) -> Vec<String> {
    let (mut depth, mut at_start, mut words) = (0, true, Vec::new());
    for (at, c) in group.char_indices() {
        match c {
            '{' => depth += 1,
            '}' if depth == 0 => break,
            '}' => depth -= 1,
            ',' if depth == 0 => at_start = true,
            c if at_start && depth == 0 && c.is_ascii_alphabetic() => {
                words.extend(word(&group[at..]));
                at_start = false;
            }
            _ => {}
        }
    }
    words
}

#[test]
fn every_room_names_only_the_rooms_below_it() {
    for (room, below) in ROOMS {
        for (path, text) in files(room) {
            for named in named(&text) {
                let known = ROOMS.iter().any(|(other, _)| *other == named);
                let allowed = named == *room
                    || below.contains(&named.as_str())
                    || FOUNDATIONS.contains(&named.as_str());
                assert!(!known || allowed, "{} names `{named}`, which `{room}` must not", path.display());
            }
        }
    }
}

#[test]
fn every_room_is_in_the_table() {
    let module =
        |line: &str| line.strip_prefix("pub mod ").and_then(|name| name.strip_suffix(';')).map(str::to_owned);
    let library = fs::read_to_string(source().join("lib.rs")).expect("the library");
    let rooms: Vec<_> = library.lines().filter_map(module).collect();
    assert!(rooms.len() > 10, "the rooms were not found: {rooms:?}");
    for room in rooms {
        assert!(ROOMS.iter().any(|(known, _)| *known == room), "`{room}` is not in the table");
    }
}

#[test]
fn pure_rooms_never_await_open_anything_or_ask_the_time() {
    let adapters = Path::new(env!("CARGO_MANIFEST_DIR")).join("adapters/src");
    let mut pure: Vec<_> = PURE.iter().flat_map(|room| files(room)).collect();
    let mut folders = vec![adapters];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).expect("the adapters").flatten() {
            let path = entry.path();
            if path.is_dir() {
                folders.push(path);
            } else if path.file_name().is_some_and(|name| name != "tests.rs") {
                pure.push((path.clone(), text(&path)));
            }
        }
    }
    assert!(pure.len() > 15, "only {} pure files were found", pure.len());
    for (path, text) in pure {
        for (word, why) in IMPURE {
            assert!(!text.contains(word), "{} says `{word}`: {why}", path.display());
        }
    }
}

#[test]
fn the_reader_of_imports_sees_what_is_named() {
    let text = "use crate::{\n    feed::{item::Item, page},\n    store::Store,\n    hub,\n};\nlet x = crate::render::page();";
    let expect = ["feed", "hub", "render", "store"].map(String::from);
    assert_eq!(named(text), BTreeSet::from(expect));
}
