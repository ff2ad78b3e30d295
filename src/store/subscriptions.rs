//! Subscriptions as a store keeps them: a view, a position, a lease and a target; not the protocol
//! that makes or serves them.

use super::{StoreError, StoreFuture, SubscriptionNo};
use crate::{
    auth::PrincipalId,
    feed::{
        record::FeedNo,
        stamp::Stamp,
        view::{Deletions, View},
    },
    secret::Secret,
};

/// Subscriptions. Their terms change by compare-and-set on a revision; their positions are kept
/// apart, so that an acknowledgement never conflicts with a renewal that is being verified.
pub trait Subscriptions: Send + Sync {
    /// Makes a subscription; [`StoreError::Subscribed`] when its target is subscribed to the topic
    /// already.
    fn subscribe(&self, new: NewSubscription) -> StoreFuture<'_, Subscription>;

    /// Replaces a subscription if it is still that of `sub.rev`, and its position if one is given,
    /// and tells the new revision. Else [`StoreError::Conflict`], or
    /// [`StoreError::UnknownSubscription`] when it has ended, which it also has when its feed was
    /// forgotten.
    fn change_subscription(
        &self,
        sub: Subscription,
        progress: Option<Progress>,
    ) -> StoreFuture<'_, u64>;

    /// A subscription and its position.
    fn subscription(
        &self,
        sub: SubscriptionNo,
    ) -> StoreFuture<'_, Option<(Subscription, Progress)>>;

    /// The subscriptions of these numbers and their positions, in the same order; `None` for one
    /// that there is not, and for one that is damaged, which is told.
    fn subscriptions_of(
        &self,
        subs: Vec<SubscriptionNo>,
    ) -> StoreFuture<'_, Vec<Option<(Subscription, Progress)>>>;

    /// The subscription of the target with this address to this canonical topic.
    fn find_subscription<'a>(
        &'a self,
        topic: &'a str,
        address: &'a str,
    ) -> StoreFuture<'a, Option<(Subscription, Progress)>>;

    /// The subscriptions after this number, of one feed or of all, by number, at most so many.
    fn subscriptions(
        &self,
        feed: Option<FeedNo>,
        after: Option<SubscriptionNo>,
        max: usize,
    ) -> StoreFuture<'_, Vec<(Subscription, Progress)>>;

    /// The number of readers behind those subscriptions to a feed whose deliveries are due at this
    /// time: of each as many as its subscriber said last, and at least one.
    fn count_active(&self, feed: FeedNo, now: Stamp) -> StoreFuture<'_, usize>;

    /// Ends a subscription. True when there was one.
    fn end_subscription(&self, sub: SubscriptionNo) -> StoreFuture<'_, bool>;

    /// Moves positions, each only if it still is where the acknowledgement says, and clears what
    /// failed before. Tells of each whether it moved.
    fn acknowledge(&self, acknowledged: Vec<Acknowledged>) -> StoreFuture<'_, Vec<bool>>;

    /// Saves the state of deliveries without moving their positions; subscriptions that have ended
    /// are passed over.
    fn save_attempts(&self, attempts: Vec<(SubscriptionNo, Attempts)>) -> StoreFuture<'_, ()>;
}

/// A subscription that is to be made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewSubscription {
    /// The view that is delivered.
    pub view: View,
    /// The stable name of the representation in which it is delivered.
    pub representation: String,
    /// The canonical URL of the topic; with the address of `target` the key.
    pub topic: String,
    /// The target that was asked for.
    pub target: Target,
    /// The request that is to be verified.
    pub pending: Pending,
}

/// A subscription: a view that is delivered to a target while a lease lasts. Its position is kept
/// beside it, as [`Progress`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Subscription {
    /// Its number.
    pub no: SubscriptionNo,
    /// Rises with every change but that of the position.
    pub rev: u64,
    /// The view that is delivered.
    pub view: View,
    /// The stable name of the representation in which it is delivered.
    pub representation: String,
    /// The canonical URL of the topic; with the address of `target` the key.
    pub topic: String,
    /// The target; before the first verification the one that was asked for.
    pub target: Target,
    /// The lease; `None` before the first verification.
    pub lease: Option<Lease>,
    /// The request that waits for its verification; target and lease stand until then (HUB-6).
    pub pending: Option<Pending>,
    /// The principal who subscribed; `None` for nobody known. Deliveries end when it may not read
    /// the feed any more (SF-131).
    pub principal: Option<PrincipalId>,
}

