//! From what is known and what was seen to what changes; identity is `bind`'s business, order
//! `chronology`'s.

use super::{
    Change, Decisions, Delete, Evidence, Known, Observation, ObservedEntry, ParsedEntry, Put,
    PutKind, WINDOW_ENTRIES_MAX, WindowEntry, WindowState,
    bind::{Binder, BoundEntry, BoundItem, Names, has_other_title, has_other_words, keys_of},
    chronology, correction,
    edit::is_edit,
    flood_limiter::FloodLimiter,
    witnesses,
};
use crate::{
    absence::{
        AbsenceFindings, CheckResult, Coverage, Proof, ProofPolicy, ShownItem, WindowEvent,
        archives::ArchiveSuspect, revival::DocumentSigns,
    },
    item::{Item, ItemId, KeyHash, Reason, plausible},
    moment::Moment,
    record::IdRule,
    schedule::Repeat,
    stamp::Stamp,
};
use everfeed_adapters::{Deletion, Entry, Key, platforms::Profile};
use std::{
    collections::{HashMap, HashSet},
    sync::Arc,
};

/// The keys that a decision needs to look up: those of parsed entries and of deletions. What has
/// not changed costs none. If something was parsed, also those of the last document's entries that
/// this one does not show as they were: one of them may go by another id now. And those of what is
/// held back, which may be due.
pub fn keys_needed(namespace: &str, last: &WindowState, seen: &Observation) -> Vec<KeyHash> {
    let parsed = seen.entries.iter().filter_map(ObservedEntry::parsed);
    let of_entries = parsed.flat_map(|entry| keys_of(namespace, &entry.key, &entry.entry));
    let of_deletions = seen
        .deletions
        .iter()
        .chain(&seen.deletion_hints)
        .map(|deletion| deleted_key(namespace, deletion));
    let mut keys: Vec<KeyHash> = of_entries.chain(of_deletions).collect();
    if seen.entries.iter().any(|entry| entry.parsed().is_some()) {
        let entries = seen.entries.iter();
        let same: HashSet<ItemId> = entries.filter_map(ObservedEntry::same).collect();
        let others = last.entries.iter().filter(|row| !same.contains(&row.id));
        keys.extend(others.map(|row| row.key));
    }
    keys.extend(last.deferred.iter().map(|held| held.key));
    keys.sort_unstable();
    keys.dedup();
    keys
}

/// The witnesses of the entries whose keys are all unknown, or lead to another post, as after an
/// import that gave posts the numbers of others: by them the store finds the items that they may be.
/// Empty unless something seems new.
pub fn witness_keys(namespace: &str, known: &Known, seen: &Observation) -> Vec<KeyHash> {
    let binder = Binder::new(namespace, known, HashSet::new());
    let is_unknown = |reading: &ParsedEntry| {
        let is_split = known.id_rule != IdRule::Id;
        let held = || binder.known_item(reading, &Names::of(namespace, reading));
        let is_doubtful = |item: &Item| {
            has_other_title(item, &reading.entry) || has_other_words(item, &reading.entry)
        };
        is_split || held().is_none_or(|(_, item)| is_doubtful(&item))
    };
    let parsed = seen.entries.iter().filter_map(ObservedEntry::parsed);
    let unknown = parsed.filter(|reading| is_unknown(reading));
    let mut keys: Vec<KeyHash> = unknown
        .flat_map(|reading| witnesses::keys(&reading.entry))
        .collect();
    keys.sort_unstable();
    keys.dedup();
    keys
}

