//! A publisher on loopback that answers by a script and sends exactly the bytes that it is told to,
//! wrong ones included; not an HTTP server.

use crate::wait::until;
use std::{
    net::{IpAddr, Ipv4Addr, SocketAddr},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::{TcpListener, TcpStream},
    task::JoinHandle,
    time::sleep,
};

/// Bytes of the head of a request at most.
const HEAD_BYTES_MAX: usize = 16 << 10;

/// A publisher, or anybody else who answers HTTP requests. It ends when it is dropped.
pub struct Publisher {
    address: SocketAddr,
    shared: Arc<Shared>,
    task: JoinHandle<()>,
}

/// The answer to a request.
#[derive(Clone, Debug)]
pub enum Answer {
    /// These bytes, head and all; then the connection ends.
    Bytes(Vec<u8>),
    /// Likewise, after a pause.
    Late(Duration, Vec<u8>),
    /// These bytes, and then the second ones over and over, as long as anybody listens.
    Endless(Vec<u8>, Vec<u8>),
    /// Nothing at all, for as long as the other side waits.
    Silence,
}

/// A request.
#[derive(Clone, Debug)]
pub struct Asked {
    /// The head, as it came.
    pub head: String,
    pub body: Vec<u8>,
}

type Script = Box<dyn FnMut(&Asked) -> Answer + Send>;

struct Shared {
    script: Mutex<Script>,
    requests: Mutex<Vec<Asked>>,
}

impl Publisher {
    /// Starts one that has nothing to say yet.
    pub async fn start() -> Self {
        Self::start_at(Ipv4Addr::LOCALHOST.into(), |_| Answer::Silence).await
    }

    /// Starts one that answers so.
    pub async fn of(script: impl FnMut(&Asked) -> Answer + Send + 'static) -> Self {
        Self::start_at(Ipv4Addr::LOCALHOST.into(), script).await
    }

    /// Starts one that answers so, at this address of the loopback, of which each is a host of its
    /// own.
    pub async fn start_at(
        host: IpAddr,
        script: impl FnMut(&Asked) -> Answer + Send + 'static,
    ) -> Self {
        let listener = TcpListener::bind((host, 0))
            .await
            .expect("an address of the loopback");
        let address = listener.local_addr().unwrap();
        let shared = Arc::new(Shared {
            script: Mutex::new(Box::new(script)),
            requests: Mutex::default(),
        });
        let serving = shared.clone();
        let task = tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let serving = serving.clone();
                // A client that goes away early is part of the tests.
                tokio::spawn(async move { drop(serve(stream, &serving).await) });
            }
        });
        Self {
            address,
            shared,
            task,
        }
    }

    /// The URL of a path on it.
    pub fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    /// From now on it answers everything with this.
    pub fn says(&self, answer: Answer) {
        self.does(move |_| answer.clone());
    }

    /// From now on it answers so.
    pub fn does(&self, script: impl FnMut(&Asked) -> Answer + Send + 'static) {
        *lock(&self.shared.script) = Box::new(script);
    }

    /// The heads of the requests so far.
    pub fn requests(&self) -> Vec<String> {
        lock(&self.shared.requests)
            .iter()
            .map(|asked| asked.head.clone())
            .collect()
    }

    /// Their paths.
    pub fn paths(&self) -> Vec<String> {
        lock(&self.shared.requests)
            .iter()
            .map(|asked| asked.path().to_owned())
            .collect()
    }

    /// Waits until this path has been asked for.
    pub async fn asked_for(&self, path: &str) {
        until(&format!("{path} is asked for"), async || {
            self.paths().iter().any(|asked| asked == path)
        })
        .await;
    }
}

impl Drop for Publisher {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Asked {
    /// The request target: path and query.
    pub fn path(&self) -> &str {
        self.head.split(' ').nth(1).unwrap_or_default()
    }

    pub fn is_post(&self) -> bool {
        self.head.starts_with("POST ")
    }

    /// A header; empty when absent.
    pub fn header(&self, name: &str) -> &str {
        let line = |line: &'_ str| {
            line.split_once(':')
                .is_some_and(|(given, _)| given.eq_ignore_ascii_case(name))
        };
        let found = self.head.lines().skip(1).find(|text| line(text));
        found
            .and_then(|line| line.split_once(':'))
            .map_or("", |(_, value)| value.trim())
    }
}

impl Answer {
    /// The same after a pause.
    pub fn after(self, pause: Duration) -> Self {
        match self {
            Self::Bytes(bytes) => Self::Late(pause, bytes),
            other => panic!("{other:?} has no beginning that could be late"),
        }
    }
}

async fn serve(mut stream: TcpStream, shared: &Shared) -> std::io::Result<()> {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") && head.len() < HEAD_BYTES_MAX {
        head.push(stream.read_u8().await?);
    }
    let mut asked = Asked {
        head: String::from_utf8_lossy(&head).into_owned(),
        body: Vec::new(),
    };
    asked
        .body
        .resize(asked.header("content-length").parse().unwrap_or(0), 0);
    stream.read_exact(&mut asked.body).await?;
    let answer = {
        let answer = lock(&shared.script)(&asked);
        lock(&shared.requests).push(asked);
        answer
    };
    match answer {
        Answer::Bytes(bytes) => stream.write_all(&bytes).await?,
        Answer::Late(pause, bytes) => {
            sleep(pause).await;
            stream.write_all(&bytes).await?;
        }
        Answer::Endless(start, more) => {
            stream.write_all(&start).await?;
            loop {
                stream.write_all(&more).await?;
            }
        }
        // Until the other side closes.
        Answer::Silence => drop(stream.read_u8().await),
    }
    stream.shutdown().await
}

/// 200 with a body and its length.
pub fn ok(content_type: &str, body: impl AsRef<[u8]>) -> Answer {
    with_headers(200, &[("content-type", content_type)], body)
}

/// A document of posts with the guids 1 to `posts`, the newest first.
pub fn rss(posts: usize) -> Answer {
    let post = |n: usize| format!("<item><guid>{n}</guid><title>Post {n}</title></item>");
    let posts: String = (1..=posts).rev().map(post).collect();
    let text = format!("<rss version=\"2.0\"><channel><title>blog</title>{posts}</channel></rss>");
    ok("application/rss+xml", text)
}

/// Any status with headers, a body and its length.
pub fn with_headers(status: u16, headers: &[(&str, &str)], body: impl AsRef<[u8]>) -> Answer {
    // Neither has a body, nor a length.
    let length = (status != 304 && status != 204).then_some(body.as_ref().len() as u64);
    let mut bytes = head(status, headers, length);
    bytes.extend_from_slice(body.as_ref());
    Answer::Bytes(bytes)
}

/// The head of an answer that says how long its body is, or that it ends with the connection.
pub fn head(status: u16, headers: &[(&str, &str)], length: Option<u64>) -> Vec<u8> {
    let mut text = format!("HTTP/1.1 {status} Told\r\nconnection: close\r\n");
    for (name, value) in headers {
        text.push_str(&format!("{name}: {value}\r\n"));
    }
    if let Some(length) = length {
        text.push_str(&format!("content-length: {length}\r\n"));
    }
    text.push_str("\r\n");
    text.into_bytes()
}

/// A test that panicked has failed already; what it held is as good as it was.
fn lock<T: ?Sized>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
