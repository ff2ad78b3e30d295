//! The text that formats are written in: characters, references, dates, URLs and markup; nothing of
//! feeds.

pub(crate) mod base64;
pub mod date;
pub(crate) mod doctype;
pub mod encoding;
pub mod entities;
pub(crate) mod html;
pub(crate) mod json;
pub mod markup;
pub(crate) mod references;
#[cfg(feature = "sanitise")]
mod sanitise;
pub mod session;
pub mod uri;

#[cfg(feature = "sanitise")]
pub use sanitise::sanitise;

use std::borrow::Cow;

/// XML white space (XML 1.0 section 2.3): the only characters that trimming an id may remove.
pub fn trim(text: &str) -> &str {
    text.trim_matches([' ', '\t', '\r', '\n'])
}

/// The trimmed text, unless nothing is left of it.
pub fn present(text: &str) -> Option<String> {
    let trimmed = trim(text);
    (!trimmed.is_empty()).then(|| trimmed.to_owned())
}

/// True for one of the words, which blanks part, in whatever case.
pub(crate) fn is_one_of(text: &str, words: &str) -> bool {
    words.split(' ').any(|word| word.eq_ignore_ascii_case(text))
}

/// The text as it stands, unless it is blank: white space around a body is not ours to take away.
pub fn visible<T: AsRef<str>>(text: T) -> Option<T> {
    (!trim(text.as_ref()).is_empty()).then_some(text)
}

/// Without the characters that XML 1.0 cannot hold, not even as a reference (LEGACY A-15): C0
/// controls except tab, line feed and carriage return, and the two non-characters of the basic
/// plane. Every string that is kept went through here.
pub fn clean(text: &str) -> Cow<'_, str> {
    if !has_illegal(text) {
        return Cow::Borrowed(text);
    }
    Cow::Owned(text.chars().filter(|&c| is_legal(c)).collect())
}

/// True for a text with an illegal character. It looks at bytes: most texts are long, and nearly
/// none has one.
fn has_illegal(text: &str) -> bool {
    let bytes = text.as_bytes();
    // Without a way out, so that many bytes are compared at once.
    let has_control = bytes.iter().fold(false, |found, &byte| {
        found | (byte < b' ') & (byte != b'\t') & (byte != b'\n') & (byte != b'\r')
    });
    // U+FFFE and U+FFFF begin with this byte, as much else does.
    has_control
        || memchr::memchr_iter(0xEF, bytes)
            .any(|at| text[at..].starts_with(['\u{FFFE}', '\u{FFFF}']))
}

/// True for a character of XML 1.0 (section 2.2, `Char`).
pub fn is_legal(c: char) -> bool {
    !matches!(c, '\0'..='\u{8}' | '\u{B}' | '\u{C}' | '\u{E}'..='\u{1F}' | '\u{FFFE}' | '\u{FFFF}')
}

impl crate::Text {
    /// Without white space around it, as titles are kept.
    pub fn trimmed(self) -> Self {
        let trimmed = trim(&self.value);
        if trimmed.len() == self.value.len() {
            return self;
        }
        Self {
            value: trimmed.to_owned(),
            ..self
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // LEGACY A-15.
    #[test]
    fn characters_illegal_in_xml_are_stripped_and_the_rest_is_kept() {
        assert_eq!(
            clean("a\u{0}b\u{8}c\u{B}\u{1F}\u{FFFE}d\t\r\n\u{7F}\u{85}\u{10FFFF}"),
            "abcd\t\r\n\u{7F}\u{85}\u{10FFFF}"
        );
        assert!(matches!(clean("nothing to do"), Cow::Borrowed(_)));
        for c in ('\0'..='\u{300}').chain('\u{F000}'..='\u{10010}') {
            let alone = format!("é{c}\u{FF21}");
            assert_eq!(clean(&alone).contains(c), is_legal(c), "{c:?}");
        }
    }

    #[test]
    fn only_xml_white_space_is_trimmed() {
        assert_eq!(trim(" \t\r\n\u{A0}x\u{A0} \n"), "\u{A0}x\u{A0}");
        assert_eq!(present(" \n"), None);
    }
}
