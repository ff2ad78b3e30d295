//! The sets of documents: those that are made here, and recorded ones where they are at hand; not
//! what is done with them.

use std::fs;
use std::path::{Path, PathBuf};

use quick_xml::Reader;
use quick_xml::events::Event;

use crate::made::{self, Shape};

/// Sizes of the made documents, in bytes.
const SIZES: [usize; 3] = [10_000, 100_000, 1_000_000];

/// Documents that are measured together.
pub(crate) struct Set {
    pub(crate) name: String,
    pub(crate) documents: Vec<Document>,
    /// Documents that bare tokenising does not read to the end, and that are therefore not
    /// compared.
    pub(crate) left_out: usize,
}

/// A document. Only UTF-8 is compared, because the denominator decodes nothing.
pub(crate) struct Document {
    pub(crate) text: String,
}

impl Set {
    fn of(name: impl Into<String>, found: Vec<Vec<u8>>) -> Self {
        let all = found.len();
        let documents: Vec<_> = found
            .into_iter()
            .filter_map(|bytes| String::from_utf8(bytes).ok())
            .filter(|text| is_readable(text))
            .map(|text| Document { text })
            .collect();
        let left_out = all - documents.len();
        Self {
            name: name.into(),
            documents,
            left_out,
        }
    }

    /// Bytes of all documents.
    pub(crate) fn bytes(&self) -> usize {
        self.documents
            .iter()
            .map(|document| document.text.len())
            .sum()
    }
}

/// Every set that there is.
pub(crate) fn sets() -> Vec<Set> {
    let made = Shape::ALL.map(|shape| {
        Set::of(
            format!("made: {}", shape.name()),
            SIZES
                .map(|bytes| made::document(shape, bytes).into())
                .into(),
        )
    });
    let shared = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../shared");
    let recorded = [
        ("sequences", &["sequences/"][..]),
        ("corpus/real-*", &["corpus/real-"]),
    ]
    .into_iter()
    .map(|(name, starts)| (name, recorded(&shared, starts)))
    .filter(|(_, found)| !found.is_empty())
    .map(|(name, found)| Set::of(format!("recorded: {name}"), found));
    made.into_iter().chain(recorded).collect()
}

/// The documents of the folders whose paths begin so.
fn recorded(shared: &Path, starts: &[&str]) -> Vec<Vec<u8>> {
    let Ok(shared) = shared.canonicalize() else {
        return Vec::new();
    };
    let mut paths = Vec::new();
    gather(&shared, &mut paths);
    paths.retain(|path| {
        let inside = path
            .strip_prefix(&shared)
            .ok()
            .and_then(Path::to_str)
            .unwrap_or_default();
        inside.ends_with(".xml") && starts.iter().any(|start| inside.starts_with(start))
    });
    paths.sort();
    paths
        .into_iter()
        .filter_map(|path| fs::read(path).ok())
        .collect()
}

fn gather(folder: &Path, paths: &mut Vec<PathBuf>) {
    let Ok(found) = fs::read_dir(folder) else {
        return;
    };
    for path in found.filter_map(|found| found.ok().map(|found| found.path())) {
        if path.is_dir() {
            gather(&path, paths)
        } else {
            paths.push(path)
        }
    }
}

/// True when quick-xml reads the text to its end.
fn is_readable(text: &str) -> bool {
    let mut reader = Reader::from_str(text);
    loop {
        match reader.read_event() {
            Ok(Event::Eof) => return true,
            Ok(_) => {}
            Err(_) => return false,
        }
    }
}
