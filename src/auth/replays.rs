//! Nonces that were used within the time in which they could be used again (LEGACY U-8).

use super::{user::UserNo, wsse::ProvenDigest};
use sha2::{Digest as _, Sha256};
use std::collections::{HashMap, VecDeque};

/// Seconds for which a nonce is remembered: twice the difference that clocks may have.
const REMEMBER_SECS: u64 = 2 * super::wsse::CLOCK_SECS;
/// Requests remembered at most.
const REQUESTS_MAX: usize = 100_000;
/// Requests of one user remembered at most, so that none keeps the others out.
const USER_REQUESTS_MAX: usize = 10_000;

/// The requests of the last ten minutes.
#[derive(Debug)]
pub(super) struct ReplayCache {
    /// Hashes of the nonces and the digests, each with its user.
    seen: HashMap<[u8; 32], UserNo>,
    /// The same in the order in which they came.
    order: VecDeque<UsedNonce>,
    by_user: HashMap<UserNo, usize>,
    requests_max: usize,
}

#[derive(Debug)]
struct UsedNonce {
    until_us: u64,
    user: UserNo,
    hashes: [[u8; 32]; 2],
}

/// The standing of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Freshness {
    /// Its nonce was not used before, and is remembered now.
    Fresh,
    /// Its nonce was used before.
    Repeated,
    /// There is no room to remember it.
    Full,
}

impl Default for ReplayCache {
    fn default() -> Self {
        Self {
            seen: HashMap::new(),
            order: VecDeque::new(),
            by_user: HashMap::new(),
            requests_max: REQUESTS_MAX,
        }
    }
}

impl ReplayCache {
    /// Remembers a request of a user, unless its nonce was used before. The digest is remembered,
    /// too: bytes that go from the nonce to the time leave it as it is.
    pub(super) fn note(&mut self, user: UserNo, proven: &ProvenDigest, now_us: u64) -> Freshness {
        self.forget_old(now_us);
        let hash = |kind: u8, bytes: &[u8]| -> [u8; 32] {
            Sha256::new()
                .chain_update([kind])
                .chain_update(user.0.to_be_bytes())
                .chain_update(bytes)
                .finalize()
                .into()
        };
        let hashes = [hash(0, &proven.nonce), hash(1, &proven.digest)];
        if hashes.iter().any(|hash| self.seen.contains_key(hash)) {
            return Freshness::Repeated;
        }
        let of_user = self.by_user.get(&user).copied().unwrap_or_default();
        if self.order.len() >= self.requests_max || of_user >= USER_REQUESTS_MAX {
            return Freshness::Full;
        }
        self.seen.extend(hashes.map(|hash| (hash, user)));
        *self.by_user.entry(user).or_default() += 1;
        let until_us = now_us.saturating_add(REMEMBER_SECS * 1_000_000);
        self.order.push_back(UsedNonce {
            until_us,
            user,
            hashes,
        });
        Freshness::Fresh
    }

    fn forget_old(&mut self, now_us: u64) {
        while self
            .order
            .front()
            .is_some_and(|oldest| oldest.until_us <= now_us)
            && let Some(UsedNonce { user, hashes, .. }) = self.order.pop_front()
        {
            for hash in hashes {
                self.seen.remove(&hash);
            }
            if let Some(count) = self.by_user.get_mut(&user) {
                *count -= 1;
                if *count == 0 {
                    self.by_user.remove(&user);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SEC: u64 = 1_000_000;

    fn proven(nonce: &str, digest: u8) -> ProvenDigest {
        ProvenDigest {
            nonce: nonce.as_bytes().to_vec(),
            digest: [digest; 20],
        }
    }

    #[test]
    fn a_nonce_is_used_once_in_ten_minutes_by_each_user() {
        let mut cache = ReplayCache::default();
        assert_eq!(cache.note(UserNo(1), &proven("a", 1), 0), Freshness::Fresh);
        assert_eq!(
            cache.note(UserNo(1), &proven("a", 2), SEC),
            Freshness::Repeated
        );
        assert_eq!(
            cache.note(UserNo(1), &proven("b", 1), SEC),
            Freshness::Repeated,
            "the same digest"
        );
        assert_eq!(
            cache.note(UserNo(2), &proven("a", 1), SEC),
            Freshness::Fresh
        );
        assert_eq!(
            cache.note(UserNo(1), &proven("a", 1), 599 * SEC),
            Freshness::Repeated
        );
        assert_eq!(
            cache.note(UserNo(1), &proven("a", 1), 600 * SEC),
            Freshness::Fresh
        );
    }

    #[test]
    fn what_is_remembered_is_bounded_and_no_user_keeps_others_out() {
        let mut cache = ReplayCache {
            requests_max: USER_REQUESTS_MAX + 1,
            ..ReplayCache::default()
        };
        for n in 0..USER_REQUESTS_MAX {
            let nonce = ProvenDigest {
                nonce: n.to_be_bytes().to_vec(),
                digest: digest_of(n),
            };
            assert_eq!(cache.note(UserNo(1), &nonce, 0), Freshness::Fresh);
        }
        assert_eq!(cache.note(UserNo(1), &proven("x", 0), 0), Freshness::Full);
        assert_eq!(cache.note(UserNo(2), &proven("x", 0), 0), Freshness::Fresh);
        assert_eq!(cache.note(UserNo(3), &proven("x", 0), 0), Freshness::Full);
        assert_eq!(
            cache.note(UserNo(1), &proven("x", 0), 600 * SEC),
            Freshness::Fresh
        );
        assert_eq!(
            (cache.seen.len(), cache.order.len(), cache.by_user.len()),
            (2, 1, 1)
        );
    }

    fn digest_of(n: usize) -> [u8; 20] {
        let mut digest = [7; 20];
        digest[..8].copy_from_slice(&(n as u64).to_be_bytes());
        digest
    }
}
