//! Storms of clients and publishers against the real program on loopback: what they may cost is
//! bounded, and whoever behaves is served meanwhile. Memory is what the system counts of the
//! process.

use http::Method;
use std::{
    fmt::Write as _,
    net::{Ipv4Addr, SocketAddr},
    process::{Child, Command, Stdio},
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};
use tempfile::TempDir;
use testkit::{
    client::ask,
    publisher::{Answer, Asked, Publisher, ok, with_headers},
};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpStream,
    time::{Instant, sleep, timeout},
};

/// Longer than anything here takes.
const PATIENCE: Duration = Duration::from_secs(120);
/// Between two looks at something that is about to happen.
const GLANCE: Duration = Duration::from_millis(50);
const MIB: u64 = 1 << 20;

/// The program, run by a shell that may set limits first.
struct Running {
    program: Child,
    consumers: SocketAddr,
    operator: SocketAddr,
    _folder: TempDir,
}

impl Running {
    /// Starts it over one feed. `limits` are commands of the shell, `server` and `feed` further
    /// lines of the configuration.
    async fn start(url: &str, limits: &str, server: &str, feed: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let free_port = || {
            std::net::TcpListener::bind("127.0.0.1:0")
                .unwrap()
                .local_addr()
                .unwrap()
        };
        let (consumers, operator) = (free_port(), free_port());
        let text = format!(
            "[server]\nlisten = \"{consumers}\"\nadmin_listen = \"{operator}\"\npublic_url = \"http://{consumers}\"\n{server}\n\
             [store]\npath = {:?}\ncache_bytes = 4194304\n[[feed]]\nname = \"blog\"\nurl = \"{url}\"\nimport = {{ pages_max = 0 }}\n{feed}\n",
            folder.path().join("everfeed.redb").display().to_string()
        );
        let file = folder.path().join("everfeed.toml");
        std::fs::write(&file, text).unwrap();
        let script = format!("set -e; {limits} exec \"$0\" serve --config \"$1\"");
        let program = Command::new("sh")
            .args(["-c", &script, env!("CARGO_BIN_EXE_everfeed")])
            .arg(&file)
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let running = Self {
            program,
            consumers,
            operator,
            _folder: folder,
        };
        running
            .until("/feeds/blog.json?max=1&order=-modified", 200)
            .await;
        running
    }

    /// Waits until a page answers so.
    async fn until(&self, target: &str, status: u16) {
        let answered = async {
            loop {
                let answer = ask(self.consumers, Method::GET, target, &[], "").await;
                if answer.is_some_and(|answer| answer.status == status) {
                    return;
                }
                sleep(GLANCE).await;
            }
        };
        timeout(PATIENCE, answered).await.expect("it answers");
    }

    /// Bytes of memory that the process had at most, since it started or since
    /// [`Running::forget_peak`].
    fn peak_bytes(&self) -> u64 {
        self.memory_bytes("VmHWM:")
    }

    /// Bytes of memory by a line of the system's.
    fn memory_bytes(&self, line: &str) -> u64 {
        let status =
            std::fs::read_to_string(format!("/proc/{}/status", self.program.id())).unwrap();
        let line = status
            .lines()
            .find_map(|known| known.strip_prefix(line))
            .unwrap();
        line.split_whitespace()
            .next()
            .unwrap()
            .parse::<u64>()
            .unwrap()
            * 1024
    }

    /// Bytes of memory that the process has taken. Pages of its program, which the system keeps as
    /// it likes, are not among them.
    fn taken_bytes(&self) -> u64 {
        self.memory_bytes("RssAnon:")
    }

    /// Waits until the process has given memory back, down to so many bytes. The allocator keeps
    /// pages for some ten seconds.
    async fn until_below(&self, bytes: u64) {
        let given_back = async {
            while self.taken_bytes() > bytes {
                sleep(GLANCE).await;
            }
        };
        let in_time = timeout(PATIENCE, given_back).await;
        let left = self.taken_bytes() / MIB;
        in_time.unwrap_or_else(|_| panic!("{left} MiB are kept, and not {} at most", bytes / MIB));
    }

