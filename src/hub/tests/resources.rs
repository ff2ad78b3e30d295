//! Resources: pushed as they are, under their own URLs (seed 003).

use super::rig::{CALLBACK, Call, Reply, Rig};
use crate::{feed::legacy_document::LegacySyntax, hub::signature, store::subscriptions::Algo};
use std::sync::{Arc, Mutex};

/// The URL that is polled.
const TOPIC: &str = "http://old.example/rss.xml";
const HEADERS: [&str; 3] = ["image/jpeg", "Sun, 06 Jun 2010 16:15:03 GMT", "\"v1\""];

async fn resource(rig: &Rig) {
    rig.resource().await;
    rig.add(1).await;
    rig.keep("v0", LegacySyntax::Other, Some(HEADERS)).await;
}

async fn ask(rig: &Rig, topic: &str, more: &[(&str, &str)]) -> (u16, String) {
    let mut form = vec![
        ("hub.mode", "subscribe"),
        ("hub.topic", topic),
        ("hub.callback", CALLBACK),
    ];
    form.extend(more);
    let answer = rig.ask(&form).await;
    rig.wait(1).await;
    rig.net.taken();
    answer
}

/// The resource has changed.
async fn change(rig: &Rig, body: &str, headers: [&str; 3]) {
    rig.keep(body, LegacySyntax::Other, Some(headers)).await;
    rig.edit(1, body).await;
}

// the bytes, the headers that describe them, and `self`.
#[tokio::test(start_paused = true)]
async fn a_resource_is_pushed_as_it_is_under_its_own_url() {
    let rig = Rig::new().await;
    resource(&rig).await;
    let before = rig.head().await;
    let (status, said) = ask(&rig, TOPIC, &[("hub.secret", "hush")]).await;
    assert_eq!(status, 202, "{said}");
    change(&rig, "\u{1}v1\r\n", HEADERS).await;
    let [push] = &rig.net.pushes()[..] else {
        panic!("one push")
    };
    assert_eq!(&push.body[..], b"\x01v1\r\n", "byte for byte");
    for (name, value) in [
        ("content-type", "image/jpeg"),
        ("last-modified", HEADERS[1]),
        ("etag", "\"v1\""),
        (
            "link",
            &format!("<{TOPIC}>; rel=\"self\", <http://feeds.example:8080/hub>; rel=\"hub\""),
        ),
        ("smart-feed-prev", &before),
        ("smart-feed-last", &rig.head().await),
        ("x-http-method-override", ""),
        (
            "x-hub-signature",
            &signature::signature(Algo::Sha256, b"hush", &push.body),
        ),
    ] {
        assert_eq!(push.header(name), value, "{name}");
    }
    // the date of the change, not the origin's clock.
    assert!(
        push.header("date").starts_with("Mon, 01 Jun 2026 "),
        "{}",
        push.header("date")
    );
    // A subscriber that did not ask for directives is told of no deletion.
    rig.delete(1).await;
    assert_eq!(rig.net.pushes().len(), 0);
    rig.keep("v2", LegacySyntax::Other, None).await;
    rig.revive(1).await;
    let [push] = &rig.net.pushes()[..] else {
        panic!("one push")
    };
    assert_eq!(push.header("content-type"), "application/octet-stream");
    assert_eq!((&push.body[..], push.header("etag")), (&b"v2"[..], ""));
}

// directives only where they were asked for, as overrides of POST.
#[tokio::test(start_paused = true)]
async fn who_asks_for_directives_is_told_to_put_and_to_delete() {
    let rig = Rig::new().await;
    resource(&rig).await;
    let (status, said) = ask(&rig, TOPIC, &[("hub.methods", "override")]).await;
    assert_eq!(status, 202, "{said}");
    let directive = async || {
        let pushes = rig.net.pushes();
        let [push] = &pushes[..] else {
            panic!("{} pushes", pushes.len())
        };
        (
            push.header("x-http-method-override").to_owned(),
            push.body.clone(),
        )
    };
    change(&rig, "v1", HEADERS).await;
    assert_eq!(directive().await, ("PUT".to_owned(), "v1".into()));
    rig.delete(1).await;
    assert_eq!(directive().await, ("DELETE".to_owned(), "".into()));
    rig.keep("v2", LegacySyntax::Other, None).await;
    rig.revive(1).await;
    assert_eq!(directive().await, ("PUT".to_owned(), "v2".into()));
    for methods in ["PATCH", "explicit", "GET", "override,post"] {
        let (status, said) = ask(&rig, TOPIC, &[("hub.methods", methods)]).await;
        assert_eq!(
            (status, said.contains("hub.methods")),
            (400, true),
            "{methods}"
        );
    }
}

