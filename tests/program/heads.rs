//! Requests that two readers could take for different ones, byte by byte over real sockets: each is
//! refused with a line of its own, its connection ends, and a request hidden behind it is never
//! answered; and those that are good are answered.

use everfeed::app::App;
use std::{net::SocketAddr, time::Duration};
use testkit::{place::Place, wait::PATIENCE};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpStream,
    time::timeout,
};

/// Between the two halves of a request that comes in two.
const BREATH: Duration = Duration::from_millis(5);
/// A request that stands behind each of those that are refused. Nothing else is answered by 204.
const BEHIND: &str = "OPTIONS /feeds HTTP/1.1\r\nHost: h\r\nX-Behind: 1\r\n\r\n";

async fn start() -> (App, Place) {
    let place = Place::unbound();
    let server = "shutdown_secs = 5\npublic_url = \"http://h/\"";
    let feed = "[[feed]]\nname = \"blog\"\nurl = \"http://127.0.0.1:1/\"\n";
    (crate::start(&place, server, feed).await, place)
}

/// All that is answered to these bytes, which come in so many pieces.
async fn answers(address: SocketAddr, request: &[u8], pieces: usize) -> String {
    let mut stream = TcpStream::connect(address).await.unwrap();
    stream.set_nodelay(true).unwrap();
    let (mut read, mut write) = stream.split();
    let says = async {
        for piece in request.chunks(request.len().div_ceil(pieces)) {
            // It may be hung up on before it has said all.
            if write.write_all(piece).await.is_err() {
                break;
            }
            tokio::time::sleep(if pieces > 1 { BREATH } else { Duration::ZERO }).await;
        }
        std::future::pending::<()>().await;
    };
    let mut answer = Vec::new();
    tokio::select! {
        read = timeout(PATIENCE, read.read_to_end(&mut answer)) => {
            read.unwrap_or_else(|_| panic!("not hung up on: {}", shown(request))).unwrap();
        }
        () = says => {}
    }
    String::from_utf8(answer).unwrap()
}

fn shown(request: &[u8]) -> String {
    let text = request.escape_ascii().to_string();
    if text.len() > 300 {
        format!("{} ... ({} bytes)", &text[..300], request.len())
    } else {
        text
    }
}

/// The number of answers: each has one date.
fn count(answers: &str) -> usize {
    answers.matches("\r\ndate: ").count()
}

/// Finds what is wrong with the refusal of a request: it has this status and one line, and nothing
/// behind it is answered.
fn fault_of_refusal(status: u16, answer: &str) -> Option<String> {
    let (head, body) = answer.split_once("\r\n\r\n").unwrap_or((answer, ""));
    let head = head.to_ascii_lowercase();
    let is_line = body.len() > 10 && body.ends_with('\n') && body.lines().count() == 1;
    let lines = [
        "connection: close",
        "x-content-type-options: nosniff",
        "cache-control: no-store",
        "content-type: text/plain; charset=utf-8",
    ];
    if !answer.starts_with(&format!("HTTP/1.1 {status} ")) {
        Some(format!("status {status} expected"))
    } else if count(answer) != 1 {
        Some("one answer expected".to_owned())
    } else if !is_line {
        Some("one line expected".to_owned())
    } else {
        lines
            .iter()
            .find(|line| !head.contains(**line))
            .map(|line| format!("{line} expected"))
    }
}

/// Asserts that requests are refused, with a request behind each.
async fn check_refused(address: SocketAddr, cases: &[(u16, String)], pieces: usize) {
    let mut wrong = Vec::new();
    for (status, request) in cases {
        let request = [request.as_bytes(), BEHIND.as_bytes()].concat();
        let answer = answers(address, &request, pieces).await;
        if let Some(fault) = fault_of_refusal(*status, &answer) {
            wrong.push(format!("{}\n{fault}: {answer}\n", shown(&request)));
        }
    }
    assert!(
        wrong.is_empty(),
        "{} of {}:\n{}",
        wrong.len(),
        cases.len(),
        wrong.join("\n")
    );
}

