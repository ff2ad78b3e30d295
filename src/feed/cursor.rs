//! T+O+C cursors exactly as the Smart Feeds text defines them; not where the items stand that they
//! point to.

use super::{moment::Moment, stamp::Stamp};
use crc32fast::Hasher;
use std::fmt;

/// A cursor `{T}_{O}_{C}`: the item at offset O among those that share T, and a checksum of their
/// ids up to it (SF-121..SF-126). Consumers treat the text as opaque; we compare it as text too, so
/// one item has one spelling.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Toc {
    /// The place of the item on the listing's axis.
    pub t: Moment,
    /// Number of items with the same stamp before it, in canonical ascending order.
    pub o: u32,
    /// CRC-32 (IEEE) of the ids 0..=O of that stamp, joined by `_`.
    pub c: u32,
}

/// The largest O that is read; a larger one is no cursor of ours.
const OFFSET_MAX: u32 = 0x7FFF_FFFF;

/// The bit of O that says that a cursor is of a part of a feed, whose number follows it. Items of a
/// feed never share a place in the orders that are followed, so that O has nothing else to say
/// there. By it, a reader who comes from another part is told to begin anew.
const PART_BIT: u32 = 0x4000_0000;

/// The bit of O that says that a cursor by date of publication names its generation: T is a date of
/// the publisher there, and does not tell it.
const GENERATION_BIT: u32 = 0x2000_0000;

/// Bits of O that are left to O itself beside a generation; of those above them a generation has
/// all below its bit.
const OFFSET_BITS: u32 = 12;

/// The mark of cursors by date of publication in the generation that began then; 0 for the first.
/// Of 131,071 others, one has the same mark.
pub fn generation_mark(generation: Stamp) -> u32 {
    if generation == Stamp::ZERO {
        return 0;
    }
    let hash = crc32fast::hash(&generation.micros().to_be_bytes());
    GENERATION_BIT | (hash << OFFSET_BITS) & (GENERATION_BIT - 1)
}

/// The mark of the cursors of the part with this number.
pub fn part_mark(part: u32) -> u32 {
    PART_BIT | part
}

impl Toc {
    /// The cursor of the last of `ids`, which are all that stand at `t` up to and including the
    /// item. `None` for no ids.
    pub fn of<S: AsRef<str>>(
        t: impl Into<Moment>,
        ids: impl IntoIterator<Item = S>,
    ) -> Option<Self> {
        let mut crc = Hasher::new();
        let mut count = 0_u32;
        for id in ids {
            if count > 0 {
                crc.update(b"_");
            }
            crc.update(id.as_ref().as_bytes());
            count += 1;
        }
        let o = count.checked_sub(1)?;
        Some(Self {
            t: t.into(),
            o,
            c: crc.finalize(),
        })
    }

    /// True when the items now at `t` still bear this cursor out: at least O+1 of them, and the
    /// same checksum (SF-128).
    pub fn holds<S: AsRef<str>>(&self, ids: impl IntoIterator<Item = S>) -> bool {
        Self::of(self.t, ids.into_iter().take(self.o as usize + 1)) == Some(*self)
    }

    /// The cursor with a mark in its O; 0 for none.
    #[must_use]
    pub fn marked(self, mark: u32) -> Self {
        Self {
            o: self.o | mark,
            ..self
        }
    }

    /// The mark in its O, 0 for none; and the cursor without it.
    #[must_use]
    pub fn unmarked(self) -> (u32, Self) {
        if self.o < PART_BIT {
            return (0, self);
        }
        (self.o, Self { o: 0, ..self })
    }

    /// The cursor with the mark of a generation in its O.
    // Limit: an item behind 4,095 others of its date has a cursor as of the first generation. If it
    // does not hold, it is `ahead` in any other.
    #[must_use]
    pub fn in_generation(self, mark: u32) -> Self {
        if self.o >> OFFSET_BITS > 0 {
            return self;
        }
        self.marked(mark)
    }

    /// The mark of a generation in its O, 0 for none; and the cursor without it.
    #[must_use]
    pub fn without_generation(self) -> (u32, Self) {
        if self.o < GENERATION_BIT || self.o >= PART_BIT {
            return (0, self);
        }
        let offset = self.o & ((1 << OFFSET_BITS) - 1);
        (self.o - offset, Self { o: offset, ..self })
    }

    /// Reads a full cursor. Leading zeros are read as numbers; anything else is `None`.
    pub fn parse(text: &str) -> Option<Self> {
        let mut parts = text.split('_');
        let t = Moment::of_cursor_text(parts.next()?)?;
        let o = number(parts.next()?).filter(|o| *o <= OFFSET_MAX)?;
        let c = number(parts.next()?)?;
        parts.next().is_none().then_some(Self { t, o, c })
    }
}

/// An unsigned decimal of at most ten digits that fits 32 bits.
fn number(text: &str) -> Option<u32> {
    let plain = (1..=10).contains(&text.len()) && text.bytes().all(|b| b.is_ascii_digit());
    plain.then(|| text.parse().ok()).flatten()
}

impl fmt::Display for Toc {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}_{}_{}", self.t.cursor_text(), self.o, self.c)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cursor_by_date_names_its_generation_beside_its_place() {
        // SF-124.
        let mark = generation_mark(Stamp::from_secs(1_780_000_000));
        for o in [0, 1, 4_095, 4_096, 100_000] {
            let plain = Toc {
                t: Moment::default(),
                o,
                c: 7,
            };
            let named = plain.in_generation(mark);
            let text = named.to_string();
            assert_eq!(Toc::parse(&text), Some(named));
            let has_room = o < 4_096;
            assert_eq!(
                named.without_generation(),
                (if has_room { mark } else { 0 }, plain)
            );
            assert_eq!(plain.in_generation(generation_mark(Stamp::ZERO)), plain);
            // It is not taken for that of a part.
            assert_eq!(named.unmarked(), (0, named));
        }
        let of_part = Toc {
            t: Moment::default(),
            o: part_mark(3),
            c: 7,
        };
        assert_eq!(of_part.without_generation(), (0, of_part));
    }

    #[test]
    fn no_two_of_many_generations_have_one_mark() {
        let starts = (0..16).map(|n| Stamp::from_secs(1_780_000_000).plus_secs(n * 86_400));
        let marks: Vec<_> = starts.map(generation_mark).collect();
        assert!(marks.iter().all(|mark| *mark > GENERATION_BIT));
        let different: std::collections::BTreeSet<_> = marks.iter().collect();
        assert_eq!(different.len(), marks.len());
    }
}
