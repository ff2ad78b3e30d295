//! Facts that a decision on documents rests on; not what is decided.

use super::{reconcile::Known, record::FeedRecord};

mod older;

pub use older::{Older, keys, older, witnesses};

/// A feed at one revision: its record and its window, with the items behind the keys that were
/// asked for.
pub struct DecisionBasis {
    /// Its record.
    pub record: FeedRecord,
    /// Its window and items.
    pub known: Known,
}
