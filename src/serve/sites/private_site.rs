//! Feeds that come from the origin of a site with a private feed, at an address that nobody told
//! us: they are not passed on, and no header makes the origin take one address for another. Not the
//! feeds that are served from here.

use super::{
    look_ahead::{PreviewEnd, joined, look_ahead_while},
    trackers::without_trackers,
};
use crate::{
    catalog::SiteOfRequest,
    edge::{
        body::{Response, ServeBody},
        fields::{list_value, media_type, text},
    },
    readers::Coding,
    serve::{
        answers::{accept, refusal::Refusal},
        feeds::context::ServeContext,
    },
};
use bytes::Bytes;
use everfeed_adapters::{Beginning, beginning, is_binary_part, is_feed};
use flate2::read::MultiGzDecoder;
use http::{
    HeaderMap, HeaderName, HeaderValue, Method, StatusCode,
    header::{
        ACCEPT_ENCODING, CONTENT_ENCODING, CONTENT_LENGTH, CONTENT_RANGE, CONTENT_TYPE, ETAG,
        IF_MATCH, IF_MODIFIED_SINCE, IF_NONE_MATCH, IF_RANGE, IF_UNMODIFIED_SINCE, LAST_MODIFIED,
        RANGE,
    },
    request::Parts,
};
use http_body::Body as _;
use std::{borrow::Cow, io::Read as _, time::Duration};
use tokio::time::Instant;

/// Bytes of an answer in which a feed begins, if it is one or has one inside.
const LOOK_BYTES: usize = 64 << 10;
/// Bytes of nothing but padding, or what may stand before a feed, that are looked at. What has not
/// begun by then is held back.
const PADDING_BYTES_MAX: usize = 1 << 20;
/// Bytes of a part of a file by which it is told from text.
const PART_BYTES: usize = 1 << 10;
/// Time for which the beginning of what could be a feed is waited for. What has not begun by then
/// is held back.
const LOOK_TIME: Duration = Duration::from_secs(60);
/// Time for which more is waited for of what began as something else: a page that comes in drops is
/// passed on as it comes.
const OTHER_LOOK_TIME: Duration = Duration::from_secs(2);

/// Media types, by their beginnings, of what is no document: of it the head may tell everything.
const NO_DOCUMENTS: [&str; 8] = [
    "image/",
    "audio/",
    "video/",
    "font/",
    "text/css",
    "application/pdf",
    "application/zip",
    "application/epub+zip",
];

/// Ends of paths at which there are files of text, or of text in part: a copy of them may be
/// confirmed.
const TEXT_SUFFIXES: [&str; 5] = ["css", "js", "mjs", "pdf", "svg"];
/// The same of what is no text: a part of them may be asked for, too.
const BINARY_SUFFIXES: [&str; 25] = [
    "avif", "bmp", "eot", "epub", "flac", "gif", "ico", "jpeg", "jpg", "m4a", "m4v", "mov", "mp3",
    "mp4", "oga", "ogg", "ogv", "opus", "otf", "png", "ttf", "webm", "webp", "woff", "woff2",
];

/// Headers by which a part is asked for.
const OF_PARTS: [HeaderName; 2] = [RANGE, IF_RANGE];
/// Headers by which a copy is asked for.
const OF_COPIES: [HeaderName; 4] = [
    IF_NONE_MATCH,
    IF_MODIFIED_SINCE,
    IF_MATCH,
    IF_UNMODIFIED_SINCE,
];

/// Words in the names of headers that some server takes for another address of the request.
const ADDRESS_WORDS: [&str; 14] = [
    "url",
    "uri",
    "path",
    "rewrite",
    "override",
    "original",
    "target",
    "query",
    "script",
    "host",
    "destination",
    "destinationurl",
    "redirect",
    "prefix",
];
/// Names of such headers that do not begin with `x-`.
const ADDRESS_NAMES: [&str; 14] = [
    "base-url",
    "destination",
    "http-url",
    "original-uri",
    "original-url",
    "path-info",
    "proxy-url",
    "redirect-url",
    "request-uri",
    "request-url",
    "rewrite-url",
    "script-name",
    "uri",
    "url",
];

