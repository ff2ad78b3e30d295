//! The evidence of a tombstone.

use super::{Kind, table::stored_structs};
use crate::feed::reconcile::Evidence;

impl Kind for Evidence {
    const NAME: &'static str = "evidence";
}

stored_structs! {
    Evidence { reason, observed_at, when, comment, suspect, archive_suspect }
}
