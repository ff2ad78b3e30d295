//! The number of orders in an hour, across restarts: authorities shut out whoever asks without end
//! (Let's Encrypt: five failed proofs of a name in an hour). A pure rule; the times are kept
//! elsewhere.

/// Orders in an hour at most.
pub(super) const ORDERS_PER_HOUR_MAX: usize = 4;
const HOUR_SECS: u64 = 3600;

/// The orders of the last hour.
#[derive(Clone, Debug, Default)]
pub(super) struct OrderLimit(Vec<u64>);

impl OrderLimit {
    /// From the times that are kept, Unix seconds.
    pub(super) fn new(times: Vec<u64>) -> Self {
        Self(times)
    }

    /// The time from which one more order may be placed; `now` or later.
    pub(super) fn free_at(&self, now: u64) -> u64 {
        let mut times = self.recent(now);
        times.sort_unstable();
        match times.len().checked_sub(ORDERS_PER_HOUR_MAX) {
            Some(over) => times[over].saturating_add(HOUR_SECS),
            None => now,
        }
    }

    /// The times that are to be kept.
    pub(super) fn times(&self) -> &[u64] {
        &self.0
    }

    /// Counts an order.
    pub(super) fn note(&mut self, now: u64) {
        self.0 = self.recent(now);
        self.0.push(now);
    }

    /// Forgets an order that was counted and not placed.
    pub(super) fn take_back(&mut self, time: u64) {
        if let Some(at) = self.0.iter().rposition(|known| *known == time) {
            self.0.remove(at);
        }
    }

    /// Those of the last hour. A time to come was written before the clock was set back, and counts
    /// as now.
    fn recent(&self, now: u64) -> Vec<u64> {
        let recent = self.0.iter().map(|time| (*time).min(now));
        recent.filter(|time| now - time < HOUR_SECS).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_order_more_waits_until_the_first_of_them_is_an_hour_old() {
        let mut limit = OrderLimit::new(vec![5]);
        for now in [10_000, 10_010, 10_020] {
            assert_eq!(limit.free_at(now), now);
            limit.note(now);
        }
        assert_eq!(limit.free_at(10_030), 10_030);
        limit.note(10_030);
        assert_eq!(limit.times(), [10_000, 10_010, 10_020, 10_030]);
        assert_eq!(limit.free_at(10_031), 13_600);
        assert_eq!(limit.free_at(13_600), 13_600);
        limit.take_back(10_030);
        assert_eq!(limit.free_at(10_031), 10_031);
        limit.note(10_031);
        // A clock that was set back keeps nobody waiting for longer than an hour.
        assert_eq!(limit.free_at(100), 3_700);
    }
}
