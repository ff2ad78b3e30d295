//! The registry in memory.

use super::{Memory, following};
use crate::store::{RegistryChange, RegistryEntry, RegistryStore, StoreFuture};

impl RegistryStore for Memory {
    fn change_registry(&self, changes: Vec<RegistryChange>) -> StoreFuture<'_, ()> {
        self.answer(move |state, _| {
            for change in changes {
                match change {
                    RegistryChange::Put { name, text } => state.registry.insert(name, text),
                    RegistryChange::Remove(name) => state.registry.remove(&name),
                };
            }
            Ok(())
        })
    }

    fn registry(&self, after: Option<String>, max: usize) -> StoreFuture<'_, Vec<RegistryEntry>> {
        self.answer(move |state, _| {
            let rows = state.registry.range(following(after)).take(max);
            let entry = |(name, text): (&String, &String)| RegistryEntry {
                name: name.clone(),
                text: Ok(text.clone()),
            };
            Ok(rows.map(entry).collect())
        })
    }
}
