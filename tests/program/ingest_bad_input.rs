//! Bad answers of publishers, over real sockets: the store stays as it was, the poll state says
//! whose fault it is, and the next good document goes on as before.

use crate::pipeline::{Mirror, Pipeline};
use everfeed::{feed::schedule::Whose, ingest::polls::PollSaving, layers::ClientConfig};
use flate2::{Compression, write::GzEncoder};
use std::io::Write;
use testkit::publisher::{Answer, Publisher, head, ok, with_headers};

const RSS: &str = "application/rss+xml";

/// Limits that a test can reach quickly.
fn limits() -> ClientConfig {
    ClientConfig {
        total_secs: 2,
        connect_secs: 1,
        head_secs: 1,
        wire_bytes_max: 1 << 20,
        body_bytes_max: 4 << 20,
        ..ClientConfig::default()
    }
}

/// A document with so many items.
fn document(items: usize) -> String {
    let item = |n: usize| format!("<item><guid>{n}</guid><title>post {n}</title></item>");
    let items: String = (1..=items).rev().map(item).collect();
    format!("<rss version=\"2.0\"><channel><title>blog</title>{items}</channel></rss>")
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

/// Serves a good document, then the bad answer twice, then a good one with one more item.
async fn check(bad: impl Fn(&Publisher) -> Answer, whose: Whose, expect: &str) {
    let publisher = Publisher::start().await;
    let mut pipeline = Pipeline::new("blog", &publisher.url("/rss"), &limits()).await;
    let mut mirror = Mirror::default();
    let no = pipeline.feed.no;

    publisher.says(with_headers(
        200,
        &[("etag", "\"1\""), ("content-type", RSS)],
        document(2).as_bytes(),
    ));
    assert!(pipeline.poll().await.saving == PollSaving::Committed);
    mirror.pull(&*pipeline.store, no).await;
    let (good, record) = (
        pipeline.state.clone(),
        pipeline.store.feed(no).await.unwrap(),
    );
    assert_eq!((record.items.total, record.is_ready()), (2, true));

    publisher.says(bad(&publisher));
    for failures in 1..=2 {
        let polled = pipeline.poll().await;
        // Words of the publisher to be left alone: 429 comes with `Retry-After`.
        let saving = match expect {
            "429" | "410" => PollSaving::AtOnce,
            _ => PollSaving::Late,
        };
        assert_eq!(polled.saving, saving, "{expect}");
        let state = polled.state;
        let fault = state.health.fault.clone().expect("a fault is remembered");
        assert!(
            fault.kind.to_string().contains(expect),
            "{:?} does not say {expect:?}",
            fault.kind.to_string()
        );
        assert!(
            !fault.kind.to_string().contains(&publisher.url("")),
            "no address in {:?}",
            fault.kind.to_string()
        );
        assert_eq!(
            (fault.kind.whose(), state.health.failures),
            (whose, failures)
        );
        assert_eq!(state.health.good_at, good.health.good_at);
        // Nothing that was learned is lost (FRB 016).
        assert_eq!(
            (
                state.validators,
                state.document.body,
                state.timetable.arrivals
            ),
            (
                good.validators.clone(),
                good.document.body,
                good.timetable.arrivals.clone()
            )
        );
        assert!(state.timetable.next_at > state.timetable.polled_at.unwrap());
        assert_eq!(
            pipeline.store.feed(no).await.unwrap(),
            record,
            "the store is as it was"
        );
        assert_eq!(mirror.pull(&*pipeline.store, no).await, []);
    }
    let first_failure = pipeline.state.health.fault.clone().unwrap().since;
    assert!(
        first_failure < pipeline.state.timetable.polled_at.unwrap(),
        "since the first of the run"
    );

    publisher.says(ok(RSS, document(3).as_bytes()));
    assert!(pipeline.poll().await.saving == PollSaving::Committed);
    assert_eq!(
        (
            pipeline.state.health.fault.clone(),
            pipeline.state.health.failures
        ),
        (None, 0)
    );
    let news = mirror.pull(&*pipeline.store, no).await;
    assert_eq!(news.len(), 1);
    assert!(mirror.equals(&*pipeline.store, no).await);
    assert!(
        publisher
            .requests()
            .iter()
            .all(|request| request.starts_with("GET /rss HTTP/1.1\r\n")),
        "FRB 050, 060"
    );
}

/// The same for what the publisher is to blame for.
async fn check_upstream(bad: Answer, expect: &str) {
    check(move |_| bad.clone(), Whose::Upstream, expect).await;
}

#[tokio::test]
async fn a_web_page() {
    // FRB 102.
    let page = b"<!DOCTYPE html><html><head><title>Log in</title></head><body>...</body></html>";
    check_upstream(ok("text/html", page), "HTML").await;
    check_upstream(ok(RSS, page), "HTML").await;
}

#[tokio::test]
async fn an_empty_body() {
    check_upstream(ok(RSS, b""), "empty").await;
    check_upstream(ok(RSS, b" \r\n\t"), "empty").await;
    check_upstream(with_headers(204, &[], b""), "204").await;
}

#[tokio::test]
async fn garbage() {
    check_upstream(
        ok(RSS, b"warning: mysql_connect() failed"),
        "neither XML, HTML nor JSON",
    )
    .await;
    check_upstream(ok(RSS, [0xff, 0xfe, 0x00, 0xd8, 0x80, 0x00]), "document").await;
    check_upstream(
        ok(RSS, b"<opml version=\"2.0\"><body/></opml>"),
        "everfeed import",
    )
    .await;
    check_upstream(ok("application/json", b"{\"error\":\"quota\"}"), "JSON").await;
}

#[tokio::test]
async fn an_error_with_a_feed_as_its_body_is_an_error() {
    // FRB 101: the body of a failure is not read.
    check_upstream(with_headers(500, &[], document(9).as_bytes()), "500").await;
    check_upstream(with_headers(404, &[], document(9).as_bytes()), "404").await;
    check_upstream(
        with_headers(429, &[("retry-after", "60")], document(9).as_bytes()),
        "429",
    )
    .await;
    check_upstream(with_headers(503, &[], document(9).as_bytes()), "503").await;
    check_upstream(with_headers(410, &[], document(9).as_bytes()), "410").await;
}

#[tokio::test]
async fn a_body_shorter_than_its_content_length() {
    let whole = document(9);
    let mut short = head(200, &[("content-type", RSS)], Some(whole.len() as u64 + 1));
    short.extend_from_slice(whole.as_bytes());
    check_upstream(Answer::Bytes(short), "cut short").await;
}

#[tokio::test]
async fn a_chunked_body_without_its_last_chunk() {
    let mut cut = head(200, &[("transfer-encoding", "chunked")], None);
    let whole = document(9);
    cut.extend_from_slice(format!("{:x}\r\n{whole}\r\n", whole.len()).as_bytes());
    check_upstream(Answer::Bytes(cut), "cut short").await;
}

#[tokio::test]
async fn a_gzip_bomb() {
    let bomb = gzip(&vec![b' '; 64 << 20]);
    assert!(bomb.len() < 1 << 20, "small enough on the wire");
    check_upstream(
        with_headers(200, &[("content-encoding", "gzip")], &bomb),
        "larger than 4194304",
    )
    .await;
}

#[tokio::test]
async fn a_body_that_is_not_compressed_as_it_says() {
    check_upstream(
        with_headers(200, &[("content-encoding", "gzip")], document(9).as_bytes()),
        "inflated",
    )
    .await;
    check_upstream(
        with_headers(200, &[("content-encoding", "zstd")], document(9).as_bytes()),
        "inflated",
    )
    .await;
}

#[tokio::test]
async fn a_gigabyte() {
    let more = vec![b'x'; 64 << 10];
    check_upstream(
        Answer::Endless(head(200, &[], Some(1 << 30)), more.clone()),
        "larger than 1048576",
    )
    .await;
    check_upstream(
        Answer::Endless(head(200, &[], None), more),
        "larger than 1048576",
    )
    .await;
}

#[tokio::test]
async fn a_redirect_to_a_private_address() {
    let other = Publisher::start().await;
    other.says(ok(RSS, document(9).as_bytes()));
    let to = |url: String| with_headers(301, &[("location", &url)], b"");
    check_upstream(to(other.url("/rss")), "not on the public internet").await;
    check_upstream(
        to("http://169.254.169.254/latest/meta-data/".into()),
        "not on the public internet",
    )
    .await;
    check_upstream(
        to("http://[::1]:8079/metrics".into()),
        "not on the public internet",
    )
    .await;
    check_upstream(to("file:///etc/passwd".into()), "redirect").await;
    assert_eq!(other.requests(), [""; 0], "nobody was asked");
}

#[tokio::test]
async fn a_redirect_loop() {
    let publisher =
        |publisher: &Publisher| with_headers(302, &[("location", &publisher.url("/rss"))], b"");
    check(publisher, Whose::Upstream, "back to where it came from").await;
}

#[tokio::test]
async fn silence_and_slowness() {
    check_upstream(Answer::Silence, "no answer within 1 s").await;
}

#[tokio::test]
async fn what_is_not_http() {
    check_upstream(
        Answer::Bytes(b"SSH-2.0-OpenSSH_9.2\r\n".to_vec()),
        "not valid HTTP",
    )
    .await;
    check_upstream(Answer::Bytes(Vec::new()), "cut short").await;
}

#[tokio::test]
async fn a_304_to_an_unconditional_request() {
    let publisher = Publisher::start().await;
    let mut pipeline = Pipeline::new("blog", &publisher.url("/rss"), &limits()).await;
    publisher.says(with_headers(304, &[], b""));
    pipeline.poll().await;
    let fault = pipeline.state.health.fault.clone().unwrap();
    assert_eq!(
        (fault.kind.whose(), fault.kind.to_string().as_str()),
        (Whose::Upstream, "the answer was not valid HTTP")
    );
    assert!(
        !pipeline
            .store
            .feed(pipeline.feed.no)
            .await
            .unwrap()
            .is_ready()
    );
}

#[tokio::test]
async fn a_host_that_does_not_answer() {
    let gone = Publisher::start().await.url("/rss");
    let mut pipeline = Pipeline::new("blog", &gone, &limits()).await;
    pipeline.poll().await;
    let fault = pipeline.state.health.fault.clone().unwrap();
    assert_eq!(
        (fault.kind.whose(), fault.kind.to_string().as_str()),
        (
            Whose::Upstream,
            "the connection was refused: nothing listens there"
        )
    );
    let mut pipeline = Pipeline::new("blog", "http://no-such-host.invalid/rss", &limits()).await;
    pipeline.poll().await;
    let fault = pipeline.state.health.fault.clone().unwrap();
    assert_eq!(
        (fault.kind.whose(), fault.kind.to_string().as_str()),
        (Whose::Upstream, "the host name does not exist")
    );
}

#[tokio::test]
async fn a_document_that_merely_ends_early_gives_its_whole_entries() {
    // DESIGN section 4: what the length does not betray counts up to the cut.
    let publisher = Publisher::start().await;
    let mut pipeline = Pipeline::new("blog", &publisher.url("/rss"), &limits()).await;
    let whole = document(3);
    let cut = whole.find("<title>post 1</title>").unwrap() + 12;
    publisher.says(ok(RSS, &whole.as_bytes()[..cut]));
    pipeline.poll().await;
    assert_eq!(pipeline.state.health.fault, None);
    let remark = pipeline.state.document.remark.clone().unwrap();
    assert!(remark.contains("ends early"), "{remark}");
    assert_eq!(
        pipeline
            .store
            .feed(pipeline.feed.no)
            .await
            .unwrap()
            .items
            .total,
        2
    );
    publisher.says(ok(RSS, whole.as_bytes()));
    pipeline.poll().await;
    assert_eq!(
        (
            pipeline.state.document.remark.clone(),
            pipeline
                .store
                .feed(pipeline.feed.no)
                .await
                .unwrap()
                .items
                .total
        ),
        (None, 3)
    );
}