/// A GET with these header lines beside its Host.
fn get(lines: &str) -> String {
    format!("GET /feeds HTTP/1.1\r\nHost: h\r\n{lines}\r\n")
}

/// A POST to the hub with these header lines and this body.
fn post(lines: &str, body: &str) -> String {
    format!("POST /hub HTTP/1.1\r\nHost: h\r\n{lines}\r\n{body}")
}

/// A POST with a chunked body.
fn chunked(body: &str) -> String {
    post("Transfer-Encoding: chunked\r\n", body)
}

/// Framing that two readers could read in two ways.
fn framing() -> Vec<(u16, String)> {
    let hidden = format!("0\r\n\r\n{BEHIND}");
    let codings = [
        (
            400,
            "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n",
        ),
        (
            400,
            "Transfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n",
        ),
        (
            400,
            "Transfer-Encoding: identity\r\nTransfer-Encoding: chunked\r\n",
        ),
        (400, "Transfer-Encoding: chunked, chunked\r\n"),
        (400, "Transfer-Encoding: chunked,\r\n"),
        (400, "Transfer-Encoding: ,chunked\r\n"),
        (400, "Transfer-Encoding: xchunked\r\n"),
        (400, "Transfer-Encoding: chunkedx\r\n"),
        (400, "Transfer-Encoding: chunked;q=1\r\n"),
        (400, "Transfer-Encoding: \"chunked\"\r\n"),
        (400, "Transfer-Encoding: chunked, nonsense\r\n"),
        (400, "Transfer-Encoding: chunked, identity, chunked\r\n"),
        (400, "Transfer-Encoding: \r\n"),
        (400, "Transfer-Encoding:\r\n"),
        (400, "Transfer-Encoding : chunked\r\n"),
        (400, "Transfer-Encoding\t: chunked\r\n"),
        (400, " Transfer-Encoding: chunked\r\n"),
        (400, "Transfer-Encoding:\r\n chunked\r\n"),
        (400, "Transfer-Encoding: \x0bchunked\r\n"),
        (400, "Transfer-Encoding: chunked\x00\r\n"),
        (400, "Transfer-Encoding: chunked\x0c\r\n"),
        (400, "Transfer-Encoding\x00: chunked\r\n"),
        (400, "Transfer_Encoding: chunked\r\n"),
        (400, "Transfer Encoding: chunked\r\n"),
        (400, "X: y\rTransfer-Encoding: chunked\r\n"),
        (400, "X: y\nTransfer-Encoding: chunked\r\n"),
        (400, "X: y\r\n\tTransfer-Encoding: chunked\r\n"),
        (501, "Transfer-Encoding: gzip\r\n"),
        (501, "Transfer-Encoding: gzip, chunked\r\n"),
        (400, "Transfer-Encoding: chunked, identity\r\n"),
        (501, "Transfer-Encoding: identity\r\n"),
        (501, "Transfer-Encoding: IDENTITY, Chunked\r\n"),
    ];
    let codings = codings.map(|(status, lines)| (status, post(lines, &hidden)));
    let lengths = [
        "Content-Length: 5\r\nTransfer-Encoding: chunked\r\n",
        "Transfer-Encoding: chunked\r\nContent-Length: 5\r\n",
        "Transfer-Encoding: chunked\r\ncontent-length: 0\r\n",
        "Transfer-Encoding: identity\r\nContent-Length: 5\r\n",
        "Content-Length: 5\r\nContent-Length: 5\r\n",
        "Content-Length: 5\r\nContent-Length: 6\r\n",
        "Content-Length: 0\r\ncontent-length: 48\r\n",
        "Content-Length: 5, 5\r\n",
        "Content-Length: 5,6\r\n",
        "Content-Length: +5\r\n",
        "Content-Length: -5\r\n",
        "Content-Length: 0x5\r\n",
        "Content-Length: 5 5\r\n",
        "Content-Length: 5;\r\n",
        "Content-Length: 5.0\r\n",
        "Content-Length: 5e0\r\n",
        "Content-Length: \r\n",
        "Content-Length: 05\r\n",
        "Content-Length: 00\r\n",
        "Content-Length: five\r\n",
        "Content-Length: 9223372036854775808\r\n",
        "Content-Length: 18446744073709551621\r\n",
        "Content-Length: 99999999999999999999999999\r\n",
        "Content-Length: \u{665}\r\n",
        "Content-Length : 5\r\n",
        "Content-Length\r\n",
        "Content-Length: 5\x00\r\n",
        "Content_Length: 5\r\n",
        "Content-Length:\r\n 5\r\n",
        "Connection: close, Content-Length\r\nContent-Length: 5\r\n",
        "Connection: Transfer-Encoding\r\nTransfer-Encoding: chunked\r\n",
    ];
    let lengths = lengths.map(|lines| (400, post(lines, &hidden)));
    let old = "POST /hub HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n".to_owned();
    codings
        .into_iter()
        .chain(lengths)
        .chain([(400, old)])
        .collect()
}

