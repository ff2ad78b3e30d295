//! Commands of the operator on subscriptions, and what came of them in words; not how a subscription
//! is tried or ended.

use crate::{
    catalog::Catalog,
    hub::{Hub, WantedSubscribers},
    serve::admin::OperatorAnswer,
    store::StoreError,
};

pub use crate::{
    hub::{Subscriber, SubscriberPage},
    serve::admin::SubscriberCommand,
};

/// Carries out a command.
pub(super) async fn run(
    catalog: &Catalog,
    hub: &Hub,
    command: SubscriberCommand,
) -> OperatorAnswer {
    let answer = match command {
        SubscriberCommand::List { feed, host, after } => list(catalog, hub, feed, host, after).await,
        SubscriberCommand::Retry(number) => hub.retry_subscription(number).await.map(|is_known| {
            let done = format!("subscription {number} is tried now; `everfeed subscribers list` tells what comes of it");
            known(is_known, number, done)
        }),
        SubscriberCommand::End(number) => hub.end_subscription(number).await.map(|is_known| {
            let done = format!("subscription {number} has ended, and its subscriber is told");
            known(is_known, number, done)
        }),
        SubscriberCommand::Forget(host) => hub.forget_subscriber(&host).await.map(|count| {
            if count == 0 {
                return OperatorAnswer::Unknown(format!("no subscription has a callback at `{host}`"));
            }
            OperatorAnswer::Done(format!(
                "forgotten: {count} with a callback at `{host}`; the subscriber is not told\n\
                 not reached: backups, logs, and free pages of the store's file until they are used again"
            ))
        }),
    };
    answer.unwrap_or_else(|error| OperatorAnswer::Away(error.to_string()))
}

async fn list(
    catalog: &Catalog,
    hub: &Hub,
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
        let snapshot = catalog.snapshot();
        let registered = snapshot.feed(&name).map(|feed| feed.no);
        let Some(no) = registered.or(snapshot.withdrawn(&name)) else {
            return Ok(OperatorAnswer::Unknown(format!(
                "there is no feed `{name}`"
            )));
        };
        wanted.feed = Some(no);
    }
    let page = hub.subscribers(&wanted).await?;
    Ok(match serde_json::to_string(&page) {
        Ok(told) => OperatorAnswer::Done(told),
        Err(error) => OperatorAnswer::Away(error.to_string()),
    })
}

fn known(is_known: bool, number: u64, done: String) -> OperatorAnswer {
    if is_known {
        OperatorAnswer::Done(done)
    } else {
        OperatorAnswer::Unknown(format!("there is no subscription {number}"))
    }
}