// a translation wraps it.
#[tokio::test(start_paused = true)]
async fn a_resource_is_wrapped_where_another_form_is_wished() {
    let rig = Rig::new().await;
    resource(&rig).await;
    for topic in [
        "https://old.example/rss.xml",
        "http://OLD.example:80/rss.xml",
    ] {
        assert_eq!(ask(&rig, topic, &[]).await.0, 202);
        assert_eq!(rig.counts().active, 1, "{topic}");
    }
    assert_eq!(ask(&rig, TOPIC, &[("format", "json")]).await.0, 202);
    assert_eq!(rig.counts().active, 2);
    change(&rig, "v1", HEADERS).await;
    let mut types: Vec<String> = rig
        .net
        .pushes()
        .iter()
        .map(|push| push.header("content-type").to_owned())
        .collect();
    types.sort();
    assert_eq!(types, ["application/json; charset=utf-8", "image/jpeg"]);
    assert_eq!(ask(&rig, "http://old.example/other", &[]).await.0, 404);
}

// Bad input: what no header can hold, or is too long for one, is left out.
#[tokio::test(start_paused = true)]
async fn headers_that_cannot_be_sent_are_left_out() {
    let rig = Rig::new().await;
    resource(&rig).await;
    assert_eq!(ask(&rig, TOPIC, &[]).await.0, 202);
    let long = "x".repeat(1 << 20);
    for bad in ["text/plain\r\nX-Evil: 1", &long] {
        change(&rig, "v1", [bad, bad, bad]).await;
        let [push] = &rig.net.pushes()[..] else {
            panic!("one push")
        };
        assert_eq!(push.header("content-type"), "application/octet-stream");
        assert_eq!((push.header("etag"), push.header("x-evil")), ("", ""));
    }
}

// SF-93: one chain, whatever is lost on the way.
#[tokio::test(start_paused = true)]
async fn a_subscriber_of_a_resource_ends_with_what_is_held() {
    let mut rig = Rig::new().await;
    resource(&rig).await;
    assert_eq!(
        ask(&rig, TOPIC, &[("hub.methods", "override")]).await.0,
        202
    );
    let taken: Arc<Mutex<Vec<Call>>> = Arc::default();
    let (log, mut n) = (taken.clone(), 0);
    rig.net.on_push(move |push| {
        n += 1;
        if n % 3 == 1 {
            return Reply::down();
        }
        log.lock().unwrap().push(push.clone());
        // The answer of some is lost, and they come twice.
        Reply::status(if n % 4 == 0 { 500 } else { 204 })
    });
    for n in 0..20 {
        change(&rig, &format!("v{n}"), HEADERS).await;
        rig.wait(7).await;
        if n % 6 == 5 {
            rig = rig.killed().await;
            rig.resource().await;
        }
    }
    rig.delete(1).await;
    rig.wait(6 * 3600).await;
    let head = rig.head().await;
    let taken = taken.lock().unwrap();
    let last = taken.last().unwrap();
    assert_eq!(last.header("x-http-method-override"), "DELETE");
    assert_eq!(last.last(), head);
    let held = taken.iter().rev().nth(1).unwrap();
    assert!(held.body.starts_with(b"v") || held.body.is_empty());
    for pair in taken.windows(2) {
        assert!(
            pair[1].prev() == pair[0].last() || pair[1].prev() == pair[0].prev(),
            "the chain goes on, or the same place comes again"
        );
    }
}
