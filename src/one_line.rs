//! Texts of others on one line, for logs, lists and heads of messages; not how they are escaped.

/// A text of somebody else on one line, without characters that steer a terminal or are not seen,
/// cut after so many characters.
pub fn one_line(text: &str, chars_max: usize) -> String {
    let mut line = String::new();
    let mut chars = 0;
    // Looks at little more than is shown, however long the text is.
    let text = text.trim_end_matches(|c: char| c.is_whitespace() || steers(c));
    for c in text.chars().map(|c| if steers(c) { ' ' } else { c }) {
        if c.is_whitespace() && (line.is_empty() || line.ends_with(' ')) {
            continue;
        }
        if chars == chars_max {
            return line.trim_end().to_owned() + "\u{2026}";
        }
        line.push(if c.is_whitespace() { ' ' } else { c });
        chars += 1;
    }
    line
}

/// Controls, ends of lines, bidirectional controls, and what is invisible.
pub fn steers(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{AD}' | '\u{61C}' | '\u{180E}' | '\u{200B}'..='\u{200F}' | '\u{2028}'..='\u{202E}')
        || matches!(c, '\u{2060}'..='\u{206F}' | '\u{FEFF}' | '\u{FFF9}'..='\u{FFFB}' | '\u{E0000}'..='\u{E007F}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_one_line_without_what_steers_and_is_cut() {
        let check = |text: &str, expect: &str| assert_eq!(one_line(text, 8), expect, "{text:?}");
        check(" a \r\n b\u{202e}c\u{1b}[31m ", "a b c [3\u{2026}");
        check(&"x".repeat(1 << 20), "xxxxxxxx\u{2026}");
        check("\u{2066}\u{feff}\n", "");
    }
}
