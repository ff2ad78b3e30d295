//! Which item an entry belongs to: the identity rules of DESIGN section 3; not what has changed in it.

use super::{Known, ObservedEntry, ParsedEntry, WindowEntry, chronology, dated, rename::renamed};
use crate::feed::{
    item::{Item, ItemId, KeyHash, iri, uuid_iri},
    record::IdRule,
};
use everfeed_adapters::{Entry, Key};
use std::{
    collections::{HashMap, HashSet},
    sync::Arc,
};

/// An entry and the item it belongs to.
pub(super) struct BoundEntry<'a> {
    /// The entry.
    pub(super) reading: &'a ParsedEntry,
    /// The key that bound it.
    pub(super) key: KeyHash,
    /// Its item.
    pub(super) target: BoundItem,
}

/// The item of an entry.
pub(super) enum BoundItem {
    /// One that the store holds.
    Known(Arc<Item>),
    /// One to be made, with this id and IRI.
    New { id: ItemId, iri: String },
}

impl BoundEntry<'_> {
    /// Window entry to remember, and true if its item was alive before.
    pub(super) fn row(&self) -> (WindowEntry, bool) {
        let held = self.target.item();
        let row = WindowEntry {
            key: self.key,
            id: self.target.id(),
            raw: self.reading.digests.raw,
            dated: dated(&self.reading.entry),
            tombstone_count: held.map_or(0, |item| item.tombstone_count),
            is_weak: self.reading.key.is_weak(),
            changed_polls: 0,
        };
        (row, held.is_some_and(|item| !item.is_gone()))
    }
}

impl BoundItem {
    /// The item as it is held.
    pub(super) fn item(&self) -> Option<&Arc<Item>> {
        match self {
            Self::Known(item) => Some(item),
            Self::New { .. } => None,
        }
    }

    pub(super) fn id(&self) -> ItemId {
        match self {
            Self::Known(item) => item.id,
            Self::New { id, .. } => *id,
        }
    }
}

/// Binds entries to items, one document at a time.
pub(super) struct Binder<'a> {
    namespace: &'a str,
    known: &'a Known,
    /// The rule, which a document that gives one id to several links makes stricter for good.
    pub(super) id_rule: IdRule,
    claimed: HashSet<ItemId>,
    /// Keys that turned out to be other names of known items.
    pub(super) aliases: Vec<(KeyHash, ItemId)>,
}

impl<'a> Binder<'a> {
    /// `claimed` are the items of the entries that have not changed.
    pub(super) fn new(namespace: &'a str, known: &'a Known, claimed: HashSet<ItemId>) -> Self {
        Self { namespace, known, id_rule: known.id_rule, claimed, aliases: Vec::new() }
    }

