//! Storms of clients and publishers against the real program on loopback: what they may cost is
//! bounded, and whoever behaves is served meanwhile. Memory is what the system counts of the
//! process.

use crate::EVERFEED;
use http::Method;
use rand::{RngExt as _, SeedableRng as _, rngs::StdRng};
use std::{
    fmt::Write as _,
    net::{Ipv4Addr, SocketAddr},
    process::Command,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};
use testkit::{
    client::{ask, get},
    place::{Place, feed},
    process::{MIB, Process},
    publisher::{Answer, Asked, Publisher, ok, with_headers},
    wait::{GLANCE, PATIENCE, until},
};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpStream,
    time::{Instant, timeout},
};

/// The page that shows that readers are served.
const NEWEST: &str = "/feeds/blog.json?max=1&order=-modified";

/// Starts the program over one feed, by a shell that may set limits first. `limits` are commands of
/// the shell, `server` and `lines` further lines of the configuration.
async fn start(url: &str, limits: &str, server: &str, lines: &str) -> Process {
    let place = Place::free();
    let server = format!("public_url = \"http://{}\"\n{server}", place.consumers);
    let rest = format!("cache_bytes = 4194304\n{}", feed("blog", url, lines));
    place.configure(&server, &rest);
    let script = format!("set -e; {limits} exec \"$0\" serve --config \"$1\"");
    let mut program = Command::new("sh");
    program.args(["-c", &script, EVERFEED]).arg(place.file());
    let mut process = Process::new(EVERFEED, place, "off");
    process.start_as(&mut program);
    process.place.answers(NEWEST, 200).await;
    process
}

/// The operator's status of the one feed.
async fn feed_status(process: &Process) -> serde_json::Value {
    get(process.place.operator, "/status").await.json()["feeds"][0].take()
}

/// A feed of so many posts with texts of so many bytes.
fn rss(name: &str, posts: usize, text_bytes: usize) -> Vec<u8> {
    let mut out = format!("<rss version=\"2.0\"><channel><title>{name}</title>");
    for post in (1..=posts).rev() {
        let words = format!("word {post} ").repeat(text_bytes / 8);
        let _ = write!(
            out,
            "<item><guid>{name}-{post}</guid><title>Post {post}</title><description>{words}</description></item>"
        );
    }
    (out + "</channel></rss>").into_bytes()
}

/// Clients that ask for a large page each, no two for the same, and read nothing of it.
async fn silent_clients(at: SocketAddr, clients: usize) -> Vec<TcpStream> {
    let mut open = Vec::new();
    for client in 0..clients {
        let mut stream = TcpStream::connect(at).await.unwrap();
        let target = format!(
            "/feeds/blog.atom?since=time:{}&max=1000&timeout=0",
            1000 + client
        );
        let request = format!("GET {target} HTTP/1.1\r\nhost: {at}\r\n\r\n");
        stream.write_all(request.as_bytes()).await.unwrap();
        open.push(stream);
    }
    open
}

#[tokio::test]
async fn answers_that_nobody_reads_fill_no_memory_and_starve_nobody() {
    const CLIENTS: usize = 80;
    const ANSWERS_MIB: u64 = 32;
    let publisher = Publisher::of(|_| ok("application/rss+xml", rss("blog", 200, 20 << 10))).await;
    let server = format!(
        "answers_bytes_max = {}\nrender_cache_bytes = {}",
        ANSWERS_MIB * MIB,
        8 * MIB
    );
    let process = start(&publisher.url("/rss"), "", &server, "").await;
    process.forget_peak();
    let (before, taken) = (process.peak_bytes(), process.taken_bytes());
    let silent = silent_clients(process.place.consumers, CLIENTS).await;
    // Another page than all of theirs: it is rendered while they hold what there is.
    let asked = Instant::now();
    process
        .place
        .answers("/feeds/blog.atom?since=time:5&max=20&timeout=0", 200)
        .await;
    eprintln!(
        "a reader that reads was answered after {} ms",
        asked.elapsed().as_millis()
    );
    // Until every one of them has its answer, or a refusal, or was hung up on.
    for stream in &silent {
        timeout(PATIENCE, stream.readable())
            .await
            .expect("it is answered")
            .unwrap();
    }
    let most = process.peak_bytes().saturating_sub(before);
    // A page is rendered from as much that was read of the store, a few at once; each of the
    // clients holds 4 MiB and more otherwise.
    eprintln!(
        "{CLIENTS} clients that read nothing cost {} MiB",
        most / MIB
    );
    assert!(most < 120 * MIB, "{} MiB", most / MIB);
    drop(silent);
    // The rendered pages that are kept.
    process.until_below(taken + 16 * MIB).await;
}

