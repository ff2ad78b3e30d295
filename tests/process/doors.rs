//! The ways in: TLS with a certificate that changes, HTTP/2 by ALPN, sockets in the file system and
//! those of systemd, the PROXY protocol; over real sockets.

use crate::EVERFEED;
use bytes::Bytes;
use everfeed::{app::App, config::Config};
use http::{Request, Response, Version};
use http_body_util::{BodyExt as _, Empty};
use hyper::{body::Incoming, client::conn};
use hyper_util::rt::{TokioExecutor, TokioIo};
use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair};
use rustls::{
    ClientConfig, RootCertStore,
    crypto::ring,
    pki_types::{CertificateDer, ServerName},
};
use std::{
    fs,
    net::SocketAddr,
    path::Path,
    process::{Command, Stdio},
    sync::Arc,
};
use testkit::{
    place::{Place, free_address},
    wait::{PATIENCE, until},
};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::{TcpListener, TcpStream, UnixStream},
    time::timeout,
};
use tokio_rustls::{TlsConnector, client::TlsStream};

const GET: &[u8] = b"GET /feeds HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n";

/// Makes certificates for the host `h`.
struct Authority {
    issuer: Issuer<'static, KeyPair>,
    root: CertificateDer<'static>,
}

impl Authority {
    fn new() -> Self {
        let mut params = CertificateParams::new(Vec::new()).unwrap();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let key = KeyPair::generate().unwrap();
        let root = params.self_signed(&key).unwrap().der().clone();
        Self {
            issuer: Issuer::new(params, key),
            root,
        }
    }

    /// Writes a new certificate and its key.
    fn issue(&self, folder: &Path) {
        let key = KeyPair::generate().unwrap();
        let params = CertificateParams::new(vec!["h".to_owned()]).unwrap();
        let certificate = params.signed_by(&key, &self.issuer).unwrap();
        fs::write(folder.join("c.pem"), certificate.pem()).unwrap();
        fs::write(folder.join("k.pem"), key.serialize_pem()).unwrap();
    }

    /// A connection that speaks one of these protocols.
    async fn connect(&self, address: SocketAddr, protocols: &[&str]) -> TlsStream<TcpStream> {
        let mut roots = RootCertStore::empty();
        roots.add(self.root.clone()).unwrap();
        let mut config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_root_certificates(roots)
            .with_no_client_auth();
        config.alpn_protocols = protocols
            .iter()
            .map(|name| name.as_bytes().to_vec())
            .collect();
        let stream = TcpStream::connect(address).await.unwrap();
        let name = ServerName::try_from("h").unwrap();
        TlsConnector::from(Arc::new(config))
            .connect(name, stream)
            .await
            .unwrap()
    }
}

/// The certificate that a server has shown.
fn shown(stream: &TlsStream<TcpStream>) -> Vec<u8> {
    stream.get_ref().1.peer_certificates().unwrap()[0].to_vec()
}

async fn start(folder: &Path, server: &str, rest: &str) -> App {
    let config = configuration(folder, server, rest);
    App::start(Config::parse("the test's configuration", &config).unwrap())
        .await
        .unwrap()
}

fn configuration(folder: &Path, server: &str, rest: &str) -> String {
    format!(
        "[server]\nadmin_listen = \"127.0.0.1:0\"\nshutdown_secs = 5\npublic_url = \"https://h/\"\n{server}\n\
         [store]\npath = {:?}\n[[feed]]\nname = \"blog\"\nurl = \"http://127.0.0.1:1/\"\n{rest}",
        folder.join("everfeed.redb").display().to_string(),
    )
}

fn tls(folder: &Path, more: &str) -> String {
    let path = |name| folder.join(name).display().to_string();
    format!(
        "listen = \"127.0.0.1:0\"\ntls = {{ certificate = {:?}, key = {:?}{more} }}",
        path("c.pem"),
        path("k.pem")
    )
}

