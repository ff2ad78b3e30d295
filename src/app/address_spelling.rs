//! The spelling of an address: the part by which two addresses are one feed; not which of them is
//! polled.

use sha2::{Digest as _, Sha256};
use url::Url;

/// Bytes of the digest of an address: 128 bits, so that no two of many addresses have the same one.
const DIGEST_BYTES: usize = 16;

// Decides: Are two addresses one feed?
/// The part that all spellings of an address share: host, port, path and query, without scheme,
/// credentials, `www.`, slashes at the end and fragment. Feeds of one path may differ in their query.
pub fn spelling(url: &Url) -> String {
    let host = url.host_str().unwrap_or_default();
    let host = host.trim_end_matches('.');
    let host = host.strip_prefix("www.").unwrap_or(host);
    let port = url.port().filter(|port| !matches!(port, 80 | 443));
    let port = port.map(|port| format!(":{port}")).unwrap_or_default();
    let path = url.path().trim_end_matches('/');
    let query = url.query().filter(|query| !query.is_empty());
    let query = query.map(|query| format!("?{query}")).unwrap_or_default();
    format!("{host}{port}{path}{query}")
}

/// The digest of what all spellings of an address share, in hex. It shows no secret of the address.
pub fn digest(url: &Url) -> String {
    let digest = Sha256::digest(spelling(url));
    hex::encode(&digest[..DIGEST_BYTES])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_the_same_feed_in_all_its_spellings() {
        let url = |text: &str| Url::parse(text).unwrap();
        let spelling = |text: &str| spelling(&url(text));
        assert_ne!(spelling("http://a/q?cat=1"), spelling("http://a/q?cat=2"));
        assert_ne!(spelling("http://a:81/q"), spelling("http://a/q"));
        assert_ne!(spelling("http://a/q"), spelling("http://a/Q"));
        for other in [
            "http://u:p@a.example/q/#x",
            "https://WWW.a.example:443/q",
            "https://a.example./q?",
        ] {
            assert_eq!(spelling(other), spelling("http://a.example/q"), "{other}");
        }
        let shown = digest(&url("http://u:hunter2@www.a.example/q?token=hunter3"));
        assert_eq!(shown, digest(&url("https://a.example/q/?token=hunter3")));
        assert_eq!(shown.len(), 2 * DIGEST_BYTES);
    }
}
