//! Texts folded for comparing: without case, diacritics and markup; not which texts are compared.

use everfeed_adapters::{Text, TextKind, text::entities::unescape};
use icu_normalizer::{ComposingNormalizerBorrowed, DecomposingNormalizerBorrowed};
use memchr::memmem;

/// The words of several texts, each between two spaces, folded.
#[derive(Debug)]
pub(super) struct FoldedWords(String);

impl Default for FoldedWords {
    fn default() -> Self {
        Self(" ".to_owned())
    }
}

impl FoldedWords {
    /// Adds the words that somebody sees of a text. No phrase reaches from one text into the next.
    pub(super) fn add(&mut self, text: &Text) {
        match text.kind {
            TextKind::Plain => self.add_plain(&text.value),
            TextKind::Html | TextKind::Xhtml => self.add_plain(&seen(&text.value)),
            // Bytes are no words.
            TextKind::Base64 => {}
        }
    }

    /// Adds the words of a text without markup.
    pub(super) fn add_plain(&mut self, text: &str) {
        words_into(&mut self.0, text);
        self.0.push_str(TEXT_END);
    }

    /// Gives back the memory that it does not need.
    pub(super) fn shrink(&mut self) {
        self.0.shrink_to_fit();
    }

    /// Bytes of memory that it takes.
    pub(super) fn weight_bytes(&self) -> usize {
        self.0.len()
    }

    /// True when the words of a phrase stand in one of the texts, one behind the other. A word is
    /// met whole, but in scripts that write no spaces between words.
    pub(super) fn hold(&self, phrase: &str) -> bool {
        let open = |edge: Option<char>| if edge.is_some_and(runs_on) { "" } else { " " };
        let needle = format!(
            "{}{phrase}{}",
            open(phrase.chars().next()),
            open(phrase.chars().next_back())
        );
        memmem::find(self.0.as_bytes(), needle.as_bytes()).is_some()
    }
}

impl FoldedWords {
    /// Each word, as often as it stands in the texts.
    pub(super) fn each(&self) -> impl Iterator<Item = &str> {
        self.0.split([' ', '\n']).filter(|word| !word.is_empty())
    }
}

/// The end of each text: no word can hold it.
const TEXT_END: &str = "\n ";

/// The words of a text without markup, folded, with one space between two of them; empty when it
/// has none.
pub(super) fn phrase(text: &str) -> String {
    let mut words = " ".to_owned();
    words_into(&mut words, text);
    words.trim_matches(' ').to_owned()
}

