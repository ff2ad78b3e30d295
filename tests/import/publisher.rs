//! An old blog with a long past: its live document and its archives, made when they are asked for, so that they cost the
//! test no memory; over plain sockets.

use std::{
    fmt::Write as _,
    net::SocketAddr,
    sync::{Arc, Mutex},
    time::Duration,
};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::{TcpListener, TcpStream},
    task::JoinHandle,
};

/// How much there is.
#[derive(Clone, Copy)]
pub(crate) struct Past {
    /// Archives, besides the live document.
    pub(crate) archives: usize,
    /// Posts in each document.
    pub(crate) posts: usize,
    /// Bytes of text in each post.
    pub(crate) bytes: usize,
    /// How long it thinks before it answers.
    pub(crate) pause: Duration,
}

/// A publisher. It ends when it is dropped.
pub(crate) struct Publisher {
    address: SocketAddr,
    /// The paths asked for.
    pub(crate) asked: Arc<Mutex<Vec<String>>>,
    task: JoinHandle<()>,
}

impl Publisher {
    pub(crate) async fn start(past: Past) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let asked = Arc::new(Mutex::new(Vec::new()));
        let log = asked.clone();
        let task = tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                // A reader that is killed breaks its connection; that is part of the tests.
                tokio::spawn({
                    let log = log.clone();
                    async move { drop(answer(stream, past, &log).await) }
                });
            }
        });
        Self { address, asked, task }
    }

    pub(crate) fn url(&self) -> String {
        format!("http://{}/feed", self.address)
    }
}

impl Drop for Publisher {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn answer(mut stream: TcpStream, past: Past, log: &Mutex<Vec<String>>) -> std::io::Result<()> {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") && head.len() < 16 << 10 {
        head.push(stream.read_u8().await?);
    }
    let head = String::from_utf8_lossy(&head).into_owned();
    let path = head.split(' ').nth(1).unwrap_or_default().to_owned();
    let number = path.strip_prefix("/archive/").and_then(|number| number.parse().ok());
    let body = past.document(number.unwrap_or(past.archives));
    log.lock().unwrap().push(path);
    tokio::time::sleep(past.pause).await;
    let head = format!("HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: {}\r\n\r\n", body.len());
    stream.write_all(head.as_bytes()).await?;
    stream.write_all(body.as_bytes()).await?;
    stream.shutdown().await
}

impl Past {
    /// Posts in all documents.
    pub(crate) fn total(&self) -> usize {
        (self.archives + 1) * self.posts
    }

    /// The document of this number, newest post first; the oldest is 0, the live one the last.
    pub(crate) fn document(&self, number: usize) -> String {
        let mut out = String::from(
            "<feed xmlns=\"http://www.w3.org/2005/Atom\"><id>tag:x,2005:blog</id><title>blog</title>",
        );
        if number > 0 {
            write!(out, "<link rel=\"prev-archive\" href=\"/archive/{}\"/>", number - 1).unwrap();
        }
        for post in (number * self.posts..(number + 1) * self.posts).rev() {
            let (day, hour, minute) = (1 + post / 1440 % 28, post / 60 % 24, post % 60);
            let date = format!(
                "{}-{:02}-{day:02}T{hour:02}:{minute:02}:00Z",
                2000 + post / 483_840,
                1 + post / 40_320 % 12
            );
            write!(
                out,
                "<entry><id>tag:x,2005:{post}</id><title>post {post}</title><published>{date}</published>\
                 <updated>{date}</updated><content type=\"html\">{}</content></entry>",
                words(post, self.bytes)
            )
            .unwrap();
        }
        out + "</feed>"
    }
}

/// Words that are not the same in two posts, so that packing gains what it gains on prose, not more.
fn words(post: usize, bytes: usize) -> String {
    let mut text = String::with_capacity(bytes + 16);
    let mut state = post as u64 * 2 + 1;
    while text.len() < bytes {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        write!(text, "{:x} ", state >> 40).unwrap();
    }
    text
}
