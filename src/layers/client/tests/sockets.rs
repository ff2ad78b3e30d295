//! The wire against real sockets on loopback. Real time, no sleeping: each test is over as soon as
//! the scripted answers have been played.

use std::io::Write;
use std::net::{Ipv4Addr, SocketAddr};

use reqwest::dns::{Addrs, Name, Resolving};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;

use crate::layers::client::*;
use crate::layers::error::{
    ConnectFault, CutFault, InflateFault, ProtocolFault, Refused, Size, TlsFault,
};
use crate::layers::{Asked, Landing, Trusted, Validators, WireBytes};

/// Plays one answer per connection, closes it, and hands back the heads of the requests.
async fn origin(answers: Vec<Vec<u8>>) -> (String, JoinHandle<Vec<String>>) {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
    let base = format!("http://{}", listener.local_addr().unwrap());
    let playing = tokio::spawn(async move {
        let mut heads = Vec::new();
        for answer in answers {
            let (mut socket, _) = listener.accept().await.unwrap();
            heads.push(read_head(&mut socket).await);
            // The client may hang up as soon as it has seen enough.
            let _ = socket.write_all(&answer).await;
            let _ = socket.shutdown().await;
        }
        heads
    });
    (base, playing)
}

async fn read_head(socket: &mut TcpStream) -> String {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        head.push(socket.read_u8().await.unwrap());
    }
    head.into_iter().map(char::from).collect()
}

fn answer(head: &str, body: &[u8]) -> Vec<u8> {
    let head = format!("HTTP/1.1 {head}\r\nConnection: close\r\n\r\n");
    [head.as_bytes(), body].concat()
}

fn client() -> Client {
    upstream(&ClientConfig::default(), Governor::default()).unwrap()
}

fn configured(url: &str) -> Request {
    let mut request = http::Request::get(url).body(Bytes::new()).unwrap();
    request
        .extensions_mut()
        .insert(Trusted::origin_of(&url.parse().unwrap()));
    request
}

async fn fetch_one(reply: Vec<u8>) -> Result<http::Response<Bytes>, FetchError> {
    let (base, _) = origin(vec![reply]).await;
    client()
        .send(configured(&format!("{base}/rss.xml?key=secret")))
        .await
}

#[tokio::test]
async fn an_upstream_is_asked_as_a_feed_reader_asks() {
    let (base, heads) = origin(vec![answer("200 OK\r\nContent-Length: 6", b"<rss/>")]).await;
    let reply = client()
        .send(configured(&format!("{base}/rss.xml")))
        .await
        .unwrap();
    assert_eq!(&reply.body()[..], b"<rss/>");
    assert_eq!(reply.extensions().get::<WireBytes>().unwrap().count(), 6);
    let head = heads.await.unwrap().remove(0).to_ascii_lowercase();
    assert!(head.starts_with("get /rss.xml http/1.1\r\n"), "{head}");
    for line in [
        "accept: application/atom+xml, ",
        "accept-encoding: gzip, deflate, br, zstd\r\n",
        "user-agent: everfeed/",
    ] {
        assert!(head.contains(line), "{line} in {head}");
    }
    for unwanted in [
        "a-im",
        "content-length",
        "transfer-encoding",
        "cookie",
        "referer",
        "if-",
    ] {
        assert!(!head.contains(unwanted), "{unwanted} in {head}");
    }
}

// RFC 9110 section 8.6: a push of an empty resource says that it is empty.
#[tokio::test]
async fn a_push_without_a_body_says_its_length() {
    let config = ClientConfig {
        private_ok: true,
        ..ClientConfig::for_callbacks()
    };
    for method in ["POST", "PUT", "PATCH"] {
        let (base, heads) = origin(vec![answer("204 No Content", b"")]).await;
        let push = http::Request::builder()
            .method(method)
            .uri(format!("{base}/c"));
        let push = push.body(Bytes::new()).unwrap();
        callback(&config).unwrap().send(push).await.unwrap();
        let head = heads.await.unwrap().remove(0).to_ascii_lowercase();
        assert!(head.contains("content-length: 0\r\n"), "{head}");
        assert!(!head.contains("transfer-encoding"), "{head}");
    }
}

