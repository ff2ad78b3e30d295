//! The load tool: connections that are kept alive and ask the same over and over, as cheaply as the
//! answers can be read, so that what is measured is the server. It reads lengths, not documents.

use anyhow::{Context as _, Result, ensure};
use nix::sys::resource::{UsageWho, getrusage};
use std::{
    net::SocketAddr,
    time::{Duration, Instant},
};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpStream,
    runtime::Handle,
    task::JoinSet,
};

/// Bytes read at a time.
const READ_BYTES: usize = 64 << 10;

/// One connection to a server.
pub(crate) struct Connection {
    stream: TcpStream,
    buffer: Vec<u8>,
}

/// An answer, as far as it is looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) body_bytes: usize,
}

impl Connection {
    pub(crate) async fn open(address: SocketAddr, read_bytes: usize) -> Result<Self> {
        let stream = TcpStream::connect(address).await?;
        stream.set_nodelay(true)?;
        Ok(Self {
            stream,
            buffer: vec![0; read_bytes],
        })
    }

    /// Sends a request and reads its answer to the end.
    pub(crate) async fn ask(&mut self, request: &[u8]) -> Result<Answer> {
        self.stream.write_all(request).await?;
        let mut filled = 0;
        let (answer, mut missing) = loop {
            filled += self.read(filled).await?;
            if let Some((answer, head_bytes)) = head(&self.buffer[..filled])? {
                break (
                    answer,
                    (head_bytes + answer.body_bytes).saturating_sub(filled),
                );
            }
        };
        while missing > 0 {
            missing = missing.saturating_sub(self.read(0).await?);
        }
        Ok(answer)
    }

    async fn read(&mut self, from: usize) -> Result<usize> {
        let read = self.stream.read(&mut self.buffer[from..]).await?;
        ensure!(
            read > 0,
            "the server ended the connection, or its head is too long"
        );
        Ok(read)
    }
}

/// The head of an answer and its length; `None` while it is not all there.
fn head(bytes: &[u8]) -> Result<Option<(Answer, usize)>> {
    let Some(end) = bytes.windows(4).position(|at| at == b"\r\n\r\n") else {
        return Ok(None);
    };
    let text = std::str::from_utf8(&bytes[..end])?;
    let status = text.get(9..12).context("a status line")?.parse()?;
    let length = text
        .lines()
        .find_map(|line| line.strip_prefix("content-length: "));
    let body_bytes = length.context("an answer says how long it is")?.parse()?;
    Ok(Some((Answer { status, body_bytes }, end + 4)))
}

/// A GET of a path.
pub(crate) fn get(path: &str, headers: &str) -> Vec<u8> {
    format!(
        "GET {path} HTTP/1.1\r\nhost: 127.0.0.1:8080\r\nuser-agent: everfeed-bench\r\n{headers}\r\n"
    )
    .into_bytes()
}

/// The result of a time of load.
#[derive(Clone, Copy)]
pub(crate) struct Load {
    pub(crate) answers: u64,
    pub(crate) secs: f64,
    /// Seconds of processor time that everything but the load tool used: the server.
    pub(crate) server_cpu_secs: f64,
}

/// Asks by so many connections, each one request at a time, for a while. Every answer must be this
/// one.
pub(crate) async fn load(
    askers: &Handle,
    address: SocketAddr,
    request: Vec<u8>,
    expect: Answer,
    connections: usize,
    lasting: Duration,
) -> Result<Load> {
    // In a task, as what the load tool itself uses is read on its own, only thread.
    let whole = async move {
        let mut open = Vec::with_capacity(connections);
        for _ in 0..connections {
            let mut connection = Connection::open(address, READ_BYTES).await?;
            ensure!(
                connection.ask(&request).await? == expect,
                "another answer than expected"
            );
            open.push(connection);
        }
        let (start, cpu) = (Instant::now(), server_cpu()?);
        let end = start + lasting;
        let mut asking = JoinSet::new();
        for mut connection in open {
            let request = request.clone();
            asking.spawn(async move {
                let mut answers = 0_u64;
                while Instant::now() < end {
                    ensure!(
                        connection.ask(&request).await? == expect,
                        "another answer than expected"
                    );
                    answers += 1;
                }
                Ok(answers)
            });
        }
        let mut answers = 0;
        while let Some(asked) = asking.join_next().await {
            answers += asked??;
        }
        let server_cpu_secs = server_cpu()? - cpu;
        Ok(Load {
            answers,
            secs: start.elapsed().as_secs_f64(),
            server_cpu_secs,
        })
    };
    askers.spawn(whole).await?
}

/// Seconds of processor time of this process, without this thread.
fn server_cpu() -> Result<f64> {
    let used = |who| -> Result<f64> {
        let usage = getrusage(who)?;
        let secs =
            |time: nix::sys::time::TimeVal| time.tv_sec() as f64 + time.tv_usec() as f64 / 1e6;
        Ok(secs(usage.user_time()) + secs(usage.system_time()))
    };
    Ok(used(UsageWho::RUSAGE_SELF)? - used(UsageWho::RUSAGE_THREAD)?)
}
