//! The choice of the held items that unknown entries are (POLLING 2.3, step 2; ARCHITECTURE, "When a post goes by another id"):
//! a blog that moves, changes its software or mends its links gives new names to its whole archive. Only one-to-one matches
//! count; what is ambiguous stays apart.

use super::{
    Known, ParsedEntry,
    likeness::{Circumstances, Likeness, Word},
    witnesses::{Address, Witnesses},
};
use crate::feed::item::{Item, ItemId};
use everfeed_adapters::{Entry, Key};
use std::{
    collections::{BTreeSet, HashMap, HashSet},
    hash::Hash,
    sync::Arc,
};

/// Matches that show a change of scheme at least; and at least half of what seems new must be matched.
const SCHEME_CHANGE_MIN: usize = 3;

/// Items and entries that may share one title to be compared for it: a title that recurs more often tells nothing.
const RECURRING_MAX: usize = 16;

/// An entry whose key leads to no item of its own.
pub(super) struct UnknownEntry<'a> {
    /// Its place in the document.
    pub(super) at: usize,
    pub(super) reading: &'a ParsedEntry,
    /// True when its key is not held at all: then a nearly equal id is the same id.
    pub(super) is_key_unknown: bool,
}

/// The items that unknown entries are, by the place of the entry. `claimed` are the items that the documents show under a
/// key that is known.
pub(super) fn renamed(
    known: &Known,
    claimed: &HashSet<ItemId>,
    unknown: &[UnknownEntry<'_>],
) -> HashMap<usize, Arc<Item>> {
    let held = held_items(known, claimed);
    if held.is_empty() || unknown.is_empty() {
        return HashMap::new();
    }
    let held: Vec<HeldItem<'_>> = held.into_iter().filter_map(HeldItem::of).collect();
    let given: Vec<GivenEntry> = unknown.iter().map(GivenEntry::of).collect();
    let pairs = pairs_to_compare(&held, &given);
    let compare = |shift_secs: i64| -> Vec<Pair> {
        let pair = |(old, new): &(usize, usize)| {
            let (held, given) = (&held[*old], &given[*new]);
            let likeness = Likeness::of(&held.witnesses, &given.witnesses, shift_secs);
            let has_same_id = given.own_id.is_some() && given.own_id == held.own_id;
            Pair { old: *old, new: *new, likeness: Likeness { has_same_id, ..likeness } }
        };
        pairs.iter().map(pair).collect()
    };
    let plain = compare(0);
    let shift_secs = common_shift(&held, &given, &plain);
    let moved = if shift_secs == 0 { plain.clone() } else { compare(shift_secs) };
    let scheme_change = one_to_one(&moved, &Circumstances { is_scheme_change: true, shift_secs });
    let is_scheme_change =
        scheme_change.len() >= SCHEME_CHANGE_MIN && scheme_change.len() * 2 >= unknown.len();
    let matched =
        if is_scheme_change { scheme_change } else { one_to_one(&plain, &Circumstances::default()) };
    matched.into_iter().map(|(old, new)| (unknown[new].at, Arc::clone(held[old].item))).collect()
}

/// Live items that a document may show under another name: those of the window that it lacks, and those that the store found
/// by a witness.
fn held_items<'a>(known: &'a Known, claimed: &HashSet<ItemId>) -> Vec<&'a Arc<Item>> {
    let of_window = known
        .window
        .entries
        .iter()
        .filter_map(|row| known.items.get(&row.key).filter(|item| item.id == row.id));
    let mut met = HashSet::new();
    of_window
        .chain(&known.lookalikes)
        .filter(|item| !item.is_gone() && !claimed.contains(&item.id) && met.insert(item.id))
        .collect()
}

struct HeldItem<'a> {
    item: &'a Arc<Item>,
    witnesses: Witnesses,
    own_id: Option<Address>,
}

struct GivenEntry {
    witnesses: Witnesses,
    /// The address that its id is; `None` when the id is known, so that many posts may have it.
    own_id: Option<Address>,
}

/// An item and an entry that are compared, by their places.
#[derive(Clone, Copy)]
struct Pair {
    old: usize,
    new: usize,
    likeness: Likeness,
}

impl<'a> HeldItem<'a> {
    fn of(item: &'a Arc<Item>) -> Option<Self> {
        let entry = item.entry()?;
        Some(Self { item, witnesses: Witnesses::of(entry), own_id: own_id(entry) })
    }
}

impl GivenEntry {
    fn of(unknown: &UnknownEntry<'_>) -> Self {
        let entry = &unknown.reading.entry;
        let own_id = match &unknown.reading.key {
            Key::Id(_) | Key::Link(_) if unknown.is_key_unknown => own_id(entry),
            _ => None,
        };
        Self { witnesses: Witnesses::of(entry), own_id }
    }
}

