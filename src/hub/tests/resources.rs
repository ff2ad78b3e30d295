//! Resources: pushed as they are, under their own URLs (seed 003).

use super::rig::{CALLBACK, Call, Reply, Rig};
use crate::{
    feed::{legacy_document::LegacySyntax, reconcile::Change, stamp::Stamp},
    hub::signature,
    readers::testing,
    store::subscriptions::Algo,
};
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
    rig.net
        .on_verify(|call| Reply::willing(call).with("x-hub-methods", "PUT, DELETE"));
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
    for methods in ["GET", "override,post", "PUT DELETE", "put", ","] {
        let (status, said) = ask(&rig, TOPIC, &[("hub.methods", methods)]).await;
        assert_eq!(
            (status, said.contains("hub.methods")),
            (400, true),
            "{methods}"
        );
    }
}

// a method of its own only where the answer to the verification names it, so that a callback
// that merely echoes never gets a DELETE.
#[tokio::test(start_paused = true)]
async fn methods_are_sent_to_who_names_them_and_to_nobody_else() {
    for (asked, named, put, delete) in [
        ("explicit", "", ("POST", ""), None),
        ("override", "", ("POST", ""), None),
        ("explicit", "PUT", ("PUT", ""), None),
        ("override", "PUT", ("POST", "PUT"), None),
        ("explicit", "override, PUT", ("POST", "PUT"), None),
        (
            "explicit",
            "GET, put, PUT , DELETE,x",
            ("PUT", ""),
            Some(("DELETE", "")),
        ),
        (
            "PUT,DELETE",
            "PUT, PATCH, DELETE",
            ("PUT", ""),
            Some(("DELETE", "")),
        ),
        ("POST, PUT", "PUT, PATCH, DELETE", ("PUT", ""), None),
        ("DELETE", "PUT, DELETE", ("POST", ""), Some(("DELETE", ""))),
        (
            "override",
            "PUT, DELETE",
            ("POST", "PUT"),
            Some(("POST", "DELETE")),
        ),
        ("post", "PUT, DELETE", ("POST", ""), None),
    ] {
        let rig = Rig::new().await;
        resource(&rig).await;
        let header: &'static str = named;
        rig.net.on_verify(move |call| {
            // What merely comes back of the question, and what is taken in general, is no word.
            let answer = Reply::willing(call)
                .with("allow", "GET, POST, PUT, DELETE")
                .with("hub.methods", "PUT,DELETE");
            if header.is_empty() {
                answer
            } else {
                answer.with("x-hub-methods", header)
            }
        });
        assert_eq!(ask(&rig, TOPIC, &[("hub.methods", asked)]).await.0, 202);
        let sent = || {
            let mut pushes = rig.net.pushes();
            assert!(pushes.len() < 2, "{}", pushes.len());
            let push = pushes.pop()?;
            let directive = push.header("x-http-method-override").to_owned();
            Some((push.method.to_string(), directive))
        };
        let told = |(method, directive): (&str, &str)| (method.to_owned(), directive.to_owned());
        change(&rig, "v1", HEADERS).await;
        assert_eq!(sent(), Some(told(put)), "{asked} {named}");
        rig.delete(1).await;
        assert_eq!(sent(), delete.map(told), "{asked} {named}");
    }
}

// the question names what was asked, and a renewal that is not named any more ends it.
#[tokio::test(start_paused = true)]
async fn a_renewal_without_a_name_ends_the_methods() {
    let rig = Rig::new().await;
    resource(&rig).await;
    rig.net.on_verify(|call| {
        assert_eq!(call.param("hub.methods").as_deref(), Some("PUT,DELETE"));
        Reply::willing(call).with("x-hub-methods", "PUT, DELETE")
    });
    let wish = [("hub.methods", "DELETE,PUT")];
    assert_eq!(ask(&rig, TOPIC, &wish).await.0, 202);
    change(&rig, "v1", HEADERS).await;
    assert_eq!(rig.net.pushes()[0].method, http::Method::PUT);
    rig.net.willing();
    assert_eq!(ask(&rig, TOPIC, &wish).await.0, 202);
    change(&rig, "v2", HEADERS).await;
    let push = &rig.net.pushes()[0];
    assert_eq!(
        (push.method.as_str(), push.header("x-http-method-override")),
        ("POST", "")
    );
    assert_eq!(ask(&rig, TOPIC, &[]).await.0, 202);
    change(&rig, "v3", HEADERS).await;
    let push = &rig.net.pushes()[0];
    assert_eq!(
        (push.method.as_str(), push.header("x-http-method-override")),
        ("POST", "")
    );
}

