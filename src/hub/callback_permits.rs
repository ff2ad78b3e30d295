//! Places for requests to callbacks that are under way at once, given to destinations in turn; not
//! when a request is due, nor whose turn it is (that is in [`turns`]).
//!
//! No destination delays another. It holds no more than a sixteenth of what is free, so there is
//! always a place for the next; a request that takes long gives its place back and counts apart;
//! and destinations in trouble share a part of the room.

use super::health::{DestinationHealth, Ending};
use crate::catalog::Destination;
use crate::locks::lock;
use std::{
    collections::{HashMap, VecDeque},
    sync::{Arc, Mutex, MutexGuard},
    time::Duration,
};
use tokio::{sync::oneshot, time::Instant};
use turns::{Lane, Lanes, Turn};

mod turns;

/// Part of the room that destinations in trouble share: one divided by this.
const TROUBLE_SHARE: usize = 4;
/// Part of the room that there is besides for requests that take long: one divided by this.
const SLOW_SHARE: usize = 2;
/// Destinations remembered at least before those at rest are swept.
const SWEEP_MIN: usize = 1024;
/// Time for which the trouble of a destination at rest is remembered.
const REMEMBERED: Duration = Duration::from_secs(3600);

/// Room for requests to callbacks. Cheap to clone.
#[derive(Clone, Debug)]
pub(super) struct CallbackPermits(Arc<Mutex<PermitTable>>);

/// Purpose of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RequestPurpose {
    /// To deliver. Not sent to a destination that is closed.
    Push,
    /// To ask. It is sent to a closed destination, too: whoever asks for it says that somebody is
    /// there.
    Question,
}

/// Nobody answers at a destination, so it is left alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct IsClosed {
    /// Time until another request may be sent.
    pub(super) wait: Duration,
}

/// Room for one request, until dropped.
#[derive(Debug)]
pub(super) struct CallbackPermit {
    places: CallbackPermits,
    destination: Arc<Destination>,
    /// The part of the room that it counts in.
    lane: Lane,
}

#[derive(Debug)]
struct PermitTable {
    /// Requests under way in the common room at most.
    all_max: usize,
    /// Requests under way to one destination at most.
    one_max: usize,
    lanes: Lanes,
    used: HashMap<Arc<Destination>, Used>,
    sweep_at: usize,
    /// Looks at a destination while places were given: the cost of giving them.
    #[cfg(test)]
    steps: usize,
}

/// The part of the room that a destination uses.
#[derive(Debug)]
struct Used {
    brisk: usize,
    slow: usize,
    waiting: VecDeque<oneshot::Sender<CallbackPermit>>,
    /// Its number in turn, since it waits or since its last place.
    number: u64,
    /// Its place in a queue; `None` where nobody waits or it is at its own limit.
    turn: Option<Turn>,
    health: DestinationHealth,
    used_at: Instant,
}

impl Used {
    fn new() -> Self {
        Self {
            brisk: 0,
            slow: 0,
            waiting: VecDeque::new(),
            number: 0,
            turn: None,
            health: DestinationHealth::default(),
            used_at: Instant::now(),
        }
    }

    fn held(&self) -> usize {
        self.brisk + self.slow
    }

    /// The part of the room in which its next request counts.
    fn lane(&self) -> Lane {
        if self.health.is_well() {
            Lane::Brisk
        } else {
            Lane::Slow
        }
    }

    fn held_in(&mut self, lane: Lane) -> &mut usize {
        match lane {
            Lane::Brisk => &mut self.brisk,
            Lane::Slow => &mut self.slow,
        }
    }

    /// Forgets those at the head of the queue who do not wait any more.
    fn forget_gone(&mut self) {
        while self.waiting.front().is_some_and(oneshot::Sender::is_closed) {
            self.waiting.pop_front();
        }
    }

    fn is_forgotten(&self, now: Instant) -> bool {
        let is_at_rest = self.held() == 0 && self.waiting.is_empty();
        is_at_rest && (self.health.is_well() || now.duration_since(self.used_at) > REMEMBERED)
    }
}

impl CallbackPermits {
    /// Room for `all_max` requests, of which one destination has at most `one_max`, and for half as
    /// many besides that take long.
    pub(super) fn new(all_max: usize, one_max: usize) -> Self {
        let all_max = all_max.max(1);
        let room = PermitTable {
            all_max,
            one_max: one_max.max(1),
            // Requests to destinations in trouble, where none takes longer than expected.
            lanes: Lanes::new(all_max, (all_max / TROUBLE_SHARE).max(1)),
            used: HashMap::new(),
            sweep_at: SWEEP_MIN,
            #[cfg(test)]
            steps: 0,
        };
        Self(Arc::new(Mutex::new(room)))
    }

    fn lock(&self) -> MutexGuard<'_, PermitTable> {
        lock(&self.0)
    }

    /// Waits for a place. Safe to drop while it waits.
    pub(super) async fn enter(
        &self,
        destination: &Destination,
        errand: RequestPurpose,
    ) -> Result<CallbackPermit, IsClosed> {
        loop {
            let waiting = {
                let mut room = self.lock();
                room.sweep();
                let (destination, used) = room.used_by(destination);
                if errand == RequestPurpose::Push {
                    used.health
                        .pass(Instant::now())
                        .map_err(|wait| IsClosed { wait })?;
                }
                used.forget_gone();
                if used.waiting.is_empty() && room.has_place(&destination) {
                    return Ok(room.take(self, &destination));
                }
                room.wait(&destination)
            };
            // No place comes when the destination was closed in the meantime: then the way in
            // decides anew.
            if let Ok(place) = waiting.await {
                return Ok(place);
            }
        }
    }
}

