//! Lines for a terminal: columns aligned by display width, texts cut to fit, and nothing that an
//! upstream wrote able to steer the terminal. Not what the lines say.

use std::fmt::Write as _;
use unicode_width::{UnicodeWidthChar as _, UnicodeWidthStr as _};

/// Columns when nobody says how wide the terminal is.
const WIDTH_USUAL: usize = 100;
/// Narrower than this, nothing is left of a title.
const WIDTH_MIN: usize = 60;
/// Wider than this, the eye loses the line.
const WIDTH_MAX: usize = 160;

/// Width of the terminal, in columns.
pub(in crate::cli) fn width() -> usize {
    let width =
        terminal_size::terminal_size().map_or(WIDTH_USUAL, |(width, _)| usize::from(width.0));
    width.clamp(WIDTH_MIN, WIDTH_MAX)
}

/// A text on one line that cannot steer a terminal: white space is one blank, control characters
/// and those that turn the direction of writing around are spelt out.
pub(in crate::cli) fn tame(text: &str) -> String {
    let mut tamed = String::with_capacity(text.len());
    for c in text.trim().chars() {
        match c {
            c if c.is_whitespace() => {
                if !tamed.ends_with(' ') {
                    tamed.push(' ');
                }
            }
            // The pictures of U+2400 and on stand for the control characters in their order.
            '\0'..='\u{1F}' => tamed.extend(char::from_u32(u32::from(c) + 0x2400)),
            '\u{7F}' => tamed.push('\u{2421}'),
            c if steers(c) => {
                write!(tamed, "{}", c.escape_unicode()).expect("a string takes everything")
            }
            c => tamed.push(c),
        }
    }
    tamed
}

/// C1 controls (of which U+009B opens an escape sequence), bidirectional controls, and what is
/// invisible.
fn steers(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{AD}' | '\u{61C}' | '\u{200B}' | '\u{200E}'..='\u{200F}' | '\u{202A}'..='\u{202E}')
        || matches!(c, '\u{2060}'..='\u{206F}' | '\u{FEFF}' | '\u{FFF9}'..='\u{FFFB}' | '\u{E0000}'..='\u{E007F}')
}

/// JSON that cannot steer a terminal either: serde_json escapes C0 controls, but no others. All of
/// them can only stand inside of strings.
pub(in crate::cli) fn tame_json(json: &str) -> String {
    if !json.contains(|c: char| c.is_control()) {
        return json.to_owned();
    }
    let mut tamed = String::with_capacity(json.len() + 16);
    for c in json.chars() {
        match c {
            '\n' => tamed.push(c),
            c if c.is_control() => {
                write!(tamed, "\\u{:04x}", u32::from(c)).expect("a string takes everything")
            }
            c => tamed.push(c),
        }
    }
    tamed
}

/// Which end of a text is dropped when it is too wide.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::cli) enum Keep {
    /// The start: titles.
    Start,
    /// The end: URLs, which differ there.
    End,
}

/// The text within so many columns.
pub(in crate::cli) fn cut(text: &str, columns: usize, keep: Keep) -> String {
    if text.width() <= columns {
        return text.to_owned();
    }
    let room = columns.saturating_sub(1);
    match keep {
        Keep::Start => format!(
            "{}…",
            &text[..fitting(text.char_indices(), room, |at, c| at + c.len_utf8())]
        ),
        Keep::End => {
            let start =
                text.len() - fitting(text.char_indices().rev(), room, |at, _| text.len() - at);
            // A mark that combines with the letter before it goes with that letter.
            format!(
                "…{}",
                text[start..].trim_start_matches(|c: char| c.width() == Some(0))
            )
        }
    }
}

/// Bytes of the characters that fit into so many columns; `used` is how many of them end after this
/// one.
fn fitting(
    characters: impl Iterator<Item = (usize, char)>,
    room: usize,
    used: impl Fn(usize, char) -> usize,
) -> usize {
    let (mut columns, mut bytes) = (0, 0);
    for (at, c) in characters {
        columns += c.width().unwrap_or(0);
        if columns > room {
            break;
        }
        bytes = used(at, c);
    }
    bytes
}

