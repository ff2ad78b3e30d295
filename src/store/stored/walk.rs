//! Archive walks and their staged pages.

use super::{
    StoredKind,
    table::{stored_enums, stored_structs},
};
use crate::feed::archive::{
    ArchiveWalk, Completion, CountedPages, CounterPlace, PreviousWalk, StagedPage, Strategy, WalkPhase,
};

impl StoredKind for ArchiveWalk {
    const NAME: &'static str = "walk";
}

impl StoredKind for StagedPage {
    const NAME: &'static str = "staged-page";
}

stored_structs! {
    ArchiveWalk {
        started_at, feed, ways, phase, next_at, pages, on_way, barren, tries, bytes, base, kept, before, fits, alone,
        doubtful, damaged, named, flaw; but trail
    }
    StagedPage {
        no, url, landed, base_url, content_type, content_language, read_at, body, keys, strong, deflated,
    }
    CountedPages { place, at, entries, start, with }
}

stored_enums! {
    WalkPhase { 0 At(url), 1 Recount, 2 Boundary, 3 Paused { url, reason, rounds }, 4 Done(completion) }
    Completion { 0 Complete, 1 Unknown, 2 Partial(reason) }
    PreviousWalk { 0 None, 1 By(strategy), 2 WithoutStrategy }
    Strategy { 0 Archives, 1 Pages { rel }, 2 CountedPages(pages), 3 Whole { most } }
    CounterPlace { 0 Query(name), 1 Path(path) }
}
