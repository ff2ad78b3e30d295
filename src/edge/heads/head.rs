//! The head of one request, whole: is it one that everybody reads alike? Its bytes, not its
//! meaning.

use super::{
    limits::{HEAD_BYTES_MAX, HEADER_LINES_MAX, REQUEST_LINE_BYTES_MAX},
    malformed::MalformedRequest,
};
use http::{Method, Request, Uri, header::COOKIE};
use std::net::Ipv6Addr;

/// The largest body that a request may announce, bytes: what a signed number of 64 bits holds.
const BODY_BYTES_MAX: u64 = i64::MAX as u64;
/// Bytes of a header line beside its name and its value.
const LINE_BYTES: usize = ": \r\n".len();
/// Transfer codings that exist (RFC 9112 section 7): they are not supported, while others are
/// mistakes.
const KNOWN_CODINGS: &[&str] = &[
    "gzip",
    "x-gzip",
    "deflate",
    "compress",
    "x-compress",
    "identity",
];
/// Headers that say where a body ends.
const FRAMING_HEADERS: &[&str] = &["content-length", "transfer-encoding"];

/// The end of a request's body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum BodyFraming {
    /// After so many bytes; 0 for no body.
    Length(u64),
    /// After the last chunk and its trailers.
    Chunked,
}

/// A head that was found good.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct CheckedHead {
    pub(super) body: BodyFraming,
    /// True for a request after which the connection may stop speaking HTTP.
    pub(super) upgrades: bool,
}

/// A request line that was found good.
#[derive(Clone, Copy, Debug)]
struct RequestLine<'a> {
    /// The authority of a target in absolute form, without the default port of its scheme.
    authority: Option<(&'a [u8], &'static [u8])>,
    is_http_11: bool,
}

// Decides: Which bytes are a request of HTTP/1?
/// Checks a head: its request line, without the line's end, and the header lines that follow, up to
/// the empty one.
pub(super) fn check_head(line: &[u8], headers: &[u8]) -> Result<CheckedHead, MalformedRequest> {
    let line = request_line(line)?;
    let mut parsed = [httparse::EMPTY_HEADER; HEADER_LINES_MAX];
    let lines = match httparse::parse_headers(headers, &mut parsed) {
        Ok(httparse::Status::Complete((_, lines))) => lines,
        Ok(httparse::Status::Partial) => return Err(MalformedRequest::LineEnd),
        Err(httparse::Error::TooManyHeaders) => return Err(MalformedRequest::ManyHeaders),
        Err(_) => return Err(header_fault(headers)),
    };
    check_host(line, lines)?;
    check_look_alikes(lines)?;
    Ok(CheckedHead {
        body: body_framing(line, lines)?,
        upgrades: line.is_http_11 && values(lines, "upgrade").next().is_some(),
    })
}

/// Checks a head that HTTP/2 brought, by the same rules: an origin gets it as one of HTTP/1. Pieces
/// of a cookie are one line there (RFC 9113 section 8.2.3).
pub(in crate::edge) fn check_decoded<B>(request: &Request<B>) -> Result<(), MalformedRequest> {
    let (uri, headers) = (request.uri(), request.headers());
    let target = uri.path_and_query().map_or("", |target| target.as_str());
    if target.len() > REQUEST_LINE_BYTES_MAX {
        return Err(MalformedRequest::LongRequestLine);
    }
    if uri.path() == "*" && request.method() != Method::OPTIONS {
        return Err(MalformedRequest::Asterisk);
    }
    if uri
        .authority()
        .is_some_and(|authority| !is_host(authority.as_str().as_bytes()))
    {
        return Err(MalformedRequest::Host);
    }
    let bytes: usize = headers
        .iter()
        .map(|(name, value)| name.as_str().len() + value.len() + LINE_BYTES)
        .sum();
    if target.len() + bytes > HEAD_BYTES_MAX {
        return Err(MalformedRequest::LongHead);
    }
    if headers.iter().filter(|(name, _)| *name != COOKIE).count() > HEADER_LINES_MAX {
        return Err(MalformedRequest::ManyHeaders);
    }
    let lines = headers.iter().map(|(name, value)| httparse::Header {
        name: name.as_str(),
        value: value.as_bytes(),
    });
    let lines: Vec<_> = lines.collect();
    check_look_alikes(&lines)?;
    body_framing(
        RequestLine {
            authority: None,
            is_http_11: true,
        },
        &lines,
    )
    .map(|_| ())
}

/// Checks a request line by itself.
pub(super) fn check_request_line(line: &[u8]) -> Result<(), MalformedRequest> {
    request_line(line).map(|_| ())
}

/// True for the characters of a method and of a header's name (RFC 9110 section 5.6.2).
pub(super) fn is_token(text: &[u8]) -> bool {
    let is_of_token = |byte: &u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(byte);
    !text.is_empty() && text.iter().all(is_of_token)
}

