//! Topics at old addresses, and forms that a request wishes.

use super::rig::{CALLBACK, Rig, TOPIC};
use crate::{feed::legacy_document::LegacySyntax, readers::testing, render::Representation};
use bytes::Bytes;
use url::form_urlencoded;

const OLD: &str = "http://blog.example/rss.xml";
const BASE: &str = "http://feeds.example:8080/feeds/blog";

/// Subscribes [`CALLBACK`], and tells the status and what was said.
async fn ask(rig: &Rig, topic: &str, accept: Option<&str>, more: &[(&str, &str)]) -> (u16, String) {
    let body = form_urlencoded::Serializer::new(String::new())
        .extend_pairs([
            ("hub.mode", "subscribe"),
            ("hub.topic", topic),
            ("hub.callback", CALLBACK),
        ])
        .extend_pairs(more)
        .finish();
    let mut request =
        http::Request::post("/hub").header("content-type", "application/x-www-form-urlencoded");
    if let Some(accept) = accept {
        request = request.header("accept", accept);
    }
    let answer = rig
        .hub
        .handle(request.body(Bytes::from(body)).unwrap(), None)
        .await;
    let said = String::from_utf8(answer.body().to_vec()).unwrap();
    (answer.status().as_u16(), said)
}

/// `rel=self` and Content-Type of the push of a new post to one subscriber, and its body.
async fn pushed(rig: &Rig, n: u32) -> (String, String, String) {
    rig.wait(1).await;
    rig.net.taken();
    rig.commit(vec![testing::add_titled(n, &format!("even {n}"))])
        .await;
    let pushes = rig.net.pushes();
    let [push] = &pushes[..] else {
        panic!("{} pushes", pushes.len())
    };
    let link = push.header("link");
    let own = link.split('>').next().unwrap().trim_start_matches('<');
    (
        own.to_owned(),
        push.header("content-type").to_owned(),
        String::from_utf8(push.body.to_vec()).unwrap(),
    )
}

async fn sidecar() -> Rig {
    let rig = Rig::new().await;
    rig.behind(
        OLD,
        "<rss version='2.0'><channel/></rss>",
        LegacySyntax::Rss,
    )
    .await;
    rig
}

// SF-79, SF-80, SF-82: the URL that was read is the topic, and its pushes call it their own.
#[tokio::test(start_paused = true)]
async fn an_old_address_that_is_read_as_a_smart_feed_is_a_topic() {
    for (topic, own, media_type) in [
        (OLD, OLD, "application/rss+xml"),
        (
            "http://blog.example/rss.xml?order=modified",
            "http://blog.example/rss.xml?order=modified",
            "application/atom+xml",
        ),
        (
            "https://blog.example/rss.xml?order=created",
            "https://blog.example/rss.xml?order=created",
            "application/atom+xml",
        ),
        (
            "https://blog.example/rss.xml",
            "https://blog.example/rss.xml",
            "application/rss+xml",
        ),
        (
            "http://BLOG.example:80/rss.xml?q=Even&order=modified",
            "http://blog.example/rss.xml?order=modified&q=even",
            "application/atom+xml",
        ),
        (
            "http://blog.example/rss.xml?order=modified&format=json",
            "http://feeds.example:8080/feeds/blog.json?order=modified",
            "application/json",
        ),
        (
            "http://blog.example/rss.xml?format=json",
            "http://feeds.example:8080/feeds/blog.json?order=modified",
            "application/json",
        ),
    ] {
        let rig = sidecar().await;
        let (status, said) = ask(&rig, topic, None, &[("hub.verify", "async")]).await;
        assert_eq!(status, 202, "{topic}: {said}");
        rig.wait(1).await;
        let question = rig.net.taken().remove(0);
        assert_eq!(question.param("hub.topic").as_deref(), Some(topic), "W-7");
        let (link, content_type, body) = pushed(&rig, 1).await;
        assert_eq!(link, own, "{topic}");
        assert!(
            content_type.starts_with(media_type),
            "{topic}: {content_type}"
        );
        let inside = own.replace('&', "&amp;");
        assert!(
            body.contains(&inside) || body.contains(own),
            "{topic}: {body}"
        );
    }
    let rig = sidecar().await;
    for (topic, status) in [
        ("http://blog.example/rss.xml?order=published", 404),
        ("http://blog.example/rss.xml?order=-modified", 404),
        (
            "http://blog.example/rss.xml?order=modified&since=cursor:1_0_1",
            404,
        ),
        ("http://blog.example/rss.xml?order=modified&max=1", 404),
        ("http://blog.example/rss.xml?x=1&order=modified", 404),
        ("http://blog.example/other.xml?order=modified", 404),
        // By itself it chooses another document of the old site.
        ("http://blog.example/rss.xml?q=even", 404),
        ("http://blog.example/rss.xml?order=modified&format=pdf", 400),
        ("http://blog.example:8443/rss.xml", 404),
    ] {
        assert_eq!(ask(&rig, topic, None, &[]).await.0, status, "{topic}");
    }
}

