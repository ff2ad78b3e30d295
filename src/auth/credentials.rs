//! The credentials in the head of a request, by scheme; not whether they are good.

use super::wsse::UsernameToken;
use crate::secret::Secret;
use base64::{
    Engine as _, alphabet,
    engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig},
};
use http::{HeaderMap, HeaderName, header::AUTHORIZATION};

/// Credentials as they were sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Credentials {
    /// None.
    Absent,
    /// A user and a login password (RFC 7617).
    Basic {
        /// The user.
        user: String,
        /// The password.
        password: Secret,
    },
    /// A token (RFC 6750).
    Bearer(Secret),
    /// A digest (LEGACY U-4).
    Wsse(UsernameToken),
    /// A token in the path of the request (LEGACY U-1).
    SecretUrl(Secret),
    /// Something that is none of these.
    Unreadable,
}

/// `X-WSSE`.
pub(super) const X_WSSE: HeaderName = HeaderName::from_static("x-wsse");

impl Credentials {
    /// The credentials that a request carries in its head. Headers that stand there twice are
    /// refused: no proxy before us may have judged another one than we do.
    pub fn of(headers: &HeaderMap) -> Self {
        let mut given = headers.get_all(AUTHORIZATION).iter();
        let (authorization, None) = (given.next(), given.next()) else {
            return Self::Unreadable;
        };
        let Some(authorization) = authorization else {
            // Clients of the first days send the digest alone.
            return if headers.contains_key(X_WSSE) {
                Self::wsse(headers)
            } else {
                Self::Absent
            };
        };
        let Ok(value) = std::str::from_utf8(authorization.as_bytes()) else {
            return Self::Unreadable;
        };
        let (scheme, rest) = value
            .trim()
            .split_once([' ', '\t'])
            .unwrap_or((value.trim(), ""));
        let rest = rest.trim();
        match scheme.to_ascii_lowercase().as_str() {
            "basic" => basic(rest).unwrap_or(Self::Unreadable),
            "bearer" if !rest.is_empty() => Self::Bearer(Secret::new(rest)),
            "wsse" => Self::wsse(headers),
            _ => Self::Unreadable,
        }
    }

    fn wsse(headers: &HeaderMap) -> Self {
        let mut given = headers.get_all(X_WSSE).iter();
        let (Some(value), None) = (given.next(), given.next()) else {
            return Self::Unreadable;
        };
        let token = std::str::from_utf8(value.as_bytes())
            .ok()
            .and_then(UsernameToken::parse);
        token.map_or(Self::Unreadable, Self::Wsse)
    }

    /// The scheme in one word, for counters and logs.
    pub fn scheme(&self) -> &'static str {
        match self {
            Self::Absent => "none",
            Self::Basic { .. } => "basic",
            Self::Bearer(_) => "bearer",
            Self::Wsse(_) => "wsse",
            Self::SecretUrl(_) => "secret_url",
            Self::Unreadable => "unreadable",
        }
    }
}

/// Base64 with its padding or without: what one server takes for a password is one here, too.
const BASE64: GeneralPurpose = GeneralPurpose::new(
    &alphabet::STANDARD,
    GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent),
);

/// User and password; the first colon parts them, and both are UTF-8.
fn basic(encoded: &str) -> Option<Credentials> {
    let decoded = String::from_utf8(BASE64.decode(encoded).ok()?).ok()?;
    let (user, password) = decoded.split_once(':')?;
    Some(Credentials::Basic {
        user: user.to_owned(),
        password: Secret::new(password),
    })
}

