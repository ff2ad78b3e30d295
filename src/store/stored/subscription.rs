//! Subscriptions, and their positions beside them.

use super::{
    Out, Stored, StoredKind, Written,
    table::{Fields, stored_enums, stored_newtypes, stored_structs},
};
use crate::{
    feed::{
        filter::{Filter, FilterTerms},
        order::{Axis, Order},
        view::{Deletions, View},
    },
    secret::Secret,
    store::{
        Subscription, SubscriptionNo,
        subscriptions::{
            Algo, Attempts, CallbackTarget, CloudTarget, Dialect, Directives, Intent, Lease,
            LeaseTerms, Pending, Progress, PushWishes, Start, Target, WebhookTarget, XmppTarget,
        },
    },
};
use minicbor::{Decoder, decode};
use std::sync::Arc;

impl StoredKind for Subscription {
    const NAME: &'static str = "subscription";
    const VERSION: u8 = 2;
}

impl StoredKind for Progress {
    const NAME: &'static str = "position";
}

stored_newtypes! { SubscriptionNo Directives }

stored_structs! {
    Subscription { no, rev, view, representation, topic, target, lease, pending, principal }
    View { feed, order, filter }
    Order { axis, reverse }
    CallbackTarget { url, topic_as_sent, dialect, secret, algo, verify_token, wishes }
    CloudTarget { address, feed_url, is_challenged, procedure }
    XmppTarget { address, node }
    WebhookTarget { address, secret }
    Lease { until, terms }
    LeaseTerms { secs, auto_refresh }
    Pending { intent, attempts, next_try, give_up_at, start, principal, scanned }
    Progress { acked, attempts, on_behalf_of, scanned, channel_t }
    Attempts { failed, next_try, failure, since }
}

stored_enums! {
    Axis { 0 Modified, 1 Created, 2 Published }
    Filter { 0 All, 1 Terms(terms), 2 Live }
    Target { 0 Callback(callback), 1 Cloud(cloud), 2 Xmpp(xmpp), 3 Webhook(webhook) }
    Intent { 0 Subscribe { target, lease }, 1 Refresh, 2 Unsubscribe { target } }
    Start { 0 Head(cursor), 1 Given(cursor) }
    Dialect { 0 WebSub, 1 Legacy }
    Deletions { 0 Announce, 1 Omit }
    Algo { 0 Sha1, 1 Sha256, 2 Sha384, 3 Sha512 }
}

/// Terms are stored as they are spelt in URLs: what they mean may grow, and then they are read
/// anew.
impl Stored for Arc<FilterTerms> {
    fn put(&self, out: &mut Out) -> Written {
        let filter = Filter::Terms(self.clone());
        out.str(&filter.query()).map(drop)
    }

    fn take(input: &mut Decoder<'_>) -> Result<Self, decode::Error> {
        let spelling = input.str()?;
        match Filter::spelt(spelling) {
            Ok(Filter::Terms(terms)) => Ok(terms),
            Ok(Filter::All | Filter::Live) => Ok(Self::default()),
            Err(bad) => Err(decode::Error::message(bad)),
        }
    }
}

/// Wishes may all be the usual ones, and then they are not written.
impl Stored for PushWishes {
    fn put(&self, out: &mut Out) -> Written {
        let Self {
            deletions,
            overrides_method,
            methods,
            named,
            heartbeat_secs,
            warning_secs,
        } = self;
        let is_usual = [
            false,
            !overrides_method,
            methods.is_empty(),
            named.is_empty(),
            heartbeat_secs.is_none(),
            warning_secs.is_none(),
        ];
        let count = is_usual.iter().rposition(|usual| !usual).unwrap_or(0) + 1;
        out.array(count as u64)?;
        deletions.put(out)?;
        let rest: [&dyn Fn(&mut Out) -> Written; 5] = [
            &|out| overrides_method.put(out),
            &|out| methods.put(out),
            &|out| named.put(out),
            &|out| heartbeat_secs.put(out),
            &|out| warning_secs.put(out),
        ];
        rest[..count - 1].iter().try_for_each(|put| put(out))
    }

    fn take(input: &mut Decoder<'_>) -> Result<Self, decode::Error> {
        let mut fields = Fields::begin(input, 6)?;
        let directives = |known: Option<u8>| Directives(known.unwrap_or_default());
        Ok(Self {
            deletions: fields.next(input, "deletions")?,
            overrides_method: fields.next(input, "overrides_method")?,
            methods: directives(fields.next(input, "methods")?),
            named: directives(fields.next(input, "named")?),
            heartbeat_secs: fields.next(input, "heartbeat_secs")?,
            warning_secs: fields.next(input, "warning_secs")?,
        })
    }

    fn missing() -> Option<Self> {
        Some(Self::default())
    }

    fn is_missing(&self) -> bool {
        *self == Self::default()
    }
}

impl Stored for Secret {
    fn put(&self, out: &mut Out) -> Written {
        out.str(self.reveal()).map(drop)
    }

    fn take(input: &mut Decoder<'_>) -> Result<Self, decode::Error> {
        input.str().map(Self::new)
    }
}
