//! What is remembered of a feed for the sake of what its next document lacks.

use super::table::{stored_enums, stored_newtypes, stored_structs};
use crate::feed::absence::{
    AbsenceState, CheckResult, Direction, DocumentStanding, DoubtReason, LackedItems, NewestEnd, PageFinding,
    PermalinkCheck, Pinned, Recurrence, Suspect, WindowEvent, WindowItem,
};

stored_newtypes! { Pinned }

stored_structs! {
    AbsenceState {
        items, lengths, direction, last_document, unstable, seen_at, quarantined_since, trust, lacked, ended, recurrence, pinned,
    }
    WindowItem { id, dated, tombstone_count, is_weak, suspect }
    LackedItems { answers, ids }
    Suspect {
        since, last_seen, counted_at, count, audited, strong, behind, backfilled, permalink_check, before_few,
    }
    PermalinkCheck { due, last, asked, not_found_since, silent, finding }
    Recurrence { seen, ended, doubted, off }
    Direction { inserts, known }
}

stored_enums! {
    DocumentStanding { 0 Judged, 1 Doubted, 2 Empty, 3 SetAside }
    WindowEvent {
        0 Gap, 1 Rebaselined, 2 Quarantined, 3 QuarantineEnded, 4 DailyLimit, 5 Reformatted, 6 Doubted, 7 AbsenceOff,
        8 Pinned,
    }
    DoubtReason { 0 Returned, 1 Revived }
    CheckResult { 0 Gone, 1 NotFound, 2 Shown, 3 Another, 4 Elsewhere, 5 Nothing, 6 NoPage }
    PageFinding { 0 Open, 1 Hidden, 2 Gone }
    NewestEnd { 0 First, 1 Last }
}
