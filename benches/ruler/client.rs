//! One connection of a reader, which does as little as can be: what it costs is in every figure.

use anyhow::{Context as _, Result, ensure};
use std::net::SocketAddr;
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpStream,
};

/// A connection that is kept.
pub(crate) struct Client {
    to: SocketAddr,
    stream: TcpStream,
    buffer: Vec<u8>,
}

/// GET of a target, with more header lines.
pub(crate) fn get(target: &str, host: &str, headers: &str) -> Vec<u8> {
    format!("GET {target} HTTP/1.1\r\nhost: {host}\r\n{headers}\r\n").into_bytes()
}

/// POST of a form.
pub(crate) fn post(target: &str, host: &str, form: &str) -> Vec<u8> {
    let length = form.len();
    format!(
        "POST {target} HTTP/1.1\r\nhost: {host}\r\ncontent-type: application/x-www-form-urlencoded\r\n\
         content-length: {length}\r\n\r\n{form}"
    )
    .into_bytes()
}

impl Client {
    pub(crate) async fn open(to: SocketAddr) -> Result<Self> {
        let stream = TcpStream::connect(to).await?;
        stream.set_nodelay(true)?;
        let buffer = Vec::new();
        Ok(Self { to, stream, buffer })
    }

    /// Asks, and reads the whole answer. Returns its status. Under Valgrind everything takes so long
    /// that a connection which asked for nothing may have been ended: it is opened again.
    pub(crate) async fn ask(&mut self, request: &[u8]) -> Result<u16> {
        if self.send(request).await.is_ok()
            && let Ok(status) = self.answer().await
        {
            return Ok(status);
        }
        *self = Self::open(self.to).await?;
        self.send(request).await?;
        self.answer().await
    }

    pub(crate) async fn send(&mut self, request: &[u8]) -> Result<()> {
        Ok(self.stream.write_all(request).await?)
    }

    /// Reads a whole answer. Returns its status.
    pub(crate) async fn answer(&mut self) -> Result<u16> {
        self.buffer.clear();
        let head = loop {
            self.read().await?;
            if let Some(end) = find(&self.buffer, b"\r\n\r\n") {
                break end + 4;
            }
        };
        let text = str::from_utf8(&self.buffer[..head])?;
        let status = text.get(9..12).context("a status")?.parse()?;
        let length = header(text, "content-length");
        let is_chunked = header(text, "transfer-encoding").is_some();
        let length: Option<usize> = length.map(str::parse).transpose()?;
        if is_chunked {
            while !self.buffer.ends_with(b"0\r\n\r\n") {
                self.read().await?;
            }
        } else {
            let end = head + length.unwrap_or(0);
            while self.buffer.len() < end {
                self.read().await?;
            }
        }
        Ok(status)
    }

    /// The last answer as text.
    pub(crate) fn text(&self) -> Result<&str> {
        Ok(str::from_utf8(&self.buffer)?)
    }

    /// Reads until this has come.
    pub(crate) async fn until(&mut self, sign: &[u8]) -> Result<()> {
        self.buffer.clear();
        while find(&self.buffer, sign).is_none() {
            self.read().await?;
        }
        Ok(())
    }

    async fn read(&mut self) -> Result<()> {
        let read = self.stream.read_buf(&mut self.buffer).await?;
        ensure!(read > 0, "the connection ended early");
        Ok(())
    }

    /// Gives back the memory of the last answer.
    pub(crate) fn forget(&mut self) {
        self.buffer = Vec::new();
    }
}

/// A header of an answer.
pub(crate) fn header<'a>(head: &'a str, name: &str) -> Option<&'a str> {
    head.lines().find_map(|line| {
        let (found, value) = line.split_once(':')?;
        found.eq_ignore_ascii_case(name).then(|| value.trim())
    })
}

fn find(text: &[u8], sign: &[u8]) -> Option<usize> {
    memchr::memmem::find(text, sign)
}
