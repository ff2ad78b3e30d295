//! An origin that answers by a script of bytes, and everfeed before it.

use everfeed::{app::App, config::Config};
use std::{
    net::SocketAddr,
    sync::{Arc, Mutex},
};
use testkit::{
    place::Place,
    wait::{PATIENCE, until},
};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::{TcpListener, TcpStream},
    time::timeout,
};

/// A connection that an origin accepted, and what has come by it.
pub(crate) struct Wire {
    stream: TcpStream,
    read: Vec<u8>,
    is_closed: bool,
}

impl Wire {
    /// The next head, to the empty line; `None` at the end of the connection.
    pub(crate) async fn head(&mut self) -> Option<String> {
        loop {
            if let Some(end) = find(&self.read, b"\r\n\r\n") {
                let rest = self.read.split_off(end + 4);
                let head = std::mem::replace(&mut self.read, rest);
                return Some(String::from_utf8_lossy(&head).into_owned());
            }
            if !self.more().await {
                return None;
            }
        }
    }

    /// The next bytes of a body.
    pub(crate) async fn bytes(&mut self, count: usize) -> Vec<u8> {
        while self.read.len() < count && self.more().await {}
        let rest = self.read.split_off(count.min(self.read.len()));
        std::mem::replace(&mut self.read, rest)
    }

    /// Everything up to and with a text.
    pub(crate) async fn until(&mut self, end: &str) -> String {
        loop {
            if let Some(at) = find(&self.read, end.as_bytes()) {
                let rest = self.read.split_off(at + end.len());
                let text = std::mem::replace(&mut self.read, rest);
                return String::from_utf8_lossy(&text).into_owned();
            }
            assert!(
                self.more().await,
                "{:?} ends before {end:?}",
                String::from_utf8_lossy(&self.read)
            );
        }
    }

    /// Everything to the end of the connection.
    pub(crate) async fn rest(&mut self) -> String {
        while self.more().await {}
        String::from_utf8_lossy(&std::mem::take(&mut self.read)).into_owned()
    }

    pub(crate) async fn write(&mut self, bytes: impl AsRef<[u8]>) {
        // Whoever listens no more is looked at from the other side.
        self.is_closed |= self.stream.write_all(bytes.as_ref()).await.is_err();
    }

    async fn more(&mut self) -> bool {
        let read = timeout(PATIENCE, self.stream.read_buf(&mut self.read)).await;
        read.expect("something comes").unwrap_or(0) > 0
    }
}

fn find(bytes: &[u8], wanted: &[u8]) -> Option<usize> {
    bytes
        .windows(wanted.len())
        .position(|window| window == wanted)
}

/// An origin, and everfeed before it.
pub(crate) struct Sidecar {
    pub(crate) app: App,
    pub(crate) config: Config,
    heads: Arc<Mutex<Vec<String>>>,
    _place: Place,
}

impl Sidecar {
    /// Starts everfeed before an origin that does `script` with the connections that it accepts:
    /// the number of each, and its bytes. `site` are further lines of its table.
    pub(crate) async fn start<F>(
        site: &str,
        script: impl Fn(usize, Origin) -> F + Send + 'static,
    ) -> Self
    where
        F: Future<Output = ()> + Send + 'static,
    {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let origin = listener.local_addr().unwrap();
        let heads = Arc::new(Mutex::new(Vec::new()));
        let heard = heads.clone();
        tokio::spawn(async move {
            let mut number = 0;
            while let Ok((stream, _)) = listener.accept().await {
                let wire = Wire {
                    stream,
                    read: Vec::new(),
                    is_closed: false,
                };
                tokio::spawn(script(
                    number,
                    Origin {
                        wire,
                        heads: heard.clone(),
                    },
                ));
                number += 1;
            }
        });
        let sidecar = Self::before(origin, site).await;
        Self { heads, ..sidecar }
    }

