//! Archive walks and their staged pages.

use super::{
    Out, ReadError, Stored, StoredKind, Written,
    table::{stored_enums, stored_structs},
};
use crate::feed::archive::{
    ArchiveWalk, BuildDates, Completion, CountedPages, CounterPart, EndClaim, EndSign, EndStep,
    PageAddress, PageRetry, PreviousWalk, StagedBody, StagedPage, Strategy, WalkCounts,
    WalkFindings, WalkPhase,
};
use minicbor::Decoder;

impl StoredKind for ArchiveWalk {
    const NAME: &'static str = "walk";
    const VERSION: u8 = 2;
}

impl StoredKind for StagedPage {
    const NAME: &'static str = "staged-page";
    const VERSION: u8 = 2;
}

stored_structs! {
    ArchiveWalk {
        started_at, feed, ways, phase, next_at, before, counts, findings, retry; but trail
    }
    WalkCounts { pages, on_way, barren, bytes, base, kept, way_from, backs, total, last, requests, guesses }
    WalkFindings {
        named, fits, doubtful, damaged, held_whole, marked, flaw, lacks, holes, proof, built,
    }
    BuildDates { latest_us, is_of_site, older, last, doubted, inversions }
    PageRetry { reason, tries, rounds }
    EndClaim { url, sign }
    StagedPage {
        no, address, content_type, content_language, read_at, body, keys, strong, content,
    }
    PageAddress { url, landed, base_url }
    CountedPages { place, at, entries, start, with, step }
}

stored_enums! {
    WalkPhase { 0 At(url), 1 Ending(claim, step), 2 Done(completion) }
    EndSign {
        0 Missing { status }, 1 Empty, 2 Repeat, 3 Tail, 4 NothingNew, 5 NoLink, 6 Total { items }, 7 Feed, 8 Circle,
        9 NoFeed, 10 Foreign, 11 Denied(reason), 12 Failing(reason),
    }
    EndStep { 0 Further, 1 Again, 2 Hole, 3 Check { no, stride }, 4 First, 5 Beyond }
    Completion { 0 Complete, 1 Unknown, 2 Partial(reason) }
    PreviousWalk { 0 None, 1 By(strategy), 2 WithoutStrategy }
    Strategy { 0 Archives, 1 Pages { rel }, 2 CountedPages(pages), 3 Whole { most } }
    CounterPart { 0 Query(name), 1 Path(path) }
}

/// The deflated bytes; none at all of a page of which only the traces are kept.
impl Stored for StagedBody {
    fn put(&self, out: &mut Out) -> Written {
        match self {
            Self::Waiting(deflated) => deflated.put(out),
            Self::Traces => Vec::<u8>::new().put(out),
        }
    }

    fn take(input: &mut Decoder<'_>) -> Result<Self, ReadError> {
        let deflated = Vec::<u8>::take(input)?;
        Ok(if deflated.is_empty() {
            Self::Traces
        } else {
            Self::Waiting(deflated)
        })
    }

    fn missing() -> Option<Self> {
        Some(Self::Traces)
    }

    fn is_missing(&self) -> bool {
        *self == Self::Traces
    }
}
