//! The operator: what is seen of a subscription, and what is done with one.

use super::rig::{ALICE, Rig, Server, error, told_end};
use crate::{
    readers::testing::{add, id},
    store::SubscriptionNo,
    xmpp::{EndedSubscription, component::ns},
};
use std::time::Duration;
use tokio::time::sleep;

const BARE: &str = "alice@example.net";

/// The numbers of all subscriptions.
fn numbers(rig: &Rig) -> Vec<u64> {
    let mut all = rig
        .component
        .supervisor
        .subscribers
        .of_domain("example.net");
    all.sort();
    all.into_iter().map(|SubscriptionNo(no)| no).collect()
}

#[tokio::test(start_paused = true)]
async fn a_subscription_is_behind_while_the_server_is_away() {
    let mut rig = Rig::of(1).await;
    rig.subscribe("blog", BARE).await;
    let number = numbers(&rig)[0];
    let state = |rig: &Rig| rig.component.subscription(number).unwrap();
    assert!(rig.server.is_quiet().await);
    assert_eq!(
        (state(&rig).is_failing, state(&rig).lag_secs),
        (false, Some(0))
    );
    rig.change(vec![add(2)]).await;
    rig.server.pushed().await;
    assert!(rig.server.is_quiet().await);
    let told = state(&rig);
    assert_eq!(
        (told.lag_secs, told.last_answer.as_deref()),
        (Some(0), Some("taken"))
    );
    assert!(told.answered_at.is_some());
    drop(std::mem::replace(&mut rig.server, Server::nobody()));
    sleep(Duration::from_secs(5)).await;
    rig.change(vec![add(3)]).await;
    let told = state(&rig);
    assert!(
        told.is_failing && told.lag_secs.is_some_and(|secs| secs >= 5),
        "{told:?}"
    );
    assert!(told.last_answer.unwrap().contains("no stream"));
    rig.newest().await;
    assert_eq!(rig.server.pushed().await.id, id(3));
    assert!(rig.server.is_quiet().await);
    assert_eq!(state(&rig).lag_secs, Some(0));
    assert_eq!(rig.component.subscription(99), None);
}

#[tokio::test(start_paused = true)]
async fn a_retry_forgets_what_came_back_and_asks_the_address() {
    let mut rig = Rig::of(1).await;
    rig.subscribe("blog", ALICE).await;
    let number = numbers(&rig)[0];
    let bounce = format!(
        "<message type='error' from='{ALICE}' to='{}'><error type='wait'><recipient-unavailable xmlns='{}'/></error></message>",
        super::rig::SERVICE,
        ns::STANZA_ERROR
    );
    rig.server.send(&bounce).await;
    assert!(rig.server.is_quiet().await);
    let told = rig.component.subscription(number).unwrap();
    assert_eq!(
        told.last_answer.as_deref(),
        Some("it came back: recipient-unavailable")
    );
    assert!(told.is_failing);
    assert!(rig.component.retry(number) && !rig.component.retry(99));
    let ping = rig.server.next().await;
    assert_eq!(ping.attribute("to"), Some(ALICE));
    assert!(ping.child(ns::PING, "ping").is_some());
    assert!(!rig.component.subscription(number).unwrap().is_failing);
}

#[tokio::test(start_paused = true)]
async fn the_operator_ends_one_that_is_told_and_forgets_a_domain_that_is_not() {
    // XMPP-55: the subscriber is told of an end that is not its own.
    let mut rig = Rig::of(1).await;
    for jid in [BARE, ALICE] {
        rig.subscribe("blog", jid).await;
    }
    let all = numbers(&rig);
    let ended = rig.component.end(all[0]).await.unwrap();
    assert_eq!(ended, Some(EndedSubscription::Told));
    let message = rig.server.next().await;
    assert_eq!(told_end(&message).0, BARE);
    assert_eq!(rig.component.end(all[0]).await.unwrap(), None);
    rig.change(vec![add(2)]).await;
    assert_eq!(rig.server.pushed().await.to, ALICE);
    assert_eq!(rig.component.forget("other.example").await.unwrap(), 0);
    assert_eq!(rig.component.forget("example.net").await.unwrap(), 1);
    rig.change(vec![add(3)]).await;
    assert!(rig.server.is_quiet().await);
    assert_eq!(rig.positions().await.len(), 0);
    // It may subscribe again; without a stream nobody can be told of an end.
    assert_eq!(error(&rig.subscribe("blog", BARE).await), "");
    drop(std::mem::replace(&mut rig.server, Server::nobody()));
    sleep(Duration::from_millis(10)).await;
    let ended = rig.component.end(numbers(&rig)[0]).await.unwrap();
    assert_eq!(ended, Some(EndedSubscription::Untold));
}
