//! Signs of entries in a text of which none could be cut, so that a broken document is not taken
//! for an empty feed.

use crate::text::markup::split;

/// From how many characters in a row on that could not be decoded a text was read in the wrong
/// encoding.
const UNDECODED_MIN: usize = 16;

/// True when something that looks like the tag of an entry stands outside of sound comments and
/// CDATA sections.
pub(super) fn hold_entry(text: &str) -> bool {
    let mut rest = text;
    while let Some(at) = memchr::memchr(b'<', rest.as_bytes()) {
        rest = &rest[at..];
        let length =
            sound_length(rest, "<!--", "-->").or_else(|| sound_length(rest, "<![CDATA[", "]]>"));
        if length.is_none() && is_entry_tag(&rest[1..]) {
            return true;
        }
        rest = &rest[length.unwrap_or(1)..];
    }
    is_shifted(text)
}

/// The length of what begins and ends so, unless another of its kind begins inside: then its end is
/// that one's.
fn sound_length(text: &str, opening: &str, closing: &str) -> Option<usize> {
    let inside = text.strip_prefix(opening)?;
    // Looked for up to the next opening only, so that a flood of them costs no more than their
    // length.
    let end = memchr::memmem::find(inside.as_bytes(), opening.as_bytes()).unwrap_or(inside.len());
    let closing_at = memchr::memmem::find(&inside.as_bytes()[..end], closing.as_bytes())?;
    Some(opening.len() + closing_at + closing.len())
}

/// True when an entry's start or end tag begins behind this `<`, whatever its prefix and case.
fn is_entry_tag(tag: &str) -> bool {
    let name = tag.strip_prefix('/').unwrap_or(tag);
    let is_part = |c: char| c.is_alphanumeric() || matches!(c, ':' | '_' | '-' | '.');
    let (_, local) = split(name.split(|c| !is_part(c)).next().unwrap_or_default());
    local.eq_ignore_ascii_case("item") || local.eq_ignore_ascii_case("entry")
}

/// True for UTF-16 or UTF-32 in which one stray byte moved all that follows: the bytes of each
/// ASCII character are then swapped, or those of all characters are none.
fn is_shifted(text: &str) -> bool {
    let mut undecoded = 0;
    for (at, c) in text.char_indices() {
        undecoded = if c == '\u{FFFD}' { undecoded + 1 } else { 0 };
        if undecoded >= UNDECODED_MIN {
            return true;
        }
        // A swapped `<`.
        if c == '\u{3C00}' {
            let swapped = text[at..].chars().skip(1).map_while(|c| {
                let code = u32::from(c);
                char::from_u32(code >> 8).filter(|c| code & 0xFF == 0 && c.is_ascii())
            });
            if is_entry_tag(&swapped.take("/entry>".len()).collect::<String>()) {
                return true;
            }
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tags_of_entries_are_signs_unless_they_stand_in_something_sound() {
        for text in ["a</item>", "<x:ITEM>", "<entry/>", "<!-- <item>"] {
            assert!(hold_entry(text), "{text}");
        }
        assert!(hold_entry("<a><![CDATA[t><item><![CDATA[x]]></item>"));
        for text in [
            "",
            "<items/>",
            "<itemize>",
            "<entry-x>",
            "<!-- <item/> -->",
            "<!-- <!-- <item> -->",
            "<![CDATA[<item>]]>",
            "a < item",
        ] {
            assert!(!hold_entry(text), "{text}");
        }
    }

    #[test]
    fn shifted_characters_are_signs() {
        let swapped = |text: &str| {
            text.chars()
                .filter_map(|c| char::from_u32(u32::from(c) << 8))
                .collect::<String>()
        };
        assert!(hold_entry(&swapped("<rss><item>")));
        assert!(!hold_entry(&swapped("<rss></rss>")));
        assert!(hold_entry(&"\u{FFFD}".repeat(UNDECODED_MIN)));
        assert!(!hold_entry("a\u{FFFD}\u{FFFD}b"));
    }

    #[test]
    fn floods_take_linear_time() {
        for flood in ["<!--", "<![CDATA[", "<!-- >", "<![CDATA[ ]"] {
            assert!(!hold_entry(&flood.repeat(100_000)));
        }
    }
}
