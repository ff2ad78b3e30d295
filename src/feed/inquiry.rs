//! Facts that a decision on documents rests on, and the machine that asks for them: first the items
//! behind keys, then those that unknown entries may be. The store is read by whoever drives it;
//! what the facts come to is `reconcile`'s business.

use super::{
    archive::ArchivedPage,
    item::{Item, KeyHash},
    reconcile::{Known, Observation, keys_needed, witness_keys},
    record::FeedRecord,
};
use std::{collections::BTreeSet, sync::Arc};

mod older;

#[cfg(test)]
mod tests;

pub use older::Older;

/// A feed at one revision: its record and its window, with the items behind the keys that were
/// asked for.
#[derive(Clone, Debug)]
pub struct DecisionBasis {
    /// Its record.
    pub record: FeedRecord,
    /// Its window and items.
    pub known: Known,
}

/// Inquiry into what a feed holds of the entries of a document, and of pages of archives beside it.
/// It is asked what it needs ([`Inquiry::next`]) and answered, in any order and in parts, until
/// everything is known.
#[derive(Clone, Debug)]
pub struct Inquiry {
    facts: Facts,
    open: OpenQuestion,
}

/// All that a decision rests on.
#[derive(Clone, Debug)]
pub struct Facts {
    /// The feed.
    pub basis: DecisionBasis,
    /// The document.
    pub live: Observation,
    /// Entries that stand in archives only.
    pub older: Older,
}

/// Next need of an inquiry.
#[derive(Debug)]
pub enum Needs {
    /// The items behind these keys: [`Inquiry::with_items`].
    Keys(Inquiry, Vec<KeyHash>),
    /// The items that have one of these witnesses: [`Inquiry::with_lookalikes`].
    Witnesses(Inquiry, Vec<KeyHash>),
    /// Another basis: the feed moved on before the last answer.
    NewBasis,
    /// Nothing more: it can be decided on this.
    Decision(Facts),
}

/// Parts of the present question that have no answer yet.
#[derive(Clone, Debug)]
enum OpenQuestion {
    Keys(BTreeSet<KeyHash>),
    Witnesses(BTreeSet<KeyHash>),
    /// An answer came from another revision: no other counts.
    Moved,
}

impl Inquiry {
    /// An inquiry into a document as it differs from the last one, and into staged pages of
    /// archives, newest first. `basis` needs no items.
    pub fn new(basis: DecisionBasis, mut live: Observation, pages: &[ArchivedPage]) -> Self {
        let older = Older::beside(&mut live, pages);
        let (namespace, last) = (&basis.record.ids.namespace, &basis.known.window);
        let mut keys = keys_needed(namespace, last, &live);
        keys.extend(keys_needed(namespace, last, &older.observation()));
        Self {
            open: OpenQuestion::Keys(keys.into_iter().collect()),
            facts: Facts { basis, live, older },
        }
    }

    // Decides: What must be known of a feed before a document is decided on?
    /// Next need. Witnesses are asked for when every key is answered, and of a feed that holds
    /// anything.
    pub fn next(mut self) -> Needs {
        if let OpenQuestion::Keys(open) = &self.open {
            if !open.is_empty() {
                let keys = open.iter().copied().collect();
                return Needs::Keys(self, keys);
            }
            self.open = OpenQuestion::Witnesses(self.facts.witnesses());
        }
        match &self.open {
            OpenQuestion::Witnesses(open) if !open.is_empty() => {
                let witnesses = open.iter().copied().collect();
                Needs::Witnesses(self, witnesses)
            }
            OpenQuestion::Moved => Needs::NewBasis,
            _ => Needs::Decision(self.facts),
        }
    }

    /// The same with the answer for some of the keys: one of them without an item is unknown.
    #[must_use]
    pub fn with_items(mut self, asked: &[KeyHash], found: Known) -> Self {
        let open = match &mut self.open {
            OpenQuestion::Keys(open) if found.rev == self.facts.basis.record.rev => open,
            _ => return self.moved(),
        };
        for key in asked {
            open.remove(key);
        }
        self.facts.basis.known.items.extend(found.items);
        self
    }

    /// The same with the items, at revision `rev`, that have some of the witnesses.
    #[must_use]
    pub fn with_lookalikes(mut self, asked: &[KeyHash], rev: u64, found: Vec<Arc<Item>>) -> Self {
        let open = match &mut self.open {
            OpenQuestion::Witnesses(open) if rev == self.facts.basis.record.rev => open,
            _ => return self.moved(),
        };
        for witness in asked {
            open.remove(witness);
        }
        self.facts.basis.known.lookalikes.extend(found);
        self
    }

    /// The same when an answer is no answer to its question, as the feed was another one by then.
    fn moved(mut self) -> Self {
        self.open = OpenQuestion::Moved;
        self
    }
}

impl Facts {
    /// The witnesses of all entries whose keys are unknown.
    fn witnesses(&self) -> BTreeSet<KeyHash> {
        let DecisionBasis { record, known } = &self.basis;
        if record.items.total == 0 {
            return BTreeSet::new();
        }
        let mut witnesses = witness_keys(&record.ids.namespace, known, &self.live);
        witnesses.extend(witness_keys(
            &record.ids.namespace,
            known,
            &self.older.observation(),
        ));
        witnesses.into_iter().collect()
    }
}
