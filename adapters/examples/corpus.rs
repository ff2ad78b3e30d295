//! Reads every document of a folder, to compare readers: with `--corpus DIR` one line of JSON for
//! each document, in the neutral form; with `--sequences DIR`, whose folders hold successive versions
//! of a document, one for each step from a version to the next. Not one document: `everfeed probe
//! --json` prints the same line for that.
//!
//! `cargo run -p everfeed-adapters --example corpus -- --corpus DIR`

#![expect(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "a program of one task may wait for its files"
)]

use everfeed_adapters::{Digest, Hints, Key, neutral_line, slice};
use serde_json::{Value, json};
use std::{
    collections::BTreeMap,
    ffi::OsString,
    fs::{self, File},
    io::{self, BufWriter, Read as _, Write},
    panic,
    path::{Path, PathBuf},
    process::ExitCode,
    thread,
};

/// Bytes of a document at most: what polling takes by default.
const BODY_BYTES_MAX: u64 = 32 << 20;
/// Exit code of a command that cannot be meant (`EX_USAGE`).
const MISUSED: u8 = 64;

fn main() -> ExitCode {
    let mut arguments = std::env::args_os().skip(1);
    let (flag, folder) = (arguments.next(), arguments.next().map(PathBuf::from));
    let (Some(flag), Some(folder), None) = (flag, folder, arguments.next()) else {
        eprintln!("corpus: give `--corpus DIR` or `--sequences DIR`");
        return ExitCode::from(MISUSED);
    };
    let (out, notes) = (&mut BufWriter::new(io::stdout()), &mut io::stderr());
    let done = match flag.to_str() {
        Some("--corpus") => corpus(&folder, out, notes),
        Some("--sequences") => sequences(&folder, out, notes),
        _ => {
            eprintln!("corpus: {flag:?} is no flag; give `--corpus DIR` or `--sequences DIR`");
            return ExitCode::from(MISUSED);
        }
    };
    match done.and_then(|()| out.flush()) {
        Ok(()) => ExitCode::SUCCESS,
        // Whoever reads the lines has seen enough.
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("corpus: {}", tame(&error.to_string()));
            ExitCode::FAILURE
        }
    }
}

/// Prints a line for every document below a folder, in the order of their names. All cores read.
fn corpus(folder: &Path, out: &mut impl Write, notes: &mut impl Write) -> io::Result<()> {
    let documents = documents(folder, notes)?;
    let cores = thread::available_parallelism().map_or(1, usize::from);
    let share = documents.len().div_ceil(cores).max(1);
    let read = |paths: &[PathBuf]| -> Vec<String> {
        paths.iter().map(|path| line(folder, path)).collect()
    };
    thread::scope(|scope| {
        let shares: Vec<_> = documents
            .chunks(share)
            .map(|paths| scope.spawn(|| read(paths)))
            .collect();
        for share in shares {
            let lines = share.join().expect("a panic of one document is caught");
            for line in lines {
                writeln!(out, "{line}")?;
            }
        }
        Ok(())
    })
}

fn line(folder: &Path, path: &Path) -> String {
    let file = path
        .strip_prefix(folder)
        .unwrap_or(path)
        .display()
        .to_string();
    let failed = |why: String| json!({ "file": file, "ok": false, "error": why });
    let value = match Document::read(path) {
        // One document that breaks the reader must not cost the lines of the others.
        Ok(document) => panic::catch_unwind(|| {
            neutral_line(&file, slice(&document.bytes, &document.hints()).as_ref())
        })
        .unwrap_or_else(|_| failed("reading it broke off; this is a bug in everfeed".to_owned())),
        Err(error) => failed(error.to_string()),
    };
    tame(&value.to_string())
}

/// One version of a document of a sequence.
struct Version {
    /// The name of its file.
    file: String,
    /// Its keys, and the digests of what they name.
    entries: BTreeMap<String, Digest>,
}

/// Prints a line for every step of every sequence below a folder, which may be a sequence itself:
/// which keys come and go, and which entries change. What absence means is not asked.
fn sequences(folder: &Path, out: &mut impl Write, notes: &mut impl Write) -> io::Result<()> {
    let mut before: Option<(&Path, Version)> = None;
    let documents = documents(folder, notes)?;
    for path in &documents {
        let sequence = path.parent().unwrap_or(folder);
        let name = sequence.file_name().unwrap_or_default().to_string_lossy();
        let file = path.file_name().unwrap_or_default().to_string_lossy();
        let document = Document::read(path)
            .map_err(|error| io::Error::other(format!("{}: {error}", path.display())))?;
        let sliced = match slice(&document.bytes, &document.hints()) {
            Ok(sliced) => sliced,
            // A version that is no feed changes nothing, as in polling.
            Err(error) => {
                let error = error.to_string();
                let line = json!({ "sequence": name, "file": file, "ok": false, "error": error });
                writeln!(out, "{}", tame(&line.to_string()))?;
                pass_over(path, &error, notes)?;
                continue;
            }
        };
        let mut entries = BTreeMap::new();
        for raw in &sliced.entries {
            let (Key::Id(key) | Key::Link(key) | Key::Title(key) | Key::Digest(key)) = &raw.key;
            entries
                .entry(key.clone())
                .or_insert_with(|| raw.parse().0.digest());
        }
        let file = file.into_owned();
        let version = Version { file, entries };
        if let Some((folder, before)) = &before
            && *folder == sequence
        {
            writeln!(
                out,
                "{}",
                tame(&version.step_from(before, &name).to_string())
            )?;
        }
        before = Some((sequence, version));
    }
    Ok(())
}