#[tokio::test]
async fn a_body_short_of_its_content_length_is_cut() {
    let error = fetch_one(answer("200 OK\r\nContent-Length: 100", b"<rss><channel>"))
        .await
        .unwrap_err();
    assert!(matches!(error, FetchError::Cut(..)), "{error:?}");
}

#[tokio::test]
async fn a_chunked_body_without_its_last_chunk_is_cut() {
    let chunked = "200 OK\r\nTransfer-Encoding: chunked";
    let whole = fetch_one(answer(chunked, b"5\r\n<rss/\r\n1\r\n>\r\n0\r\n\r\n"))
        .await
        .unwrap();
    assert_eq!(&whole.body()[..], b"<rss/>");
    for body in [&b"5\r\n<rss/\r\n1\r\n>\r\n"[..], b"5\r\n<rs", b""] {
        let error = fetch_one(answer(chunked, body)).await.unwrap_err();
        assert!(matches!(error, FetchError::Cut(..)), "{error:?}");
    }
}

#[tokio::test]
async fn a_head_that_never_came_is_cut_and_one_that_is_no_http_is_a_protocol_error() {
    let error = fetch_one(Vec::new()).await.unwrap_err();
    assert!(
        matches!(error, FetchError::Cut(CutFault::UnansweredInPlain, _)),
        "{error:?}"
    );
    let error = fetch_one(b"220 ftp.example ready\r\n".to_vec())
        .await
        .unwrap_err();
    assert!(
        matches!(error, FetchError::Protocol(ProtocolFault::Malformed, _)),
        "{error:?}"
    );
    let lines: String = (0..200).map(|n| format!("\r\nX-{n}: y")).collect();
    let error = fetch_one(answer(&format!("200 OK{lines}"), b"<rss/>"))
        .await
        .unwrap_err();
    assert!(
        matches!(error, FetchError::Protocol(ProtocolFault::LargeHead, _)),
        "{error:?}"
    );
    let error = fetch_one(answer("200 OK\r\nContent-Encoding: exi", b"<rss/>"))
        .await
        .unwrap_err();
    assert!(
        matches!(error, FetchError::Inflate(InflateFault::UnknownCoding, _)),
        "{error:?}"
    );
    let bad_chunk = answer("200 OK\r\nTransfer-Encoding: chunked", b"zz\r\n<rss/>\r\n");
    let error = fetch_one(bad_chunk).await.unwrap_err();
    assert!(matches!(error, FetchError::Protocol(..)), "{error:?}");
}

#[tokio::test]
async fn a_length_over_the_cap_is_refused_at_the_head() {
    let error = fetch_one(answer("200 OK\r\nContent-Length: 1073741824", b""))
        .await
        .unwrap_err();
    assert!(
        matches!(
            error,
            FetchError::TooLarge {
                bytes_max: 10_485_760,
                size: Size::Wire
            }
        ),
        "{error:?}"
    );
}

#[tokio::test]
async fn a_packed_body_arrives_plain_and_is_counted_packed() {
    let plain = "<rss>".repeat(1000);
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
    encoder.write_all(plain.as_bytes()).unwrap();
    let packed = encoder.finish().unwrap();
    let head = format!(
        "200 OK\r\nContent-Encoding: gzip\r\nContent-Length: {}",
        packed.len()
    );
    let reply = fetch_one(answer(&head, &packed)).await.unwrap();
    assert_eq!(&reply.body()[..], plain.as_bytes());
    assert_eq!(
        reply.extensions().get::<WireBytes>().unwrap().count(),
        packed.len() as u64
    );

    let error = fetch_one(answer(
        "200 OK\r\nContent-Encoding: gzip",
        &packed[..packed.len() - 9],
    ))
    .await;
    assert!(matches!(error, Err(FetchError::Inflate(..))), "{error:?}");
}

