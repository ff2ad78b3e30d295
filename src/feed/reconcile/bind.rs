//! Which item an entry belongs to: the identity rules of DESIGN section 3; not what has changed in
//! it.

use super::{
    Known, MovingEntry, Observation, ObservedEntry, ParsedEntry, WindowEntry, chronology,
    correction::{Agreement, DocumentNeighbours, corrected},
    dated,
    rename::{UnknownEntry, renamed},
    same_post::{Likeness, Word, apart},
    witnesses::{Address, title_of},
};
use crate::{
    item::{Item, ItemId, KeyHash, Witnesses, iri, uuid_iri},
    record::IdRule,
};
use everfeed_adapters::{
    Entry, Key,
    platforms::{Profile, content_digest},
};
use std::{
    borrow::Cow,
    collections::{HashMap, HashSet},
    sync::Arc,
};

/// An entry and the item it belongs to.
pub(super) struct BoundEntry<'a> {
    /// The entry.
    pub(super) reading: Cow<'a, ParsedEntry>,
    /// The key that bound it.
    pub(super) key: KeyHash,
    /// Its item.
    pub(super) target: BoundItem,
    /// True when its key was unknown, and its witnesses show that it is the item.
    pub(super) is_renamed: bool,
    /// Agreement beside its text by which it is the item, where its place shows that.
    pub(super) agreement: Option<Agreement>,
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
            changing_since: None,
        };
        (row, held.is_some_and(|item| !item.is_gone()))
    }
}

