//! Items, their ids and their tombstones; not how they are kept or shown.

use super::{moment::Moment, part_caps::ID_BYTES_MAX, stamp::Stamp};
use everfeed_adapters::{Digest, Entry, IsPermaLink, Key, Source};
use sha2::{Digest as _, Sha256};
use std::{fmt, str::FromStr, sync::Arc};
use uuid::Uuid;

/// `fo:id`: the first 20 hexadecimal digits of SHA-256 over `namespace LF key` (DESIGN section 3).
/// Unique across feeds, the same after a re-import.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ItemId(pub [u8; 10]);

/// Key in the flat table of all keys ever seen: 16 bytes of the same hash as the id.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct KeyHash(pub [u8; 16]);

impl KeyHash {
    /// Hash of a stripped key (see [`Key::stripped`]) in a namespace.
    pub fn of(namespace: &str, stripped: &str) -> Self {
        let full = Sha256::new()
            .chain_update(namespace)
            .chain_update(b"\n")
            .chain_update(stripped)
            .finalize();
        let mut short = [0; 16];
        short.copy_from_slice(&full[..16]);
        Self(short)
    }

    /// The id of the item that this key founded.
    pub fn item_id(self) -> ItemId {
        let mut id = [0; 10];
        id.copy_from_slice(&self.0[..10]);
        ItemId(id)
    }
}

/// An item: a whole object, never a delta. Everything that is rendered of it is fixed for (id,
/// modified).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Item {
    /// Unique, for ever.
    pub id: ItemId,
    /// The upstream's id when it is an absolute IRI, else a `urn:uuid:`: what `atom:id` carries.
    /// Never changes.
    pub iri: String,
    /// T: when this version was committed. Unique in the feed and strictly increasing (SF D-4,
    /// D-5).
    pub modified: Stamp,
    /// Time of its first commit.
    pub created: Stamp,
    /// T of its last resurrection; `atom:updated` is never earlier.
    pub revived: Option<Stamp>,
    /// Upstream's date of publication in microseconds since 1970, if plausible; outlives the
    /// content.
    pub published_us: Option<i64>,
    /// The content, or what is left of it.
    pub content: Content,
    /// Number of times that it became a tombstone: one that comes and goes needs more proof the
    /// next time (POLLING 2.4).
    pub tombstone_count: u8,
    /// Digests that the next poll is compared with.
    pub digests: ItemDigests,
    /// The id that the publisher gave it first, as far as `iri` does not say it; outlives the
    /// content. Never changes.
    pub publisher_id: Option<PublisherId>,
}

/// The publisher's own id of an item, where that is more than its IRI, the source of one that is
/// gone, and the traces of one that was forgotten: the names that outlive the content.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PublisherId {
    /// The id as it came in, when it is no absolute IRI.
    pub text: Option<String>,
    /// `isPermaLink`, when it is the guid of RSS.
    pub is_permalink: Option<IsPermaLink>,
    /// The source of the entry that a tombstone stood for: of a post of a group the member that it
    /// came from. `None` for a live item, whose entry names it.
    pub source: Option<Box<Source>>,
    /// Digests by which an item that is gone is told from another with its id, and one that was
    /// forgotten is recognised under another name; `None` of one that lives.
    pub witnesses: Option<Box<Witnesses>>,
    /// The permalink of an item that is gone: search engines are asked to look at it again. `None`
    /// of one that lives, whose entry has it, and of one that was forgotten.
    pub link: Option<String>,
}

impl PublisherId {
    /// The id of an entry that founds an item with this IRI. `None` when the IRI says it all: it is
    /// the id itself, or it was made because there is no id, or because another item had the same
    /// before.
    pub fn of(entry: &Entry, iri: &str, namespace: &str) -> Option<Self> {
        // Of a longer one nothing but its digest is kept.
        let id = entry.id.as_ref().filter(|id| id.len() <= ID_BYTES_MAX)?;
        let is_iri = id == iri;
        let founded = || iri == uuid_iri(namespace, &Key::Id(id.clone()).stripped());
        if !is_iri && !founded() {
            return None;
        }
        let found = Self {
            text: (!is_iri).then(|| id.clone()),
            is_permalink: entry.is_permalink,
            ..Self::default()
        };
        found.unless_empty()
    }

