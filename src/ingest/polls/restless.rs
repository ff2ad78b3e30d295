//! Resources that change with every request: what is taken of them while they do. Not feeds, whose
//! entries have guards of their own.

use super::{Poll, Polled};
use crate::feed::schedule::PollOutcome;
use tracing::warn;

/// Documents running, each another, from which on a resource is restless.
const CHANGED_MAX: u32 = 10;
/// Time between two documents that are taken of a restless resource, seconds.
const APART_SECS: u64 = 600;
/// The word on it for the operator.
const REMARK: &str = "it changes with every request, so everfeed takes it every 10 minutes at most";

impl Poll<'_> {
    // Decides: May a resource change with every request?
    /// The end of a poll whose document is not taken now, because the resource changed in each of the
    /// last polls, and a short while ago. Nothing of the answer is remembered, so the next one
    /// brings it in its newest form.
    pub(super) fn paused_resource(&self) -> Option<Polled> {
        let document = &self.state.document;
        let is_restless = self.feed.is_resource()
            && document.changed_running >= CHANGED_MAX
            && self.state.health.gone_at.is_none();
        let taken_at = self.state.timetable.polled_at.filter(|_| is_restless)?;
        let left_secs = taken_at.plus_secs(APART_SECS).secs_since(self.answered_at);
        if left_secs == 0 || self.wants_document {
            return None;
        }
        let mut polled = self.remember(&PollOutcome::Deferred {
            wait_secs: left_secs,
        });
        if document.remark.as_deref() != Some(REMARK) {
            let name = &self.feed.name;
            warn!(feed.name = %name, "`{name}`: {REMARK}");
            polled.state.document.remark = Some(REMARK.to_owned());
        }
        Some(polled)
    }
}
