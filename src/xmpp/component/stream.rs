//! One stream to the server (XEP-0114): its handshake, the stanzas that come and go on it, and the
//! way in which it ends; not what stanzas say, and not the next stream.

use super::{
    element::Element,
    frames::{BadStream, Frame, FrameReader},
    ns,
};
use crate::secret::Secret;
use bytes::Bytes;
use sha1::{Digest as _, Sha1};
use std::{io, time::Duration};
use thiserror::Error;
use tokio::{
    io::{
        AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _, BufWriter, ReadHalf,
        WriteHalf,
    },
    sync::{mpsc, oneshot},
    time::timeout,
};
use tokio_util::sync::CancellationToken;

/// Seconds from a connection to the end of its handshake at most.
const HANDSHAKE_SECS: u64 = 15;
/// Seconds without a byte from the server after which it is asked to answer.
const QUIET_SECS: u64 = 60;
/// Seconds for that answer.
const PONG_SECS: u64 = 15;
/// Seconds in which a write must come on.
const WRITE_SECS: u64 = 30;
/// Seconds for the last words.
const FAREWELL_SECS: u64 = 2;
/// Stanzas that wait to be answered, refusals, answers and pushes that wait to be written, at most
/// each.
const QUEUE_STANZAS: usize = 64;
const QUEUE_REFUSALS: usize = 64;
const QUEUE_ANSWERS: usize = 64;
const QUEUE_PUSHES: usize = 256;
/// Lines that are written at most before somebody is told that they are.
const LINES_AT_ONCE_MAX: usize = 32;
/// Bytes that are read at once.
const READ_BYTES: usize = 16 << 10;

/// A connection.
pub(super) trait Connection: AsyncRead + AsyncWrite + Send + Unpin {}
impl<T: AsyncRead + AsyncWrite + Send + Unpin> Connection for T {}

/// A connection of any kind.
pub(super) type AnyConnection = Box<dyn Connection>;

/// The end of a stream, or the reason for which there was none.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub(super) enum StreamEnd {
    /// The server says why.
    #[error("the server ended the stream: {condition}{}", in_brackets(.text))]
    Refused { condition: String, text: String },
    /// The server refuses it because a component of our name is connected, which may be we.
    #[error(
        "the server says that a component of this name is connected (conflict), and may still hold our former connection"
    )]
    Held,
    /// The server closed it.
    #[error("the server closed the stream")]
    Closed,
    /// The connection broke, or could not be made.
    #[error("{0}")]
    Broken(String),
    /// The other end does not speak XMPP.
    #[error(transparent)]
    Bad(#[from] BadStream),
    /// The server says nothing, not even when it is asked.
    #[error("the server says nothing since {} s", QUIET_SECS + PONG_SECS)]
    Silent,
    /// The server takes nothing.
    #[error("the server takes nothing since {WRITE_SECS} s")]
    Stuck,
    /// There was no handshake in time.
    #[error("the server did not end the handshake within {HANDSHAKE_SECS} s")]
    NoHandshake,
    /// We stop.
    #[error("everfeed stops")]
    Stopped,
}

fn in_brackets(text: &str) -> String {
    if text.is_empty() {
        String::new()
    } else {
        format!(" ({text})")
    }
}

/// Something to write.
#[derive(Debug)]
pub(super) struct Line {
    bytes: Bytes,
    /// Told once all before it, and it, is written.
    written: Option<oneshot::Sender<()>>,
}

/// The way to the server, as long as its stream lasts. Refusals, which are small, go before answers,
/// and answers before pushes; each has its turn (see [`Lines::at_hand`]).
#[derive(Clone, Debug)]
pub(super) struct Outbox {
    refusals: mpsc::Sender<Line>,
    answers: mpsc::Sender<Line>,
    pushes: mpsc::Sender<Line>,
}

/// The stream has ended meanwhile.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct StreamGone;

impl Outbox {
    /// Hands the refusal of a request to the stream: it waits behind no answer.
    pub(super) async fn refuse(&self, stanza: &Element) -> Result<(), StreamGone> {
        hand(&self.refusals, stanza.written(ns::COMPONENT)).await
    }

