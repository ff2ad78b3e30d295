//! Requests to the origin and answers back, byte by byte.

use super::rig::{Origin, Sidecar};
use sha2::{Digest as _, Sha256};

const HELLO: &str = "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 5\r\n\r\nhello";

#[tokio::test(flavor = "multi_thread")]
async fn a_request_reaches_the_origin_as_it_was_and_its_answer_the_reader() {
    let answer = "HTTP/1.1 299 All Right\r\nX-CaSe: Kept\r\nSet-Cookie: a=1\r\nSet-Cookie: b=2\r\nContent-Type: text/x\r\n\
                  Date: Thu, 01 Jan 1970 00:00:00 GMT\r\nServer: old\r\nContent-Length: 3\r\n\r\n\x00\u{7f}!";
    let sidecar = Sidecar::start("", move |_, origin| origin.always(answer)).await;
    let target = "/%2e%2E/a;b//c/./d?x=%20&y={|}&z='";
    let got = sidecar
        .exchange(format!("PROPFIND {target} HTTP/1.1\r\nHOST: blog.example:8080\r\nX-OdD: Name\r\nAccept: */*\r\nConnection: close\r\n\r\n"))
        .await;
    assert!(got.starts_with("HTTP/1.1 299 All Right\r\n"), "{got}");
    for line in [
        "X-CaSe: Kept",
        "Set-Cookie: a=1\r\nSet-Cookie: b=2",
        "Date: Thu, 01 Jan 1970 00:00:00 GMT",
        "Server: old",
    ] {
        assert!(got.contains(&format!("\r\n{line}\r\n")), "{line}: {got}");
    }
    assert!(
        got.ends_with("\r\n\r\n\x00\u{7f}!") && got.contains("1.1 everfeed"),
        "{got}"
    );
    let heads = sidecar.heads();
    assert!(
        heads[0].starts_with(&format!("PROPFIND {target} HTTP/1.1\r\n")),
        "{heads:?}"
    );
    for line in ["HOST: blog.example:8080", "X-OdD: Name", "Accept: */*"] {
        assert!(
            heads[0].contains(&format!("\r\n{line}\r\n")),
            "{line}: {heads:?}"
        );
    }
}

