//! Values that must not be shown, and texts and URLs without their credentials; not encryption:
//! secrets are kept out of logs and error texts, not out of memory.

use percent_encoding::percent_decode_str;
use serde::{Deserialize, Serialize, Serializer};
use sha2::{Digest as _, Sha256};
use std::fmt;
use url::Url;

/// A secret. `Debug` prints `***`; there is no `Display`.
#[derive(Clone, PartialEq, Eq, Deserialize)]
#[serde(transparent)]
pub struct Secret(String);

impl Secret {
    /// Wraps a value.
    pub fn new(value: impl Into<String>) -> Self {
        Self(value.into())
    }

    /// True for a text that stands for a secret where settings are serialized.
    pub fn is_serialized(text: &str) -> bool {
        text.starts_with(DIGEST)
    }

    /// The value itself, for the one place that needs it.
    pub fn reveal(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("***")
    }
}

/// A digest stands for it: enough to see that it was changed.
impl Serialize for Secret {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let digest = hex::encode(Sha256::digest(&self.0));
        serializer.serialize_str(&format!("{DIGEST}{digest}"))
    }
}

/// The text before the digest of a secret, by which it is told from other texts.
const DIGEST: &str = "secret, sha256:";

/// `server.admin_token`: the secret of the operator's requests.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct AdminToken(Secret);

/// The shortest token, characters.
const TOKEN_CHARS_MIN: usize = 16;

impl AdminToken {
    /// A token.
    pub fn new(token: impl Into<String>) -> Self {
        Self(Secret::new(token))
    }

    /// True for one that can be sent and is not soon guessed.
    pub fn is_good(&self) -> bool {
        let token = self.0.reveal();
        token.len() >= TOKEN_CHARS_MIN && token.bytes().all(|b| b.is_ascii_graphic())
    }

    /// The value of the `Authorization` header.
    pub fn header(&self) -> String {
        format!("Bearer {}", self.0.reveal())
    }

    /// True when these bytes are the token. Digests are compared, so that the time tells nothing of
    /// it.
    pub fn is(&self, given: &[u8]) -> bool {
        Sha256::digest(given) == Sha256::digest(self.0.reveal())
    }
}

/// `site.readers_secret`: the end of the address at which the owner of a site sees its readers.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct AddressSecret(Secret);

/// Characters of such a secret at least, which nobody guesses, and at most.
const ADDRESS_SECRET_CHARS: std::ops::RangeInclusive<usize> = 20..=128;

impl AddressSecret {
    /// True for one that stands in a path as it is, and is not soon guessed.
    pub fn is_good(&self) -> bool {
        let secret = self.0.reveal();
        ADDRESS_SECRET_CHARS.contains(&secret.len()) && secret.bytes().all(is_plain_in_path)
    }

    /// True when these bytes are the secret. Digests are compared, so that the time tells nothing of
    /// it.
    pub fn is(&self, given: &[u8]) -> bool {
        Sha256::digest(given) == Sha256::digest(self.0.reveal())
    }
}

/// True for a byte that has one spelling in a path.
fn is_plain_in_path(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_'
}

/// `xmpp.secret`: the secret that a server of XMPP shares with us.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct ComponentSecret(Secret);

impl ComponentSecret {
    /// The secret itself.
    pub fn secret(&self) -> &Secret {
        &self.0
    }

    /// True for one line of text.
    pub fn is_good(&self) -> bool {
        let secret = self.0.reveal();
        !secret.is_empty() && !secret.contains(char::is_control)
    }
}

/// A text whose credentials must not be shown: whatever stands before an `@` where a URL has its
/// authority, be its scheme left out. The name in an address (me@example.org) is none.
pub fn masked(text: &str) -> String {
    let authority = text.find("//").map(|at| at + 2);
    let start = authority.unwrap_or_default();
    let end = text[start..]
        .find(['/', '?', '#'])
        .map_or(text.len(), |at| start + at);
    match text[start..end].rfind('@') {
        Some(at) if authority.is_some() || has_password(&text[..at]) => {
            format!("{}***{}", &text[..start], &text[start + at..])
        }
        _ => text.to_owned(),
    }
}

