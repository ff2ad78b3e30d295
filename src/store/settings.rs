//! `[store]`: where the store is; not the store.

use super::database_url::DatabaseUrl;
use serde::{Deserialize, Serialize};
use std::{fmt, path::PathBuf};

/// `[store]`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Config {
    /// The file, made when it is missing; its folder must exist. Relative paths count from the
    /// folder of the configuration.
    pub path: PathBuf,
    /// The database that holds the store in the place of a file.
    pub url: Option<DatabaseUrl>,
    /// The file of the key by which nodes seal what is secret in the database.
    pub key_file: Option<PathBuf>,
    /// The way in which the nodes on one database learn what the others changed.
    pub wake: WakeMode,
    /// Memory for pages of the file, in bytes.
    pub cache_bytes: usize,
}

/// The way in which a node on a database learns what another one changed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum WakeMode {
    /// It is told in milliseconds (`LISTEN`), and looks each second beside.
    #[default]
    Notify,
    /// It looks each second alone: for poolers that pass no notifications on.
    Poll,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            path: PathBuf::from("everfeed.redb"),
            url: None,
            key_file: None,
            wake: WakeMode::default(),
            cache_bytes: 128 << 20,
        }
    }
}

impl Config {
    /// True for a file that is not there yet. Of a database nothing is known without connecting.
    pub fn is_missing_file(&self) -> bool {
        self.url.is_none() && !self.path.exists()
    }

    /// The folder of the file; `None` for a database.
    pub fn folder(&self) -> Option<PathBuf> {
        let of_file = self.url.is_none().then(|| self.path.parent())??;
        let is_here = of_file.as_os_str().is_empty();
        Some(if is_here {
            PathBuf::from(".")
        } else {
            of_file.to_owned()
        })
    }

    /// True when the other one names the same store.
    pub fn is_same_store(&self, other: &Self) -> bool {
        match (&self.url, &other.url) {
            (None, None) => self.path == other.path,
            (one, other) => one == other,
        }
    }
}

/// The place of the store, without credentials.
impl fmt::Display for Config {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.url {
            Some(url) => url.fmt(f),
            None => self.path.display().fmt(f),
        }
    }
}
