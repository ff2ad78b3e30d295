//! Failed attempts by client address: how many are taken before the next must wait; not what failed.

use std::{
    collections::HashMap,
    net::{IpAddr, Ipv6Addr},
};

/// Attempts that may fail at once.
const BURST: u64 = 10;
/// Seconds for each that may fail from then on.
const EACH_SECS: u64 = 10;
/// Clients that are told apart; those beyond are counted as one.
const CLIENTS_MAX: usize = 10_000;

/// Bits of an address of version 6 that tell the network of a client, who has all addresses in it.
const NET_BITS: u32 = 64;

const SEC_US: u64 = 1_000_000;

/// Failed attempts of each client.
#[derive(Debug, Default)]
pub(super) struct FailureTable {
    /// The time at which a client's attempts are forgotten, microseconds since the epoch.
    clear_us: HashMap<Option<IpAddr>, u64>,
}

impl FailureTable {
    /// Counts an attempt as failed before it is made; seconds to wait if there were too many. One that turns out well is
    /// taken back: attempts that are made at once are counted all the same.
    pub(super) fn charge(&mut self, client: Option<IpAddr>, now_us: u64) -> Result<(), u64> {
        let client = self.row(client, now_us);
        let clear = self.clear_us.get(&client).copied().unwrap_or(now_us).max(now_us);
        // A clock that was set back leaves nobody waiting longer than the table can make him wait.
        let clear = clear.min(now_us + BURST * EACH_SECS * SEC_US);
        let next = clear + EACH_SECS * SEC_US;
        let end = now_us + BURST * EACH_SECS * SEC_US;
        if next > end {
            return Err((next - end).div_ceil(SEC_US));
        }
        self.clear_us.insert(client, next);
        Ok(())
    }

    /// Takes back an attempt that was counted.
    pub(super) fn refund(&mut self, client: Option<IpAddr>, now_us: u64) {
        let client = self.row(client, now_us);
        if let Some(clear) = self.clear_us.get_mut(&client) {
            *clear = clear.saturating_sub(EACH_SECS * SEC_US);
            if *clear <= now_us {
                self.clear_us.remove(&client);
            }
        }
    }

    /// The row of a client; that of all who find no room where the table is full.
    fn row(&mut self, client: Option<IpAddr>, now_us: u64) -> Option<IpAddr> {
        let client = client.map(network);
        if self.clear_us.contains_key(&client) || self.clear_us.len() < CLIENTS_MAX {
            return client;
        }
        self.clear_us.retain(|_, clear| *clear > now_us);
        if self.clear_us.len() < CLIENTS_MAX { client } else { None }
    }
}

fn network(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(v6) => IpAddr::V6(Ipv6Addr::from_bits(v6.to_bits() >> NET_BITS << NET_BITS)),
        v4 => v4,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(text: &str) -> Option<IpAddr> {
        Some(text.parse().unwrap())
    }

    #[test]
    fn ten_may_fail_at_once_and_one_each_ten_seconds_from_then_on() {
        let mut table = FailureTable::default();
        let client = of("192.0.2.1");
        let mut now = 1_000 * SEC_US;
        for _ in 0..BURST {
            assert_eq!(table.charge(client, now), Ok(()));
        }
        assert_eq!(table.charge(client, now), Err(10));
        assert_eq!(table.charge(of("192.0.2.2"), now), Ok(()), "nobody waits for another");
        now += 4 * SEC_US;
        assert_eq!(table.charge(client, now), Err(6));
        now += 6 * SEC_US;
        assert_eq!(table.charge(client, now), Ok(()));
        assert_eq!(table.charge(client, now), Err(10));
        table.refund(client, now);
        assert_eq!(table.charge(client, now), Ok(()), "what turned out well does not count");
        now -= 900 * SEC_US;
        assert!(table.charge(client, now).is_err_and(|secs| secs <= 10), "a clock that was set back");
    }

    #[test]
    fn a_network_of_version_six_is_one_client_and_the_table_is_bounded() {
        let mut table = FailureTable::default();
        for n in 0..BURST {
            assert_eq!(table.charge(of(&format!("2001:db8::{n}")), 0), Ok(()));
        }
        assert!(table.charge(of("2001:db8::ffff"), 0).is_err());
        for n in 0..2 * CLIENTS_MAX as u32 {
            let _ = table.charge(Some(IpAddr::V4(n.into())), 0);
        }
        assert!(table.clear_us.len() <= CLIENTS_MAX + 1);
        assert_eq!(table.charge(of("198.51.100.1"), 1_000 * SEC_US), Ok(()));
        assert_eq!(table.clear_us.len(), 1, "those who may go on are forgotten");
    }
}