/// Chunks that two readers could read in two ways.
fn chunks() -> Vec<(u16, String)> {
    let flood = format!("5;{}\r\nhello\r\n0\r\n\r\n", "x".repeat(300));
    let trailers: String = (0..33).map(|n| format!("X-{n}: y\r\n")).collect();
    let bodies = [
        "0\n\n",
        "0\r\n\n",
        "0\r\n\rX",
        "5\nhello\r\n0\r\n\r\n",
        "5\rhello\r\n0\r\n\r\n",
        "5\r\nhello\n0\r\n\r\n",
        "5\r\nhello0\r\n\r\n",
        "5\r\nhelloworld\r\n0\r\n\r\n",
        "4\r\nhello\r\n0\r\n\r\n",
        "5\r\nhello\r\r\n0\r\n\r\n",
        "5 \r\nhello\r\n0\r\n\r\n",
        " 5\r\nhello\r\n0\r\n\r\n",
        "+5\r\nhello\r\n0\r\n\r\n",
        "-5\r\nhello\r\n0\r\n\r\n",
        "0x5\r\nhello\r\n0\r\n\r\n",
        "5h\r\nhello\r\n0\r\n\r\n",
        "g\r\nhello\r\n0\r\n\r\n",
        ";x\r\nhello\r\n0\r\n\r\n",
        "\r\nhello\r\n0\r\n\r\n",
        "5;x\nhello\r\n0\r\n\r\n",
        "5;x\ry\r\nhello\r\n0\r\n\r\n",
        "5;\x00\r\nhello\r\n0\r\n\r\n",
        "10000000000000005\r\nhello\r\n0\r\n\r\n",
        "00000000000000005\r\nhello\r\n0\r\n\r\n",
        "8000000000000000\r\nhello\r\n0\r\n\r\n",
        "fffffffffffffffe\r\nhello\r\n0\r\n\r\n",
        "0\r\nContent-Length: 5\r\n\r\n",
        "0\r\nTransfer-Encoding: chunked\r\n\r\n",
        "0\r\ntransfer_encoding: chunked\r\n\r\n",
        "0\r\nHost: other\r\n\r\n",
        "0\r\nAuthorization: Basic eA==\r\n\r\n",
        "0\r\nX-Forwarded-For: 127.0.0.1\r\n\r\n",
        "0\r\nX : y\r\n\r\n",
        "0\r\n X: y\r\n\r\n",
        "0\r\nX: y\nZ: a\r\n\r\n",
        "0\r\nX: y\x00\r\n\r\n",
        "0\r\nnonsense\r\n\r\n",
        "0\r\nGET /feeds HTTP/1.1\r\n\r\n",
        &flood,
    ];
    let long = [
        format!("0\r\n{trailers}\r\n"),
        format!("0\r\nX: {}\r\n\r\n", "y".repeat(9 << 10)),
    ];
    let bodies = bodies.iter().map(|body| (400, chunked(body)));
    bodies
        .chain(long.iter().map(|body| (431, chunked(body))))
        .collect()
}

