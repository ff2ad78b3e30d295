//! Changes by one document to a feed. Pure: deciding is done here, applying is the store's
//! business.

use super::{
    absence::{
        AbsenceState, Coverage, ShownItem, Suspect, WindowEvent, archives::ArchiveSuspect,
        recent_tombstone::RecentTombstone, revival::DocumentDates,
    },
    item::{Item, ItemDigests, ItemId, KeyHash, Reason},
    moment::Moment,
    record::IdRule,
    schedule::Repeat,
    stamp::Stamp,
};
use everfeed_adapters::{Deletion, Digest, Entry, Key, Note, platforms::Profile};
use std::{
    collections::{HashMap, HashSet},
    sync::Arc,
};

mod observe;

mod bind;

mod witnesses;

mod same_post;

mod changed_url;

mod rename;

mod correction;

pub(super) mod chronology;

mod decide;

mod unshown_dates;

mod edit;

mod flood_limiter;

mod churn;

mod difference;

mod figures;

pub use changed_url::KinshipSigns;
pub use churn::{MovedStretch, MovingEntry, PartMoves, RestlessPart};
pub use correction::{Agreement, Correction};
pub use decide::{
    ended_in_archives, keys_needed, recheck_tombstone, reconcile, reconcile_again, reconcile_check,
    release, witness_keys,
};
pub use difference::EntryPart;
pub use flood_limiter::DeferredEdit;
pub use observe::observe;
pub use rename::join;
pub use unshown_dates::{unshown, unshown_dates};
pub use witnesses::address_witness;

/// The date by which its publisher sorts an entry, microseconds since 1970, if it is plausible.
pub fn dated(entry: &Entry) -> Option<i64> {
    chronology::date(entry).map(Moment::micros)
}

#[cfg(test)]
mod tests;

/// One entry of the last document, in document order: enough to skip it when its bytes have not
/// changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WindowEntry {
    /// The key that bound it to its item.
    pub key: KeyHash,
    /// The item.
    pub id: ItemId,
    /// Digest of the entry's bytes.
    pub raw: Digest,
    /// The date by which its publisher sorts it, microseconds since 1970.
    pub dated: Option<i64>,
    /// Number of earlier deletions of the item.
    pub tombstone_count: u8,
    /// True when nothing but its title or its content names it.
    pub is_weak: bool,
    /// Polls running in which its content changed, that of this document included.
    pub changed_polls: u16,
    /// Time of the first of them.
    pub changing_since: Option<Stamp>,
}

impl WindowEntry {
    /// The entry as a document shows it; `is_known` when its item was alive before.
    fn shown(&self, is_known: bool) -> ShownItem {
        ShownItem {
            id: self.id,
            dated: self.dated,
            is_known,
            tombstone_count: self.tombstone_count,
            is_weak: self.is_weak,
        }
    }
}

/// Stored facts that a decision needs, all read at one revision.
#[derive(Clone, Debug, Default)]
pub struct Known {
    /// The revision read; a commit on top of another one is a conflict.
    pub rev: u64,
    /// Rule by which ids are told apart.
    pub id_rule: IdRule,
    /// State of the window after the last documents.
    pub window: WindowState,
    /// The items behind the keys that were asked for; unknown keys are absent.
    pub items: HashMap<KeyHash, Arc<Item>>,
    /// Items that share a witness with an entry whose key is unknown ([`witness_keys`]): it may be
    /// one of them.
    pub lookalikes: Vec<Arc<Item>>,
}

/// State of a feed's window from one poll to the next.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct WindowState {
    /// The last document's entries, at most [`WINDOW_ENTRIES_MAX`].
    pub entries: Vec<WindowEntry>,
    /// Facts by which absence from the next document is judged.
    pub absence: AbsenceState,
    /// Forms of items that are not committed yet, since their entries change with every poll.
    pub deferred: Vec<DeferredEdit>,
    /// Time at which the feed was last seen being reformatted; `None` once a day has passed since.
    pub reformatted_at: Option<Stamp>,
    /// Items that walks through the archives missed; whatever shows one again takes it out.
    pub archive_suspects: Vec<ArchiveSuspect>,
    /// Tombstones of the last thirty days whose pages are asked for again.
    pub tombstones: Vec<RecentTombstone>,
    /// The last items that were recognised in their places under other ids, oldest first.
    pub corrections: Vec<Correction>,
    /// Parts that move in the whole feed without an edit.
    pub restless: Vec<RestlessPart>,
    /// Entries that changed within the last two days, by item.
    pub moving: Vec<MovingEntry>,
}