    fn forget_peak(&self) {
        std::fs::write(format!("/proc/{}/clear_refs", self.program.id()), "5").unwrap();
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.program.kill();
        let _ = self.program.wait();
    }
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
    let running = Running::start(&publisher.url("/rss"), "", &server, "").await;
    running.forget_peak();
    let (before, taken) = (running.peak_bytes(), running.taken_bytes());
    let silent = silent_clients(running.consumers, CLIENTS).await;
    // Another page than all of theirs: it is rendered while they hold what there is.
    let asked = Instant::now();
    running
        .until("/feeds/blog.atom?since=time:5&max=20&timeout=0", 200)
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
    let most = running.peak_bytes().saturating_sub(before);
    // A page is rendered from as much that was read of the store, a few at once; each of the
    // clients holds 4 MiB and more otherwise.
    eprintln!(
        "{CLIENTS} clients that read nothing cost {} MiB",
        most / MIB
    );
    assert!(most < 120 * MIB, "{} MiB", most / MIB);
    drop(silent);
    // The rendered pages that are kept.
    running.until_below(taken + 16 * MIB).await;
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
        .map(|feed| {
            let url = url(feed);
            format!("[[feed]]\nname = \"f{feed}\"\nurl = \"{url}\"\nimport = {{ pages_max = 0 }}\n")
        })
        .collect();
    let feeds = format!(
        "{feeds}[upstream]\ndocuments_bytes_max = {}\nbody_bytes_max = {}\n",
        10 * MIB,
        10 * MIB
    );
    let running = Running::start(&url(0), "", "", &feeds).await;
    for feed in 1..FEEDS {
        running
            .until(&format!("/feeds/f{feed}.json?max=1&order=-modified"), 200)
            .await;
    }
    let most = running.peak_bytes();
    eprintln!("{FEEDS} documents of 4 MiB at once cost {} MiB", most / MIB);
    // That they are taken in one after the other is checked where it is decided, in
    // `layers/collect`.
    assert!(most < 200 * MIB, "{} MiB", most / MIB);
    let program = running.memory_bytes("RssFile:");
    running.until_below(most.saturating_sub(program) / 2).await;
}

