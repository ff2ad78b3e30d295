//! Lists of stamps by term, packed into chunks that are rows of a table. Pure.
//!
//! A chunk is the mark of its form, the first of its stamps, and a row of lists, in the order of
//! their terms: the difference to the term before (to that of the chunk's key for the first), the
//! bytes of the list, and the list: its first stamp less the first of the chunk, and then the
//! differences. All numbers are of seven bits a byte, the low ones first, as in LEB128.
//!
//! Chunks of the first form have neither a mark nor a first stamp: they begin with the difference of
//! their first term to itself, which is 0. They are read as before.

use crate::{
    feed::{filter::index_terms::IndexTerm, stamp::Stamp},
    store::{StoreError, stored::damaged},
};

/// Bytes after which a chunk ends: with its key it fills a page of the file.
const CHUNK_BYTES: usize = 3_500;

/// The mark of a chunk whose stamps are written less the first of them. A rare word stands in a
/// segment once: its stamp would take most of its bytes.
const RELATIVE: u8 = 1;

/// A term of an item, and a stamp of the item.
pub(in crate::store) type Posting = (IndexTerm, Stamp);

/// A chunk, and its first term, which is part of its key.
pub(in crate::store) type Chunk = (IndexTerm, Vec<u8>);

/// Packs postings that are in ascending order.
pub(in crate::store) fn packed(postings: &[Posting]) -> Vec<Chunk> {
    let mut chunks: Vec<Chunk> = Vec::new();
    let mut last = IndexTerm(0);
    let mut list = Vec::new();
    let base = postings.iter().map(|(_, stamp)| stamp.micros());
    let base = base.min().unwrap_or_default();
    for of_term in postings.chunk_by(|(one, _), (other, _)| one == other) {
        let term = of_term[0].0;
        list.clear();
        put_stamps(&mut list, base, of_term.iter().map(|(_, stamp)| *stamp));
        if chunks
            .last()
            .is_none_or(|(_, chunk)| chunk.len() + list.len() > CHUNK_BYTES)
        {
            let mut chunk = Vec::with_capacity(CHUNK_BYTES);
            chunk.push(RELATIVE);
            put(&mut chunk, base);
            chunks.push((term, chunk));
            last = term;
        }
        if let Some((_, chunk)) = chunks.last_mut() {
            put(chunk, u64::from(term.0 - last.0));
            put(chunk, list.len() as u64);
            chunk.extend_from_slice(&list);
        }
        last = term;
    }
    chunks
}

/// The stamps of a term in the chunk that begins with `first`; none when it has none there.
pub(in crate::store) fn stamps_of(
    term: IndexTerm,
    first: IndexTerm,
    chunk: &[u8],
) -> Result<Vec<Stamp>, StoreError> {
    let (base, chunk) = opened(chunk)?;
    for row in lists(first, chunk) {
        let (found, list) = row?;
        if found == term {
            return stamps(base, list);
        }
        if found > term {
            break;
        }
    }
    Ok(Vec::new())
}

/// The chunk without a stamp; `None` when it does not hold it.
pub(in crate::store) fn without(
    gone: Stamp,
    first: IndexTerm,
    chunk: &[u8],
) -> Result<Option<Vec<Chunk>>, StoreError> {
    let mut postings: Vec<Posting> = Vec::new();
    let (base, chunk) = opened(chunk)?;
    for row in lists(first, chunk) {
        let (term, list) = row?;
        postings.extend(stamps(base, list)?.into_iter().map(|stamp| (term, stamp)));
    }
    let before = postings.len();
    postings.retain(|(_, stamp)| *stamp != gone);
    Ok((postings.len() < before).then(|| packed(&postings)))
}

/// Holds a chunk against its form.
pub(in crate::store) fn check(first: IndexTerm, chunk: &[u8]) -> Result<(), StoreError> {
    let (base, chunk) = opened(chunk)?;
    lists(first, chunk).try_for_each(|row| row.and_then(|(_, list)| stamps(base, list).map(drop)))
}

/// The stamp to which those of a chunk are added, and its lists.
pub(in crate::store) fn opened(chunk: &[u8]) -> Result<(u64, &[u8]), StoreError> {
    let Some((&RELATIVE, mut lists)) = chunk.split_first() else {
        return Ok((0, chunk));
    };
    let base = take(&mut lists).ok_or_else(cut_short)?;
    Ok((base, lists))
}

/// The lists of an opened chunk, with their terms.
pub(in crate::store) fn lists(
    first: IndexTerm,
    chunk: &[u8],
) -> impl Iterator<Item = Result<(IndexTerm, &[u8]), StoreError>> {
    let (mut rest, mut term) = (chunk, first.0);
    std::iter::from_fn(move || {
        if rest.is_empty() {
            return None;
        }
        let list = (|| {
            term = term.checked_add(u32::try_from(take(&mut rest)?).ok()?)?;
            let bytes = usize::try_from(take(&mut rest)?).ok()?;
            let (list, behind) = rest.split_at_checked(bytes)?;
            rest = behind;
            Some((IndexTerm(term), list))
        })();
        if list.is_none() {
            rest = &[];
        }
        Some(list.ok_or_else(cut_short))
    })
}

