//! WSSE UsernameToken: the header's fields, its time, and its digest; not whose password it is, and
//! not whether it was seen before (LEGACY U-4 to U-7).

use base64::{Engine as _, prelude::BASE64_STANDARD};
use chrono::DateTime;
use sha1::{Digest as _, Sha1};
use subtle::ConstantTimeEq as _;

/// Seconds by which the clocks of client and server may differ (U-7).
pub const CLOCK_SECS: u64 = 300;

/// The fields of `X-WSSE`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UsernameToken {
    /// The user.
    pub username: String,
    /// The digest as it was sent.
    pub password_digest: String,
    /// The nonce as it was sent.
    pub nonce: String,
    /// The time as it was sent: it goes into the digest as it is.
    pub created: String,
}

/// The bytes of a nonce that led to a good digest, and that digest.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProvenDigest {
    /// The bytes that were hashed.
    pub nonce: Vec<u8>,
    /// SHA-1 over nonce, time and password.
    pub digest: [u8; 20],
}

const SCHEME: &str = "UsernameToken";

impl UsernameToken {
    /// Reads the value of `X-WSSE`. Fields stand in any order, in any case, with or without commas
    /// and quotes, and lines may be folded; one that is missing or stands there twice is refused.
    pub fn parse(value: &str) -> Option<Self> {
        let value = value.trim();
        let rest = value.get(SCHEME.len()..)?;
        if !value.get(..SCHEME.len())?.eq_ignore_ascii_case(SCHEME) || !rest.starts_with(is_blank) {
            return None;
        }
        let mut fields: [Option<String>; 4] = Default::default();
        let mut rest = rest.trim_start_matches(is_separator);
        while !rest.is_empty() {
            let (name, after) = rest.split_once('=')?;
            let (text, after) = field_value(after.trim_start_matches(is_blank))?;
            let names = ["username", "passworddigest", "nonce", "created"];
            let known = names
                .iter()
                .position(|known| name.trim().eq_ignore_ascii_case(known));
            if let Some(at) = known
                && fields[at].replace(text).is_some()
            {
                return None;
            }
            rest = after.trim_start_matches(is_separator);
        }
        let [username, password_digest, nonce, created] = fields;
        Some(Self {
            username: username?,
            password_digest: password_digest?,
            nonce: nonce?,
            created: created?,
        })
    }

    /// The parts of a value, each of which may be one: several may have been joined to a list.
    pub(super) fn pieces(value: &str) -> impl Iterator<Item = &str> {
        // ASCII alone changes its case, so that places stay.
        let lower = value.to_ascii_lowercase();
        let scheme = SCHEME.to_ascii_lowercase();
        let mut begins: Vec<usize> = lower.match_indices(&scheme).map(|(at, _)| at).collect();
        begins.insert(0, 0);
        begins.push(value.len());
        let pieces: Vec<&str> = begins
            .windows(2)
            .map(|ends| &value[ends[0]..ends[1]])
            .collect();
        pieces.into_iter().filter(|piece| !piece.is_empty())
    }

    /// The time of the request, microseconds since the epoch. Offsets may lack their colon.
    pub fn created_us(&self) -> Option<u64> {
        let text = self.created.as_str();
        // The year has four digits: else digits of the nonce could be moved here, and the digest
        // would still be right.
        let begins = text.as_bytes();
        if !begins
            .first_chunk::<5>()
            .is_some_and(|[year @ .., dash]| year.iter().all(u8::is_ascii_digit) && *dash == b'-')
        {
            return None;
        }
        let offset = |text: &str| DateTime::parse_from_str(text, "%Y-%m-%dT%H:%M:%S%.f%z").ok();
        let utc = || offset(&format!("{}+0000", text.strip_suffix(['Z', 'z'])?));
        let time = offset(text).or_else(utc)?;
        u64::try_from(time.timestamp_micros()).ok()
    }

    /// True when the request was made now, as far as clocks agree.
    pub fn is_recent(&self, now_us: u64) -> bool {
        self.created_us()
            .is_some_and(|created| created.abs_diff(now_us) <= CLOCK_SECS * 1_000_000)
    }

    /// The digest, when it was made with this password: over the nonce as it was sent, or as base64
    /// says it (U-6). `hex` takes that of the hexadecimal form, too (U-5). It takes as long for a
    /// wrong password as for a right one.
    pub fn prove(&self, password: &str, hex: bool) -> Option<ProvenDigest> {
        let sent = self.nonce.as_bytes().to_vec();
        let decoded = BASE64_STANDARD
            .decode(&self.nonce)
            .unwrap_or_else(|_| sent.clone());
        let mut proven = None;
        for nonce in [sent, decoded] {
            let hash = Sha1::new()
                .chain_update(&nonce)
                .chain_update(&self.created)
                .chain_update(password);
            let digest: [u8; 20] = hash.finalize().into();
            let binary = self.is_given(&BASE64_STANDARD.encode(digest));
            let as_hex = self.is_given(&BASE64_STANDARD.encode(hex::encode(digest)));
            if (binary || (hex && as_hex)) && proven.is_none() {
                proven = Some(ProvenDigest { nonce, digest });
            }
        }
        proven
    }

