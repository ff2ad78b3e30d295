//! Origins that are down, slow or broken: whose fault it is, in a line, and nothing that looks
//! whole.

use super::rig::{Origin, Sidecar};
use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};
use testkit::{place::free_address, wait::until};
use tokio::sync::Barrier;

#[tokio::test(flavor = "multi_thread")]
async fn an_origin_that_cannot_be_reached_is_named_as_the_one_at_fault() {
    let sidecar = Sidecar::before(free_address(), "").await;
    let got = sidecar.get("/").await;
    assert!(got.starts_with("HTTP/1.1 502 "), "{got}");
    assert!(
        got.contains("the server behind this proxy cannot be reached"),
        "{got}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn an_origin_that_does_not_answer_is_given_up() {
    let sidecar = Sidecar::start("head_secs = 1\nidle_secs = 1", |_, mut origin| async move {
        let head = origin.head().await.unwrap();
        if head.contains("/half") {
            origin
                .write("HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhalf")
                .await;
        }
        std::future::pending::<()>().await;
    })
    .await;
    let got = sidecar.get("/").await;
    assert!(
        got.starts_with("HTTP/1.1 504 ") && got.contains("did not begin to answer within 1 s"),
        "{got}"
    );
    let half = sidecar.get("/half").await;
    assert!(
        half.starts_with("HTTP/1.1 200 ") && half.ends_with("half"),
        "the connection ends in the middle: {half}"
    );
    let slow = "POST /x HTTP/1.1\r\nHost: x\r\nContent-Length: 10\r\nConnection: close\r\n\r\nhalf";
    let got = sidecar.exchange(slow).await;
    assert!(
        got.starts_with("HTTP/1.1 408 ") && got.contains("the body of the request did not come"),
        "{got}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn answers_that_are_none_are_bad_gateways() {
    let sidecar = Sidecar::start("", |_, mut origin| async move {
        let head = origin.head().await.unwrap();
        match head.split(' ').nth(1).unwrap() {
            "/garbage" => origin.write("SMTP ready\r\n\r\n").await,
            "/nothing" => {}
            "/long" => {
                origin.write("HTTP/1.1 200 OK\r\n").await;
                for n in 0..40_000 {
                    origin
                        .write(format!("X-{n}: {}\r\n", "x".repeat(100)))
                        .await;
                }
            }
            "/interim" => loop {
                origin.write("HTTP/1.1 102 Processing\r\n\r\n").await;
                tokio::task::yield_now().await;
                if origin.is_closed() {
                    return;
                }
            },
            "/upgraded" => origin
                .write(
                    "HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\n",
                )
                .await,
            "/cut" => {
                origin
                    .write("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhel")
                    .await;
            }
            _ => unreachable!(),
        }
    })
    .await;
    for target in ["/garbage", "/nothing", "/long", "/interim", "/upgraded"] {
        let got = sidecar.get(target).await;
        assert!(
            got.starts_with("HTTP/1.1 502 ") && got.contains("the server behind this proxy"),
            "{target}: {got}"
        );
    }
    let cut = sidecar.get("/cut").await;
    assert!(
        cut.starts_with("HTTP/1.1 200 ") && !cut.contains("\r\n0\r\n"),
        "{cut}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn an_answer_whose_end_nobody_knows_is_the_fault_of_the_origin() {
    let sidecar = Sidecar::start("", |_, mut origin| async move {
        while let Some(head) = origin.head().await {
            let (lines, body) = match head.split(' ').nth(1).unwrap() {
                "/both" => (
                    "Content-Length: 3\r\nTransfer-Encoding: chunked",
                    "5\r\nhello\r\n0\r\n\r\n",
                ),
                "/other" => (
                    "Transfer-Encoding: chunked\r\nContent-Length: 3",
                    "5\r\nhello\r\n0\r\n\r\n",
                ),
                "/gzip" => ("Transfer-Encoding: gzip", "hello"),
                "/doubled" => ("Transfer-Encoding: chunked, chunked", "0\r\n\r\n"),
                "/two" => (
                    "Transfer-Encoding: gzip\r\nTransfer-Encoding: chunked",
                    "0\r\n\r\n",
                ),
                "/lengths" => ("Content-Length: 3\r\nContent-Length: 5", "hello"),
                "/list" => ("Content-Length: 5, 5", "hello"),
                "/word" => ("Content-Length: five", "hello"),
                "/minus" => ("Content-Length: -5", "hello"),
                _ => ("Content-Length: 5", "hello"),
            };
            origin
                .write(format!("HTTP/1.1 200 OK\r\n{lines}\r\n\r\n{body}"))
                .await;
            if head.starts_with("GET /gzip") {
                return;
            }
        }
    })
    .await;
    for target in [
        "/both", "/other", "/gzip", "/doubled", "/two", "/lengths", "/word", "/minus",
    ] {
        let got = sidecar.get(target).await;
        assert!(
            got.starts_with("HTTP/1.1 502 ")
                && got.contains("the server behind this proxy gave no proper answer"),
            "{target}: {got}"
        );
    }
    assert!(
        sidecar
            .get("/both")
            .await
            .contains("its answer has Content-Length and Transfer-Encoding")
    );
    assert!(
        sidecar.get("/good").await.ends_with("hello"),
        "what is left of a bad answer is no other one"
    );
    let twice = sidecar.get("/list").await.to_lowercase();
    assert!(
        twice.ends_with("hello") && twice.contains("\r\ncontent-length: 5\r\n"),
        "{twice}"
    );
    // Nothing follows, so nothing can be cut.
    let head = "HEAD /both HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n";
    assert!(sidecar.exchange(head).await.starts_with("HTTP/1.1 200 "));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_get_is_repeated_when_its_connection_was_just_closed_and_a_post_is_not() {
    static ASKED: AtomicUsize = AtomicUsize::new(0);
    async fn closes_after_every_second(_: usize, mut origin: Origin) {
        while origin.head().await.is_some() {
            if ASKED.fetch_add(1, Ordering::Relaxed) % 2 == 1 {
                return;
            }
            origin
                .write("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
                .await;
        }
    }
    let sidecar = Sidecar::start("", closes_after_every_second).await;
    assert!(sidecar.get("/1").await.ends_with("ok"));
    assert!(
        sidecar.get("/2").await.ends_with("ok"),
        "it is asked for once more"
    );
    assert_eq!(ASKED.load(Ordering::Relaxed), 3);
    let got = sidecar
        .exchange("POST /3 HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\nConnection: close\r\n\r\nx")
        .await;
    assert!(got.starts_with("HTTP/1.1 502 "), "{got}");
    assert_eq!(ASKED.load(Ordering::Relaxed), 4);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_get_is_repeated_by_a_new_connection_when_all_that_were_kept_are_closed() {
    // Each connection has one answer, and three are kept.
    let all = Arc::new(Barrier::new(3));
    let sidecar = Sidecar::start("", move |_, mut origin| {
        let all = all.clone();
        async move {
            let head = origin.head().await.unwrap();
            if head.contains("/first") {
                all.wait().await;
            }
            origin
                .write("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
                .await;
            origin.head().await;
        }
    })
    .await;
    let firsts = [
        sidecar.get("/first"),
        sidecar.get("/first"),
        sidecar.get("/first"),
    ];
    for got in futures_util::future::join_all(firsts).await {
        assert!(got.ends_with("ok"), "{got}");
    }
    for _ in 0..3 {
        let got = sidecar.get("/again").await;
        assert!(got.ends_with("ok"), "{got}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_idle_connection_gives_way_to_a_request_that_an_origin_of_one_worker_has_not_begun() {
    let (worker, connections) = (
        Arc::new(tokio::sync::Mutex::new(())),
        Arc::new(AtomicUsize::new(0)),
    );
    // Less than the time for which an idle connection is kept otherwise.
    let sidecar = Sidecar::start("head_secs = 2", move |number, mut origin| {
        let (worker, connections) = (worker.clone(), connections.clone());
        async move {
            connections.store(number + 1, Ordering::Relaxed);
            let _working = worker.lock().await;
            while origin.head().await.is_some() {
                // Nobody is answered before somebody else waits.
                while connections.load(Ordering::Relaxed) < 2 {
                    tokio::time::sleep(Duration::from_millis(5)).await;
                }
                origin
                    .write("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
                    .await;
            }
        }
    })
    .await;
    let sidecar = Arc::new(sidecar);
    let readers = (0..6).map(|_| {
        let sidecar = sidecar.clone();
        tokio::spawn(async move {
            let mut reader = sidecar.connect().await;
            for n in 0..10 {
                reader
                    .write(format!("GET /{n} HTTP/1.1\r\nHost: x\r\n\r\n"))
                    .await;
                let head = reader.head().await.unwrap();
                assert!(head.starts_with("HTTP/1.1 200 "), "{n}: {head}");
                assert_eq!(reader.bytes(2).await, b"ok");
            }
        })
    });
    for reader in readers.collect::<Vec<_>>() {
        reader.await.unwrap();
    }
    assert_eq!(sidecar.heads().len(), 60, "each request is sent once");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_page_that_is_only_slow_leaves_the_others_their_connections() {
    static CONNECTIONS: AtomicUsize = AtomicUsize::new(0);
    let sidecar = Sidecar::start("", |number, mut origin| async move {
        CONNECTIONS.fetch_max(number + 1, Ordering::Relaxed);
        while let Some(head) = origin.head().await {
            if head.contains("/slow") {
                std::future::pending::<()>().await;
            }
            origin
                .write("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
                .await;
        }
    })
    .await;
    let mut slow = sidecar.connect().await;
    slow.write("GET /slow HTTP/1.1\r\nHost: x\r\n\r\n").await;
    let mut reader = sidecar.connect().await;
    let (began, mut requests) = (tokio::time::Instant::now(), 0);
    // Long enough for the slow one to have waited long.
    while requests < 500 || began.elapsed() < Duration::from_secs(1) {
        reader.write("GET /fast HTTP/1.1\r\nHost: x\r\n\r\n").await;
        assert!(reader.head().await.unwrap().starts_with("HTTP/1.1 200 "));
        assert_eq!(reader.bytes(2).await, b"ok");
        requests += 1;
    }
    let connections = CONNECTIONS.load(Ordering::Relaxed);
    assert!(
        connections * 10 < requests,
        "{connections} connections for {requests} requests"
    );
}

/// A sidecar before an origin that ends each of its connections with an answer, but answers `/ok`
/// as often as it is asked.
async fn before_one_that_ends_with(answer: &'static str) -> Sidecar {
    Sidecar::start("", move |_, mut origin| async move {
        while let Some(head) = origin.head().await {
            if !head.contains(" /ok ") {
                return origin.write(answer).await;
            }
            origin
                .write("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
                .await;
        }
    })
    .await
}

#[tokio::test(flavor = "multi_thread")]
async fn what_came_of_an_answer_that_broke_off_arrives() {
    for answer in [
        "HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nonly",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nonly\r\n5\r\nhe",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nonly\r\nzz\r\n",
    ] {
        // On a new connection, and on those by which something was answered.
        let sidecar = before_one_that_ends_with(answer).await;
        for number in 0..50 {
            let got = sidecar.get("/broken").await;
            assert!(
                got.starts_with("HTTP/1.1 200 ") && got.contains("only"),
                "{number} {answer:?}: {got:?}"
            );
            assert!(sidecar.get("/ok").await.ends_with("ok"));
        }
    }
}

// On one thread: so a head and the end behind it come together.
#[tokio::test]
async fn nothing_is_repeated_of_which_an_answer_has_begun() {
    for (answer, status) in [
        ("HTTP/1.1 200 OK\r\nX-A: ", "502"),
        ("garbage\r\n\r\n", "502"),
        (
            "HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n",
            "502",
        ),
        ("HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n", "502"),
        ("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n", "502"),
        (
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
            "502",
        ),
        ("", "502"),
    ] {
        // On a new connection, and on one by which something was answered.
        for first in ["", "/ok"] {
            let sidecar = before_one_that_ends_with(answer).await;
            if !first.is_empty() {
                assert!(sidecar.get(first).await.ends_with("ok"));
            }
            let got = sidecar
                .exchange("DELETE /x HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
                .await;
            assert_eq!(got.get(9..12), Some(status), "{answer:?} {first}: {got}");
            let asked = sidecar
                .heads()
                .iter()
                .filter(|head| head.starts_with("DELETE /x "))
                .count();
            // A connection that is closed without a word may have been closed before the request
            // came.
            let times = if answer.is_empty() && !first.is_empty() {
                2
            } else {
                1
            };
            assert_eq!(asked, times, "{answer:?} {first}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn no_more_requests_than_may_be_are_at_the_origin_and_none_goes_round() {
    let sidecar = Sidecar::start("requests_max = 1", |_, mut origin| async move {
        origin.head().await;
        std::future::pending::<()>().await;
    })
    .await;
    let mut first = sidecar.connect().await;
    first.write("GET /1 HTTP/1.1\r\nHost: x\r\n\r\n").await;
    until("it is asked", async || !sidecar.heads().is_empty()).await;
    let got = sidecar.get("/2").await;
    assert!(
        got.starts_with("HTTP/1.1 503 ") && got.to_lowercase().contains("retry-after: "),
        "{got}"
    );
    let round = "GET / HTTP/1.1\r\nHost: x\r\nVia: 1.1 everfeed, 1.1 everfeed\r\nVia: 2 everfeed\r\nConnection: close\r\n\r\n";
    let got = sidecar.exchange(round).await;
    assert!(got.starts_with("HTTP/1.1 508 "), "{got}");
}