/// Decides on one document. Presence always counts: whatever the document holds is added or edited,
/// however short it is. What ends is what the publisher says is deleted (RFC 6721), and what
/// `absence` finds proven.
pub fn reconcile(
    namespace: &str,
    known: &Known,
    seen: &Observation,
    policy: &ProofPolicy,
    now: Stamp,
) -> Decisions {
    let unchanged = seen
        .entries
        .iter()
        .filter_map(ObservedEntry::same)
        .collect();
    let mut binder = Binder::new(namespace, known, unchanged);
    let mut bound = binder.bind(seen);
    let verdicts = ExplicitDeletions::new(namespace, known, seen);
    let mut decisions = Decisions {
        id_rule: binder.id_rule,
        aliases: binder.aliases,
        ..Decisions::default()
    };
    decisions.renamed = bound.values().filter(|bound| bound.is_renamed).count();
    let corrected = bound.values();
    let corrected = corrected.filter_map(|bound| Some((bound.target.id(), bound.agreement?)));
    decisions.window.corrections =
        correction::remembered(&known.window.corrections, corrected, now);
    let all_shown = shown(seen, &bound);
    let last = &known.window.absence;
    let signs = DocumentSigns {
        dates: seen.dates,
        newest_entry_us: newest_entry_us(seen, now),
        lacks_of: lacks_of(known, &all_shown, &verdicts),
        coverage: seen.coverage,
        asks_pages: last.pages_tell(policy),
    };
    let mut revivals = last.revivals.check(&last.recurrence, signs, now);
    let mut guard = FloodLimiter::new(known, seen, now);
    let mut met = Vec::new();
    let mut waiting_forms = HashMap::new();
    let mut places = Vec::new();
    for (at, sighting) in seen.entries.iter().enumerate() {
        let mut is_known = true;
        let row = match sighting {
            ObservedEntry::Same(row) => WindowEntry {
                changed_polls: 0,
                changing_since: None,
                ..*row
            },
            ObservedEntry::Read(_) => {
                let Some(bound) = bound.remove(&at) else {
                    continue;
                };
                if verdicts.suppress(&bound) {
                    continue;
                }
                if bound.target.item().is_some_and(|item| revivals.waits(item)) {
                    waiting_forms.insert(bound.target.id(), bound.reading);
                    continue;
                }
                let (row, known) = bound.row();
                is_known = known;
                let run = guard.meet(&bound);
                let row = WindowEntry {
                    changed_polls: run.polls,
                    changing_since: run.since,
                    ..row
                };
                met.push((row, bound));
                row
            }
        };
        if verdicts.ends(row.id) {
            continue;
        }
        if decisions.window.entries.len() < WINDOW_ENTRIES_MAX {
            decisions.window.entries.push(row);
        }
        places.push(row.shown(is_known));
    }
    guard.learn();
    let mut puts = puts(&mut guard, met, seen.profile.as_deref(), now);
    puts.extend(
        guard
            .release(Repeat::Changed)
            .into_iter()
            .filter(|(_, put)| !verdicts.ends(put.id)),
    );
    let is_reformatted = guard.close(&mut decisions.window);
    decisions.changes = chronology::oldest_first(puts)
        .into_iter()
        .map(Change::Put)
        .collect();
    decisions.changes.extend(verdicts.tombstones(now));
    let before = known.window.absence.without(&verdicts.ended);
    // Without those that wait, or that the publisher says are deleted.
    let placed: HashSet<ItemId> = places.iter().map(|place| place.id).collect();
    for missed in &known.window.archive_suspects {
        if !placed.contains(&missed.id) && !verdicts.ends(missed.id) {
            decisions.window.archive_suspects.push(*missed);
        }
    }
    for gone in &known.window.tombstones {
        if placed.contains(&gone.id) {
            continue;
        }
        let mut gone = gone.clone();
        if revivals.to_ask().contains(&gone.id) {
            gone.next_at = now;
            // Its page would show what it is now.
            if let Some(form) = waiting_forms.get(&gone.id)
                && !revivals.is_dated_before()
            {
                gone = gone.in_form(&form.entry, form.digests, published_us(&form.entry, now));
            }
        }
        decisions.window.tombstones.push(gone);
    }
    let revivals = revivals.after(&all_shown);
    decisions.coverage = seen.coverage;
    decisions.missing = before.lacked_by(&places);
    let policy = &ProofPolicy {
        modified_unseen: decisions.is_modified_unseen(seen),
        ..*policy
    };
    decisions.conclude(before.observe(&places, seen.coverage, policy, now), now);
    for item in hinted(namespace, known, seen).filter(|item| !all_shown.contains(&item.id)) {
        let absence = &mut decisions.window.absence;
        absence.ask_for_page(item.id, item.tombstone_count, policy, now);
    }
    decisions.window.absence.revivals = revivals;
    if is_reformatted {
        decisions.events.push(WindowEvent::Reformatted);
    }
    decisions
}

