//! Test data: what is small is part of this repository, and is always there; what is large stands
//! beside the checkout.

use serde_json::Value;
use std::{
    io::Write as _,
    path::{Path, PathBuf},
};

/// One section of the vectors of the specification: a list, or the `cases` in it.
pub fn section(name: &str) -> Vec<Value> {
    let section = &vectors()[name];
    let cases = section.as_array().or_else(|| section["cases"].as_array());
    let cases = cases
        .unwrap_or_else(|| panic!("the vectors have no list {name}"))
        .clone();
    assert!(
        !cases.is_empty(),
        "the section {name} of the vectors is empty"
    );
    cases
}

/// All vectors of the specification.
pub fn vectors() -> Value {
    json(&vendored("vectors/VECTORS.json"))
}

/// A file or folder of `tests/` in this repository.
pub fn vendored(name: &str) -> PathBuf {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../tests")
        .join(name);
    assert!(
        path.exists(),
        "{} is part of the repository",
        path.display()
    );
    path
}

/// A JSON file.
pub fn json(path: &Path) -> Value {
    let bytes = std::fs::read(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    serde_json::from_slice(&bytes).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// A folder of the large corpora, `corpus` or `sequences`, which stand beside the checkout. Where
/// it is missing, a run with `CI=true` fails, and any other says on stderr, past the capture of the
/// test harness, which test it passes over.
pub fn large(name: &str, test: &str) -> Option<PathBuf> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../shared")
        .join(name);
    let is_ci = std::env::var("CI").is_ok_and(|value| value == "true");
    match passed_over(path.exists(), is_ci, name, test) {
        None => Some(path),
        Some(line) => {
            let mut stderr = std::io::stderr().lock();
            writeln!(stderr, "{line}").expect("stderr is open");
            None
        }
    }
}

/// The line about a test that cannot run for lack of its corpus; a panic in CI.
fn passed_over(exists: bool, is_ci: bool, name: &str, test: &str) -> Option<String> {
    assert!(
        exists || !is_ci,
        "CI=true, and the folder `{name}` that `{test}` reads is missing"
    );
    (!exists).then(|| format!("passed over: {test}: the folder `{name}` is missing"))
}

#[test]
fn a_missing_corpus_is_told_and_fails_in_ci() {
    assert_eq!(passed_over(true, true, "corpus", "a"), None);
    assert_eq!(passed_over(true, false, "corpus", "a"), None);
    let line = passed_over(false, false, "corpus", "a").unwrap();
    assert_eq!(line, "passed over: a: the folder `corpus` is missing");
    assert!(std::panic::catch_unwind(|| passed_over(false, true, "corpus", "a")).is_err());
}

#[test]
fn the_vendored_vectors_are_whole() {
    let vectors = vectors();
    assert!(vectors.as_object().unwrap().len() > 10);
    assert_eq!(
        section("toc").len(),
        vectors["toc"]["cases"]
            .as_array()
            .or(vectors["toc"].as_array())
            .unwrap()
            .len()
    );
}
