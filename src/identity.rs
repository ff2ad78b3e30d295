//! The identity by which publishers recognise everfeed: Ed25519 keys, and the HTTP message signatures
//! (RFC 9421) of draft-ietf-webbotauth-httpsig-protocol. Pure: whoever signs tells the time.

use base64::{
    Engine as _,
    prelude::{BASE64_STANDARD, BASE64_URL_SAFE_NO_PAD},
};
use http::{HeaderName, HeaderValue};
use ring::signature::{Ed25519KeyPair, KeyPair as _};
use rustls::pki_types::{PrivatePkcs8KeyDer, pem::PemObject as _};
use serde::{Deserialize, Serialize};
use serde_json::json;
use sha2::{Digest as _, Sha256};
use std::fmt;
use url::Url;

/// The path of the key directory, at the root of our origin.
pub const DIRECTORY_PATH: &str = "/.well-known/http-message-signatures-directory";

/// The media type of the key directory.
pub const DIRECTORY_TYPE: &str = "application/http-message-signatures-directory+json";

/// Seconds for which a signature is good; the draft allows a day (U-40).
const SIGNED_SECS: u64 = 60;

/// Random bytes of a nonce.
pub const NONCE_BYTES: usize = 32;

/// The key of RFC 9421, appendix B.1.4, by its thumbprint. Everybody has it.
const TEST_KEY: &str = "poqkLGiymh_W0uP6PZFw-dvez3QJT5SolqXBCW38r0U";

/// The form of `Signature-Agent` (U-41, U-42).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum AgentForm {
    /// A string, as in the drafts of 2025. Cloudflare takes no other.
    #[default]
    String,
    /// A dictionary, as in the draft since 2026.
    Dictionary,
}

/// A key that signs.
pub struct SigningKey {
    pair: Ed25519KeyPair,
    /// The public key in base64url.
    x: String,
    /// The thumbprint of the public key (RFC 7638, RFC 8037 appendix A.3).
    id: String,
}

impl fmt::Debug for SigningKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SigningKey({})", self.id)
    }
}

impl SigningKey {
    /// Reads a private key in PEM (PKCS #8), as `openssl genpkey -algorithm ed25519` prints it. The
    /// error says what is wrong with it, and shows nothing of it.
    pub fn from_pem(pem: &[u8]) -> Result<Self, &'static str> {
        let der = PrivatePkcs8KeyDer::from_pem_slice(pem)
            .map_err(|_| "it holds no private key in PEM (PKCS #8)")?;
        let pair = Ed25519KeyPair::from_pkcs8_maybe_unchecked(der.secret_pkcs8_der())
            .map_err(|_| "its key is not of Ed25519")?;
        let key = Self::of(pair);
        if key.id == TEST_KEY {
            return Err("its key is the published one of RFC 9421, which everybody has");
        }
        Ok(key)
    }

    fn of(pair: Ed25519KeyPair) -> Self {
        let x = BASE64_URL_SAFE_NO_PAD.encode(pair.public_key());
        let jwk = format!(r#"{{"crv":"Ed25519","kty":"OKP","x":"{x}"}}"#);
        let id = BASE64_URL_SAFE_NO_PAD.encode(Sha256::digest(jwk));
        Self { pair, x, id }
    }

    fn sign(&self, base: &str) -> String {
        BASE64_STANDARD.encode(self.pair.sign(base.as_bytes()))
    }
}

/// The keys of everfeed and the origin where everybody can read their public halves.
#[derive(Debug)]
pub struct Identity {
    /// The first signs requests; all are published, so that one can follow another.
    keys: Vec<SigningKey>,
    /// Our origin, without a slash at its end.
    agent: String,
    form: AgentForm,
}

/// The headers of a signature.
pub type SignatureHeaders = Vec<(HeaderName, HeaderValue)>;

const SIGNATURE: HeaderName = HeaderName::from_static("signature");
const SIGNATURE_INPUT: HeaderName = HeaderName::from_static("signature-input");
const SIGNATURE_AGENT: HeaderName = HeaderName::from_static("signature-agent");
const CONTENT_DIGEST: HeaderName = HeaderName::from_static("content-digest");

impl Identity {
    /// An identity whose directory is at the origin of this URL; `None` without a key.
    pub fn new(keys: Vec<SigningKey>, public_url: &Url, form: AgentForm) -> Option<Self> {
        if keys.is_empty() {
            return None;
        }
        let agent = public_url.origin().ascii_serialization();
        Some(Self { keys, agent, form })
    }

