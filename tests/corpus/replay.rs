//! Successive versions of real feeds at the times at which their publishers committed them, through
//! `everfeed replay`'s code: what is new and edited against what the manifests say, and every
//! tombstone, held window and gap counted.

use everfeed::{
    app::replay::{Kind, Step, feeds, play},
    feed::{absence::WindowEvent, item::ItemId},
    ingest::RecordSettings,
};
use serde::Deserialize;
use std::{
    collections::{BTreeMap, BTreeSet},
    path::PathBuf,
};
use testkit::data::large;

// The publishers with every fault, which are recorded here.
#[path = "../publisher/document.rs"]
mod document;
#[path = "../publisher/publisher.rs"]
mod publisher;
#[expect(dead_code, reason = "the test of publishers uses more of it")]
#[path = "../publisher/scenario.rs"]
mod scenario;
#[expect(dead_code, reason = "the test of publishers uses more of it")]
#[path = "../publisher/score.rs"]
mod score;
#[expect(dead_code, reason = "the test of publishers uses more of it")]
#[path = "../publisher/watcher.rs"]
mod watcher;

#[derive(Deserialize)]
struct Manifest {
    steps: Vec<Difference>,
}

/// The true difference between two versions, by the publisher's ids.
#[derive(Deserialize)]
struct Difference {
    to: String,
    added: BTreeSet<String>,
    reappeared: BTreeSet<String>,
    edited_core: BTreeSet<String>,
    edited_any: BTreeSet<String>,
    gone_middle: BTreeSet<String>,
    gone_head: BTreeSet<String>,
    gone_tail: BTreeSet<String>,
    gone_all_replaced: BTreeSet<String>,
}

/// The result of a sequence after its first document.
#[derive(Debug, PartialEq, Eq)]
struct Numbers {
    adds: usize,
    /// Entries under new ids that are known items by another name.
    renamed: usize,
    edits: usize,
    tombstones: usize,
    resurrections: usize,
    held: usize,
    gaps: usize,
}

/// The results of the sequences. Each tombstone was looked at:
///
/// - culture-files: 14 episodes taken out of the middle of a window that shows everything; none
///   came back. Right.
/// - twrl: a post that was withdrawn after twelve minutes. Right. And a post that was given another
///   date, and with it another id, for a day: the id ended, the post did not. Neither title with
///   date nor path shows the two to be one.
/// - twrl: 14 posts were given other ids, links and dates with another version of their software;
///   they are edits.
/// - scripting-news: in one document the ids lost their host, and 41 of its posts went by another
///   id for that time.
/// - theory-report: none. 17 papers left this planet when one of its sources showed those of the
///   next day; a planet does not show the first N of one order, so its entries are never taken for
///   deleted because of what stands around them.
/// - skopje-planet: it shows one or two entries, and once 25 in another order: its window begins anew
///   whenever two documents have nothing in common, which leaves a gap (four).
const EXPECTED: [(&str, Numbers); 11] = [
    ("clambake-rss2", numbers([37, 2, 9, 0, 0, 0, 0])),
    (
        "culture-files-podcast-rss2",
        numbers([7, 0, 15, 14, 0, 0, 0]),
    ),
    (
        "github-trending-go-atom",
        numbers([361, 0, 21, 0, 0, 0, 16]),
    ),
    ("planetredis-atom", numbers([0, 0, 0, 0, 0, 0, 0])),
    (
        "scripting-news-2023-rss2",
        numbers([171, 41, 93, 0, 0, 2, 0]),
    ),
    ("skopje-planet-rss10", numbers([29, 0, 25, 0, 0, 0, 4])),
    ("sympy-planet-rss2", numbers([56, 0, 16, 0, 0, 0, 0])),
    ("sympy-test-format-switch", numbers([34, 0, 1, 0, 0, 0, 1])),
    ("theory-report-atom", numbers([52, 0, 16, 0, 0, 0, 0])),
    ("twrl-atom", numbers([19, 14, 34, 2, 0, 0, 0])),
    ("wp-330k-rss2", numbers([33, 8, 46, 0, 0, 0, 0])),
];

/// An edit that put a line break before the content, once (twrl-atom 0031), which is no change to
/// any reader.
const BLANKS_ONLY: &str = "http://twrl.github.com/2012/08/XBMC/";

const fn numbers(
    [adds, renamed, edits, tombstones, resurrections, held, gaps]: [usize; 7],
) -> Numbers {
    Numbers {
        adds,
        renamed,
        edits,
        tombstones,
        resurrections,
        held,
        gaps,
    }
}

