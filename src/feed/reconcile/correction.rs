//! Posts that their publisher corrected in their places, so that fewer witnesses agree than a rename
//! needs: title and address, address and date, or title and address where there are no dates. The
//! text must be long and of the post alone, and the new entry must stand where the old one vanished;
//! not the choice by witnesses alone, which is `rename`'s.

use super::{Known, Observation, ObservedEntry, dated, rename::UnknownEntry, witnesses};
use crate::{
    absence::WindowItem,
    item::{Item, ItemId, Witnesses},
    stamp::Stamp,
};
use everfeed_adapters::{Digest, Entry, Text, platforms::Profile};
use std::{
    borrow::Cow,
    collections::{HashMap, HashSet},
    sync::Arc,
};

/// An item that was recognised in its place under another id.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Correction {
    /// The item.
    pub id: ItemId,
    /// Time of the document that shows it.
    pub at: Stamp,
    /// Agreement beside its text and its place.
    pub agreement: Agreement,
}

/// Witness that agrees beside the text of a corrected post.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Agreement {
    /// The date to the second, which no other entry has: title and address may differ.
    #[default]
    Date,
    /// The title: address and date may differ.
    Title,
    /// Nothing, between two neighbours that stay, in a feed without dates of publication.
    Place,
}

/// Letters and digits that a text must have to be a post's own, about twenty-five words: what is
/// shorter comes again in other posts (a caption, a sponsor's line, "Open thread").
const OWN_LETTERS_MIN: usize = 120;

/// Bytes of a title or an address that is looked for in the text of its entry: a shorter one stands
/// everywhere.
const OWN_BYTES_MIN: usize = 8;

/// Difference of two dates, in seconds, with which one may have been corrected that stands first or
/// last, or is the newest of all. A new issue of a series takes the place of the one before, too, and
/// no series has two issues within half a day of each other and one text.
const MOVED_AT_END_SECS: u64 = 12 * 3600;

/// Corrections that are remembered for `explain` at most, and for how long in seconds.
const REMEMBERED_MAX: usize = 20;
const REMEMBERED_SECS: u64 = 30 * 86_400;

/// Place of an entry: the two entries beside it that the documents have in common.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Neighbours {
    /// Between two, of which the lesser id comes first: documents may be remembered backwards.
    Both(ItemId, ItemId),
    /// First or last, with the nearest two beside it.
    OneSide(ItemId, ItemId),
}

/// The places of what vanished from a document and of what is new in it.
pub(super) struct DocumentNeighbours {
    vanished: HashMap<ItemId, Neighbours>,
    new: HashMap<usize, Neighbours>,
    /// The place at which new posts enter: first, or behind what is pinned there.
    entrance: Option<Neighbours>,
    /// The items and entries of each date, in seconds.
    dates: HashMap<i64, HashSet<ItemId>>,
    /// The latest date of the remembered window, in seconds.
    newest: Option<i64>,
    /// The ids of the entries, by where they stand.
    ids: HashMap<usize, ItemId>,
}

impl DocumentNeighbours {
    /// `last` is the remembered window, newest first, with what is missed at its old place; `pins`
    /// are the entries that stay before new ones; `shown` are the entries of the document in order:
    /// where it stands, id and date.
    pub(super) fn new(
        last: &[WindowItem],
        pins: usize,
        shown: Vec<(usize, ItemId, Option<i64>)>,
        elsewhere: &HashSet<ItemId>,
    ) -> Self {
        let before: HashSet<ItemId> = last.iter().map(|row| row.id).collect();
        let now: HashSet<ItemId> = shown.iter().map(|(_, id, _)| *id).collect();
        let mut dates: HashMap<i64, HashSet<ItemId>> = HashMap::new();
        let of_last = last.iter().map(|row| (row.id, row.dated));
        for (id, at) in of_last.chain(shown.iter().map(|(_, id, at)| (*id, *at))) {
            if let Some(at) = at {
                dates.entry(secs(at)).or_default().insert(id);
            }
        }
        let vanished = neighbours(last.iter().map(|row| (row.id, row.id)), &now);
        let stay = last.iter().map(|row| row.id).filter(|id| now.contains(id));
        let stay: Vec<ItemId> = stay.collect();
        let new = neighbours(shown.iter().map(|(at, id, _)| (*at, *id)), &before);
        Self {
            vanished: vanished
                .into_iter()
                .filter(|(id, _)| !elsewhere.contains(id))
                .collect(),
            new: new.into_iter().collect(),
            entrance: place(&stay, pins),
            newest: last.iter().filter_map(|row| row.dated).map(secs).max(),
            dates,
            ids: shown.into_iter().map(|(at, id, _)| (at, id)).collect(),
        }
    }
}

