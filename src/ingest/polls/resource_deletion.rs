//! The deletion of a resource: two answers 410 to requests without validators, some time apart; not
//! the absence of an entry from a feed.

use super::{Poll, Polled};
use crate::{
    feed::{
        item::Reason,
        reconcile::{Change, Delete, Evidence, WindowState},
        schedule::Failure,
        stamp::Stamp,
    },
    ingest::{
        DocumentFormat,
        transact::{Decision, transact},
        upstream::DocumentReply,
    },
    store::Commit,
};
use std::time::Instant;
use tracing::{info, warn};

/// Seconds until a resource that is gone is looked at again: daily, for as long as it is
/// configured.
const LOOK_SECS: u64 = 86_400;

impl Poll<'_> {
    /// True for a resource that has answered 410 last.
    pub(super) fn doubts_resource(&self) -> bool {
        self.feed.format == DocumentFormat::Resource && self.state.health.gone_at.is_some()
    }

    /// True for the answer of a resource that is gone. A missing one (404) may come back any time.
    pub(super) fn is_deletion(&self, reply: &DocumentReply) -> bool {
        let is_gone = |failure: &Failure| failure.status() == Some(410);
        self.feed.format == DocumentFormat::Resource
            && matches!(reply, DocumentReply::Failed { failure, .. } if is_gone(failure))
    }

    // Decides: When is a resource deleted?
    /// Deletes a resource whose first 410 is long enough ago: deletions are drastic, and an
    /// accident is mended within that time. It is dated by the first.
    pub(super) async fn note_gone(&self, mut polled: Polled) -> Polled {
        if self.feed.format != DocumentFormat::Resource {
            return polled;
        }
        let (now, name) = (self.answered_at, &self.feed.name);
        // The second answer is awaited no longer than it has to be; then it is looked at daily.
        let apart_secs = self.feed.deletions.apart_secs;
        let decided_at = polled
            .state
            .health
            .gone_at
            .map(|first| first.plus_secs(apart_secs));
        let look_at = decided_at
            .filter(|at| *at > now)
            .unwrap_or(now.plus_secs(LOOK_SECS));
        let timetable = &mut polled.state.timetable;
        timetable.next_at = timetable.next_at.min(look_at);
        let Some(first) = self.state.health.gone_at else {
            return polled;
        };
        if now < first.plus_secs(apart_secs) {
            return polled;
        }
        match self.delete_resource(first).await {
            Ok(is_new) => {
                if is_new {
                    info!(feed.name = %name, "`{name}` is deleted: its publisher has answered 410 since {}", first.rfc3339());
                }
                // When it is back it is read anew, even if it is what it was.
                polled.state.document.body = None;
            }
            Err(failure) => {
                warn!(feed.name = %name, "The deletion of `{name}` could not be kept, will try again: {failure}");
            }
        }
        polled
    }

    /// Writes the tombstone; false where there is nothing alive.
    async fn delete_resource(&self, first: Stamp) -> Result<bool, Failure> {
        let (context, feed, started) = (self.context, self.feed, Instant::now());
        let (now, good_at) = (self.answered_at, self.state.health.good_at);
        let committed = transact(
            context,
            feed,
            "its publisher says that it is gone",
            |basis| async move {
                let mut changes = Vec::new();
                for row in &basis.known.window.entries {
                    let item = context.store.item(feed.no, row.id).await?;
                    if item.is_none_or(|item| item.is_gone()) {
                        continue;
                    }
                    let evidence = Evidence {
                        when: Some(first.rfc3339()),
                        comment: Some("410 Gone".to_owned()),
                        ..Evidence::new(Reason::Explicit, now)
                    };
                    changes.push(Change::Delete(Delete {
                        id: row.id,
                        reason: Reason::Explicit,
                        first_missing: Some(first),
                        last_seen: good_at,
                        evidence,
                    }));
                }
                if changes.is_empty() {
                    return Ok(Decision::Nothing);
                }
                let last = WindowState {
                    entries: Vec::new(),
                    ..basis.known.window.clone()
                };
                Ok(Decision::Commit(
                    Commit {
                        changes,
                        last: Some(last),
                        ..Commit::nothing(&basis.record)
                    },
                    (),
                ))
            },
        );
        let Some((receipt, ())) = committed.await? else {
            return Ok(false);
        };
        context.announce(feed, &receipt, started);
        Ok(true)
    }
}
