//! Recognises the answers of walls against robots, which say nothing about a feed or a page (U-48).

use http::{
    HeaderMap, HeaderName, StatusCode,
    header::{CONTENT_TYPE, SERVER},
};

/// Bytes of a page in which the marks of a challenge are looked for.
const LOOKED_BYTES: usize = 64 << 10;

/// Marks of the challenge pages of Anubis.
const ANUBIS_MARKS: [&[u8]; 2] = [b"anubis_challenge", b"/.within.website/x/cmd/anubis/"];

// Decides: Is an answer that of a wall against robots?
/// The vendor of the wall that answered in the place of the publisher. A wall may answer with any
/// status, so 404 and 410 of one prove nothing.
pub(super) fn bot_wall(
    status: StatusCode,
    headers: &HeaderMap,
    body: &[u8],
) -> Option<&'static str> {
    let says = |name: &'static str, wanted: &[&str]| {
        let value = headers.get(HeaderName::from_static(name));
        let value = value.and_then(|value| value.to_str().ok());
        value.is_some_and(|value| wanted.iter().any(|one| value.eq_ignore_ascii_case(one)))
    };
    if says("cf-mitigated", &["challenge"]) {
        return Some("Cloudflare");
    }
    if says("x-amzn-waf-action", &["challenge", "captcha"]) {
        return Some("AWS WAF");
    }
    let is_page = super::text(headers, CONTENT_TYPE)
        .is_some_and(|kind| kind.to_ascii_lowercase().starts_with("text/html"));
    let head = &body[..body.len().min(LOOKED_BYTES)];
    let has = |mark: &[u8]| memchr::memmem::find(head, mark).is_some();
    if is_page && ANUBIS_MARKS.iter().any(|mark| has(mark)) {
        return Some("Anubis");
    }
    // Its refusals carry no challenge that could be told from another one of the same server.
    let is_refusal = matches!(
        status,
        StatusCode::FORBIDDEN | StatusCode::TOO_MANY_REQUESTS
    );
    let server = super::text(headers, SERVER).unwrap_or_default();
    if is_refusal && is_page && server.eq_ignore_ascii_case("cloudflare") && has(b"cf-chl-") {
        return Some("Cloudflare");
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn u_48_a_wall_is_told_from_a_refusal_and_from_a_post_about_walls() {
        let check = |status: u16, headers: &[(&'static str, &str)], body: &str, expect| {
            let headers = headers
                .iter()
                .map(|(name, value)| (HeaderName::from_static(name), value.parse().unwrap()));
            let status = StatusCode::from_u16(status).unwrap();
            let found = bot_wall(status, &HeaderMap::from_iter(headers), body.as_bytes());
            assert_eq!(found, expect, "{status} {body}");
        };
        let html = ("content-type", "text/html; charset=utf-8");
        let (cloudflare, waf) = (
            ("cf-mitigated", "challenge"),
            ("x-amzn-waf-action", "captcha"),
        );
        for status in [200, 403, 404, 410, 429, 503] {
            check(status, &[html, cloudflare], "", Some("Cloudflare"));
            check(status, &[waf], "", Some("AWS WAF"));
        }
        let anubis = "<html><script id=\"anubis_challenge\" type=\"application/json\">";
        check(200, &[html], anubis, Some("Anubis"));
        check(
            202,
            &[html],
            "<script src=\"/.within.website/x/cmd/anubis/static/main.mjs\">",
            Some("Anubis"),
        );
        check(
            200,
            &[("content-type", "application/rss+xml")],
            anubis,
            None,
        );
        check(
            403,
            &[html, ("server", "cloudflare")],
            "<script>cf-chl-bypass</script>",
            Some("Cloudflare"),
        );
        check(403, &[html, ("server", "cloudflare")], "Forbidden", None);
        check(403, &[html], "Forbidden", None);
        check(404, &[("cf-mitigated", "no")], "", None);
    }
}
