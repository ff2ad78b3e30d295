//! Successive versions of real feeds, served one by one from loopback through the real client
//! stack: a pulling mirror equals the store after each, what is new is exactly what the manifest
//! says, and what rests is served as it is shown.

use crate::pipeline::{Mirror, Pipeline};
use everfeed::{app::replay::feeds, feed::item::Item, layers::ClientConfig};
use serde::Deserialize;
use std::{
    collections::BTreeSet,
    path::{Path, PathBuf},
    sync::Arc,
    time::Instant,
};
use testkit::{
    data::large,
    publisher::{Publisher, ok},
};

#[derive(Deserialize)]
struct Manifest {
    versions: Vec<Version>,
    steps: Vec<Step>,
}

#[derive(Deserialize)]
struct Version {
    file: String,
}

/// The true difference between two versions, by the publisher's ids.
#[derive(Deserialize)]
struct Step {
    from: String,
    to: String,
    added: BTreeSet<String>,
    reappeared: BTreeSet<String>,
    edited_core: BTreeSet<String>,
    edited_any: BTreeSet<String>,
}

/// The score over all steps of a sequence.
#[derive(Default)]
struct Score {
    steps: usize,
    added: usize,
    renamed: usize,
    reappeared: usize,
    edited: usize,
    /// Edits of the core that made no new T, by id and step.
    missed_edits: Vec<String>,
    wrong: Vec<String>,
}

/// The id of an entry as the manifests name it: guid, `atom:id` or `rdf:about`, else link, else
/// title, trimmed.
fn id_of(item: &Item) -> String {
    let entry = item
        .entry()
        .expect("the sequences delete nothing in so many words");
    let title = || entry.title.as_ref().map(|title| title.value.as_str());
    let id = entry.id.as_deref().or(entry.permalink()).or_else(title);
    id.expect("every entry of the sequences has an id")
        .trim()
        .to_owned()
}

async fn play(folder: &Path) -> Score {
    let manifest: Manifest =
        serde_json::from_slice(&std::fs::read(folder.join("manifest.json")).unwrap()).unwrap();
    let publisher = Publisher::start().await;
    let mut pipeline = Pipeline::new(
        "feed",
        &publisher.url("/feed.xml"),
        &ClientConfig::default(),
    )
    .await;
    let mut mirror = Mirror::default();
    let mut score = Score::default();
    for (n, version) in manifest.versions.iter().enumerate() {
        publisher.says(ok(
            "application/xml",
            std::fs::read(folder.join(&version.file)).unwrap(),
        ));
        pipeline.poll().await;
        assert_eq!(
            pipeline.state.health.fault,
            None,
            "{} of {}",
            version.file,
            folder.display()
        );
        let news = mirror.pull(&*pipeline.store, pipeline.feed.no).await;
        assert!(
            mirror.equals(&*pipeline.store, pipeline.feed.no).await,
            "after {} of {}",
            version.file,
            folder.display()
        );
        if n == 0 {
            assert!(news.iter().all(|(_, before)| before.is_none()));
            continue;
        }
        let step = &manifest.steps[n - 1];
        assert_eq!(step.to, version.file);
        score.count(step, &news);
    }
    let stale = stale_at_rest(&mut pipeline, &publisher).await;
    score.wrong.extend(stale);
    score
}

/// Hours for which the last version stays, and two polls: after them each entry is served as it
/// shows it.
const REST_HOURS: u64 = 24 + 2;

/// Lets the last version stay for a day and two polls. Returns the entries that are served otherwise
/// then than a mirror serves them that reads this version alone.
async fn stale_at_rest(pipeline: &mut Pipeline, publisher: &Publisher) -> Vec<String> {
    for _ in 0..REST_HOURS {
        pipeline.wait(3600);
        pipeline.poll().await;
    }
    let mut served = Mirror::default();
    served.pull(&*pipeline.store, pipeline.feed.no).await;
    let live = served.items.values().filter(|item| !item.is_gone());
    let live: BTreeSet<[u8; 16]> = live.map(|item| item.digests.content.0).collect();
    let url = publisher.url("/feed.xml");
    let mut fresh = Pipeline::new("feed", &url, &ClientConfig::default()).await;
    fresh.poll().await;
    let mut shown = Mirror::default();
    shown.pull(&*fresh.store, fresh.feed.no).await;
    assert!(!shown.items.is_empty());
    let is_stale = |item: &&Arc<Item>| !live.contains(&item.digests.content.0);
    let stale = shown.items.values().filter(is_stale);
    stale
        .map(|item| format!("at rest: {} is served in another version", id_of(item)))
        .collect()
}