/// A receiver of deliveries, by the protocol in which it receives them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Target {
    /// A callback of WebSub, or of one of its ancestors.
    Callback(CallbackTarget),
    /// A listener of rssCloud.
    Cloud(CloudTarget),
    /// An address of XMPP.
    Xmpp(XmppTarget),
    /// A webhook of the configuration.
    Webhook(WebhookTarget),
}

/// A webhook of the configuration: it gets each change as a message of its own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WebhookTarget {
    /// Its URL, and the mark that tells it from a callback.
    pub address: String,
    /// Signs every message.
    pub secret: Secret,
}

/// The end of addresses of webhooks: a fragment, which no callback has.
const WEBHOOK_MARK: &str = "#webhook";

impl WebhookTarget {
    /// A webhook at a URL without a fragment.
    pub fn new(url: &str, secret: Secret) -> Self {
        Self {
            address: format!("{url}{WEBHOOK_MARK}"),
            secret,
        }
    }

    /// The URL to which messages go.
    pub fn url(&self) -> &str {
        let url = self.address.strip_suffix(WEBHOOK_MARK);
        url.unwrap_or(&self.address)
    }
}

/// An address of XMPP that is pushed items of a node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct XmppTarget {
    /// The address, behind the mark that tells it from a URL.
    pub address: String,
    /// The node as the subscriber spelt it: told in every push.
    pub node: String,
}

/// The beginning of addresses of XMPP, as in their URIs (RFC 5122).
const XMPP_MARK: &str = "xmpp:";

impl XmppTarget {
    /// An address in its normal form, bare or full.
    pub fn new(jid: &str, node: &str) -> Self {
        Self {
            address: format!("{XMPP_MARK}{jid}"),
            node: node.to_owned(),
        }
    }

    /// The address without its mark.
    pub fn jid(&self) -> &str {
        self.address
            .strip_prefix(XMPP_MARK)
            .unwrap_or(&self.address)
    }

    /// The domain of the address.
    pub fn domain(&self) -> &str {
        let jid = self.jid();
        let bare = jid.split_once('/').map_or(jid, |(bare, _)| bare);
        bare.split_once('@').map_or(bare, |(_, domain)| domain)
    }
}

/// A listener of rssCloud: it is told that a feed has changed, and reads it itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CloudTarget {
    /// Its URL, and the mark that tells it from a callback.
    pub address: String,
    /// The feed as the listener spelt it: told in every notification.
    pub feed_url: String,
    /// True where it is asked to echo a challenge; else a notification tries it.
    pub is_challenged: bool,
    /// The method that is called there by XML-RPC; `None` for a form that is posted.
    pub procedure: Option<String>,
}

/// The end of addresses of rssCloud: a fragment, which no callback has.
const CLOUD_MARK: &str = "#rssCloud";

impl CloudTarget {
    /// A listener at a URL without a fragment.
    pub fn new(url: &str, feed_url: &str, is_challenged: bool) -> Self {
        Self {
            address: format!("{url}{CLOUD_MARK}"),
            feed_url: feed_url.to_owned(),
            is_challenged,
            procedure: None,
        }
    }

    /// The same listener, called by XML-RPC where a method is named.
    #[must_use]
    pub fn calling(self, procedure: Option<String>) -> Self {
        Self { procedure, ..self }
    }

    /// The URL to which notifications go.
    pub fn url(&self) -> &str {
        self.address
            .strip_suffix(CLOUD_MARK)
            .unwrap_or(&self.address)
    }
}

/// A URL that takes pushes, and what its subscriber asked of them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CallbackTarget {
    /// The URL to push to, byte for byte (HUB-17).
    pub url: String,
    /// The topic as the subscriber spelt it: echoed in verifications (W-7).
    pub topic_as_sent: String,
    /// The generation of the protocol that the request spoke.
    pub dialect: Dialect,
    /// Signs every push.
    pub secret: Option<Secret>,
    /// The hash that signs.
    pub algo: Algo,
    /// `hub.verify_token`, echoed if given.
    pub verify_token: Option<String>,
    /// The wishes for pushes.
    pub wishes: PushWishes,
}