/// True for a text before an `@` that may be `user:password`, not the names of addresses alone.
fn has_password(before: &str) -> bool {
    let is_between = |c: char| c.is_whitespace() || "\"',;[]".contains(c);
    before.split(is_between).any(|piece| {
        let address = ["xmpp:", "mailto:"]
            .iter()
            .find_map(|scheme| piece.strip_prefix(scheme));
        address.unwrap_or(piece).contains(':')
    })
}

/// The same of a text that may be a URL with a query, of which names of parameters are shown and
/// values are not: one may be a token.
pub fn masked_with_query(text: &str) -> String {
    let mut text = masked(text);
    let fragment = text.find('#').map_or("", |at| {
        text.truncate(at);
        "#***"
    });
    let Some((before, query)) = text.split_once('?') else {
        return text + fragment;
    };
    let shown = |pair: &str| match pair.split_once('=') {
        // The end of a token alone may be a sign of equality, too (Base64).
        Some((name, value)) if !value.trim_matches('=').is_empty() => format!("{name}=***"),
        _ => "***".to_owned(),
    };
    let names: Vec<String> = query.split('&').map(shown).collect();
    format!("{before}?{}{fragment}", names.join("&"))
}

/// A URL of anybody as the log may have it: without credentials, without the token of a secret URL,
/// and with no more of its query than names.
pub fn logged_url(url: &str) -> String {
    masked_with_query(&without_token(url))
}

/// A text for the log or the operator in which there may be URLs, or paths with queries: each as
/// [`logged_url`] has it.
pub fn logged_text(text: &str) -> String {
    if !text.contains(['?', '#', '@']) {
        return text.to_owned();
    }
    let is_between = |c: char| c.is_whitespace() || "\"'`()<>".contains(c);
    let mut logged = String::with_capacity(text.len());
    for piece in text.split_inclusive(is_between) {
        let url = piece.trim_end_matches(is_between);
        let url = url.trim_end_matches(['.', ',', ';', ':', '?']);
        if url.contains('/') && url.contains(['?', '#', '@']) {
            logged += &logged_url(url);
        } else {
            logged += url;
        }
        logged += &piece[url.len()..];
    }
    logged
}

/// Parts of names of parameters whose values are secrets.
const SECRET_NAMES: [&str; 8] = [
    "token", "key", "auth", "secret", "pass", "pwd", "sig", "session",
];

/// The same of a text that may be a URL whose query is wanted: only values under names of secrets
/// are masked.
pub fn masked_secrets(text: &str) -> String {
    let is_secret = |name: &str| {
        SECRET_NAMES
            .iter()
            .any(|part| name.to_ascii_lowercase().contains(part))
    };
    let query = text.split_once('?').map_or("", |(_, query)| query);
    let has_secret = query
        .split('&')
        .any(|pair| is_secret(pair.split('=').next().unwrap_or_default()));
    if has_secret {
        masked_with_query(text)
    } else {
        masked(text)
    }
}

/// A URL as everybody may see it: without credentials, and without a query, which may be a token.
pub fn public_url(url: &Url) -> String {
    let mut url = url.clone();
    // Both fail only for URLs without a host, which have no credentials.
    let _ = url.set_username("");
    let _ = url.set_password(None);
    url.set_query(None);
    url.into()
}

/// The same of a URL that is kept as text; empty for a text that is none.
pub fn public_text(url: &str) -> String {
    Url::parse(url).map_or_else(|_| String::new(), |url| public_url(&url))
}

/// A URL or a path of ours without the token that makes it a secret (U-1): whatever stands behind
/// `/s/`, also where a topic in a query has it.
pub fn without_token(url: &str) -> String {
    let plain = percent_decode_str(url).decode_utf8_lossy();
    let mut before = "";
    let steps = plain.split('/').map(|step| {
        let is_token = match std::mem::replace(&mut before, step) {
            "s" => true,
            "in" => is_callback_token(step),
            "readers" => is_address_secret(step),
            _ => false,
        };
        if is_token { "***" } else { step }
    });
    let masked: Vec<&str> = steps.collect();
    if masked.contains(&"***") {
        masked.join("/")
    } else {
        url.to_owned()
    }
}

/// True for a step of a path that may be the secret of an address.
fn is_address_secret(step: &str) -> bool {
    let secret = step.as_bytes().get(..*ADDRESS_SECRET_CHARS.start());
    secret.is_some_and(|secret| secret.iter().copied().all(is_plain_in_path))
}

