//! A store copied from a file to a database or back: what goes on there, with all cursors, is not
//! served here any more. Or both go on, and the copy begins new generations without subscriptions.
//! Not how rows are read or written.

use super::{
    StoreError,
    database_url::DatabaseUrl,
    moved_rows::{MoveNote, OF_SUBSCRIBERS},
    postgres::DatabaseEnd,
    redb::row_moves::{FileSource, FileTarget},
};
use crate::{clock::Clock, feed::stamp::Stamp};
use std::{path::Path, sync::Arc};

/// Copies a file to an empty database. With `keep` the file goes on, too. Done again, it finishes a
/// copy that was cut off. Blocks. The answer is the number of rows.
///
/// `Failed` when somebody serves either, or the database holds a store; `Away` when it cannot be
/// reached; `Schema` or `Damaged` when the file is no store that can be served.
pub fn copy_to_database(
    from: &Path,
    to: &DatabaseUrl,
    keep: bool,
    clock: Arc<dyn Clock>,
) -> Result<u64, StoreError> {
    let now = Stamp::from_micros(clock.now_us());
    let source = if keep {
        FileSource::to_look_at(from)?
    } else {
        FileSource::to_leave(from, now)?
    };
    let mut target = DatabaseEnd::open(to, clock)?;
    let begun = target.begun()?;
    if let Some(left) = source.left()?
        && !keep
    {
        if begun
            .as_ref()
            .is_some_and(|begun| begun.token == left.token)
        {
            target.set_unfinished(None)?;
            target.close()?;
            return Ok(0);
        }
        source.refuse()?;
    }
    match begun {
        Some(_) => target.clear()?,
        None if target.is_empty()? => {}
        None => {
            return Err(StoreError::Failed(format!(
                "the database {} holds a store already; name an empty one",
                target.place()
            )));
        }
    }
    let token = rand::random();
    let place = source.place();
    target.set_unfinished(Some(&MoveNote { token, place }))?;
    let without: &[&str] = if keep { &OF_SUBSCRIBERS } else { &[] };
    let mut count = 0;
    source.rows(without, &mut |table, rows| {
        count += rows.len() as u64;
        target.write(table, &rows)
    })?;
    target.count_feeds()?;
    if keep {
        target.begin_generations(now)?;
    } else {
        let place = target.place();
        source.leave(&MoveNote { token, place })?;
    }
    target.set_unfinished(None)?;
    target.close()?;
    Ok(count)
}

/// Copies a database to a new file. With `keep` the database goes on, too. Done again, it finishes a
/// copy that was cut off. Blocks. The answer is the length of the file, in bytes.
///
/// Errors as those of [`copy_to_database`].
pub fn copy_from_database(
    from: &DatabaseUrl,
    to: &Path,
    keep: bool,
    clock: Arc<dyn Clock>,
) -> Result<u64, StoreError> {
    let now = Stamp::from_micros(clock.now_us());
    let source = DatabaseEnd::open(from, clock)?;
    if keep {
        let mut target = FileTarget::begin(to)?;
        source.rows(&OF_SUBSCRIBERS, &mut |table, rows| {
            target.write(table, &rows)
        })?;
        source.close()?;
        return target.put_beside(now);
    }
    let begun = FileTarget::begun(to)?;
    if let Some(left) = source.left()? {
        if begun
            .as_ref()
            .is_some_and(|begun| begun.token == left.token)
        {
            source.close()?;
            return FileTarget::finish(to);
        }
        source.refuse()?;
    }
    source.refuse()?;
    if begun.is_some_and(|begun| begun.place == source.place()) {
        // The database may have been served since.
        let removed = std::fs::remove_file(to);
        removed.map_err(|error| StoreError::Failed(format!("{}: {error}", to.display())))?;
    }
    let mut target = FileTarget::begin(to)?;
    source.rows(&[], &mut |table, rows| target.write(table, &rows))?;
    let token = rand::random();
    let place = source.place();
    target.put_in_place(&MoveNote { token, place })?;
    let place = to.display().to_string();
    source.leave(&MoveNote { token, place })?;
    source.close()?;
    FileTarget::finish(to)
}
