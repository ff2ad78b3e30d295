//! everfeed behind a web server that stands before a blog already: the feed and everfeed's own
//! paths come to everfeed, the rest stays where it was, and nobody can say to be somebody else.

use super::{
    rig::{Deployment, READER, answer},
    servers::{APACHE, CADDY, HAPROXY, NGINX, WebServer},
};
use serde_json::Value;
use std::{
    sync::{Arc, Mutex},
    time::{Duration, Instant},
};
use testkit::{
    client::Answer,
    publisher::{Publisher, ok},
};

/// Headers of a client who wants to be somebody else.
const LIES: [&str; 10] = [
    "-H",
    "X-Forwarded-For: 192.0.2.66",
    "-H",
    "Forwarded: for=192.0.2.66;host=evil.example",
    "-H",
    "X-Real-IP: 192.0.2.66",
    "-H",
    "X-Forwarded-Host: evil.example",
    "-H",
    "X-Forwarded-Proto: gopher",
];
/// Attempts with wrong credentials after which an address certainly waits.
const ATTEMPTS: usize = 30;
/// More than a wake-up takes through a web server, and less than any time-out or poll.
const AT_ONCE: Duration = Duration::from_secs(30);

fn text(answer: &Answer) -> String {
    String::from_utf8_lossy(&answer.body).into_owned()
}

/// Everything that a configuration promises.
async fn check(server: &WebServer) {
    let deployment = Deployment::start(server).await;
    the_rest_stays_at_the_blog(&deployment).await;
    the_old_address_has_our_links(&deployment).await;
    nobody_is_believed_to_be_somebody_else(&deployment, server).await;
    whoever_tries_credentials_waits_alone(&deployment).await;
    news_are_pushed_and_held_requests_answered(&deployment).await;
    if server.lets_readers_go {
        a_reader_who_has_gone_is_not_waited_for(&deployment).await;
    }
}

async fn the_rest_stays_at_the_blog(deployment: &Deployment) {
    for path in [
        "/",
        "/about?a=%2Fb",
        "/rss.xml.gz",
        "/rss.xml/more",
        "/smarties",
        "/hub",
        "/feeds",
    ] {
        let page = deployment.get(path).await;
        let seen = text(&page).to_lowercase();
        assert_eq!(page.status, 200, "{path}: {page:?}");
        assert!(
            seen.starts_with(&format!("get {} ", path.to_lowercase())),
            "{path}: {seen}"
        );
        assert!(
            !seen.contains("everfeed"),
            "{path} is not our business: {seen}"
        );
    }
}

async fn the_old_address_has_our_links(deployment: &Deployment) {
    let polls = || {
        deployment
            .blog
            .paths()
            .iter()
            .filter(|path| *path == "/rss.xml")
            .count()
    };
    let before = polls();
    let feed = deployment.get("/rss.xml").await;
    let (own, hub) = (deployment.url("/rss.xml"), deployment.url("/smart/hub"));
    assert_eq!(
        feed.header("link"),
        format!("<{own}>; rel=\"self\", <{hub}>; rel=\"hub\""),
        "{feed:?}"
    );
    let document = text(&feed);
    assert!(
        document.contains("<title>First</title>") && document.contains(&hub),
        "{document}"
    );
    let known = format!("If-None-Match: {}", feed.header("etag"));
    let again = deployment.asked(READER, &["-H", &known, &own]).await;
    assert_eq!(again.status, 304, "{again:?}");
    assert_eq!(polls(), before, "we alone poll");
    let list = deployment.get("/smart/feeds").await;
    assert!(
        list.status == 200 && text(&list).contains("blog-rss-xml"),
        "{list:?}"
    );
}

/// Requests to an old address that everfeed passes on reach the blog, which answers with their
/// heads.
async fn nobody_is_believed_to_be_somebody_else(deployment: &Deployment, server: &WebServer) {
    let url = deployment.url("/rss.xml?of=the-blog");
    let lying: Vec<&str> = LIES.into_iter().chain([url.as_str()]).collect();
    let seen = text(&deployment.asked(READER, &lying).await).to_lowercase();
    // A web server that speaks HTTP only is itself a part of the way.
    let way = if server.speaks_proxy_protocol {
        READER.to_owned()
    } else {
        format!("{READER}, 127.0.0.1")
    };
    assert!(
        seen.contains(&format!("\r\nx-forwarded-for: {way}\r\n")),
        "{seen}"
    );
    assert!(seen.contains("\r\nx-forwarded-proto: https\r\n"), "{seen}");
    assert!(seen.contains("\r\nhost: blog.example.org"), "{seen}");
    for lie in ["192.0.2.66", "evil.example", "gopher"] {
        assert!(!seen.contains(lie), "{lie}: {seen}");
    }
    let headers: Vec<&str> = LIES.into_iter().filter(|lie| *lie != "-H").collect();
    let seen = text(
        &deployment
            .around("127.0.0.2", "/rss.xml?of=the-blog", &headers)
            .await,
    )
    .to_lowercase();
    assert!(
        seen.contains("\r\nx-forwarded-for: 127.0.0.2\r\n"),
        "{seen}"
    );
    assert!(
        !seen.contains("192.0.2.66") && !seen.contains("evil") && !seen.contains("gopher"),
        "{seen}"
    );
}

