//! Notes: oddities that were met and survived. Their list is bounded, so that a document with a
//! million oddities costs no more than one with a few.

use std::fmt;

use serde::Serialize;

/// Something odd that was met and survived. Content is never an error.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize)]
pub enum Note {
    /// The document ended early; the entry that was cut is dropped (DESIGN section 4).
    Truncated,
    /// Tags did not match and were mended, or JSON was not quite JSON.
    Mismatched,
    /// The declared encoding was wrong; this one was used.
    Encoding(String),
    /// A date could not be understood.
    BadDate(String),
    /// An entry could not be read and was left out; the others are unharmed.
    EntryLost(String),
    /// More than the limit of entries; the rest was left out.
    TooManyEntries,
    /// Anything else worth telling the operator.
    Other(String),
}

/// Limit of the notes of one entry or one document; the rest say nothing new.
const NOTES_MAX: usize = 64;

/// Notes while a document is read.
#[derive(Debug, Default)]
pub(crate) struct Notes(Vec<Note>);

impl Notes {
    /// Adds a note, unless it was made already or there are enough.
    pub(crate) fn add(&mut self, note: Note) {
        if self.0.len() < NOTES_MAX && !self.0.contains(&note) {
            self.0.push(note);
        }
    }

    /// Adds a note that must not get lost, before all others.
    pub(crate) fn add_first(&mut self, note: Note) {
        self.0.truncate(NOTES_MAX - 1);
        self.0.insert(0, note);
    }

    /// The notes in the order in which they were made.
    pub(crate) fn into_vec(self) -> Vec<Note> {
        self.0
    }
}

/// The note in the operator's words. It may quote the document, control characters of HTML
/// included.
impl fmt::Display for Note {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Truncated => f.write_str("the document ends early; its last entry was dropped"),
            Self::Mismatched => f.write_str("it is not well-formed and was mended"),
            Self::Encoding(used) => write!(f, "the encoding declared was wrong, {used} was used"),
            Self::BadDate(text) => write!(f, "a date could not be understood: {text}"),
            Self::EntryLost(why) => write!(f, "an entry was left out: {why}"),
            Self::TooManyEntries => f.write_str("there are more entries than are read"),
            Self::Other(text) => f.write_str(text),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn notes_are_kept_once_and_the_important_ones_always() {
        let mut notes = Notes::default();
        for n in 0..1000 {
            notes.add(Note::BadDate((n / 2).to_string()));
        }
        notes.add_first(Note::Truncated);
        let notes = notes.into_vec();
        assert_eq!(notes.len(), NOTES_MAX);
        assert_eq!(
            notes[..3],
            [
                Note::Truncated,
                Note::BadDate("0".into()),
                Note::BadDate("1".into())
            ]
        );
    }
}