impl Version {
    /// The step to this version.
    fn step_from(&self, before: &Self, sequence: &str) -> Value {
        let edited: Vec<_> = self
            .entries
            .iter()
            .filter(|(key, digest)| before.entries.get(*key).is_some_and(|old| old != *digest))
            .map(|(key, _)| key)
            .collect();
        json!({
            "sequence": sequence, "from": before.file, "to": self.file,
            "added": self.keys_beyond(before), "gone": before.keys_beyond(self), "edited": edited,
        })
    }

    /// The keys that another version lacks.
    fn keys_beyond(&self, other: &Self) -> Vec<&String> {
        self.entries
            .keys()
            .filter(|key| !other.entries.contains_key(*key))
            .collect()
    }
}

/// A document, and the answer in which it came.
struct Document {
    bytes: Vec<u8>,
    /// The text beside it, `NAME.expect.json`: `url`, `http_headers`.
    answer: Value,
}

impl Document {
    fn read(path: &Path) -> io::Result<Self> {
        let mut bytes = Vec::new();
        File::open(path)?
            .take(BODY_BYTES_MAX + 1)
            .read_to_end(&mut bytes)?;
        if bytes.len() as u64 > BODY_BYTES_MAX {
            let text = format!("it is larger than {BODY_BYTES_MAX} bytes");
            return Err(io::Error::other(text));
        }
        let mut beside = OsString::from(path);
        beside.push(".expect.json");
        let answer = fs::read(beside).unwrap_or_default();
        let answer = serde_json::from_slice(&answer).unwrap_or_default();
        Ok(Self { bytes, answer })
    }

    fn hints(&self) -> Hints<'_> {
        Hints {
            content_type: self.header("content-type"),
            content_language: self.header("content-language"),
            base_url: self
                .header("content-location")
                .or_else(|| self.answer["url"].as_str()),
            ..Hints::default()
        }
    }

    fn header(&self, name: &str) -> Option<&str> {
        let headers = self.answer["http_headers"].as_object()?;
        let (_, value) = headers
            .iter()
            .find(|(known, _)| known.eq_ignore_ascii_case(name))?;
        value.as_str()
    }
}

/// The documents below a folder, in the order of their names. Links to folders may lead anywhere,
/// back up as well, and what is no regular file may never end: both are passed over and noted.
fn documents(folder: &Path, notes: &mut impl Write) -> io::Result<Vec<PathBuf>> {
    let listing = fs::read_dir(folder)
        .map_err(|error| io::Error::other(format!("the folder {}: {error}", folder.display())))?;
    let mut paths = listing
        .map(|entry| entry.map(|entry| entry.path()))
        .collect::<Result<Vec<_>, _>>()?;
    paths.sort();
    let mut found = Vec::new();
    for path in paths {
        if !is_document(&path) {
            continue;
        }
        // A link that leads nowhere is told of when it is read.
        let Ok(metadata) = fs::metadata(&path) else {
            found.push(path);
            continue;
        };
        if metadata.is_file() {
            found.push(path);
        } else if !metadata.is_dir() {
            pass_over(&path, "it is no regular file", notes)?;
        } else if path.is_symlink() {
            pass_over(&path, "it is a link to a folder", notes)?;
        } else {
            found.extend(documents(&path, notes)?);
        }
    }
    Ok(found)
}

/// Notes something that has no line, or one without entries.
fn pass_over(path: &Path, why: &str, notes: &mut impl Write) -> io::Result<()> {
    let note = format!("everfeed: {} is passed over: {why}", path.display());
    writeln!(notes, "{}", tame(&note))
}

/// True for the name of a document, or of a folder of them, and not of what is said about them.
fn is_document(path: &Path) -> bool {
    let name = path
        .file_name()
        .map(|name| name.to_string_lossy().to_ascii_lowercase())
        .unwrap_or_default();
    let begins = ["readme", "licen", "copying", "notice", "manifest", "."];
    let ends = [".expect.json", ".md", ".py", ".sh", ".rs", ".toml"];
    !begins.iter().any(|start| name.starts_with(start))
        && !ends.iter().any(|end| name.ends_with(end))
}

/// A line that cannot steer a terminal: serde_json escapes C0 controls, but no others, and all of
/// them can only stand inside of strings.
fn tame(line: &str) -> String {
    let mut tamed = String::with_capacity(line.len());
    for c in line.chars() {
        if c.is_control() {
            tamed.push_str(&format!("\\u{:04x}", u32::from(c)));
        } else {
            tamed.push(c);
        }
    }
    tamed
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]
mod tests {
    use super::*;

    const RSS: &str = "<rss version='2.0'><channel><title>t</title><item><guid>1</guid></item>\
        <item><link>/second</link></item></channel></rss>";