/// The guard of private feeds, for the answer to one request.
pub(crate) struct FeedGuard {
    /// True where all feeds of the site are private.
    is_of_site: bool,
    is_head: bool,
    /// True where a part of a file may have been asked for that is no text.
    may_be_part: bool,
}

impl ServeContext {
    /// Makes a request to a site with a private feed one by which its origin gives nothing of that
    /// away unseen, and makes the guard for its answer. `None` for a site without a private feed,
    /// which is not touched, and at the address of a feed for everybody. The proxy passes the request
    /// on by the same sites, whichever are in force then.
    pub(super) fn feed_guard(&self, request: &mut Parts, has_body: bool) -> Option<FeedGuard> {
        let catalog = self.catalog();
        let site = catalog.site_of(request)?;
        request.extensions.insert(SiteOfRequest {
            sites: catalog.sites().clone(),
            no: site.no,
        });
        let is_of_site = site.settings.access.is_private();
        let public_url = self.readers.site().public_url();
        if !site.leads_to_any_of(catalog.private_places(), public_url) {
            return None;
        }
        let is_read = matches!(request.method, Method::GET | Method::HEAD);
        take_out_other_addresses(&mut request.headers, is_read);
        let asked = request.uri.path_and_query();
        let asked = asked.map_or("/", |asked| asked.as_str());
        // A form in its body may ask for another one.
        if is_read && !has_body {
            let is_open = |path: &str| {
                catalog
                    .at_place(site.no, path)
                    .is_some_and(|feed| !feed.settings.is_private())
            };
            if is_open(asked) || is_open(&without_trackers(asked)) {
                return None;
            }
        }
        look_into(&mut request.headers);
        let is_binary = has_suffix(request.uri.path(), &BINARY_SUFFIXES);
        let is_file = is_binary || has_suffix(request.uri.path(), &TEXT_SUFFIXES);
        if is_read && !is_binary {
            remove(&mut request.headers, &OF_PARTS);
        }
        if is_read && !is_file {
            remove(&mut request.headers, &OF_COPIES);
        }
        Some(FeedGuard {
            is_of_site,
            may_be_part: is_read && is_binary,
            is_head: request.method == Method::HEAD,
        })
    }
}

impl FeedGuard {
    // Decides: Is an answer a private feed at an address that nobody named?
    /// An answer of the origin, unless it is a feed, by what it says or by how it begins: servers
    /// call a document whatever its file is called.
    pub(super) async fn unless_feed(&self, mut response: Response) -> Option<Response> {
        let media = text(response.headers(), &CONTENT_TYPE).unwrap_or_default();
        let media = media_type(media).to_ascii_lowercase();
        // Parts of a document come with the types of the document inside of the body.
        let is_named = ["rss", "atom", "rdf", "feed+json", "multipart/byteranges"];
        if is_named.iter().any(|feed| media.contains(feed)) {
            return None;
        }
        if response.body().is_end_stream() {
            // An answer without a body holds no feed; the head of one tells when it changed.
            let is_document = !NO_DOCUMENTS.iter().any(|other| media.starts_with(other));
            if self.is_head && is_document {
                let of_document = [ETAG, LAST_MODIFIED, CONTENT_LENGTH];
                remove(response.headers_mut(), &of_document);
            }
            return Some(response);
        }
        let is_part =
            response.status() == StatusCode::PARTIAL_CONTENT && !has_beginning(response.headers());
        if is_part && !self.may_be_part {
            return None;
        }
        let look = AnswerCheck::at(response.headers(), &media);
        let (head, body) = response.into_parts();
        let (begin, could_be, rest) = if is_part {
            part_could_be_feed(body).await
        } else {
            look.could_be_feed(body).await
        };
        (!could_be).then(|| Response::from_parts(head, joined(begin, rest)))
    }

    /// The answer in the place of a feed.
    pub(crate) fn refusal(&self, list: &str) -> Refusal {
        if self.is_of_site {
            Refusal::private_feed(list)
        } else {
            Refusal::unnamed_feed(list)
        }
    }
}

/// A look at an answer, by what its head says of it.
struct AnswerCheck {
    /// Its content coding, if any.
    coding: Option<Vec<u8>>,
    is_code: bool,
    /// True for a stream of events, which begins when there is one.
    is_stream: bool,
}

