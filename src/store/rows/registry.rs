//! The registry.

use super::{
    Engine, Writing,
    open_table::{TableEdit as _, TableSource as _},
    tables::REGISTRY,
};
use crate::store::{
    RegistryChange, RegistryEntry, RegistryStore, StoreError, StoreFuture, engine::RowReader,
    stored::RegistryText, stored::decode,
};
use std::ops::Bound;

impl<E: Engine> RegistryStore for E {
    fn change_registry(&self, changes: Vec<RegistryChange>) -> StoreFuture<'_, ()> {
        self.write(move |writing| change(writing, &changes))
    }

    fn registry(&self, after: Option<String>, max: usize) -> StoreFuture<'_, Vec<RegistryEntry>> {
        self.read(move |snapshot| entries(snapshot, after.as_deref(), max))
    }

    fn registry_entry(&self, name: String) -> StoreFuture<'_, Option<RegistryEntry>> {
        self.read(move |snapshot| {
            let here = Bound::Included(name.as_str());
            Ok(entries_in(snapshot, (here, here), 1)?.pop())
        })
    }
}

/// Makes changes of the registry.
pub(super) fn change(
    writing: &mut Writing<'_>,
    changes: &[RegistryChange],
) -> Result<(), StoreError> {
    writing.moves_catalog = true;
    let mut table = writing.change().edit(REGISTRY)?;
    for change in changes {
        match change {
            RegistryChange::Put { name, text } => {
                table.write(name.as_str(), &RegistryText { text: text.clone() })?;
            }
            RegistryChange::Remove(name) => table.remove(name.as_str())?,
        }
    }
    Ok(())
}

/// Its entries after a name.
pub(super) fn entries(
    source: &dyn RowReader,
    after: Option<&str>,
    max: usize,
) -> Result<Vec<RegistryEntry>, StoreError> {
    let after = after.map_or(Bound::Unbounded, Bound::Excluded);
    entries_in(source, (after, Bound::Unbounded), max)
}

/// Its entries within a range of names.
fn entries_in(
    source: &dyn RowReader,
    range: (Bound<&str>, Bound<&str>),
    max: usize,
) -> Result<Vec<RegistryEntry>, StoreError> {
    let table = source.table(REGISTRY)?;
    let rows = table.range_unchecked(range);
    let mut entries = Vec::new();
    for row in rows.take(max) {
        let (name, value) = row?;
        let read = value.and_then(|value| decode::<RegistryText>("an entry", value.value()));
        let text = match read {
            Ok(read) => Ok(read.text),
            Err(StoreError::Damaged(why)) => Err(why),
            Err(error) => return Err(error),
        };
        entries.push(RegistryEntry {
            name: name.value().to_owned(),
            text,
        });
    }
    Ok(entries)
}