    /// The traces of an item that is forgotten: nothing of them can be read.
    pub fn of_forgotten(witnesses: Option<Witnesses>) -> Option<Self> {
        Self {
            witnesses: witnesses.map(Box::new),
            ..Self::default()
        }
        .unless_empty()
    }

    /// The same of an item that goes, with the part of its source that is told.
    pub fn of_gone(before: &Item, source: Option<Box<Source>>) -> Option<Self> {
        Self {
            witnesses: before
                .entry()
                .map(|entry| Box::new(Witnesses::beside_date(entry))),
            link: before
                .entry()
                .and_then(Entry::permalink)
                .filter(|link| link.len() <= LINK_BYTES_MAX)
                .map(str::to_owned),
            ..Self::with_source(before.publisher_id.as_ref(), source).unwrap_or_default()
        }
        .unless_empty()
    }

    /// The same of an item that is gone, with the part of its source that is told, or of one that
    /// lives, without.
    #[must_use]
    pub fn with_source(of: Option<&Self>, source: Option<Box<Source>>) -> Option<Self> {
        Self {
            source,
            witnesses: None,
            link: None,
            ..of.cloned().unwrap_or_default()
        }
        .unless_empty()
    }

    fn unless_empty(self) -> Option<Self> {
        (self != Self::default()).then_some(self)
    }
}

/// The parts of an entry that tell which post it is: one-way digests, and dates. They outlive its
/// content, so that it is recognised.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Witnesses {
    /// The URL by which it is named, host included; `None` where its id is no URL.
    pub own_id: Option<KeyHash>,
    /// Id and permalink, each without what changes when a blog moves.
    pub addresses: Vec<KeyHash>,
    /// Letters and digits of the title.
    pub title: Option<KeyHash>,
    /// First publication, in seconds since 1970.
    pub published: Option<i64>,
    /// Last change, in seconds since 1970.
    pub updated: Option<i64>,
    /// Letters and digits of content and summary, where there are enough of them.
    pub texts: Vec<Digest>,
    /// A text that is too short to show that two posts are one, or has no letters, as that of a
    /// photo.
    pub short_text: Option<Digest>,
}

/// The digests of the version that is held.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ItemDigests {
    /// Of the entry's bytes: equal means nothing to do.
    pub raw: Digest,
    /// Of the content: different means edited.
    pub content: Digest,
    /// Which parser and which scrubbers made `content`; digests of two versions are not compared.
    pub version: u32,
}

/// Live content or a tombstone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Content {
    /// As upstream last had it. Shared, so that an import holds each of its entries once however
    /// many look at it.
    Live(Arc<Entry>),
    /// Deleted: stripped of content, kept for ever (SF-12).
    Gone {
        /// On what evidence.
        reason: Reason,
        /// Time at which it was first missed.
        first_missing: Option<Stamp>,
        /// Time at which it was last seen.
        last_seen: Option<Stamp>,
    },
}

/// Reason code of a tombstone, as consumers see it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Reason {
    /// The publisher said so with `at:deleted-entry`; of a resource, by 410.
    Explicit,
    /// It left a document that says it is the whole feed: no deletion, maybe; a "top ten" does
    /// that.
    LeftCompleteFeed,
    /// It is missing although what stood behind it is still there.
    AbsentBracketed,
    /// Its own page is gone, too.
    Gone,
    /// It is missing from an archive that held it, although its neighbours are there.
    AbsentArchive,
    /// Its operator here had it removed, for legal reasons for instance. It never comes back.
    Forgotten,
    /// Its feed is no member of the group any more. Stored in groups only: in its own feed the item
    /// goes on.
    LeftGroup,
    /// It was changed and is not in the view now. Shown in filtered views, and stored in parts of
    /// feeds only: in the feed the item goes on.
    LeftView,
}

