//! `[upstream]`: how publishers are asked, and what is refused; not how a single feed is polled.

use crate::{
    layers::ClientConfig,
    setting::{RefusedSetting, at_least_one},
};
use serde::{Deserialize, Serialize};
use url::Url;

/// `[upstream]`: how publishers are asked.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    /// URL at which a publisher finds out whom to talk to; goes into the `User-Agent` (FRB 081).
    /// Our public URL when absent.
    pub contact_url: Option<Url>,
    /// Seconds for one poll: waits, redirects and body together.
    pub total_secs: u64,
    /// Bytes of a document as sent at most.
    pub wire_bytes_max: u64,
    /// Bytes of a document at most, once inflated.
    pub body_bytes_max: u64,
    /// Bytes of larger documents (256 KiB and more) at most that are read and taken in at once.
    pub documents_bytes_max: usize,
    /// Redirects followed at most.
    pub redirects_max: usize,
    /// Seconds between two requests to one host, at least, for pages of posts that left their feed.
    pub permalink_check_gap_secs: u64,
}

impl Default for Config {
    fn default() -> Self {
        let client = ClientConfig::default();
        Self {
            contact_url: None,
            total_secs: client.total_secs,
            wire_bytes_max: client.wire_bytes_max,
            body_bytes_max: client.body_bytes_max,
            documents_bytes_max: client.documents_bytes_max,
            redirects_max: client.redirects_max,
            // POLLING 2.3: at most one a minute and host.
            permalink_check_gap_secs: 60,
        }
    }
}

impl Config {
    /// Refuses values that cannot work.
    pub fn check(&self) -> Result<(), RefusedSetting> {
        let tells = |url: &&Url| !url.username().is_empty() || url.password().is_some();
        let leads = |url: &&Url| matches!(url.scheme(), "http" | "https" | "mailto");
        // It goes to every publisher, so it must hold no password.
        if let Some(odd) = self
            .contact_url
            .as_ref()
            .filter(|url| !leads(url) || tells(url))
        {
            let wanted = "give an http, https or mailto URL without credentials, at which publishers reach you";
            return Err(RefusedSetting::new("contact_url", odd, wanted));
        }
        at_least_one("total_secs", self.total_secs, "give at least 1 second")?;
        at_least_one(
            "wire_bytes_max",
            self.wire_bytes_max,
            "give at least 1 byte; 10485760 is usual",
        )?;
        let gap_wanted = "give at least 1 second; 60 is usual";
        at_least_one(
            "permalink_check_gap_secs",
            self.permalink_check_gap_secs,
            gap_wanted,
        )?;
        at_least_one(
            "body_bytes_max",
            self.body_bytes_max,
            "give at least 1 byte; 33554432 is usual",
        )
    }

    /// The limits of the client stack. A single attempt has no more time than the whole.
    pub fn client(&self) -> ClientConfig {
        let usual = ClientConfig::default();
        ClientConfig {
            total_secs: self.total_secs,
            connect_secs: usual.connect_secs.min(self.total_secs),
            // The head may take as long as the whole: a limit of its own would end a poll before
            // `total_secs`.
            head_secs: self.total_secs,
            host_wait_secs: usual.host_wait_secs.min(self.total_secs),
            wire_bytes_max: self.wire_bytes_max,
            body_bytes_max: self.body_bytes_max,
            documents_bytes_max: self.documents_bytes_max,
            redirects_max: self.redirects_max,
            ..usual
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_contact_url_that_nobody_can_follow_is_refused() {
        let config: Config = toml::from_str("contact_url = \"javascript:alert(1)\"").unwrap();
        assert_eq!(config.check().unwrap_err().key, "contact_url");
        assert!(toml::from_str::<Config>("contact_url = \"me\"").is_err());
        assert_eq!(toml::from_str::<Config>("").unwrap().check(), Ok(()));
        let client = toml::from_str::<Config>("total_secs = 5").unwrap().client();
        assert_eq!(
            (client.total_secs, client.connect_secs, client.head_secs),
            (5, 5, 5)
        );
        for (text, secs) in [("", 30), ("total_secs = 90", 90)] {
            let client = toml::from_str::<Config>(text).unwrap().client();
            assert_eq!(
                (client.total_secs, client.head_secs),
                (secs, secs),
                "nothing ends a slow answer earlier"
            );
        }
    }
}
