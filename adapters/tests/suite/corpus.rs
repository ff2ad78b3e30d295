//! The corpus: how many of its documents come out as other parsers and our own eyes say they
//! should, by class.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use everfeed_adapters::{Hints, neutral_line, slice};
use serde_json::Value;

use testkit::data::{json, large, vendored};

use crate::score::score;

/// Documents of each class, and how many of them must be met in full: just below what is reached.
const THRESHOLDS: [(&str, usize, usize); 6] = [
    ("core", 423, 402),
    ("edge", 30, 30),
    ("extension", 132, 125),
    ("http/charset-metadata", 4, 4),
    ("oracle", 74, 70),
    // Cleaning markup is the business of whoever shows it: none of it is our aim.
    ("sanitize", 10, 1),
];

/// Every document with its expectations.
fn documents(folder: &Path) -> Vec<(PathBuf, Value)> {
    let mut found = Vec::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        for path in std::fs::read_dir(folder)
            .unwrap()
            .map(|entry| entry.unwrap().path())
        {
            if path.is_dir() {
                folders.push(path);
            } else if let Some(document) = path
                .to_str()
                .and_then(|path| path.strip_suffix(".expect.json"))
            {
                found.push((PathBuf::from(document), json(&path)));
            }
        }
    }
    found.sort_by(|a, b| a.0.cmp(&b.0));
    found
}

fn header<'a>(expect: &'a Value, name: &str) -> Option<&'a str> {
    let headers = expect["http_headers"].as_object()?;
    headers
        .iter()
        .find(|(key, _)| key.eq_ignore_ascii_case(name))
        .and_then(|(_, value)| value.as_str())
}

/// A document's line of neutral form. The response that it came in says where it is from and how it
/// is encoded.
fn line(path: &Path, expect: &Value) -> Value {
    let bytes = std::fs::read(path).unwrap();
    let base_url = header(expect, "content-location").or_else(|| expect["url"].as_str());
    let hints = Hints {
        content_type: header(expect, "content-type"),
        content_language: header(expect, "content-language"),
        base_url,
        ..Hints::default()
    };
    neutral_line(
        expect["file"].as_str().unwrap(),
        slice(&bytes, &hints).as_ref(),
    )
}

testkit::reads_corpora! {
    #[test]
    fn the_classes_of_the_corpus_score_as_before() {
        check(&large("corpus"), &THRESHOLDS);
    }
}

#[test]
fn every_odd_document_comes_out_as_it_should() {
    check(&vendored("corpus"), &[("edge", 30, 30)]);
}

/// Holds the documents of a folder to the number of each class that must be met.
fn check(folder: &Path, thresholds: &[(&str, usize, usize)]) {
    let mut scores: BTreeMap<String, (usize, usize)> = BTreeMap::new();
    for (path, expect) in documents(folder) {
        let line = line(&path, &expect);
        if expect["must_fail"] == true {
            assert_eq!(line["ok"], false, "{} is no feed", path.display());
        }
        let verdict = score(&line, &expect);
        let class = expect["class"].as_str().unwrap();
        let (met, documents) = scores.entry(class.to_owned()).or_default();
        *documents += 1;
        *met += usize::from(verdict.met);
        if !verdict.met && class != "sanitize" {
            println!(
                "{class}: {}: {}",
                expect["file"].as_str().unwrap(),
                verdict.failed.join("; ")
            );
        }
    }
    println!("{:24} {:>5} {:>9} {:>6}", "class", "met", "documents", "%");
    for (class, (met, documents)) in &scores {
        println!(
            "{class:24} {met:5} {documents:9} {:6.1}",
            100.0 * *met as f64 / *documents as f64
        );
    }
    for &(class, documents, least) in thresholds {
        let (met, found) = scores[class];
        assert_eq!(found, documents, "documents of class {class}");
        assert!(
            met >= least,
            "{class}: only {met} of {found} documents are met, not {least}"
        );
    }
}

/// For a comparison with `score.py`:
/// `EVERFEED_LINES=out.jsonl cargo test … -- --ignored lines_of_the_corpus`.
#[test]
#[ignore = "writes a file for another program"]
fn lines_of_the_corpus_can_be_written() {
    let lines: Vec<_> = documents(&large("corpus"))
        .iter()
        .map(|(path, expect)| line(path, expect).to_string())
        .collect();
    let path = std::env::var("EVERFEED_LINES").unwrap();
    std::fs::write(path, lines.join("\n") + "\n").unwrap();
}
