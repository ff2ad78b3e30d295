//! A new generation of each feed where the file is an older copy of the store: a backup, or behind
//! its mark. Not how cursors of a former one are answered.

use super::{
    mark_file::{FoundMark, MarkFile},
    open_file::OpenDatabase,
    removed_again::{self, DueRemoval},
    removed_log::RemovedLog,
    writer::{CONTENT_KEY, content_mark, stored_guard},
};
use crate::{
    feed::stamp::Stamp,
    store::{
        StoreError,
        content_mark::ContentMark,
        new_generation::renew_feeds,
        rows::{
            Writing,
            open_table::{TableEdit as _, TableSource as _},
            subscriptions,
            tables::{META, stamp_of, stamp_value},
        },
    },
};
use redb::{Database, ReadableDatabase as _};

/// Key in META of a copy: the time at which it was made, in microseconds.
pub(super) const COPY_KEY: &str = "copied_at";

/// Key in META of the last restore: its time as a T, and the words for the operator.
pub(super) const RESTORED_KEY: &str = "restored";

/// Time for which a restore is told at every opening and in the status, in seconds: 7 days.
const RESTORE_TOLD_SECS: u64 = 7 * 86_400;

/// Reason for which a store is taken for restored.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Restored {
    /// The file is a backup of this time.
    Backup(Stamp),
    /// The file is behind its mark by so many commits.
    BehindMark { commits: u64 },
    /// The mark is another store's.
    AnotherStore,
    /// The file holds what was removed from the store.
    BehindRemovals,
}

impl Restored {
    /// The words for the operator.
    fn words(&self, mark: &MarkFile, now: Stamp) -> String {
        let mark = mark.path().display();
        let why = match self {
            Self::Backup(at) => format!("its file is a backup of {}", at.rfc3339()),
            Self::BehindMark { commits } => format!(
                "its file is older than the store that was here, by {commits} commits ({mark} says so)"
            ),
            Self::AnotherStore => {
                format!("its file is not the store that was here before ({mark} says so)")
            }
            Self::BehindRemovals => {
                "its file is older than the store that was here: it holds what was removed since"
                    .to_owned()
            }
        };
        format!(
            "The store was restored at {}: {why}. Each feed began a new generation, and mirrors read it anew",
            now.rfc3339()
        )
    }
}

/// Holds a store that was opened against its mark and against what was removed from it. A copy gets
/// new generations before anybody reads it; a mark that is missing or behind is written anew. The
/// words for a store that was restored in the last days.
pub(super) fn settle(
    open: &OpenDatabase,
    mark: &MarkFile,
    log: &RemovedLog,
    now: Stamp,
) -> Result<Option<String>, StoreError> {
    let settled = settled(open, mark, log, now)?;
    if settled.left != Some(settled.content) {
        mark.write_both(&settled.content);
    }
    match settled.restored {
        Some(words) => Ok(Some(words)),
        None => lately_restored(open, now),
    }
}

/// A store after it was held against what stands beside it.
pub(super) struct Settled {
    /// The words for a restore that was noticed now.
    restored: Option<String>,
    /// The mark that was left beside it.
    left: Option<ContentMark>,
    /// Its own, as it is now.
    content: ContentMark,
}