impl BoundEntry<'_> {
    /// Makes no edit of an entry in which nothing but id and links has changed, where these do not
    /// tell posts apart.
    fn leave_address(&mut self, profile: Option<&Profile>) {
        let Some(held) = self.target.item() else {
            return;
        };
        let (Some(entry), digests) = (held.entry(), held.digests) else {
            return;
        };
        let as_before = Entry {
            links: entry.links.clone(),
            ..(*self.reading.entry).clone()
        };
        let content = content_digest(&as_before, profile);
        if digests.version == self.reading.digests.version && content == digests.content {
            self.reading.to_mut().digests.content = content;
        }
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
        Self {
            namespace,
            known,
            id_rule: known.id_rule,
            claimed,
            aliases: Vec::new(),
        }
    }

    // Decides: Which item does an entry belong to?
    /// Binds the parsed entries of a document. Of several that are one item, the latest updated is
    /// kept (LEGACY I-3).
    pub(super) fn bind(&mut self, seen: &'a Observation) -> HashMap<usize, BoundEntry<'a>> {
        let mut groups: Vec<EntryGroup<'a>> = Vec::new();
        let mut place: HashMap<String, usize> = HashMap::new();
        for (at, sighting) in seen.entries.iter().enumerate() {
            let ObservedEntry::Read(reading) = sighting else {
                continue;
            };
            let group = *place.entry(reading.key.stripped()).or_insert_with(|| {
                groups.push(Vec::new());
                groups.len() - 1
            });
            groups[group].push((at, reading));
        }
        let parted: Vec<EntryGroup<'a>> =
            groups.iter().flat_map(|group| self.part(group)).collect();
        let chosen = parted.iter().filter_map(|posts| latest(posts));
        let named = |(at, reading)| (at, reading, Names::of(self.namespace, reading));
        let chosen: Vec<NamedEntry<'a>> = chosen.map(named).collect();
        let misnamed = self.misnamed(seen, &chosen);
        let bind = |(at, reading, names)| {
            let bound = self.bind_one(reading, names, misnamed.contains(&at))?;
            Some((at, bound))
        };
        let mut bound: HashMap<usize, BoundEntry<'a>> =
            chosen.into_iter().filter_map(bind).collect();
        self.rename(seen, &mut bound, &misnamed);
        if !seen.coverage.is_partial() {
            self.revise(&mut bound);
            self.correct(seen, &mut bound);
        }
        for bound in bound.values_mut() {
            if !misnamed.is_empty() || self.is_of_another(bound) {
                bound.leave_address(seen.profile.as_deref());
            }
        }
        bound
    }

    /// True when the id of an entry founded another item than its own.
    fn is_of_another(&self, bound: &BoundEntry<'_>) -> bool {
        let id = bound.target.id();
        let founder = || {
            let plain = KeyHash::of(self.namespace, &bound.reading.key.stripped());
            self.known.items.get(&plain)
        };
        bound.key.item_id() != id && founder().is_some_and(|item| !item.is_gone() && item.id != id)
    }

    // Decides: Does an id name its post, or a place in a list that another post has now?
    /// The places of the entries whose ids lead to other posts, as after an import that adds one to
    /// all ids and links, or where both are places in the list: their words are not those of the item
    /// of the id, and they are another item, which the document does not show under its own id. Of
    /// several, another title is enough for the doubt: all posts may have one date, or one text.
    fn misnamed(&self, seen: &Observation, chosen: &[NamedEntry<'a>]) -> HashSet<usize> {
        let by_title = self.misnamed_of(seen, chosen, has_other_title);
        if by_title.1 >= MISNAMED_BY_TITLE_MIN {
            return by_title.0;
        }
        self.misnamed_of(seen, chosen, has_other_words).0
    }

    /// The same for entries of this kind, and the number of those that are other items.
    fn misnamed_of(
        &self,
        seen: &Observation,
        chosen: &[NamedEntry<'a>],
        is_doubtful: fn(&Item, &Entry) -> bool,
    ) -> (HashSet<usize>, usize) {
        let mut believed: HashSet<ItemId> = self.claimed.union(&seen.elsewhere).copied().collect();
        let mut named: HashMap<usize, Arc<Item>> = HashMap::new();
        let mut doubted = Vec::new();
        for &(at, reading, ref names) in chosen {
            let Some((_, item)) = self.known_item(reading, names) else {
                continue;
            };
            if is_doubtful(&item, &reading.entry) {
                named.insert(at, item);
                doubted.push(UnknownEntry {
                    at,
                    reading,
                    is_key_unknown: false,
                    is_address_doubted: true,
                });
            } else {
                believed.insert(item.id);
            }
        }
        let mut found = renamed(self.known, &believed, &doubted);
        found.retain(|at, item| named[at].id != item.id);
        let shown: HashSet<ItemId> = found.values().map(|item| item.id).collect();
        let are_many = found.len() >= MISNAMED_MIN;
        let is_misnamed = |(at, reading): (usize, &ParsedEntry)| {
            let named = &named[&at];
            let is_other = || are_many && has_other_words(named, &reading.entry);
            found.contains_key(&at) || shown.contains(&named.id) || is_other()
        };
        let doubted = doubted.iter().map(|entry| (entry.at, entry.reading));
        let misnamed = doubted.filter(|entry| is_misnamed(*entry));
        (misnamed.map(|(at, _)| at).collect(), found.len())
    }

    /// Gives entries that would be new the items that they are under another id.
    fn rename(
        &mut self,
        seen: &Observation,
        bound: &mut HashMap<usize, BoundEntry<'a>>,
        misnamed: &HashSet<usize>,
    ) {
        let mut unknown = self.unknown(bound);
        for unknown in &mut unknown {
            unknown.is_address_doubted = misnamed.contains(&unknown.at);
        }
        if unknown.is_empty() {
            return;
        }
        let claimed: HashSet<ItemId> = self.claimed.union(&seen.elsewhere).copied().collect();
        for (at, item) in renamed(self.known, &claimed, &unknown) {
            if let Some(bound) = bound.get_mut(&at) {
                self.give(bound, item);
            }
        }
        self.aliases.sort_unstable();
    }

    /// Gives entries that would still be new the items of their links, where the ids are those links
    /// with a revision behind them: title, text and date may all be others. The item stood before one
    /// that is still there, so that it did not roll off, and no other is known by the link, as it is
    /// where many comments have the link of one post.
    fn revise(&mut self, bound: &mut HashMap<usize, BoundEntry<'a>>) {
        let rows = &self.known.window.entries;
        let last = rows.iter().rposition(|row| self.claimed.contains(&row.id));
        let linked = |entry: &Entry, link: &Address| revised_link(entry).as_ref() == Some(link);
        for unknown in self.unknown(bound) {
            let Some(link) = revised_link(&unknown.reading.entry) else {
                continue;
            };
            let items = self.known.items.values().chain(&self.known.lookalikes);
            let of_link = items.filter(|item| item.entry().is_some_and(|held| linked(held, &link)));
            let mut of_link: Vec<&Arc<Item>> = of_link.collect();
            of_link.sort_unstable_by_key(|item| item.id);
            of_link.dedup_by_key(|item| item.id);
            let missing = |item: &Item| {
                let stood = rows.iter().position(|row| row.id == item.id);
                !self.claimed.contains(&item.id) && stood.is_some_and(|at| Some(at) < last)
            };
            if let [item] = of_link[..]
                && missing(item)
                && let Some(bound) = bound.get_mut(&unknown.at)
            {
                self.give(bound, Arc::clone(item));
            }
        }
    }

    /// Gives entries that would still be new the items whose places they took.
    fn correct(&mut self, seen: &Observation, bound: &mut HashMap<usize, BoundEntry<'a>>) {
        let unknown = self.unknown(bound);
        if unknown.is_empty() {
            return;
        }
        let shown = |(at, sighting): (usize, &ObservedEntry)| match sighting {
            ObservedEntry::Same(row) => Some((at, row.id, row.dated)),
            ObservedEntry::Read(reading) => {
                let id = bound.get(&at)?.target.id();
                Some((at, id, dated(&reading.entry)))
            }
        };
        let shown = seen.entries.iter().enumerate().filter_map(shown).collect();
        let last = &self.known.window.absence;
        let pins = last.documents.direction.pins.into();
        let beside = DocumentNeighbours::new(&last.items, pins, shown, &seen.elsewhere);
        for found in corrected(self.known, &beside, seen, &unknown) {
            if let Some(bound) = bound.get_mut(&found.at) {
                self.give(bound, Arc::clone(found.item));
                bound.agreement = Some(found.agreement);
            }
        }
        self.aliases.sort_unstable();
    }

    /// The entries that would be new, in document order.
    fn unknown(&self, bound: &HashMap<usize, BoundEntry<'a>>) -> Vec<UnknownEntry<'a>> {
        let is_new = |bound: &BoundEntry<'_>| matches!(bound.target, BoundItem::New { .. });
        let is_unknown = |key: &Key| {
            let key = KeyHash::of(self.namespace, &key.stripped());
            !self.known.items.contains_key(&key)
        };
        let unknown = |(at, bound): (&usize, &BoundEntry<'a>)| {
            let Cow::Borrowed(reading) = &bound.reading else {
                return None;
            };
            Some(UnknownEntry {
                at: *at,
                reading,
                is_key_unknown: is_unknown(&reading.key),
                is_address_doubted: false,
            })
        };
        let new = bound.iter().filter(|(_, bound)| is_new(bound));
        let mut unknown: Vec<UnknownEntry<'_>> = new.filter_map(unknown).collect();
        unknown.sort_unstable_by_key(|unknown| unknown.at);
        unknown
    }

    /// Gives an entry that would be new a known item.
    fn give(&mut self, bound: &mut BoundEntry<'a>, item: Arc<Item>) {
        self.claimed.remove(&bound.target.id());
        self.claimed.insert(item.id);
        let last = &self.known.window;
        let row = last.entries.iter().find(|row| row.id == item.id);
        let moves = || {
            let of_item = |moving: &&MovingEntry| moving.id == item.id;
            let moving = last.moving.iter().find(of_item);
            moving.is_some_and(|moving| moving.times_moved() > ALIAS_POLLS_MAX)
        };
        match row.filter(|row| row.changed_polls > ALIAS_POLLS_MAX || moves()) {
            // Its names change with every poll: none of them comes again, and the store must not
            // grow by each.
            Some(row) => bound.key = row.key,
            None => self.aliases.push((bound.key, item.id)),
        }
        bound.is_renamed = true;
        bound.target = BoundItem::Known(item);
    }

    /// Parts the entries that share a key into those of one post each, and makes the rule stricter
    /// when there are several.
    fn part(&mut self, group: &[(usize, &'a ParsedEntry)]) -> Vec<EntryGroup<'a>> {
        let by_link = by_link(group);
        if by_link.len() > 1 {
            self.id_rule = self.id_rule.max(IdRule::IdAndLink);
        }
        let mut parted = Vec::new();
        for cluster in by_link {
            let posts = by_post(&cluster);
            if posts.len() > 1 {
                self.id_rule = IdRule::IdLinkAndDate;
            }
            parted.extend(posts);
        }
        parted
    }

    /// Binds one entry; `None` when another entry of the document has its item already.
    fn bind_one(
        &mut self,
        reading: &'a ParsedEntry,
        names: Names,
        is_misnamed: bool,
    ) -> Option<BoundEntry<'a>> {
        let namespace = self.namespace;
        // Where ids are places in a list of posts of one date, titles alone are left.
        let titled = is_misnamed.then(|| titled_key(&reading.key, &reading.entry));
        let titled = titled
            .flatten()
            .map(|name| (KeyHash::of(namespace, &name), name));
        let known = match &titled {
            Some((key, _)) => self.unclaimed(*key),
            None if is_misnamed => None,
            None => self.known_item(reading, &names),
        };
        let Names { post, split, plain } = names;
        let is_free = |key: KeyHash| {
            !self.known.items.contains_key(&key) && !self.claimed.contains(&key.item_id())
        };
        let (key, target) = if let Some((key, item)) = known {
            (key, BoundItem::Known(item))
        } else if is_free(plain) {
            let name = reading.name.clone().map(Key::Id);
            let iri = iri(namespace, name.as_ref().unwrap_or(&reading.key));
            let id = plain.item_id();
            (plain, BoundItem::New { id, iri })
        } else {
            // The plain id belongs to another item, so this one lives under id and link, or under
            // its date, too, and takes a `urn:uuid:`.
            let names = [&split, &post, &titled].into_iter().flatten();
            let (key, name) = names.into_iter().find(|(key, _)| is_free(*key))?;
            let (id, iri) = (key.item_id(), uuid_iri(namespace, name));
            (*key, BoundItem::New { id, iri })
        };
        self.claimed.insert(target.id());
        // From now on it is found by its date, whatever name it was first known by.
        if self.id_rule == IdRule::IdLinkAndDate
            && let Some((post, _)) = post
            && post != key
            && !self.known.items.contains_key(&post)
        {
            self.aliases.push((post, target.id()));
        }
        Some(BoundEntry {
            reading: Cow::Borrowed(reading),
            key,
            target,
            is_renamed: false,
            agreement: None,
        })
    }

    /// The known item of an entry, and the key that leads to it: by its date, else by its link, else
    /// by its id alone.
    pub(super) fn known_item(
        &self,
        reading: &ParsedEntry,
        names: &Names,
    ) -> Option<(KeyHash, Arc<Item>)> {
        let is_it = |item: &Item| !self.is_another(item, &reading.entry);
        let of_name = |name: &Option<(KeyHash, String)>| self.unclaimed(name.as_ref()?.0);
        let by_post = of_name(&names.post);
        let by_post = by_post.filter(|(_, item)| !item.is_gone() || is_it(item));
        by_post
            .or_else(|| {
                let found = of_name(&names.split);
                let is_link_enough = self.id_rule != IdRule::IdLinkAndDate;
                found.filter(|(_, item)| is_link_enough && !item.is_gone() || is_it(item))
            })
            .or_else(|| self.unclaimed(names.plain).filter(|(_, item)| is_it(item)))
    }

    fn unclaimed(&self, key: KeyHash) -> Option<(KeyHash, Arc<Item>)> {
        let item = self.known.items.get(&key)?;
        (!self.claimed.contains(&item.id)).then(|| (key, Arc::clone(item)))
    }

    /// True when an entry with a known id is another item all the same: link, title and published
    /// are present on both sides and all differ, or, once the feed was caught giving one id to
    /// several links, the link differs, or, once it was caught giving one link to several posts,
    /// too, title and date.
    fn is_another(&self, item: &Item, entry: &Entry) -> bool {
        let Some(held) = item.entry() else {
            return Self::is_other_than_gone(item, entry);
        };
        let has_other_link = is_different(held.permalink(), entry.permalink());
        match self.id_rule {
            IdRule::Id => is_all_other(held, entry),
            IdRule::IdAndLink => has_other_link,
            IdRule::IdLinkAndDate => has_other_link || is_other_post(held, entry),
        }
    }
}

impl Binder<'_> {
    // Decides: Does a deleted post come back, or has another one got its id?
    /// True when an entry with the id of a deleted item is another post: the number of a row is
    /// given again. Of an older tombstone, of which no more is kept, the date of publication tells,
    /// unless the id is the post's own address.
    fn is_other_than_gone(item: &Item, entry: &Entry) -> bool {
        if item.content.is_forgotten() {
            return false;
        }
        if let Some(held) = Witnesses::of_gone(item) {
            let link = item.publisher_id.as_ref().and_then(|id| id.link.as_deref());
            let likeness = Likeness::of(&held, &Witnesses::of(entry), 0);
            let is_elsewhere = is_different(link, entry.permalink());
            return likeness.is_other() || is_elsewhere && likeness.is_other_elsewhere();
        }
        let address = |reference: Option<&str>| reference.and_then(Address::of);
        let is_own_address = address(entry.permalink()) == address(entry.id.as_deref());
        let published = entry.published.as_ref().and_then(|date| date.at_us);
        let secs = |at_us: i64| at_us.div_euclid(1_000_000);
        let dates = item.published_us.map(secs).zip(published.map(secs));
        !is_own_address
            && dates.is_some_and(|(held, given)| apart(held, given) == Word::Contradicts)
    }
}

/// True when neither the title nor the text of an entry is that of the item of its id, and two of
/// title, text and date are others.
pub(super) fn has_other_words(item: &Item, entry: &Entry) -> bool {
    let Some(held) = item
        .entry()
        .filter(|held| held.title.is_none() || held.title != entry.title)
    else {
        return false;
    };
    Likeness::of(&Witnesses::of(held), &Witnesses::of(entry), 0).has_other_words()
}

/// True when an entry does not have the title of the item of its id.
pub(super) fn has_other_title(item: &Item, entry: &Entry) -> bool {
    let title = |entry: &Entry| entry.title.as_ref().and_then(title_of);
    let titles = item.entry().and_then(title).zip(title(entry));
    titles.is_some_and(|(held, given)| held != given)
}

/// Entries that are other posts than their ids say, from which on no id of the document is believed
/// against all words.
const MISNAMED_MIN: usize = 3;

/// The same where nothing but their titles raises the doubt: one title may have been edited.
const MISNAMED_BY_TITLE_MIN: usize = 2;

/// True when nothing says that two entries of one id are one post: link, title and published are
/// present on both sides, and all differ.
fn is_all_other(held: &Entry, given: &Entry) -> bool {
    is_different(held.permalink(), given.permalink()) && is_other_post(held, given)
}

/// Polls running in which an entry may change and still get an alias for each new id.
// Limit: later ids of it lead to it by its witnesses alone.
const ALIAS_POLLS_MAX: u16 = 3;

/// The link of an entry whose id is that link with more behind it.
fn revised_link(entry: &Entry) -> Option<Address> {
    let (id, link) = (entry.id.as_deref()?, entry.permalink()?);
    let is_longer = id.len() > link.len() && id.starts_with(link);
    Address::of(link).filter(|_| is_longer)
}

fn is_different(held: Option<&str>, given: Option<&str>) -> bool {
    matches!((held, given), (Some(a), Some(b)) if a != b)
}

/// True when title and published are present on both sides and both differ.
fn is_other_post(held: &Entry, given: &Entry) -> bool {
    let title = |entry: &'_ Entry| entry.title.as_ref().map(|title| title.value.clone());
    let published = |entry: &'_ Entry| entry.published.as_ref().map(|date| date.raw.clone());
    is_different(title(held).as_deref(), title(given).as_deref())
        && is_different(published(held).as_deref(), published(given).as_deref())
}

/// The keys of an entry, with the names that the longer ones are made of.
pub(super) struct Names {
    /// By its date, too.
    post: Option<(KeyHash, String)>,
    /// By its link, too.
    split: Option<(KeyHash, String)>,
    /// By its id alone.
    plain: KeyHash,
}

impl Names {
    pub(super) fn of(namespace: &str, reading: &ParsedEntry) -> Self {
        let (key, entry) = (&reading.key, &reading.entry);
        let hashed = |name: String| (KeyHash::of(namespace, &name), name);
        Self {
            post: post_key(key, entry).map(hashed),
            split: split_key(key, entry).map(hashed),
            plain: KeyHash::of(namespace, &key.stripped()),
        }
    }
}

/// Every key under which an entry may be known.
pub(super) fn keys_of(namespace: &str, key: &Key, entry: &Entry) -> impl Iterator<Item = KeyHash> {
    let names = [
        Some(key.stripped()),
        split_key(key, entry),
        post_key(key, entry),
    ];
    names
        .into_iter()
        .flatten()
        .map(move |key| KeyHash::of(namespace, &key))
}

/// The key of a second item with the same id: `id#link`. Only ids can be shared by mistake; links
/// and titles that are shared are no keys in the first place.
fn split_key(key: &Key, entry: &Entry) -> Option<String> {
    match key {
        Key::Id(id) => Some(Key::Id(format!("{id}#{}", entry.permalink()?)).stripped()),
        _ => None,
    }
}

/// The key of a post whose feed gives one id and one link to several: `id#link#date`, or without a
/// date its title.
fn post_key(key: &Key, entry: &Entry) -> Option<String> {
    let Key::Id(id) = key else { return None };
    let published = entry.published.as_ref().map(|date| {
        date.at_us
            .map_or_else(|| date.raw.clone(), |at| at.to_string())
    });
    let own = published.or_else(|| entry.title.as_ref().map(|title| title.value.clone()))?;
    Some(
        Key::Id(format!(
            "{id}#{}#{own}",
            entry.permalink().unwrap_or_default()
        ))
        .stripped(),
    )
}

/// The key of a post whose id, link and date are those of others: `id#link#date#title`.
fn titled_key(key: &Key, entry: &Entry) -> Option<String> {
    let (name, title) = (
        post_key(key, entry)?,
        entry.title.as_ref().and_then(title_of)?,
    );
    Some(Key::Id(format!("{name}#{title}")).stripped())
}

/// An entry, where it stands in the document, and its keys.
type NamedEntry<'a> = (usize, &'a ParsedEntry, Names);

/// Entries and where they stand in the document.
type EntryGroup<'a> = Vec<(usize, &'a ParsedEntry)>;

/// Entries with one key, parted by link; one without a link goes with the first.
fn by_link<'a>(group: &[(usize, &'a ParsedEntry)]) -> Vec<EntryGroup<'a>> {
    let mut clusters: Vec<(Option<&str>, EntryGroup<'a>)> = Vec::new();
    for &(at, reading) in group {
        let link = reading.entry.permalink();
        match clusters
            .iter_mut()
            .find(|(other, _)| other.is_none() || link.is_none() || *other == link)
        {
            Some((other, cluster)) => {
                *other = other.or(link);
                cluster.push((at, reading));
            }
            None => clusters.push((link, vec![(at, reading)])),
        }
    }
    clusters.into_iter().map(|(_, cluster)| cluster).collect()
}

