//! Numbers that differ between two forms of a text: which of them measure, tell a time or count; not
//! what becomes of an edit.

use std::ops::Range;

/// Nature of a number that is another one now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum NumberMove {
    /// A price, a score, a measure: news.
    Figure,
    /// A number that ends the name of a post ("Part 2").
    Name,
    /// A time of day or a date.
    Moment,
    /// A number without a unit that rose, as counts of what readers do.
    Rise,
    /// A number without a unit that fell, as counts hardly ever do.
    Fall,
}

/// Text in which a number stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum NumberContext {
    /// A title: a number behind its last word is a part of the name ("Part 2").
    Title,
    /// A text with markup.
    Text,
    /// Markup of other vocabularies, in which only a unit or a fraction tells a figure.
    Foreign,
}

/// Characters that join two numbers to one figure.
const JOINTS: [&str; 7] = [".", ",", ":", "-", "–", "−", "/"];

/// Words beside a number that say what it measures. So do three capitals (`CHF`), as codes of
/// currencies are, and signs of currencies.
const UNITS: [&str; 11] = [
    "kr", "zł", "Kč", "Ft", "Rs", "Euro", "euro", "euros", "pound", "yen", "dollars",
];

/// Tokens of a figure on either side of what moved, and tokens between it and its unit, at most.
const FIGURE_TOKENS_MAX: usize = 8;

/// Tokens of one tag at most. A bracket that stands farther away is none of a tag.
const TAG_TOKENS_MAX: usize = 200;

/// Digits of a number that counts at most: longer ones name something.
const COUNT_DIGITS_MAX: usize = 9;

// Decides: Is a number that moved a figure, a moment or a count?
/// Nature of what moved between two forms of a text; `None` unless nothing but a number did.
pub(super) fn number_move(
    old: &TokenRange<'_>,
    new: &TokenRange<'_>,
    place: NumberContext,
) -> Option<NumberMove> {
    let mut moved = old.inside().iter().chain(new.inside());
    let is_of_number = |token: &&str| is_numeric(token) || is_sign(token);
    if !moved.all(is_of_number) || old.is_in_tag() || new.is_in_tag() {
        return None;
    }
    let (before, after) = (Number::around(old)?, Number::around(new)?);
    if place == NumberContext::Foreign {
        let is_figure = !after.is_moment() && (after.has_unit() || after.is_fraction());
        return is_figure.then_some(NumberMove::Figure);
    }
    if before.is_moment() && after.is_moment() {
        return Some(NumberMove::Moment);
    }
    if before.is_figure() || after.is_figure() {
        return Some(NumberMove::Figure);
    }
    if place == NumberContext::Title && after.ends_a_name() {
        return Some(NumberMove::Name);
    }
    let (was, is) = (before.value()?, after.value()?);
    if is >= was || after.is_bracketed() {
        Some(NumberMove::Rise)
    } else {
        Some(NumberMove::Fall)
    }
}

/// Some tokens of a text.
pub(super) struct TokenRange<'a> {
    /// All tokens of the text.
    pub(super) tokens: &'a [&'a str],
    /// Place of these among them.
    pub(super) place: Range<usize>,
}

impl<'a> TokenRange<'a> {
    pub(super) fn inside(&self) -> &'a [&'a str] {
        &self.tokens[self.place.clone()]
    }

    /// The whole number of which these tokens are a part.
    pub(super) fn whole_number(self) -> Self {
        Number::around(&self).map_or(self, |number| number.0)
    }

    /// True in a tag: numbers there are no text.
    pub(super) fn is_in_tag(&self) -> bool {
        let before = self.tokens[..self.place.start].iter().rev();
        before
            .take(TAG_TOKENS_MAX)
            .copied()
            .find(|token| matches!(*token, "<" | ">"))
            .is_some_and(|bracket| bracket == "<")
    }
}

pub(super) fn is_number(token: &str) -> bool {
    !token.is_empty() && token.bytes().all(|byte| byte.is_ascii_digit())
}

/// A number among the tokens around it.
struct Number<'a>(TokenRange<'a>);

