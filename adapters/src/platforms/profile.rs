//! One platform's profile: its schema. Detection, scrubbing and checks stand beside it.

use super::{
    history::Recipe,
    pattern::Pattern,
    scrub::{self, Scrub},
    sign::{Sign, SignKind, Weight},
};
use crate::{Entry, Metadata};
use serde::Deserialize;
use std::borrow::Cow;

/// Facts about one platform. A profile narrows what a document may prove and never widens it: it
/// can mark an observation as partial or ask for more confirmations, never for fewer.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Profile {
    /// The file's name without `.toml`: what a configuration calls the platform.
    #[serde(skip)]
    pub name: String,
    /// Name for people.
    pub title: String,
    /// It stands in front of another platform's feed (FeedBurner) and counts only when that one is
    /// not recognised.
    #[serde(default)]
    pub carrier: bool,
    /// By what a document shows that it comes from here.
    #[serde(default)]
    pub detect: Vec<Sign>,
    /// Feeds of posts.
    #[serde(default)]
    pub feeds: Feeds,
    /// Feeds of comments.
    #[serde(default)]
    pub comments: Comments,
    /// Ways to older entries, the best first; empty when there is none.
    #[serde(default)]
    pub history: Vec<Recipe>,
    /// Ids of entries.
    #[serde(default)]
    pub ids: Ids,
    /// Scrubbers of everything that churns in entries without an edit.
    #[serde(default)]
    pub scrub: Vec<Scrub>,
    /// Behaviour of its server.
    #[serde(default)]
    pub http: Http,
    /// Meaning of its dates.
    #[serde(default)]
    pub dates: Dates,
    /// In which order a document shows its entries.
    #[serde(default)]
    pub order: Order,
    /// Number of entries of a document unless its owner says otherwise.
    #[serde(default)]
    pub window: Option<u32>,
    /// Condition under which a document shows the whole feed.
    #[serde(default)]
    pub complete: Complete,
    /// The feed is a log of events: what leaves it is never deleted.
    #[serde(default)]
    pub event_log: bool,
    /// Demands on deletions beyond the ordinary.
    #[serde(default)]
    pub deletions: Deletions,
    /// Notifications of new posts to others.
    #[serde(default)]
    pub pings: Pings,
    /// Other facts worth knowing, a sentence each.
    #[serde(default)]
    pub notes: Vec<String>,
    /// Sources of these values: source files, documentation, issues.
    pub sources: Vec<String>,
    /// The scrubbers above and those that hold everywhere.
    #[serde(skip)]
    scrubbers: Vec<Scrub>,
    #[serde(skip)]
    version: u32,
}

impl Profile {
    /// True when the generator that the metadata names is this platform, beyond doubt. Everything
    /// else that a document shows may come from a plugin, a theme, or what stands in front of it.
    pub fn is_named_by(&self, metadata: &Metadata) -> bool {
        let Some(generator) = metadata.generator.as_ref().map(ToString::to_string) else {
            return false;
        };
        let names = |sign: &Sign| match &sign.kind {
            SignKind::Generator(pattern) => {
                sign.weight == Weight::Strong && pattern.is_match(&generator)
            }
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

/// Ids of entries.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Ids {
    /// The part of an entry that the platform takes as id.
    pub from: IdSource,
    /// Pattern of an id. Its group `stable` outlives a move of the site; without one the whole id
    /// counts.
    pub pattern: Option<Pattern>,
    /// Pattern of the id of a comment.
    pub comment: Option<Pattern>,
    /// Ids as the platform writes them; a check that `pattern` means them.
    pub examples: Vec<String>,
    /// Events that change every id at once.
    pub volatile: Volatile,
}

/// Part of an entry that holds its id.
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

/// Event that changes every id of a site at once, so that old and new ones are matched by `stable`
/// before anything is taken for deleted.
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

/// Behaviour of the platform's server.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Http {
    /// Which validators it sends.
    pub validators: Validators,
    /// Both validators must be sent, since the server wants both to match.
    pub send_both_validators: bool,
    /// Its validators do not change with a deletion: 304 for ever. Only an unconditional request
    /// shows it.
    pub hides_deletes: bool,
    /// Body of a 200 to a conditional request.
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

/// Body of a 200 to a conditional request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Conditional {
    /// The whole window.
    #[default]
    Full,
    /// The changes since, under status 200: absence from it proves nothing.
    Delta,
}

/// Meaning of the platform's dates.
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

/// Meaning of an entry's `updated`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum EntryUpdated {
    /// It depends on the template.
    #[default]
    Unknown,
    /// There is none.
    Absent,
    /// Date of the last edit of the entry.
    Edited,
    /// Date of a new publication; edits leave it alone.
    Republished,
    /// It moves without an edit.
    Churns,
}

/// Meaning of a feed's `updated`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum FeedUpdated {
    /// It depends on the template.
    #[default]
    Unknown,
    /// Date of the last edit of an entry.
    Edited,
    /// The date of the newest entry.
    NewestEntry,
    /// Date of the document itself: it says nothing.
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

/// Condition under which a document shows the whole feed, so that what leaves it has left the feed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Complete {
    /// Never: it shows a window.
    #[default]
    Never,
    /// Complete if the document shows as many entries as the total that it names.
    Total,
    /// Unless the owner has set a limit, which the document does not say. The profile's word alone
    /// is no proof.
    UnlessLimited,
}

/// Demands on deletions beyond the ordinary. A profile can only raise.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Deletions {
    /// Number of whole documents that must agree that an entry is gone; at least 2.
    pub confirmations_min: Option<u32>,
}

/// Notifications of new posts to others.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Pings {
    /// It sends `weblogUpdates.ping` to services that its owner lists.
    pub xml_rpc: bool,
    /// The services that it pings when nobody says otherwise.
    pub xml_rpc_default: Vec<String>,
    /// Endpoint of rssCloud registrations: a path, or a URL.
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

    // Decides: What is churn and no edit?
    /// The entry without what churns: for the content digest, and for nothing that is shown.
    pub fn scrub<'e>(&self, entry: &'e Entry) -> Cow<'e, Entry> {
        scrub::scrub(&self.scrubbers, entry)
    }

    /// Changes with the scrubbers and with the parser, so that neither is taken for an edit.
    pub fn digest_version(&self) -> u32 {
        self.version
    }
}
