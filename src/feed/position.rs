//! Position specs, `{type}:{value}`, as consumers write them; not what they resolve to in a
//! listing.

use super::{
    cursor::Toc,
    moment::Moment,
    stamp::{SECOND_US, Stamp},
};
use chrono::NaiveDate;
use thiserror::Error;

/// A position that a consumer asked for, understood but not yet looked up.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Position {
    /// Before the first item. `degraded` when a cursor could not be read at all (SF-25, D-8).
    Start {
        /// The consumer sent a cursor that is not ours.
        degraded: bool,
    },
    /// A full T+O+C cursor; still to be checked against the items.
    Cursor {
        /// The cursor.
        toc: Toc,
        /// Spelt exactly as we spell it, so that it may be echoed.
        canonical: bool,
    },
    /// A moment, inclusive over the unit written (SF-28, D-9).
    Time {
        /// Time covered.
        span: Span,
        /// Left over from a cursor of which only T could be read.
        degraded: bool,
    },
    /// An item, by our id or the upstream's, byte-exact.
    Id(String),
}

/// An inclusive span of time in microseconds since 1970; both ends may lie before.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Span {
    /// First microsecond covered.
    pub low_us: i64,
    /// Last microsecond covered.
    pub high_us: i64,
}

/// Refusal of a position: always the consumer's mistake, always 400.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum BadPosition {
    /// No type before a colon.
    #[error(
        "a position is written {{type}}:{{value}}, for instance cursor:1389003527_0_3678689003"
    )]
    Syntax,
    /// A type other than cursor, id and time.
    #[error("unsupported position type: use cursor, time or id")]
    UnsupportedType,
    /// `id:` without an id.
    #[error("an id position needs an id after the colon")]
    EmptyId,
    /// `time:` with something that is no time.
    #[error(
        "a time position takes RFC 3339 (2014-01-06T12:00:00Z), a date (2014-01-06) or Unix seconds"
    )]
    BadTime,
}

impl Position {
    /// The one microsecond of a stamp, at which one item stands at most.
    pub fn at(stamp: Stamp) -> Self {
        let us = i64::try_from(stamp.micros()).unwrap_or(i64::MAX);
        Self::Time {
            span: Span {
                low_us: us,
                high_us: us,
            },
            degraded: false,
        }
    }

    /// Reads the decoded value of `since` or `until`. Empty counts as absent.
    pub fn parse(raw: &str) -> Result<Option<Self>, BadPosition> {
        if raw.is_empty() {
            return Ok(None);
        }
        let (kind, value) = raw
            .split_once(':')
            .filter(|(kind, _)| !kind.is_empty())
            .ok_or(BadPosition::Syntax)?;
        match kind {
            "cursor" => Ok(Some(Self::of_cursor(value))),
            "id" if value.is_empty() => Err(BadPosition::EmptyId),
            "id" => Ok(Some(Self::Id(value.to_owned()))),
            "time" => {
                let span = Span::parse(value).ok_or(BadPosition::BadTime)?;
                Ok(Some(Self::Time {
                    span,
                    degraded: false,
                }))
            }
            _ => Err(BadPosition::UnsupportedType),
        }
    }

    /// Reads what follows `cursor:`. Never an error: what cannot be read degrades to its T, or to
    /// the start (D-8).
    pub fn of_cursor(value: &str) -> Self {
        if value.is_empty() {
            return Self::Start { degraded: false };
        }
        if let Some(toc) = Toc::parse(value) {
            return Self::Cursor {
                toc,
                canonical: toc.to_string() == value,
            };
        }
        let t = value.split('_').next().unwrap_or_default();
        match Stamp::parse(t).and_then(|_| Span::parse(t)) {
            Some(span) => Self::Time {
                span,
                degraded: true,
            },
            None => Self::Start { degraded: true },
        }
    }
}

impl Span {
    /// The unit that the text names: a microsecond, a fraction, a second, a minute or a day.
    pub fn parse(text: &str) -> Option<Self> {
        unix_seconds(text).or_else(|| calendar(text))
    }

    /// Span of `time:{T}`: the whole second when T has no fraction, else the microsecond.
    pub fn of_moment(t: Moment) -> Self {
        let low_us = t.micros();
        let unit = if low_us.rem_euclid(SECOND) == 0 {
            SECOND
        } else {
            1
        };
        Self {
            low_us,
            high_us: low_us.saturating_add(unit - 1),
        }
    }

    fn unit(low_us: i64, unit_us: i64) -> Self {
        Self {
            low_us,
            high_us: low_us + unit_us - 1,
        }
    }
}

