//! Connections to the server: TCP, and TLS over it where the server has it; not the stream.

use super::{stream::AnyConnection, supervisor::Connect};
use crate::{
    layers::{TlsFault, tls_fault_of},
    tls_client,
    xmpp::Config,
};
use rustls::{RootCertStore, pki_types::ServerName};
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
                Some(tls) => Box::new(tls.connect(name, stream).await.map_err(of_tls)?),
                None => Box::new(stream),
            };
            Ok(connection)
        })
    }))
}

/// The failure of a handshake, in plain words.
fn of_tls(error: io::Error) -> io::Error {
    match tls_fault_of(&error) {
        Some(TlsFault::NotTls) => {
            io::Error::other("the server does not speak TLS at this port; leave out xmpp.tls")
        }
        Some(TlsFault::Other) | None => io::Error::other(format!("{}: {error}", TlsFault::Other)),
        Some(fault) => io::Error::other(fault),
    }
}

/// The client side of TLS, if it is wanted.
fn tls(config: &Config) -> io::Result<Option<TlsConnector>> {
    if !config.tls {
        return Ok(None);
    }
    let file = config.tls_root.as_deref();
    tls_client::connector(file.map(roots).transpose()?).map(Some)
}

/// The authorities of a PEM file.
pub(super) fn roots(file: &Path) -> io::Result<RootCertStore> {
    tls_client::roots(file, "xmpp.tls_root")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_handshake_that_failed_is_told_in_plain_words() {
        let told = |error: rustls::Error| {
            of_tls(io::Error::new(io::ErrorKind::InvalidData, error)).to_string()
        };
        let issuer = rustls::CertificateError::UnknownIssuer.into();
        assert!(told(issuer).contains("issuer of the server's TLS certificate"));
        let plain = rustls::Error::InvalidMessage(rustls::InvalidMessage::InvalidContentType);
        assert!(told(plain).contains("leave out xmpp.tls"));
        let reset = of_tls(io::Error::from(io::ErrorKind::ConnectionReset)).to_string();
        assert!(reset.starts_with("the TLS handshake failed: "), "{reset}");
    }
}
