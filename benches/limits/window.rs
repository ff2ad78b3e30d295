//! Question 6: what a poll's document costs to decide on. The feed that remembers a million items
//! against the one that remembers a hundred: the cost follows the window and not the memory.

use crate::{
    content::{NAMESPACE, guid, thin},
    report::{Aim, Report},
    rounds::compare,
};
use anyhow::{Result, ensure};
use everfeed::{
    clock::System,
    feed::{
        absence::{Coverage, ProofPolicy},
        reconcile::{Decisions, keys_needed, observe, reconcile},
        record::FeedNo,
        record::FeedRecord,
        stamp::Stamp,
    },
    store::{
        Commit, Store,
        redb::{Config, Redb},
    },
};
use everfeed_adapters::{Hints, SlicedDocument, slice};
use std::{hint::black_box, sync::Arc, time::Instant};
use tempfile::TempDir;

const FEW: u32 = 1_000;
const MANY: u32 = 1_000_000;
/// Items in a commit: the store bounds none, this bounds our memory.
const COMMIT_ITEMS: u32 = 50_000;
const DECISIONS: usize = 50;
const ROUNDS: usize = 15;
pub(crate) async fn ask(report: &Report) -> Result<()> {
    report.question(
        "(6) Deciding what a document changes, from the cut document to the decisions, redb",
        "a feed that remembers 1000000 items / one that remembers 1000; 1 = the memory costs nothing",
    );
    let (many, few) = (Subject::new(MANY).await?, Subject::new(FEW).await?);
    for entries in [15, 500] {
        for new in [0, 1] {
            let (large, small) = (
                many.seen(entries, new).await?,
                few.seen(entries, new).await?,
            );
            let ours = async |_| many.decide(&large, new).await;
            let limit = async |_| few.decide(&small, new).await;
            let spread = compare(ROUNDS, ours, limit).await?;
            report.ratio(
                format!("a window of {entries}, {new} of them new"),
                spread,
                Aim::AtLeast(0.5),
            );
        }
    }
    Ok(())
}

/// A feed of so many items in a store of its own.
struct Subject {
    store: Arc<dyn Store>,
    no: FeedNo,
    items: u32,
    _folder: TempDir,
}

impl Subject {
    async fn new(items: u32) -> Result<Self> {
        let folder = tempfile::tempdir()?;
        let store: Arc<dyn Store> = Arc::new(Redb::open(
            &folder.path().join("store.redb"),
            &Config::default(),
            Arc::new(System),
        )?);
        let mut record = store.register("blog", NAMESPACE).await?;
        for first in (0..items).step_by(COMMIT_ITEMS as usize) {
            let changes = (first..items.min(first + COMMIT_ITEMS)).map(thin).collect();
            record = store
                .commit(Commit {
                    changes,
                    ..nothing(&record)
                })
                .await?
                .feed;
        }
        Ok(Self {
            store,
            no: record.no,
            items,
            _folder: folder,
        })
    }

    /// The document of the newest entries, after the store has read the same without the new ones.
    async fn seen(&self, entries: u32, new: u32) -> Result<SlicedDocument> {
        let record = self.store.register("blog", NAMESPACE).await?;
        let old = document(self.items - entries + new..self.items)?;
        let decisions = self.decisions(&old).await?;
        let commit = Commit {
            last: Some(decisions.window),
            aliases: decisions.aliases,
            ..nothing(&record)
        };
        self.store.commit(commit).await?;
        document(self.items - entries + new..self.items + new)
    }

    /// Decides some times; seconds.
    async fn decide(&self, window: &SlicedDocument, new: u32) -> Result<f64> {
        let start = Instant::now();
        for _ in 0..DECISIONS {
            let decisions = black_box(self.decisions(window).await?);
            ensure!(
                decisions.changes.len() == new as usize,
                "{} changes",
                decisions.changes.len()
            );
        }
        Ok(start.elapsed().as_secs_f64())
    }

    async fn decisions(&self, window: &SlicedDocument) -> Result<Decisions> {
        let mut known = self.store.known(self.no, Vec::new()).await?;
        let seen = observe(&known.window, window, None, Coverage::Unconditional);
        let keys = keys_needed(NAMESPACE, &known.window, &seen);
        if !keys.is_empty() {
            known = self.store.known(self.no, keys).await?;
        }
        let policy = ProofPolicy {
            checks_permalinks: true,
            ..ProofPolicy::default()
        };
        Ok(reconcile(
            NAMESPACE,
            &known,
            &seen,
            &policy,
            Stamp::from_secs(1_800_000_000),
        ))
    }
}

fn nothing(record: &FeedRecord) -> Commit {
    Commit {
        ready: true,
        ..Commit::nothing(record)
    }
}

/// An RSS document of these items, the newest first.
fn document(items: std::ops::Range<u32>) -> Result<SlicedDocument> {
    let item = |n: u32| {
        let guid = guid(n);
        format!(
            "<item><guid>{guid}</guid><title>Day {n}</title><description>What happened.</description></item>"
        )
    };
    let items: String = items.rev().map(item).collect();
    let text = format!("<rss version=\"2.0\"><channel><title>t</title>{items}</channel></rss>");
    Ok(slice(text.as_bytes(), &Hints::default())?)
}
