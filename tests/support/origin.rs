//! A publisher on loopback that sends exactly the bytes it is told to, wrong ones included; not an HTTP server.

use std::{
    net::SocketAddr,
    sync::{Arc, Mutex, PoisonError},
};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
    task::JoinHandle,
};

/// What a publisher sends for a request.
#[derive(Clone, Debug)]
pub(crate) enum Answer {
    /// These bytes, head and all; then the connection ends.
    Bytes(Vec<u8>),
    /// These bytes, and then the second ones over and over, as long as anybody listens.
    Endless(Vec<u8>, Vec<u8>),
    /// Nothing at all, for as long as the other side waits.
    Silence,
}

/// A publisher. It ends when it is dropped.
pub(crate) struct Origin {
    address: SocketAddr,
    answer: Arc<Mutex<Answer>>,
    requests: Arc<Mutex<Vec<String>>>,
    task: JoinHandle<()>,
}

/// Bytes of a request head at most.
const HEAD_BYTES_MAX: usize = 16 << 10;

impl Origin {
    /// Starts one that has nothing to say yet.
    pub(crate) async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let answer = Arc::new(Mutex::new(Answer::Silence));
        let requests = Arc::new(Mutex::new(Vec::new()));
        let (says, log) = (answer.clone(), requests.clone());
        let task = tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let (says, log) = (says.clone(), log.clone());
                // A client that goes away early is part of the tests.
                tokio::spawn(async move { drop(serve(stream, &says, &log).await) });
            }
        });
        Self { address, answer, requests, task }
    }

    /// The URL of a path on it.
    pub(crate) fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    /// What it says from now on.
    pub(crate) fn says(&self, answer: Answer) {
        *self.answer.lock().unwrap_or_else(PoisonError::into_inner) = answer;
    }

    /// The heads of the requests so far.
    pub(crate) fn requests(&self) -> Vec<String> {
        self.requests.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl Drop for Origin {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn serve(mut stream: TcpStream, says: &Mutex<Answer>, log: &Mutex<Vec<String>>) -> std::io::Result<()> {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") && head.len() < HEAD_BYTES_MAX {
        head.push(stream.read_u8().await?);
    }
    log.lock().unwrap_or_else(PoisonError::into_inner).push(String::from_utf8_lossy(&head).into_owned());
    let answer = says.lock().unwrap_or_else(PoisonError::into_inner).clone();
    match answer {
        Answer::Bytes(bytes) => stream.write_all(&bytes).await?,
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
pub(crate) fn ok(content_type: &str, body: &[u8]) -> Answer {
    with_headers(200, &[("content-type", content_type)], body)
}

/// Any status with headers, a body and its length.
pub(crate) fn with_headers(status: u16, headers: &[(&str, &str)], body: &[u8]) -> Answer {
    let mut bytes = head(status, headers, Some(body.len() as u64));
    bytes.extend_from_slice(body);
    Answer::Bytes(bytes)
}

/// The head of an answer that says how long its body is, or that it ends with the connection.
pub(crate) fn head(status: u16, headers: &[(&str, &str)], length: Option<u64>) -> Vec<u8> {
    let mut text = format!("HTTP/1.1 {status} CheckResult\r\nconnection: close\r\n");
    for (name, value) in headers {
        text.push_str(&format!("{name}: {value}\r\n"));
    }
    if let Some(length) = length {
        text.push_str(&format!("content-length: {length}\r\n"));
    }
    text.push_str("\r\n");
    text.into_bytes()
}
