//! The last documents of a feed as they came, and what else was answered between them, kept in a
//! folder so that what was decided on them can be played again; not what was decided.

use super::{
    DeletionSettings, FeedSpec, Fetched, RecordSettings,
    compute::{Computing, compute},
};
use crate::feed::{
    absence::{CheckResult, ControlFinding, Coverage},
    schedule::Failure,
    stamp::Stamp,
};
use serde::{Deserialize, Serialize};
use std::{
    fs, io,
    os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _},
    path::{Path, PathBuf},
};
use tracing::warn;

/// Facts that came with a document: `NNNN.json` beside `NNNN.xml`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Recorded {
    /// Time at which it was read, microseconds since 1970.
    pub at_us: u64,
    /// The same for people, RFC 3339.
    pub at: String,
    /// The URL that answered, without credentials.
    pub url: String,
    /// True when it answered a request with validators.
    pub conditional: bool,
    /// True when the server sent a part (226).
    pub is_part: bool,
    /// True when it is the document before it once more; recordings of older versions lack it.
    #[serde(default)]
    pub is_again: bool,
    /// `Content-Type`.
    pub content_type: Option<String>,
    /// `Content-Language`.
    pub content_language: Option<String>,
    /// The other headers by which software is recognised; never cookies.
    pub headers: Vec<(String, String)>,
    /// The settings under which it was decided on; recordings of older versions lack them.
    #[serde(default)]
    pub under: RecordedSettings,
}

/// Settings of a feed on which its items and what becomes of them depend.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RecordedSettings {
    /// The namespace of its ids.
    pub namespace: Option<String>,
    /// Proof that a tombstone needs.
    pub deletions: Option<DeletionSettings>,
    /// Its first public URL, where that is elsewhere than upstream.
    pub public_url: Option<String>,
    /// The URL that names the document, where that is wanted as it is instead of as a feed.
    pub resource: Option<String>,
    /// Its public address, where that is another one; recordings of older versions lack it.
    #[serde(default)]
    pub address: Option<String>,
    /// True when the document was read although it was the last one again.
    pub is_reread: bool,
}

/// An answer that was no document: a line of `pages.jsonl`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum RecordedAnswer {
    /// A page of an item.
    Page(RecordedPage),
    /// A page by which those of items are told apart.
    Control(RecordedControl),
    /// A poll that brought no document.
    Poll(RecordedPoll),
}

/// Finding of a control of permalink checks.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RecordedControl {
    /// Time of the control, microseconds since 1970.
    pub at_us: u64,
    /// The same for people, RFC 3339.
    pub at: String,
    /// The finding.
    pub control: ControlFinding,
}

/// A poll without a document. Only those are kept on which something depends: the first one after a
/// document, those while edits are deferred, and the first one of each kind of failure.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RecordedPoll {
    /// Time of the poll, microseconds since 1970.
    pub at_us: u64,
    /// The same for people, RFC 3339.
    pub at: String,
    /// Its end.
    pub poll: QuietPoll,
    /// Reason of a failure; recordings of older versions lack it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
    /// Status of a failure, if the publisher gave one; recordings of older versions lack it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<u16>,
}

/// End of a poll without a document.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum QuietPoll {
    /// 304.
    Unchanged,
    /// No answer, or none that was good.
    Failed,
}

impl RecordedAnswer {
    /// Time of the answer, microseconds since 1970.
    pub const fn at_us(&self) -> u64 {
        match self {
            Self::Page(RecordedPage { at_us, .. })
            | Self::Control(RecordedControl { at_us, .. })
            | Self::Poll(RecordedPoll { at_us, .. }) => *at_us,
        }
    }

    const fn behind_us(&self) -> Option<u64> {
        match self {
            Self::Page(page) => page.behind_us,
            Self::Control(_) | Self::Poll(_) => None,
        }
    }
}

