//! Tables whose rows carry a checksum over their table, key and value: a bit that flips on the disk
//! is an error and never an answer. Not what the values mean.

use crate::store::{
    StoreError,
    engine::{BATCH_BYTES_MAX, EngineRow, KeyRange, ReadTable, RowBatch, WriteTable},
    stored::damaged,
};
use redb::{Key, ReadableTable, Table, TableDefinition};
use std::marker::PhantomData;

/// A value of [`stored`](crate::store::stored), a row that only points, or ids one behind another;
/// then its checksum.
pub(super) type Coded = &'static [u8];

/// Bytes of a checksum, at the end of a stored value.
const SUM_BYTES: usize = 4;

/// The definition of a table of sealed rows.
pub(super) struct ChecksummedTable<K: Key + 'static>(&'static str, PhantomData<fn() -> K>);

impl<K: Key + 'static> Clone for ChecksummedTable<K> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<K: Key + 'static> Copy for ChecksummedTable<K> {}

impl<K: Key + 'static> ChecksummedTable<K> {
    pub(super) const fn new(name: &'static str) -> Self {
        Self(name, PhantomData)
    }

    /// Its name in the file.
    pub(super) const fn name(self) -> &'static str {
        self.0
    }

    /// The table as redb knows it.
    pub(super) const fn definition(self) -> TableDefinition<'static, K, Coded> {
        TableDefinition::new(self.0)
    }
}

/// An open table of sealed rows.
pub(super) struct Checksummed<K: Key + 'static, T> {
    table: T,
    name: &'static str,
    key: PhantomData<fn() -> K>,
}

fn split(stored: &[u8]) -> Option<(&[u8], u32)> {
    let (value, sum) = stored.split_last_chunk::<SUM_BYTES>()?;
    Some((value, u32::from_be_bytes(*sum)))
}

fn sum(table: &str, key: &[u8], value: &[u8]) -> u32 {
    let mut hasher = crc32fast::Hasher::new();
    hasher.update(table.as_bytes());
    hasher.update(key);
    hasher.update(value);
    hasher.finalize()
}

/// The value of a row of a table, if its checksum is right.
pub(super) fn unseal<'a>(
    table: &str,
    key: &[u8],
    stored: &'a [u8],
) -> Result<&'a [u8], StoreError> {
    match split(stored) {
        Some((value, found)) if found == sum(table, key, value) => Ok(value),
        _ => {
            let key = hex::encode(&key[..key.len().min(KEY_BYTES_SHOWN)]);
            Err(damaged(format!(
                "a row of `{table}` (key {key}) has another checksum than its content"
            )))
        }
    }
}

/// Bytes of a key that an error shows.
const KEY_BYTES_SHOWN: usize = 64;

/// A value with its checksum.
pub(super) fn seal(table: &str, key: &[u8], value: &[u8]) -> Vec<u8> {
    let mut stored = Vec::with_capacity(value.len() + SUM_BYTES);
    stored.extend_from_slice(value);
    stored.extend_from_slice(&sum(table, key, value).to_be_bytes());
    stored
}

impl<K: Key + 'static, T> Checksummed<K, T> {
    pub(super) fn new(definition: ChecksummedTable<K>, table: T) -> Self {
        Self {
            table,
            name: definition.name(),
            key: PhantomData,
        }
    }
}

/// A key as redb takes it.
fn key_of<'k, K: Key + 'static>(key: &'k [u8]) -> K::SelfType<'k> {
    K::from_bytes(key)
}

impl<K: Key + 'static, T: ReadableTable<K, Coded>> ReadTable for Checksummed<K, T> {
    fn get(&self, key: &[u8]) -> Result<Option<Vec<u8>>, StoreError> {
        let Some(stored) = self.table.get(key_of::<K>(key))? else {
            return Ok(None);
        };
        unseal(self.name, key, stored.value()).map(|value| Some(value.to_vec()))
    }

    fn get_unchecked(&self, key: &[u8]) -> Result<Option<Vec<u8>>, StoreError> {
        let stored = self.table.get(key_of::<K>(key))?;
        Ok(stored.and_then(|stored| split(stored.value()).map(|(value, _)| value.to_vec())))
    }

    fn range(&self, range: KeyRange<'_>) -> Result<RowBatch, StoreError> {
        let ends = (range.low.map(key_of::<K>), range.high.map(key_of::<K>));
        let mut rows = self.table.range::<K::SelfType<'_>>(ends)?;
        let mut batch = RowBatch::default();
        let mut bytes = 0;
        loop {
            let next = if range.is_reverse {
                rows.next_back()
            } else {
                rows.next()
            };
            let Some(row) = next else {
                return Ok(batch);
            };
            let (key, stored) = match row {
                // What was read before it is told first.
                Err(_) if !batch.rows.is_empty() => {
                    batch.has_more = true;
                    return Ok(batch);
                }
                row => row?,
            };
            let key_value = key.value();
            let key = K::as_bytes(&key_value).as_ref().to_vec();
            let value = unseal(self.name, &key, stored.value()).map(<[u8]>::to_vec);
            bytes += stored.value().len();
            batch.rows.push(EngineRow { key, value });
            if batch.rows.len() == range.rows_max || bytes >= BATCH_BYTES_MAX {
                batch.has_more = true;
                return Ok(batch);
            }
        }
    }

    fn count(&self) -> Result<u64, StoreError> {
        Ok(self.table.len()?)
    }
}

impl<K: Key + 'static> WriteTable for Checksummed<K, Table<'_, K, Coded>> {
    fn put(&mut self, key: &[u8], value: &[u8]) -> Result<(), StoreError> {
        let stored = seal(self.name, key, value);
        self.table.insert(key_of::<K>(key), stored.as_slice())?;
        Ok(())
    }

    fn remove(&mut self, key: &[u8]) -> Result<(), StoreError> {
        self.table.remove(key_of::<K>(key))?;
        Ok(())
    }

    fn remove_range(&mut self, first: &[u8], last: &[u8]) -> Result<(), StoreError> {
        let ends = key_of::<K>(first)..=key_of::<K>(last);
        Ok(self
            .table
            .retain_in::<K::SelfType<'_>, _>(ends, |_, _| false)?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_single_bit_of_a_row_is_told_from_its_flip() {
        let (key, value) = (b"key".as_slice(), b"a value of some length".as_slice());
        let stored = seal("items", key, value);
        assert_eq!(unseal("items", key, &stored).unwrap(), value);
        let flipped = |bytes: &[u8], bit: usize| {
            let mut bytes = bytes.to_vec();
            bytes[bit / 8] ^= 1 << (bit % 8);
            bytes
        };
        for bit in 0..stored.len() * 8 {
            assert!(
                unseal("items", key, &flipped(&stored, bit)).is_err(),
                "bit {bit} of the value"
            );
        }
        for bit in 0..key.len() * 8 {
            assert!(
                unseal("items", &flipped(key, bit), &stored).is_err(),
                "bit {bit} of the key"
            );
        }
        assert!(
            unseal("ids", key, &stored).is_err(),
            "a row of another table"
        );
        assert!(unseal("items", key, b"abc").is_err());
    }
}