impl AnswerCheck {
    fn at(headers: &HeaderMap, media: &str) -> Self {
        let is_script = media.ends_with("javascript") || media.ends_with("ecmascript");
        let is_stream = media == "text/event-stream";
        Self {
            coding: headers
                .get(CONTENT_ENCODING)
                .map(|coding| coding.as_bytes().to_ascii_lowercase()),
            is_code: is_script || is_stream || media == "text/css",
            is_stream,
        }
    }

    /// A beginning as it was packed. `None` for what cannot be looked at.
    fn unpacked<'a>(&self, begin: &'a [u8]) -> Option<Cow<'a, [u8]>> {
        let plain = match self.coding.as_deref() {
            None | Some(b"identity") => Cow::Borrowed(begin),
            Some(b"gzip" | b"x-gzip") => Cow::Owned(inflated(begin)),
            Some(_) => return None,
        };
        // Some readers look into a file that is packed by itself.
        Some(if plain.starts_with(b"\x1F\x8B") {
            Cow::Owned(inflated(&plain))
        } else {
            plain
        })
    }

    /// The beginning of a body, true where it is or could be that of a feed, and what follows it.
    async fn could_be_feed(&self, body: ServeBody) -> (Bytes, bool, ServeBody) {
        let mut so_far = BodyCheck::new(self);
        let wait = |begin: &[u8]| so_far.wait_until(begin);
        let (begin, end, rest) = look_ahead_while(body, wait).await;
        let could_be = self.verdict(&begin, end);
        (begin, could_be, rest)
    }

    /// True where the beginning of a body is or could be that of a feed.
    fn verdict(&self, begin: &[u8], end: PreviewEnd) -> bool {
        let Some(plain) = self.unpacked(begin) else {
            // What cannot be looked at could be one.
            return true;
        };
        match beginning(&plain, self.is_code) {
            Beginning::Feed => true,
            Beginning::Binary => false,
            Beginning::Open if end != PreviewEnd::Whole => !self.is_stream,
            Beginning::Open => is_feed(&plain),
            // Another document, which its root element tells.
            Beginning::Other if plain.trim_ascii_start().starts_with(b"<") => false,
            Beginning::Other => !self.is_code && is_feed(&plain),
        }
    }
}

/// A look at a body while it comes.
struct BodyCheck<'a> {
    look: &'a AnswerCheck,
    began: Instant,
    /// Bytes of the body at which it is looked at again.
    next_look: usize,
    /// The beginning as it was found at the last look.
    found: Beginning,
    /// Its bytes when it was unpacked.
    length: usize,
}

impl<'a> BodyCheck<'a> {
    fn new(look: &'a AnswerCheck) -> Self {
        Self {
            look,
            began: Instant::now(),
            next_look: 0,
            found: Beginning::Open,
            length: 0,
        }
    }

    /// Time until which more of the body is waited for; `None` where what came will do.
    fn wait_until(&mut self, begin: &[u8]) -> Option<Instant> {
        // A body in drops is looked at again when it has grown by an eighth.
        if begin.len() >= self.next_look {
            self.next_look = begin.len() + begin.len() / 8 + 1;
            let plain = self.look.unpacked(begin)?;
            self.found = beginning(&plain, self.look.is_code);
            self.length = plain.len();
        }
        let is_stream = self.look.is_stream;
        let (bytes_max, time) = match self.found {
            Beginning::Feed | Beginning::Binary => return None,
            Beginning::Other if is_stream => return None,
            Beginning::Open if !is_stream => (PADDING_BYTES_MAX, LOOK_TIME),
            Beginning::Open | Beginning::Other => (LOOK_BYTES, OTHER_LOOK_TIME),
        };
        if self.length.max(begin.len()) >= bytes_max {
            return None;
        }
        Some(self.began + time)
    }
}

fn inflated(packed: &[u8]) -> Vec<u8> {
    let mut inflated = Vec::new();
    // A beginning without its end.
    let _ = MultiGzDecoder::new(packed)
        .take(PADDING_BYTES_MAX as u64)
        .read_to_end(&mut inflated);
    inflated
}

