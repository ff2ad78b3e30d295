//! The warning before a lease ends, for a subscriber that asked for one; not when a lease ends.

use super::SubscriptionTask;
use crate::{
    feed::stamp::Stamp,
    hub::{lease, verify},
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

impl SubscriptionTask {
    /// Time of the next warning.
    pub(super) fn warn_at(&self) -> Option<Stamp> {
        let lease = self.row.sub.lease?;
        match self.warning.tried {
            _ if self.warning.under_way.is_some() => None,
            Some((until, next_try)) if until == lease.until => next_try,
            _ => lease::warn_at(lease, &self.row.sub.target.wishes()),
        }
    }

    /// Starts a warning.
    pub(super) fn warn(&mut self, now: Stamp) {
        let Some(lease) = self.row.sub.lease else {
            return;
        };
        self.warning.tried = Some((lease.until, None));
        let (shared, target) = (self.place.shared.clone(), self.row.sub.target.clone());
        let warned = verify::warn(shared, target, lease.until.secs_since(now));
        self.warning.under_way = Some(warned.boxed());
    }

    /// Tries again in half of what is left, where nobody has heard.
    pub(super) fn warned(&mut self, is_heard: bool) {
        let now = self.place.shared.now();
        if let Some((until, next_try)) = &mut self.warning.tried {
            let left_secs = until.secs_since(now);
            let is_tried_again = !is_heard && left_secs > AGAIN_SECS;
            *next_try = is_tried_again.then(|| now.plus_secs(left_secs / 2));
        }
    }
}
