//! Places at the origin of a site: one client cannot take them from the others, whatever it does
//! with its own.

use super::rig::{Origin, Sidecar, Wire};
use http::Method;
use testkit::{client::ask, wait::until};
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};

/// The client with most places, and another one.
const GREEDY: &str = "203.0.113.9";
const OTHER: &str = "198.51.100.7";
/// Places of the site, of which one client keeps four fifths.
const PLACES: usize = 10;
const KEPT: usize = 8;

/// everfeed behind a trusted proxy, and before an origin that answers `/` only. The targets that
/// reach the origin come by the channel.
async fn behind(site: &str) -> (Sidecar, UnboundedReceiver<String>) {
    let (send, receive) = unbounded_channel();
    let sidecar = Sidecar::start(site, move |_, mut origin: Origin| {
        let send = send.clone();
        async move {
            while let Some(head) = origin.head().await {
                let target = head.split(' ').nth(1).unwrap().to_owned();
                match &*target {
                    "/" => origin.write("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello").await,
                    "/socket" => {
                        origin
                            .write("HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n")
                            .await;
                    }
                    "/stream" | "/flood" => {
                        origin.write("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n").await;
                    }
                    _ => {}
                }
                let is_flood = target == "/flood";
                // Whoever waits for it has gone at the end of a test.
                let _ = send.send(target);
                while is_flood && !origin.is_closed() {
                    origin.write(format!("10000\r\n{}\r\n", "x".repeat(0x10000))).await;
                }
            }
        }
    })
    .await;
    (sidecar, receive)
}

const TRUSTED: &str = "trusted_proxies = [\"127.0.0.1/32\"]\n[site]\nrequests_max = 10\n";

/// A request of a client that keeps its place.
async fn begin(sidecar: &Sidecar, target: &str, client: &str) -> Wire {
    let (method, more) = match target {
        "/up" => ("POST", "Content-Length: 1000000\r\n\r\nabc"),
        "/socket" => (
            "GET",
            "Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Key: k\r\n\r\n",
        ),
        _ => ("GET", "\r\n"),
    };
    let mut wire = sidecar.connect().await;
    wire.write(format!(
        "{method} {target} HTTP/1.1\r\nHost: x\r\nX-Forwarded-For: {client}\r\n{more}"
    ))
    .await;
    wire
}

/// The status of the front page for a client.
async fn front_page(sidecar: &Sidecar, client: &str) -> String {
    let got = sidecar
        .exchange(format!(
            "GET / HTTP/1.1\r\nHost: x\r\nX-Forwarded-For: {client}\r\nConnection: close\r\n\r\n"
        ))
        .await;
    got.get(9..12).unwrap_or_default().to_owned()
}

/// The figure of a metric of the one site.
async fn figure(sidecar: &Sidecar, name: &str) -> String {
    let answer = ask(
        sidecar.app.admin_address(),
        Method::GET,
        "/metrics",
        &[],
        "",
    )
    .await
    .unwrap();
    let text = String::from_utf8(answer.body.to_vec()).unwrap();
    let line = text
        .lines()
        .find(|line| line.starts_with(&format!("everfeed_site_places_{name}{{site=")));
    line.and_then(|line| line.rsplit(' ').next())
        .unwrap_or_else(|| panic!("{name}: {text}"))
        .to_owned()
}

async fn others_are_answered_beside(
    target: &str,
) -> (Sidecar, Vec<Wire>, UnboundedReceiver<String>) {
    others_are_answered_beside_clients(target, |_| GREEDY.to_owned()).await
}

/// Likewise beside clients that are numbered.
async fn others_are_answered_beside_clients(
    target: &str,
    client: impl Fn(usize) -> String,
) -> (Sidecar, Vec<Wire>, UnboundedReceiver<String>) {
    let (sidecar, mut reached) = behind(TRUSTED).await;
    let mut held = Vec::new();
    // More would be refused for a second: the client has just lost a place.
    for no in 0..=KEPT {
        held.push(begin(&sidecar, target, &client(no)).await);
        assert_eq!(reached.recv().await.as_deref(), Some(target));
    }
    for _ in 0..3 {
        assert_eq!(front_page(&sidecar, OTHER).await, "200", "{target}");
    }
    assert_eq!(figure(&sidecar, "max").await, PLACES.to_string());
    assert_eq!(figure(&sidecar, "refused_total").await, "0");
    // The first one goes for the last of the same client, and one for the other client while the
    // share is taken.
    let taken_away: usize = figure(&sidecar, "taken_away_total").await.parse().unwrap();
    assert!(taken_away >= 2, "{target}: {taken_away}");
    (sidecar, held, reached)
}

