//! The certificate that listeners show, and the answers to an authority that looks at them; not
//! where they come from.

use super::{
    challenge::{OpenChallenge, challenge_certificate},
    fault::AcmeFault,
    validity::Validity,
};
use crate::locks::{read, write};
use rustls::{
    client::verify_server_name,
    crypto::ring::sign::any_supported_type,
    pki_types::{CertificateDer, PrivateKeyDer, ServerName, pem::PemObject as _},
    server::{ClientHello, ParsedCertificate, ResolvesServerCert},
    sign::CertifiedKey,
};
use std::{
    collections::HashMap,
    sync::{Arc, RwLock},
};

/// The protocol of connections by which an authority looks at a challenge (ALPN; RFC 8737, section
/// 6.2).
pub const CHALLENGE_PROTOCOL: &[u8] = b"acme-tls/1";
/// The paths of challenges by HTTP (RFC 8555, section 8.3).
const CHALLENGE_PATH: &str = "/.well-known/acme-challenge/";

/// A certificate with its key.
#[derive(Clone, Debug)]
pub(super) struct IssuedCertificate {
    key: Arc<CertifiedKey>,
    pub(super) validity: Validity,
}

impl IssuedCertificate {
    /// Reads a key, its certificate and those between it and its root (PEM); the reason where they
    /// are no good.
    pub(super) fn read(pem: &str) -> Result<Self, String> {
        let chain = CertificateDer::pem_slice_iter(pem.as_bytes()).collect::<Result<Vec<_>, _>>();
        let chain = chain.map_err(|error| error.to_string())?;
        let key =
            PrivateKeyDer::from_pem_slice(pem.as_bytes()).map_err(|error| error.to_string())?;
        let first = chain.first().ok_or("there is no certificate")?;
        let validity = Validity::of(first).ok_or("the time of the certificate cannot be read")?;
        let key = any_supported_type(&key).map_err(|error| error.to_string())?;
        let key = CertifiedKey::new(chain, key);
        key.keys_match().map_err(|error| error.to_string())?;
        Ok(Self {
            key: Arc::new(key),
            validity,
        })
    }

    /// True for a certificate that is for all of these names.
    pub(super) fn covers(&self, names: &[String]) -> bool {
        let parsed = self
            .key
            .end_entity_cert()
            .and_then(ParsedCertificate::try_from);
        let is_for = |name: &String, parsed: &ParsedCertificate<'_>| {
            ServerName::try_from(name.as_str())
                .is_ok_and(|name| verify_server_name(parsed, &name).is_ok())
        };
        parsed.is_ok_and(|parsed| names.iter().all(|name| is_for(name, &parsed)))
    }
}

/// The certificate in use, once there is one, and the challenges of an order that is under way.
/// Listeners and the keeper share it.
#[derive(Debug, Default)]
pub struct HeldCertificate {
    current: RwLock<Option<Arc<CertifiedKey>>>,
    challenges: RwLock<OpenChallenges>,
}

#[derive(Debug, Default)]
struct OpenChallenges {
    /// Documents at port 80, by their tokens.
    documents: HashMap<String, String>,
    /// Certificates at port 443, by the names that they prove.
    certificates: HashMap<String, Arc<CertifiedKey>>,
}

impl HeldCertificate {
    /// The document of a challenge by HTTP, if the path is that of one.
    pub fn challenge_document(&self, path: &str) -> Option<String> {
        let token = path.strip_prefix(CHALLENGE_PATH)?;
        let challenges = read(&self.challenges);
        challenges.documents.get(token).cloned()
    }

    /// Shows a certificate from now on.
    pub(super) fn show(&self, certificate: &IssuedCertificate) {
        *write(&self.current) = Some(certificate.key.clone());
    }

    /// Answers these challenges from now on, and no others.
    pub(crate) fn answer(&self, challenges: &[OpenChallenge]) -> Result<(), AcmeFault> {
        let mut open = OpenChallenges::default();
        for challenge in challenges {
            match challenge {
                OpenChallenge::Document { token, document } => {
                    open.documents.insert(token.clone(), document.clone());
                }
                OpenChallenge::Certificate { name, digest } => {
                    let certificate = challenge_certificate(name, digest)?;
                    open.certificates
                        .insert(name.clone(), Arc::new(certificate));
                }
            }
        }
        *write(&self.challenges) = open;
        Ok(())
    }

    /// Answers no challenge any more.
    pub(super) fn close_challenges(&self) {
        *write(&self.challenges) = OpenChallenges::default();
    }
}

impl ResolvesServerCert for HeldCertificate {
    fn resolve(&self, hello: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        let is_challenge = hello
            .alpn()
            .is_some_and(|protocols| protocols.eq([CHALLENGE_PROTOCOL]));
        if is_challenge {
            let name = hello.server_name()?;
            let challenges = read(&self.challenges);
            return challenges.certificates.get(name).cloned();
        }
        read(&self.current).clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pair_is_read_with_the_names_that_it_is_for() {
        let pair =
            rcgen::generate_simple_self_signed(["a.example".to_owned(), "b.example".to_owned()])
                .unwrap();
        let other = rcgen::KeyPair::generate().unwrap().serialize_pem();
        let (key, certificate) = (pair.signing_key.serialize_pem(), pair.cert.pem());
        let read = IssuedCertificate::read(&format!("{key}{certificate}")).unwrap();
        let names = |names: &[&str]| {
            names
                .iter()
                .map(|name| (*name).to_owned())
                .collect::<Vec<_>>()
        };
        assert!(
            read.covers(&names(&["b.example", "a.example"])) && read.covers(&names(&["a.example"]))
        );
        assert!(!read.covers(&names(&["a.example", "c.example"])));
        for bad in ["", &key, &certificate, &format!("{other}{certificate}")] {
            assert!(IssuedCertificate::read(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn documents_are_there_for_the_order_alone() {
        let held = HeldCertificate::default();
        let document = |path| held.challenge_document(path);
        let challenge = OpenChallenge::Document {
            token: "t-1".to_owned(),
            document: "t-1.x".to_owned(),
        };
        held.answer(&[challenge]).unwrap();
        assert_eq!(
            document("/.well-known/acme-challenge/t-1").as_deref(),
            Some("t-1.x")
        );
        for path in [
            "/.well-known/acme-challenge/",
            "/.well-known/acme-challenge/t",
            "/t-1",
            "t-1",
        ] {
            assert_eq!(document(path), None, "{path}");
        }
        held.close_challenges();
        assert_eq!(document("/.well-known/acme-challenge/t-1"), None);
    }
}