/// Result of a permalink check.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RecordedPage {
    /// Time of the check, microseconds since 1970.
    pub at_us: u64,
    /// The same for people, RFC 3339.
    pub at: String,
    /// IRI of the item, as `atom:id` carries it.
    pub iri: String,
    /// Our id of the item; recordings of older versions lack it.
    #[serde(default)]
    pub id: Option<String>,
    /// True when it was a tombstone that was asked about again.
    #[serde(default)]
    pub is_tombstone: bool,
    /// Time of the last full document that was decided on before it, microseconds since 1970;
    /// recordings of older versions lack it.
    #[serde(default)]
    pub behind_us: Option<u64>,
    /// Its permalink, if it has one.
    pub link: Option<String>,
    /// The result.
    pub said: CheckResult,
}

/// File of the answers that are no documents, beside those.
const ANSWERS: &str = "pages.jsonl";

/// Bytes of that from which on its older half goes: some twenty thousand lines.
const ANSWERS_BYTES_MAX: u64 = 4 << 20;

/// Times at which answers are played among documents, which are in their order: their own, but for a
/// page that was decided on while a document was still read. It is played just before that document,
/// and nothing that was answered earlier is played later. Only a document with something new in it
/// tells by its time that it was decided on.
pub fn played_at(documents: &[&Recorded], answers: &[RecordedAnswer]) -> Vec<u64> {
    let mut times: Vec<u64> = answers.iter().map(RecordedAnswer::at_us).collect();
    let mut bound = u64::MAX;
    for (time, answer) in times.iter_mut().zip(answers).rev() {
        if let Some(behind_us) = answer.behind_us() {
            let next = documents.partition_point(|came| came.at_us <= behind_us);
            let next = documents[next..]
                .iter()
                .find(|came| !came.is_part && !came.is_again);
            *time = next.map_or(*time, |came| (*time).min(came.at_us.saturating_sub(1)));
        }
        *time = (*time).min(bound);
        bound = *time;
    }
    times
}

impl RecordSettings {
    /// Keeps a document of the feed of this name, and lets go of the oldest. Blocks. Only the owner
    /// of the process may read what is kept: a feed may be private.
    pub(super) fn keep(
        &self,
        name: &str,
        fetched: &Fetched,
        under: RecordedSettings,
        at: Stamp,
    ) -> io::Result<()> {
        if fetched.body.len() as u64 > self.bytes_max {
            return Ok(());
        }
        let folder = self.folder_of(name)?;
        let mut kept = numbers(&folder)?;
        let number = kept.last().map_or(0, |last| last + 1);
        let (body, beside) = files(&folder, number);
        let last = kept.last().map(|last| files(&folder, *last).0);
        let equals = |last: &PathBuf| fs::read(last).is_ok_and(|bytes| bytes == fetched.body);
        let last = last.filter(equals);
        let is_again = last.is_some();
        let is_linked = last.is_some_and(|last| fs::hard_link(last, &body).is_ok());
        if !is_linked {
            write(&body, &fetched.body)?;
        }
        // The body first: what a crash leaves without its JSON is overwritten by the next.
        let told = Recorded {
            is_again,
            ..Recorded::of(fetched, under, at)
        };
        write(&beside, &serde_json::to_vec_pretty(&told)?)?;
        kept.push(number);
        self.trim(&folder, &kept)
    }

    /// The folder of the feed of this name, which is made where there is none. Blocks.
    fn folder_of(&self, name: &str) -> io::Result<PathBuf> {
        let folder = self.folder.join(name);
        fs::DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(&folder)?;
        Ok(folder)
    }

    /// Keeps an answer about the feed of this name that was no document. Blocks.
    pub(super) fn keep_answer(&self, name: &str, answer: &RecordedAnswer) -> io::Result<()> {
        let folder = self.folder_of(name)?;
        let path = folder.join(ANSWERS);
        let mut line = serde_json::to_string(answer)?;
        let kept = path.metadata().map_or(0, |found| found.len());
        if kept >= ANSWERS_BYTES_MAX {
            let text = fs::read(&path)?;
            let half = text.len() / 2;
            let from = text[half..]
                .iter()
                .position(|b| *b == b'\n')
                .map_or(text.len(), |at| half + at + 1);
            let new = folder.join("pages.jsonl.new");
            write(&new, &text[from..])?;
            fs::rename(new, &path)?;
        }
        // A line that a crash left half is ended, so that this one stands alone.
        if !is_ended(&path)? {
            line.insert(0, '\n');
        }
        line.push('\n');
        let mut file = fs::OpenOptions::new()
            .append(true)
            .create(true)
            .mode(0o600)
            .open(&path)?;
        io::Write::write_all(&mut file, line.as_bytes())
    }

