//! Tables whose rows carry a checksum over their table, key and value: a bit that flips on the disk
//! is an error and never an answer. Not what the values mean.

use crate::store::{
    StoreError,
    stored::{StoredKind, damaged, decode, encode},
};
use redb::{AccessGuard, Key, ReadOnlyTable, ReadableTable, StorageError, Table, TableDefinition};
use std::{
    borrow::Borrow,
    marker::PhantomData,
    ops::{Bound, RangeBounds},
};

/// A value of [`stored`](crate::store::stored), a row that only points, or ids one behind another;
/// then its checksum.
pub(super) type Coded = &'static [u8];

/// Bytes of a checksum, at the end of a stored value.
const SUM_BYTES: usize = 4;

/// The definition of a table of sealed rows.
pub(super) struct SealedTable<K: Key + 'static>(&'static str, PhantomData<fn() -> K>);

impl<K: Key + 'static> Clone for SealedTable<K> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<K: Key + 'static> Copy for SealedTable<K> {}

impl<K: Key + 'static> SealedTable<K> {
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
pub(super) struct Sealed<K: Key + 'static, T> {
    table: T,
    name: &'static str,
    key: PhantomData<fn() -> K>,
}

/// A value whose checksum is right.
pub(super) struct Unsealed<'a>(AccessGuard<'a, Coded>);

impl Unsealed<'_> {
    /// The value.
    pub(super) fn value(&self) -> &[u8] {
        split(self.0.value()).map_or(&[], |(value, _)| value)
    }
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

/// A row of a range.
pub(super) type Row<'a, K> = (AccessGuard<'a, K>, Unsealed<'a>);

/// Rows that outlive their table.
pub(super) type KeptRows<K> =
    Box<dyn DoubleEndedIterator<Item = Result<Row<'static, K>, StoreError>>>;

/// A row of a range with its key, whose value may be damaged.
pub(super) type UncheckedRow<'a, K> = (AccessGuard<'a, K>, Result<Unsealed<'a>, StoreError>);

fn unchecked<'a, K: Key + 'static>(
    table: &str,
    row: Result<(AccessGuard<'a, K>, AccessGuard<'a, Coded>), StorageError>,
) -> Result<UncheckedRow<'a, K>, StoreError> {
    let (key, stored) = row?;
    let fault = unseal(table, K::as_bytes(&key.value()).as_ref(), stored.value()).err();
    let value = match fault {
        None => Ok(Unsealed(stored)),
        Some(fault) => Err(fault),
    };
    Ok((key, value))
}

fn checked<'a, K: Key + 'static>(
    table: &str,
    row: Result<(AccessGuard<'a, K>, AccessGuard<'a, Coded>), StorageError>,
) -> Result<Row<'a, K>, StoreError> {
    let (key, value) = unchecked(table, row)?;
    Ok((key, value?))
}

impl<K: Key + 'static, T> Sealed<K, T> {
    pub(super) fn new(definition: SealedTable<K>, table: T) -> Self {
        Self {
            table,
            name: definition.name(),
            key: PhantomData,
        }
    }

    fn found<'a>(
        &self,
        key: &K::SelfType<'_>,
        stored: Option<AccessGuard<'a, Coded>>,
    ) -> Result<Option<Unsealed<'a>>, StoreError> {
        let Some(stored) = stored else {
            return Ok(None);
        };
        unseal(self.name, K::as_bytes(key).as_ref(), stored.value())?;
        Ok(Some(Unsealed(stored)))
    }
}

impl<K: Key + 'static, T: ReadableTable<K, Coded>> Sealed<K, T> {
    /// The value of a key.
    pub(super) fn get<'k>(
        &self,
        key: impl Borrow<K::SelfType<'k>>,
    ) -> Result<Option<Unsealed<'_>>, StoreError> {
        let stored = self.table.get(key.borrow())?;
        self.found(key.borrow(), stored)
    }

    /// The value of a key, decoded. `what` names it in errors.
    pub(super) fn read<'k, V: StoredKind>(
        &self,
        key: impl Borrow<K::SelfType<'k>>,
        what: &str,
    ) -> Result<Option<V>, StoreError> {
        let stored = self.get(key)?;
        stored
            .map(|stored| decode(what, stored.value()))
            .transpose()
    }

    /// The value of a key, whether its checksum is right or not.
    pub(super) fn get_unchecked<'k>(
        &self,
        key: impl Borrow<K::SelfType<'k>>,
    ) -> Result<Option<Vec<u8>>, StoreError> {
        let stored = self.table.get(key.borrow())?;
        Ok(stored.and_then(|stored| split(stored.value()).map(|(value, _)| value.to_vec())))
    }

    /// The rows of a range of keys.
    pub(super) fn range<'k, R>(
        &self,
        range: impl RangeBounds<R> + 'k,
    ) -> Result<impl DoubleEndedIterator<Item = Result<Row<'_, K>, StoreError>>, StoreError>
    where
        R: Borrow<K::SelfType<'k>> + 'k,
    {
        let rows = self.range_unchecked(range)?;
        Ok(rows.map(|row| {
            let (key, value) = row?;
            Ok((key, value?))
        }))
    }

    /// The same; a row that is damaged is an error beside its key, and the others come after it.
    pub(super) fn range_unchecked<'k, R>(
        &self,
        range: impl RangeBounds<R> + 'k,
    ) -> Result<impl DoubleEndedIterator<Item = Result<UncheckedRow<'_, K>, StoreError>>, StoreError>
    where
        R: Borrow<K::SelfType<'k>> + 'k,
    {
        let name = self.name;
        let rows = self.table.range::<R>(range)?;
        Ok(rows.map(move |row| unchecked(name, row)))
    }
}

