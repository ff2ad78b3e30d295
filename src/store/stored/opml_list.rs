//! Lists of feeds.

use super::{StoredKind, table::stored_structs};
use crate::feed::opml_list::{AbsentFeed, OpmlDocument, OpmlFault, OpmlList};

impl StoredKind for OpmlList {
    const NAME: &'static str = "opml-list";
}

stored_structs! {
    OpmlList {
        settings, documents, read_at, good_at, whole_at, not_before, listed, absent, paused, paused_at, failures, fault,
        skipped_total, skipped,
    }
    OpmlDocument { url, validators }
    AbsentFeed { name, since, reads }
    OpmlFault { whose, since, why }
}
