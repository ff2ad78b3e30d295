//! Opens the sockets of consumers and of the operator before anything is served, so that a start
//! that fails leaves nothing behind; not what is answered there.

use crate::{
    acme::HeldCertificate,
    edge::{
        listener::Listener,
        socket::listen_tcp,
        tls::{Certificate, CurrentCertificate},
    },
    serve::{self, own_addresses::Listeners},
};
use anyhow::Context as _;
use std::{
    net::{Ipv4Addr, SocketAddr},
    sync::Arc,
};
use tokio::net::TcpListener;

/// Everything that listens.
pub(super) struct OpenListeners {
    pub(super) consumers: Vec<Listener>,
    pub(super) operator: TcpListener,
    /// For those who ask by HTTP what is served by HTTPS.
    pub(super) redirect: Option<TcpListener>,
    /// The certificate in files.
    pub(super) certificate: Option<Certificate>,
}

/// The addresses of all listeners with a port.
pub(super) struct Listening {
    pub(super) consumers: Vec<SocketAddr>,
    pub(super) operator: SocketAddr,
    pub(super) redirect: Option<SocketAddr>,
}

impl Listening {
    /// All of them, as the configuration is held against them.
    pub(super) fn bound(&self) -> Listeners {
        let closed = std::iter::once(self.operator).chain(self.redirect);
        Listeners {
            consumers: self.consumers.clone(),
            closed: closed.collect(),
        }
    }

    /// The first address of consumers; none is known of sockets in the file system.
    pub(super) fn address(&self) -> SocketAddr {
        let none = SocketAddr::from((Ipv4Addr::UNSPECIFIED, 0));
        self.consumers.first().copied().unwrap_or(none)
    }
}

impl OpenListeners {
    /// Opens every socket of the configuration, and reads the certificate, unless it is the one that
    /// is held.
    pub(super) async fn open(
        server: &serve::Config,
        held: Option<Arc<HeldCertificate>>,
    ) -> anyhow::Result<Self> {
        let certificate = match server.tls.files() {
            Some((certificate, key)) => {
                Some(Certificate::read(certificate, key).context("the certificate of server.tls")?)
            }
            None => None,
        };
        let current = match held {
            Some(held) => Some(CurrentCertificate::held(held)?),
            None => certificate.as_ref().map(Certificate::current),
        };
        let proxies = if server.proxy_protocol {
            server.trusted_proxies.clone()
        } else {
            Vec::new()
        };
        let mut consumers = Vec::new();
        for address in server.listen.iter() {
            let opened = Listener::open(address).await;
            let cannot = || format!("cannot listen on {address} for consumers");
            for listener in opened.with_context(cannot)? {
                let listener = listener.with_proxies(proxies.clone());
                consumers.push(match &current {
                    Some(current) => listener.with_tls(current, server.tls.hsts_secs),
                    None => listener,
                });
            }
        }
        let operator = bind(server.admin_listen, "the operator")?;
        let redirect = match server.tls.redirect_from {
            Some(address) => Some(bind(address, "those who ask by HTTP")?),
            None => None,
        };
        Ok(Self {
            consumers,
            operator,
            redirect,
            certificate,
        })
    }

    /// The addresses at which everything listens.
    pub(super) fn listening(&self) -> std::io::Result<Listening> {
        let redirect = self.redirect.as_ref().map(TcpListener::local_addr);
        Ok(Listening {
            consumers: self
                .consumers
                .iter()
                .filter_map(Listener::address)
                .collect(),
            operator: self.operator.local_addr()?,
            redirect: redirect.transpose()?,
        })
    }
}

fn bind(address: SocketAddr, whom: &str) -> anyhow::Result<TcpListener> {
    listen_tcp(address).with_context(|| format!("cannot listen on {address} for {whom}"))
}
