//! Floods of requests whose answers are large: all that is not answered is refused at once, and
//! those who ask for little get it.

use super::rig::{Rig, SERVICE, config, error, subscribe};
use crate::{
    readers::testing::add_titled,
    xmpp::{Config, component::ns},
};

/// Bytes of the title of each post, in place of a long text.
const POST_BYTES: usize = 4 << 10;

/// A component whose answers are as large as they may be by default.
async fn with_large_posts() -> Rig {
    let rig = Rig::of(1).await;
    let title = "x".repeat(POST_BYTES);
    let posts = (2..=60).map(|n| add_titled(n, &title)).collect();
    rig.change(posts).await;
    rig
}

fn items(id: &str, from: &str) -> String {
    format!(
        "<iq type='get' id='{id}' from='{from}' to='{SERVICE}'><pubsub xmlns='{}'><items node='blog'/></pubsub></iq>",
        ns::PUBSUB
    )
}

/// The course of a flood.
struct Flood {
    answered: usize,
    refused: usize,
    /// Bytes that came in all.
    bytes: usize,
    /// Bytes that came between the last request, which was the honest one, and its answer.
    before_honest: usize,
    honest: String,
}

/// Sends requests from these addresses, and then one of `honest`.
async fn flood(rig: &mut Rig, addresses: impl Iterator<Item = String>, honest: &str) -> Flood {
    let mut text = String::new();
    let mut sent = 0;
    for (n, from) in addresses.enumerate() {
        text += &items(&format!("f{n}"), &from);
        sent += 1;
    }
    rig.server.send_reading(&text).await;
    rig.server.send_reading(&items("honest", honest)).await;
    let mut flood = Flood {
        answered: 0,
        refused: 0,
        bytes: 0,
        before_honest: 0,
        honest: String::from("no answer"),
    };
    let (at_once, _) = rig.server.came_and_read();
    for _ in 0..=sent {
        let answer = rig.server.next().await;
        let words = error(&answer);
        if answer.attribute("id") == Some("honest") {
            flood.honest = words;
            let (_, read) = rig.server.came_and_read();
            flood.before_honest = read.saturating_sub(at_once);
            continue;
        }
        match words.as_str() {
            "" => flood.answered += 1,
            "wait resource-constraint" => flood.refused += 1,
            other => panic!("{other}"),
        }
    }
    (flood.bytes, _) = rig.server.came_and_read();
    assert_eq!(flood.answered + flood.refused, sent);
    assert!(rig.server.is_quiet().await, "each has one answer");
    assert_eq!(rig.component.state().streams, 1);
    flood
}

/// Bytes that one domain gets at most at once, and what is under way beyond that.
const FLOOD_BYTES: usize = 40 << 20;

/// Bytes of answers at most before somebody who asked for little gets an answer, where each of a
/// thousand domains asked for little as well: all answers would have 800 MB.
const PROMPT_BYTES: usize = 40 << 20;

#[tokio::test(start_paused = true)]
async fn subdomains_of_one_domain_are_one_client_and_others_get_their_answers_at_once() {
    let mut rig = with_large_posts().await;
    let addresses = (0..4_000).map(|n| format!("u{n}@d{n}.flood.example/x"));
    let flood = flood(&mut rig, addresses, "bob@example.net/1").await;
    assert_eq!(flood.honest, "");
    assert!(flood.before_honest < 4 << 20, "{}", flood.before_honest);
    assert!(flood.bytes < FLOOD_BYTES, "{}", flood.bytes);
    assert!(flood.refused >= 3_000, "{}", flood.refused);
}

#[tokio::test(start_paused = true)]
async fn resources_and_nodes_of_one_domain_are_one_client() {
    let mut rig = with_large_posts().await;
    let addresses = (0..4_000).map(|n| match n % 3 {
        0 => format!("u@flood.example/r{n}"),
        1 => format!("u{n}@flood.example"),
        _ => format!("d{n}.flood.example/r{n}"),
    });
    let flood = flood(&mut rig, addresses, "bob@example.net/1").await;
    assert_eq!(flood.honest, "");
    assert!(flood.before_honest < 4 << 20, "{}", flood.before_honest);
    assert!(flood.refused >= 3_000, "{}", flood.refused);
}

#[tokio::test(start_paused = true)]
async fn a_thousand_domains_leave_an_answer_to_somebody_who_asks_once() {
    let mut rig = with_large_posts().await;
    let addresses = (0..4_000).map(|n| format!("u{n}@flood{}.example/x", n % 1_000));
    let flood = flood(&mut rig, addresses, "bob@example.net/1").await;
    assert_eq!(flood.honest, "");
    assert!(
        flood.before_honest < PROMPT_BYTES,
        "{}",
        flood.before_honest
    );
    assert!(flood.refused > 0, "{}", flood.answered);
}

#[tokio::test(start_paused = true)]
async fn addresses_without_a_public_suffix_are_clients_of_their_own() {
    let mut rig = Rig::of(1).await;
    for from in [
        "a@localhost/1",
        "xmpp",
        "a@192.0.2.7/1",
        "a@[2001:db8::1]/1",
        "a@co.uk",
        "a@xn--e1afmkfd.xn--p1ai",
    ] {
        rig.server.send(&items("q", from)).await;
        assert_eq!(error(&rig.server.answer("q").await), "", "{from}");
    }
}

#[tokio::test(start_paused = true)]
async fn subscriptions_of_subdomains_are_those_of_their_domain() {
    // XMPP-45.
    let few = Config {
        subscriptions_per_domain_max: 2,
        ..config()
    };
    let mut rig = Rig::with(few, 1).await;
    let full = "wait policy-violation too-many-subscriptions";
    for (jid, expect) in [
        ("a@one.flood.example", ""),
        ("b@two.flood.example", ""),
        ("c@three.flood.example", full),
        ("d@flood.example", full),
        ("bob@other.example", ""),
    ] {
        let answer = rig.ask_as(jid, "set", &subscribe("blog", jid)).await;
        assert_eq!(error(&answer), expect, "{jid}");
    }
    // The operator names a domain as it is in the addresses.
    assert_eq!(rig.component.forget("flood.example").await.unwrap(), 0);
    assert_eq!(rig.component.forget("one.flood.example").await.unwrap(), 1);
    let jid = "c@three.flood.example";
    let answer = rig.ask_as(jid, "set", &subscribe("blog", jid)).await;
    assert_eq!(error(&answer), "");
}
