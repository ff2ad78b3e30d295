//! The choice of the held items that unknown entries are (POLLING 2.3, step 2; the decision on
//! renamed posts): a blog that moves, changes its software or mends its links gives
//! new names to its whole archive. Only one-to-one matches count; what is ambiguous stays apart.

use super::{
    Change, Decisions, Known, ParsedEntry, PutKind,
    same_post::{Likeness, SchemeChange, Word},
};
use crate::{
    item::{Item, ItemId, KeyHash, Witnesses},
    longest_rise::longest_rise,
};
use everfeed_adapters::Entry;
use std::{
    collections::{BTreeSet, HashMap, HashSet},
    hash::Hash,
    sync::Arc,
};

/// Matches that show a change of scheme at least; and at least half of what seems new must be
/// matched.
const SCHEME_CHANGE_MIN: usize = 3;

/// Items and entries that may share one title to be compared for it: a title that recurs more often
/// tells nothing.
const RECURRING_MAX: usize = 16;

/// An entry whose key leads to no item of its own.
pub(super) struct UnknownEntry<'a> {
    /// Its place in the document.
    pub(super) at: usize,
    pub(super) reading: &'a ParsedEntry,
    /// True when its key is not held at all: then a nearly equal id is the same id.
    pub(super) is_key_unknown: bool,
    /// True when id and link are those of another post, so that they say nothing.
    pub(super) is_address_doubted: bool,
}

