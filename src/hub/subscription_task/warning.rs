//! The warning before a lease ends, for a subscriber that asked for one; not when a lease ends.

use super::SubscriptionTask;
use crate::{
    feed::stamp::Stamp,
    hub::{lease, verify},
    store::subscriptions::Lease,
};
use futures_util::future::{BoxFuture, FutureExt as _};

/// The shortest time between a try to warn and the end of the lease for another one, seconds.
const AGAIN_SECS: u64 = 60;

/// The warning of the end of a lease. It lives in memory: after a restart it may come once more.
#[derive(Default)]
pub(super) struct LeaseWarning {
    pub(super) under_way: Option<BoxFuture<'static, bool>>,
    /// The end of the lease that was warned of, and the time of the next try; `None` for a
    /// subscriber that has heard.
    tried: Option<(Stamp, Option<Stamp>)>,
}

impl LeaseWarning {
    /// The warning of a task that goes on after a rest.
    pub(super) fn after(tried: Option<(Stamp, Option<Stamp>)>) -> Self {
        Self {
            under_way: None,
            tried,
        }
    }

    /// The end of the lease that was warned of, and the time of the next try.
    pub(super) fn tried(&self) -> Option<(Stamp, Option<Stamp>)> {
        self.tried
    }

    /// Forgets a warning that was sent: it is sent again at its time.
    pub(super) fn forget(&mut self) {
        self.tried = None;
    }
}

impl SubscriptionTask {
    /// Time of the next warning of the end of this lease, which is the one in force.
    pub(super) fn warn_at(&self, lease: Lease) -> Option<Stamp> {
        let stored = self.row.sub.lease?.until;
        match self.warning.tried {
            _ if self.warning.under_way.is_some() => None,
            Some((until, next_try)) if until == stored => next_try,
            _ => lease::warn_at(lease, &self.row.sub.target.wishes()),
        }
    }

    /// Starts a warning.
    pub(super) fn warn(&mut self, now: Stamp) {
        let Some(lease) = self.row.sub.lease else {
            return;
        };
        self.warning.tried = Some((lease.until, None));
        let left_secs = self.lease_end(lease, now).secs_since(now);
        let (shared, target) = (self.place.shared.clone(), self.row.sub.target.clone());
        let warned = verify::warn(shared, target, left_secs);
        self.warning.under_way = Some(warned.boxed());
    }

    /// Tries again in half of what is left, where nobody has heard.
    pub(super) fn warned(&mut self, is_heard: bool) {
        let now = self.place.shared.now();
        let Some(lease) = self.row.sub.lease else {
            return;
        };
        let left_secs = self.lease_end(lease, now).secs_since(now);
        if let Some((_, next_try)) = &mut self.warning.tried {
            let is_tried_again = !is_heard && left_secs > AGAIN_SECS;
            *next_try = is_tried_again.then(|| now.plus_secs(left_secs / 2));
        }
    }
}
