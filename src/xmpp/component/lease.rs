//! The lease of an address: how long it lasts, when the address is asked if it is there, when it
//! ends; not how it is stored.

use crate::{
    clock::{ClockReading, LeaseWatch},
    feed::stamp::Stamp,
};
use jid::Jid;

/// Seconds of the lease of an address with a resource, which is asked before its end if it is
/// there.
pub(super) const FULL_LEASE_SECS: u64 = 86_400;
/// Seconds of the lease of a bare address, which everything that it asks for renews.
pub(super) const BARE_LEASE_SECS: u64 = 2_592_000;
/// Seconds before the end of a lease from which on an address with a resource is asked.
const PROBE_SECS: u64 = 3_600;
/// Part of a lease that has passed before it is renewed: one divided by this.
const RENEWED_PART: u64 = 30;
/// Seconds between two looks at leases.
pub(super) const LOOK_SECS: u64 = 60;
/// Looks at a lease that is about to end, each while there is a stream, before it does: an hour in
/// which an address can answer.
// Limit: they are counted since the start, and anew after an outage. Where either comes every hour,
// a subscription that nobody answers for stays.
const LOOKS_MAX: u32 = 60;
/// An address with a resource is asked with each of so many of them.
const LOOKS_PER_QUESTION: u32 = 10;
/// Seconds without a look, because there was no stream or the machine slept, after which leases
/// have their looks anew.
const OUTAGE_SECS: u64 = 10 * LOOK_SECS;

/// Seconds of a new lease of an address.
pub(super) fn lease_secs(jid: &Jid) -> u64 {
    if jid.is_full() {
        FULL_LEASE_SECS
    } else {
        BARE_LEASE_SECS
    }
}

/// A lease.
#[derive(Clone, Debug)]
pub(super) struct AddressLease {
    pub(super) until: Stamp,
    /// Looks at it since it is about to end.
    looks: u32,
    watch: LeaseWatch,
}

/// A look at all leases.
#[derive(Debug)]
pub(super) struct LeaseCheck {
    now: Stamp,
    /// The time by which a lease may end.
    settled: Stamp,
    has_stream: bool,
    was_away: bool,
}

/// The outcome of a look at one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum LeaseStep {
    Stays,
    Renewed,
    /// The address is to be asked if it is there.
    Asked,
    Over,
}

impl LeaseCheck {
    /// A look at this time; `last` is that of the last one while there was a stream.
    pub(super) fn new(clock: ClockReading, has_stream: bool, last: Option<Stamp>) -> Self {
        let now = Stamp::from_micros(clock.now_us);
        Self {
            now,
            settled: Stamp::from_micros(clock.settled_us),
            has_stream,
            was_away: last.is_none_or(|at| now.secs_since(at) > OUTAGE_SECS),
        }
    }
}

impl AddressLease {
    /// A lease that ends then.
    pub(super) fn until(until: Stamp) -> Self {
        Self {
            until,
            looks: 0,
            watch: LeaseWatch::default(),
        }
    }