/// The URL by which an entry is named, as its key is chosen. Of other ids nearly the same is another: the year of a `tag:` may be
/// all that tells two posts apart.
fn own_id(entry: &Entry) -> Option<Address> {
    let id = entry.id.as_deref().or(entry.permalink())?;
    Address::of(id).filter(|_| id.starts_with("http"))
}

/// The pairs that share a witness, each once.
fn pairs_to_compare(held: &[HeldItem<'_>], given: &[GivenEntry]) -> BTreeSet<(usize, usize)> {
    let mut pairs = BTreeSet::new();
    let by_key = places(held.iter().map(|held| held.witnesses.keys()));
    for (new, given) in given.iter().enumerate() {
        for key in given.witnesses.keys() {
            pairs.extend(by_key.get(&key).into_iter().flatten().map(|old| (*old, new)));
        }
    }
    // Dates may have moved, so that the title at its date is not found.
    let by_title = places(held.iter().map(|held| held.witnesses.title.iter()));
    for (title, news) in places(given.iter().map(|given| given.witnesses.title.iter())) {
        let olds = by_title.get(title).map_or(&[][..], Vec::as_slice);
        if olds.len() <= RECURRING_MAX && news.len() <= RECURRING_MAX {
            pairs.extend(olds.iter().flat_map(|old| news.iter().map(|new| (*old, *new))));
        }
    }
    pairs
}

/// The places at which each mark is found.
fn places<M: Eq + Hash>(marks: impl Iterator<Item = impl IntoIterator<Item = M>>) -> HashMap<M, Vec<usize>> {
    let mut places: HashMap<M, Vec<usize>> = HashMap::new();
    for (at, marks) in marks.enumerate() {
        for mark in marks {
            places.entry(mark).or_default().push(at);
        }
    }
    places
}

/// Seconds by which all dates have moved; 0 when they have not, or not all alike. Measured on the pairs that are one post whatever
/// their dates are.
fn common_shift(held: &[HeldItem<'_>], given: &[GivenEntry], pairs: &[Pair]) -> i64 {
    let dateless = |pair: &Pair| {
        let likeness = Likeness { date: Word::Silent, ..pair.likeness };
        Pair { likeness, ..*pair }
    };
    let pairs: Vec<Pair> = pairs.iter().map(dateless).collect();
    let shifts = one_to_one(&pairs, &Circumstances { is_scheme_change: true, shift_secs: 0 })
        .into_iter()
        .filter_map(|(old, new)| {
            let (held, given) = (&held[old].witnesses, &given[new].witnesses);
            let pair = held.published.zip(given.published).or(held.updated.zip(given.updated))?;
            Some(pair.1 - pair.0)
        });
    let mut times: HashMap<i64, usize> = HashMap::new();
    shifts.for_each(|shift| *times.entry(shift).or_default() += 1);
    let all: usize = times.values().sum();
    let most = times.into_iter().max_by_key(|(shift, times)| (*times, *shift));
    most.filter(|(_, times)| *times >= SCHEME_CHANGE_MIN && times * 5 >= all * 4)
        .map_or(0, |(shift, _)| shift)
}

/// The pairs of which each side is the other's only one, the likest first.
fn one_to_one(pairs: &[Pair], circumstances: &Circumstances) -> Vec<(usize, usize)> {
    let mut left: Vec<(usize, usize, usize)> = pairs
        .iter()
        .filter(|pair| pair.likeness.is_one(circumstances))
        .map(|pair| (pair.likeness.agreed() + usize::from(pair.likeness.has_same_id), pair.old, pair.new))
        .collect();
    let mut matched = Vec::new();
    while let Some(likest) = left.iter().map(|(agreed, _, _)| *agreed).max() {
        let of_level = || left.iter().filter(|(agreed, _, _)| *agreed == likest);
        let (mut olds, mut news): (HashMap<usize, usize>, HashMap<usize, usize>) = Default::default();
        of_level().for_each(|(_, old, new)| {
            *olds.entry(*old).or_default() += 1;
            *news.entry(*new).or_default() += 1;
        });
        let found: Vec<(usize, usize)> = of_level()
            .filter(|(_, old, new)| olds[old] == 1 && news[new] == 1)
            .map(|(_, old, new)| (*old, *new))
            .collect();
        if found.is_empty() {
            // Those of this level could be several, so that no lesser likeness decides for them.
            let (old, new): (HashSet<usize>, HashSet<usize>) =
                of_level().map(|(_, old, new)| (*old, *new)).unzip();
            left.retain(|(_, of, is)| !old.contains(of) && !new.contains(is));
        } else {
            left.retain(|(_, old, new)| found.iter().all(|(of, is)| of != old && is != new));
            matched.extend(found);
        }
    }
    matched
}
