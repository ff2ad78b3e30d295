//! A configuration that a command writes: whole and checked, or not at all. Not what stands in it.

use super::probe::Trouble;
use crate::config::{Config, ConfigError};
use anyhow::Context as _;
use std::{
    fs::{Metadata, Permissions},
    io::Write as _,
    os::unix::fs::{MetadataExt as _, PermissionsExt as _, fchown},
    path::{Path, PathBuf},
};
use tempfile::{Builder, NamedTempFile};

/// Mode of a new file; the umask takes from it.
const MODE: u32 = 0o644;
/// Mode of a new file with a password.
const MODE_SECRET: u32 = 0o640;

/// Writes a file that is not there yet.
pub(super) fn write_new(file: &Path, text: &str, has_secret: bool) -> anyhow::Result<()> {
    let mode = if has_secret { MODE_SECRET } else { MODE };
    // The environment of today is not that of the service.
    let written = written(file, text, mode, [])?;
    written.persist_noclobber(file).map_err(|error| {
        if error.error.kind() == std::io::ErrorKind::AlreadyExists {
            anyhow::Error::from(is_there(file))
        } else {
            cannot_write(file, error.error)
        }
    })?;
    Ok(())
}

/// Puts a text into the place of a file, with the same owner and the same rights.
pub(super) fn replace(
    file: &Path,
    text: &str,
    environment: impl IntoIterator<Item = (String, String)>,
) -> anyhow::Result<()> {
    // A link stays a link.
    let file = &file
        .canonicalize()
        .map_err(|error| cannot_write(file, error))?;
    let old = std::fs::metadata(file).map_err(|error| cannot_write(file, error))?;
    let written = written(file, text, old.mode() & 0o7777, environment)?;
    keep_rights(&written, &old).map_err(|error| cannot_write(file, error))?;
    written
        .persist(file)
        .map_err(|error| cannot_write(file, error.error))?;
    Ok(())
}

/// The refusal to write where a file is.
pub(super) fn is_there(file: &Path) -> Trouble {
    Trouble::misused(format!(
        "{} is there already, and `everfeed init` overwrites no file. Give another one with --config, or use `everfeed add`",
        file.display()
    ))
}

fn keep_rights(written: &NamedTempFile, old: &Metadata) -> std::io::Result<()> {
    let new = written.as_file().metadata()?;
    if (new.uid(), new.gid()) != (old.uid(), old.gid()) {
        fchown(written.as_file(), Some(old.uid()), Some(old.gid()))?;
    }
    let mode = Permissions::from_mode(old.mode() & 0o7777);
    written.as_file().set_permissions(mode)
}

/// A temporary file beside `file` with this text, which is a good configuration.
fn written(
    file: &Path,
    text: &str,
    mode: u32,
    environment: impl IntoIterator<Item = (String, String)>,
) -> anyhow::Result<NamedTempFile> {
    let folder = match file.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder.to_owned(),
        _ => PathBuf::from("."),
    };
    let made = Builder::new()
        .prefix(".everfeed-")
        .suffix(".toml")
        .permissions(Permissions::from_mode(mode))
        .tempfile_in(folder);
    let mut made = made.map_err(|error| cannot_write(file, error))?;
    made.write_all(text.as_bytes())
        .and_then(|()| made.as_file().sync_all())
        .map_err(|error| cannot_write(file, error))?;
    Config::load(made.path(), environment).map_err(|error| ConfigError {
        file: file.to_owned(),
        ..error
    })?;
    Ok(made)
}

fn cannot_write(file: &Path, error: std::io::Error) -> anyhow::Error {
    let what = format!(
        "{} cannot be written, and nothing was changed. Look at the rights of its folder",
        file.display()
    );
    Err::<(), _>(error)
        .context(what)
        .expect_err("it is an error")
}
