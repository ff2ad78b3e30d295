//! Places for requests to callbacks that are under way at once, given to destinations in turn; not
//! when a request is due.
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

/// Part of the free places that one destination may hold: one divided by this, and at least one
/// place.
const FREE_SHARE: usize = 16;
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
pub(super) struct Places(Arc<Mutex<PlaceRoom>>);

/// Purpose of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Errand {
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
pub(super) struct Place {
    places: Places,
    destination: Destination,
    is_slow: bool,
}

#[derive(Debug)]
struct PlaceRoom {
    all_max: usize,
    one_max: usize,
    /// Requests under way in the common room.
    brisk: usize,
    /// Requests under way that count apart.
    slow: usize,
    used: HashMap<Destination, Used>,
    /// Destinations that somebody waits for, in turn.
    turns: VecDeque<Destination>,
    sweep_at: usize,
}

/// The part of the room that a destination uses.
#[derive(Debug)]
struct Used {
    brisk: usize,
    slow: usize,
    waiting: VecDeque<oneshot::Sender<Place>>,
    /// True while it stands in [`PlaceRoom::turns`].
    has_turn: bool,
    health: DestinationHealth,
    used_at: Instant,
}

impl Used {
    fn new() -> Self {
        Self {
            brisk: 0,
            slow: 0,
            waiting: VecDeque::new(),
            has_turn: false,
            health: DestinationHealth::default(),
            used_at: Instant::now(),
        }
    }

    fn held(&self) -> usize {
        self.brisk + self.slow
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

impl Places {
    /// Room for `all_max` requests, of which one destination has at most `one_max`, and for half as
    /// many besides that take long.
    pub(super) fn new(all_max: usize, one_max: usize) -> Self {
        let room = PlaceRoom {
            all_max: all_max.max(1),
            one_max: one_max.max(1),
            brisk: 0,
            slow: 0,
            used: HashMap::new(),
            turns: VecDeque::new(),
            sweep_at: SWEEP_MIN,
        };
        Self(Arc::new(Mutex::new(room)))
    }

    fn lock(&self) -> MutexGuard<'_, PlaceRoom> {
        lock(&self.0)
    }

    /// Waits for a place. Safe to drop while it waits.
    pub(super) async fn enter(
        &self,
        destination: &Destination,
        errand: Errand,
    ) -> Result<Place, IsClosed> {
        loop {
            let waiting = {
                let mut room = self.lock();
                room.sweep();
                let used = room.used_by(destination);
                if errand == Errand::Push {
                    used.health
                        .pass(Instant::now())
                        .map_err(|wait| IsClosed { wait })?;
                }
                used.forget_gone();
                if used.waiting.is_empty() && room.has_place(destination) {
                    return Ok(room.take(self, destination));
                }
                room.wait(destination)
            };
            // No place comes when the destination was closed in the meantime: then the way in
            // decides anew.
            if let Ok(place) = waiting.await {
                return Ok(place);
            }
        }
    }
}

impl PlaceRoom {
    fn used_by(&mut self, destination: &Destination) -> &mut Used {
        let used = self.used.entry(destination.clone());
        used.or_insert_with(Used::new)
    }

    // Decides: Which callback host gets the next place?
    fn has_place(&self, destination: &Destination) -> bool {
        let Some(used) = self.used.get(destination) else {
            return true;
        };
        let (held, free) = if used.health.is_well() {
            (used.brisk, self.all_max.saturating_sub(self.brisk))
        } else {
            (used.slow, self.slow_max().saturating_sub(self.slow))
        };
        free > 0 && held < (free / FREE_SHARE).max(1) && used.held() < self.one_max
    }

    /// Requests to destinations in trouble at most, where none takes longer than expected.
    fn slow_max(&self) -> usize {
        (self.all_max / TROUBLE_SHARE).max(1)
    }

    /// Takes a place; there is one.
    fn take(&mut self, places: &Places, destination: &Destination) -> Place {
        let used = self.used_by(destination);
        used.used_at = Instant::now();
        let is_slow = !used.health.is_well();
        if is_slow {
            used.slow += 1;
            self.slow += 1;
        } else {
            used.brisk += 1;
            self.brisk += 1;
        }
        Place {
            places: places.clone(),
            destination: destination.clone(),
            is_slow,
        }
    }

