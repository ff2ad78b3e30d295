//! The next step of a subscription, decided from its row, the state of its feed and the time alone.

use super::{lease, retry_schedule::VERIFY_ATTEMPTS_MAX};
use crate::{
    clock::LOOK_AGAIN,
    feed::stamp::Stamp,
    mistakes::{Mistake, is_made},
    store::{
        Subscription,
        subscriptions::{Intent, Lease, Progress},
    },
};

#[cfg(test)]
mod tests;

/// The present time, and that by which something may end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Times {
    /// The time that the clock shows.
    pub(super) now: Stamp,
    /// The time that it has been past for ten minutes.
    pub(super) settled: Stamp,
}

impl Times {
    /// Time at which to look whether something is over that ends at `end`.
    fn look_at(self, end: Stamp) -> Stamp {
        if end > self.now {
            end
        } else {
            self.now.plus_secs(LOOK_AGAIN.as_secs())
        }
    }
}

/// The next thing to do for a subscription.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum NextStep {
    /// Write the row again.
    Save,
    /// The lease is over.
    Expire,
    /// The pending request was never answered.
    GiveUp,
    /// Verify.
    Ask,
    /// Ask a legacy subscriber whether to go on.
    Refresh,
    /// Warn of the end of the lease.
    Warn,
    /// Follow the view until there is something to push.
    Follow,
    /// Deliver.
    Push,
    /// Its principal may not read the feed any more.
    Deny,
    /// The feed was forgotten, and the subscription with it.
    Withdraw,
    /// The subscription has ended; its task stops.
    End,
    /// Wait, at the longest until then.
    Wait(Stamp),
}

/// State of the feed of a subscription.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Offer {
    /// It is served.
    #[default]
    Served,
    /// It is not configured any more. Its subscriptions keep their positions, and nothing is asked
    /// or pushed but what ends one.
    Withdrawn,
    /// It is served, and the principal of the subscription may not read it.
    Denied,
    /// It was forgotten.
    Forgotten,
}

/// State of a task.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct UnderWay {
    /// True while the callback is asked.
    pub(super) is_asking: bool,
    /// The stage of the next push.
    pub(super) pushing: PushStage,
    /// Time of the next try to save what is in memory and not in the store yet.
    pub(super) unsaved: Option<Stamp>,
    /// Time of the warning of the end of the lease; `None` where there is none to come.
    pub(super) warn_at: Option<Stamp>,
    /// End of the lease, if the stored one is further ahead than it can be.
    pub(super) lease_end: Option<Stamp>,
}

/// Stage of the next push.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum PushStage {
    /// It is not known whether there is anything to push.
    #[default]
    Unknown,
    /// There is nothing to push; the view is followed.
    Following,
    /// There is something to push.
    Behind,
    /// A push is under way.
    UnderWay,
}

// Decides: What does a subscription do next?
/// Decides what is due. What ends for good ends by the settled time, and all else by the clock.
pub(super) fn next(
    sub: &Subscription,
    progress: &Progress,
    offer: Offer,
    under_way: UnderWay,
    times: Times,
) -> NextStep {
    let now = times.now;
    if sub.lease.is_none() && sub.pending.is_none() {
        return NextStep::End;
    }
    if offer == Offer::Forgotten {
        return NextStep::Withdraw;
    }
    if offer == Offer::Denied {
        return NextStep::Deny;
    }
    let mut wake = Stamp::MAX;
    if let Some(at) = under_way.unsaved {
        if at <= now {
            return NextStep::Save;
        }
        wake = wake.min(at);
    }
    let lease = sub.lease.map(|lease| Lease {
        until: under_way.lease_end.unwrap_or(lease.until),
        ..lease
    });
    if let Some(lease) = &lease {
        let is_over = is_made(Mistake::LeaseEndsByAnyClock) && lease.until <= now;
        if lease.until <= times.settled || is_over {
            return NextStep::Expire;
        }
        wake = wake.min(times.look_at(lease.until));
        // Behind the end there is nothing to warn of, unless the clock is wrong.
        if let Some(at) = under_way.warn_at.filter(|_| now < lease.until) {
            if at <= now {
                return NextStep::Warn;
            }
            wake = wake.min(at);
        }
        match under_way.pushing {
            _ if offer != Offer::Served => {}
            PushStage::Unknown => return NextStep::Follow,
            PushStage::Following | PushStage::UnderWay => {}
            PushStage::Behind if progress.attempts.next_try <= now => return NextStep::Push,
            PushStage::Behind => wake = wake.min(progress.attempts.next_try),
        }
    }
    let Some(pending) = &sub.pending else {
        if offer != Offer::Served {
            return NextStep::Wait(wake);
        }
        let Some(at) = lease.and_then(lease::refresh_at) else {
            return NextStep::Wait(wake);
        };
        if at <= now {
            return NextStep::Refresh;
        }
        return NextStep::Wait(wake.min(at));
    };
    if under_way.is_asking {
        return NextStep::Wait(wake);
    }
    let is_asked_now =
        offer == Offer::Served || matches!(pending.intent, Intent::Unsubscribe { .. });
    // One that was accepted, and not asked about because we were down, is asked about once all the
    // same.
    let was_asked = pending.attempts > 0 || !is_asked_now;
    let is_over = pending.give_up_at <= times.settled || pending.attempts >= VERIFY_ATTEMPTS_MAX;
    if was_asked && is_over && pending.intent != Intent::Refresh {
        return NextStep::GiveUp;
    }
    if !is_asked_now {
        return NextStep::Wait(wake.min(times.look_at(pending.give_up_at)));
    }
    if pending.give_up_at <= now && was_asked && pending.intent != Intent::Refresh {
        // It had its time, unless the clock is wrong.
        return NextStep::Wait(wake.min(times.look_at(pending.give_up_at)));
    }
    if pending.next_try <= now {
        return NextStep::Ask;
    }
    NextStep::Wait(wake.min(pending.next_try))
}