/// Failed attempts are counted by address: of the reader, not of the web server, and not of what
/// the reader says.
async fn whoever_tries_credentials_waits_alone(deployment: &Deployment) {
    let closed = deployment.url("/smart/feeds/closed.json");
    let attempt = async |reader: &str, number: usize| {
        let lie = format!("X-Forwarded-For: 192.0.2.{number}");
        let secret = format!("Authorization: Bearer no-such-token-{number}");
        deployment
            .asked(reader, &["-H", &lie, "-H", &secret, &closed])
            .await
            .status
    };
    let mut statuses = Vec::new();
    while statuses.last() != Some(&429) && statuses.len() < ATTEMPTS {
        statuses.push(attempt(READER, statuses.len()).await);
    }
    assert_eq!(
        (statuses.first(), statuses.last()),
        (Some(&401), Some(&429)),
        "{statuses:?}"
    );
    assert_eq!(attempt("127.0.0.10", 0).await, 401, "somebody else");
}

async fn news_are_pushed_and_held_requests_answered(deployment: &Deployment) {
    let pushed: Arc<Mutex<Vec<String>>> = Arc::default();
    let seen = pushed.clone();
    let subscriber = Publisher::of(move |asked| {
        if !asked.is_post() {
            let challenge = asked
                .path()
                .split("hub.challenge=")
                .nth(1)
                .and_then(|rest| rest.split('&').next());
            return ok("text/plain", challenge.unwrap_or_default());
        }
        seen.lock()
            .unwrap()
            .push(String::from_utf8_lossy(&asked.body).into_owned());
        ok("text/plain", "")
    })
    .await;
    let (topic, hub) = (deployment.url("/rss.xml"), deployment.url("/smart/hub"));
    let topic_is = format!("hub.topic={topic}");
    let callback = format!("hub.callback={}", subscriber.url("/callback"));
    let subscribe = [
        "-d",
        "hub.mode=subscribe",
        "-d",
        &topic_is,
        "-d",
        &callback,
        &hub,
    ];
    let accepted = deployment.asked(READER, &subscribe).await;
    assert_eq!(accepted.status, 202, "{accepted:?}");
    deployment
        .until("the subscription is verified", async || {
            deployment.has_subscription().await
        })
        .await;

    let page = deployment
        .get("/rss.xml?since=cursor:&timeout=0&callback=f")
        .await;
    let script = text(&page);
    let json = script
        .split_once('(')
        .and_then(|(_, rest)| rest.rsplit_once(')'))
        .expect("a script")
        .0;
    let page: Value = serde_json::from_str(json).unwrap();
    let last = page["last_cursor"].as_str().unwrap();
    let held = deployment.curl(
        READER,
        &[&deployment.url(&format!("/rss.xml?since=cursor:{last}&timeout=100"))],
    );
    deployment
        .until("the request is held", async || deployment.held().await == 1)
        .await;
    deployment.posts.publish("Second");
    let published = Instant::now();
    let url = format!("hub.url={topic}");
    let hint = deployment
        .asked(READER, &["-d", "hub.mode=publish", "-d", &url, &hub])
        .await;
    assert_eq!(hint.status, 204, "{hint:?}");
    let news = answer(held).await;
    assert!(
        news.status == 200 && text(&news).contains("Second"),
        "{news:?}"
    );
    assert!(!text(&news).contains("First"), "{news:?}");
    deployment
        .until("the push is here", async || {
            !pushed.lock().unwrap().is_empty()
        })
        .await;
    assert!(published.elapsed() < AT_ONCE, "{:?}", published.elapsed());
    let document = pushed.lock().unwrap()[0].clone();
    assert!(
        document.contains("<rss") && document.contains("Second"),
        "{document}"
    );
    assert!(
        text(&deployment.get("/rss.xml").await).contains("Second"),
        "plain readers have it, too"
    );
}

async fn a_reader_who_has_gone_is_not_waited_for(deployment: &Deployment) {
    // Beyond everything that there is.
    let url = deployment.url("/rss.xml?since=time:2100-01-01&timeout=100");
    for version in ["--http1.1", "--http2"] {
        let mut curl = deployment.curl(READER, &[version, &url]);
        deployment
            .until("the request is held", async || deployment.held().await == 1)
            .await;
        curl.kill().unwrap();
        curl.wait().unwrap();
        deployment
            .until(&format!("nothing is held after {version}"), async || {
                deployment.held().await == 0
            })
            .await;
    }
}

#[tokio::test]
async fn nginx_hands_the_feed_to_everfeed_and_the_rest_to_the_blog() {
    check(&NGINX).await;
}

#[tokio::test]
async fn caddy_hands_the_feed_to_everfeed_and_the_rest_to_the_blog() {
    check(&CADDY).await;
}

#[tokio::test]
async fn haproxy_hands_the_feed_to_everfeed_and_the_rest_to_the_blog() {
    check(&HAPROXY).await;
}

#[tokio::test]
async fn apache_hands_the_feed_to_everfeed_and_the_rest_to_the_blog() {
    check(&APACHE).await;
}

/// Seconds of a long poll that outlasts the time-outs that web servers have when nobody sets them
/// (60).
const LONG_SECS: u64 = 70;

#[tokio::test]
#[ignore = "takes more than a minute"]
async fn a_long_poll_outlasts_the_usual_time_outs_of_all_of_them() {
    let waits = async |server: &WebServer| {
        let deployment = Deployment::start(server).await;
        let url = deployment.url(&format!(
            "/rss.xml?since=time:2100-01-01&timeout={LONG_SECS}"
        ));
        let began = Instant::now();
        let page = deployment.asked(READER, &["-m", "100", &url]).await;
        assert_eq!(page.status, 200, "{page:?}");
        let secs = began.elapsed().as_secs();
        assert!((LONG_SECS..LONG_SECS + 30).contains(&secs), "{secs}");
    };
    tokio::join!(
        waits(&NGINX),
        waits(&CADDY),
        waits(&HAPROXY),
        waits(&APACHE)
    );
}
