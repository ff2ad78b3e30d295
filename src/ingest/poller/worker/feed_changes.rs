//! Feeds that are added, changed or removed while the worker runs; not the list of them (`catalog`).

use super::Worker;
use crate::{
    feed::{
        archive::ArchiveWalk, record::FeedRecord, schedule::RETRY_AFTER_SECS_MAX, stamp::Stamp,
    },
    ingest::{
        FeedSpec,
        poller::{jobs::goes_on_at, requests::PollAnswer},
        polls::PollSaving,
    },
};
use imbl::ordmap::DiffItem;

/// Seconds to the next permalink check at most: a page that is still there is asked for again after
/// a month.
const CHECK_SECS_MAX: u64 = 30 * 86_400;

impl Worker<'_> {
    /// Takes over the feeds that are wanted, where that has not been done yet.
    pub(super) fn take_over_changes(&mut self) {
        if self.wanted.has_changed().unwrap_or(false) {
            self.change_feeds();
        }
    }

    /// Takes over the feeds that are wanted: those that were added or changed are looked up, those
    /// that were removed are not polled any more.
    pub(super) fn change_feeds(&mut self) {
        let now = self.now();
        let wanted = self.wanted.borrow_and_update().clone();
        let before = std::mem::replace(&mut self.feeds, wanted.clone());
        for change in before.diff(&wanted) {
            let (feed, spec) = match change {
                DiffItem::Add(feed, spec)
                | DiffItem::Update {
                    new: (feed, spec), ..
                } => (feed, spec),
                DiffItem::Remove(feed, _) => {
                    self.lanes.remove(*feed);
                    self.agenda.walks.remove(feed);
                    self.agenda.failed_steps.remove(feed);
                    self.agenda.hints.remove(feed);
                    self.agenda.looks.remove(feed);
                    self.agenda.awaited.tell(*feed, &PollAnswer::Unknown);
                    self.poller.forget(*feed);
                    continue;
                }
            };
            let is_of_old_url = |walk: &ArchiveWalk| !walk.is_of(&spec.bare_url());
            if !spec.reads_archives() || self.agenda.walks.get(feed).is_some_and(is_of_old_url) {
                self.lanes.walks.remove(*feed);
                self.agenda.walks.remove(feed);
            }
            if let Some(state) = self.poller.status(*feed) {
                let state = state.under(spec.bare_url().as_str(), &spec.policy(), now);
                self.saving.note(*feed, &state, PollSaving::Late);
                self.poller.remember(*feed, &state);
            }
            self.lanes.recalls.put(*feed, now);
        }
    }

    /// Queues the archive walk and the permalink checks of a feed.
    pub(super) fn take_up(
        &mut self,
        spec: &FeedSpec,
        record: &FeedRecord,
        walk: Option<ArchiveWalk>,
    ) {
        let feed = record.no;
        // A later time was stored while the clock ran ahead.
        let latest = |secs: u64| self.now().plus_secs(secs);
        let (walked_by, checked_by) = (latest(RETRY_AFTER_SECS_MAX), latest(CHECK_SECS_MAX));
        if spec.reads_archives() && !self.lanes.walks.is_busy_with(feed) {
            // One of another URL is given up by its next step.
            let going = walk.and_then(|walk| {
                let is_stale = !walk.is_of(&spec.bare_url());
                let at = if is_stale {
                    Stamp::ZERO
                } else {
                    goes_on_at(&walk, record)?
                };
                Some((at, walk))
            });
            let again = record
                .completeness
                .last_walk
                .as_ref()
                .and_then(|walked| spec.walks_again_at(walked));
            if let Some((at, walk)) = going {
                self.lanes.walks.put(feed, at.min(walked_by));
                self.agenda.walks.insert(feed, walk);
            } else if let Some(at) = again {
                self.lanes.walks.put(feed, at);
            }
        }
        if let Some(at) = record.window.next_check_at {
            self.lanes.checks.put_sooner(feed, at.min(checked_by));
        }
    }
}