/// Heads that are none, or too long.
fn heads() -> Vec<(u16, String)> {
    let line = |line: &str| format!("{line}\r\nHost: h\r\n\r\n");
    let lines = [
        (505, "GET /feeds"),
        (505, "GET /feeds HTTP/2.0"),
        (505, "GET /feeds HTTP/0.9"),
        (505, "GET /feeds HTTP/1.2"),
        (505, "PRI * HTTP/2.0"),
        (400, "GET /feeds http/1.1"),
        (400, "GET /feeds HTTP/1.1 "),
        (400, "GET /feeds HTTP/01.1"),
        (400, "GET /feeds HTTP/1.10"),
        (400, "GET /feeds HTTP/1,1"),
        (400, "GET /feeds HTTP 1.1"),
        (400, "GET /feeds FTP/1.1"),
        (400, "GET  /feeds HTTP/1.1"),
        (400, "GET /feeds  HTTP/1.1"),
        (400, "GET\t/feeds\tHTTP/1.1"),
        (400, "GET /feeds\tHTTP/1.1"),
        (400, "GET /feeds /hub HTTP/1.1"),
        (400, " GET /feeds HTTP/1.1"),
        (400, "\0GET /feeds HTTP/1.1"),
        (400, "G(T /feeds HTTP/1.1"),
        (400, "GET: /feeds HTTP/1.1"),
        (400, "GET /fe\0eds HTTP/1.1"),
        (400, "GET /feeds\r HTTP/1.1"),
        (400, "GET /feeds#top HTTP/1.1"),
        (400, "GET /<script> HTTP/1.1"),
        (400, "GET /`<script>?\" HTTP/1.1"),
        (400, "GET http://h`/feeds HTTP/1.1"),
        (400, "GET /feeds?\"\0 HTTP/1.1"),
        (400, "GET /\x7f HTTP/1.1"),
        (400, "GET feeds HTTP/1.1"),
        (400, "GET ?x=y HTTP/1.1"),
        (400, "GET * HTTP/1.1"),
        (400, "GET h:80 HTTP/1.1"),
        (400, "GET http:/feeds HTTP/1.1"),
        (400, "GET http:///feeds HTTP/1.1"),
        (400, "GET ftp://h/feeds HTTP/1.1"),
        (400, "GET file:///etc/passwd HTTP/1.1"),
        (400, "GET http://other/feeds HTTP/1.1"),
        (400, "GET http://h:81/feeds HTTP/1.1"),
        (400, "GET http://user@h/feeds HTTP/1.1"),
        (400, "GET http://h@other/feeds HTTP/1.1"),
        (400, "OPTIONS ** HTTP/1.1"),
        (501, "CONNECT h:80 HTTP/1.1"),
        (501, "CONNECT /feeds HTTP/1.1"),
        (400, "nonsense"),
        (400, "\u{16}\u{3}\u{1}"),
    ];
    let hosts = [
        "",
        "Host: h\r\nHost: h\r\n",
        "Host: h\r\nhost: other\r\n",
        "Host:\r\n",
        "Host: a, b\r\n",
        "Host: a b\r\n",
        "Host: http://h\r\n",
        "Host: h/feeds\r\n",
        "Host: user@h\r\n",
        "Host: h:80:80\r\n",
        "Host: h:port\r\n",
        "Host: h:65536\r\n",
        "Host: h:+80\r\n",
        "Host: :80\r\n",
        "Host: [::1\r\n",
        "Host: ::1\r\n",
        "Host: [::g]\r\n",
        "Host: [::1]x\r\n",
        "Host: h\u{e9}\r\n",
        "Host: h%2f\r\n",
        "Host: h?x\r\n",
        "Host : h\r\n",
        " Host: h\r\n",
        "Host: h\r\n other\r\n",
    ]
    .map(|lines| (400, format!("GET /feeds HTTP/1.1\r\n{lines}\r\n")));
    let headers = [
        "X: y\r\n z\r\n",
        "X: y\r\n\tz\r\n",
        "X : y\r\n",
        "X\r\n",
        ": y\r\n",
        "X: a\0b\r\n",
        "X: a\rb\r\n",
        "X: a\x08b\r\n",
        "X(: y\r\n",
        "X\u{e9}: y\r\n",
        "X: y\n",
        "\nX: y\r\n",
    ]
    .map(|lines| (400, get(lines)));
    let many: String = (0..100).map(|n| format!("X-{n}: y\r\n")).collect();
    let long = "y".repeat(50 << 10);
    let floods = [
        (431, get(&many)),
        (431, get(&format!("X: {long}\r\n"))),
        (431, get(&format!("X: {}\r\n", "y".repeat(400 << 10)))),
        (431, get(&"X: y\r\n".repeat(9000))),
        (414, line(&format!("GET /{long} HTTP/1.1"))),
        (414, "GET /".to_owned() + &"y".repeat(400 << 10)),
        (414, line(&format!("{long} / HTTP/1.1"))),
        (400, "GET /feeds HTTP/1.1\nHost: h\n\n".to_owned()),
        (400, "GET /feeds HTTP/1.1\r\nHost: h\n\r\n".to_owned()),
        (400, "GET /feeds HTTP/1.1\r\nHost: h\r\n\n".to_owned()),
        (400, "GET /feeds HTTP/1.1\r\rHost: h\r\n\r\n".to_owned()),
        (400, "\n\nGET /feeds HTTP/1.1\r\nHost: h\r\n\r\n".to_owned()),
        (
            400,
            "\r\n\r\nGET /feeds HTTP/1.1\r\nHost: h\r\n\r\n".to_owned(),
        ),
        (
            400,
            "GET /feeds HTTP/1.0\r\nHost: h\r\nHost: h\r\n\r\n".to_owned(),
        ),
    ];
    let lines = lines.into_iter().map(|(status, text)| (status, line(text)));
    lines.chain(hosts).chain(headers).chain(floods).collect()
}