#[tokio::test]
async fn idle_connections_leave_room_for_the_operator_and_for_polls() {
    const FILES: usize = 600;
    let publisher = Publisher::of(|_| ok("application/rss+xml", rss("blog", 3, 10))).await;
    let limits = format!("ulimit -n {FILES};");
    let feed = "poll = { min_secs = 1, max_secs = 1 }";
    let running = Running::start(&publisher.url("/rss"), &limits, "", feed).await;
    let mut idle = Vec::new();
    for _ in 0..FILES {
        idle.push(TcpStream::connect(running.consumers).await.unwrap());
    }
    let polls = publisher.requests().len();
    let live = timeout(
        PATIENCE,
        ask(running.operator, Method::GET, "/live", &[], ""),
    )
    .await
    .unwrap();
    assert_eq!(live.unwrap().status, 200, "the operator is served");
    let polled = async {
        while publisher.requests().len() < polls + 3 {
            sleep(GLANCE).await;
        }
    };
    timeout(PATIENCE, polled).await.expect("it polls on");
    // Whoever asks for nothing is hung up on when others need the place.
    running
        .until("/feeds/blog.json?max=1&order=-modified", 200)
        .await;
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
    let running = Running::start(&publisher.url("/rss"), &limits, "", "").await;
    let page = ask(running.consumers, Method::GET, "/feeds/blog.json", &[], "")
        .await
        .unwrap();
    let page = String::from_utf8(page.body.to_vec()).unwrap();
    let cursor = page
        .split(r#""last_cursor":""#)
        .nth(1)
        .and_then(|rest| rest.split('"').next())
        .unwrap();
    let poll = format!(
        "GET /feeds/blog.json?since=cursor:{cursor}&timeout=300 HTTP/1.1\r\nHost: {}\r\n\r\n",
        running.consumers
    );
    let mut waiting = Vec::new();
    for _ in 0..120 {
        let mut stream = TcpStream::connect(running.consumers).await.unwrap();
        stream.write_all(poll.as_bytes()).await.unwrap();
        waiting.push(stream);
    }
    for _ in 0..5 {
        running
            .until("/feeds/blog.json?max=1&order=-modified", 200)
            .await;
    }
    // Some are held, and the others are told at once that there is no room.
    let (mut held, mut told) = (0, 0);
    for stream in &mut waiting {
        let mut answer = [0; 64];
        match timeout(GLANCE, stream.read(&mut answer)).await {
            Err(_) => held += 1,
            Ok(read) => {
                told += usize::from(answer[..read.unwrap_or(0)].starts_with(b"HTTP/1.1 503"));
            }
        }
    }
    assert!(held > 0 && told > 0, "{held} held, {told} told");
}

#[tokio::test]
async fn a_limit_on_the_size_of_files_is_told_and_ends_nothing() {
    // Blocks of 512 or 1,024 bytes, as the shell has it: the store does not hold the second
    // document in either case.
    const BLOCKS: usize = 6000;
    let publisher = Publisher::of(|_| ok("application/rss+xml", rss("blog", 3, 10))).await;
    let feed = "poll = { min_secs = 1, max_secs = 1 }";
    let running = Running::start(
        &publisher.url("/rss"),
        &format!("ulimit -f {BLOCKS};"),
        "",
        feed,
    )
    .await;
    publisher.says(ok("application/rss+xml", rss("blog", 22, 400_000)));
    let told = async {
        loop {
            let live = ask(running.operator, Method::GET, "/live", &[], "")
                .await
                .expect("it lives");
            if live.status == 503 {
                return String::from_utf8_lossy(&live.body).into_owned();
            }
            sleep(GLANCE).await;
        }
    };
    let told = timeout(PATIENCE, told).await.expect("it is told");
    assert!(told.contains("File too large"), "{told}");
    running
        .until("/feeds/blog.json?max=1&order=-modified", 200)
        .await;
}

#[tokio::test]
async fn an_answer_of_interim_heads_without_end_is_cut() {
    let publisher = Publisher::of(|_| ok("application/rss+xml", rss("blog", 3, 10))).await;
    let running = Running::start(
        &publisher.url("/rss"),
        "",
        "",
        "poll = { min_secs = 1, max_secs = 1 }",
    )
    .await;
    let hint = b"HTTP/1.1 103 Early Hints\r\nlink: </a>\r\n\r\n".repeat(100);
    publisher.does(move |_| Answer::Endless(Vec::new(), hint.clone()));
    let failed = async {
        loop {
            let status = ask(running.operator, Method::GET, "/status", &[], "")
                .await
                .unwrap();
            let status: serde_json::Value = serde_json::from_slice(&status.body).unwrap();
            if status["feeds"][0]["failures"].as_u64().unwrap() > 0 {
                return status["feeds"][0]["fault"]["whose"]
                    .as_str()
                    .unwrap()
                    .to_owned();
            }
            sleep(GLANCE).await;
        }
    };
    assert_eq!(
        timeout(PATIENCE, failed).await.expect("the poll ends"),
        "upstream"
    );
    publisher.says(with_headers(
        200,
        &[("content-type", "application/rss+xml")],
        rss("blog", 4, 10),
    ));
    let healed = async {
        loop {
            let page = ask(
                running.consumers,
                Method::GET,
                "/feeds/blog.json?since=cursor:&timeout=0",
                &[],
                "",
            )
            .await;
            let page: serde_json::Value = serde_json::from_slice(&page.unwrap().body).unwrap();
            if page["items"].as_array().unwrap().len() == 4 {
                return;
            }
            sleep(GLANCE).await;
        }
    };
    timeout(PATIENCE, healed).await.expect("it polls on");
}

/// Lines of the configuration for callbacks on this machine and clients behind a proxy.
const PROXIES: &str = "trusted_proxies = [\"127.0.0.1/32\"]";
const HUB: &str = "poll = { min_secs = 1, max_secs = 1 }\n[hub]\ncallbacks_private = true";

/// Asks the hub to subscribe a callback, as a client of this address; tells the status.
async fn subscribe(running: &Running, client: &str, callback: &str) -> u16 {
    let topic = format!(
        "http://{}/feeds/blog.atom?order=modified",
        running.consumers
    );
    let form = format!("hub.mode=subscribe&hub.topic={topic}&hub.callback={callback}");
    let headers = [
        ("content-type", "application/x-www-form-urlencoded"),
        ("x-forwarded-for", client),
    ];
    let answer = timeout(
        PATIENCE,
        ask(running.consumers, Method::POST, "/hub", &headers, &form),
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
async fn until_active(running: &Running, active: u64) {
    let grown = async {
        loop {
            let status = ask(running.operator, Method::GET, "/status", &[], "")
                .await
                .unwrap();
            let status: serde_json::Value = serde_json::from_slice(&status.body).unwrap();
            if status["feeds"][0]["subscribers"]["active"]
                .as_u64()
                .unwrap()
                >= active
            {
                return;
            }
            sleep(GLANCE).await;
        }
    };
    timeout(PATIENCE, grown).await.expect("they are verified");
}

#[tokio::test(flavor = "multi_thread")]
async fn slow_callbacks_on_many_hosts_delay_no_healthy_one() {
    /// Longer than a healthy callback may wait, and as long as a place of a slow one is taken.
    const SLOW: Duration = Duration::from_secs(9);
    const SLOW_HOSTS: usize = 15;
    const SLOW_EACH: usize = 20;
    const WELL: usize = 24;
    let publisher = Publisher::of(|_| ok("application/rss+xml", rss("blog", 3, 10))).await;
    let running = Running::start(&publisher.url("/rss"), "", PROXIES, HUB).await;
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
        assert_eq!(subscribe(&running, "192.0.2.1", &callback).await, 202);
    }
    for n in 0..SLOW_HOSTS * SLOW_EACH {
        let callback = url(
            format!("127.0.0.{}", 2 + n % SLOW_HOSTS),
            format!("/slow/{n}"),
        );
        let client = format!("192.0.2.{}", 10 + n % 10);
        assert_eq!(subscribe(&running, &client, &callback).await, 202);
    }
    until_active(&running, (WELL + SLOW_HOSTS * SLOW_EACH) as u64).await;
    for posts in [4, 5] {
        let before = well.load(Ordering::Relaxed);
        publisher.says(ok("application/rss+xml", rss("blog", posts, 10)));
        let first = async {
            while well.load(Ordering::Relaxed) == before {
                sleep(Duration::from_millis(5)).await;
            }
        };
        timeout(PATIENCE, first).await.expect("it is pushed");
        let began = Instant::now();
        let taken = async {
            while well.load(Ordering::Relaxed) < before + WELL {
                sleep(Duration::from_millis(5)).await;
            }
        };
        timeout(PATIENCE, taken)
            .await
            .expect("each healthy callback has its push");
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
    let running = Arc::new(Running::start(&publisher.url("/rss"), "", PROXIES, HUB).await);
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
        let (running, base) = (running.clone(), base.clone());
        clients.spawn(async move {
            let mut refused = 0;
            for n in 0..HOPELESS / 20 {
                let host =
                    base.replace("0.0.0.0", &format!("127.0.2.{}", 2 + (n + client) % HOSTS));
                let callback = format!("{host}no/{client}-{n}");
                let status = subscribe(&running, &format!("198.51.100.{client}"), &callback).await;
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
        subscribe(&running, "203.0.113.1", &callback).await,
        202,
        "a newcomer finds room"
    );
    until_active(&running, 1).await;
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
        running.peak_bytes() < 200 * MIB,
        "{} MiB",
        running.peak_bytes() / MIB
    );
}