#[tokio::test]
async fn validators_travel_word_for_word_over_the_wire() {
    let head = "200 OK\r\nETag: caf\u{e9}-no-quotes\r\nLast-Modified: Sun, 6 Nov 1994 8:49:37 +0000\r\nContent-Length: 0";
    let first: Vec<u8> = format!("HTTP/1.1 {head}\r\nConnection: close\r\n\r\n")
        .chars()
        .map(|c| c as u8)
        .collect();
    let (base, heads) = origin(vec![first, answer("304 Not Modified", b"")]).await;
    let (client, url) = (client(), format!("{base}/feed"));
    let reply = client.send(configured(&url)).await.unwrap();
    let mut again = configured(&url);
    again
        .extensions_mut()
        .insert(reply.extensions().get::<Validators>().unwrap().clone());
    let reply = client.send(again).await.unwrap();
    assert_eq!(
        (reply.status().as_u16(), reply.extensions().get()),
        (304, Some(&Asked { conditional: true }))
    );
    let head = &heads.await.unwrap()[1];
    assert!(
        head.to_lowercase()
            .contains("if-none-match: caf\u{e9}-no-quotes\r\n"),
        "{head}"
    );
    assert!(
        head.contains(": Sun, 6 Nov 1994 8:49:37 +0000\r\n"),
        "{head}"
    );
}

#[tokio::test]
async fn redirects_are_followed_over_the_wire() {
    let (base, heads) = origin(vec![
        answer(
            "301 Moved Permanently\r\nLocation: /rss.xml\r\nContent-Length: 5",
            b"moved",
        ),
        answer("200 OK\r\nContent-Length: 6", b"<rss/>"),
    ])
    .await;
    let reply = client()
        .send(configured(&format!("{base}/old")))
        .await
        .unwrap();
    let landing = reply.extensions().get::<Landing>().unwrap();
    assert!(landing.is_permanent());
    assert_eq!(landing.url.as_str(), format!("{base}/rss.xml"));
    assert_eq!(heads.await.unwrap().len(), 2);
}

/// Every name is at 127.0.0.1.
struct AllAtHome;

impl Resolve for AllAtHome {
    fn resolve(&self, _: Name) -> Resolving {
        let home: Addrs = Box::new(std::iter::once(SocketAddr::from((Ipv4Addr::LOCALHOST, 0))));
        Box::pin(std::future::ready(Ok(home)))
    }
}

#[tokio::test]
async fn a_name_that_resolves_to_a_private_address_is_for_the_configured_origin_only() {
    let (base, heads) = origin(vec![answer("200 OK\r\nContent-Length: 0", b"")]).await;
    let url = base.replace("127.0.0.1", "rebound.example");
    let client = upstream_via(
        &ClientConfig::default(),
        Governor::default(),
        Arc::new(AllAtHome),
    )
    .unwrap();

    let derived = http::Request::get(&url).body(Bytes::new()).unwrap();
    let error = client.send(derived).await.unwrap_err();
    assert!(
        matches!(error, FetchError::Refused(Refused::Address)),
        "{error:?}"
    );

    assert_eq!(client.send(configured(&url)).await.unwrap().status(), 200);
    assert_eq!(
        heads.await.unwrap().len(),
        1,
        "only the configured request got through"
    );

    let callback = callback_via(&ClientConfig::for_callbacks(), Arc::new(AllAtHome)).unwrap();
    let post = http::Request::post(&url).body("push".into()).unwrap();
    let error = callback.send(post).await.unwrap_err();
    assert!(
        matches!(error, FetchError::Refused(Refused::Address)),
        "{error:?}"
    );
}

#[tokio::test]
async fn a_connection_of_the_configured_origin_is_not_lent_to_a_derived_request() {
    // Same name, same port, first as configured and kept alive, then as derived.
    let alive = b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n".to_vec();
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
    let url = format!(
        "http://rebound.example:{}/",
        listener.local_addr().unwrap().port()
    );
    let held = tokio::spawn(async move {
        let (mut socket, _) = listener.accept().await.unwrap();
        read_head(&mut socket).await;
        socket.write_all(&alive).await.unwrap();
        let mut more = Vec::new();
        socket.read_to_end(&mut more).await.unwrap();
        more
    });
    let client = upstream_via(
        &ClientConfig::default(),
        Governor::default(),
        Arc::new(AllAtHome),
    )
    .unwrap();
    assert_eq!(client.send(configured(&url)).await.unwrap().status(), 200);
    let mut derived = configured(&url);
    derived.extensions_mut().remove::<Trusted>();
    assert!(matches!(
        client.send(derived).await,
        Err(FetchError::Refused(_))
    ));
    drop(client);
    assert!(
        held.await.unwrap().is_empty(),
        "a second request came over the kept connection"
    );
}

