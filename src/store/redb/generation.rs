//! A new generation of each feed where the file is an older copy of the store: a backup, or behind
//! its mark. Not how cursors of a former one are answered.

use super::{
    accounts::{self, LAST_TOKEN_KEY, LAST_USER_KEY},
    catalog, commit,
    mark_file::{FoundMark, MarkFile},
    open_file::OpenDatabase,
    planned::write_record,
    removed_log::{Removed, RemovedLog},
    rows,
    tables::{META, TableEdit as _, snapshot_table},
    writer::{CONTENT_KEY, Writing, content_mark, stored_guard},
};
use crate::{
    feed::{item::ItemId, record::FeedNo, stamp::Stamp},
    store::{
        Commit, StoreError, clock_guard::ClockGuard, content_mark::ContentMark, stored::StoredKind,
    },
};
use redb::{Database, ReadableDatabase as _, WriteTransaction};

/// Key in META of a copy: the time at which it was made, in microseconds.
pub(super) const COPY_KEY: &str = "copied_at";

/// Feeds that are read at once.
const FEEDS_AT_ONCE: usize = 1000;

/// Reason for which a store is taken for restored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Restored {
    /// The file is a backup of this time.
    Backup(Stamp),
    /// The file is behind its mark by so many commits.
    BehindMark { commits: u64 },
    /// The mark is another store's.
    AnotherStore,
}

impl Restored {
    /// The words for the operator.
    pub(super) fn words(&self, mark: &MarkFile) -> String {
        let mark = mark.path().display();
        let why = match self {
            Self::Backup(at) => format!("its file is a backup of {}", at.rfc3339()),
            Self::BehindMark { commits } => format!(
                "its file is older than the store that was here, by {commits} commits ({mark} says so)"
            ),
            Self::AnotherStore => {
                format!("its file is not the store that was here before ({mark} says so)")
            }
        };
        format!(
            "The store was restored: {why}. Each feed begins a new generation, and mirrors read it anew"
        )
    }
}

// Decides: When is a store taken for restored?
/// Holds a store that was opened against its mark. A copy gets new generations before anybody reads
/// it; a mark that is missing or behind is written anew.
pub(super) fn settle(
    open: &OpenDatabase,
    mark: &MarkFile,
    removed: &RemovedLog,
    now: Stamp,
) -> Result<Option<Restored>, StoreError> {
    let content = content_mark(open)?;
    let copied_at: Option<Stamp> =
        snapshot_table(&open.begin_read()?, META)?.read(COPY_KEY, "the time of a backup")?;
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
    let restored = match (copied_at, &left) {
        (Some(at), _) => Some(Restored::Backup(at)),
        (None, Some(left)) if held.is_behind(left) => Some(behind(&content, left)),
        _ => None,
    };
    let next = match (&restored, content) {
        (None, Some(content)) => {
            if left != Some(content) {
                mark.write_both(&content);
            }
            return Ok(None);
        }
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
    let generation = restored.as_ref().map(|_| Generation {
        at: next.last_t,
        removed: removed.read(),
        now,
    });
    begin(open, generation.as_ref(), &next)?;
    mark.write_both(&next);
    Ok(restored)
}

/// A generation that is to begin.
struct Generation {
    at: Stamp,
    /// Removals for good, from before and after the copy was made.
    removed: Vec<Removed>,
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

/// Writes the mark, and begins a generation if one is to begin; whole or not at all.
fn begin(
    database: &Database,
    generation: Option<&Generation>,
    mark: &ContentMark,
) -> Result<(), StoreError> {
    let guard = stored_guard(database)?;
    let mut tx = database.begin_write()?;
    tx.set_quick_repair(true);
    if let Some(generation) = generation {
        remove_again(&tx, generation, guard)?;
        renew_feeds(&tx, generation.at)?;
    }
    let mut meta = tx.edit(META)?;
    meta.write(CONTENT_KEY, mark)?;
    meta.remove(COPY_KEY)?;
    drop(meta);
    Ok(tx.commit()?)
}

/// Gives each feed a generation that begins then.
fn renew_feeds(tx: &WriteTransaction, at: Stamp) -> Result<(), StoreError> {
    let mut after = None;
    loop {
        let records = rows::records(tx, after, FEEDS_AT_ONCE)?;
        let Some(last) = records.last() else {
            return Ok(());
        };
        after = Some(last.no);
        for record in records {
            write_record(tx, &record.restored(at))?;
        }
    }
}

/// Removes what was removed since the copy was made. No number of it is given again.
// Limit: an item that came after the copy and was removed is unknown here. It comes again if the
// publisher still shows it.
fn remove_again(
    tx: &WriteTransaction,
    generation: &Generation,
    guard: ClockGuard,
) -> Result<(), StoreError> {
    let mut writing = Writing::over(tx, generation.now, guard);
    for removed in &generation.removed {
        let done = match *removed {
            Removed::Feed(feed) => {
                not_again(tx, rows::LAST_FEED_KEY, feed.0)?;
                catalog::forget(&mut writing, feed)
            }
            Removed::Item(feed, item) => forget_item(&mut writing, feed, item),
            Removed::User(user) => {
                not_again(tx, LAST_USER_KEY, user.0)?;
                accounts::remove_user(&mut writing, user)
            }
            Removed::Token(token) => {
                not_again(tx, LAST_TOKEN_KEY, token.0)?;
                accounts::remove_token(&mut writing, token)
            }
        };
        match done {
            Ok(true) => tracing::info!("Removed again from the restored store: {removed}"),
            Ok(false) => {}
            Err(error @ (StoreError::Damaged(_) | StoreError::DamagedItem { .. })) => {
                tracing::error!("Cannot remove again from the restored store: {removed}: {error}");
            }
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// Sees to it that a number is not given again.
fn not_again<N>(tx: &WriteTransaction, key: &'static str, number: N) -> Result<(), StoreError>
where
    N: StoredKind + Ord + Default,
{
    let mut meta = tx.edit(META)?;
    let last: N = meta.read(key, "the last number given")?.unwrap_or_default();
    if number > last {
        meta.write(key, &number)?;
    }
    Ok(())
}

/// Forgets an item, if it is there and not forgotten.
fn forget_item(writing: &mut Writing<'_>, feed: FeedNo, id: ItemId) -> Result<bool, StoreError> {
    let snapshot = match rows::snapshot(writing.look(), feed, &[]) {
        Err(StoreError::UnknownFeed(_)) => return Ok(false),
        snapshot => snapshot?,
    };
    let item = rows::Items::of(writing.look(), feed)?.item(id)?;
    if item.is_none_or(|item| item.content.is_forgotten()) {
        return Ok(false);
    }
    commit::commit(writing, &Commit::forgetting(snapshot, id)).map(|_| true)
}
