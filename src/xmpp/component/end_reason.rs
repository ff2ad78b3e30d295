//! The reasons for which a subscription ends that its subscriber did not end, in the words of the log
//! and of the notice to it; not the end itself.

use super::notice::{self, Envelope};
use bytes::Bytes;

/// A reason for the end of a subscription.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum EndReason {
    /// Its server says that there is no such address.
    NoAddress,
    /// Its server says that the address is not there now.
    NotThere,
    /// Too many messages came back.
    TooManyBounces,
    /// Its lease is over, and the address does not answer.
    LeaseOver,
    /// The address may not read the feed any more.
    NotForIt,
    /// The feed is no more.
    FeedRemoved,
}

/// Writes a notice about a node.
pub(super) type Notice = fn(Envelope<'_>, &str) -> Bytes;

impl EndReason {
    /// The words for the log.
    pub(super) fn why(self) -> &'static str {
        match self {
            Self::NoAddress => "its server says that there is no such address",
            Self::NotThere => "the address is not there any more",
            Self::TooManyBounces => "too many messages to it came back",
            Self::LeaseOver => "its lease is over, and it does not answer",
            Self::NotForIt => "the address may not read it any more",
            Self::FeedRemoved => "the feed was removed",
        }
    }

    // Decides: Who is told that a subscription over XMPP has ended?
    /// The notice to the subscriber; `None` where nobody is there to read it (XMPP-55).
    pub(super) fn notice(self) -> Option<Notice> {
        match self {
            Self::NoAddress | Self::NotThere => None,
            Self::TooManyBounces | Self::LeaseOver | Self::NotForIt => Some(notice::ended),
            Self::FeedRemoved => Some(notice::deleted),
        }
    }
}