impl<'a> Number<'a> {
    /// The whole number of which these tokens moved: digits and what joins them.
    fn around(moved: &TokenRange<'a>) -> Option<Self> {
        let TokenRange {
            tokens,
            place: moved,
        } = moved;
        let is_part = |token: &&&str| is_numeric(token) || JOINTS.contains(*token);
        let before = tokens[..moved.start].iter().rev().take(FIGURE_TOKENS_MAX);
        let after = tokens[moved.end..].iter().take(FIGURE_TOKENS_MAX);
        let start = moved.start - before.take_while(is_part).count();
        let end = moved.end + after.take_while(is_part).count();
        let of_it = &tokens[start..end];
        let first = of_it.iter().position(|token| is_numeric(token))?;
        let last = of_it.iter().rposition(|token| is_numeric(token))?;
        let place = start + first..start + last + 1;
        Some(Self(TokenRange { tokens, place }))
    }

    fn parts(&self) -> &'a [&'a str] {
        self.0.inside()
    }

    /// A price, a score, a measure. Three digits behind one point or comma are thousands of a count,
    /// and so are those of "1.2K".
    fn is_figure(&self) -> bool {
        let is_count = self.thousands().is_some() || self.rounded().is_some();
        let is_joined = self.parts().len() > 1 && !is_count;
        is_joined || self.has_unit()
    }

    /// Digits and at most three behind a point.
    fn is_fraction(&self) -> bool {
        matches!(self.parts(), [_, "." | ",", behind] if behind.len() < 3)
    }

    fn has_unit(&self) -> bool {
        let is_amount = |token: &&str| !is_number(token) && is_numeric(token) && !is_rounded(token);
        self.parts().iter().any(is_amount)
            || self.word_before().is_some_and(is_unit)
            || self.word_after().is_some_and(is_unit)
    }

    /// A time of day, or a date with its year.
    fn is_moment(&self) -> bool {
        let parts = self.parts();
        let below = |token: &str, end: u32| token.parse().is_ok_and(|number: u32| number < end);
        let is_time = |row: &[&str]| {
            row[1] == ":" && row[2].len() == 2 && below(row[0], 24) && below(row[2], 60)
        };
        let is_year =
            |token: &&str| token.len() == 4 && (token.starts_with("19") || token.starts_with("20"));
        parts.windows(3).any(is_time) || (parts.len() >= 5 && parts.iter().any(is_year))
    }

    /// True behind the last word of a title, or the last one before a sign.
    fn ends_a_name(&self) -> bool {
        let is_word = |token: &&str| token.starts_with(char::is_alphanumeric);
        let TokenRange { tokens, place } = &self.0;
        let before = place.start.checked_sub(1).map(|at| tokens[at]);
        let after = tokens.get(place.end);
        before.as_ref().is_some_and(is_word) && !after.is_some_and(is_word)
    }

    /// True in brackets, alone or with words beside it, as counts are shown.
    fn is_bracketed(&self) -> bool {
        let is = |token: Option<&str>, signs: [&str; 2]| {
            token.is_some_and(|token| signs.contains(&token))
        };
        is(self.before().next(), ["(", "["]) || is(self.after().next(), [")", "]"])
    }

    fn value(&self) -> Option<u64> {
        if let Some(rounded) = self.rounded() {
            return Some(rounded);
        }
        let digits = self.thousands().unwrap_or_else(|| self.parts().concat());
        (digits.len() <= COUNT_DIGITS_MAX).then(|| digits.parse().ok())?
    }

    /// A count that is rounded to thousands or millions, and one digit behind the point.
    fn rounded(&self) -> Option<u64> {
        let (whole, tenths) = match self.parts() {
            [last] => (*last, "0"),
            [whole, "." | ",", last] => (*whole, *last),
            _ => return None,
        };
        let last = *self.parts().last()?;
        let digits = |token: &str| {
            token
                .trim_end_matches(char::is_alphabetic)
                .parse::<u64>()
                .ok()
        };
        let tens = if last.ends_with(['k', 'K']) {
            100
        } else {
            100_000
        };
        let value = digits(whole)?
            .checked_mul(10)?
            .checked_add(digits(tenths)?)?;
        (is_rounded(last) && digits(tenths)? < 10).then(|| value.checked_mul(tens))?
    }

    fn thousands(&self) -> Option<String> {
        match self.parts() {
            [first, "." | ",", behind] if first.len() <= 3 && behind.len() == 3 => {
                Some(format!("{first}{behind}"))
            }
            _ => None,
        }
    }

    fn word_before(&self) -> Option<&'a str> {
        let is_between = |token: &&str| ["&", ";", "nbsp", ".", ":", "+", "-"].contains(token);
        let mut before = self.before().take(FIGURE_TOKENS_MAX);
        before.find(|token| !is_between(token))
    }

    fn word_after(&self) -> Option<&'a str> {
        let mut after = self.after().take(FIGURE_TOKENS_MAX);
        after.find(|token| !["&", ";", "nbsp"].contains(token))
    }

    /// The tokens before it, the nearest first, without tags.
    fn before(&self) -> impl Iterator<Item = &'a str> {
        let tokens = self.0.tokens[..self.0.place.start].iter().rev();
        without_tags(tokens, ">", "<")
    }

    /// The tokens behind it, without tags.
    fn after(&self) -> impl Iterator<Item = &'a str> {
        let tokens = self.0.tokens[self.0.place.end..].iter();
        without_tags(tokens, "<", ">")
    }
}

