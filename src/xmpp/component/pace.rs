//! The share of the stream that one address has: requests a second, and answers under way at once;
//! not what is answered.

use std::collections::HashMap;
use tokio::time::Instant;

/// Requests of one bare address at once, without waiting.
const BURST: f64 = 100.0;
/// Requests of one bare address a second after that.
const PER_SEC: f64 = 20.0;
/// Answers to one bare address under way at most.
const UNDER_WAY_MAX: usize = 4;
/// Addresses that are remembered at most; beyond that those at rest are forgotten, and then all.
const ADDRESSES_MAX: usize = 10_000;

/// The pace of each address.
#[derive(Debug, Default)]
pub(super) struct Paces {
    of: HashMap<String, Pace>,
}

#[derive(Debug)]
struct Pace {
    left: f64,
    at: Instant,
    under_way: usize,
}

impl Paces {
    // Decides: May an address ask for something more?
    /// True when one more request of an address is answered; it counts from now on until it is
    /// [`ended`](Self::ended).
    pub(super) fn admits(&mut self, address: &str, now: Instant) -> bool {
        if self.of.len() >= ADDRESSES_MAX && !self.of.contains_key(address) {
            self.of
                .retain(|_, pace| pace.under_way > 0 || pace.filled(now) < BURST);
            if self.of.len() >= ADDRESSES_MAX {
                self.of.retain(|_, pace| pace.under_way > 0);
            }
        }
        let pace = self.of.entry(address.to_owned()).or_insert(Pace {
            left: BURST,
            at: now,
            under_way: 0,
        });
        (pace.left, pace.at) = (pace.filled(now), now);
        if pace.left < 1.0 || pace.under_way >= UNDER_WAY_MAX {
            return false;
        }
        pace.left -= 1.0;
        pace.under_way += 1;
        true
    }

    /// Notes that an answer is written.
    pub(super) fn ended(&mut self, address: &str) {
        if let Some(pace) = self.of.get_mut(address) {
            pace.under_way = pace.under_way.saturating_sub(1);
        }
    }
}

impl Pace {
    fn filled(&self, now: Instant) -> f64 {
        let secs = now.saturating_duration_since(self.at).as_secs_f64();
        (self.left + secs * PER_SEC).min(BURST)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn one_address_has_its_share_and_keeps_nobody_waiting() {
        let (mut paces, now) = (Paces::default(), Instant::now());
        for _ in 0..UNDER_WAY_MAX {
            assert!(paces.admits("a@x", now));
        }
        assert!(!paces.admits("a@x", now) && paces.admits("b@x", now));
        for _ in UNDER_WAY_MAX..BURST as usize {
            paces.ended("a@x");
            assert!(paces.admits("a@x", now));
        }
        paces.ended("a@x");
        assert!(!paces.admits("a@x", now));
        assert!(paces.admits("a@x", now + Duration::from_millis(60)));
    }

    #[test]
    fn addresses_without_end_take_no_memory_without_end() {
        let (mut paces, now) = (Paces::default(), Instant::now());
        for n in 0..3 * ADDRESSES_MAX {
            let address = format!("{n}@x");
            assert!(paces.admits(&address, now));
            paces.ended(&address);
        }
        assert!(paces.of.len() <= ADDRESSES_MAX);
    }
}
