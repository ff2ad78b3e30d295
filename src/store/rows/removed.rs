//! Names of what was removed for good, by which an engine remembers it where an older copy may come
//! back; not how it does so.

use crate::{
    auth::{TokenNo, UserNo},
    feed::{item::ItemId, record::FeedNo},
};
use sha2::{Digest as _, Sha256};
use std::fmt;

/// Bytes of a digest of a password that was replaced.
const DIGEST_BYTES: usize = 16;

/// Something that was removed for good. Numbers are never given twice, also not after a restore.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::store) enum Removed {
    Feed(FeedNo),
    Item(FeedNo, ItemId),
    User(UserNo),
    Token(TokenNo),
    /// A password of a user that was replaced by another.
    Password(UserNo, PasswordDigest),
}

/// Digest of a password as a store keeps it: of the hash of a login password, or of a feed
/// password, which is random.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::store) struct PasswordDigest(pub(in crate::store) [u8; DIGEST_BYTES]);

impl PasswordDigest {
    pub(in crate::store) fn of(kept: &str) -> Self {
        let digest: [u8; 32] = Sha256::digest(kept).into();
        let mut short = [0; DIGEST_BYTES];
        short.copy_from_slice(&digest[..DIGEST_BYTES]);
        Self(short)
    }
}

impl fmt::Display for Removed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Feed(feed) => write!(f, "feed {feed}"),
            Self::Item(feed, item) => write!(f, "item {feed} {item}"),
            Self::User(user) => write!(f, "user {}", user.0),
            Self::Token(token) => write!(f, "token {}", token.0),
            Self::Password(user, PasswordDigest(digest)) => {
                write!(
                    f,
                    "password {} {:032x}",
                    user.0,
                    u128::from_be_bytes(*digest)
                )
            }
        }
    }
}
