//! Observations: what documents and permalink checks came to.

use super::{
    StoredKind,
    table::{stored_enums, stored_structs},
};
use crate::feed::{
    absence::Coverage,
    observation_record::{ObservationCounts, ObservationRecord},
};

impl StoredKind for ObservationRecord {
    const NAME: &'static str = "observation";
}

stored_structs! {
    ObservationRecord {
        at, coverage, partial, again, counts, events, remark, page,
    }
    ObservationCounts { entries, new, edited, revived, missing, suspects, rolled_off, gone }
}

stored_enums! {
    Coverage { 0 Unconditional, 1 Conditional, 2 Partial, 3 Delta }
}
