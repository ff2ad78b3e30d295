//! Connections to PostgreSQL over TLS: the server is verified by the authority that the configuration
//! names, and by its name.

use crate::EVERFEED;
use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair};
use testkit::{place::Place, postgres::PostgresServer};

/// An authority, and the certificate and the key of `localhost` by it, as PEM.
fn certificates() -> (String, String, String) {
    let mut params = CertificateParams::new(Vec::new()).unwrap();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let key = KeyPair::generate().unwrap();
    let authority = params.self_signed(&key).unwrap().pem();
    let issuer = Issuer::new(params, key);
    let key = KeyPair::generate().unwrap();
    let params = CertificateParams::new(["localhost".to_owned()]).unwrap();
    let certificate = params.signed_by(&key, &issuer).unwrap();
    (authority, certificate.pem(), key.serialize_pem())
}

#[test]
fn a_database_is_verified_by_its_authority_and_its_name() {
    let (authority, certificate, key) = certificates();
    let (server, port) = PostgresServer::start_with_tls(&certificate, &key);
    let place = Place::free();
    place.write("authority.pem", &authority);
    place.write("other.pem", &certificates().0);
    let check = |host: &str, root: &str, expect: &str| {
        let root = place.path(root).display().to_string();
        let url =
            format!("postgresql://everfeed:hunter2@{host}:{port}/postgres?sslrootcert={root}");
        let text = place.database_text(
            &url,
            &format!("public_url = \"http://{}\"", place.consumers),
            "[[feed]]\nname = \"blog\"\nurl = \"https://blog.example/rss.xml\"\n",
        );
        place.write("everfeed.toml", &text);
        let told = place.run(EVERFEED, &["check"]).all();
        assert!(told.contains(expect), "{host}: {told}");
        assert!(!told.contains("hunter2"), "{told}");
        told.contains("was not looked at")
    };
    assert!(!check("localhost", "authority.pem", "@localhost"));
    assert!(check("localhost", "other.pem", "is not believed"));
    assert!(check("127.0.0.1", "authority.pem", "not valid for name"));
    drop(server);
}
