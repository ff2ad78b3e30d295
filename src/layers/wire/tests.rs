//! Reasons of failed TLS handshakes, each of a real one: the libraries below tell some of them in
//! words alone.

use super::*;
use crate::layers::public_address::SystemResolver;
use rcgen::{
    BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair,
    date_time_ymd,
};
use std::net::SocketAddr;
use tokio::net::TcpListener;
use tokio_rustls::{
    TlsAcceptor,
    rustls::{
        ServerConfig,
        pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer},
    },
};

/// An authority that the client trusts, and certificates by it.
struct Authority {
    certificate: rcgen::Certificate,
    issuer: Issuer<'static, KeyPair>,
}

/// A certificate as a server shows it, and its key.
type Shown = (CertificateDer<'static>, KeyPair);

fn leaf() -> CertificateParams {
    let mut params = CertificateParams::new(vec!["localhost".to_owned()]).unwrap();
    params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
    params
}

fn of_authority() -> CertificateParams {
    let mut params = leaf();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    params
}

impl Authority {
    fn new(name: &str) -> Self {
        let key = KeyPair::generate().unwrap();
        let mut params = of_authority();
        params.distinguished_name.push(DnType::CommonName, name);
        Self {
            certificate: params.self_signed(&key).unwrap(),
            issuer: Issuer::new(params, key),
        }
    }

    fn signed(&self, params: &CertificateParams) -> Shown {
        let key = KeyPair::generate().unwrap();
        (
            params.signed_by(&key, &self.issuer).unwrap().der().clone(),
            key,
        )
    }
}

/// A server that shows a certificate to every client; its address.
async fn serve((certificate, key): Shown) -> SocketAddr {
    let _ = rustls::crypto::ring::default_provider().install_default();
    let key = PrivateKeyDer::from(PrivatePkcs8KeyDer::from(key.serialize_der()));
    let config = ServerConfig::builder()
        .with_no_client_auth()
        .with_single_cert(vec![certificate], key);
    let acceptor = TlsAcceptor::from(Arc::new(config.unwrap()));
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            // The client gives up, which is what is looked at.
            drop(acceptor.accept(stream).await);
        }
    });
    address
}

/// The reason for which a request to a server fails.
async fn fault(authority: &Authority, at: SocketAddr) -> TlsFault {
    let config = WireConfig {
        connect: Duration::from_secs(10),
        headers: HeaderMap::new(),
        idle_per_host: 0,
        roots: authority.certificate.pem().into_bytes(),
    };
    let wire = Wire::new(&config, Arc::new(SystemResolver)).unwrap();
    let mut request = http::Request::get(format!("https://localhost:{}/", at.port()))
        .body(Default::default())
        .unwrap();
    request.extensions_mut().insert(AddressClass::Configured);
    match tower::ServiceExt::oneshot(wire, request).await {
        Err(FetchError::Tls(fault, _)) => fault,
        Err(other) => panic!("{other:?}"),
        Ok(_) => panic!("it is answered"),
    }
}

#[tokio::test]
async fn every_certificate_that_is_refused_is_told_with_its_reason() {
    let authority = Authority::new("trusted");
    let dated = |from, to| {
        let mut params = leaf();
        (params.not_before, params.not_after) =
            (date_time_ymd(from, 1, 1), date_time_ymd(to, 1, 1));
        params
    };
    let mut clients_only = leaf();
    clients_only.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];
    let elsewhere = CertificateParams::new(vec!["other.example".to_owned()]).unwrap();
    let key = KeyPair::generate().unwrap();
    let own = (of_authority().self_signed(&key).unwrap().der().clone(), key);
    for (shown, expect) in [
        (authority.signed(&dated(2020, 2021)), TlsFault::Expired),
        (authority.signed(&dated(2090, 2091)), TlsFault::NotYetValid),
        (authority.signed(&elsewhere), TlsFault::WrongName),
        (
            Authority::new("unknown").signed(&leaf()),
            TlsFault::UnknownIssuer,
        ),
        (own, TlsFault::OfIssuer),
        (authority.signed(&clients_only), TlsFault::NotForServers),
    ] {
        assert_eq!(fault(&authority, serve(shown).await).await, expect);
    }
}

#[tokio::test]
async fn a_server_that_speaks_no_tls_is_told_so() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let at = listener.local_addr().unwrap();
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let answer = b"HTTP/1.1 400 Bad Request\r\ncontent-length: 0\r\n\r\n";
            drop(tokio::io::AsyncWriteExt::write_all(&mut stream, answer).await);
            let mut rest = [0; 4096];
            drop(tokio::io::AsyncReadExt::read(&mut stream, &mut rest).await);
        }
    });
    assert_eq!(
        fault(&Authority::new("trusted"), at).await,
        TlsFault::NotTls
    );
}
