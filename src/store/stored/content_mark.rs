//! The high-water mark of a store's content.

use super::{StoredKind, table::stored_structs};
use crate::{feed::stamp::Stamp, store::content_mark::ContentMark};

impl StoredKind for ContentMark {
    const NAME: &'static str = "content-mark";
}

// The time at which a backup was made.
impl StoredKind for Stamp {
    const NAME: &'static str = "time";
}

stored_structs! {
    ContentMark { store, commits, last_t, generation }
}
