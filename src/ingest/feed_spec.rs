//! A feed as it is to be polled, and what follows from that alone; not how it is polled.

use super::DocumentFormat;
use crate::{
    catalog::{FeedSettings, RegisteredFeed},
    feed::{
        archive::{BYTES_MAX, LastWalk, OwnOrigins, WalkRules},
        record::FeedNo,
        schedule::Policy,
        stamp::Stamp,
    },
    layers::is_loopback,
};
use std::{
    ops::{Deref, DerefMut},
    sync::Arc,
};
use url::Url;

/// A feed as it is to be polled: it is read as its settings are.
#[derive(Clone, Debug, PartialEq)]
pub struct FeedSpec {
    /// Its number in the store.
    pub no: FeedNo,
    /// Its settings, which the catalog shares.
    settings: Arc<FeedSettings>,
    /// Seconds over which first polls are spread after a start.
    pub spread_secs: u64,
}

impl Deref for FeedSpec {
    type Target = FeedSettings;

    fn deref(&self) -> &FeedSettings {
        &self.settings
    }
}

impl DerefMut for FeedSpec {
    fn deref_mut(&mut self) -> &mut FeedSettings {
        Arc::make_mut(&mut self.settings)
    }
}

impl From<&RegisteredFeed> for FeedSpec {
    fn from(feed: &RegisteredFeed) -> Self {
        Self {
            no: feed.no,
            settings: feed.settings.clone(),
            spread_secs: 0,
        }
    }
}

impl FeedSpec {
    // Decides: Of which feeds is the last good document kept?
    /// True for a feed of a site, for its plain readers; and for a resource, which is pushed as it
    /// is.
    pub(super) fn keeps_document(&self) -> bool {
        self.legacy_url().is_some() || self.format == DocumentFormat::Resource
    }

    /// A feed that is polled and judged as usual, without a quota; its archives are not read.
    pub fn new(no: FeedNo, name: impl Into<String>, url: Url) -> Self {
        let mut settings = FeedSettings::new(name, url);
        settings.import.pages_max = 0;
        settings.keep.quota_bytes = 0;
        Self {
            no,
            settings: settings.into(),
            spread_secs: 0,
        }
    }

    /// The same feed with other settings.
    #[must_use]
    pub fn with(mut self, change: impl FnOnce(&mut FeedSettings)) -> Self {
        change(&mut self);
        self
    }

    /// Bounds of its polling interval.
    pub fn policy(&self) -> Policy {
        Policy {
            spread_secs: self.spread_secs,
            ..self.poll.policy()
        }
    }

    /// True where its archives are read.
    pub(super) fn reads_archives(&self) -> bool {
        self.import.pages_max > 0
    }

    /// Its URL as it is stored, compared and shown.
    pub fn bare_url(&self) -> Url {
        without_credentials(&self.url)
    }

    /// Its first public URL, when that is elsewhere than upstream: what its relative references are
    /// relative to.
    pub(super) fn public_url(&self) -> Option<&Url> {
        self.aliases.first()
    }

    /// The address at which its readers find its document, where that is not the one that is polled:
    /// the one at a site, else its first public URL.
    pub(super) fn reader_url(&self) -> Option<&Url> {
        self.legacy_url().or(self.public_url())
    }

    /// Limits of a walk through its archives.
    pub(super) fn archive_rules(&self) -> WalkRules {
        let quota = self.keep.limits().quota_bytes;
        WalkRules {
            reach: OwnOrigins::new(self.bare_url(), self.aliases.clone()),
            pages_max: self.import.pages_max,
            // What is read may take as much again when it is stored.
            bytes_max: quota.map_or(BYTES_MAX, |quota| BYTES_MAX.min(quota / 2)),
            page_gap_secs: if self.is_on_this_machine() {
                self.import.loopback_gap_secs
            } else {
                self.import.page_gap_secs
            },
        }
    }

    /// True when its origin is on this machine: no publisher's protection is needed there.
    pub(super) fn is_on_this_machine(&self) -> bool {
        self.url.host_str().is_some_and(is_loopback)
    }

    /// Time at which its archives are walked again after this walk; `None`: never.
    pub(super) fn walks_again_at(&self, walked: &LastWalk) -> Option<Stamp> {
        if !self.reads_archives() {
            return None;
        }
        walked.again_at(self.import.again_secs)
    }
}

/// The URL that references of a document are relative to: where it came from, without credentials
/// and query. A query may be a secret of the operator, and would come out wherever a reference is
/// empty or only a fragment.
pub(super) fn reference_base(landed: &str) -> String {
    let Ok(url) = Url::parse(landed) else {
        return landed.to_owned();
    };
    let mut base = without_credentials(&url);
    base.set_query(None);
    base.into()
}

/// A URL without credentials and fragment.
pub fn without_credentials(url: &Url) -> Url {
    let mut bare = url.clone();
    // Both fail only for URLs without a host, which have no credentials.
    let _ = bare.set_username("");
    let _ = bare.set_password(None);
    bare.set_fragment(None);
    bare
}
