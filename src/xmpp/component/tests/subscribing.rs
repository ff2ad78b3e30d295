//! Subscriptions: made, listed, ended, renewed and kept over a restart.

use super::rig::{ALICE, Rig, SERVICE, Server, accounts, config, error, subscribe, told_end};
use crate::{
    auth::AccessSettings,
    readers::testing::{add, id},
    store::{Subscriptions as _, listing},
    xmpp::{
        Config,
        component::{
            element::Element,
            lease::{BARE_LEASE_SECS, FULL_LEASE_SECS},
            ns,
        },
    },
};
use futures_util::TryStreamExt as _;
use std::time::Duration;
use tokio::time::{Instant, sleep};

const BARE: &str = "alice@example.net";

fn unsubscribe(node: &str, jid: &str) -> String {
    subscribe(node, jid).replace("<subscribe", "<unsubscribe")
}

/// The subscriptions that alice is told, each with its node and address.
async fn told(rig: &mut Rig, node: &str) -> Vec<(String, String)> {
    let asked = format!(
        "<pubsub xmlns='{}'><subscriptions{node}/></pubsub>",
        ns::PUBSUB
    );
    let answer = rig.get(&asked).await;
    let pubsub = answer.child(ns::PUBSUB, "pubsub").unwrap();
    let all = pubsub.child(ns::PUBSUB, "subscriptions").unwrap();
    let of = |one: &Element, name: &str| one.attribute(name).unwrap().to_owned();
    all.elements()
        .map(|one| (of(one, "node"), of(one, "jid")))
        .collect()
}

async fn stored(rig: &Rig) -> usize {
    let all: Vec<_> = listing::subscriptions(&*rig.readers.store, None)
        .try_collect()
        .await
        .unwrap();
    all.len()
}

#[tokio::test(start_paused = true)]
async fn an_address_and_its_resources_subscribe_apart_and_twice_is_once() {
    // XMPP-40, XMPP-41, XMPP-42, XMPP-44.
    let mut rig = Rig::of(1).await;
    for jid in [BARE, ALICE, "ALICE@Example.Net/2", BARE, ALICE] {
        let answer = rig.subscribe("blog", jid).await;
        assert_eq!(error(&answer), "", "{jid}");
        let pubsub = answer.child(ns::PUBSUB, "pubsub").unwrap();
        let told = pubsub.child(ns::PUBSUB, "subscription").unwrap();
        assert_eq!(told.attribute("subscription"), Some("subscribed"));
        assert_eq!(told.attribute("node"), Some("blog"));
        assert_eq!(told.attribute("subid"), None);
    }
    rig.subscribe("blog?order=created", BARE).await;
    // The same node in another spelling.
    rig.subscribe("blog?order=modified", BARE).await;
    assert_eq!(stored(&rig).await, 4);
    let all = told(&mut rig, "").await;
    assert_eq!(all.len(), 4);
    assert!(
        all.contains(&("blog".into(), "alice@example.net/2".into())),
        "{all:?}"
    );
    assert_eq!(told(&mut rig, " node='blog'").await.len(), 3);
    for jid in ["", "@", "bob@example.net", "example.net"] {
        let answer = rig.subscribe("blog", jid).await;
        assert_eq!(error(&answer), "modify bad-request invalid-jid", "{jid}");
    }
    let without = format!(
        "<pubsub xmlns='{}'><subscribe node='blog'/></pubsub>",
        ns::PUBSUB
    );
    assert_eq!(
        error(&rig.set(&without).await),
        "modify bad-request invalid-jid"
    );
    assert_eq!(
        error(&rig.subscribe("none", BARE).await),
        "cancel item-not-found"
    );
    for order in ["-modified", "published"] {
        let answer = rig.subscribe(&format!("blog?order={order}"), BARE).await;
        assert_eq!(error(&answer), "cancel feature-not-implemented", "{order}");
    }
    let info = rig
        .get(&format!("<query xmlns='{}' node='blog'/>", ns::DISCO_INFO))
        .await;
    let text = String::from_utf8(info.written(ns::COMPONENT).to_vec()).unwrap();
    assert!(
        text.contains("<field var=\"pubsub#num_subscribers\"><value>3</value>"),
        "{text}"
    );
    let feed = rig.readers.feed;
    assert_eq!(rig.component.counts()[&feed], 4);
}

