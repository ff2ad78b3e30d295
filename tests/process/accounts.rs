//! Users and tokens of the real program, from the command line to the wire: every scheme, at once
//! when it is made and no more once it is taken away, for pulls and pushes; and no credential in
//! the log.
//!
//! Rows: SF-130, SF-131; LEGACY U-1, U-2, U-4, U-5, U-8, U-9.

use crate::EVERFEED;
use base64::{Engine as _, prelude::BASE64_STANDARD};
use chrono::{SecondsFormat, Utc};
use http::Method;
use serde_json::Value;
use sha1::{Digest as _, Sha1};
use std::sync::{
    Arc,
    atomic::{AtomicU16, Ordering},
};
use testkit::{
    client::{self, ask},
    place::{Place, feed},
    process::Process,
    publisher::{Publisher, ok, rss},
};

/// The login password.
const PASSWORD: &str = "öpen sesame";

/// Starts a process that serves `open` and the private feed `closed`.
async fn start(publisher: &Publisher) -> Process {
    let place = Place::free();
    let server = format!("public_url = \"http://{}/\"", place.consumers);
    let open = feed("open", &publisher.url("/open"), "");
    let closed = feed("closed", &publisher.url("/closed"), "access = \"private\"");
    let hub = "[hub]\ncallbacks_private = true\n";
    place.configure(&server, &(hub.to_owned() + &open + &closed));
    let mut process = Process::new(EVERFEED, place, "trace");
    process.start();
    process.place.answers("/feeds/open", 200).await;
    process
}

/// Runs a command that succeeds, and takes what it prints behind a word.
fn made(process: &Process, arguments: &[&str], input: &str, word: &str) -> String {
    let (code, told) = process.everfeed_told(arguments, input);
    assert_eq!(code, 0, "{told}");
    let line = told.lines().find_map(|line| line.strip_prefix(word));
    line.unwrap_or_else(|| panic!("{told}")).trim().to_owned()
}

async fn get(process: &Process, target: &str, headers: &[(&str, &str)]) -> client::Answer {
    let at = process.place.consumers;
    ask(at, Method::GET, target, headers, "").await.unwrap()
}

async fn status(process: &Process, target: &str, headers: &[(&str, &str)]) -> u16 {
    get(process, target, headers).await.status
}

async fn until(process: &Process, is_so: impl AsyncFn() -> bool) {
    process.place.until("it happens", is_so).await;
}

fn basic(user: &str, password: &str) -> String {
    format!(
        "Basic {}",
        BASE64_STANDARD.encode(format!("{user}:{password}"))
    )
}

/// `X-WSSE` over a nonce, as an old client makes it.
fn wsse(nonce: &str, password: &str) -> String {
    let created = Utc::now().to_rfc3339_opts(SecondsFormat::Secs, true);
    let digest = BASE64_STANDARD.encode(Sha1::digest(format!("{nonce}{created}{password}")));
    format!(
        "UsernameToken Username=\"alice\", PasswordDigest=\"{digest}\", Nonce=\"{nonce}\", Created=\"{created}\""
    )
}

