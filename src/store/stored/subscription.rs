//! Subscriptions: their terms, and their positions beside them.

use super::{
    Kind, Out, Stored, Written,
    table::{stored_enums, stored_newtypes, stored_structs},
};
use crate::{
    feed::{
        order::{Axis, Order},
        view::{Filter, View},
    },
    secret::Secret,
    store::{
        Subscription, SubscriptionNo,
        subscriptions::{Algo, Attempts, Dialect, Intent, Pending, Progress, Start, Terms},
    },
};
use minicbor::{Decoder, decode};

impl Kind for Subscription {
    const NAME: &'static str = "subscription";
}

impl Kind for Progress {
    const NAME: &'static str = "position";
}

stored_newtypes! { SubscriptionNo }

stored_structs! {
    Subscription {
        no, rev, view, representation, topic, topic_as_sent, callback, active, lease_until, pending,
    }
    View { feed, order, filter }
    Order { axis, reverse }
    Terms { secret, lease_secs, dialect, verify_token, algo, auto_refresh }
    Pending { intent, topic_as_sent, attempts, next_try, give_up_at, start }
    Progress { acked, attempts }
    Attempts { failed, next_try, failure }
}

stored_enums! {
    Axis { 0 Modified, 1 Created }
    Filter { 0 All }
    Intent { 0 Subscribe(terms), 1 Refresh, 2 Unsubscribe { verify_token, dialect } }
    Start { 0 Head(cursor), 1 Given(cursor) }
    Dialect { 0 WebSub, 1 Legacy }
    Algo { 0 Sha1, 1 Sha256, 2 Sha384, 3 Sha512 }
}

impl Stored for Secret {
    fn put(&self, out: &mut Out) -> Written {
        out.str(self.reveal()).map(drop)
    }

    fn take(input: &mut Decoder<'_>) -> Result<Self, decode::Error> {
        input.str().map(Self::new)
    }
}
