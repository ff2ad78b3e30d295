//! Bytes of one coding in, plain bytes out, never more than a fixed number of them. Knows nothing
//! of HTTP.

use std::io::{self, Write};

use brotli::DecompressorWriter;
use bytes::{Buf, Bytes, BytesMut};
use flate2::write::MultiGzDecoder;
use flate2::{Decompress, FlushDecompress, Status};

use crate::layers::FetchError;
use crate::layers::error::{InflateFault, Size};

/// The codings that can be undone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ContentCoding {
    Identity,
    Gzip,
    Deflate,
    Brotli,
    Zstd,
}

/// Undoes one coding, chunk by chunk.
pub(super) struct Inflater {
    bytes_max: u64,
    state: InflateState,
}

enum InflateState {
    /// Before the first byte, since an empty body is not an empty gzip file and still no error.
    Fresh(ContentCoding),
    Plain {
        left: u64,
    },
    Gzip(Box<MultiGzDecoder<Sink>>),
    Deflate(Deflate),
    Brotli(Box<DecompressorWriter<Sink>>),
    Zstd(Box<ZstdWriter>),
}

type ZstdWriter = zstd::stream::zio::Writer<Sink, zstd::stream::raw::Decoder<'static>>;

/// The largest window of a zstd frame that is undone, 2 to this power bytes: 8 MiB (RFC 9659).
const ZSTD_WINDOW_LOG_MAX: u32 = 23;

impl Inflater {
    pub(super) fn new(coding: ContentCoding, bytes_max: u64) -> Self {
        Self {
            bytes_max,
            state: InflateState::Fresh(coding),
        }
    }

    /// Inflates `data`, as far as it can be told yet.
    pub(super) fn push(&mut self, data: Bytes) -> Result<Bytes, FetchError> {
        if data.is_empty() {
            return Ok(data);
        }
        if let InflateState::Fresh(coding) = self.state {
            let started = InflateState::start(coding, self.bytes_max);
            self.state = started.map_err(|error| explain(error, self.bytes_max))?;
        }
        let bytes_max = self.bytes_max;
        let inflated = match &mut self.state {
            InflateState::Fresh(_) => unreachable!("a fresh state was started above"),
            InflateState::Plain { left } => take(left, data.len()).map(|()| data),
            InflateState::Gzip(decoder) => {
                decoder.write_all(&data).map(|()| decoder.get_mut().drain())
            }
            InflateState::Deflate(decoder) => decoder.push(data),
            InflateState::Brotli(decoder) => {
                write_until_end(decoder, &data).map(|()| decoder.get_mut().drain())
            }
            InflateState::Zstd(decoder) => {
                let written = decoder.write_all(&data).and_then(|()| decoder.flush());
                written.map(|()| decoder.writer_mut().drain())
            }
        };
        inflated.map_err(|error| explain(error, bytes_max))
    }

    /// The rest that was still held back. An error when the coding says that there should have been
    /// more.
    pub(super) fn finish(self) -> Result<Bytes, FetchError> {
        let inflated = match self.state {
            InflateState::Fresh(_) | InflateState::Plain { .. } => Ok(Bytes::new()),
            InflateState::Gzip(mut decoder) => {
                decoder.try_finish().map(|()| decoder.get_mut().drain())
            }
            InflateState::Deflate(decoder) => decoder.finish(),
            InflateState::Brotli(mut decoder) => {
                decoder.close().map(|()| decoder.get_mut().drain())
            }
            InflateState::Zstd(mut decoder) => {
                decoder.finish().map(|()| decoder.writer_mut().drain())
            }
        };
        inflated.map_err(|error| explain(error, self.bytes_max))
    }
}

