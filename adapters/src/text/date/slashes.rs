//! Dates with slashes, whose year comes last: which number is the day and which the month. Other
//! forms say it themselves.

use chrono::NaiveDate;

use super::{civil, number, two_digit_year};

/// Order of day and month in the dates of one document.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SlashOrder {
    /// `12/25/2006`.
    MonthFirst,
    /// `25/12/2006`.
    DayFirst,
}

/// `25/12/2006`, `1/2/06`. A date that can be read both ways needs an order.
pub(super) fn date(word: &str, order: Option<SlashOrder>) -> Option<NaiveDate> {
    let (first, second, year) = numbers(word)?;
    let order = if first == second {
        Some(SlashOrder::DayFirst)
    } else {
        told(first, second).or(order)
    };
    match order? {
        SlashOrder::MonthFirst => civil(year, first, second),
        SlashOrder::DayFirst => civil(year, second, first),
    }
}

// Decides: Is `01/02/2006` in January?
/// The order in which some markup writes its dates, by those that can be read in one way only.
/// `None` when there are none, or when they contradict each other.
pub(crate) fn order_of<'m>(markup: impl Iterator<Item = &'m str>) -> Option<SlashOrder> {
    let mut orders = markup
        .flat_map(dates)
        .filter_map(|(first, second)| told(first, second));
    let order = orders.next()?;
    orders.all(|other| other == order).then_some(order)
}

/// True for markup with such a date.
pub(crate) fn holds_slashes(markup: &str) -> bool {
    dates(markup).next().is_some()
}

/// The order that two numbers tell by themselves.
fn told(first: u32, second: u32) -> Option<SlashOrder> {
    match (first, second) {
        (13..=31, 1..=12) => Some(SlashOrder::DayFirst),
        (1..=12, 13..=31) => Some(SlashOrder::MonthFirst),
        _ => None,
    }
}

fn numbers(word: &str) -> Option<(u32, u32, i32)> {
    let mut parts = word.split('/');
    let (first, second) = (number(parts.next()?, 1..=2)?, number(parts.next()?, 1..=2)?);
    let year = parts.next().filter(|_| parts.next().is_none())?;
    let year = match year.len() {
        2 => two_digit_year(number(year, 2..=2)?),
        _ => number(year, 4..=4)?.cast_signed(),
    };
    Some((first, second, year))
}

/// Limit of the words in front of a date: a weekday.
const WORDS_BEFORE_MAX: usize = 1;

/// Length of the longest date with slashes, `25/12/2006`, bytes.
const WORD_BYTES_MAX: usize = 10;

/// Length of the markup in front of a date, and in front of the end of its tag, that is looked at,
/// bytes: so that markup of nothing but such ends costs no more than its length.
const BEFORE_BYTES_MAX: usize = 256;

/// The first two numbers of the dates with slashes that elements with the name of a date hold.
fn dates(markup: &str) -> impl Iterator<Item = (u32, u32)> + '_ {
    memchr::memchr_iter(b'/', markup.as_bytes()).filter_map(|slash| date_around(markup, slash))
}

/// The first two numbers of the date whose first slash stands at this place, if it is one. Nearly
/// every slash of a feed is told from one by the two bytes beside it.
fn date_around(markup: &str, slash: usize) -> Option<(u32, u32)> {
    let bytes = markup.as_bytes();
    let is_digit = |at: usize| bytes.get(at).is_some_and(u8::is_ascii_digit);
    let before = slash
        .checked_sub(1)
        .filter(|before| is_digit(*before) && is_digit(slash + 1))?;
    let start = before
        .checked_sub(1)
        .filter(|start| is_digit(*start))
        .unwrap_or(before);
    // Of a run of digits and slashes that is no date only its beginning is looked at: it may be as
    // long as the document.
    let is_of_word = |b: &&u8| b.is_ascii_digit() || **b == b'/';
    let length = bytes[start..]
        .iter()
        .take(WORD_BYTES_MAX + 1)
        .take_while(is_of_word)
        .count();
    let word = &markup[start..start + length];
    let (first, second, _) = numbers(word)?;
    let is_end = |next: &u8| {
        matches!(next, b'<' | b']' | b',') || next.is_ascii_whitespace() || !next.is_ascii()
    };
    bytes
        .get(start + word.len())
        .is_none_or(is_end)
        .then_some(())?;

    let end = last_before(bytes, b'>', start)?;
    let lead = markup[end + 1..start]
        .trim_start()
        .trim_start_matches("<![CDATA[");
    let begins_word = lead.is_empty() || lead.ends_with(char::is_whitespace);
    let is_lead =
        begins_word && !lead.contains('<') && lead.split_whitespace().count() <= WORDS_BEFORE_MAX;
    let name = markup[last_before(bytes, b'<', end)? + 1..end]
        .split(char::is_whitespace)
        .next()?;
    (is_lead && is_date(name)).then_some((first, second))
}

