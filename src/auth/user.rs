//! Users and tokens, as they are kept; not how a password or a token is checked.

use super::password::LoginHash;
use crate::secret::Secret;
use std::fmt;

/// Users at most.
pub const USERS_MAX: usize = 10_000;
/// Tokens of one user at most.
pub const USER_TOKENS_MAX: usize = 100;
/// The longest name of a user, characters.
const NAME_CHARS_MAX: usize = 64;

/// The names that a user may have, for people.
pub const NAME_WANTED: &str =
    "a user's name has 1 to 64 letters, digits and . _ @ + -, the first a letter or a digit";

/// The number of a user, never given twice.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct UserNo(pub u64);

/// The number of a token, never given twice.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct TokenNo(pub u64);

impl fmt::Display for TokenNo {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// A user that is to be kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewUser {
    /// The name.
    pub name: String,
    /// The hash of the login password, for Basic.
    pub login: LoginHash,
    /// The password for WSSE, whose digests can only be checked with the password itself (U-9). It
    /// opens nothing else.
    pub feed_password: Secret,
    /// True while digests of the hexadecimal SHA-1 are taken from this user, too (U-5).
    pub hex_digest: bool,
    /// Time of its making, microseconds since the epoch.
    pub created_us: u64,
    /// The bare address of XMPP by which the user is known there; no two users have the same.
    pub jid: Option<String>,
}

impl NewUser {
    /// Its passwords as they are kept: the hash of the one for Basic, and the one for WSSE.
    pub fn passwords(&self) -> [&str; 2] {
        [self.login.reveal(), self.feed_password.reveal()]
    }
}

/// A user.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct User {
    /// The number.
    pub no: UserNo,
    /// All else.
    pub kept: NewUser,
}

/// A password of a user, as it is kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Password {
    /// The hash of the login password.
    Login(LoginHash),
    /// The feed password.
    Feed(Secret),
}

impl User {
    /// True while a password is in force.
    pub(super) fn has(&self, password: &Password) -> bool {
        match password {
            Password::Login(login) => self.kept.login == *login,
            Password::Feed(feed_password) => self.kept.feed_password == *feed_password,
        }
    }
}

/// The place in which a token is sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TokenUse {
    /// In `Authorization: Bearer` (RFC 6750).
    Bearer,
    /// In the path of a URL (U-1).
    Url,
}

impl TokenUse {
    /// The use in one word.
    pub fn name(self) -> &'static str {
        match self {
            Self::Bearer => "bearer",
            Self::Url => "url",
        }
    }
}

/// A token that is to be kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewAccessToken {
    /// The user whom it makes known.
    pub user: UserNo,
    /// The place in which it is sent.
    pub usage: TokenUse,
    /// SHA-256 of the token itself, which is not kept.
    pub hash: [u8; 32],
    /// Time of its making, microseconds since the epoch.
    pub created_us: u64,
}

/// A token.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AccessToken {
    /// The number, by which the operator knows it.
    pub no: TokenNo,
    /// All else.
    pub kept: NewAccessToken,
}

/// True for the name that a user may have. It holds no colon (RFC 7617) and nothing that a header
/// or a path would change.
pub fn is_user_name(name: &str) -> bool {
    let is_plain = |b: u8| b.is_ascii_alphanumeric() || b"._@+-".contains(&b);
    name.len() <= NAME_CHARS_MAX
        && name
            .bytes()
            .next()
            .is_some_and(|first| first.is_ascii_alphanumeric())
        && name.bytes().all(is_plain)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_plain() {
        for good in ["alice", "Bob.2", "a@example.org", "x+y_z-1"] {
            assert!(is_user_name(good), "{good}");
        }
        for bad in ["", "a:b", "a b", "-a", "é", "a/b", "a\n", &"a".repeat(65)] {
            assert!(!is_user_name(bad), "{bad}");
        }
    }
}
