//! Times of a subscription after the clock was set back: without this, retries would wait and
//! leases last until the clock is where it was before. Not how that is noticed.

use super::retry_schedule::{RETRY_AFTER_MAX_SECS, VERIFY_GIVE_UP_SECS};
use crate::{
    feed::stamp::Stamp,
    store::{Subscription, subscriptions::Progress},
};
use std::time::Duration;

/// Makes everything that is due so much earlier.
pub(super) fn bring_forward(
    sub: &mut Subscription,
    progress: &mut Progress,
    by: Duration,
    now: Stamp,
) {
    let us = u64::try_from(by.as_micros()).unwrap_or(u64::MAX);
    let earlier = |at: &mut Stamp| *at = Stamp::from_micros(at.micros().saturating_sub(us));
    earlier(&mut progress.attempts.next_try);
    if let Some(lease) = &mut sub.lease {
        earlier(&mut lease.until);
    }
    if let Some(pending) = &mut sub.pending {
        earlier(&mut pending.next_try);
        earlier(&mut pending.give_up_at);
    }
    clamp(sub, progress, now);
}

/// Mends times that lie further ahead than they can, because they were stored while the clock ran
/// ahead: a retry is made now, and a lease is as long as it was granted.
pub(super) fn clamp(sub: &mut Subscription, progress: &mut Progress, now: Stamp) {
    let retry = |at: &mut Stamp| {
        if *at > now.plus_secs(RETRY_AFTER_MAX_SECS) {
            *at = now;
        }
    };
    retry(&mut progress.attempts.next_try);
    if let Some(lease) = &mut sub.lease {
        lease.until = lease.until.min(now.plus_secs(lease.terms.secs));
    }
    if let Some(pending) = &mut sub.pending {
        retry(&mut pending.next_try);
        pending.give_up_at = pending.give_up_at.min(now.plus_secs(VERIFY_GIVE_UP_SECS));
    }
}
