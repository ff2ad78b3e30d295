//! The requests on a connection, one behind the other: where each head and each body ends, as far
//! as the bytes have come; not where they come from.

use super::{
    chunks::ChunkedBody,
    head::{BodyFraming, CheckedHead, check_head, check_request_line, escaped, is_token},
    limits::{HEAD_BYTES_MAX, REQUEST_LINE_BYTES_MAX},
    malformed::MalformedRequest,
};

/// The first bytes of a connection of HTTP/2, which checks its requests by itself (RFC 9113 section
/// 3.4).
pub(super) const HTTP_2_PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
/// The first byte of a TLS handshake.
const TLS_HANDSHAKE: u8 = 0x16;

/// The requests on one connection.
#[derive(Debug, Default)]
pub(super) struct RequestFrames {
    place: FramePosition,
    /// Heads that were found good.
    heads: u64,
}

/// A place between the requests of a connection.
#[derive(Debug, Default)]
enum FramePosition {
    /// Before the first bytes tell HTTP/1 from HTTP/2.
    #[default]
    Start,
    /// In a head, or before one.
    Head(HeadLines),
    /// So many bytes before the end of a body.
    Body { left: u64, upgrades: bool },
    /// In a chunked body.
    Chunks {
        body: Box<ChunkedBody>,
        upgrades: bool,
    },
    /// Behind a request whose answer may end HTTP on this connection.
    Upgrade,
    /// Beyond HTTP/1: everything passes.
    Opaque,
}

/// The lines of a head as far as they were looked at.
#[derive(Clone, Copy, Debug, Default)]
struct HeadLines {
    /// Bytes that were looked at.
    looked: usize,
    /// First byte of the line that is not whole yet.
    line: usize,
    /// First and last byte of the request line.
    request_line: Option<(usize, usize)>,
}

/// Result of looking at some bytes: so many were found good, and the step after them.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct CheckedBytes {
    pub(super) passed: usize,
    pub(super) then: Then,
}

/// The step after the bytes that were found good.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Then {
    /// More bytes are needed.
    More,
    /// Nothing goes on before the last request is answered.
    Answer,
    /// The first `line` bytes behind them are a request line that goes on as this one.
    Escape { line: usize, as_one: Vec<u8> },
    /// Nothing goes on.
    Refuse(RefusedRequest),
}

/// A request that is refused, by its number on the connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct RefusedRequest {
    pub(super) request: u64,
    pub(super) fault: MalformedRequest,
    /// True when its head did not pass; else the fault is in its body.
    pub(super) in_head: bool,
}

impl RequestFrames {
    /// Checks bytes that stand behind those that were found good before.
    pub(super) fn check(&mut self, bytes: &[u8]) -> CheckedBytes {
        let mut passed = 0;
        let then = loop {
            let rest = &bytes[passed..];
            if self.waits() {
                break Then::Answer;
            }
            if rest.is_empty() {
                break Then::More;
            }
            let next = match &mut self.place {
                FramePosition::Upgrade | FramePosition::Opaque => {
                    passed = bytes.len();
                    None
                }
                FramePosition::Start if rest.starts_with(HTTP_2_PREFACE) => {
                    Some(FramePosition::Opaque)
                }
                FramePosition::Start if HTTP_2_PREFACE.starts_with(rest) => None,
                FramePosition::Start => Some(FramePosition::Head(HeadLines::default())),
                FramePosition::Head(lines) => match lines.look(rest) {
                    Ok(HeadScan::Part) => None,
                    Ok(HeadScan::Escape { line, as_one }) => {
                        *lines = HeadLines::default();
                        break Then::Escape { line, as_one };
                    }
                    Ok(HeadScan::Whole(length, head)) => {
                        self.heads += 1;
                        passed += length;
                        Some(FramePosition::after(head))
                    }
                    Err(fault) => break Then::Refuse(self.refuse_next(fault)),
                },
                FramePosition::Body { left, upgrades } => {
                    let here = u64::try_from(rest.len()).unwrap_or(u64::MAX).min(*left);
                    *left -= here;
                    passed += usize::try_from(here).unwrap_or(usize::MAX);
                    let is_over = *left == 0;
                    is_over.then_some(FramePosition::behind(*upgrades))
                }
                FramePosition::Chunks { body, upgrades } => {
                    let chunks = body.follow(rest);
                    passed += chunks.passed;
                    if let Some(fault) = chunks.fault {
                        break Then::Refuse(RefusedRequest {
                            request: self.heads,
                            fault,
                            in_head: false,
                        });
                    }
                    chunks.ended.then_some(FramePosition::behind(*upgrades))
                }
            };
            match next {
                Some(place) => self.place = place,
                None => break Then::More,
            }
        };
        CheckedBytes { passed, then }
    }