#[tokio::test(start_paused = true)]
async fn only_ones_own_subscription_can_be_ended() {
    // XMPP-43.
    let mut rig = Rig::of(1).await;
    rig.subscribe("blog", BARE).await;
    for (from, node, jid, expect) in [
        ("bob@example.net/1", "blog", BARE, "auth forbidden"),
        (
            ALICE,
            "blog",
            ALICE,
            "cancel unexpected-request not-subscribed",
        ),
        (ALICE, "none", BARE, "cancel item-not-found"),
        (ALICE, "blog", "", "modify bad-request invalid-jid"),
        (ALICE, "blog?order=modified", BARE, ""),
        (
            ALICE,
            "blog",
            BARE,
            "cancel unexpected-request not-subscribed",
        ),
    ] {
        let answer = rig.ask_as(from, "set", &unsubscribe(node, jid)).await;
        assert_eq!(error(&answer), expect, "{from} {node} {jid}");
    }
    assert_eq!(stored(&rig).await, 0);
    // XMPP-56: no push to who has unsubscribed.
    rig.change(vec![add(2)]).await;
    assert!(rig.server.is_quiet().await);
}

#[tokio::test(start_paused = true)]
async fn there_are_limits_for_one_address_for_one_domain_and_for_all() {
    // XMPP-45.
    let few = Config {
        subscriptions_max: 4,
        subscriptions_per_jid_max: 2,
        subscriptions_per_domain_max: 2,
        ..config()
    };
    let mut rig = Rig::with(few, 1).await;
    let full = "wait policy-violation too-many-subscriptions";
    assert_eq!(error(&rig.subscribe("blog", BARE).await), "");
    assert_eq!(error(&rig.subscribe("blog", ALICE).await), "");
    assert_eq!(error(&rig.subscribe("blog?q=x", BARE).await), full);
    let other = subscribe("blog", "bob@example.net");
    let other = rig.ask_as("bob@example.net", "set", &other).await;
    assert_eq!(error(&other), full, "another of the same domain");
    // What is there already is told again all the same.
    assert_eq!(error(&rig.subscribe("blog", BARE).await), "");
    for (jid, expect) in [("a@x", ""), ("b@y", ""), ("c@z", full)] {
        let answer = rig.ask_as(jid, "set", &subscribe("blog", jid)).await;
        assert_eq!(error(&answer), expect, "{jid}");
    }
    rig.set(&unsubscribe("blog", BARE)).await;
    assert_eq!(
        error(&rig.ask_as("c@z", "set", &subscribe("blog", "c@z")).await),
        ""
    );
}

#[tokio::test(start_paused = true)]
async fn subscriptions_are_kept_over_a_restart_with_their_positions() {
    // XMPP-46.
    let mut rig = Rig::of(1).await;
    rig.subscribe("blog?order=created", BARE).await;
    rig.change(vec![add(2)]).await;
    let first = rig.server.pushed().await;
    assert!(rig.server.is_quiet().await);
    let mut rig = rig.restart().await;
    assert!(rig.server.is_quiet().await);
    rig.change(vec![add(3)]).await;
    let next = rig.server.pushed().await;
    assert_eq!(
        (next.id.as_str(), next.previous),
        (id(3).as_str(), first.last)
    );
    assert_eq!(next.node, "blog?order=created");
    assert_eq!(
        told(&mut rig, "").await,
        [("blog?order=created".into(), BARE.into())]
    );
}

#[tokio::test(start_paused = true)]
async fn a_resource_is_asked_before_its_lease_ends_and_one_that_is_gone_ends() {
    // Section 7 of the brief: leases and probes.
    let mut rig = Rig::of(1).await;
    rig.subscribe("blog", ALICE).await;
    rig.subscribe("blog", "alice@example.net/gone").await;
    rig.subscribe("blog", "alice@example.net/mute").await;
    let end = rig.readers.clock.now_us() + (FULL_LEASE_SECS + 720) * 1_000_000;
    let (mut asked, mut ended) = (0, Vec::new());
    while rig.readers.clock.now_us() < end {
        let iq = rig.server.next().await;
        let (to, id) = (iq.attribute("to").unwrap(), iq.attribute("id").unwrap());
        if to == SERVICE {
            let written = iq.written(ns::COMPONENT);
            rig.server
                .send(std::str::from_utf8(&written).unwrap())
                .await;
            continue;
        }
        if iq.name() == "message" {
            ended.push(told_end(&iq).0);
            continue;
        }
        if iq.attribute("type") != Some("get") {
            continue;
        }
        asked += 1;
        assert!(iq.child(ns::PING, "ping").is_some());
        // Whoever answers for another is not heard.
        let spoofed = format!(
            "<iq type='error' id='{id}' from='mallory@example.org/x' to='{SERVICE}'><error type='cancel'><service-unavailable xmlns='{}'/></error></iq>",
            ns::STANZA_ERROR
        );
        rig.server.send(&spoofed).await;
        let answer = match to {
            ALICE => format!("<iq type='result' id='{id}' from='{to}' to='{SERVICE}'/>"),
            "alice@example.net/gone" => format!(
                "<iq type='error' id='{id}' from='{to}' to='{SERVICE}'><error type='cancel'><service-unavailable xmlns='{}'/></error></iq>",
                ns::STANZA_ERROR
            ),
            _ => continue,
        };
        rig.server.send(&answer).await;
    }
    assert!((3..12).contains(&asked), "{asked}");
    // Nobody is there to be told of the other end.
    assert_eq!(ended, ["alice@example.net/mute"]);
    let all = told(&mut rig, "").await;
    assert_eq!(all, [("blog".into(), ALICE.into())]);
    assert_eq!(stored(&rig).await, 1);
}