/// The wishes of a subscriber for its pushes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PushWishes {
    /// The wish for items that are gone; `None` for what is usual with the representation.
    pub deletions: Option<Deletions>,
    /// True for a subscriber that is told by `X-HTTP-Method-Override` what to do with a push, and
    /// not by the method of the request.
    pub overrides_method: bool,
    /// The directives that it asked for; none where it asked for overrides of all.
    pub methods: Directives,
    /// Those of them that its callback named when it confirmed: no other is sent.
    pub named: Directives,
    /// Seconds of silence after which it is pushed a page without items; `None` for never.
    pub heartbeat_secs: Option<u64>,
    /// Seconds before the end of its lease at which it is warned; `None` for never.
    pub warning_secs: Option<u64>,
}

/// Treatment of a push that its hub asks of a subscriber.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Directive {
    /// Keep these bytes in the place of what there was.
    Put,
    /// Merge these changes.
    Patch,
    /// Remove it.
    Delete,
}

impl Directive {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Put, Self::Patch, Self::Delete];

    /// The directive with this name in HTTP.
    pub fn named(method: &str) -> Option<Self> {
        Self::ALL
            .into_iter()
            .find(|directive| directive.method() == method)
    }

    /// Its name in HTTP.
    pub const fn method(self) -> &'static str {
        match self {
            Self::Put => "PUT",
            Self::Patch => "PATCH",
            Self::Delete => "DELETE",
        }
    }
}

/// A set of directives, as bits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Directives(pub u8);

impl Directives {
    /// True for one of them.
    pub const fn has(self, directive: Directive) -> bool {
        self.0 & (1 << directive as u8) != 0
    }

    /// All directives.
    pub const ALL: Self = Self(0b111);

    /// True where there is none.
    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// Those that are in one of two sets.
    #[must_use]
    pub const fn or(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// The same with another one.
    #[must_use]
    pub const fn with(self, directive: Directive) -> Self {
        Self(self.0 | 1 << directive as u8)
    }

    /// Those that are in both sets.
    #[must_use]
    pub const fn and(self, other: Self) -> Self {
        Self(self.0 & other.0)
    }

    /// The names of all, with commas.
    pub fn names(self) -> String {
        let names: Vec<&str> = Directive::ALL
            .into_iter()
            .filter(|directive| self.has(*directive))
            .map(Directive::method)
            .collect();
        names.join(",")
    }
}

impl FromIterator<Directive> for Directives {
    fn from_iter<I: IntoIterator<Item = Directive>>(directives: I) -> Self {
        let bits = directives.into_iter().map(|directive| 1 << directive as u8);
        Self(bits.fold(0, |all, bit: u8| all | bit))
    }
}

/// The way in which a directive is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Told {
    /// As the method of the request.
    AsMethod,
    /// As an override of POST.
    AsOverride,
    /// Not at all.
    Never,
}

impl PushWishes {
    // Decides: Which method does a push have?
    /// The way in which a subscriber is told a directive. A callback that merely echoed the
    /// challenge named no method, and is sent none, nor an override.
    pub const fn told(&self, directive: Directive) -> Told {
        if !self.wanted().and(self.named).has(directive) {
            Told::Never
        } else if self.overrides_method {
            Told::AsOverride
        } else {
            Told::AsMethod
        }
    }

    /// The directives that it asked for, in either way.
    pub const fn wanted(&self) -> Directives {
        if self.overrides_method && self.methods.is_empty() {
            Directives::ALL
        } else {
            self.methods
        }
    }

    /// The methods that the question to the callback names, as its answer names them.
    pub fn asked_methods(&self) -> Option<String> {
        let word = if self.overrides_method {
            "override,"
        } else {
            ""
        };
        let names = self.wanted().names();
        (!names.is_empty()).then(|| format!("{word}{names}"))
    }
}

/// The methods that a callback named in its answer to a question.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct NamedMethods {
    /// The directives.
    pub directives: Directives,
    /// The way in which it wants them, if it said so.
    pub overrides_method: Option<bool>,
}

/// A lease as it was granted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lease {
    /// Its end.
    pub until: Stamp,
    /// Its length, which a renewal without a new request has again.
    pub terms: LeaseTerms,
}

/// The length of a lease, and what happens before its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LeaseTerms {
    /// Seconds.
    pub secs: u64,
    /// True when no lease was asked for in the legacy dialect, where that means for ever: we ask
    /// again before it ends (D-P5).
    pub auto_refresh: bool,
}

