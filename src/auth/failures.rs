//! Failed attempts by client address, and by name where many clients may have one address: how many
//! are taken before the next must wait; not what failed.

use crate::client_net::{client_net, is_local};
use std::{
    collections::{HashMap, hash_map::RandomState},
    hash::BuildHasher as _,
    net::IpAddr,
};

/// Attempts that may fail at once.
const BURST: u64 = 10;
/// Seconds for each that may fail from then on.
const EACH_SECS: u64 = 10;
/// Rows that are told apart; those beyond are counted as one.
const ROWS_MAX: usize = 20_000;
/// Rows of one address whose attempts are counted by name. Passwords are not hashed so fast that
/// somebody could fill them all.
const NAME_ROWS: u64 = 4096;

const SEC_US: u64 = 1_000_000;

/// An attempt to be known, as it is counted.
#[derive(Clone, Copy, Debug)]
pub(super) struct Attempt<'a> {
    /// The address that it comes from.
    pub(super) client: Option<IpAddr>,
    /// The name whose password it tries.
    pub(super) name: Option<&'a str>,
}

impl Attempt<'_> {
    /// True for an address of this machine or network: it may be that of a proxy which we were not
    /// told of, and of everybody behind it. There each name is counted by itself, so that nobody
    /// locks out the others.
    pub(super) fn is_shared(&self) -> bool {
        self.client.is_none_or(is_local)
    }
}

/// A count of failed attempts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum FailureRow {
    /// Those of a client.
    Client(Option<IpAddr>),
    /// Those for one name, or some that share a row, from an address that many may have.
    Name(Option<IpAddr>, u64),
    /// Those that find no room.
    Others,
}

/// Failed attempts of each client.
#[derive(Debug, Default)]
pub(super) struct FailureTable {
    /// The time at which the attempts of a row are forgotten, microseconds since the epoch.
    clear_us: HashMap<FailureRow, u64>,
    /// Makes rows of names, so that nobody knows which names share one.
    names: RandomState,
}

impl FailureTable {
    // Decides: Which failed attempts must wait?
    /// Counts an attempt as failed before it is made; seconds to wait if there were too many. One
    /// that turns out well is taken back: attempts that are made at once are counted all the same.
    pub(super) fn charge(&mut self, attempt: Attempt<'_>, now_us: u64) -> Result<(), u64> {
        let row = self.row(attempt, now_us);
        let end = now_us + BURST * EACH_SECS * SEC_US;
        let clear = self.clear_us.get(&row).copied().unwrap_or(now_us);
        // A clock that was set back leaves nobody waiting longer than the table can make him wait.
        let next = clear.clamp(now_us, end) + EACH_SECS * SEC_US;
        if next > end {
            return Err((next - end).div_ceil(SEC_US));
        }
        self.clear_us.insert(row, next);
        Ok(())
    }

    /// Takes back an attempt that was counted.
    pub(super) fn refund(&mut self, attempt: Attempt<'_>, now_us: u64) {
        let row = self.row(attempt, now_us);
        if let Some(clear) = self.clear_us.get_mut(&row) {
            *clear = clear.saturating_sub(EACH_SECS * SEC_US);
            if *clear <= now_us {
                self.clear_us.remove(&row);
            }
        }
    }

