//! The pace of questions to callbacks, also to those that confirm every one: so many at once, and
//! then one after the other. Not the budget of those that confirm none.

use crate::{
    catalog::{Destination, PathSpelling, parameters},
    layers::public_address::is_public,
};
use std::{
    collections::HashMap,
    net::{IpAddr, SocketAddr},
    time::Duration,
};
use tokio::time::Instant;
use url::Url;

/// Counts that are kept at least before those of the past are swept.
const SWEEP_MIN: usize = 4096;

/// A callback in the one form that all its spellings have.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct CallbackSpelling {
    destination: Destination,
    path: PathSpelling,
    parameters: Vec<String>,
}

impl CallbackSpelling {
    fn of(callback: &str) -> Self {
        let url = Url::parse(callback).ok();
        Self {
            destination: Destination::of(callback),
            path: PathSpelling::of(url.as_ref().map_or(callback, Url::path)),
            parameters: url.as_ref().map(parameters).unwrap_or_default(),
        }
    }

    /// The same by the address of a machine nearby, whose names are many. One address of the
    /// internet may have callbacks of many.
    fn at(&self, address: IpAddr) -> Option<Self> {
        let place = SocketAddr::new(address, self.destination.port);
        (!is_public(address)).then(|| Self {
            destination: Destination::of(&format!("http://{place}/")),
            ..self.clone()
        })
    }
}

/// Everything to which a question about a topic to a callback is paced, with the addresses behind
/// it.
pub(super) fn pace_keys(topic: &str, callback: &str, addresses: &[IpAddr]) -> Vec<PaceKey> {
    let spelling = CallbackSpelling::of(callback);
    let mut spellings = vec![spelling.clone()];
    for near in addresses.iter().filter_map(|address| spelling.at(*address)) {
        if !spellings.contains(&near) {
            spellings.push(near);
        }
    }
    let mut keys = Vec::new();
    for spelling in spellings {
        keys.push(PaceKey::Subscription(topic.to_owned(), spelling.clone()));
        keys.push(PaceKey::Destination(spelling.destination.clone()));
        keys.push(PaceKey::Callback(spelling));
    }
    keys
}

/// Anything to which questions are paced.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) enum PaceKey {
    /// A subscription, by its topic and its callback: whoever asks for it again and again.
    Subscription(String, CallbackSpelling),
    /// A callback, whatever it is subscribed to.
    Callback(CallbackSpelling),
    /// All callbacks of a host and port.
    Destination(Destination),
}

impl PaceKey {
    // Decides: How fast may a callback or a host be asked questions?
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
        let callback = CallbackSpelling::of("http://a.example/c");
        let key = [PaceKey::Subscription("t".to_owned(), callback.clone())];
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
        let other = [PaceKey::Callback(callback), key[0].clone()];
        assert_eq!(pace.wait(&other[..1], now), None);
        assert_eq!(pace.wait(&other, now), Some(each), "the longest counts");
        assert_eq!(pace.wait(&key, now + each * (at_once + 1)), None);
    }

    #[test]
    fn every_spelling_of_a_callback_has_one_pace() {
        let local = [IpAddr::from([127, 0, 0, 1])];
        let known = pace_keys("t", "http://127.0.0.1:9000/one", &local);
        assert_eq!(known.len(), 3);
        for (callback, addresses) in [
            ("http://localhost:9000/one", &[][..]),
            ("http://127.1:9000/%6fne", &local),
            (
                "http://[::1]:9000/./one?",
                &[IpAddr::from([0, 0, 0, 0, 0, 0, 0, 1])],
            ),
            ("http://[::ffff:127.0.0.1]:9000/x/../one#a", &local),
            ("http://127.0.0.1.:9000//one/", &local),
            ("http://0.0.0.0:9000/One", &[]),
            ("http://name.example:9000/one", &local),
        ] {
            let keys = pace_keys("t", callback, addresses);
            assert!(
                known.iter().all(|key| keys.contains(key)),
                "{callback}: {keys:?}"
            );
        }
        let far = [IpAddr::from([192, 88, 1, 1])];
        for (callback, addresses) in [
            ("http://127.0.0.1:9001/one", &local[..]),
            ("http://127.0.0.1:9000/two", &local),
            ("http://127.0.0.1:9000/one?k=1", &local),
            ("http://name.example:9000/one", &far),
        ] {
            let keys = pace_keys("t", callback, addresses);
            assert!(!keys.contains(&known[2]), "{callback}: {keys:?}");
        }
    }
}
