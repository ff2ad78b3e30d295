//! `store.url`: the address of a database with its credentials; not what is connected to.

use crate::secret::{Secret, masked_with_query};
use serde::{Deserialize, Serialize};
use std::fmt;

/// The address of a database. Its credentials are never shown.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct DatabaseUrl(Secret);

impl DatabaseUrl {
    /// A URL as it was written.
    pub fn new(url: impl Into<String>) -> Self {
        Self(Secret::new(url))
    }

    /// True for a text that names a database and no file.
    pub fn is_named_by(text: &str) -> bool {
        text.starts_with("postgresql://") || text.starts_with("postgres://")
    }

    /// The URL itself, for the one place that connects.
    #[cfg(feature = "postgres")]
    pub(super) fn reveal(&self) -> &str {
        self.0.reveal()
    }

    /// The same URL in another schema of the database.
    #[cfg(all(test, feature = "postgres"))]
    pub(super) fn in_schema(&self, schema: &str) -> Self {
        let url = self.reveal();
        let sign = if url.contains('?') { '&' } else { '?' };
        Self::new(format!("{url}{sign}options=-c%20search_path%3D{schema}"))
    }
}

/// Without credentials, for people.
impl fmt::Display for DatabaseUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&masked_with_query(self.0.reveal()))
    }
}

impl fmt::Debug for DatabaseUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
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