#[tokio::test]
async fn large_documents_at_once_are_all_taken_in() {
    const FEEDS: usize = 12;
    let document =
        ok("application/rss+xml", rss("blog", 40, 100 << 10)).after(Duration::from_secs(1));
    let publisher =
        Publisher::start_at(Ipv4Addr::UNSPECIFIED.into(), move |_| document.clone()).await;
    // A host each, or no more than two would be asked at once.
    let url = |feed: usize| {
        publisher
            .url(&format!("/f{feed}"))
            .replace("0.0.0.0", &format!("127.0.0.{}", feed + 2))
    };
    let feeds: String = (1..FEEDS)
        .map(|n| feed(&format!("f{n}"), &url(n), ""))
        .collect();
    let feeds = format!(
        "{feeds}[upstream]\ndocuments_bytes_max = {}\nbody_bytes_max = {}\n",
        10 * MIB,
        10 * MIB
    );
    let process = start(&url(0), "", "", &feeds).await;
    for feed in 1..FEEDS {
        process
            .place
            .answers(&format!("/feeds/f{feed}.json?max=1&order=-modified"), 200)
            .await;
    }
    let most = process.peak_bytes();
    eprintln!("{FEEDS} documents of 4 MiB at once cost {} MiB", most / MIB);
    // That they are taken in one after the other is checked where it is decided, in
    // `layers/collect`.
    assert!(most < 200 * MIB, "{} MiB", most / MIB);
    let program = process.memory_bytes("RssFile:");
    process.until_below(most.saturating_sub(program) / 2).await;
}

#[tokio::test]
async fn idle_connections_leave_room_for_the_operator_and_for_polls() {
    const FILES: usize = 600;
    let publisher = Publisher::of(|_| ok("application/rss+xml", rss("blog", 3, 10))).await;
    let limits = format!("ulimit -n {FILES};");
    let feed = "poll = { min_secs = 1, max_secs = 1 }";
    let process = start(&publisher.url("/rss"), &limits, "", feed).await;
    let mut idle = Vec::new();
    for _ in 0..FILES {
        idle.push(TcpStream::connect(process.place.consumers).await.unwrap());
    }
    let polls = publisher.requests().len();
    let live = timeout(
        PATIENCE,
        ask(process.place.operator, Method::GET, "/live", &[], ""),
    )
    .await
    .unwrap();
    assert_eq!(live.unwrap().status, 200, "the operator is served");
    until("it polls on", async || {
        publisher.requests().len() >= polls + 3
    })
    .await;
    // Whoever asks for nothing is hung up on when others need the place.
    process.place.answers(NEWEST, 200).await;
    let mut end = Vec::new();
    let first = timeout(PATIENCE, idle[0].read_to_end(&mut end))
        .await
        .expect("it is hung up on");
    assert_eq!(first.unwrap_or(0), 0);
}

#[tokio::test]
async fn waiting_requests_leave_connections_to_those_that_are_answered_at_once() {
    const FILES: usize = 256;
    let publisher = Publisher::of(|_| ok("application/rss+xml", rss("blog", 3, 10))).await;
    let limits = format!("ulimit -n {FILES};");
    let process = start(&publisher.url("/rss"), &limits, "", "").await;
    let page = get(process.place.consumers, "/feeds/blog.json")
        .await
        .json();
    let cursor = page["last_cursor"].as_str().unwrap();
    let poll = format!(
        "GET /feeds/blog.json?since=cursor:{cursor}&timeout=300 HTTP/1.1\r\nHost: {}\r\n\r\n",
        process.place.consumers
    );
    let mut waiting = Vec::new();
    for _ in 0..120 {
        let mut stream = TcpStream::connect(process.place.consumers).await.unwrap();
        stream.write_all(poll.as_bytes()).await.unwrap();
        waiting.push(stream);
    }
    for _ in 0..5 {
        process.place.answers(NEWEST, 200).await;
    }
    // Some are held, and the others are told at once that there is no room.
    until("some are told that there is no room", async || {
        let mut start = [0; 12];
        for stream in &waiting {
            let peeked = timeout(GLANCE, stream.peek(&mut start)).await;
            if peeked.is_ok_and(|read| read.is_ok_and(|read| start[..read] == *b"HTTP/1.1 503")) {
                return true;
            }
        }
        false
    })
    .await;
    let status = get(process.place.operator, "/status").await.json();
    assert_ne!(status["waiters"], 0, "some are held");
}

