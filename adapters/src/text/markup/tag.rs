//! The end of a tag whose quotes do not match, as its writer most likely meant it; and the
//! attributes of any tag, by the rules of HTML.

/// Names and values as they stand between quotes, or without; the value of an attribute that has
/// none is empty.
pub(crate) struct Attributes<'t> {
    rest: &'t str,
}

impl<'t> Attributes<'t> {
    /// Of a tag without its brackets and its name.
    pub(crate) fn new(raw: &'t str) -> Self {
        Self { rest: raw }
    }
}

impl<'t> Iterator for Attributes<'t> {
    type Item = (&'t str, &'t str);

    fn next(&mut self) -> Option<Self::Item> {
        let rest = self
            .rest
            .trim_start_matches(|c: char| c.is_ascii_whitespace() || c == '/');
        // A name may begin with anything, even `=`, so that every turn moves on.
        let first = rest.chars().next()?.len_utf8();
        let end = rest[first..].find(|c: char| c.is_ascii_whitespace() || matches!(c, '=' | '/'));
        let (name, rest) = rest.split_at(end.map_or(rest.len(), |end| first + end));
        let Some(value) = rest
            .trim_ascii_start()
            .strip_prefix('=')
            .map(str::trim_ascii_start)
        else {
            self.rest = rest;
            return Some((name, ""));
        };
        let (value, rest) = match value.as_bytes().first() {
            Some(b'"') => value[1..].split_once('"').unwrap_or((&value[1..], "")),
            Some(b'\'') => value[1..].split_once('\'').unwrap_or((&value[1..], "")),
            _ => value.split_at(
                value
                    .find(|c: char| c.is_ascii_whitespace())
                    .unwrap_or(value.len()),
            ),
        };
        self.rest = rest;
        Some((name, value))
    }
}

/// Limit of the search for the closing quote behind a bracket in a quoted value, bytes.
const BRACKETED_VALUE_BYTES_MAX: usize = 1024;

/// The length of the tag that the text begins with, by the rules of HTML (a quote opens a value
/// only behind `=`) and one of XML: no value holds a `<`, unless the quote behind it plainly closes
/// it. `None` when the text ends inside the tag.
pub(crate) fn length(text: &str) -> Option<usize> {
    let bytes = text.as_bytes();
    let mut at = 1;
    // Behind `=`, white space aside.
    let mut valued = false;
    while let Some(&byte) = bytes.get(at) {
        at += 1;
        match byte {
            b'>' => return Some(at),
            b'<' => return Some(at - 1),
            b'"' | b'\'' if valued => match value(&bytes[at..], byte)? {
                AttributeValue::Closed(length) => at += length,
                AttributeValue::Open(length) => return Some(at + length),
            },
            _ => {}
        }
        valued = byte == b'=' || (valued && byte.is_ascii_whitespace());
    }
    None
}

enum AttributeValue {
    /// The value and its closing quote have this many bytes.
    Closed(usize),
    /// It has no closing quote; the tag ends so many bytes behind the opening one.
    Open(usize),
}

fn value(bytes: &[u8], quote: u8) -> Option<AttributeValue> {
    let closing = memchr::memchr2(quote, b'<', bytes);
    let bracket = match closing {
        Some(at) if bytes[at] == quote => return Some(AttributeValue::Closed(at + 1)),
        Some(at) => at,
        // Nothing more begins here: either the text ends inside the value, or only this tag's own
        // end is left.
        None => return memchr::memchr(b'>', bytes).map(|end| AttributeValue::Open(end + 1)),
    };
    let near = &bytes[bracket..bytes.len().min(bracket + BRACKETED_VALUE_BYTES_MAX)];
    if let Some(closing) = memchr::memchr(quote, near).map(|at| bracket + at)
        && closes(&bytes[closing + 1..])
    {
        return Some(AttributeValue::Closed(closing + 1));
    }
    let end = memchr::memchr(b'>', &bytes[..bracket]);
    Some(AttributeValue::Open(end.map_or(bracket, |end| end + 1)))
}

/// True when the end of a tag or another attribute follows a quote.
fn closes(after: &[u8]) -> bool {
    let rest = after.trim_ascii_start();
    if rest.starts_with(b">") || rest.starts_with(b"/>") {
        return true;
    }
    let name = rest
        .iter()
        .take(64)
        .take_while(|b| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_' | b':'));
    let name = name.count();
    name > 0 && rest.len() < after.len() && rest[name..].trim_ascii_start().starts_with(b"=")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, tag: &str) {
        assert_eq!(
            length(text).map(|length| &text[..length]),
            Some(tag),
            "{text}"
        );
    }

    #[test]
    fn a_tag_ends_where_its_writer_meant_it_to() {
        check("<a>x", "<a>");
        check("<a b='>' c=\">\">x", "<a b='>' c=\">\">");
        check("<a b='x>y</a><c d='e'>", "<a b='x>");
        check("<a b=\"x>y</a> he said \"yes\"", "<a b=\"x>");
        check("<a b='x>y</a> the boys' house", "<a b='x>");
        check("<a b=\"x'>y</a><c d='e'>", "<a b=\"x'>");
        check("<a b=\"x\"y\">z</a>", "<a b=\"x\"y\">");
        check("<a b='it's'>z</a>", "<a b='it's'>");
        check("<a b=it's>z</a>", "<a b=it's>");
        check("<a \">z</a>", "<a \">");
        check("<a b = \n'>'>z", "<a b = \n'>'>");
        check("<a b='<i>x</i>' c='d'>z", "<a b='<i>x</i>' c='d'>");
        check("<a b='<' >z", "<a b='<' >");
        check("<a b='x<c>", "<a b='x");
        check("<a <b>", "<a ");
        check("<a b='x>y", "<a b='x>");
        check("</a <b>", "</a ");
    }

    #[test]
    fn attributes_are_read_by_the_rules_of_html() {
        let check = |raw: &str, expect: &[(&str, &str)]| {
            assert_eq!(Attributes::new(raw).collect::<Vec<_>>(), expect)
        };
        check(
            " a = '1' b=\"x>y\"c=x/y d e='f",
            &[
                ("a", "1"),
                ("b", "x>y"),
                ("c", "x/y"),
                ("d", ""),
                ("e", "f"),
            ],
        );
        check(
            " a=\"1\"b\" c='it's' d=1/",
            &[
                ("a", "1"),
                ("b\"", ""),
                ("c", "it"),
                ("s'", ""),
                ("d", "1/"),
            ],
        );
        check(" =a =/ é = é/", &[("=a", "/"), ("é", "é/")]);
        check("a=", &[("a", "")]);
        check(" / ", &[]);
    }

    #[test]
    fn a_text_may_end_inside_a_tag() {
        for text in ["<", "<a", "<a b='c", "<a b='c' "] {
            assert_eq!(length(text), None, "{text}");
        }
    }
}