    fn write(folder: &Path, name: &str, text: &str) {
        let path = folder.join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    /// The lines and the notes of a folder.
    fn read(
        folder: &Path,
        reader: fn(&Path, &mut Vec<u8>, &mut Vec<u8>) -> io::Result<()>,
    ) -> (Vec<Value>, String) {
        let (mut out, mut notes) = (Vec::new(), Vec::new());
        reader(folder, &mut out, &mut notes).unwrap();
        let out = String::from_utf8(out).unwrap();
        assert!(!out.contains(|c: char| c.is_control() && c != '\n'));
        let lines = out
            .lines()
            .map(|line| serde_json::from_str(line).unwrap())
            .collect();
        (lines, String::from_utf8(notes).unwrap())
    }

    fn files(lines: &[Value]) -> Vec<&str> {
        lines
            .iter()
            .map(|line| line["file"].as_str().unwrap())
            .collect()
    }

    #[test]
    fn a_folder_becomes_a_line_for_each_document_in_order() {
        let folder = tempfile::tempdir().unwrap();
        write(folder.path(), "README.md", "not a document");
        write(folder.path(), "rss/b.xml", RSS);
        write(
            folder.path(),
            "rss/b.xml.expect.json",
            r#"{"url": "http://b.example/rss/", "http_headers": {"Content-type": "text/xml; charset=windows-1252"}}"#,
        );
        write(folder.path(), "a.xml", "<opml/>");
        write(
            folder.path(),
            "rss/c/d.xml",
            "<feed xmlns='http://www.w3.org/2005/Atom'><title>\u{90}</title></feed>",
        );
        let (lines, notes) = read(folder.path(), corpus);
        assert_eq!(notes, "");
        assert_eq!(files(&lines), ["a.xml", "rss/b.xml", "rss/c/d.xml"]);
        assert_eq!(lines[0]["ok"], false);
        assert_eq!(
            lines[0]["error"],
            "the document is OPML, a list of feeds and no feed; `everfeed import FILE` adds the feeds that it names"
        );
        assert_eq!(
            (&lines[1]["version"], &lines[1]["encoding"]),
            (&"rss20".into(), &"windows-1252".into())
        );
        assert_eq!(lines[1]["entries"][1]["link"], "http://b.example/second");
        assert_eq!(
            (&lines[2]["version"], &lines[2]["feed"]["title"]),
            (&"atom10".into(), &"\u{90}".into())
        );
        assert!(documents(&folder.path().join("none"), &mut Vec::new()).is_err());
    }

    #[cfg(unix)]
    #[test]
    fn what_is_no_regular_file_is_passed_over_and_links_to_folders_too() {
        let folder = tempfile::tempdir().unwrap();
        write(folder.path(), "a.xml", RSS);
        std::os::unix::fs::symlink(folder.path(), folder.path().join("up")).unwrap();
        std::os::unix::fs::symlink("a.xml", folder.path().join("b.xml")).unwrap();
        let _socket = std::os::unix::net::UnixListener::bind(folder.path().join("c")).unwrap();
        // Nobody ever writes into it.
        let fifo = std::process::Command::new("mkfifo")
            .arg(folder.path().join("d"))
            .status();
        assert!(fifo.unwrap().success());
        let (lines, notes) = read(folder.path(), corpus);
        assert_eq!(files(&lines), ["a.xml", "b.xml"]);
        for (name, why) in [
            ("up", "a link to a folder"),
            ("c", "no regular file"),
            ("d", "no regular file"),
        ] {
            let note = format!("/{name} is passed over: it is {why}\n");
            assert!(notes.contains(&note), "{notes}");
        }
    }

    #[test]
    fn versions_of_a_document_become_a_line_for_each_step() {
        let folder = tempfile::tempdir().unwrap();
        let document = |items: [(&str, &str); 2]| {
            let items = items.map(|(guid, title)| {
                format!("<item><guid>{guid}</guid><title>{title}</title></item>")
            });
            let items = items.concat();
            format!("<rss version='2.0'><channel><title>t</title>{items}</channel></rss>")
        };
        let first = document([("b", "B"), ("a", "A")]);
        write(folder.path(), "blog/0000.xml", &first);
        write(
            folder.path(),
            "blog/0001.xml",
            "<html><body>502</body></html>",
        );
        let third = document([("c", "C"), ("b", "B!")]);
        write(folder.path(), "blog/0002.xml", &third);
        write(folder.path(), "blog/manifest.json", "{}");
        write(folder.path(), "other/0000.xml", RSS);
        let (lines, notes) = read(folder.path(), sequences);
        let note = "blog/0001.xml is passed over: the document is an HTML page";
        assert!(notes.contains(note), "{notes}");
        let expect = json!([{
            "sequence": "blog", "file": "0001.xml", "ok": false, "error": "the document is an HTML page, not a feed",
        }, {
            "sequence": "blog", "from": "0000.xml", "to": "0002.xml", "added": ["c"], "gone": ["a"], "edited": ["b"],
        }]);
        assert_eq!(Value::from(lines), expect);
    }
}
