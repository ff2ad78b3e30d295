//! Pings of an old blog on the host of its site: hints for its feeds, within the limits of all
//! hints; every other call is the blog's own. Row: C-3.

use super::{
    legacy::{AFTER, BEFORE, Blog, body, header},
    rig::Sidecar,
};
use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};
use testkit::wait::until;

fn call(method: &str, parameters: &[&str]) -> String {
    let parameters: String = parameters
        .iter()
        .map(|value| format!("<param><value>{value}</value></param>"))
        .collect();
    format!(
        "<?xml version=\"1.0\"?><methodCall><methodName>{method}</methodName><params>{parameters}</params></methodCall>"
    )
}

async fn post(sidecar: &Sidecar, target: &str, body: &str) -> String {
    let length = body.len();
    sidecar
        .exchange(format!(
            "POST {target} HTTP/1.1\r\nHost: blog.example\r\nContent-Type: text/xml\r\nContent-Length: {length}\r\n\
             Connection: close\r\n\r\n{body}"
        ))
        .await
}

fn is_taken(answer: &str) -> bool {
    assert!(answer.starts_with("HTTP/1.1 200 "), "{answer}");
    assert_eq!(header(answer, "content-type"), "text/xml; charset=utf-8");
    answer.contains("<name>flerror</name><value><boolean>0</boolean></value>")
}

#[tokio::test]
async fn a_ping_makes_the_feeds_of_its_blog_be_polled_soon_within_limits() {
    let blog = Blog::new(format!("{BEFORE}{AFTER}"));
    let sidecar = blog.behind("feeds = [\"/feed.xml\"]").await;
    let polls = || {
        sidecar
            .polls()
            .iter()
            .filter(|head| head.contains(" /feed.xml "))
            .count()
    };
    let before = polls();
    let ping = call(
        "weblogUpdates.ping",
        &["Old &amp; good", "http://blog.example/"],
    );
    let answer = post(&sidecar, "/RPC2", &ping).await;
    assert!(is_taken(&answer), "{answer}");
    until("it is polled", async || polls() != before).await;
    let extended = call(
        "weblogUpdates.extendedPing",
        &[
            "x",
            "http://blog.example/",
            "http://blog.example/post",
            "http://blog.example/feed.xml",
            "tag",
        ],
    );
    assert!(is_taken(&post(&sidecar, "/RPC2", &extended).await));
    // Without end: each is answered, and the blog is not polled for each.
    for _ in 0..20 {
        let answer = post(&sidecar, "/RPC2", &ping).await;
        assert!(answer.starts_with("HTTP/1.1 200 "), "{answer}");
    }
    assert!(polls() < before + 8, "{}", polls());
    for (nothing, why) in [
        (
            call("weblogUpdates.ping", &["x", "http://elsewhere.example/"]),
            "no blog at this address",
        ),
        (
            call("weblogUpdates.ping", &["x", "nonsense"]),
            "names a blog",
        ),
        (call("weblogUpdates.ping", &[]), "names a blog"),
        (
            call(
                "weblogUpdates.ping",
                &["x", &format!("http://blog.example/{}", "x".repeat(1100))],
            ),
            "1024 bytes",
        ),
    ] {
        let answer = post(&sidecar, "/RPC2", &nothing).await;
        assert!(
            !is_taken(&answer) && answer.contains(why),
            "{why}: {answer}"
        );
    }
    for bad in [
        ping.replace(
            "<methodCall>",
            "<!DOCTYPE x [<!ENTITY a \"b\">]><methodCall>",
        ),
        ping.replace("</methodCall>", ""),
        call("weblogUpdates.other", &[]),
    ] {
        let answer = post(&sidecar, "/RPC2", &bad).await;
        assert!(answer.contains("<fault>"), "{answer}");
    }
    let long = call(
        "weblogUpdates.ping",
        &[&"x".repeat(70 << 10), "http://blog.example/"],
    );
    assert!(
        post(&sidecar, "/RPC2", &long)
            .await
            .starts_with("HTTP/1.1 413 ")
    );
}

#[tokio::test]
async fn calls_that_are_no_pings_are_the_blogs_own() {
    let heard = Arc::new(AtomicUsize::new(0));
    let count = heard.clone();
    let sidecar = Sidecar::start("", move |_, mut origin| {
        let count = count.clone();
        async move {
            while let Some(head) = origin.head().await {
                let length = head
                    .to_lowercase()
                    .lines()
                    .find_map(|line| line.strip_prefix("content-length: ")?.parse().ok())
                    .unwrap_or(0);
                let body = origin.bytes(length).await;
                count.fetch_add(body.len(), Ordering::Relaxed);
                origin
                    .write("HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nblog")
                    .await;
            }
        }
    })
    .await;
    let post_call = call("metaWeblog.newPost", &[&"x".repeat(100_000)]);
    let ping = call("weblogUpdates.ping", &["x", "http://blog.example/"]);
    let mut bytes = 0;
    for (target, sent) in [
        ("/RPC2", post_call.as_str()),
        ("/RPC2", "no call at all"),
        ("/RPC2", ""),
        ("/xmlrpc.php", ping.as_str()),
        ("/RPC2/", ping.as_str()),
    ] {
        assert_eq!(
            body(&post(&sidecar, target, sent).await),
            "blog",
            "{target}"
        );
        bytes += sent.len();
        assert_eq!(
            heard.load(Ordering::Relaxed),
            bytes,
            "{target}: it comes whole"
        );
    }
    assert_eq!(body(&sidecar.get("/RPC2").await), "blog");
    let waits = format!(
        "POST /RPC2 HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{post_call}",
        post_call.len()
    );
    assert!(sidecar.exchange(waits).await.ends_with("blog"));
    let without = Sidecar::start("pings = false", |_, origin| {
        origin.always("HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 4\r\n\r\nblog")
    })
    .await;
    assert_eq!(body(&post(&without, "/RPC2", &ping).await), "blog");
}
