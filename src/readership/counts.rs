//! Counts of the requests of one kind of software for one feed, by steps of time; pure. Not which
//! software there is.

/// Length of a step of the counts of a day, seconds.
const DAY_STEP_SECS: u64 = 3 * 3600;
/// Steps of the counts of a day: they reach back 21 to 24 hours.
const DAY_STEPS: u64 = 8;
/// Length of a step of the counts of a month, seconds.
const MONTH_STEP_SECS: u64 = 3 * 86_400;
/// Steps of the counts of a month: they reach back 27 to 30 days.
const MONTH_STEPS: u64 = 10;

/// Seconds of the counts of a day at most.
pub(super) const DAY_SECS: u64 = DAY_STEP_SECS * DAY_STEPS;

/// Different clients, as a set of bits: an address sets one of 64 bits, which a key of this process
/// chooses. No address can be read from it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct ClientBits(u64);

impl ClientBits {
    /// The bit of a client with this hash.
    pub(super) fn of(hash: u64) -> Self {
        Self(1 << (hash >> 58))
    }

    /// Puts in the clients of others.
    pub(super) fn join(&mut self, other: Self) {
        self.0 |= other.0;
    }

    /// Number of clients, about: linear counting (Whang et al. 1990) over 64 bits.
    pub(super) fn about(self) -> ClientCount {
        let unset = self.0.count_zeros();
        if unset == 0 {
            return ClientCount::Many;
        }
        let bits = f64::from(u64::BITS);
        let about = -bits * (f64::from(unset) / bits).ln();
        // At most 266: all bits but one are set.
        ClientCount::About(about.round() as u32)
    }
}

/// Number of different clients.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ClientCount {
    /// About so many.
    About(u32),
    /// More than can be counted: about 250 at least.
    Many,
}

/// Counts of requests.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Counts {
    /// All requests.
    pub(super) requests: u32,
    /// Those with a validator or a position.
    pub(super) conditional: u32,
    /// Those answered by 410.
    pub(super) gone: u32,
    /// Those answered by 429.
    pub(super) refused: u32,
    /// Those with an absurd claim of readers.
    pub(super) absurd: u32,
    /// The greatest claim of readers.
    pub(super) claimed: u32,
    /// The clients that sent them.
    pub(super) clients: ClientBits,
}

impl Counts {
    /// Adds other counts. Numbers stay at the greatest one that fits.
    pub(super) fn add(&mut self, other: Self) {
        for (sum, more) in [
            (&mut self.requests, other.requests),
            (&mut self.conditional, other.conditional),
            (&mut self.gone, other.gone),
            (&mut self.refused, other.refused),
            (&mut self.absurd, other.absurd),
        ] {
            *sum = sum.saturating_add(more);
        }
        self.claimed = self.claimed.max(other.claimed);
        self.clients.join(other.clients);
    }
}

/// Counts in steps of time, the oldest first. Steps without a request are left out.
#[derive(Clone, Debug, Default)]
struct Steps(Vec<(u64, Counts)>);

impl Steps {
    /// Adds counts to the step of this number, and removes those that are too old. A clock that goes
    /// back adds to the last step.
    fn add(&mut self, step: u64, kept: u64, counts: Counts) {
        self.0.retain(|(no, _)| no + kept > step);
        match self.0.last_mut() {
            Some((no, last)) if *no >= step => last.add(counts),
            _ => self.0.push((step, counts)),
        }
    }

    /// The steps that are not too old.
    fn since(&self, step: u64, kept: u64) -> impl DoubleEndedIterator<Item = &Counts> {
        let is_kept = move |(no, _): &&(u64, Counts)| no + kept > step;
        self.0.iter().filter(is_kept).map(|(_, counts)| counts)
    }

    fn sum(&self, step: u64, kept: u64) -> Counts {
        let mut sum = Counts::default();
        self.since(step, kept).for_each(|counts| sum.add(*counts));
        sum
    }
}

/// Counts of a day and of a month.
#[derive(Clone, Debug, Default)]
pub(super) struct RollingCounts {
    day: Steps,
    month: Steps,
}

impl RollingCounts {
    /// Adds counts at a time in seconds.
    pub(super) fn add(&mut self, secs: u64, counts: Counts) {
        self.day.add(secs / DAY_STEP_SECS, DAY_STEPS, counts);
        self.month.add(secs / MONTH_STEP_SECS, MONTH_STEPS, counts);
    }

