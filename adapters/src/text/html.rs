//! HTML fragments as feeds carry them: relative references made absolute, everything else byte for
//! byte. No clean-up.

use std::borrow::Cow;

use url::Url;

use super::entities::unescape;
use super::markup::push_text;
use super::uri;

/// Limit of the bytes that one text gains when references are resolved in it; later references stay
/// as they are. It keeps a long base and a million short references from becoming gigabytes.
pub(crate) const GAIN_BYTES_MAX: usize = 1 << 20;

/// Attributes of HTML that hold one URL, whatever element they stand on, and SVG's `href` as HTML
/// spells it.
const URL_ATTRIBUTES: [&str; 16] = [
    "href",
    "src",
    "cite",
    "action",
    "longdesc",
    "poster",
    "data",
    "background",
    "usemap",
    "codebase",
    "classid",
    "profile",
    "formaction",
    "lowsrc",
    "dynsrc",
    "xlink:href",
];

/// Attributes that hold URLs with descriptors, separated by commas.
const CANDIDATE_ATTRIBUTES: [&str; 2] = ["srcset", "imagesrcset"];

/// An attribute with its relative references resolved; `None` when nothing changes.
pub(crate) fn resolve_attribute(name: &str, value: &str, base: &Url) -> Option<String> {
    resolve_held(Holding::of(name)?, value, base)
}

/// Kind of the references in an attribute.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Holding {
    Url,
    Candidates,
}

impl Holding {
    fn of(name: &str) -> Option<Self> {
        let is_one_of = |known: &[&str]| known.iter().any(|known| name.eq_ignore_ascii_case(known));
        if is_one_of(&URL_ATTRIBUTES) {
            Some(Self::Url)
        } else {
            is_one_of(&CANDIDATE_ATTRIBUTES).then_some(Self::Candidates)
        }
    }
}

fn resolve_held(holding: Holding, value: &str, base: &Url) -> Option<String> {
    match holding {
        Holding::Url => is_relative(super::trim(value)).then(|| uri::resolve(Some(base), value)),
        Holding::Candidates => Some(candidates(value, base)).filter(|resolved| resolved != value),
    }
}

/// True for a reference that means something else where the fragment is shown than where it was
/// written. A fragment identifier points into the same text wherever that is; what has a scheme is
/// the same everywhere.
pub(crate) fn is_relative(reference: &str) -> bool {
    !reference.is_empty() && !reference.starts_with('#') && !uri::is_absolute(reference)
}

/// Image candidates (HTML section 4.8.4.2.1, as its parser reads them): a URL ends with white
/// space, and the descriptors behind it with a comma outside of parentheses.
fn candidates(srcset: &str, base: &Url) -> String {
    let mut out = String::with_capacity(srcset.len());
    let mut rest = srcset;
    while !rest.is_empty() {
        let start = rest
            .find(|c: char| !c.is_ascii_whitespace() && c != ',')
            .unwrap_or(rest.len());
        let (between, found) = rest.split_at(start);
        let word = found
            .find(|c: char| c.is_ascii_whitespace())
            .unwrap_or(found.len());
        let url = found[..word].trim_end_matches(',');
        out.push_str(between);
        if is_relative(url) {
            out.push_str(&uri::resolve(Some(base), url));
        } else {
            out.push_str(url);
        }
        rest = &found[url.len()..];
        if url.len() == word {
            let descriptors = descriptors_len(rest);
            out.push_str(&rest[..descriptors]);
            rest = &rest[descriptors..];
        }
    }
    out
}

fn descriptors_len(text: &str) -> usize {
    let mut is_inside = false;
    let end = text.bytes().position(|byte| {
        is_inside = byte == b'(' || (is_inside && byte != b')');
        byte == b',' && !is_inside
    });
    end.unwrap_or(text.len())
}

