//! The part of a document that stands outside its entries, as it is found; `dispatch` reads it.

use crate::extensions::tombstones;
use crate::note::Notes;
use crate::reading::Scope;
use crate::text::markup::tree::{Bindings, grow, limit_note};
use crate::{Deletion, ENTRIES_MAX, Element, Note};

/// Limit of the elements that stand outside the entries, nested ones counted; the rest is left out
/// with a note.
const FEED_ELEMENTS_MAX: usize = 16_384;

/// The elements outside the entries, and the facts that the start tags of containers give.
#[derive(Default)]
pub(super) struct FeedPart {
    /// `rdf:about` of the channel.
    pub(super) id: Option<String>,
    /// The elements, each with the scope that it stands in.
    pub(super) children: Vec<(Element, Scope)>,
    /// The scope inside the last container.
    pub(super) scope: Option<Scope>,
    pub(super) deletions: Vec<Deletion>,
    pub(super) has_channel: bool,
    elements: usize,
}

impl FeedPart {
    /// Adds an element. True when it was mended.
    pub(super) fn add(
        &mut self,
        markup: &str,
        bindings: &Bindings,
        scope: &Scope,
        notes: &mut Notes,
    ) -> bool {
        let Some(grown) = grow(markup, bindings) else {
            return false;
        };
        if grown.limited {
            notes.add(limit_note());
        }
        if tombstones::is_deletion(&grown.element) {
            if self.deletions.len() < ENTRIES_MAX {
                self.deletions
                    .extend(tombstones::read(&grown.element, notes));
            }
            return grown.mended;
        }
        let size = grown.element.size();
        if self.elements + size > FEED_ELEMENTS_MAX {
            notes.add(Note::Other(format!(
                "more than {FEED_ELEMENTS_MAX} elements outside the entries"
            )));
            return grown.mended;
        }
        self.elements += size;
        self.children.push((grown.element, scope.clone()));
        grown.mended
    }
}