    /// The counts of the last day.
    pub(super) fn day(&self, secs: u64) -> Counts {
        self.day.sum(secs / DAY_STEP_SECS, DAY_STEPS)
    }

    /// The counts of the last month.
    pub(super) fn month(&self, secs: u64) -> Counts {
        self.month.sum(secs / MONTH_STEP_SECS, MONTH_STEPS)
    }

    // Decides: How many readers does software claim?
    /// Claimed readers: the greatest claim of the newest three days with a claim. A service asks
    /// with several addresses and ids of one feed, and repeats its claim with each request, so claims
    /// are never added up; and a claim that falls is seen after three days. 0 without any.
    pub(super) fn claimed(&self, secs: u64) -> u32 {
        let steps = self.month.since(secs / MONTH_STEP_SECS, MONTH_STEPS);
        let mut claims = steps.rev().map(|counts| counts.claimed);
        claims.find(|claimed| *claimed > 0).unwrap_or(0)
    }

    /// True if nothing is left of the last month.
    pub(super) fn is_over(&self, secs: u64) -> bool {
        self.month(secs).requests == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOUR: u64 = 3600;
    const DAY: u64 = 24 * HOUR;

    fn requests(requests: u32) -> Counts {
        Counts {
            requests,
            ..Counts::default()
        }
    }

    fn claims(claimed: u32) -> Counts {
        Counts {
            claimed,
            ..requests(1)
        }
    }

    #[test]
    fn a_day_and_a_month_roll_on_in_their_steps_and_nothing_else_is_kept() {
        let mut counts = RollingCounts::default();
        for hour in 0..60 * 24 {
            counts.add(hour * HOUR, requests(1));
        }
        let now = 60 * DAY - HOUR;
        assert_eq!(counts.day(now).requests, 24);
        assert_eq!(counts.month(now).requests, 30 * 24);
        assert_eq!((counts.day.0.len(), counts.month.0.len()), (8, 10));
        assert_eq!(counts.day(now + HOUR).requests, 21, "a step has begun");
        assert_eq!(counts.day(now + 2 * DAY).requests, 0);
        assert!(!counts.is_over(now + 20 * DAY) && counts.is_over(now + 31 * DAY));
    }

    #[test]
    fn a_clock_that_goes_back_loses_no_request() {
        let mut counts = RollingCounts::default();
        counts.add(100 * DAY, requests(1));
        counts.add(99 * DAY, requests(2));
        assert_eq!(counts.day(100 * DAY).requests, 3);
        assert_eq!(counts.day.0.len(), 1);
    }

    #[test]
    fn claims_are_not_added_up_and_a_claim_that_falls_is_seen() {
        let mut counts = RollingCounts::default();
        for claimed in [120, 120, 7, 120] {
            counts.add(30 * DAY, claims(claimed));
        }
        assert_eq!(counts.claimed(30 * DAY), 120);
        counts.add(33 * DAY, claims(80));
        assert_eq!(counts.claimed(33 * DAY), 80);
        counts.add(36 * DAY, requests(5));
        assert_eq!(counts.claimed(36 * DAY), 80, "it has not claimed since");
        assert_eq!(counts.claimed(80 * DAY), 0);
    }

    #[test]
    fn numbers_stay_at_the_greatest_that_fits() {
        let mut counts = RollingCounts::default();
        counts.add(0, requests(u32::MAX));
        counts.add(0, requests(2));
        assert_eq!(counts.day(0).requests, u32::MAX);
    }

    #[test]
    fn clients_are_counted_about() {
        let of = |clients: u64| {
            let mut bits = ClientBits::default();
            for client in 0..clients {
                // Spread as a keyed hash spreads them.
                bits.join(ClientBits::of(client.wrapping_mul(0x9E37_79B9_7F4A_7C15)));
            }
            bits.about()
        };
        assert_eq!(of(0), ClientCount::About(0));
        assert_eq!(of(1), ClientCount::About(1));
        assert!(matches!(of(10), ClientCount::About(8..=12)), "{:?}", of(10));
        assert_eq!(of(10_000), ClientCount::Many);
    }
}
