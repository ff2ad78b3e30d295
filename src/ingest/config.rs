//! `[upstream]`: how publishers are asked, and what is refused; not how a single feed is polled.

use crate::{
    identity::{AgentForm, Identity, SigningKey},
    layers::ClientConfig,
    registrable_domain::registrable_domain,
    setting::{RefusedSetting, at_least_one, quoted},
};
use serde::{Deserialize, Serialize};
use std::{
    fs,
    path::{Path, PathBuf},
    sync::Arc,
};
use url::{Host, Url};

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
    /// Polls in flight at most, over all hosts. The limit on open files may lower it.
    pub polls_in_flight_max: usize,
    /// Registered domains with many blogs, which are asked ten times as often as others.
    pub large_domains: Vec<String>,
    /// The private key (Ed25519, PEM) that signs our requests to publishers (U-40).
    pub identity: Option<PathBuf>,
    /// Another key that is published beside it: the next one, or the one before (U-45).
    pub identity_also: Option<PathBuf>,
    /// The form of `Signature-Agent` (U-41).
    pub signature_agent: AgentForm,
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
            polls_in_flight_max: 600,
            large_domains: Vec::new(),
            identity: None,
            identity_also: None,
            signature_agent: AgentForm::default(),
            // POLLING 2.3: at most one a minute and host.
            permalink_check_gap_secs: 60,
        }
    }
}

impl Config {
    /// The settings in force once others are reloaded: keys that sign, and what queues are made from,
    /// stay until the next start.
    #[must_use]
    pub fn reloaded(&self, new: &Self) -> Self {
        Self {
            polls_in_flight_max: self.polls_in_flight_max,
            large_domains: self.large_domains.clone(),
            identity: self.identity.clone(),
            identity_also: self.identity_also.clone(),
            signature_agent: self.signature_agent,
            permalink_check_gap_secs: self.permalink_check_gap_secs,
            ..new.clone()
        }
    }

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
        at_least_one(
            "polls_in_flight_max",
            self.polls_in_flight_max as u64,
            "give at least 1; 600 is usual",
        )?;
        let is_domain = |domain: &&String| {
            Host::parse(domain).is_ok() && registrable_domain(domain) == **domain
        };
        if let Some(odd) = self.large_domains.iter().find(|domain| !is_domain(domain)) {
            let wanted = "give domains as their owners registered them, such as [\"youtube.com\"]";
            return Err(RefusedSetting::new("large_domains", quoted(odd), wanted));
        }
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

    /// The URL at which publishers find out who asks, or this one.
    pub fn contact_url_or<'a>(&'a self, public_url: &'a Url) -> &'a Url {
        self.contact_url.as_ref().unwrap_or(public_url)
    }

    /// Reads the keys that sign our requests; `None` where there are none.
    pub fn read_identity(&self, public_url: &Url) -> Result<Option<Identity>, RefusedSetting> {
        let Some(file) = &self.identity else {
            return match &self.identity_also {
                Some(also) => {
                    let wanted = "give identity, too: that key signs";
                    let found = quoted(&also.display().to_string());
                    Err(RefusedSetting::new("identity_also", found, wanted))
                }
                None => Ok(None),
            };
        };
        if public_url.scheme() != "https" {
            let wanted = "publishers read the public key at server.public_url, which must be an https URL. Give one, or leave this out";
            let found = quoted(&file.display().to_string());
            return Err(RefusedSetting::new("identity", found, wanted));
        }
        let read = |key: &str, file: &Path| {
            let refused = |why: String| {
                let wanted =
                    format!("{why}; give a file that `openssl genpkey -algorithm ed25519` wrote");
                RefusedSetting::new(key, quoted(&file.display().to_string()), wanted)
            };
            let pem =
                fs::read(file).map_err(|error| refused(format!("it cannot be read ({error})")))?;
            SigningKey::from_pem(&pem).map_err(|why| refused(why.to_owned()))
        };
        let mut keys = vec![read("identity", file)?];
        if let Some(also) = &self.identity_also {
            keys.push(read("identity_also", also)?);
        }
        Ok(Identity::new(keys, public_url, self.signature_agent))
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
            large_domains: Arc::new(self.large_domains.iter().cloned().collect()),
            ..usual
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_identity_needs_a_key_that_can_sign_and_an_https_url() {
        let folder = tempfile::tempdir().unwrap();
        let (key, other) = (
            folder.path().join("key.pem"),
            folder.path().join("other.pem"),
        );
        let pair = rcgen::KeyPair::generate_for(&rcgen::PKCS_ED25519).unwrap();
        fs::write(&key, pair.serialize_pem()).unwrap();
        fs::write(&other, "hunter2").unwrap();
        let read = |identity: Option<&Path>, also: Option<&Path>, url: &str| {
            let config = Config {
                identity: identity.map(Path::to_owned),
                identity_also: also.map(Path::to_owned),
                ..Config::default()
            };
            config.read_identity(&Url::parse(url).unwrap())
        };
        let good = "https://feeds.example/";
        assert!(read(None, None, "http://feeds.example/").unwrap().is_none());
        assert!(read(Some(&key), Some(&key), good).unwrap().is_some());
        let key_of = |refused: Result<Option<Identity>, RefusedSetting>| {
            let refused = refused.unwrap_err();
            assert!(!refused.to_string().contains("hunter2"), "{refused}");
            refused.key
        };
        assert_eq!(
            key_of(read(Some(&key), None, "http://feeds.example/")),
            "identity"
        );
        assert_eq!(key_of(read(Some(&other), None, good)), "identity");
        assert_eq!(
            key_of(read(Some(&key), Some(&other), good)),
            "identity_also"
        );
        assert_eq!(key_of(read(None, Some(&key), good)), "identity_also");
        assert_eq!(
            key_of(read(Some(&folder.path().join("none")), None, good)),
            "identity"
        );
    }

    #[test]
    fn a_large_domain_is_one_that_an_owner_registered() {
        let check = |domain: &str, is_good: bool| {
            let text = format!("large_domains = [\"{domain}\"]");
            let config: Config = toml::from_str(&text).unwrap();
            assert_eq!(config.check().is_ok(), is_good, "{domain}");
        };
        check("youtube.com", true);
        check("www.youtube.com", false);
        check("YouTube.com", false);
        check("https://youtube.com", false);
    }

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