/// All that is answered.
async fn exchange(mut stream: impl AsyncReadWrite, request: &[u8]) -> String {
    stream.write_all(request).await.unwrap();
    let mut answer = Vec::new();
    timeout(PATIENCE, stream.read_to_end(&mut answer))
        .await
        .expect("an answer")
        .unwrap();
    String::from_utf8(answer).unwrap()
}

trait AsyncReadWrite: tokio::io::AsyncRead + tokio::io::AsyncWrite + Unpin {}
impl<T: tokio::io::AsyncRead + tokio::io::AsyncWrite + Unpin> AsyncReadWrite for T {}

#[tokio::test]
async fn https_speaks_both_versions_and_tells_browsers_to_stay() {
    let (folder, authority) = (tempfile::tempdir().unwrap(), Authority::new());
    authority.issue(folder.path());
    let app = start(
        folder.path(),
        &tls(folder.path(), ", hsts_secs = 86400"),
        "",
    )
    .await;
    for protocols in [&["http/1.1"][..], &[]] {
        let answer = exchange(authority.connect(app.address(), protocols).await, GET).await;
        assert!(answer.starts_with("HTTP/1.1 200 "), "{answer}");
        assert!(
            answer.contains("\r\nstrict-transport-security: max-age=86400\r\n"),
            "{answer}"
        );
    }
    let stream = authority.connect(app.address(), &["h2", "http/1.1"]).await;
    assert_eq!(stream.get_ref().1.alpn_protocol(), Some(&b"h2"[..]));
    let (mut asks, talk) = conn::http2::handshake(TokioExecutor::new(), TokioIo::new(stream))
        .await
        .unwrap();
    let talk = tokio::spawn(talk);
    let request = Request::get("https://h/feeds")
        .body(Empty::<Bytes>::new())
        .unwrap();
    let answer: Response<Incoming> = asks.send_request(request).await.unwrap();
    assert_eq!(
        (answer.status().as_u16(), answer.version()),
        (200, Version::HTTP_2)
    );
    assert_eq!(
        answer.headers()["strict-transport-security"],
        "max-age=86400"
    );
    assert!(
        !answer
            .into_body()
            .collect()
            .await
            .unwrap()
            .to_bytes()
            .is_empty()
    );
    drop(asks);
    let _ = talk.await;
    // Requests are checked below TLS, too, and plain HTTP is not spoken here.
    let answer = exchange(
        authority.connect(app.address(), &[]).await,
        b"GET / HTTP/1.1\r\nX : y\r\n\r\n",
    )
    .await;
    assert!(answer.starts_with("HTTP/1.1 400 "), "{answer}");
    let mut plain = TcpStream::connect(app.address()).await.unwrap();
    plain.write_all(GET).await.unwrap();
    let mut answer = Vec::new();
    let _ = timeout(PATIENCE, plain.read_to_end(&mut answer))
        .await
        .expect("it is hung up on");
    assert!(!answer.starts_with(b"HTTP/"), "{}", answer.escape_ascii());
    app.stop().await.unwrap();
}

#[tokio::test]
async fn a_certificate_is_exchanged_under_connections_that_go_on() {
    let (folder, authority) = (tempfile::tempdir().unwrap(), Authority::new());
    authority.issue(folder.path());
    let app = start(folder.path(), &tls(folder.path(), ""), "").await;
    let mut old = authority.connect(app.address(), &[]).await;
    let first = shown(&old);
    authority.issue(folder.path());
    until("the new certificate is taken", async || {
        shown(&authority.connect(app.address(), &[]).await) != first
    })
    .await;
    // A connection goes on with what it was begun with.
    old.write_all(GET).await.unwrap();
    let mut answer = String::new();
    timeout(PATIENCE, old.read_to_string(&mut answer))
        .await
        .expect("an answer")
        .unwrap();
    assert!(
        answer.starts_with("HTTP/1.1 200 ") && !answer.contains("strict-transport"),
        "{answer}"
    );
    app.stop().await.unwrap();
}