/// The entries of a document that are not in the other one, each with its place, if there is one.
fn neighbours<K>(
    entries: impl Iterator<Item = (K, ItemId)>,
    other: &HashSet<ItemId>,
) -> Vec<(K, Neighbours)> {
    let (mut stay, mut lone) = (Vec::new(), Vec::new());
    for (name, id) in entries {
        if other.contains(&id) {
            stay.push(id);
        } else {
            lone.push((name, stay.len()));
        }
    }
    lone.into_iter()
        .filter_map(|(name, above)| Some((name, place(&stay, above)?)))
        .collect()
}

/// The place behind so many of the entries that stay; `None` where fewer than two stay.
fn place(stay: &[ItemId], above: usize) -> Option<Neighbours> {
    let (before, behind) = stay.split_at_checked(above)?;
    match (before, behind) {
        ([.., before], [behind, ..]) => {
            Some(Neighbours::Both(*before.min(behind), *before.max(behind)))
        }
        ([.., second, last], []) => Some(Neighbours::OneSide(*last, *second)),
        ([], [first, second, ..]) => Some(Neighbours::OneSide(*first, *second)),
        _ => None,
    }
}

/// An entry and the item that it may be.
#[derive(Clone, Copy)]
pub(super) struct Candidate<'a> {
    /// Place of the entry in its document.
    pub(super) at: usize,
    pub(super) item: &'a Arc<Item>,
    pub(super) agreement: Agreement,
}

// Decides: Is a new entry a post that was corrected in its place?
/// The items that entries are although their ids are unknown and too few witnesses agree, by the
/// place of the entry. An entry that could be several items, or an item that several entries could
/// be, stays apart.
pub(super) fn corrected<'a>(
    known: &'a Known,
    beside: &DocumentNeighbours,
    seen: &Observation,
    unknown: &[UnknownEntry<'_>],
) -> Vec<Candidate<'a>> {
    // Usually something came first and something else rolled off at the end.
    let left: HashSet<Neighbours> = beside.vanished.values().copied().collect();
    if !beside.new.values().any(|place| left.contains(place)) {
        return Vec::new();
    }
    let held = held(known);
    let mut vanished: HashMap<Neighbours, Vec<&(&Arc<Item>, Witnesses)>> = HashMap::new();
    for row in &held {
        if let Some(place) = beside.vanished.get(&row.0.id) {
            vanished.entry(*place).or_default().push(row);
        }
    }
    let profile = seen.profile.as_deref();
    let mut candidates: Vec<Candidate<'a>> = Vec::new();
    for new in unknown.iter().filter(|new| new.is_key_unknown) {
        let Some(place) = beside.new.get(&new.at) else {
            continue;
        };
        for (item, witnesses) in vanished.get(place).into_iter().flatten() {
            if let Some(agreement) = agreement(beside, new, item, witnesses, profile) {
                candidates.push(Candidate {
                    at: new.at,
                    item,
                    agreement,
                });
            }
        }
    }
    if candidates.is_empty() {
        return Vec::new();
    }
    let texts = TextOwners::of(&held, &seen.entries);
    let mut found = Vec::new();
    for candidate in &candidates {
        let is_of_either =
            |other: &&Candidate<'_>| other.at == candidate.at || other.item.id == candidate.item.id;
        // It is one of them itself.
        if candidates.iter().filter(is_of_either).count() == 1
            && candidate.has_own_text(seen, &texts)
        {
            found.push(*candidate);
        }
    }
    found
}

impl Candidate<'_> {
    /// True when the text of the item, and of the entry, is of nothing but the two.
    fn has_own_text(&self, seen: &Observation, texts: &TextOwners) -> bool {
        let given = seen.entries[self.at].parsed();
        let entries = [self.item.entry(), given.map(|parsed| &*parsed.entry)];
        let mut own = entries
            .into_iter()
            .flatten()
            .filter_map(witnesses::main_text);
        own.all(|text| texts.is_own(&text, self.item.id, self.at))
    }
}

/// The items that were found, each once, with their witnesses. Those that the document shows are
/// among them: a text that one of them has is not another's own.
fn held(known: &Known) -> Vec<(&Arc<Item>, Witnesses)> {
    let mut met = HashSet::new();
    let items = known.lookalikes.iter().chain(known.items.values());
    items
        .filter(|item| met.insert(item.id))
        .filter_map(|item| Some((item, Witnesses::of_item(item)?)))
        .collect()
}

/// The items and the entries that have each text.
struct TextOwners {
    items: HashMap<Digest, HashSet<ItemId>>,
    entries: HashMap<Digest, HashSet<usize>>,
}