    /// Binds the parsed entries of a document. Of several that are one item, the latest updated is kept (LEGACY I-3).
    pub(super) fn bind(&mut self, entries: &'a [ObservedEntry]) -> HashMap<usize, BoundEntry<'a>> {
        let mut groups: Vec<EntryGroup<'a>> = Vec::new();
        let mut place: HashMap<&Key, usize> = HashMap::new();
        for (at, sighting) in entries.iter().enumerate() {
            let ObservedEntry::Read(reading) = sighting else { continue };
            let group = *place.entry(&reading.key).or_insert_with(|| {
                groups.push(Vec::new());
                groups.len() - 1
            });
            groups[group].push((at, reading));
        }
        let mut bound: HashMap<usize, BoundEntry<'a>> =
            groups.into_iter().flat_map(|group| self.bind_group(&group)).collect();
        self.rename(&mut bound);
        bound
    }

    /// Gives entries with unknown keys the items that they are under another id. One whose key is known was found to be
    /// another item on purpose.
    fn rename(&mut self, bound: &mut HashMap<usize, BoundEntry<'a>>) {
        let is_unknown = |key: &Key| !self.known.items.contains_key(&hash(self.namespace, &key.stripped()));
        let mut unknown: Vec<(usize, &ParsedEntry)> = bound
            .iter()
            .filter(|(_, bound)| {
                matches!(bound.target, BoundItem::New { .. }) && is_unknown(&bound.reading.key)
            })
            .map(|(at, bound)| (*at, bound.reading))
            .collect();
        unknown.sort_unstable_by_key(|(at, _)| *at);
        for (at, item) in renamed(self.known, &self.claimed, unknown) {
            let Some(bound) = bound.get_mut(&at) else { continue };
            self.claimed.remove(&bound.target.id());
            self.claimed.insert(item.id);
            self.aliases.push((bound.key, item.id));
            bound.target = BoundItem::Known(item);
        }
        self.aliases.sort_unstable();
    }

    /// Binds the entries that share a key.
    fn bind_group(&mut self, group: &[(usize, &'a ParsedEntry)]) -> Vec<(usize, BoundEntry<'a>)> {
        let clusters = by_link(group);
        if clusters.len() > 1 {
            self.id_rule = IdRule::IdAndLink;
        }
        let chosen = clusters.into_iter().filter_map(|cluster| latest(&cluster));
        chosen.filter_map(|(at, reading)| Some((at, self.bind_one(reading)?))).collect()
    }

    /// Binds one entry; `None` when another entry of the document has its item already.
    fn bind_one(&mut self, reading: &'a ParsedEntry) -> Option<BoundEntry<'a>> {
        let plain = hash(self.namespace, &reading.key.stripped());
        let split = split_key(&reading.key, &reading.entry);
        let split_hash = split.as_ref().map(|split| hash(self.namespace, split));
        let known = |key: KeyHash| {
            self.known.items.get(&key).filter(|item| !self.claimed.contains(&item.id)).cloned()
        };
        let (key, target) = if let Some((key, item)) = split_hash.and_then(|key| Some((key, known(key)?))) {
            (key, BoundItem::Known(item))
        } else if let Some(item) = known(plain).filter(|item| !self.is_another(item, &reading.entry)) {
            (plain, BoundItem::Known(item))
        } else if !self.known.items.contains_key(&plain) && !self.claimed.contains(&plain.item_id()) {
            (plain, BoundItem::New { id: plain.item_id(), iri: iri(self.namespace, &reading.key) })
        } else {
            // The plain id belongs to another item, so this one lives under id and link, and takes a `urn:uuid:`.
            let (key, split) = (split_hash?, split?);
            if self.known.items.contains_key(&key) || self.claimed.contains(&key.item_id()) {
                return None;
            }
            (key, BoundItem::New { id: key.item_id(), iri: uuid_iri(self.namespace, &split) })
        };
        self.claimed.insert(target.id());
        Some(BoundEntry { reading, key, target })
    }

    /// True when an entry with a known id is another item all the same: link, title and published are present on both
    /// sides and all differ, or, once the feed was caught giving one id to several links, the link differs.
    fn is_another(&self, item: &Item, entry: &Entry) -> bool {
        let Some(held) = item.entry() else { return false };
        let differ =
            |held: Option<&str>, given: Option<&str>| matches!((held, given), (Some(a), Some(b)) if a != b);
        let title = |entry: &'_ Entry| entry.title.as_ref().map(|title| title.value.clone());
        let published = |entry: &'_ Entry| entry.published.as_ref().map(|date| date.raw.clone());
        let links = differ(held.permalink(), entry.permalink());
        if self.id_rule == IdRule::IdAndLink {
            return links;
        }
        links
            && differ(title(held).as_deref(), title(entry).as_deref())
            && differ(published(held).as_deref(), published(entry).as_deref())
    }
}

/// Every key under which an entry may be known.
pub(super) fn keys_of(namespace: &str, key: &Key, entry: &Entry) -> impl Iterator<Item = KeyHash> {
    [Some(key.stripped()), split_key(key, entry)].into_iter().flatten().map(move |key| hash(namespace, &key))
}

/// The key of a second item with the same id: `id#link`. Only ids can be shared by mistake; links and titles that are
/// shared are no keys in the first place.
fn split_key(key: &Key, entry: &Entry) -> Option<String> {
    match key {
        Key::Id(id) => Some(Key::Id(format!("{id}#{}", entry.permalink()?)).stripped()),
        _ => None,
    }
}

fn hash(namespace: &str, stripped: &str) -> KeyHash {
    KeyHash::of(namespace, stripped)
}

/// Entries and where they stand in the document.
type EntryGroup<'a> = Vec<(usize, &'a ParsedEntry)>;

/// Entries with one key, parted by link; one without a link goes with the first.
fn by_link<'a>(group: &[(usize, &'a ParsedEntry)]) -> Vec<EntryGroup<'a>> {
    let mut clusters: Vec<(Option<&str>, EntryGroup<'a>)> = Vec::new();
    for &(at, reading) in group {
        let link = reading.entry.permalink();
        match clusters.iter_mut().find(|(other, _)| other.is_none() || link.is_none() || *other == link) {
            Some((other, cluster)) => {
                *other = other.or(link);
                cluster.push((at, reading));
            }
            None => clusters.push((link, vec![(at, reading)])),
        }
    }
    clusters.into_iter().map(|(_, cluster)| cluster).collect()
}

/// The one updated last; of equals the first.
fn latest<'a>(cluster: &[(usize, &'a ParsedEntry)]) -> Option<(usize, &'a ParsedEntry)> {
    cluster.iter().copied().rev().max_by_key(|(_, reading)| chronology::touched(&reading.entry))
}