/// The fragment with its relative references resolved. Without a base, it stays as it is.
pub(crate) fn absolutise<'h>(html: &'h str, base: Option<&Url>) -> Cow<'h, str> {
    let Some(base) = base else {
        return Cow::Borrowed(html);
    };
    let mut out = String::new();
    let (mut kept, mut gained, mut at) = (0, 0, 0);
    while let Some(open) = memchr::memchr(b'<', &html.as_bytes()[at..]).map(|found| at + found) {
        if html[open..].starts_with("<!--") {
            at = html[open..]
                .find("-->")
                .map_or(html.len(), |end| open + end);
            continue;
        }
        let mut tag = HtmlTag { html, at: open + 1 };
        if html
            .as_bytes()
            .get(open + 1)
            .is_some_and(u8::is_ascii_alphabetic)
        {
            tag = HtmlTag::of_name(html, open + 1);
            let element = &html[open + 1..tag.at];
            while let Some((name, value)) = tag.attribute() {
                let Some(holding) = Holding::of(name) else {
                    continue;
                };
                let written = &html[value.clone()];
                // Nearly all of them, as they stand.
                let is_web = || written.starts_with("https://") || written.starts_with("http://");
                if holding == Holding::Url && is_web() {
                    continue;
                }
                let Some(resolved) = resolve_held(holding, &unescape(written), base) else {
                    continue;
                };
                gained += resolved.len().saturating_sub(value.len());
                if gained > GAIN_BYTES_MAX {
                    break;
                }
                // Whatever quotes stood around the value are outside of its range; an unquoted one
                // gets some.
                let quoted =
                    value.start > 0 && matches!(html.as_bytes()[value.start - 1], b'"' | b'\'');
                let quote = if quoted { "" } else { "\"" };
                out.extend([&html[kept..value.start], quote]);
                push_value(&mut out, &resolved);
                out.push_str(quote);
                kept = value.end;
            }
            if gained > GAIN_BYTES_MAX {
                break;
            }
            if RAW.iter().any(|raw| element.eq_ignore_ascii_case(raw)) {
                tag.at = end_of_raw(html, tag.at, element);
            }
        }
        at = tag.at;
    }
    if kept == 0 {
        return Cow::Borrowed(html);
    }
    out.push_str(&html[kept..]);
    Cow::Owned(out)
}

/// Escaped for quotes of either kind.
fn push_value(out: &mut String, value: &str) {
    let mut rest = value;
    while let Some(at) = rest.find(['"', '\'']) {
        push_text(out, &rest[..at]);
        out.push_str(if rest.as_bytes()[at] == b'"' {
            "&quot;"
        } else {
            "&#39;"
        });
        rest = &rest[at + 1..];
    }
    push_text(out, rest);
}

/// Elements whose content is no markup, so that no tag stands in it.
const RAW: [&str; 4] = ["script", "style", "textarea", "xmp"];

/// End of the content of such an element: at its end tag or with the fragment.
fn end_of_raw(html: &str, from: usize, element: &str) -> usize {
    let ends = |at: usize| {
        let after = html.as_bytes()[at..]
            .strip_prefix(b"</")
            .unwrap_or_default();
        after
            .get(..element.len())
            .is_some_and(|name| name.eq_ignore_ascii_case(element.as_bytes()))
    };
    let opens = memchr::memchr_iter(b'<', &html.as_bytes()[from..]);
    opens
        .map(|found| from + found)
        .find(|at| ends(*at))
        .unwrap_or(html.len())
}

/// A start tag while its attributes are read (HTML section 13.2.5.32 and on, as far as places
/// matter).
pub(super) struct HtmlTag<'h> {
    html: &'h str,
    at: usize,
}

impl<'h> HtmlTag<'h> {
    /// The tag whose name stands at this place, before its first attribute.
    pub(super) fn of_name(html: &'h str, at: usize) -> Self {
        let mut tag = Self { html, at };
        tag.skip(|b| !matches!(b, b'>' | b'/') && !b.is_ascii_whitespace());
        tag
    }

    /// Place up to which it was read.
    #[cfg(feature = "sanitise")]
    pub(super) fn place(&self) -> usize {
        self.at
    }

    fn peek(&self) -> Option<u8> {
        self.html.as_bytes().get(self.at).copied()
    }

    fn skip(&mut self, more: impl Fn(u8) -> bool) {
        while self.peek().is_some_and(&more) {
            self.at += 1;
        }
    }

