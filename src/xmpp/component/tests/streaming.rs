//! The stream: its handshake, its ends, and the next one.

use super::rig::{Rig, SERVICE, config, error};
use crate::{readers::testing::ReaderRig, xmpp::component::ns};
use std::time::Duration;
use tokio::time::{Instant, sleep};

async fn rig() -> Rig {
    Rig::before_stream(config(), ReaderRig::of(1..=1).await)
}

fn stream_error(condition: &str) -> String {
    format!(
        "<stream:error><{condition} xmlns='{0}'/><text xmlns='{0}'>because</text></stream:error></stream:stream>",
        ns::STREAM_ERROR
    )
}

#[tokio::test(start_paused = true)]
async fn a_stream_is_online_only_after_the_handshake_and_ends_with_its_last_word() {
    // XMPP-1, XMPP-4.
    let mut rig = rig().await;
    let mut server = rig.connected().await;
    let head = server.open().await;
    assert!(head.is(ns::STREAM, "stream"));
    assert_eq!(head.attribute("to"), Some(SERVICE));
    sleep(Duration::from_millis(10)).await;
    assert!(!rig.component.state().is_online);
    server.welcome().await;
    sleep(Duration::from_millis(10)).await;
    let state = rig.component.state();
    assert!(state.is_online && state.fault.is_none() && state.streams == 1);
    rig.stop.cancel();
    assert!(server.ended().await);
    rig.end().await;
    assert!(!rig.component.state().is_online);
}