impl CallbackPermits {
    /// Lets the next request pass to a destination that is closed.
    pub(super) fn let_pass(&self, destination: &Destination) {
        if let Some(used) = self.lock().used.get_mut(destination) {
            used.health.let_pass(Instant::now());
        }
    }
}

impl PermitTable {
    /// The part that a destination uses, and its name as it is kept.
    fn used_by(&mut self, destination: &Destination) -> (Arc<Destination>, &mut Used) {
        let kept = self.used.get_key_value(destination);
        let kept = kept.map_or_else(|| Arc::new(destination.clone()), |(kept, _)| kept.clone());
        let used = self.used.entry(kept.clone()).or_insert_with(Used::new);
        (kept, used)
    }

    /// True where a destination may have one more place now.
    fn has_place(&mut self, destination: &Destination) -> bool {
        let Some(used) = self.used.get_mut(destination) else {
            return true;
        };
        let lane = used.lane();
        used.held() < self.one_max && self.lanes.is_free(lane, *used.held_in(lane))
    }

    /// Takes a place; there is one.
    fn take(&mut self, places: &CallbackPermits, destination: &Arc<Destination>) -> CallbackPermit {
        let number = self.lanes.next_number();
        let (_, used) = self.used_by(destination);
        used.used_at = Instant::now();
        used.number = number;
        let lane = used.lane();
        *used.held_in(lane) += 1;
        self.lanes.taken(lane);
        self.queue(destination);
        CallbackPermit {
            places: places.clone(),
            destination: destination.clone(),
            lane,
        }
    }

    fn wait(&mut self, destination: &Arc<Destination>) -> oneshot::Receiver<CallbackPermit> {
        let (give, given) = oneshot::channel();
        let number = self.lanes.next_number();
        let (_, used) = self.used_by(destination);
        if used.waiting.is_empty() {
            used.number = number;
        }
        // Whoever waits in vain is cleared away at the latest when twice as many wait.
        if used.waiting.len() == used.waiting.capacity() {
            used.waiting.retain(|waiting| !waiting.is_closed());
        }
        used.waiting.push_back(give);
        self.queue(destination);
        given
    }

    /// Puts a destination where it belongs now: into the queue of its health by what it holds, or
    /// into none.
    fn queue(&mut self, destination: &Arc<Destination>) {
        let Some(used) = self.used.get_mut(destination) else {
            return;
        };
        used.forget_gone();
        let mut turn = None;
        if !used.waiting.is_empty() && used.held() < self.one_max {
            let lane = used.lane();
            turn = Some(Turn {
                lane,
                held: *used.held_in(lane),
                number: used.number,
            });
        }
        if used.turn == turn {
            return;
        }
        if let Some(left) = used.turn {
            self.lanes.leave(left);
        }
        if let Some(turn) = turn {
            self.lanes.stand(turn, destination.clone());
        }
        used.turn = turn;
    }

    /// Gives free places to those who wait, one to a destination and turn. What could not be given
    /// is returned, to be dropped outside of the lock. It looks at no destination that gets none.
    #[must_use]
    fn give(&mut self, places: &CallbackPermits) -> Vec<CallbackPermit> {
        let mut refused = Vec::new();
        while let Some(destination) = self.lanes.next() {
            #[cfg(test)]
            {
                self.steps += 1;
            }
            let (_, used) = self.used_by(&destination);
            used.forget_gone();
            match used.waiting.pop_front() {
                Some(next) => {
                    let place = self.take(places, &destination);
                    refused.extend(next.send(place).err());
                }
                // All who waited have left.
                None => self.queue(&destination),
            }
        }
        refused
    }

    /// Forgets destinations at rest, at a cost in proportion to those that came since.
    fn sweep(&mut self) {
        if self.used.len() >= self.sweep_at {
            let now = Instant::now();
            self.used.retain(|_, used| !used.is_forgotten(now));
            self.sweep_at = (self.used.len() * 2).max(SWEEP_MIN);
        }
    }
}

impl CallbackPermit {
    /// The request takes long: it counts apart from now on, and its destination as slow.
    pub(super) fn slowed(&mut self) {
        let places = self.places.clone();
        let mut guard = places.lock();
        let room = &mut *guard;
        let has_room = room.lanes.count(Lane::Slow) < (room.all_max / SLOW_SHARE).max(1);
        let Some(used) = room.used.get_mut(&self.destination) else {
            return;
        };
        used.health.slowed();
        if self.lane == Lane::Brisk && has_room {
            self.lane = Lane::Slow;
            (used.brisk, used.slow) = (used.brisk - 1, used.slow + 1);
            room.lanes.freed(Lane::Brisk);
            room.lanes.taken(Lane::Slow);
        }
        room.queue(&self.destination);
        let refused = room.give(&places);
        drop(guard);
        drop(refused);
    }

    /// The request has ended.
    pub(super) fn ended(&mut self, ending: Ending) {
        let mut room = self.places.lock();
        let Some(used) = room.used.get_mut(&self.destination) else {
            return;
        };
        used.health.ended(ending, Instant::now());
        if used.health.is_closed() {
            // Each decides anew: a push is put off.
            used.waiting.clear();
        }
        room.queue(&self.destination);
    }
}

impl Drop for CallbackPermit {
    fn drop(&mut self) {
        let places = self.places.clone();
        let mut guard = places.lock();
        let room = &mut *guard;
        if let Some(used) = room.used.get_mut(&self.destination) {
            *used.held_in(self.lane) -= 1;
            room.lanes.freed(self.lane);
        }
        room.queue(&self.destination);
        let refused = room.give(&places);
        drop(guard);
        drop(refused);
    }
}

#[cfg(test)]
mod tests;