// HUB-6: by http and https an address is one subscription.
#[tokio::test(start_paused = true)]
async fn an_address_by_http_and_https_is_one_subscription() {
    let rig = sidecar().await;
    for topic in [
        "http://blog.example/rss.xml?order=modified",
        "https://blog.example/rss.xml?order=modified",
        "https://blog.example/rss.xml?deletions=omit&order=modified",
    ] {
        assert_eq!(ask(&rig, topic, None, &[]).await.0, 202);
        rig.wait(1).await;
        assert_eq!(rig.counts().active, 1, "{topic}");
    }
    let (own, ..) = pushed(&rig, 1).await;
    assert_eq!(own, "https://blog.example/rss.xml?order=modified");
    rig.delete(1).await;
    assert_eq!(rig.net.pushes().len(), 0, "its topic omits deletions");
    for topic in [OLD, "https://blog.example/rss.xml"] {
        assert_eq!(ask(&rig, topic, None, &[]).await.0, 202);
        rig.wait(1).await;
        assert_eq!(rig.counts().active, 2, "{topic}");
    }
}

// HUB-18: each form that can be pulled can be wished, and its push is that of its topic.
#[tokio::test(start_paused = true)]
async fn a_wished_form_is_pushed_as_its_own_topic() {
    for form in Representation::all() {
        let rig = Rig::new().await;
        let name = form.name();
        let (status, said) = ask(&rig, TOPIC, None, &[("format", &name)]).await;
        assert_eq!(status, 202, "{name}: {said}");
        let (own, content_type, _) = pushed(&rig, 1).await;
        assert_eq!(content_type, form.content_type(), "{name}");
        let path = if form.is_classic() {
            format!("{BASE}/classic.{}", form.suffix())
        } else {
            format!("{BASE}.{}?order=modified", form.suffix())
        };
        assert_eq!(own, path, "{name}");
        // It is one with the topic that has that form.
        assert_eq!(ask(&rig, &path, None, &[]).await.0, 202, "{name}");
        rig.wait(1).await;
        assert_eq!(rig.counts().active, 1, "{name}");
    }
    let rig = Rig::new().await;
    let classic = format!("{BASE}/classic.rss");
    assert_eq!(
        ask(&rig, &classic, None, &[("format", "atom")]).await.0,
        202
    );
    assert_eq!(pushed(&rig, 1).await.0, format!("{BASE}/classic.atom"));
    for wish in ["pdf", "Atom", "classic-csv", "atom,json"] {
        let (status, said) = ask(&rig, TOPIC, None, &[("hub.format", wish)]).await;
        assert_eq!(status, 400, "{wish}");
        assert!(
            said.contains("atom, json, rss, jsonfeed") && said.contains("classic-atom"),
            "the list: {said}"
        );
    }
    let twice = [("format", "atom"), ("hub.format", "json")];
    assert_eq!(ask(&rig, TOPIC, None, &twice).await.0, 400);
}

