//! Autodiscovery links in the pages of a site (`page_links`): which answers of its origin get them,
//! and what else of an answer changes with them; not where in a page they go.

use super::{
    context::ServeContext,
    look_ahead::{joined as joined_body, look_ahead},
};
use crate::edge::fields::list_value;
use crate::{
    catalog::RegisteredFeed,
    edge::body::Response,
    render::page_links::{HeadPlace, page_links},
};
use bytes::Bytes;
use http::{
    HeaderMap, HeaderName, HeaderValue, Method, StatusCode,
    header::{
        ACCEPT, ACCEPT_ENCODING, ACCEPT_RANGES, CACHE_CONTROL, CONTENT_DISPOSITION,
        CONTENT_ENCODING, CONTENT_LENGTH, CONTENT_TYPE, ETAG, IF_NONE_MATCH, RANGE, UPGRADE, VARY,
    },
    request::Parts,
};
use std::sync::Arc;

/// Feeds that a page links to.
const FEEDS_MAX: usize = 8;
/// Bytes behind the place for links in which a page may still say what its encoding is.
const ENCODING_BYTES: usize = 1024;

/// Headers that are of the very bytes of a page.
const OF_BYTES: [HeaderName; 5] = [
    ACCEPT_RANGES,
    HeaderName::from_static("content-md5"),
    HeaderName::from_static("digest"),
    HeaderName::from_static("content-digest"),
    HeaderName::from_static("repr-digest"),
];

/// Links on their way into the answer to a request, if that is a page.
pub(super) struct PageLinks {
    links: String,
    /// The end of the entity tags of pages that hold these links.
    mark: String,
    is_head: bool,
    /// True when the reader has a copy that holds them.
    has_copy: bool,
}

impl ServeContext {
    /// The links for the answer to a request that is passed on, which is made one that gets a page
    /// which can be read. `None` where no page may have any.
    pub(super) async fn page_links(&self, request: &mut Parts) -> Option<PageLinks> {
        let site = self
            .sites
            .of(request)
            .filter(|site| site.settings.page_links)?
            .no;
        let is_plain = matches!(request.method, Method::GET | Method::HEAD)
            && !request.headers.contains_key(RANGE)
            && !request.headers.contains_key(UPGRADE);
        if !is_plain {
            return None;
        }
        let is_open = |feed: &&Arc<RegisteredFeed>| {
            let place = feed.settings.legacy.as_ref();
            place.is_some_and(|place| place.site == site) && !feed.settings.is_private()
        };
        let catalog = self.gate.catalog.snapshot();
        let mut open: Vec<_> = catalog
            .feeds()
            .filter(is_open)
            .map(|feed| (is_of_comments(feed), feed.no))
            .collect();
        // Readers take the first: in the order in which the site names them, those of comments
        // last.
        open.sort_unstable();
        let mut feeds = Vec::new();
        for (_, no) in open.into_iter().take(FEEDS_MAX) {
            // One that was never read has no title yet.
            feeds.extend(
                self.store
                    .feed(no)
                    .await
                    .ok()
                    .filter(|feed| feed.head().ready),
            );
        }
        if feeds.is_empty() {
            return None;
        }
        let links = page_links(self.readers.site(), &feeds);
        let mark = format!("-{:08x}", crc32fast::hash(links.as_bytes()));
        // A browser that opens a page says so; what else it asks for may come packed.
        if list_value(&request.headers, &ACCEPT).is_some_and(|accept| accept.contains("text/html"))
        {
            request.headers.remove(ACCEPT_ENCODING);
        }
        let has_copy = take_off_marks(&mut request.headers, &mark);
        Some(PageLinks {
            links,
            mark,
            is_head: request.method == Method::HEAD,
            has_copy,
        })
    }
}

/// True for a feed of comments, as far as its address tells.
fn is_of_comments(feed: &RegisteredFeed) -> bool {
    feed.settings
        .legacy
        .as_ref()
        .is_some_and(|place| place.path.to_ascii_lowercase().contains("comment"))
}

