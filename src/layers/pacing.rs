//! The headers of an answer that say when to come again. Pure; what to make of it is the schedule's
//! business, clamps included.

use std::time::{Duration, SystemTime};

use http::header::{AGE, CACHE_CONTROL, DATE, EXPIRES};
use http::{HeaderMap, HeaderName, HeaderValue};

/// Time to stay away by a `Retry-After` (RFC 9110 section 10.2.3), in seconds or as a date. A date
/// that is past means now. `None` for anything else: then the caller's own back-off holds.
pub fn parse_retry_after(value: &HeaderValue, now: SystemTime) -> Option<Duration> {
    let text = value.to_str().ok()?.trim();
    delta_seconds(text).or_else(|| {
        Some(
            httpdate::parse_http_date(text)
                .ok()?
                .duration_since(now)
                .unwrap_or_default(),
        )
    })
}

/// Time for which the answer stays fresh by its own account (RFC 9111 section 4.2): `max-age` less
/// `Age`, else `Expires` less `Date`. `None` when it says nothing, nothing readable, or not to be
/// stored.
pub fn freshness(headers: &HeaderMap) -> Option<Duration> {
    let mut max_age = None;
    for directive in directives(headers) {
        let (name, argument) = directive.split_once('=').unwrap_or((directive, ""));
        match name.trim().to_ascii_lowercase().as_str() {
            "no-cache" | "no-store" => return None,
            // The first of several counts (RFC 9111 section 4.2.1).
            "max-age" => {
                max_age = max_age.or(Some(delta_seconds(argument.trim().trim_matches('"'))));
            }
            _ => {}
        }
    }
    match max_age {
        // An unreadable max-age still hides Expires: whoever wrote it meant something newer than
        // that.
        Some(age) => Some(
            age?.saturating_sub(
                text(headers, AGE)
                    .and_then(delta_seconds)
                    .unwrap_or_default(),
            ),
        ),
        None => {
            let expires = httpdate::parse_http_date(text(headers, EXPIRES)?).ok()?;
            let date = httpdate::parse_http_date(text(headers, DATE)?).ok()?;
            Some(expires.duration_since(date).unwrap_or_default())
        }
    }
}

fn directives(headers: &HeaderMap) -> impl Iterator<Item = &str> {
    headers
        .get_all(CACHE_CONTROL)
        .iter()
        .filter_map(|value| value.to_str().ok())
        .flat_map(|v| v.split(','))
}

fn text(headers: &HeaderMap, name: HeaderName) -> Option<&str> {
    Some(headers.get(name)?.to_str().ok()?.trim())
}

/// Digits and nothing else. More than fit are as many as fit (RFC 9111 section 1.2.2).
fn delta_seconds(text: &str) -> Option<Duration> {
    if text.is_empty() || !text.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    Some(Duration::from_secs(
        text.parse::<u32>().unwrap_or(u32::MAX).into(),
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// RFC 9110's example instant, Sun, 06 Nov 1994 08:49:37 GMT.
    fn now() -> SystemTime {
        SystemTime::UNIX_EPOCH + Duration::from_secs(784_111_777)
    }

    fn check_retry_after(value: &str, secs: Option<u64>) {
        let value = HeaderValue::from_str(value).unwrap();
        assert_eq!(
            parse_retry_after(&value, now()),
            secs.map(Duration::from_secs),
            "{value:?}"
        );
    }

    #[test]
    fn retry_after_is_seconds_or_a_date() {
        check_retry_after("120", Some(120));
        check_retry_after(" 0 ", Some(0));
        check_retry_after("Sun, 06 Nov 1994 08:50:37 GMT", Some(60));
        check_retry_after("Sunday, 06-Nov-94 08:50:37 GMT", Some(60));
        check_retry_after("Sun Nov  6 08:50:37 1994", Some(60));
        check_retry_after("Sun, 06 Nov 1994 08:49:00 GMT", Some(0));
        check_retry_after("99999999999999999999999", Some(u32::MAX.into()));
    }

    #[test]
    fn a_retry_after_that_says_nothing_is_none() {
        for value in ["", "-1", "1.5", "soon", "120s", "+5", "0x10"] {
            check_retry_after(value, None);
        }
    }

    fn check_freshness(headers: &[(&'static str, &str)], secs: Option<u64>) {
        let map = headers.iter().map(|(name, value)| {
            (
                HeaderName::from_static(name),
                HeaderValue::from_str(value).unwrap(),
            )
        });
        assert_eq!(
            freshness(&HeaderMap::from_iter(map)),
            secs.map(Duration::from_secs),
            "{headers:?}"
        );
    }

    const DATE_NOW: (&str, &str) = ("date", "Sun, 06 Nov 1994 08:49:37 GMT");
    const IN_A_MINUTE: (&str, &str) = ("expires", "Sun, 06 Nov 1994 08:50:37 GMT");

    #[test]
    fn freshness_is_max_age_less_age_or_expires_less_date() {
        check_freshness(&[("cache-control", "max-age=600")], Some(600));
        check_freshness(&[("cache-control", "public, Max-Age = \"600\"")], Some(600));
        check_freshness(
            &[("cache-control", "max-age=600"), ("age", "100")],
            Some(500),
        );
        check_freshness(
            &[("cache-control", "max-age=600"), ("age", "1000")],
            Some(0),
        );
        check_freshness(&[DATE_NOW, IN_A_MINUTE], Some(60));
        check_freshness(
            &[("cache-control", "max-age=600"), DATE_NOW, IN_A_MINUTE],
            Some(600),
        );
        check_freshness(
            &[DATE_NOW, ("expires", "Sun, 06 Nov 1994 08:00:00 GMT")],
            Some(0),
        );
    }

    #[test]
    fn no_freshness_where_none_is_claimed() {
        check_freshness(&[], None);
        check_freshness(&[("cache-control", "max-age=600, no-cache")], None);
        check_freshness(
            &[("cache-control", "no-store"), DATE_NOW, IN_A_MINUTE],
            None,
        );
        check_freshness(
            &[("cache-control", "max-age=soon"), DATE_NOW, IN_A_MINUTE],
            None,
        );
        check_freshness(&[DATE_NOW, ("expires", "0")], None);
        check_freshness(&[IN_A_MINUTE], None);
        check_freshness(&[("cache-control", "s-maxage=600")], None);
    }
}
