//! Dates as feeds have written them since 1997: what instant they mean. Whether that is plausible
//! is judged elsewhere.

mod names;
mod slashes;
mod usual;

pub(crate) use slashes::{SlashOrder, holds_slashes, order_of};

use std::borrow::Cow;

use chrono::{Datelike, NaiveDate};

use crate::note::Notes;
use crate::{Date, Note};

/// Longer texts are no dates, in bytes.
const DATE_BYTES_MAX: usize = 128;

const SECOND_US: i64 = 1_000_000;

/// A date in any of the forms of VECTORS `dates` (LEGACY section 4), as microseconds since
/// 1970-01-01T00:00:00Z.
///
/// RFC 3339 and the ISO 8601 family first, then the RFC 822 family, then localized names. Two-digit
/// years 00 to 49 are 20xx, 50 to 99 are 19xx, three digits count from 1900; a zone that is
/// unknown, military or missing is UTC; a wrong weekday is ignored; second 60 and hour 24 roll
/// over. An ambiguous or impossible date is `None`: `25/12/2006` can only be Christmas,
/// `01/04/2004` is the first of April to some and the fourth of January to others.
///
/// ```
/// use everfeed_adapters::text::date::parse;
///
/// assert_eq!(parse("Thu, 01 Jan 1970 01:00:01 +0100"), Some(1_000_000));
/// assert_eq!(parse("1970-01-01T00:00:00.5Z"), Some(500_000));
/// assert_eq!(parse("01/04/2004"), None);
/// ```
pub fn parse(raw: &str) -> Option<i64> {
    parse_in(raw, None)
}

/// The same, in a document whose other dates tell how it writes them with slashes.
fn parse_in(raw: &str, order: Option<SlashOrder>) -> Option<i64> {
    if raw.len() > DATE_BYTES_MAX {
        return None;
    }
    if let Some(instant) = usual::parse(raw.trim()) {
        return Some(instant);
    }
    let mut text = lower_case(raw);
    if text.contains('(') || text.contains(')') {
        text = without_comments(&text);
    }
    let text = text.trim();
    digits(text)
        .or_else(|| iso(text))
        .or_else(|| worded(text, order))
}

fn lower_case(raw: &str) -> String {
    if raw.is_ascii() {
        raw.to_ascii_lowercase()
    } else {
        raw.replace('\u{A0}', " ").to_lowercase()
    }
}

/// A date with its source text, and a note when it means nothing to us; `None` when there is no
/// text.
pub(crate) fn read(raw: &str, notes: &mut Notes) -> Option<Date> {
    read_in(raw, None, notes)
}

/// The same, in a document whose other dates tell how it writes them with slashes.
pub(crate) fn read_in(raw: &str, order: Option<SlashOrder>, notes: &mut Notes) -> Option<Date> {
    let raw = super::present(raw)?;
    let at_us = parse_in(&raw, order);
    if at_us.is_none() {
        let start: String = raw.chars().take(DATE_BYTES_MAX).collect();
        notes.add(Note::BadDate(start));
    }
    Some(Date { raw, at_us })
}

/// The parts that have been understood so far.
#[derive(Clone, Copy, Debug, Default)]
struct Parts {
    date: Option<NaiveDate>,
    hour: u32,
    minute: u32,
    second: u32,
    fraction_us: i64,
    afternoon: Option<bool>,
    offset_secs: Option<i64>,
}

impl Parts {
    /// The beginning of a day.
    fn of(date: NaiveDate) -> Self {
        let date = Some(date);
        Self {
            date,
            ..Self::default()
        }
    }

    fn instant(self) -> Option<i64> {
        let hour = match (self.afternoon, self.hour) {
            (Some(true), 1..=11) => self.hour + 12,
            (Some(false), 12) => 0,
            _ => self.hour,
        };
        if hour > 24 || self.minute > 59 || self.second > 60 {
            return None;
        }
        let days = i64::from(self.date?.num_days_from_ce())
            - i64::from(NaiveDate::default().num_days_from_ce());
        let seconds = i64::from(hour) * 3600 + i64::from(self.minute) * 60 + i64::from(self.second);
        Some(
            (days * 86_400 + seconds - self.offset_secs.unwrap_or(0)) * SECOND_US
                + self.fraction_us,
        )
    }

