//! The feeds that a web page names in its head, for whoever gave the address of a blog instead of
//! that of its feed. The page is not read any further.

use crate::text::markup::tokens::attributes;
use crate::text::{encoding, present, uri};
use crate::{Hints, Link};

mod named_feeds;

pub use named_feeds::{PageFeed, named_feeds};

/// Length of the part of a page that is searched, bytes; heads are full of scripts.
const PAGE_BYTES_MAX: usize = 512 * 1024;

/// Limit of the feeds that are named.
const FEEDS_MAX: usize = 16;

/// Limit of the programs that are named: plugins name themselves, too.
const GENERATORS_MAX: usize = 16;

/// Media types of feeds. `application/json` is left out: every interface of a site says that of
/// itself.
const TYPES: [&str; 6] = [
    "application/rss+xml",
    "application/atom+xml",
    "application/rdf+xml",
    "application/feed+json",
    "application/xml",
    "text/xml",
];

/// The feeds that a web page names by `<link rel="alternate" type="…">` or `rel="feed"`, resolved,
/// in its own order.
fn feeds_of_page(page: &str, base_url: Option<&str>) -> Vec<Link> {
    let mut base = base_url.and_then(|url| url::Url::parse(url).ok());
    let mut feeds = Vec::new();
    for (name, tag) in tags(page) {
        if name.eq_ignore_ascii_case("base") {
            base = base_of(tag, base);
        } else if name.eq_ignore_ascii_case("link")
            && let Some(feed) = feed(tag, base.as_ref())
        {
            if !feeds.contains(&feed) {
                feeds.push(feed);
            }
            if feeds.len() == FEEDS_MAX {
                break;
            }
        }
    }
    feeds
}

/// The targets of the `<link>` elements of a web page with this relation, such as `hub`, resolved,
/// in its own order.
pub fn links_of_page(bytes: &[u8], hints: &Hints<'_>, rel: &str) -> Vec<String> {
    let page = decoded(bytes, hints);
    let mut base = hints.base_url.and_then(|url| url::Url::parse(url).ok());
    let mut links = Vec::new();
    for (name, tag) in tags(&page.text) {
        if name.eq_ignore_ascii_case("base") {
            base = base_of(tag, base);
        } else if name.eq_ignore_ascii_case("link")
            && let (Some(rels), Some(href)) = (value(tag, "rel"), value(tag, "href"))
            && rels
                .split_ascii_whitespace()
                .any(|word| word.eq_ignore_ascii_case(rel))
            && links.len() < FEEDS_MAX
        {
            links.push(uri::resolve(base.as_ref(), &href));
        }
    }
    links
}

/// The base of what follows a `<base>`: its address, if that is one.
fn base_of(tag: &str, before: Option<url::Url>) -> Option<url::Url> {
    let href = value(tag, "href");
    let base = href.and_then(|href| url::Url::parse(&uri::resolve(before.as_ref(), &href)).ok());
    base.or(before)
}

/// The beginning of a page as text, in the encoding that its header names, else the page itself
/// (HTML section 13.2.3.2).
fn decoded<'p>(bytes: &'p [u8], hints: &Hints<'_>) -> encoding::Decoded<'p> {
    let bytes = &bytes[..bytes.len().min(PAGE_BYTES_MAX)];
    let page = encoding::decode(bytes, hints.content_type);
    if hints.content_type.is_some_and(encoding::names_encoding) {
        return page;
    }
    match named_encoding(&page.text) {
        Some(content_type) => encoding::decode(bytes, Some(&content_type)),
        None => page,
    }
}

/// The encoding that a page names in its head, as a `Content-Type`.
fn named_encoding(page: &str) -> Option<String> {
    let mut metas = tags(page)
        .filter(|(name, _)| name.eq_ignore_ascii_case("meta"))
        .map(|(_, tag)| tag);
    metas.find_map(|meta| {
        let of_header =
            || value(meta, "content").filter(|content| encoding::names_encoding(content));
        value(meta, "charset")
            .map(|charset| format!("text/html; charset={charset}"))
            .or_else(of_header)
    })
}

