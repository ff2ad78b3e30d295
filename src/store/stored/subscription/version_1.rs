//! Subscriptions as version 1 wrote them: a callback and its terms were fields of the subscription
//! itself.

use super::{stored_enums, stored_structs};
use crate::{
    feed::{stamp::Stamp, view::View},
    secret::Secret,
    store::{
        Subscription, SubscriptionNo,
        subscriptions::{
            Algo, CallbackTarget, Dialect, Intent, Lease, LeaseTerms, Pending, Start, Target,
        },
    },
};

pub(super) struct StoredSubscription {
    no: SubscriptionNo,
    rev: u64,
    view: View,
    representation: String,
    topic: String,
    topic_as_sent: String,
    callback: String,
    active: Option<StoredTerms>,
    lease_until: Stamp,
    pending: Option<StoredPending>,
}

struct StoredTerms {
    secret: Option<Secret>,
    lease_secs: u64,
    dialect: Dialect,
    verify_token: Option<String>,
    algo: Algo,
    auto_refresh: bool,
}

struct StoredPending {
    intent: StoredIntent,
    topic_as_sent: String,
    attempts: u32,
    next_try: Stamp,
    give_up_at: Stamp,
    start: Start,
}

enum StoredIntent {
    Subscribe(StoredTerms),
    Refresh,
    Unsubscribe {
        verify_token: Option<String>,
        dialect: Dialect,
    },
}

stored_structs! {
    StoredSubscription {
        no, rev, view, representation, topic, topic_as_sent, callback, active, lease_until, pending,
    }
    StoredTerms { secret, lease_secs, dialect, verify_token, algo, auto_refresh }
    StoredPending { intent, topic_as_sent, attempts, next_try, give_up_at, start }
}

stored_enums! {
    StoredIntent { 0 Subscribe(terms), 1 Refresh, 2 Unsubscribe { verify_token, dialect } }
}

impl From<StoredSubscription> for Subscription {
    fn from(stored: StoredSubscription) -> Self {
        let StoredSubscription {
            no,
            rev,
            view,
            representation,
            topic,
            topic_as_sent,
            callback,
            ..
        } = stored;
        let pending = stored
            .pending
            .map(|pending| pending.into_pending(&callback));
        let (target, lease) = match (stored.active, &pending) {
            (Some(terms), _) => {
                let lease = Lease {
                    until: stored.lease_until,
                    terms: terms.lease(),
                };
                (terms.into_target(callback, topic_as_sent), Some(lease))
            }
            (
                None,
                Some(Pending {
                    intent: Intent::Subscribe { target, .. },
                    ..
                }),
            ) => (target.clone(), None),
            (
                None,
                Some(Pending {
                    intent: Intent::Unsubscribe { target },
                    ..
                }),
            ) => (target.clone(), None),
            (None, _) => (
                StoredTerms::none(Dialect::WebSub, None).into_target(callback, topic_as_sent),
                None,
            ),
        };
        Self {
            no,
            rev,
            view,
            representation,
            topic,
            target,
            lease,
            pending,
            principal: None,
        }
    }
}

impl StoredTerms {
    /// The terms of a request that has none.
    fn none(dialect: Dialect, verify_token: Option<String>) -> Self {
        let (secret, algo) = (None, Algo::usual(dialect));
        Self {
            secret,
            lease_secs: 0,
            dialect,
            verify_token,
            algo,
            auto_refresh: false,
        }
    }

    fn lease(&self) -> LeaseTerms {
        LeaseTerms {
            secs: self.lease_secs,
            auto_refresh: self.auto_refresh,
        }
    }

    fn into_target(self, url: String, topic_as_sent: String) -> Target {
        let Self {
            secret,
            dialect,
            verify_token,
            algo,
            ..
        } = self;
        Target::Callback(CallbackTarget {
            url,
            topic_as_sent,
            dialect,
            secret,
            algo,
            verify_token,
        })
    }
}

impl StoredPending {
    fn into_pending(self, callback: &str) -> Pending {
        let Self {
            intent,
            topic_as_sent,
            attempts,
            next_try,
            give_up_at,
            start,
        } = self;
        let target_of = |terms: StoredTerms| terms.into_target(callback.to_owned(), topic_as_sent);
        let intent = match intent {
            StoredIntent::Subscribe(terms) => Intent::Subscribe {
                lease: terms.lease(),
                target: target_of(terms),
            },
            StoredIntent::Refresh => Intent::Refresh,
            StoredIntent::Unsubscribe {
                verify_token,
                dialect,
            } => Intent::Unsubscribe {
                target: target_of(StoredTerms::none(dialect, verify_token)),
            },
        };
        Pending {
            intent,
            attempts,
            next_try,
            give_up_at,
            start,
            principal: None,
        }
    }
}
