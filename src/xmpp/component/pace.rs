//! The share of the stream that one address has, and that one client has: requests a second, and
//! requests that wait or are being answered; not what is answered, nor which request is next.

use crate::registrable_domain::registrable_domain;
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
    /// Requests at most that wait or are being answered.
    under_way_max: usize,
}

/// The share of a bare address with its resources.
const OF_ADDRESS: Share = Share {
    burst: 100.0,
    per_sec: 20.0,
    under_way_max: 4,
};
/// The share of a client: of all addresses at a registered domain and its subdomains, because their
/// owner makes as many of both as he likes. Its answers under way leave some to others (see
/// [`Flow::new`]).
const OF_CLIENT: Share = Share {
    burst: 1_000.0,
    per_sec: 200.0,
    under_way_max: usize::MAX,
};
/// Answers under way that no client has alone.
const LEFT_TO_OTHERS: usize = 4;
/// Addresses, and clients, that are remembered at most; beyond that those at rest are forgotten,
/// and then all.
const REMEMBERED_MAX: usize = 10_000;

/// Bytes that an answer counts for from its beginning, before they are known.
const ANSWER_BYTES_MIN: f64 = 65_536.0;
/// Bytes of the latest answers to a client at most: with the time in which they are forgotten, 32 MiB
/// at once, and then about 2 MiB a second.
const CLIENT_BYTES_MAX: f64 = 33_554_432.0;
/// Seconds in which half of the bytes that were sent to a client are forgotten.
const HALF_FORGOTTEN_SECS: f64 = 10.0;

/// The requests of all addresses.
#[derive(Debug)]
pub(super) struct Flow {
    addresses: Paces,
    clients: Paces,
}

/// Load that a client puts on the stream, by which two are compared.
#[derive(Clone, Copy, Debug, PartialEq, PartialOrd)]
pub(super) struct Load {
    /// Requests that wait or are being answered.
    pub(super) under_way: usize,
    /// Bytes of its latest answers.
    pub(super) bytes: f64,
}

impl Flow {
    /// A flow of so many answers under way at most.
    pub(super) fn new(answers_max: usize) -> Self {
        let of_client = Share {
            under_way_max: answers_max.saturating_sub(LEFT_TO_OTHERS).max(1),
            ..OF_CLIENT
        };
        Self {
            addresses: Paces::new(OF_ADDRESS),
            clients: Paces::new(of_client),
        }
    }

    // Decides: May an address ask for something more?
    /// True when one more request of an address is answered; it counts from now on until it is
    /// [`ended`](Self::ended).
    pub(super) fn admits(&mut self, address: &BareJid, now: Instant) -> bool {
        // What an address asks beyond its own share is not on the account of its client.
        if !self.addresses.admits(address.as_str(), now) {
            return false;
        }
        let client = client_of(address);
        let is_fed = self.load(address, now).bytes >= CLIENT_BYTES_MAX;
        if !is_fed && self.clients.admits(&client, now) {
            return true;
        }
        self.addresses.ended(address.as_str());
        false
    }

    /// Notes that a request is answered now.
    pub(super) fn begun(&mut self, address: &BareJid, now: Instant) {
        self.clients
            .spend(&client_of(address), ANSWER_BYTES_MIN, now);
    }

    /// Notes that an answer of so many bytes is written, or that there is none.
    pub(super) fn ended(&mut self, address: &BareJid, bytes: usize, now: Instant) {
        self.addresses.ended(address.as_str());
        let client = client_of(address);
        self.clients.ended(&client);
        self.clients.spend(&client, bytes as f64, now);
    }

    /// The load of the client of an address.
    pub(super) fn load(&self, address: &BareJid, now: Instant) -> Load {
        let pace = self.clients.of.get(&client_of(address));
        Load {
            under_way: pace.map_or(0, |pace| pace.under_way),
            bytes: pace.map_or(0.0, |pace| pace.spent(now)),
        }
    }
}

// Decides: Which addresses of XMPP are one client?
fn client_of(address: &BareJid) -> String {
    registrable_domain(address.domain().as_str())
}

/// The pace of each address, or of each client.
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
    /// Bytes of its latest answers at a time.
    sent: (f64, Instant),
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
            self.of.retain(|_, pace| !pace.is_at_rest(share, now));
            if self.of.len() >= REMEMBERED_MAX {
                self.of.retain(|_, pace| pace.under_way > 0);
            }
        }
        let pace = self.of.entry(name.to_owned()).or_insert(Pace {
            left: share.burst,
            at: now,
            under_way: 0,
            sent: (0.0, now),
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

    fn spend(&mut self, name: &str, bytes: f64, now: Instant) {
        if let Some(pace) = self.of.get_mut(name) {
            pace.sent = (pace.spent(now) + bytes, now);
        }
    }
}

impl Pace {
    fn filled(&self, share: Share, now: Instant) -> f64 {
        let secs = now.saturating_duration_since(self.at).as_secs_f64();
        (self.left + secs * share.per_sec).min(share.burst)
    }

    /// True if nothing is lost when it is forgotten.
    fn is_at_rest(&self, share: Share, now: Instant) -> bool {
        let is_full = self.filled(share, now) >= share.burst;
        self.under_way == 0 && is_full && self.spent(now) < ANSWER_BYTES_MIN
    }

    fn spent(&self, now: Instant) -> f64 {
        let (bytes, at) = self.sent;
        let secs = now.saturating_duration_since(at).as_secs_f64();
        bytes * (-secs / HALF_FORGOTTEN_SECS).exp2()
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
            flow.ended(&one, 0, now);
            assert!(flow.admits(&one, now));
        }
        flow.ended(&one, 0, now);
        assert!(!flow.admits(&one, now));
        assert!(flow.admits(&one, now + Duration::from_millis(60)));
    }

    #[test]
    fn one_domain_has_its_share_however_many_addresses_and_subdomains_it_makes() {
        // Section 7 of the brief: flow.
        let (mut flow, now) = (Flow::new(16), Instant::now());
        let of_x = |n: usize| jid(&format!("u{n}@d{n}.s{n}.x.example"));
        for n in 0..12 {
            assert!(flow.admits(&of_x(n), now));
        }
        assert!(!flow.admits(&of_x(12), now), "four are left to others");
        assert!(flow.admits(&jid("a@y"), now));
        for n in 0..12 {
            flow.ended(&of_x(n), 0, now);
        }
        let admitted = (12..3_000).filter(|n| {
            let is_admitted = flow.admits(&of_x(*n), now);
            if is_admitted {
                flow.ended(&of_x(*n), 0, now);
            }
            is_admitted
        });
        assert_eq!(admitted.count(), OF_CLIENT.burst as usize - 12);
        assert!(flow.admits(&jid("b@y"), now));
        assert!(flow.admits(&of_x(1), now + Duration::from_millis(10)));
    }

    #[test]
    fn addresses_without_end_take_no_memory_without_end() {
        let (mut flow, now) = (Flow::new(16), Instant::now());
        for n in 0..3 * REMEMBERED_MAX {
            let address = jid(&format!("{n}@d{n}.x"));
            assert!(flow.admits(&address, now));
            flow.ended(&address, 0, now);
        }
        assert!(flow.addresses.of.len() <= REMEMBERED_MAX);
        assert!(flow.clients.of.len() <= REMEMBERED_MAX);
    }
}