/// The programs that a web page names by `<meta name="generator" content="…">`, in its own order.
pub(crate) fn generators_of_page(bytes: &[u8], hints: &Hints<'_>) -> Vec<String> {
    let page = decoded(bytes, hints);
    let is_generator =
        |tag: &&str| value(tag, "name").is_some_and(|name| name.eq_ignore_ascii_case("generator"));
    let metas = tags(&page.text)
        .filter(|(name, _)| name.eq_ignore_ascii_case("meta"))
        .map(|(_, tag)| tag);
    metas
        .filter(is_generator)
        .filter_map(|tag| value(tag, "content"))
        .take(GENERATORS_MAX)
        .collect()
}

/// Elements whose content is text or is kept for later: a tag in them is none.
const CLOSED: [&str; 5] = ["script", "style", "template", "textarea", "title"];

/// Elements that end a head without a tag of its end, as in pages of any age; less usual ones do
/// not.
const OF_BODY: [&str; 14] = [
    "body", "p", "div", "h1", "h2", "table", "ul", "form", "main", "article", "section", "header",
    "nav", "footer",
];

/// The `base`, `link` and `meta` tags of the head of a page (LEGACY C-2): names, and what stands
/// after them. Comments, scripts and templates hold none. Anything else in a page may be in any
/// state.
fn tags(page: &str) -> impl Iterator<Item = (&str, &str)> {
    let mut at = 0;
    std::iter::from_fn(move || {
        loop {
            let rest = page.get(at..)?;
            at += memchr::memchr(b'<', rest.as_bytes())? + 1;
            let rest = &page[at..];
            if rest.starts_with("!--") {
                // A comment may be as short as `<!-->`.
                at += 1 + memchr::memmem::find(&rest.as_bytes()[1..], b"-->")?;
                continue;
            }
            let length = rest
                .bytes()
                .position(|byte| !(byte.is_ascii_alphanumeric() || byte == b'/'))?;
            let (name, tag) = rest.split_at(length);
            let is = |known: &&str| name.eq_ignore_ascii_case(known);
            if is(&"/head") || OF_BODY.iter().any(&is) {
                return None;
            }
            if CLOSED.iter().any(&is) {
                at += length + end_of(tag, name)?;
            } else if ["link", "base", "meta"].iter().any(is)
                && tag.starts_with(|c: char| c.is_ascii_whitespace())
            {
                // Nothing inside of the tag is looked at again.
                let end = memchr::memchr(b'>', tag.as_bytes())?;
                at += length + end;
                return Some((name, &tag[..end]));
            }
        }
    })
}

/// The place in a text at which the tag stands that ends an element; `None` when the element does
/// not end.
fn end_of(text: &str, name: &str) -> Option<usize> {
    let is_end = |at: &usize| {
        let after = text.as_bytes().get(at + 2..at + 2 + name.len());
        after.is_some_and(|after| after.eq_ignore_ascii_case(name.as_bytes()))
    };
    memchr::memmem::find_iter(text.as_bytes(), b"</").find(is_end)
}

fn feed(tag: &str, base: Option<&url::Url>) -> Option<Link> {
    let rel = value(tag, "rel")?.to_ascii_lowercase();
    let is = |name: &str| rel.split_ascii_whitespace().any(|word| word == name);
    let media_type = value(tag, "type");
    let bare = media_type
        .as_deref()
        .and_then(|said| said.split(';').next())
        .unwrap_or_default()
        .trim();
    let is_feed = TYPES.iter().any(|known| bare.eq_ignore_ascii_case(known));
    if is("stylesheet") || !(is("feed") || is("alternate") && is_feed) {
        return None;
    }
    let href = uri::resolve(base, &value(tag, "href")?);
    uri::may_be_followed(&href).then_some(Link {
        href,
        rel,
        title: value(tag, "title"),
        hreflang: value(tag, "hreflang"),
        media_type,
        length: None,
    })
}

