//! The hours of a day in which nothing is sent.

use crate::feed::stamp::Stamp;

const DAY_MINS: i64 = 24 * 60;

/// The hours of a day in which nothing is sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct QuietHours {
    /// Minute of the day at which they begin.
    from: i64,
    /// Minute of the day at which they end. Where it is not after `from`, that is on the next day.
    to: i64,
    /// Minutes by which the clock of the operator is ahead of UTC.
    ahead: i64,
}

impl QuietHours {
    /// Reads `22:00-07:00`, in UTC, or `22:00-07:00 +01:00`.
    pub(super) fn parse(text: &str) -> Option<Self> {
        let (hours, offset) = match text.split_once(' ') {
            Some((hours, offset)) => (hours, offset.trim()),
            None => (text, "+00:00"),
        };
        let (from, to) = hours.split_once('-')?;
        let (from, to) = (minute(from)?, minute(to)?);
        let ahead = match (offset.strip_prefix('+'), offset.strip_prefix('-')) {
            (Some(ahead), _) => minute(ahead)?,
            (_, Some(behind)) => -minute(behind)?,
            _ => return None,
        };
        (from != to).then_some(Self { from, to, ahead })
    }

    /// The end of the quiet hours at a moment within them; `None` at any other.
    pub(super) fn end_at(self, now: Stamp) -> Option<Stamp> {
        let minutes = i64::try_from(now.secs() / 60).unwrap_or_default() + self.ahead;
        let since_begin = (minutes - self.from).rem_euclid(DAY_MINS);
        let length = (self.to - self.from).rem_euclid(DAY_MINS);
        let left = length - since_begin;
        let left = u64::try_from(left).ok().filter(|left| *left > 0)?;
        Some(Stamp::from_secs((now.secs() / 60 + left) * 60))
    }
}

/// The minute of the day of `HH:MM`.
fn minute(text: &str) -> Option<i64> {
    let (hours, minutes) = text.trim().split_once(':')?;
    let two_digits = |text: &str| {
        let is_number = text.len() == 2 && text.bytes().all(|byte| byte.is_ascii_digit());
        is_number.then(|| text.parse::<i64>().ok())?
    };
    let (hours, minutes) = (two_digits(hours)?, two_digits(minutes)?);
    (hours < 24 && minutes < 60).then_some(hours * 60 + minutes)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Minutes that are left of the quiet hours at this minute of a day.
    fn check(hours: &str, at_minute: u64, expect: Option<u64>) {
        const DAY: u64 = 20_000 * 86_400;
        let quiet = QuietHours::parse(hours).unwrap();
        let now = Stamp::from_secs(DAY + at_minute * 60 + 30);
        let end = quiet.end_at(now);
        let expect = expect.map(|minute| Stamp::from_secs(DAY + minute * 60));
        assert_eq!(end, expect, "{hours} at {at_minute}");
    }

    #[test]
    fn they_may_go_over_midnight_and_have_an_offset() {
        check("22:00-07:00", 22 * 60 - 1, None);
        check("22:00-07:00", 22 * 60, Some(31 * 60));
        check("22:00-07:00", 6 * 60 + 59, Some(7 * 60));
        check("22:00-07:00", 7 * 60, None);
        check("12:00-13:00", 12 * 60 + 30, Some(13 * 60));
        // 22:00 at +02:00 is 20:00 in UTC.
        check("22:00-07:00 +02:00", 20 * 60, Some(29 * 60));
        check("22:00-07:00 +02:00", 20 * 60 - 1, None);
        check("22:00-07:00 -05:30", 60, None);
        check("22:00-07:00 -05:30", 4 * 60, Some(12 * 60 + 30));
    }

    #[test]
    fn a_text_that_names_no_hours_is_refused() {
        for text in [
            "",
            "22-7",
            "22:00",
            "24:00-07:00",
            "07:00-07:00",
            "22:00-07:60",
            "22:00-07:00 CET",
            "+1:00-02:00",
        ] {
            assert_eq!(QuietHours::parse(text), None, "{text}");
        }
    }
}