    /// Hands an answer, or a question of ours, to the stream.
    pub(super) async fn answer(&self, stanza: &Element) -> Result<(), StreamGone> {
        hand(&self.answers, stanza.written(ns::COMPONENT)).await
    }

    /// Hands an answer to the stream, and waits until it is written; its bytes.
    pub(super) async fn answer_written(&self, stanza: &Element) -> Result<usize, StreamGone> {
        let bytes = stanza.written(ns::COMPONENT);
        let len = bytes.len();
        hand_and_wait(&self.answers, bytes).await?;
        Ok(len)
    }

    /// Hands a push to the stream; it waits while too many are before it.
    pub(super) async fn push(&self, bytes: Bytes) -> Result<(), StreamGone> {
        hand(&self.pushes, bytes).await
    }

    /// Waits until every push before is written.
    pub(super) async fn pushes_written(&self) -> Result<(), StreamGone> {
        hand_and_wait(&self.pushes, Bytes::new()).await
    }
}

async fn hand(queue: &mpsc::Sender<Line>, bytes: Bytes) -> Result<(), StreamGone> {
    let line = Line {
        bytes,
        written: None,
    };
    queue.send(line).await.map_err(|_| StreamGone)
}

async fn hand_and_wait(queue: &mpsc::Sender<Line>, bytes: Bytes) -> Result<(), StreamGone> {
    let (written, done) = oneshot::channel();
    let line = Line {
        bytes,
        written: Some(written),
    };
    queue.send(line).await.map_err(|_| StreamGone)?;
    done.await.map_err(|_| StreamGone)
}

/// A stream that is open, and its two ends for us.
pub(super) struct OpenStream {
    pub(super) stream: Stream,
    pub(super) outbox: Outbox,
    pub(super) incoming: mpsc::Receiver<Frame>,
}

/// A stream that is open.
pub(super) struct Stream {
    reader: FrameSource,
    writer: BufWriter<WriteHalf<AnyConnection>>,
    jid: String,
    incoming: mpsc::Sender<Frame>,
    lines: Lines,
    pings: mpsc::Sender<Line>,
}

/// Opens a stream for the component of an address (XMPP-1).
pub(super) async fn open(
    connection: AnyConnection,
    jid: &str,
    secret: &Secret,
) -> Result<OpenStream, StreamEnd> {
    let opening = handshake(connection, jid, secret);
    let opened = timeout(Duration::from_secs(HANDSHAKE_SECS), opening).await;
    let (reader, writer) = opened.unwrap_or(Err(StreamEnd::NoHandshake))?;
    let (sender, incoming) = mpsc::channel(QUEUE_STANZAS);
    let (refusals, refusals_taken) = mpsc::channel(QUEUE_REFUSALS);
    let (answers, answers_taken) = mpsc::channel(QUEUE_ANSWERS);
    let (pushes, pushes_taken) = mpsc::channel(QUEUE_PUSHES);
    Ok(OpenStream {
        stream: Stream {
            reader,
            writer: BufWriter::new(writer),
            jid: jid.to_owned(),
            incoming: sender,
            lines: Lines {
                refusals: refusals_taken,
                answers: answers_taken,
                pushes: pushes_taken,
                turn: 0,
            },
            pings: answers.clone(),
        },
        outbox: Outbox {
            refusals,
            answers,
            pushes,
        },
        incoming,
    })
}

