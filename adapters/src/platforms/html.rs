//! Taking tags, and what stands between them, out of an HTML or XHTML fragment by what their start
//! tag says. Everything else stays byte for byte; nothing is balanced or mended.

use regex::Regex;
use std::{ops::Range, sync::OnceLock};

/// A start tag.
struct TagSpan<'t> {
    name: &'t str,
    /// The whole tag, `<` and `>` included.
    text: &'t str,
    place: Range<usize>,
}

/// Spans of the images whose `src` is wanted.
pub(super) fn images(text: &str, wanted: impl Fn(&str) -> bool) -> Vec<Range<usize>> {
    let is_wanted = |tag: &TagSpan<'_>| {
        tag.name.eq_ignore_ascii_case("img") && attribute_is(tag, "src", &wanted)
    };
    starts(text, 0)
        .filter(is_wanted)
        .map(|tag| tag.place)
        .collect()
}

/// Spans of the links whose `href` is wanted, with their contents.
pub(super) fn anchors(text: &str, wanted: impl Fn(&str) -> bool) -> Vec<Range<usize>> {
    blocks_of(text, |tag| {
        tag.name.eq_ignore_ascii_case("a") && attribute_is(tag, "href", &wanted)
    })
}

/// Spans of the elements whose start tag is wanted, with their contents.
pub(super) fn blocks(text: &str, wanted: impl Fn(&str) -> bool) -> Vec<Range<usize>> {
    blocks_of(text, |tag| wanted(tag.text))
}

/// Elements from their start tag to the end tag that closes it. One that nothing closes stays, as
/// does all after it.
fn blocks_of(text: &str, wanted: impl Fn(&TagSpan<'_>) -> bool) -> Vec<Range<usize>> {
    let mut found = Vec::new();
    let mut from = 0;
    while let Some(tag) = starts(text, from).find(&wanted) {
        let is_empty = tag.text.ends_with("/>") || is_void(tag.name);
        let end = if is_empty {
            Some(tag.place.end)
        } else {
            closing(text, &tag)
        };
        let Some(end) = end else { break };
        found.push(tag.place.start..end);
        from = end;
    }
    found
}

/// Elements that hold nothing and need no end tag.
fn is_void(name: &str) -> bool {
    ["img", "br", "hr", "input", "embed", "wbr"]
        .iter()
        .any(|void| name.eq_ignore_ascii_case(void))
}

/// End of the element that this tag opens.
fn closing(text: &str, tag: &TagSpan<'_>) -> Option<usize> {
    let mut depth = 1_usize;
    let mut from = tag.place.end;
    loop {
        let at = from + memchr::memchr(b'<', &text.as_bytes()[from..])?;
        let end = at + memchr::memchr(b'>', &text.as_bytes()[at..])? + 1;
        let inside = &text[at + 1..end - 1];
        let (is_end, rest) = inside
            .strip_prefix('/')
            .map_or((false, inside), |rest| (true, rest));
        if name_of(rest).eq_ignore_ascii_case(tag.name) {
            if is_end {
                depth -= 1;
            } else if !rest.ends_with('/') {
                depth += 1;
            }
        }
        if depth == 0 {
            return Some(end);
        }
        from = end;
    }
}

/// The start tags from a place on.
fn starts(text: &str, from: usize) -> impl Iterator<Item = TagSpan<'_>> {
    let mut from = from;
    std::iter::from_fn(move || {
        loop {
            let at = from + memchr::memchr(b'<', &text.as_bytes()[from..])?;
            let name = name_of(&text[at + 1..]);
            from = at + 1;
            if !name.is_empty() {
                from = at + memchr::memchr(b'>', &text.as_bytes()[at..])? + 1;
                return Some(TagSpan {
                    name,
                    text: &text[at..from],
                    place: at..from,
                });
            }
        }
    })
}

fn name_of(inside: &str) -> &str {
    let end = inside
        .find(|c: char| !c.is_ascii_alphanumeric())
        .unwrap_or(inside.len());
    &inside[..end]
}

fn attribute_is(tag: &TagSpan<'_>, name: &str, wanted: &impl Fn(&str) -> bool) -> bool {
    static ATTRIBUTE: OnceLock<Regex> = OnceLock::new();
    let attribute = ATTRIBUTE.get_or_init(|| {
        Regex::new(r#"\s([A-Za-z]+)\s*=\s*(?:"([^"]*)"|'([^']*)'|([^\s"'>]+))"#)
            .expect("a constant, tested")
    });
    attribute.captures_iter(tag.text).any(|found| {
        let value = found
            .get(2)
            .or_else(|| found.get(3))
            .or_else(|| found.get(4));
        found[1].eq_ignore_ascii_case(name)
            && value.is_some_and(|value| {
                wanted(
                    &value
                        .as_str()
                        .replace("&amp;", "&")
                        .replace("&#038;", "&")
                        .replace("&#38;", "&"),
                )
            })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(found: Vec<Range<usize>>, text: &str, expect: &[&str]) {
        assert_eq!(
            found
                .into_iter()
                .map(|place| &text[place])
                .collect::<Vec<_>>(),
            expect
        );
    }

    #[test]
    fn images_are_found_by_their_source_however_it_is_quoted() {
        let text = "a<img src='http://t/1?a=1&amp;b=2'>b<IMG alt=x SRC=http://t/2 /><img data-src=\"http://t/3\"><img src=\"/u\"><";
        let found = images(text, |src| src.contains("//t/") && !src.contains("&amp;"));
        check(
            found,
            text,
            &[
                "<img src='http://t/1?a=1&amp;b=2'>",
                "<IMG alt=x SRC=http://t/2 />",
            ],
        );
    }

    #[test]
    fn blocks_are_taken_to_the_end_tag_that_closes_them() {
        let text = "1<div class=x>a<div>b</div>c</div>2<div class=x/>3<img class=x>4<br><div class=x>never closed";
        let found = blocks(text, |tag| tag.contains("class=x"));
        check(
            found,
            text,
            &[
                "<div class=x>a<div>b</div>c</div>",
                "<div class=x/>",
                "<img class=x>",
            ],
        );
    }

    #[test]
    fn anchors_take_what_they_hold() {
        let text = "x <a href=\"http://t/\"><img src=i /></a> <a href=/u>y</a> a < b <a";
        check(
            anchors(text, |href| href == "http://t/"),
            text,
            &["<a href=\"http://t/\"><img src=i /></a>"],
        );
    }
}
