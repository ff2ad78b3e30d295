//! What can be configured of polling, and what is refused; not where the configuration is read from.

use crate::{
    feed::{absence, schedule::Policy},
    layers::ClientConfig,
};
use everfeed_adapters::platforms::Profile;
use serde::Deserialize;
use thiserror::Error;
use url::Url;

/// `[upstream]`: how publishers are asked.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    /// Where a publisher finds out whom to talk to; goes into the `User-Agent` (FRB 081). Our public URL when absent.
    pub contact_url: Option<Url>,
    /// Seconds for one poll: waits, redirects and body together.
    pub total_secs: u64,
    /// Bytes of a document as sent at most.
    pub wire_bytes_max: u64,
    /// Bytes of a document at most, once inflated.
    pub body_bytes_max: u64,
    /// Redirects followed at most.
    pub redirects_max: usize,
    /// Seconds between two requests to one host, at least, for pages of posts that left their feed.
    pub probe_gap_secs: u64,
}

/// `format` of a feed: what is made of its document.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Format {
    /// It must be a feed of some format, which is found out anew for each document.
    #[default]
    Auto,
    /// It is the only item itself, whatever it is: a text, JSON, a picture.
    Resource,
}

/// `poll` of a feed: the bounds within which it is polled.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Poll {
    /// Seconds between polls at least. Not set: 3600, or less where the feed itself names a shorter rhythm.
    pub min_secs: Option<u64>,
    /// Seconds between polls at most, back-off included.
    pub max_secs: u64,
}

/// `deletions` of a feed: how much absence proves that an item is gone.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Deletions {
    /// Full documents without the item, while its neighbours are there.
    pub confirmations: u32,
    /// Seconds between the first and the last of them at least.
    pub apart_secs: u64,
    /// The same when the window was not conserved (POLLING 2.3, step 6).
    pub weak_confirmations: u32,
    /// Seconds between the first and the last of those at least.
    pub weak_secs: u64,
    /// Seconds between unconditional requests at least, while items are suspected to be gone.
    pub audit_secs: u64,
    /// Whether the own page of a missed item is asked for, if it has one at the feed's own origin.
    pub probe: bool,
    /// Allows fewer confirmations than are safe.
    #[serde(rename = "unsafe")]
    pub is_unsafe: bool,
}

/// `import` of a feed: how its archives are read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Import {
    /// Seconds for which the feed is not served yet, so that it begins with its oldest item. What is found later comes
    /// after what is served by then.
    pub serve_after_secs: u64,
    /// Pages read at most; 0 reads none.
    pub pages_max: u32,
    /// Seconds between two of them at least.
    pub page_gap_secs: u64,
    /// Seconds after which they are read again, at most a page a minute; 0: never.
    pub again_secs: u64,
}

/// A value that is refused.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("`{key}` is {found}; {remedy}")]
pub struct Mistake {
    /// The key, dotted, within its table.
    pub key: &'static str,
    /// What was found.
    pub found: String,
    /// What would do.
    pub remedy: &'static str,
}

impl Default for Config {
    fn default() -> Self {
        let client = ClientConfig::default();
        Self {
            contact_url: None,
            total_secs: client.total_secs,
            wire_bytes_max: client.wire_bytes_max,
            body_bytes_max: client.body_bytes_max,
            redirects_max: client.redirects_max,
            // POLLING 2.3: at most one a minute and host.
            probe_gap_secs: 60,
        }
    }
}

impl Default for Poll {
    fn default() -> Self {
        let Policy { min_secs, max_secs } = Policy::default();
        Self { min_secs, max_secs }
    }
}

impl Default for Deletions {
    fn default() -> Self {
        let absence::ProofPolicy { confirmations, apart_secs, weak_confirmations, weak_secs, .. } =
            absence::ProofPolicy::default();
        Self {
            confirmations: confirmations.into(),
            apart_secs,
            weak_confirmations: weak_confirmations.into(),
            weak_secs,
            // Kroll's own limit of unconditional requests (POLLING 0.3).
            audit_secs: 86_400,
            probe: true,
            is_unsafe: false,
        }
    }
}

impl Default for Import {
    fn default() -> Self {
        Self {
            serve_after_secs: 60,
            pages_max: 1000,
            page_gap_secs: PAGE_GAP_SECS_USUAL,
            again_secs: AGAIN_SECS_USUAL,
        }
    }
}

impl Import {
    /// What is merely bold.
    pub fn warnings(&self) -> Vec<String> {
        let again = if self.again_secs == 0 { u64::MAX } else { self.again_secs };
        let times = [
            ("page_gap_secs", self.page_gap_secs, PAGE_GAP_SECS_USUAL),
            ("again_secs", again, AGAIN_SECS_USUAL),
        ];
        let short = times.into_iter().filter(|(_, secs, usual)| secs < usual);
        short
            .map(|(key, secs, usual)| format!("`import.{key}` is {secs}, shorter than the usual {usual}"))
            .collect()
    }
}