/// The same for a part without its beginning: what is no text is of no feed.
async fn part_could_be_feed(body: ServeBody) -> (Bytes, bool, ServeBody) {
    let until = Instant::now() + LOOK_TIME;
    let wait = |part: &[u8]| (part.len() < PART_BYTES).then_some(until);
    let (part, end, rest) = look_ahead_while(body, wait).await;
    let is_binary = end != PreviewEnd::Late && is_binary_part(&part);
    (part, !is_binary, rest)
}

/// Takes out every header by which an origin could answer for another address than the one that was
/// looked at. A read is no other method.
fn take_out_other_addresses(headers: &mut HeaderMap, is_read: bool) {
    let is_other = |name: &&HeaderName| {
        // CGI makes one name of hyphens, underscores and the like.
        let name: String = name
            .as_str()
            .chars()
            .map(|c| if c.is_ascii_alphanumeric() { c } else { '-' })
            .collect();
        let Some(rest) = name.strip_prefix("x-") else {
            return ADDRESS_NAMES.contains(&name.as_str());
        };
        // The way by which a trusted proxy was asked; of others nothing of it is there any more.
        if rest.starts_with("forwarded-") {
            return rest
                .split('-')
                .any(|word| matches!(word, "uri" | "url" | "path"));
        }
        if rest.split('-').any(|word| word == "method") {
            return is_read;
        }
        rest.split('-').any(|word| ADDRESS_WORDS.contains(&word))
    };
    let other: Vec<HeaderName> = headers.keys().filter(is_other).cloned().collect();
    remove(headers, &other);
}

fn remove(headers: &mut HeaderMap, names: &[HeaderName]) {
    for name in names {
        headers.remove(name);
    }
}

/// Lets an origin answer with what can be looked at: packed with gzip at most, if the reader takes
/// that.
fn look_into(headers: &mut HeaderMap) {
    if headers.contains_key(ACCEPT_ENCODING) {
        let codings = list_value(headers, &ACCEPT_ENCODING).unwrap_or_default();
        let token = if accept::takes_coding(&codings, Coding::Gzip) {
            "gzip"
        } else {
            "identity"
        };
        headers.insert(ACCEPT_ENCODING, HeaderValue::from_static(token));
    }
}

/// True for a path with one of these ends.
fn has_suffix(path: &str, suffixes: &[&str]) -> bool {
    let suffix = path
        .rsplit_once('.')
        .map(|(_, suffix)| suffix.to_ascii_lowercase());
    suffix.is_some_and(|suffix| suffixes.contains(&suffix.as_str()))
}

