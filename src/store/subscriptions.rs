//! Push subscriptions as a store keeps them: terms and a position; not the protocol that makes or serves them.

use super::{Answer, StoreError, SubscriptionNo};
use crate::{
    feed::{record::FeedNo, stamp::Stamp, view::View},
    secret::Secret,
};

/// Subscriptions. Their terms change by compare-and-set on a revision; their positions are kept apart, so that an
/// acknowledgement never conflicts with a renewal that is being verified.
pub trait Subscriptions: Send + Sync {
    /// Makes a subscription; [`StoreError::Subscribed`] when its callback is subscribed to the topic already.
    fn subscribe(&self, new: NewSubscription) -> Answer<'_, Subscription>;

    /// Replaces the terms of a subscription if they are still those of `sub.rev`, and its position if one is given, and
    /// tells the new revision. Else [`StoreError::Conflict`], or [`StoreError::UnknownSubscription`] when it has ended.
    fn change_subscription(&self, sub: Subscription, progress: Option<Progress>) -> Answer<'_, u64>;

    /// A subscription and its position.
    fn subscription(&self, sub: SubscriptionNo) -> Answer<'_, Option<(Subscription, Progress)>>;

    /// The subscription of this callback to this canonical topic.
    fn find_subscription<'a>(
        &'a self,
        topic: &'a str,
        callback: &'a str,
    ) -> Answer<'a, Option<(Subscription, Progress)>>;

    /// The subscriptions after this number, of one feed or of all, by number, at most so many.
    fn subscriptions(
        &self,
        feed: Option<FeedNo>,
        after: Option<SubscriptionNo>,
        max: usize,
    ) -> Answer<'_, Vec<(Subscription, Progress)>>;

    /// The number of subscriptions to a feed whose pushes are due at this time.
    fn count_active(&self, feed: FeedNo, now: Stamp) -> Answer<'_, usize>;

    /// Ends a subscription. True when there was one.
    fn end_subscription(&self, sub: SubscriptionNo) -> Answer<'_, bool>;

    /// Moves positions, each only if it still is where the acknowledgement says, and clears what failed before. Tells of
    /// each whether it moved.
    fn acknowledge(&self, acknowledged: Vec<Acknowledged>) -> Answer<'_, Vec<bool>>;

    /// Saves how deliveries stand without moving their positions; subscriptions that have ended are passed over.
    fn save_attempts(&self, attempts: Vec<(SubscriptionNo, Attempts)>) -> Answer<'_, ()>;
}

/// A subscription that is to be made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewSubscription {
    /// The view that is pushed.
    pub view: View,
    /// The stable name of the representation in which it is pushed.
    pub representation: String,
    /// The canonical URL of the topic; with `callback` the key.
    pub topic: String,
    /// The URL to push to, byte for byte (HUB-17).
    pub callback: String,
    /// The request that is to be verified.
    pub pending: Pending,
}

/// The terms of a subscription: what was asked for and granted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Subscription {
    /// Its number.
    pub no: SubscriptionNo,
    /// Rises with every change of the terms.
    pub rev: u64,
    /// The view that is pushed.
    pub view: View,
    /// The stable name of the representation in which it is pushed.
    pub representation: String,
    /// The canonical URL of the topic; with `callback` the key.
    pub topic: String,
    /// The topic as the subscriber spelt it: echoed in verifications (W-7).
    pub topic_as_sent: String,
    /// The URL to push to, byte for byte (HUB-17).
    pub callback: String,
    /// The verified terms; `None` before the first verification.
    pub active: Option<Terms>,
    /// End of the lease; only of meaning with `active`.
    pub lease_until: Stamp,
    /// The request that waits for its verification; the active terms stand until then (HUB-6).
    pub pending: Option<Pending>,
}

/// The position of a subscription, which is its whole backlog, and how its deliveries stand.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Progress {
    /// The cursor up to which pushes were acknowledged; `None` until the feed is served: then its first cursor.
    pub acked: Option<String>,
    /// The deliveries that failed since.
    pub attempts: Attempts,
}

/// Failed deliveries of a subscription since the last acknowledgement.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Attempts {
    /// Deliveries that failed in a row.
    pub failed: u32,
    /// Earliest time of the next delivery.
    pub next_try: Stamp,
    /// The last failure, for the status page.
    pub failure: Option<String>,
}

/// An acknowledged delivery.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Acknowledged {
    /// The subscription.
    pub subscription: SubscriptionNo,
    /// The position that the delivery followed on.
    pub from: String,
    /// The position after it.
    pub to: String,
}

/// What a subscriber asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
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
#[derive(Clone, Debug, PartialEq, Eq)]
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
#[derive(Clone, Debug, PartialEq, Eq)]
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
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Start {
    /// At the head when the request was accepted; `None` when the feed was not served yet.
    Head(Option<String>),
    /// Where `hub.since` said.
    Given(String),
}

/// The generations of the protocol.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Dialect {
    /// W3C WebSub, and PubSubHubbub 0.4.
    #[default]
    WebSub,
    /// PubSubHubbub 0.3: the request carried `hub.verify`.
    Legacy,
}

/// The hashes that a push can be signed with (REC 8, W-18).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
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

impl NewSubscription {
    /// The subscription as it begins.
    pub(super) fn numbered(self, no: SubscriptionNo) -> Subscription {
        let Self { view, representation, topic, callback, pending } = self;
        let topic_as_sent = pending.topic_as_sent.clone();
        let (active, lease_until) = (None, Stamp::ZERO);
        Subscription {
            no,
            rev: 1,
            view,
            representation,
            topic,
            topic_as_sent,
            callback,
            active,
            lease_until,
            pending: Some(pending),
        }
    }
}

impl Subscription {
    /// The feed that is pushed.
    pub fn feed(&self) -> FeedNo {
        self.view.feed
    }

    /// True while pushes are due at all.
    pub fn is_active(&self, now: Stamp) -> bool {
        self.active.is_some() && now < self.lease_until
    }

    /// The terms that replace the stored ones, with the next revision.
    pub(super) fn replacing(self, stored: &Self) -> Result<Self, StoreError> {
        if stored.rev == self.rev {
            Ok(Self { rev: self.rev + 1, ..self })
        } else {
            Err(StoreError::Conflict { found: stored.rev })
        }
    }
}

impl Progress {
    /// Moves the position, if it still is `from`, and forgets the failures before. True when it was.
    pub(super) fn acknowledge(&mut self, from: &str, to: String) -> bool {
        let moves = self.acked.as_deref() == Some(from);
        if moves {
            *self = Self { acked: Some(to), attempts: Attempts::default() };
        }
        moves
    }
}