// HUB-7, P-5: clients wish for a form once, and go on with the topic that they were sent.
#[tokio::test(start_paused = true)]
async fn a_translated_subscription_is_renewed_asked_after_and_ended_by_its_topic_alone() {
    for wish in [&[("format", "json")][..], &[]] {
        let rig = Rig::new().await;
        let accept = wish.is_empty().then_some("application/stream+json");
        let secret = ("hub.secret", "hush");
        let first: Vec<_> = wish.iter().copied().chain([secret]).collect();
        assert_eq!(ask(&rig, TOPIC, accept, &first).await.0, 202);
        rig.wait(1).await;
        // A renewal does not wish again.
        assert_eq!(ask(&rig, TOPIC, None, &[secret]).await.0, 202);
        let (own, content_type, _) = pushed(&rig, 1).await;
        assert_eq!(own, format!("{BASE}.json?order=modified"));
        assert_eq!(content_type, Representation::JSON.content_type());
        assert_eq!(rig.counts().active, 1);
        let of_it = |mode| {
            [
                ("hub.mode", mode),
                ("hub.topic", TOPIC),
                ("hub.callback", CALLBACK),
                secret,
            ]
        };
        let (status, said) = rig.ask(&of_it("status")).await;
        assert!(status == 200 && said.contains("\"json\""), "{said}");
        assert_eq!(rig.ask(&of_it("unsubscribe")).await.0, 202);
        rig.wait(1).await;
        assert_eq!(rig.counts().active, 0);
    }
    // Two that were asked for by their own topics stay two.
    let rig = Rig::new().await;
    assert_eq!(
        ask(&rig, &format!("{BASE}.json?order=modified"), None, &[])
            .await
            .0,
        202
    );
    assert_eq!(ask(&rig, TOPIC, None, &[]).await.0, 202);
    rig.wait(1).await;
    assert_eq!(rig.counts().active, 2);
}

// a trap is that HTTP libraries accept `application/json` by themselves.
#[tokio::test(start_paused = true)]
async fn accept_translates_only_where_it_names_one_of_three_types_and_not_the_topics_own() {
    let [atom, json, rss] = ["atom", "json", "rss"].map(|it| format!("{BASE}.{it}?order=modified"));
    let classic = |it: &str| format!("{BASE}/classic.{it}");
    for (topic, accept, expect) in [
        (&atom, "application/stream+json", &json),
        (&atom, "application/rss+xml;q=0.5, */*;q=0.1", &rss),
        (
            &atom,
            "application/rss+xml;q=0.5, application/stream+json;q=0.7",
            &json,
        ),
        (
            &atom,
            "application/stream+json, application/atom+xml;q=0.1",
            &atom,
        ),
        (&atom, "application/json, text/plain, */*", &atom),
        (&atom, "application/stream+json;q=0", &atom),
        (&atom, "text/html, image/*", &atom),
        (&atom, "garbage", &atom),
        (&json, "application/stream+json", &json),
        (&json, "application/json, application/atom+xml", &json),
        (&json, "application/atom+xml", &atom),
        (&classic("rss"), "application/atom+xml", &classic("atom")),
        (&classic("rss"), "application/stream+json", &json),
    ] {
        let rig = Rig::new().await;
        assert_eq!(ask(&rig, topic, Some(accept), &[]).await.0, 202, "{accept}");
        let (own, ..) = pushed(&rig, 1).await;
        assert_eq!(&own, expect, "{topic}: {accept}");
    }
    // A wish in the form goes first.
    let rig = Rig::new().await;
    let wish = [("format", "rss")];
    let accept = Some("application/stream+json");
    assert_eq!(ask(&rig, &atom, accept, &wish).await.0, 202);
    assert_eq!(pushed(&rig, 1).await.0, rss);
}

