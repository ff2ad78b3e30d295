//! Everything that was found out about a document, once; how it is told is decided elsewhere.

use super::{
    entries::{self, Read},
    source::Given,
};
use crate::app::probe::Choice;
use everfeed_adapters::{
    SlicedDocument,
    platforms::{Detected, GENERIC, Platforms, Profile, Traces},
};

/// A document, read.
pub(super) struct Findings<'a> {
    /// Its source.
    pub(super) given: &'a Given,
    /// Its contents.
    pub(super) window: &'a SlicedDocument,
    /// Its entries, each parsed.
    pub(super) entries: Vec<Read<'a>>,
    /// The platform that it shows, and why.
    pub(super) platform: Detected,
    /// True when the configuration names it, or wants none.
    pub(super) is_configured: bool,
    /// The profile of that platform; `None` when none was recognised.
    pub(super) profile: Option<&'a Profile>,
}

impl<'a> Findings<'a> {
    /// Reads every entry and recognises the platform, unless the configuration names it.
    pub(super) fn of(
        given: &'a Given,
        window: &'a SlicedDocument,
        platforms: &'a Platforms,
        choice: &Choice,
    ) -> Self {
        let headers: Vec<_> = given
            .headers
            .iter()
            .map(|(name, value)| (name.as_str(), value.as_str()))
            .collect();
        let traces = Traces {
            document: window,
            url: given.base_url.as_deref(),
            headers: &headers,
        };
        let configured = |platform: &str| {
            let why = "the configuration says so".to_owned();
            Detected {
                platform: platform.to_owned(),
                why,
                weight: None,
            }
        };
        let platform = match choice {
            Choice::Auto => platforms.detect(&traces),
            Choice::Nothing => configured(GENERIC),
            Choice::Named(name) => configured(name),
        };
        let is_configured = *choice != Choice::Auto;
        let profile = platforms
            .get(&platform.platform)
            .filter(|profile| profile.name != GENERIC);
        let profile = profile.map(|profile| &**profile);
        Self {
            given,
            window,
            entries: entries::read(window),
            platform,
            is_configured,
            profile,
        }
    }
}
