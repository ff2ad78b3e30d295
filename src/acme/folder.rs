//! The folder with the files that are kept of an authority. Only their owner may read them. Not their
//! meaning.

use std::{
    fs,
    io::{self, Write as _},
    os::unix::fs::{DirBuilderExt as _, PermissionsExt as _},
    path::{Path, PathBuf},
};
use tempfile::NamedTempFile;
use url::Url;

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

    /// The path of a file.
    pub(super) fn path(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }

    /// The text of a file, if there is one.
    pub(super) fn read(&self, name: &str) -> io::Result<Option<String>> {
        match fs::read_to_string(self.path(name)) {
            Ok(text) => Ok(Some(text)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Writes a file whole or not at all.
    pub(super) fn write(&self, name: &str, bytes: &[u8]) -> io::Result<()> {
        let mut file = NamedTempFile::new_in(&self.0)?;
        file.as_file()
            .set_permissions(fs::Permissions::from_mode(0o600))?;
        file.write_all(bytes)?;
        file.as_file().sync_all()?;
        file.persist(self.path(name)).map_err(|error| error.error)?;
        fs::File::open(&self.0)?.sync_all()
    }

    /// Removes a file, which is there.
    pub(super) fn remove(&self, name: &str) -> io::Result<()> {
        fs::remove_file(self.path(name))
    }
}

/// The name of an authority's folder: another directory has another account, and other
/// certificates.
pub(super) fn folder_name(directory: &Url) -> String {
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
    fn an_authority_has_a_folder_of_its_own() {
        let check = |directory, expect| {
            assert_eq!(folder_name(&Url::parse(directory).unwrap()), expect);
        };
        check(
            "https://acme-v02.api.letsencrypt.org/directory",
            "acme-v02.api.letsencrypt.org-directory",
        );
        check("https://[::1]:14000/dir/x?y", "---1--14000-dir-x");
    }
}