async fn handshake(
    connection: AnyConnection,
    jid: &str,
    secret: &Secret,
) -> Result<(FrameSource, WriteHalf<AnyConnection>), StreamEnd> {
    let (reader, mut writer) = tokio::io::split(connection);
    let mut reader = FrameSource::new(reader);
    let head = Element::new(ns::COMPONENT, "stream:stream")
        .with("xmlns", ns::COMPONENT)
        .with("xmlns:stream", ns::STREAM)
        .with("to", jid)
        .written(ns::COMPONENT);
    // It stays open: the element ends with the stream.
    let head = String::from_utf8_lossy(&head).replace("/>", ">");
    let head = format!("<?xml version='1.0'?>{head}");
    writer.write_all(head.as_bytes()).await.map_err(broken)?;
    writer.flush().await.map_err(broken)?;
    let Frame::Open(opened) = reader.next().await? else {
        return Err(StreamEnd::Closed);
    };
    if !opened.is(ns::STREAM, "stream") {
        return Err(BadStream::Xml("it begins with another element".to_owned()).into());
    }
    let id = opened.attribute("id").unwrap_or_default();
    let proof = hex::encode(Sha1::digest(format!("{id}{}", secret.reveal())));
    let proof = Element::new(ns::COMPONENT, "handshake").saying(&proof);
    let proof = proof.written(ns::COMPONENT);
    writer.write_all(&proof).await.map_err(broken)?;
    writer.flush().await.map_err(broken)?;
    match reader.next().await? {
        Frame::Stanza(stanza) if stanza.is(ns::COMPONENT, "handshake") => Ok((reader, writer)),
        Frame::Stanza(_) => Err(BadStream::Xml("it answers no handshake".to_owned()).into()),
        _ => Err(StreamEnd::Closed),
    }
}

fn broken(error: io::Error) -> StreamEnd {
    StreamEnd::Broken(error.to_string())
}

/// Frames as they come.
struct FrameSource {
    reader: ReadHalf<AnyConnection>,
    frames: FrameReader,
    buffer: Box<[u8; READ_BYTES]>,
    /// The part of the buffer that is not cut yet.
    unread: std::ops::Range<usize>,
}

impl FrameSource {
    fn new(reader: ReadHalf<AnyConnection>) -> Self {
        Self {
            reader,
            frames: FrameReader::new(),
            buffer: Box::new([0; READ_BYTES]),
            unread: 0..0,
        }
    }

    /// The next frame. An error of the stream is its end.
    async fn next(&mut self) -> Result<Frame, StreamEnd> {
        loop {
            if let Some(frame) = self.cut()? {
                return Ok(frame);
            }
            let read = self
                .reader
                .read(&mut self.buffer[..])
                .await
                .map_err(broken)?;
            if read == 0 {
                return Err(StreamEnd::Closed);
            }
            self.unread = 0..read;
        }
    }

    fn cut(&mut self) -> Result<Option<Frame>, StreamEnd> {
        let mut bytes = &self.buffer[self.unread.clone()];
        let frame = self.frames.next(&mut bytes);
        self.unread.start = self.unread.end - bytes.len();
        match frame? {
            Some(Frame::Stanza(error)) if error.is(ns::STREAM, "error") => Err(refused(&error)),
            frame => Ok(frame),
        }
    }
}

/// The words of an error of the stream (XMPP-3).
fn refused(error: &Element) -> StreamEnd {
    let of_stream = error
        .elements()
        .filter(|child| child.namespace() == ns::STREAM_ERROR);
    let mut end = (String::from("undefined-condition"), String::new());
    for child in of_stream {
        if child.name() == "text" {
            end.1 = child.text();
        } else {
            end.0 = child.name().to_owned();
        }
    }
    let (condition, text) = end;
    StreamEnd::Refused { condition, text }
}

impl Stream {
    /// Carries stanzas both ways until the stream ends, or until `stop`.
    pub(super) async fn run(self, stop: &CancellationToken) -> StreamEnd {
        let reading = read(self.reader, &self.jid, self.incoming, self.pings);
        let writing = write(self.writer, self.lines, stop);
        tokio::select! {
            end = reading => end,
            end = writing => end,
        }
    }
}

async fn read(
    mut reader: FrameSource,
    jid: &str,
    incoming: mpsc::Sender<Frame>,
    pings: mpsc::Sender<Line>,
) -> StreamEnd {
    loop {
        let quiet = Duration::from_secs(QUIET_SECS);
        let frame = match timeout(quiet, reader.next()).await {
            Ok(frame) => frame,
            Err(_) => {
                let line = Line {
                    bytes: ping(jid, jid, "self").written(ns::COMPONENT),
                    written: None,
                };
                // Where the queue is full, the server takes nothing, and does not answer either.
                let _ = pings.try_send(line);
                match timeout(Duration::from_secs(PONG_SECS), reader.next()).await {
                    Ok(frame) => frame,
                    Err(_) => return StreamEnd::Silent,
                }
            }
        };
        match frame {
            Err(end) => return end,
            Ok(Frame::Close | Frame::Open(_)) => return StreamEnd::Closed,
            Ok(frame) => {
                if incoming.send(frame).await.is_err() {
                    return StreamEnd::Stopped;
                }
            }
        }
    }
}