    /// The headers that sign a request to an authority (`host` or `host:port` as in its URL) at a
    /// time, in seconds since 1970 (U-40).
    pub fn sign_request(
        &self,
        authority: &str,
        now_secs: u64,
        nonce: &[u8; NONCE_BYTES],
    ) -> SignatureHeaders {
        let key = &self.keys[0];
        let agent = &self.agent;
        let (component, value, of_agent) = match self.form {
            AgentForm::String => (
                "\"signature-agent\"",
                format!("\"{agent}\""),
                format!("\"{agent}\""),
            ),
            AgentForm::Dictionary => (
                "\"signature-agent\";key=\"sig1\"",
                format!("sig1=\"{agent}\""),
                format!("\"{agent}\""),
            ),
        };
        let expires = now_secs + SIGNED_SECS;
        let (id, nonce) = (&key.id, BASE64_STANDARD.encode(nonce));
        let input = format!(
            "(\"@authority\" {component});created={now_secs};keyid=\"{id}\";alg=\"ed25519\";expires={expires};nonce=\"{nonce}\";tag=\"web-bot-auth\""
        );
        let authority = authority.to_ascii_lowercase();
        let base = format!(
            "\"@authority\": {authority}\n{component}: {of_agent}\n\"@signature-params\": {input}"
        );
        let signature = key.sign(&base);
        headers([
            (SIGNATURE_AGENT, value),
            (SIGNATURE_INPUT, format!("sig1={input}")),
            (SIGNATURE, format!("sig1=:{signature}:")),
        ])
    }

    /// The directory: the public keys as a JSON Web Key Set (U-43).
    pub fn directory(&self) -> String {
        let key = |key: &SigningKey| json!({ "kty": "OKP", "crv": "Ed25519", "kid": key.id, "x": key.x, "use": "sig" });
        let keys: Vec<_> = self.keys.iter().map(key).collect();
        json!({ "keys": keys }).to_string()
    }

    /// The headers that sign the directory for a request to an authority, with each key (U-43).
    pub fn sign_directory(
        &self,
        directory: &str,
        authority: &str,
        now_secs: u64,
    ) -> SignatureHeaders {
        let digest = BASE64_STANDARD.encode(Sha256::digest(directory));
        let digest = format!("sha-256=:{digest}:");
        let authority = authority.to_ascii_lowercase();
        let expires = now_secs + SIGNED_SECS;
        let (mut inputs, mut signatures) = (Vec::new(), Vec::new());
        for (at, key) in self.keys.iter().enumerate() {
            let id = &key.id;
            let input = format!(
                "(\"@authority\";req \"content-digest\");created={now_secs};keyid=\"{id}\";alg=\"ed25519\";expires={expires};tag=\"http-message-signatures-directory\""
            );
            let base = format!(
                "\"@authority\";req: {authority}\n\"content-digest\": {digest}\n\"@signature-params\": {input}"
            );
            inputs.push(format!("sig{}={input}", at + 1));
            signatures.push(format!("sig{}=:{}:", at + 1, key.sign(&base)));
        }
        headers([
            (CONTENT_DIGEST, digest),
            (SIGNATURE_INPUT, inputs.join(", ")),
            (SIGNATURE, signatures.join(", ")),
        ])
    }
}