    /// `4:05`, `04:05:06`, `04:05:06.789`, `4:05pm`.
    fn time(&mut self, text: &str) -> Option<()> {
        let (text, afternoon) = match text.strip_suffix("pm") {
            Some(text) => (text, Some(true)),
            None => text
                .strip_suffix("am")
                .map_or((text, None), |text| (text, Some(false))),
        };
        self.afternoon = afternoon.or(self.afternoon);
        let (whole, fraction) = text.split_once(['.', ',']).unwrap_or((text, ""));
        let mut fields = whole.split(':');
        self.hour = number(fields.next()?, 1..=2)?;
        self.minute = number(fields.next()?, 1..=2)?;
        self.second = fields
            .next()
            .map_or(Some(0), |second| number(second, 1..=2))?;
        self.fraction_us = microseconds(fraction)?;
        fields.next().is_none().then_some(())
    }

    /// `041530`, the basic form of ISO 8601.
    fn basic_time(&mut self, text: &str) -> Option<()> {
        let (whole, fraction) = text.split_once(['.', ',']).unwrap_or((text, ""));
        if !matches!(whole.len(), 4 | 6) || !all_digits(whole) {
            return None;
        }
        self.hour = whole[..2].parse().ok()?;
        self.minute = whole[2..4].parse().ok()?;
        self.second = if whole.len() == 6 {
            whole[4..].parse().ok()?
        } else {
            0
        };
        self.fraction_us = microseconds(fraction)?;
        Some(())
    }
}

fn microseconds(fraction: &str) -> Option<i64> {
    if fraction.is_empty() {
        return Some(0);
    }
    if !all_digits(fraction) {
        return None;
    }
    let six: String = fraction.chars().chain("000000".chars()).take(6).collect();
    six.parse().ok()
}

fn all_digits(text: &str) -> bool {
    text.bytes().all(|b| b.is_ascii_digit())
}

fn number(text: &str, width: std::ops::RangeInclusive<usize>) -> Option<u32> {
    (width.contains(&text.len()) && all_digits(text))
        .then(|| text.parse().ok())
        .flatten()
}

/// Without `(PDT)` and other comments of RFC 822.
fn without_comments(text: &str) -> String {
    let mut depth = 0_u32;
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '(' => depth += 1,
            ')' => depth = depth.saturating_sub(1),
            c if depth == 0 => out.push(c),
            _ => {}
        }
    }
    out.trim().to_owned()
}

/// Digits only: a year, a basic date, or seconds or milliseconds since 1970; and the truncated
/// forms of ISO 8601.
fn digits(text: &str) -> Option<i64> {
    let truncated = text.strip_prefix('-').and_then(|rest| rest.split_once('-'));
    if let Some((year, month)) = truncated.filter(|(_, month)| !month.contains('-')) {
        let year = two_digit_year(number(year, 2..=2)?);
        let date = civil(year, number(month, 2..=2)?, 1)?;
        return Parts::of(date).instant();
    }
    if text.is_empty() || !all_digits(text) {
        return None;
    }
    let date = match text.len() {
        4 => civil(text.parse().ok()?, 1, 1)?,
        6 => civil(
            two_digit_year(text[..2].parse().ok()?),
            text[2..4].parse().ok()?,
            text[4..].parse().ok()?,
        )?,
        7 | 8 => basic_date(text)?,
        9 | 10 => return text.parse::<i64>().ok()?.checked_mul(SECOND_US),
        12 | 13 => return text.parse::<i64>().ok()?.checked_mul(1000),
        _ => return None,
    };
    Parts::of(date).instant()
}

fn civil(year: i32, month: u32, day: u32) -> Option<NaiveDate> {
    NaiveDate::from_ymd_opt(year, month, day).filter(|_| (1..=9999).contains(&year))
}

/// RFC 5322 section 4.3.
fn two_digit_year(year: u32) -> i32 {
    let year = year.cast_signed();
    if year < 50 { 2000 + year } else { 1900 + year }
}

fn basic_date(text: &str) -> Option<NaiveDate> {
    let year = text.get(..4)?.parse().ok()?;
    match text.len() {
        7 => NaiveDate::from_yo_opt(year, text[4..].parse().ok()?).filter(|_| year > 0),
        8 => civil(year, text[4..6].parse().ok()?, text[6..].parse().ok()?),
        _ => None,
    }
}

