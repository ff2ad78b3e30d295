//! JSON-P: script that hands a document to a function of the page that asked; not a thing for
//! private feeds (D-12).

use std::borrow::Cow;

// Limit: a page sees no error, since a browser runs no script of an answer with an error's status.
/// The media type of the wrapped document. Send it with `X-Content-Type-Options: nosniff`.
pub const CONTENT_TYPE: &str = "application/javascript; charset=utf-8";

/// The longest name that is accepted.
pub const CALLBACK_BYTES_MAX: usize = 128;

/// Digits of an index in a callback's name.
const INDEX_DIGITS_MAX: usize = 4;

/// Words that no part of a name may be: ECMAScript's reserved ones, and what strict code may not
/// call.
const RESERVED: &str = "arguments await break case catch class const continue debugger default delete do else enum \
    eval export extends false finally for function if import in instanceof let new null return \
    static super switch this throw true try typeof var void while with yield";

/// True where a function may be called by this name: `ident(.ident|[0-9+])*`, ASCII, no reserved
/// words. When not, answer 400 without repeating it.
pub fn is_callback(name: &str) -> bool {
    if name.len() > CALLBACK_BYTES_MAX {
        return false;
    }
    let mut parts = name.split('.');
    parts.all(|part| {
        let (identifier, indices) = part.split_at(part.find('[').unwrap_or(part.len()));
        is_identifier(identifier) && are_indices(indices)
    })
}

fn is_identifier(text: &str) -> bool {
    let starts = |b: u8| b.is_ascii_alphabetic() || b == b'_' || b == b'$';
    text.bytes().next().is_some_and(starts)
        && text.bytes().all(|b| starts(b) || b.is_ascii_digit())
        && !RESERVED.split(' ').any(|word| word == text)
}

/// Nothing, or `[12]` any number of times.
fn are_indices(mut text: &str) -> bool {
    while !text.is_empty() {
        let Some((digits, rest)) = text.strip_prefix('[').and_then(|text| text.split_once(']'))
        else {
            return false;
        };
        if !(1..=INDEX_DIGITS_MAX).contains(&digits.len())
            || !digits.bytes().all(|b| b.is_ascii_digit())
        {
            return false;
        }
        text = rest;
    }
    true
}

/// True for media types whose documents are script as they are.
pub fn is_json(media_type: &str) -> bool {
    media_type.starts_with("application/json") || media_type.contains("+json")
}

/// Wraps a document: JSON as it is, anything else as one string (SF-46). The comment in front keeps
/// the name from being the first bytes of something else (Rosetta Flash); what could end a script
/// element, or a line in old ECMAScript, is escaped. `name` has passed [`is_callback`].
pub fn wrap(name: &str, media_type: &str, body: &[u8]) -> Vec<u8> {
    debug_assert!(is_callback(name), "the name was checked before");
    let text = String::from_utf8_lossy(body);
    let json = if is_json(media_type) {
        text
    } else {
        Cow::Owned(serde_json::Value::from(text.as_ref()).to_string())
    };
    let mut out = String::with_capacity(json.len() + json.len() / 8 + name.len() + 8);
    out.push_str("/**/");
    out.push_str(name);
    out.push('(');
    push_safe(&mut out, &json);
    out.push_str(");");
    out.into_bytes()
}

/// In JSON these characters stand in strings only, so an escape means the same.
fn push_safe(out: &mut String, json: &str) {
    let mut rest = json;
    while let Some(at) = rest.find(['<', '>', '&', '\u{2028}', '\u{2029}']) {
        out.push_str(&rest[..at]);
        let found = rest[at..].chars().next().unwrap_or_default();
        out.push_str(match found {
            '<' => "\\u003c",
            '>' => "\\u003e",
            '&' => "\\u0026",
            '\u{2028}' => "\\u2028",
            _ => "\\u2029",
        });
        rest = &rest[at + found.len_utf8()..];
    }
    out.push_str(rest);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn atom_travels_as_one_string() {
        // SF-46.
        let body = wrap(
            "cb",
            "application/atom+xml",
            b"<feed a=\"1\">&amp;\n</feed>",
        );
        assert_eq!(
            String::from_utf8(body).unwrap(),
            r#"/**/cb("\u003cfeed a=\"1\"\u003e\u0026amp;\n\u003c/feed\u003e");"#
        );
    }

    #[test]
    fn names_that_could_be_code_are_refused() {
        for name in [
            "", "cb()", "a b", "alert;x", "a[", "a[]", "a]", "a.this", "a[0]b", "[0]", "a..b", "é",
        ] {
            assert!(!is_callback(name), "{name:?}");
        }
        for name in ["$", "_a.b[0][1].c", "of"] {
            assert!(is_callback(name), "{name:?}");
        }
    }
}