impl Content {
    // Decides: Does a forgotten item come back?
    /// True for an item that its operator here had removed.
    pub const fn is_forgotten(&self) -> bool {
        matches!(
            self,
            Self::Gone {
                reason: Reason::Forgotten,
                ..
            }
        )
    }
}

impl Reason {
    /// The code as written in documents.
    pub const fn code(self) -> &'static str {
        match self {
            Self::Explicit => "explicit",
            Self::LeftCompleteFeed => "left-complete-feed",
            Self::AbsentBracketed => "absent-bracketed",
            Self::Gone => "gone",
            Self::AbsentArchive => "absent-archive",
            Self::Forgotten => "forgotten",
            Self::LeftGroup => "left-group",
            Self::LeftView => "left-view",
        }
    }
}

impl Item {
    /// The publisher's id as it came in; the IRI where there is none, or where two items share one.
    pub fn given_id(&self) -> &str {
        let text = self
            .publisher_id
            .as_ref()
            .and_then(|given| given.text.as_deref());
        text.unwrap_or(&self.iri)
    }

    /// `isPermaLink`, when the publisher's id is the guid of RSS.
    pub fn is_permalink(&self) -> Option<IsPermaLink> {
        self.publisher_id.as_ref()?.is_permalink
    }

    /// The entry, unless the item is a tombstone.
    pub fn entry(&self) -> Option<&Entry> {
        match &self.content {
            Content::Live(entry) => Some(entry),
            Content::Gone { .. } => None,
        }
    }

    /// The content of a live item, shared.
    pub fn shared_entry(&self) -> Option<Arc<Entry>> {
        match &self.content {
            Content::Live(entry) => Some(Arc::clone(entry)),
            Content::Gone { .. } => None,
        }
    }

    /// The source that a tombstone names.
    pub fn ended_source(&self) -> Option<&Source> {
        self.publisher_id.as_ref()?.source.as_deref()
    }

    /// The part of its source that a tombstone of it names: the feed by its id, title and URLs. A
    /// longer one is left out.
    pub fn remaining_source(&self) -> Option<Box<Source>> {
        let source = match self.entry() {
            Some(entry) => entry.source.as_deref()?,
            None => return self.publisher_id.as_ref()?.source.clone(),
        };
        let link = |rel: &str| source.links.iter().find(|link| link.rel == rel).cloned();
        let kept = Source {
            id: source.id.clone(),
            title: source.title.clone(),
            links: link("self").into_iter().chain(link("alternate")).collect(),
            ..Source::default()
        };
        let title_bytes = kept.title.as_ref().map_or(0, |title| title.value.len());
        let bytes = kept.id.as_ref().map_or(0, String::len)
            + title_bytes
            + kept.links.iter().map(|link| link.href.len()).sum::<usize>();
        (kept != Source::default() && bytes <= SOURCE_BYTES_MAX).then(|| Box::new(kept))
    }

    /// True when it is a tombstone.
    pub fn is_gone(&self) -> bool {
        matches!(self.content, Content::Gone { .. })
    }

    /// True when it is a tombstone of a post that is there no more. One that only left the part of
    /// its feed that it is in is none: it goes on in its feed.
    pub fn is_deleted(&self) -> bool {
        let left = Reason::LeftView;
        matches!(self.content, Content::Gone { reason, .. } if reason != left)
    }

    /// True when it was a tombstone before its newest version.
    pub fn was_gone(&self) -> bool {
        self.revived.is_some() || self.tombstone_count > u8::from(self.is_gone())
    }

    /// `atom:updated`: upstream's, else its published, else first seen; never later than T and,
    /// after a resurrection, never earlier than that; a tombstone's is T (DESIGN section 3 and 9,
    /// LEGACY A-14).
    pub fn updated(&self) -> Moment {
        let Some(entry) = self.entry() else {
            return self.modified.into();
        };
        let said = entry
            .updated
            .as_ref()
            .and_then(|date| plausible(date.at_us))
            .or_else(|| plausible(self.published_us));
        let said = said
            .unwrap_or(self.created.into())
            .min(self.modified.into());
        self.revived
            .map_or(said, |revived| said.max(revived.into()))
    }

