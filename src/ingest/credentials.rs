//! `[[credentials]]`: the name and the secret by which an origin knows us, for every feed there.

use crate::{
    locks::{read, write},
    secret::Secret,
    setting::{RefusedSetting, quoted},
};
use base64::{Engine as _, prelude::BASE64_STANDARD};
use http::{
    HeaderName, HeaderValue,
    header::{
        ACCEPT_ENCODING, AUTHORIZATION, CONNECTION, CONTENT_LENGTH, HOST, RANGE, TE,
        TRANSFER_ENCODING, UPGRADE, USER_AGENT,
    },
};
use serde::{Deserialize, Serialize};
use std::{
    collections::HashMap,
    sync::{Arc, RwLock},
};
use url::{Origin, Url};

/// `[[credentials]]`: what one origin is told with each request. One of a user with a password, a
/// bearer token, and a header with a value; several tables may name one origin.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CredentialSettings {
    /// The origin: scheme, host and port.
    pub origin: Url,
    /// The user of Basic authentication (RFC 7617).
    #[serde(default)]
    pub user: Option<String>,
    /// Its password.
    #[serde(default)]
    pub password: Option<Secret>,
    /// A bearer token (RFC 6750).
    #[serde(default)]
    pub bearer: Option<Secret>,
    /// The name of a header.
    #[serde(default)]
    pub header: Option<String>,
    /// Its value.
    #[serde(default)]
    pub value: Option<Secret>,
}

/// Tables of credentials at most.
pub const CREDENTIALS_MAX: usize = 1000;

/// Headers that are ours, or those of the connection.
const OWN_HEADERS: [HeaderName; 9] = [
    ACCEPT_ENCODING,
    CONNECTION,
    CONTENT_LENGTH,
    HOST,
    RANGE,
    TE,
    TRANSFER_ENCODING,
    UPGRADE,
    USER_AGENT,
];

impl CredentialSettings {
    /// Everything that cannot be meant.
    pub fn problems(&self) -> Vec<RefusedSetting> {
        let mut problems = Vec::new();
        let url = &self.origin;
        let is_bare = url.username().is_empty() && url.password().is_none();
        let is_origin = url.path() == "/" && url.query().is_none() && url.fragment().is_none();
        if !matches!(url.scheme(), "http" | "https") || !is_bare || !is_origin {
            let wanted = "give scheme, host and port alone, such as \"https://blog.example\"";
            problems.push(RefusedSetting::new("origin", quoted(url.as_str()), wanted));
        }
        let given = [
            self.user.is_some() && self.password.is_some(),
            self.bearer.is_some(),
            self.header.is_some() && self.value.is_some(),
        ];
        let keys = [
            self.user.is_some(),
            self.password.is_some(),
            self.bearer.is_some(),
            self.header.is_some(),
            self.value.is_some(),
        ];
        let count = |of: &[bool]| of.iter().filter(|is| **is).count();
        let is_one = count(&given) == 1 && count(&keys) <= 2 && (!given[1] || count(&keys) == 1);
        if !is_one {
            let wanted = "give one of `user` with `password`, `bearer`, and `header` with `value`";
            problems.push(RefusedSetting::new("origin", quoted(url.as_str()), wanted));
        } else if self.header_pair().is_none() {
            let (key, found) = match &self.header {
                Some(name) => ("header", quoted(name)),
                None => ("origin", quoted(url.as_str())),
            };
            let wanted = "these credentials cannot be sent: give a header that is not the connection's or everfeed's own, and printable characters";
            problems.push(RefusedSetting::new(key, found, wanted));
        }
        problems
    }

