//! Messages to the supervisor that started this process (`Type=notify` and the watchdog of
//! systemd). Without one they go nowhere.

use crate::store::{Store, StoreError};
use sd_notify::NotifyState;
use std::{future::pending, time::Duration};
use tokio::time::{MissedTickBehavior, interval, timeout};

/// Part of the time of the watchdog after which it is told that all is well.
const PARTS: u32 = 3;

/// Says that the start is over.
pub(super) fn ready(status: &str) {
    tell(&[NotifyState::Ready, NotifyState::Status(status)]);
}

/// Says that the stop has begun.
pub(super) fn stopping() {
    tell(&[NotifyState::Stopping]);
}

/// Tells the watchdog, for ever, that the runtime is alive and that the store takes changes. When
/// either is not so, it is told nothing, and ends the process in the end.
pub(super) async fn feed_watchdog(store: &dyn Store) {
    let Some(within) = sd_notify::watchdog_enabled().filter(|within| !within.is_zero()) else {
        return pending().await;
    };
    let gap = within / PARTS;
    let mut look = interval(gap);
    look.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        look.tick().await;
        if takes_changes(store, gap).await {
            tell(&[NotifyState::Watchdog]);
        } else {
            tracing::warn!(
                "The store does not take changes; the watchdog is not told that all is well"
            );
        }
    }
}

/// True while the store takes changes within that time, or refuses them for a reason that another
/// process would not mend.
async fn takes_changes(store: &dyn Store, within: Duration) -> bool {
    matches!(
        timeout(within, store.check()).await,
        Ok(Ok(()) | Err(StoreError::Clock { .. }))
    )
}

fn tell(states: &[NotifyState<'_>]) {
    if let Err(error) = sd_notify::notify(states) {
        tracing::warn!("The supervisor cannot be told: {error}");
    }
}