/// The text, and blanks up to so many columns.
pub(in crate::cli) fn pad(text: &str, columns: usize) -> String {
    format!("{text}{}", " ".repeat(columns.saturating_sub(text.width())))
}

/// Words on lines of at most so many columns; a word that is wider has a line of its own and stays
/// whole, so that a URL can be copied.
pub(in crate::cli) fn wrap(text: &str, columns: usize) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for word in text.split(' ') {
        match lines.last_mut() {
            Some(line) if line.width() + 1 + word.width() <= columns => {
                line.push(' ');
                line.push_str(word);
            }
            _ => lines.push(word.to_owned()),
        }
    }
    lines
}

/// A column of a table.
#[derive(Clone, Copy, Debug)]
pub(in crate::cli) struct Column {
    pub(in crate::cli) name: &'static str,
    /// True when its texts are set flush right, as numbers are.
    pub(in crate::cli) right: bool,
    /// Which end of its texts stays when there is not enough room, and by what weight it shares the
    /// room with others; `None` for a column that is never cut.
    pub(in crate::cli) keep: Option<(Keep, usize)>,
}

impl Column {
    /// A column of whole texts.
    pub(in crate::cli) const fn text(name: &'static str) -> Self {
        Self {
            name,
            right: false,
            keep: None,
        }
    }

    /// A column of numbers.
    pub(in crate::cli) const fn number(name: &'static str) -> Self {
        Self {
            right: true,
            ..Self::text(name)
        }
    }

    /// A column of texts of which one end stays, with its weight.
    pub(in crate::cli) const fn cut(name: &'static str, keep: Keep, weight: usize) -> Self {
        Self {
            keep: Some((keep, weight)),
            ..Self::text(name)
        }
    }
}

/// Columns between two columns of a table.
const GAP: usize = 2;

/// Columns that a column which may be cut keeps, however narrow the terminal is.
const CUT_MIN: usize = 12;

/// Rows below the names of their columns, within so many columns. A column without a text anywhere
/// is left out.
pub(in crate::cli) fn table(columns: &[Column], rows: &[Vec<String>], width: usize) -> Vec<String> {
    let widest = |at: usize| rows.iter().map(|row| row[at].width()).max().unwrap_or(0);
    let natural = columns
        .iter()
        .enumerate()
        .map(|(at, column)| (widest(at), column));
    let natural = natural.map(|(widest, column)| {
        if widest == 0 {
            0
        } else {
            widest.max(column.name.width())
        }
    });
    let widths = fitted(columns, natural.collect(), width);
    let line = |row: &[&str]| {
        let shown = (0..columns.len()).filter(|at| widths[*at] > 0).map(|at| {
            let text = columns[at].keep.map_or_else(
                || row[at].to_owned(),
                |(keep, _)| cut(row[at], widths[at], keep),
            );
            if columns[at].right {
                " ".repeat(widths[at].saturating_sub(text.width())) + &text
            } else {
                pad(&text, widths[at])
            }
        });
        let line = shown.collect::<Vec<_>>().join(&" ".repeat(GAP));
        cut(line.trim_end(), width, Keep::Start)
    };
    let names: Vec<&str> = columns.iter().map(|column| column.name).collect();
    let rows = rows
        .iter()
        .map(|row| line(&row.iter().map(String::as_str).collect::<Vec<_>>()));
    std::iter::once(line(&names)).chain(rows).collect()
}

