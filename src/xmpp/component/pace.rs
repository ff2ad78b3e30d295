//! The share of the stream that one address has, and that one domain has: requests a second, and
//! answers under way at once; not what is answered.

use jid::BareJid;
use std::collections::HashMap;
use tokio::time::Instant;

/// A share of the stream.
#[derive(Clone, Copy, Debug)]
struct Share {
    /// Requests at once, without waiting.
    burst: f64,
    /// Requests a second after that.
    per_sec: f64,
    /// Answers under way at most.
    under_way_max: usize,
}

/// The share of a bare address with its resources.
const OF_ADDRESS: Share = Share {
    burst: 100.0,
    per_sec: 20.0,
    under_way_max: 4,
};
/// The share of all addresses at a domain: a domain makes as many addresses as it likes. Its
/// answers under way leave some to others (see [`Flow::new`]).
const OF_DOMAIN: Share = Share {
    burst: 1_000.0,
    per_sec: 200.0,
    under_way_max: usize::MAX,
};
/// Answers under way that no domain has alone.
const LEFT_TO_OTHERS: usize = 4;
/// Addresses, and domains, that are remembered at most; beyond that those at rest are forgotten,
/// and then all.
const REMEMBERED_MAX: usize = 10_000;

/// The requests of all addresses.
#[derive(Debug)]
pub(super) struct Flow {
    addresses: Paces,
    domains: Paces,
}

impl Flow {
    /// A flow of so many answers under way at most.
    pub(super) fn new(answers_max: usize) -> Self {
        let of_domain = Share {
            under_way_max: answers_max.saturating_sub(LEFT_TO_OTHERS).max(1),
            ..OF_DOMAIN
        };
        Self {
            addresses: Paces::new(OF_ADDRESS),
            domains: Paces::new(of_domain),
        }
    }

    // Decides: May an address ask for something more?
    /// True when one more request of an address is answered; it counts from now on until it is
    /// [`ended`](Self::ended).
    pub(super) fn admits(&mut self, address: &BareJid, now: Instant) -> bool {
        // What an address asks beyond its own share is not on the account of its domain.
        if !self.addresses.admits(address.as_str(), now) {
            return false;
        }
        if self.domains.admits(address.domain().as_str(), now) {
            return true;
        }
        self.addresses.ended(address.as_str());
        false
    }

    /// Notes that an answer is written.
    pub(super) fn ended(&mut self, address: &BareJid) {
        self.addresses.ended(address.as_str());
        self.domains.ended(address.domain().as_str());
    }
}

/// The pace of each address, or of each domain.
#[derive(Debug)]
struct Paces {
    share: Share,
    of: HashMap<String, Pace>,
}

#[derive(Debug)]
struct Pace {
    left: f64,
    at: Instant,
    under_way: usize,
}

impl Paces {
    fn new(share: Share) -> Self {
        Self {
            share,
            of: HashMap::new(),
        }
    }

    fn admits(&mut self, name: &str, now: Instant) -> bool {
        let share = self.share;
        if self.of.len() >= REMEMBERED_MAX && !self.of.contains_key(name) {
            self.of
                .retain(|_, pace| pace.under_way > 0 || pace.filled(share, now) < share.burst);
            if self.of.len() >= REMEMBERED_MAX {
                self.of.retain(|_, pace| pace.under_way > 0);
            }
        }
        let pace = self.of.entry(name.to_owned()).or_insert(Pace {
            left: share.burst,
            at: now,
            under_way: 0,
        });
        (pace.left, pace.at) = (pace.filled(share, now), now);
        if pace.left < 1.0 || pace.under_way >= share.under_way_max {
            return false;
        }
        pace.left -= 1.0;
        pace.under_way += 1;
        true
    }

    fn ended(&mut self, name: &str) {
        if let Some(pace) = self.of.get_mut(name) {
            pace.under_way = pace.under_way.saturating_sub(1);
        }
    }
}

impl Pace {
    fn filled(&self, share: Share, now: Instant) -> f64 {
        let secs = now.saturating_duration_since(self.at).as_secs_f64();
        (self.left + secs * share.per_sec).min(share.burst)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    fn jid(text: &str) -> BareJid {
        BareJid::new(text).unwrap()
    }

    #[test]
    fn one_address_has_its_share_and_keeps_nobody_waiting() {
        let (mut flow, now) = (Flow::new(16), Instant::now());
        let (one, other) = (jid("a@x"), jid("b@x"));
        for _ in 0..OF_ADDRESS.under_way_max {
            assert!(flow.admits(&one, now));
        }
        assert!(!flow.admits(&one, now) && flow.admits(&other, now));
        for _ in OF_ADDRESS.under_way_max..OF_ADDRESS.burst as usize {
            flow.ended(&one);
            assert!(flow.admits(&one, now));
        }
        flow.ended(&one);
        assert!(!flow.admits(&one, now));
        assert!(flow.admits(&one, now + Duration::from_millis(60)));
    }

    #[test]
    fn one_domain_has_its_share_however_many_addresses_it_makes() {
        // Section 7 of the brief: flow.
        let (mut flow, now) = (Flow::new(16), Instant::now());
        let of_x = |n: usize| jid(&format!("u{n}@x"));
        for n in 0..12 {
            assert!(flow.admits(&of_x(n), now));
        }
        assert!(!flow.admits(&of_x(12), now), "four are left to others");
        assert!(flow.admits(&jid("a@y"), now));
        for n in 0..12 {
            flow.ended(&of_x(n));
        }
        let admitted = (12..3_000).filter(|n| {
            let is_admitted = flow.admits(&of_x(*n), now);
            if is_admitted {
                flow.ended(&of_x(*n));
            }
            is_admitted
        });
        assert_eq!(admitted.count(), OF_DOMAIN.burst as usize - 12);
        assert!(flow.admits(&jid("b@y"), now));
        assert!(flow.admits(&of_x(1), now + Duration::from_millis(10)));
    }

    #[test]
    fn addresses_without_end_take_no_memory_without_end() {
        let (mut flow, now) = (Flow::new(16), Instant::now());
        for n in 0..3 * REMEMBERED_MAX {
            let address = jid(&format!("{n}@d{n}.x"));
            assert!(flow.admits(&address, now));
            flow.ended(&address);
        }
        assert!(flow.addresses.of.len() <= REMEMBERED_MAX);
        assert!(flow.domains.of.len() <= REMEMBERED_MAX);
    }
}