// Decides: Which held item does an entry with a new id continue?
/// The items that unknown entries are, by the place of the entry. `claimed` are the items that the
/// documents show under a key that is known.
pub(super) fn renamed(
    known: &Known,
    claimed: &HashSet<ItemId>,
    unknown: &[UnknownEntry<'_>],
) -> HashMap<usize, Arc<Item>> {
    if unknown.is_empty() {
        return HashMap::new();
    }
    let (items, held): (Vec<&Arc<Item>>, Vec<Witnesses>) =
        held_items(known, claimed).into_iter().unzip();
    let given: Vec<Witnesses> = unknown.iter().map(UnknownEntry::witnesses).collect();
    let Matched {
        pairs,
        scheme_change,
        one_to_one,
    } = matches(&held, &given);
    let recognised: HashSet<usize> = one_to_one.iter().map(|(old, _)| *old).collect();
    let mut found: HashMap<usize, Arc<Item>> = one_to_one
        .into_iter()
        .map(|(old, new)| (unknown[new].at, Arc::clone(items[old])))
        .collect();
    // What was forgotten does not come back because several could be it.
    for Pair { old, new, likeness } in pairs {
        let item = items[old];
        if item.content.is_forgotten()
            && !recognised.contains(&old)
            && likeness.is_one(scheme_change)
        {
            let place = found.entry(unknown[new].at);
            place.or_insert_with(|| Arc::clone(item));
        }
    }
    found
}

/// Leaves out of what older documents add the posts that a newer one adds under another id, as
/// those of archives that were written before the scheme changed; their keys become aliases. Of
/// fewer than a change of scheme shows nothing is left out.
pub fn join(older: &mut Decisions, newer: &Decisions) {
    let added = |change: &Change| match change {
        Change::Put(put) if put.kind == PutKind::Added => {
            Some((put.id, Arc::clone(&put.entry), put.keys.clone()))
        }
        _ => None,
    };
    let held: Vec<_> = newer.changes.iter().filter_map(added).collect();
    let given: Vec<_> = older.changes.iter().filter_map(added).collect();
    let side = |side: &[(ItemId, Arc<Entry>, Vec<KeyHash>)]| -> Vec<Witnesses> {
        side.iter()
            .map(|(_, entry, _)| Witnesses {
                own_id: None,
                ..Witnesses::of(entry)
            })
            .collect()
    };
    let matched = matches(&side(&held), &side(&given)).one_to_one;
    if matched.len() < SCHEME_CHANGE_MIN {
        return;
    }
    let mut left_out = HashSet::new();
    for (old, new) in matched {
        let (id, _, keys) = &given[new];
        left_out.insert(*id);
        older.aliases.retain(|(_, of)| of != id);
        older
            .aliases
            .extend(keys.iter().map(|key| (*key, held[old].0)));
    }
    older
        .changes
        .retain(|change| !left_out.contains(&change.id()));
    older.renamed += left_out.len();
}

/// The pairs of `held` and `given` that are one post each.
fn matches(held: &[Witnesses], given: &[Witnesses]) -> Matched {
    let pairs = pairs_to_compare(held, given);
    let plain = compare(held, given, &pairs, 0);
    let shift_secs = common_shift(held, given, &plain);
    let moved = if shift_secs == 0 {
        plain.clone()
    } else {
        compare(held, given, &pairs, shift_secs)
    };
    let moved = Matched::of(moved, SchemeChange::Shown);
    // A list that is made anew each day shows the same links under other ids and dates: no scheme
    // has changed.
    let dated_anew: HashSet<(usize, usize)> = moved
        .pairs
        .iter()
        .filter(|pair| pair.likeness.is_dated_anew)
        .map(|pair| (pair.old, pair.new))
        .collect();
    let shown = moved
        .one_to_one
        .iter()
        .filter(|pair| !dated_anew.contains(pair))
        .count();
    if shown >= SCHEME_CHANGE_MIN && shown * 2 >= given.len() {
        return moved;
    }
    let with_new_dates = Matched::of(plain, SchemeChange::ShownWithNewDates);
    let matched = &with_new_dates.one_to_one;
    let is_most = matched.len() >= SCHEME_CHANGE_MIN && matched.len() * 4 >= given.len() * 3;
    if is_most && is_in_order_of_dates(held, matched) {
        return with_new_dates;
    }
    Matched::of(with_new_dates.pairs, SchemeChange::NotShown)
}

/// Compares the entries and the items of these pairs, of which all dates have moved by so much.
fn compare(
    held: &[Witnesses],
    given: &[Witnesses],
    pairs: &BTreeSet<(usize, usize)>,
    shift_secs: i64,
) -> Vec<Pair> {
    let mut compared = Vec::with_capacity(pairs.len());
    for &(old, new) in pairs {
        let (held, given) = (&held[old], &given[new]);
        let mut likeness = Likeness::of(held, given, shift_secs);
        likeness.has_same_id = given.own_id.is_some() && given.own_id == held.own_id;
        compared.push(Pair { old, new, likeness });
    }
    compared
}

/// True when the document shows nine of ten matched posts in the order of their old dates, the
/// newest first or the oldest first: their publisher dated the posts of a blog anew. A list that is
/// made anew each day has one date for all its entries, or another order.
fn is_in_order_of_dates(held: &[Witnesses], matched: &[(usize, usize)]) -> bool {
    let mut by_place: Vec<(usize, usize)> = matched.iter().map(|(old, new)| (*new, *old)).collect();
    by_place.sort_unstable();
    let is_ordered = |date: fn(&Witnesses) -> Option<i64>| {
        let dates: Vec<i64> = by_place
            .iter()
            .filter_map(|(_, old)| date(&held[*old]))
            .collect();
        let backwards: Vec<i64> = dates.iter().rev().copied().collect();
        let (rise, fall) = (longest_rise(&dates).len(), longest_rise(&backwards).len());
        rise.max(fall) * 10 >= matched.len() * 9
    };
    is_ordered(|held| held.published) || is_ordered(|held| held.updated)
}

/// Items that a document may show under another name, with their witnesses: those of the window that
/// it lacks, and those that the store found by a witness. They live, or were forgotten.
fn held_items<'a>(known: &'a Known, claimed: &HashSet<ItemId>) -> Vec<(&'a Arc<Item>, Witnesses)> {
    let of_window = known
        .window
        .entries
        .iter()
        .filter_map(|row| known.items.get(&row.key).filter(|item| item.id == row.id));
    let mut met = HashSet::new();
    of_window
        .chain(&known.lookalikes)
        .filter(|item| !claimed.contains(&item.id) && met.insert(item.id))
        .filter_map(|item| Some((item, Witnesses::of_item(item)?)))
        .collect()
}

/// An item and an entry that are compared, by their places.
#[derive(Clone, Copy)]
struct Pair {
    old: usize,
    new: usize,
    likeness: Likeness,
}

/// The pairs that were compared, and those that are one post each.
struct Matched {
    pairs: Vec<Pair>,
    scheme_change: SchemeChange,
    one_to_one: Vec<(usize, usize)>,
}