#[tokio::test]
async fn a_limit_on_the_size_of_files_is_told_and_ends_nothing() {
    // Blocks of 512 or 1,024 bytes, as the shell has it: the store does not hold the second
    // document in either case.
    const BLOCKS: usize = 6000;
    let publisher = Publisher::of(|_| ok("application/rss+xml", rss("blog", 3, 10))).await;
    let feed = "poll = { min_secs = 1, max_secs = 1 }";
    let process = start(
        &publisher.url("/rss"),
        &format!("ulimit -f {BLOCKS};"),
        "",
        feed,
    )
    .await;
    publisher.says(ok("application/rss+xml", noise(22, 400_000)));
    let live = async || get(process.place.operator, "/live").await;
    until("it is told", async || live().await.status == 503).await;
    let told = live().await.text();
    assert!(told.contains("File too large"), "{told}");
    process.place.answers(NEWEST, 200).await;
}

/// Posts of so many letters each that cannot be packed: a store packs what repeats itself.
fn noise(posts: usize, letters: usize) -> String {
    const LETTERS: &[u8] = b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789+-";
    let mut chance = StdRng::seed_from_u64(1);
    let items: String = (0..posts)
        .map(|n| {
            let text: String = (0..letters)
                .map(|_| char::from(LETTERS[chance.random_range(0..LETTERS.len())]))
                .collect();
            format!("<item><guid>noise-{n}</guid><description>{text}</description></item>")
        })
        .collect();
    format!("<rss version=\"2.0\"><channel><title>blog</title>{items}</channel></rss>")
}

#[tokio::test]
async fn an_answer_of_interim_heads_without_end_is_cut() {
    let publisher = Publisher::of(|_| ok("application/rss+xml", rss("blog", 3, 10))).await;
    let process = start(
        &publisher.url("/rss"),
        "",
        "",
        "poll = { min_secs = 1, max_secs = 1 }",
    )
    .await;
    let hint = b"HTTP/1.1 103 Early Hints\r\nlink: </a>\r\n\r\n".repeat(100);
    publisher.does(move |_| Answer::Endless(Vec::new(), hint.clone()));
    until("the poll ends", async || {
        feed_status(&process).await["failures"] != 0
    })
    .await;
    assert_eq!(feed_status(&process).await["fault"]["whose"], "upstream");
    publisher.says(with_headers(
        200,
        &[("content-type", "application/rss+xml")],
        rss("blog", 4, 10),
    ));
    until("it polls on", async || {
        let page = get(
            process.place.consumers,
            "/feeds/blog.json?since=cursor:&timeout=0",
        )
        .await;
        page.json()["items"].as_array().unwrap().len() == 4
    })
    .await;
}

/// Lines of the configuration for callbacks on this machine and clients behind a proxy.
const PROXIES: &str = "trusted_proxies = [\"127.0.0.1/32\"]";
const HUB: &str = "poll = { min_secs = 1, max_secs = 1 }\n[hub]\ncallbacks_private = true";

/// Asks the hub to subscribe a callback, as a client of this address; tells the status.
async fn subscribe(process: &Process, client: &str, callback: &str) -> u16 {
    let topic = format!(
        "http://{}/feeds/blog.atom?order=modified",
        process.place.consumers
    );
    let form = format!("hub.mode=subscribe&hub.topic={topic}&hub.callback={callback}");
    let headers = [
        ("content-type", "application/x-www-form-urlencoded"),
        ("x-forwarded-for", client),
    ];
    let answer = timeout(
        PATIENCE,
        ask(
            process.place.consumers,
            Method::POST,
            "/hub",
            &headers,
            &form,
        ),
    )
    .await;
    answer.expect("it answers").expect("it answers").status
}

/// The challenge of a verification, which confirms it; `None` for another request.
fn confirmed(asked: &Asked) -> Option<Answer> {
    let query = asked.head.split_whitespace().nth(1)?.split_once('?')?.1;
    let challenge = query
        .split('&')
        .find_map(|pair| pair.strip_prefix("hub.challenge="))?;
    Some(ok("text/plain", challenge))
}