#[tokio::test(flavor = "multi_thread")]
async fn a_user_is_known_by_every_scheme_from_its_making_to_its_removal() {
    let posts = Arc::new(AtomicU16::new(3));
    let publisher = {
        let posts = posts.clone();
        Publisher::of(move |_| rss(posts.load(Ordering::Relaxed).into())).await
    };
    let process = start(&publisher).await;
    for name in ["closed", "absent"] {
        let answer = get(&process, &format!("/feeds/{name}"), &[]).await;
        assert_eq!(answer.status, 401, "{name}");
        assert_eq!(answer.headers.get_all("www-authenticate").iter().count(), 3);
    }
    let feed_password = made(
        &process,
        &["user", "add", "alice", "--password-stdin"],
        &format!("{PASSWORD}\n"),
        "feed password",
    );
    let bearer = made(&process, &["token", "new", "alice"], "", "token  ");
    let bearer = bearer.split_whitespace().last().unwrap().to_owned();
    let (_, told) = process.everfeed(&["token", "list"]);
    assert!(
        told.contains("alice") && told.contains("bearer") && !told.contains(&bearer),
        "{told}"
    );
    let url = made(
        &process,
        &["token", "new", "alice", "--url"],
        "",
        "secret URL",
    );
    let secret = url
        .strip_prefix(&format!("http://{}", process.place.consumers))
        .unwrap()
        .to_owned();

    // Each scheme, at once.
    let with_basic = basic("alice", PASSWORD);
    let with_bearer = format!("Bearer {bearer}");
    let profile = ("authorization", "WSSE profile=\"cal\"");
    let closed = "/feeds/closed.json";
    until(&process, async || {
        status(&process, closed, &[("authorization", &with_bearer)]).await == 200
    })
    .await;
    assert_eq!(
        status(&process, closed, &[("authorization", &with_basic)]).await,
        200
    );
    // A digest of the second of the start could have been seen before it. Nothing is tried until
    // that is over: attempts that fail are counted, and slowed.
    let second = Utc::now().timestamp();
    until(&process, async || Utc::now().timestamp() > second).await;
    let signed = wsse("d36e316282959a9ed4c89851497a717f", &feed_password);
    assert_eq!(
        status(&process, closed, &[profile, ("x-wsse", &signed)]).await,
        200
    );
    assert_eq!(
        status(&process, closed, &[profile, ("x-wsse", &signed)]).await,
        401,
        "U-8"
    );
    assert_eq!(
        status(
            &process,
            closed,
            &[("authorization", &basic("alice", &feed_password))]
        )
        .await,
        401,
        "U-9"
    );
    let page = get(&process, &format!("{}/closed.json", secret), &[]).await;
    assert_eq!(page.status, 200);
    assert!(page.text().contains(&secret) && page.header("cache-control").starts_with("private"));

    // Lists and validators.
    let listed = async |headers: &[(&str, &str)]| {
        let list: Value =
            serde_json::from_slice(&get(&process, "/feeds", headers).await.body).unwrap();
        list["feeds"].as_array().unwrap().len()
    };
    assert_eq!(
        (
            listed(&[]).await,
            listed(&[("authorization", &with_basic)]).await
        ),
        (1, 2)
    );
    let etag = get(&process, closed, &[("authorization", &with_basic)])
        .await
        .header("etag")
        .to_owned();
    for (credentials, expect) in [(with_basic.as_str(), 304), ("Bearer wrong", 401)] {
        let headers = [("authorization", credentials), ("if-none-match", &etag)];
        assert_eq!(status(&process, closed, &headers).await, expect);
    }

    // A subscription, and its end.
    let reader = Publisher::of(|asked| {
        let url = url::Url::parse(&format!("http://x{}", asked.path())).unwrap();
        let challenge = url.query_pairs().find(|(name, _)| name == "hub.challenge");
        ok(
            "text/plain",
            challenge
                .map(|(_, challenge)| challenge.into_owned())
                .unwrap_or_default(),
        )
    })
    .await;
    let form = url::form_urlencoded::Serializer::new(String::new())
        .append_pair("hub.mode", "subscribe")
        .append_pair(
            "hub.topic",
            &format!(
                "http://{}/feeds/closed.atom?order=modified",
                process.place.consumers
            ),
        )
        .append_pair("hub.callback", &reader.url("/cb"))
        .finish();
    let subscribe = async |authorization: &str| {
        let headers = [
            ("content-type", "application/x-www-form-urlencoded"),
            ("authorization", authorization),
        ];
        ask(
            process.place.consumers,
            Method::POST,
            "/hub",
            &headers,
            &form,
        )
        .await
        .unwrap()
    };
    assert_eq!(subscribe("Bearer wrong").await.status, 401);
    let accepted = subscribe(&with_basic).await;
    assert_eq!(accepted.status, 202, "{}", accepted.text());
    let seen = |part: &'static str| reader.requests().iter().any(|head| head.contains(part));
    until(&process, async || seen("hub.challenge")).await;
    until(&process, async || {
        process.everfeed(&["status"]).1.contains("closed")
    })
    .await;
    posts.store(4, Ordering::Relaxed);
    let (code, told) = process.everfeed(&["poll", "closed", "--now"]);
    assert_eq!(code, 0, "{told}");
    until(&process, async || seen("POST /cb")).await;

    // Rotated, revoked, removed: each at once.
    let rotated = made(&process, &["token", "rotate", "2"], "", "secret URL");
    let rotated = rotated
        .strip_prefix(&format!("http://{}", process.place.consumers))
        .unwrap()
        .to_owned();
    assert_eq!(
        status(&process, &format!("{secret}/closed.json"), &[]).await,
        404
    );
    assert_eq!(
        status(&process, &format!("{rotated}/closed.json"), &[]).await,
        200
    );
    assert_eq!(process.everfeed(&["token", "revoke", "1"]).0, 0);
    assert_eq!(process.everfeed(&["token", "revoke", "1"]).0, 1);
    assert_eq!(
        status(&process, closed, &[("authorization", &with_bearer)]).await,
        401
    );
    assert_eq!(
        status(&process, closed, &[("authorization", &with_basic)]).await,
        200
    );
    let (code, told) = process.everfeed(&["user", "remove", "alice"]);
    assert_eq!(code, 0, "{told}");
    assert_eq!(
        status(&process, closed, &[("authorization", &with_basic)]).await,
        401
    );
    assert_eq!(
        status(&process, &format!("{rotated}/closed.json"), &[]).await,
        404
    );
    until(&process, async || seen("hub.mode=denied")).await;
    let pushes = || {
        reader
            .requests()
            .iter()
            .filter(|head| head.starts_with("POST"))
            .count()
    };
    let before = pushes();
    posts.store(5, Ordering::Relaxed);
    assert_eq!(process.everfeed(&["poll", "closed", "--now"]).0, 0);
    assert_eq!(pushes(), before);

    let log = process.place.read("log");
    assert!(log.contains("Made the user `alice`"), "the log is there");
    for hidden in [
        PASSWORD,
        &feed_password,
        &bearer,
        &with_basic[6..],
        secret.split('/').nth(2).unwrap(),
    ] {
        assert!(!log.contains(hidden), "`{hidden}` is in the log");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn users_outlive_the_process_and_are_made_without_one_too() {
    let publisher = Publisher::of(|_| rss(1)).await;
    let mut process = start(&publisher).await;
    let mut password = made(&process, &["user", "add", "alice"], "", "password ");
    assert_eq!(
        process.everfeed(&["user", "add", "alice"]).0,
        1,
        "there is one"
    );
    // A new password counts at once, and the former one no more.
    let known = async |password: &str| {
        status(
            &process,
            "/feeds/closed",
            &[("authorization", &basic("alice", password))],
        )
        .await
    };
    assert_eq!(known(&password).await, 200);
    let former = std::mem::replace(
        &mut password,
        made(&process, &["user", "password", "alice"], "", "password "),
    );
    assert_eq!((known(&former).await, known(&password).await), (401, 200));
    let (code, told) = process.everfeed_told(
        &[
            "user",
            "password",
            "alice",
            "--password-stdin",
            "--feed-password",
        ],
        "another password\n",
    );
    assert!(code == 0 && told.contains("feed password  "), "{told}");
    assert_eq!(
        (known(&password).await, known("another password").await),
        (401, 200)
    );
    assert_eq!(
        process.everfeed(&["user", "password", "bob"]).0,
        1,
        "there is none"
    );
    password = made(&process, &["user", "password", "alice"], "", "password ");
    for bad in [
        &["user", "add", "a:b"][..],
        &["user", "remove", "bob"],
        &["token", "new", "bob"],
    ] {
        assert_eq!(process.everfeed(bad).0, 1, "{bad:?}");
    }
    let (code, told) =
        process.everfeed_told(&["user", "add", "bob", "--password-stdin"], "short\n");
    assert!(code == 1 && told.contains("8 characters"), "{told}");
    process.kill();
    let (code, told) = process.everfeed_told(
        &["user", "add", "bob", "--password-stdin"],
        "correct horse\n",
    );
    assert_eq!(code, 0, "{told}");
    let (code, told) = process.everfeed(&["user", "list"]);
    assert!(
        code == 0 && told.contains("alice") && told.contains("bob"),
        "{told}"
    );
    process.start();
    process.place.answers("/feeds/open", 200).await;
    for (user, password, expect) in [
        ("alice", password.as_str(), 200),
        ("bob", "correct horse", 200),
        ("bob", "x", 401),
    ] {
        let credentials = basic(user, password);
        assert_eq!(
            status(
                &process,
                "/feeds/closed",
                &[("authorization", &credentials)]
            )
            .await,
            expect,
            "{user}"
        );
    }
    // Readers change with a reload.
    let file = std::fs::read_to_string(process.place.file()).unwrap();
    std::fs::write(
        process.place.file(),
        file.replace("access = \"private\"", "access = [\"bob\"]"),
    )
    .unwrap();
    let (code, told) = process.everfeed(&["reload"]);
    assert!(code == 0 && told.contains("feed.closed.access"), "{told}");
    for (user, password, expect) in [
        ("alice", password.as_str(), 404),
        ("bob", "correct horse", 200),
    ] {
        let credentials = basic(user, password);
        assert_eq!(
            status(
                &process,
                "/feeds/closed",
                &[("authorization", &credentials)]
            )
            .await,
            expect,
            "{user}"
        );
    }
}
