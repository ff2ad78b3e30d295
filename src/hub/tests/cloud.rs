//! Listeners of rssCloud (LEGACY C-4): how they register, and how they are told.

use super::rig::{Call, DAY_SECS, Reply, Rig};
use crate::{
    auth::AccessSettings,
    hub::Config,
    store::subscriptions::{Algo, Target},
};
use bytes::Bytes;
use http::{Method, Response};

const FEED: &str = "http://feeds.example:8080/feeds/blog/classic.rss";

const LISTENER: [(&str, &str); 6] = [
    ("notifyProcedure", ""),
    ("domain", "reader.example"),
    ("port", "5337"),
    ("path", "/told"),
    ("protocol", "http-post"),
    ("url1", FEED),
];

/// The answer of a listener that wants to be told.
fn echoing(call: &Call) -> Reply {
    call.param("challenge")
        .map_or(Reply::status(204), Reply::body)
}

async fn register(rig: &Rig, form: &[(&str, &str)]) -> (u16, String) {
    let answer = rig.ask_at("/pleaseNotify", form).await;
    (answer.status().as_u16(), text(&answer))
}

fn text(answer: &Response<Bytes>) -> String {
    assert_eq!(answer.headers()["content-type"], "text/xml; charset=utf-8");
    String::from_utf8(answer.body().to_vec()).unwrap()
}

fn without(name: &str) -> Vec<(&'static str, &'static str)> {
    LISTENER
        .into_iter()
        .filter(|(known, _)| *known != name)
        .collect()
}

/// Registered, and nothing of that in what is taken later.
async fn registered() -> Rig {
    let rig = Rig::new().await;
    rig.net.on(echoing);
    let (status, said) = register(&rig, &LISTENER).await;
    assert_eq!(status, 200, "{said}");
    rig.net.taken();
    rig
}

#[tokio::test(start_paused = true)]
async fn a_listener_with_a_domain_echoes_a_challenge_before_it_is_answered() {
    let rig = Rig::new().await;
    rig.net.on(echoing);
    let (status, said) = register(&rig, &LISTENER).await;
    assert_eq!(status, 200);
    assert!(
        said.contains(
            "<notifyResult success=\"true\" msg=\"http://reader.example:5337/told is notified"
        ),
        "{said}"
    );
    let [question] = &rig.net.taken()[..] else {
        panic!("one question")
    };
    assert_eq!(question.method, Method::GET);
    assert!(
        question
            .url
            .starts_with("http://reader.example:5337/told?url="),
        "{}",
        question.url
    );
    assert_eq!(question.param("url").as_deref(), Some(FEED));
    assert!(question.param("challenge").unwrap().len() >= 32);
    assert_eq!(rig.counts().active, 1);
}

#[tokio::test(start_paused = true)]
async fn a_listener_without_a_domain_is_tried_where_its_request_came_from() {
    let open = Config {
        callbacks_private: true,
        ..Config::default()
    };
    let rig = Rig::with(open).await;
    rig.net.on(|_| Reply::status(200));
    let (status, said) = register(&rig, &without("domain")).await;
    assert_eq!(status, 200, "{said}");
    let [tried] = &rig.net.taken()[..] else {
        panic!("one try")
    };
    assert_eq!(
        (tried.method.clone(), &*tried.url),
        (Method::POST, "http://192.0.2.1:5337/told")
    );
    assert_eq!(
        &tried.body[..],
        b"url=http%3A%2F%2Ffeeds.example%3A8080%2Ffeeds%2Fblog%2Fclassic.rss"
    );
    rig.net.on(|_| Reply::status(500));
    let (status, said) =
        register(&rig, &[&without("domain")[..], &[("url2", FEED)]].concat()).await;
    assert_eq!(status, 409);
    assert!(
        said.contains("success=\"false\"") && said.contains("500"),
        "{said}"
    );
    assert_eq!(rig.counts().active, 1, "the registration before goes on");
}

#[tokio::test(start_paused = true)]
async fn a_listener_that_does_not_confirm_is_asked_once_and_told_so() {
    for reply in [
        || Reply::status(404),
        || Reply::body("no"),
        || Reply::status(503),
        Reply::down,
    ] {
        let rig = Rig::new().await;
        rig.net.on(move |_| reply());
        let (status, said) = register(&rig, &LISTENER).await;
        assert_eq!(status, 409, "{said}");
        assert!(said.contains("success=\"false\""), "{said}");
        rig.wait(DAY_SECS).await;
        assert_eq!(rig.net.taken().len(), 1);
        assert!(rig.hub.counts().is_empty());
    }
}