impl WindowState {
    /// Time of the next permalink check: of a suspect, or of a tombstone.
    pub fn next_check_at(&self) -> Option<Stamp> {
        let of_tombstones = self.tombstones.iter().map(|gone| gone.next_at);
        of_tombstones.chain(self.absence.next_check_at()).min()
    }

    // Decides: What goes when an item is removed for good?
    /// The same without anything of an item, as if it had never been in a document.
    pub fn without(mut self, id: ItemId) -> Self {
        self.entries.retain(|row| row.id != id);
        self.absence = self.absence.without(&HashSet::from([id]));
        self.deferred.retain(|held| held.id != id);
        self.archive_suspects.retain(|missed| missed.id != id);
        self.tombstones.retain(|gone| gone.id != id);
        self.corrections.retain(|mended| mended.id != id);
        self.moving.retain(|row| row.id != id);
        self
    }

    /// Posts of the last document that may be the control of a permalink check, the best first:
    /// those from the middle, which are neither pinned nor brand-new.
    pub fn control_candidates(&self) -> Vec<ItemId> {
        let missing: HashSet<ItemId> = self
            .absence
            .items
            .iter()
            .filter(|row| row.suspect.is_some())
            .map(|row| row.id)
            .collect();
        let shown = self
            .entries
            .iter()
            .map(|row| row.id)
            .filter(|id| !missing.contains(id));
        let mut shown: Vec<(usize, ItemId)> = shown.enumerate().collect();
        let middle = shown.len() / 2;
        shown.sort_by_key(|(at, _)| at.abs_diff(middle));
        shown.into_iter().map(|(_, id)| id).collect()
    }
}

/// Rows of a window that are remembered; entries after them are compared by key look-up.
// Limit: what stands behind them is not missed when it goes.
pub const WINDOW_ENTRIES_MAX: usize = 1000;

/// One document, as far as it differs from what is remembered of the last.
#[derive(Clone, Debug, Default)]
pub struct Observation {
    /// The entries in document order.
    pub entries: Vec<ObservedEntry>,
    /// Deletions that the publisher names.
    pub deletions: Vec<Deletion>,
    /// Deletions that prove nothing, and are a reason to ask for the pages of their items.
    pub deletion_hints: Vec<Deletion>,
    /// Coverage of the document.
    pub coverage: Coverage,
    /// Whose scrubbers made the content digests.
    pub profile: Option<Arc<Profile>>,
    /// Change, or none, that the poll before it brought. After one without any, no entry of it has
    /// changed with every poll up to now; a resource, which is there to change, counts as such.
    pub previous: Repeat,
    /// Dates of the document, by which an old copy is told.
    pub dates: DocumentDates,
    /// Items that other documents show at the same time, as the pages of one walk do: no entry of
    /// this one is one of them under another id.
    pub elsewhere: HashSet<ItemId>,
    /// Oddities of the entries that were parsed.
    pub notes: Vec<Note>,
}

/// One entry of a document.
#[derive(Clone, Debug)]
pub enum ObservedEntry {
    /// Byte for byte what it was in the last document.
    Same(WindowEntry),
    /// New or changed, so it was parsed.
    Read(Box<ParsedEntry>),
}

impl ObservedEntry {
    /// The item of an entry that is what it was.
    fn same(&self) -> Option<ItemId> {
        match self {
            Self::Same(row) => Some(row.id),
            Self::Read(_) => None,
        }
    }

    /// The entry, if it was parsed.
    pub fn parsed(&self) -> Option<&ParsedEntry> {
        match self {
            Self::Same(_) => None,
            Self::Read(entry) => Some(entry),
        }
    }

    /// The same by value.
    pub fn into_parsed(self) -> Option<ParsedEntry> {
        match self {
            Self::Same(_) => None,
            Self::Read(entry) => Some(*entry),
        }
    }
}