    /// The next attribute's name and the place of its value; `None` at the end of the tag.
    pub(super) fn attribute(&mut self) -> Option<(&'h str, std::ops::Range<usize>)> {
        self.skip(|b| b.is_ascii_whitespace() || b == b'/');
        let start = self.at;
        if self.peek()? == b'>' {
            return None;
        }
        // A name may begin with anything, even `=`, so that every turn moves on.
        self.at += 1;
        self.skip(|b| !matches!(b, b'=' | b'>' | b'/') && !b.is_ascii_whitespace());
        // The first byte may have been the first of several: a name ends where a character ends.
        let name = self.html.get(start..self.at).unwrap_or_default();
        self.skip(|b| b.is_ascii_whitespace());
        if self.peek() != Some(b'=') {
            return Some((name, self.at..self.at));
        }
        self.at += 1;
        self.skip(|b| b.is_ascii_whitespace());
        let quote = self.peek().filter(|b| matches!(b, b'"' | b'\''));
        self.at += usize::from(quote.is_some());
        let start = self.at;
        match quote {
            Some(quote) => {
                let rest = &self.html.as_bytes()[self.at..];
                self.at += memchr::memchr(quote, rest).unwrap_or(rest.len());
            }
            None => self.skip(|b| b != b'>' && !b.is_ascii_whitespace()),
        }
        let value = start..self.at;
        self.at += usize::from(quote.is_some() && self.at < self.html.len());
        Some((name, value))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(html: &str, expect: &str) {
        let base = Url::parse("http://e.org/a/b").ok();
        assert_eq!(absolutise(html, base.as_ref()), expect);
    }

    #[test]
    fn relative_references_are_resolved_in_place() {
        check(
            "<p>x <a href='c' title=\"d\">y</a>",
            "<p>x <a href='http://e.org/a/c' title=\"d\">y</a>",
        );
        check(
            "<IMG alt=x SRC=/i.png>",
            "<IMG alt=x SRC=\"http://e.org/i.png\">",
        );
        check(
            "<img src=\"i?a=1&amp;b=2\" src='j'/>",
            "<img src=\"http://e.org/a/i?a=1&amp;b=2\" src='http://e.org/a/j'/>",
        );
        check(
            "<a href = \"../é\">é</a>",
            "<a href = \"http://e.org/%C3%A9\">é</a>",
        );
        check(
            "<form action='f'><q cite=c><video poster=p><svg><use xlink:href='s#x'/>",
            "<form action='http://e.org/a/f'><q cite=\"http://e.org/a/c\"><video poster=\"http://e.org/a/p\">\
             <svg><use xlink:href='http://e.org/a/s#x'/>",
        );
    }

    #[test]
    fn image_candidates_are_resolved_one_by_one() {
        check(
            "<img srcset='i.png 1x, /j.png 2x,k.png'>",
            "<img srcset='http://e.org/a/i.png 1x, http://e.org/j.png 2x,http://e.org/a/k.png'>",
        );
        check(
            "<source srcset=' i,j.png, http://f.org/k 2x , data:image/png;base64,AA== 3x (a,b), l,'>",
            "<source srcset=' http://e.org/a/i,j.png, http://f.org/k 2x , data:image/png;base64,AA== 3x (a,b), http://e.org/a/l,'>",
        );
    }

    #[test]
    fn a_text_gains_only_so_much() {
        let base = Url::parse(&format!("http://e.org/{}/", "d".repeat(2000))).ok();
        let html = "<a href=x>".repeat(100_000);
        let resolved = absolutise(&html, base.as_ref());
        assert!(resolved.len() > html.len() + GAIN_BYTES_MAX / 2);
        assert!(resolved.len() <= html.len() + 2 * GAIN_BYTES_MAX);
    }

    #[test]
    fn everything_else_stays_byte_for_byte() {
        for html in [
            "<a href='http://f.org'>x</a>",
            "<a href='mailto:a@b'>x</a><a href='#n'>y</a><a href=''>z</a><a href>w</a>",
            "<!-- <a href='c'> -->",
            "a < b <= c href='d' <",
            "</a href='c'>",
            "<a title='href=c'>",
            "<é href='c'>",
            "<a href='",
            "<a é='1' =é>",
            "<!-- <a href='c'>",
            "<script>write('<a href=\"c\">')</SCRIPT",
            "<style><a href='c'>",
            "<textarea><img src='c'></textarea>",
            "<img srcset='http://f.org/i 1x, //'> <a data-src='c'>",
        ] {
            check(html, html);
        }
        assert_eq!(absolutise("<a href='c'>", None), "<a href='c'>");
    }

    #[test]
    fn a_value_cannot_break_out_of_its_quotes() {
        check(
            "<a href='c&#39; onclick=&#39;d'>",
            "<a href='http://e.org/a/c&#39;%20onclick=&#39;d'>",
        );
    }

    #[test]
    fn hostile_fragments_take_linear_time() {
        for piece in [
            "<",
            "<a ",
            "<a href='",
            "<!--",
            "<a b=c ",
            "<a href=\"x\">",
            "<xmp>",
            "<a srcset='a,b (,",
        ] {
            let html = piece.repeat(50_000);
            let base = Url::parse("http://e.org/").ok();
            assert!(absolutise(&html, base.as_ref()).len() >= html.len());
        }
    }
}