/// The position of a subscription, which is its whole backlog, and the state of its deliveries.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Progress {
    /// The last cursor that was pushed and acknowledged, which the next push names as previous;
    /// `None` until the feed is served: then its first cursor.
    pub acked: Option<String>,
    /// The deliveries that failed since.
    pub attempts: Attempts,
    /// Readers whom the subscriber serves, as its last answer to a delivery said (W-19).
    pub on_behalf_of: Option<u32>,
    /// The position behind items that were hidden from the subscriber, where that is not `acked`.
    pub scanned: Option<String>,
    /// Time of the last change of the channel (title, picture) that the subscriber knows of; `None`
    /// where nobody noted it.
    pub channel_t: Option<Stamp>,
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
    /// Time of the first failure in a row; `None` in what an older everfeed stored.
    pub since: Option<Stamp>,
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
    /// Readers whom the subscriber serves, if its answer said so.
    pub on_behalf_of: Option<u32>,
    /// The position behind hidden items, where that is not `to`.
    pub scanned: Option<String>,
    /// Time of the last change of the channel that was told with it or before.
    pub channel_t: Option<Stamp>,
}

/// A request that waits for its verification.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pending {
    /// The change that it asks for.
    pub intent: Intent,
    /// Tries so far.
    pub attempts: u32,
    /// Not before this moment.
    pub next_try: Stamp,
    /// Given up after this moment.
    pub give_up_at: Stamp,
    /// The position from which a new subscription starts; a renewal keeps its own unless it named
    /// one.
    pub start: Start,
    /// The principal who made the request.
    pub principal: Option<PrincipalId>,
    /// The position behind items that are hidden from the subscriber, where that is not `start`.
    pub scanned: Option<String>,
}

/// The change that a request asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Intent {
    /// Subscribe or renew, with this target and lease.
    Subscribe {
        /// The target.
        target: Target,
        /// The lease.
        lease: LeaseTerms,
    },
    /// Our own question, before a lease ends that was asked for without an end: go on as before
    /// (P03-6)?
    Refresh,
    /// Unsubscribe.
    Unsubscribe {
        /// The target as this request described it: its spelling of the topic and its token are
        /// echoed.
        target: Target,
    },
}

/// The position from which a subscription starts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Start {
    /// At the head when the request was accepted; `None` when the feed was not served yet.
    Head(Option<String>),
    /// At the cursor of `hub.since`.
    Given(String),
}

impl Start {
    /// The same; the position that is there, in the place of a given one.
    #[must_use]
    pub fn unless_given(self) -> Self {
        match self {
            Self::Given(_) => Self::Head(None),
            head @ Self::Head(_) => head,
        }
    }
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
    /// SHA-1, which PubSubHubbub 0.3 prescribes.
    Sha1,
    /// SHA-256, the default for WebSub.
    Sha256,
    /// SHA-384.
    Sha384,
    /// SHA-512.
    Sha512,
}

impl NewSubscription {
    /// The subscription as it begins.
    pub(super) fn numbered(self, no: SubscriptionNo) -> Subscription {
        Subscription {
            no,
            rev: 1,
            view: self.view,
            representation: self.representation,
            topic: self.topic,
            target: self.target,
            lease: None,
            principal: self.pending.principal,
            pending: Some(self.pending),
        }
    }
}

impl Algo {
    /// The hash unless the subscriber chose one: 0.3 clients know sha1 only (P03-11), everybody
    /// else gets sha256.
    pub const fn usual(dialect: Dialect) -> Self {
        match dialect {
            Dialect::Legacy => Self::Sha1,
            Dialect::WebSub => Self::Sha256,
        }
    }
}

impl Target {
    /// The address, which with the topic is the key of a subscription. No two protocols have an
    /// address in common.
    pub fn address(&self) -> &str {
        match self {
            Self::Callback(callback) => &callback.url,
            Self::Cloud(cloud) => &cloud.address,
            Self::Xmpp(xmpp) => &xmpp.address,
            Self::Webhook(webhook) => &webhook.address,
        }
    }

    /// The callback of WebSub or of one of its ancestors; `None` for every other protocol.
    pub fn callback(&self) -> Option<&CallbackTarget> {
        match self {
            Self::Callback(callback) => Some(callback),
            _ => None,
        }
    }

