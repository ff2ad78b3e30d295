//! A moment in microseconds since 1970, the T of every item; not a clock: nothing here asks the
//! time.

use chrono::{DateTime, SecondsFormat, Utc};
use std::fmt;

/// Microseconds since 1970-01-01T00:00:00Z. Printed as the T of a cursor: Unix seconds, followed by
/// a point and exactly six digits when the fraction is not zero, so that `time:{T}` is itself a
/// legal position (SF D-7).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Stamp(u64);

/// Microseconds in a second.
pub const SECOND_US: u64 = 1_000_000;

impl Stamp {
    /// The beginning of 1970.
    pub const ZERO: Self = Self(0);
    /// Later than everything.
    pub const MAX: Self = Self(u64::MAX);

    /// From microseconds since 1970.
    pub const fn from_micros(us: u64) -> Self {
        Self(us)
    }

    /// From whole seconds since 1970.
    pub const fn from_secs(secs: u64) -> Self {
        Self(secs.saturating_mul(SECOND_US))
    }

    /// Microseconds since 1970.
    pub const fn micros(self) -> u64 {
        self.0
    }

    /// Whole seconds since 1970, rounded down.
    pub const fn secs(self) -> u64 {
        self.0 / SECOND_US
    }

    /// The next moment that can be told apart.
    pub const fn next(self) -> Self {
        Self(self.0.saturating_add(1))
    }

    /// This moment plus some seconds.
    pub const fn plus_secs(self, secs: u64) -> Self {
        Self(self.0.saturating_add(secs.saturating_mul(SECOND_US)))
    }

    /// Seconds from `earlier` to this moment, 0 when it is not earlier.
    pub const fn secs_since(self, earlier: Self) -> u64 {
        self.0.saturating_sub(earlier.0) / SECOND_US
    }

    /// Reads a T: up to 12 digits of seconds and, after a point, one to six digits of fraction.
    /// Leading zeros are read leniently; anything else is `None`.
    pub fn parse(text: &str) -> Option<Self> {
        let (secs, fraction) = match text.split_once('.') {
            Some((secs, fraction)) => (secs, fraction),
            None => (text, "0"),
        };
        let digits = |s: &str, most: usize| {
            (1..=most).contains(&s.len()) && s.bytes().all(|b| b.is_ascii_digit())
        };
        if !digits(secs, 12) || !digits(fraction, 6) {
            return None;
        }
        let scale = 10_u64.pow(6 - u32::try_from(fraction.len()).ok()?);
        Some(Self(
            secs.parse::<u64>().ok()? * SECOND_US + fraction.parse::<u64>().ok()? * scale,
        ))
    }

    /// RFC 3339 in UTC with `T` and `Z`, and six digits of fraction when it is not zero (H-30,
    ///
    pub fn rfc3339(self) -> String {
        rfc3339(i64::try_from(self.0).unwrap_or(i64::MAX))
    }

    /// RFC 822 with a four-digit year and GMT, as RSS wants it.
    pub fn rfc822(self) -> String {
        rfc822(i64::try_from(self.0).unwrap_or(i64::MAX))
    }
}

/// Microseconds since 1970, negative before, as [`Stamp::rfc3339`] writes them.
pub(super) fn rfc3339(us: i64) -> String {
    let is_whole = us.rem_euclid(SECOND_US.cast_signed()) == 0;
    let form = if is_whole {
        SecondsFormat::Secs
    } else {
        SecondsFormat::Micros
    };
    date_time(us).to_rfc3339_opts(form, true)
}

/// Likewise as [`Stamp::rfc822`].
pub(super) fn rfc822(us: i64) -> String {
    date_time(us)
        .format("%a, %d %b %Y %H:%M:%S GMT")
        .to_string()
}

/// As a calendar date; moments after the year 262000 are shown as the last one that can be.
fn date_time(us: i64) -> DateTime<Utc> {
    let furthest = if us < 0 {
        DateTime::<Utc>::MIN_UTC
    } else {
        DateTime::<Utc>::MAX_UTC
    };
    DateTime::from_timestamp_micros(us).unwrap_or(furthest)
}

impl fmt::Display for Stamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (secs, fraction) = (self.0 / SECOND_US, self.0 % SECOND_US);
        if fraction == 0 {
            write!(f, "{secs}")
        } else {
            write!(f, "{secs}.{fraction:06}")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stamp_prints_six_digits_only_when_they_are_not_all_zero() {
        let check = |us, expect: &str| {
            assert_eq!(Stamp(us).to_string(), expect);
            assert_eq!(Stamp::parse(expect), Some(Stamp(us)));
        };
        check(0, "0");
        check(1_389_003_527_000_000, "1389003527");
        check(1_389_003_527_500_000, "1389003527.500000");
        check(1, "0.000001");
    }

    #[test]
    fn what_is_no_stamp_is_refused() {
        for text in [
            "",
            ".",
            "1.",
            ".5",
            "-1",
            "1234567890123",
            "1.1234567",
            "1e3",
            "1 ",
            "١",
        ] {
            assert_eq!(Stamp::parse(text), None, "{text:?}");
        }
    }

    #[test]
    fn dates_are_written_as_atom_and_rss_want_them() {
        let t = Stamp(1_389_003_527_000_001);
        assert_eq!(t.rfc3339(), "2014-01-06T10:18:47.000001Z");
        assert_eq!(
            Stamp::from_secs(1_389_003_527).rfc3339(),
            "2014-01-06T10:18:47Z"
        );
        assert_eq!(t.rfc822(), "Mon, 06 Jan 2014 10:18:47 GMT");
        assert!(!Stamp::MAX.rfc3339().is_empty());
    }
}
