//! The one loop that reads a feed, decides and commits, and decides again when the feed moved on
//! meanwhile; not what is decided.

use super::{Context, FeedSpec};
use crate::ingest::store_failure::store_failure;
use crate::{
    feed::{
        absence::recent_tombstone::{RecentTombstone, with_recent},
        inquiry::DecisionBasis,
        item::{KeyHash, Reason},
        reconcile::{Change, Known},
        schedule::Failure,
    },
    store::{Commit, CommitBasis, Receipt, Witnessed},
};
use std::future::Future;
use tracing::debug;

/// Times that one thing is decided on before we give up.
pub(super) const TRIES_MAX: usize = 5;

impl DecisionBasis {
    /// Reads a feed.
    pub(super) async fn read(
        context: &Context,
        feed: &FeedSpec,
        keys: Vec<KeyHash>,
    ) -> Result<Self, Failure> {
        let (record, known) = context
            .store
            .snapshot(feed.no, keys)
            .await
            .map_err(store_failure)?
            .into_known();
        Ok(Self { record, known })
    }

    /// The same with the items behind these keys, read in one snapshot with the record; `None` when
    /// the feed moved on since.
    pub(super) async fn with_keys(
        self,
        context: &Context,
        keys: Vec<KeyHash>,
    ) -> Result<Option<Self>, Failure> {
        if keys.is_empty() {
            return Ok(Some(self));
        }
        let (record, known) = context
            .store
            .snapshot(self.record.no, keys)
            .await
            .map_err(store_failure)?
            .into_known();
        Ok((record.rev == self.record.rev).then_some(Self { record, known }))
    }

    /// The same with the items that entries with unknown keys may be; `None` when the feed moved on
    /// since.
    pub(super) async fn with_lookalikes(
        self,
        context: &Context,
        witnesses: Vec<KeyHash>,
    ) -> Result<Option<Self>, Failure> {
        // A feed that holds nothing has nothing to be found.
        if witnesses.is_empty() || self.record.items.total == 0 {
            return Ok(Some(self));
        }
        let Witnessed { rev, items } = context
            .store
            .witnessed(self.record.no, witnesses)
            .await
            .map_err(store_failure)?;
        let known = Known {
            lookalikes: items,
            ..self.known
        };
        Ok((rev == self.record.rev).then_some(Self {
            record: self.record,
            known,
        }))
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
        let snapshot = DecisionBasis::read(context, feed, Vec::new()).await?;
        let (commit, result) = match decide(snapshot).await? {
            Decision::Commit(commit, result) => (remembering(context, feed, commit).await?, result),
            Decision::Nothing => return Ok(None),
            Decision::Moved => continue,
        };
        let basis = CommitBasis {
            limits: feed.keeping.limits,
            ..commit.basis
        };
        let commit = Commit { basis, ..commit };
        let ended: Vec<Reason> = commit
            .changes
            .iter()
            .filter_map(Change::tombstone_reason)
            .collect();
        match context.store.commit(commit).await {
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
            Err(error) => return Err(store_failure(error)),
        }
    }
    Err(Failure::ours(format!(
        "the feed kept changing while {during}"
    )))
}

/// A commit whose window remembers the items that end with it because they are missing, so that
/// their pages are asked for again.
async fn remembering(
    context: &Context,
    feed: &FeedSpec,
    mut commit: Commit,
) -> Result<Commit, Failure> {
    let Some(last) = commit
        .last
        .as_mut()
        .filter(|_| feed.deletions.permalink_checks)
    else {
        return Ok(commit);
    };
    let now = context.now();
    let mut recent = Vec::new();
    for change in &commit.changes {
        let Change::Delete(delete) = change else {
            continue;
        };
        if RecentTombstone::is_kept_for(delete.reason) {
            let item = context
                .store
                .item(feed.no, delete.id)
                .await
                .map_err(store_failure)?;
            recent.extend(item.and_then(|item| RecentTombstone::of(&item, now)));
        }
    }
    with_recent(&mut last.tombstones, recent);
    Ok(commit)
}
