//! JSON as old software wrote it: where the values stand in a text, whatever state it is in; no
//! meaning attached.
//!
//! A strict parser refuses a document that was cut, or one with a raw line feed in a string, as a
//! whole. This one finds what is there: in valid JSON exactly what a strict parser would, elsewhere
//! the likeliest reading. It holds no stack, so that nesting costs nothing, and looks at no byte
//! twice on a level.

use super::clean;

pub(crate) mod list;

/// Limit of the members or elements of one value that are looked at; the rest is passed over.
pub(crate) const VALUES_MAX: usize = 1 << 20;

/// A value where it stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct JsonValue<'t> {
    /// As written, without the white space around it.
    pub(crate) text: &'t str,
    /// True when its end was found; if not, the text was cut in it.
    pub(crate) whole: bool,
}

impl<'t> JsonValue<'t> {
    /// The value at the start of a text; `None` when there is nothing.
    pub(crate) fn first(text: &'t str) -> Option<Self> {
        let start = skip_space(text, 0);
        (start < text.len()).then(|| Self::at(text, start))
    }

    fn at(text: &'t str, start: usize) -> Self {
        match end_of(text, start) {
            Some(end) => Self {
                text: &text[start..end],
                whole: true,
            },
            None => Self {
                text: &text[start..],
                whole: false,
            },
        }
    }

    pub(crate) fn is_object(self) -> bool {
        self.text.starts_with('{')
    }

    pub(crate) fn is_array(self) -> bool {
        self.text.starts_with('[')
    }

    /// The members of an object; of anything else there are none.
    pub(crate) fn members(self) -> impl Iterator<Item = (String, Self)> {
        let text = if self.is_object() { self.text } else { "" };
        let mut at = 1;
        std::iter::from_fn(move || next_member(text, &mut at)).take(VALUES_MAX)
    }

    /// The elements of an array. Of an object its values: PHP writes a list with a gap in its
    /// numbering as one.
    pub(crate) fn elements(self) -> impl Iterator<Item = Self> {
        let (text, is_object) = (self.text, self.is_object());
        let has_elements = is_object || self.is_array();
        let text = if has_elements { text } else { "" };
        let mut at = 1;
        std::iter::from_fn(move || {
            if is_object {
                return next_member(text, &mut at).map(|(_, value)| value);
            }
            next_value(text, &mut at)
        })
        .take(VALUES_MAX)
    }

    /// The characters of a string; `None` for anything else.
    pub(crate) fn string(self) -> Option<String> {
        let inside = self.text.strip_prefix('"')?;
        Some(clean(&unescape(inside.strip_suffix('"').unwrap_or(inside))).into_owned())
    }

    /// A string, or a number as it is written: ids are often numbers, and long ones would not
    /// survive being counted in.
    pub(crate) fn scalar(self) -> Option<String> {
        let is_number = |text: &str| text.starts_with(|c: char| c.is_ascii_digit() || c == '-');
        self.string()
            .or_else(|| is_number(self.text).then(|| self.text.to_owned()))
    }

    /// The value without the white space that only lays it out.
    pub(crate) fn compact(self) -> String {
        let mut out = String::with_capacity(self.text.len());
        let mut at = 0;
        while at < self.text.len() {
            let rest = &self.text[at..];
            let end = match rest.as_bytes()[0] {
                b'"' => end_of_string(self.text, at).unwrap_or(self.text.len()),
                b' ' | b'\t' | b'\r' | b'\n' => {
                    at = skip_space(self.text, at);
                    continue;
                }
                _ => {
                    at + rest
                        .find(['"', ' ', '\t', '\r', '\n'])
                        .unwrap_or(rest.len())
                }
            };
            out.push_str(&self.text[at..end]);
            at = end;
        }
        out
    }
}

/// The next element of a list, `at` being anywhere before it; leaves `at` behind it.
fn next_value<'t>(text: &'t str, at: &mut usize) -> Option<JsonValue<'t>> {
    *at = skip(text, *at, |b| is_space(b) || matches!(b, b',' | b':'));
    match text.as_bytes().get(*at)? {
        b']' | b'}' => {
            *at = text.len();
            None
        }
        _ => {
            let value = JsonValue::at(text, *at);
            *at += value.text.len();
            Some(value)
        }
    }
}

/// What a member without a value has.
const NULL: JsonValue<'_> = JsonValue {
    text: "null",
    whole: true,
};

/// The next member of an object. One that was cut before its value began is none.
fn next_member<'t>(text: &'t str, at: &mut usize) -> Option<(String, JsonValue<'t>)> {
    let name = next_value(text, at)?;
    let colon = skip_space(text, *at);
    let value = match text.as_bytes().get(colon)? {
        b':' => {
            *at = skip_space(text, colon + 1);
            match text.as_bytes().get(*at)? {
                b',' | b'}' | b']' => NULL,
                _ => next_value(text, at)?,
            }
        }
        _ => NULL,
    };
    Some((name.string().unwrap_or_else(|| name.text.to_owned()), value))
}

fn is_space(b: u8) -> bool {
    matches!(b, b' ' | b'\t' | b'\r' | b'\n')
}