impl Config {
    /// Refuses what cannot work.
    pub fn check(&self) -> Result<(), Mistake> {
        let tells = |url: &&Url| !url.username().is_empty() || url.password().is_some();
        let leads = |url: &&Url| matches!(url.scheme(), "http" | "https" | "mailto");
        // It goes to every publisher, so it must hold no password.
        let odd = self.contact_url.as_ref().filter(|url| !leads(url) || tells(url));
        mistaken(odd.is_some(), || Mistake {
            key: "contact_url",
            found: odd.map(Url::to_string).unwrap_or_default(),
            remedy: "give an http, https or mailto URL without credentials, at which publishers reach you",
        })?;
        at_least_one("total_secs", self.total_secs, "give at least 1 second")?;
        at_least_one("wire_bytes_max", self.wire_bytes_max, "give at least 1 byte; 10485760 is usual")?;
        at_least_one("probe_gap_secs", self.probe_gap_secs, "give at least 1 second; 60 is usual")?;
        at_least_one("body_bytes_max", self.body_bytes_max, "give at least 1 byte; 33554432 is usual")
    }

    /// The limits of the client stack. A single attempt has no more time than the whole.
    pub fn client(&self) -> ClientConfig {
        let usual = ClientConfig::default();
        ClientConfig {
            total_secs: self.total_secs,
            connect_secs: usual.connect_secs.min(self.total_secs),
            head_secs: usual.head_secs.min(self.total_secs),
            host_wait_secs: usual.host_wait_secs.min(self.total_secs),
            wire_bytes_max: self.wire_bytes_max,
            body_bytes_max: self.body_bytes_max,
            redirects_max: self.redirects_max,
            ..usual
        }
    }
}

impl Poll {
    /// Refuses what cannot work.
    pub fn check(&self) -> Result<(), Mistake> {
        at_least_one("poll.min_secs", self.min_secs.unwrap_or(1), "give at least 1 second; 3600 is polite")?;
        at_least_one("poll.max_secs", self.max_secs, "give at least 1 second; 86400 is usual")?;
        mistaken(self.min_secs.is_some_and(|min_secs| min_secs > self.max_secs), || Mistake {
            key: "poll.min_secs",
            found: format!("{}, more than max_secs = {}", self.min_secs.unwrap_or(0), self.max_secs),
            remedy: "give at most max_secs",
        })
    }

    /// The policy that these values make.
    pub fn policy(&self) -> Policy {
        Policy { min_secs: self.min_secs, max_secs: self.max_secs }
    }
}

/// The fewest confirmations that are safe; one fewer takes a single bad document for the truth.
const CONFIRMATIONS_SAFE: u32 = 2;
/// Likewise where the window was not conserved.
const WEAK_CONFIRMATIONS_SAFE: u32 = 3;
/// Shorter than this, two documents may come from the same cache.
const APART_SECS_USUAL: u64 = 3600;
const WEAK_SECS_USUAL: u64 = 86_400;
/// Unconditional requests more often than this annoy publishers (POLLING 4.2).
const AUDIT_SECS_USUAL: u64 = 86_400;

impl Deletions {
    /// What proof a tombstone needs; `complete` when the document says that it is the whole feed.
    pub fn policy(&self, complete: bool) -> absence::ProofPolicy {
        let few = |count: u32| u8::try_from(count).unwrap_or(u8::MAX);
        absence::ProofPolicy {
            confirmations: few(self.confirmations),
            apart_secs: self.apart_secs,
            weak_confirmations: few(self.weak_confirmations),
            weak_secs: self.weak_secs,
            complete,
            checks_permalinks: self.probe,
            ..absence::ProofPolicy::default()
        }
    }

    /// The same with software that is known: its profile raises what is asked, and never lowers it.
    pub fn policy_for(&self, complete: bool, profile: Option<&Profile>) -> absence::ProofPolicy {
        let policy = self.policy(complete);
        let least = profile.and_then(|profile| profile.deletions.confirmations_min).unwrap_or(0);
        let confirmations = policy.confirmations.max(u8::try_from(least).unwrap_or(u8::MAX));
        absence::ProofPolicy { confirmations, ..policy }
    }