// X-10, HUB-6: anybody may ask for a renewal in the name of a callback, and frameworks obey an
// override as they do a method.
#[tokio::test(start_paused = true)]
async fn a_renewal_by_a_stranger_changes_no_method_that_the_callback_does_not_confirm() {
    for (wish, named, put) in [
        ("explicit", "PUT, DELETE", ("PUT", "")),
        ("override", "PUT, DELETE", ("POST", "PUT")),
        ("PUT", "PUT", ("PUT", "")),
        ("post", "", ("POST", "")),
    ] {
        let rig = Rig::new().await;
        resource(&rig).await;
        rig.net.on_verify(move |call| {
            let answer = Reply::willing(call);
            if named.is_empty() {
                answer
            } else {
                answer.with("x-hub-methods", named)
            }
        });
        let honest = [("hub.methods", wish), ("hub.secret", "hush")];
        assert_eq!(ask(&rig, TOPIC, &honest).await.0, 202);
        for (number, stranger) in ["override", "explicit", "DELETE", "post", ""]
            .iter()
            .enumerate()
        {
            assert_eq!(ask(&rig, TOPIC, &[("hub.methods", stranger)]).await.0, 202);
            change(&rig, &format!("v{number}"), HEADERS).await;
            let push = &rig.net.pushes()[0];
            let found = (push.method.as_str(), push.header("x-http-method-override"));
            assert_eq!(found, put, "{wish} {named}, then `{stranger}`");
            let signature = signature::signature(Algo::Sha256, b"hush", &push.body);
            assert_eq!(push.header("x-hub-signature"), signature, "{stranger}");
        }
    }
}

// the callback is told each wish that is made in its name.
#[tokio::test(start_paused = true)]
async fn the_question_names_the_methods_and_every_other_wish() {
    let rig = Rig::new().await;
    resource(&rig).await;
    rig.net.on_verify(|call| {
        for (name, value) in [
            ("hub.methods", "override,PUT,PATCH,DELETE"),
            ("hub.deletions", "announce"),
            ("hub.heartbeat_seconds", "60"),
            ("hub.warning_seconds", "300"),
        ] {
            assert_eq!(call.param(name).as_deref(), Some(value));
        }
        Reply::willing(call)
    });
    let wishes = [
        ("hub.methods", "override"),
        ("hub.deletions", "announce"),
        ("hub.heartbeat_seconds", "60"),
        ("hub.warning_seconds", "300"),
    ];
    assert_eq!(ask(&rig, TOPIC, &wishes).await.0, 202);
    rig.net.willing();
    assert_eq!(ask(&rig, TOPIC, &[]).await.0, 202);
}

