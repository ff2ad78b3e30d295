//! The configuration of this process beside those of the others: what is told of it, and what the log
//! says where they differ. Not what is answered meanwhile.

use crate::{
    app::work_context::WorkContext,
    catalog::{BesideWorker, CatalogSnapshot},
    feed::record::FeedNo,
    store::{NodeDifferences, Nodes, ReportedFeeds, StoreError},
};
use std::{
    sync::{Arc, Weak},
    time::Duration,
};
use tokio::time::Instant;

/// Time between two looks at what the others told.
const LOOK_EVERY: Duration = Duration::from_secs(5);

/// Looks in turn that find the same before the log tells it: nodes are reloaded one after the other.
const SAME_LOOKS: u32 = 2;

/// What was told to the others and to the log.
#[derive(Default)]
pub(super) struct Agreement {
    /// The snapshot whose withdrawn feeds were told as those of the process that works.
    withdrawn_of: Weak<CatalogSnapshot>,
    differences: Option<NodeDifferences>,
    looked: Option<Instant>,
    found: Vec<String>,
    same_looks: u32,
}

impl Agreement {
    /// Tells the others what changed here. `works` is true in the process that works, which also
    /// tells the log where others differ from it.
    pub(super) async fn look(&mut self, bench: &WorkContext, works: bool) {
        let Some(nodes) = bench.wiring.store.nodes() else {
            return;
        };
        if let Err(error) = self.tell(bench, nodes, works).await {
            tracing::debug!("The other nodes are not told which feeds this one has: {error}");
        }
        let is_due = self.looked.is_none_or(|at| at.elapsed() >= LOOK_EVERY);
        if works && is_due {
            self.looked = Some(Instant::now());
            // A database that is away is told elsewhere.
            if let Ok(None) = nodes.withdrawn().await {
                // It was told in an epoch before this one.
                self.withdrawn_of = Weak::new();
            }
            if let Ok(status) = nodes.status().await {
                let files = status.differing_files();
                self.log(status.missing_feeds().into_iter().chain(files).collect());
            }
        }
    }

    async fn tell(
        &mut self,
        bench: &WorkContext,
        nodes: &Nodes,
        works: bool,
    ) -> Result<(), StoreError> {
        let snapshot = bench.wiring.gate.catalog.snapshot();
        if !works {
            // Another process tells them meanwhile.
            self.withdrawn_of = Weak::new();
        } else if !std::ptr::eq(self.withdrawn_of.as_ptr(), Arc::as_ptr(&snapshot)) {
            let withdrawn: Vec<FeedNo> = snapshot.all_withdrawn().map(|(_, no)| no).collect();
            nodes.tell_withdrawn(withdrawn).await?;
            self.withdrawn_of = Arc::downgrade(&snapshot);
        }
        let beside: &BesideWorker = snapshot.beside_worker();
        let differences = NodeDifferences {
            file: bench.reloader.digest(),
            only_here: ReportedFeeds::of(beside.only_here()),
            lacking: ReportedFeeds::of(beside.lacking()),
        };
        if self.differences.as_ref() != Some(&differences) {
            nodes.differ(differences.clone()).await?;
            self.differences = Some(differences);
        }
        Ok(())
    }

    /// Tells the log of what is found, once as long as it is the same.
    fn log(&mut self, found: Vec<String>) {
        if found != self.found {
            (self.found, self.same_looks) = (found, 0);
            return;
        }
        self.same_looks = self.same_looks.saturating_add(1);
        if self.same_looks == SAME_LOOKS {
            for disagreement in &self.found {
                tracing::warn!("{disagreement}");
            }
        }
    }
}