#[tokio::test]
async fn what_two_readers_could_take_for_different_requests_is_refused_in_a_line() {
    let (app, _place) = start().await;
    let cases: Vec<_> = framing()
        .into_iter()
        .chain(chunks())
        .chain(heads())
        .collect();
    assert!(cases.len() > 180, "{}", cases.len());
    for address in [app.address(), app.admin_address()] {
        check_refused(address, &cases, 1).await;
    }
    let short: Vec<_> = cases
        .into_iter()
        .filter(|(_, request)| request.len() < 500)
        .collect();
    check_refused(app.address(), &short, 3).await;
    // Found behind what is read at once: the hub waits for the whole body, the operator's listener
    // would not.
    let many: String = (0..130)
        .map(|_| format!("1;{}\r\nx\r\n", "y".repeat(100)))
        .collect();
    check_refused(app.address(), &[(400, chunked(&many))], 1).await;
    app.stop().await.unwrap();
}

#[tokio::test]
async fn a_refusal_goes_out_behind_the_answers_to_the_requests_before_it() {
    let (app, _place) = start().await;
    for (bad, status) in [
        (get("X : y\r\n"), "400"),
        ("GET /feeds".to_owned() + " HTTP/3.0\r\n", "505"),
    ] {
        let request = format!(
            "{}{}{bad}{BEHIND}",
            get(""),
            post("Content-Length: 5\r\n", "hello")
        );
        for pieces in [1, 2, 7] {
            let answer = answers(app.address(), request.as_bytes(), pieces).await;
            let statuses: Vec<_> = answer
                .split("HTTP/1.1 ")
                .skip(1)
                .filter_map(|part| part.split(' ').next())
                .filter(|status| status.parse::<u16>().is_ok())
                .collect();
            assert_eq!(statuses, ["200", "415", status], "{answer}");
        }
    }
    app.stop().await.unwrap();
}