#[tokio::test(start_paused = true)]
async fn one_notification_speaks_of_all_that_changed_and_holds_nothing_of_it() {
    let rig = registered().await;
    rig.add_all(1..=1000).await;
    rig.wait(60).await;
    let told = rig.net.taken();
    let [told] = &told[..] else {
        panic!("{} notifications", told.len())
    };
    assert_eq!(
        (told.method.clone(), &*told.url),
        (Method::POST, "http://reader.example:5337/told")
    );
    assert_eq!(
        told.header("content-type"),
        "application/x-www-form-urlencoded"
    );
    assert_eq!(
        &told.body[..],
        b"url=http%3A%2F%2Ffeeds.example%3A8080%2Ffeeds%2Fblog%2Fclassic.rss"
    );
    assert_eq!(
        (told.header("link"), told.header("smart-feed-last")),
        ("", "")
    );
    assert_eq!(rig.acked().await, rig.head().await);
    rig.edit(7, "Seven").await;
    rig.wait(1).await;
    assert_eq!(rig.net.taken().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_notification_that_is_not_taken_is_tried_again_and_410_is_the_end() {
    let rig = registered().await;
    rig.net.on(|_| Reply::status(500));
    rig.add(1).await;
    rig.wait(1).await;
    assert_eq!((rig.net.taken().len(), rig.counts().failing), (1, 1));
    let rig = rig.killed().await;
    rig.net.on(|_| Reply::status(200));
    rig.wait(600).await;
    assert_eq!((rig.net.taken().len(), rig.counts().failing), (1, 0));
    rig.net.on(|_| Reply::status(410));
    rig.add(2).await;
    rig.wait(1).await;
    assert_eq!(rig.net.taken().len(), 1);
    assert!(rig.sub().await.is_none());
}

#[tokio::test(start_paused = true)]
async fn a_registration_lasts_for_twenty_five_hours_unless_it_is_renewed() {
    let rig = registered().await;
    let until = rig.sub().await.unwrap().lease.unwrap();
    assert_eq!(until.terms.secs, 90_000);
    rig.wait(DAY_SECS).await;
    assert_eq!(register(&rig, &LISTENER).await.0, 200);
    assert_eq!(rig.subs().await.len(), 1, "it is the same");
    rig.wait(89_000).await;
    rig.net.taken();
    rig.add(1).await;
    rig.wait(1).await;
    assert_eq!(rig.net.taken().len(), 1);
    rig.wait(1000 + 700).await;
    assert!(rig.sub().await.is_none());
    rig.add(2).await;
    rig.wait(60).await;
    assert!(rig.net.taken().is_empty(), "neither asked nor told");
}

#[tokio::test(start_paused = true)]
async fn a_listener_and_a_callback_at_one_url_are_two() {
    let rig = registered().await;
    rig.net.on(
        |call| match call.param("hub.challenge").or(call.param("challenge")) {
            Some(challenge) => Reply::body(challenge),
            None => Reply::status(200),
        },
    );
    let form = [
        ("hub.mode", "subscribe"),
        ("hub.topic", FEED),
        ("hub.callback", "http://reader.example:5337/told"),
    ];
    assert_eq!(rig.ask(&form).await.0, 202);
    rig.wait(1).await;
    rig.net.taken();
    rig.add(1).await;
    rig.wait(1).await;
    let mut told: Vec<bool> = rig
        .net
        .taken()
        .iter()
        .map(|call| call.body.starts_with(b"url="))
        .collect();
    told.sort_unstable();
    assert_eq!(told, [false, true]);
    assert!(
        rig.subs()
            .await
            .iter()
            .any(|(sub, _)| matches!(&sub.target, Target::Callback(it) if it.algo == Algo::Sha256))
    );
}

#[tokio::test(start_paused = true)]
async fn what_cannot_be_registered_is_refused_with_a_reason() {
    let rig = Rig::new().await;
    let with =
        |name: &'static str, value: &'static str| [&without(name)[..], &[(name, value)]].concat();
    for (form, status, why) in [
        (with("protocol", "soap"), 400, "does not speak SOAP"),
        (
            with("protocol", "xml-rpc"),
            400,
            "`notifyProcedure` is missing",
        ),
        (
            with("domain", "127.0.0.1"),
            400,
            "`domain` is at an address",
        ),
        (
            with("domain", "[::ffff:10.0.0.1]"),
            400,
            "`domain` is at an address",
        ),
        (without("domain"), 400, "`domain` is at an address"),
        (with("port", "25"), 400, "`port` is at a port"),
        (with("url1", "http://elsewhere.example/rss"), 404, "url1"),
        (without("url1"), 400, "`url1` is missing"),
    ] {
        let (found, said) = register(&rig, &form).await;
        assert_eq!(found, status, "{said}");
        assert!(
            said.contains("success=\"false\"") && said.contains(why),
            "{said}"
        );
    }
    rig.protect(AccessSettings::Users);
    assert_eq!(register(&rig, &LISTENER).await.0, 401);
    assert!(rig.net.taken().is_empty() && rig.hub.counts().is_empty());
    let get = http::Request::get("/pleaseNotify")
        .body(Bytes::new())
        .unwrap();
    assert_eq!(rig.hub.handle(get, None).await.status(), 405);
    let off = Rig::with(Config {
        rsscloud: false,
        ..Config::default()
    })
    .await;
    assert_eq!(register(&off, &LISTENER).await.0, 404);
}

#[tokio::test(start_paused = true)]
async fn a_listener_whose_feed_is_forgotten_or_closed_to_it_is_told_nothing() {
    let rig = registered().await;
    rig.protect(AccessSettings::Users);
    rig.add(1).await;
    rig.wait(1).await;
    assert!(rig.sub().await.is_none());
    let other = registered().await;
    other.withdraw();
    other.forget().await;
    other.wait(60).await;
    assert!(other.hub.counts().is_empty());
    assert!(rig.net.taken().is_empty() && other.net.taken().is_empty());
}

fn call(method: &str, protocol: &str) -> String {
    let value = |value: &str| format!("<param><value>{value}</value></param>");
    let list = format!("<array><data><value>{FEED}</value></data></array>");
    let params = [
        value(method),
        value("<i4>5337</i4>"),
        value("/RPC2"),
        value(protocol),
        value(&list),
        value("reader.example"),
    ]
    .concat();
    format!(
        "<?xml version=\"1.0\"?><methodCall><methodName>rssCloud.pleaseNotify</methodName><params>{params}</params></methodCall>"
    )
}

async fn post_call(rig: &Rig, call: String) -> (u16, String) {
    let request = http::Request::post("/pleaseNotify")
        .header("content-type", "text/xml")
        .body(Bytes::from(call));
    let answer = rig.hub.handle(request.unwrap(), None).await;
    (answer.status().as_u16(), text(&answer))
}

const DONE: &str = "<methodResponse><params><param><value><boolean>1</boolean></value></param></params></methodResponse>";

// LEGACY C-4: by XML-RPC, too, each way.
#[tokio::test(start_paused = true)]
async fn a_listener_registers_and_is_told_by_calls_of_xml_rpc() {
    let rig = Rig::new().await;
    rig.net.on(|_| Reply::body(DONE));
    let (status, said) = post_call(&rig, call("river.told", "xml-rpc")).await;
    assert_eq!(
        (status, said.contains("<boolean>1</boolean>")),
        (200, true),
        "{said}"
    );
    rig.net.taken();
    rig.add(1).await;
    rig.wait(1).await;
    let calls = rig.net.taken();
    let [told] = &calls[..] else {
        panic!("{} calls", calls.len())
    };
    assert_eq!(
        (told.method.clone(), &*told.url),
        (Method::POST, "http://reader.example:5337/RPC2")
    );
    assert_eq!(told.header("content-type"), "text/xml; charset=utf-8");
    let body = String::from_utf8(told.body.to_vec()).unwrap();
    assert!(
        body.contains("<methodName>river.told</methodName>") && body.contains(FEED),
        "{body}"
    );
    // A fault is no yes, whatever its status; it is tried again.
    rig.net
        .on(|_| Reply::body("<methodResponse><fault><value/></fault></methodResponse>"));
    rig.add(2).await;
    rig.wait(1).await;
    assert_eq!(rig.counts().failing, 1);
    rig.net.on(|_| Reply::body(DONE));
    rig.wait(60).await;
    assert_eq!(rig.counts().failing, 0);
    // A form may register a method, too, and a call a form.
    let by_form = [
        &without("protocol")[1..],
        &[("protocol", "xml-rpc"), ("notifyProcedure", "other.told")],
    ]
    .concat();
    assert_eq!(register(&rig, &by_form).await.0, 200);
    rig.net.on(echoing);
    let (_, said) = post_call(&rig, call("", "http-post")).await;
    assert!(said.contains("<boolean>1</boolean>"), "{said}");
}

#[tokio::test(start_paused = true)]
async fn a_call_that_cannot_be_meant_is_answered_by_a_fault() {
    let rig = Rig::new().await;
    for bad in [
        String::new(),
        "<methodCall><methodName>rssCloud.ping</methodName></methodCall>".to_owned(),
        call("river.told", "soap"),
        call("", "xml-rpc"),
        "<!DOCTYPE x><methodCall/>".to_owned(),
    ] {
        let (status, said) = post_call(&rig, bad.clone()).await;
        assert_eq!(
            (status, said.contains("<fault>")),
            (200, true),
            "{bad}: {said}"
        );
    }
    // A service that does not know the method says so.
    rig.net.on(|_| Reply::body("<html>hello</html>"));
    let (_, said) = post_call(&rig, call("river.told", "xml-rpc")).await;
    assert!(said.contains("<fault>"), "{said}");
    assert_eq!(rig.counts().active, 0);
}
