//! HTML fragments as feeds carry them: relative references made absolute, everything else byte for byte. No clean-up.

use std::borrow::Cow;

use url::Url;

use super::entities::unescape;
use super::markup::escape_attribute;
use super::uri;

/// Attributes of HTML that hold one URL.
pub(crate) const URL_ATTRIBUTES: [&str; 8] =
    ["href", "src", "cite", "action", "longdesc", "poster", "data", "background"];

/// Whether a reference means something else where the fragment is shown than where it was written. A fragment identifier
/// points into the same text wherever that is; what has a scheme is the same everywhere.
pub(crate) fn is_relative(reference: &str) -> bool {
    !reference.is_empty() && !reference.starts_with('#') && !uri::is_absolute(reference)
}

/// By how many bytes resolving may make a text longer than twice its size; what is left is not resolved. Without a limit a
/// long base and many short references could take any amount of memory.
pub(crate) const GROWTH_BYTES_MAX: usize = 1 << 20;

/// The fragment with its relative references resolved. Without a base, it stays as it is.
pub(crate) fn absolutise<'h>(html: &'h str, base: Option<&Url>) -> Cow<'h, str> {
    let Some(base) = base else { return Cow::Borrowed(html) };
    let mut out = String::new();
    let mut kept = 0;
    let mut at = 0;
    while let Some(open) = memchr::memchr(b'<', &html.as_bytes()[at..]).map(|found| at + found) {
        if html[open..].starts_with("<!--") {
            at = html[open..].find("-->").map_or(html.len(), |end| open + end);
            continue;
        }
        let mut tag = Tag { html, at: open + 1 };
        if html.as_bytes().get(open + 1).is_some_and(u8::is_ascii_alphabetic) {
            tag.skip(|b| !matches!(b, b'>' | b'/') && !b.is_ascii_whitespace());
            while let Some((name, value)) = tag.attribute() {
                let reference = unescape(html[value.clone()].trim());
                let is_url = URL_ATTRIBUTES.iter().any(|known| name.eq_ignore_ascii_case(known));
                let has_room = out.len() <= 2 * html.len() + GROWTH_BYTES_MAX;
                if is_url && has_room && is_relative(&reference) {
                    // Whatever quotes stood around the value are outside of its range; an unquoted one gets some.
                    let quoted = value.start > 0 && matches!(html.as_bytes()[value.start - 1], b'"' | b'\'');
                    let quote = if quoted { "" } else { "\"" };
                    let resolved = uri::resolve(Some(base), &reference);
                    let resolved = escape_attribute(&resolved).replace('\'', "&#39;");
                    out.extend([&html[kept..value.start], quote, &resolved, quote]);
                    kept = value.end;
                }
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

/// A start tag while its attributes are read (HTML section 13.2.5.32 and on, as far as places matter).
struct Tag<'h> {
    html: &'h str,
    at: usize,
}

impl<'h> Tag<'h> {
    fn peek(&self) -> Option<u8> {
        self.html.as_bytes().get(self.at).copied()
    }

    fn skip(&mut self, more: impl Fn(u8) -> bool) {
        let rest = self.html.as_bytes().get(self.at..).unwrap_or_default();
        self.at += rest.iter().position(|b| !more(*b)).unwrap_or(rest.len());
    }

    /// The next attribute's name and the place of its value; `None` at the end of the tag.
    fn attribute(&mut self) -> Option<(&'h str, std::ops::Range<usize>)> {
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
        check("<p>x <a href='c' title=\"d\">y</a>", "<p>x <a href='http://e.org/a/c' title=\"d\">y</a>");
        check("<IMG alt=x SRC=/i.png>", "<IMG alt=x SRC=\"http://e.org/i.png\">");
        check(
            "<img src=\"i?a=1&amp;b=2\" src='j'/>",
            "<img src=\"http://e.org/a/i?a=1&amp;b=2\" src='http://e.org/a/j'/>",
        );
        check("<a href = \"../é\">é</a>", "<a href = \"http://e.org/%C3%A9\">é</a>");
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
        ] {
            check(html, html);
        }
        assert_eq!(absolutise("<a href='c'>", None), "<a href='c'>");
    }

    #[test]
    fn a_value_cannot_break_out_of_its_quotes() {
        check("<a href='c&#39; onclick=&#39;d'>", "<a href='http://e.org/a/c&#39;%20onclick=&#39;d'>");
    }

    #[test]
    fn hostile_fragments_take_linear_time() {
        for piece in ["<", "<a ", "<a href='", "<!--", "<a b=c ", "<a href=\"x\">"] {
            let html = piece.repeat(50_000);
            let base = Url::parse("http://e.org/").ok();
            assert!(absolutise(&html, base.as_ref()).len() >= html.len());
        }
    }
}
