//! A chunked body on its way: where it ends, and that everybody finds its end there; not what it
//! holds.

use super::{head::is_token, malformed::MalformedRequest};

/// Digits of a chunk's size.
const SIZE_DIGITS_MAX: u8 = 16;
/// The largest chunk, bytes.
const CHUNK_BYTES_MAX: u64 = i64::MAX as u64;
/// Bytes of extensions on one chunk.
const EXTENSION_BYTES_MAX: usize = 256;
/// Bytes of extensions in one body: nobody reads them. hyper takes 16 KiB.
const EXTENSIONS_BYTES_MAX: usize = 12 << 10;
/// Bytes of all trailers. hyper takes no more than twice as many.
const TRAILERS_BYTES_MAX: usize = 8 << 10;
/// Trailers of a body.
const TRAILERS_MAX: usize = 32;
/// Fields that say how a message is read, sent on, or who sends it: at its end they come too late,
/// and readers that merge them into the head are deceived (RFC 9110 section 6.5.1).
const FORBIDDEN_TRAILERS: &[&str] = &[
    "authorization",
    "cache-control",
    "connection",
    "content-encoding",
    "content-length",
    "content-range",
    "content-type",
    "cookie",
    "expect",
    "forwarded",
    "host",
    "keep-alive",
    "max-forwards",
    "proxy-authorization",
    "range",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
];

/// A place in a chunked body.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum ChunkStep {
    #[default]
    Size,
    Extension,
    SizeLf,
    Data,
    DataCr,
    DataLf,
    Trailer,
    TrailerLf,
}

/// A chunked body as far as it has come.
#[derive(Debug, Default)]
pub(super) struct ChunkedBody {
    step: ChunkStep,
    /// Bytes of the chunk that are still to come; before its data, as far as its digits were read.
    left: u64,
    digits: u8,
    /// Bytes of extensions, on this chunk and on all.
    extension: usize,
    extensions: usize,
    /// The trailer line that is being read.
    line: Vec<u8>,
    trailers: usize,
    trailers_bytes: usize,
}

/// Result of following a body through some bytes: so many belong to it and are good.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct ChunkedBytes {
    pub(super) passed: usize,
    /// True when the body ends after them.
    pub(super) ended: bool,
    pub(super) fault: Option<MalformedRequest>,
}

impl ChunkedBody {
    /// Follows the body through more bytes.
    pub(super) fn follow(&mut self, bytes: &[u8]) -> ChunkedBytes {
        let mut followed = ChunkedBytes::default();
        while let Some(byte) = bytes.get(followed.passed)
            && !followed.ended
        {
            if self.step == ChunkStep::Data {
                let rest = u64::try_from(bytes.len() - followed.passed).unwrap_or(u64::MAX);
                let here = rest.min(self.left);
                self.left -= here;
                followed.passed += usize::try_from(here).unwrap_or(usize::MAX);
                if self.left == 0 {
                    self.step = ChunkStep::DataCr;
                }
                continue;
            }
            match self.take(*byte) {
                Ok(ended) => followed.ended = ended,
                Err(fault) => {
                    followed.fault = Some(fault);
                    break;
                }
            }
            followed.passed += 1;
        }
        followed
    }

    /// Takes a byte outside of data; true when the body ends with it.
    fn take(&mut self, byte: u8) -> Result<bool, MalformedRequest> {
        match (self.step, byte) {
            (ChunkStep::Size, b'\r') if self.digits > 0 => self.step = ChunkStep::SizeLf,
            (ChunkStep::Size, b';') if self.digits > 0 => self.step = ChunkStep::Extension,
            (ChunkStep::Size, byte) => self.size_digit(byte)?,
            (ChunkStep::Extension, b'\r') => self.step = ChunkStep::SizeLf,
            (ChunkStep::Extension, byte) => self.extension_byte(byte)?,
            (ChunkStep::SizeLf, b'\n') => {
                self.step = if self.left == 0 {
                    ChunkStep::Trailer
                } else {
                    ChunkStep::Data
                };
                (self.digits, self.extension) = (0, 0);
            }
            (ChunkStep::DataCr, b'\r') => self.step = ChunkStep::DataLf,
            (ChunkStep::DataLf, b'\n') => self.step = ChunkStep::Size,
            (ChunkStep::DataCr | ChunkStep::DataLf, _) => return Err(MalformedRequest::ChunkEnd),
            (ChunkStep::Trailer, b'\r') => self.step = ChunkStep::TrailerLf,
            (ChunkStep::TrailerLf, b'\n') => return self.trailer_line(),
            (ChunkStep::Trailer, b'\n')
            | (ChunkStep::SizeLf | ChunkStep::TrailerLf | ChunkStep::Data, _) => {
                return Err(MalformedRequest::LineEnd);
            }
            (ChunkStep::Trailer, byte) => self.trailer_byte(byte)?,
        }
        Ok(false)
    }

    fn size_digit(&mut self, byte: u8) -> Result<(), MalformedRequest> {
        if byte == b'\n' && self.digits > 0 {
            return Err(MalformedRequest::LineEnd);
        }
        let digit = char::from(byte)
            .to_digit(16)
            .ok_or(MalformedRequest::ChunkSize)?;
        self.digits += 1;
        let size = self
            .left
            .checked_mul(16)
            .map(|size| size + u64::from(digit));
        self.left = size
            .filter(|size| *size <= CHUNK_BYTES_MAX)
            .ok_or(MalformedRequest::ChunkSize)?;
        if self.digits > SIZE_DIGITS_MAX {
            Err(MalformedRequest::ChunkSize)
        } else {
            Ok(())
        }
    }

    fn extension_byte(&mut self, byte: u8) -> Result<(), MalformedRequest> {
        self.extension += 1;
        self.extensions += 1;
        if byte.is_ascii_control() && byte != b'\t' {
            return Err(MalformedRequest::LineEnd);
        }
        let fits = self.extension <= EXTENSION_BYTES_MAX && self.extensions <= EXTENSIONS_BYTES_MAX;
        if fits {
            Ok(())
        } else {
            Err(MalformedRequest::ChunkExtension)
        }
    }

    fn trailer_byte(&mut self, byte: u8) -> Result<(), MalformedRequest> {
        self.trailers_bytes += 1;
        if self.trailers_bytes > TRAILERS_BYTES_MAX {
            return Err(MalformedRequest::LongTrailers);
        }
        self.line.push(byte);
        Ok(())
    }

    /// Ends a trailer line; true for the empty one.
    fn trailer_line(&mut self) -> Result<bool, MalformedRequest> {
        let line = std::mem::take(&mut self.line);
        if line.is_empty() {
            return Ok(true);
        }
        self.trailers += 1;
        if self.trailers > TRAILERS_MAX {
            return Err(MalformedRequest::LongTrailers);
        }
        let colon = memchr::memchr(b':', &line).ok_or(MalformedRequest::Trailer)?;
        let (name, value) = line.split_at(colon);
        if !is_token(name)
            || value
                .iter()
                .any(|byte| byte.is_ascii_control() && *byte != b'\t')
        {
            return Err(MalformedRequest::Trailer);
        }
        // Some take `_` for `-`.
        let name = String::from_utf8_lossy(name)
            .to_ascii_lowercase()
            .replace('_', "-");
        if FORBIDDEN_TRAILERS.contains(&name.as_str()) || name.starts_with("x-forwarded-") {
            return Err(MalformedRequest::ForbiddenTrailer);
        }
        self.step = ChunkStep::Trailer;
        Ok(false)
    }
}
