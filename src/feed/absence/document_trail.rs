//! Facts of the last full documents: their lengths, their direction, the standing of the last one;
//! not what one lacks.

use super::{Direction, ShownItem, WindowItem};
use crate::{item::ItemId, stamp::Stamp};
use std::collections::{HashMap, HashSet, VecDeque};

/// Facts of the last full documents.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DocumentTrail {
    /// Entries of the last full documents, newest last, at most [`LENGTHS_MAX`].
    pub lengths: VecDeque<u16>,
    pub direction: Direction,
    /// Standing of the last document.
    pub standing: DocumentStanding,
    /// Full documents in a row whose order could not be followed.
    pub unstable: u8,
    /// Time of the last full document.
    pub seen_at: Stamp,
    /// Entries of a document that said to be the whole feed while the oldest posts rolled off.
    pub capped: Option<u16>,
    /// The same of one that did so once, which a deletion may have done.
    pub perhaps_capped: Option<u16>,
    /// True once posts have rolled off at the very end as others came: nothing was pinned there.
    pub rolls_off_at_end: bool,
}

/// Standing of a document, which decides what the same document proves when it comes again.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum DocumentStanding {
    /// For the feed as it is: the remembered rows, without those that are missed, are its own.
    #[default]
    Judged,
    /// It lacked too much to be believed, or might have been a part: the remembered rows are not
    /// its own.
    Doubted,
    /// Likewise, and it held nothing at all.
    Empty,
    /// A part, or one whose order could not be followed: again, it says as little.
    SetAside,
}

/// Lengths of documents that are remembered.
const LENGTHS_MAX: usize = 20;

impl DocumentTrail {
    /// True when the document is less than half as long as usual.
    pub(super) fn is_short(&self, seen: &[ShownItem]) -> bool {
        self.usual_length()
            .is_some_and(|usual| seen.len() * 2 < usual)
    }

    /// The most frequent length of the last documents; the latest of equals.
    fn usual_length(&self) -> Option<usize> {
        let mut counts: HashMap<u16, usize> = HashMap::new();
        self.lengths
            .iter()
            .for_each(|length| *counts.entry(*length).or_default() += 1);
        let best = self
            .lengths
            .iter()
            .rev()
            .max_by_key(|length| counts[length]);
        best.map(|length| usize::from(*length))
    }

    /// True when documents that say to be the whole feed are capped.
    pub(super) fn is_capped(&self) -> bool {
        self.capped.is_some()
    }

    /// A document that is longer than a capped one has shown that there was no cap.
    pub(super) fn note_growth(&mut self, entries: usize) {
        for capped in [&mut self.capped, &mut self.perhaps_capped] {
            capped.take_if(|capped| usize::from(*capped) < entries);
        }
    }

    // Decides: Is a document that says to be the whole feed capped?
    /// Takes note of a document that says to be the whole feed, newest first: where posts leave at
    /// its end, no more of them than entered at its head, and it is as long as before, they rolled
    /// off, whatever it says. Once, the oldest may have been deleted while others came: the next new
    /// post tells. A list that is no sequence in time has no such end (POLLING 2.7).
    pub(super) fn note_cap(&mut self, before: &[WindowItem], seen: &[ShownItem]) {
        let held: HashSet<ItemId> = before.iter().map(|row| row.id).collect();
        let shown: HashSet<ItemId> = seen.iter().map(|place| place.id).collect();
        let came = seen
            .iter()
            .take_while(|place| !held.contains(&place.id) && !place.is_known)
            .count();
        let present = || before.iter().filter(|row| row.suspect.is_none());
        let left = present()
            .rev()
            .take_while(|row| !shown.contains(&row.id))
            .count();
        let is_as_long = seen.len() >= present().count();
        if !self.direction.is_known() || left == 0 || left > came || !is_as_long {
            return;
        }
        if self.perhaps_capped.is_some() {
            self.cap_at(seen.len());
        } else {
            self.perhaps_capped = Some(entries_of(seen.len()));
        }
    }

    /// Takes note that posts roll off a document with so many entries that says to be the whole feed.
    pub(super) fn cap_at(&mut self, entries: usize) {
        self.capped = Some(entries_of(entries));
    }

    pub(super) fn note_length(&mut self, seen: &[ShownItem]) {
        if self.lengths.len() == LENGTHS_MAX {
            self.lengths.pop_front();
        }
        self.lengths.push_back(entries_of(seen.len()));
    }
}

fn entries_of(length: usize) -> u16 {
    u16::try_from(length).unwrap_or(u16::MAX)
}
