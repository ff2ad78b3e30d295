//! Length of the wait between polls: the feed's own rhythm, back-off, and jitter; not what an
//! answer means.

use super::{FaultKind, FaultNote, Policy, PollState, Whose};
use crate::stamp::{SECOND_US, Stamp};

/// Seconds between polls at least, unless the configuration or the feed lowers it (DESIGN section
/// 9).
pub const FLOOR_SECS: u64 = 3600;
/// Seconds between polls at least of a feed whose news are pushed.
const PUSHED_SECS: u64 = 6 * 3600;
/// Seconds to which a feed may lower the floor (POLLING 1.5).
const HINTED_FLOOR_SECS: u64 = 900;
/// The first step of a back-off (POLLING 1.5).
const BACK_OFF_SECS: u64 = 300;
/// The first step while no request reaches the publisher for a reason of ours or of the network,
/// and while a feed was never read and its server does not answer: in a sidecar the two start
/// together.
const UNREACHED_SECS: u64 = 15;
/// The first step after a 429 that names no time (POLLING 1.5).
const THROTTLED_SECS: u64 = 3600;
/// 403 and 404 are slower than other failures (FRB 112).
const REFUSED_FACTOR: u64 = 4;
const DAY_SECS: u64 = 86_400;

/// Seconds between polls at least: the operator's word, else an hour or the shorter rhythm that the
/// document names.
pub(super) fn floor_secs(state: &PollState, policy: &Policy) -> u64 {
    let hinted = || {
        state
            .timetable
            .hinted_secs
            .map_or(FLOOR_SECS, |secs| secs.clamp(HINTED_FLOOR_SECS, FLOOR_SECS))
    };
    policy.min_secs.unwrap_or_else(hinted).min(policy.max_secs)
}

// Decides: How long until the next poll of a feed that answers well?
/// Seconds to the next poll of a feed that answers well: as often as it changes, no more often than
/// it asks for.
pub(super) fn ordinary_secs(
    state: &PollState,
    fresh_secs: Option<u64>,
    policy: &Policy,
    now: Stamp,
) -> u64 {
    let base = rhythm_secs(&state.timetable.arrivals).max(idle_secs(
        &state.timetable.arrivals,
        policy,
        now,
    ));
    let asked = state
        .timetable
        .hinted_secs
        .unwrap_or(0)
        .max(fresh_secs.unwrap_or(0));
    let floor = floor_secs(state, policy);
    let usual = base.max(asked).clamp(floor, policy.max_secs);
    if policy.is_pushed && !state.document.has_suspects {
        pushed_secs(usual, floor, policy)
    } else {
        usual
    }
}

// Decides: How much less often is a feed polled whose hub tells of its news?
/// Seconds to the next poll of a feed whose news are pushed: six hours or more, and a day at most,
/// so that a hub that has fallen silent is noticed (UPSTREAM U-12).
fn pushed_secs(usual: u64, floor: u64, policy: &Policy) -> u64 {
    usual
        .max(PUSHED_SECS)
        .min(DAY_SECS.max(floor))
        .min(policy.max_secs)
}

/// Half the median gap of the last arrivals; 0 while fewer than two are known.
fn rhythm_secs(arrivals: &[Stamp]) -> u64 {
    let mut gaps: Vec<u64> = arrivals
        .windows(2)
        .map(|pair| pair[1].secs_since(pair[0]))
        .collect();
    gaps.sort_unstable();
    gaps.get(gaps.len() / 2).map_or(0, |median| median / 2)
}

/// The steps by which a feed that has fallen silent is asked less often.
fn idle_secs(arrivals: &[Stamp], policy: &Policy, now: Stamp) -> u64 {
    let Some(last) = arrivals.last() else {
        return 0;
    };
    match now.secs_since(*last) / DAY_SECS {
        0..7 => 0,
        7..14 => policy.max_secs / 4,
        14..30 => policy.max_secs / 2,
        _ => policy.max_secs,
    }
}

/// Seconds to the next try after `state.health.failures` failures, of which the last had this
/// status. Failures count by the time that they took, too: those that readers, pings and operators
/// cause between two polls put the next one off no further than they have gone on.
pub(super) fn back_off_secs(
    state: &PollState,
    status: Option<u16>,
    policy: &Policy,
    now: Stamp,
) -> u64 {
    let floor = floor_secs(state, policy);
    // Who lowered the floor to seconds wants to know in seconds, too.
    let first = BACK_OFF_SECS.min(floor);
    let mut failures = state.health.failures;
    let is_unread = state.document.body.is_none();
    let is_unreached = |fault: &FaultNote| match fault.kind {
        FaultKind::NoAnswer { whose, .. } => {
            matches!(whose, Whose::Ours | Whose::Network) || is_unread
        }
        _ => false,
    };
    if state.health.fault.as_ref().is_some_and(is_unreached) {
        let wait_secs = |tries: u32| doubled(UNREACHED_SECS, tries);
        let soon = (0..u32::BITS)
            .find(|tries| wait_secs(*tries) >= floor)
            .unwrap_or(u32::BITS);
        if (1..=soon).contains(&failures) {
            return wait_secs(failures - 1);
        }
        failures = failures.saturating_sub(soon);
    }
    let wait_secs = |failures: u32| match status {
        Some(429) => doubled(THROTTLED_SECS, failures),
        Some(403 | 404) => doubled(first, failures).saturating_mul(REFUSED_FACTOR),
        _ => doubled(first, failures),
    };
    let since = state.health.fault.as_ref().map_or(now, |fault| fault.since);
    // Failures that each waited for their turn have taken at least as long as this allows.
    let allowed_secs = now.secs_since(since).saturating_add(wait_secs(1));
    wait_secs(failures)
        .min(allowed_secs)
        .max(state.timetable.hinted_secs.unwrap_or(0))
        .clamp(floor, policy.max_secs)
}

fn doubled(secs: u64, times: u32) -> u64 {
    secs.saturating_mul(1_u64.checked_shl(times).unwrap_or(u64::MAX))
}

/// Microseconds for an interval that is 0 to 10 % longer, so that feeds that fell into step fall
/// out of it again (POLLING 0.6). Where that exceeds the maximum it is as much shorter.
pub(super) fn jittered_us(secs: u64, state: &PollState, policy: &Policy, jitter: f64) -> u64 {
    let us = |secs: u64| secs.saturating_mul(SECOND_US);
    let slack = slack_us(secs, jitter);
    let longer = us(secs).saturating_add(slack);
    if longer <= us(policy.max_secs) {
        return longer;
    }
    us(secs)
        .saturating_sub(slack)
        .max(us(floor_secs(state, policy)))
}

/// Up to a tenth of some seconds, in microseconds.
pub(super) fn slack_us(secs: u64, jitter: f64) -> u64 {
    share_us(secs, jitter) / 10
}

/// A part of some seconds, in microseconds.
pub(super) fn share_us(secs: u64, part: f64) -> u64 {
    // A share of a number of microseconds needs no more digits than a float has.
    (secs as f64 * SECOND_US as f64 * part.clamp(0.0, 1.0)) as u64
}