#[tokio::test(start_paused = true)]
async fn whatever_an_address_asks_renews_its_lease() {
    let mut rig = Rig::of(1).await;
    rig.subscribe("blog", BARE).await;
    let lease = async |rig: &Rig| {
        let all = rig
            .readers
            .store
            .subscriptions(None, None, 9)
            .await
            .unwrap();
        all.first().map(|(sub, _)| sub.lease.unwrap().until)
    };
    let first = lease(&rig).await.unwrap();
    drop(std::mem::replace(
        &mut rig.server,
        super::rig::Server::nobody(),
    ));
    sleep(Duration::from_secs(BARE_LEASE_SECS / 2)).await;
    rig.newest().await;
    rig.ask_as(
        "alice@example.net/other",
        "get",
        &format!("<ping xmlns='{}'/>", ns::PING),
    )
    .await;
    sleep(Duration::from_secs(130)).await;
    let second = lease(&rig).await.unwrap();
    assert!(second.secs_since(first) >= BARE_LEASE_SECS / 2 - 60);
    // Nobody can ask while there is no stream: its lease ends an hour after the next has come.
    drop(std::mem::replace(
        &mut rig.server,
        super::rig::Server::nobody(),
    ));
    sleep(Duration::from_secs(BARE_LEASE_SECS + 240)).await;
    assert_eq!(lease(&rig).await, Some(second));
    rig.newest().await;
    let began = Instant::now();
    let message = next_but_pings(&mut rig.server).await;
    assert_eq!(told_end(&message), (BARE.to_owned(), "blog".to_owned()));
    assert!((3_500..3_800).contains(&began.elapsed().as_secs()));
    sleep(Duration::from_millis(10)).await;
    assert_eq!(lease(&rig).await, None);
}