    fn trim(&self, folder: &Path, kept: &[u64]) -> io::Result<()> {
        let mut bytes = 0;
        for (at, number) in kept.iter().rev().enumerate() {
            let (body, beside) = files(folder, *number);
            bytes += body.metadata().map_or(0, |found| found.len());
            if at >= self.bodies || bytes > self.bytes_max {
                fs::remove_file(beside)?;
                fs::remove_file(body)?;
            }
        }
        Ok(())
    }
}

// Decides: What is recorded besides documents, so that `replay` ends as the run did?
/// Keeps an answer about a feed, if the feed is recorded: without it, its documents play to another
/// end. One that cannot be kept counts all the same.
pub(super) async fn record_answer(feed: &FeedSpec, answer: RecordedAnswer) -> Result<(), Failure> {
    let Some(record) = feed.record.clone() else {
        return Ok(());
    };
    let name = feed.name.clone();
    compute(Computing::Pool, move || {
        if let Err(error) = record.keep_answer(&name, &answer) {
            let folder = record.folder.display();
            warn!(feed.name = %name, "An answer about `{name}` could not be recorded in {folder}: {error}");
        }
    })
    .await
}

/// Headers that say nothing of the software, or too much of us.
const HEADERS_LEFT_OUT: &[&str] = &[
    "set-cookie",
    "set-cookie2",
    "www-authenticate",
    "authorization",
];

impl Recorded {
    fn of(fetched: &Fetched, under: RecordedSettings, at: Stamp) -> Self {
        let header = |(name, value): (&http::HeaderName, &http::HeaderValue)| {
            let told = !HEADERS_LEFT_OUT.contains(&name.as_str());
            told.then(|| Some((name.to_string(), value.to_str().ok()?.to_owned())))?
        };
        Self {
            at_us: at.micros(),
            at: at.rfc3339(),
            url: fetched.base_url.clone(),
            conditional: fetched.answer.conditional,
            is_part: fetched.coverage == Coverage::Delta,
            is_again: false,
            content_type: fetched.content_type.clone(),
            content_language: fetched.content_language.clone(),
            headers: fetched.headers.iter().filter_map(header).collect(),
            under,
        }
    }
}

/// The recorded documents of a folder, oldest first, each with its file and what came with it, or
/// the reason why that cannot be read: a crash leaves half of it, and no other document less.
pub fn recorded(folder: &Path) -> io::Result<Vec<(PathBuf, Result<Recorded, String>)>> {
    let read = |number: u64| {
        let (body, beside) = files(folder, number);
        let told = fs::read(&beside).map_err(|error| error.to_string());
        let told = told.and_then(|bytes| {
            serde_json::from_slice(&bytes).map_err(|error| format!("{}: {error}", beside.display()))
        });
        (body, told)
    };
    Ok(numbers(folder)?.into_iter().map(read).collect())
}

/// The recorded answers that were no documents, oldest first. A line that a crash left half is
/// none.
pub fn recorded_answers(folder: &Path) -> io::Result<Vec<RecordedAnswer>> {
    match fs::read(folder.join(ANSWERS)) {
        Ok(bytes) => {
            let lines = bytes.split(|b| *b == b'\n');
            Ok(lines
                .filter_map(|line| serde_json::from_slice(line).ok())
                .collect())
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Vec::new()),
        Err(error) => Err(error),
    }
}

/// True for a file that is empty, or ends with a line feed.
fn is_ended(path: &Path) -> io::Result<bool> {
    let mut file = match fs::File::open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(true),
        Err(error) => return Err(error),
    };
    if file.metadata()?.len() == 0 {
        return Ok(true);
    }
    let mut last = [0];
    io::Seek::seek(&mut file, io::SeekFrom::End(-1))?;
    io::Read::read_exact(&mut file, &mut last)?;
    Ok(last == *b"\n")
}