/// Texts in base64 that stand in a line, wherever and behind whatever scheme, with the alphabet of
/// URLs or without it: what another server could read as a user and a password. Text that is no
/// UTF-8 is Latin-1, as clients of the first days send it.
pub(super) fn basic_texts_in(line: &[u8]) -> impl Iterator<Item = Secret> {
    let is_base64 = |byte: &u8| byte.is_ascii_alphanumeric() || b"+/-_".contains(byte);
    line.split(move |byte| !is_base64(byte))
        .filter(|run| !run.is_empty())
        .filter_map(|run| {
            let standard: Vec<u8> = run
                .iter()
                .map(|byte| match byte {
                    b'-' => b'+',
                    b'_' => b'/',
                    other => *other,
                })
                .collect();
            let decoded = BASE64.decode(standard).ok()?;
            let text = String::from_utf8(decoded)
                .unwrap_or_else(|latin| latin.as_bytes().iter().copied().map(char::from).collect());
            Some(Secret::new(text))
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(lines: &[(&'static str, &str)]) -> Credentials {
        let mut headers = HeaderMap::new();
        for (name, value) in lines {
            headers.append(*name, value.parse().unwrap());
        }
        Credentials::of(&headers)
    }

    #[test]
    fn each_scheme_is_read_whatever_the_case_of_its_name() {
        // U-2, U-4; RFC 7617 section 2.
        let basic = |user: &str, password: &str| Credentials::Basic {
            user: user.to_owned(),
            password: Secret::new(password),
        };
        assert_eq!(of(&[]), Credentials::Absent);
        assert_eq!(
            of(&[("authorization", "Basic QWxhZGRpbjpvcGVuIHNlc2FtZQ==")]),
            basic("Aladdin", "open sesame")
        );
        assert_eq!(
            of(&[("authorization", "bASIC  dGVzdDoxMjPCow==")]),
            basic("test", "123£")
        );
        assert_eq!(
            of(&[("authorization", "Basic YTpiOmM=")]),
            basic("a", "b:c")
        );
        assert_eq!(
            of(&[("authorization", "bearer abc")]),
            Credentials::Bearer(Secret::new("abc"))
        );
        let wsse = (
            "x-wsse",
            "UsernameToken Username=a, PasswordDigest=b, Nonce=c, Created=d",
        );
        for profile in [
            "WSSE profile=\"cal\"",
            "WSSE profile=\"UsernameToken\"",
            "wsse",
            "WSSE realm=\"x\"",
        ] {
            assert!(
                matches!(
                    of(&[("authorization", profile), wsse]),
                    Credentials::Wsse(_)
                ),
                "{profile}"
            );
        }
        assert!(matches!(of(&[wsse]), Credentials::Wsse(token) if token.username == "a"));
    }

    #[test]
    fn what_cannot_be_read_is_no_absence() {
        let basic = ("authorization", "Basic QWxhZGRpbjpvcGVuIHNlc2FtZQ==");
        let wsse = (
            "x-wsse",
            "UsernameToken Username=a, PasswordDigest=b, Nonce=c, Created=d",
        );
        for lines in [
            &[("authorization", "")][..],
            &[("authorization", "Basic")],
            &[("authorization", "Basic !!!")],
            &[("authorization", "Basic YWI=")],
            &[("authorization", "Basic 4zpi")],
            &[("authorization", "Bearer ")],
            &[("authorization", "Digest username=\"a\"")],
            &[("authorization", "WSSE profile=\"UsernameToken\"")],
            &[("authorization", "WSSE"), ("x-wsse", "nonsense")],
            &[wsse, wsse],
            &[basic, basic],
        ] {
            assert_eq!(of(lines), Credentials::Unreadable, "{lines:?}");
        }
        assert!(!format!("{:?}", of(&[basic])).contains("sesame"));
    }
    #[test]
    fn texts_in_base64_are_found_wherever_they_stand() {
        let texts = |line: &str| -> Vec<String> {
            let texts = basic_texts_in(line.as_bytes()).map(|text| text.reveal().to_owned());
            texts.filter(|text| text.contains(':')).collect()
        };
        // `test:123£`, in UTF-8 and in Latin-1.
        for line in [
            "Basic dGVzdDoxMjPCow==",
            "Basic dGVzdDoxMjOj",
            "Bearer x, Basic dGVzdDoxMjPCow",
            "dGVzdDoxMjPCow==",
            "Basic auth=dGVzdDoxMjPCow==,x",
            "Other token=\"dGVzdDoxMjPCow==\"",
        ] {
            assert_eq!(texts(line), ["test:123£"], "{line}");
        }
        // In the alphabet of URLs, and two of them.
        assert_eq!(texts("Basic Pz8_Ojw8Pg, YTpi"), ["???:<<>", "a:b"]);
        assert_eq!(texts("Basic !!!, Bearer"), [""; 0]);
    }
}