/// An entry that was parsed.
#[derive(Clone, Debug)]
pub struct ParsedEntry {
    /// Key of the entry.
    pub key: Key,
    /// The name that readers get for it, where that is not its key: the address of a resource.
    pub name: Option<String>,
    /// The entry.
    pub entry: Arc<Entry>,
    /// The digests of its bytes and of its content.
    pub digests: ItemDigests,
}

/// Changes by a document.
#[derive(Clone, Debug, Default)]
pub struct Decisions {
    /// In the order in which they get their T: additions, edits and resurrections oldest to newest,
    /// then tombstones.
    pub changes: Vec<Change>,
    /// Keys that are other names of items held: they answer for them from now on, and nothing
    /// visible changes.
    pub aliases: Vec<(KeyHash, ItemId)>,
    /// State from now on.
    pub window: WindowState,
    /// Events for the operator.
    pub events: Vec<WindowEvent>,
    /// Coverage of the document.
    pub coverage: Coverage,
    /// Items of the remembered window that the document lacks.
    pub missing: usize,
    /// Items that left by the end of the window with it.
    pub rolled_off: usize,
    /// Rule by which ids are told apart from now on.
    pub id_rule: IdRule,
    /// Items that the document shows under ids that were unknown.
    pub renamed: usize,
}

impl Decisions {
    /// No change: everything stays as it is known.
    pub fn none(known: &Known) -> Self {
        Self {
            window: known.window.clone(),
            id_rule: known.id_rule,
            ..Self::default()
        }
    }
}

/// One change to a feed. The store gives each the next T, in the order given.
#[derive(Clone, Debug, PartialEq)]
pub enum Change {
    /// An item appears, changes or comes back to life.
    Put(Put),
    /// An item becomes a tombstone.
    Delete(Delete),
}

impl Change {
    /// The reason of a tombstone; `None` for an item that lives.
    pub fn tombstone_reason(&self) -> Option<Reason> {
        match self {
            Self::Put(_) => None,
            Self::Delete(delete) => Some(delete.reason),
        }
    }

    /// The item that changes.
    pub fn id(&self) -> ItemId {
        match self {
            Self::Put(put) => put.id,
            Self::Delete(delete) => delete.id,
        }
    }
}

/// An item's new content.
#[derive(Clone, Debug, PartialEq)]
pub struct Put {
    /// Kind of the change.
    pub kind: PutKind,
    /// Which item.
    pub id: ItemId,
    /// Its IRI; kept from the first time, so only looked at when it is added.
    pub iri: String,
    /// Keys to bind to the item that are not bound yet.
    pub keys: Vec<KeyHash>,
    /// The content.
    pub entry: Arc<Entry>,
    /// The publisher's date, microseconds since 1970, if it is plausible.
    pub published_us: Option<i64>,
    /// Digests that the next poll is compared with.
    pub digests: ItemDigests,
    /// Keys by which an entry of the same post finds the item when its own key is unknown.
    pub witnesses: Vec<KeyHash>,
}

/// Kind of a put.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PutKind {
    /// Never seen before.
    Added,
    /// Its content digest changed.
    Edited,
    /// It was a tombstone.
    Revived,
}

/// An item's end.
#[derive(Clone, Debug, PartialEq)]
pub struct Delete {
    /// Which item.
    pub id: ItemId,
    /// The reason code.
    pub reason: Reason,
    /// Time at which it was first missed.
    pub first_missing: Option<Stamp>,
    /// Time at which it was last seen.
    pub last_seen: Option<Stamp>,
    /// Evidence, kept beside the tombstone.
    pub evidence: Evidence,
}

/// Evidence of a deletion.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Evidence {
    /// The reason code.
    pub reason: Reason,
    /// Time of the document that proves it.
    pub observed_at: Stamp,
    /// The publisher's own `when`, as written.
    pub when: Option<String>,
    /// The publisher's own comment.
    pub comment: Option<String>,
    /// Suspect as documents missed it.
    pub suspect: Option<Suspect>,
    /// Suspect as walks through the archives missed it.
    pub archive_suspect: Option<ArchiveSuspect>,
}

impl Evidence {
    /// Evidence of a document of this time, which says no more than the reason.
    pub fn new(reason: Reason, observed_at: Stamp) -> Self {
        Self {
            reason,
            observed_at,
            when: None,
            comment: None,
            suspect: None,
            archive_suspect: None,
        }
    }
}
