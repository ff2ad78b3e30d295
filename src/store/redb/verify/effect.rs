//! The effect of damage on a process that serves the file: a refused start, or a part of the service
//! that fails. Not how damage is found.

use super::super::{
    copy_note::refuse_copied,
    file::{SeenFile, StoreFile},
    guarded::sheltered,
    open_file::{FileOpener as _, OpenDatabase},
    writer::{content_mark, stored_guard},
};
use crate::store::{
    StoreError,
    rows::{
        accounts, catalog,
        tables::{
            EVENTS, FEEDS, HOSTS, INDEX_NOW, ITEMS, OPML_LISTS, POLLS, POSITIONS, PUSHED, REGISTRY,
            SUBSCRIPTIONS, WALKS,
        },
    },
};
use redb::ReadableDatabase as _;
use std::path::Path;

/// Memory for pages of the file, in bytes.
const CACHE_BYTES: usize = 8 << 20;

/// The effect of a damaged row on a process that has started.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DamageEffect {
    /// The row is passed over, and the log says so.
    PassedOver,
    /// One feed is neither served nor polled.
    OfOneFeed,
    /// An answer that needs one item is an error.
    OfOneItem,
    /// An answer, a poll or a change that needs the row is an error.
    OfItsUsers,
}

impl DamageEffect {
    /// The effect of a damaged row of the table of this name.
    pub(super) fn of_table(name: &str) -> Self {
        let passed_over = [
            EVENTS.name(),
            HOSTS.name(),
            INDEX_NOW.name(),
            OPML_LISTS.name(),
            POLLS.name(),
            POSITIONS.name(),
            PUSHED.name(),
            REGISTRY.name(),
            SUBSCRIPTIONS.name(),
            WALKS.name(),
        ];
        if passed_over.contains(&name) {
            Self::PassedOver
        } else if name == FEEDS.name() {
            Self::OfOneFeed
        } else if name == ITEMS.name() {
            Self::OfOneItem
        } else {
            Self::OfItsUsers
        }
    }

    /// The words for the operator.
    pub(super) const fn words(self) -> &'static str {
        match self {
            Self::PassedOver => "everfeed passes over what is damaged, and says so in the log",
            Self::OfOneFeed => {
                "everfeed neither serves nor polls a feed with a damaged record. All others go on"
            }
            Self::OfOneItem => {
                "everfeed answers a page with a damaged item by an error, which names the command that removes the item"
            }
            Self::OfItsUsers => {
                "everfeed fails where it needs what is damaged, says so in the log, and serves the rest"
            }
        }
    }
}

/// The words with which a start refuses the file at a path; `None` for a file that it opens. Reads
/// what a start reads, by the same code. Nothing is written. Blocks.
pub(super) fn refused_start(path: &Path) -> Option<String> {
    let started = sheltered(|| {
        let seen = SeenFile::new(path, CACHE_BYTES).open()?;
        refuse_copied(&seen, path)?;
        started(path, &seen)
    });
    started.err().map(|error| error.to_string())
}

/// Reads what a start of the whole process reads.
fn started(path: &Path, seen: &OpenDatabase) -> Result<(), StoreError> {
    let now = content_mark(seen)?.unwrap_or_default().last_t;
    StoreFile::new(path, CACHE_BYTES).settle_seen(seen, now)?;
    stored_guard(seen)?;
    let snapshot = seen.begin_read()?;
    catalog::names(&snapshot, None, usize::MAX)?;
    accounts::users(&snapshot, None, usize::MAX)?;
    accounts::tokens(&snapshot, None, usize::MAX)?;
    Ok(())
}