#[tokio::test]
async fn a_request_that_breaks_off_in_its_head_is_told_so() {
    let (app, _place) = start().await;
    for request in [
        "G",
        "GET /feeds HTTP/1.1\r\n",
        "GET /feeds HTTP/1.1\r\nHost: h\r\nX: y\r\n",
    ] {
        let mut stream = TcpStream::connect(app.address()).await.unwrap();
        stream.write_all(request.as_bytes()).await.unwrap();
        stream.shutdown().await.unwrap();
        let mut answer = String::new();
        timeout(PATIENCE, stream.read_to_string(&mut answer))
            .await
            .unwrap()
            .unwrap();
        assert_eq!(
            fault_of_refusal(400, &answer),
            None,
            "{request:?}: {answer}"
        );
    }
    app.stop().await.unwrap();
}

#[tokio::test]
async fn requests_that_everybody_reads_alike_are_answered_one_behind_the_other() {
    let (app, _place) = start().await;
    let line = |line: &str| format!("{line}\r\nHost: h\r\n\r\n");
    let many: String = (0..98).map(|n| format!("X-{n}: y\r\n")).collect();
    let requests = [
        get(""),
        get("Content-Length: 0\r\n"),
        get("Content-Length: \t5 \t\r\n") + "hello",
        get("cOnTeNt-lEnGtH:5\r\n") + "hello",
        get("tRANSFER-eNCODING:\tChunked \r\n") + "0\r\n\r\n",
        chunked("") + "5\r\nhello\r\n00a;x=\"y z\";z\r\n0123456789\r\n0\r\n\r\n",
        get("Transfer-Encoding: chunked\r\nTrailer: X\r\n")
            + "5\r\nhello\r\n000;x\r\nX: y\r\nZ:\r\n\r\n",
        get("X: \u{e9}\t ()<>@\r\nX-Empty:\r\n!#$%&'*+-.^_`|~1: y\r\n"),
        get(&many),
        get(&format!("X: {}\r\n", "y".repeat(40 << 10))),
        "\r\n".to_owned() + &get(""),
        get("Upgrade: websocket\r\nConnection: Upgrade\r\n"),
        get("Upgrade: h2c\r\nConnection: Upgrade, HTTP2-Settings\r\nHTTP2-Settings: AAMAAABk\r\n"),
        get("Upgrade: x\r\nContent-Length: 5\r\n") + "hello",
        line("OPTIONS * HTTP/1.1"),
        line("GET http://h/feeds HTTP/1.1"),
        line("GET HTTP://H:80/feeds HTTP/1.1"),
        line("GET https://h:443/feeds HTTP/1.1"),
        line("GET http://h HTTP/1.1"),
        line("GET /feeds?x=%zz&y=[]|{}\\^`' HTTP/1.1"),
        line("GET /`\"?q=\"quoted\"&x=` HTTP/1.1"),
        line("GET http://h/feeds?\"\" HTTP/1.1"),
        line("GET /f\u{e9}\u{e9}d HTTP/1.1"),
        line("PROPFIND /feeds HTTP/1.1"),
        line("get /feeds HTTP/1.1"),
        "GET /feeds HTTP/1.0\r\nConnection: keep-alive\r\n\r\n".to_owned(),
        "GET /feeds HTTP/1.1\r\nHost: [::1]:8080\r\n\r\n".to_owned(),
        "GET /feeds HTTP/1.1\r\nHost: h:\r\n\r\n".to_owned(),
        "GET /feeds HTTP/1.1\r\nHost: [::1]:\r\n\r\n".to_owned(),
        "GET http://h:/feeds HTTP/1.1\r\nHost: h:80\r\n\r\n".to_owned(),
        "GET /feeds HTTP/1.1\r\nHost: a_b.example:65535\r\n\r\n".to_owned(),
    ];
    let last = get("Connection: close\r\n");
    for request in &requests {
        let bytes = format!("{request}{request}{last}");
        for pieces in [1, 2, 5] {
            let answer = answers(app.address(), bytes.as_bytes(), pieces).await;
            assert_eq!(count(&answer), 3, "{}\n{answer}", shown(bytes.as_bytes()));
            for told in ["HTTP/1.1 400", "HTTP/1.1 5", "HTTP/1.1 414", "HTTP/1.1 431"] {
                assert!(
                    !answer.contains(told),
                    "{}\n{answer}",
                    shown(bytes.as_bytes())
                );
            }
        }
    }
    app.stop().await.unwrap();
}