/// Values made of ASCII that a header takes.
fn headers(pairs: [(HeaderName, String); 3]) -> SignatureHeaders {
    let header =
        |(name, value): (HeaderName, String)| Some((name, HeaderValue::try_from(value).ok()?));
    pairs.into_iter().filter_map(header).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use ring::signature::{ED25519, UnparsedPublicKey};

    /// RFC 9421, appendix B.1.4.
    const TEST_PEM: &str = "-----BEGIN PRIVATE KEY-----\nMC4CAQAwBQYDK2VwBCIEIJ+DYvh6SEqVTm50DFtMDoQikTmiCqirVv9mWG9qfSnF\n-----END PRIVATE KEY-----\n";

    fn test_key() -> SigningKey {
        let der = PrivatePkcs8KeyDer::from_pem_slice(TEST_PEM.as_bytes()).unwrap();
        SigningKey::of(Ed25519KeyPair::from_pkcs8_maybe_unchecked(der.secret_pkcs8_der()).unwrap())
    }

    fn identity(form: AgentForm) -> Identity {
        let url = Url::parse("https://signature-agent.test/smart/").unwrap();
        Identity::new(vec![test_key()], &url, form).unwrap()
    }

    fn value(headers: &SignatureHeaders, wanted: &HeaderName) -> String {
        let found = headers.iter().find(|(name, _)| name == wanted).unwrap();
        found.1.to_str().unwrap().to_owned()
    }

    #[test]
    fn u_44_the_vectors_of_the_draft_come_out_byte_for_byte() {
        let key = test_key();
        assert_eq!(key.x, "JrQLj5P_89iXES9-vFgrIy29clF9CC_oPPsw3c5D0bs");
        assert_eq!(key.id, TEST_KEY);
        let dictionary = "\"@authority\": example.com\n\"signature-agent\";key=\"agent2\": \"https://signature-agent.test\"\n\"@signature-params\": (\"@authority\" \"signature-agent\";key=\"agent2\");created=1735689600;keyid=\"poqkLGiymh_W0uP6PZFw-dvez3QJT5SolqXBCW38r0U\";alg=\"ed25519\";expires=4889289600;nonce=\"n9p433xm+NJ3ph3upfBIGmsuwHw387YV7Q/F+6BSpGCVjYCqQw6rznNA8PVVLySrAWsv0hQtFioQb6E1YsauiA==\";tag=\"web-bot-auth\"";
        assert_eq!(
            key.sign(dictionary),
            "RdNFx5Bj6au3YgAMQL/RzmUlZE8QZLIaXGRpw985hWnwPfMxT228NMk6ehRS1PSl4e8PhbNZACSanGdhEwYCCg=="
        );
        let string = "\"@authority\": example.com\n\"signature-agent\": \"https://signature-agent.test\"\n\"@signature-params\": (\"@authority\" \"signature-agent\");created=1735689600;keyid=\"poqkLGiymh_W0uP6PZFw-dvez3QJT5SolqXBCW38r0U\";alg=\"ed25519\";expires=1735693200;nonce=\"e8N7S2MFd/qrd6T2R3tdfAuuANngKI7LFtKYI/vowzk4lAZYadIX6wW25MwG7DCT9RUKAJ0qVkU0mEeLElW1qg==\";tag=\"web-bot-auth\"";
        assert_eq!(
            key.sign(string),
            "jdq0SqOwHdyHr9+r5jw3iYZH6aNGKijYp/EstF4RQTQdi5N5YYKrD+mCT1HA1nZDsi6nJKuHxUi/5Syp3rLWBA=="
        );
    }

    #[test]
    fn u_40_a_request_is_signed_for_its_authority_and_the_agent() {
        for form in [AgentForm::String, AgentForm::Dictionary] {
            let headers =
                identity(form).sign_request("Blog.example:8080", 1_000, &[7; NONCE_BYTES]);
            let agent = value(&headers, &SIGNATURE_AGENT);
            let input = value(&headers, &SIGNATURE_INPUT);
            let (component, told) = match form {
                AgentForm::String => ("\"signature-agent\"", "\"https://signature-agent.test\""),
                AgentForm::Dictionary => (
                    "\"signature-agent\";key=\"sig1\"",
                    "sig1=\"https://signature-agent.test\"",
                ),
            };
            assert_eq!(agent, told);
            assert!(
                input.contains(";created=1000;") && input.contains(";expires=1060;"),
                "{input}"
            );
            let params = input.strip_prefix("sig1=").unwrap();
            let verify = |authority: &str| {
                let base = format!(
                    "\"@authority\": {authority}\n{component}: \"https://signature-agent.test\"\n\"@signature-params\": {params}"
                );
                let signature = value(&headers, &SIGNATURE);
                let signature = signature.trim_start_matches("sig1=:").trim_end_matches(':');
                let signature = BASE64_STANDARD.decode(signature).unwrap();
                let key = UnparsedPublicKey::new(
                    &ED25519,
                    test_key().pair.public_key().as_ref().to_vec(),
                );
                key.verify(base.as_bytes(), &signature).is_ok()
            };
            assert!(verify("blog.example:8080") && !verify("blog.example"));
        }
    }

    #[test]
    fn u_43_the_directory_has_the_public_keys_alone_and_each_signs_it() {
        let url = Url::parse("https://a.example").unwrap();
        let keys = vec![test_key(), test_key()];
        let identity = Identity::new(keys, &url, AgentForm::String).unwrap();
        let directory = identity.directory();
        let read: serde_json::Value = serde_json::from_str(&directory).unwrap();
        assert_eq!(read["keys"].as_array().unwrap().len(), 2);
        assert_eq!(read["keys"][0]["kid"], TEST_KEY);
        assert!(read["keys"][0].get("d").is_none());
        let headers = identity.sign_directory(&directory, "a.example", 5);
        let input = value(&headers, &SIGNATURE_INPUT);
        assert_eq!(
            input
                .matches("tag=\"http-message-signatures-directory\"")
                .count(),
            2
        );
        let signature = value(&headers, &SIGNATURE);
        assert!(signature.starts_with("sig1=:") && signature.contains(":, sig2=:"));
        assert!(value(&headers, &CONTENT_DIGEST).starts_with("sha-256=:"));
        assert!(Identity::new(Vec::new(), &url, AgentForm::String).is_none());
    }

    #[test]
    fn a_key_that_cannot_sign_is_refused_and_so_is_the_one_that_everybody_has() {
        let refused = |pem: &str| SigningKey::from_pem(pem.as_bytes()).unwrap_err();
        assert!(refused(TEST_PEM).contains("RFC 9421"));
        assert!(refused("nothing").contains("no private key"));
        let other = rcgen::KeyPair::generate_for(&rcgen::PKCS_ECDSA_P256_SHA256).unwrap();
        assert!(refused(&other.serialize_pem()).contains("not of Ed25519"));
        let good = rcgen::KeyPair::generate_for(&rcgen::PKCS_ED25519).unwrap();
        let key = SigningKey::from_pem(good.serialize_pem().as_bytes()).unwrap();
        assert!(!format!("{key:?}").contains("pair"));
    }
}