/// Shares the room that the columns of fixed width leave among the others: what one of them does
/// not need is for those that need more.
fn fitted(columns: &[Column], mut widths: Vec<usize>, width: usize) -> Vec<usize> {
    let shown: Vec<usize> = (0..columns.len()).filter(|at| widths[*at] > 0).collect();
    let fixed: usize = shown
        .iter()
        .filter(|at| columns[**at].keep.is_none())
        .map(|at| widths[*at])
        .sum();
    let mut room = width.saturating_sub(fixed + GAP * shown.len().saturating_sub(1));
    let mut open: Vec<_> = shown
        .iter()
        .filter_map(|at| Some((*at, columns[*at].keep?.1)))
        .collect();
    open.sort_by_key(|(at, weight)| widths[*at] / weight);
    let mut weights: usize = open.iter().map(|(_, weight)| weight).sum();
    for (at, weight) in open {
        widths[at] = widths[at].min((room * weight / weights).max(CUT_MIN));
        room = room.saturating_sub(widths[at]);
        weights -= weight;
    }
    widths
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_can_steer_the_terminal() {
        let check = |text: &str, expect: &str| {
            assert_eq!(tame(text), expect);
            assert!(
                !tame(text).contains(|c: char| c.is_control() || steers(c)),
                "{text:?}"
            );
        };
        check("\u{1B}[31mred\u{7}", "␛[31mred␇");
        check("\u{9B}2J", "\\u{9b}2J");
        check(
            "a\u{202E}b\u{2066}c\u{200B}",
            "a\\u{202e}b\\u{2066}c\\u{200b}",
        );
        check(
            " two\r\n  lines\u{85}\u{2028} and\ttab\u{7F} ",
            "two lines and tab␡",
        );
        check(
            "family \u{1F469}\u{200D}\u{1F467} and é",
            "family \u{1F469}\u{200D}\u{1F467} and é",
        );
        assert_eq!(
            tame_json("{\"a\": \"\u{9B}2J\u{7F}é\"}\n"),
            "{\"a\": \"\\u009b2J\\u007fé\"}\n"
        );
    }

    #[test]
    fn texts_are_cut_by_what_they_take_on_the_screen() {
        assert_eq!(cut("short", 5, Keep::Start), "short");
        assert_eq!(cut("longer", 5, Keep::Start), "long…");
        assert_eq!(cut("http://e.org/2004/first", 8, Keep::End), "…4/first");
        assert_eq!(cut("日本語の題", 6, Keep::Start), "日本…");
        assert_eq!(cut("日本語の題", 5, Keep::End), "…の題");
        assert_eq!(
            cut("xxe\u{301}", 2, Keep::End),
            "xxe\u{301}"[2..].replace('e', "…e")
        );
        assert_eq!(cut("x", 0, Keep::Start), "…");
        for columns in 1..12 {
            for keep in [Keep::Start, Keep::End] {
                assert!(cut("ab日本\u{301}語cdé漢字", columns, keep).width() <= columns);
            }
        }
    }

    #[test]
    fn columns_line_up_and_empty_ones_are_left_out() {
        let column = |name, right, keep| Column { name, right, keep };
        let columns = [
            column("#", true, None),
            column("none", false, None),
            column("id", false, Some((Keep::End, 1))),
            column("n", true, None),
            column("title", false, Some((Keep::Start, 1))),
        ];
        let row = |cells: [&str; 5]| cells.map(String::from).to_vec();
        let rows = [
            row(["1", "", "tag:e.org,2004:1", "10", "日本"]),
            row([
                "10",
                "",
                "tag:e.org,2004:second",
                "9",
                "a long title, longer than its column",
            ]),
        ];
        let expect = [
            " #  id               n  title",
            " 1  …:e.org,2004:1  10  日本",
            "10  …g,2004:second   9  a long title,…",
        ];
        assert_eq!(table(&columns, &rows, 38), expect);
        let wide = table(&columns, &rows, 100);
        assert_eq!(
            wide[2],
            "10  tag:e.org,2004:second   9  a long title, longer than its column"
        );
        assert!(
            table(&columns, &rows, 20)
                .iter()
                .all(|line| line.width() <= 20)
        );
    }

    #[test]
    fn long_words_stay_whole() {
        assert_eq!(
            wrap("a bc http://e.org/ d", 6),
            ["a bc", "http://e.org/", "d"]
        );
    }
}
