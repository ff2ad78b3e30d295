//! The contract of a protocol that takes deliveries: a question or one delivery in, what came of it
//! out. When one is made, and when one is tried again, is the same for all of them and decided
//! elsewhere.

use super::{
    Shared,
    callback_permits::CallbackPermit,
    form::{CloudRequest, SubscriptionRequest},
};
use crate::{
    catalog::Destination,
    clock::Clock,
    feed::{stamp::Stamp, view::Deletions},
    layers::Request,
    readers::Rendered,
    render::Representation,
    store::subscriptions::{
        Algo, CallbackTarget, CloudTarget, Dialect, Directive, PushWishes, Target,
    },
};
use bytes::Bytes;
use futures_util::future::BoxFuture;
use question::{Question, Verdict};
use std::{sync::Arc, time::Duration};

mod answer;

mod callback;

mod cloud;

mod webhook;

pub(super) mod question;

/// A page on its way to a target.
#[derive(Clone, Debug)]
pub(super) struct Delivery {
    pub(super) representation: Representation,
    /// The `Link` header of the page, the same as on our own pages (HUB-19).
    pub(super) link: String,
    /// The stored cursor that the page follows on, as it was acknowledged.
    pub(super) prev: String,
    pub(super) page: Arc<Rendered>,
    /// `ETag`, `Last-Modified` and `Date`, as far as they are known.
    pub(super) validators: PushValidators,
    /// The resource that is pushed in the place of the page.
    pub(super) resource: Option<ResourcePush>,
    /// Treatment of it that is asked of its subscriber, where that wants to be told.
    pub(super) directive: Directive,
}

/// A resource as it is pushed: its bytes, and of its headers these and no others.
#[derive(Clone, Debug, Default)]
pub(super) struct ResourcePush {
    pub(super) body: Bytes,
    pub(super) content_type: Option<String>,
    pub(super) etag: Option<String>,
    pub(super) last_modified: Option<String>,
    /// Time of its deletion, which dates the push that tells it.
    pub(super) deleted_at: Option<Stamp>,
}

/// Headers of a push that tell the state of its topic, beside cursors.
#[derive(Clone, Debug, Default)]
pub(super) struct PushValidators {
    /// The tag that a pull of the topic has in the state to which the push leads.
    pub(super) etag: Option<String>,
    /// Time of the last change of the topic in that state.
    pub(super) last_modified: Option<Stamp>,
    /// T of the last item of the push.
    pub(super) date: Option<Stamp>,
}

/// The result of a delivery.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Delivered {
    /// The target has taken it.
    Taken {
        /// Readers whom the target serves, as far as it says so (W-19).
        on_behalf_of: Option<u32>,
    },
    /// The target wants no more (HUB-21).
    Gone,
    /// The target has not taken it.
    Failed(NotTaken),
    /// There is no way to put it into the protocol of the target.
    Unsendable,
}

/// A delivery that its target has not taken.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct NotTaken {
    pub(super) why: String,
    /// The wait that the target asks for.
    pub(super) retry_after: Option<Duration>,
    /// True when a smaller one may be taken.
    pub(super) too_large: bool,
}

/// Carries deliveries to one target.
pub(super) trait Deliver: Send + Sync {
    /// The destination that is loaded by a delivery: its share of what is under way at once is
    /// limited.
    fn destination(&self) -> Destination;

    /// True where the target is sent the items; one that is not reads them itself, after one word
    /// for all of them.
    fn carries_items(&self) -> bool {
        true
    }

    /// Asks once, in its place, if the target wants what was asked in its name.
    fn ask<'a>(
        &'a self,
        question: &'a Question,
        place: &'a mut CallbackPermit,
    ) -> BoxFuture<'a, Verdict>;

    /// The request that tells the target that its subscription is no more, and if it may come back;
    /// `None` where its protocol has no word for it.
    fn denial(&self, _reason: &str, _may_return: bool) -> Option<Request> {
        None
    }

    /// The request that tells the target that its lease ends in so many seconds; `None` where its
    /// protocol has no word for it.
    fn warning(&self, _left_secs: u64) -> Option<Request> {
        None
    }

    /// Makes a delivery once, in its place. The wait for its end is bounded.
    fn deliver<'a>(
        &'a self,
        delivery: Delivery,
        place: &'a mut CallbackPermit,
    ) -> BoxFuture<'a, Delivered>;
}

// Decides: To whom does a subscription push, and in which protocol?
/// The target of a subscription request, as its topic was spelt, with the wish that stood in that.
pub(super) fn target(
    change: &SubscriptionRequest,
    spelt: &str,
    deletions: Option<Deletions>,
) -> Target {
    let wishes = PushWishes {
        deletions: change.wishes.deletions.or(deletions),
        ..change.wishes.clone()
    };
    let dialect = if change.is_legacy() {
        Dialect::Legacy
    } else {
        Dialect::WebSub
    };
    Target::Callback(CallbackTarget {
        url: change.callback.clone(),
        topic_as_sent: spelt.to_owned(),
        dialect,
        secret: change.secret.clone(),
        algo: change.algo.unwrap_or(Algo::usual(dialect)),
        verify_token: change.verify_token.clone(),
        wishes,
    })
}

/// The listener of rssCloud that registers for a feed, as it spelt that.
pub(super) fn listener(asked: &CloudRequest, spelt: &str) -> Target {
    let listener = CloudTarget::new(&asked.url, spelt, asked.is_challenged);
    Target::Cloud(listener.calling(asked.procedure.clone()))
}

/// The way to a target; `None` for one that another driver serves.
pub(super) fn way_to(target: &Target, shared: &Shared) -> Option<Box<dyn Deliver>> {
    let clock: Arc<dyn Clock> = shared.clock.clone();
    Some(match target {
        Target::Callback(target) => Box::new(callback::CallbackWay {
            client: shared.client.clone(),
            clock,
            target: target.clone(),
        }),
        Target::Cloud(target) => Box::new(cloud::CloudWay {
            client: shared.client.clone(),
            clock,
            target: target.clone(),
        }),
        Target::Webhook(target) => Box::new(webhook::WebhookWay {
            client: shared.client.clone(),
            clock,
            target: target.clone(),
        }),
        Target::Xmpp(_) => return None,
    })
}