/// The names of the items to which this happened.
fn names(step: &Step, is: impl Fn(&Kind) -> bool) -> BTreeSet<String> {
    step.changes
        .iter()
        .filter(|change| is(&change.kind))
        .map(|change| change.name.clone())
        .collect()
}

fn score(manifest: &Manifest, steps: &[Step], wrong: &mut Vec<String>) -> Numbers {
    let mut found = numbers([0; 7]);
    let mut alive: BTreeSet<String> = names(&steps[0], |_| true);
    let by_file: BTreeMap<&str, &Difference> = manifest
        .steps
        .iter()
        .map(|step| (step.to.as_str(), step))
        .collect();
    for step in steps {
        let seen = step
            .observed
            .as_ref()
            .unwrap_or_else(|| panic!("{} was not read", step.file));
        found.held += usize::from(seen.events.contains(&WindowEvent::Quarantined));
        found.gaps += usize::from(step.gap);
        let gone = names(step, |kind| matches!(kind, Kind::Gone(..)));
        let revived = names(step, |kind| *kind == Kind::Revived);
        (found.tombstones, found.resurrections) = (
            found.tombstones + gone.len(),
            found.resurrections + revived.len(),
        );
        let Some(truth) = by_file.get(step.file.as_str()).filter(|_| !seen.again) else {
            continue;
        };
        let new = names(step, |kind| *kind == Kind::New);
        let edited = names(step, |kind| *kind == Kind::Edited);
        let expect: BTreeSet<String> = truth.added.difference(&truth.reappeared).cloned().collect();
        // A feed that moved, or changed its software, shows what it showed under new ids; those of
        // them that are known items are no news. For each of them an old id is gone.
        let renamed: BTreeSet<String> = expect.difference(&new).cloned().collect();
        let gone = [
            &truth.gone_middle,
            &truth.gone_head,
            &truth.gone_tail,
            &truth.gone_all_replaced,
        ];
        let gone: usize = gone.map(BTreeSet::len).iter().sum();
        if !new.is_subset(&expect) || renamed.len() > gone {
            wrong.push(format!("{}: new {new:?} instead of {expect:?}", step.file));
        }
        let may = |id: &String| {
            truth.edited_any.contains(id) || truth.reappeared.contains(id) || renamed.contains(id)
        };
        wrong.extend(
            edited
                .iter()
                .filter(|id| !may(id))
                .map(|id| format!("{}: {id} edited by nobody", step.file)),
        );
        for id in truth
            .edited_core
            .difference(&edited)
            .filter(|id| *id != BLANKS_ONLY)
        {
            wrong.push(format!("{}: the edit of {id} was missed", step.file));
        }
        found.adds += new.len();
        found.renamed += renamed.len();
        found.edits += edited.len();
        alive.extend(new);
    }
    found
}

testkit::reads_corpora! {
    #[tokio::test]
    async fn what_every_real_feed_comes_to_at_its_own_times_is_known() {
        check_feeds(feeds(&large("sequences")).unwrap()).await;
    }
}