/// Entries with one key and one link, parted into posts: those whose title and date differ, or,
/// where at least three have no date, whose titles all do.
fn by_post<'a>(cluster: &EntryGroup<'a>) -> Vec<EntryGroup<'a>> {
    let mut posts: Vec<EntryGroup<'a>> = Vec::new();
    let are_undated = cluster
        .iter()
        .all(|(_, reading)| reading.entry.published.is_none());
    let titles: HashSet<&str> = cluster
        .iter()
        .filter_map(|(_, reading)| Some(reading.entry.title.as_ref()?.value.as_str()))
        .collect();
    let has_title_each =
        are_undated && cluster.len() >= UNDATED_POSTS_MIN && titles.len() == cluster.len();
    for &(at, reading) in cluster {
        let is_same = |post: &&mut EntryGroup<'a>| {
            !has_title_each
                && post
                    .iter()
                    .any(|(_, other)| !is_other_post(&other.entry, &reading.entry))
        };
        match posts.iter_mut().find(is_same) {
            Some(post) => post.push((at, reading)),
            None => posts.push(vec![(at, reading)]),
        }
    }
    posts
}

/// Entries without a date that one id and one link must have to be taken for several posts: two may
/// be a post and its edit.
const UNDATED_POSTS_MIN: usize = 3;

/// The one updated last; of equals the first.
fn latest<'a>(cluster: &[(usize, &'a ParsedEntry)]) -> Option<(usize, &'a ParsedEntry)> {
    cluster
        .iter()
        .copied()
        .rev()
        .max_by_key(|(_, reading)| chronology::touched(&reading.entry))
}