/// The ISO 8601 family: year first.
fn iso(text: &str) -> Option<i64> {
    // Korean blogs (OnBlog, Nate): the names of the units stand behind the numbers.
    let korean = !text.is_ascii()
        && (text.contains(['년', '월', '일']) || text.contains("오전") || text.contains("오후"));
    let mut text = Cow::Borrowed(text);
    if korean {
        let hyphened = text
            .replace("년 ", "-")
            .replace("월 ", "-")
            .replace("년", "-")
            .replace("월", "-");
        text = Cow::Owned(hyphened.replace('일', ""));
    }
    let (date, rest) = split_date(&text);
    let mut parts = Parts::of(iso_date(date)?);
    if korean {
        parts.offset_secs = Some(9 * 3600);
    }
    let mut seen_time = false;
    for word in spaced(rest).split_whitespace() {
        match word {
            "am" | "오전" => parts.afternoon = Some(false),
            "pm" | "오후" => parts.afternoon = Some(true),
            _ if !seen_time => {
                seen_time = true;
                parts.time(word).or_else(|| parts.basic_time(word))?;
            }
            _ => parts.offset_secs = Some(zone(word)?),
        }
    }
    parts.instant()
}

/// The date, and the rest after `t` or a blank. A `t` inside a month's name does not count.
fn split_date(text: &str) -> (&str, &str) {
    let blank = text.find(' ');
    let t = text.match_indices('t').map(|(at, _)| at).find(|at| {
        let digit = |at: Option<usize>| {
            at.and_then(|at| text.as_bytes().get(at))
                .is_some_and(u8::is_ascii_digit)
        };
        digit(at.checked_sub(1)) && digit(at.checked_add(1))
    });
    match [blank, t].into_iter().flatten().min() {
        Some(at) => (&text[..at], &text[at + 1..]),
        None => (text, ""),
    }
}

/// A blank between the time and the zone that is glued to it.
fn spaced(rest: &str) -> String {
    let rest = rest.trim_start();
    let is_zone = |c: char| matches!(c, '+' | '-' | 'z');
    match rest
        .char_indices()
        .skip(1)
        .find(|(at, c)| is_zone(*c) && rest.as_bytes()[at - 1].is_ascii_digit())
    {
        Some((at, _)) => format!("{} {}", &rest[..at], &rest[at..]),
        None => rest.to_owned(),
    }
}

fn iso_date(text: &str) -> Option<NaiveDate> {
    if !text.starts_with(|c: char| c.is_ascii_digit()) {
        return None;
    }
    let fields: Vec<_> = text.trim_end_matches(',').split(['-', '/']).collect();
    let year: i32 = match fields[0].len() {
        4 if all_digits(fields[0]) => fields[0].parse().ok()?,
        7 | 8 if fields.len() == 1 && all_digits(fields[0]) => return basic_date(fields[0]),
        _ => return None,
    };
    match fields[1..] {
        [] => civil(year, 1, 1),
        [ordinal] if ordinal.len() == 3 && all_digits(ordinal) => {
            NaiveDate::from_yo_opt(year, ordinal.parse().ok()?).filter(|_| year > 0)
        }
        [month] => civil(year, month_of(month)?, 1),
        [week, day] if week.starts_with('w') => week_date(year, &week[1..], day),
        [month, day] => civil(year, month_of(month)?, number(day, 1..=2)?),
        _ => None,
    }
}

/// Two digits, or three with Google's extra zero, or a name.
fn month_of(text: &str) -> Option<u32> {
    number(text.strip_prefix('0').unwrap_or(text), 1..=2).or_else(|| names::month(text))
}

fn week_date(year: i32, week: &str, day: &str) -> Option<NaiveDate> {
    let day = u8::try_from(number(day, 1..=1)?.checked_sub(1)?).ok()?;
    NaiveDate::from_isoywd_opt(
        year,
        number(week, 2..=2)?,
        chrono::Weekday::try_from(day).ok()?,
    )
}