// Ten thousand topics of one feed by filters are so many subscriptions, within the bound on them.
#[tokio::test(start_paused = true)]
async fn many_filters_of_one_feed_are_bounded_by_the_number_of_subscriptions() {
    let rig = Rig::with(crate::hub::Config {
        subscriptions_max: 40,
        ..crate::hub::Config::default()
    })
    .await;
    let mut statuses = Vec::new();
    for n in 0..60 {
        let topic = format!("{BASE}.atom?q=word{n}");
        statuses.push(ask(&rig, &topic, None, &[]).await.0);
        rig.wait(1).await;
    }
    assert_eq!(statuses.iter().filter(|it| **it == 202).count(), 40);
    assert!(statuses[40..].iter().all(|it| *it == 503), "{statuses:?}");
    // What none of them shows is read for none of them.
    rig.net.taken();
    rig.add(1).await;
    assert_eq!(rig.net.pushes().len(), 0);
}

// Bad input: ten thousand topics of one feed by filters, all of one client. It has as many as one client
// may, and is told by which key; nobody else is shut out, and each is pushed what it shows.
#[tokio::test(start_paused = true)]
async fn ten_thousand_filters_of_one_client_are_bounded_and_the_rest_told_why() {
    const TAKEN_MAX: usize = 500;
    let rig = Rig::with(crate::hub::Config {
        subscriptions_per_client_max: TAKEN_MAX,
        ..crate::hub::Config::default()
    })
    .await;
    let subscribe = async |topic: &str, client: [u8; 4]| {
        let body = form_urlencoded::Serializer::new(String::new())
            .extend_pairs([
                ("hub.mode", "subscribe"),
                ("hub.topic", topic),
                ("hub.callback", CALLBACK),
            ])
            .finish();
        let request = http::Request::post("/hub")
            .header("content-type", "application/x-www-form-urlencoded")
            .body(Bytes::from(body))
            .unwrap();
        let answer = rig.hub.handle(request, Some(client.into())).await;
        let said = String::from_utf8_lossy(answer.body()).into_owned();
        (answer.status().as_u16(), said)
    };
    let mut taken = 0;
    let mut refusals = std::collections::BTreeSet::new();
    for n in 0..10_000 {
        let topic = format!("{BASE}.json?order=modified&q=word{n}");
        let (status, said) = subscribe(&topic, [192, 0, 2, 7]).await;
        match status {
            202 => taken += 1,
            _ => drop(refusals.insert((status, said))),
        }
        let pause_ms = if taken < TAKEN_MAX { 1_050 } else { 110 };
        tokio::time::sleep(std::time::Duration::from_millis(pause_ms)).await;
    }
    assert_eq!(taken, TAKEN_MAX);
    let [(503, said)] = &refusals.iter().cloned().collect::<Vec<_>>()[..] else {
        panic!("{refusals:?}")
    };
    assert!(said.contains("subscriptions_per_client_max"), "{said}");
    let other = format!("{BASE}.json?order=modified&q=other");
    assert_eq!(subscribe(&other, [198, 51, 100, 9]).await.0, 202);
    rig.wait(30).await;
    rig.net.taken();
    rig.commit(vec![testing::add_titled(1, "about word7")])
        .await;
    rig.wait(1).await;
    let pushes = rig.net.pushes();
    assert_eq!(pushes.len(), 1);
    assert!(pushes[0].header("link").contains("q=word7>"));
}