/// Answers each request with its path.
async fn echoes(_: usize, mut origin: Origin) {
    while let Some(head) = origin.head().await {
        let body = head.split(' ').nth(1).unwrap();
        origin
            .write(format!(
                "HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{body}",
                body.len()
            ))
            .await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn each_of_many_readers_at_once_gets_his_own_answer() {
    const READERS: usize = 24;
    let sidecar = Sidecar::start("", echoes).await;
    let reads = (0..READERS).map(async |reader| {
        let mut wire = sidecar.connect().await;
        for n in 0..20 {
            let path = format!("/{reader}-{n}");
            wire.write(format!("GET {path} HTTP/1.1\r\nHost: x\r\n\r\n"))
                .await;
            let head = wire.until("\r\n\r\n").await;
            let length = head
                .to_lowercase()
                .split_once("content-length: ")
                .unwrap()
                .1
                .to_owned();
            let body = wire
                .bytes(length.lines().next().unwrap().parse().unwrap())
                .await;
            assert_eq!(String::from_utf8(body).unwrap(), path);
        }
    });
    futures_util::future::join_all(reads).await;
    assert_eq!(sidecar.heads().len(), READERS * 20);
}

#[tokio::test(flavor = "multi_thread")]
async fn quotation_marks_in_a_target_pass() {
    let sidecar = Sidecar::start("", |_, origin| origin.always(HELLO)).await;
    for (sent, heard) in [
        ("/\"a\"", "/\"a\""),
        ("/?q=\"a b\"".replace(' ', "+").as_str(), "/?q=%22a+b%22"),
    ] {
        let got = sidecar.get(sent).await;
        assert!(got.ends_with("hello"), "{sent}: {got}");
        let heads = sidecar.heads();
        assert!(
            heads
                .last()
                .unwrap()
                .starts_with(&format!("GET {heard} HTTP/1.1\r\n")),
            "{heads:?}"
        );
    }
    let got = sidecar
        .exchange(
            "POST / HTTP/1.1\r\nHost: x\r\nExpect: foo\r\nContent-Length: 1\r\nConnection: close\r\n\r\nx",
        )
        .await;
    assert!(got.starts_with("HTTP/1.1 417 "), "{got}");
    assert_eq!(sidecar.heads().len(), 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn headers_of_one_connection_end_with_it_and_those_of_the_way_are_ours() {
    let answer = "HTTP/1.1 200 OK\r\nConnection: X-Drop, keep-alive\r\nX-Drop: 1\r\nKeep-Alive: timeout=9\r\n\
                  Proxy-Authenticate: Basic\r\nContent-Length: 0\r\n\r\n";
    let sidecar = Sidecar::start("", move |_, origin| origin.always(answer)).await;
    let got = sidecar
        .exchange(
            "GET /x HTTP/1.1\r\nHost: blog.example\r\nConnection: close, X-Mine, Host, X-Forwarded-For\r\nX-Mine: 1\r\n\
             Keep-Alive: 5\r\nProxy-Connection: x\r\nTE: gzip, trailers\r\nProxy-Authorization: Basic eA==\r\nUpgrade: h2c\r\n\
             X-Forwarded-For: 192.0.2.1\r\nX-Forwarded-Proto: https\r\nForwarded: for=192.0.2.1\r\nX-Real-IP: 192.0.2.1\r\nX_Forwarded_For: 192.0.2.1\r\nProxy: http://192.0.2.1\r\n\
             X-Forwarded-Prefix: /192.0.2.1\r\nX_Forwarded-Server: 192.0.2.1\r\nFront-End-Https: 192.0.2.1\r\nX-Client-IP: 192.0.2.1\r\n\
             True-Client-IP: 192.0.2.1\r\nCF_Connecting-IP: 192.0.2.1\r\n\
             Via: 1.0 fred\r\n\r\n",
        )
        .await;
    for name in ["x-drop", "keep-alive: timeout", "proxy-authenticate"] {
        assert!(!got.to_lowercase().contains(name), "{name}: {got}");
    }
    let head = sidecar.heads()[0].to_lowercase();
    for name in [
        "x-mine",
        "keep-alive",
        "proxy-connection",
        "proxy-authorization",
        "upgrade",
        "x-real-ip",
        "gzip",
        "192.0.2.1",
    ] {
        assert!(!head.contains(name), "{name}: {head}");
    }
    for line in [
        "host: blog.example",
        "te: trailers",
        "x-forwarded-for: 127.0.0.1",
        "x-forwarded-proto: http",
        "x-forwarded-host: blog.example",
        "forwarded: for=127.0.0.1;host=\"blog.example\";proto=http",
        "via: 1.0 fred, 1.1 everfeed",
    ] {
        assert!(head.contains(&format!("\r\n{line}\r\n")), "{line}: {head}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn bodies_stream_both_ways_whatever_their_framing() {
    /// Answers with the digest of what came, and the same bytes again.
    async fn echo(_: usize, mut origin: Origin) {
        while let Some(head) = origin.head().await {
            let length = head
                .to_lowercase()
                .lines()
                .find_map(|line| line.strip_prefix("content-length: ")?.parse().ok());
            let body = match length {
                Some(length) => origin.bytes(length).await,
                None => {
                    let mut body = Vec::new();
                    loop {
                        let size = origin.until("\r\n").await;
                        let size = usize::from_str_radix(size.trim(), 16).unwrap();
                        body.extend(origin.bytes(size).await);
                        if size == 0 {
                            break;
                        }
                        origin.until("\r\n").await;
                    }
                    origin.until("\r\n").await;
                    body
                }
            };
            let digest = hex::encode(Sha256::digest(&body));
            origin
                .write(format!(
                    "HTTP/1.1 200 OK\r\nX-Digest: {digest}\r\nContent-Length: {}\r\n\r\n",
                    body.len()
                ))
                .await;
            origin.write(body).await;
        }
    }
    let sidecar = Sidecar::start("", echo).await;
    let body: Vec<u8> = (0..3_000_000_u32)
        .map(|n| (n.wrapping_mul(2_654_435_761) >> 24) as u8)
        .collect();
    let digest = hex::encode(Sha256::digest(&body));
    let whole = |framing: String| {
        format!("POST /x HTTP/1.1\r\nHost: blog.example\r\nConnection: close\r\n{framing}\r\n")
    };
    let mut chunked = whole("Transfer-Encoding: chunked\r\n".to_owned()).into_bytes();
    for chunk in body.chunks(70_001) {
        chunked.extend(format!("{:x}\r\n", chunk.len()).bytes());
        chunked.extend(chunk);
        chunked.extend(b"\r\n");
    }
    chunked.extend(b"0\r\n\r\n");
    let counted = [
        whole(format!("Content-Length: {}\r\n", body.len())).as_bytes(),
        &body,
    ]
    .concat();
    for request in [counted, chunked] {
        let mut wire = sidecar.connect().await;
        wire.write(&request).await;
        let head = wire.head().await.unwrap();
        assert!(head.contains(&digest), "{head}");
        assert_eq!(
            Sha256::digest(wire.bytes(body.len()).await),
            Sha256::digest(&body)
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn trailers_pass_and_so_do_answers_without_bodies() {
    let sidecar = Sidecar::start("", |_, mut origin| async move {
        while let Some(head) = origin.head().await {
            let answer = match head.split(' ').nth(1).unwrap() {
                "/trailers" => {
                    "HTTP/1.1 200 OK\r\nTrailer: X-Sum\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nab\r\n0\r\nX-Sum: 7\r\n\r\n"
                }
                "/head" => "HTTP/1.1 200 OK\r\nContent-Length: 1234\r\n\r\n",
                "/same" => "HTTP/1.1 304 Not Modified\r\nETag: \"x\"\r\n\r\n",
                _ => "HTTP/1.1 204 No Content\r\n\r\n",
            };
            origin.write(answer).await;
        }
    })
    .await;
    let ask = async |method: &str, target: &str| {
        let request = format!(
            "{method} {target} HTTP/1.1\r\nHost: x\r\nTE: trailers\r\nConnection: close\r\n\r\n"
        );
        sidecar.exchange(request).await.to_lowercase()
    };
    let trailed = ask("GET", "/trailers").await;
    assert!(
        trailed.ends_with("2\r\nab\r\n0\r\nx-sum: 7\r\n\r\n"),
        "{trailed}"
    );
    let head = ask("HEAD", "/head").await;
    assert!(
        head.contains("content-length: 1234\r\n") && head.ends_with("\r\n\r\n"),
        "{head}"
    );
    let same = ask("GET", "/same").await;
    assert!(
        same.starts_with("http/1.1 304") && same.contains("etag: \"x\""),
        "{same}"
    );
    assert!(ask("DELETE", "/x").await.starts_with("http/1.1 204"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_that_waits_to_be_asked_for_its_body_is_asked_by_the_origin() {
    let sidecar = Sidecar::start("", |_, mut origin| async move {
        while let Some(head) = origin.head().await {
            if head.contains("/refused") {
                origin
                    .write("HTTP/1.1 403 Forbidden\r\nConnection: close\r\nContent-Length: 2\r\n\r\nno")
                    .await;
                return;
            }
            origin.write("HTTP/1.1 100 Continue\r\n\r\n").await;
            let body = origin.bytes(4).await;
            assert_eq!(body, b"body");
            origin.write(HELLO).await;
        }
    })
    .await;
    let request = |path: &str| {
        format!(
            "POST {path} HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\nContent-Length: 4\r\nConnection: close\r\n\r\n"
        )
    };
    let mut wire = sidecar.connect().await;
    wire.write(request("/taken")).await;
    assert_eq!(wire.head().await.unwrap(), "HTTP/1.1 100 Continue\r\n\r\n");
    wire.write("body").await;
    assert!(wire.rest().await.ends_with("\r\n\r\nhello"));
    let mut wire = sidecar.connect().await;
    wire.write(request("/refused")).await;
    assert!(
        wire.rest().await.starts_with("HTTP/1.1 403 "),
        "the body is never asked for"
    );
    // The body may still come, or not: nothing else can come by this connection, and its reader is
    // told so.
    let kept = |path| request(path).replace("Connection: close\r\n", "");
    let mut wire = sidecar.connect().await;
    wire.write(kept("/refused")).await;
    let refused = wire.rest().await.to_lowercase();
    assert!(
        refused.starts_with("http/1.1 403 ") && refused.contains("\r\nconnection: close\r\n"),
        "{refused}"
    );
    let mut wire = sidecar.connect().await;
    for _ in 0..2 {
        wire.write(kept("/taken")).await;
        assert_eq!(wire.head().await.unwrap(), "HTTP/1.1 100 Continue\r\n\r\n");
        wire.write("body").await;
        let head = wire.head().await.unwrap().to_lowercase();
        assert!(!head.contains("connection:"), "{head}");
        assert_eq!(wire.bytes(5).await, b"hello");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_origin_that_knows_no_expectation_is_asked_without_one() {
    let sidecar = Sidecar::start("", |_, mut origin| async move {
        while let Some(head) = origin.head().await {
            if head.to_lowercase().contains("\r\nexpect:") {
                origin
                    .write("HTTP/1.1 417 Expectation Failed\r\nContent-Length: 2\r\n\r\nno")
                    .await;
                continue;
            }
            assert_eq!(origin.bytes(4).await, b"body");
            origin.write(HELLO).await;
        }
    })
    .await;
    let mut wire = sidecar.connect().await;
    for _ in 0..2 {
        wire.write(
            "POST /up HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\nContent-Length: 4\r\n\r\n",
        )
        .await;
        assert_eq!(wire.head().await.unwrap(), "HTTP/1.1 100 Continue\r\n\r\n");
        wire.write("body").await;
        let head = wire.head().await.unwrap().to_lowercase();
        assert!(
            head.starts_with("http/1.1 200 ") && !head.contains("connection:"),
            "{head}"
        );
        assert_eq!(wire.bytes(5).await, b"hello");
    }
    assert_eq!(sidecar.heads().len(), 4);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_connection_that_is_upgraded_carries_any_bytes_both_ways() {
    let sidecar = Sidecar::start("", |_, mut origin| async move {
        let head = origin.head().await.unwrap().to_lowercase();
        assert!(head.contains("upgrade: websocket") && head.contains("connection: upgrade"), "{head}");
        origin
            .write("HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Accept: x\r\n\r\n!")
            .await;
        loop {
            let byte = origin.bytes(1).await;
            if byte.is_empty() {
                return;
            }
            origin.write([byte[0] ^ 0x20]).await;
        }
    })
    .await;
    let mut wire = sidecar.connect().await;
    wire.write(
        "GET /socket HTTP/1.1\r\nHost: x\r\nConnection: keep-alive, Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Key: k\r\n\r\n",
    )
    .await;
    let head = wire.head().await.unwrap().to_lowercase();
    assert!(
        head.starts_with("http/1.1 101 ") && head.contains("sec-websocket-accept: x"),
        "{head}"
    );
    assert!(
        head.contains("upgrade: websocket") && head.contains("connection: upgrade"),
        "{head}"
    );
    assert_eq!(wire.bytes(1).await, b"!");
    wire.write("hello\r\n\r\nGET").await;
    assert_eq!(wire.bytes(12).await, b"HELLO-*-*get");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_connection_changes_to_web_sockets_and_to_nothing_else() {
    let sidecar = Sidecar::start("", |_, mut origin| async move {
        while let Some(head) = origin.head().await {
            let answer = match head.split(' ').nth(1).unwrap() {
                "/demand" => {
                    "426 Upgrade Required\r\nConnection: upgrade\r\nUpgrade: websocket\r\nTE: x"
                }
                "/other" => "101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: h2c",
                _ => "200 OK",
            };
            origin
                .write(format!("HTTP/1.1 {answer}\r\nContent-Length: 0\r\n\r\n"))
                .await;
        }
    })
    .await;
    for offered in ["h2c", "H2C", "h2", "TLS/1.0", "websocket-x", "HTTP/2.0"] {
        let request = format!(
            "GET /{offered} HTTP/1.1\r\nHost: x\r\nConnection: close, Upgrade, HTTP2-Settings\r\nUpgrade: {offered}\r\nHTTP2-Settings: AAMAAABk\r\n\r\n"
        );
        assert!(
            sidecar.exchange(request).await.starts_with("HTTP/1.1 200 "),
            "{offered}"
        );
        let head = sidecar.heads().pop().unwrap().to_lowercase();
        assert!(
            !head.contains("\r\nupgrade:") && !head.contains("http2-settings"),
            "{head}"
        );
    }
    let both =
        "GET /other HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: h2c, WebSocket\r\n\r\n";
    let mut wire = sidecar.connect().await;
    wire.write(both).await;
    assert!(wire.head().await.unwrap().starts_with("HTTP/1.1 502 "));
    let head = sidecar.heads().pop().unwrap().to_lowercase();
    assert!(head.contains("\r\nupgrade: websocket\r\n"), "{head}");
    let demand = sidecar.get("/demand").await.to_lowercase();
    assert!(
        demand.contains("\r\nupgrade: websocket\r\n") && !demand.contains("\r\nte:"),
        "{demand}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn headers_that_an_old_server_folds_or_spaces_arrive_whole() {
    let sidecar = Sidecar::start("", |_, mut origin| async move {
        while let Some(head) = origin.head().await {
            let rest = match head.split(' ').nth(1).unwrap() {
                "/folded" => {
                    "Content-Type: multipart/related;\r\n boundary=xyz\r\nContent-Length: 2\r\n\r\nok"
                }
                "/chunked" => "Transfer-Encoding : chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n",
                _ => "Content-Length : 2\r\n\r\nok",
            };
            origin.write(format!("HTTP/1.1 200 OK\r\n{rest}")).await;
        }
    })
    .await;
    let folded = sidecar.get("/folded").await;
    let line = folded
        .lines()
        .find(|line| line.starts_with("Content-Type: "))
        .unwrap();
    assert_eq!(
        line.split_whitespace().collect::<Vec<_>>().join(" "),
        "Content-Type: multipart/related; boundary=xyz"
    );
    for target in ["/folded", "/length"] {
        assert!(
            sidecar.get(target).await.ends_with("\r\n\r\nok"),
            "{target}"
        );
    }
    assert!(
        sidecar
            .get("/chunked")
            .await
            .ends_with("2\r\nok\r\n0\r\n\r\n")
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_request_of_few_steps_ends_where_they_end() {
    let sidecar = Sidecar::start("", |_, origin| async move {
        origin
            .always("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
            .await;
    })
    .await;
    let ask = |method: &str, steps: &str| {
        format!(
            "{method} /{steps} HTTP/1.1\r\nHost: x\r\nConnection: close\r\nMax-Forwards: {steps}\r\n\r\n"
        )
    };
    for method in ["TRACE", "OPTIONS"] {
        assert!(
            sidecar
                .exchange(ask(method, "0"))
                .await
                .starts_with("HTTP/1.1 405 ")
        );
        assert!(
            sidecar
                .exchange(ask(method, "3"))
                .await
                .starts_with("HTTP/1.1 200 ")
        );
        let head = sidecar.heads().pop().unwrap().to_lowercase();
        assert!(
            head.contains(" /3 ") && head.contains("\r\nmax-forwards: 2\r\n"),
            "{head}"
        );
    }
    assert!(
        sidecar
            .exchange(ask("GET", "0"))
            .await
            .starts_with("HTTP/1.1 200 ")
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn unknown_names_below_our_own_paths_are_answered_here_and_not_by_the_blog() {
    let rss = "<rss version=\"2.0\"><channel><title>b</title><item><guid>1</guid><title>One</title></item></channel></rss>";
    let sidecar = Sidecar::start("feeds = [\"/feed.xml\"]", move |_, mut origin| async move {
        while let Some(head) = origin.head().await {
            let body = if head.contains(" /feed.xml ") {
                rss
            } else {
                "of the origin"
            };
            origin
                .write(format!(
                    "HTTP/1.1 200 OK\r\nContent-Type: text/xml\r\nContent-Length: {}\r\n\r\n{body}",
                    body.len()
                ))
                .await;
        }
    })
    .await;
    sidecar.answers("/feeds/site-feed-xml.json", 200).await;
    let ours = sidecar.get("/feeds/site-feed-xml.json").await;
    assert!(ours.contains("\"One\""), "{ours}");
    assert!(sidecar.get("/feeds").await.contains("site-feed-xml"));
    let before = sidecar.heads().len();
    for unknown in UNKNOWN {
        for method in ["GET", "HEAD", "POST", "PUT"] {
            let answer = sidecar.exchange(request(method, unknown, "")).await;
            let status = &answer[9..12];
            // A known form of address says first which methods it has.
            let is_refused = status == "404" || (status == "405" && method.starts_with('P'));
            assert!(is_refused, "{method} {unknown}: {answer}");
        }
        let json = "Accept: application/json\r\n";
        let answer = sidecar.exchange(request("GET", unknown, json)).await;
        let words = ["there is no such feed", "there is nothing here"];
        let words = words.into_iter().find(|words| answer.contains(words));
        let words = words.unwrap_or_else(|| panic!("{unknown}: {answer}"));
        assert!(
            answer.contains("application/problem+json"),
            "{unknown}: {answer}"
        );
        let page = sidecar
            .exchange(request("GET", unknown, "Accept: text/html\r\n"))
            .await;
        assert!(
            page.contains("text/html") && page.to_lowercase().contains(words),
            "{unknown}: {page}"
        );
    }
    assert_eq!(sidecar.heads().len(), before, "the blog was asked for none");
    for theirs in THEIRS {
        assert!(
            sidecar.get(theirs).await.ends_with("of the origin"),
            "{theirs}"
        );
    }
}

/// Paths among ours that name nothing, as various servers spell them.
const UNKNOWN: [&str; 19] = [
    "/feeds/other",
    "/feeds/other/",
    "/feeds/other.atom",
    "/feeds/other.json",
    "/feeds/other.events",
    "/feeds/other.nothing",
    "/feeds/Other.atom",
    "/feeds/other/about",
    "/feeds/other/classic.rss",
    "/feeds/other/archive/1.atom",
    "/feeds/site-feed-xml/pictures",
    "/feeds/site-feed-xml/classic.nothing",
    "/feeds%2Fother",
    "/%66eeds/other",
    "//feeds//other",
    "/x/../feeds/other",
    "/feeds/a%20b",
    "/hub/x",
    "/hub/x/y",
];

/// Paths that are the site's.
const THEIRS: [&str; 8] = [
    "/",
    "/hubs",
    "/Feeds/other",
    "/x/feeds/other",
    "/feedsx",
    "/feed",
    "/s",
    "/pages/hub",
];

fn request(method: &str, target: &str, headers: &str) -> String {
    let length = if method.starts_with('P') {
        "Content-Length: 0\r\n"
    } else {
        ""
    };
    format!(
        "{method} {target} HTTP/1.1\r\nHost: blog.example\r\n{headers}{length}Connection: close\r\n\r\n"
    )
}

#[tokio::test(flavor = "multi_thread")]
async fn everything_below_the_prefix_is_ours_and_a_listed_feed_there_is_served() {
    let rss = "<rss version=\"2.0\"><channel><title>b</title><item><guid>1</guid><title>One</title></item></channel></rss>";
    let script = move |_, mut origin: super::rig::Origin| async move {
        while origin.head().await.is_some() {
            let length = rss.len();
            let head = format!(
                "HTTP/1.1 200 OK\r\nContent-Type: text/xml\r\nContent-Length: {length}\r\n\r\n"
            );
            origin.write(format!("{head}{rss}")).await;
        }
    };
    let site =
        "prefix = \"/smart\"\n[site]\nfeeds = [\"/smart/own.xml\", \"/feeds/posts/default\"]\n";
    let sidecar = Sidecar::start(site, script).await;
    sidecar
        .answers("/smart/feeds/site-smart-own-xml.json", 200)
        .await;
    sidecar
        .answers("/smart/feeds/site-feeds-posts-default.json", 200)
        .await;
    let before = sidecar.heads().len();
    for unknown in [
        "/smart/x",
        "/smart/x/y",
        "/smart/feeds/other",
        "/smart/hub/x",
        "/smart//x",
        "/%73mart/x",
    ] {
        let answer = sidecar.get(unknown).await;
        assert!(answer.starts_with("HTTP/1.1 404 "), "{unknown}: {answer}");
    }
    assert_eq!(sidecar.heads().len(), before, "the blog was asked for none");
    for listed in [
        "/smart/own.xml",
        "/feeds/posts/default",
        "/feeds/other",
        "/smarter",
    ] {
        let answer = sidecar.get(listed).await;
        assert!(answer.starts_with("HTTP/1.1 200 "), "{listed}: {answer}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_empty_port_of_a_host_is_none() {
    // RFC 3986 section 3.2.3.
    let sidecar = Sidecar::start("host = \"blog.example\"", |_, origin| {
        origin.always("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
    })
    .await;
    for (target, host) in [
        ("/page", "blog.example:"),
        ("http://blog.example:/page", "blog.example"),
    ] {
        let before = sidecar.heads().len();
        let request = format!("GET {target} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n");
        let answer = sidecar.exchange(request).await;
        assert!(answer.starts_with("HTTP/1.1 200 "), "{target}: {answer}");
        let head = sidecar.heads()[before].to_lowercase();
        assert!(
            head.contains("\r\nhost: blog.example\r\n"),
            "{target}: {head}"
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn options_of_the_whole_server_are_answered_here() {
    // RFC 9110 section 9.3.7.
    for site in ["", "prefix = \"/smart\"\n[site]\n"] {
        let sidecar = Sidecar::start(site, |_, origin| {
            origin.always("HTTP/1.1 200 OK\r\nAllow: PATCH\r\nContent-Length: 2\r\n\r\nok")
        })
        .await;
        let ask = "OPTIONS * HTTP/1.1\r\nHost: blog.example\r\nConnection: close\r\n\r\n";
        let answer = sidecar.exchange(ask).await.to_lowercase();
        assert!(answer.starts_with("http/1.1 200 "), "{answer}");
        assert!(
            answer.contains("\r\nallow: get, head, post, options\r\n"),
            "{answer}"
        );
        assert_eq!(sidecar.heads(), [""; 0], "{site}");
    }
}
