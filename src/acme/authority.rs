//! The contract with an authority: one order for a certificate, and what comes of it; not the
//! protocol, and not its moment.

use super::fault::AcmeFault;
use futures_util::future::BoxFuture;

/// Proof that the names of a certificate lead to us.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ChallengeWay {
    /// `tls-alpn-01` (RFC 8737): a certificate that is shown at port 443.
    TlsAlpn,
    /// `http-01` (RFC 8555, section 8.3): a document at port 80.
    Http,
}

impl ChallengeWay {
    /// The name of its challenge (RFC 8555, section 9.7.8).
    pub fn name(self) -> &'static str {
        match self {
            Self::TlsAlpn => "tls-alpn-01",
            Self::Http => "http-01",
        }
    }
}

impl std::fmt::Display for ChallengeWay {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let port = match self {
            Self::TlsAlpn => 443,
            Self::Http => 80,
        };
        write!(f, "{} (port {port})", self.name())
    }
}

/// An authority that gives certificates.
pub trait Authority: Send + Sync + 'static {
    /// Places one order, proves the names in this way, and gives the new private key and its
    /// certificate with those between it and its root (PEM).
    fn order(&self, way: ChallengeWay) -> BoxFuture<'_, Result<String, AcmeFault>>;
}
