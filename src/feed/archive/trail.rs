//! The memory of a walk: rebuilt from the staged pages after a restart; not what it concludes from
//! them.

use super::WalkedDocument;
use crate::item::KeyHash;
use everfeed_adapters::Digest;
use std::collections::{BTreeMap, HashSet};

/// A page as a walk remembers it.
#[derive(Clone, Copy, Debug)]
pub struct PageTrace<'a> {
    /// Its place among the pages kept.
    pub no: u32,
    /// The address asked.
    pub url: &'a str,
    /// The address that answered.
    pub landed: &'a str,
    /// Digest of its bytes.
    pub body: Digest,
    /// The keys of its entries.
    pub keys: &'a [KeyHash],
}

/// Memory of a walk.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct WalkTrail {
    /// Digests of addresses.
    pub(super) visited: HashSet<Digest>,
    /// Digests of bodies.
    pub(super) bodies: HashSet<Digest>,
    /// Keys of all entries.
    pub(super) keys: HashSet<KeyHash>,
    /// Keys of the entries that the pages of this way show.
    on_way: HashSet<KeyHash>,
    /// The live document when the walk began.
    live: LiveTrace,
    /// Addresses and keys of the pages kept, by number.
    pages: BTreeMap<u32, (String, Vec<KeyHash>)>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct LiveTrace {
    body: Option<Digest>,
    newest: Option<KeyHash>,
    keys: HashSet<KeyHash>,
}

impl WalkTrail {
    /// Notes a page that was read: the live document, or one of this way if its number is above
    /// `way_from`.
    pub(super) fn recall(&mut self, page: &PageTrace<'_>, is_live: bool, way_from: u32) {
        self.visited.insert(address(page.url));
        self.visited.insert(address(page.landed));
        self.bodies.insert(page.body);
        self.keys.extend(page.keys);
        if is_live {
            let newest = page.keys.first().copied();
            self.live = LiveTrace {
                body: Some(page.body),
                newest,
                keys: page.keys.iter().copied().collect(),
            };
            return;
        }
        self.pages
            .insert(page.no, (page.url.to_owned(), page.keys.to_vec()));
        if page.no > way_from {
            self.on_way.extend(page.keys);
        }
    }

    /// Another way begins.
    pub(super) fn leave_way(&mut self) {
        self.on_way.clear();
    }

    /// True when an entry of this key was met.
    pub(super) fn has_key(&self, key: &KeyHash) -> bool {
        self.keys.contains(key)
    }

    /// True when this address was asked for, or answered.
    pub(super) fn has_visited(&self, url: &str) -> bool {
        self.visited.contains(&address(url))
    }

    /// Address of a page kept.
    pub(super) fn url(&self, no: u32) -> Option<&str> {
        self.pages.get(&no).map(|(url, _)| url.as_str())
    }

    /// Keys of a page kept.
    pub(super) fn keys_of(&self, no: u32) -> &[KeyHash] {
        self.pages.get(&no).map_or(&[], |(_, keys)| keys)
    }

    /// Addresses of the last pages with a number above this one: the last but one and the last.
    pub(super) fn last_two(&self, above: u32) -> Option<(&str, &str)> {
        let mut last = self
            .pages
            .range(above.saturating_add(1)..)
            .rev()
            .map(|(_, (url, _))| url.as_str());
        let (last, before) = (last.next()?, last.next()?);
        Some((before, last))
    }

    /// Number of the last page kept above this number.
    pub(super) fn last_no(&self, above: u32) -> Option<u32> {
        self.pages
            .range(above.saturating_add(1)..)
            .next_back()
            .map(|(no, _)| *no)
    }

    /// True when the pages of this way show every entry that the live document showed.
    pub(super) fn meets_live(&self) -> bool {
        self.live.keys.is_subset(&self.on_way)
    }