    // Decides: How long does a subscription over XMPP last?
    /// Looks at the lease of an address, which was seen since the last look or not. Without a stream
    /// none ends: nobody could be asked, or ask.
    pub(super) fn look(&mut self, jid: &Jid, is_seen: bool, look: &LeaseCheck) -> LeaseStep {
        let secs = lease_secs(jid);
        if is_seen {
            self.watch.restart();
        }
        let (until_us, now_us) = (self.until.micros(), look.now.micros());
        let end = Stamp::from_micros(self.watch.end_us(until_us, secs, now_us));
        let left = end.secs_since(look.now);
        if is_seen && left < secs - secs / RENEWED_PART {
            *self = Self::until(look.now.plus_secs(secs));
            return LeaseStep::Renewed;
        }
        let ends_within = if jid.is_full() { PROBE_SECS } else { 1 };
        if !look.has_stream || left >= ends_within {
            return LeaseStep::Stays;
        }
        if look.was_away {
            // Clients come back a little later than their server: none is asked at once.
            self.looks = 1;
        }
        let looks = self.looks;
        self.looks = looks.saturating_add(1);
        if end <= look.settled && looks >= LOOKS_MAX {
            LeaseStep::Over
        } else if jid.is_full() && looks.is_multiple_of(LOOKS_PER_QUESTION) {
            LeaseStep::Asked
        } else {
            LeaseStep::Stays
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const START: Stamp = Stamp::from_micros(1_780_272_000_000_000);

    /// Steps of so many looks, a minute apart, at a lease that ends at the first of them.
    fn steps(jid: &str, looks: u64, last: impl Fn(Stamp) -> Option<Stamp>) -> Vec<LeaseStep> {
        let jid = Jid::new(jid).unwrap();
        let mut lease = AddressLease::until(START);
        let at = (0..looks).map(|look| START.plus_secs(look * LOOK_SECS));
        at.map(|now| lease.look(&jid, false, &LeaseCheck::new(right(now), true, last(now))))
            .collect()
    }

    /// A look at a clock that was always right.
    fn right(now: Stamp) -> ClockReading {
        let now_us = now.micros();
        ClockReading {
            now_us,
            settled_us: now_us - 600_000_000,
        }
    }

    fn just_before(now: Stamp) -> Option<Stamp> {
        Some(now)
    }

    #[test]
    fn an_address_has_an_hour_to_answer_and_is_asked_if_it_has_a_resource() {
        let full = steps("ann@example.org/desk", 61, just_before);
        let asked = full.iter().filter(|step| **step == LeaseStep::Asked);
        assert_eq!(asked.count(), 6);
        assert_eq!(full[0], LeaseStep::Asked);
        assert_eq!(full[60], LeaseStep::Over);
        let bare = steps("ann@example.org", 61, just_before);
        assert_eq!(bare[..60], [LeaseStep::Stays; 60]);
        assert_eq!(bare[60], LeaseStep::Over);
    }

    #[test]
    fn after_an_outage_the_hour_begins_anew() {
        let away = steps("ann@example.org", 200, |_| None);
        assert_eq!(away, [LeaseStep::Stays; 200]);
    }

    #[test]
    fn without_a_stream_nobody_is_asked_and_no_lease_ends() {
        let jid = Jid::new("ann@example.org/desk").unwrap();
        let mut lease = AddressLease::until(START);
        for look in 0..200 {
            let now = START.plus_secs(look * LOOK_SECS);
            let look = LeaseCheck::new(right(now), false, just_before(now));
            assert_eq!(lease.look(&jid, false, &look), LeaseStep::Stays);
        }
    }

    #[test]
    fn an_address_that_was_seen_is_renewed_once_a_part_of_its_lease_has_passed() {
        let jid = Jid::new("ann@example.org").unwrap();
        let mut lease = AddressLease::until(START.plus_secs(BARE_LEASE_SECS));
        let mut seen_after = |secs| {
            let now = START.plus_secs(secs);
            lease.look(
                &jid,
                true,
                &LeaseCheck::new(right(now), true, just_before(now)),
            )
        };
        assert_eq!(seen_after(3_600), LeaseStep::Stays);
        assert_eq!(seen_after(86_401), LeaseStep::Renewed);
        assert_eq!(seen_after(86_461), LeaseStep::Stays);
    }

    #[test]
    fn a_clock_that_is_a_year_ahead_ends_no_lease_until_it_was_so_for_ten_minutes() {
        const YEAR_SECS: u64 = 365 * 86_400;
        let jid = Jid::new("ann@example.org").unwrap();
        let mut lease = AddressLease::until(START.plus_secs(60));
        // Its hour is over in any way, and only the end is to come.
        let steps = |lease: &mut AddressLease, ahead_secs: u64| {
            let look = |_| {
                let clock = ClockReading {
                    now_us: START.plus_secs(ahead_secs).micros(),
                    settled_us: START.micros(),
                };
                let now = Stamp::from_micros(clock.now_us);
                lease.look(&jid, false, &LeaseCheck::new(clock, true, just_before(now)))
            };
            (0..100).map(look).collect::<Vec<_>>()
        };
        assert_eq!(steps(&mut lease, YEAR_SECS), [LeaseStep::Stays; 100]);
        assert_eq!(steps(&mut lease, 0), [LeaseStep::Stays; 100]);
        let late = right(START.plus_secs(YEAR_SECS));
        let now = Stamp::from_micros(late.now_us);
        let look = LeaseCheck::new(late, true, just_before(now));
        assert_eq!(lease.look(&jid, false, &look), LeaseStep::Over);
    }

    #[test]
    fn a_clock_that_is_a_year_behind_renews_no_lease_into_the_past() {
        let jid = Jid::new("ann@example.org").unwrap();
        let until = START.plus_secs(BARE_LEASE_SECS / 2);
        let mut lease = AddressLease::until(until);
        let behind = Stamp::from_secs(START.secs() - 365 * 86_400);
        let look = LeaseCheck::new(right(behind), true, just_before(behind));
        assert_eq!(lease.look(&jid, true, &look), LeaseStep::Stays);
        assert_eq!(lease.until, until);
    }
}