// Decides: When is a store taken for restored?
/// The same for the store alone: nothing beside it is written.
pub(super) fn settled(
    open: &OpenDatabase,
    mark: &MarkFile,
    log: &RemovedLog,
    now: Stamp,
) -> Result<Settled, StoreError> {
    let content = content_mark(open)?;
    let copied_at = copied_at(open)?;
    let left = match mark.read() {
        FoundMark::Read(left) => Some(left),
        FoundMark::Missing => None,
        FoundMark::Damaged(why) => {
            tracing::warn!(
                "{} cannot be read and is written anew; whether the store is an older copy is not known: {why}",
                mark.path().display()
            );
            None
        }
    };
    let held = content.unwrap_or_default();
    let removed = content.map(|content| log.read(content.store));
    let removed = removed_again::due(&open.begin_read()?, removed.unwrap_or_default())?;
    let restored = match (copied_at, &left) {
        (Some(at), _) => Some(Restored::Backup(at)),
        (None, Some(left)) if held.is_behind(left) => Some(behind(&content, left)),
        // Also without a mark, or with an older one.
        _ if removed.iter().any(DueRemoval::is_of_an_older_copy) => Some(Restored::BehindRemovals),
        _ => None,
    };
    let next = match (&restored, content) {
        (None, Some(content)) if removed.is_empty() => {
            return Ok(Settled {
                restored: None,
                left,
                content,
            });
        }
        (None, Some(content)) => content,
        (None, None) => ContentMark {
            store: rand::random(),
            ..held
        },
        (Some(_), content) => {
            let until = ContentMark::generation_after(left.as_ref(), now);
            let store = content.map_or_else(rand::random, |content| content.store);
            ContentMark { store, ..held }.restored(left.as_ref(), until)
        }
    };
    let renewal = Renewal {
        restored: restored.map(|restored| restored.words(mark, now)),
        removed,
        now,
    };
    let content = begin(open, &renewal, next)?;
    Ok(Settled {
        restored: renewal.restored,
        left,
        content,
    })
}

/// The changes to a store before anybody reads it.
struct Renewal {
    /// The words for a restore, with which each feed begins a generation.
    restored: Option<String>,
    /// Removals for good, from before and after the copy was made.
    removed: Vec<DueRemoval>,
    now: Stamp,
}

fn behind(content: &Option<ContentMark>, left: &ContentMark) -> Restored {
    match content {
        Some(content) if content.store == left.store => Restored::BehindMark {
            commits: left.commits.saturating_sub(content.commits),
        },
        _ => Restored::AnotherStore,
    }
}

/// Writes the mark, and begins a generation if one is to begin; whole or not at all. The mark as it
/// is then.
fn begin(
    database: &Database,
    renewal: &Renewal,
    mark: ContentMark,
) -> Result<ContentMark, StoreError> {
    let guard = stored_guard(database)?;
    let mut tx = database.begin_write()?;
    tx.set_quick_repair(true);
    if let Some(words) = &renewal.restored {
        renew_feeds(&tx, mark.last_t)?;
        subscriptions::set_back(&tx)?;
        let row = [&stamp_value(renewal.now), words.as_bytes()].concat();
        tx.edit(META)?.insert(RESTORED_KEY, &row)?;
    }
    // Only in the new generation: a removal gets a T, and what was lost ends before it.
    let mut writing = Writing::over(&tx, renewal.now, guard, mark);
    removed_again::apply(&mut writing, &renewal.removed)?;
    let mark = writing.content();
    let mut meta = tx.edit(META)?;
    meta.write(CONTENT_KEY, &mark)?;
    meta.remove(COPY_KEY)?;
    drop(meta);
    tx.commit()?;
    Ok(mark)
}

/// The words for the last restore, if that was not long ago.
fn lately_restored(open: &OpenDatabase, now: Stamp) -> Result<Option<String>, StoreError> {
    let row = open.begin_read()?.table(META)?.get(RESTORED_KEY)?;
    let told = row.and_then(|row| {
        let (at, words) = row.value().split_at_checked(size_of::<u64>())?;
        let is_over = stamp_of(at).plus_secs(RESTORE_TOLD_SECS) < now;
        (!is_over).then(|| String::from_utf8_lossy(words).into_owned())
    });
    Ok(told)
}

/// The time of which a file is a backup; `None` for a file that is none.
pub(super) fn copied_at(open: &OpenDatabase) -> Result<Option<Stamp>, StoreError> {
    open.begin_read()?
        .table(META)?
        .read(COPY_KEY, "the time of a backup")
}
