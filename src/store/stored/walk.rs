//! Archive walks and their staged pages.

use super::{
    Out, ReadError, Stored, StoredKind, Written,
    table::{Fields, stored_enums, stored_structs},
};
use crate::feed::archive::{
    ArchiveWalk, Completion, CountedPages, CounterPlace, EndClaim, EndSign, EndStep, PageAddress,
    PageRetry, PreviousWalk, StagedBody, StagedPage, Strategy, WalkCounts, WalkFindings, WalkPhase,
};
use crate::feed::history::PartialReason;
use minicbor::Decoder;

impl StoredKind for ArchiveWalk {
    const NAME: &'static str = "walk";
    const VERSION: u8 = 2;

    fn read(version: u8, input: &mut Decoder<'_>) -> Result<Self, ReadError> {
        match version {
            1 => first_walk(input),
            2 => Self::take(input),
            _ => Err(ReadError::message(format!(
                "it has the unknown version {version}"
            ))),
        }
    }
}

impl StoredKind for StagedPage {
    const NAME: &'static str = "staged-page";
    const VERSION: u8 = 2;

    fn read(version: u8, input: &mut Decoder<'_>) -> Result<Self, ReadError> {
        match version {
            1 => first_page(input),
            2 => Self::take(input),
            _ => Err(ReadError::message(format!(
                "it has the unknown version {version}"
            ))),
        }
    }
}

stored_structs! {
    ArchiveWalk {
        started_at, feed, ways, phase, next_at, before, counts, findings, retry; but trail
    }
    WalkCounts { pages, on_way, barren, bytes, base, kept, way_from, backs, total, last }
    WalkFindings {
        named, fits, doubtful, damaged, held_whole, marked, flaw, lacks, holes, proof,
    }
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
    CounterPlace { 0 Query(name), 1 Path(path) }
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

/// Place of a walk, as version 1 wrote it.
enum FirstPhase {
    At(String),
    Recount,
    Boundary,
    Paused {
        url: String,
        reason: PartialReason,
        rounds: u8,
    },
    Done(Completion),
}

stored_enums! {
    FirstPhase { 0 At(url), 1 Recount, 2 Boundary, 3 Paused { url, reason, rounds }, 4 Done(completion) }
}

/// A walk of version 1: its fields stood in one list, and a page looked like the end without a
/// proof.
fn first_walk(input: &mut Decoder<'_>) -> Result<ArchiveWalk, ReadError> {
    let mut fields = Fields::begin(input, 19)?;
    let started_at = fields.next(input, "started_at")?;
    let feed: String = fields.next(input, "feed")?;
    let ways = fields.next(input, "ways")?;
    let phase: FirstPhase = fields.next(input, "phase")?;
    let next_at = fields.next(input, "next_at")?;
    let mut counts = WalkCounts {
        pages: fields.next(input, "pages")?,
        on_way: fields.next(input, "on_way")?,
        barren: fields.next(input, "barren")?,
        ..WalkCounts::default()
    };
    let tries: u8 = fields.next(input, "tries")?;
    counts.bytes = fields.next(input, "bytes")?;
    counts.base = fields.next(input, "base")?;
    counts.kept = fields.next(input, "kept")?;
    counts.way_from = counts.base;
    let before = fields.next(input, "before")?;
    let fits = fields.next(input, "fits")?;
    let _: bool = fields.next(input, "alone")?;
    let (doubtful, damaged) = (
        fields.next(input, "doubtful")?,
        fields.next(input, "damaged")?,
    );
    let (named, flaw) = (fields.next(input, "named")?, fields.next(input, "flaw")?);
    let findings = WalkFindings {
        fits,
        doubtful,
        damaged,
        named,
        flaw,
        ..WalkFindings::default()
    };
    let (phase, retry) = match phase {
        FirstPhase::At(url) => (WalkPhase::At(url), None),
        FirstPhase::Paused {
            url,
            reason,
            rounds,
        } => (
            WalkPhase::At(url),
            Some(PageRetry {
                reason,
                tries,
                rounds,
            }),
        ),
        // The live document was looked at once more: the pages themselves were read.
        FirstPhase::Recount | FirstPhase::Boundary => (WalkPhase::Done(Completion::Complete), None),
        FirstPhase::Done(completion) => (WalkPhase::Done(completion), None),
    };
    let trail = Default::default();
    Ok(ArchiveWalk {
        started_at,
        feed,
        ways,
        phase,
        retry,
        next_at,
        before,
        counts,
        findings,
        trail,
    })
}

/// A page of version 1: its fields stood in one list.
fn first_page(input: &mut Decoder<'_>) -> Result<StagedPage, ReadError> {
    let mut fields = Fields::begin(input, 11)?;
    let no = fields.next(input, "no")?;
    let address = PageAddress {
        url: fields.next(input, "url")?,
        landed: fields.next(input, "landed")?,
        base_url: fields.next(input, "base_url")?,
    };
    Ok(StagedPage {
        no,
        address,
        content_type: fields.next(input, "content_type")?,
        content_language: fields.next(input, "content_language")?,
        read_at: fields.next(input, "read_at")?,
        body: fields.next(input, "body")?,
        keys: fields.next(input, "keys")?,
        strong: fields.next(input, "strong")?,
        content: fields.next(input, "deflated")?,
    })
}