    /// Goes on behind a request that was answered.
    pub(super) fn answered(&mut self, is_opaque: bool) {
        self.place = if is_opaque {
            FramePosition::Opaque
        } else {
            FramePosition::behind(false)
        };
    }

    /// Number of the last request whose head passed; the first is 1.
    pub(super) fn last_request(&self) -> u64 {
        self.heads
    }

    /// Number of the next request.
    pub(super) fn refuse_next(&self, fault: MalformedRequest) -> RefusedRequest {
        RefusedRequest {
            request: self.heads + 1,
            fault,
            in_head: true,
        }
    }

    /// True while nothing goes on before the last request is answered.
    pub(super) fn waits(&self) -> bool {
        matches!(self.place, FramePosition::Upgrade)
    }

    /// True in a body: its sender may still be sending when it is hung up on.
    pub(super) fn is_in_body(&self) -> bool {
        matches!(
            self.place,
            FramePosition::Body { .. } | FramePosition::Chunks { .. }
        )
    }
}

/// Result of looking at the lines of a head.
enum HeadScan {
    /// Some are to come.
    Part,
    /// Its length and what is in it.
    Whole(usize, CheckedHead),
    /// Its first bytes are a request line that goes on as another one.
    Escape { line: usize, as_one: Vec<u8> },
}

impl FramePosition {
    fn after(head: CheckedHead) -> Self {
        let upgrades = head.upgrades;
        match head.body {
            BodyFraming::Length(0) => Self::behind(upgrades),
            BodyFraming::Length(left) => Self::Body { left, upgrades },
            BodyFraming::Chunked => Self::Chunks {
                body: Box::default(),
                upgrades,
            },
        }
    }

    fn behind(upgrades: bool) -> Self {
        if upgrades {
            Self::Upgrade
        } else {
            Self::Head(HeadLines::default())
        }
    }
}

impl HeadLines {
    /// Looks at the bytes of a head that were not looked at yet.
    fn look(&mut self, bytes: &[u8]) -> Result<HeadScan, MalformedRequest> {
        if self.looked == 0 {
            check_first(bytes[0])?;
        }
        while let Some(end) =
            memchr::memchr(b'\n', &bytes[self.looked..]).map(|at| self.looked + at)
        {
            self.looked = end + 1;
            let start = std::mem::replace(&mut self.line, end + 1);
            let line = bytes[start..end]
                .strip_suffix(b"\r")
                .ok_or(MalformedRequest::LineEnd)?;
            check_lengths(self.request_line.is_none(), line.len(), end + 1)?;
            match self.request_line {
                // Some send an empty line behind a body (RFC 9112 section 2.2).
                None if line.is_empty() && start == 0 => {}
                None => {
                    if let Some(as_one) = escaped(line) {
                        let as_one = [&bytes[..start], &as_one].concat();
                        return Ok(HeadScan::Escape {
                            line: start + line.len(),
                            as_one,
                        });
                    }
                    check_request_line(line)?;
                    self.request_line = Some((start, start + line.len()));
                }
                Some((from, to)) if line.is_empty() => {
                    let head = check_head(&bytes[from..to], &bytes[to + 2..=end])?;
                    return Ok(HeadScan::Whole(end + 1, head));
                }
                Some(_) => {}
            }
        }
        self.looked = bytes.len();
        check_lengths(
            self.request_line.is_none(),
            bytes.len() - self.line,
            bytes.len(),
        )?;
        Ok(HeadScan::Part)
    }
}

/// Refuses what cannot become a request by its first byte.
fn check_first(byte: u8) -> Result<(), MalformedRequest> {
    match byte {
        TLS_HANDSHAKE => Err(MalformedRequest::Tls),
        b'\n' => Err(MalformedRequest::LineEnd),
        b'\r' => Ok(()),
        byte if is_token(&[byte]) => Ok(()),
        _ => Err(MalformedRequest::Method),
    }
}

/// Refuses a head by the length of a line, and by its own so far.
fn check_lengths(in_request_line: bool, line: usize, head: usize) -> Result<(), MalformedRequest> {
    if in_request_line && line > REQUEST_LINE_BYTES_MAX {
        Err(MalformedRequest::LongRequestLine)
    } else if head > HEAD_BYTES_MAX {
        Err(MalformedRequest::LongHead)
    } else {
        Ok(())
    }
}
