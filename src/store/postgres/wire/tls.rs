//! TLS to the database by rustls, with the certificates of the system or of a file; not when it is
//! wanted.

use crate::tls_client;
use rustls::pki_types::ServerName;
use std::{
    future::Future,
    io,
    path::Path,
    pin::Pin,
    task::{Context, Poll},
};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio_postgres::{
    Socket,
    tls::{ChannelBinding, MakeTlsConnect, TlsConnect, TlsStream},
};
use tokio_rustls::{TlsConnector, client};

/// Makes TLS connections to the hosts of a database, and verifies the name of each.
#[derive(Clone)]
pub(in crate::store::postgres) struct DatabaseTls {
    client: TlsConnector,
}

impl DatabaseTls {
    /// With the authorities of a PEM file, or of the system.
    pub(in crate::store::postgres) fn new(root: Option<&Path>) -> io::Result<Self> {
        let roots = root.map(|file| tls_client::roots(file, "sslrootcert in store.url"));
        let client = tls_client::connector(roots.transpose()?)?;
        Ok(Self { client })
    }
}

impl MakeTlsConnect<Socket> for DatabaseTls {
    type Stream = DatabaseStream;
    type TlsConnect = NamedHost;
    type Error = io::Error;

    fn make_tls_connect(&mut self, domain: &str) -> io::Result<NamedHost> {
        let name = ServerName::try_from(domain.to_owned()).map_err(io::Error::other)?;
        Ok(NamedHost {
            client: self.client.clone(),
            name,
        })
    }
}

/// A host that is to be connected to, by the name that its certificate must have.
pub(in crate::store::postgres) struct NamedHost {
    client: TlsConnector,
    name: ServerName<'static>,
}

impl TlsConnect<Socket> for NamedHost {
    type Stream = DatabaseStream;
    type Error = io::Error;
    type Future = Pin<Box<dyn Future<Output = io::Result<DatabaseStream>> + Send>>;

    fn connect(self, socket: Socket) -> Self::Future {
        Box::pin(async move {
            let stream = self.client.connect(self.name, socket).await?;
            Ok(DatabaseStream(Box::new(stream)))
        })
    }
}

/// A stream over TLS.
pub(in crate::store::postgres) struct DatabaseStream(Box<client::TlsStream<Socket>>);

impl TlsStream for DatabaseStream {
    // Limit: passwords are not bound to the channel; the name in the certificate is verified instead.
    fn channel_binding(&self) -> ChannelBinding {
        ChannelBinding::none()
    }
}

impl AsyncRead for DatabaseStream {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut *self.0).poll_read(context, buffer)
    }
}

impl AsyncWrite for DatabaseStream {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut *self.0).poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut *self.0).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut *self.0).poll_shutdown(context)
    }
}
