//! Entries of the registry.

use super::{StoredKind, table::stored_structs};

/// The text of an entry.
#[derive(Debug)]
pub(in crate::store) struct RegistryText {
    pub(in crate::store) text: String,
}

impl StoredKind for RegistryText {
    const NAME: &'static str = "registry-entry";
}

stored_structs! {
    RegistryText { text }
}
