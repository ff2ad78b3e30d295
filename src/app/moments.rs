//! Moments in lines for people: to the minute, and with the time from now beside them.

use chrono::{DateTime, Utc};

/// The shortest text of a moment, `2026-06-01T00:00:00Z`, in bytes.
const MOMENT_BYTES_MIN: usize = 20;

/// The same line with every RFC 3339 moment in it as people read it, to the minute, and how far
/// from `now` it is. The distance is left out where a remark in parentheses follows.
pub fn relative(line: &str, now: DateTime<Utc>) -> String {
    let mut out = String::with_capacity(line.len());
    let mut rest = line;
    while let Some(at) = rest.find(|c: char| c.is_ascii_digit()) {
        let (before, from) = rest.split_at(at);
        out.push_str(before);
        let end = from.find('Z').map_or(0, |end| end + 1);
        let text = from
            .get(..end)
            .filter(|text| text.len() >= MOMENT_BYTES_MIN && text.is_ascii());
        if let Some(moment) = text.and_then(|text| DateTime::parse_from_rfc3339(text).ok()) {
            let moment = moment.with_timezone(&Utc);
            rest = &from[end..];
            out += &moment.format("%Y-%m-%d %H:%M UTC").to_string();
            if !rest.starts_with(" (") {
                out += &format!(" ({})", from_now(moment, now));
            }
        } else {
            let digits = from
                .find(|c: char| !c.is_ascii_digit())
                .unwrap_or(from.len());
            out.push_str(&from[..digits]);
            rest = &from[digits..];
        }
    }
    out + rest
}

/// Time from now, in the largest unit that counts at least two of it.
pub fn from_now(moment: DateTime<Utc>, now: DateTime<Utc>) -> String {
    let secs = moment.signed_duration_since(now).num_seconds();
    let span = match secs.unsigned_abs() {
        0..60 => {
            return if secs <= 0 {
                "just now".to_owned()
            } else {
                "within a minute".to_owned()
            };
        }
        secs @ 60..7200 => format!("{} min", secs / 60),
        secs @ 7200..172_800 => format!("{} h", secs / 3600),
        secs => format!("{} days", secs / 86_400),
    };
    if secs < 0 {
        format!("{span} ago")
    } else {
        format!("in {span}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_moment_is_told_to_the_minute_and_from_now() {
        let now = DateTime::parse_from_rfc3339("2026-06-02T00:00:00Z")
            .unwrap()
            .with_timezone(&Utc);
        let check = |line: &str, expect: &str| assert_eq!(relative(line, now), expect);
        check(
            "since 2026-06-01T00:00:00.123456Z",
            "since 2026-06-01 00:00 UTC (23 h ago)",
        );
        check(
            "2026-06-01T23:59:30Z; not before 2026-06-09T00:00:00Z.",
            "2026-06-01 23:59 UTC (just now); not before 2026-06-09 00:00 UTC (in 7 days).",
        );
        check("2026-06-02T00:30:00Z", "2026-06-02 00:30 UTC (in 30 min)");
        check(
            "2026-06-02T00:30:00Z (in 30 minutes)",
            "2026-06-02 00:30 UTC (in 30 minutes)",
        );
        check(
            "2026-06-08T05:52:27Z (weekly; no post is missing)",
            "2026-06-08 05:52 UTC (weekly; no post is missing)",
        );
        check(
            "post 17 of 2026-06-01, \u{fc}ber 3 Zeilen",
            "post 17 of 2026-06-01, \u{fc}ber 3 Zeilen",
        );
        check("1_0_1 2026-99-99T00:00:00Z", "1_0_1 2026-99-99T00:00:00Z");
    }
}