fn request_line(line: &[u8]) -> Result<RequestLine<'_>, MalformedRequest> {
    let mut parts = line.split(|byte| *byte == b' ');
    let (Some(method), Some(target)) = (parts.next(), parts.next()) else {
        return Err(MalformedRequest::RequestLine);
    };
    if !is_token(method) {
        return Err(MalformedRequest::Method);
    }
    if !is_of_target(target) {
        return Err(MalformedRequest::TargetCharacter);
    }
    let is_http_11 = match (parts.next(), parts.next()) {
        (Some(b"HTTP/1.1"), None) => true,
        (Some(b"HTTP/1.0"), None) => false,
        (Some([b'H', b'T', b'T', b'P', b'/', b'0'..=b'9', b'.', b'0'..=b'9']), None) => {
            return Err(MalformedRequest::Version);
        }
        (None, _) if !target.is_empty() => return Err(MalformedRequest::NoVersion),
        _ => return Err(MalformedRequest::RequestLine),
    };
    if method == b"CONNECT" {
        return Err(MalformedRequest::Connect);
    }
    let authority = match target {
        [b'/', ..] => None,
        b"*" if method == b"OPTIONS" => None,
        b"*" => return Err(MalformedRequest::Asterisk),
        _ => Some(authority(target).ok_or(MalformedRequest::Target)?),
    };
    Ok(RequestLine {
        authority,
        is_http_11,
    })
}

/// True for the characters of a target; beside those of RFC 3986 some that old readers do not
/// escape, if the library takes them. A fragment is never sent.
fn is_of_target(target: &[u8]) -> bool {
    let is_usual =
        |byte: &u8| byte.is_ascii_alphanumeric() || b"-._~!$&'()*+,;=:@/?%[]".contains(byte);
    target.iter().all(is_usual)
        || (memchr::memchr(b'#', target).is_none() && Uri::try_from(target).is_ok())
}

/// A request line whose target holds a quotation mark in its query, or a grave accent before that:
/// the library takes neither, and curl sends both as they are. Escaped, they mean the same (RFC
/// 3986 section 2.4). `None` for every other line.
pub(super) fn escaped(line: &[u8]) -> Option<Vec<u8>> {
    let start = memchr::memchr(b' ', line)? + 1;
    let end = start + memchr::memchr(b' ', &line[start..])?;
    let target = &line[start..end];
    if is_of_target(target) {
        return None;
    }
    let query = memchr::memchr(b'?', target).unwrap_or(target.len());
    let mut out = line[..start].to_vec();
    for (at, byte) in target.iter().enumerate() {
        match byte {
            b'"' if at > query => out.extend_from_slice(b"%22"),
            b'`' if at < query => out.extend_from_slice(b"%60"),
            _ => out.push(*byte),
        }
    }
    is_of_target(&out[start..]).then(|| [&out, &line[end..]].concat())
}

/// The authority of a target in absolute form, and the default port of its scheme.
fn authority(target: &[u8]) -> Option<(&[u8], &'static [u8])> {
    let schemes: [(&[u8], &'static [u8]); 2] = [(b"http://", b":80"), (b"https://", b":443")];
    schemes.into_iter().find_map(|(scheme, port)| {
        let (start, rest) = target.split_at_checked(scheme.len())?;
        let authority = rest.split(|byte| matches!(byte, b'/' | b'?')).next()?;
        (start.eq_ignore_ascii_case(scheme) && is_host(authority)).then_some((authority, port))
    })
}

/// The fault for which httparse takes these lines for none.
fn header_fault(headers: &[u8]) -> MalformedRequest {
    for line in headers.split(|byte| *byte == b'\n') {
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        let Some(colon) = memchr::memchr(b':', line) else {
            match line {
                [] => continue,
                [b' ' | b'\t', ..] => return MalformedRequest::Folded,
                _ => return MalformedRequest::HeaderLine,
            }
        };
        let (name, value) = (&line[..colon], &line[colon + 1..]);
        match name {
            [b' ' | b'\t', ..] => return MalformedRequest::Folded,
            [.., b' ' | b'\t'] => return MalformedRequest::SpaceBeforeColon,
            name if !is_token(name) => return MalformedRequest::HeaderName,
            _ if value
                .iter()
                .any(|byte| byte.is_ascii_control() && *byte != b'\t') =>
            {
                return MalformedRequest::HeaderValue;
            }
            _ => {}
        }
    }
    MalformedRequest::HeaderLine
}

/// The values of a header.
fn values<'a>(lines: &'a [httparse::Header<'a>], name: &'a str) -> impl Iterator<Item = &'a [u8]> {
    lines
        .iter()
        .filter(move |line| line.name.eq_ignore_ascii_case(name))
        .map(|line| line.value.trim_ascii())
}

fn check_host(
    line: RequestLine<'_>,
    lines: &[httparse::Header<'_>],
) -> Result<(), MalformedRequest> {
    let mut hosts = values(lines, "host");
    let host = match (hosts.next(), hosts.next()) {
        (_, Some(_)) => return Err(MalformedRequest::TwoHosts),
        (None, None) if line.is_http_11 => return Err(MalformedRequest::NoHost),
        (None, None) => return Ok(()),
        (Some(host), None) => host,
    };
    if !is_host(host) {
        return Err(MalformedRequest::Host);
    }
    let Some((authority, port)) = line.authority else {
        return Ok(());
    };
    if !without_port(host, port).eq_ignore_ascii_case(without_port(authority, port)) {
        return Err(MalformedRequest::HostMismatch);
    }
    Ok(())
}

/// A host without the port that it has anyway, be it spelt out or empty.
fn without_port<'a>(host: &'a [u8], default: &[u8]) -> &'a [u8] {
    host.strip_suffix(default)
        .or_else(|| host.strip_suffix(b":"))
        .unwrap_or(host)
}

