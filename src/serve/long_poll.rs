//! Which requests are held, for how long, and how many at once; not what wakes them.

use super::rescue::Refusal;
use crate::render::Query;
use http::Method;
use std::{sync::Arc, time::Duration};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// Seconds that a request is held when it does not say: below the usual idle limit of proxies, 60 s (SF-42).
pub(super) const TIMEOUT_SECS: u64 = 55;

/// No connection lives longer, whatever is configured; and a moment so far ahead can still be reckoned.
const HOLD_MAX: Duration = Duration::from_secs(86_400);

/// Room for requests that are held.
#[derive(Clone, Debug)]
pub struct Waiters {
    places: Arc<Semaphore>,
    places_max: usize,
    timeout_max: Duration,
}

impl Waiters {
    /// Room for so many at once, each held for so long at most.
    pub fn new(places_max: usize, timeout_max: Duration) -> Self {
        let places_max = places_max.min(Semaphore::MAX_PERMITS);
        let timeout_max = timeout_max.min(HOLD_MAX);
        Self { places: Arc::new(Semaphore::new(places_max)), places_max, timeout_max }
    }

    /// For how long a request may be held (D-11): only with `since` or an explicit `timeout`, and never a HEAD.
    pub fn hold(&self, method: &Method, query: &Query) -> Option<Duration> {
        let asked = !query.since.is_empty() || query.timeout_secs.is_some();
        let timeout = Duration::from_secs(query.timeout_secs.unwrap_or(TIMEOUT_SECS)).min(self.timeout_max);
        (asked && method != Method::HEAD && !timeout.is_zero()).then_some(timeout)
    }

    /// A place for one request.
    pub fn enter(&self) -> Result<OwnedSemaphorePermit, Refusal> {
        self.places.clone().try_acquire_owned().map_err(|_| Refusal::busy())
    }

    /// The longest hold, seconds.
    pub fn timeout_max_secs(&self) -> u64 {
        self.timeout_max.as_secs()
    }

    /// Requests held now.
    pub fn held(&self) -> usize {
        self.places_max - self.places.available_permits()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_get_that_asked_for_it_is_held() {
        // SF-40, SF-42, D-11.
        let waiters = Waiters::new(1, Duration::from_secs(300));
        let hold =
            |method, raw: &str| waiters.hold(&method, &Query::parse(raw).unwrap()).map(|held| held.as_secs());
        assert_eq!(hold(Method::GET, ""), None);
        assert_eq!(hold(Method::GET, "max=5"), None);
        assert_eq!(hold(Method::GET, "since=cursor:"), Some(55));
        assert_eq!(hold(Method::GET, "since=cursor:&timeout=0"), None);
        assert_eq!(hold(Method::GET, "timeout=7"), Some(7));
        assert_eq!(hold(Method::GET, "timeout=86400"), Some(300));
        assert_eq!(hold(Method::HEAD, "since=cursor:"), None);
    }

    #[test]
    fn one_more_than_fit_is_refused() {
        let waiters = Waiters::new(1, Duration::from_secs(1));
        let place = waiters.enter().unwrap();
        assert!(waiters.enter().is_err());
        assert_eq!(waiters.held(), 1);
        drop(place);
        assert!(waiters.enter().is_ok());
    }
}
