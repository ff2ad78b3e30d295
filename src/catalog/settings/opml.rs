//! `[[opml]]`: a list of feeds that is read at intervals; not how it is read.

use super::is_name;
use crate::{
    secret::masked_with_query,
    setting::{RefusedSetting, quoted},
};
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};
use std::path::PathBuf;
use url::Url;

/// Lists at most.
pub const LISTS_MAX: usize = 100;

/// Seconds between two reads of a list, at least.
const EVERY_SECS_MIN: u64 = 60;

/// Seconds between two reads of a list, unless it says otherwise: an hour (U-52).
const EVERY_SECS: u64 = 3600;

/// `[[opml]]`: a list of feeds (OPML) whose outlines become feeds of the registry.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct OpmlSettings {
    /// Its name: `[a-z0-9][a-z0-9-]{0,62}`. The feeds that it brings carry it.
    pub name: String,
    /// Its URL, at any address, as the operator names it. May carry `user:password@`.
    #[serde(default)]
    pub url: Option<Url>,
    /// Its file, in the place of `url`.
    #[serde(default)]
    pub file: Option<PathBuf>,
    /// Seconds between two reads.
    #[serde(default = "every_secs")]
    pub every_secs: u64,
    /// True if its feeds, and the lists that it includes, may be on this machine and its network.
    #[serde(default)]
    pub private_hosts: bool,
}

/// The place of a list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OpmlPlace<'a> {
    /// A URL.
    Url(&'a Url),
    /// A file.
    File(&'a PathBuf),
}

const fn every_secs() -> u64 {
    EVERY_SECS
}

impl OpmlSettings {
    /// Everything in it that cannot be meant. Keys are those of its table.
    pub fn problems(&self) -> Vec<RefusedSetting> {
        let mut problems = Vec::new();
        let mut refuse = |key: &str, found: String, wanted: &str| {
            problems.push(RefusedSetting::new(key, found, wanted));
        };
        if !is_name(&self.name) {
            refuse("name", quoted(&self.name), super::NAME_WANTED);
        }
        let wanted = "give the http or https URL of a list of feeds (OPML), without a #fragment";
        match (&self.url, &self.file) {
            (Some(_), Some(_)) => refuse(
                "file",
                "a file beside url".to_owned(),
                "leave out one of url and file",
            ),
            (None, None) => refuse("url", "nothing".to_owned(), wanted),
            (Some(url), None) => {
                if !matches!(url.scheme(), "http" | "https") || url.fragment().is_some() {
                    refuse("url", quoted(&masked_with_query(url.as_str())), wanted);
                }
            }
            (None, Some(_)) => {}
        }
        if self.every_secs < EVERY_SECS_MIN {
            let wanted = format!("give {EVERY_SECS_MIN} seconds at least");
            refuse("every_secs", self.every_secs.to_string(), &wanted);
        }
        problems
    }

    /// Its place. Settings without [`problems`](Self::problems) have one.
    pub fn place(&self) -> Option<OpmlPlace<'_>> {
        let url = self.url.as_ref().map(OpmlPlace::Url);
        url.or_else(|| self.file.as_ref().map(OpmlPlace::File))
    }

    /// Its place as it is shown, without credentials and query.
    pub fn shown_place(&self) -> String {
        match self.place() {
            Some(OpmlPlace::Url(url)) => masked_with_query(url.as_str()),
            Some(OpmlPlace::File(file)) => file.display().to_string(),
            None => String::new(),
        }
    }

    /// Digest of what a read depends on: the place, and the addresses that may be taken.
    pub fn digest(&self) -> String {
        let place = match self.place() {
            Some(OpmlPlace::Url(url)) => format!("url {url}"),
            Some(OpmlPlace::File(file)) => format!("file {}", file.display()),
            None => String::new(),
        };
        let digest = Sha256::digest(format!("{} {place}", self.private_hosts));
        hex::encode(&digest[..16])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_has_one_place_and_a_sound_interval() {
        let told = |text: &str| {
            let list: OpmlSettings = toml::from_str(&format!("name = \"a\"\n{text}")).unwrap();
            let problems = list.problems().into_iter();
            problems.map(|it| it.key).collect::<Vec<_>>()
        };
        assert!(told("url = \"http://127.0.0.1:1/x.opml\"").is_empty());
        assert!(told("file = \"x.opml\"").is_empty());
        assert_eq!(told(""), ["url"]);
        assert_eq!(told("file = \"x\"\nurl = \"http://x/\""), ["file"]);
        assert_eq!(
            told("url = \"file:///x\"\nevery_secs = 59"),
            ["url", "every_secs"]
        );
    }

    #[test]
    fn credentials_are_not_shown_and_a_change_is_noticed() {
        let list = |text: &str| toml::from_str::<OpmlSettings>(text).unwrap();
        let one = list("name = \"a\"\nurl = \"http://me:hunter2@x/l?token=hunter3\"");
        assert!(
            !one.shown_place().contains("hunter"),
            "{}",
            one.shown_place()
        );
        let other = list("name = \"a\"\nurl = \"http://x/l\"");
        assert_ne!(one.digest(), other.digest());
        let slower = OpmlSettings {
            every_secs: 7200,
            ..other.clone()
        };
        assert_eq!(other.digest(), slower.digest());
        let private = OpmlSettings {
            private_hosts: true,
            ..other.clone()
        };
        assert_ne!(other.digest(), private.digest());
    }
}
