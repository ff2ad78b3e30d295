//! The certificate of `[server.tls]`, read from its files again when they change, or kept by
//! `acme`; not the connections that use it.

use crate::{
    acme::{
        AcmeSettings, HeldCertificate,
        held::CHALLENGE_PROTOCOL,
        validity::{Validity, moment},
    },
    clock::Clock,
    locks::{read, write},
};
use rustls::{
    ConfigBuilder, ServerConfig,
    crypto::ring,
    pki_types::{CertificateDer, PrivateKeyDer, pem::PemObject as _},
    server::WantsServerCert,
};
use serde::{Deserialize, Serialize};
use std::{
    net::SocketAddr,
    path::{Path, PathBuf},
    sync::{Arc, RwLock},
    time::Duration,
};
use thiserror::Error;
use tokio_util::sync::CancellationToken;

/// Time between two looks at the files.
const FILES_LOOK: Duration = Duration::from_secs(5);
/// Protocols that are offered, the best first (ALPN).
const PROTOCOLS: [&[u8]; 2] = [b"h2", b"http/1.1"];

/// `[server.tls]`: HTTPS at every address of `server.listen` that is no Unix socket.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct TlsSettings {
    /// File of the certificate and those between it and its root (PEM). Without it HTTP is spoken.
    pub certificate: Option<PathBuf>,
    /// File of its private key (PEM).
    pub key: Option<PathBuf>,
    /// A certificate that everfeed gets itself, in place of files.
    pub acme: Option<AcmeSettings>,
    /// Address at which HTTP is spoken, and every request is sent to HTTPS.
    pub redirect_from: Option<SocketAddr>,
    /// Seconds for which browsers are told to use HTTPS only (`Strict-Transport-Security`); 0 tells
    /// them nothing.
    pub hsts_secs: u64,
}

impl TlsSettings {
    /// The files, when both are configured.
    pub fn files(&self) -> Option<(&Path, &Path)> {
        Some((self.certificate.as_deref()?, self.key.as_deref()?))
    }

    /// True where HTTPS is served.
    pub fn is_on(&self) -> bool {
        self.files().is_some() || self.acme.is_some()
    }
}

/// A certificate that cannot be used.
#[derive(Debug, Error)]
pub enum BadCertificate {
    /// A file that cannot be read.
    #[error("{} cannot be read: {error}", file.display())]
    File {
        /// Its path.
        file: PathBuf,
        /// The reason.
        error: std::io::Error,
    },
    /// A file without a certificate.
    #[error("{} holds no certificate in PEM form", .0.display())]
    NoCertificate(PathBuf),
    /// A file without a private key.
    #[error("{} holds no private key in PEM form", .0.display())]
    NoKey(PathBuf),
    /// A pair that does not fit, or that the library does not take.
    #[error("{} and {} are no pair: {error}", certificate.display(), key.display())]
    Pair {
        /// The certificate's path.
        certificate: PathBuf,
        /// The key's path.
        key: PathBuf,
        /// The reason.
        error: rustls::Error,
    },
    /// One that does not hold yet, while the one in use does.
    #[error(
        "{} holds from {} on, and is taken then; is the clock of this machine right?", certificate.display(), moment(*from)
    )]
    Early {
        /// The certificate's path.
        certificate: PathBuf,
        /// The time at which it begins to hold, Unix seconds.
        from: u64,
    },
    /// One that has ended, while the one in use holds.
    #[error("{} held until {}", certificate.display(), moment(*until))]
    Ended {
        /// The certificate's path.
        certificate: PathBuf,
        /// The time at which it ended, Unix seconds.
        until: u64,
    },
}

/// The certificate in use.
#[derive(Debug)]
pub struct Certificate {
    certificate: PathBuf,
    key: PathBuf,
    /// Bytes of both files of the one in use.
    seen: PemPair,
    /// The time in which the one in use holds, if it can be read.
    validity: Option<Validity>,
    current: Arc<RwLock<Arc<ServerConfig>>>,
}

/// The part of a certificate that listeners use.
#[derive(Clone, Debug)]
pub struct CurrentCertificate(Arc<RwLock<Arc<ServerConfig>>>);

impl CurrentCertificate {
    /// The certificate that `acme` holds, as it is at each connection; and its answers to the
    /// authority.
    pub fn held(certificate: Arc<HeldCertificate>) -> Result<Self, rustls::Error> {
        let mut config = config_builder()?.with_cert_resolver(certificate);
        config.alpn_protocols = PROTOCOLS.map(<[u8]>::to_vec).to_vec();
        config.alpn_protocols.push(CHALLENGE_PROTOCOL.to_vec());
        Ok(Self(Arc::new(RwLock::new(Arc::new(config)))))
    }

    /// The settings of a connection that begins now.
    pub(super) fn config(&self) -> Arc<ServerConfig> {
        read(&self.0).clone()
    }
}