impl<const N: usize, T: ReadableTable<&'static [u8; N], Coded>> Sealed<&'static [u8; N], T> {
    /// The rows whose keys begin with these bytes.
    pub(super) fn rows<'t>(
        &'t self,
        prefix: &[u8],
    ) -> Result<
        impl DoubleEndedIterator<Item = Result<Row<'t, &'static [u8; N]>, StoreError>> + use<'t, N, T>,
        StoreError,
    > {
        self.rows_after(prefix, None)
    }

    /// The rows whose keys begin with these bytes and come after a key, if one is given.
    pub(super) fn rows_after<'t>(
        &'t self,
        prefix: &[u8],
        after: Option<[u8; N]>,
    ) -> Result<
        impl DoubleEndedIterator<Item = Result<Row<'t, &'static [u8; N]>, StoreError>> + use<'t, N, T>,
        StoreError,
    > {
        let rows = self.unchecked_after(prefix, after)?;
        Ok(rows.map(|row| {
            let (key, value) = row?;
            Ok((key, value?))
        }))
    }

    /// The same; a row that is damaged is an error beside its key, and the others come after it.
    pub(super) fn unchecked_after<'t>(
        &'t self,
        prefix: &[u8],
        after: Option<[u8; N]>,
    ) -> Result<
        impl DoubleEndedIterator<Item = Result<UncheckedRow<'t, &'static [u8; N]>, StoreError>>
        + use<'t, N, T>,
        StoreError,
    > {
        let (first, last) = ends(prefix);
        let low = match &after {
            Some(after) => Bound::Excluded(after),
            None => Bound::Included(&first),
        };
        let rows = self
            .table
            .range::<&[u8; N]>((low, Bound::Included(&last)))?;
        let name = self.name;
        Ok(rows.map(move |row| unchecked(name, row)))
    }
}

/// The first and the last key that begin with these bytes.
fn ends<const N: usize>(prefix: &[u8]) -> ([u8; N], [u8; N]) {
    let (mut first, mut last) = ([0; N], [u8::MAX; N]);
    first[..prefix.len()].copy_from_slice(prefix);
    last[..prefix.len()].copy_from_slice(prefix);
    (first, last)
}

impl<K: Key + 'static> Sealed<K, ReadOnlyTable<K, Coded>> {
    /// The value of a key, which outlives the table.
    pub(super) fn get_kept<'k>(
        &self,
        key: impl Borrow<K::SelfType<'k>>,
    ) -> Result<Option<Unsealed<'static>>, StoreError> {
        let stored = self.table.get(key.borrow())?;
        self.found(key.borrow(), stored)
    }

    /// The rows of a range of keys, which outlive the table.
    pub(super) fn range_kept<'k, R>(
        &self,
        range: impl RangeBounds<R>,
    ) -> Result<KeptRows<K>, StoreError>
    where
        R: Borrow<K::SelfType<'k>>,
    {
        let name = self.name;
        Ok(Box::new(
            self.table
                .range::<R>(range)?
                .map(move |row| checked(name, row)),
        ))
    }
}

impl<K: Key + 'static> Sealed<K, Table<'_, K, Coded>> {
    /// Puts a value at a key. True when one was there.
    pub(super) fn insert<'k>(
        &mut self,
        key: impl Borrow<K::SelfType<'k>>,
        value: &[u8],
    ) -> Result<bool, StoreError> {
        let stored = seal(self.name, K::as_bytes(key.borrow()).as_ref(), value);
        Ok(self
            .table
            .insert(key.borrow(), stored.as_slice())?
            .is_some())
    }

    /// Takes out a row.
    pub(super) fn remove<'k>(
        &mut self,
        key: impl Borrow<K::SelfType<'k>>,
    ) -> Result<(), StoreError> {
        self.table.remove(key.borrow())?;
        Ok(())
    }

    /// Puts a value of a kind at a key.
    pub(super) fn write<'k, V: StoredKind>(
        &mut self,
        key: impl Borrow<K::SelfType<'k>>,
        value: &V,
    ) -> Result<(), StoreError> {
        self.insert(key, &encode(value)?).map(drop)
    }

    /// Keeps the rows whose value is to be kept.
    pub(super) fn retain(&mut self, mut keep: impl FnMut(&[u8]) -> bool) -> Result<(), StoreError> {
        Ok(self
            .table
            .retain(|_, stored| split(stored).is_some_and(|(value, _)| keep(value)))?)
    }
}

impl<const N: usize> Sealed<&'static [u8; N], Table<'_, &'static [u8; N], Coded>> {
    /// Takes out the rows whose keys begin with these bytes, damaged ones included.
    pub(super) fn clear(&mut self, prefix: &[u8]) -> Result<(), StoreError> {
        let (first, last) = ends(prefix);
        let rows = &first..=&last;
        Ok(self.table.retain_in::<&[u8; N], _>(rows, |_, _| false)?)
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
