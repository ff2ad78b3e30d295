//! The commit of what a walk found after its feed was served, and of its end.

use super::{ArchiveReader, is_settled};
use crate::{
    feed::{
        absence::Coverage,
        archive::{ArchiveWalk, LastWalk},
        inquiry::{DecisionBasis, Facts, Inquiry},
        observation_record::ObservationRecord,
        reconcile::{Change, Decisions, Observation, WindowState, ended_in_archives},
        schedule::Failure,
    },
    ingest::{
        documents::opened,
        transact::{Decision, answered, transact},
    },
    store::{Archives, Commit},
};
use std::time::Instant;
use tracing::info;

impl ArchiveReader<'_> {
    /// Makes items of the staged pages of a feed that is served already: they get the next T
    /// (DESIGN section 4).
    pub(super) async fn commit_late(&self, walk: &ArchiveWalk) -> Result<(), Failure> {
        let (feed, started) = (self.feed, Instant::now());
        let committed = transact(
            self.context,
            feed,
            "its archives were decided on",
            |snapshot| self.late(walk, snapshot),
        );
        if let Some((receipt, ())) = committed.await? {
            self.context.announce(feed, &receipt, started);
            let (name, history) = (&feed.name, &receipt.feed.completeness.history);
            info!(feed.name = %name, "The archives of `{name}` were read: {history}");
        }
        Ok(())
    }

    async fn late(
        &self,
        walk: &ArchiveWalk,
        snapshot: DecisionBasis,
    ) -> Result<Decision<()>, Failure> {
        let (feed, profile) = (self.feed, self.context.profile(self.state));
        let record = &snapshot.record;
        let staged = self.context.store.staged(feed.no).await?;
        let history = record.completeness.history.after(walk.history());
        let is_told = if walk.is_done() {
            is_settled(walk, record)
        } else {
            history == record.completeness.history
        };
        if !staged.waits() && is_told {
            return Ok(Decision::Nothing);
        }
        let (before, shown) = (staged.before(), staged.shown());
        let import = opened(
            self.context,
            record,
            staged,
            profile.clone(),
            self.context.now(),
        )
        .await?;
        let pages = import.pages;
        let inquiry = self
            .context
            .compute(move || Inquiry::new(snapshot, Observation::default(), &pages));
        let Some(facts) = answered(self.context, feed, inquiry.await?).await? else {
            return Ok(Decision::Moved);
        };
        let (now, policy) = (self.context.now(), feed.deletions.policy(false));
        let (decisions, basis) = self
            .context
            .compute(move || {
                let Facts { basis, older, .. } = facts;
                (older.decide(&basis, profile, &policy, now), basis)
            })
            .await?;
        let DecisionBasis { record, known } = basis;
        let silence = self
            .silence(walk, before, &known.window, &decisions)
            .await?;
        let mut decisions = Decisions {
            coverage: Coverage::Partial,
            missing: silence.missed.len(),
            ..decisions
        };
        self.clear_suspects(&mut decisions.window.absence, shown)
            .await?;
        let gone = silence
            .gone
            .iter()
            .map(|missed| Change::Delete(ended_in_archives(*missed, now)));
        decisions.changes.extend(gone);
        decisions.window.archive_suspects = silence.missed;
        let walked = walk.is_done().then(|| LastWalk {
            missed: silence.counted,
            remark: silence.remark.clone(),
            ..LastWalk::of(walk, now)
        });
        let observed = ObservationRecord {
            partial: Some(format!(
                "archives, {}; pages read: {}",
                walk.history(),
                walk.pages()
            )),
            remark: silence.remark,
            ..ObservationRecord::of(&decisions, walk.entries(), now)
        };
        let last = WindowState {
            absence: decisions.window.absence,
            deferred: decisions.window.deferred,
            archive_suspects: decisions.window.archive_suspects,
            ..known.window.clone()
        };
        let commit = Commit {
            changes: decisions.changes,
            aliases: decisions.aliases,
            last: (last != known.window).then_some(last),
            id_rule: decisions.id_rule,
            archives: import.said.map(|said| Archives {
                history,
                walked,
                ..said
            }),
            observed: Some(observed),
            ..Commit::nothing(&record)
        };
        Ok(Decision::Commit(commit, ()))
    }
}