    fn wait(&mut self, destination: &Destination) -> oneshot::Receiver<Place> {
        let (give, given) = oneshot::channel();
        let used = self.used_by(destination);
        // Whoever waits in vain is cleared away at the latest when twice as many wait.
        if used.waiting.len() == used.waiting.capacity() {
            used.waiting.retain(|waiting| !waiting.is_closed());
        }
        used.waiting.push_back(give);
        if !std::mem::replace(&mut used.has_turn, true) {
            self.turns.push_back(destination.clone());
        }
        given
    }

    /// Gives free places to those who wait, one to a destination and turn. What could not be given
    /// is returned, to be dropped outside of the lock.
    #[must_use]
    fn give(&mut self, places: &Places) -> Vec<Place> {
        let mut refused = Vec::new();
        let mut left = self.turns.len();
        while left > 0 && (self.brisk < self.all_max || self.slow < self.slow_max()) {
            left -= 1;
            let Some(destination) = self.turns.pop_front() else {
                break;
            };
            let has_place = self.has_place(&destination);
            let Some(used) = self.used.get_mut(&destination) else {
                continue;
            };
            used.forget_gone();
            let mut next = None;
            if has_place {
                next = used.waiting.pop_front();
            }
            used.has_turn = !used.waiting.is_empty();
            if used.has_turn {
                self.turns.push_back(destination.clone());
            }
            if let Some(next) = next {
                let place = self.take(places, &destination);
                refused.extend(next.send(place).err());
                left = self.turns.len();
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

impl Place {
    /// The request takes long: it counts apart from now on, and its destination as slow.
    pub(super) fn slowed(&mut self) {
        let places = self.places.clone();
        let mut room = places.lock();
        let has_room = room.slow < (room.all_max / SLOW_SHARE).max(1);
        let Some(used) = room.used.get_mut(&self.destination) else {
            return;
        };
        used.health.slowed();
        if !self.is_slow && has_room {
            self.is_slow = true;
            (used.brisk, used.slow) = (used.brisk - 1, used.slow + 1);
            (room.brisk, room.slow) = (room.brisk - 1, room.slow + 1);
        }
        let refused = room.give(&places);
        drop(room);
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
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let places = self.places.clone();
        let mut room = places.lock();
        if let Some(used) = room.used.get_mut(&self.destination) {
            if self.is_slow {
                used.slow -= 1;
                room.slow -= 1;
            } else {
                used.brisk -= 1;
                room.brisk -= 1;
            }
        }
        let refused = room.give(&places);
        drop(room);
        drop(refused);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures_util::FutureExt as _;

    fn at(host: &str) -> Destination {
        Destination::of(&format!("http://{host}.example/"))
    }

    fn enter(places: &Places, host: &str) -> Option<Place> {
        places
            .enter(&at(host), Errand::Question)
            .now_or_never()
            .map(|entered| entered.unwrap())
    }

    fn enter_all(places: &Places, host: &str) -> Vec<Place> {
        std::iter::from_fn(|| enter(places, host)).collect()
    }

    #[tokio::test(start_paused = true)]
    async fn a_destination_takes_no_room_from_the_others() {
        let places = Places::new(200, 20);
        assert_eq!(enter_all(&places, "one").len(), 11);
        let places = Places::new(200, 10);
        assert_eq!(enter_all(&places, "one").len(), 10, "no more than its room");
        let places = Places::new(2, 2);
        let one = enter(&places, "one");
        let other = enter(&places, "other");
        assert!(
            one.is_some() && other.is_some(),
            "the second place is for another one"
        );
        assert!(
            enter(&places, "third").is_none(),
            "there is room for two in all"
        );
        drop(one);
        assert!(enter(&places, "third").is_some());
    }

    #[tokio::test(start_paused = true)]
    async fn there_is_always_a_place_for_the_next_destination() {
        let places = Places::new(200, 20);
        let mut held: Vec<Place> = Vec::new();
        for n in 0..50 {
            let taken = enter_all(&places, &format!("greedy-{n}"));
            assert!(!taken.is_empty(), "destination {n} has its first place");
            held.extend(taken);
        }
        assert!(held.len() <= 200);
    }

    #[tokio::test(start_paused = true)]
    async fn requests_that_take_long_count_apart_up_to_a_limit() {
        let places = Places::new(16, 16);
        let hosts = |names: std::ops::Range<u32>| -> Vec<Place> {
            names
                .flat_map(|n| enter_all(&places, &n.to_string()))
                .collect()
        };
        let mut first = hosts(0..30);
        assert_eq!(first.len(), 16);
        first.iter_mut().for_each(Place::slowed);
        assert!(
            enter(&places, "0").is_none(),
            "in trouble, and their share is taken"
        );
        let mut second = hosts(100..130);
        assert_eq!(second.len(), 8, "half of them count apart");
        second.iter_mut().for_each(Place::slowed);
        let third = hosts(200..230);
        assert_eq!(
            third.len(),
            0,
            "never more than one and a half times the room"
        );
        drop((first, second, third));
        let room = places.lock();
        assert_eq!((room.brisk, room.slow), (0, 0));
    }

    #[tokio::test(start_paused = true)]
    async fn destinations_in_trouble_share_a_quarter() {
        let places = Places::new(40, 10);
        for n in 0..100 {
            enter(&places, &format!("slow-{n}"))
                .unwrap()
                .ended(Ending::AnsweredSlowly);
        }
        let held: Vec<Place> = (0..100)
            .flat_map(|n| enter_all(&places, &format!("slow-{n}")))
            .collect();
        assert_eq!(held.len(), 10);
        assert!(!enter_all(&places, "well").is_empty());
    }

    #[tokio::test(start_paused = true)]
    async fn places_go_to_destinations_in_turn_and_nobody_who_left_keeps_one() {
        let places = Places::new(2, 1);
        let held = [enter(&places, "a").unwrap(), enter(&places, "b").unwrap()];
        let hosts = ["c", "c", "c", "d"].map(at);
        let mut waiting: Vec<_> = hosts
            .iter()
            .map(|host| Box::pin(places.enter(host, Errand::Question)))
            .collect();
        for waits in &mut waiting {
            assert!(waits.now_or_never().is_none());
        }
        let gone = waiting.remove(0);
        drop(gone);
        drop(held);
        let [c, c2, d] = &mut waiting[..] else {
            panic!("three are left")
        };
        let first = c.now_or_never().unwrap();
        assert!(c2.now_or_never().is_none(), "its destination has one place");
        let _d = d.now_or_never().unwrap();
        drop(first);
        assert!(c2.now_or_never().is_some());
    }

    #[tokio::test(start_paused = true)]
    async fn a_push_is_not_sent_where_nobody_answers_and_a_question_is() {
        let places = Places::new(200, 20);
        let dead = at("dead");
        for _ in 0..5 {
            places
                .enter(&dead, Errand::Push)
                .await
                .unwrap()
                .ended(Ending::Silent);
        }
        let closed = places.enter(&dead, Errand::Push).await.unwrap_err();
        assert!(closed.wait >= Duration::from_secs(20), "{closed:?}");
        places
            .enter(&dead, Errand::Question)
            .await
            .unwrap()
            .ended(Ending::Answered);
        assert!(
            places.enter(&dead, Errand::Push).await.is_ok(),
            "it has answered"
        );
    }

    #[tokio::test(start_paused = true)]
    async fn destinations_at_rest_are_forgotten() {
        let places = Places::new(200, 20);
        for n in 0..10 * SWEEP_MIN {
            let ending = if n % 2 == 0 {
                Ending::Answered
            } else {
                Ending::Silent
            };
            enter(&places, &n.to_string()).unwrap().ended(ending);
            tokio::time::advance(Duration::from_secs(2)).await;
        }
        let remembered = places.lock().used.len();
        assert!(remembered <= 4 * SWEEP_MIN, "{remembered}");
    }
}