    /// The name of its protocol, as people know that.
    pub fn protocol(&self) -> &'static str {
        match self {
            Self::Callback(callback) => match callback.dialect {
                Dialect::WebSub => "WebSub",
                Dialect::Legacy => "PubSubHubbub 0.3",
            },
            Self::Cloud(_) => "rssCloud",
            Self::Xmpp(_) => "XMPP",
            Self::Webhook(_) => "webhook",
        }
    }

    /// Notes the methods that the callback named when it confirmed.
    pub fn note_named(&mut self, named: NamedMethods) {
        if let Self::Callback(callback) = self {
            let wishes = &mut callback.wishes;
            wishes.named = named.directives.and(wishes.wanted());
            if let Some(overrides_method) = named.overrides_method {
                // All of them are asked for by an override alone.
                wishes.methods = wishes.wanted();
                wishes.overrides_method = overrides_method;
            }
        }
    }

    /// The wishes for pushes; those of a listener, which is pushed no items, are the usual ones.
    pub fn wishes(&self) -> PushWishes {
        self.callback()
            .map_or_else(PushWishes::default, |callback| callback.wishes.clone())
    }

    /// True for a callback that speaks PubSubHubbub 0.3.
    pub fn is_legacy(&self) -> bool {
        self.callback()
            .is_some_and(|callback| callback.dialect == Dialect::Legacy)
    }

    /// The URL of its requests, or the address where it is sent no requests.
    pub fn url(&self) -> &str {
        match self {
            Self::Callback(callback) => &callback.url,
            Self::Cloud(cloud) => cloud.url(),
            Self::Xmpp(xmpp) => &xmpp.address,
            Self::Webhook(webhook) => webhook.url(),
        }
    }

    /// True for a target of the hub; all others are of drivers of their own.
    pub fn is_of_hub(&self) -> bool {
        !matches!(self, Self::Xmpp(_))
    }
}

impl Intent {
    /// The target that the request described; `None` for a question of our own.
    pub fn target(&self) -> Option<&Target> {
        match self {
            Self::Subscribe { target, .. } | Self::Unsubscribe { target } => Some(target),
            Self::Refresh => None,
        }
    }
}

impl Subscription {
    /// The feed that is delivered.
    pub fn feed(&self) -> FeedNo {
        self.view.feed
    }

    /// True while deliveries are due at all.
    pub fn is_active(&self, now: Stamp) -> bool {
        self.lease.is_some_and(|lease| now < lease.until)
    }

    /// The terms that replace the stored ones, with the next revision.
    pub(super) fn replacing(mut self, stored: &Self) -> Result<Self, StoreError> {
        if stored.rev != self.rev {
            return Err(StoreError::Conflict { found: stored.rev });
        }
        self.rev += 1;
        Ok(self)
    }
}

impl Progress {
    /// Moves the position, if it still is where the delivery followed on, and forgets the failures
    /// before. True when it was.
    pub(super) fn acknowledge(&mut self, acknowledged: Acknowledged) -> bool {
        if self.acked.as_ref() != Some(&acknowledged.from) {
            return false;
        }
        *self = Self {
            acked: Some(acknowledged.to),
            attempts: Attempts::default(),
            on_behalf_of: acknowledged.on_behalf_of,
            scanned: acknowledged.scanned,
            channel_t: acknowledged.channel_t,
        };
        true
    }

    /// The cursor after which the view is read.
    pub fn position(&self) -> Option<&str> {
        self.scanned.as_deref().or(self.acked.as_deref())
    }

    /// Readers behind the subscription, itself included.
    pub(super) fn readers(&self) -> usize {
        self.on_behalf_of
            .map_or(1, |readers| readers.max(1) as usize)
    }
}

/// A subscription as it was read. One that is damaged is left out, and told: it must not take all
/// others with it.
pub(super) fn unless_damaged(
    no: SubscriptionNo,
    found: Result<(Subscription, Progress), StoreError>,
) -> Result<Option<(Subscription, Progress)>, StoreError> {
    match found {
        Err(error @ StoreError::Damaged(_)) => {
            tracing::error!(
                subscription.no = %no,
                "A subscription is left out, and its subscriber gets no pushes until it subscribes again: {error}"
            );
            Ok(None)
        }
        found => found.map(Some),
    }
}
