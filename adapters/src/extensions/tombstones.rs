//! `at:deleted-entry` (RFC 6721): an entry that the publisher says is gone. Whether to believe it
//! is decided elsewhere.

use crate::note::Notes;
use crate::text::date;
use crate::vocabulary::Vocabulary;
use crate::{Deletion, Element, Note};

/// True for a tombstone.
pub(crate) fn is_deletion(element: &Element) -> bool {
    element.name == "deleted-entry" && Vocabulary::of(&element.ns) == Vocabulary::Tombstones
}

/// Reads a tombstone; without a reference it says nothing.
pub(crate) fn read(element: &Element, notes: &mut Notes) -> Option<Deletion> {
    let Some(reference) = element.filled("ref") else {
        notes.add(Note::Other("an at:deleted-entry without ref".to_owned()));
        return None;
    };
    let comment = element.elements().find(|child| child.name == "comment");
    Some(Deletion {
        reference,
        when: element
            .attribute("when")
            .and_then(|when| date::read(when, notes)),
        comment: comment.and_then(|comment| comment.words()),
    })
}