/// The last document once more, as the answer to an unconditional request: what it lacks is
/// confirmed.
pub fn reconcile_again(known: &Known, policy: &ProofPolicy, now: Stamp) -> Decisions {
    let mut decisions = Decisions {
        coverage: Coverage::Unconditional,
        missing: known.window.absence.suspects().count(),
        ..Decisions::none(known)
    };
    let rows = known.window.entries.iter();
    let seen: Vec<ShownItem> = rows.map(|row| row.shown(true)).collect();
    decisions.conclude(known.window.absence.observe_again(&seen, policy, now), now);
    decisions
}

/// Decides on the result of a permalink check.
pub fn reconcile_check(
    known: &Known,
    id: ItemId,
    said: CheckResult,
    policy: &ProofPolicy,
    now: Stamp,
) -> Decisions {
    let mut decisions = Decisions::none(known);
    decisions.conclude(known.window.absence.told(id, said, policy, now), now);
    decisions
}

/// Decides on the result of a check of a tombstone's page: an item whose page shows it again lives
/// again, as it was.
pub fn recheck_tombstone(known: &Known, id: ItemId, said: CheckResult, now: Stamp) -> Decisions {
    let mut decisions = Decisions::none(known);
    let (last, changes) = (&mut decisions.window, &mut decisions.changes);
    last.tombstones = Vec::new();
    for gone in &known.window.tombstones {
        if gone.id != id {
            last.tombstones.push(gone.clone());
        } else if said == CheckResult::Shown {
            changes.push(Change::Put(Put {
                kind: PutKind::Revived,
                id,
                iri: String::new(),
                keys: Vec::new(),
                entry: Arc::clone(&gone.entry),
                published_us: gone.published_us,
                digests: gone.digests,
                witnesses: witnesses::keys(&gone.entry),
            }));
            last.absence.recurrence.revive(id);
        } else {
            last.tombstones.extend(gone.asked(now));
            if matches!(said, CheckResult::Gone | CheckResult::NotFound) {
                last.absence.revivals.refute(id, now);
            }
        }
    }
    decisions
}

/// Commits deferred edits when no document came: all of them after a poll that changed nothing,
/// since then no entry changes with every poll; else what is due. `known` holds the items of the
/// keys of `last.held`.
pub fn release(known: &Known, poll: Repeat, now: Stamp) -> Decisions {
    let nothing = Observation::default();
    let mut guard = FloodLimiter::new(known, &nothing, now);
    let puts = guard.release(poll);
    let mut decisions = Decisions::none(known);
    let last = &mut decisions.window;
    guard.close(last);
    // Nothing was seen that could tell whether a reformatting goes on.
    last.reformatted_at = known.window.reformatted_at;
    if poll == Repeat::Unchanged {
        last.entries
            .iter_mut()
            .for_each(|row| (row.changed_polls, row.changing_since) = (0, None));
    }
    let puts = chronology::oldest_first(puts).into_iter();
    decisions.changes = puts.map(Change::Put).collect();
    decisions
}

impl Decisions {
    /// True when absence means anything in them: something is suspected, or proven.
    pub fn misses_something(&self) -> bool {
        let by_absence = |change: &Change| matches!(change, Change::Delete(delete) if delete.evidence.suspect.is_some());
        self.window.absence.suspects().next().is_some() || self.changes.iter().any(by_absence)
    }

