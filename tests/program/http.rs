//! The whole program over real sockets, byte by byte: framing, lengths, connections, shutdown. What
//! pages hold is tested where no socket is needed.
//!
//! Rows: SF-1, SF-3, SF-16, SF-40, SF-42, SF-45, SF-54; D-11, D-26; DESIGN section 8.

use crate::start;
use bytes::Bytes;
use everfeed::app::App;
use http::Method;
use http_body_util::{BodyExt as _, Empty};
use hyper_util::rt::{TokioExecutor, TokioIo};
use serde_json::Value;
use std::{collections::BTreeMap, net::SocketAddr, time::Duration};
use testkit::{
    client::{self, ask},
    place::Place,
    publisher::{Publisher, rss},
    wait::{GLANCE, PATIENCE, until},
};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpStream,
    time::{Instant, sleep, timeout},
};

/// The program with one feed of three posts.
struct Served {
    app: App,
    publisher: Publisher,
    place: Place,
}

impl Served {
    async fn start() -> Self {
        let place = Place::unbound();
        let publisher = Publisher::start().await;
        publisher.says(rss(3));
        let feed = format!(
            "[[feed]]\nname = \"blog\"\nurl = \"{}\"\n",
            publisher.url("/rss.xml")
        );
        let server = "shutdown_secs = 60\npublic_url = \"http://feeds.example\"";
        let app = start(&place, server, &feed).await;
        let served = Self {
            app,
            publisher,
            place,
        };
        until("the first document is read", async || {
            served.get("/feeds/blog").await.status == 200
        })
        .await;
        served
    }

    fn at(&self) -> SocketAddr {
        self.app.address()
    }

    async fn get(&self, target: &str) -> client::Answer {
        client::get(self.at(), target).await
    }

    /// The cursor of the newest item.
    async fn head(&self) -> String {
        let newest = self.get("/feeds/blog.json?order=-modified&max=1").await;
        let page: Value = serde_json::from_slice(&newest.body).unwrap();
        page["last_cursor"].as_str().unwrap().to_owned()
    }

    /// Waits until so many requests are held.
    async fn holds(&self, waiters: u64) {
        until(&format!("{waiters} requests are held"), async || {
            let status = client::get(self.app.admin_address(), "/status").await;
            status.json()["waiters"] == waiters
        })
        .await;
    }
}

/// One connection, spoken to in plain text.
struct Line(TcpStream);

/// A response as it stood on the wire.
#[derive(Debug)]
struct Raw {
    status: String,
    headers: BTreeMap<String, String>,
}

impl Line {
    async fn to(served: &Served) -> Self {
        Self(TcpStream::connect(served.at()).await.unwrap())
    }

    async fn say(&mut self, text: &str) {
        self.0.write_all(text.as_bytes()).await.unwrap();
    }

    async fn ask(&mut self, method: &str, target: &str, headers: &str) -> Raw {
        self.say(&format!(
            "{method} {target} HTTP/1.1\r\nHost: feeds.example\r\n{headers}\r\n"
        ))
        .await;
        self.head().await
    }

    async fn head(&mut self) -> Raw {
        let mut head = Vec::new();
        while !head.ends_with(b"\r\n\r\n") {
            head.push(
                timeout(PATIENCE, self.0.read_u8())
                    .await
                    .expect("an answer")
                    .unwrap(),
            );
        }
        let head = String::from_utf8(head).unwrap();
        let mut lines = head.lines();
        let status = lines.next().unwrap().to_owned();
        let mut headers = BTreeMap::new();
        for (name, value) in lines.filter_map(|line| line.split_once(": ")) {
            let before = headers.insert(name.to_ascii_lowercase(), value.to_owned());
            assert_eq!(before, None, "{name} stands there twice");
        }
        Raw { status, headers }
    }

    async fn body(&mut self, bytes: usize) -> Vec<u8> {
        let mut body = vec![0; bytes];
        timeout(PATIENCE, self.0.read_exact(&mut body))
            .await
            .expect("the body comes")
            .unwrap();
        body
    }

