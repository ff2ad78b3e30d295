//! Folders of successive versions of one document: which keys come and go from each to the next,
//! and which entries change. What absence means is not asked: this is what the documents show.

use super::{
    corpus::{documents, passed_over},
    sheet::tame_json,
    source,
};
use crate::config::Config;
use anyhow::Context as _;
use everfeed_adapters::{Digest, Key, slice};
use serde_json::json;
use std::{collections::BTreeMap, io::Write, path::Path};

/// The keys of a document and the digests of what they name.
type Seen = BTreeMap<String, Digest>;

/// Prints a line for every step of every sequence below a folder, which may be a sequence itself.
pub(super) fn run(folder: &Path, out: &mut impl Write) -> anyhow::Result<()> {
    let mut out = std::io::BufWriter::new(out);
    let bytes_max = Config::default().upstream.body_bytes_max;
    let mut before: Option<(&Path, String, Seen)> = None;
    let documents = documents(folder)?;
    for path in &documents {
        let sequence = path.parent().unwrap_or(folder);
        let given = source::file(path, bytes_max).with_context(|| path.display().to_string())?;
        let file = path
            .file_name()
            .unwrap_or_default()
            .to_string_lossy()
            .into_owned();
        let name = sequence.file_name().unwrap_or_default().to_string_lossy();
        let window = match slice(&given.bytes, &given.hints()) {
            Ok(window) => window,
            // A version that is no feed changes nothing, as in polling.
            Err(error) => {
                let line = json!({ "sequence": name, "file": file, "ok": false, "error": error.to_string() });
                writeln!(out, "{}", tame_json(&line.to_string()))?;
                passed_over(path, &error.to_string());
                continue;
            }
        };
        let mut seen = Seen::new();
        for raw in &window.entries {
            let (Key::Id(key) | Key::Link(key) | Key::Title(key) | Key::Digest(key)) = &raw.key;
            seen.entry(key.clone())
                .or_insert_with(|| raw.parse().0.digest());
        }
        if let Some((_, from, old)) = before.take().filter(|(folder, ..)| *folder == sequence) {
            writeln!(
                out,
                "{}",
                tame_json(&step(&name, (&from, &old), (&file, &seen)))
            )?;
        }
        before = Some((sequence, file, seen));
    }
    Ok(out.flush()?)
}

fn step(sequence: &str, (from, old): (&str, &Seen), (to, new): (&str, &Seen)) -> String {
    let only = |one: &Seen, other: &Seen| {
        one.keys()
            .filter(|key| !other.contains_key(*key))
            .cloned()
            .collect::<Vec<_>>()
    };
    let is_edited =
        |(key, digest): &(&String, &Digest)| old.get(*key).is_some_and(|old| old != *digest);
    let edited: Vec<_> = new.iter().filter(is_edited).map(|(key, _)| key).collect();
    json!({
        "sequence": sequence, "from": from, "to": to,
        "added": only(new, old), "gone": only(old, new), "edited": edited,
    })
    .to_string()
}