    /// True when the page of this number holds fewer entries than another one above `above`, or
    /// than `first`.
    pub(super) fn is_short(&self, no: u32, above: u32, first: usize) -> bool {
        let sizes = self
            .pages
            .range(above.saturating_add(1)..)
            .map(|(_, (_, keys))| keys.len());
        sizes
            .chain([first])
            .any(|size| size > self.keys_of(no).len())
    }

    /// True when a document shows the live document's entries: its newest one, or the same bytes.
    pub(super) fn is_live(&self, seen: &WalkedDocument<'_>) -> bool {
        // A post that is pinned to the top of every page makes no page the live one.
        let shared = seen
            .keys
            .iter()
            .filter(|key| self.live.keys.contains(*key))
            .count();
        let shows_newest = self
            .live
            .newest
            .is_some_and(|newest| seen.keys.contains(&newest));
        self.is_live_body(seen) || shows_newest && shared * 2 > seen.keys.len()
    }

    /// True when a document is byte for byte the live one.
    pub(super) fn is_live_body(&self, seen: &WalkedDocument<'_>) -> bool {
        self.live.body == Some(seen.body)
    }

    /// True when a document shows nothing but entries of the live one.
    pub(super) fn is_within_live(&self, seen: &WalkedDocument<'_>) -> bool {
        seen.keys.iter().all(|key| self.live.keys.contains(key))
    }

    /// True when a document shows an entry of the live one, and is no copy of the first page with a
    /// number above this one: a server that does not know the parameter shows the same, whatever is
    /// asked.
    pub(super) fn is_first_page(&self, above: u32, seen: &WalkedDocument<'_>) -> bool {
        let second = self.keys_of(above.saturating_add(1));
        let shared = seen.keys.iter().filter(|key| second.contains(key)).count();
        shared * 4 < (seen.keys.len() * 3).max(1)
            && seen.keys.iter().any(|key| self.live.keys.contains(key))
    }

    /// True when a document shows an entry that the page of this number showed, or both show none.
    pub(super) fn is_like(&self, no: u32, seen: &WalkedDocument<'_>) -> bool {
        let keys = self.keys_of(no);
        seen.keys.iter().any(|key| keys.contains(key)) || keys.is_empty() && seen.keys.is_empty()
    }

    /// True when a document shows nothing but what the page of this number shows.
    pub(super) fn is_within(&self, no: u32, seen: &WalkedDocument<'_>) -> bool {
        let keys = self.keys_of(no);
        seen.keys.iter().all(|key| keys.contains(key))
    }

    /// True when a document shows an entry that no page of this way showed.
    pub(super) fn is_new_on_way(&self, seen: &WalkedDocument<'_>) -> bool {
        seen.keys.iter().any(|key| !self.on_way.contains(key))
    }

    /// True when a document shows an entry that was not met before.
    pub(super) fn is_new(&self, seen: &WalkedDocument<'_>) -> bool {
        seen.keys.iter().any(|key| !self.keys.contains(key))
    }
}

/// Digest of an address without its fragment and scheme, which make no other page of it.
pub(super) fn address(url: &str) -> Digest {
    let url = url.split('#').next().unwrap_or_default();
    let bare = url
        .strip_prefix("https://")
        .or_else(|| url.strip_prefix("http://"))
        .unwrap_or(url);
    Digest::of(bare.as_bytes())
}

/// True when a redirect leads to the same document elsewhere: the last part of the path and the
/// query are kept. One that leads to another document leaves the one that was asked for unread.
pub(super) fn is_same_document(asked: &str, landed: &str) -> bool {
    let name = |url: &'_ str| -> Option<(String, Option<String>)> {
        let url = url::Url::parse(url).ok()?;
        let last = url
            .path()
            .trim_end_matches('/')
            .rsplit('/')
            .next()
            .unwrap_or_default()
            .to_owned();
        Some((
            last,
            url.query()
                .filter(|query| !query.is_empty())
                .map(str::to_owned),
        ))
    };
    address(asked) == address(landed)
        || name(asked).is_some_and(|asked| name(landed) == Some(asked))
}
