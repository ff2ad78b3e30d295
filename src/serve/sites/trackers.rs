//! Parameters that others append to an address to follow who comes by it: campaigns and clicks. No
//! server gives another document for them; not the sessions and campaigns in the URLs of entries,
//! on which stored keys depend.

use std::borrow::Cow;

/// Beginnings of such parameters, in lower case: Urchin and Google Analytics, Matomo.
const PREFIXES: [&str; 2] = ["utm_", "mtm_"];

/// Such parameters, in lower case.
const TRACKERS: [&str; 17] = [
    "gclid", // Google, as the next five.
    "gclsrc", "dclid", "gbraid", "wbraid", "srsltid", "fbclid", "igshid",  // Instagram.
    "msclkid", // Microsoft.
    "twclid",  // X.
    "ttclid",  // TikTok.
    "yclid",   // Yandex.
    "mc_cid",  // Mailchimp, as the next.
    "mc_eid", "_hsenc", // HubSpot, as the next.
    "_hsmi", "mkt_tok", // Marketo.
];

/// A target without trackers, and without a question mark behind which nothing is left; everything
/// else stays as it is spelt.
pub(super) fn without_trackers(target: &str) -> Cow<'_, str> {
    let Some((path, query)) = target.split_once('?') else {
        return Cow::Borrowed(target);
    };
    let is_kept = |pair: &&str| !pair.is_empty() && !is_tracker(pair);
    if !query.is_empty() && query.split('&').all(|pair| is_kept(&pair)) {
        return Cow::Borrowed(target);
    }
    let kept: Vec<&str> = query.split('&').filter(is_kept).collect();
    Cow::Owned(if kept.is_empty() {
        path.to_owned()
    } else {
        format!("{path}?{}", kept.join("&"))
    })
}

fn is_tracker(pair: &str) -> bool {
    let name = pair
        .split('=')
        .next()
        .unwrap_or_default()
        .to_ascii_lowercase();
    TRACKERS.contains(&name.as_str())
        || PREFIXES.iter().any(|prefix| {
            name.strip_prefix(prefix)
                .is_some_and(|rest| !rest.is_empty())
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn trackers_are_left_out_and_everything_else_stays() {
        for (target, expect) in [
            ("/feed", "/feed"),
            ("/feed?", "/feed"),
            ("/feed?&", "/feed"),
            ("/feed?utm_source=x", "/feed"),
            ("/feed?UTM_Source=x&utm_medium=rss&fbclid=I&gclid", "/feed"),
            ("/?feed=rss2&mc_cid=1&mc_eid=2", "/?feed=rss2"),
            ("/feed?since=&utm_id=1", "/feed?since="),
            ("/feed?mtm_campaign=a&page=2&b", "/feed?page=2&b"),
            ("/feed?a=utm_source", "/feed?a=utm_source"),
            ("/feed?utm=1", "/feed?utm=1"),
            ("/feed?utm_=1", "/feed?utm_=1"),
            (
                "/feed?source=x&ref=y&gclid2=z",
                "/feed?source=x&ref=y&gclid2=z",
            ),
        ] {
            assert_eq!(without_trackers(target), expect);
        }
    }
}