#[tokio::test]
async fn no_other_expectation_is_met_than_that_of_being_asked_for_the_body() {
    let (app, _place) = start().await;
    for (lines, status) in [
        ("Expect: foo\r\n", "417"),
        ("Expect: 100-continue, foo\r\n", "417"),
        ("Expect: 100-continue\r\nExpect: x=y\r\n", "417"),
        ("Expect: \u{e9}\r\n", "417"),
        ("Expect: 100-Continue\r\n", "200"),
        ("Expect:\r\n", "200"),
    ] {
        let answer = answers(
            app.address(),
            get(&format!("{lines}Connection: close\r\n")).as_bytes(),
            1,
        )
        .await;
        let end = answer.split("HTTP/1.1 ").last().unwrap();
        assert!(end.starts_with(status), "{lines}: {answer}");
        assert!(
            status == "200"
                || end.ends_with("the only expectation that is met here is 100-continue\n")
        );
    }
    let old = "GET /feeds HTTP/1.0\r\nExpect: foo\r\n\r\n";
    assert!(
        answers(app.address(), old.as_bytes(), 1)
            .await
            .starts_with("HTTP/1.0 200 "),
        "RFC 9110 10.1.1"
    );
    app.stop().await.unwrap();
}

#[tokio::test]
async fn a_body_that_is_waited_for_with_100_continue_comes() {
    let (app, _place) = start().await;
    for framing in ["Content-Length: 5", "Transfer-Encoding: chunked"] {
        let mut stream = TcpStream::connect(app.address()).await.unwrap();
        let head = post(&format!("{framing}\r\nExpect: 100-continue\r\n"), "");
        stream.write_all(head.as_bytes()).await.unwrap();
        let mut answer = [0; 25];
        timeout(PATIENCE, stream.read_exact(&mut answer))
            .await
            .unwrap()
            .unwrap();
        assert_eq!(&answer, b"HTTP/1.1 100 Continue\r\n\r\n");
        let body = if framing.starts_with('C') {
            "hello"
        } else {
            "5\r\nhello\r\n0\r\n\r\n"
        };
        stream
            .write_all(format!("{body}{}", get("Connection: close\r\n")).as_bytes())
            .await
            .unwrap();
        let mut rest = String::new();
        timeout(PATIENCE, stream.read_to_string(&mut rest))
            .await
            .unwrap()
            .unwrap();
        assert!(
            rest.starts_with("HTTP/1.1 415 ") && rest.contains("HTTP/1.1 200 "),
            "{rest}"
        );
    }
    app.stop().await.unwrap();
}

#[tokio::test]
async fn a_path_that_is_spelt_in_a_tricky_way_reaches_nothing_of_ours() {
    let (app, _place) = start().await;
    for target in [
        "//feeds",
        "/feeds//",
        "///hub",
        "/./feeds",
        "/feeds/.",
        "/feeds/../hub",
        "/x/../feeds",
        "/%2e/feeds",
        "/x/%2e%2e/feeds",
        "/x/%2E%2E%2Ffeeds",
        "/feeds%2f",
        "/feeds%2fblog",
        "/%2ffeeds",
        "/x%2f..%2ffeeds",
        "/feeds;x",
        "/feeds;/",
        "/feeds%3bx",
        "/;/feeds",
        "/feeds%00",
        "/feeds%20",
        "/feeds%0d%0a",
        "/feeds%3fx",
        "/feeds%23",
        "/%252e%252e/feeds",
        "/feeds\\",
        "/x\\..\\feeds",
        "/x/..;/feeds",
        "/FEEDS",
        "/feeds.",
        "/fe%c3%a9ds",
        "/%c0%ae%c0%ae/feeds",
        "/feeds%5c",
        "/hub;x",
        "/hub%2f",
        "//hub",
    ] {
        let request = format!("GET {target} HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n");
        let answer = answers(app.address(), request.as_bytes(), 1).await;
        assert!(answer.starts_with("HTTP/1.1 404 "), "{target}: {answer}");
    }
    app.stop().await.unwrap();
}
