//! Autodiscovery links in the head of somebody else's web page: their text, and the one place at
//! which they break nothing; not which pages get them (LEGACY C-1).

use super::{Representation, identity, urls::Site, xml};
use crate::feed::{order::Order, record::FeedRecord};

/// Characters of a feed's title in a link.
const TITLE_CHARS_MAX: usize = 100;
/// Bytes of a page in which readers look for its encoding (HTML section 13.2.3.2).
const ENCODING_BYTES: usize = 1024;

/// The links to feeds, in the form that ordinary readers understand. They hold ASCII alone,
/// whatever the encoding of the page.
pub fn page_links<'a>(site: &Site, feeds: impl IntoIterator<Item = &'a FeedRecord>) -> String {
    let mut out = String::new();
    for feed in feeds {
        let representation = Representation::CLASSIC_ATOM;
        let title: String = identity::name(feed).chars().take(TITLE_CHARS_MAX).collect();
        out.push_str("<link");
        for (name, value) in [
            ("rel", "alternate"),
            ("type", representation.media_type()),
            ("title", &title),
            (
                "href",
                &site.base(&feed.name, representation, Order::MODIFIED),
            ),
        ] {
            xml::push_attribute(&mut out, name, value);
        }
        out.push_str("/>");
    }
    let escaped = |c: char| {
        if c.is_ascii() {
            c.to_string()
        } else {
            format!("&#{};", u32::from(c))
        }
    };
    out.chars().map(escaped).collect()
}

/// A place in the beginning of a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HeadPlace {
    /// Right behind the tag that opens the head, which ends before this byte.
    Behind(usize),
    /// There is none: the page has no such tag, or it cannot be told where.
    Nowhere,
    /// More of the page is needed.
    Beyond,
}

impl HeadPlace {
    /// Finds the place for links in a page. Nothing stands before it but what may stand before a
    /// head.
    pub fn find(begin: &[u8]) -> Self {
        const MARK: &[u8] = b"\xef\xbb\xbf";
        if MARK.starts_with(begin) {
            return Self::Beyond;
        }
        let mut at = if begin.starts_with(MARK) {
            MARK.len()
        } else {
            0
        };
        // Neither is ASCII a part of it then.
        if begin.starts_with(&[0xfe, 0xff])
            || begin.starts_with(&[0xff, 0xfe])
            || begin.iter().take(4).any(|byte| *byte == 0)
        {
            return Self::Nowhere;
        }
        loop {
            at += begin[at..]
                .iter()
                .take_while(|byte| byte.is_ascii_whitespace())
                .count();
            let rest = &begin[at..];
            let step = match rest {
                [] | [b'<'] | [b'<', b'!'] | [b'<', b'!', b'-'] => None,
                [b'<', b'!', b'-', b'-', comment @ ..] => comment_end(comment).map(|end| 4 + end),
                [b'<', b'!' | b'?', ..] => memchr::memchr(b'>', rest).map(|end| end + 1),
                [b'<', ..] => {
                    let name = rest[1..]
                        .iter()
                        .take_while(|byte| byte.is_ascii_alphanumeric())
                        .count();
                    let is = |wanted: &[u8]| rest[1..=name].eq_ignore_ascii_case(wanted);
                    let is_beginning = [&b"html"[..], b"head"].iter().any(|tag| {
                        tag.len() >= name && tag[..name].eq_ignore_ascii_case(&rest[1..=name])
                    });
                    if rest.len() == name + 1 {
                        return if is_beginning {
                            Self::Beyond
                        } else {
                            Self::Nowhere
                        };
                    }
                    let is_tag = rest[name + 1].is_ascii_whitespace() || rest[name + 1] == b'>';
                    if !is_tag || !(is(b"html") || is(b"head")) {
                        return Self::Nowhere;
                    }
                    let end = match tag_end(&rest[name + 1..]) {
                        TagEnd::At(end) => name + 1 + end,
                        TagEnd::Beyond => return Self::Beyond,
                        TagEnd::Nowhere => return Self::Nowhere,
                    };
                    if is(b"head") {
                        return Self::Behind(at + end);
                    }
                    Some(end)
                }
                _ => return Self::Nowhere,
            };
            match step {
                Some(step) => at += step,
                None => return Self::Beyond,
            }
        }
    }

    /// True when links at this place leave the encoding of the page where readers look for it,
    /// unless they are told of it before.
    pub fn keeps_encoding(at: usize, begin: &[u8], links: &str) -> bool {
        let looked_at = &begin[..begin.len().min(ENCODING_BYTES)];
        let lower = looked_at.to_ascii_lowercase();
        match memchr::memmem::find(&lower[at.min(lower.len())..], b"charset")
            .map(|found| at + found)
        {
            Some(charset) => {
                let end = memchr::memchr(b'>', &begin[charset..])
                    .map_or(begin.len(), |end| charset + end + 1);
                end + links.len() <= ENCODING_BYTES
            }
            None => true,
        }
    }
}