/// The bytes of both files.
#[derive(Clone, PartialEq, Eq)]
struct PemPair {
    certificate: Vec<u8>,
    key: Vec<u8>,
}

impl PemPair {
    fn validity(&self) -> Option<Validity> {
        let first = CertificateDer::pem_slice_iter(&self.certificate)
            .next()?
            .ok()?;
        Validity::of(&first)
    }
}

/// The end of the certificate in a file, Unix seconds; `None` where it cannot be read.
pub fn certificate_end(file: &Path) -> Option<u64> {
    let bytes = std::fs::read(file).ok()?;
    let first = CertificateDer::pem_slice_iter(&bytes).next()?.ok()?;
    Some(Validity::of(&first)?.until)
}

fn unix_secs(clock: &dyn Clock) -> u64 {
    clock.now_us() / 1_000_000
}

impl std::fmt::Debug for PemPair {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("PemPair").finish_non_exhaustive()
    }
}

impl Certificate {
    /// Reads both files.
    pub fn read(certificate: &Path, key: &Path) -> Result<Self, BadCertificate> {
        let seen = read_pair(certificate, key)?;
        let config = server_config(certificate, key, &seen)?;
        let (validity, current) = (seen.validity(), Arc::new(RwLock::new(Arc::new(config))));
        Ok(Self {
            certificate: certificate.to_owned(),
            key: key.to_owned(),
            seen,
            validity,
            current,
        })
    }

    /// The part that listeners use.
    pub fn current(&self) -> CurrentCertificate {
        CurrentCertificate(self.current.clone())
    }

    /// Reads the files again whenever they have changed, until `stop`. A pair that is no good is
    /// told, and the one before it stays in use; so does one that holds, where the next does not.
    pub async fn follow(mut self, clock: Arc<dyn Clock>, stop: CancellationToken) {
        // The last fault, and true once it was told.
        let mut fault = (String::new(), false);
        self.warn_of_early(unix_secs(&*clock));
        loop {
            tokio::select! {
                () = stop.cancelled() => return,
                () = tokio::time::sleep(FILES_LOOK) => {}
            }
            let now = unix_secs(&*clock);
            let looked = tokio::task::spawn_blocking(move || {
                let found = self.look(now);
                (self, found)
            });
            let Ok((certificate, found)) = looked.await else {
                return;
            };
            self = certificate;
            match found {
                Ok(false) => {}
                Ok(true) => {
                    fault = (String::new(), false);
                    tracing::info!("The certificate {} is in use", self.certificate.display());
                    self.warn_of_early(now);
                }
                // Files are replaced one after the other, so what is found once may be half of the
                // new pair.
                Err(found) if fault.0 != found.to_string() => fault = (found.to_string(), false),
                Err(_) if fault.1 => {}
                Err(found) => {
                    tracing::error!(error = %found, "The certificate before it stays in use: {found}");
                    fault.1 = true;
                }
            }
        }
    }

    fn warn_of_early(&self, now: u64) {
        if let Some(validity) = self.validity {
            validity.warn_of_early(&self.certificate.display().to_string(), now);
        }
    }

    /// Looks at the files; true if another pair is in use now. What is refused is looked at again,
    /// as it may have to wait for its time.
    fn look(&mut self, now: u64) -> Result<bool, BadCertificate> {
        let pair = read_pair(&self.certificate, &self.key)?;
        if pair == self.seen {
            return Ok(false);
        }
        let config = server_config(&self.certificate, &self.key, &pair)?;
        let validity = pair.validity();
        if let Some(next) = validity
            && next.gives_way_to(self.validity, now)
        {
            let (certificate, Validity { from, until }) = (self.certificate.clone(), next);
            if from > now {
                return Err(BadCertificate::Early { certificate, from });
            }
            return Err(BadCertificate::Ended { certificate, until });
        }
        *write(&self.current) = Arc::new(config);
        (self.seen, self.validity) = (pair, validity);
        Ok(true)
    }
}

fn read_pair(certificate: &Path, key: &Path) -> Result<PemPair, BadCertificate> {
    let read = |file: &Path| {
        std::fs::read(file).map_err(|error| BadCertificate::File {
            file: file.to_owned(),
            error,
        })
    };
    Ok(PemPair {
        certificate: read(certificate)?,
        key: read(key)?,
    })
}

fn config_builder() -> Result<ConfigBuilder<ServerConfig, WantsServerCert>, rustls::Error> {
    let builder = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()));
    Ok(builder
        .with_safe_default_protocol_versions()?
        .with_no_client_auth())
}

