//! Faults of requests that are refused before anybody acts on them, each with its status and the
//! line that its sender reads.

use http::StatusCode;
use thiserror::Error;

/// A fault in the head or in the framing of a request of HTTP/1.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub(in crate::edge) enum MalformedRequest {
    #[error("this port speaks HTTP, not TLS: use http://")]
    Tls,
    #[error("a request line is METHOD TARGET HTTP/1.1, with one space between them")]
    RequestLine,
    #[error("a request line ends with its version, HTTP/1.1")]
    NoVersion,
    #[error("this server speaks HTTP/1.0, HTTP/1.1 and HTTP/2")]
    Version,
    #[error("the method is not a token")]
    Method,
    #[error("CONNECT is not supported: this server is no tunnel")]
    Connect,
    #[error("the target is none: use a path, or a URL of http or https")]
    Target,
    #[error("the target holds a character that must be escaped")]
    TargetCharacter,
    #[error("the target * is for OPTIONS only")]
    Asterisk,
    #[error(
        "a request line holds {} bytes at most",
        super::limits::REQUEST_LINE_BYTES_MAX
    )]
    LongRequestLine,
    #[error("the lines of a request end in CR LF; here is one without the other")]
    LineEnd,
    #[error("a header line begins with white space: lines are not folded any more")]
    Folded,
    #[error("white space stands between a header's name and its colon")]
    SpaceBeforeColon,
    #[error("a header line is a name, a colon and a value")]
    HeaderLine,
    #[error("a header's name is not a token")]
    HeaderName,
    #[error("a header's value holds a control character")]
    HeaderValue,
    #[error(
        "a request has {} header lines at most",
        super::limits::HEADER_LINES_MAX
    )]
    ManyHeaders,
    #[error(
        "the head of a request holds {} bytes at most",
        super::limits::HEAD_BYTES_MAX
    )]
    LongHead,
    #[error("a request of HTTP/1.1 has a Host")]
    NoHost,
    #[error("a request has one Host")]
    TwoHosts,
    #[error("the Host is not a name or an address with an optional port")]
    Host,
    #[error("the Host differs from the host of the target")]
    HostMismatch,
    #[error("Content-Length is one decimal number")]
    ContentLength,
    #[error("a request has one Content-Length")]
    TwoContentLengths,
    #[error("a request has Content-Length or Transfer-Encoding, not both")]
    LengthAndCoding,
    #[error("a request has one Transfer-Encoding, and that is chunked")]
    TransferEncoding,
    #[error("the only transfer coding of requests is chunked")]
    UnknownCoding,
    #[error("a request of HTTP/1.0 has no Transfer-Encoding")]
    CodingInOldVersion,
    #[error("a header's name looks like Content-Length or Transfer-Encoding and is not")]
    LookAlike,
    #[error("Connection may not name Content-Length or Transfer-Encoding")]
    ConnectionNamesFraming,
    #[error("a chunk begins with its size, a hexadecimal number")]
    ChunkSize,
    #[error("the line of a chunk's size is too long")]
    ChunkExtension,
    #[error("a chunk ends in CR LF, where its size says")]
    ChunkEnd,
    #[error("a trailer line is malformed")]
    Trailer,
    #[error("a trailer names a field that may not stand there")]
    ForbiddenTrailer,
    #[error("the trailers are too many or too long")]
    LongTrailers,
    #[error("the request broke off in its head")]
    BrokeOff,
    #[error("the head of a request must be here within {} seconds", super::limits::HEAD_TIME.as_secs())]
    Slow,
}

impl MalformedRequest {
    /// Status of the answer.
    pub(in crate::edge) fn status(self) -> StatusCode {
        match self {
            Self::Slow => StatusCode::REQUEST_TIMEOUT,
            Self::LongRequestLine => StatusCode::URI_TOO_LONG,
            Self::ManyHeaders | Self::LongHead | Self::LongTrailers => {
                StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE
            }
            Self::Connect | Self::UnknownCoding => StatusCode::NOT_IMPLEMENTED,
            Self::NoVersion | Self::Version => StatusCode::HTTP_VERSION_NOT_SUPPORTED,
            _ => StatusCode::BAD_REQUEST,
        }
    }
}