/// The last such byte in front of a place, not too far from it.
fn last_before(bytes: &[u8], byte: u8, place: usize) -> Option<usize> {
    let from = place.saturating_sub(BEFORE_BYTES_MAX);
    memchr::memrchr(byte, &bytes[from..place]).map(|at| from + at)
}

/// True for the names of elements that hold dates in any of the formats and vocabularies.
fn is_date(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    let local = name.rsplit(':').next().unwrap_or_default();
    local.contains("date")
        || ["published", "issued", "created", "modified", "available"].contains(&local)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::text::date::parse_in;

    #[test]
    fn a_date_that_can_be_read_in_one_way_needs_no_other() {
        let day = |raw: &str, order| parse_in(raw, order).map(|us| us / 86_400_000_000);
        let christmas = Some(13_507);
        assert_eq!(day("25/12/2006", None), christmas);
        assert_eq!(day("12/25/06", None), christmas);
        assert_eq!(
            day("Mon, 12/25/2006 11:59 PM EST", Some(SlashOrder::DayFirst)),
            christmas.map(|day| day + 1)
        );
        assert_eq!(day("01/02/2006", None), None);
        assert_eq!(
            day("01/02/2006 10:00:00", Some(SlashOrder::MonthFirst)),
            Some(13_150)
        );
        assert_eq!(day("01/02/2006", Some(SlashOrder::DayFirst)), Some(13_180));
        assert_eq!(day("01/01/2006", None), Some(13_149));
        assert_eq!(day("32/12/2006", None), None);
        assert_eq!(day("1/2/3/2006", Some(SlashOrder::DayFirst)), None);
    }

    #[test]
    fn the_other_dates_of_a_document_tell_the_order() {
        let order = |markup: &[&str]| order_of(markup.iter().copied());
        let (ambiguous, american) = (
            "<pubDate>01/02/2006</pubDate>",
            "<dc:date x='y'> Fri, 1/13/2006 10:00</dc:date>",
        );
        assert_eq!(order(&[ambiguous]), None);
        assert_eq!(order(&[ambiguous, american]), Some(SlashOrder::MonthFirst));
        assert_eq!(
            order(&["<lastBuildDate><![CDATA[13/1/2006]]></lastBuildDate>"]),
            Some(SlashOrder::DayFirst)
        );
        assert_eq!(order(&[american, "<pubDate>13/1/2006</pubDate>"]), None);
        assert_eq!(order(&["<title>13/1/2006</title>"]), None);
        assert_eq!(
            order(&["<pubDate><![CDATA[ Fri, 13/1/2006]]></pubDate>"]),
            Some(SlashOrder::DayFirst)
        );
        let none = [
            "<date>of 13/1/2006</date>13/1/2006",
            "<date>on the 13/1/2006</date>",
            "<date>13/1/2006T10</date>",
            "<date>2006/13/1/2006</date>",
            "<date>x13/1/2006</date>",
            "<date><b>13/1/2006</b></date>",
            "<link>http://x/13/1/2006</link>",
            "/13/1/2006",
            "13/1/",
            "<date>é13/1/2006</date>",
        ];
        assert_eq!(order(&none[1..]), None);
        assert_eq!(
            order(&none[..1]),
            Some(SlashOrder::DayFirst),
            "one word is a weekday in some language"
        );
    }
}