    /// Refuses what would make tombstones of accidents; answers with warnings about what is merely bold.
    pub fn check(&self) -> Result<Vec<String>, Mistake> {
        self.check_safe("deletions.confirmations", self.confirmations, CONFIRMATIONS_SAFE)?;
        self.check_safe("deletions.weak_confirmations", self.weak_confirmations, WEAK_CONFIRMATIONS_SAFE)?;
        let times = [
            ("deletions.apart_secs", self.apart_secs, APART_SECS_USUAL),
            ("deletions.weak_secs", self.weak_secs, WEAK_SECS_USUAL),
            ("deletions.audit_secs", self.audit_secs, AUDIT_SECS_USUAL),
        ];
        let short = times.into_iter().filter(|(_, secs, usual)| secs < usual);
        let short =
            short.map(|(key, secs, usual)| format!("`{key}` is {secs}, shorter than the usual {usual}"));
        let counts = [
            ("deletions.confirmations", self.confirmations, CONFIRMATIONS_SAFE),
            ("deletions.weak_confirmations", self.weak_confirmations, WEAK_CONFIRMATIONS_SAFE),
        ];
        let few = counts.into_iter().filter(|(_, found, safe)| found < safe);
        let few = few.map(|(key, found, safe)| {
            format!("`{key}` is {found}, which is unsafe: fewer than {safe} take an accident for a deletion")
        });
        Ok(few.chain(short).collect())
    }

    fn check_safe(&self, key: &'static str, found: u32, safe: u32) -> Result<(), Mistake> {
        mistaken(found == 0, || Mistake { key, found: "0".into(), remedy: "give at least 1" })?;
        mistaken(found < safe && !self.is_unsafe, || Mistake {
            key,
            found: format!("{found}, and fewer than {safe} take an accident for a deletion"),
            remedy: "give more, or add `unsafe = true` to the same table",
        })
    }
}

/// One page a second, as the governor has it for every host.
const PAGE_GAP_SECS_USUAL: u64 = 1;
/// Thirty days: archives change rarely (H-9).
const AGAIN_SECS_USUAL: u64 = 2_592_000;

fn at_least_one(key: &'static str, value: u64, remedy: &'static str) -> Result<(), Mistake> {
    mistaken(value == 0, || Mistake { key, found: "0".into(), remedy })
}

fn mistaken(is: bool, mistake: impl FnOnce() -> Mistake) -> Result<(), Mistake> {
    if is { Err(mistake()) } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_left_out_has_a_polite_default() {
        let poll: Poll = toml::from_str("").unwrap();
        assert_eq!(poll.policy(), Policy::default());
        assert_eq!(toml::from_str::<Deletions>("").unwrap().check(), Ok(Vec::new()));
        assert_eq!(toml::from_str::<Config>("").unwrap().check(), Ok(()));
    }

    #[test]
    fn an_interval_that_cannot_work_is_refused_with_its_key() {
        let check = |text: &str, expect: &str| {
            let mistake = toml::from_str::<Poll>(text).unwrap().check().unwrap_err();
            assert_eq!(mistake.to_string(), expect);
        };
        check("min_secs = 0", "`poll.min_secs` is 0; give at least 1 second; 3600 is polite");
        check("max_secs = 0", "`poll.max_secs` is 0; give at least 1 second; 86400 is usual");
        check(
            "min_secs = 90000",
            "`poll.min_secs` is 90000, more than max_secs = 86400; give at most max_secs",
        );
        assert!(toml::from_str::<Poll>("min_sec = 1").is_err(), "a misspelt key is no key");
        assert_eq!(toml::from_str::<Poll>("min_secs = 1\nmax_secs = 5").unwrap().check(), Ok(()));
    }

    #[test]
    fn unsafe_deletions_must_be_asked_for_by_that_name() {
        let parse = |text: &str| toml::from_str::<Deletions>(text).unwrap().check();
        assert_eq!(parse("confirmations = 1").unwrap_err().key, "deletions.confirmations");
        assert_eq!(parse("weak_confirmations = 2").unwrap_err().key, "deletions.weak_confirmations");
        let warned = parse("confirmations = 1\nunsafe = true").unwrap();
        assert_eq!(
            warned,
            ["`deletions.confirmations` is 1, which is unsafe: fewer than 2 take an accident for a deletion"]
        );
        assert!(parse("confirmations = 0\nunsafe = true").is_err());
        let warnings = parse("apart_secs = 1\naudit_secs = 60").unwrap();
        assert_eq!(warnings[0], "`deletions.apart_secs` is 1, shorter than the usual 3600");
        assert_eq!(warnings.len(), 2);
    }

    #[test]
    fn a_contact_url_that_nobody_can_follow_is_refused() {
        let config: Config = toml::from_str("contact_url = \"javascript:alert(1)\"").unwrap();
        assert_eq!(config.check().unwrap_err().key, "contact_url");
        assert!(toml::from_str::<Config>("contact_url = \"me\"").is_err());
        let client = toml::from_str::<Config>("total_secs = 5").unwrap().client();
        assert_eq!((client.total_secs, client.connect_secs, client.head_secs), (5, 5, 5));
    }
}