    // Decides: Was something modified that no entry shows?
    /// True when the server said that the feed was modified, by software whose answers do not say
    /// so of deletions, and nothing that the document shows was.
    fn is_modified_unseen(&self, seen: &Observation) -> bool {
        let profile = seen.profile.as_deref();
        seen.coverage == Coverage::Conditional
            && profile.is_some_and(|profile| profile.http.hides_deletes)
            && self.changes.is_empty()
            && self.aliases.is_empty()
            && self.window.deferred.is_empty()
    }

    /// The items that become tombstones.
    fn gone(&self) -> impl Iterator<Item = ItemId> {
        self.changes.iter().filter_map(|change| match change {
            Change::Delete(delete) => Some(delete.id),
            Change::Put(_) => None,
        })
    }

    /// Takes what absence proves.
    fn conclude(&mut self, outcome: AbsenceFindings, now: Stamp) {
        self.changes.extend(
            outcome
                .gone
                .into_iter()
                .map(|(id, proof)| Change::Delete(ended(id, proof, now))),
        );
        self.rolled_off = outcome.rolled_off.len();
        let gone: HashSet<ItemId> = self.gone().collect();
        // The page of an item may be asked for while the last document shows it. Were its row kept,
        // the same entry in a later document would not bring it back.
        if !gone.is_empty() {
            self.window.entries.retain(|row| !gone.contains(&row.id));
        }
        self.window.deferred.retain(|held| !gone.contains(&held.id));
        self.window
            .archive_suspects
            .retain(|missed| !gone.contains(&missed.id));
        self.window.absence = outcome.state;
        self.events = outcome.events;
    }
}

/// The live items of which a document hints that they are deleted.
fn hinted<'a>(
    namespace: &'a str,
    known: &'a Known,
    seen: &'a Observation,
) -> impl Iterator<Item = &'a Item> {
    let hints = seen.deletion_hints.iter();
    hints.filter_map(move |hint| {
        let item = known.items.get(&deleted_key(namespace, hint))?;
        let is_meant = item.entry().is_some_and(|entry| deletes(hint, entry));
        is_meant.then_some(&**item)
    })
}

/// The items of a document, whatever becomes of them.
fn shown(seen: &Observation, bound: &HashMap<usize, BoundEntry<'_>>) -> HashSet<ItemId> {
    let same = seen.entries.iter().filter_map(ObservedEntry::same);
    same.chain(bound.values().map(|bound| bound.target.id()))
        .collect()
}

/// The latest date that a document gives an entry, in microseconds. Dates still to come do not
/// count.
fn newest_entry_us(seen: &Observation, now: Stamp) -> Option<i64> {
    let now_us = i64::try_from(now.micros()).unwrap_or(i64::MAX);
    let dated = |sighting: &ObservedEntry| match sighting {
        ObservedEntry::Same(row) => row.dated,
        ObservedEntry::Read(parsed) => chronology::date(&parsed.entry).map(Moment::micros),
    };
    let dates = seen.entries.iter().filter_map(dated);
    dates.filter(|at| *at <= now_us).max()
}

/// First sight of the newest post that a document lacks and the one before it showed.
fn lacks_of(
    known: &Known,
    shown: &HashSet<ItemId>,
    verdicts: &ExplicitDeletions<'_>,
) -> Option<Stamp> {
    let rows = &known.window.absence.items;
    // What stood behind all that is shown has rolled off, and what the document says is deleted is
    // no sign of an old one.
    let end = rows.iter().rposition(|row| shown.contains(&row.id));
    let lacked: HashSet<ItemId> = rows[..end.unwrap_or(0)]
        .iter()
        .filter(|row| row.suspect.is_none() && !shown.contains(&row.id) && !verdicts.ends(row.id))
        .map(|row| row.id)
        .collect();
    let items = known.items.values();
    let of_lacked = items.filter(|item| lacked.contains(&item.id));
    of_lacked.map(|item| item.created).max()
}

