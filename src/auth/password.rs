//! Login passwords: hashed by argon2, checked, and made up; not whose they are.

use crate::secret::Secret;
use argon2::{
    Argon2,
    password_hash::{PasswordHasher as _, PasswordVerifier as _, phc::PasswordHash},
};
use base64::{
    Engine as _,
    prelude::{BASE64_STANDARD_NO_PAD as BASE64_NO_PAD, BASE64_URL_SAFE_NO_PAD},
};
use std::fmt;

/// The shortest login password that is taken, characters.
pub const PASSWORD_CHARS_MIN: usize = 8;
/// The longest, bytes: beyond it hashing would be work for whoever sends it.
pub const PASSWORD_BYTES_MAX: usize = 1024;
/// Bytes of the salt of a hash, and of the hash itself.
const SALT_BYTES: usize = 16;
const DIGEST_BYTES: usize = 32;
/// The longest hash that is taken, bytes.
const HASH_BYTES_MAX: usize = 512;

/// The hash of a login password, as a PHC string. It is not shown, since a weak password can be
/// guessed from it.
#[derive(Clone, PartialEq, Eq)]
pub struct LoginHash(String);

impl fmt::Debug for LoginHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("***")
    }
}

impl LoginHash {
    /// Hashes a password with the parameters that OWASP recommends for argon2id. It takes tens of
    /// milliseconds and 19 MiB.
    pub fn of(password: &str) -> Self {
        let salt: [u8; SALT_BYTES] = rand::random();
        let hash = Argon2::default().hash_password_with_salt(password.as_bytes(), &salt);
        Self(
            hash.expect("a salt of 16 bytes and the usual parameters are taken")
                .to_string(),
        )
    }

    /// A hash that was made elsewhere; `None` for anything else than argon2, or one that costs more
    /// than ours.
    pub fn parse(text: &str) -> Option<Self> {
        if text.len() > HASH_BYTES_MAX {
            return None;
        }
        let hash = PasswordHash::new(text).ok()?;
        let cost = argon2::Params::try_from(&hash).ok()?;
        let usual = argon2::Params::default();
        let is_cheap = cost.m_cost() <= usual.m_cost()
            && cost.t_cost() <= usual.t_cost()
            && cost.p_cost() <= usual.p_cost();
        (hash.algorithm.as_str() == "argon2id" && hash.hash.is_some() && is_cheap)
            .then(|| Self(text.to_owned()))
    }

    /// The PHC string, for the one place that keeps it.
    pub fn reveal(&self) -> &str {
        &self.0
    }

    /// A stored hash.
    pub fn stored(text: String) -> Self {
        Self(text)
    }

    /// True when a password is the one that was hashed. It takes as long as hashing.
    pub fn is_of(&self, password: &str) -> bool {
        password.len() <= PASSWORD_BYTES_MAX
            && Argon2::default()
                .verify_password(password.as_bytes(), self.0.as_str())
                .is_ok()
    }

    /// A hash of nobody's password, which opens nothing.
    pub fn of_nobody() -> Self {
        Self::of_nobody_at(HashCost::usual())
    }

    /// A hash of nobody's password at a cost: to check a user who does not exist takes as long as
    /// one who does. It is made up, so that the first check takes no longer either.
    pub(super) fn of_nobody_at(cost: HashCost) -> Self {
        let HashCost {
            memory,
            passes,
            lanes,
        } = cost;
        let salt = BASE64_NO_PAD.encode(rand::random::<[u8; SALT_BYTES]>());
        let digest = BASE64_NO_PAD.encode(rand::random::<[u8; DIGEST_BYTES]>());
        Self(format!(
            "$argon2id$v=19$m={memory},t={passes},p={lanes}${salt}${digest}"
        ))
    }

    /// The cost of checking a password against it: that of a hash from elsewhere may be less than
    /// the usual one.
    pub(super) fn cost(&self) -> HashCost {
        let hash = PasswordHash::new(&self.0).ok();
        let params = hash.and_then(|hash| argon2::Params::try_from(&hash).ok());
        params.map_or(HashCost::usual(), |params| HashCost::of(&params))
    }
}

/// Memory (KiB), passes and lanes of a hash.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct HashCost {
    memory: u32,
    passes: u32,
    lanes: u32,
}

impl HashCost {
    fn of(params: &argon2::Params) -> Self {
        Self {
            memory: params.m_cost(),
            passes: params.t_cost(),
            lanes: params.p_cost(),
        }
    }

    /// The cost of hashes that are made here.
    pub(super) fn usual() -> Self {
        Self::of(&argon2::Params::default())
    }
}

/// A password of 128 random bits, in 22 characters that a URL and a header take as they are.
pub fn generated() -> Secret {
    Secret::new(BASE64_URL_SAFE_NO_PAD.encode(rand::random::<[u8; 16]>()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hash_is_of_its_password_alone_and_shows_nothing() {
        let hash = LoginHash::of("pässwörd");
        assert!(hash.is_of("pässwörd") && !hash.is_of("passwörd") && !hash.is_of(""));
        assert_ne!(
            hash,
            LoginHash::of("pässwörd"),
            "each has a salt of its own"
        );
        assert_eq!(format!("{hash:?}"), "***");
        assert_eq!(LoginHash::parse(hash.reveal()), Some(hash));
        assert_ne!(generated(), generated());
        assert_eq!(generated().reveal().len(), 22);
    }

    #[test]
    fn a_hash_of_nobody_is_one_at_its_cost() {
        let cheap = HashCost {
            memory: 64,
            passes: 1,
            lanes: 1,
        };
        for cost in [HashCost::usual(), cheap] {
            let nobody = LoginHash::of_nobody_at(cost);
            assert_eq!(
                (LoginHash::parse(nobody.reveal()), nobody.cost()),
                (Some(nobody.clone()), cost)
            );
            assert!(!nobody.is_of("") && !nobody.is_of("x"));
        }
        assert_eq!(LoginHash::of("password").cost(), HashCost::usual());
    }

    #[test]
    fn a_hash_from_elsewhere_is_argon2_and_costs_no_more_than_ours() {
        for bad in [
            "",
            "hunter2",
            "$5$rounds=5000$abc$def",
            "$argon2id$v=19$m=9999999,t=2,p=1$AAAAAAAAAAAAAAAAAAAAAA$AAAAAAAAAAAAAAAAAAAAAA",
            "$argon2id$v=19$m=19456,t=2,p=1$AAAAAAAAAAAAAAAAAAAAAA",
        ] {
            assert!(LoginHash::parse(bad).is_none(), "{bad}");
        }
    }
}