    /// The header that is sent; `None` for one that cannot be.
    fn header_pair(&self) -> Option<(HeaderName, HeaderValue)> {
        let (name, text) = if let Some(bearer) = &self.bearer {
            (AUTHORIZATION, format!("Bearer {}", bearer.reveal()))
        } else if let (Some(user), Some(password)) = (&self.user, &self.password) {
            let pair = BASE64_STANDARD.encode(format!("{user}:{}", password.reveal()));
            (AUTHORIZATION, format!("Basic {pair}"))
        } else {
            let name: HeaderName = self.header.as_ref()?.parse().ok()?;
            (name, self.value.as_ref()?.reveal().to_owned())
        };
        let mut value = HeaderValue::try_from(text).ok()?;
        value.set_sensitive(true);
        (!OWN_HEADERS.contains(&name)).then_some((name, value))
    }
}

/// The headers that origins are told. Cheap to clone; the clones are one.
#[derive(Clone, Debug, Default)]
pub struct Credentials(Arc<RwLock<OriginHeaders>>);

/// Headers by origin.
type OriginHeaders = HashMap<Origin, Vec<(HeaderName, HeaderValue)>>;

impl Credentials {
    /// The headers of these settings.
    pub fn of(settings: &[CredentialSettings]) -> Self {
        Self(Arc::new(RwLock::new(Self::headers(settings))))
    }

    /// Has every request from now on tell those of these settings.
    pub fn replace(&self, settings: &[CredentialSettings]) {
        *write(&self.0) = Self::headers(settings);
    }

    fn headers(settings: &[CredentialSettings]) -> OriginHeaders {
        let mut headers: HashMap<Origin, Vec<_>> = HashMap::new();
        for one in settings {
            let of_origin = headers.entry(one.origin.origin()).or_default();
            of_origin.extend(one.header_pair());
        }
        headers
    }

    /// The headers for a URL, marked as sensitive: they are shown nowhere, and a redirect to another
    /// origin leaves them out.
    pub fn at(&self, url: &Url) -> Vec<(HeaderName, HeaderValue)> {
        let headers = read(&self.0);
        if headers.is_empty() {
            return Vec::new();
        }
        headers.get(&url.origin()).cloned().unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> CredentialSettings {
        toml::from_str(&format!("origin = \"https://blog.example\"\n{text}")).unwrap()
    }

    #[test]
    fn an_origin_is_told_one_header_and_another_origin_nothing() {
        let check = |text: &str, name: &str, value: &str| {
            let settings = read(text);
            assert_eq!(settings.problems(), [], "{text}");
            let credentials = Credentials::default();
            let requests = credentials.clone();
            credentials.replace(&[settings]);
            let at = |url: &str| requests.at(&Url::parse(url).unwrap());
            let told = at("https://blog.example/a/feed?x=1");
            assert_eq!(told.len(), 1, "{text}");
            assert_eq!(
                (told[0].0.as_str(), told[0].1.to_str().unwrap()),
                (name, value)
            );
            assert!(told[0].1.is_sensitive());
            for other in [
                "http://blog.example/",
                "https://blog.example:444/",
                "https://x.blog.example/",
            ] {
                assert!(at(other).is_empty(), "{other}");
            }
        };
        check(
            "user = \"u\"\npassword = \"p:1\"",
            "authorization",
            "Basic dTpwOjE=",
        );
        check("bearer = \"t0k\"", "authorization", "Bearer t0k");
        check("header = \"X-Api-Key\"\nvalue = \"k\"", "x-api-key", "k");
    }

    #[test]
    fn credentials_that_cannot_be_meant_are_refused_and_not_shown() {
        for text in [
            "",
            "user = \"u\"",
            "bearer = \"hunter2\"\nuser = \"u\"",
            "bearer = \"hunter2\"\nheader = \"x\"\nvalue = \"hunter2\"",
            "header = \"host\"\nvalue = \"hunter2\"",
            "header = \"a b\"\nvalue = \"hunter2\"",
            "bearer = \"hunter2\\n\"",
        ] {
            let problems = read(text).problems();
            assert_eq!(problems.len(), 1, "{text}");
            assert!(!problems[0].to_string().contains("hunter2"), "{text}");
        }
        let below: CredentialSettings =
            toml::from_str("origin = \"https://x/a\"\nbearer = \"t\"").unwrap();
        assert_eq!(below.problems().len(), 1);
    }
}
