//! The two spellings that nearly all dates have, read without a detour; every other one is left to
//! the general rules, which understand these the same way.

use super::{Parts, civil};

/// `2004-02-12T15:19:21Z` and `Thu, 12 Feb 2004 15:19:21 +0000`, to the letter. `None`: something
/// else, or no date.
pub(super) fn parse(text: &str) -> Option<i64> {
    let text = text.as_bytes();
    if text.get(10) == Some(&b'T') {
        rfc3339(text)
    } else {
        rfc822(text)
    }
}

fn rfc3339(text: &[u8]) -> Option<i64> {
    let (date, rest) = text.split_at_checked(11)?;
    let [y1, y2, y3, y4, b'-', m1, m2, b'-', d1, d2, b'T'] = *date else {
        return None;
    };
    let (time, zone) = rest.split_at_checked(8)?;
    let offset_secs = match *zone {
        [b'Z'] => 0,
        [sign, h1, h2, b':', m1, m2] => offset(sign, [h1, h2], [m1, m2])?,
        _ => return None,
    };
    let year = number(&[y1, y2, y3, y4])?.cast_signed();
    let parts = Parts {
        date: Some(civil(year, number(&[m1, m2])?, number(&[d1, d2])?)?),
        ..at(time, offset_secs)?
    };
    parts.instant()
}

fn rfc822(text: &[u8]) -> Option<i64> {
    let (weekday, rest) = text.split_at_checked(5)?;
    let ([_, _, _, b',', b' '], true) = (weekday, WEEKDAYS.contains(&&weekday[..3])) else {
        return None;
    };
    let day = rest
        .iter()
        .position(|b| *b == b' ')
        .filter(|length| (1..=2).contains(length))?;
    let (day, rest) = (number(&rest[..day])?, &rest[day + 1..]);
    let (date, rest) = rest.split_at_checked(9)?;
    let [b1, b2, b3, b' ', y1, y2, y3, y4, b' '] = *date else {
        return None;
    };
    let month = (1..).zip(MONTHS).find(|(_, name)| *name == [b1, b2, b3])?.0;
    let (time, zone) = rest.split_at_checked(8)?;
    let offset_secs = match *zone {
        [b' ', b'G', b'M', b'T'] => 0,
        [b' ', sign, h1, h2, m1, m2] => offset(sign, [h1, h2], [m1, m2])?,
        _ => return None,
    };
    let year = number(&[y1, y2, y3, y4])?.cast_signed();
    Parts {
        date: Some(civil(year, month, day)?),
        ..at(time, offset_secs)?
    }
    .instant()
}

const WEEKDAYS: [&[u8]; 7] = [b"Mon", b"Tue", b"Wed", b"Thu", b"Fri", b"Sat", b"Sun"];

const MONTHS: [[u8; 3]; 12] = [
    *b"Jan", *b"Feb", *b"Mar", *b"Apr", *b"May", *b"Jun", *b"Jul", *b"Aug", *b"Sep", *b"Oct",
    *b"Nov", *b"Dec",
];

/// `15:19:21`.
fn at(time: &[u8], offset_secs: i64) -> Option<Parts> {
    let [h1, h2, b':', m1, m2, b':', s1, s2] = *time else {
        return None;
    };
    let (hour, minute, second) = (number(&[h1, h2])?, number(&[m1, m2])?, number(&[s1, s2])?);
    Some(Parts {
        hour,
        minute,
        second,
        offset_secs: Some(offset_secs),
        ..Parts::default()
    })
}

fn offset(sign: u8, hours: [u8; 2], minutes: [u8; 2]) -> Option<i64> {
    let (hours, minutes) = (number(&hours)?, number(&minutes)?);
    let seconds = (hours < 24 && minutes < 60).then(|| i64::from(hours * 3600 + minutes * 60))?;
    match sign {
        b'+' => Some(seconds),
        b'-' => Some(-seconds),
        _ => None,
    }
}

fn number(digits: &[u8]) -> Option<u32> {
    digits.iter().try_fold(0, |number, b| {
        b.is_ascii_digit()
            .then(|| number * 10 + u32::from(b - b'0'))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_understood_as_by_the_general_rules(text: &str) {
        let lower = text.to_ascii_lowercase();
        let general = super::super::digits(&lower).or_else(|| super::super::iso(&lower));
        let general = general.or_else(|| super::super::worded(&lower, None));
        let usual = parse(text);
        assert!(
            usual.is_none() || usual == general,
            "{text}: {usual:?}, {general:?}"
        );
    }

    #[test]
    fn the_usual_spellings_mean_what_the_general_rules_say() {
        assert_eq!(parse("1970-01-01T01:00:01+01:00"), Some(1_000_000));
        assert_eq!(parse("Thu, 1 Jan 1970 00:00:01 GMT"), Some(1_000_000));
        assert_eq!(
            parse("Thu, 01 Jan 1970 00:00:01 -0030"),
            Some(1_801_000_000)
        );
        let times = [
            "00:00:00", "23:59:60", "24:00:00", "25:00:00", "12:60:00", "1:2:3", "12:30:61",
        ];
        let zones = [
            "Z", "GMT", "+00:00", "-23:59", "+24:00", "+0100", "-0000", "+0060", "+1:00", "UT",
            "PDT", "",
        ];
        let days = ["00", "01", "9", "28", "29", "30", "31", "32", "1st"];
        for (number, name) in MONTHS
            .iter()
            .enumerate()
            .map(|(at, name)| (at, str::from_utf8(name).unwrap()))
        {
            for year in ["0000", "0049", "1900", "2003", "2004", "9999", "04"] {
                for (day, time) in days.iter().flat_map(|day| times.map(|time| (day, time))) {
                    for zone in zones {
                        let iso = format!("{year}-{number:02}-{day}T{time}{zone}");
                        is_understood_as_by_the_general_rules(&iso);
                        is_understood_as_by_the_general_rules(&format!(
                            "Tue, {day} {name} {year} {time} {zone}"
                        ));
                    }
                }
            }
        }
    }

    #[test]
    fn everything_else_is_left_to_them() {
        for text in [
            "",
            "2004",
            "2004-02-12",
            "2004-02-12T15:19:21.5Z",
            "2004-02-12t15:19:21z",
            "12 Feb 2004 15:19:21 GMT",
            "Thu,12 Feb 2004 15:19:21 GMT",
            "Do, 12 Feb 2004 15:19:21 GMT",
            "Thu, 12 Feb 2004 15:19:21 GMT é",
        ] {
            assert_eq!(parse(text), None, "{text}");
        }
    }
}