/// A text without case and diacritics, and with one space wherever it has white space. Signs stay:
/// C++ is not C#.
pub(super) fn folded(text: &str) -> String {
    let mut folded = String::with_capacity(text.len());
    if text.is_ascii() {
        folded.push_str(&text.to_ascii_lowercase());
    } else {
        each_folded(text, |c| folded.push(c));
        folded = composed(folded);
    }
    // Last, because signs such as the acute accent decompose into a space and a mark.
    folded.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Adds the words of a text behind a space, each with a space behind it.
fn words_into(out: &mut String, text: &str) {
    out.reserve(text.len() + 1);
    if text.is_ascii() {
        for byte in text.bytes() {
            if byte.is_ascii_alphanumeric() {
                out.push(char::from(byte.to_ascii_lowercase()));
            } else {
                end_word(out);
            }
        }
        end_word(out);
        return;
    }
    let mut words = String::with_capacity(text.len());
    each_folded(text, |c| {
        if !is_of_word(c) {
            words.push(' ');
            return;
        }
        // A change of script ends a word, because some write no spaces between words.
        if words
            .chars()
            .next_back()
            .is_some_and(|last| last != ' ' && runs_on(last) != runs_on(c))
        {
            words.push(' ');
        }
        words.push(c);
    });
    for word in composed(words).split(' ').filter(|word| !word.is_empty()) {
        out.push_str(word);
        out.push(' ');
    }
}

fn end_word(out: &mut String) {
    if !out.ends_with(' ') {
        out.push(' ');
    }
}

/// Bytes by which the long characters of a text may make it longer than twice its length.
const EXPANSION_BYTES_MIN: usize = 4 << 10;

// Decides: How much longer does a text become when it is folded?
/// Hands over the characters of a text without case and diacritics, decomposed. Characters that are
/// written as whole words make a text longer up to a limit; beyond it, a space stands for each.
fn each_folded(text: &str, mut take: impl FnMut(char)) {
    let decomposed = DecomposingNormalizerBorrowed::new_nfkd();
    let mut left = text.len() + EXPANSION_BYTES_MIN;
    let bounded = text.chars().map(|c| {
        let expanded = expanded_bytes(c);
        match left.checked_sub(expanded) {
            _ if expanded == 0 => c,
            Some(less) => {
                left = less;
                c
            }
            None => ' ',
        }
    });
    for c in decomposed
        .normalize_iter(bounded)
        .filter(|c| !is_diacritic(*c))
    {
        for lower in c.to_lowercase().filter(|c| !is_diacritic(*c)) {
            match spelt_out(lower) {
                Some(letters) => letters.chars().for_each(&mut take),
                None => take(lower),
            }
        }
    }
}

/// Bytes of a character once it is decomposed, where these are more than four times its own; 0 for
/// all others.
const fn expanded_bytes(c: char) -> usize {
    match c {
        '\u{FDFA}' => 33,
        '\u{FDFB}' => 15,
        // Korean words in brackets.
        '\u{321D}' | '\u{321E}' | '\u{327C}' => 20,
        // Katakana words in a square.
        '\u{3300}'..='\u{3357}' => 18,
        _ => 0,
    }
}

/// Syllables of Korean and voiced kana are one character again, so that no part of one is met.
fn composed(text: String) -> String {
    match ComposingNormalizerBorrowed::new_nfc().normalize(&text) {
        std::borrow::Cow::Borrowed(_) => text,
        std::borrow::Cow::Owned(composed) => composed,
    }
}

/// Marks that readers leave out when they type: accents, and the points of Hebrew and Arabic. Those
/// of other scripts make other letters.
const fn is_diacritic(c: char) -> bool {
    matches!(c, '\u{300}'..='\u{36F}' | '\u{591}'..='\u{5BD}' | '\u{5BF}' | '\u{5C1}' | '\u{5C2}' | '\u{5C4}' | '\u{5C5}'
        | '\u{610}'..='\u{61A}' | '\u{640}' | '\u{64B}'..='\u{65F}' | '\u{670}' | '\u{1AB0}'..='\u{1AFF}'
        | '\u{1DC0}'..='\u{1DFF}' | '\u{20D0}'..='\u{20FF}' | '\u{FE00}'..='\u{FE0F}' | '\u{FE20}'..='\u{FE2F}'
        | '\u{AD}' | '\u{200B}'..='\u{200D}' | '\u{2060}' | '\u{FEFF}')
}

/// Letters that Unicode does not decompose, as they are typed where a keyboard lacks them.
const fn spelt_out(c: char) -> Option<&'static str> {
    Some(match c {
        'ß' => "ss",
        'æ' => "ae",
        'œ' => "oe",
        'ø' => "o",
        'đ' | 'ð' => "d",
        'ł' => "l",
        'þ' => "th",
        'ħ' => "h",
        'ı' => "i",
        'ς' => "σ",
        _ => return None,
    })
}

/// Letters and digits, and the vowel signs of scripts that have them.
fn is_of_word(c: char) -> bool {
    let is_sign = |c| {
        matches!(c, '\u{900}'..='\u{963}' | '\u{966}'..='\u{DF3}' | '\u{E31}'..='\u{E4E}' | '\u{EB1}'..='\u{ECD}'
            | '\u{F18}'..='\u{F84}' | '\u{1000}'..='\u{109F}' | '\u{17B4}'..='\u{17D3}' | '\u{3099}' | '\u{309A}')
    };
    c.is_alphanumeric() || is_sign(c)
}

/// True in scripts that write no spaces between words, or none before their particles.
pub(super) const fn runs_on(c: char) -> bool {
    matches!(c, '\u{E00}'..='\u{EFF}' | '\u{1000}'..='\u{11FF}' | '\u{1780}'..='\u{17FF}' | '\u{3005}'..='\u{3007}'
        | '\u{3040}'..='\u{30FF}' | '\u{3130}'..='\u{318F}' | '\u{31F0}'..='\u{31FF}' | '\u{3400}'..='\u{4DBF}'
        | '\u{4E00}'..='\u{9FFF}' | '\u{AC00}'..='\u{D7FF}' | '\u{F900}'..='\u{FAFF}' | '\u{20000}'..='\u{3FFFF}')
}

