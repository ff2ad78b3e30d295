//! The one rule for `Retry-After`, whatever was asked for: a feed, a page of its archives or the
//! page of an item.
//!
//! `Retry-After` counts with a 429 (RFC 6585 section 4) or a 503 (RFC 9110 section 15.6.4), and for
//! seven days at most (POLLING 1.5). It pauses the authority that said it: no request of any kind
//! goes there until then. A 429 without it pauses it for our own next back-off step. Any other
//! status pauses nothing, whatever its headers say.

use super::{Policy, PollState, interval};
use crate::stamp::Stamp;

/// The longest `Retry-After` that is believed: seven days (POLLING 1.5).
pub const RETRY_AFTER_SECS_MAX: u64 = 7 * 86_400;

/// A time in which an authority gets no request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pause {
    /// Its end.
    pub until: Stamp,
    /// Its beginning.
    pub since: Stamp,
}

/// Seconds of a `Retry-After` that count, for an answer with this status whose header names
/// `named_secs`.
pub fn retry_after_secs(status: u16, named_secs: Option<u64>) -> Option<u64> {
    match status {
        429 | 503 => Some(named_secs?.min(RETRY_AFTER_SECS_MAX)),
        _ => None,
    }
}

/// End of the pause of a host that answered with this status. `state` is that of the feed, after
/// the failure if it was a poll.
pub fn host_pause_until(
    state: &PollState,
    policy: &Policy,
    status: Option<u16>,
    named_secs: Option<u64>,
    now: Stamp,
) -> Option<Stamp> {
    let secs = match (status?, retry_after_secs(status?, named_secs)) {
        (_, Some(secs)) => secs,
        (429, None) => interval::back_off_secs(state, status, policy, now),
        _ => return None,
    };
    if secs == 0 {
        return None;
    }
    Some(now.plus_secs(secs))
}

#[cfg(test)]
mod tests {
    use super::*;

    const DAY: u64 = 86_400;

    #[test]
    fn retry_after_counts_with_429_and_503_only_and_for_a_week_at_most() {
        let check =
            |status, named, expect| assert_eq!(retry_after_secs(status, named), expect, "{status}");
        check(429, Some(900), Some(900));
        check(503, Some(900), Some(900));
        check(503, Some(30 * DAY), Some(7 * DAY));
        check(503, None, None);
        for status in [200, 301, 404, 410, 500] {
            check(status, Some(900), None);
        }
    }

    #[test]
    fn a_429_pauses_its_host_with_or_without_retry_after_and_a_503_with_it_only() {
        let now = Stamp::from_secs(1_000);
        let check = |status, named, expect: Option<u64>| {
            let until = host_pause_until(
                &PollState::default(),
                &Policy::default(),
                status,
                named,
                now,
            );
            assert_eq!(
                until,
                expect.map(|secs| now.plus_secs(secs)),
                "{status:?} {named:?}"
            );
        };
        check(Some(429), Some(900), Some(900));
        check(Some(429), None, Some(3600));
        check(Some(503), Some(900), Some(900));
        check(Some(503), None, None);
        check(Some(503), Some(0), None);
        check(Some(404), Some(900), None);
        check(None, None, None);
    }
}
