//! Connections to the server: TCP, and TLS over it where the server has it; not the stream.

use super::{stream::AnyConnection, supervisor::Connect};
use crate::xmpp::Config;
use hyper_rustls::ConfigBuilderExt as _;
use rustls::{
    ClientConfig, RootCertStore,
    crypto::ring,
    pki_types::{CertificateDer, ServerName, pem::PemObject as _},
};
use std::{io, path::Path, sync::Arc};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;

/// The way to the server of a configuration, which is checked.
pub(super) fn connect(config: &Config) -> io::Result<Connect> {
    let (host, port) = config
        .host_and_port()
        .ok_or_else(|| io::Error::other("there is no xmpp.server"))?;
    let (host, tls) = (host.to_owned(), tls(config)?);
    let name = ServerName::try_from(host.clone()).map_err(io::Error::other)?;
    Ok(Arc::new(move || {
        let (host, name, tls) = (host.clone(), name.clone(), tls.clone());
        Box::pin(async move {
            let stream = TcpStream::connect((host.as_str(), port)).await?;
            // Stanzas are put together before they are written.
            stream.set_nodelay(true)?;
            let connection: AnyConnection = match tls {
                Some(tls) => Box::new(tls.connect(name, stream).await?),
                None => Box::new(stream),
            };
            Ok(connection)
        })
    }))
}

/// The client side of TLS, if it is wanted.
fn tls(config: &Config) -> io::Result<Option<TlsConnector>> {
    if !config.tls {
        return Ok(None);
    }
    let provider = Arc::new(ring::default_provider());
    let builder = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(io::Error::other)?;
    let builder = match &config.tls_root {
        Some(file) => builder.with_root_certificates(roots(file)?),
        None => builder
            .try_with_platform_verifier()
            .map_err(io::Error::other)?,
    };
    let client = builder.with_no_client_auth();
    Ok(Some(TlsConnector::from(Arc::new(client))))
}

/// The certificates of a PEM file.
fn roots(file: &Path) -> io::Result<RootCertStore> {
    let told = |what: &dyn std::fmt::Display| {
        io::Error::other(format!("xmpp.tls_root, {}: {what}", file.display()))
    };
    let mut roots = RootCertStore::empty();
    for certificate in CertificateDer::pem_file_iter(file).map_err(|error| told(&error))? {
        let certificate = certificate.map_err(|error| told(&error))?;
        roots.add(certificate).map_err(|error| told(&error))?;
    }
    if roots.is_empty() {
        return Err(told(&"it holds no certificate"));
    }
    Ok(roots)
}
