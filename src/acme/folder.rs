//! The files that are kept of an authority: the account, the certificate with its key, the times of
//! orders, the way in which names were proven. Only their owner may read them. Not their meaning.

use super::authority::ChallengeWay;
use serde::{Serialize, de::DeserializeOwned};
use std::{
    fs,
    io::{self, Write as _},
    os::unix::fs::{DirBuilderExt as _, PermissionsExt as _},
    path::{Path, PathBuf},
};
use tempfile::NamedTempFile;
use url::Url;

const ACCOUNT: &str = "account.json";
/// Key and certificate in one file, so that no crash parts the pair.
const CERTIFICATE: &str = "certificate.pem";
const ORDERS: &str = "orders.json";
/// The name of the challenge that was good last.
const WAY: &str = "challenge.txt";

/// The folder of one authority below the configured one.
#[derive(Clone, Debug)]
pub struct AcmeFolder(PathBuf);

impl AcmeFolder {
    /// Makes the folder, and tries that files can be written there: an account or a certificate
    /// that cannot be kept would be asked for again at each start.
    pub fn open(folder: &Path, directory: &Url) -> io::Result<Self> {
        let path = folder.join(folder_name(directory));
        fs::DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(&path)?;
        NamedTempFile::new_in(&path)?.close()?;
        Ok(Self(path))
    }

    /// The path of the certificate.
    pub fn certificate_path(&self) -> PathBuf {
        self.0.join(CERTIFICATE)
    }

    /// The key and the certificate (PEM), if there are any.
    pub(super) fn certificate(&self) -> io::Result<Option<String>> {
        self.read(CERTIFICATE)
    }

    pub(super) fn keep_certificate(&self, pem: &str) -> io::Result<()> {
        self.write(CERTIFICATE, pem.as_bytes())
    }

    /// The account, if there is one.
    pub(super) fn account<T: DeserializeOwned>(&self) -> io::Result<Option<T>> {
        self.read(ACCOUNT)?
            .map(|text| serde_json::from_str(&text).map_err(io::Error::other))
            .transpose()
    }

    pub(super) fn keep_account(&self, account: &impl Serialize) -> io::Result<()> {
        self.write(ACCOUNT, &serde_json::to_vec(account)?)
    }

    pub(super) fn forget_account(&self) -> io::Result<()> {
        fs::remove_file(self.0.join(ACCOUNT))
    }

    /// The times of orders, Unix seconds; none where the file cannot be understood.
    pub(super) fn orders(&self) -> io::Result<Vec<u64>> {
        Ok(self
            .read(ORDERS)?
            .and_then(|text| serde_json::from_str(&text).ok())
            .unwrap_or_default())
    }

    pub(super) fn keep_orders(&self, times: &[u64]) -> io::Result<()> {
        self.write(ORDERS, &serde_json::to_vec(times)?)
    }

    /// The way in which names were proven last; `None` where that is not known.
    pub(super) fn way(&self) -> Option<ChallengeWay> {
        let name = self.read(WAY).ok()??;
        [ChallengeWay::TlsAlpn, ChallengeWay::Http]
            .into_iter()
            .find(|way| way.name() == name.trim())
    }

    pub(super) fn keep_way(&self, way: ChallengeWay) -> io::Result<()> {
        self.write(WAY, format!("{}\n", way.name()).as_bytes())
    }

    fn read(&self, name: &str) -> io::Result<Option<String>> {
        match fs::read_to_string(self.0.join(name)) {
            Ok(text) => Ok(Some(text)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Writes a file whole or not at all.
    fn write(&self, name: &str, bytes: &[u8]) -> io::Result<()> {
        let mut file = NamedTempFile::new_in(&self.0)?;
        file.as_file()
            .set_permissions(fs::Permissions::from_mode(0o600))?;
        file.write_all(bytes)?;
        file.as_file().sync_all()?;
        file.persist(self.0.join(name))
            .map_err(|error| error.error)?;
        fs::File::open(&self.0)?.sync_all()
    }
}

/// The name of an authority's folder: another directory has another account, and other
/// certificates.
fn folder_name(directory: &Url) -> String {
    let port = directory
        .port()
        .map(|port| format!("-{port}"))
        .unwrap_or_default();
    let name = format!(
        "{}{port}{}",
        directory.host_str().unwrap_or_default(),
        directory.path()
    );
    let plain = |c: char| {
        if c.is_ascii_alphanumeric() || ".-".contains(c) {
            c
        } else {
            '-'
        }
    };
    name.trim_matches('/').chars().map(plain).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_for_their_owner_alone_and_an_authority_has_a_folder() {
        let place = tempfile::tempdir().unwrap();
        let lets_encrypt = Url::parse("https://acme-v02.api.letsencrypt.org/directory").unwrap();
        let folder = AcmeFolder::open(&place.path().join("acme"), &lets_encrypt).unwrap();
        assert_eq!(
            (folder.certificate().unwrap(), folder.orders().unwrap()),
            (None, vec![])
        );
        assert_eq!(folder.account::<String>().unwrap(), None);
        folder.keep_certificate("one").unwrap();
        folder.keep_certificate("two").unwrap();
        folder.keep_orders(&[1, 2]).unwrap();
        folder.keep_account(&"me").unwrap();
        assert_eq!(folder.way(), None);
        folder.keep_way(ChallengeWay::Http).unwrap();
        assert_eq!(folder.way(), Some(ChallengeWay::Http));
        assert_eq!(folder.certificate().unwrap().as_deref(), Some("two"));
        assert_eq!(folder.orders().unwrap(), [1, 2]);
        assert_eq!(folder.account::<String>().unwrap().as_deref(), Some("me"));
        let path = place
            .path()
            .join("acme/acme-v02.api.letsencrypt.org-directory");
        let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!(mode(&path), 0o700);
        for name in [CERTIFICATE, ACCOUNT, ORDERS, WAY] {
            assert_eq!(mode(&path.join(name)), 0o600, "{name}");
        }
        assert_eq!(
            fs::read_dir(&path).unwrap().count(),
            4,
            "nothing else is left"
        );
        fs::write(path.join(ORDERS), "?").unwrap();
        assert!(folder.orders().unwrap().is_empty());
        fs::write(path.join(WAY), b"\xff").unwrap();
        assert_eq!(folder.way(), None);
        folder.forget_account().unwrap();
        assert_eq!(folder.account::<String>().unwrap(), None);
        let other = Url::parse("https://[::1]:14000/dir/x?y").unwrap();
        assert_eq!(folder_name(&other), "---1--14000-dir-x");
    }
}