// HUBS 5.1 (7): a subscriber is told its state, and nobody else learns anything.
#[tokio::test(start_paused = true)]
async fn the_state_of_a_subscription_is_told_to_who_proves_to_be_its_subscriber() {
    let rig = Rig::new().await;
    rig.add(1).await;
    let head = rig.head().await;
    let token = [("hub.secret", "hush"), ("hub.lease_seconds", "3600")];
    assert_eq!(ask(&rig, TOPIC, None, &token).await.0, 202);
    rig.wait(1).await;
    let status = async |callback: &str, topic: &str, proof: &[(&str, &str)]| {
        let mut form = vec![
            ("hub.mode", "status"),
            ("hub.topic", topic),
            ("hub.callback", callback),
        ];
        form.extend(proof);
        rig.ask(&form).await
    };
    let (code, said) = status(CALLBACK, TOPIC, &[("hub.secret", "hush")]).await;
    assert_eq!(code, 200, "{said}");
    let told: serde_json::Value = serde_json::from_str(&said).unwrap();
    assert_eq!(
        (
            &told["state"],
            &told["topic"],
            &told["lease_seconds"],
            &told["last_cursor"]
        ),
        (
            &"subscribed".into(),
            &TOPIC.into(),
            &3600.into(),
            &head.into()
        )
    );
    assert_eq!(
        (&told["failing"], &told["deletions"]),
        (&().into(), &"announce".into())
    );
    rig.net
        .on_push(|_| crate::hub::tests::rig::Reply::status(500));
    rig.add(2).await;
    let (_, said) = status(CALLBACK, TOPIC, &[("hub.secret", "hush")]).await;
    let told: serde_json::Value = serde_json::from_str(&said).unwrap();
    assert_eq!(told["failing"]["failures"], 1);
    // Forged: one answer, whatever is wrong.
    let mut answers = std::collections::HashSet::new();
    for (callback, proof) in [
        (CALLBACK, ("hub.secret", "hus")),
        (CALLBACK, ("hub.verify_token", "t")),
        ("http://other.example/", ("hub.secret", "hush")),
    ] {
        answers.insert(status(callback, TOPIC, &[proof]).await);
    }
    assert_eq!(answers.len(), 1, "{answers:?}");
    assert_eq!(answers.into_iter().next().unwrap().0, 403);
    assert_eq!(status(CALLBACK, TOPIC, &[]).await.0, 400);
    assert_eq!(
        status(CALLBACK, "http://x.example/", &[("hub.secret", "hush")])
            .await
            .0,
        404
    );
    // Without a secret its token proves it, and without either nothing does.
    let rig = Rig::new().await;
    assert_eq!(
        ask(&rig, TOPIC, None, &[("hub.verify_token", "tk")])
            .await
            .0,
        202
    );
    rig.wait(1).await;
    let form = |proof: &'static str| {
        [
            ("hub.mode", "status"),
            ("hub.topic", TOPIC),
            ("hub.callback", CALLBACK),
            ("hub.verify_token", proof),
        ]
    };
    assert_eq!(rig.ask(&form("tk")).await.0, 200);
    assert_eq!(rig.ask(&form("other")).await.0, 403);
    let rig = Rig::new().await;
    assert_eq!(ask(&rig, TOPIC, None, &[]).await.0, 202);
    rig.wait(1).await;
    assert_eq!(rig.ask(&form("tk")).await.0, 403);
    let mut statuses = Vec::new();
    for _ in 0..200 {
        statuses.push(rig.ask(&form("tk")).await.0);
    }
    assert!(statuses.contains(&429), "guesses are limited");
}

