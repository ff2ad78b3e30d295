//! Feeds that come from the origin of a site whose feeds are private, at an address that nobody told us: they are not passed on.
//! Not the feeds that are served from here.

use super::{
    body::Response,
    look_ahead::{joined, look_ahead},
};
use flate2::read::MultiGzDecoder;
use http::{
    StatusCode,
    header::{CONTENT_ENCODING, CONTENT_TYPE},
};
use http_body::Body as _;
use std::io::Read as _;

/// Bytes of a document that was packed in which its root element stands.
const LOOK_INFLATED_BYTES: u64 = 16 << 10;

/// Media types, by their beginnings, of what is no document: it is not looked at, and may be of any length. An event stream has no
/// beginning of its own.
const NO_DOCUMENTS: [&str; 8] = [
    "image/",
    "audio/",
    "video/",
    "font/",
    "text/css",
    "text/javascript",
    "application/javascript",
    "text/event-stream",
];

/// An answer of the origin, unless it is a feed, by what it says or by how it begins: servers call a document whatever its file is
/// called.
pub(super) async fn unless_feed(response: Response) -> Option<Response> {
    let media =
        response.headers().get(CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let media = media.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
    // Parts of a document come with the types of the document inside of the body.
    if ["rss", "atom", "rdf", "feed+json", "multipart/byteranges"].iter().any(|feed| media.contains(feed)) {
        return None;
    }
    // An answer without a body (HEAD, 304) holds no feed.
    if response.body().is_end_stream() || NO_DOCUMENTS.iter().any(|other| media.starts_with(other)) {
        return Some(response);
    }
    if response.status() == StatusCode::PARTIAL_CONTENT {
        // Its beginning is not here.
        return None;
    }
    let coding =
        response.headers().get(CONTENT_ENCODING).map(|coding| coding.as_bytes().to_ascii_lowercase());
    let (head, body) = response.into_parts();
    let (begin, rest) = match coding.as_deref() {
        None | Some(b"identity") => look_ahead(body, |begin| begins_feed(begin).is_some()).await,
        Some(_) => look_ahead(body, |_| false).await,
    };
    let begins = match coding.as_deref() {
        None | Some(b"identity") => begins_feed(&begin),
        Some(b"gzip" | b"x-gzip") => {
            let mut inflated = Vec::new();
            // A beginning without its end.
            let _ = MultiGzDecoder::new(&begin[..]).take(LOOK_INFLATED_BYTES).read_to_end(&mut inflated);
            begins_feed(&inflated)
        }
        // What cannot be looked at could be one.
        Some(_) => Some(true),
    };
    let is_feed = begins.unwrap_or(media.ends_with("/xml"));
    (!is_feed).then(|| Response::from_parts(head, joined([begin], rest)))
}

/// True for the beginning of a document that is a feed, by its root element or the version of JSON Feed; `None` while it may be one.
fn begins_feed(begin: &[u8]) -> Option<bool> {
    // Of UTF-16 every other byte.
    let text: Vec<u8> = begin.iter().copied().filter(|byte| *byte != 0).collect();
    let text = text.strip_prefix(b"\xef\xbb\xbf").unwrap_or(&text).trim_ascii_start();
    if text.first() == Some(&b'{') {
        // A solidus may be escaped.
        let plain: Vec<u8> = text.iter().copied().filter(|byte| *byte != b'\\').collect();
        return memchr::memmem::find(&plain, b"://jsonfeed.org/version/").map(|_| true);
    }
    let mut rest = text;
    while let Some(at) = memchr::memchr(b'<', rest) {
        rest = &rest[at + 1..];
        let end: &[u8] = match rest {
            [b'!', b'-', b'-', ..] => b"-->",
            [b'?', ..] => b"?>",
            [b'!', ..] => b">",
            _ => {
                // The whole name has to be here.
                let length =
                    rest.iter().position(|byte| byte.is_ascii_whitespace() || b">/".contains(byte))?;
                let name = rest[..length].rsplit(|byte| *byte == b':').next().unwrap_or_default();
                let is = |root: &&[u8]| name.eq_ignore_ascii_case(root);
                return Some([&b"rss"[..], b"feed", b"rdf", b"channel"].iter().any(is));
            }
        };
        rest = &rest[memchr::memmem::find(rest, end)? + end.len()..];
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_feed_is_known_by_its_root_element() {
        for feed in [
            "<rss version='2.0'>",
            "\u{feff}<?xml version='1.0'?>\n<!-- <urlset> --><feed xmlns='x'>",
            "<rdf:RDF xmlns:rdf='x'>",
            "<a:feed>",
            "<!DOCTYPE rss SYSTEM 'x'><RSS>",
            "\u{feff} { \"title\": \"x\", \"version\": \"https:\\/\\/jsonfeed.org\\/version\\/1.1\"",
        ] {
            assert_eq!(begins_feed(feed.as_bytes()), Some(true), "{feed}");
        }
        for other in ["<urlset>", "<?xml version='1.0'?><sitemapindex/>", "<html><rss>", "<feedback>"] {
            assert_eq!(begins_feed(other.as_bytes()), Some(false), "{other}");
        }
        for open in
            ["", "text", "<", "<rs", "<!-- without an end", "<?xml version='1.0'?>", "{\"version\": 1"]
        {
            assert_eq!(begins_feed(open.as_bytes()), None, "{open}");
        }
        let wide: Vec<u8> = "<rss>".encode_utf16().flat_map(u16::to_le_bytes).collect();
        assert_eq!(begins_feed(&wide), Some(true));
    }
}