/// The end of a comment, behind its `<!--` (HTML section 13.2.5.43).
fn comment_end(comment: &[u8]) -> Option<usize> {
    match comment {
        [b'>', ..] => return Some(1),
        [b'-', b'>', ..] => return Some(2),
        _ => {}
    }
    let ends = [&b"-->"[..], b"--!>"]
        .map(|end| memchr::memmem::find(comment, end).map(|at| at + end.len()));
    ends.into_iter().flatten().min()
}

/// The end of a tag.
enum TagEnd {
    At(usize),
    Beyond,
    Nowhere,
}

/// Finds the end of a tag behind its name. One that closes itself opens nothing where a page is
/// read as XML.
fn tag_end(tag: &[u8]) -> TagEnd {
    #[derive(PartialEq)]
    enum Within {
        Space,
        Name,
        Equals,
        Bare,
        Quotes(u8),
    }
    let mut within = Within::Space;
    for (at, byte) in tag.iter().enumerate() {
        within = match (&within, *byte) {
            (Within::Quotes(quote), byte) if byte == *quote => Within::Space,
            (Within::Quotes(quote), _) => Within::Quotes(*quote),
            (_, b'>') if at > 0 && tag[at - 1] == b'/' => return TagEnd::Nowhere,
            (_, b'>') => return TagEnd::At(at + 1),
            (Within::Space, b'=' | b'"' | b'\'' | b'<') | (Within::Name, b'"' | b'\'' | b'<') => {
                return TagEnd::Nowhere;
            }
            (Within::Name, b'=') => Within::Equals,
            (Within::Equals, quote @ (b'"' | b'\'')) => Within::Quotes(quote),
            (Within::Equals, byte) if byte.is_ascii_whitespace() => Within::Equals,
            (Within::Equals, _) => Within::Bare,
            (_, byte) if byte.is_ascii_whitespace() => match within {
                // `a = "b"`.
                Within::Name => Within::Name,
                _ => Within::Space,
            },
            (Within::Bare, _) => Within::Bare,
            _ => Within::Name,
        };
    }
    TagEnd::Beyond
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_go_right_behind_the_tag_of_the_head_and_nowhere_else() {
        for before in [
            "<head>",
            "<!DOCTYPE html>\n<html lang=en>\n<head>",
            "\u{feff}<!doctype html><HTML><HEAD >",
            "<?xml version='1.0'?><!DOCTYPE html PUBLIC \"-//W3C//DTD XHTML 1.0\" \"x\"><html xmlns=\"y\"><head profile='a>b' id = \"c>d\" e=f>",
            "<!--[if lt IE 9]><html class=\"ie\"><head><![endif]--><!--[if !IE]><!--><html><!--<![endif]--><head>",
            "<!--><head>-->",
            "<!-- <head> --!><head>",
            "<!---><head>",
        ] {
            let place = match before {
                "<!--><head>-->" => 11,
                _ => before.len(),
            };
            let page = format!("{before}<title>x</title></head>");
            assert_eq!(
                HeadPlace::find(page.as_bytes()),
                HeadPlace::Behind(place),
                "{before}"
            );
            for cut in 0..place {
                assert_eq!(
                    HeadPlace::find(&page.as_bytes()[..cut]),
                    HeadPlace::Beyond,
                    "{before} {cut}"
                );
            }
        }
        for page in [
            "text <head>",
            "<title>x</title><head>",
            "<header>",
            "<html><body><head>",
            "<head/>",
            "<head \">\"",
            "<html =\"<head>\">",
            "</head>",
            "<svg><head>",
            "<h>",
            "\0<\0h",
        ] {
            assert_eq!(
                HeadPlace::find(page.as_bytes()),
                HeadPlace::Nowhere,
                "{page}"
            );
        }
        let wide: Vec<u8> = "<head>".encode_utf16().flat_map(u16::to_le_bytes).collect();
        assert_eq!(HeadPlace::find(&wide), HeadPlace::Nowhere);
    }

    #[test]
    fn the_encoding_of_a_page_stays_where_it_is_looked_for() {
        let page = |filler: usize| format!("<head>{}<meta charset=latin1>", " ".repeat(filler));
        let links = "x".repeat(300);
        for (filler, expect) in [(0, true), (690, true), (720, false), (2000, true)] {
            let page = page(filler);
            assert_eq!(
                HeadPlace::keeps_encoding(6, page.as_bytes(), &links),
                expect,
                "{filler}"
            );
        }
        assert!(HeadPlace::keeps_encoding(6, b"<head><title>", &links));
    }
}
