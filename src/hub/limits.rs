//! Limits of requests to callbacks under way at once, in all and per host; not when one is due.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError, Weak},
};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// Room for requests to callbacks.
#[derive(Debug)]
pub(super) struct Limits {
    overall: Arc<Semaphore>,
    per_host_max: usize,
    hosts: Mutex<Hosts>,
}

/// Room for one request, until dropped.
#[derive(Debug)]
pub(super) struct Permit {
    _overall: OwnedSemaphorePermit,
    _host: OwnedSemaphorePermit,
}

/// The hosts with requests under way or waiting; a host's room is gone with its last user.
#[derive(Debug)]
struct Hosts {
    rooms: HashMap<String, Weak<Semaphore>>,
    sweep_at: usize,
}

/// Hosts remembered at least before those without users are swept.
const SWEEP_HOSTS_MIN: usize = 1024;

impl Limits {
    pub(super) fn new(overall_max: usize, per_host_max: usize) -> Self {
        Self {
            overall: Arc::new(Semaphore::new(overall_max.clamp(1, Semaphore::MAX_PERMITS))),
            per_host_max: per_host_max.clamp(1, Semaphore::MAX_PERMITS),
            hosts: Mutex::new(Hosts { rooms: HashMap::new(), sweep_at: SWEEP_HOSTS_MIN }),
        }
    }

    /// Waits for room, fairly. First at the host: those who queue for a slow one then hold no room of the others.
    pub(super) async fn enter(&self, host: &str) -> Permit {
        let room = self.room(host).acquire_owned().await.expect("the room of a host is never closed");
        let overall = self.overall.clone().acquire_owned().await.expect("the room of all is never closed");
        Permit { _overall: overall, _host: room }
    }

    fn room(&self, host: &str) -> Arc<Semaphore> {
        let mut hosts = self.hosts.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(room) = hosts.rooms.get(host).and_then(Weak::upgrade) {
            return room;
        }
        if hosts.rooms.len() >= hosts.sweep_at {
            hosts.rooms.retain(|_, room| room.strong_count() > 0);
            // So that the cost of sweeping stays in proportion to the hosts that came since.
            hosts.sweep_at = (hosts.rooms.len() * 2).max(SWEEP_HOSTS_MIN);
        }
        let room = Arc::new(Semaphore::new(self.per_host_max));
        hosts.rooms.insert(host.to_owned(), Arc::downgrade(&room));
        room
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures_util::FutureExt;

    #[tokio::test]
    async fn a_slow_host_takes_no_room_from_the_others() {
        let limits = Limits::new(3, 2);
        let held = [limits.enter("slow").await, limits.enter("slow").await];
        assert!(limits.enter("slow").now_or_never().is_none(), "a host has room for two");
        let other = limits.enter("other").now_or_never();
        assert!(other.is_some(), "the third place is for another host");
        assert!(limits.enter("third").now_or_never().is_none(), "there is room for three in all");
        drop(held);
        assert!(limits.enter("slow").now_or_never().is_some());
    }
}
