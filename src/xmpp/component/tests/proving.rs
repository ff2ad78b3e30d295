//! What was written is taken once the server has answered a ping behind it; what the end of a stream
//! leaves unproved is written again.

use super::rig::{ALICE, Rig, SERVICE, Server, subscribe};
use crate::{
    feed::order::Order,
    readers::testing::{add, add_titled, id},
    store::SubscriptionNo,
    xmpp::SubscriptionState,
};
use std::{collections::BTreeSet, time::Duration};
use tokio::time::{Instant, sleep};

const BARE: &str = "alice@example.net";

/// State of the only subscription.
fn state(rig: &Rig) -> SubscriptionState {
    let subscribers = &rig.component.supervisor.subscribers;
    let SubscriptionNo(number) = subscribers.of_domain("example.net")[0];
    rig.component.subscription(number).unwrap()
}

fn answer(state: &SubscriptionState) -> &str {
    state.last_answer.as_deref().unwrap_or_default()
}

/// A server that has read the push of post 2, and stops before that of post 3, which is written.
async fn stopped_before_a_push() -> Rig {
    let mut rig = Rig::of(1).await;
    rig.subscribe("blog", BARE).await;
    rig.change(vec![add(2)]).await;
    assert_eq!(rig.server.pushed().await.id, id(2));
    assert!(rig.server.is_quiet().await);
    sleep(Duration::from_secs(5)).await;
    rig.change(vec![add(3)]).await;
    sleep(Duration::from_secs(1)).await;
    rig
}

/// The push of post 3 comes, and is taken.
async fn gets_the_push(mut rig: Rig) {
    let push = rig.server.pushed().await;
    assert_eq!(push.id, id(3));
    assert!(rig.server.is_quiet().await);
    let page = rig.all(Order::MODIFIED).await;
    assert_eq!(push.last.as_deref(), Some(page.last_cursor.as_str()));
    assert_eq!(rig.positions().await, [Some(page.last_cursor)]);
    let state = state(&rig);
    assert_eq!((answer(&state), state.lag_secs), ("taken", Some(0)));
    // Nothing comes twice once it is proved.
    rig.reconnect().await;
    assert!(rig.server.is_quiet().await);
    let mut rig = rig.restart_after_a_kill().await;
    assert!(rig.server.is_quiet().await);
}

#[tokio::test(start_paused = true)]
async fn a_push_that_the_server_did_not_read_before_a_cut_comes_by_the_next_stream() {
    let mut rig = stopped_before_a_push().await;
    let page = rig.all(Order::MODIFIED).await;
    assert_ne!(rig.positions().await, [Some(page.last_cursor)]);
    let waiting = state(&rig);
    assert!(answer(&waiting).contains("not answered yet"), "{waiting:?}");
    assert!(
        waiting.lag_secs.is_some_and(|secs| secs >= 5),
        "{waiting:?}"
    );
    assert!(!waiting.is_failing);
    rig.reconnect().await;
    gets_the_push(rig).await;
}

#[tokio::test(start_paused = true)]
async fn a_push_that_a_silent_server_never_read_comes_by_the_next_stream() {
    let mut rig = stopped_before_a_push().await;
    let frozen = std::mem::replace(&mut rig.server, Server::nobody());
    let began = Instant::now();
    rig.accept().await;
    assert!((60..80).contains(&began.elapsed().as_secs()));
    drop(frozen);
    gets_the_push(rig).await;
}

#[tokio::test(start_paused = true)]
async fn a_push_that_was_written_before_a_kill_of_everfeed_and_not_proved_comes_again() {
    let rig = stopped_before_a_push().await;
    gets_the_push(rig.restart_after_a_kill().await).await;
}

#[tokio::test(start_paused = true)]
async fn a_push_that_was_written_before_an_orderly_end_and_not_proved_comes_again() {
    let rig = stopped_before_a_push().await;
    gets_the_push(rig.restart().await).await;
}

#[tokio::test(start_paused = true)]
async fn what_a_filter_hides_behind_an_unproved_push_does_not_hide_the_push() {
    let mut rig = Rig::of(1).await;
    rig.subscribe("blog?q=wanted", BARE).await;
    rig.server.proves = false;
    rig.change(vec![add_titled(2, "wanted")]).await;
    assert_eq!(rig.server.pushed().await.id, id(2));
    assert!(rig.server.is_quiet().await);
    rig.change((3..=6).map(add).collect()).await;
    assert!(rig.server.is_quiet().await);
    assert!(answer(&state(&rig)).contains("not answered yet"));
    rig.reconnect().await;
    assert_eq!(rig.server.pushed().await.id, id(2));
    assert!(rig.server.is_quiet().await);
    assert_eq!(state(&rig).lag_secs, Some(0));
}