fn server_config(
    certificate: &Path,
    key: &Path,
    pair: &PemPair,
) -> Result<ServerConfig, BadCertificate> {
    let no_certificate = || BadCertificate::NoCertificate(certificate.to_owned());
    let chain = CertificateDer::pem_slice_iter(&pair.certificate)
        .collect::<Result<Vec<_>, _>>()
        .map_err(|_| no_certificate())?;
    if chain.is_empty() {
        return Err(no_certificate());
    }
    let private = PrivateKeyDer::from_pem_slice(&pair.key)
        .map_err(|_| BadCertificate::NoKey(key.to_owned()))?;
    let config = config_builder().and_then(|builder| builder.with_single_cert(chain, private));
    let mut config = config.map_err(|error| BadCertificate::Pair {
        certificate: certificate.to_owned(),
        key: key.to_owned(),
        error,
    })?;
    config.alpn_protocols = PROTOCOLS.map(<[u8]>::to_vec).to_vec();
    Ok(config)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    /// 2026-11-01T00:00:00Z.
    const NOW: u64 = 1_793_491_200;

    #[test]
    fn a_pair_before_its_time_waits_while_the_one_in_use_holds() {
        const DAY: u64 = 86_400;
        let folder = tempfile::tempdir().unwrap();
        let (certificate, key) = (folder.path().join("c.pem"), folder.path().join("k.pem"));
        let write = |first_day: u8, last_day: u8| {
            let pair = rcgen::KeyPair::generate().unwrap();
            let mut params = rcgen::CertificateParams::new(vec!["h".to_owned()]).unwrap();
            params.not_before = rcgen::date_time_ymd(2026, 11, first_day);
            params.not_after = rcgen::date_time_ymd(2026, 11, last_day);
            fs::write(&certificate, params.self_signed(&pair).unwrap().pem()).unwrap();
            fs::write(&key, pair.serialize_pem()).unwrap();
        };
        write(1, 10);
        let mut used = Certificate::read(&certificate, &key).unwrap();
        write(3, 20);
        for now in [NOW, NOW + 2 * DAY - 1] {
            let early = used.look(now).unwrap_err().to_string();
            assert!(
                early.contains("holds from 2026-11-03T00:00:00Z on"),
                "{early}"
            );
        }
        assert!(
            used.look(NOW + 2 * DAY).unwrap(),
            "the files are the same, and its time has come"
        );
        // An older pair that was put back by mistake does not replace one that holds.
        write(1, 10);
        let ended = used.look(NOW + 12 * DAY).unwrap_err().to_string();
        assert!(ended.contains("held until 2026-11-10T00:00:00Z"), "{ended}");
        // One that has ended gives way, and so does one that is before its time itself.
        write(25, 28);
        assert!(used.look(NOW + 18 * DAY).is_err());
        assert!(used.look(NOW + 19 * DAY).unwrap());
        write(26, 28);
        assert!(used.look(NOW + 19 * DAY).unwrap());
        // At the start it is taken whatever the clock says.
        let logged = crate::telemetry::testing::Logged::begin();
        Certificate::read(&certificate, &key)
            .unwrap()
            .warn_of_early(NOW);
        assert!(
            logged
                .text()
                .contains("holds from 2026-11-26T00:00:00Z on, and is in use all the same")
        );
    }

    #[test]
    fn another_pair_is_taken_and_a_broken_one_is_not() {
        let folder = tempfile::tempdir().unwrap();
        let (certificate, key) = (folder.path().join("c.pem"), folder.path().join("k.pem"));
        let pair = || rcgen::generate_simple_self_signed(["h".to_owned()]).unwrap();
        let (one, other) = (pair(), pair());
        assert!(matches!(
            Certificate::read(&certificate, &key),
            Err(BadCertificate::File { .. })
        ));
        fs::write(&certificate, one.cert.pem()).unwrap();
        fs::write(&key, one.signing_key.serialize_pem()).unwrap();
        let mut used = Certificate::read(&certificate, &key).unwrap();
        let current = used.current();
        let first = current.config();
        assert_eq!(first.alpn_protocols, [b"h2".to_vec(), b"http/1.1".to_vec()]);
        assert!(!used.look(NOW).unwrap());
        // One file is new, the other is not yet.
        fs::write(&certificate, other.cert.pem()).unwrap();
        assert!(matches!(used.look(NOW), Err(BadCertificate::Pair { .. })));
        fs::write(&certificate, "no certificate").unwrap();
        assert!(matches!(
            used.look(NOW),
            Err(BadCertificate::NoCertificate(_))
        ));
        fs::write(&certificate, other.cert.pem()).unwrap();
        fs::write(&key, "").unwrap();
        assert!(matches!(used.look(NOW), Err(BadCertificate::NoKey(_))));
        assert!(
            Arc::ptr_eq(&first, &current.config()),
            "the one before it stays"
        );
        fs::write(&key, other.signing_key.serialize_pem()).unwrap();
        assert!(used.look(NOW).unwrap() && !used.look(NOW).unwrap());
        assert!(!Arc::ptr_eq(&first, &current.config()));
    }
}