    /// The heads of both answers. SF-40: nothing follows the second, so that the next answer begins
    /// where it ends.
    async fn get_and_head(&mut self, target: &str, headers: &str) -> (Raw, Raw) {
        let get = self.ask("GET", target, headers).await;
        assert!(!self.body(get.length()).await.is_empty());
        (get, self.ask("HEAD", target, headers).await)
    }

    /// True when the other side has nothing more to say and closes.
    async fn ends(mut self) -> bool {
        let mut rest = Vec::new();
        timeout(PATIENCE, self.0.read_to_end(&mut rest))
            .await
            .expect("an end")
            .is_ok()
            && rest.is_empty()
    }
}

impl Raw {
    fn length(&self) -> usize {
        self.headers["content-length"].parse().unwrap()
    }
}

#[tokio::test]
async fn every_answer_says_how_long_it_is_and_leaves_the_connection_usable() {
    let served = Served::start().await;
    let mut line = Line::to(&served).await;
    for (target, status) in [
        ("/feeds/blog", "HTTP/1.1 200 OK"),
        (
            "/feeds/blog.json?since=cursor:&timeout=3",
            "HTTP/1.1 200 OK",
        ),
        ("/feeds/blog.json?callback=cb", "HTTP/1.1 200 OK"),
        ("/feeds/blog/classic.rss", "HTTP/1.1 200 OK"),
        ("/feeds", "HTTP/1.1 200 OK"),
        ("/feeds/blog/about", "HTTP/1.1 200 OK"),
        ("/feeds/blog.json?max=0", "HTTP/1.1 400 Bad Request"),
        ("/feeds/none", "HTTP/1.1 404 Not Found"),
    ] {
        for headers in [
            "",
            "Accept-Encoding: br\r\n",
            "Accept: application/json\r\n",
        ] {
            let mut pair = line.get_and_head(target, headers).await;
            if pair.1.headers.contains_key("last-modified")
                && !pair.0.headers.contains_key("last-modified")
            {
                // The second of the last change ended between the two; from then on both tell it.
                pair = line.get_and_head(target, headers).await;
            }
            let (get, mut head) = pair;
            assert_eq!(get.status, status, "{target}");
            assert!(
                !get.headers.contains_key("transfer-encoding") && get.headers.contains_key("date")
            );
            let media = &get.headers["content-type"];
            assert!(
                media.ends_with("; charset=utf-8") || media == "application/problem+json",
                "{get:?}"
            );
            head.headers
                .insert("date".into(), get.headers["date"].clone());
            assert_eq!(
                (head.status.as_str(), head.headers),
                (status, get.headers),
                "{target}"
            );
        }
    }
}

#[tokio::test]
async fn http_2_is_spoken_with_whoever_begins_with_it() {
    let served = Served::start().await;
    let stream = TcpStream::connect(served.at()).await.unwrap();
    let (sender, connection) =
        hyper::client::conn::http2::handshake(TokioExecutor::new(), TokioIo::new(stream))
            .await
            .unwrap();
    let talk = tokio::spawn(connection);
    let since = served.head().await;
    let get = |target: &str| {
        let request = http::Request::get(format!("http://feeds.example{target}"));
        let answer = sender
            .clone()
            .send_request(request.body(Empty::<Bytes>::new()).unwrap());
        async move { answer.await.unwrap().into_parts() }
    };
    // A held request does not keep others waiting on the same connection.
    let mut held = tokio::spawn(get(&format!("/feeds/blog.json?since=cursor:{since}")));
    served.holds(1).await;
    let (head, body) = get("/feeds/blog.json?max=2").await;
    let body = body.collect().await.unwrap().to_bytes();
    assert_eq!(
        (
            head.status.as_u16(),
            head.headers["content-length"].to_str().unwrap()
        ),
        (200, &*body.len().to_string())
    );
    assert!(timeout(Duration::from_millis(50), &mut held).await.is_err());
    served.app.stop().await.unwrap();
    let (head, _) = timeout(PATIENCE, held).await.unwrap().unwrap();
    assert_eq!(head.status, 200, "a shutdown answers what is held here too");
    drop(sender);
    talk.await.unwrap().unwrap();
}

