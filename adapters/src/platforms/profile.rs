//! One platform's profile: its schema. Detection, scrubbing and checks stand beside it.

use super::{
    detect::{Kind, Sign, Weight},
    history::Recipe,
    pattern::Pattern,
    scrub::{self, Scrub},
};
use crate::{Entry, Metadata};
use serde::Deserialize;
use std::borrow::Cow;

/// What is known of one platform. A profile narrows what a document may prove and never widens it: it can mark an
/// observation as partial or ask for more confirmations, never for fewer.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Profile {
    /// The file's name without `.toml`: what a configuration calls the platform.
    #[serde(skip)]
    pub name: String,
    /// What people call it.
    pub title: String,
    /// It stands in front of another platform's feed (FeedBurner) and counts only when that one is not recognised.
    #[serde(default)]
    pub carrier: bool,
    /// By what a document shows that it comes from here.
    #[serde(default)]
    pub detect: Vec<Sign>,
    /// Where the posts are.
    #[serde(default)]
    pub feeds: Feeds,
    /// Where the comments are.
    #[serde(default)]
    pub comments: Comments,
    /// Ways to older entries, the best first; empty when there is none.
    #[serde(default)]
    pub history: Vec<Recipe>,
    /// What entries are called.
    #[serde(default)]
    pub ids: Ids,
    /// What churns in entries without an edit.
    #[serde(default)]
    pub scrub: Vec<Scrub>,
    /// What its server does.
    #[serde(default)]
    pub http: Http,
    /// What its dates mean.
    #[serde(default)]
    pub dates: Dates,
    /// In which order a document shows its entries.
    #[serde(default)]
    pub order: Order,
    /// How many entries a document holds unless its owner says otherwise.
    #[serde(default)]
    pub window: Option<u32>,
    /// Whether a document shows the whole feed.
    #[serde(default)]
    pub complete: Complete,
    /// The feed is a log of events: what leaves it is never deleted.
    #[serde(default)]
    pub event_log: bool,
    /// What deletions need beyond the ordinary.
    #[serde(default)]
    pub deletions: Deletions,
    /// How it tells others of new posts.
    #[serde(default)]
    pub pings: Pings,
    /// What else is worth knowing, a sentence each.
    #[serde(default)]
    pub notes: Vec<String>,
    /// Where these values come from: source files, documentation, issues.
    pub sources: Vec<String>,
    /// The scrubbers above and those that hold everywhere.
    #[serde(skip)]
    scrubbers: Vec<Scrub>,
    #[serde(skip)]
    version: u32,
}

impl Profile {
    /// Whether the generator that a head names is this platform, beyond doubt. Everything else that a document shows may
    /// come from a plugin, a theme, or what stands in front of it.
    pub fn is_named_by(&self, metadata: &Metadata) -> bool {
        let Some(generator) = metadata.generator.as_ref().map(ToString::to_string) else { return false };
        let names = |sign: &Sign| match &sign.kind {
            Kind::Generator(pattern) => sign.weight == Weight::Strong && pattern.is_match(&generator),
            _ => false,
        };
        self.detect.iter().any(names)
    }
}

/// Paths of feeds, from the site's root: the usual one first.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Feeds {
    /// Of posts. `{user}`, `{forum}`, `{topic}` and the like stand for what only the site knows.
    pub posts: Vec<String>,
}

/// Paths of comment feeds.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Comments {
    /// Of the whole site.
    pub site: Vec<String>,
    /// Of one post: `{permalink}feed/`, `/feeds/{post}/comments/default`.
    pub post: Vec<String>,
}

/// What entries are called.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Ids {
    /// What the platform takes as id.
    pub from: IdSource,
    /// What an id looks like. Its group `stable` is what outlives a move of the site; without one the id is all there is.
    pub pattern: Option<Pattern>,
    /// What the id of a comment looks like.
    pub comment: Option<Pattern>,
    /// Ids as the platform writes them; a check that `pattern` means them.
    pub examples: Vec<String>,
    /// What changes every id at once.
    pub volatile: Volatile,
}

/// Where the id of an entry stands.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum IdSource {
    /// In `guid`, `atom:id` or `rdf:about`.
    #[default]
    Id,
    /// In the link, because there is nothing else.
    Link,
    /// In the link as it was before a carrier replaced it.
    OriginalLink,
}