fn ended(id: ItemId, proof: Proof, now: Stamp) -> Delete {
    let (reason, missing) = match proof {
        Proof::Bracketed(missing) => (Reason::AbsentBracketed, missing),
        Proof::LeftComplete(missing) => (Reason::LeftCompleteFeed, missing),
        Proof::Gone(missing) => (Reason::Gone, missing),
    };
    let evidence = Evidence {
        suspect: Some(missing),
        ..Evidence::new(reason, now)
    };
    Delete {
        id,
        reason,
        first_missing: Some(missing.since),
        last_seen: Some(missing.last_seen),
        evidence,
    }
}

/// The end of an item that walks through the archives missed.
pub fn ended_in_archives(missed: ArchiveSuspect, now: Stamp) -> Delete {
    let reason = Reason::AbsentArchive;
    let evidence = Evidence {
        archive_suspect: Some(missed),
        ..Evidence::new(reason, now)
    };
    Delete {
        id: missed.id,
        reason,
        first_missing: Some(missed.since),
        last_seen: Some(missed.last_seen),
        evidence,
    }
}

/// Changes by the entries that were met, in document order, which do not wait.
fn puts(
    guard: &mut FloodLimiter<'_>,
    met: Vec<(WindowEntry, BoundEntry<'_>)>,
    profile: Option<&Profile>,
    now: Stamp,
) -> Vec<(Option<Moment>, Put)> {
    let mut puts = Vec::new();
    for (row, bound) in met {
        let item = bound.target.item().cloned();
        let is_renamed = bound.is_renamed;
        let put = put(bound, profile, now);
        let put = guard.pass(put, &row, item.as_deref(), is_renamed);
        puts.extend(put.map(|put| (chronology::date(&put.entry), put)));
    }
    puts
}

/// The publisher's date of an entry, microseconds since 1970, if it is plausible.
fn published_us(entry: &Entry, now: Stamp) -> Option<i64> {
    let date = entry.published.as_ref()?;
    date.at_us.filter(|at| believable(*at, now))
}

/// Change of an item by an entry; `None` when the item holds the same content already.
fn put(bound: BoundEntry<'_>, profile: Option<&Profile>, now: Stamp) -> Option<Put> {
    let BoundEntry {
        reading,
        key,
        target,
        ..
    } = bound;
    let (kind, id, iri, keys) = match target {
        BoundItem::New { id, iri } => (PutKind::Added, id, iri, vec![key]),
        BoundItem::Known(item) if item.is_gone() => {
            (PutKind::Revived, item.id, item.iri.clone(), Vec::new())
        }
        BoundItem::Known(item)
            if is_edit(&item.digests, item.entry(), &reading.digests, profile) =>
        {
            (PutKind::Edited, item.id, item.iri.clone(), Vec::new())
        }
        BoundItem::Known(_) => return None,
    };
    let entry = &reading.entry;
    let published_us = published_us(entry, now);
    let witnesses = witnesses::keys(entry);
    let (entry, digests) = (Arc::clone(entry), reading.digests);
    Some(Put {
        kind,
        id,
        iri,
        keys,
        entry,
        published_us,
        digests,
        witnesses,
    })
}

/// Two days: how far ahead of us a publisher's clock may be before its dates are not believed
/// (LEGACY section 4).
const AHEAD_MAX_SECS: u64 = 2 * 86_400;

/// True for a date of publication that is plausible, and not to come.
pub(super) fn believable(at_us: i64, now: Stamp) -> bool {
    plausible(Some(at_us)).is_some_and(|at| at <= now.plus_secs(AHEAD_MAX_SECS).into())
}

fn deleted_key(namespace: &str, deletion: &Deletion) -> KeyHash {
    KeyHash::of(namespace, &Key::Id(deletion.reference.clone()).stripped())
}

/// The publisher's deletions, and the items of this document and of the store that they end.
struct ExplicitDeletions<'a> {
    /// By the key of the id that is said to be deleted.
    by_key: HashMap<KeyHash, &'a Deletion>,
    /// Live items that end with this document.
    ending: Vec<(ItemId, &'a Deletion)>,
    ended: HashSet<ItemId>,
}

impl<'a> ExplicitDeletions<'a> {
    fn new(namespace: &str, known: &Known, seen: &'a Observation) -> Self {
        let mut by_key: HashMap<KeyHash, &Deletion> = HashMap::new();
        for deletion in &seen.deletions {
            let latest = by_key
                .entry(deleted_key(namespace, deletion))
                .or_insert(deletion);
            if when(deletion) > when(latest) {
                *latest = deletion;
            }
        }
        // An entry of the document speaks for its item; only for the rest does what is held back,
        // or the stored version.
        let mut present: HashMap<KeyHash, &Entry> = HashMap::new();
        for reading in seen.entries.iter().filter_map(ObservedEntry::parsed) {
            let key = KeyHash::of(namespace, &reading.key.stripped());
            let held = present.entry(key).or_insert(&reading.entry);
            if chronology::touched(&reading.entry) > chronology::touched(held) {
                *held = &reading.entry;
            }
        }
        let mut ending: Vec<(ItemId, &Deletion)> = Vec::new();
        for (key, &deletion) in &by_key {
            let Some(item) = known.items.get(key).filter(|item| !item.is_gone()) else {
                continue;
            };
            let mut deferred = known.window.deferred.iter();
            let waiting = deferred.find(|held| held.id == item.id);
            let entry = match (present.get(key), waiting) {
                (Some(entry), _) => Some(*entry),
                (None, Some(held)) => Some(&*held.entry),
                (None, None) => item.entry(),
            };
            if entry.is_some_and(|entry| deletes(deletion, entry)) {
                ending.push((item.id, deletion));
            }
        }
        // Tombstones come in the publisher's order of deletion, so that equal documents decide
        // equally.
        ending.sort_by_key(|(id, deletion)| (when(deletion), *id));
        ending.dedup_by_key(|(id, _)| *id);
        let ended = ending.iter().map(|(id, _)| *id).collect();
        Self {
            by_key,
            ending,
            ended,
        }
    }

    /// True when the document itself says that this entry is deleted, or our operator had it
    /// removed, so that it neither appears nor comes back.
    fn suppress(&self, bound: &BoundEntry<'_>) -> bool {
        let said = self
            .by_key
            .get(&bound.key)
            .is_some_and(|deletion| deletes(deletion, &bound.reading.entry));
        let is_forgotten = || {
            bound
                .target
                .item()
                .is_some_and(|item| item.content.is_forgotten())
        };
        said || self.ended.contains(&bound.target.id()) || is_forgotten()
    }

    fn ends(&self, id: ItemId) -> bool {
        self.ended.contains(&id)
    }

    fn tombstones(&self, now: Stamp) -> impl Iterator<Item = Change> {
        self.ending.iter().map(move |(id, deletion)| {
            let evidence = Evidence {
                when: deletion.when.as_ref().map(|when| when.raw.clone()),
                comment: deletion.comment.clone(),
                ..Evidence::new(Reason::Explicit, now)
            };
            let delete = Delete {
                id: *id,
                reason: Reason::Explicit,
                first_missing: Some(now),
                last_seen: None,
                evidence,
            };
            Change::Delete(delete)
        })
    }
}

fn when(deletion: &Deletion) -> Option<i64> {
    deletion.when.as_ref().and_then(|when| when.at_us)
}

/// RFC 6721 section 3: deleted unless the entry was updated after the deletion. Where either date
/// is missing the publisher's word stands: it was said on purpose.
fn deletes(deletion: &Deletion, entry: &Entry) -> bool {
    let touched = chronology::touched(entry).map(Moment::micros);
    match (when(deletion), touched) {
        (Some(when), Some(touched)) => when >= touched,
        _ => true,
    }
}
