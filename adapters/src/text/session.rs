//! Sessions and campaigns in URLs: the parts that a server writes anew for each visitor or each
//! reader. They say nothing of what a URL leads to, so no key and no digest may depend on them.

use std::borrow::Cow;

/// Query parameters, in lower case, that are a session or a campaign whatever their value is.
const ALWAYS: [&str; 22] = [
    "phpsessid",
    "jsessionid",
    "asp.net_sessionid",
    "cfid",
    "cftoken",
    "oscsid",
    "zenid",
    "sessionid",
    "session_id",
    "sessid",
    "sess_id",
    "utm_source",
    "utm_medium",
    "utm_campaign",
    "utm_term",
    "utm_content",
    "utm_id",
    "fbclid",
    "gclid",
    "msclkid",
    "mc_cid",
    "mc_eid",
];

/// Query parameters that are a session when their value looks like one: elsewhere they name a story
/// or a section.
const IF_TOKEN: [&str; 4] = ["sid", "s", "session", "token"];

/// Characters that a session's name has at least.
const TOKEN_CHARS_MIN: usize = 16;

/// Digits that no number of a story has.
const NUMBER_CHARS_MAX: usize = 24;

// Decides: Which parts of a URL are a session or a campaign?
/// The URL without sessions and campaigns; everything else stays as written.
pub fn without_session(url: &str) -> Cow<'_, str> {
    if !url.contains([';', '?', '(']) {
        return Cow::Borrowed(url);
    }
    let (rest, fragment) = split_before(url, '#');
    let (path, query) = split_before(rest, '?');
    match (without_in_path(path), without_in_query(query)) {
        (Cow::Borrowed(_), Cow::Borrowed(_)) => Cow::Borrowed(url),
        (path, query) => Cow::Owned(path.into_owned() + &query + fragment),
    }
}

/// The text before a character, and the rest that begins with it.
fn split_before(text: &str, at: char) -> (&str, &str) {
    text.split_at(text.find(at).unwrap_or(text.len()))
}

/// A path without `;jsessionid=…` and the `(S(…))` of ASP.NET.
fn without_in_path(path: &str) -> Cow<'_, str> {
    let is_aspnet = |segment: &str| segment.starts_with("(S(") && segment.ends_with("))");
    let holds_session =
        |segment: &str| is_aspnet(segment) || segment.split(';').skip(1).any(is_session);
    if !path.contains([';', '(']) || !path.split('/').any(holds_session) {
        return Cow::Borrowed(path);
    }
    let plain = |segment: &str| {
        let mut parts = segment.split(';');
        let mut kept = parts.next().unwrap_or_default().to_owned();
        for part in parts.filter(|part| !is_session(part)) {
            kept.push(';');
            kept.push_str(part);
        }
        kept
    };
    let segments: Vec<String> = path
        .split('/')
        .filter(|segment| !is_aspnet(segment))
        .map(plain)
        .collect();
    Cow::Owned(segments.join("/"))
}

/// A query, with its question mark, without the parameters of a session.
fn without_in_query(query: &str) -> Cow<'_, str> {
    let Some(pairs) = query.strip_prefix('?') else {
        return Cow::Borrowed(query);
    };
    if !pairs.split('&').any(is_session) {
        return Cow::Borrowed(query);
    }
    let kept: Vec<&str> = pairs.split('&').filter(|pair| !is_session(pair)).collect();
    Cow::Owned(if kept.is_empty() {
        String::new()
    } else {
        format!("?{}", kept.join("&"))
    })
}

fn is_session(pair: &str) -> bool {
    const ASP: &str = "aspsessionid";
    let Some((name, value)) = pair.split_once('=') else {
        return false;
    };
    let name = name.strip_prefix("amp;").unwrap_or(name);
    let is_one_of = |names: &[&str]| names.iter().any(|known| known.eq_ignore_ascii_case(name));
    is_one_of(&ALWAYS)
        || name
            .get(..ASP.len())
            .is_some_and(|begins| begins.eq_ignore_ascii_case(ASP))
        || (is_one_of(&IF_TOKEN) && is_token(value))
}

/// True for a long run of letters and digits in which both occur, or which is longer than a number.
fn is_token(value: &str) -> bool {
    let has = |is: fn(&u8) -> bool| value.bytes().any(|b| is(&b));
    value.len() >= TOKEN_CHARS_MIN
        && value.bytes().all(|b| b.is_ascii_alphanumeric())
        && has(u8::is_ascii_digit)
        && (has(u8::is_ascii_alphabetic) || value.len() >= NUMBER_CHARS_MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sessions_and_campaigns_are_left_out_and_nothing_else_is() {
        let check = |url: &str, expect: &str| assert_eq!(without_session(url), expect, "{url}");
        check("http://x/a;jsessionid=0A1B2C?p=5", "http://x/a?p=5");
        check("http://x/a;v=2;JSESSIONID=0A1B/b", "http://x/a;v=2/b");
        check("http://x/?PHPSESSID=abc", "http://x/");
        check("http://x/?p=5&PHPSESSID=abc#c", "http://x/?p=5#c");
        check("http://x/?PHPSESSID=abc&amp;p=5", "http://x/?amp;p=5");
        check(
            "http://x/t.php?sid=0123456789abcdef0123456789abcdef&t=1",
            "http://x/t.php?t=1",
        );
        check("http://x/t.php?sid=123", "http://x/t.php?sid=123");
        check(
            "http://x/article.pl?sid=03/05/12/1234",
            "http://x/article.pl?sid=03/05/12/1234",
        );
        check("http://x/?s=search", "http://x/?s=search");
        check(
            "http://x/(S(lit3py55t21z5v55vlm25s55))/a.aspx",
            "http://x/a.aspx",
        );
        check("http://x/a?utm_source=rss&utm_medium=rss", "http://x/a");
        check("http://x/a(b);c", "http://x/a(b);c");
        check("tag:x,2005:a;b?c", "tag:x,2005:a;b?c");
        check("http://x/?", "http://x/?");
    }
}