/// True for an item that goes by another id than before, and has the same title or the same
/// content.
fn is_renamed(item: &Item, before: &Item) -> bool {
    let (Some(entry), Some(held)) = (item.entry(), before.entry()) else {
        return false;
    };
    entry.id != held.id && (entry.title == held.title || entry.content == held.content)
}

impl Score {
    fn count(&mut self, step: &Step, news: &[(Arc<Item>, Option<Arc<Item>>)]) {
        self.steps += 1;
        let expect: BTreeSet<String> = step.added.difference(&step.reappeared).cloned().collect();
        let new = news.iter().filter(|(_, before)| before.is_none());
        let added: BTreeSet<String> = new.map(|(item, _)| id_of(item)).collect();
        let edits = news
            .iter()
            .filter_map(|(item, before)| Some((item, before.as_ref()?)));
        let edited: BTreeSet<String> = edits.clone().map(|(item, _)| id_of(item)).collect();
        let name = format!("{} -> {}", step.from, step.to);
        // The manifests know no renames: to them an item under another id is another item.
        let renamed = edits
            .clone()
            .filter(|(item, before)| is_renamed(item, before));
        let renamed: BTreeSet<String> = renamed.map(|(item, _)| id_of(item)).collect();
        self.renamed += renamed.len();
        // An id that comes back after another one was used for a while is in `reappeared`.
        let again = |id: &&String| step.reappeared.contains(*id) && !added.contains(*id);
        let seen: BTreeSet<String> = added
            .union(&renamed)
            .filter(|id| !again(id))
            .cloned()
            .collect();
        if seen != expect {
            let (spurious, missed): (Vec<_>, Vec<_>) = (
                seen.difference(&expect).collect(),
                expect.difference(&seen).collect(),
            );
            self.wrong
                .push(format!("{name}: spurious {spurious:?}, missed {missed:?}"));
        }
        for (item, before) in edits {
            // A new T needs a reason: other content, or the end of a tombstone.
            if item.digests.content == before.digests.content && !before.is_gone() {
                self.wrong
                    .push(format!("{name}: {} got a T for nothing", id_of(item)));
            }
        }
        for id in &edited {
            if !step.edited_any.contains(id)
                && !step.reappeared.contains(id)
                && !renamed.contains(id)
            {
                self.wrong
                    .push(format!("{name}: {id} was edited by nobody"));
            }
        }
        self.missed_edits.extend(
            step.edited_core
                .difference(&edited)
                .map(|id| format!("{name}: {id}")),
        );
        self.added += added.len();
        self.reappeared += step.reappeared.len();
        self.edited += edited.len();
    }
}

testkit::reads_corpora! {
    #[tokio::test(flavor = "multi_thread")]
    async fn a_mirror_of_every_real_feed_equals_the_store_after_each_version() {
        check_mirrors(feeds(&large("sequences")).unwrap()).await;
    }
}

async fn check_mirrors(folders: Vec<PathBuf>) {
    assert!(!folders.is_empty());
    println!(
        "{:28} {:>5} {:>6} {:>7} {:>10} {:>7} {:>12} {:>6} {:>6}",
        "sequence",
        "steps",
        "added",
        "renamed",
        "reappeared",
        "edited",
        "missed edits",
        "wrong",
        "secs"
    );
    let mut wrong = Vec::new();
    for folder in folders {
        let started = Instant::now();
        let score = play(&folder).await;
        let name = folder.file_name().unwrap().to_string_lossy().into_owned();
        println!(
            "{name:28} {:>5} {:>6} {:>7} {:>10} {:>7} {:>12} {:>6} {:>6.1}",
            score.steps,
            score.added,
            score.renamed,
            score.reappeared,
            score.edited,
            score.missed_edits.len(),
            score.wrong.len(),
            started.elapsed().as_secs_f64()
        );
        score
            .missed_edits
            .iter()
            .for_each(|edit| println!("    no new T for {edit}"));
        wrong.extend(score.wrong.into_iter().map(|line| format!("{name} {line}")));
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
