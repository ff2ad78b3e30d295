//! A moment that a publisher names, which may lie before 1970: old letters are published, too. Not
//! T, which is ours, nor whether a date can be meant.

use super::stamp::{self, SECOND_US, Stamp};

/// Microseconds since 1970-01-01T00:00:00Z, negative before.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Moment(i64);

impl Moment {
    /// Earlier than everything.
    pub const MIN: Self = Self(i64::MIN);
    /// Later than everything.
    pub const MAX: Self = Self(i64::MAX);

    /// From microseconds since 1970.
    pub const fn from_micros(us: i64) -> Self {
        Self(us)
    }

    /// Microseconds since 1970.
    pub const fn micros(self) -> i64 {
        self.0
    }

    /// The same as a stamp; `None` before 1970.
    pub fn stamp(self) -> Option<Stamp> {
        u64::try_from(self.0).ok().map(Stamp::from_micros)
    }

    /// RFC 3339 in UTC, as [`Stamp::rfc3339`].
    pub fn rfc3339(self) -> String {
        stamp::rfc3339(self.0)
    }

    /// RFC 822, as [`Stamp::rfc822`].
    pub fn rfc822(self) -> String {
        stamp::rfc822(self.0)
    }

    /// The T of a cursor: that of a stamp. T has no sign (SF-122), so moments before 1970 are
    /// counted back from [`WRAP_SECS`], which no date of four digits reaches.
    pub(super) fn cursor_text(self) -> String {
        self.stamp()
            .unwrap_or_else(|| Stamp::from_micros((self.0 + WRAP_US).cast_unsigned()))
            .to_string()
    }

    /// Reads the T of a cursor.
    pub(super) fn of_cursor_text(text: &str) -> Option<Self> {
        let at = i64::try_from(Stamp::parse(text)?.micros()).ok()?;
        Some(Self(if at >= WRAP_US / 2 { at - WRAP_US } else { at }))
    }
}

/// The second that is counted back from: a T has twelve digits at most.
const WRAP_SECS: i64 = 1_000_000_000_000;
const WRAP_US: i64 = WRAP_SECS * SECOND_US.cast_signed();

impl From<Stamp> for Moment {
    fn from(stamp: Stamp) -> Self {
        Self(i64::try_from(stamp.micros()).unwrap_or(i64::MAX))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_moment_before_1970_is_written_as_any_other() {
        let letter = Moment::from_micros(-464_702_400_000_000);
        assert_eq!(
            (&*letter.rfc3339(), &*letter.rfc822()),
            ("1955-04-11T12:00:00Z", "Mon, 11 Apr 1955 12:00:00 GMT")
        );
        assert_eq!(
            Moment::from_micros(-1).rfc3339(),
            "1969-12-31T23:59:59.999999Z"
        );
        assert!(letter < Moment::default() && Moment::from(Stamp::MAX) == Moment::MAX);
        assert_eq!(
            (letter.stamp(), Moment::from_micros(7).stamp()),
            (None, Some(Stamp::from_micros(7)))
        );
    }

    #[test]
    fn the_t_of_a_cursor_has_no_sign_and_is_read_back() {
        for us in [
            -62_135_596_800_000_000,
            -464_702_400_000_001,
            -1,
            0,
            1_389_003_527_000_000,
            253_402_300_799_000_000,
        ] {
            let moment = Moment::from_micros(us);
            let text = moment.cursor_text();
            assert!(
                text.bytes()
                    .all(|byte| byte.is_ascii_digit() || byte == b'.'),
                "{text}"
            );
            assert_eq!(Moment::of_cursor_text(&text), Some(moment), "{text}");
        }
        assert_eq!(
            Moment::from_micros(1_389_003_527_000_000).cursor_text(),
            "1389003527"
        );
        assert_eq!(Moment::of_cursor_text("-1"), None);
    }
}