    /// The row of an attempt; that of all who find no room where the table is full.
    fn row(&mut self, attempt: Attempt<'_>, now_us: u64) -> FailureRow {
        let client = attempt.client.map(client_net);
        let row = match attempt.name.filter(|_| attempt.is_shared()) {
            // Limit: two names may have one row.
            Some(name) => {
                let hash = self.names.hash_one(name.trim().to_lowercase());
                FailureRow::Name(client, hash % NAME_ROWS)
            }
            None => FailureRow::Client(client),
        };
        if self.clear_us.contains_key(&row) || self.clear_us.len() < ROWS_MAX {
            return row;
        }
        self.clear_us.retain(|_, clear| *clear > now_us);
        if self.clear_us.len() < ROWS_MAX {
            row
        } else {
            FailureRow::Others
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(text: &str) -> Attempt<'static> {
        Attempt {
            client: Some(text.parse().unwrap()),
            name: Some("alice"),
        }
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
        assert_eq!(
            table.charge(of("192.0.2.2"), now),
            Ok(()),
            "nobody waits for another"
        );
        now += 4 * SEC_US;
        assert_eq!(table.charge(client, now), Err(6));
        now += 6 * SEC_US;
        assert_eq!(table.charge(client, now), Ok(()));
        assert_eq!(table.charge(client, now), Err(10));
        table.refund(client, now);
        assert_eq!(
            table.charge(client, now),
            Ok(()),
            "what turned out well does not count"
        );
        now -= 900 * SEC_US;
        assert!(
            table.charge(client, now).is_err_and(|secs| secs <= 10),
            "a clock that was set back"
        );
    }

    #[test]
    fn a_network_of_version_six_is_one_client_and_the_table_is_bounded() {
        let mut table = FailureTable::default();
        for n in 0..BURST {
            assert_eq!(table.charge(of(&format!("2001:db8::{n}")), 0), Ok(()));
        }
        assert!(table.charge(of("2001:db8::ffff"), 0).is_err());
        for n in 0..ROWS_MAX as u32 + 1_000 {
            let _ = table.charge(
                Attempt {
                    client: Some(IpAddr::V4(n.into())),
                    name: None,
                },
                0,
            );
        }
        assert!(table.clear_us.len() <= ROWS_MAX + 1);
        assert_eq!(table.charge(of("198.51.100.1"), 1_000 * SEC_US), Ok(()));
        assert_eq!(table.clear_us.len(), 1, "those who may go on are forgotten");
    }

    fn named(client: Option<IpAddr>, name: &str) -> Attempt<'_> {
        Attempt {
            client,
            name: Some(name),
        }
    }

    #[test]
    fn behind_an_address_that_many_may_have_each_name_is_counted_by_itself() {
        for shared in [
            "127.0.0.1",
            "::1",
            "::ffff:127.0.0.1",
            "10.1.2.3",
            "192.168.0.1",
            "172.16.0.1",
            "fd00::1",
        ] {
            let mut table = FailureTable::default();
            let client = Some(shared.parse().unwrap());
            for _ in 0..BURST {
                assert_eq!(table.charge(named(client, "alice"), 0), Ok(()), "{shared}");
            }
            for name in ["alice", "ALICE", " Alice "] {
                assert_eq!(
                    table.charge(named(client, name), 0),
                    Err(10),
                    "{shared} {name}"
                );
            }
            // One in 4,096 shares the row.
            let waiting = (0..100).filter(|n| {
                table
                    .charge(named(client, &format!("user-{n}")), 0)
                    .is_err()
            });
            assert!(waiting.count() <= 3, "{shared}: nobody else waits");
            assert_eq!(table.charge(Attempt { client, name: None }, 0), Ok(()));
            // A flood of names is bounded, and at the pace of hashes it fills no row of another.
            for n in 0..4000 {
                let _ = table.charge(named(client, &format!("made-up-{n}")), 0);
            }
            assert!(table.clear_us.len() <= NAME_ROWS as usize + 1);
            let waiting = (0..100).filter(|n| {
                table
                    .charge(named(client, &format!("other-{n}")), 0)
                    .is_err()
            });
            assert!(waiting.count() <= 3, "{shared}");
        }
        let mut table = FailureTable::default();
        for _ in 0..BURST {
            assert_eq!(table.charge(of("198.51.100.1"), 0), Ok(()));
        }
        let other = Attempt {
            name: Some("bob"),
            ..of("198.51.100.1")
        };
        assert_eq!(
            table.charge(other, 0),
            Err(10),
            "a client of the internet has one count"
        );
    }
}
