//! Times of retries after the clock was set back: without this, they would wait until the clock is
//! where it was before. Not how that is noticed, and not what ends for good, which keeps its time.

use super::retry_schedule::RETRY_AFTER_MAX_SECS;
use crate::{
    feed::stamp::Stamp,
    store::{Subscription, subscriptions::Progress},
};
use std::time::Duration;

/// Makes every retry so much earlier.
pub(super) fn bring_forward(
    sub: &mut Subscription,
    progress: &mut Progress,
    by: Duration,
    now: Stamp,
) {
    let us = u64::try_from(by.as_micros()).unwrap_or(u64::MAX);
    let earlier = |at: &mut Stamp| *at = Stamp::from_micros(at.micros().saturating_sub(us));
    earlier(&mut progress.attempts.next_try);
    if let Some(pending) = &mut sub.pending {
        earlier(&mut pending.next_try);
    }
    clamp(sub, progress, now);
}

/// Makes a retry now that lies further ahead than it can, because it was stored while the clock ran
/// ahead.
pub(super) fn clamp(sub: &mut Subscription, progress: &mut Progress, now: Stamp) {
    let retry = |at: &mut Stamp| {
        if *at > now.plus_secs(RETRY_AFTER_MAX_SECS) {
            *at = now;
        }
    };
    retry(&mut progress.attempts.next_try);
    if let Some(pending) = &mut sub.pending {
        retry(&mut pending.next_try);
    }
}