#[tokio::test(flavor = "multi_thread")]
async fn slow_uploads_and_hanging_pages_of_one_client_make_room_with_a_word() {
    for target in ["/up", "/hang"] {
        let (_sidecar, mut held, _reached) = others_are_answered_beside(target).await;
        let head = held[0].head().await.unwrap().to_lowercase();
        assert!(
            head.starts_with("http/1.1 503 ") && head.contains("retry-after: "),
            "{target}: {head}"
        );
        let why = held[0].until("\n").await;
        assert!(why.contains("most of them from this client"), "{why}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn web_sockets_and_streams_of_one_client_end_for_others() {
    for target in ["/socket", "/stream"] {
        let (_sidecar, mut held, _reached) = others_are_answered_beside(target).await;
        let rest = held[0].rest().await;
        assert!(
            rest.starts_with("HTTP/1.1 ") && !rest.ends_with("0\r\n\r\n"),
            "{target}: {rest}"
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_reader_that_takes_nothing_of_its_answers_makes_room_too() {
    let (sidecar, held, _reached) = others_are_answered_beside("/flood").await;
    let in_use: usize = figure(&sidecar, "in_use").await.parse().unwrap();
    assert!(in_use <= KEPT, "{in_use}");
    drop(held);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_gets_on_stays_and_a_client_with_one_place_keeps_it() {
    let (sidecar, mut reached) = behind(TRUSTED).await;
    let mut single = begin(&sidecar, "/stream", OTHER).await;
    reached.recv().await;
    let mut held = Vec::new();
    for _ in 0..KEPT {
        held.push(begin(&sidecar, "/stream", GREEDY).await);
        reached.recv().await;
    }
    single.until("hello").await;
    assert_eq!(front_page(&sidecar, "198.51.100.8").await, "200");
    assert!(
        held[0].rest().await.contains("hello"),
        "the first one of the greedy client has ended"
    );
    assert!(
        tokio::time::timeout(std::time::Duration::ZERO, single.rest())
            .await
            .is_err(),
        "the one of another client goes on"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_local_address_that_is_no_trusted_proxy_loses_nothing_and_a_refusal_is_counted() {
    let (sidecar, mut reached) = behind("requests_max = 2").await;
    let mut held = Vec::new();
    for _ in 0..2 {
        held.push(begin(&sidecar, "/hang", GREEDY).await);
        reached.recv().await;
    }
    assert_eq!(front_page(&sidecar, OTHER).await, "503");
    for (name, expect) in [
        ("in_use", "2"),
        ("max", "2"),
        ("refused_total", "1"),
        ("taken_away_total", "0"),
    ] {
        assert_eq!(figure(&sidecar, name).await, expect, "{name}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn networks_of_one_owner_make_room_for_others_whatever_they_hold() {
    for target in ["/up", "/hang", "/socket", "/stream", "/flood"] {
        let site = |no: usize| format!("2001:db8:7:{no:x}::1");
        others_are_answered_beside_clients(target, site).await;
    }
    let neighbours = |no: usize| format!("203.0.113.{no}");
    others_are_answered_beside_clients("/up", neighbours).await;
    let mapped = |no: usize| format!("::ffff:203.0.113.{no}");
    others_are_answered_beside_clients("/up", mapped).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_slowest_goes_when_none_is_free_whoever_it_is() {
    for target in ["/up", "/socket", "/stream"] {
        let (sidecar, mut reached) = behind(TRUSTED).await;
        let mut held = Vec::new();
        for no in 0..PLACES {
            let everywhere = format!("2001:db8:{no:x}::1");
            held.push(begin(&sidecar, target, &everywhere).await);
            reached.recv().await;
        }
        until("a reader gets a place", async || {
            front_page(&sidecar, OTHER).await == "200"
        })
        .await;
        assert_ne!(figure(&sidecar, "taken_away_total").await, "0", "{target}");
        if target == "/up" {
            let head = held[0].head().await.unwrap();
            assert!(head.starts_with("HTTP/1.1 503 "), "{head}");
            let why = held[0].until("\n").await;
            assert!(why.contains("this was the slowest one"), "{why}");
        }
    }
}