    // Decides: When was a post edited, as its readers see it?
    /// Time of its last edit: that of its publisher where it is behind the date of the post, else T
    /// where it is not the first version. `None` for a post that nobody is known to have edited, and
    /// for a tombstone. A return from a deletion is no edit.
    pub fn edited(&self) -> Option<Moment> {
        self.entry()?;
        let is_revival = self.revived == Some(self.modified);
        let by_publisher = self.updated();
        if by_publisher > self.dated() && !is_revival {
            return Some(by_publisher);
        }
        (self.modified > self.created && !is_revival).then(|| self.modified.into())
    }

    /// Upstream's date of publication, if it names one.
    pub fn published(&self) -> Option<Moment> {
        plausible(self.published_us)
    }

    /// Its date in the order of publication; a tombstone keeps that which outlives its content.
    pub fn listed(&self) -> Moment {
        let updated = self.entry().and_then(|entry| entry.updated.as_ref());
        let updated_us = updated.and_then(|date| date.at_us);
        listed(self.published_us, updated_us, self.created, self.modified)
    }

    /// The date that readers sort by: published, else updated. An old post without a date of its
    /// own is not today's.
    pub fn dated(&self) -> Moment {
        self.published().unwrap_or_else(|| self.updated())
    }
}

// Decides: Where does an item stand by its date of publication?
/// The date of an item in the order of publication: the publisher's, else that of its last change
/// by its content (never after our own T of it), else its first sight.
pub fn listed(
    published_us: Option<i64>,
    updated_us: Option<i64>,
    created: Stamp,
    modified: Stamp,
) -> Moment {
    let updated = || plausible(updated_us).map(|updated| updated.min(modified.into()));
    plausible(published_us)
        .or_else(updated)
        .unwrap_or(created.into())
}

/// Limit of the permalink that is kept of an item that is gone, bytes: search engines take no longer
/// ones.
const LINK_BYTES_MAX: usize = 2048;

/// Limit of the source of a tombstone, bytes.
const SOURCE_BYTES_MAX: usize = 4096;

/// An item that was deleted this often before comes and goes (POLLING 2.4).
const DEATHS_MANY: u8 = 3;

/// Least time for which an item that comes and goes must be missed, in seconds.
const FLAPPING_SECS: u64 = 72 * 3600;

/// Least time for which an item that was deleted so often must be missed before it is taken for
/// deleted again, in seconds.
pub fn flapping_secs(tombstone_count: u8) -> u64 {
    if tombstone_count >= DEATHS_MANY {
        FLAPPING_SECS
    } else {
        0
    }
}

/// The year 1000, before which no date is written with four digits: the zero of .NET, and years of
/// two digits that went wrong.
const PLAUSIBLE_FROM_US: i64 = -30_610_224_000_000_000;
/// 2100-01-01, after which nobody has written yet.
const PLAUSIBLE_UNTIL_US: i64 = 4_102_444_800_000_000;
/// The distance from 1970-01-01T00:00:00Z within which a date is a clock that was never set, in
/// some time zone.
const UNSET_US: i64 = 14 * 3600 * 1_000_000;
/// The second that 32 bits with a sign begin with: 1901-12-13T20:45:52Z.
const OVERFLOWN_US: i64 = i32::MIN as i64 * 1_000_000;

// Decides: Which dates are shown?
/// An upstream date that can be believed enough to show it. It never influences T. LEGACY section 4
/// begins with 1990; but old letters and papers are published with their own dates.
pub fn plausible(at_us: Option<i64>) -> Option<Moment> {
    let is_meant = |us: &i64| {
        (PLAUSIBLE_FROM_US..PLAUSIBLE_UNTIL_US).contains(us)
            && us.abs() > UNSET_US
            && *us != OVERFLOWN_US
    };
    at_us.filter(is_meant).map(Moment::from_micros)
}