#[tokio::test]
async fn not_modified_has_no_body_and_no_length_of_one() {
    let served = Served::start().await;
    let mut line = Line::to(&served).await;
    let full = line.ask("GET", "/feeds/blog.atom", "").await;
    line.body(full.length()).await;
    let tag = &full.headers["etag"];
    for method in ["GET", "HEAD"] {
        let answer = line
            .ask(
                method,
                "/feeds/blog.atom",
                &format!("If-None-Match: {tag}\r\n"),
            )
            .await;
        assert_eq!(answer.status, "HTTP/1.1 304 Not Modified");
        for name in ["etag", "vary", "cache-control", "link"] {
            assert_eq!(answer.headers.get(name), full.headers.get(name), "{name}");
        }
        for name in ["content-length", "content-type", "transfer-encoding"] {
            assert_eq!(answer.headers.get(name), None, "{name}");
        }
    }
    let next = line
        .ask("GET", "/feeds/blog.atom", "Connection: close\r\n")
        .await;
    line.body(next.length()).await;
    assert!(line.ends().await);
}

#[tokio::test]
async fn a_long_poll_is_answered_by_the_change_and_by_nothing_before() {
    // SF-3, SF-42: no bytes are sent before there is an answer, so proxies and scripts see one
    // whole response.
    let served = Served::start().await;
    let since = served.head().await;
    let mut line = Line::to(&served).await;
    line.say(&format!(
        "GET /feeds/blog.json?since=cursor:{since} HTTP/1.1\r\nHost: x\r\n\r\n"
    ))
    .await;
    served.holds(1).await;
    assert!(
        timeout(Duration::from_millis(100), line.0.read_u8())
            .await
            .is_err(),
        "not a byte yet"
    );
    served.publisher.says(rss(4));
    let form = format!(
        "hub.mode=publish&hub.url={}",
        served.publisher.url("/rss.xml")
    );
    let headers = [("content-type", "application/x-www-form-urlencoded")];
    let hinted = ask(served.at(), Method::POST, "/hub", &headers, &form)
        .await
        .unwrap();
    assert!((200..300).contains(&hinted.status), "{hinted:?}");
    let answer = line.head().await;
    let page: Value = serde_json::from_slice(&line.body(answer.length()).await).unwrap();
    assert_eq!(
        (&page["count"], &page["items"][0]["title"]),
        (&1.into(), &"Post 4".into())
    );
    served.holds(0).await;
}

#[tokio::test]
async fn whoever_hangs_up_is_waited_on_no_longer() {
    let served = Served::start().await;
    let since = served.head().await;
    let mut lines = Vec::new();
    for _ in 0..20 {
        let mut line = Line::to(&served).await;
        line.say(&format!(
            "GET /feeds/blog.json?since=cursor:{since} HTTP/1.1\r\nHost: x\r\n\r\n"
        ))
        .await;
        lines.push(line);
    }
    served.holds(20).await;
    drop(lines);
    served.holds(0).await;
}

#[tokio::test]
async fn a_shutdown_answers_what_is_held_and_ends_in_time() {
    // DESIGN section 8: an empty page, then the end of the connection.
    let served = Served::start().await;
    let since = served.head().await;
    let mut lines = Vec::new();
    for _ in 0..5 {
        let mut line = Line::to(&served).await;
        line.say(&format!(
            "GET /feeds/blog.json?since=cursor:{since} HTTP/1.1\r\nHost: x\r\n\r\n"
        ))
        .await;
        lines.push(line);
    }
    // One that asks for nothing must not delay the end either.
    let idle = Line::to(&served).await;
    served.holds(5).await;
    let (address, started) = (served.at(), Instant::now());
    served.app.stop().await.unwrap();
    assert!(
        started.elapsed() < Duration::from_secs(30),
        "{:?}",
        started.elapsed()
    );
    for mut line in lines {
        let answer = line.head().await;
        assert_eq!(answer.status, "HTTP/1.1 200 OK");
        let page: Value = serde_json::from_slice(&line.body(answer.length()).await).unwrap();
        assert_eq!(
            (&page["count"], page["last_cursor"].as_str()),
            (&0.into(), Some(since.as_str()))
        );
        assert!(line.ends().await);
    }
    assert!(idle.ends().await);
    assert!(
        TcpStream::connect(address).await.is_err(),
        "nobody listens any more"
    );
}

