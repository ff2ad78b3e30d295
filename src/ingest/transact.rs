//! The one loop that reads a feed, decides and commits, and decides again when the feed moved on
//! meanwhile; not what is decided.

use super::{Context, FeedSpec};
use crate::{
    feed::{
        absence::recent_tombstone::{RecentTombstone, with_recent},
        inquiry::{DecisionBasis, Facts, Inquiry, Needs},
        item::Reason,
        reconcile::Change,
        schedule::Failure,
    },
    store::{Commit, CommitBasis, Receipt},
};
use std::future::Future;
use tracing::debug;

/// Times that one thing is decided on before we give up.
pub(super) const TRIES_MAX: usize = 5;

/// Answers from the store what an inquiry asks; `None` when the feed moved on meanwhile.
pub(super) async fn answered(
    context: &Context,
    feed: &FeedSpec,
    mut inquiry: Inquiry,
) -> Result<Option<Facts>, Failure> {
    let store = &context.store;
    loop {
        inquiry = match context.compute(move || inquiry.next()).await? {
            Needs::Keys(asking, keys) => {
                let found = store.known(feed.no, keys.clone()).await?;
                asking.with_items(&keys, found)
            }
            Needs::Witnesses(asking, witnesses) => {
                let found = store.witnessed(feed.no, witnesses.clone()).await?;
                asking.with_lookalikes(&witnesses, found.rev, found.items)
            }
            Needs::NewBasis => return Ok(None),
            Needs::Decision(facts) => return Ok(Some(facts)),
        };
    }
}

/// Result of one decision.
#[expect(
    clippy::large_enum_variant,
    reason = "moved once a decision, and nearly every decision is a commit"
)]
pub(super) enum Decision<T> {
    /// This is committed; what goes with it is handed back with the receipt.
    Commit(Commit, T),
    /// There is nothing to commit.
    Nothing,
    /// The feed moved on while it was decided.
    Moved,
}

// Decides: What happens if the feed changed while it was decided on?
/// Reads the feed, decides and commits, until a commit meets the revision that it was decided on.
/// `None` when there was nothing to commit. `during` says in the error what the feed did not stand
/// still for.
pub(super) async fn transact<T, F>(
    context: &Context,
    feed: &FeedSpec,
    during: &'static str,
    mut decide: impl FnMut(DecisionBasis) -> F,
) -> Result<Option<(Receipt, T)>, Failure>
where
    F: Future<Output = Result<Decision<T>, Failure>>,
{
    for _ in 0..TRIES_MAX {
        context.settle_doubts().await?;
        let snapshot = context.store.snapshot(feed.no, Vec::new()).await;
        let (record, mut known) = snapshot?.into_known();
        let is_corrected = known.window.set_back(context.now());
        let corrected = is_corrected.then(|| known.window.clone());
        let basis = DecisionBasis { record, known };
        let (mut commit, result) = match decide(basis).await? {
            Decision::Commit(commit, result) => (remembering(context, feed, commit).await?, result),
            Decision::Nothing => return Ok(None),
            Decision::Moved => continue,
        };
        // Else they would move again, by less, with each decision.
        commit.last = commit.last.or(corrected);
        let basis = CommitBasis {
            limits: feed.keep.limits(),
            ..commit.basis
        };
        let commit = Commit { basis, ..commit };
        let ended: Vec<Reason> = commit
            .changes
            .iter()
            .filter_map(Change::tombstone_reason)
            .collect();
        match context.commit(commit).await {
            Ok(receipt) => {
                ended
                    .iter()
                    .for_each(|reason| context.metrics.tombstone(reason.code()));
                return Ok(Some((receipt, result)));
            }
            // After an unknown outcome the next look shows whether the changes are there; then
            // nothing is left to decide.
            Err(error) if error.wants_another_look() => {
                debug!(feed.name = %feed.name, "`{}` is decided on again: {error}", feed.name);
            }
            Err(error) => return Err(error.into()),
        }
    }
    Err(Failure::ours(format!(
        "the feed kept changing while {during}"
    )))
}

/// Corrects the stored times of a feed's window if they were written while the clock ran ahead.
pub(super) async fn correct_times(context: &Context, feed: &FeedSpec) -> Result<(), Failure> {
    let mut window = context.store.known(feed.no, Vec::new()).await?.window;
    if !window.set_back(context.now()) {
        return Ok(());
    }
    let corrected = transact(
        context,
        feed,
        "its times were corrected",
        |basis| async move { Ok(Decision::Commit(Commit::nothing(&basis.record), ())) },
    );
    corrected.await?;
    Ok(())
}

/// A commit whose window remembers the items that end with it because they are missing, so that
/// their pages are asked for again.
async fn remembering(
    context: &Context,
    feed: &FeedSpec,
    mut commit: Commit,
) -> Result<Commit, Failure> {
    let last = match &mut commit.last {
        Some(last) if feed.deletions.permalink_checks => last,
        _ => return Ok(commit),
    };
    let now = context.now();
    let mut recent = Vec::new();
    for change in &commit.changes {
        let Change::Delete(delete) = change else {
            continue;
        };
        if RecentTombstone::is_kept_for(delete.reason) {
            let item = context.store.item(feed.no, delete.id).await?;
            recent.extend(item.and_then(|item| RecentTombstone::of(&item, now)));
        }
    }
    with_recent(&mut last.tombstones, recent);
    Ok(commit)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ingest::testing::{PollerRig, Trouble, ok};
    use std::{
        future::ready,
        sync::{Arc, atomic::Ordering},
    };

    // Else readers who wait sleep until the feed changes again.
    #[tokio::test(start_paused = true)]
    async fn a_commit_whose_outcome_is_not_known_is_announced_all_the_same() {
        let trouble = Arc::new(Trouble::default());
        let house = PollerRig::in_trouble(|_, _| ready(ok("")), &trouble);
        let feed = house
            .feed("blog", "http://h.example/feed", 3600, 86_400)
            .await;
        let record = house.store.feed(feed.no).await.unwrap();
        house.notify.moved(feed.no, record.head());
        assert!(!record.is_ready());
        trouble.unknown_commits.store(1, Ordering::Relaxed);
        let decide = |basis: DecisionBasis| async move {
            if basis.record.is_ready() {
                return Ok(Decision::Nothing);
            }
            let commit = Commit {
                ready: true,
                ..Commit::nothing(&basis.record)
            };
            Ok(Decision::Commit(commit, ()))
        };
        let committed = transact(&house.context, &feed, "it is made ready", decide);
        assert!(committed.await.unwrap().is_none(), "it was there already");
        let record = house.store.feed(feed.no).await.unwrap();
        assert!(record.is_ready());
        assert_eq!(house.notify.head(feed.no), Some(record.head()));
    }
}
