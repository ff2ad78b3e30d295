//! The rows of a table that a transaction knows: those that were fetched or written, ranges of which
//! every row is known, and changes that were not sent yet.

use crate::store::engine::{BATCH_BYTES_MAX, EngineRow, KeyRange, RowBatch};
use std::{
    collections::{BTreeMap, BTreeSet},
    ops::Bound,
};

/// A table in a transaction.
#[derive(Default)]
pub(super) struct TableState {
    pub(super) is_announced: bool,
    /// Rows that were fetched or written; `None` for one that is not there.
    pub(super) known: BTreeMap<Vec<u8>, Option<Vec<u8>>>,
    /// Bytes of those that were sent since it was emptied.
    pub(super) sent_bytes: usize,
    /// Ranges of which every row is known.
    pub(super) spans: Vec<KeySpan>,
    /// Ranges that are to be emptied, before the rows are written.
    pub(super) cleared: Vec<(Vec<u8>, Vec<u8>)>,
    /// Rows that are to be written, or taken out.
    pub(super) changed: BTreeMap<Vec<u8>, Option<Vec<u8>>>,
    /// Those of them that may not be there before.
    pub(super) new: BTreeSet<Vec<u8>>,
    /// Rows that were written, whether they were sent or not, where they are announced.
    pub(super) announced: BTreeMap<Vec<u8>, Vec<u8>>,
}

/// Keys from one to another that is not among them; `None` for all behind the first.
#[derive(Clone, Debug)]
pub(super) struct KeySpan {
    pub(super) from: Vec<u8>,
    pub(super) to: Option<Vec<u8>>,
}

impl KeySpan {
    pub(super) fn of(range: KeyRange<'_>) -> Self {
        Self {
            from: match range.low {
                Bound::Included(key) => key.to_vec(),
                Bound::Excluded(key) => after(key),
                Bound::Unbounded => Vec::new(),
            },
            to: match range.high {
                Bound::Included(key) => Some(after(key)),
                Bound::Excluded(key) => Some(key.to_vec()),
                Bound::Unbounded => None,
            },
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.to.as_ref().is_some_and(|to| *to <= self.from)
    }

    /// True when the first key of another one is in it.
    pub(super) fn holds_begin(&self, other: &Self) -> bool {
        self.from <= other.from && self.to.as_ref().is_none_or(|to| other.from < *to)
    }

    /// True when the last key of another one is in it.
    pub(super) fn holds_end(&self, other: &Self) -> bool {
        let reaches = match (&self.to, &other.to) {
            (None, _) => true,
            (Some(_), None) => false,
            (Some(to), Some(end)) => end <= to,
        };
        reaches && other.to.as_ref().is_none_or(|end| self.from < *end)
    }

    /// The keys of both.
    pub(super) fn cut(&self, other: &Self) -> Self {
        Self {
            from: self.from.clone().max(other.from.clone()),
            to: match (&self.to, &other.to) {
                (Some(one), Some(other)) => Some(one.min(other).clone()),
                (one, other) => one.as_ref().or(other.as_ref()).cloned(),
            },
        }
    }

    pub(super) fn bounds(&self) -> (Bound<&[u8]>, Bound<&[u8]>) {
        let high = self.to.as_deref().map_or(Bound::Unbounded, Bound::Excluded);
        (Bound::Included(&self.from), high)
    }
}

/// The first key behind a key.
pub(super) fn after(key: &[u8]) -> Vec<u8> {
    [key, &[0]].concat()
}

impl TableState {
    /// The value of a key, if it is known whether there is one.
    pub(super) fn get(&self, key: &[u8]) -> Option<Option<Vec<u8>>> {
        if let Some(known) = self.known.get(key) {
            return Some(known.clone());
        }
        let this = KeySpan {
            from: key.to_vec(),
            to: Some(after(key)),
        };
        let is_known = self.spans.iter().any(|span| span.holds_begin(&this));
        is_known.then_some(None)
    }

    /// The first rows of a range, if they are known.
    pub(super) fn range(
        &self,
        span: &KeySpan,
        is_reverse: bool,
        rows_max: usize,
    ) -> Option<RowBatch> {
        let holds = |known: &&KeySpan| {
            if is_reverse {
                known.holds_end(span)
            } else {
                known.holds_begin(span)
            }
        };
        let known = self.spans.iter().find(holds)?;
        let both = known.cut(span);
        let is_whole = if is_reverse {
            both.from == span.from
        } else {
            both.to == span.to
        };
        let mut rows = self.known.range::<[u8], _>(both.bounds());
        let mut batch = RowBatch {
            has_more: !is_whole,
            ..RowBatch::default()
        };
        let mut bytes = 0;
        while let Some((key, value)) = if is_reverse {
            rows.next_back()
        } else {
            rows.next()
        } {
            let Some(value) = value else { continue };
            bytes += value.len();
            batch.rows.push(EngineRow {
                key: key.clone(),
                value: Ok(value.clone()),
            });
            if batch.rows.len() == rows_max || bytes >= BATCH_BYTES_MAX {
                batch.has_more = true;
                break;
            }
        }
        (is_whole || !batch.rows.is_empty()).then_some(batch)
    }

    pub(super) fn put(&mut self, key: &[u8], value: &[u8]) {
        self.known.insert(key.to_vec(), Some(value.to_vec()));
        self.changed.insert(key.to_vec(), Some(value.to_vec()));
        if self.is_announced {
            self.announced.insert(key.to_vec(), value.to_vec());
        }
    }

    pub(super) fn insert(&mut self, key: &[u8], value: &[u8]) -> bool {
        if matches!(self.known.get(key), Some(Some(_))) {
            return false;
        }
        if !self.changed.contains_key(key) {
            self.new.insert(key.to_vec());
        }
        self.put(key, value);
        true
    }

    pub(super) fn remove(&mut self, key: &[u8]) {
        self.known.insert(key.to_vec(), None);
        self.changed.insert(key.to_vec(), None);
        self.new.remove(key);
        self.announced.remove(key);
    }

    pub(super) fn remove_range(&mut self, first: &[u8], last: &[u8]) {
        let is_outside = |key: &[u8]| key < first || last < key;
        self.known.retain(|key, _| is_outside(key));
        self.changed.retain(|key, _| is_outside(key));
        self.new.retain(|key| is_outside(key));
        self.announced.retain(|key, _| is_outside(key));
        self.spans.push(KeySpan {
            from: first.to_vec(),
            to: Some(after(last)),
        });
        self.cleared.push((first.to_vec(), last.to_vec()));
    }

    /// Takes in a row that was fetched; one that was written since stays.
    pub(super) fn learn(&mut self, key: Vec<u8>, value: Option<Vec<u8>>) {
        self.known.entry(key).or_insert(value);
    }
}