impl InflateState {
    fn start(coding: ContentCoding, bytes_max: u64) -> io::Result<Self> {
        let sink = Sink {
            out: BytesMut::new(),
            left: bytes_max,
        };
        Ok(match coding {
            ContentCoding::Identity => Self::Plain { left: bytes_max },
            ContentCoding::Gzip => Self::Gzip(Box::new(MultiGzDecoder::new(sink))),
            ContentCoding::Deflate => Self::Deflate(Deflate {
                head: BytesMut::new(),
                decoder: None,
                ended: false,
                sink,
            }),
            ContentCoding::Brotli => {
                Self::Brotli(Box::new(DecompressorWriter::new(sink, CHUNK_BYTES)))
            }
            ContentCoding::Zstd => {
                let mut decoder = zstd::stream::raw::Decoder::new()?;
                let window = zstd::stream::raw::DParameter::WindowLogMax(ZSTD_WINDOW_LOG_MAX);
                decoder.set_parameter(window)?;
                Self::Zstd(Box::new(ZstdWriter::new(sink, decoder)))
            }
        })
    }
}

/// "deflate" means zlib by RFC 9110 and the raw stream by what some servers send. The first two
/// bytes tell.
struct Deflate {
    head: BytesMut,
    decoder: Option<Decompress>,
    ended: bool,
    sink: Sink,
}

impl Deflate {
    fn push(&mut self, data: Bytes) -> io::Result<Bytes> {
        self.head.extend_from_slice(&data);
        if self.decoder.is_none() && self.head.len() < 2 {
            return Ok(Bytes::new());
        }
        self.run()?;
        Ok(self.sink.drain())
    }

    fn run(&mut self) -> io::Result<()> {
        let input = self.head.split();
        let decoder = self
            .decoder
            .get_or_insert_with(|| Decompress::new(is_zlib(&input)));
        let mut rest = &input[..];
        let mut chunk = [0; CHUNK_BYTES];
        while !self.ended {
            let (in_before, out_before) = (decoder.total_in(), decoder.total_out());
            let status = decoder
                .decompress(rest, &mut chunk, FlushDecompress::None)
                .map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))?;
            let (read, made) = (
                decoder.total_in() - in_before,
                decoder.total_out() - out_before,
            );
            self.sink.write_all(&chunk[..made as usize])?;
            rest.advance(read as usize);
            self.ended = status == Status::StreamEnd;
            if read == 0 && made == 0 {
                break;
            }
        }
        Ok(())
    }

    fn finish(mut self) -> io::Result<Bytes> {
        if !self.head.is_empty() {
            self.run()?;
        }
        if self.ended {
            Ok(self.sink.drain())
        } else {
            Err(io::ErrorKind::UnexpectedEof.into())
        }
    }
}

/// RFC 1950 section 2.2: method 8, and the two bytes as a number divisible by 31.
fn is_zlib(head: &[u8]) -> bool {
    matches!(head, [cmf, flg, ..] if cmf & 0x0f == 8 && u16::from_be_bytes([*cmf, *flg]) % 31 == 0)
}

/// Writes all of `data` or up to the end of the stream. Bytes after that end are ignored.
fn write_until_end(decoder: &mut impl Write, mut data: &[u8]) -> io::Result<()> {
    while !data.is_empty() {
        match decoder.write(data)? {
            0 => break,
            written => data.advance(written),
        }
    }
    Ok(())
}

/// The sink that decoders write to: takes so many bytes over its whole life and refuses the next
/// one.
struct Sink {
    out: BytesMut,
    left: u64,
}

impl Sink {
    fn drain(&mut self) -> Bytes {
        self.out.split().freeze()
    }
}

impl Write for Sink {
    fn write(&mut self, data: &[u8]) -> io::Result<usize> {
        take(&mut self.left, data.len())?;
        self.out.extend_from_slice(data);
        Ok(data.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn take(left: &mut u64, bytes: usize) -> io::Result<()> {
    *left = left
        .checked_sub(bytes as u64)
        .ok_or_else(|| io::Error::other(OverCap))?;
    Ok(())
}

/// Marker by which the cap's own error is told from the decoders' inside an `io::Error`.
#[derive(Debug, thiserror::Error)]
#[error("over the cap")]
struct OverCap;

fn explain(error: io::Error, bytes_max: u64) -> FetchError {
    if error.get_ref().is_some_and(|inner| inner.is::<OverCap>()) {
        FetchError::TooLarge {
            bytes_max,
            size: Size::Inflated,
        }
    } else {
        FetchError::Inflate(InflateFault::Damaged, error.into())
    }
}

/// Working memory of a decoder. What it makes of one network read is handed on in one piece all the
/// same.
const CHUNK_BYTES: usize = 8 * 1024;