/// What changes every id of a site at once, so that old and new ones are matched by `stable` before anything is
/// taken for deleted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Volatile {
    /// Nothing: ids are made once and kept.
    #[default]
    Nothing,
    /// A change between http and https.
    Scheme,
    /// A move to another host or path, and http to https.
    Site,
}

/// What its server does with requests.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Http {
    /// Which validators it sends.
    pub validators: Validators,
    /// Both validators must be sent, since the server wants both to match.
    pub send_both_validators: bool,
    /// Its validators do not change with a deletion: 304 for ever. Only an unconditional request shows it.
    pub hides_deletes: bool,
    /// What a 200 to a conditional request holds.
    pub conditional: Conditional,
    /// It answers `A-IM: feed` with a part of the feed.
    pub delta_on_request: bool,
    /// `Last-Modified` may lie in the future, after a post with a date to come.
    pub future_last_modified: bool,
    /// One limit counts the requests to all sites of the platform.
    pub shared_limit: bool,
    /// Seconds between two requests at least, whatever the feed hints at.
    pub min_gap_secs: Option<u32>,
}

/// Which validators a server sends.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Validators {
    /// It depends on what stands in front of the platform.
    #[default]
    Unknown,
    /// `ETag` and `Last-Modified`.
    Both,
    /// Only `ETag`.
    Etag,
    /// Only `Last-Modified`.
    LastModified,
    /// None at all.
    None,
}

/// What a 200 to a conditional request holds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Conditional {
    /// The whole window.
    #[default]
    Full,
    /// What has changed since, under status 200: absence from it proves nothing.
    Delta,
}

/// What its dates mean.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Dates {
    /// `updated` of an entry.
    pub entry_updated: EntryUpdated,
    /// `updated` or `lastBuildDate` of the feed.
    pub feed_updated: FeedUpdated,
    /// The id of the feed itself changes with the date.
    pub feed_id_churns: bool,
}

/// What an entry's `updated` means.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum EntryUpdated {
    /// It depends on the template.
    #[default]
    Unknown,
    /// There is none.
    Absent,
    /// When the entry was edited last.
    Edited,
    /// When it was published anew; edits leave it alone.
    Republished,
    /// It moves without an edit.
    Churns,
}

/// What a feed's `updated` means.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum FeedUpdated {
    /// It depends on the template.
    #[default]
    Unknown,
    /// When an entry was edited last.
    Edited,
    /// The date of the newest entry.
    NewestEntry,
    /// When the document was made: it says nothing.
    Built,
}

/// In which order a document shows its entries.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Order {
    /// Nothing is known.
    #[default]
    Unknown,
    /// Newest publication first.
    Published,
    /// Last edit first.
    Updated,
    /// Last answer first: topics rise when somebody writes.
    Bumped,
    /// Pinned ones first, then newest publication.
    PinnedPublished,
}

/// Whether a document shows the whole feed, so that what leaves it has left the feed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Complete {
    /// Never: it shows a window.
    #[default]
    Never,
    /// When the total that the document names is reached.
    Total,
    /// Unless the owner has set a limit, which the document does not say. The profile's word alone is no proof.
    UnlessLimited,
}

/// What deletions need beyond the ordinary. A profile can only raise.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Deletions {
    /// How many whole documents must agree that an entry is gone; at least 2.
    pub confirmations_min: Option<u32>,
}

/// How it tells others of new posts.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Pings {
    /// It sends `weblogUpdates.ping` to services that its owner lists.
    pub xml_rpc: bool,
    /// The services that it pings when nobody says otherwise.
    pub xml_rpc_default: Vec<String>,
    /// Where an rssCloud registration goes: a path, or a URL.
    pub rss_cloud: Option<String>,
    /// Its WebSub hub: a path, or a URL.
    pub hub: Option<String>,
    /// The above are there only with an extension or on the platform's own hosts.
    pub optional: bool,
}

impl Profile {
    /// Takes over the scrubbers that hold everywhere.
    pub(super) fn settle(&mut self, everywhere: &[Scrub]) {
        self.scrubbers = self.scrub.iter().chain(everywhere).cloned().collect();
        self.version = scrub::version(&self.scrubbers);
    }

    /// The entry without what churns: for the content digest, and for nothing that is shown.
    pub fn scrub<'e>(&self, entry: &'e Entry) -> Cow<'e, Entry> {
        scrub::scrub(&self.scrubbers, entry)
    }

    /// Changes with the scrubbers and with the parser, so that neither is taken for an edit.
    pub fn digest_version(&self) -> u32 {
        self.version
    }
}
