//! Which platform profile holds for a feed: what the configuration says of it, and what its
//! document shows; not what a profile says.

use super::Fetched;
use everfeed_adapters::{
    SlicedDocument,
    platforms::{Conditional, Detected, Platforms, Profile, Traces},
};
use serde::{Deserialize, Serialize};
use std::{fmt, path::PathBuf, sync::Arc};

pub use crate::catalog::settings::PlatformChoice as Choice;

/// `[platforms]`: what is known of blog software besides what comes with everfeed.
#[derive(Clone, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    /// A folder of profiles (`NAME.toml`), read at the start. One of the name of an embedded
    /// profile replaces it.
    pub folder: Option<PathBuf>,
    /// The profiles of that folder and the embedded ones; `None` until the folder was read, or
    /// without one.
    #[serde(skip)]
    profiles: Option<Arc<Platforms>>,
}

impl Config {
    /// Every profile there is.
    pub fn profiles(&self) -> Arc<Platforms> {
        self.profiles.clone().unwrap_or_else(embedded)
    }

    /// Takes over what the folder holds.
    pub fn know(&mut self, profiles: Platforms) {
        self.profiles = Some(Arc::new(profiles));
    }
}

/// The profiles that come with everfeed.
pub(super) fn embedded() -> Arc<Platforms> {
    Arc::new(Platforms::embedded().clone())
}

/// Only what can be configured.
impl fmt::Debug for Config {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Config")
            .field("folder", &self.folder)
            .finish()
    }
}

impl Choice {
    /// The platform of a document of a feed of which `known` is remembered. A resource is compared
    /// as it is.
    pub(super) fn of(
        &self,
        platforms: &Platforms,
        known: Option<&Detected>,
        window: &SlicedDocument,
        fetched: &Fetched,
    ) -> Option<Detected> {
        match self {
            _ if fetched.resource.is_some() => None,
            Self::Auto => {
                let readable = |(name, value): (&'_ http::HeaderName, &'_ http::HeaderValue)| {
                    Some((name.to_string(), value.to_str().ok()?.to_owned()))
                };
                let headers: Vec<(String, String)> =
                    fetched.headers.iter().filter_map(readable).collect();
                let headers: Vec<(&str, &str)> = headers
                    .iter()
                    .map(|(name, value)| (name.as_str(), value.as_str()))
                    .collect();
                let traces = Traces {
                    document: window,
                    url: Some(&fetched.base_url),
                    headers: &headers,
                };
                Some(platforms.detect_again(known, &traces))
            }
            Self::Nothing => None,
            // Without a weight, so that `auto` looks for itself later.
            Self::Named(name) => Some(Detected {
                platform: name.clone(),
                why: "the configuration says so".into(),
                weight: None,
            }),
        }
    }
}

/// True when answers to conditional requests hide deletions with this software: 304 for ever, or
/// only what is new.
pub(super) fn hides_deletions(profile: &Profile) -> bool {
    profile.http.hides_deletes || profile.http.conditional == Conditional::Delta
}

/// The profile of what was recognised.
pub fn profile(platforms: &Platforms, found: Option<&Detected>) -> Option<Arc<Profile>> {
    platforms.get(&found?.platform).cloned()
}
