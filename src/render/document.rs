//! A page with what stands around it in a document; not how a syntax writes it.

use super::xml::Declared;
use crate::feed::{page::Page, record::FeedRecord, stamp::Stamp, view::Deletions};

/// Readers that a document is made for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Audience {
    /// Smart Feed consumers: every item, tombstones and cursors included.
    Full,
    /// Ordinary feed readers: the newest posts, newest first; no tombstones, no cursors.
    Classic,
}

/// Surroundings of an item's bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ItemContext {
    /// A page of its feed, byte for byte.
    Page,
    /// Nothing. In XML the outermost elements then declare the namespaces that the root of a page
    /// declares, and nothing else differs. The language of the feed is not repeated: an item is the
    /// same whatever its feed says of itself.
    Alone,
}

impl ItemContext {
    /// The namespaces that an item declares there, of those that the root of a page declares.
    pub(super) const fn declared(self, of_page: &'static [Declared]) -> &'static [Declared] {
        match self {
            Self::Page => &[],
            Self::Alone => of_page,
        }
    }
}

/// A page and what goes around it.
#[derive(Clone, Copy, Debug)]
pub struct Document<'a> {
    /// The page as read back from the store. For the classic audience: newest first, tombstones
    /// left out.
    pub page: &'a Page,
    /// The links to carry.
    pub links: &'a Links,
    /// The place of a push in its chain; `None` for what is not pushed.
    pub push: Option<ChainPosition<'a>>,
    /// Minutes that a copy stays fresh, in RSS only.
    pub ttl_mins: Option<u32>,
}

/// The place of a push in the chain of its subscription, and what its subscriber wishes of it.
/// Pushes have no next page (SF-84).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ChainPosition<'a> {
    /// The last cursor that was pushed before, byte for byte as the subscription keeps it (SF-85).
    pub prev_cursor: &'a str,
    /// The wish for items that are gone.
    pub deletions: Deletions,
    /// Items that say they were updated before this moment say T instead: an old subscriber takes
    /// nothing that is older than what it has (LEGACY A-14).
    pub dated_since: Option<Stamp>,
}

/// The links of one document.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Links {
    /// Canonical base URL of the view, its order spelt out: `rel=self` and JSON `url`, the same on
    /// every page (SF-51, SF-58).
    pub base: String,
    /// The hub that takes subscriptions to `base`.
    pub hub: String,
    /// The next page, when the range holds more (SF-53). Pushes and classic documents leave it out.
    pub next: Option<String>,
    /// Other representations of the feed.
    pub alternates: Vec<Alternate>,
    /// The page for people about the feed.
    pub about: String,
    /// The list of feeds.
    pub list: String,
    /// `rel=self` of a page for people: the topic of what it shows.
    pub topic: String,
    /// The view over XMPP, where it is served there.
    pub xmpp: Option<String>,
    /// The archives of a classic view.
    pub archives: ArchiveLinks,
    /// True where `base` is the address of the old feed: the document stands for the publisher's,
    /// and has its id.
    pub is_old_address: bool,
    /// The place at which listeners of rssCloud register; it stands in RSS for ordinary readers.
    pub cloud: Option<CloudEndpoint>,
    /// True where nothing that is gone was asked for. What leaves the view is told in the form of
    /// RFC 6721 alone, so that mirrors follow and nobody is shown a post for it.
    pub is_live_view: bool,
}

/// The place at which listeners of rssCloud register.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct CloudEndpoint {
    /// Its host.
    pub domain: String,
    /// Its port.
    pub port: u16,
    /// Its path.
    pub path: String,
}

/// Links between a classic view and its archives (RFC 5005 section 4).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ArchiveLinks {
    /// The archive with what is older.
    pub prev: Option<String>,
    /// Of an archive: the full archive with what is newer.
    pub next: Option<String>,
    /// Of an archive: its own URL, beside which `base` leads to the newest posts.
    pub archive: Option<String>,
}

/// A link to another representation of the same feed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Alternate {
    /// Its URL.
    pub href: String,
    /// Its media type.
    pub media_type: &'static str,
    /// Its name for people.
    pub title: String,
}

impl<'a> Document<'a> {
    /// The feed, in the page's own snapshot.
    pub(super) fn feed(&self) -> &'a FeedRecord {
        &self.page.record
    }

    /// The next page, where one may be named: not in pushes, and classic documents end where they
    /// end.
    pub(super) fn next(&self, audience: Audience) -> Option<&'a str> {
        let goes_on = audience == Audience::Full && self.page.more && self.push.is_none();
        self.links.next.as_deref().filter(|_| goes_on)
    }

    /// The last cursor that was pushed before; `None` for what is not pushed.
    pub(super) fn prev_cursor(&self) -> Option<&'a str> {
        Some(self.push?.prev_cursor)
    }

    /// True where the document names its cursors: a page of a Smart Feed, and every push.
    pub(super) fn has_cursors(&self, audience: Audience) -> bool {
        audience == Audience::Full || self.push.is_some()
    }

    // Decides: Who is shown a tombstone?
    /// True where items that are gone are shown: to ordinary readers only by a push to who wishes it
    /// (DESIGN section 3).
    pub(super) fn shows_gone(&self, audience: Audience) -> bool {
        let is_wished = |push: ChainPosition<'_>| push.deletions == Deletions::Announce;
        audience == Audience::Full || self.push.is_some_and(is_wished)
    }

    /// The document's own URL: of an archive that, of all others the base URL.
    pub(super) fn own_url(&self) -> &'a str {
        self.links
            .archives
            .archive
            .as_deref()
            .unwrap_or(&self.links.base)
    }

    /// The hub, where subscribers are pushed what comes: not at an archive, which gains nothing.
    pub(super) fn hub(&self) -> Option<&'a str> {
        (!self.is_archive()).then_some(&self.links.hub)
    }

    /// True for an archive.
    pub(super) fn is_archive(&self) -> bool {
        self.links.archives.archive.is_some()
    }

    /// The links of RFC 5005 section 4 by their relations.
    pub(super) fn archive_links(&self) -> impl Iterator<Item = (&'static str, &'a str)> {
        let ArchiveLinks {
            prev,
            next,
            archive,
        } = &self.links.archives;
        let current = archive.as_ref().map(|_| self.links.base.as_str());
        let links = [
            ("prev-archive", prev.as_deref()),
            ("next-archive", next.as_deref()),
            ("current", current),
        ];
        links
            .into_iter()
            .filter_map(|(relation, url)| Some((relation, url?)))
    }

    /// A guess that saves most reallocations: old blogs write a few kilobytes an entry.
    pub(super) fn capacity_bytes(&self) -> usize {
        2048 + 4096 * self.page.items.len()
    }
}
