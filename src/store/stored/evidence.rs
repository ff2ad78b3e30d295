//! The evidence of a tombstone.

use super::{StoredKind, table::stored_structs};
use crate::feed::reconcile::Evidence;

impl StoredKind for Evidence {
    const NAME: &'static str = "evidence";
}

stored_structs! {
    Evidence { reason, observed_at, when, comment, suspect, archive_suspect }
}