fn skip_space(text: &str, at: usize) -> usize {
    skip(text, at, is_space)
}

fn skip(text: &str, at: usize, passed: impl Fn(u8) -> bool) -> usize {
    let rest = text.as_bytes().get(at..).unwrap_or_default();
    rest.iter()
        .position(|b| !passed(*b))
        .map_or(text.len(), |found| at + found)
}

/// End of the value that begins here; `None` when the text was cut in it.
fn end_of(text: &str, start: usize) -> Option<usize> {
    let bytes = text.as_bytes();
    match bytes[start] {
        b'"' => return end_of_string(text, start),
        b'{' | b'[' => {}
        _ => {
            let ends =
                |b: u8| is_space(b) || matches!(b, b',' | b':' | b'{' | b'}' | b'[' | b']' | b'"');
            let length = bytes[start + 1..].iter().position(|b| ends(*b));
            // What runs up to the end of the text may have been longer.
            return length.map(|length| start + 1 + length);
        }
    }
    let mut depth = 0_usize;
    let mut at = start;
    while at < bytes.len() {
        match bytes[at] {
            b'"' => {
                at = end_of_string(text, at)?;
                continue;
            }
            b'{' | b'[' => depth += 1,
            b'}' | b']' => {
                depth -= 1;
                if depth == 0 {
                    return Some(at + 1);
                }
            }
            _ => {}
        }
        at += 1;
    }
    None
}

/// End of the string that begins here. A quote ends it only if what may follow a string follows; in
/// valid JSON that is every quote without a backslash, elsewhere it passes over those that somebody
/// forgot to escape.
fn end_of_string(text: &str, start: usize) -> Option<usize> {
    let bytes = text.as_bytes();
    let mut at = start + 1;
    loop {
        at += memchr::memchr2(b'"', b'\\', bytes.get(at..)?)?;
        if bytes[at] == b'\\' {
            at += 2;
            continue;
        }
        let next = skip_space(text, at + 1);
        match bytes.get(next) {
            None | Some(b',' | b':' | b'}' | b']') => return Some(at + 1),
            // A comma forgotten at the end of a line.
            Some(b'"') if memchr::memchr(b'\n', &bytes[at..next]).is_some() => return Some(at + 1),
            Some(_) => at += 1,
        }
    }
}

/// The characters that the inside of a string stands for. A lone half of a surrogate pair, left by
/// those who cut texts by counting, is U+FFFD; a backslash before anything that needs none stands
/// for nothing.
fn unescape(inside: &str) -> String {
    let mut out = String::with_capacity(inside.len());
    let mut rest = inside;
    while let Some(at) = memchr::memchr(b'\\', rest.as_bytes()) {
        out.push_str(&rest[..at]);
        let mut after = rest[at + 1..].chars();
        let escaped = after.next();
        rest = after.as_str();
        match escaped {
            Some('b') => out.push('\u{8}'),
            Some('f') => out.push('\u{C}'),
            Some('n') => out.push('\n'),
            Some('r') => out.push('\r'),
            Some('t') => out.push('\t'),
            Some('u') => out.push(unit(&mut rest)),
            Some(c) => out.push(c),
            None => {}
        }
    }
    out.push_str(rest);
    out
}

/// The character of the four digits after `\u`, and of the four of its other half.
fn unit(rest: &mut &str) -> char {
    let Some(first) = digits(rest) else {
        return char::REPLACEMENT_CHARACTER;
    };
    if !(0xD800..0xDC00).contains(&first) {
        return char::from_u32(first).unwrap_or(char::REPLACEMENT_CHARACTER);
    }
    let mut behind = rest.strip_prefix("\\u").unwrap_or_default();
    match digits(&mut behind) {
        Some(second @ 0xDC00..0xE000) => {
            *rest = behind;
            let code = 0x1_0000 + ((first - 0xD800) << 10) + (second - 0xDC00);
            char::from_u32(code).unwrap_or(char::REPLACEMENT_CHARACTER)
        }
        _ => char::REPLACEMENT_CHARACTER,
    }
}

