//! Commands of the operator on subscriptions, and what came of them in words; not how a subscription
//! is tried or ended.

use crate::{
    catalog::Catalog,
    hub::{Hub, WantedSubscribers},
    serve::admin::OperatorAnswer,
    store::StoreError,
    xmpp::{Component, EndedSubscription},
};
use std::sync::Arc;

pub use crate::{
    hub::{Subscriber, SubscriberPage},
    serve::admin::SubscriberCommand,
};

/// The drivers that have subscriptions.
#[derive(Clone, Copy)]
pub(super) struct SubscriberCommands<'a> {
    pub(super) catalog: &'a Catalog,
    pub(super) hub: &'a Hub,
    pub(super) xmpp: Option<&'a Arc<Component>>,
}

impl SubscriberCommands<'_> {
    /// Carries out a command.
    pub(super) async fn run(self, command: SubscriberCommand) -> OperatorAnswer {
        let answer = match command {
            SubscriberCommand::List { feed, host, after } => self.list(feed, host, after).await,
            SubscriberCommand::Retry(number) => self.retry(number).await,
            SubscriberCommand::End(number) => self.end(number).await,
            SubscriberCommand::Forget(host) => self.forget(&host).await,
        };
        answer.unwrap_or_else(|error| OperatorAnswer::Away(error.to_string()))
    }

    async fn retry(self, number: u64) -> Result<OperatorAnswer, StoreError> {
        let of_xmpp = || self.xmpp.is_some_and(|xmpp| xmpp.retry(number));
        if self.hub.retry_subscription(number).await? || of_xmpp() {
            return Ok(OperatorAnswer::Done(format!(
                "subscription {number} is tried now; `everfeed subscribers list` tells what comes of it"
            )));
        }
        Ok(unknown(number))
    }

    async fn end(self, number: u64) -> Result<OperatorAnswer, StoreError> {
        let told = format!("subscription {number} has ended, and its subscriber is told");
        match self.hub.end_subscription(number).await? {
            Some(true) => return Ok(OperatorAnswer::Done(told)),
            Some(false) => {
                return Ok(OperatorAnswer::Done(format!(
                    "subscription {number} has ended; its subscriber is not told: it never confirmed, or its protocol has no word for it"
                )));
            }
            None => {}
        }
        let ended = match self.xmpp {
            Some(xmpp) => xmpp.end(number).await?,
            None => None,
        };
        Ok(match ended {
            Some(EndedSubscription::Told) => OperatorAnswer::Done(told),
            Some(EndedSubscription::Untold) => OperatorAnswer::Done(format!(
                "subscription {number} has ended; its subscriber is not told, because the stream to the server of XMPP is down"
            )),
            None => unknown(number),
        })
    }

    async fn forget(self, host: &str) -> Result<OperatorAnswer, StoreError> {
        let mut count = self.hub.forget_subscriber(host).await?;
        if let Some(xmpp) = self.xmpp {
            count += xmpp.forget(host).await?;
        }
        if count == 0 {
            return Ok(OperatorAnswer::Unknown(format!(
                "no subscription has a callback or an address at `{host}`"
            )));
        }
        Ok(OperatorAnswer::Done(format!(
            "forgotten: {count} with a callback or an address at `{host}`; the subscriber is not told\n\
             not reached: backups, logs, and free pages of the store's file until they are used again"
        )))
    }

    async fn list(
        self,
        feed: Option<String>,
        host: Option<String>,
        after: Option<u64>,
    ) -> Result<OperatorAnswer, StoreError> {
        let mut wanted = WantedSubscribers {
            feed: None,
            host,
            after,
        };
        if let Some(name) = feed {
            let snapshot = self.catalog.snapshot();
            let registered = snapshot.feed(&name).map(|feed| feed.no);
            let Some(no) = registered.or(snapshot.withdrawn(&name)) else {
                return Ok(OperatorAnswer::Unknown(format!(
                    "there is no feed `{name}`"
                )));
            };
            wanted.feed = Some(no);
        }
        let mut page = self.hub.subscribers(&wanted).await?;
        if let Some(xmpp) = self.xmpp {
            page.subscribers
                .iter_mut()
                .for_each(|subscriber| tell_state(xmpp, subscriber));
        }
        Ok(match serde_json::to_string(&page) {
            Ok(told) => OperatorAnswer::Done(told),
            Err(error) => OperatorAnswer::Away(error.to_string()),
        })
    }
}

/// Puts in what the component knows of a subscription, if it is one of XMPP.
fn tell_state(xmpp: &Component, subscriber: &mut Subscriber) {
    let Some(state) = xmpp.subscription(subscriber.number) else {
        return;
    };
    if state.is_failing {
        "failing".clone_into(&mut subscriber.state);
    }
    subscriber.lag_secs = state.lag_secs;
    subscriber.last_answer = state.last_answer;
    subscriber.answered_at = state.answered_at.map(|at| at.rfc3339());
}

fn unknown(number: u64) -> OperatorAnswer {
    OperatorAnswer::Unknown(format!("there is no subscription {number}"))
}
