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
use std::io::Read as _;

/// Bytes of a document that was packed in which its root element stands.
const LOOK_INFLATED_BYTES: u64 = 16 << 10;

/// An answer of the origin, unless it is a feed.
pub(super) async fn unless_feed(response: Response) -> Option<Response> {
    let media =
        response.headers().get(CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let media = media.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
    if ["rss", "atom", "rdf", "feed+json"].iter().any(|feed| media.contains(feed)) {
        return None;
    }
    if !media.ends_with("/xml") {
        return Some(response);
    }
    if response.status() == StatusCode::PARTIAL_CONTENT {
        // Its beginning is not here.
        return None;
    }
    let coding =
        response.headers().get(CONTENT_ENCODING).map(|coding| coding.as_bytes().to_ascii_lowercase());
    let (head, body) = response.into_parts();
    let (begin, rest) = look_ahead(body, |_| false).await;
    let is_feed = match coding.as_deref() {
        None | Some(b"identity") => begins_feed(&begin),
        Some(b"gzip" | b"x-gzip") => {
            let mut inflated = Vec::new();
            // A beginning without its end.
            let _ = MultiGzDecoder::new(&begin[..]).take(LOOK_INFLATED_BYTES).read_to_end(&mut inflated);
            begins_feed(&inflated)
        }
        // What cannot be looked at could be one.
        Some(_) => true,
    };
    (!is_feed).then(|| Response::from_parts(head, joined([begin], rest)))
}

/// True for the beginning of a document whose root element is that of a feed, or does not come.
fn begins_feed(begin: &[u8]) -> bool {
    // Of UTF-16 every other byte.
    let text: Vec<u8> = begin.iter().copied().filter(|byte| *byte != 0).collect();
    let mut rest = &text[..];
    while let Some(at) = memchr::memchr(b'<', rest) {
        rest = &rest[at + 1..];
        let end: &[u8] = match rest {
            [b'!', b'-', b'-', ..] => b"-->",
            [b'?', ..] => b"?>",
            [b'!', ..] => b">",
            _ => {
                let name = rest.split(|byte| byte.is_ascii_whitespace() || b">/".contains(byte)).next();
                let name = name.unwrap_or_default().rsplit(|byte| *byte == b':').next().unwrap_or_default();
                return [&b"rss"[..], b"feed", b"rdf", b"channel"]
                    .iter()
                    .any(|root| name.eq_ignore_ascii_case(root));
            }
        };
        match memchr::memmem::find(rest, end) {
            Some(at) => rest = &rest[at + end.len()..],
            None => return true,
        }
    }
    false
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
            "<!-- without an end",
        ] {
            assert!(begins_feed(feed.as_bytes()), "{feed}");
        }
        for other in
            ["", "text", "<urlset>", "<?xml version='1.0'?><sitemapindex/>", "<html><rss>", "<feedback>"]
        {
            assert!(!begins_feed(other.as_bytes()), "{other}");
        }
        let wide: Vec<u8> = "<rss>".encode_utf16().flat_map(u16::to_le_bytes).collect();
        assert!(begins_feed(&wide));
    }
}