const SECOND: i64 = SECOND_US as i64;
const MINUTE: i64 = 60 * SECOND;
const DAY: i64 = 24 * 60 * MINUTE;

/// `digits[.digits]`, at most 11 and 6.
fn unix_seconds(text: &str) -> Option<Span> {
    let (secs, fraction) = text
        .split_once('.')
        .map_or((text, None), |(secs, fraction)| (secs, Some(fraction)));
    if secs.len() > 11 {
        return None;
    }
    let low = i64::try_from(Stamp::parse(text)?.micros()).ok()?;
    Some(Span::unit(low, fraction.map_or(SECOND, fraction_unit)))
}

/// Microseconds covered by a fraction of so many digits; digits after the sixth are not looked at.
fn fraction_unit(fraction: &str) -> i64 {
    10_i64.pow(6_u32.saturating_sub(u32::try_from(fraction.len()).unwrap_or(6)))
}

/// RFC 3339 with an optional zone, minutes precision, or a bare date.
fn calendar(text: &str) -> Option<Span> {
    let mut rest = Rest(text);
    let (year, month, day) = (
        rest.digits(4)?,
        rest.after("-")?.digits(2)?,
        rest.after("-")?.digits(2)?,
    );
    let midnight =
        NaiveDate::from_ymd_opt(i32::try_from(year).ok()?, month, day)?.and_hms_opt(0, 0, 0)?;
    let midnight = midnight.and_utc().timestamp_micros();
    if rest.0.is_empty() {
        return Some(Span::unit(midnight, DAY));
    }
    let (hour, minute) = (
        rest.after_any(&["T", "t", " "])?.digits(2)?,
        rest.after(":")?.digits(2)?,
    );
    let mut unit = MINUTE;
    let (mut second, mut micros) = (0, 0);
    if rest.skip(":") {
        (second, unit) = (rest.digits(2)?, SECOND);
        if rest.skip(".") || rest.skip(",") {
            let fraction = rest.fraction()?;
            let kept = &fraction[..fraction.len().min(6)];
            unit = fraction_unit(kept);
            micros = kept.parse::<i64>().ok()? * unit;
        }
    }
    // A leap second is the first second of the next minute.
    if hour > 23 || minute > 59 || second > 60 {
        return None;
    }
    let offset = rest.zone()?;
    let of_day =
        i64::from(hour) * 60 * MINUTE + i64::from(minute) * MINUTE + i64::from(second) * SECOND;
    rest.0
        .is_empty()
        .then(|| Span::unit(midnight + of_day + micros - offset, unit))
}

/// Unread rest of a time.
struct Rest<'a>(&'a str);

impl<'a> Rest<'a> {
    fn digits(&mut self, count: usize) -> Option<u32> {
        let head = self
            .0
            .get(..count)
            .filter(|head| head.bytes().all(|b| b.is_ascii_digit()))?;
        self.0 = &self.0[count..];
        head.parse().ok()
    }

    fn fraction(&mut self) -> Option<&'a str> {
        let len = self.0.bytes().take_while(u8::is_ascii_digit).count();
        let (head, tail) = self.0.split_at(len);
        self.0 = tail;
        (1..=9).contains(&len).then_some(head)
    }

    fn skip(&mut self, head: &str) -> bool {
        self.0
            .strip_prefix(head)
            .map(|tail| self.0 = tail)
            .is_some()
    }

    fn after(&mut self, head: &str) -> Option<&mut Self> {
        self.skip(head).then_some(self)
    }

    fn after_any(&mut self, heads: &[&str]) -> Option<&mut Self> {
        heads.iter().any(|head| self.skip(head)).then_some(self)
    }

    /// `Z`, `±hh[:]mm` or nothing, in microseconds east of UTC. A blank stands for the `+` that
    /// form decoding lost.
    fn zone(&mut self) -> Option<i64> {
        if self.0.is_empty() || self.skip("Z") || self.skip("z") {
            return Some(0);
        }
        let spaced = self.skip(" ");
        let sign = if self.skip("-") {
            -1
        } else if self.skip("+") || spaced {
            1
        } else {
            return None;
        };
        if spaced && (self.skip("Z") || self.skip("z")) {
            return Some(0);
        }
        let hours = self.digits(2)?;
        self.skip(":");
        let minutes = self.digits(2)?;
        (hours <= 23 && minutes <= 59)
            .then(|| sign * (i64::from(hours) * 60 + i64::from(minutes)) * MINUTE)
    }
}

#[cfg(test)]
mod tests;
