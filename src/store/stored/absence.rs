//! State of a feed's window by which the next document is judged.

use super::{
    Out, Stored, Written,
    table::{Fields, stored_enums, stored_newtypes, stored_structs},
};
use crate::feed::{
    absence::{
        AbsenceState, CheckResult, ControlFinding, DailyCount, Direction, DocumentStanding,
        DoubtReason, LackedItems, NewestEnd, NextCheck, PageControl, PageFinding, PermalinkCheck,
        Pinned, Recurrence, Suspect, SuspectBasis, WindowEvent, WindowItem, departures::Departure,
        recent_tombstone::RecentTombstone,
    },
    stamp::Stamp,
};
use minicbor::{Decoder, data::Type, decode::Error as ReadError};

stored_newtypes! { Pinned }

/// Stores a struct whose fields stand in groups as one list of them all: grouping them anew changes
/// nothing that is stored. New fields are put at the end.
macro_rules! stored_groups {
    ($name:ident { $($($field:ident).+),* $(,)? }) => {
        impl Stored for $name {
            fn put(&self, out: &mut Out) -> Written {
                let written = [$(!self.$($field).+.is_missing()),*];
                let count = written.iter().rposition(|is_written| *is_written).map_or(0, |last| last + 1);
                out.array(count as u64)?;
                let mut left = count;
                $(
                    if left > 0 {
                        self.$($field).+.put(out)?;
                        left -= 1;
                    }
                )*
                debug_assert!(left == 0);
                Ok(())
            }

            fn take(input: &mut Decoder<'_>) -> Result<Self, ReadError> {
                let known = [$(stringify!($($field).+)),*].len();
                let mut fields = Fields::begin(input, known)?;
                let mut value = Self::default();
                $(value.$($field).+ = fields.next(input, stringify!($($field).+))?;)*
                Ok(value)
            }
        }
    };
}

stored_groups! {
    AbsenceState {
        items, documents.lengths, documents.direction, documents.standing, documents.unstable, documents.seen_at,
        quarantined_since, conditional.level, conditional.lacked, ended, recurrence, pinned,
        control, departures.rows, departures.is_unordered, departures.day, departures.asked,
        revivals.waiting, revivals.refuted, revivals.refuted_at, revivals.newest.made_us,
        revivals.newest.modified_us, revivals.newest.updated_us, documents.capped,
        last_believed, documents.perhaps_capped, documents.rolls_off_at_end,
    }
}

stored_structs! {
    WindowItem { id, dated, tombstone_count, is_weak, suspect }
    LackedItems { answers, ids }
    Suspect {
        since, last_seen, counted_at, count, audited, strong, behind, backfilled, permalink_check, basis,
    }
    StoredCheck { due, last, asked, not_found_since, silent, finding }
    PageControl { at, finding, failing_since, failed, alike, landing }
    RecentTombstone { id, ended_at, next_at, entry, published_us, digests }
    Recurrence { seen, ended, doubted, off }
    Direction { inserts, known, pins, unknown }
    Departure { id, tombstone_count, last_seen, since, check, is_proven }
}

stored_enums! {
    DocumentStanding { 0 Judged, 1 Doubted, 2 Empty, 3 SetAside }
    WindowEvent {
        0 Gap, 1 Rebaselined, 2 Quarantined, 3 QuarantineEnded, 4 DailyLimit, 5 Reformatted, 6 Doubted, 7 AbsenceOff,
        8 Pinned, 9 QuarantineDecided,
    }
    DoubtReason { 0 Returned, 1 Revived }
    CheckResult { 0 Gone, 1 NotFound, 2 Shown, 3 Another, 4 Elsewhere, 5 Nothing, 6 NoPage, 7 Uninformative(why) }
    ControlFinding { 0 NoPost, 1 Shown, 2 Silent, 3 NotFound, 4 Gone, 5 Refused, 6 Elsewhere, 7 FrontPage }
    StoredFinding { 0 Open, 1 Hidden, 2 Gone }
    NewestEnd { 0 First, 1 Last }
}

/// At first a flag, set for a suspect before pinned entries.
impl Stored for SuspectBasis {
    fn put(&self, out: &mut Out) -> Written {
        match self {
            Self::Documents => false.put(out),
            Self::PageBeforeFew => true.put(out),
            Self::PageOfMany => 2_u8.put(out),
            Self::PageOfModified => 3_u8.put(out),
            Self::PageOfDeparted => 4_u8.put(out),
        }
    }

    fn take(input: &mut Decoder<'_>) -> Result<Self, ReadError> {
        match input.datatype()? {
            Type::Bool => Ok(if input.bool()? {
                Self::PageBeforeFew
            } else {
                Self::Documents
            }),
            _ => match input.u8()? {
                2 => Ok(Self::PageOfMany),
                3 => Ok(Self::PageOfModified),
                4 => Ok(Self::PageOfDeparted),
                other => Err(ReadError::message(format!(
                    "SuspectBasis has no variant {other}"
                ))),
            },
        }
    }

    fn missing() -> Option<Self> {
        Some(Self::Documents)
    }

    fn is_missing(&self) -> bool {
        *self == Self::Documents
    }
}

impl Stored for DailyCount {
    fn put(&self, out: &mut Out) -> Written {
        (self.since, self.count).put(out)
    }

    fn take(input: &mut Decoder<'_>) -> Result<Self, ReadError> {
        let (since, count) = Stored::take(input)?;
        Ok(Self { since, count })
    }
}

/// A permalink check as it is stored: moments beside their states.
struct StoredCheck {
    due: Option<Stamp>,
    last: Option<(Stamp, CheckResult)>,
    asked: u8,
    not_found_since: Option<Stamp>,
    silent: u8,
    finding: StoredFinding,
}

enum StoredFinding {
    Open,
    Hidden,
    Gone,
}

impl Stored for PermalinkCheck {
    fn put(&self, out: &mut Out) -> Written {
        let (finding, not_found_since) = match self.finding {
            PageFinding::Open => (StoredFinding::Open, None),
            PageFinding::NotFoundSince(since) => (StoredFinding::Open, Some(since)),
            PageFinding::Hidden => (StoredFinding::Hidden, None),
            PageFinding::Gone => (StoredFinding::Gone, None),
        };
        let Self {
            last,
            asked,
            silent,
            ..
        } = *self;
        StoredCheck {
            due: self.due(),
            last,
            asked,
            not_found_since,
            silent,
            finding,
        }
        .put(out)
    }

    fn take(input: &mut Decoder<'_>) -> Result<Self, ReadError> {
        let StoredCheck {
            due,
            last,
            asked,
            not_found_since,
            silent,
            finding,
        } = Stored::take(input)?;
        let next = match due {
            Some(at) => NextCheck::At(at),
            None if last.is_some() => NextCheck::Over,
            None => NextCheck::Never,
        };
        let finding = match (finding, not_found_since) {
            (StoredFinding::Open, Some(since)) => PageFinding::NotFoundSince(since),
            (StoredFinding::Open, None) => PageFinding::Open,
            (StoredFinding::Hidden, _) => PageFinding::Hidden,
            (StoredFinding::Gone, _) => PageFinding::Gone,
        };
        Ok(Self {
            next,
            last,
            asked,
            silent,
            finding,
        })
    }
}