impl Matched {
    fn of(pairs: Vec<Pair>, scheme_change: SchemeChange) -> Self {
        Self {
            one_to_one: one_to_one(&pairs, scheme_change),
            pairs,
            scheme_change,
        }
    }
}

impl UnknownEntry<'_> {
    /// Its witnesses. Many posts may have the id that is held already, or none of its own.
    fn witnesses(&self) -> Witnesses {
        let witnesses = Witnesses::of(&self.reading.entry);
        let is_own = self.is_key_unknown && !self.reading.key.is_weak();
        let addresses = witnesses.addresses.into_iter();
        Witnesses {
            addresses: addresses.filter(|_| !self.is_address_doubted).collect(),
            own_id: witnesses.own_id.filter(|_| is_own),
            ..witnesses
        }
    }
}

/// The pairs that share a witness, each once.
fn pairs_to_compare(held: &[Witnesses], given: &[Witnesses]) -> BTreeSet<(usize, usize)> {
    let mut pairs = BTreeSet::new();
    let by_mark = places(held.iter().map(Witnesses::marks));
    for (new, given) in given.iter().enumerate() {
        for mark in given.marks() {
            pairs.extend(
                by_mark
                    .get(&mark)
                    .into_iter()
                    .flatten()
                    .map(|old| (*old, new)),
            );
        }
    }
    // Dates may have moved, so that the title at its date is not found.
    let by_title = places(held.iter().map(|held| held.title.iter()));
    for (title, news) in places(given.iter().map(|given| given.title.iter())) {
        let olds = by_title.get(title).map_or(&[][..], Vec::as_slice);
        if olds.len() <= RECURRING_MAX && news.len() <= RECURRING_MAX {
            pairs.extend(
                olds.iter()
                    .flat_map(|old| news.iter().map(|new| (*old, *new))),
            );
        }
    }
    pairs
}

/// The places at which each mark is found.
fn places<M: Eq + Hash>(
    marks: impl Iterator<Item = impl IntoIterator<Item = M>>,
) -> HashMap<M, Vec<usize>> {
    let mut places: HashMap<M, Vec<usize>> = HashMap::new();
    for (at, marks) in marks.enumerate() {
        for mark in marks {
            places.entry(mark).or_default().push(at);
        }
    }
    places
}

/// Seconds by which all dates have moved; 0 when they have not, or not all alike. Measured on the
/// pairs that are one post whatever their dates are.
fn common_shift(held: &[Witnesses], given: &[Witnesses], pairs: &[Pair]) -> i64 {
    let mut dateless = pairs.to_vec();
    for pair in &mut dateless {
        pair.likeness.date = Word::Silent;
    }
    let mut of_shift: HashMap<i64, Vec<i64>> = HashMap::new();
    for (old, new) in one_to_one(&dateless, SchemeChange::Shown) {
        let (held, given) = (&held[old], &given[new]);
        let published = held.published.zip(given.published);
        if let Some((was, is)) = published.or(held.updated.zip(given.updated)) {
            of_shift.entry(is - was).or_default().push(was);
        }
    }
    let all: usize = of_shift.values().map(Vec::len).sum();
    let most = of_shift
        .into_iter()
        .max_by_key(|(shift, from)| (from.len(), *shift));
    let Some((shift, from)) = most else { return 0 };
    // Where all posts bear the date of the document, it moves with the document.
    let different: HashSet<&i64> = from.iter().collect();
    if different.len() < SCHEME_CHANGE_MIN || from.len() * 5 < all * 4 {
        return 0;
    }
    shift
}

/// The pairs of which each side is the other's only one, the likest first.
fn one_to_one(pairs: &[Pair], scheme_change: SchemeChange) -> Vec<(usize, usize)> {
    let mut left: Vec<(usize, usize, usize)> = pairs
        .iter()
        .filter(|pair| pair.likeness.is_one(scheme_change))
        .map(|pair| {
            (
                pair.likeness.agreed() + usize::from(pair.likeness.has_same_id),
                pair.old,
                pair.new,
            )
        })
        .collect();
    let mut matched = Vec::new();
    while let Some(likest) = left.iter().map(|(agreed, _, _)| *agreed).max() {
        let of_level = || left.iter().filter(|(agreed, _, _)| *agreed == likest);
        let (mut olds, mut news): (HashMap<usize, usize>, HashMap<usize, usize>) =
            Default::default();
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