/// The RFC 822 family, asctime, RFC 850 and what people made of them: words in nearly any order.
fn worded(text: &str, order: Option<SlashOrder>) -> Option<i64> {
    let spaced = text.replace(',', ", ");
    let words: Vec<_> = spaced.split_whitespace().collect();
    let mut words = words.as_slice();
    if let [first, second, ..] = words
        && first.starts_with(char::is_alphabetic)
        && (first.ends_with(',')
            || second.starts_with(char::is_alphabetic)
            || names::is_weekday(first))
    {
        // A weekday, in whatever language and whether it is right or not: French "mar," is no
        // March.
        words = &words[1..];
    }
    let mut found = Words {
        order,
        ..Words::default()
    };
    for word in words {
        found.take(word.trim_end_matches(','))?;
    }
    let Words {
        mut parts,
        day,
        month,
        year,
        ..
    } = found;
    if parts.date.is_none() {
        parts.date = Some(civil(year?, month?, day?)?);
    }
    parts.instant()
}

#[derive(Default)]
struct Words {
    parts: Parts,
    day: Option<u32>,
    month: Option<u32>,
    year: Option<i32>,
    seen_time: bool,
    order: Option<SlashOrder>,
}

impl Words {
    fn take(&mut self, word: &str) -> Option<()> {
        match word {
            "" | "de" | "at" | "of" => return Some(()),
            "am" | "a.m." => self.parts.afternoon = Some(false),
            "pm" | "p.m." => self.parts.afternoon = Some(true),
            _ if !self.seen_time && word.contains(':') => {
                self.seen_time = true;
                self.parts.time(word)?;
            }
            _ if all_digits(word) => self.number(word)?,
            _ if self.month.is_none() && !self.seen_time && names::month(word).is_some() => {
                self.month = names::month(word);
            }
            _ if self.seen_time => self.parts.offset_secs = Some(zone(word)?),
            _ => self.compound(word)?,
        }
        Some(())
    }

    /// A day first, then a year; more than two digits are always a year.
    fn number(&mut self, word: &str) -> Option<()> {
        let value: u32 = word.parse().ok()?;
        if word.len() > 2 || self.day.is_some() {
            let year = match word.len() {
                2 => two_digit_year(value),
                3 => 1900 + value.cast_signed(),
                4 => value.cast_signed(),
                _ => return None,
            };
            return self.year.replace(year).is_none().then_some(());
        }
        self.day = Some(value);
        Some(())
    }

    /// `10-jun-03`, `2006/09/15`, `1st`.
    fn compound(&mut self, word: &str) -> Option<()> {
        if let Some(date) = iso_date(word) {
            return self.parts.date.replace(date).is_none().then_some(());
        }
        if let Some(date) = slashes::date(word, self.order) {
            return self.parts.date.replace(date).is_none().then_some(());
        }
        if let [day, month, year] = word.split('-').collect::<Vec<_>>()[..] {
            self.day = Some(number(day, 1..=2)?);
            self.month = Some(names::month(month)?);
            return self.number(Some(year).filter(|year| all_digits(year))?);
        }
        let ordinal = ["st", "nd", "rd", "th", "."]
            .iter()
            .find_map(|suffix| word.strip_suffix(suffix))?;
        self.day = Some(number(ordinal, 1..=2)?);
        Some(())
    }
}

/// Seconds east of Greenwich: an offset, a name, or both. A name that nobody knows is UTC (RFC 5322
/// section 4.3).
fn zone(word: &str) -> Option<i64> {
    let word = word.strip_prefix("etc/").unwrap_or(word);
    match word.find(['+', '-']) {
        Some(0) => offset(word),
        Some(at) if matches!(&word[..at], "gmt" | "utc" | "ut") => offset(&word[at..]),
        Some(_) => None,
        None if word.chars().all(|c| c.is_alphabetic() || c == '.') => {
            Some(names::zone(word).unwrap_or(0))
        }
        None => None,
    }
}

/// `+02`, `+0200`, `+02:00`, `+2`.
fn offset(word: &str) -> Option<i64> {
    let sign = if word.starts_with('-') { -1 } else { 1 };
    let rest = &word[1..];
    let (hours, minutes) = match rest.split_once(':') {
        Some((hours, minutes)) => (number(hours, 1..=2)?, number(minutes, 2..=2)?),
        None if rest.len() == 4 && all_digits(rest) => {
            (rest[..2].parse().ok()?, rest[2..].parse().ok()?)
        }
        None => (number(rest, 1..=2)?, 0),
    };
    (hours < 24 && minutes < 60).then(|| sign * i64::from(hours * 3600 + minutes * 60))
}

#[cfg(test)]
mod tests;