// with X-14: what is merged by its ids is a PATCH, the wrapped resource and its deletion
// included.
#[tokio::test(start_paused = true)]
async fn a_list_and_a_wrapped_resource_are_patches() {
    let rig = Rig::new().await;
    resource(&rig).await;
    rig.net
        .on_verify(|call| Reply::willing(call).with("x-hub-methods", "PUT, PATCH, DELETE"));
    let wishes = [("hub.methods", "explicit"), ("format", "json")];
    assert_eq!(ask(&rig, TOPIC, &wishes).await.0, 202);
    change(&rig, "v1", HEADERS).await;
    rig.delete(1).await;
    let pushes = rig.net.pushes();
    let verbs: Vec<String> = pushes
        .iter()
        .map(|push| {
            assert_eq!(push.method, http::Method::PATCH);
            let body: serde_json::Value = serde_json::from_slice(&push.body).unwrap();
            body["items"][0]["verb"].as_str().unwrap().to_owned()
        })
        .collect();
    assert_eq!(verbs, ["update", "delete"]);
    let rig = Rig::new().await;
    rig.net
        .on_verify(|call| Reply::willing(call).with("x-hub-methods", "PATCH"));
    rig.subscribed(&[("hub.methods", "override")]).await;
    rig.add(1).await;
    let push = &rig.net.pushes()[0];
    assert_eq!(
        (push.method.as_str(), push.header("x-http-method-override")),
        ("POST", "PATCH")
    );
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
    rig.net
        .on_verify(|call| Reply::willing(call).with("x-hub-methods", "PUT, DELETE"));
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

// at a path of a site its own address is the topic, by http and https.
#[tokio::test(start_paused = true)]
async fn a_resource_at_a_path_of_a_site_has_its_own_address_as_topic() {
    const AT_SITE: &str = "http://blog.example/photo.jpg";
    let rig = Rig::new().await;
    rig.add(1).await;
    rig.resource_behind(AT_SITE, "v0").await;
    for topic in [AT_SITE, "https://blog.example/photo.jpg"] {
        let (status, said) = ask(&rig, topic, &[]).await;
        assert_eq!((status, rig.counts().active), (202, 1), "{topic}: {said}");
    }
    change(&rig, "v1", HEADERS).await;
    let [push] = &rig.net.pushes()[..] else {
        panic!("one push")
    };
    assert_eq!(
        (&push.body[..], push.header("content-type")),
        (&b"v1"[..], "image/jpeg")
    );
    let link = format!("<{AT_SITE}>; rel=\"self\", <http://feeds.example:8080/hub>; rel=\"hub\"");
    assert_eq!(push.header("link"), link);
    // A translation, and the Smart Feed at the same address, are other topics.
    let smart = format!("{AT_SITE}?order=modified");
    assert_eq!(ask(&rig, AT_SITE, &[("format", "json")]).await.0, 202);
    assert_eq!(ask(&rig, &smart, &[]).await.0, 202);
    assert_eq!(rig.counts().active, 3);
    change(&rig, "v2", HEADERS).await;
    let types: std::collections::BTreeSet<String> = rig
        .net
        .pushes()
        .iter()
        .map(|push| push.header("content-type").to_owned())
        .collect();
    assert_eq!(types.len(), 3, "{types:?}");
}

// a feed that announces no deletion sends no DELETE, and its chain has no break.
#[tokio::test(start_paused = true)]
async fn a_resource_that_announces_no_deletion_sends_none() {
    let rig = Rig::new().await;
    resource(&rig).await;
    rig.conceal();
    rig.net
        .on_verify(|call| Reply::willing(call).with("x-hub-methods", "PUT, DELETE"));
    assert_eq!(
        ask(&rig, TOPIC, &[("hub.methods", "override")]).await.0,
        202
    );
    change(&rig, "v1", HEADERS).await;
    let held = rig.net.pushes()[0].last().to_owned();
    rig.delete(1).await;
    rig.wait(3600).await;
    assert_eq!(rig.net.pushes().len(), 0);
    rig.keep("v2", LegacySyntax::Other, None).await;
    rig.revive(1).await;
    let [push] = &rig.net.pushes()[..] else {
        panic!("one push")
    };
    assert_eq!((&push.body[..], push.prev()), (&b"v2"[..], held.as_str()));
    // Nor to a list of posts.
    let rig = Rig::new().await;
    rig.conceal();
    rig.add_all(1..3).await;
    rig.delete(2).await;
    rig.subscribed(&[]).await;
    rig.delete(1).await;
    rig.wait(60).await;
    assert_eq!(rig.net.pushes().len(), 0);
}

// a deletion is dated by the first 410, also in the push that tells it.
#[tokio::test(start_paused = true)]
async fn the_push_of_a_deletion_has_the_date_of_the_first_410() {
    let rig = Rig::new().await;
    resource(&rig).await;
    rig.net
        .on_verify(|call| Reply::willing(call).with("x-hub-methods", "PUT, DELETE"));
    assert_eq!(
        ask(&rig, TOPIC, &[("hub.methods", "override")]).await.0,
        202
    );
    change(&rig, "v1", HEADERS).await;
    rig.net.taken();
    let Change::Delete(mut deletion) = testing::delete(1) else {
        panic!("no deletion")
    };
    deletion.first_missing = Some(Stamp::from_secs(1_000_000_000));
    rig.commit(vec![Change::Delete(deletion)]).await;
    let [push] = &rig.net.pushes()[..] else {
        panic!("one push")
    };
    assert_eq!(push.header("x-http-method-override"), "DELETE");
    assert_eq!(push.header("date"), "Sun, 09 Sep 2001 01:46:40 GMT");
}

// SF-75: who has no word for a deletion is not told of it, and its chain has no break.
#[tokio::test(start_paused = true)]
async fn a_deletion_that_is_not_told_leaves_the_chain_whole() {
    let rig = Rig::new().await;
    resource(&rig).await;
    assert_eq!(ask(&rig, TOPIC, &[]).await.0, 202);
    change(&rig, "v1", HEADERS).await;
    let held = rig.net.pushes()[0].last().to_owned();
    rig.delete(1).await;
    rig.wait(3600).await;
    assert_eq!(rig.net.pushes().len(), 0);
    rig.keep("v2", LegacySyntax::Other, None).await;
    rig.revive(1).await;
    let [push] = &rig.net.pushes()[..] else {
        panic!("one push")
    };
    assert_eq!((&push.body[..], push.prev()), (&b"v2"[..], held.as_str()));
}