fn without_tags<'a>(
    tokens: impl Iterator<Item = &'a &'a str>,
    opens: &'static str,
    closes: &'static str,
) -> impl Iterator<Item = &'a str> {
    let mut is_in_tag = false;
    let visible = move |token: &&str| {
        let is_visible = !is_in_tag && *token != opens;
        if *token == opens {
            is_in_tag = true;
        } else if *token == closes {
            is_in_tag = false;
        }
        is_visible
    };
    tokens.copied().take(TAG_TOKENS_MAX).filter(visible)
}

/// True of one that ends a count of thousands or millions (`12K`).
fn is_rounded(token: &str) -> bool {
    token
        .strip_suffix(['k', 'K', 'm', 'M'])
        .is_some_and(is_number)
}

/// True of digits, alone or with a unit written to them (`45EUR`).
fn is_numeric(token: &str) -> bool {
    if is_number(token) || is_rounded(token) {
        return true;
    }
    let digits = token.trim_matches(char::is_alphabetic);
    is_number(digits)
        && (token.strip_prefix(digits).or(token.strip_suffix(digits))).is_some_and(is_unit)
}

/// True of what joins numbers or stands before them. Brackets of tags are none.
fn is_sign(token: &str) -> bool {
    JOINTS.contains(&token) || token == "+"
}

fn is_unit(word: &str) -> bool {
    let is_code = word.len() == 3 && word.bytes().all(|byte| byte.is_ascii_uppercase());
    let is_sign =
        |sign| matches!(sign, '$' | '%' | '°' | '¢'..='¥' | '฿' | '\u{20a0}'..='\u{20cf}');
    is_code || UNITS.contains(&word) || (!word.is_empty() && word.chars().all(is_sign))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(before: &[&str], old: &str, new: &str, after: &[&str], expect: Option<NumberMove>) {
        let list = |number| [before, &[number], after].concat();
        let (old, new) = (list(old), list(new));
        let of = |tokens| TokenRange {
            tokens,
            place: before.len()..before.len() + 1,
        };
        let found = number_move(&of(&old), &of(&new), NumberContext::Text);
        assert_eq!(found, expect, "{old:?} {new:?}");
    }

    #[test]
    fn units_joints_and_brackets_tell_what_a_number_is() {
        use NumberMove::*;
        for (before, after) in [
            (&["now", "$"][..], &["only"][..]),
            (&["now"], &["<", "/", "b", ">", "EUR"]),
            (&["CHF", "&", "nbsp", ";"], &[]),
            (&["&", "pound", ";"], &["a"]),
            (&["for"], &[".", "99"]),
            (&["stands", "at", "2", "-"], &["now"]),
        ] {
            check(before, "12", "31", after, Some(Figure));
        }
        check(&["only"], "12EUR", "31EUR", &["today"], Some(Figure));
        check(&["at", "14", ":"], "05", "10", &["by"], Some(Moment));
        check(&["26", ".", "11", "."], "2026", "2027", &[], Some(Moment));
        check(&["rain"], "12", "13", &["comments"], Some(Rise));
        check(&["rain", "1", ","], "234", "240", &["views"], Some(Rise));
        check(&["rain", "("], "13", "12", &["comments"], Some(Rise));
        check(&["Price", ":"], "13", "12", &[], Some(Fall));
        check(&["rain", "1", "."], "2K", "3K", &["claps"], Some(Rise));
        check(&["rain"], "999", "1K", &["claps"], Some(Rise));
        check(&["rain", "1", "."], "3M", "2M", &["claps"], Some(Fall));
        check(&["only", "$", "1", "."], "2K", "3K", &[], Some(Figure));
        check(&["id"], "1234567890", "1234567891", &[], None);
        check(&["<", "img", "v", "="], "12", "13", &[">"], None);
        check(&["ten"], "12", "twelve", &[], None);
    }
}