    /// Starts everfeed before an address, which `site` may name as `ORIGIN`. Its feeds are not
    /// looked for, unless `site` says so. Lines of `[server]` may stand before them, and then
    /// `[site]`.
    pub(crate) async fn before(origin: SocketAddr, site: &str) -> Self {
        let site = site.replace("ORIGIN", &format!("http://{origin}"));
        let (server, site) = site.split_once("[site]\n").unwrap_or(("", &site));
        let feeds = if site.contains("feeds = ") {
            ""
        } else {
            "feeds = []\n"
        };
        let place = Place::unbound();
        let server = format!("shutdown_secs = 5\npublic_url = \"http://blog.example\"\n{server}");
        let site = format!("[[site]]\norigin = \"http://{origin}\"\n{feeds}{site}\n");
        let text = place.text(&server, &site);
        let config = Config::parse("the test's configuration", &text).unwrap();
        let app = App::start(config.clone()).await.unwrap();
        Self {
            app,
            config,
            heads: Arc::default(),
            _place: place,
        }
    }

    /// Stops everfeed and starts another one over the same store.
    pub(crate) async fn restart(self) -> Self {
        self.app.stop().await.unwrap();
        let app = App::start(self.config.clone()).await.unwrap();
        Self { app, ..self }
    }

    /// The heads that the origin has read, those of polls left out.
    pub(crate) fn heads(&self) -> Vec<String> {
        let heads = self.heads.lock().unwrap();
        heads
            .iter()
            .filter(|head| !head.contains("user-agent: everfeed/"))
            .cloned()
            .collect()
    }

    /// The heads of polls that the origin has read.
    pub(crate) fn polls(&self) -> Vec<String> {
        let heads = self.heads.lock().unwrap();
        heads
            .iter()
            .filter(|head| head.contains("user-agent: everfeed/"))
            .cloned()
            .collect()
    }

    pub(crate) async fn connect(&self) -> Wire {
        let stream = TcpStream::connect(self.app.address()).await.unwrap();
        Wire {
            stream,
            read: Vec::new(),
            is_closed: false,
        }
    }

    /// Waits until a page begins with this status.
    pub(crate) async fn answers(&self, target: &str, status: u16) {
        let start = format!("HTTP/1.1 {status} ");
        until(&format!("{target} is answered {status}"), async || {
            self.get(target).await.starts_with(&start)
        })
        .await;
    }

    /// Sends bytes on a connection of their own, and reads to its end.
    pub(crate) async fn exchange(&self, request: impl AsRef<[u8]>) -> String {
        let mut wire = self.connect().await;
        wire.write(request).await;
        wire.rest().await
    }

    /// Asks for a page with a connection of its own.
    pub(crate) async fn get(&self, target: &str) -> String {
        self.exchange(format!(
            "GET {target} HTTP/1.1\r\nHost: blog.example\r\nConnection: close\r\n\r\n"
        ))
        .await
    }
}

/// A connection at the origin.
pub(crate) struct Origin {
    wire: Wire,
    heads: Arc<Mutex<Vec<String>>>,
}

impl Origin {
    /// The next head, which is remembered.
    pub(crate) async fn head(&mut self) -> Option<String> {
        let head = self.wire.head().await?;
        self.heads.lock().unwrap().push(head.clone());
        Some(head)
    }

    pub(crate) async fn write(&mut self, bytes: impl AsRef<[u8]>) {
        self.wire.write(bytes).await;
    }

    /// True once the other side listens no more.
    pub(crate) fn is_closed(&self) -> bool {
        self.wire.is_closed
    }

    pub(crate) async fn bytes(&mut self, count: usize) -> Vec<u8> {
        self.wire.bytes(count).await
    }

    pub(crate) async fn until(&mut self, end: &str) -> String {
        self.wire.until(end).await
    }

    /// Answers every request with the same bytes.
    pub(crate) async fn always(mut self, answer: &str) {
        while self.head().await.is_some() {
            self.write(answer).await;
        }
    }
}