// Date is T, and the validators are those of a pull.
#[tokio::test(start_paused = true)]
async fn a_push_has_the_validators_of_its_topic_and_the_date_of_its_item() {
    let rig = Rig::new().await;
    assert_eq!(ask(&rig, TOPIC, None, &[]).await.0, 202);
    rig.wait(3600).await;
    rig.net.taken();
    rig.add(1).await;
    let pushes = rig.net.pushes();
    let record = rig.store.feed(rig.feed).await.unwrap();
    let view = crate::feed::view::View::all(rig.feed, crate::feed::order::Order::MODIFIED);
    let pull = crate::readers::ReadRequest::page(view, Representation::ATOM, "", "", 50).unwrap();
    let etag = rig.hub.shared.readers.etag(&pull, record.head(), "");
    let at = std::time::UNIX_EPOCH + std::time::Duration::from_secs(record.last_t.secs());
    let date = httpdate::fmt_http_date(at);
    let push = &pushes[0];
    assert_eq!(push.header("etag"), etag);
    assert_eq!(
        (push.header("last-modified"), push.header("date")),
        (&*date, &*date)
    );
    // Of a part of what is to come nothing is said but its date.
    let rig = Rig::with(crate::hub::Config {
        push_items_max: 1,
        ..crate::hub::Config::default()
    })
    .await;
    assert_eq!(ask(&rig, TOPIC, None, &[]).await.0, 202);
    rig.wait(1).await;
    rig.net.taken();
    rig.add_all(1..=2).await;
    let pushes = rig.net.pushes();
    let tags: Vec<_> = pushes
        .iter()
        .map(|push| push.header("etag").is_empty())
        .collect();
    assert_eq!(tags, [true, false]);
    assert!(pushes.iter().all(|push| !push.header("date").is_empty()));
}

// LEGACY A-14: Prosody takes nothing that says it is older than what it has.
#[tokio::test(start_paused = true)]
async fn a_late_find_is_dated_for_old_clients_alone() {
    for (more, is_dated) in [(vec![("hub.verify", "async")], true), (vec![], false)] {
        let rig = Rig::new().await;
        rig.add(1).await;
        assert_eq!(ask(&rig, TOPIC, None, &more).await.0, 202);
        // Its publisher dates it to 2001.
        let (.., body) = pushed(&rig, 2).await;
        let entry = body.split("<entry").nth(1).unwrap();
        let updated = entry.split("<updated>").nth(1).unwrap();
        assert_eq!(updated.starts_with("2026-"), is_dated, "{entry}");
        assert!(entry.contains("<published>2001-"), "{entry}");
    }
}

// P-22: what was named as the second way is gone after the first has failed.
#[tokio::test(start_paused = true)]
async fn a_wrong_challenge_goes_on_asynchronously_where_that_is_named() {
    for (verify, first, last) in [("sync,async", 202, true), ("sync", 409, false)] {
        let rig = Rig::new().await;
        rig.net
            .on_verify(|_| crate::hub::tests::rig::Reply::body("no challenge"));
        let (status, said) = ask(&rig, TOPIC, None, &[("hub.verify", verify)]).await;
        assert_eq!(status, first, "{verify}: {said}");
        rig.net.willing();
        rig.wait(3600).await;
        assert_eq!(rig.counts().active == 1, last, "{verify}");
    }
    let rig = Rig::new().await;
    rig.net
        .on_verify(|_| crate::hub::tests::rig::Reply::status(404));
    assert_eq!(
        ask(&rig, TOPIC, None, &[("hub.verify", "sync,async")])
            .await
            .0,
        409
    );
}

// A view for ordinary readers never tells what is gone, in whatever form it is pushed.
#[tokio::test(start_paused = true)]
async fn a_preference_for_json_pushes_what_the_topic_shows() {
    let classic = format!("{BASE}/classic.rss");
    let smart = format!("{BASE}.atom?order=modified");
    let announce = [("deletions", "announce")];
    for (topic, more, tells) in [
        (&classic, &[][..], false),
        (&classic, &announce[..], true),
        (&smart, &[], true),
    ] {
        let rig = Rig::new().await;
        let accept = Some("application/stream+json");
        assert_eq!(ask(&rig, topic, accept, more).await.0, 202);
        let (own, content_type, body) = pushed(&rig, 1).await;
        assert_eq!(own, format!("{BASE}.json?order=modified"));
        assert_eq!(content_type, Representation::JSON.content_type());
        assert!(body.contains("even 1"), "{body}");
        rig.net.taken();
        rig.commit(vec![testing::delete(1)]).await;
        let pushes = rig.net.pushes();
        assert_eq!(pushes.len(), usize::from(tells), "{topic} {more:?}");
    }
}