fn put_stamps(out: &mut Vec<u8>, base: u64, stamps: impl Iterator<Item = Stamp>) {
    let mut last = base;
    for stamp in stamps {
        put(out, stamp.micros() - last);
        last = stamp.micros();
    }
}

/// The stamps of a list of a chunk.
pub(in crate::store) fn stamps(base: u64, mut list: &[u8]) -> Result<Vec<Stamp>, StoreError> {
    let mut stamps = Vec::new();
    let mut last = base;
    while !list.is_empty() {
        last = take(&mut list)
            .and_then(|more| last.checked_add(more))
            .ok_or_else(cut_short)?;
        stamps.push(Stamp::from_micros(last));
    }
    Ok(stamps)
}

fn cut_short() -> StoreError {
    damaged("a row of the word index is no list of items")
}

fn put(out: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        out.push(number as u8 | 0x80);
        number >>= 7;
    }
    out.push(number as u8);
}

/// The number at the beginning, which is taken away; `None` for none of 64 bits.
fn take(bytes: &mut &[u8]) -> Option<u64> {
    let mut number = 0_u64;
    for shift in (0..u64::BITS).step_by(7) {
        let (first, rest) = bytes.split_first()?;
        *bytes = rest;
        let part = u64::from(first & 0x7F);
        if part << shift >> shift != part {
            return None;
        }
        number |= part << shift;
        if first & 0x80 == 0 {
            return Some(number);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::{BTreeMap, BTreeSet};

    type Lists = BTreeMap<IndexTerm, Vec<Stamp>>;

    fn packed(lists: &Lists) -> Vec<Chunk> {
        let of_term = |(term, stamps): (&IndexTerm, &Vec<Stamp>)| {
            let term = *term;
            let stamps = stamps.clone().into_iter();
            stamps.map(move |stamp| (term, stamp))
        };
        super::packed(&lists.iter().flat_map(of_term).collect::<Vec<_>>())
    }

    fn postings() -> impl Strategy<Value = Lists> {
        let stamps = prop::collection::btree_set(any::<u64>(), 1..40);
        let listed = |stamps: BTreeSet<u64>| stamps.into_iter().map(Stamp::from_micros).collect();
        prop::collection::btree_map(
            any::<u32>().prop_map(IndexTerm),
            stamps.prop_map(listed),
            0..400,
        )
    }

    proptest! {
        #[test]
        fn what_is_packed_is_found_and_nothing_else(postings in postings(), other in any::<u32>()) {
            let chunks = packed(&postings);
            prop_assert!(chunks.is_sorted_by_key(|(first, _)| *first));
            let find = |term: IndexTerm| {
                let chunk = chunks.iter().rev().find(|(first, _)| *first <= term);
                chunk.map_or(Ok(Vec::new()), |(first, chunk)| stamps_of(term, *first, chunk))
            };
            for (term, stamps) in &postings {
                prop_assert_eq!(&find(*term).unwrap(), stamps);
            }
            let other = IndexTerm(other);
            if !postings.contains_key(&other) {
                prop_assert_eq!(find(other).unwrap(), vec![]);
            }
        }

        #[test]
        fn what_is_taken_out_is_in_no_list(postings in postings(), nth in any::<prop::sample::Index>()) {
            let all: Vec<Stamp> = postings.values().flatten().copied().collect();
            prop_assume!(!all.is_empty());
            let gone = all[nth.index(all.len())];
            for (first, chunk) in packed(&postings) {
                let Some(left) = without(gone, first, &chunk).unwrap() else { continue };
                for (first, chunk) in left {
                    let (base, chunk) = opened(&chunk).unwrap();
                    for row in lists(first, chunk) {
                        prop_assert!(!stamps(base, row.unwrap().1).unwrap().contains(&gone));
                    }
                }
            }
        }

        #[test]
        fn chunks_of_the_first_form_are_read(postings in postings()) {
            let mut chunk = Vec::new();
            let first = postings.keys().next().copied().unwrap_or(IndexTerm(0));
            let mut last = first;
            for (term, stamps) in &postings {
                let mut list = Vec::new();
                put_stamps(&mut list, 0, stamps.iter().copied());
                put(&mut chunk, u64::from(term.0 - last.0));
                put(&mut chunk, list.len() as u64);
                chunk.extend(list);
                last = *term;
            }
            for (term, stamps) in &postings {
                prop_assert_eq!(&stamps_of(*term, first, &chunk).unwrap(), stamps);
            }
        }

        #[test]
        fn bytes_that_are_no_chunk_are_an_error_and_no_panic(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            let _ = check(IndexTerm(7), &bytes);
            let _ = stamps_of(IndexTerm(9), IndexTerm(7), &bytes);
        }
    }
}