#[tokio::test]
async fn what_is_no_http_harms_nobody() {
    let served = Served::start().await;
    for garbage in [
        "\u{16}\u{3}\u{1}\r\n\r\n",
        "GET\r\n\r\n",
        "GET /feeds HTTP/9.9\r\n\r\n",
        "GET /fe eds HTTP/1.1\r\n\r\n",
    ] {
        let mut line = Line::to(&served).await;
        line.say(garbage).await;
        let mut rest = Vec::new();
        let _ = timeout(PATIENCE, line.0.read_to_end(&mut rest))
            .await
            .expect("it is hung up on");
        let refused = [&b"HTTP/1.1 400 "[..], b"HTTP/1.1 505 "]
            .iter()
            .any(|status| rest.starts_with(status));
        assert!(refused, "{}", String::from_utf8_lossy(&rest));
    }
    let long = format!("/feeds/blog.json?since=cursor:{}", "9".repeat(60_000));
    let mut line = Line::to(&served).await;
    assert_eq!(
        line.ask("GET", &long, "").await.status,
        "HTTP/1.1 414 URI Too Long"
    );
    assert_eq!(served.get("/feeds/blog.json").await.status, 200);
}

#[tokio::test(flavor = "multi_thread")]
async fn while_the_store_is_away_feeds_are_listed_and_pulls_say_whose_fault_it_is() {
    let served = Served::start().await;
    let status = async || {
        let answer = ask(served.app.admin_address(), Method::GET, "/status", &[], "")
            .await
            .unwrap();
        assert_eq!(answer.status, 200, "{answer:?}");
        serde_json::from_slice::<Value>(&answer.body).unwrap()
    };
    let before = status().await;
    assert_eq!(
        (&before["feeds"][0]["items"], &before["store"]["fault"]),
        (&3.into(), &Value::Null)
    );
    let store = served.place.path("everfeed.redb");
    std::fs::OpenOptions::new()
        .write(true)
        .open(&store)
        .unwrap()
        .set_len(5000)
        .unwrap();
    // What was made before is still given, so something else is asked for each time.
    let mut asked = 0;
    let away = async {
        loop {
            asked += 1;
            let answer = served
                .get(&format!("/feeds/blog.json?since=time:{asked}"))
                .await;
            if answer.status != 200 {
                return answer;
            }
            sleep(GLANCE).await;
        }
    };
    let refused = timeout(PATIENCE, away).await.unwrap();
    let text = String::from_utf8(refused.body.to_vec()).unwrap();
    assert_eq!(
        (refused.status, refused.header("retry-after")),
        (503, "5"),
        "{text}"
    );
    assert!(
        text.contains("this server") && text.contains("operator"),
        "{text}"
    );
    assert!(
        !text.contains("redb") && !text.contains("waiting"),
        "nothing of the machine is told: {text}"
    );
    let told = status().await;
    assert!(
        told["store"]["fault"]
            .as_str()
            .unwrap()
            .contains("cut or overwritten"),
        "{told}"
    );
    let (feed, known) = (&told["feeds"][0], &before["feeds"][0]);
    for key in [
        "name",
        "url",
        "served",
        "last_poll_at",
        "last_good_at",
        "failures",
    ] {
        assert_eq!(feed[key], known[key], "{key}");
    }
    assert_eq!(
        (&told["feeds_total"], &feed["items"]),
        (&1.into(), &Value::Null),
        "{told}"
    );
    assert!(
        feed["history"]
            .as_str()
            .unwrap()
            .contains("while the store cannot be read"),
        "{told}"
    );
}
