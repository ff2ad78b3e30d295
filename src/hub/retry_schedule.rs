//! The retry schedules: the two of the hub, and the share of chance in them; not what is tried.

use crate::feed::stamp::Stamp;
use std::time::Duration;

/// Seconds after each failed delivery in a row; hourly from then on, until the lease ends (HUBS
/// 5.2).
const DELIVERY_SECS: [u64; 6] = [5, 15, 60, 300, 900, 3600];
/// Seconds after each failed verification; the doubling goes on up to an hour (HUBS 5.2, Google's
/// hub).
const VERIFY_SECS: [u64; 8] = [30, 60, 120, 240, 480, 960, 1920, 3600];
/// Seconds after which an unanswered request is given up: 0.3 section 6.2.1 asks for about six
/// hours.
pub(super) const VERIFY_GIVE_UP_SECS: u64 = 6 * 3600;
/// Questions of one request at most, if the time at which it is given up does not come: it was accepted
/// while the clock ran ahead. Six hours have twelve.
pub(super) const VERIFY_ATTEMPTS_MAX: u32 = 20;
/// The most that is added, as a part of the wait: subscribers that failed together do not come back
/// together.
const JITTER: f64 = 0.5;
/// The longest `Retry-After` that is believed, seconds; a day of silence is what a subscriber may
/// ask for.
pub(super) const RETRY_AFTER_MAX_SECS: u64 = 24 * 3600;

// Decides: When is a delivery tried again?
/// Time at which a delivery is tried again after `failures` in a row, at least one. `chance` is a
/// random number of 0..1.
pub(super) fn delivery_at(
    now: Stamp,
    failures: u32,
    retry_after: Option<Duration>,
    chance: f64,
) -> Stamp {
    after(now, &DELIVERY_SECS, failures, retry_after, chance)
}

/// Time at which a verification is tried again after `failures`, at least one.
pub(super) fn verify_at(
    now: Stamp,
    failures: u32,
    retry_after: Option<Duration>,
    chance: f64,
) -> Stamp {
    after(now, &VERIFY_SECS, failures, retry_after, chance)
}

/// Time at which a delivery is tried again that was not made, as nobody answers at its destination.
pub(super) fn postponed_until(now: Stamp, wait: Duration, chance: f64) -> Stamp {
    let wait = wait.mul_f64(1.0 + JITTER * chance);
    Stamp::from_micros(
        now.micros()
            .saturating_add(u64::try_from(wait.as_micros()).unwrap_or(u64::MAX)),
    )
}

fn after(
    now: Stamp,
    schedule: &[u64],
    failures: u32,
    retry_after: Option<Duration>,
    chance: f64,
) -> Stamp {
    let step = (failures.max(1) as usize - 1).min(schedule.len() - 1);
    let wait = Duration::from_secs(schedule[step]).mul_f64(1.0 + JITTER * chance);
    let asked = retry_after
        .unwrap_or_default()
        .min(Duration::from_secs(RETRY_AFTER_MAX_SECS));
    let us = u64::try_from(wait.max(asked).as_micros()).unwrap_or(u64::MAX);
    Stamp::from_micros(now.micros().saturating_add(us))
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Stamp = Stamp::from_secs(1_000_000);

    #[test]
    fn waits_grow_as_scheduled_and_chance_adds_at_most_half() {
        let check = |failures, secs: u64| {
            for _ in 0..50 {
                let at = delivery_at(NOW, failures, None, rand::random());
                assert!(
                    at >= NOW.plus_secs(secs) && at <= NOW.plus_secs(secs + secs.div_ceil(2)),
                    "{failures}"
                );
            }
        };
        check(1, 5);
        check(2, 15);
        check(5, 900);
        check(6, 3600);
        check(1_000_000, 3600);
        assert!(verify_at(NOW, 1, None, rand::random()) >= NOW.plus_secs(30));
        assert!(verify_at(NOW, u32::MAX, None, rand::random()) >= NOW.plus_secs(3600));
    }

    #[test]
    fn subscribers_that_failed_together_come_back_over_half_as_long_again() {
        let hour = Duration::from_secs(3600);
        let check = |at: &dyn Fn() -> Stamp| {
            // The share of an hour that is added, by one draw of chance each.
            let added = |at: Stamp| (at.micros() - NOW.micros()) as f64 / 3.6e9 - 1.0;
            let added: Vec<f64> = (0..200).map(|_| added(at())).collect();
            let least = added.iter().copied().fold(f64::MAX, f64::min);
            let most = added.iter().copied().fold(f64::MIN, f64::max);
            assert!((0.0..0.1).contains(&least), "{least}");
            assert!((0.4..=0.5).contains(&most), "{most}");
        };
        check(&|| delivery_at(NOW, 6, None, rand::random()));
        check(&|| verify_at(NOW, 8, None, rand::random()));
        check(&|| postponed_until(NOW, hour, rand::random()));
    }

    #[test]
    fn a_subscriber_may_ask_for_more_time_but_not_for_ever() {
        assert_eq!(
            delivery_at(NOW, 1, Some(Duration::from_secs(600)), rand::random()),
            NOW.plus_secs(600)
        );
        assert!(
            delivery_at(NOW, 6, Some(Duration::from_secs(1)), rand::random())
                >= NOW.plus_secs(3600)
        );
        assert_eq!(
            delivery_at(NOW, 1, Some(Duration::MAX), rand::random()),
            NOW.plus_secs(RETRY_AFTER_MAX_SECS)
        );
    }
}
