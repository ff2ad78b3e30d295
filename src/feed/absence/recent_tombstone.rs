//! Tombstones of the last thirty days: their pages are asked for again after 1, 3, 10 and 30 days,
//! since what is back lives again, whether or not a document shows it. Not the asking.

use crate::{
    item::{Item, ItemDigests, ItemId, Reason},
    stamp::Stamp,
};
use everfeed_adapters::Entry;
use std::sync::Arc;

/// A tombstone whose page is asked for again, with the form in which the item would come back.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RecentTombstone {
    /// The item.
    pub id: ItemId,
    /// Time of the tombstone.
    pub ended_at: Stamp,
    /// Time of the next request.
    pub next_at: Stamp,
    /// Its last content.
    pub entry: Arc<Entry>,
    /// The publisher's date, microseconds since 1970, if it is plausible.
    pub published_us: Option<i64>,
    /// Digests of its last form.
    pub digests: ItemDigests,
}

/// Tombstones of a feed that are asked about again, at most; the oldest are forgotten first.
pub const RECENT_MAX: usize = 100;

/// Size of a content that is kept for this, in bytes of its texts.
// Limit: a larger post whose page is back lives again with the next document that shows it.
const ENTRY_BYTES_MAX: usize = 32 * 1024;

/// Days after the tombstone on which its page is asked for.
const DAYS: [u64; 4] = [1, 3, 10, 30];

const DAY_SECS: u64 = 86_400;

impl RecentTombstone {
    /// True when an item that ended for this reason is asked about again: nobody said so, it was
    /// only missing.
    pub fn is_kept_for(reason: Reason) -> bool {
        matches!(
            reason,
            Reason::Gone | Reason::AbsentBracketed | Reason::AbsentArchive
        )
    }

    /// Of an item that ends now; `None` for one that is too large, or is gone already.
    pub fn of(item: &Item, now: Stamp) -> Option<Self> {
        let entry = item.shared_entry()?;
        is_small(&entry).then(|| Self {
            id: item.id,
            ended_at: now,
            next_at: now.plus_secs(DAYS[0] * DAY_SECS),
            entry,
            published_us: item.published_us,
            digests: item.digests,
        })
    }

    /// The same in the form in which a document shows it now, unless that is too large.
    #[must_use]
    pub fn in_form(
        self,
        entry: &Arc<Entry>,
        digests: ItemDigests,
        published_us: Option<i64>,
    ) -> Self {
        if !is_small(entry) {
            return self;
        }
        Self {
            entry: Arc::clone(entry),
            digests,
            published_us,
            ..self
        }
    }

    // Decides: When is a tombstone asked about again?
    /// After a request that did not bring it back; `None` after the last. Each of the requests is
    /// made, a day after the one before at least: a clock that is ahead for a while, or a long pause,
    /// takes the place of none.
    pub fn asked(&self, now: Stamp) -> Option<Self> {
        let due = |days: u64| self.ended_at.plus_secs(days * DAY_SECS);
        let next = DAYS.into_iter().map(due).find(|at| *at > self.next_at)?;
        Some(Self {
            next_at: next.max(now.plus_secs(DAY_SECS)),
            ..self.clone()
        })
    }
}

/// True for a content that is kept.
fn is_small(entry: &Entry) -> bool {
    let bodies = entry
        .content
        .iter()
        .map(|content| &content.text)
        .chain(&entry.summary);
    let bytes: usize = bodies.map(|text| text.value.len()).sum();
    bytes <= ENTRY_BYTES_MAX
}

/// The same list with these tombstones added.
pub fn with_recent(
    list: &mut Vec<RecentTombstone>,
    new: impl IntoIterator<Item = RecentTombstone>,
) {
    list.extend(new);
    list.drain(..list.len().saturating_sub(RECENT_MAX));
}
