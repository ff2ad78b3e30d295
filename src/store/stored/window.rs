//! The window of a feed: the entries of its last full document, and what waits or is missed beside
//! them.

use super::{
    StoredKind,
    table::{stored_enums, stored_structs},
};
use crate::feed::{
    archive::ArchiveSuspect,
    reconcile::{Agreement, Correction, DeferredEdit, WindowEntry, WindowState},
};

impl StoredKind for WindowState {
    const NAME: &'static str = "window";
}

stored_structs! {
    WindowState { entries, absence, deferred, reformatted_at, archive_suspects, tombstones, corrections }
    WindowEntry { key, id, raw, dated, tombstone_count, is_weak, changed_polls }
    DeferredEdit { id, key, until, entry, published_us, digests }
    Correction { id, at, agreement }
    ArchiveSuspect { id, since, last_seen, walks }
}

stored_enums! {
    Agreement { 0 Date, 1 Title }
}
