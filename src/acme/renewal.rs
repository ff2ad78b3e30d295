//! The moments of a certificate: when it is renewed, and when a failed order is tried again. Pure.

use super::validity::Validity;

/// The first wait after a failure; it doubles with each further one.
const FIRST_WAIT_SECS: u64 = 60;
/// The longest wait.
const LONGEST_WAIT_SECS: u64 = 6 * 3600;

// Decides: When is a certificate renewed?
/// The time at which a certificate is renewed: when two thirds of its time are over, or up to a
/// thirtieth of it earlier, so that not all who began together come together. `chance` is between 0
/// and 1.
pub(super) fn renew_at(validity: Validity, chance: f64) -> u64 {
    // Limit: what an authority suggests (RFC 9773) is not asked.
    let span = validity.until.saturating_sub(validity.from);
    let earlier = share(span / 30, chance);
    validity
        .from
        .saturating_add(span / 3 * 2)
        .saturating_sub(earlier)
}

/// The seconds to wait after so many failures in a row; a quarter more or less, by chance.
pub(super) fn wait_secs(failures: u32, chance: f64) -> u64 {
    let doublings = failures.saturating_sub(1).min(20);
    let whole = (FIRST_WAIT_SECS << doublings).min(LONGEST_WAIT_SECS);
    whole - whole / 4 + share(whole / 2, chance)
}

fn share(of: u64, chance: f64) -> u64 {
    (of as f64 * chance.clamp(0.0, 1.0)) as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_third_of_the_time_is_left_for_failures() {
        const DAY: u64 = 86_400;
        let validity = Validity {
            from: 1_000 * DAY,
            until: 1_090 * DAY,
        };
        assert_eq!(renew_at(validity, 0.0), 1_060 * DAY);
        assert_eq!(renew_at(validity, 1.0), 1_057 * DAY);
        assert_eq!(renew_at(Validity { from: 9, until: 3 }, 1.0), 9);
        let waits: Vec<u64> = (1..=11).map(|failures| wait_secs(failures, 0.5)).collect();
        assert_eq!(
            waits,
            [
                60, 120, 240, 480, 960, 1920, 3840, 7680, 15_360, 21_600, 21_600
            ]
        );
        assert_eq!(
            (
                wait_secs(1, 0.0),
                wait_secs(1, 1.0),
                wait_secs(u32::MAX, 1.0)
            ),
            (45, 75, 27_000)
        );
    }
}
