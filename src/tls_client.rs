//! The client side of TLS with the authorities of the system, which all clients share, or with those
//! of a file; not when TLS is wanted.

use hyper_rustls::ConfigBuilderExt as _;
use rustls::{
    ClientConfig, ConfigBuilder, RootCertStore, WantsVerifier,
    crypto::ring,
    pki_types::{CertificateDer, pem::PemObject as _},
};
use std::{
    fmt::Display,
    fs, io,
    path::Path,
    sync::{Arc, OnceLock},
};
use tokio_rustls::TlsConnector;

/// The client side of TLS with the authorities of the system.
static OF_SYSTEM: OnceLock<ClientConfig> = OnceLock::new();

/// Connects to servers with certificates of these authorities; of those of the system without any.
///
/// # Errors
/// The system has no certificates of authorities.
pub fn connector(roots: Option<RootCertStore>) -> io::Result<TlsConnector> {
    let config = match roots {
        Some(roots) => builder()?
            .with_root_certificates(roots)
            .with_no_client_auth(),
        None => of_system()?,
    };
    Ok(TlsConnector::from(Arc::new(config)))
}

/// The client side of TLS with the authorities of the system, which are read once: that takes
/// longer than everything else that a client begins with.
///
/// # Errors
/// The system has no certificates of authorities. The next call looks for them again.
pub fn of_system() -> io::Result<ClientConfig> {
    if let Some(config) = OF_SYSTEM.get() {
        return Ok(config.clone());
    }
    let builder = builder()?
        .try_with_platform_verifier()
        .map_err(io::Error::other)?;
    Ok(OF_SYSTEM
        .get_or_init(|| builder.with_no_client_auth())
        .clone())
}

/// The client side of TLS that trusts nobody: every handshake fails.
///
/// # Panics
/// Never: the versions of TLS are those of its provider.
pub fn of_nobody() -> ClientConfig {
    let builder = builder().expect("the provider has the versions of TLS");
    let none = RootCertStore::empty();
    builder.with_root_certificates(none).with_no_client_auth()
}

fn builder() -> io::Result<ConfigBuilder<ClientConfig, WantsVerifier>> {
    ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .map_err(io::Error::other)
}

/// The authorities of a PEM file. Errors name the setting and the file; one of reading keeps its
/// kind.
pub fn roots(file: &Path, setting: &str) -> io::Result<RootCertStore> {
    let told = |what: &dyn Display| format!("{setting}, {}: {what}", file.display());
    let text = fs::read(file).map_err(|error| io::Error::new(error.kind(), told(&error)))?;
    let mut roots = RootCertStore::empty();
    for certificate in CertificateDer::pem_slice_iter(&text) {
        let certificate = certificate.map_err(|error| io::Error::other(told(&error)))?;
        let added = roots.add(certificate);
        added.map_err(|error| io::Error::other(told(&error)))?;
    }
    if roots.is_empty() {
        return Err(io::Error::other(told(&"it holds no certificate")));
    }
    Ok(roots)
}
