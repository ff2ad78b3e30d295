//! Messages to the supervisor that started this process (`Type=notify` and the watchdog of
//! systemd). Without one they go nowhere.

use crate::store::{Remedy, Store, StoreError};
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
    match timeout(within, store.check()).await {
        Ok(Ok(()) | Err(StoreError::Clock { .. })) => true,
        Ok(Err(StoreError::Away(_))) => {
            let condition = store.condition();
            let outage = condition.outage();
            outage.is_some_and(|outage| outage.remedy == Remedy::ComesBack)
        }
        Ok(Err(_)) | Err(_) => false,
    }
}

fn tell(states: &[NotifyState<'_>]) {
    if let Err(error) = sd_notify::notify(states) {
        tracing::warn!("The supervisor cannot be told: {error}");
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        clock::System,
        feed::stamp::Stamp,
        store::{
            Outage, StoreCondition, StoreFuture,
            memory::Memory,
            wrapped::{Tap, Wrapped},
        },
    };
    use std::sync::Arc;

    /// A store that is away until this is done.
    struct Gone(Remedy);

    impl Tap for Gone {
        fn check<'a>(&'a self, _: &'a dyn Store) -> StoreFuture<'a, ()> {
            Box::pin(async { Err(StoreError::Away("told to".into())) })
        }

        fn condition(&self, _: &dyn Store) -> StoreCondition {
            StoreCondition::Away(Outage {
                cause: "told to".into(),
                since: Stamp::ZERO,
                remedy: self.0,
            })
        }
    }

    #[tokio::test]
    async fn the_watchdog_ends_no_process_for_a_database_that_is_away() {
        for (remedy, expect) in [
            (Remedy::ComesBack, true),
            (Remedy::OpensAgain, false),
            (Remedy::Restart, false),
        ] {
            let inner = Box::new(Memory::new(Arc::new(System)));
            let store = Wrapped {
                inner,
                tap: Gone(remedy),
            };
            let is_told = takes_changes(&store, Duration::from_secs(1)).await;
            assert_eq!(is_told, expect, "{remedy:?}");
        }
    }
}