/// The text of an HTML fragment as it is seen: without tags, comments, scripts and styles;
/// references are resolved. Where an element breaks the line, a word ends.
fn seen(html: &str) -> String {
    let mut out = String::with_capacity(html.len());
    let mut rest = html;
    while let Some(at) = rest.find('<') {
        out.push_str(&unescape(&rest[..at]));
        rest = &rest[at..];
        rest = if rest.starts_with("<!--") {
            rest.split_once("-->").map_or("", |(_, behind)| behind)
        } else if rest[1..]
            .starts_with(|c: char| c.is_ascii_alphabetic() || matches!(c, '/' | '!' | '?'))
        {
            let name = tag_name(rest);
            let behind = rest.split_once('>').map_or("", |(_, behind)| behind);
            if !is_inline(&name) {
                out.push(' ');
            }
            if matches!(name.as_str(), "script" | "style" | "template") && !rest.starts_with("</") {
                behind_end(behind, &name)
            } else {
                behind
            }
        } else {
            out.push('<');
            &rest[1..]
        };
    }
    out.push_str(&unescape(rest));
    out
}

/// The name of the tag with which a text begins, in lower case, without a prefix.
fn tag_name(tag: &str) -> String {
    let name = tag.strip_prefix('<').unwrap_or(tag);
    let name = name.strip_prefix('/').unwrap_or(name);
    let end = name
        .find(|c: char| !(c.is_ascii_alphanumeric() || c == ':'))
        .unwrap_or(name.len());
    let name = name[..end].rsplit(':').next().unwrap_or_default();
    name.to_ascii_lowercase()
}

/// The text behind the end tag of an element whose content nobody sees.
fn behind_end<'a>(text: &'a str, name: &str) -> &'a str {
    let mut rest = text;
    while let Some(at) = rest.find("</") {
        rest = &rest[at..];
        if tag_name(rest) == name {
            return rest.split_once('>').map_or("", |(_, behind)| behind);
        }
        rest = &rest[2..];
    }
    ""
}