/// True for a part of a document with its first byte.
fn has_beginning(headers: &HeaderMap) -> bool {
    let range = text(headers, &CONTENT_RANGE).unwrap_or_default();
    let range = range.trim().strip_prefix("bytes");
    range.is_some_and(|range| range.trim_start().starts_with("0-"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures_util::{StreamExt as _, stream};
    use http_body::Frame;
    use http_body_util::{BodyExt as _, StreamBody};
    use tower::BoxError;

    #[test]
    fn no_header_of_another_address_is_left() {
        let left = |name: &str, is_read: bool| {
            let mut headers = HeaderMap::new();
            headers.insert(
                HeaderName::try_from(name).unwrap(),
                HeaderValue::from_static("/closed.xml"),
            );
            take_out_other_addresses(&mut headers, is_read);
            !headers.is_empty()
        };
        for name in [
            "X-Original-URL",
            "X-Rewrite-URL",
            "X_Rewrite_Url",
            "X.Original.URL",
            "X-Override-URL",
            "X-Original-URI",
            "X-HTTP-Path-Override",
            "X-HTTP-DestinationURL",
            "X-Request-URI",
            "X-Envoy-Original-Path",
            "X-Waws-Unencoded-Url",
            "X-Forwarded-Path",
            "X-Forwarded-Uri",
            "X-Script-Name",
            "X-Host",
            "Script-Name",
            "Path-Info",
            "Request-Uri",
        ] {
            assert!(!left(name, true) && !left(name, false), "{name}");
        }
        for name in [
            "X-Forwarded-For",
            "X-Forwarded-Prefix",
            "X-Requested-With",
            "X-WP-Nonce",
            "Referer",
            "Cookie",
        ] {
            assert!(left(name, true), "{name}");
        }
        // The editor of WordPress saves so.
        assert!(left("X-HTTP-Method-Override", false) && !left("X-HTTP-Method-Override", true));
    }

    const RSS: &str = "<?xml version='1.0'?><rss><channel/></rss>";

    /// True for an answer that a guard passes on, whose body comes in pieces, each after so many
    /// seconds.
    async fn is_passed(status: u16, headers: &[(&str, &str)], pieces: &[(u64, &[u8])]) -> bool {
        let mut response = http::Response::builder().status(status);
        for (name, value) in headers {
            response = response.header(*name, *value);
        }
        let pieces: Vec<(u64, Bytes)> = pieces
            .iter()
            .map(|(secs, piece)| (*secs, Bytes::copy_from_slice(piece)))
            .collect();
        let whole: Vec<u8> = pieces
            .iter()
            .flat_map(|(_, piece)| piece.to_vec())
            .collect();
        let frames = stream::iter(pieces).then(|(secs, piece)| async move {
            tokio::time::sleep(Duration::from_secs(secs)).await;
            Ok::<_, BoxError>(Frame::data(piece))
        });
        let response = response
            .body(StreamBody::new(frames).boxed_unsync())
            .unwrap();
        let guard = FeedGuard {
            is_of_site: false,
            is_head: false,
            may_be_part: true,
        };
        let Some(passed) = guard.unless_feed(response).await else {
            return false;
        };
        let body = passed.into_body().collect().await.unwrap().to_bytes();
        assert_eq!(body, whole, "it is passed on as it came");
        true
    }

    #[tokio::test(start_paused = true)]
    async fn a_feed_is_held_back_however_it_is_called_packed_and_parted() {
        let rss = RSS.as_bytes();
        let mut packed = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        std::io::Write::write_all(&mut packed, rss).unwrap();
        let packed = packed.finish().unwrap();
        let kind = |media| [("content-type", media)];
        for media in [
            "text/xml",
            "text/plain",
            "text/html; charset=utf-8",
            "application/octet-stream",
            "application/json",
            "application/xhtml+xml",
            "image/png",
            "image/svg+xml",
            "video/mp4",
            "font/woff2",
            "application/javascript",
            "text/css",
            "application/pdf",
            "application/zip",
            "application/gzip",
            "",
        ] {
            assert!(!is_passed(200, &kind(media), &[(0, rss)]).await, "{media}");
            // Its first bytes come late, or one by one.
            assert!(
                !is_passed(
                    200,
                    &kind(media),
                    &[(0, b""), (9, &rss[..24]), (9, &rss[24..])]
                )
                .await,
                "{media}"
            );
            let drops: Vec<(u64, &[u8])> = rss.chunks(1).map(|byte| (1, byte)).collect();
            assert!(!is_passed(200, &kind(media), &drops).await, "{media}");
        }
        for status in [201, 404, 500] {
            assert!(
                !is_passed(status, &kind("text/html"), &[(0, rss)]).await,
                "{status}"
            );
        }
        for (coding, body) in [
            ("gzip", &packed[..]),
            ("x-gzip", &packed),
            ("br", &packed),
            ("gzip, gzip", &packed),
        ] {
            let headers = [("content-type", "text/html"), ("content-encoding", coding)];
            assert!(
                !is_passed(200, &headers, &[(0, &body[..12]), (5, &body[12..])]).await,
                "{coding}"
            );
        }
        assert!(!is_passed(200, &kind("application/gzip"), &[(0, &packed)]).await);
        for range in ["bytes 0-20/100", "bytes 5-20/100"] {
            for media in ["text/xml", "image/png"] {
                let headers = [("content-type", media), ("content-range", range)];
                assert!(!is_passed(206, &headers, &[(0, rss)]).await, "{range}");
            }
        }
        let json = b"{\"title\": \"t\", \"items\": [{\"id\": \"1\", \"url\": \"http://e.org/\"}], \"version\": \"x\"}";
        assert!(!is_passed(200, &kind("application/json"), &[(0, json)]).await);
        let called = b"f({\"version\": \"https://jsonfeed.org/version/1\"})";
        assert!(!is_passed(200, &kind("text/javascript"), &[(0, called)]).await);
        for padding in [
            " ".repeat(100_000),
            "\n".repeat(500_000),
            "\0".repeat(100_000),
            format!("<!--{}-->", "x".repeat(900_000)),
            format!("<?x {}?>", "x".repeat(100_000)),
            "<br />\n<b>Notice</b>: x in y on line 3<br />\n".repeat(1500),
            // Beyond what is looked at.
            " ".repeat(3_000_000),
            format!("<!--{}-->", "x".repeat(3_000_000)),
            // A feed inside of something else.
            "<html><body>x</body></html>".to_owned(),
            "<soap:Envelope><soap:Body>".to_owned(),
        ] {
            let whole = [padding.as_bytes(), rss].concat();
            let pieces: Vec<(u64, &[u8])> = whole.chunks(16_384).map(|piece| (0, piece)).collect();
            for media in ["text/html", "image/png"] {
                let start = &padding[..padding.len().min(20)];
                assert!(!is_passed(200, &kind(media), &pieces).await, "{start}");
            }
        }
        let late: &[(u64, &[u8])] = &[(LOOK_TIME.as_secs() + 1, rss)];
        assert!(
            !is_passed(200, &kind("text/html"), late).await,
            "nobody knows what it will be"
        );
    }

    #[tokio::test(start_paused = true)]
    async fn what_is_no_feed_passes_as_it_came() {
        for (media, body) in [
            (
                "text/html",
                &b"<!DOCTYPE html><html><body><code>&lt;rss&gt;</code> <rss>"[..],
            ),
            ("text/html", b"<p>a part of a page</p>"),
            ("application/xml", b"<?xml version='1.0'?><urlset/>"),
            (
                "application/json",
                b"[{\"id\": 1, \"title\": {\"rendered\": \"x\"}}]",
            ),
            ("text/javascript", b"var x = '<rss>';"),
            ("text/plain", b"User-agent: *"),
            (
                "image/svg+xml",
                b"<svg xmlns='http://www.w3.org/2000/svg'><g/></svg>",
            ),
            ("text/css", b"a { content: '<rss>' }"),
            ("application/pdf", b"%PDF-1.7 <rss>"),
            ("image/png", b"\x89PNG"),
            ("text/event-stream", b"data: <rss>\n\n"),
        ] {
            assert!(
                is_passed(
                    200,
                    &[("content-type", media)],
                    &[(0, body), (3, b" and more")]
                )
                .await,
                "{media}"
            );
        }
        let headers = [
            ("content-type", "video/mp4"),
            ("content-range", "bytes 5-20/100"),
        ];
        assert!(is_passed(206, &headers, &[(0, b"\x01\x02\xffx")]).await);
        // What began as something else is not waited for, and no stream of events before its first.
        let page: &[(u64, &[u8])] = &[(0, b"<html>"), (3, b"<rss><channel>")];
        assert!(is_passed(200, &[("content-type", "text/html")], page).await);
        let stream: &[(u64, &[u8])] = &[(90, b"data: x\n\n")];
        assert!(is_passed(200, &[("content-type", "text/event-stream")], stream).await);
    }

    #[test]
    fn only_what_is_no_document_may_be_asked_for_in_parts() {
        let is_no_document = |path: &str| has_suffix(path, &BINARY_SUFFIXES);
        assert!(is_no_document("/a/b.MP3") && is_no_document("/x.y.png"));
        for path in [
            "/",
            "/feed",
            "/feed.xml",
            "/index.php/feed",
            "/a.txt",
            "/a.js",
            "/a.pdf",
            "/x.png/feed",
        ] {
            assert!(!is_no_document(path), "{path}");
        }
        let part = |range: &'static str| {
            let mut headers = HeaderMap::new();
            headers.insert(CONTENT_RANGE, HeaderValue::from_static(range));
            has_beginning(&headers)
        };
        assert!(part("bytes 0-9/10") && !part("bytes 1-9/10") && !part("bytes */10"));
    }
}
