//! Observations: what documents and permalink checks came to.

use super::{
    StoredKind,
    table::{stored_enums, stored_structs},
};
use crate::feed::{absence::Coverage, observation_record::ObservationRecord};

impl StoredKind for ObservationRecord {
    const NAME: &'static str = "observation";
}

stored_structs! {
    ObservationRecord {
        at, coverage, partial, again, entries, new, edited, revived, missing, suspects, rolled_off, gone, events, remark,
        page,
    }
}

stored_enums! {
    Coverage { 0 Unconditional, 1 Conditional, 2 Partial }
}
