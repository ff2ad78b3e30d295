//! Turns of destinations that wait for a place: those that are well and those in trouble queue
//! apart, and a destination at its own limit stands in no queue; not who waits there.
//!
//! The head of each queue holds the least of all in it, and of those waits longest. So a look at
//! the head tells if anybody may go in, and a freed place costs a step down a tree, however many
//! wait.

use crate::catalog::Destination;
use std::{collections::BTreeMap, sync::Arc};

/// Part of the free places that one destination may hold: one divided by this, and at least one
/// place.
const FREE_SHARE: usize = 16;

/// A part of the room.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Lane {
    /// The common room.
    Brisk,
    /// Requests that take long, and those to destinations in trouble.
    Slow,
}

/// The place of a destination in a queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Turn {
    pub(super) lane: Lane,
    /// Places that it holds there.
    pub(super) held: usize,
    /// Its number: the lower goes first.
    pub(super) number: u64,
}

/// The parts of the room, and who waits for each.
#[derive(Debug)]
pub(super) struct Lanes {
    brisk: Queue,
    slow: Queue,
    numbers: u64,
}

#[derive(Debug)]
struct Queue {
    places_max: usize,
    count: usize,
    /// By places held and number.
    waiting: BTreeMap<(usize, u64), Arc<Destination>>,
}

impl Lanes {
    pub(super) fn new(brisk_max: usize, slow_max: usize) -> Self {
        let queue = |places_max| Queue {
            places_max,
            count: 0,
            waiting: BTreeMap::new(),
        };
        Self {
            brisk: queue(brisk_max),
            slow: queue(slow_max),
            numbers: 0,
        }
    }

    /// A number after all that were drawn.
    pub(super) fn next_number(&mut self) -> u64 {
        self.numbers += 1;
        self.numbers
    }

    /// Places that are taken.
    pub(super) fn count(&self, lane: Lane) -> usize {
        self.of(lane).count
    }

    pub(super) fn taken(&mut self, lane: Lane) {
        self.of_mut(lane).count += 1;
    }

    pub(super) fn freed(&mut self, lane: Lane) {
        self.of_mut(lane).count -= 1;
    }

    /// True where somebody who holds so many places may have one more.
    pub(super) fn is_free(&self, lane: Lane, held: usize) -> bool {
        self.of(lane).is_free(held)
    }

    /// Takes a place in a queue.
    pub(super) fn stand(&mut self, turn: Turn, destination: Arc<Destination>) {
        let key = (turn.held, turn.number);
        self.of_mut(turn.lane).waiting.insert(key, destination);
    }

    /// Leaves a queue.
    pub(super) fn leave(&mut self, turn: Turn) {
        let key = (turn.held, turn.number);
        self.of_mut(turn.lane).waiting.remove(&key);
    }

    // Decides: Which callback host gets the next place?
    /// The destination that may go in now; `None` when nobody may.
    pub(super) fn next(&self) -> Option<Arc<Destination>> {
        self.brisk.next().or_else(|| self.slow.next())
    }

    fn of(&self, lane: Lane) -> &Queue {
        match lane {
            Lane::Brisk => &self.brisk,
            Lane::Slow => &self.slow,
        }
    }

    fn of_mut(&mut self, lane: Lane) -> &mut Queue {
        match lane {
            Lane::Brisk => &mut self.brisk,
            Lane::Slow => &mut self.slow,
        }
    }
}

impl Queue {
    /// True where somebody who holds so many places may have one more: no more than a share of what
    /// is free, and one in any case.
    fn is_free(&self, held: usize) -> bool {
        let free = self.places_max.saturating_sub(self.count);
        free > 0 && held < (free / FREE_SHARE).max(1)
    }

    fn next(&self) -> Option<Arc<Destination>> {
        let ((held, _), destination) = self.waiting.first_key_value()?;
        self.is_free(*held).then(|| destination.clone())
    }
}
