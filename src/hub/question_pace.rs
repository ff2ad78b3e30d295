//! The pace of questions to callbacks, also to those that confirm every one: so many at once, and
//! then one after the other. Not the budget of those that confirm none.

use crate::catalog::Destination;
use std::{collections::HashMap, time::Duration};
use tokio::time::Instant;

/// Counts that are kept at least before those of the past are swept.
const SWEEP_MIN: usize = 4096;

/// Anything to which questions are paced.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) enum PaceKey {
    /// A subscription, by its topic and its callback: whoever asks for it again and again.
    Subscription(String, String),
    /// A callback, whatever it is subscribed to.
    Callback(String),
    /// All callbacks of a host and port.
    Destination(Destination),
}

impl PaceKey {
    /// Questions at once, and the time for each from then on. A listener registers for 20 feeds at
    /// once (LEGACY C-4), and an aggregator has a callback for each of its feeds.
    fn pace(&self) -> (u32, Duration) {
        match self {
            Self::Subscription(..) => (10, Duration::from_secs(10)),
            Self::Callback(_) => (30, Duration::from_secs(1)),
            Self::Destination(_) => (300, Duration::from_millis(100)),
        }
    }
}

/// Questions of the last time.
#[derive(Debug, Default)]
pub(super) struct QuestionPace {
    /// The time at which the questions of a key are forgotten.
    clear_at: HashMap<PaceKey, Instant>,
    sweep_at: usize,
}

impl QuestionPace {
    /// Time until there is room for a question that counts for all of these; `None` when there is.
    pub(super) fn wait(&self, keys: &[PaceKey], now: Instant) -> Option<Duration> {
        let wait = |key: &PaceKey| {
            let (at_once, each) = key.pace();
            let clear = self.clear_at.get(key)?.checked_duration_since(now)? + each;
            clear
                .checked_sub(each * at_once)
                .filter(|wait| !wait.is_zero())
        };
        keys.iter().filter_map(wait).max()
    }

    /// Counts a question.
    pub(super) fn count(&mut self, keys: &[PaceKey], now: Instant) {
        if self.clear_at.len() >= self.sweep_at.max(SWEEP_MIN) {
            self.clear_at.retain(|_, clear| *clear > now);
            self.sweep_at = self.clear_at.len() * 2;
        }
        for key in keys {
            let clear = self.clear_at.entry(key.clone()).or_insert(now);
            *clear = (*clear).max(now) + key.pace().1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn so_many_are_asked_at_once_and_the_others_one_by_one() {
        let mut pace = QuestionPace::default();
        let key = [PaceKey::Subscription("t".to_owned(), "c".to_owned())];
        let mut now = Instant::now();
        let (at_once, each) = key[0].pace();
        for _ in 0..at_once {
            assert_eq!(pace.wait(&key, now), None);
            pace.count(&key, now);
        }
        assert_eq!(pace.wait(&key, now), Some(each));
        now += each / 2;
        assert_eq!(pace.wait(&key, now), Some(each / 2));
        now += each / 2;
        assert_eq!(pace.wait(&key, now), None);
        pace.count(&key, now);
        assert_eq!(pace.wait(&key, now), Some(each));
        let other = [PaceKey::Callback("c".to_owned()), key[0].clone()];
        assert_eq!(pace.wait(&other[..1], now), None);
        assert_eq!(pace.wait(&other, now), Some(each), "the longest counts");
        assert_eq!(pace.wait(&key, now + each * (at_once + 1)), None);
    }
}
