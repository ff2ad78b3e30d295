//! The other side of everfeed: an old blog with its feeds and pages, and callbacks that take what
//! they get.

use crate::client::header;
use anyhow::Result;
use bytes::Bytes;
use std::{
    collections::HashMap,
    net::{Ipv4Addr, SocketAddr},
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicUsize, Ordering},
    },
};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::{TcpListener, TcpStream},
    sync::Notify,
};

/// Addresses of loopback at which it listens, each a host of its own.
pub(crate) const HOSTS: u8 = 5;

#[derive(Clone)]
pub(crate) struct Origin {
    pub(crate) port: u16,
    documents: Arc<Mutex<HashMap<String, Bytes>>>,
    /// Requests for challenges, and pushes, so far.
    taken: Arc<(AtomicUsize, Notify)>,
}

impl Origin {
    pub(crate) async fn listen() -> Result<Self> {
        let first = TcpListener::bind((host(0), 0)).await?;
        let origin = Self {
            port: first.local_addr()?.port(),
            documents: Arc::default(),
            taken: Arc::default(),
        };
        tokio::spawn(origin.clone().serve(first));
        for n in 1..HOSTS {
            let listener = TcpListener::bind((host(n), origin.port)).await?;
            tokio::spawn(origin.clone().serve(listener));
        }
        Ok(origin)
    }

    /// The n-th callback's address.
    pub(crate) fn callback(&self, n: usize) -> String {
        let host = host(u8::try_from(n % usize::from(HOSTS)).unwrap_or_default());
        format!(
            "http://{}/callback/{n}",
            SocketAddr::new(host.into(), self.port)
        )
    }

    /// The answer to a path from now on.
    pub(crate) fn says(&self, path: &str, document: Bytes) {
        self.documents().insert(path.to_owned(), document);
    }

    /// Waits until callbacks were called so many times since it was asked last.
    pub(crate) async fn called(&self, times: usize) {
        loop {
            let called = self.taken.1.notified();
            if self.taken.0.load(Ordering::Relaxed) >= times {
                self.taken.0.fetch_sub(times, Ordering::Relaxed);
                return;
            }
            called.await;
        }
    }

    fn documents(&self) -> MutexGuard<'_, HashMap<String, Bytes>> {
        self.documents
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    async fn serve(self, listener: TcpListener) {
        while let Ok((stream, _)) = listener.accept().await {
            let origin = self.clone();
            tokio::spawn(async move { drop(origin.answer(stream).await) });
        }
    }

    async fn answer(self, mut stream: TcpStream) -> Result<()> {
        stream.set_nodelay(true)?;
        let mut buffer = Vec::with_capacity(64 << 10);
        loop {
            let head = loop {
                if let Some(end) = memchr::memmem::find(&buffer, b"\r\n\r\n") {
                    break end + 4;
                }
                if stream.read_buf(&mut buffer).await? == 0 {
                    return Ok(());
                }
            };
            let text = str::from_utf8(&buffer[..head])?;
            let length: usize = header(text, "content-length").map_or(Ok(0), str::parse)?;
            let answer = self.answer_to(text);
            while buffer.len() < head + length {
                if stream.read_buf(&mut buffer).await? == 0 {
                    return Ok(());
                }
            }
            buffer.drain(..head + length);
            stream.write_all(&answer).await?;
        }
    }

    fn answer_to(&self, head: &str) -> Vec<u8> {
        let target = head.split(' ').nth(1).unwrap_or_default();
        let (path, query) = target.split_once('?').unwrap_or((target, ""));
        if path.starts_with("/callback/") {
            self.taken.0.fetch_add(1, Ordering::Relaxed);
            self.taken.1.notify_waiters();
            let challenge = query
                .split('&')
                .find_map(|pair| pair.strip_prefix("hub.challenge="));
            return match challenge {
                Some(challenge) => ok("text/plain", "", challenge.as_bytes()),
                None => b"HTTP/1.1 204 Taken\r\n\r\n".to_vec(),
            };
        }
        if path.starts_with("/quiet/") {
            // For everything at this host: nobody is polled while a start is counted.
            return b"HTTP/1.1 429 Later\r\nretry-after: 86400\r\ncontent-length: 0\r\n\r\n"
                .to_vec();
        }
        let Some(document) = self.documents().get(path).cloned() else {
            return b"HTTP/1.1 503 Later\r\ncontent-length: 0\r\n\r\n".to_vec();
        };
        let etag = format!("\"{:08x}\"", crc32fast::hash(&document));
        if header(head, "if-none-match") == Some(&etag) {
            return format!("HTTP/1.1 304 Same\r\netag: {etag}\r\n\r\n").into_bytes();
        }
        let content_type = if path.ends_with(".html") {
            "text/html"
        } else {
            "application/atom+xml"
        };
        ok(content_type, &format!("etag: {etag}\r\n"), &document)
    }
}

fn host(n: u8) -> Ipv4Addr {
    Ipv4Addr::new(127, 0, 0, n + 1)
}

fn ok(content_type: &str, headers: &str, body: &[u8]) -> Vec<u8> {
    let length = body.len();
    let mut answer = format!(
        "HTTP/1.1 200 OK\r\ncontent-type: {content_type}\r\ncontent-length: {length}\r\n{headers}\r\n"
    )
    .into_bytes();
    answer.extend_from_slice(body);
    answer
}