/// Waits until the feed has so many active subscriptions.
async fn until_active(process: &Process, active: u64) {
    until("they are verified", async || {
        let counts = &feed_status(process).await["subscribers"];
        counts["active"].as_u64().unwrap() >= active
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn slow_callbacks_on_many_hosts_delay_no_healthy_one() {
    /// Longer than a healthy callback may wait, and as long as a place of a slow one is taken.
    const SLOW: Duration = Duration::from_secs(50);
    const SLOW_HOSTS: usize = 15;
    const SLOW_EACH: usize = 20;
    const WELL: usize = 24;
    let hub = format!("{HUB}\ndeliver_secs = 60");
    let publisher = Publisher::of(|_| ok("application/rss+xml", rss("blog", 3, 10))).await;
    let process = start(&publisher.url("/rss"), "", PROXIES, &hub).await;
    let (slow, well) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let counted = (slow.clone(), well.clone());
    let callbacks = Publisher::start_at(Ipv4Addr::UNSPECIFIED.into(), move |asked| {
        confirmed(asked).unwrap_or_else(|| {
            let taken = with_headers(204, &[], "");
            let is_slow = asked.path().starts_with("/slow");
            let count = if is_slow { &counted.0 } else { &counted.1 };
            count.fetch_add(1, Ordering::Relaxed);
            if is_slow { taken.after(SLOW) } else { taken }
        })
    })
    .await;
    let url = |host: String, path: String| callbacks.url(&path).replace("0.0.0.0", &host);
    for n in 0..WELL {
        let callback = url(format!("127.0.1.{}", 2 + n % 12), format!("/well/{n}"));
        assert_eq!(subscribe(&process, "192.0.2.1", &callback).await, 202);
    }
    for n in 0..SLOW_HOSTS * SLOW_EACH {
        let callback = url(
            format!("127.0.0.{}", 2 + n % SLOW_HOSTS),
            format!("/slow/{n}"),
        );
        let client = format!("192.0.2.{}", 10 + n % 10);
        assert_eq!(subscribe(&process, &client, &callback).await, 202);
    }
    until_active(&process, (WELL + SLOW_HOSTS * SLOW_EACH) as u64).await;
    for posts in [4, 5] {
        let before = well.load(Ordering::Relaxed);
        publisher.says(ok("application/rss+xml", rss("blog", posts, 10)));
        until("it is pushed", async || {
            well.load(Ordering::Relaxed) > before
        })
        .await;
        let began = Instant::now();
        until("each healthy callback has its push", async || {
            well.load(Ordering::Relaxed) >= before + WELL
        })
        .await;
        let waited = began.elapsed();
        eprintln!(
            "{WELL} healthy callbacks beside {} slow ones: {} ms",
            SLOW_HOSTS * SLOW_EACH,
            waited.as_millis()
        );
        assert!(waited < SLOW, "none waits for a slow one: {waited:?}");
    }
    assert!(
        slow.load(Ordering::Relaxed) > 0,
        "the slow ones are pushed to, too"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn hopeless_requests_to_subscribe_shut_nobody_out_and_ask_nobody_without_end() {
    const HOPELESS: usize = 2_000;
    const HOSTS: usize = 20;
    let publisher = Publisher::of(|_| ok("application/rss+xml", rss("blog", 3, 10))).await;
    let process = Arc::new(start(&publisher.url("/rss"), "", PROXIES, HUB).await);
    let questions = Arc::new(AtomicUsize::new(0));
    let counted = questions.clone();
    let callbacks = Publisher::start_at(Ipv4Addr::UNSPECIFIED.into(), move |asked| {
        if asked.path().starts_with("/well") {
            return confirmed(asked).unwrap_or_else(|| with_headers(204, &[], ""));
        }
        counted.fetch_add(1, Ordering::Relaxed);
        with_headers(500, &[], "")
    })
    .await;
    let base = callbacks.url("/");
    let mut clients = tokio::task::JoinSet::new();
    for client in 0..20 {
        let (process, base) = (process.clone(), base.clone());
        clients.spawn(async move {
            let mut refused = 0;
            for n in 0..HOPELESS / 20 {
                let host =
                    base.replace("0.0.0.0", &format!("127.0.2.{}", 2 + (n + client) % HOSTS));
                let callback = format!("{host}no/{client}-{n}");
                let status = subscribe(&process, &format!("198.51.100.{client}"), &callback).await;
                assert!(matches!(status, 202 | 429 | 503), "{status}");
                refused += usize::from(status != 202);
            }
            refused
        });
    }
    let refused: usize = clients.join_all().await.into_iter().sum();
    let began = Instant::now();
    let callback = base.replace("0.0.0.0", "127.0.3.2") + "well";
    assert_eq!(
        subscribe(&process, "203.0.113.1", &callback).await,
        202,
        "a newcomer finds room"
    );
    until_active(&process, 1).await;
    let asked = questions.load(Ordering::Relaxed);
    eprintln!(
        "{HOPELESS} hopeless requests, {refused} refused: {asked} questions to {HOSTS} hosts; a newcomer was verified in {} ms",
        began.elapsed().as_millis()
    );
    assert!(
        asked <= 12 * HOSTS,
        "a dozen to each address at most: {asked}"
    );
    assert!(
        process.peak_bytes() < 200 * MIB,
        "{} MiB",
        process.peak_bytes() / MIB
    );
}
