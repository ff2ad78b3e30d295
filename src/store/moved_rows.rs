//! Rows of a store on their way to another kind of store, by the names, keys and values that a file
//! has them with; not how either store reads or writes them.

use super::{
    StoreError,
    engine::{EngineTable, RowReader, RowWriter},
    rows::{
        derived::{LEADING, leads_to},
        open_table::EngineRows,
        tables::{COUNTED, META, SEGMENTS, TERMS},
    },
};
use std::mem::take;

/// A row: the bytes of its key, and its value without a checksum.
pub(super) struct MovedRow {
    pub(super) key: Vec<u8>,
    pub(super) value: Vec<u8>,
}

/// Bytes of rows after which a batch ends.
pub(super) const BATCH_BYTES: usize = 4 << 20;

/// Tables without which a copy that stands beside its store is made: nobody subscribed to it.
pub(super) const OF_SUBSCRIBERS: [&str; 2] = ["subs", "positions"];

/// The keys of the table `meta` that go along: the last numbers given, and what is known of time.
pub(super) const META_KEYS: [&str; 6] = [
    "last_feed",
    "last_sub",
    "last_user",
    "last_token",
    "clock",
    "content",
];

/// Tables that a copy does not take over, besides those whose rows lead to others: a feed is counted
/// and indexed again.
const CAUGHT_UP: [EngineTable; 3] = [COUNTED.of_engine(), SEGMENTS.of_engine(), TERMS.of_engine()];

/// True for a table whose rows are made from those of others.
pub(super) fn is_derived(table: EngineTable) -> bool {
    let mut derived = LEADING.iter().chain(&CAUGHT_UP);
    derived.any(|derived| *derived == table)
}

/// The rows of a table, a batch at a time.
///
/// # Errors
/// `Damaged` for a row that cannot be read.
pub(super) fn read_rows(
    source: &dyn RowReader,
    table: EngineTable,
    sink: &mut dyn FnMut(Vec<MovedRow>) -> Result<(), StoreError>,
) -> Result<(), StoreError> {
    let rows = source.open(table)?;
    let (mut batch, mut bytes) = (Vec::new(), 0);
    for row in EngineRows::all(rows.as_ref()) {
        let row = row?;
        let is_wanted = META_KEYS.iter().any(|wanted| wanted.as_bytes() == row.key);
        if table == META.of_engine() && !is_wanted {
            continue;
        }
        let value = row.value?;
        bytes += row.key.len() + value.len();
        batch.push(MovedRow {
            key: row.key,
            value,
        });
        if bytes >= BATCH_BYTES {
            bytes = 0;
            sink(take(&mut batch))?;
        }
    }
    if batch.is_empty() {
        return Ok(());
    }
    sink(batch)
}

/// Writes rows of a table, and those that lead to them.
pub(super) fn write_rows<'r>(
    target: &dyn RowWriter,
    table: EngineTable,
    rows: impl Iterator<Item = &'r MovedRow>,
) -> Result<(), StoreError> {
    let mut leads = Vec::new();
    let mut filled = target.open_to_write(table)?;
    for MovedRow { key, value } in rows {
        filled.put(key, value)?;
        leads.extend(leads_to(table, key, value)?);
    }
    drop(filled);
    for lead in leads {
        let mut leading = target.open_to_write(lead.table)?;
        leading.put(&lead.key, &lead.value)?;
    }
    Ok(())
}

/// The two ends of a copy, as each notes the other: a random number that both have, and the other
/// place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct MoveNote {
    pub(super) token: [u8; 8],
    pub(super) place: String,
}

impl MoveNote {
    /// The row of it.
    pub(super) fn row(&self) -> Vec<u8> {
        [&self.token[..], self.place.as_bytes()].concat()
    }

    /// Reads its row.
    pub(super) fn of_row(row: &[u8]) -> Option<Self> {
        let (token, place) = row.split_first_chunk()?;
        Some(Self {
            token: *token,
            place: String::from_utf8_lossy(place).into_owned(),
        })
    }
}
