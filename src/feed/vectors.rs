//! The machine-readable vectors of the specification, read from beside the checkout, or from `EVERFEED_VECTORS`.

use serde_json::Value;
use std::path::PathBuf;

/// One section of the vectors; `None`, said plainly, when the file is not there.
pub(crate) fn section(name: &str) -> Option<Vec<Value>> {
    let section = &all()?[name];
    let cases = section.as_array().or_else(|| section["cases"].as_array());
    Some(cases.expect("the section is a list, or has one of cases").clone())
}

/// All sections; `None`, said plainly, when the file is not there.
pub(crate) fn all() -> Option<Value> {
    let beside = concat!(env!("CARGO_MANIFEST_DIR"), "/../shared/spec/VECTORS.json");
    let path = std::env::var_os("EVERFEED_VECTORS").map_or_else(|| PathBuf::from(beside), PathBuf::from);
    let Ok(text) = std::fs::read_to_string(&path) else {
        eprintln!("skipped: no vectors at {}", path.display());
        return None;
    };
    Some(serde_json::from_str(&text).expect("the vectors are JSON"))
}
