//! Recordings with polls that failed, and with halves of documents.

use super::*;
use std::fs;

const START_SECS: u64 = 1_780_272_000;

fn document(words: &str) -> String {
    let item = |n: u32| {
        format!(
            "<item><guid>http://b.example/{n}</guid><title>Post {n}</title><description>{words} {n}</description></item>"
        )
    };
    let items: String = (1..4).rev().map(item).collect();
    format!("<rss version=\"2.0\"><channel><title>t</title>{items}</channel></rss>")
}

/// A recording of one document an hour, and further lines of what was no document.
fn recording(documents: &[&str], answers: &str) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    for (n, words) in (0_u64..).zip(documents) {
        let at_us = (START_SECS + n * 3600) * 1_000_000;
        let beside = format!(
            "{{\"at_us\":{at_us},\"at\":\"\",\"url\":\"http://b.example/rss\",\"conditional\":true,\"is_part\":false,\
             \"content_type\":\"text/xml\",\"content_language\":null,\"headers\":[]}}"
        );
        let file = |end: &str| folder.path().join(format!("{n:04}.{end}"));
        fs::write(file("xml"), document(words)).unwrap();
        fs::write(file("json"), beside).unwrap();
    }
    fs::write(folder.path().join("pages.jsonl"), answers).unwrap();
    folder
}

fn failed(secs: u64, more: &str) -> String {
    let at_us = (START_SECS + secs) * 1_000_000;
    format!("{{\"at_us\":{at_us},\"at\":\"\",\"poll\":\"Failed\"{more}}}\n")
}

/// What each step tells: the file, why it failed, and how many items it changed.
fn told(steps: &[Step]) -> Vec<(&str, Option<&str>, usize)> {
    let mut told = Vec::new();
    for step in steps {
        let why = step.failure.as_deref().or(step.missed.as_deref());
        told.push((&*step.file, why, step.changes.len()));
    }
    told
}

#[tokio::test]
async fn a_poll_that_failed_is_passed_over_with_its_reason_and_changes_nothing() {
    let plain = recording(&["a", "b", "b"], "");
    let before = play(plain.path(), None, false).await.unwrap();
    let answers = [
        failed(60, ""),
        failed(
            3660,
            ",\"why\":\"the publisher answered 500\",\"status\":500",
        ),
        failed(3720, ",\"why\":\"no answer within 2 s\""),
        failed(9000, ",\"why\":\"gone\",\"status\":410"),
    ];
    let folder = recording(&["a", "b", "b"], &answers.concat());
    let steps = play(folder.path(), None, false).await.unwrap();
    assert_eq!(
        told(&steps),
        [
            ("0000.xml", None, 3),
            ("no document", Some("the recording does not say why"), 0),
            ("0001.xml", None, 3),
            ("no document", Some("the publisher answered 500"), 0),
            ("no document", Some("no answer within 2 s"), 0),
            ("no document", Some("gone"), 0),
        ]
    );
    let changes = |steps: &[Step]| {
        let all = steps.iter().flat_map(|step| step.changes.clone());
        all.map(|change| (change.name, change.kind))
            .collect::<Vec<_>>()
    };
    assert_eq!(changes(&steps), changes(&before));
}

#[tokio::test]
async fn a_recording_of_failures_alone_or_with_half_a_document_is_played_as_far_as_it_goes() {
    let folder = recording(&[], &failed(0, ""));
    assert_eq!(feeds(folder.path()).unwrap(), [folder.path().to_owned()]);
    let steps = play(folder.path(), None, false).await.unwrap();
    let why = Some("the recording does not say why");
    assert_eq!(told(&steps), [("no document", why, 0)]);
    let folder = recording(&["a", "b", "c"], "");
    fs::write(folder.path().join("0001.json"), "{\"at_us\":1").unwrap();
    let steps = play(folder.path(), None, false).await.unwrap();
    let told = told(&steps);
    assert_eq!((told.len(), told[0].2, told[2].2), (3, 3, 3));
    assert!(told[1].1.unwrap().contains("0001.json"), "{told:?}");
}