async fn check_feeds(folders: Vec<PathBuf>) {
    let mut wrong = Vec::new();
    let mut all = Vec::new();
    for folder in folders {
        let name = folder.file_name().unwrap().to_string_lossy().into_owned();
        let manifest: Manifest =
            serde_json::from_slice(&std::fs::read(folder.join("manifest.json")).unwrap()).unwrap();
        let steps = play(&folder, None, false).await.unwrap();
        let mut mistakes = Vec::new();
        let found = score(&manifest, &steps, &mut mistakes);
        wrong.extend(
            mistakes
                .into_iter()
                .map(|mistake| format!("{name} {mistake}")),
        );
        let ever: BTreeSet<&String> = manifest
            .steps
            .iter()
            .flat_map(|step| step.gone_middle.union(&step.gone_head))
            .collect();
        for step in &steps {
            for gone in names(step, |kind| matches!(kind, Kind::Gone(..))) {
                // What left by the end, or with everything, is never a tombstone.
                if !ever.contains(&gone) {
                    wrong.push(format!(
                        "{name} {}: {gone} never left but by the end",
                        step.file
                    ));
                }
            }
        }
        all.push((name, found));
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    let expected = EXPECTED.map(|(name, numbers)| (name.to_owned(), numbers));
    let differing: Vec<String> = all
        .iter()
        .zip(&expected)
        .filter(|(found, expected)| found != expected)
        .map(|(found, expected)| format!("found {found:?}\nexpected {expected:?}"))
        .collect();
    assert!(differing.is_empty(), "{}", differing.join("\n"));
    assert_eq!(all.len(), expected.len());
}

#[tokio::test]
async fn what_is_no_feed_is_told_once_and_changes_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let rss = |guids: &str| {
        let items: String = guids
            .chars()
            .map(|guid| format!("<item><guid>{guid}</guid></item>"))
            .collect();
        format!("<rss version=\"2.0\"><channel><title>t</title>{items}</channel></rss>")
    };
    let bodies = [
        rss("cba"),
        "<html><p>Down for maintenance</p></html>".to_owned(),
        rss("dcb"),
    ];
    for (n, body) in bodies.iter().enumerate() {
        std::fs::write(folder.path().join(format!("{n:04}.xml")), body).unwrap();
    }
    let version = |n: usize| {
        format!(
            "{{\"file\": \"{n:04}.xml\", \"commit_time\": \"2012-07-{:02}T00:00:00Z\"}}",
            1 + 10 * n
        )
    };
    let versions: Vec<String> = (0..bodies.len()).map(version).collect();
    let manifest = format!("{{\"versions\": [{}]}}", versions.join(","));
    std::fs::write(folder.path().join("manifest.json"), manifest).unwrap();
    let steps = play(folder.path(), None, false).await.unwrap();
    let told: Vec<_> = steps
        .iter()
        .map(|step| {
            (
                step.file.as_str(),
                step.failure.is_some(),
                step.changes.len(),
            )
        })
        .collect();
    assert_eq!(
        told,
        [
            ("0000.xml", false, 3),
            ("0001.xml", true, 0),
            ("0002.xml", false, 1)
        ]
    );
}

/// Days for which each publisher is recorded: tombstones are asked about again after one, three and
/// ten days.
const RECORDED_DAYS: u64 = 24;

#[tokio::test]
async fn a_recording_ends_as_the_run_did() {
    let publishers = [
        scenario::known(),
        scenario::besides(),
        scenario::harmless(),
        scenario::silent_pages(),
        scenario::bulk(),
        scenario::disordered(),
        scenario::old_copies(),
        scenario::capped(),
    ];
    // `EVERFEED_SEEDS` plays each so many times, and `EVERFEED_DAYS` for so long. Unless it is set,
    // every second one is played: they take a second each.
    let number = |name: &str, usual: u64| {
        std::env::var(name).map_or(usual, |number| number.parse().unwrap())
    };
    let (rounds, days) = (
        number("EVERFEED_SEEDS", 1),
        number("EVERFEED_DAYS", RECORDED_DAYS),
    );
    let step = if std::env::var_os("EVERFEED_SEEDS").is_none() {
        2
    } else {
        1
    };
    let scenarios: Vec<_> = publishers.into_iter().flatten().step_by(step).collect();
    let mut differing = Vec::new();
    for (seed, scenario) in scenarios.repeat(rounds as usize).into_iter().enumerate() {
        let folder = tempfile::tempdir().unwrap();
        let record = RecordSettings {
            folder: folder.path().to_owned(),
            bodies: usize::MAX,
            bytes_max: u64::MAX,
        };
        let ran = watcher::recorded(&scenario, seed as u64, days, record).await;
        let mut played: BTreeMap<ItemId, &str> = BTreeMap::new();
        for change in play(&folder.path().join("blog"), None, false)
            .await
            .unwrap()
            .iter()
            .flat_map(|step| &step.changes)
        {
            let end = match &change.kind {
                Kind::New | Kind::Edited | Kind::Revived => "live",
                Kind::Gone(reason, _) => reason.code(),
            };
            played.insert(change.id, end);
        }
        let ids: BTreeSet<&ItemId> = ran.keys().chain(played.keys()).collect();
        let other: Vec<String> = ids
            .into_iter()
            .filter(|id| ran.get(id) != played.get(id))
            .map(|id| {
                format!(
                    "{id}: {:?} in the run, {:?} in the replay",
                    ran.get(id),
                    played.get(id)
                )
            })
            .collect();
        if !other.is_empty() {
            differing.push(format!("{}, {seed}: {}", scenario.name, other.join("; ")));
        }
    }
    assert!(differing.is_empty(), "{}", differing.join("\n"));
}
