//! A feed as it is to be polled, and what follows from that alone; not how it is polled.

use super::{DeletionSettings, DocumentFormat, ImportSettings, RecordSettings, platform::Choice};
use crate::feed::{
    archive::{BYTES_MAX, LastWalk, OwnOrigins, WalkRules},
    keep_limits::KeepLimits,
    record::FeedNo,
    schedule::Policy,
    stamp::Stamp,
};
use url::Url;

/// A feed as it is to be polled.
#[derive(Clone, Debug)]
pub struct FeedSpec {
    /// Its number in the store.
    pub no: FeedNo,
    /// Its name.
    pub name: String,
    /// Its URL upstream, credentials included.
    pub url: Url,
    /// Its public URLs: their origins mean its own. Relative references are relative to the first
    /// one, if there is any.
    pub aliases: Vec<Url>,
    /// The reading of its archives; `None`: they are not read.
    pub import: Option<ImportSettings>,
    /// Feed, or a resource that is its own only item.
    pub format: DocumentFormat,
    /// Bounds of its polling interval.
    pub policy: Policy,
    /// Proof that a tombstone needs.
    pub deletions: DeletionSettings,
    /// Platform profile whose scrubbers make its digests.
    pub platform: Choice,
    /// Limits of its items, and the folder of its documents.
    pub keeping: Keeping,
}

/// Limits of what is kept of a feed, and the folder in which its documents are recorded.
#[derive(Clone, Debug, Default)]
pub struct Keeping {
    /// Limits of its items.
    pub limits: KeepLimits,
    /// Folder in which its last documents are kept, if any.
    pub record: Option<RecordSettings>,
    /// The address at which the last good one is served, of a feed of a site: its origin is asked
    /// under that name.
    pub legacy_url: Option<Url>,
}

impl FeedSpec {
    // Decides: Of which feeds is the last good document kept?
    /// True for a feed of a site, for its plain readers; and for a resource, which is pushed as it
    /// is.
    pub(super) fn keeps_document(&self) -> bool {
        self.keeping.legacy_url.is_some() || self.format == DocumentFormat::Resource
    }

    /// A feed that is polled and judged as usual.
    pub fn new(no: FeedNo, name: impl Into<String>, url: Url) -> Self {
        let (policy, deletions) = (Policy::default(), DeletionSettings::default());
        let (aliases, import, keeping) = (Vec::new(), None, Keeping::default());
        let (format, platform) = (DocumentFormat::Auto, Choice::Auto);
        Self {
            no,
            name: name.into(),
            url,
            aliases,
            import,
            format,
            policy,
            deletions,
            platform,
            keeping,
        }
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

    /// Limits of a walk through its archives.
    pub(super) fn archive_rules(&self) -> WalkRules {
        let import = self.import.unwrap_or_default();
        WalkRules {
            reach: OwnOrigins::new(self.bare_url(), self.aliases.clone()),
            pages_max: import.pages_max,
            // What is read may take as much again when it is stored.
            bytes_max: self
                .keeping
                .limits
                .quota_bytes
                .map_or(BYTES_MAX, |quota| BYTES_MAX.min(quota / 2)),
            page_gap_secs: import.page_gap_secs,
        }
    }

    /// Time at which its archives are walked again after this walk; `None`: never.
    pub(super) fn walks_again_at(&self, walked: &LastWalk) -> Option<Stamp> {
        walked.again_at(
            self.import
                .filter(|import| import.pages_max > 0)?
                .again_secs,
        )
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
