//! The entries of the registry at one moment, by the names of their feeds; not their settings, which
//! stand beside those of the configuration file.

use imbl::{OrdMap, OrdSet};

/// The names of the entries of the registry. Cheap to clone.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RegistryNames {
    /// Entries that were read.
    pub sound: OrdSet<String>,
    /// Entries that cannot be read, each with the reason. Their feeds are neither polled nor served,
    /// and are not removed either.
    pub unread: OrdMap<String, String>,
    /// Sound entries beside which the configuration file has a feed or a group of the same name or
    /// with the same ids, each with the reason and the remedy. Those of the file are polled and
    /// served, and the entries stay in the store.
    pub shadowed: OrdMap<String, String>,
}

impl RegistryNames {
    /// Number of entries.
    pub fn len(&self) -> usize {
        self.sound.len() + self.unread.len() + self.shadowed.len()
    }

    /// True without any entry.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// True for the name of an entry, readable or not, shadowed or not.
    pub fn contains(&self, name: &str) -> bool {
        self.sound.contains(name)
            || self.unread.contains_key(name)
            || self.shadowed.contains_key(name)
    }
}
