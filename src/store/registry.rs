//! The registry of feeds as a store keeps it: the text of each entry by name; not what a text means.

use super::StoreFuture;

/// The registry: feeds that were registered beside the configuration file.
pub trait RegistryStore: Send + Sync {
    /// Makes changes, in their order: all or none.
    fn change_registry(&self, changes: Vec<RegistryChange>) -> StoreFuture<'_, ()>;

    /// The entry of this name.
    fn registry_entry(&self, name: String) -> StoreFuture<'_, Option<RegistryEntry>>;

    /// The entries after this name, by name, at most so many. One that is damaged is told as such,
    /// and keeps no other from being read.
    fn registry(&self, after: Option<String>, max: usize) -> StoreFuture<'_, Vec<RegistryEntry>>;
}

/// A change of the registry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RegistryChange {
    /// Keeps an entry, in the place of the one of its name.
    Put {
        /// The name of the feed.
        name: String,
        /// The text of the entry.
        text: String,
    },
    /// Removes the entry of this name, readable or not.
    Remove(String),
}

impl RegistryChange {
    /// The name of the feed.
    pub fn name(&self) -> &str {
        match self {
            Self::Put { name, .. } | Self::Remove(name) => name,
        }
    }
}

/// An entry of the registry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RegistryEntry {
    /// The name of the feed.
    pub name: String,
    /// Its text; or the reason for which the store cannot read it.
    pub text: Result<String, String>,
}