fn value(tag: &str, name: &str) -> Option<String> {
    let (_, value) = attributes(tag).find(|(known, _)| known.eq_ignore_ascii_case(name))?;
    present(&value)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(page: &str, expect: &[&str]) {
        let hints = Hints {
            base_url: Some("http://e.org/a/b.html"),
            ..Hints::default()
        };
        let found: Vec<_> = named_feeds(page.as_bytes(), &hints)
            .into_iter()
            .map(|feed| feed.link.href)
            .collect();
        assert_eq!(found, expect, "{page}");
    }

    #[test]
    fn feeds_are_found_in_heads_of_every_age() {
        check(
            "<HTML><HEAD><LINK REL=\"alternate\" TYPE=\"application/rss+xml\" HREF=\"index.xml\">\
             <link rel=alternate type=application/atom+xml href=/atom.xml>\
             <link rel='alternate' type='text/xml' href='?rss=1&amp;v=2'/>",
            &[
                "http://e.org/a/index.xml",
                "http://e.org/atom.xml",
                "http://e.org/a/b.html?rss=1&v=2",
            ],
        );
        check(
            "<base href='/x/'><link rel='feed' href='f'>",
            &["http://e.org/x/f"],
        );
    }

    #[test]
    fn a_page_is_read_in_the_encoding_that_its_header_or_it_itself_names() {
        let link = b"<link rel=feed href=/\xff.xml>";
        let russian = "http://e.org/%D1%8F.xml";
        for (content_type, meta, expect) in [
            (Some("text/html; charset=windows-1251"), "", russian),
            (Some("text/html"), "<meta charset='windows-1251'>", russian),
            (
                None,
                "<META http-equiv=Content-Type content='text/html; charset=windows-1251'>",
                russian,
            ),
            (
                Some("text/html; charset=windows-1252"),
                "<meta charset=windows-1251>",
                "http://e.org/%C3%BF.xml",
            ),
        ] {
            let page = [b"<head><meta name=x content=y>", meta.as_bytes(), link].concat();
            let hints = Hints {
                base_url: Some("http://e.org/"),
                content_type,
                ..Hints::default()
            };
            assert_eq!(
                named_feeds(&page, &hints)[0].link.href,
                expect,
                "{content_type:?} {meta}"
            );
        }
    }

    #[test]
    fn what_is_no_feed_is_passed_over() {
        check(
            "<link rel=\"stylesheet\" href=\"a.css\"><link rel=\"alternate\" hreflang=\"de\" href=\"/de\">",
            &[],
        );
        check(
            "<link rel='alternate' type='application/json' href='/wp-json/posts/1'>",
            &[],
        );
        check(
            "<link rel='alternate stylesheet' type='text/xml' href='x'><linked rel='feed' href='x'>",
            &[],
        );
        check(
            "<link rel=alternate type=text/xml href='javascript:x'><link rel=feed href='data:,x'>",
            &[],
        );
        check("<link rel='feed'><script>if (a<b) x='<link'</script", &[]);
        check("<lin\u{20AC}><", &[]);
    }

    #[test]
    fn what_is_no_link_of_the_head_is_no_feed() {
        let link = "<link rel=feed href=no>";
        for around in [
            ["<!-- old: ", " -->"],
            ["<!--><!-- ", "-->"],
            ["<script>write('", "')</SCRIPT >"],
            ["<template>", "</template>"],
            ["<title>On ", "</title>"],
            ["<style>/* ", " */</style>"],
        ] {
            let [before, after] = around;
            check(
                &format!("<head>{before}{link}{after}<link rel=feed href=yes>"),
                &["http://e.org/a/yes"],
            );
            check(
                &format!("<link rel=feed href=yes>{before}{link}"),
                &["http://e.org/a/yes"],
            );
        }
        for behind in ["</head>", "<BODY class=x>", "<title>x</title><p>", "<div>"] {
            check(
                &format!("<link rel=feed href=yes>{behind}{link}"),
                &["http://e.org/a/yes"],
            );
        }
        check(&"<script>".repeat(80_000), &[]);
        check(&"<!--".repeat(80_000), &[]);
    }

    #[test]
    fn a_page_of_links_names_a_few_feeds() {
        let page = (0..1000)
            .map(|n| format!("<link rel=feed href={n}>"))
            .collect::<String>();
        assert_eq!(
            named_feeds(page.as_bytes(), &Hints::default()).len(),
            FEEDS_MAX
        );
        // Hours, if each tag were looked at to the end of the page.
        check(&"<link ".repeat(80_000), &[]);
        check(&format!("{}>", "<link ".repeat(80_000)), &[]);
    }
}
