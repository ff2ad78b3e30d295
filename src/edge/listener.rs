//! A listener: a socket, and what is agreed on before HTTP on each of its connections, within a
//! time: the client's address by a proxy, then TLS.

use super::{
    client_address::is_trusted,
    listen_address::ListenAddress,
    proxy_header::{ProxiedClient, read_proxy_header},
    socket::{RawStream, Socket},
    tls::CurrentCertificate,
};
use crate::acme::held::CHALLENGE_PROTOCOL;
use http::HeaderValue;
use ipnet::IpNet;
use std::{
    io::{Error, ErrorKind, Result},
    net::{IpAddr, SocketAddr},
    sync::Arc,
    time::Duration,
};
use tokio::{net::TcpListener, sync::Semaphore};
use tokio_rustls::{TlsAcceptor, server::TlsStream};
use tokio_util::either::Either;

/// Time within which a connection must be ready for HTTP.
const HANDSHAKE_TIME: Duration = Duration::from_secs(10);
/// Handshakes of TLS at once on one listener; one more waits within its time.
const HANDSHAKES_MAX: usize = 512;

/// A connection on which HTTP is spoken.
pub(super) type HttpStream = Either<RawStream, Box<TlsStream<RawStream>>>;

/// A socket and what is agreed on before HTTP.
#[derive(Debug)]
pub struct Listener {
    pub(super) socket: Socket,
    pub(super) handshake: Arc<Handshake>,
}

/// A connection that is ready for HTTP.
pub(super) struct ReadyConnection {
    pub(super) stream: HttpStream,
    /// The address of its client.
    pub(super) client: IpAddr,
    /// True where the client speaks TLS, to us or to the proxy before us.
    pub(super) is_over_tls: bool,
}

/// The steps from a connection to HTTP on it.
#[derive(Debug)]
pub(super) struct Handshake {
    /// Proxies that tell their client's address first.
    proxies: Vec<IpNet>,
    tls: Option<CurrentCertificate>,
    /// `Strict-Transport-Security` of every answer.
    hsts: Option<HeaderValue>,
    room: Semaphore,
}

impl From<TcpListener> for Listener {
    fn from(listener: TcpListener) -> Self {
        Self::plain(Socket::Tcp(listener))
    }
}

impl Listener {
    /// Opens the sockets of an address.
    pub async fn open(address: &ListenAddress) -> Result<Vec<Self>> {
        Ok(Socket::open(address)
            .await?
            .into_iter()
            .map(Self::plain)
            .collect())
    }

    fn plain(socket: Socket) -> Self {
        let room = Semaphore::new(HANDSHAKES_MAX);
        Self {
            socket,
            handshake: Arc::new(Handshake {
                proxies: Vec::new(),
                tls: None,
                hsts: None,
                room,
            }),
        }
    }

    /// The same, with proxies that begin with a header of the PROXY protocol.
    #[must_use]
    pub fn with_proxies(self, proxies: Vec<IpNet>) -> Self {
        self.changed(|handshake| Handshake {
            proxies,
            ..handshake
        })
    }

    /// The same with TLS, if it is no Unix socket; and browsers are told for so many seconds to use
    /// nothing else.
    #[must_use]
    pub fn with_tls(self, certificate: &CurrentCertificate, hsts_secs: u64) -> Self {
        if self.address().is_none() {
            return self;
        }
        let tls = Some(certificate.clone());
        let hsts = HeaderValue::try_from(format!("max-age={hsts_secs}"))
            .ok()
            .filter(|_| hsts_secs > 0);
        self.changed(|handshake| Handshake {
            tls,
            hsts,
            ..handshake
        })
    }

    /// Its address and port, if it has one.
    pub fn address(&self) -> Option<SocketAddr> {
        self.socket.address()
    }

    fn changed(self, change: impl FnOnce(Handshake) -> Handshake) -> Self {
        let handshake =
            Arc::into_inner(self.handshake).expect("it is not shared before it listens");
        Self {
            handshake: Arc::new(change(handshake)),
            ..self
        }
    }
}

impl Handshake {
    /// Makes a connection ready for HTTP, and tells whose it is.
    pub(super) async fn complete(
        &self,
        mut stream: RawStream,
        peer: IpAddr,
    ) -> Result<ReadyConnection> {
        let steps = async {
            let mut told = ProxiedClient::default();
            if is_trusted(peer, &self.proxies) {
                told = read_proxy_header(&mut stream).await?;
            }
            let client = told.address.unwrap_or(peer);
            let Some(tls) = &self.tls else {
                let stream = Either::Left(stream);
                return Ok(ReadyConnection {
                    stream,
                    client,
                    is_over_tls: told.is_over_tls,
                });
            };
            let _room = self.room.acquire().await.map_err(Error::other)?;
            // In a box: it is thirty times as long as a socket, which most connections are nothing
            // but.
            let stream = Box::new(TlsAcceptor::from(tls.config()).accept(stream).await?);
            if stream.get_ref().1.alpn_protocol() == Some(CHALLENGE_PROTOCOL) {
                // It has seen what it came for (RFC 8737, section 4).
                return Err(Error::other(
                    "a certificate authority looked at a challenge",
                ));
            }
            Ok(ReadyConnection {
                stream: Either::Right(stream),
                client,
                is_over_tls: true,
            })
        };
        let late = |_| Error::new(ErrorKind::TimedOut, "the handshake took too long");
        tokio::time::timeout(HANDSHAKE_TIME, steps)
            .await
            .map_err(late)?
    }

    /// The header by which browsers are told to use HTTPS only.
    pub(super) fn hsts(&self) -> Option<&HeaderValue> {
        self.hsts.as_ref()
    }
}

#[cfg(test)]
mod tests {
    use super::{super::tls::Certificate, *};
    use tokio::net::TcpStream;

    #[tokio::test(start_paused = true)]
    async fn a_handshake_that_does_not_come_ends_in_time() {
        let folder = tempfile::tempdir().unwrap();
        let (file, key) = (folder.path().join("c.pem"), folder.path().join("k.pem"));
        let pair = rcgen::generate_simple_self_signed(["h".to_owned()]).unwrap();
        std::fs::write(&file, pair.cert.pem()).unwrap();
        std::fs::write(&key, pair.signing_key.serialize_pem()).unwrap();
        let certificate = Certificate::read(&file, &key).unwrap().current();
        let address = ListenAddress::Tcp(SocketAddr::from(([127, 0, 0, 1], 0)));
        let plain = Listener::open(&address).await.unwrap().remove(0);
        let proxied = Listener::open(&address).await.unwrap().remove(0);
        let listeners = [
            plain.with_tls(&certificate, 0),
            proxied.with_proxies(vec!["127.0.0.0/8".parse().unwrap()]),
        ];
        for listener in listeners {
            let _client = TcpStream::connect(listener.address().unwrap())
                .await
                .unwrap();
            let (stream, peer) = listener.socket.accept().await.unwrap();
            let began = tokio::time::Instant::now();
            let late = listener
                .handshake
                .complete(stream, peer)
                .await
                .err()
                .unwrap();
            assert_eq!(
                (late.kind(), began.elapsed().as_secs()),
                (ErrorKind::TimedOut, HANDSHAKE_TIME.as_secs())
            );
        }
    }
}