#[tokio::test]
async fn http_leads_to_https() {
    let (folder, authority) = (tempfile::tempdir().unwrap(), Authority::new());
    authority.issue(folder.path());
    // A port that is free now.
    let http = free_address();
    let more = format!(", redirect_from = \"{http}\"");
    let app = start(folder.path(), &tls(folder.path(), &more), "").await;
    let request = b"GET /feeds/blog?x=%20 HTTP/1.1\r\nHost: h:80\r\nConnection: close\r\n\r\n";
    let answer = exchange(TcpStream::connect(http).await.unwrap(), request).await;
    assert!(answer.starts_with("HTTP/1.1 308 "), "{answer}");
    assert!(
        answer.contains("\r\nlocation: https://h/feeds/blog?x=%20\r\n"),
        "{answer}"
    );
    app.stop().await.unwrap();
}

#[tokio::test]
async fn sockets_in_the_file_system_stand_beside_ports() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("http.sock");
    let listen = format!("listen = [\"127.0.0.1:0\", \"unix:{}\"]", path.display());
    let app = start(folder.path(), &listen, "").await;
    let by_path = exchange(UnixStream::connect(&path).await.unwrap(), GET).await;
    let by_port = exchange(TcpStream::connect(app.address()).await.unwrap(), GET).await;
    assert!(
        by_path.starts_with("HTTP/1.1 200 ") && by_port.starts_with("HTTP/1.1 200 "),
        "{by_path}{by_port}"
    );
    let by_curl = path.clone();
    let curl = tokio::task::spawn_blocking(move || {
        Command::new("curl")
            .args(["-s", "-m", "120", "--unix-socket"])
            .arg(&by_curl)
            .arg("http://h/feeds")
            .output()
    });
    let curl = String::from_utf8(curl.await.unwrap().expect("curl is installed").stdout).unwrap();
    assert!(curl.contains("\"feeds\""), "{curl}");
    app.stop().await.unwrap();
    assert!(!path.exists(), "it is taken away");
}

/// A server that answers every request with its head.
async fn telling() -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        loop {
            let (mut stream, _) = listener.accept().await.unwrap();
            tokio::spawn(async move {
                let mut head = Vec::new();
                while !head.ends_with(b"\r\n\r\n") {
                    head.push(stream.read_u8().await?);
                }
                let status = format!(
                    "HTTP/1.1 200 OK\r\nContent-Length: {}\r\nConnection: close\r\n\r\n",
                    head.len()
                );
                stream
                    .write_all(&[status.into_bytes(), head].concat())
                    .await
            });
        }
    });
    address
}

#[tokio::test]
async fn a_trusted_proxy_tells_its_client_before_http_and_nobody_else_does() {
    let (folder, authority) = (tempfile::tempdir().unwrap(), Authority::new());
    authority.issue(folder.path());
    let site = format!("[[site]]\norigin = \"http://{}\"\n", telling().await);
    let server = |proxies: &str, tls: &str| {
        format!("proxy_protocol = true\ntrusted_proxies = [{proxies}]\n{tls}")
    };
    let plain = "listen = \"127.0.0.1:0\"";
    let app = start(folder.path(), &server("\"127.0.0.1/32\"", plain), &site).await;
    let ask = |header: &'static str| {
        let request = format!("{header}GET /page HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n");
        let address = app.address();
        async move {
            exchange(
                TcpStream::connect(address).await.unwrap(),
                request.as_bytes(),
            )
            .await
        }
    };
    let told = ask("PROXY TCP4 198.51.100.7 127.0.0.1 1 2\r\n")
        .await
        .to_lowercase();
    assert!(told.contains("x-forwarded-for: 198.51.100.7\r\n"), "{told}");
    let told = ask("PROXY UNKNOWN\r\n").await.to_lowercase();
    assert!(told.contains("x-forwarded-for: 127.0.0.1\r\n"), "{told}");
    // One that does not say so is hung up on.
    let mut silent = TcpStream::connect(app.address()).await.unwrap();
    silent.write_all(GET).await.unwrap();
    let mut answer = Vec::new();
    let _ = timeout(PATIENCE, silent.read_to_end(&mut answer))
        .await
        .expect("it is hung up on");
    assert!(answer.is_empty(), "{}", answer.escape_ascii());
    app.stop().await.unwrap();

    // Of others the same bytes are no HTTP.
    let folder = tempfile::tempdir().unwrap();
    let app = start(folder.path(), &server("\"192.0.2.1/32\"", plain), &site).await;
    let stream = TcpStream::connect(app.address()).await.unwrap();
    let told = exchange(stream, b"PROXY TCP4 198.51.100.7 127.0.0.1 1 2\r\n\r\n").await;
    assert!(told.starts_with("HTTP/1.1 400 "), "{told}");
    let told = exchange(TcpStream::connect(app.address()).await.unwrap(), GET).await;
    assert!(told.starts_with("HTTP/1.1 200 "), "{told}");
    app.stop().await.unwrap();
}

