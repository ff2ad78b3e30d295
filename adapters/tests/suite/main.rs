//! The adapters against documents: our own fixtures, and the shared corpora where they are at hand; not single functions.

#![expect(
    clippy::unwrap_used,
    clippy::disallowed_methods,
    reason = "tests read files, and fail by panicking"
)]

mod corpus;
mod damage;
mod dates;
mod encodings;
mod extensions;
mod fixtures;
mod front_door;
mod media_rss;
mod platforms;
mod score;
mod sequences;

use std::path::PathBuf;

/// A folder of the shared data, which stands beside the checkout; `None`, with a word, when it is not there.
fn shared(name: &str) -> Option<PathBuf> {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../shared").join(name);
    if path.exists() {
        return Some(path);
    }
    eprintln!("skipped: {} is not there", path.display());
    None
}

fn json(path: &std::path::Path) -> serde_json::Value {
    let bytes = std::fs::read(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    serde_json::from_slice(&bytes).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}
