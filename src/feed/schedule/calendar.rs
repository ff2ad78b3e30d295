//! The publisher's skipHours and skipDays; no other intervals.

use crate::stamp::Stamp;

const HOUR_SECS: u64 = 3600;
const WEEK_HOURS: u64 = 7 * 24;

/// The first moment from `at` on that lies in no hour (GMT) and on no day (Monday 0) that the
/// publisher skips. A publisher who skips everything is not listened to.
pub(super) fn step_out(at: Stamp, skip_hours: &[u8], skip_days: &[u8]) -> Stamp {
    let is_skipped = |hours: u64| {
        // 1970-01-01 was a Thursday.
        let (hour, day) = (hours % 24, (hours / 24 + 3) % 7);
        let is = |skip: &[u8], value: u64| skip.iter().any(|skip| u64::from(*skip) == value);
        is(skip_hours, hour) || is(skip_days, day)
    };
    let hours = at.secs() / HOUR_SECS;
    if !is_skipped(hours) {
        return at;
    }
    let open = (hours + 1..=hours + WEEK_HOURS).find(|hours| !is_skipped(*hours));
    open.map_or(at, |hours| Stamp::from_secs(hours * HOUR_SECS))
}