/// The IRI of an item: the upstream id when it is an absolute IRI, else `urn:uuid:` version 5 in
/// the URL namespace of `namespace LF key` (DESIGN section 9, rows D-16 and I-4).
pub fn iri(namespace: &str, key: &Key) -> String {
    match key {
        Key::Id(id) if id.len() <= ID_BYTES_MAX && is_absolute_iri(id) => id.clone(),
        _ => uuid_iri(namespace, &key.stripped()),
    }
}

/// The `urn:uuid:` of a stripped key.
pub fn uuid_iri(namespace: &str, stripped: &str) -> String {
    let name = format!("{namespace}\n{stripped}");
    Uuid::new_v5(&Uuid::NAMESPACE_URL, name.as_bytes())
        .urn()
        .to_string()
}

/// A scheme, a colon, something after it, and no character that an IRI cannot hold (RFC 3987
/// section 2.2).
pub fn is_absolute_iri(text: &str) -> bool {
    let Some((scheme, rest)) = text.split_once(':') else {
        return false;
    };
    let scheme_ok = scheme.starts_with(|c: char| c.is_ascii_alphabetic())
        && scheme
            .bytes()
            .all(|b| b.is_ascii_alphanumeric() || b"+-.".contains(&b));
    let barred = |c: char| c.is_whitespace() || c.is_control() || "<>\"{}|\\^`".contains(c);
    scheme_ok
        && !rest.is_empty()
        && !rest.contains(barred)
        && well_escaped(rest)
        && known_shape(scheme, rest)
}

/// Every `%` is followed by two hexadecimal digits.
fn well_escaped(text: &str) -> bool {
    text.split('%')
        .skip(1)
        .all(|tail| tail.len() >= 2 && tail.bytes().take(2).all(|b| b.is_ascii_hexdigit()))
}

/// Hierarchical schemes need a host, so that `http:foo` is not taken for an identifier.
fn known_shape(scheme: &str, rest: &str) -> bool {
    let hierarchical = ["http", "https", "ftp"]
        .iter()
        .any(|name| scheme.eq_ignore_ascii_case(name));
    !hierarchical
        || rest
            .strip_prefix("//")
            .is_some_and(|host| !host.is_empty() && !host.starts_with('/'))
}

impl fmt::Display for ItemId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&hex::encode(self.0))
    }
}

impl fmt::Debug for ItemId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ItemId({self})")
    }
}

impl fmt::Debug for KeyHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "KeyHash({})", hex::encode(self.0))
    }
}

/// Text that is no id of ours.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("an item id is 20 lower-case hexadecimal digits")]
pub struct BadItemId;

impl FromStr for ItemId {
    type Err = BadItemId;