/// True for a name or an address, with a port, with an empty one (RFC 3986 section 3.2.3), or
/// without.
fn is_host(host: &[u8]) -> bool {
    if let Some(literal) = host.strip_prefix(b"[") {
        let Some(end) = memchr::memchr(b']', literal) else {
            return false;
        };
        let address = std::str::from_utf8(&literal[..end]);
        let is_address = address.is_ok_and(|text| text.parse::<Ipv6Addr>().is_ok());
        return is_address && may_follow_host(&literal[end + 1..]);
    }
    let end = memchr::memchr(b':', host).unwrap_or(host.len());
    let (name, port) = host.split_at(end);
    let is_of_name = |byte: &u8| byte.is_ascii_alphanumeric() || b"-._~".contains(byte);
    !name.is_empty() && name.iter().all(is_of_name) && may_follow_host(port)
}

/// True for a port behind its colon, for the colon alone, and for nothing.
fn may_follow_host(port: &[u8]) -> bool {
    let Some(number) = port.strip_prefix(b":") else {
        return port.is_empty();
    };
    if number.is_empty() {
        return true;
    }
    // The parser takes a sign, too.
    let is_number = number.iter().all(u8::is_ascii_digit);
    is_number && std::str::from_utf8(number).is_ok_and(|text| text.parse::<u16>().is_ok())
}

/// Refuses names that programs behind gateways of old take for the headers of framing, and their
/// removal on the way.
fn check_look_alikes(lines: &[httparse::Header<'_>]) -> Result<(), MalformedRequest> {
    let is_framing = |name: &str| {
        FRAMING_HEADERS
            .iter()
            .any(|framing| name.eq_ignore_ascii_case(framing))
    };
    if lines
        .iter()
        .any(|line| line.name.contains('_') && is_framing(&line.name.replace('_', "-")))
    {
        return Err(MalformedRequest::LookAlike);
    }
    let mut options =
        values(lines, "connection").flat_map(|value| value.split(|byte| *byte == b','));
    if options.any(|option| std::str::from_utf8(option.trim_ascii()).is_ok_and(is_framing)) {
        return Err(MalformedRequest::ConnectionNamesFraming);
    }
    Ok(())
}

fn body_framing(
    line: RequestLine<'_>,
    lines: &[httparse::Header<'_>],
) -> Result<BodyFraming, MalformedRequest> {
    let mut lengths = values(lines, "content-length");
    let mut codings = values(lines, "transfer-encoding");
    match (lengths.next(), codings.next()) {
        (None, None) => Ok(BodyFraming::Length(0)),
        (Some(_), Some(_)) => Err(MalformedRequest::LengthAndCoding),
        (Some(_), None) if lengths.next().is_some() => Err(MalformedRequest::TwoContentLengths),
        (Some(length), None) => content_length(length)
            .map(BodyFraming::Length)
            .ok_or(MalformedRequest::ContentLength),
        (None, Some(_)) if !line.is_http_11 => Err(MalformedRequest::CodingInOldVersion),
        (None, Some(_)) if codings.next().is_some() => Err(MalformedRequest::TransferEncoding),
        (None, Some(coding)) if coding.eq_ignore_ascii_case(b"chunked") => Ok(BodyFraming::Chunked),
        (None, Some(coding)) => Err(coding_fault(coding)),
    }
}

/// Digits, and no more of them than needed: others take a leading zero for octal.
fn content_length(text: &[u8]) -> Option<u64> {
    if !text.iter().all(u8::is_ascii_digit) || (text.len() > 1 && text.starts_with(b"0")) {
        return None;
    }
    std::str::from_utf8(text)
        .ok()?
        .parse()
        .ok()
        .filter(|length| *length <= BODY_BYTES_MAX)
}

/// Tells codings that exist from mistakes.
fn coding_fault(coding: &[u8]) -> MalformedRequest {
    let mut parts = coding.split(|byte| *byte == b',').map(<[u8]>::trim_ascii);
    let last = parts.next_back().unwrap_or_default();
    let is_known = |part: &[u8]| {
        KNOWN_CODINGS
            .iter()
            .any(|known| part.eq_ignore_ascii_case(known.as_bytes()))
    };
    let ends_well = last.eq_ignore_ascii_case(b"chunked") || is_known(last);
    if ends_well && parts.all(is_known) {
        MalformedRequest::UnknownCoding
    } else {
        MalformedRequest::TransferEncoding
    }
}
