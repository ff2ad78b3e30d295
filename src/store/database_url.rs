//! `store.url`: the address of a database with its credentials; not what is connected to.

use crate::secret::masked_with_query;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use sha2::{Digest as _, Sha256};
use std::fmt;

/// The address of a database. Its credentials are never shown.
#[derive(Clone, PartialEq, Eq)]
pub struct DatabaseUrl(String);

impl DatabaseUrl {
    /// A URL as it was written.
    pub fn new(url: impl Into<String>) -> Self {
        Self(url.into())
    }

    /// True for a text that names a database and no file.
    pub fn is_named_by(text: &str) -> bool {
        text.starts_with("postgresql://") || text.starts_with("postgres://")
    }

    /// The URL itself, for the one place that connects.
    #[cfg(feature = "postgres")]
    pub(super) fn reveal(&self) -> &str {
        &self.0
    }

    /// The same URL in another schema of the database.
    #[cfg(all(test, feature = "postgres"))]
    pub(super) fn in_schema(&self, schema: &str) -> Self {
        let sign = if self.0.contains('?') { '&' } else { '?' };
        Self(format!(
            "{}{sign}options=-c%20search_path%3D{schema}",
            self.0
        ))
    }
}

/// Without credentials, for people.
impl fmt::Display for DatabaseUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&masked_with_query(&self.0))
    }
}

impl fmt::Debug for DatabaseUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// A digest stands for it: enough to see that it was changed.
impl Serialize for DatabaseUrl {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&hex::encode(Sha256::digest(&self.0)))
    }
}

impl<'de> Deserialize<'de> for DatabaseUrl {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer).map(Self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_secret_of_a_url_is_shown() {
        let url = DatabaseUrl::new("postgresql://u:hunter2@h/d?sslmode=disable&password=hunter3");
        for shown in [url.to_string(), format!("{url:?}")] {
            assert!(shown.contains("@h/d"), "{shown}");
            assert!(!shown.contains("hunter"), "{shown}");
        }
        let written = serde_json::to_string(&url).unwrap();
        assert!(!written.contains("hunter"), "{written}");
        assert!(
            DatabaseUrl::is_named_by("postgresql://h/d") && !DatabaseUrl::is_named_by("a.redb")
        );
    }
}