    fn from_str(text: &str) -> Result<Self, BadItemId> {
        let mut id = [0; 10];
        let lower = !text.bytes().any(|b| b.is_ascii_uppercase());
        hex::decode_to_slice(text, &mut id)
            .ok()
            .filter(|()| lower)
            .map(|()| Self(id))
            .ok_or(BadItemId)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_id_is_the_hash_of_namespace_and_key_without_the_scheme() {
        let id = |key: &str| {
            KeyHash::of("example.org/feed", &Key::Id(key.into()).stripped())
                .item_id()
                .to_string()
        };
        assert_eq!(id("http://example.org/1"), id("https://example.org/1"));
        assert_ne!(id("http://example.org/1"), id("http://example.org/2"));
        // Computed with another tool: printf 'example.org/feed\nexample.org/1' | sha256sum | head
        // -c 20.
        assert_eq!(id("http://example.org/1"), "b9e19ec63c9b7781fc80");
        assert_eq!(
            id("x").parse::<ItemId>().map(|back| back.to_string()),
            Ok(id("x"))
        );
    }

    #[test]
    fn dates_of_letters_are_shown_and_those_of_clocks_that_went_wrong_are_not() {
        let check = |date: &str, shown: bool| {
            let at_us = everfeed_adapters::text::date::parse(date);
            assert!(at_us.is_some(), "{date}");
            assert_eq!(plausible(at_us).is_some(), shown, "{date}");
        };
        for date in [
            "1955-04-11T12:00:00Z",
            "Sun, 03 Sep 1660 21:00:00 GMT",
            "1900-01-01",
            "1969-12-25T08:00:00Z",
            "1970-02-01",
        ] {
            check(date, true);
        }
        for date in [
            "Thu, 01 Jan 1970 00:00:00 GMT",
            "Thu, 01 Jan 1970 01:00:00 +0100",
            "1969-12-31T16:00:00Z",
            "1969-12-31T23:59:59Z",
            "1901-12-13T20:45:52Z",
            "0001-01-01T00:00:00Z",
            "9999-12-31T23:59:59Z",
            "2106-02-07",
        ] {
            check(date, false);
        }
    }

    #[test]
    fn only_an_absolute_iri_becomes_the_atom_id() {
        let check = |id: &str, kept: bool| {
            let iri = iri("example.org/feed", &Key::Id(id.into()));
            assert_eq!(iri == id, kept, "{id} became {iri}");
            assert!(kept || iri.starts_with("urn:uuid:"), "{iri}");
        };
        check("tag:example.org,2005:1", true);
        check("http://example.org/?p=1", true);
        check("urn:md5:abc", true);
        check("http://example.org/ré", true);
        check("12345", false);
        check("42 at http://example.org", false);
        check("http:relative", false);
        check("http://example.org/100%", false);
        check("/path:x", false);
    }

    #[test]
    fn a_weak_key_never_becomes_the_atom_id_nor_meets_a_strong_one() {
        assert!(iri("n", &Key::Title("tag:x,2005:1".into())).starts_with("urn:uuid:"));
        let hash = |key: Key| KeyHash::of("n", &key.stripped());
        assert_ne!(hash(Key::Title("x".into())), hash(Key::Id("x".into())));
        assert_eq!(
            hash(Key::Link("http://x/".into())),
            hash(Key::Id("https://x/".into()))
        );
    }

    #[test]
    fn the_publishers_id_is_kept_beside_the_iri_that_was_made_of_it() {
        let given = |id: &str, is_permalink, iri: &str| {
            PublisherId::of(
                &Entry {
                    id: Some(id.into()),
                    is_permalink,
                    ..Entry::default()
                },
                iri,
                "n",
            )
        };
        let made = iri("n", &Key::Id("Post #1".into()));
        let text = Some("Post #1".to_owned());
        assert_eq!(
            given("Post #1", None, &made),
            Some(PublisherId {
                text: text.clone(),
                ..PublisherId::default()
            })
        );
        let is_permalink = Some(IsPermaLink::False);
        assert_eq!(
            given("Post #1", is_permalink, &made),
            Some(PublisherId {
                text,
                is_permalink,
                ..PublisherId::default()
            })
        );
        assert_eq!(given("urn:x:1", None, "urn:x:1"), None);
        assert_eq!(
            given("urn:x:1", is_permalink, "urn:x:1"),
            Some(PublisherId {
                text: None,
                is_permalink,
                ..PublisherId::default()
            })
        );
        // Two items share the id: the second is named by what was made for it alone.
        assert_eq!(
            given(
                "Post #1",
                is_permalink,
                &uuid_iri("n", "Post #1#http://e.org/")
            ),
            None
        );
        assert_eq!(PublisherId::of(&Entry::default(), &made, "n"), None);
    }

    #[test]
    fn implausible_dates_are_absent() {
        assert_eq!(plausible(Some(0)), None);
        assert_eq!(plausible(Some(-1)), None);
        assert_eq!(plausible(Some(253_402_300_799_000_000)), None);
        assert_eq!(
            plausible(Some(1_000_000_000_000_000)),
            Some(Stamp::from_secs(1_000_000_000).into())
        );
    }
}