/// Hexadecimal digits of the token of a callback.
const CALLBACK_TOKEN_DIGITS: usize = 32;

/// True for a step of a path that begins with the token of a callback.
fn is_callback_token(step: &str) -> bool {
    let token = step.as_bytes().get(..CALLBACK_TOKEN_DIGITS);
    token.is_some_and(|token| token.iter().all(u8::is_ascii_hexdigit))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_token_of_a_secret_url_is_not_shown_however_it_is_spelt() {
        let check = |url: &str, expect: &str| assert_eq!(without_token(url), expect);
        let token = "0123456789abcdef0123456789abcdef";
        check(&format!("/x/in/{token}"), "/x/in/***");
        check(&format!("/in/{token}?hub.challenge=1"), "/in/***");
        check("/in/2024/post", "/in/2024/post");
        check("/feeds/blog?a=%2f", "/feeds/blog?a=%2f");
        check("/smart/s/abc/feeds/blog?x=1", "/smart/s/***/feeds/blog?x=1");
        check("/%73/%61bc/feeds", "/s/***/feeds");
        check(
            "/cb?hub.topic=http%3A%2F%2Fx%2Fs%2Fabc%2Ffeeds",
            "/cb?hub.topic=http://x/s/***/feeds",
        );
    }

    #[test]
    fn a_password_is_masked_and_an_address_is_shown() {
        let check = |text: &str, expect: &str| assert_eq!(masked(text), expect);
        for address in [
            "\"a@feeds.test\"",
            "\"xmpp:Bob@Localhost\"",
            "[\"xmpp:Bob@Localhost\", \"xmpp:*@x\"], or mailto:me@x",
            "xmpp:bob@localhost/phone",
        ] {
            check(address, address);
        }
        check("https://u:p@x/", "https://***@x/");
        check("https://token@x/", "https://***@x/");
        check("xmpp://u:p@x/", "xmpp://***@x/");
        check("u:p@x/rss", "***@x/rss");
        check("url = \"u:p w@x/rss\"", "***@x/rss\"");
        check("\"xmpp:u:p@x\"", "***@x\"");
    }

    #[test]
    fn a_logged_url_has_no_values_of_its_query() {
        let check = |url: &str, expect: &str| assert_eq!(logged_url(url), expect);
        check("/feeds/blog", "/feeds/blog");
        check("/rss?token=abc&x=1", "/rss?token=***&x=***");
        check("/rss?YWJj=", "/rss?***");
        check("/rss?YWI==&a", "/rss?***&***");
        check(
            "https://u:p@h.example/rss?k=abc#abc",
            "https://***@h.example/rss?k=***#***",
        );
        check(
            "https://h.example/#access_token=abc",
            "https://h.example/#***",
        );
        check("/s/abc/rss?k=abc", "/s/***/rss?k=***");
        check(
            "/cb?hub.topic=http%3A%2F%2Fx%2Fs%2Fabc%2Frss%3Fk%3Dabc",
            "/cb?hub.topic=***",
        );
    }

    #[test]
    fn a_logged_text_has_no_values_of_the_queries_of_its_urls() {
        let check = |text: &str, expect: &str| assert_eq!(logged_text(text), expect);
        check("plain (text), of and/or?", "plain (text), of and/or?");
        check(
            "its document at http://h.example/q.xml?key=abc, give url = \"http://u:p@h/q?a=b,c\" and \"/q.xml?x\"; at /p.",
            "its document at http://h.example/q.xml?key=***, give url = \"http://***@h/q?a=***\" and \"/q.xml?***\"; at /p.",
        );
    }

    #[test]
    fn a_token_is_long_enough_and_never_shown() {
        let good = AdminToken::new("0123456789abcdef");
        assert!(good.is_good() && !AdminToken::new("short").is_good());
        assert!(!AdminToken::new("0123456789 abcdef").is_good());
        let shown = format!("{good:?} {}", serde_json::to_string(&good).unwrap());
        assert!(!shown.contains("0123456789abcdef"), "{shown}");
        assert_eq!(good.header(), "Bearer 0123456789abcdef");
        assert!(good.is(b"0123456789abcdef") && !good.is(b"0123456789abcde"));
        assert_eq!(
            serde_json::from_str::<AdminToken>("\"0123456789abcdef\"").unwrap(),
            good
        );
    }
}