impl TextOwners {
    fn of(held: &[(&Arc<Item>, Witnesses)], entries: &[ObservedEntry]) -> Self {
        let mut owners = Self {
            items: HashMap::new(),
            entries: HashMap::new(),
        };
        for (item, witnesses) in held {
            for text in &witnesses.texts {
                owners.items.entry(*text).or_default().insert(item.id);
            }
        }
        for (at, sighting) in entries.iter().enumerate() {
            let Some(reading) = sighting.parsed() else {
                continue;
            };
            for text in Witnesses::of(&reading.entry).texts {
                owners.entries.entry(text).or_default().insert(at);
            }
        }
        owners
    }

    /// True when a text is of nothing but this item and this entry.
    fn is_own(&self, text: &Digest, id: ItemId, at: usize) -> bool {
        let mut items = self.items.get(text).into_iter().flatten();
        let mut entries = self.entries.get(text).into_iter().flatten();
        items.all(|other| *other == id) && entries.all(|other| *other == at)
    }
}

/// Agreement beside the text of an item that vanished and an entry that is new in its place; `None`
/// when they are not one post.
fn agreement(
    beside: &DocumentNeighbours,
    new: &UnknownEntry<'_>,
    item: &Item,
    held: &Witnesses,
    profile: Option<&Profile>,
) -> Option<Agreement> {
    let (old_entry, new_entry) = (item.entry()?, &*new.reading.entry);
    let dates = dated(old_entry).map(secs).zip(dated(new_entry).map(secs));
    if let Some((at, _)) = dates.filter(|(was, is)| was == is) {
        let mut of_date = beside.dates.get(&at).into_iter().flatten();
        let is_own = |id: &ItemId| *id == item.id || beside.ids.get(&new.at) == Some(id);
        let agrees = of_date.all(is_own) && have_one_text(old_entry, new_entry, profile);
        return agrees.then_some(Agreement::Date);
    }
    let place = beside.new.get(&new.at)?;
    let is_between = matches!(place, Neighbours::Both(..));
    let may_be_corrected = match dates {
        Some((was, is)) => {
            let is_newest = beside.newest.is_none_or(|newest| is > newest);
            (is_between && !is_newest) || was.abs_diff(is) < MOVED_AT_END_SECS
        }
        None => beside.entrance.as_ref() != Some(place),
    };
    if !may_be_corrected || !have_one_text(old_entry, new_entry, profile) {
        return None;
    }
    let given = Witnesses::of(new_entry);
    if held.title.is_some() && held.title == given.title {
        return Some(Agreement::Title);
    }
    let is_undated = held.published.is_none() && given.published.is_none();
    (is_between && is_undated).then_some(Agreement::Place)
}

/// True when two entries have the same text from first to last, and it is long. Its title and its
/// address may stand in it, as some software puts them below.
fn have_one_text(held: &Entry, given: &Entry, profile: Option<&Profile>) -> bool {
    let own_text = |entry: &Entry| {
        let scrubbed = profile.map_or(Cow::Borrowed(entry), |by| by.scrub(entry));
        let text = witnesses::whole_text(&scrubbed)?;
        let address = entry.permalink().map(Text::plain);
        let own = address
            .iter()
            .chain(&entry.title)
            .filter_map(witnesses::title_of);
        let own = own.filter(|own| own.len() >= OWN_BYTES_MIN);
        Some(own.fold(text, |text, own| text.replace(&own, "")))
    };
    let (Some(held), Some(given)) = (own_text(held), own_text(given)) else {
        return false;
    };
    held == given && held.chars().take(OWN_LETTERS_MIN).count() == OWN_LETTERS_MIN
}

/// The corrections to be remembered after a document that shows these, oldest first.
pub(super) fn remembered(
    before: &[Correction],
    found: impl Iterator<Item = (ItemId, Agreement)>,
    now: Stamp,
) -> Vec<Correction> {
    let correction = |(id, agreement)| Correction {
        id,
        at: now,
        agreement,
    };
    let mut found: Vec<Correction> = found.map(correction).collect();
    found.sort_unstable_by_key(|mended| mended.id);
    let is_recent = |mended: &Correction| now.secs_since(mended.at) < REMEMBERED_SECS;
    let before = before.iter().copied().filter(is_recent);
    let mut all: Vec<Correction> = before.chain(found).collect();
    all.drain(..all.len().saturating_sub(REMEMBERED_MAX));
    all
}

/// Whole seconds of a date in microseconds.
fn secs(at_us: i64) -> i64 {
    at_us.div_euclid(1_000_000)
}