/// A question to an address whether it is there (XEP-0199).
pub(super) fn ping(from: &str, to: &str, id: &str) -> Element {
    Element::new(ns::COMPONENT, "iq")
        .with("type", "get")
        .with("from", from)
        .with("to", to)
        .with("id", id)
        .holding(Element::new(ns::PING, "ping"))
}

/// The lines to write.
struct Lines {
    refusals: mpsc::Receiver<Line>,
    answers: mpsc::Receiver<Line>,
    pushes: mpsc::Receiver<Line>,
    /// Lines so far, up to [`TURNS`].
    turn: u8,
}

/// Lines after which answers, and pushes, have come first once.
const TURNS: u8 = 8;

impl Lines {
    // Decides: Which line is written next to the server of XMPP?
    /// The next line that is there already. Of each eight lines an answer is first once, and a push
    /// is first once, so that no flood of the others holds them back.
    fn at_hand(&mut self) -> Option<Line> {
        self.turn = (self.turn + 1) % TURNS;
        let mut queues = [&mut self.refusals, &mut self.answers, &mut self.pushes];
        match self.turn {
            0 => queues.rotate_left(1),
            1 => queues.reverse(),
            _ => {}
        }
        queues.into_iter().find_map(|queue| queue.try_recv().ok())
    }
}

async fn write(
    mut writer: BufWriter<WriteHalf<AnyConnection>>,
    mut lines: Lines,
    stop: &CancellationToken,
) -> StreamEnd {
    loop {
        let line = tokio::select! {
            biased;
            () = stop.cancelled() => {
                let farewell = farewell(&mut writer, &mut lines);
                let _ = timeout(Duration::from_secs(FAREWELL_SECS), farewell).await;
                return StreamEnd::Stopped;
            }
            Some(line) = lines.refusals.recv() => line,
            Some(line) = lines.answers.recv() => line,
            Some(line) = lines.pushes.recv() => line,
        };
        if let Err(end) = write_lines(&mut writer, &mut lines, line).await {
            return end;
        }
    }
}

/// Writes a line and those that wait behind it, up to [`LINES_AT_ONCE_MAX`], and then tells who waits
/// for that.
async fn write_lines(
    writer: &mut BufWriter<WriteHalf<AnyConnection>>,
    lines: &mut Lines,
    first: Line,
) -> Result<(), StreamEnd> {
    let within = Duration::from_secs(WRITE_SECS);
    let mut waiting = Vec::new();
    let mut next = Some(first);
    let mut left = LINES_AT_ONCE_MAX;
    while let Some(line) = next {
        let written = timeout(within, writer.write_all(&line.bytes)).await;
        written.map_err(|_| StreamEnd::Stuck)?.map_err(broken)?;
        waiting.extend(line.written);
        left -= 1;
        next = if left > 0 { lines.at_hand() } else { None };
    }
    let flushed = timeout(within, writer.flush()).await;
    flushed.map_err(|_| StreamEnd::Stuck)?.map_err(broken)?;
    for written in waiting {
        // Nobody there to hear it: it is written all the same.
        let _ = written.send(());
    }
    Ok(())
}

/// Writes what is at hand, and the end of the stream (XMPP-4).
async fn farewell(
    writer: &mut BufWriter<WriteHalf<AnyConnection>>,
    lines: &mut Lines,
) -> Result<(), StreamEnd> {
    if let Some(line) = lines.at_hand() {
        write_lines(writer, lines, line).await?;
    }
    writer
        .write_all(b"</stream:stream>")
        .await
        .map_err(broken)?;
    writer.flush().await.map_err(broken)?;
    writer.shutdown().await.map_err(broken)
}