/// The next stanza that is no question of the component whether its stream lives.
async fn next_but_pings(server: &mut Server) -> Element {
    loop {
        let stanza = server.next().await;
        if stanza.attribute("to") != Some(SERVICE) {
            return stanza;
        }
        let back = stanza.written(ns::COMPONENT);
        server.send(std::str::from_utf8(&back).unwrap()).await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_lease_does_not_end_before_its_address_could_be_asked() {
    // Section 7 of the brief: the server was away over the end of the lease, and then everfeed.
    let mute = "alice@example.net/mute";
    let mut rig = Rig::of(1).await;
    rig.subscribe("blog", ALICE).await;
    for is_stopped in [false, true] {
        rig.subscribe("blog", mute).await;
        assert_eq!(stored(&rig).await, 2);
        if is_stopped {
            rig.end().await;
        } else {
            drop(std::mem::replace(&mut rig.server, Server::nobody()));
        }
        sleep(Duration::from_secs(FULL_LEASE_SECS + 7_200)).await;
        assert_eq!(stored(&rig).await, 2);
        if is_stopped {
            rig = rig.restart().await;
        } else {
            rig.newest().await;
        }
        let began = Instant::now();
        let mut asked = Vec::new();
        loop {
            let stanza = next_but_pings(&mut rig.server).await;
            if stanza.name() == "message" {
                assert_eq!(told_end(&stanza).0, mute);
                break;
            }
            if stanza.child(ns::PING, "ping").is_none() {
                continue;
            }
            let to = stanza.attribute("to").unwrap().to_owned();
            if to == ALICE {
                let id = stanza.attribute("id").unwrap();
                let answer = format!("<iq type='result' id='{id}' from='{to}' to='{SERVICE}'/>");
                rig.server.send(&answer).await;
            }
            asked.push((to, began.elapsed().as_secs()));
        }
        // Clients have time to come back; the one that answers is asked once.
        let of = |jid: &str| asked.iter().filter(|(to, _)| to == jid).count();
        assert_eq!((of(ALICE), of(mute)), (1, 5), "{asked:?}");
        let (_, first) = asked[0];
        assert!((500..720).contains(&first), "{asked:?}");
        assert!((3_500..3_800).contains(&began.elapsed().as_secs()));
        sleep(Duration::from_millis(10)).await;
        assert_eq!(told(&mut rig, "").await, [("blog".into(), ALICE.into())]);
    }
}

#[tokio::test(start_paused = true)]
async fn messages_that_come_back_end_a_subscription_only_when_the_address_is_no_more() {
    // XMPP-59.
    let bounce = |from: &str, kind: &str, condition: &str| {
        format!(
            "<message type='error' from='{from}' to='{SERVICE}'><error type='{kind}'><{condition} xmlns='{}'/></error></message>",
            ns::STANZA_ERROR
        )
    };
    let mut rig = Rig::of(1).await;
    rig.subscribe("blog", BARE).await;
    rig.subscribe("blog", ALICE).await;
    for (kind, condition) in [
        ("cancel", "recipient-unavailable"),
        ("wait", "remote-server-timeout"),
        ("wait", "item-not-found"),
        ("auth", "forbidden"),
    ] {
        rig.server.send(&bounce(ALICE, kind, condition)).await;
    }
    rig.server
        .send(&bounce("bob@example.net", "cancel", "item-not-found"))
        .await;
    assert!(rig.server.is_quiet().await);
    assert_eq!(stored(&rig).await, 2);
    rig.server
        .send(&bounce(ALICE, "cancel", "item-not-found"))
        .await;
    assert!(rig.server.is_quiet().await);
    assert_eq!(told(&mut rig, "").await, [("blog".into(), BARE.into())]);
    for _ in 0..20 {
        rig.server
            .send(&bounce(BARE, "wait", "resource-constraint"))
            .await;
    }
    // It may be there all the same, and can subscribe again.
    let message = rig.server.next().await;
    assert_eq!(told_end(&message).0, BARE);
    assert!(rig.server.is_quiet().await);
    assert_eq!(stored(&rig).await, 0);
}

#[tokio::test(start_paused = true)]
async fn who_loses_the_right_to_read_is_told_and_pushed_nothing_more() {
    // XMPP-55, XMPP-56.
    let mut rig = Rig::of(1).await;
    rig.know(accounts());
    rig.subscribe("blog", BARE).await;
    let bob = "bob@jabber.example/x";
    rig.ask_as(bob, "set", &subscribe("blog", bob)).await;
    rig.protect(AccessSettings::Named(["bob".to_owned()].into()));
    let message = rig.server.next().await;
    assert_eq!(told_end(&message), (BARE.to_owned(), "blog".to_owned()));
    rig.change(vec![add(2)]).await;
    assert_eq!(rig.server.pushed().await.to, bob);
    // The user is removed, and its address with it.
    rig.know(crate::auth::Accounts::default());
    assert_eq!(rig.server.next().await.attribute("to"), Some(bob));
    rig.change(vec![add(3)]).await;
    assert!(rig.server.is_quiet().await);
    assert_eq!(stored(&rig).await, 0);
}

#[tokio::test(start_paused = true)]
async fn the_end_of_a_feed_is_told_even_where_there_was_no_stream_then() {
    // XMPP-55.
    let mut rig = Rig::of(1).await;
    rig.subscribe("blog", BARE).await;
    drop(std::mem::replace(
        &mut rig.server,
        super::rig::Server::nobody(),
    ));
    sleep(Duration::from_millis(10)).await;
    rig.withdraw();
    rig.accept().await;
    let message = rig.server.next().await;
    let event = message.child(super::rig::EVENT, "event").unwrap();
    let delete = event.child(super::rig::EVENT, "delete").unwrap();
    assert_eq!(delete.attribute("node"), Some("blog"));
    assert!(rig.server.is_quiet().await);
    assert_eq!(stored(&rig).await, 0);
    assert_eq!(
        error(&rig.subscribe("blog", BARE).await),
        "cancel item-not-found"
    );
}
