//! Facts of the last full documents: their lengths, their direction, the standing of the last one;
//! not what one lacks.

use super::{Direction, ShownItem};
use crate::feed::stamp::Stamp;
use std::collections::{HashMap, VecDeque};

/// Facts of the last full documents.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct DocumentTrail {
    /// Entries of the last full documents, newest last, at most [`LENGTHS_MAX`].
    pub(crate) lengths: VecDeque<u16>,
    pub(crate) direction: Direction,
    /// Standing of the last document.
    pub(crate) standing: DocumentStanding,
    /// Full documents in a row whose order could not be followed.
    pub(crate) unstable: u8,
    /// Time of the last full document.
    pub(crate) seen_at: Stamp,
}

/// Standing of a document, which decides what the same document proves when it comes again.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum DocumentStanding {
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

    pub(super) fn note_length(&mut self, seen: &[ShownItem]) {
        if self.lengths.len() == LENGTHS_MAX {
            self.lengths.pop_front();
        }
        self.lengths
            .push_back(u16::try_from(seen.len()).unwrap_or(u16::MAX));
    }
}
