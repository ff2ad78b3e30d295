//! A push subscription as it is kept: a reader with a position; not the protocol that makes or serves it.

use super::StoreError;
use crate::{
    feed::{record::FeedNo, stamp::Stamp, view::View},
    secret::Secret,
};
use serde::{Deserialize, Serialize};
use std::fmt;

/// The number of a subscription; 0 until the store gives one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct SubscriptionNo(pub u64);

/// A subscription. Its whole backlog is one string: the cursor up to which it was acknowledged.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Subscription {
    /// Its number.
    pub no: SubscriptionNo,
    /// What is pushed.
    pub view: View,
    /// The stable name of the representation in which it is pushed.
    pub representation: String,
    /// The canonical URL of the topic; with `callback` the key.
    pub topic: String,
    /// The topic as the subscriber spelt it: echoed in verifications (W-7).
    pub topic_as_sent: String,
    /// Where to push, byte for byte (HUB-17).
    pub callback: String,
    /// What was verified; `None` before the first verification.
    pub active: Option<Terms>,
    /// When the lease ends; only of meaning with `active`.
    pub lease_until: Stamp,
    /// The request that waits for its verification; the active terms stand until then (HUB-6).
    pub pending: Option<Pending>,
    /// The cursor up to which pushes were acknowledged; `None` until the feed is served: then its first cursor.
    pub acked: Option<String>,
    /// Deliveries that failed in a row.
    pub attempts: u32,
    /// Not before this moment.
    pub next_try: Stamp,
    /// The last failure, for the status page.
    pub failure: Option<String>,
}

/// What a subscriber asked for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Terms {
    /// Signs every push.
    pub secret: Option<Secret>,
    /// Seconds of lease granted.
    pub lease_secs: u64,
    /// Which generation of the protocol the request spoke.
    pub dialect: Dialect,
    /// `hub.verify_token`, echoed if given.
    pub verify_token: Option<String>,
    /// Which hash signs.
    pub algo: Algo,
    /// No lease was asked for in the legacy dialect, where that means for ever: we ask again before it ends (D-P5).
    pub auto_refresh: bool,
}

/// A request that waits for its verification.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Pending {
    /// What it asks for.
    pub intent: Intent,
    /// The topic as this request spelt it; the active spelling stands until this one is verified.
    pub topic_as_sent: String,
    /// Tries so far.
    pub attempts: u32,
    /// Not before this moment.
    pub next_try: Stamp,
    /// Given up after this moment.
    pub give_up_at: Stamp,
    /// The position from which a new subscription starts; a renewal keeps its own unless it named one.
    pub start: Start,
}

/// What a request asks for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Intent {
    /// Subscribe or renew, on these terms.
    Subscribe(Terms),
    /// Our own question, before a lease ends that was asked for without an end: go on, on the active terms (P03-6)?
    Refresh,
    /// Unsubscribe; the token is echoed if given.
    Unsubscribe {
        /// `hub.verify_token`.
        verify_token: Option<String>,
        /// Which generation of the protocol the request spoke.
        dialect: Dialect,
    },
}

/// Where a subscription starts.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Start {
    /// At the head when the request was accepted; `None` when the feed was not served yet.
    Head(Option<String>),
    /// Where `hub.since` said.
    Given(String),
}

/// The generations of the protocol.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Dialect {
    /// W3C WebSub, and PubSubHubbub 0.4.
    #[default]
    WebSub,
    /// PubSubHubbub 0.3: the request carried `hub.verify`.
    Legacy,
}

impl SubscriptionNo {
    /// The number under which a record replaces the stored one: it must be of the same subscription, or of none yet.
    pub(super) fn replacing(self, stored: Self) -> Result<Self, StoreError> {
        if self == stored { Ok(stored) } else { self.is_new().map(|()| stored) }
    }

    /// Whether no store has given it.
    pub(super) fn is_new(self) -> Result<(), StoreError> {
        if self == Self::default() { Ok(()) } else { Err(StoreError::UnknownSub(self)) }
    }
}

impl fmt::Display for SubscriptionNo {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// The hashes that a push can be signed with (REC 8, W-18).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Algo {
    /// What PubSubHubbub 0.3 prescribes.
    Sha1,
    /// The default for WebSub.
    Sha256,
    /// SHA-384.
    Sha384,
    /// SHA-512.
    Sha512,
}

impl Subscription {
    /// Moves the acknowledged position, if it still is `from`, and forgets the failures before. Whether it was.
    pub(super) fn advance(&mut self, from: &str, to: String) -> bool {
        let moved = self.acked.as_deref() == Some(from);
        if moved {
            self.acked = Some(to);
            self.attempts = 0;
            self.next_try = Stamp::ZERO;
            self.failure = None;
        }
        moved
    }

    /// The feed that is pushed.
    pub fn feed(&self) -> FeedNo {
        self.view.feed
    }

    /// Whether pushes are due at all.
    pub fn is_active(&self, now: Stamp) -> bool {
        self.active.is_some() && now < self.lease_until
    }
}
