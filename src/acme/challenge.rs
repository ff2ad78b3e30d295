//! An open challenge of an authority, and what answers it; not where it is answered.

use super::fault::AcmeFault;
use rcgen::{CertificateParams, CustomExtension, KeyPair};
use rustls::{
    crypto::ring::sign::any_ecdsa_type,
    pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer},
    sign::CertifiedKey,
};
use serde::{Deserialize, Serialize};

/// An open challenge, which every node of an everfeed can answer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OpenChallenge {
    /// A document at port 80 (RFC 8555, section 8.3).
    Document {
        /// The last step of its path.
        token: String,
        /// Its text.
        document: String,
    },
    /// A certificate at port 443 (RFC 8737, section 3).
    Certificate {
        /// The name that it proves.
        name: String,
        /// SHA-256 of what the authority wants to see.
        digest: [u8; 32],
    },
}

/// The certificate that proves a name at port 443.
pub(super) fn challenge_certificate(
    name: &str,
    digest: &[u8; 32],
) -> Result<CertifiedKey, AcmeFault> {
    let mut params = CertificateParams::new(vec![name.to_owned()])?;
    params.custom_extensions = vec![CustomExtension::new_acme_identifier(digest)];
    let key = KeyPair::generate()?;
    let certificate = params.self_signed(&key)?;
    let key = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(key.serialize_der()));
    let key = any_ecdsa_type(&key).map_err(|error| AcmeFault::ours(error.to_string()))?;
    Ok(CertifiedKey::new(vec![certificate.der().clone()], key))
}
