//! Saves of poll states and host pauses that no commit has saved: all that gather during one save
//! go into the next, and what may be noted late gathers for as long as the store wants.

use crate::{
    feed::{
        record::FeedNo,
        schedule::{Pause, PollState},
    },
    ingest::{host_pauses::HostPauses, polls::PollSaving},
    store::{Store, StoreError},
};
use futures_util::future::{BoxFuture, OptionFuture};
use std::{collections::BTreeMap, sync::Arc, time::Duration};
use tokio::time::Instant;
use tracing::warn;

/// Seconds after a save that failed.
pub(super) const SAVE_AGAIN_SECS: u64 = 5;

/// Poll states that wait to be saved, and the save under way.
pub(super) struct Saving {
    store: Arc<dyn Store>,
    unsaved: BTreeMap<FeedNo, PollState>,
    /// Time since which they gather.
    gathers_since: Instant,
    /// True when one of them may not be lost.
    at_once: bool,
    under_way: Option<BoxFuture<'static, Result<(), Unsaved>>>,
    not_before: Instant,
}

/// A save that failed: what it was to save, and why it could not.
pub(super) struct Unsaved {
    polls: BTreeMap<FeedNo, PollState>,
    at_once: bool,
    pauses: BTreeMap<String, Pause>,
    why: StoreError,
}

impl Saving {
    pub(super) fn new(store: Arc<dyn Store>) -> Self {
        Self {
            store,
            unsaved: BTreeMap::new(),
            gathers_since: Instant::now(),
            at_once: false,
            under_way: None,
            not_before: Instant::now(),
        }
    }

    /// Notes a poll state: to be saved, or saved already with a commit.
    pub(super) fn note(&mut self, feed: FeedNo, state: &PollState, saving: PollSaving) {
        if saving == PollSaving::Committed {
            self.unsaved.remove(&feed);
        } else {
            if self.unsaved.is_empty() {
                self.gathers_since = Instant::now();
            }
            self.unsaved.insert(feed, state.clone());
            self.at_once |= saving == PollSaving::AtOnce;
        }
    }

    /// Time of the next save, if one is due and none is under way.
    pub(super) fn due_at(&self, pauses: &HostPauses) -> Option<Instant> {
        if self.under_way.is_some() || !self.has_unsaved(pauses) {
            return None;
        }
        if self.at_once || pauses.has_unsaved() {
            return Some(self.not_before);
        }
        let gathered = self.gathers_since + self.store.polls_gather();
        Some(gathered.max(self.not_before))
    }

    /// Saves what has gathered, unless a save is under way or has just failed.
    pub(super) fn start(&mut self, pauses: &mut HostPauses) {
        if self.due_at(pauses).is_some_and(|at| at <= Instant::now()) {
            self.under_way = Some(self.save(pauses));
        }
    }

    /// Waits for the save under way; `None` when there is none. Safe to drop while it waits.
    pub(super) async fn next(&mut self) -> Option<Result<(), Unsaved>> {
        OptionFuture::from(self.under_way.as_mut()).await
    }

    /// Takes in a save that has ended.
    pub(super) fn end(&mut self, saved: Result<(), Unsaved>, pauses: &mut HostPauses) {
        self.under_way = None;
        let Err(Unsaved {
            polls,
            at_once,
            pauses: unsaved,
            why,
        }) = saved
        else {
            return;
        };
        warn!(
            feeds = polls.len(),
            "Poll states could not be saved, will try again: {why}"
        );
        for (feed, state) in polls {
            // What was learned meanwhile is newer.
            self.unsaved.entry(feed).or_insert(state);
        }
        self.at_once |= at_once;
        pauses.give_back(unsaved);
        self.not_before = Instant::now() + Duration::from_secs(SAVE_AGAIN_SECS);
    }

    /// Saves the rest, at the end.
    pub(super) async fn finish(mut self, pauses: &mut HostPauses) -> Result<(), StoreError> {
        if let Some(saved) = self.next().await {
            self.end(saved, pauses);
        }
        if self.has_unsaved(pauses) {
            self.save(pauses).await.map_err(|unsaved| unsaved.why)?;
        }
        Ok(())
    }

    fn has_unsaved(&self, pauses: &HostPauses) -> bool {
        !self.unsaved.is_empty() || pauses.has_unsaved()
    }

    fn save(&mut self, pauses: &mut HostPauses) -> BoxFuture<'static, Result<(), Unsaved>> {
        let (polls, pauses) = (std::mem::take(&mut self.unsaved), pauses.take_unsaved());
        let at_once = std::mem::take(&mut self.at_once);
        let store = Arc::clone(&self.store);
        Box::pin(async move {
            let rows = polls.clone().into_iter().collect();
            let saved = if at_once || !pauses.is_empty() {
                let pauses = pauses.clone().into_iter().collect();
                store.save_polls(rows, pauses).await
            } else {
                store.note_polls(rows).await
            };
            saved.map_err(|why| Unsaved {
                polls,
                at_once,
                pauses,
                why,
            })
        })
    }
}