    fn is_given(&self, digest: &str) -> bool {
        self.password_digest
            .as_bytes()
            .ct_eq(digest.as_bytes())
            .into()
    }
}

fn is_blank(c: char) -> bool {
    matches!(c, ' ' | '\t' | '\r' | '\n')
}

fn is_separator(c: char) -> bool {
    is_blank(c) || c == ','
}

/// A quoted or a bare value, and what follows it. Quoted pairs are undone (RFC 9110 section 5.6.4).
fn field_value(text: &str) -> Option<(String, &str)> {
    let Some(quoted) = text.strip_prefix('"') else {
        let end = text.find(is_separator).unwrap_or(text.len());
        return Some((text[..end].to_owned(), &text[end..]));
    };
    let mut value = String::new();
    let mut chars = quoted.char_indices();
    while let Some((at, c)) = chars.next() {
        match c {
            '"' => return Some((value, &quoted[at + 1..])),
            '\\' => value.push(chars.next()?.1),
            c => value.push(c),
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn us(text: &str) -> u64 {
        DateTime::parse_from_rfc3339(text)
            .unwrap()
            .timestamp_micros()
            .try_into()
            .unwrap()
    }

    #[test]
    fn every_header_of_the_vectors_is_read_or_refused_as_expected() {
        // U-4.
        let cases = testkit::data::section("wsse_parse");
        assert_eq!(cases.len(), 8);
        for case in cases {
            let header = case["header"].as_str().unwrap();
            assert_eq!(
                UsernameToken::parse(header).is_some(),
                case["ok"].as_bool().unwrap(),
                "{header}"
            );
        }
        let quoted = UsernameToken::parse(
            r#"UsernameToken Username="a\"b", PasswordDigest=b, Nonce=c=, Created="d""#,
        );
        let quoted = quoted.unwrap();
        assert_eq!(
            (quoted.username.as_str(), quoted.nonce.as_str()),
            ("a\"b", "c=")
        );
        for bad in [
            "UsernameToken Username=\"a",
            "UsernameTokenUsername=a",
            "UsernameToken x",
            "é",
        ] {
            assert_eq!(UsernameToken::parse(bad), None, "{bad}");
        }
    }

    #[test]
    fn every_digest_of_the_vectors_is_proven_or_not_as_expected() {
        // U-5, U-6.
        let cases = testkit::data::section("wsse");
        assert_eq!(cases.len(), 10);
        for case in cases {
            let (name, text) = (&case["name"], |key: &str| case[key].as_str().unwrap());
            let token = UsernameToken::parse(text("header")).unwrap();
            let fields = |key: &str| case["fields"][key].as_str().unwrap();
            assert_eq!(token.username, fields("username"), "{name}");
            assert_eq!(token.password_digest, fields("passworddigest"), "{name}");
            assert_eq!(token.nonce, fields("nonce"), "{name}");
            assert_eq!(token.created, fields("created"), "{name}");
            if let Some(utc) = case["created_utc"].as_str() {
                assert_eq!(token.created_us(), Some(us(utc)), "{name}");
            }
            let matches = case["digest_matches"].as_bool().unwrap();
            assert_eq!(
                token.prove(text("password"), true).is_some(),
                matches,
                "{name}"
            );
            let is_hex = text("variant").ends_with("/hex");
            assert_eq!(
                token.prove(text("password"), false).is_some(),
                matches && !is_hex,
                "{name}"
            );
            assert_eq!(token.prove("another", true), None, "{name}");
        }
    }

    #[test]
    fn every_time_of_the_vectors_is_taken_or_refused_as_expected() {
        // U-7.
        let section = &testkit::data::vectors()["wsse_time"]["cases"];
        for case in section.as_array().unwrap() {
            let created = case["created"].as_str().unwrap().to_owned();
            let token = UsernameToken {
                username: String::new(),
                password_digest: String::new(),
                nonce: String::new(),
                created,
            };
            let taken = token.is_recent(us(case["now"].as_str().unwrap()));
            assert_eq!(taken, case["accept"].as_bool().unwrap_or(taken), "{case}");
        }
        for bad in [
            "",
            "12005-11-14T18:40:04Z",
            "+2005-11-14T18:40:04Z",
            "2005-11-14",
            "2005-13-14T18:40:04Z",
            "2005",
        ] {
            let token = UsernameToken {
                username: String::new(),
                password_digest: String::new(),
                nonce: String::new(),
                created: bad.to_owned(),
            };
            assert_eq!(token.created_us(), None, "{bad}");
        }
    }
}