#[tokio::test(start_paused = true)]
async fn a_push_behind_a_ping_is_not_proved_by_its_answer() {
    let mut rig = Rig::of(1).await;
    rig.subscribe("blog", BARE).await;
    rig.server.proves = false;
    rig.change(vec![add(2)]).await;
    assert_eq!(rig.server.pushed().await.id, id(2));
    assert!(rig.server.is_quiet().await);
    rig.change(vec![add(3)]).await;
    assert_eq!(rig.server.pushed().await.id, id(3));
    let (_, ping) = rig.server.proofs.pop().unwrap();
    let result = format!("<iq type='result' id='{ping}' from='{SERVICE}' to='{SERVICE}'/>");
    rig.server.send(&result).await;
    sleep(Duration::from_millis(10)).await;
    assert!(answer(&state(&rig)).contains("not answered yet"));
    rig.reconnect().await;
    assert_eq!(rig.server.pushed().await.id, id(3));
    assert!(rig.server.is_quiet().await);
}

#[tokio::test(start_paused = true)]
async fn only_an_answer_to_the_last_ping_by_our_own_address_is_a_proof() {
    let mut rig = Rig::of(1).await;
    rig.subscribe("blog", BARE).await;
    rig.server.proves = false;
    rig.change(vec![add(2)]).await;
    rig.server.pushed().await;
    assert!(rig.server.is_quiet().await);
    let (_, ping) = rig.server.proofs[0].clone();
    for (from, id) in [
        (ALICE, ping.as_str()),
        (SERVICE, "proof-1"),
        (SERVICE, "proof-x"),
    ] {
        let result = format!("<iq type='result' id='{id}' from='{from}' to='{SERVICE}'/>");
        rig.server.send(&result).await;
        sleep(Duration::from_millis(10)).await;
        assert!(
            answer(&state(&rig)).contains("not answered yet"),
            "{from} {id}"
        );
    }
    // A server that leads nothing back has read the ping all the same.
    let error = format!(
        "<iq type='error' id='{ping}' from='{SERVICE}' to='{SERVICE}'><error type='cancel'/></iq>"
    );
    rig.server.send(&error).await;
    sleep(Duration::from_millis(10)).await;
    assert_eq!(answer(&state(&rig)), "taken");
}

#[tokio::test(start_paused = true)]
async fn proofs_are_asked_for_once_a_second_at_most_and_not_at_rest() {
    let mut rig = Rig::of(1).await;
    rig.subscribe("blog", BARE).await;
    let began = Instant::now();
    for n in 2..=101 {
        rig.change(vec![add(n)]).await;
        assert_eq!(rig.server.pushed().await.id, id(n));
        sleep(Duration::from_millis(100)).await;
    }
    assert!(rig.server.is_quiet().await);
    let secs = began.elapsed().as_secs() as usize;
    let pings = std::mem::take(&mut rig.server.proofs);
    assert!(
        (secs / 2..=secs + 1).contains(&pings.len()),
        "{}",
        pings.len()
    );
    for two in pings.windows(2) {
        // The server reads a tenth of a second later, or not.
        assert!(two[1].0 - two[0].0 >= Duration::from_millis(900));
    }
    assert_eq!(answer(&state(&rig)), "taken");
    for _ in 0..30 {
        assert!(rig.server.is_quiet().await);
    }
    assert_eq!(rig.server.proofs, []);
}

#[tokio::test(start_paused = true)]
async fn a_server_that_loses_a_ping_is_asked_again_after_a_minute() {
    let mut rig = Rig::of(1).await;
    rig.subscribe("blog", BARE).await;
    rig.server.proves = false;
    rig.change(vec![add(2)]).await;
    rig.server.pushed().await;
    let not_silent = format!("<presence from='{ALICE}' to='{SERVICE}'/>");
    for _ in 0..150 {
        assert!(rig.server.is_quiet().await);
        rig.server.send(&not_silent).await;
    }
    assert_eq!(rig.server.proofs.len(), 3);
    rig.server.proves = true;
    for _ in 0..40 {
        assert!(rig.server.is_quiet().await);
        rig.server.send(&not_silent).await;
    }
    assert_eq!(answer(&state(&rig)), "taken");
    assert_eq!(rig.component.state().streams, 1);
}

#[tokio::test(start_paused = true)]
async fn of_many_subscribers_those_are_written_to_again_whose_pushes_are_not_proved() {
    let mut rig = Rig::of(1).await;
    let jids: BTreeSet<String> = (0..200).map(|n| format!("u{n}@example.net")).collect();
    for jid in &jids {
        rig.ask_as(jid, "set", &subscribe("blog", jid)).await;
    }
    rig.change(vec![add(2)]).await;
    let mut came = Vec::new();
    for _ in 0..130 {
        came.push(rig.server.pushed().await.to);
    }
    let proved: BTreeSet<String> = came[..64].iter().cloned().collect();
    rig.reconnect().await;
    let mut again = BTreeSet::new();
    for _ in 64..200 {
        let push = rig.server.pushed().await;
        assert_eq!(push.id, id(2));
        assert!(again.insert(push.to));
    }
    assert!(rig.server.is_quiet().await);
    assert_eq!(again, jids.difference(&proved).cloned().collect());
}