/// Takes four hexadecimal digits off the front.
fn digits(rest: &mut &str) -> Option<u32> {
    let four = rest
        .get(..4)
        .filter(|four| four.bytes().all(|b| b.is_ascii_hexdigit()))?;
    *rest = &rest[4..];
    u32::from_str_radix(four, 16).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn value(text: &str) -> JsonValue<'_> {
        JsonValue::first(text).unwrap()
    }

    fn members(text: &str) -> Vec<(String, &str, bool)> {
        value(text)
            .members()
            .map(|(name, value)| (name, value.text, value.whole))
            .collect()
    }

    fn elements(text: &str) -> Vec<&str> {
        value(text).elements().map(|value| value.text).collect()
    }

    #[test]
    fn valid_json_is_found_where_it_stands() {
        let text =
            " {\"a\": [1, {\"b\": \"x,}\"}], \"c\\u0064\" :null,\"e\":\"\\\"\\\\\",\"\":{} } ";
        let expect = [
            ("a", "[1, {\"b\": \"x,}\"}]"),
            ("cd", "null"),
            ("e", "\"\\\"\\\\\""),
            ("", "{}"),
        ];
        assert_eq!(
            members(text),
            expect.map(|(name, text)| (name.to_owned(), text, true))
        );
        assert_eq!(
            elements("[ -1.5e3 , true,\"a\" ,[],{} ]"),
            ["-1.5e3", "true", "\"a\"", "[]", "{}"]
        );
        assert_eq!(
            elements("{\"1\":{},\"7\":[2]}"),
            ["{}", "[2]"],
            "a list with a gap, as PHP writes it"
        );
        assert_eq!(elements("\"no list\""), [""; 0]);
        assert!(members("[1]").is_empty());
        assert_eq!(JsonValue::first(" \n"), None);
    }

    #[test]
    fn a_cut_is_seen_wherever_it_is() {
        let text = "{\"a\": {\"b\": [\"x\", 12]}}";
        for length in 1..text.len() {
            let cut = value(&text[..length]);
            assert!(!cut.whole, "{}", cut.text);
            let whole = cut.members().filter(|(_, value)| value.whole).count();
            assert_eq!(whole, usize::from(length + 1 == text.len()), "{}", cut.text);
        }
        assert_eq!(
            members("{\"a\":1,\"b\":2"),
            [("a".into(), "1", true), ("b".into(), "2", false)]
        );
    }

    #[test]
    fn mistakes_of_handwriting_are_read_for_what_was_meant() {
        assert_eq!(elements("[1,,2,]"), ["1", "2"]);
        assert_eq!(members("{a:1,}"), [("a".into(), "1", true)]);
        assert_eq!(
            members("{\"a\":,\"b\":}"),
            [("a".into(), "null", true), ("b".into(), "null", true)]
        );
        assert_eq!(members("{\"a\"}"), [("a".into(), "null", true)]);
        assert_eq!(
            members("{\"a\":\"he said \"hi\" twice\",\"b\":1}")[0].1,
            "\"he said \"hi\" twice\""
        );
        assert_eq!(
            members("{\"a\":\"x\"\n \"b\":\"y\"}").len(),
            2,
            "a forgotten comma"
        );
        assert_eq!(
            value("\"two\nlines\"").string().as_deref(),
            Some("two\nlines")
        );
    }

    #[test]
    fn strings_stand_for_their_characters() {
        for (text, expect) in [
            (r#""\u00e9\n\t\/\"\\""#, "é\n\t/\"\\"),
            (r#""\uD83D\uDE00""#, "\u{1F600}"),
            (r#""cut \uD83D""#, "cut \u{FFFD}"),
            (r#""\uDE00\uD83Dx""#, "\u{FFFD}\u{FFFD}x"),
            (r#""\uD83D\u0041""#, "\u{FFFD}A"),
            (r#""\u12""#, "\u{FFFD}12"),
            (r#""\'\q""#, "'q"),
            (r#""a\u0000\bb""#, "ab"),
            (r#""\u00é""#, "\u{FFFD}00é"),
        ] {
            assert_eq!(value(text).string().as_deref(), Some(expect), "{text}");
        }
        assert_eq!(value("[]").string(), None);
    }

    #[test]
    fn numbers_stay_as_they_are_written() {
        for (text, expect) in [
            ("12345678901234567890", Some("12345678901234567890")),
            ("1.50", Some("1.50")),
            ("-1", Some("-1")),
            ("\"7\"", Some("7")),
            ("true", None),
            ("null", None),
            ("{}", None),
        ] {
            assert_eq!(value(&format!("{text} ")).scalar().as_deref(), expect);
        }
    }

    #[test]
    fn layout_is_taken_out_and_nothing_else() {
        assert_eq!(
            value("{ \"a b\" : [ 1,\n\t2 ], \"c\":\"d  \\\" e\" }").compact(),
            r#"{"a b":[1,2],"c":"d  \" e"}"#
        );
    }

    #[test]
    fn valid_json_is_read_as_a_strict_parser_reads_it() {
        let text = r#"{"a":[{"b":"\u00e9 \ud83d\ude00 \"q\", [x]: {y}"},-1.5,null,true],"c":{"d":[[],{}]},"e":"x\\"}"#;
        fn strict(value: &serde_json::Value, ours: JsonValue<'_>) {
            match value {
                serde_json::Value::Object(members) => {
                    let found: Vec<_> = ours.members().collect();
                    assert_eq!(found.len(), members.len());
                    found
                        .iter()
                        .for_each(|(name, value)| strict(&members[name], *value));
                }
                serde_json::Value::Array(elements) => {
                    let found: Vec<_> = ours.elements().collect();
                    assert_eq!(found.len(), elements.len());
                    elements
                        .iter()
                        .zip(found)
                        .for_each(|(value, ours)| strict(value, ours));
                }
                serde_json::Value::String(text) => assert_eq!(ours.string().as_ref(), Some(text)),
                other => assert_eq!(ours.text, other.to_string()),
            }
        }
        let parsed: serde_json::Value = serde_json::from_str(text).unwrap();
        strict(&parsed, value(text));
        strict(
            &parsed,
            value(&serde_json::to_string_pretty(&parsed).unwrap()),
        );
    }
}
