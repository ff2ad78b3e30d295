//! Opens the sockets of consumers and of the operator before anything is served, so that a start that fails leaves nothing
//! behind; not what is answered there.

use crate::serve::{self, listener::Listener, tls::Certificate};
use anyhow::Context as _;
use std::net::{Ipv4Addr, SocketAddr};
use tokio::net::TcpListener;

/// Everything that listens.
pub(super) struct Doors {
    pub(super) consumers: Vec<Listener>,
    pub(super) operator: TcpListener,
    /// For those who ask by HTTP what is served by HTTPS.
    pub(super) redirect: Option<TcpListener>,
    pub(super) certificate: Option<Certificate>,
}

impl Doors {
    /// Opens every socket of the configuration, and reads the certificate.
    pub(super) async fn open(server: &serve::Config) -> anyhow::Result<Self> {
        let certificate = match server.tls.files() {
            Some((certificate, key)) => {
                Some(Certificate::read(certificate, key).context("the certificate of server.tls")?)
            }
            None => None,
        };
        let proxies = if server.proxy_protocol { server.trusted_proxies.clone() } else { Vec::new() };
        let mut consumers = Vec::new();
        for address in server.listen.iter() {
            let opened = Listener::open(address).await;
            for listener in opened.with_context(|| format!("cannot listen on {address} for consumers"))? {
                let listener = listener.with_proxies(proxies.clone());
                consumers.push(match &certificate {
                    Some(certificate) => listener.with_tls(certificate, server.tls.hsts_secs),
                    None => listener,
                });
            }
        }
        let operator = bind(server.admin_listen, "the operator").await?;
        let redirect = match server.tls.redirect_from {
            Some(address) => Some(bind(address, "those who ask by HTTP").await?),
            None => None,
        };
        Ok(Self { consumers, operator, redirect, certificate })
    }

    /// The first address of consumers.
    pub(super) fn address(&self) -> SocketAddr {
        let none = SocketAddr::from((Ipv4Addr::UNSPECIFIED, 0));
        self.consumers.iter().find_map(Listener::address).unwrap_or(none)
    }

    pub(super) fn admin_address(&self) -> std::io::Result<SocketAddr> {
        self.operator.local_addr()
    }
}

async fn bind(address: SocketAddr, whom: &str) -> anyhow::Result<TcpListener> {
    TcpListener::bind(address).await.with_context(|| format!("cannot listen on {address} for {whom}"))
}
