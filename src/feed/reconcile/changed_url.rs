//! Does a document share anything with what is held of a feed: a key, a link, or a title and a
//! date? Asked of a URL that was changed; not which item an entry is.

use super::{
    Observation, ObservedEntry,
    witnesses::{Address, addresses, dated_titles},
};
use crate::item::{Item, KeyHash};
use std::{collections::HashSet, sync::Arc};

/// The links of a document's entries, and their titles with dates.
#[derive(Debug, Default)]
pub struct KinshipSigns {
    addresses: HashSet<Address>,
    dated_titles: HashSet<KeyHash>,
}

impl KinshipSigns {
    /// Those of a document whose entries were all read.
    pub fn of(seen: &Observation) -> Self {
        let mut signs = Self::default();
        for entry in seen.entries.iter().filter_map(ObservedEntry::parsed) {
            signs.dated_titles.extend(dated_titles(&entry.entry));
            signs.addresses.extend(addresses(&entry.entry));
        }
        signs
    }

    /// Keys by which a store finds the items that may share one of them.
    pub fn keys(&self) -> Vec<KeyHash> {
        let addresses = self.addresses.iter().map(Address::key);
        addresses.chain(self.dated_titles.iter().copied()).collect()
    }

    // Decides: Does a document at a changed URL continue the feed?
    /// True when one of the items that were found has a link of the document, host included, or a
    /// title at a date of it.
    pub fn are_shared_by(&self, held: &[Arc<Item>]) -> bool {
        held.iter().filter_map(|item| item.entry()).any(|entry| {
            let (addresses, titles) = (addresses(entry), dated_titles(entry));
            addresses
                .iter()
                .any(|address| self.addresses.contains(address))
                || titles.iter().any(|title| self.dated_titles.contains(title))
        })
    }
}
