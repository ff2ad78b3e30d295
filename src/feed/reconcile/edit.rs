//! Edits: the rule by which an entry counts as changed; not what becomes of an edit.

use crate::item::ItemDigests;
use everfeed_adapters::{
    Entry,
    platforms::{Profile, content_digest},
};

/// True when the content of an entry is not what is held. Equal bytes are never an edit, whatever
/// parser made the digests. Digests of two versions are not compared: the held entry gets one of
/// today's, made with the same scrubbers.
pub(super) fn is_edit(
    held: &ItemDigests,
    entry: Option<&Entry>,
    given: &ItemDigests,
    profile: Option<&Profile>,
) -> bool {
    let content = if held.version == given.version {
        Some(held.content)
    } else {
        entry.map(|entry| content_digest(entry, profile))
    };
    held.raw != given.raw && content != Some(given.content)
}
