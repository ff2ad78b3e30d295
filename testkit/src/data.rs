//! Test data: what is small is part of this repository, and is always there; what is large stands
//! beside the checkout.

use serde_json::Value;
use std::path::{Path, PathBuf};

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

/// A folder of the large corpora, `corpus` or `sequences`, which stand beside the checkout. A test
/// that needs one stands in [`reads_corpora`](crate::reads_corpora).
pub fn large(name: &str) -> PathBuf {
    beside(name).unwrap_or_else(|| panic!("the folder `{name}` is missing beside the checkout"))
}

/// Likewise, for a test that goes on without it.
pub fn beside(name: &str) -> Option<PathBuf> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../shared")
        .join(name);
    path.exists().then_some(path)
}

/// A test that reads the large corpora. Where they are missing it is ignored, and so it is counted.
#[cfg(corpora)]
#[macro_export]
macro_rules! reads_corpora {
    ($test:item) => {
        $test
    };
}

/// A test that reads the large corpora. Where they are missing it is ignored, and so it is counted.
#[cfg(not(corpora))]
#[macro_export]
macro_rules! reads_corpora {
    ($test:item) => {
        #[ignore = "the corpora are not beside the checkout"]
        $test
    };
}

#[test]
#[should_panic(expected = "the folder `nowhere` is missing beside the checkout")]
fn a_missing_corpus_fails_a_test_that_reads_it() {
    large("nowhere");
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