/// The numbers of the documents in a folder that are there whole, in order.
fn numbers(folder: &Path) -> io::Result<Vec<u64>> {
    let mut numbers = Vec::new();
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        let is_json = path
            .extension()
            .is_some_and(|extension| extension == "json");
        let number = path
            .file_stem()
            .and_then(|stem| stem.to_str())
            .and_then(|stem| stem.parse().ok());
        numbers.extend(number.filter(|_: &u64| is_json && path.with_extension("xml").exists()));
    }
    numbers.sort_unstable();
    Ok(numbers)
}

/// The document of this number and what came with it.
fn files(folder: &Path, number: u64) -> (PathBuf, PathBuf) {
    (
        folder.join(format!("{number:04}.xml")),
        folder.join(format!("{number:04}.json")),
    )
}

fn write(path: &Path, bytes: &[u8]) -> io::Result<()> {
    // A link to the body of another document must not be written through.
    if let Err(error) = fs::remove_file(path)
        && error.kind() != io::ErrorKind::NotFound
    {
        return Err(error);
    }
    let mut file = fs::OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(path)?;
    io::Write::write_all(&mut file, bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::feed::schedule::Answer;
    use bytes::Bytes;
    use http::HeaderMap;

    fn fetched(body: &'static str) -> Fetched {
        let headers = [("server", "Apache"), ("set-cookie", "secret")];
        let header = |(name, value): (&'static str, &'static str)| {
            (
                http::HeaderName::from_static(name),
                http::HeaderValue::from_static(value),
            )
        };
        Fetched {
            answer: Answer {
                conditional: true,
                ..Answer::default()
            },
            body: Bytes::from_static(body.as_bytes()),
            content_type: Some("text/xml".into()),
            content_language: None,
            headers: Box::new(HeaderMap::from_iter(headers.map(header))),
            base_url: "http://blog.example/rss.xml".into(),
            memory: None,
            resource: None,
            address: None,
            coverage: Coverage::Conditional,
        }
    }

    /// Keeps these documents, and tells what is there: file, content.
    fn check(bodies: usize, bytes_max: u64, documents: &[&'static str], expect: &[(&str, &str)]) {
        let folder = tempfile::tempdir().unwrap();
        let record = RecordSettings {
            folder: folder.path().join("made"),
            bodies,
            bytes_max,
        };
        for (n, document) in (0..).zip(documents) {
            record
                .keep(
                    "blog",
                    &fetched(document),
                    RecordedSettings::default(),
                    Stamp::from_secs(n),
                )
                .unwrap();
        }
        let found = recorded(&record.folder.join("blog")).unwrap();
        let name = |path: &Path| path.file_name().unwrap().to_string_lossy().into_owned();
        let found: Vec<_> = found
            .iter()
            .map(|(path, _)| (name(path), fs::read_to_string(path).unwrap()))
            .collect();
        let expect: Vec<_> = expect
            .iter()
            .map(|(a, b)| ((*a).to_owned(), (*b).to_owned()))
            .collect();
        assert_eq!(found, expect);
    }

    #[test]
    fn the_last_documents_are_kept_and_no_more_bytes_than_allowed() {
        check(
            2,
            100,
            &["a", "b", "c"],
            &[("0001.xml", "b"), ("0002.xml", "c")],
        );
        check(
            9,
            5,
            &["aaa", "bbb", "cc"],
            &[("0001.xml", "bbb"), ("0002.xml", "cc")],
        );
        check(9, 5, &["aaa", "bbbbbbb"], &[("0000.xml", "aaa")]);
        check(
            2,
            100,
            &["a", "a", "a", "b"],
            &[("0002.xml", "a"), ("0003.xml", "b")],
        );
    }

    #[test]
    fn what_came_with_a_document_stands_beside_it_without_cookies() {
        let folder = tempfile::tempdir().unwrap();
        let record = RecordSettings {
            folder: folder.path().to_owned(),
            bodies: 2,
            bytes_max: 100,
        };
        let under = RecordedSettings {
            namespace: Some("blog.example/rss.xml".into()),
            ..Default::default()
        };
        record
            .keep(
                "blog",
                &fetched("x"),
                under.clone(),
                Stamp::from_secs(1_780_272_000),
            )
            .unwrap();
        let (_, told) = recorded(&folder.path().join("blog")).unwrap().remove(0);
        let told = told.unwrap();
        assert_eq!(
            (&*told.at, told.conditional, told.under),
            ("2026-06-01T00:00:00Z", true, under)
        );
        assert_eq!(told.headers, [("server".to_owned(), "Apache".to_owned())]);
        let mode = std::os::unix::fs::PermissionsExt::mode;
        let of = |path: &str| {
            mode(
                &folder
                    .path()
                    .join("blog")
                    .join(path)
                    .metadata()
                    .unwrap()
                    .permissions(),
            )
        };
        assert_eq!((of("0000.xml") & 0o777, of("") & 0o777), (0o600, 0o700));
    }

    #[test]
    fn a_page_is_played_before_a_document_that_was_decided_on_after_it() {
        let came = |at_us, is_part, is_again| Recorded {
            at_us,
            at: String::new(),
            url: String::new(),
            conditional: false,
            is_part,
            is_again,
            content_type: None,
            content_language: None,
            headers: Vec::new(),
            under: RecordedSettings::default(),
        };
        let page = |at_us, behind_us| {
            RecordedAnswer::Page(RecordedPage {
                at_us,
                at: String::new(),
                iri: String::new(),
                id: None,
                is_tombstone: false,
                behind_us,
                link: None,
                said: CheckResult::NotFound,
            })
        };
        let control = RecordedAnswer::Control(RecordedControl {
            at_us: 32,
            at: String::new(),
            control: ControlFinding::Shown,
        });
        let documents = [
            came(10, false, false),
            came(20, true, false),
            came(30, false, false),
            came(40, false, false),
            came(50, false, true),
        ];
        let documents: Vec<&Recorded> = documents.iter().collect();
        let answers = [
            page(15, Some(10)),
            control,
            page(33, Some(10)),
            page(34, Some(30)),
            page(45, None),
            page(55, Some(40)),
        ];
        assert_eq!(played_at(&documents, &answers), [15, 29, 29, 34, 45, 55]);
    }

    #[test]
    fn answers_are_kept_in_order_and_the_oldest_go_first() {
        let folder = tempfile::tempdir().unwrap();
        let record = RecordSettings {
            folder: folder.path().to_owned(),
            bodies: 2,
            bytes_max: 100,
        };
        let page = |n: u64| {
            RecordedAnswer::Page(RecordedPage {
                at_us: n,
                at: Stamp::from_secs(n).rfc3339(),
                iri: "urn:x".into(),
                id: None,
                is_tombstone: false,
                behind_us: None,
                link: None,
                said: CheckResult::NotFound,
            })
        };
        let at = Stamp::from_secs(1).rfc3339();
        let control = RecordedControl {
            at_us: 1,
            at: at.clone(),
            control: ControlFinding::Refused,
        };
        let poll = RecordedPoll {
            at_us: 2,
            at,
            poll: QuietPoll::Unchanged,
            why: None,
            status: None,
        };
        let answers = [
            page(0),
            RecordedAnswer::Control(control),
            RecordedAnswer::Poll(poll),
        ];
        for answer in &answers {
            record.keep_answer("blog", answer).unwrap();
        }
        let kept = || recorded_answers(&folder.path().join("blog")).unwrap();
        assert_eq!(kept(), answers);
        let line = |n: u64| serde_json::to_string(&page(n)).unwrap() + "\n";
        let count = ANSWERS_BYTES_MAX / line(0).len() as u64 + 1;
        let many: String = (0..count).map(line).collect::<String>() + "{\"half";
        fs::write(folder.path().join("blog").join(ANSWERS), many).unwrap();
        record.keep_answer("blog", &page(count)).unwrap();
        let (first, last) = (kept()[0].at_us(), kept().last().unwrap().at_us());
        assert!(first > count / 3 && first < count, "{first}");
        assert_eq!((last, kept().len() as u64), (count, count - first + 1));
    }
}
