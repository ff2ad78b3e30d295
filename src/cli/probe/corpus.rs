//! A folder of documents, each as one line of JSON in the neutral form: all cores read, the lines
//! come in order.

use super::{
    sheet::{tame, tame_json},
    source::{self, Given},
};
use crate::config::Config;
use anyhow::Context as _;
use everfeed_adapters::{neutral_line, slice};
use serde_json::json;
use std::{
    collections::BTreeMap,
    io::Write,
    panic,
    path::{Path, PathBuf},
    sync::{
        atomic::{AtomicUsize, Ordering},
        mpsc,
    },
    thread,
};

/// Prints a line for every document below a folder.
pub(super) fn run(folder: &Path, out: &mut impl Write) -> anyhow::Result<()> {
    let documents = documents(folder)?;
    let bytes_max = Config::default().upstream.body_bytes_max;
    let next = AtomicUsize::new(0);
    let cores = thread::available_parallelism()
        .map_or(1, usize::from)
        .min(documents.len());
    let mut out = std::io::BufWriter::new(out);
    thread::scope(|scope| {
        let (done, lines) = mpsc::channel();
        for _ in 0..cores {
            let (done, next, documents) = (done.clone(), &next, &documents);
            scope.spawn(move || {
                while let Some(path) = {
                    let at = next.fetch_add(1, Ordering::Relaxed);
                    documents.get(at).map(|path| (at, path))
                } {
                    // Nobody listens any more when the output is closed.
                    if done
                        .send((path.0, line(folder, path.1, bytes_max)))
                        .is_err()
                    {
                        break;
                    }
                }
            });
        }
        drop(done);
        in_order(lines, &mut out)
    })?;
    Ok(out.flush()?)
}

/// Writes what comes as soon as everything before it has come.
fn in_order(lines: mpsc::Receiver<(usize, String)>, out: &mut impl Write) -> std::io::Result<()> {
    let mut early = BTreeMap::new();
    let mut due = 0;
    for (at, line) in lines {
        early.insert(at, line);
        while let Some(line) = early.remove(&due) {
            writeln!(out, "{line}")?;
            due += 1;
        }
    }
    Ok(())
}

fn line(folder: &Path, path: &Path, bytes_max: u64) -> String {
    let file = path
        .strip_prefix(folder)
        .unwrap_or(path)
        .display()
        .to_string();
    let failed = |why: String| json!({ "file": file, "ok": false, "error": why });
    let value = match source::file(path, bytes_max) {
        // One document that breaks the reader must not cost the lines of the others.
        Ok(given) => panic::catch_unwind(|| read(&file, &given)).unwrap_or_else(|_| {
            failed("reading it broke off; this is a bug in everfeed".to_owned())
        }),
        Err(error) => failed(error.to_string()),
    };
    tame_json(&value.to_string())
}

fn read(file: &str, given: &Given) -> serde_json::Value {
    neutral_line(file, slice(&given.bytes, &given.hints()).as_ref())
}

/// The documents below a folder, in the order of their names. Links to folders may lead anywhere,
/// back up as well, and what is no regular file may never end: both are passed over and told of on
/// standard error.
pub(super) fn documents(folder: &Path) -> anyhow::Result<Vec<PathBuf>> {
    let listing =
        std::fs::read_dir(folder).with_context(|| format!("the folder {}", folder.display()))?;
    let mut paths = listing
        .map(|entry| entry.map(|entry| entry.path()))
        .collect::<Result<Vec<_>, _>>()?;
    paths.sort();
    let mut found = Vec::new();
    for path in paths.into_iter().filter(|path| is_document(path)) {
        // A link that leads nowhere is told of when it is read.
        let Ok(kind) = std::fs::metadata(&path).map(|metadata| metadata.file_type()) else {
            found.push(path);
            continue;
        };
        if kind.is_file() {
            found.push(path);
        } else if !kind.is_dir() {
            passed_over(&path, "it is no regular file");
        } else if path.is_symlink() {
            passed_over(&path, "it is a link to a folder");
        } else {
            found.extend(documents(&path)?);
        }
    }
    Ok(found)
}

/// Tells of something that has no line, or one without entries.
pub(super) fn passed_over(path: &Path, why: &str) {
    eprintln!(
        "everfeed: {} is passed over: {}",
        tame(&path.display().to_string()),
        tame(why)
    );
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