/// Elements inside of which a word may go on.
fn is_inline(name: &str) -> bool {
    const INLINE: [&str; 30] = [
        "a", "abbr", "acronym", "b", "bdi", "bdo", "big", "cite", "code", "data", "del", "dfn",
        "em", "font", "i", "ins", "kbd", "mark", "q", "s", "samp", "small", "span", "strike",
        "strong", "sub", "sup", "tt", "u", "wbr",
    ];
    INLINE.contains(&name)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(kind: TextKind, value: &str) -> FoldedWords {
        let mut words = FoldedWords::default();
        words.add(&Text {
            kind,
            value: value.to_owned(),
            ..Text::default()
        });
        words
    }

    #[test]
    fn case_and_diacritics_do_not_matter_and_letters_do() {
        let check = |text: &str, typed: &str, holds: bool| {
            assert_eq!(
                words(TextKind::Plain, text).hold(&phrase(typed)),
                holds,
                "{text} {typed}"
            );
        };
        check("Crème brûlée à la carte", "CREME BRULEE", true);
        check("Straße nach Łódź", "strasse nach lodz", true);
        check("ΟΔΟΣ", "οδος", true);
        check("İstanbul ve Isparta", "istanbul", true);
        check("ｆｕｌｌ width ﬁne", "full width fine", true);
        check("rust and trust", "rust", true);
        check("trust", "rust", false);
        check("rusty", "rust", false);
        check("don't", "don’t", true);
        check("مُحَمَّد", "محمد", true);
        check("שָׁלוֹם", "שלום", true);
        check("हिन्दी भाषा", "हिन्दी", true);
        check("हिन्दी भाषा", "हिन", false);
    }

    #[test]
    fn scripts_without_spaces_are_met_anywhere() {
        let check = |text: &str, typed: &str, holds: bool| {
            assert_eq!(
                words(TextKind::Plain, text).hold(&phrase(typed)),
                holds,
                "{text} {typed}"
            );
        };
        check("猫が好きです", "猫", true);
        check("猫が好きです", "好き", true);
        check("猫が好きです", "きき", false);
        check("ガラス", "カラス", false);
        check("가방을 샀다", "가방", true);
        check("각방", "가방", false);
        check("東京tower", "東京 tower", true);
        check("東京 Tower", "東京TOWER", true);
        check("ภาษาไทย", "ไทย", true);
    }

    #[test]
    fn markup_is_no_word_and_a_block_ends_one() {
        let check = |html: &str, typed: &str, holds: bool| {
            assert_eq!(
                words(TextKind::Html, html).hold(&phrase(typed)),
                holds,
                "{html} {typed}"
            );
        };
        check("<p>one</p><p>two</p>", "one two", true);
        check("<p>one</p><p>two</p>", "onetwo", false);
        check("<b>W</b>ord", "word", true);
        check("a<script>var hidden = '<b>'</script>b", "hidden", false);
        check("a<script>x</SCRIPT >behind", "behind", true);
        check("caf&eacute; &amp; bar", "cafe bar", true);
        check("1 < 2 words", "words", true);
        check("<img alt='inside'>", "inside", false);
        check("<!-- hidden --> shown", "hidden", false);
        check("<a href='x", "x", false);
    }

    #[test]
    fn a_text_of_long_characters_is_folded_in_a_bounded_length() {
        for (long, word) in [
            ("\u{FDFA}", "صلى الله عليه وسلم"),
            ("\u{FDFB}", "جل جلاله"),
            ("\u{3315}", "キログラム"),
        ] {
            let flood = long.repeat(100_000);
            let folded = words(TextKind::Plain, &format!("{long} {flood} behind it"));
            assert!(folded.weight_bytes() < 3 * flood.len(), "{long}");
            assert!(
                folded.hold(&phrase("behind it")) && folded.hold(&phrase(word)),
                "{long}"
            );
            // A long book with many of them is folded whole.
            let book = format!("one two three four five six seven {long} ").repeat(2_000);
            let folded = words(TextKind::Plain, &book);
            let all = folded.0.matches(&phrase(word)).count();
            assert_eq!(all, 2_000, "{long}");
        }
    }

    #[test]
    fn no_other_character_becomes_more_than_four_times_as_long() {
        for c in ('\u{0}'..=char::MAX).filter(|c| expanded_bytes(*c) == 0) {
            let mut bytes = 0;
            each_folded(c.encode_utf8(&mut [0; 4]), |c| bytes += c.len_utf8());
            assert!(bytes <= 4 * c.len_utf8(), "{c:?}: {bytes}");
        }
        for c in ('\u{0}'..=char::MAX).filter(|c| expanded_bytes(*c) > 0) {
            let mut bytes = 0;
            each_folded(c.encode_utf8(&mut [0; 4]), |c| bytes += c.len_utf8());
            assert!(bytes <= expanded_bytes(c), "{c:?}: {bytes}");
        }
    }

    #[test]
    fn texts_that_are_made_to_be_slow_are_folded_in_linear_time() {
        // Twice the length must not take four times the work, which is more than a minute here.
        for part in [
            "\u{301}",
            "\u{316}\u{301}",
            "\u{1F1E6}",
            "\u{93C}\u{94D}",
            "か\u{3099}",
            "\u{FB03}",
            "\u{FDFA}",
            "<",
            "</",
            "<b",
            "<!--",
            "&",
            "&amp",
            "<script>",
            "<script></",
            "<a:",
            "</a",
            ">",
        ] {
            let flood = part.repeat(300_000 / part.len());
            for kind in [TextKind::Plain, TextKind::Html] {
                let folded = words(kind, &flood);
                assert!(folded.weight_bytes() < 1_600_000, "{part:?}");
            }
            let hidden = words(TextKind::Html, &format!("<script>{flood}"));
            assert!(hidden.weight_bytes() < 1_600_000, "{part:?}");
        }
    }

    #[test]
    fn a_phrase_does_not_reach_into_the_next_text() {
        let mut both = words(TextKind::Plain, "the end");
        both.add_plain("begin here");
        assert!(both.hold("begin"));
        assert!(!both.hold("end begin"));
    }

    #[test]
    fn signs_of_a_folded_line_stay() {
        assert_eq!(folded("  C++ \u{a0} Ünder\tthe "), "c++ under the");
        assert_ne!(folded("C#"), folded("C++"));
    }
}