#[tokio::test]
async fn a_password_is_taken_where_a_trusted_proxy_says_before_http_that_its_client_speaks_tls() {
    let folder = tempfile::tempdir().unwrap();
    let server =
        "listen = \"127.0.0.1:0\"\nproxy_protocol = true\ntrusted_proxies = [\"127.0.0.1/32\"]"
            .to_owned();
    let closed =
        "[[feed]]\nname = \"closed\"\nurl = \"http://127.0.0.1:1/c\"\naccess = \"private\"\n";
    let app = start(folder.path(), &server, closed).await;
    // Version 2 of the PROXY protocol: 198.51.100.7, and behind it the part that tells of TLS, with
    // its first byte.
    let told = |bits: &[u8]| {
        let parts: Vec<u8> = match bits {
            [] => Vec::new(),
            bits => [&[0x20, 0, 5], bits, &[0, 0, 0, 1]].concat(),
        };
        let length = u16::try_from(12 + parts.len()).unwrap().to_be_bytes();
        let addresses = [198, 51, 100, 7, 127, 0, 0, 1, 0, 80, 0, 81];
        [
            &b"\r\n\r\n\0\r\nQUIT\n\x21\x11"[..],
            &length,
            &addresses,
            &parts,
        ]
        .concat()
    };
    let get = b"GET /feeds/closed.json HTTP/1.1\r\nHost: h\r\nX-Forwarded-Proto: https\r\n\
        Authorization: Basic bmFtZTpwYXNzd29yZA==\r\nConnection: close\r\n\r\n";
    for (bits, status) in [
        (&[][..], "403"),
        (&[0], "403"),
        (&[1], "401"),
        (&[3], "401"),
    ] {
        let stream = TcpStream::connect(app.address()).await.unwrap();
        let answer = exchange(stream, &[&told(bits)[..], get].concat()).await;
        assert!(
            answer.starts_with(&format!("HTTP/1.1 {status} ")),
            "{bits:?}: {answer}"
        );
    }
    app.stop().await.unwrap();
}

#[tokio::test]
async fn a_socket_of_systemd_is_served() {
    let place = Place::free();
    let text = configuration(place.folder(), "listen = \"systemd\"", "");
    place.write("everfeed.toml", &text);
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    // As systemd does: the socket is the file descriptor 3.
    let script = "export LISTEN_PID=$$ LISTEN_FDS=1; exec \"$@\" 3<&0 0</dev/null";
    let mut command = Command::new("sh");
    command
        .args(["-c", script, "sh", EVERFEED, "serve", "--config"])
        .arg(place.file())
        .stdin(Stdio::from(std::os::fd::OwnedFd::from(listener)));
    let running = place.start(&mut command);
    let answer = exchange(TcpStream::connect(address).await.unwrap(), GET).await;
    assert!(answer.starts_with("HTTP/1.1 "), "{answer}");
    drop(running);

    // Without one the start fails, and says so.
    let failed = place.run(EVERFEED, &["serve"]);
    assert!(
        failed.code != 0 && failed.err.contains("systemd handed over no socket"),
        "{failed:?}"
    );
}
