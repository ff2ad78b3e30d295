//! The window of a feed: the entries of its last full document, and what waits or is missed beside
//! them.

use super::{
    StoredKind,
    table::{stored_enums, stored_structs},
};
use crate::feed::{
    archive::ArchiveSuspect,
    reconcile::{
        Agreement, Correction, DeferredEdit, EntryPart, MovedStretch, MovingEntry, PartMoves,
        RestlessPart, WindowEntry, WindowState,
    },
};

impl StoredKind for WindowState {
    const NAME: &'static str = "window";
}

stored_structs! {
    WindowState { entries, absence, deferred, reformatted_at, archive_suspects, tombstones, corrections, restless, moving }
    WindowEntry { key, id, raw, dated, tombstone_count, is_weak, changed_polls, changing_since }
    DeferredEdit { id, key, until, entry, published_us, digests, stretches, shown_since, shown_polls }
    MovedStretch { part, start, end, given, since, sightings, moves, is_whole }
    Correction { id, at, agreement }
    RestlessPart { part, by_turns, since, moved_at, is_count }
    MovingEntry { id, moved_at, forms, parts }
    PartMoves { part, count, by_turns, is_count, has_fallen }
    ArchiveSuspect { id, since, last_seen, walks }
}

stored_enums! {
    Agreement { 0 Date, 1 Title, 2 Place }
    EntryPart { 0 Title, 1 Summary, 2 Content, 3 Links, 4 Files, 5 People, 6 Categories, 7 Other }
}