#[tokio::test]
async fn a_closed_port_is_a_failed_connection_and_says_nothing_of_the_url() {
    let free = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))
        .await
        .unwrap()
        .local_addr()
        .unwrap();
    let error = client()
        .send(configured(&format!("http://{free}/feed?key=secret")))
        .await
        .unwrap_err();
    assert!(
        matches!(error, FetchError::Connect(ConnectFault::Refused, _)),
        "{error:?}"
    );
    assert_eq!(
        error.to_string(),
        "the connection was refused: nothing listens there"
    );
    assert!(!format!("{error:?}").contains("secret"), "{error:?}");
}

/// A server that speaks no TLS at its URL with TLS.
async fn without_tls() -> String {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
    let base = format!("https://{}/", listener.local_addr().unwrap());
    tokio::spawn(async move {
        while let Ok((mut socket, _)) = listener.accept().await {
            let _ = socket.write_all(b"HTTP/1.1 400 Bad Request\r\n\r\n").await;
            let mut rest = Vec::new();
            let _ = socket.read_to_end(&mut rest).await;
        }
    });
    base
}

#[tokio::test]
async fn a_server_that_speaks_no_tls_is_a_tls_error() {
    let base = without_tls().await;
    let error = client().send(configured(&base)).await.unwrap_err();
    assert!(
        matches!(error, FetchError::Tls(TlsFault::NotTls, _)),
        "{error:?}"
    );
}

/// Finds no name.
#[derive(Debug)]
struct NoNames;

impl Resolve for NoNames {
    fn resolve(&self, _: Name) -> Resolving {
        Box::pin(async { Err("no such name".into()) })
    }
}

// The wire of callbacks is another one than that of upstreams.
#[tokio::test]
async fn the_faults_of_a_callback_are_told_apart_as_those_of_an_upstream() {
    let config = ClientConfig {
        private_ok: true,
        ..ClientConfig::for_callbacks()
    };
    let client = callback_via(&config, Arc::new(NoNames)).unwrap();
    let push = async |url: &str| {
        let post = http::Request::post(url).body("push".into()).unwrap();
        client.send(post).await
    };
    let error = push("http://reader.example/c").await.unwrap_err();
    assert!(matches!(error, FetchError::Resolve(..)), "{error:?}");
    let (closed, _) = {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
        (listener.local_addr().unwrap(), drop(listener))
    };
    let error = push(&format!("http://{closed}/c")).await.unwrap_err();
    let is_refused = matches!(error, FetchError::Connect(ConnectFault::Refused, _));
    assert!(is_refused, "{error:?}");
    let (base, _) = origin(vec![vec![]]).await;
    let error = push(&base).await.unwrap_err();
    let is_cut = matches!(error, FetchError::Cut(CutFault::UnansweredInPlain, _));
    assert!(is_cut, "{error:?}");
    let (base, _) = origin(vec![b"no HTTP at all\r\n\r\n".to_vec()]).await;
    let error = push(&base).await.unwrap_err();
    assert!(matches!(error, FetchError::Protocol(..)), "{error:?}");
    let error = push(&without_tls().await).await.unwrap_err();
    assert!(matches!(error, FetchError::Tls(..)), "{error:?}");
}

#[tokio::test]
async fn a_callback_gets_one_connection_the_credentials_of_its_url_and_its_path() {
    let config = ClientConfig {
        private_ok: true,
        ..ClientConfig::for_callbacks()
    };
    let (base, heads) = origin(vec![answer("204 No Content", b"")]).await;
    let url = base.replace("//", "//reader:a%20word@") + "/c?k=1";
    let push = http::Request::post(url).body("push".into()).unwrap();
    callback(&config).unwrap().send(push).await.unwrap();
    let head = heads.await.unwrap().remove(0);
    assert!(head.starts_with("POST /c?k=1 HTTP/1.1\r\n"), "{head}");
    let head = head.to_ascii_lowercase();
    assert!(
        head.contains("authorization: basic cmvhzgvyomegd29yza=="),
        "{head}"
    );
    assert!(head.contains("content-length: 4\r\n"), "{head}");
    assert!(!head.contains('@'), "{head}");
}