#[tokio::test(start_paused = true)]
async fn each_refusal_is_told_in_plain_words_and_is_not_tried_at_once() {
    // XMPP-3.
    for (condition, words, secs) in [
        ("not-authorized", "xmpp.secret is not the secret", 25),
        ("host-unknown", "compare xmpp.jid", 25),
        ("system-shutdown", "system-shutdown (because)", 0),
    ] {
        let mut rig = rig().await;
        let mut server = rig.connected().await;
        server.open().await;
        server.send(&stream_error(condition)).await;
        let began = Instant::now();
        sleep(Duration::from_millis(50)).await;
        assert!(secs == 0 || rig.stays_away(secs).await, "{condition}");
        let fault = rig.component.state().fault.unwrap_or_default();
        assert!(fault.contains(words), "{condition}: {fault}");
        rig.accept().await;
        assert!(began.elapsed() <= Duration::from_secs(60), "{condition}");
        sleep(Duration::from_millis(10)).await;
        assert_eq!(rig.component.state().fault, None, "{condition}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_name_that_is_taken_is_tried_again_for_minutes_before_an_operator_is_told_to_take_another()
 {
    // XMPP-3: after a cut the server may hold the former connection for a while.
    let mut rig = Rig::of(1).await;
    let remedy = "give one of them another xmpp.jid";
    rig.server = rig_nobody();
    let (began, mut tries) = (Instant::now(), 0);
    let mut refuse = async |rig: &mut Rig| {
        let mut server = rig.connected().await;
        server.open().await;
        server.send(&stream_error("conflict")).await;
        sleep(Duration::from_millis(50)).await;
        tries += 1;
        let state = rig.component.state();
        assert!(!state.is_online);
        state.fault.unwrap_or_default()
    };
    let mut fault = refuse(&mut rig).await;
    while began.elapsed() < Duration::from_secs(30) {
        assert!(
            fault.contains("may still hold our former connection"),
            "{fault}"
        );
        fault = refuse(&mut rig).await;
    }
    while began.elapsed() < Duration::from_secs(170) {
        assert!(!fault.contains(remedy), "{fault}");
        fault = refuse(&mut rig).await;
    }
    while began.elapsed() < Duration::from_secs(260) {
        fault = refuse(&mut rig).await;
    }
    assert!(
        fault.contains("another component of this name") && fault.contains(remedy),
        "{fault}"
    );
    assert!((8..=20).contains(&tries), "{tries}");
    rig.accept().await;
    sleep(Duration::from_millis(10)).await;
    assert!(rig.component.state().is_online);
    // One that takes the place of a stream that was open is another component.
    rig.server.send(&stream_error("conflict")).await;
    sleep(Duration::from_millis(50)).await;
    let fault = rig.component.state().fault.unwrap_or_default();
    assert!(fault.contains(remedy), "{fault}");
    assert!(rig.stays_away(25).await);
}

#[tokio::test(start_paused = true)]
async fn every_error_of_a_stream_at_the_handshake_is_told_and_never_spins() {
    // XMPP-3; RFC 6120 section 4.9.3.
    const CONDITIONS: [&str; 25] = [
        "bad-format",
        "bad-namespace-prefix",
        "conflict",
        "connection-timeout",
        "host-gone",
        "host-unknown",
        "improper-addressing",
        "internal-server-error",
        "invalid-from",
        "invalid-namespace",
        "invalid-xml",
        "not-authorized",
        "not-well-formed",
        "policy-violation",
        "remote-connection-failed",
        "reset",
        "resource-constraint",
        "restricted-xml",
        "see-other-host",
        "system-shutdown",
        "undefined-condition",
        "unsupported-encoding",
        "unsupported-feature",
        "unsupported-stanza-type",
        "unsupported-version",
    ];
    let mut rig = rig().await;
    for (at, condition) in CONDITIONS.into_iter().enumerate() {
        let mut server = rig.connected().await;
        // Before the stream is open, and in the place of the answer to the handshake.
        if at % 2 == 0 {
            server.open().await;
        }
        let head = format!(
            "<stream:stream xmlns='{}' xmlns:stream='{}' id='x'>",
            ns::COMPONENT,
            ns::STREAM
        );
        let head = if at % 2 == 0 { "" } else { &head };
        let error = stream_error(condition);
        server.send(&format!("{head}{error}")).await;
        sleep(Duration::from_millis(50)).await;
        let state = rig.component.state();
        let fault = state.fault.unwrap_or_default();
        assert!(!state.is_online && fault.contains(condition), "{fault}");
    }
    let began = Instant::now();
    let mut tries = 0;
    while began.elapsed() < Duration::from_secs(600) {
        let mut server = rig.connected().await;
        server.open().await;
        server.send(&stream_error("undefined-condition")).await;
        tries += 1;
    }
    assert!(tries <= 15, "{tries}: about once a minute");
    rig.accept().await;
    sleep(Duration::from_millis(10)).await;
    assert!(rig.component.state().is_online);
}

#[tokio::test(start_paused = true)]
async fn a_server_that_sends_byte_by_byte_is_served_and_one_that_cuts_a_stanza_loses_nothing_else()
{
    // XMPP-4, XMPP-6.
    let mut rig = Rig::of(1).await;
    let ping = |id: &str| {
        format!(
            "<iq type='get' id='{id}' from='a@b' to='{SERVICE}'><ping xmlns='{}'/></iq>",
            ns::PING
        )
    };
    for byte in ping("slow").chars() {
        rig.server.send(&byte.to_string()).await;
        sleep(Duration::from_millis(400)).await;
    }
    assert_eq!(error(&rig.server.answer("slow").await), "");
    let whole = ping("cut");
    for end in [1, 5, whole.len() / 2, whole.len() - 1] {
        rig.server.send(&whole[..end]).await;
        drop(std::mem::replace(&mut rig.server, rig_nobody()));
        rig.accept().await;
        let answer = rig.get(&format!("<ping xmlns='{}'/>", ns::PING)).await;
        assert_eq!(error(&answer), "", "cut at {end}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_server_that_fails_is_tried_again_later_and_later_and_never_all_the_time() {
    // XMPP-4.
    let mut rig = rig().await;
    let (mut tries, began) = (0, Instant::now());
    while began.elapsed() < Duration::from_secs(300) {
        drop(rig.connected().await);
        tries += 1;
    }
    assert!((8..=20).contains(&tries), "{tries}");
    // What the server sends in the place of a stream, or in its middle, is the end of it.
    for nonsense in [
        "HTTP/1.1 400 Bad Request\r\n\r\n",
        "<html/>",
        "<stream:stream xmlns:stream='x'>",
    ] {
        let mut server = rig.connected().await;
        server.send(nonsense).await;
        drop(server);
    }
    rig.accept().await;
    sleep(Duration::from_millis(10)).await;
    assert!(rig.component.state().is_online);
    rig.server.send("<iq type='get'></nonsense>").await;
    rig.accept().await;
}

#[tokio::test(start_paused = true)]
async fn a_server_that_is_slow_with_its_handshake_is_given_up() {
    let mut rig = rig().await;
    let began = Instant::now();
    let _silent = rig.connected().await;
    let mut second = rig.connected().await;
    let waited = began.elapsed().as_secs();
    assert!((15..=17).contains(&waited), "{waited}");
    second.open().await;
    let _third = rig.connected().await;
    let waited = began.elapsed().as_secs();
    assert!((30..=33).contains(&waited), "{waited}");
}

#[tokio::test(start_paused = true)]
async fn a_silent_server_is_asked_and_then_given_up() {
    // XMPP-4: liveness by a ping to our own address, which the server leads back to us.
    let mut rig = Rig::of(1).await;
    let began = Instant::now();
    let ping = rig.server.next().await;
    assert_eq!(began.elapsed().as_secs(), 60);
    assert_eq!(
        (ping.attribute("to"), ping.attribute("from")),
        (Some(SERVICE), Some(SERVICE))
    );
    assert!(ping.child(ns::PING, "ping").is_some());
    let written = ping.written(ns::COMPONENT);
    rig.server
        .send(std::str::from_utf8(&written).unwrap())
        .await;
    let pong = rig.server.next().await;
    assert_eq!(pong.attribute("type"), Some("result"));
    // The second time nothing comes back.
    rig.server.next().await;
    let asked = Instant::now();
    rig.accept().await;
    let waited = asked.elapsed().as_secs();
    assert!((15..=17).contains(&waited), "{waited}");
}

#[tokio::test(start_paused = true)]
async fn a_server_that_stops_in_the_middle_of_a_stanza_is_given_up_and_served_again() {
    let mut rig = Rig::of(1).await;
    rig.server
        .send(&format!(
            "<iq type='get' id='1' from='a@b' to='{SERVICE}'><pi"
        ))
        .await;
    let frozen = std::mem::replace(&mut rig.server, rig_nobody());
    rig.accept().await;
    drop(frozen);
    let answer = rig.get(&format!("<ping xmlns='{}'/>", ns::PING)).await;
    assert_eq!(error(&answer), "");
}

#[tokio::test(start_paused = true)]
async fn a_server_that_takes_nothing_is_given_up() {
    let mut rig = Rig::of(200).await;
    let items = format!(
        "<pubsub xmlns='{}'><items node='blog'/></pubsub>",
        ns::PUBSUB
    );
    for n in 0..40 {
        let from = format!("u{n}@b");
        rig.server
            .send(&format!(
                "<iq type='get' id='{n}' from='{from}' to='{SERVICE}'>{items}</iq>"
            ))
            .await;
    }
    let frozen = std::mem::replace(&mut rig.server, rig_nobody());
    rig.accept().await;
    drop(frozen);
    sleep(Duration::from_millis(10)).await;
    assert_eq!(rig.component.state().streams, 2);
}

fn rig_nobody() -> super::rig::Server {
    super::rig::Server::nobody()
}

#[tokio::test(start_paused = true)]
async fn a_stream_that_served_for_a_while_is_opened_again_at_once_and_one_that_did_not_later() {
    // XMPP-4.
    let mut rig = Rig::of(1).await;
    // Of nine waits after streams that end at once the first has 200 ms, and each is twice as long as
    // the one before; by chance it is shorter by up to a quarter. The last has 38.4 to 51.2 s.
    for (served_secs, least_ms, most_ms) in [(3, 0, 1_000), (40, 0, 1_000), (1, 38_400, 51_210)] {
        let mut longest = Duration::ZERO;
        for _ in 0..9 {
            sleep(Duration::from_secs(served_secs)).await;
            rig.server.send("</stream:stream>").await;
            let began = Instant::now();
            rig.accept().await;
            longest = longest.max(began.elapsed());
        }
        let longest = longest.as_millis();
        assert!(
            (least_ms..=most_ms).contains(&longest),
            "{served_secs}: {longest} ms"
        );
    }
    // After long waits half a minute is good enough.
    sleep(Duration::from_secs(31)).await;
    rig.server.send("</stream:stream>").await;
    let began = Instant::now();
    rig.accept().await;
    assert!(began.elapsed() < Duration::from_secs(1));
}

#[tokio::test(start_paused = true)]
async fn the_longest_waits_differ_and_are_no_longer_than_a_minute() {
    // XMPP-4: jitter at the cap.
    let mut rig = rig().await;
    let mut waits = Vec::new();
    for _ in 0..20 {
        let began = Instant::now();
        drop(rig.connected().await);
        waits.push(began.elapsed());
    }
    let longest = &waits[12..];
    for wait in longest {
        assert!((44..=60).contains(&wait.as_secs()), "{waits:?}");
    }
    assert!(longest.iter().any(|wait| *wait != longest[0]), "{waits:?}");
}
