//! Real feeds as their files changed over time: the keys that come and go, and the entries whose
//! digest changes.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use everfeed_adapters::{Digest, Hints, Key, slice};

use testkit::data::{json, large};

type Seen = BTreeMap<String, Digest>;

fn read(path: &Path) -> Seen {
    let bytes = std::fs::read(path).unwrap();
    let sliced = slice(&bytes, &Hints::default())
        .unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let mut seen = Seen::new();
    for raw in &sliced.entries {
        let (Key::Id(id) | Key::Link(id) | Key::Title(id) | Key::Digest(id)) = &raw.key;
        // Of two with one id the manifests count the first.
        seen.entry(id.clone())
            .or_insert_with(|| raw.parse().0.digest());
    }
    seen
}

fn set(step: &serde_json::Value, fields: &[&str]) -> BTreeSet<String> {
    let ids = fields
        .iter()
        .flat_map(|field| step[field].as_array().unwrap());
    ids.map(|id| id.as_str().unwrap().trim().to_owned())
        .collect()
}

#[derive(Debug, Default)]
struct Score {
    steps: usize,
    missed_edits: Vec<String>,
    other_edits: Vec<String>,
    false_edits: Vec<String>,
}

testkit::reads_corpora! {
    #[test]
    fn keys_and_edits_of_every_step_are_those_of_the_manifests() {
        check_steps(&large("sequences"));
    }
}

/// POLLING 1.3: `edited_core` must be seen, and nothing outside `edited_any` may be.
fn check_steps(folder: &Path) {
    let mut score = Score::default();
    let mut folders: Vec<_> = std::fs::read_dir(folder)
        .unwrap()
        .map(|found| found.unwrap().path())
        .collect();
    folders.sort();
    for sequence in folders
        .iter()
        .filter(|path| path.join("manifest.json").exists())
    {
        walk(sequence, &mut score);
    }
    println!("{} steps; {score:#?}", score.steps);
    assert!(score.steps >= 300, "only {} steps", score.steps);
    assert!(
        score.missed_edits.is_empty(),
        "missed: {:#?}",
        score.missed_edits
    );
    assert!(
        score.false_edits.is_empty(),
        "false: {:#?}",
        score.false_edits
    );
}

fn walk(sequence: &Path, score: &mut Score) {
    let manifest = json(&sequence.join("manifest.json"));
    let name = manifest["name"].as_str().unwrap();
    let mut before: Option<(String, Seen)> = None;
    for step in manifest["steps"].as_array().unwrap() {
        let (from, to) = (step["from"].as_str().unwrap(), step["to"].as_str().unwrap());
        let old = match before.take() {
            Some((file, seen)) if file == from => seen,
            _ => read(&sequence.join(from)),
        };
        let new = read(&sequence.join(to));
        let keys = |seen: &Seen| seen.keys().cloned().collect::<BTreeSet<_>>();
        let (was, is) = (keys(&old), keys(&new));
        let added: BTreeSet<_> = is.difference(&was).cloned().collect();
        let gone: BTreeSet<_> = was.difference(&is).cloned().collect();
        let lost = ["gone_middle", "gone_tail", "gone_head", "gone_all_replaced"];
        assert_eq!(added, set(step, &["added"]), "added, {name} {from} to {to}");
        assert_eq!(gone, set(step, &lost), "gone, {name} {from} to {to}");
        let edited: BTreeSet<_> = was
            .intersection(&is)
            .filter(|key| old[*key] != new[*key])
            .cloned()
            .collect();
        let (core, any) = (set(step, &["edited_core"]), set(step, &["edited_any"]));
        let told = |id: &String| format!("{name} {to} {id}");
        score
            .missed_edits
            .extend(core.difference(&edited).map(told));
        score.false_edits.extend(edited.difference(&any).map(told));
        score.other_edits.extend(
            edited
                .intersection(&any)
                .filter(|id| !core.contains(*id))
                .map(told),
        );
        score.steps += 1;
        before = Some((to.to_owned(), new));
    }
}