impl PageLinks {
    /// An answer of the origin with the links in it, if it is a page that can hold them; else as it
    /// came.
    pub(super) async fn put_into(self, mut response: Response) -> Response {
        if response.status() == StatusCode::NOT_MODIFIED {
            if self.has_copy {
                self.mark_tag(response.headers_mut());
            }
            return response;
        }
        if !is_page(&response) {
            return response;
        }
        if self.is_head {
            // Only the page itself tells.
            response.headers_mut().remove(CONTENT_LENGTH);
            response.headers_mut().remove(ETAG);
            return response;
        }
        let says_encoding = names_encoding(response.headers());
        let (mut head, body) = response.into_parts();
        let is_enough = |begin: &[u8]| match HeadPlace::find(begin) {
            HeadPlace::Nowhere => true,
            HeadPlace::Beyond => false,
            HeadPlace::Behind(at) => says_encoding || begin.len() >= at + ENCODING_BYTES,
        };
        let (begin, rest) = look_ahead(body, is_enough).await;
        let place = match HeadPlace::find(&begin) {
            HeadPlace::Behind(at)
                if says_encoding || HeadPlace::keeps_encoding(at, &begin, &self.links) =>
            {
                at
            }
            _ => return Response::from_parts(head, joined_body([begin], rest)),
        };
        let headers = &mut head.headers;
        let length = headers
            .get(CONTENT_LENGTH)
            .and_then(|length| length.to_str().ok()?.parse::<u64>().ok());
        if let Some(length) = length {
            headers.insert(
                CONTENT_LENGTH,
                HeaderValue::from(length + self.links.len() as u64),
            );
        }
        for name in OF_BYTES {
            headers.remove(name);
        }
        headers.append(VARY, HeaderValue::from_static("accept"));
        self.mark_tag(headers);
        let pieces = [
            begin.slice(..place),
            Bytes::from(self.links),
            begin.slice(place..),
        ];
        Response::from_parts(head, joined_body(pieces, rest))
    }

    /// Makes the entity tag of a page that of the page with these links.
    fn mark_tag(&self, headers: &mut HeaderMap) {
        let Some(tag) = headers.get(ETAG).and_then(|tag| tag.to_str().ok()) else {
            return;
        };
        let marked = tag
            .strip_suffix('"')
            .map(|tag| format!("{tag}{}\"", self.mark));
        match marked.and_then(|tag| HeaderValue::try_from(tag).ok()) {
            Some(tag) => headers.insert(ETAG, tag),
            // It is none, and whoever sends it back would be told that nothing changed.
            None => headers.remove(ETAG),
        };
    }
}

/// Makes entity tags of pages with links those that the origin knows; true when there was one.
fn take_off_marks(headers: &mut HeaderMap, mark: &str) -> bool {
    let Some(known) = list_value(headers, &IF_NONE_MATCH).map(|known| known.into_owned()) else {
        return false;
    };
    let end = format!("{mark}\"");
    if !known.contains(&end) {
        return false;
    }
    if let Ok(known) = HeaderValue::try_from(known.replace(&end, "\"")) {
        headers.insert(IF_NONE_MATCH, known);
    }
    true
}

/// True for a whole page that may be changed and that is written as it is.
fn is_page(response: &Response) -> bool {
    let headers = response.headers();
    let media = headers
        .get(CONTENT_TYPE)
        .and_then(|value| value.to_str().ok())
        .unwrap_or_default();
    let media = media.split(';').next().unwrap_or_default().trim();
    let is_coded = headers
        .get(CONTENT_ENCODING)
        .is_some_and(|coding| !coding.as_bytes().eq_ignore_ascii_case(b"identity"));
    let cache = list_value(headers, &CACHE_CONTROL)
        .unwrap_or_default()
        .to_ascii_lowercase();
    // A file that is saved is the publisher's own (RFC 6266 section 4.2).
    let is_saved = headers.get(CONTENT_DISPOSITION).is_some_and(|disposition| {
        let kind = disposition
            .as_bytes()
            .split(|byte| *byte == b';')
            .next()
            .unwrap_or_default();
        !kind.trim_ascii().eq_ignore_ascii_case(b"inline")
    });
    response.status() == StatusCode::OK
        && media.eq_ignore_ascii_case("text/html")
        && !is_coded
        && !is_saved
        && !cache.contains("no-transform")
}

/// True where the encoding of a page is told before the page.
fn names_encoding(headers: &HeaderMap) -> bool {
    let media = headers
        .get(CONTENT_TYPE)
        .and_then(|value| value.to_str().ok())
        .unwrap_or_default();
    media.to_ascii_lowercase().contains("charset=")
}
