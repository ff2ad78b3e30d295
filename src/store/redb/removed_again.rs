//! Removals for good that are done once more, because the file of the store is an older copy; not how
//! they are remembered.

use crate::{
    feed::{item::ItemId, record::FeedNo},
    store::{
        Commit, StoreError,
        engine::{RowReader, RowWriter},
        rows::{
            Writing,
            accounts::{self, LAST_TOKEN_KEY, LAST_USER_KEY},
            catalog, commit,
            open_table::{TableEdit as _, TableSource as _},
            reads,
            removed::Removed,
            tables::{META, TOKENS, USERS, token_key, user_key},
        },
        stored::StoredKind,
    },
};

/// A removal that is to be made again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct DueRemoval {
    removed: Removed,
}

impl DueRemoval {
    /// True for what is in no store from which it was removed: the file is an older copy. An item
    /// may also have come anew, from a publisher who still shows it.
    pub(super) fn is_of_an_older_copy(&self) -> bool {
        !matches!(self.removed, Removed::Item(..))
    }
}

/// The removals that a store does not know of.
pub(super) fn due(
    source: &dyn RowReader,
    removed: Vec<Removed>,
) -> Result<Vec<DueRemoval>, StoreError> {
    let mut due = Vec::new();
    for removed in removed {
        let is_due = match removed {
            Removed::Feed(feed) => {
                feed.0 > reads::last_feed_number(source)? || is_known(source, feed)?
            }
            Removed::Item(feed, item) => is_shown(source, feed, item)?,
            Removed::User(user) => {
                let key = user_key(user);
                user.0 > accounts::last_number(source, LAST_USER_KEY)?
                    || source.table(USERS)?.get(&key)?.is_some()
            }
            Removed::Token(token) => {
                let key = token_key(token);
                token.0 > accounts::last_number(source, LAST_TOKEN_KEY)?
                    || source.table(TOKENS)?.get(&key)?.is_some()
            }
            Removed::Password(user, digest) => match accounts::has_password(source, user, digest) {
                Err(StoreError::Damaged(_)) => false,
                has => has?,
            },
        };
        if is_due {
            due.push(DueRemoval { removed });
        }
    }
    Ok(due)
}

fn is_known(source: &dyn RowReader, feed: FeedNo) -> Result<bool, StoreError> {
    match reads::known_feed(source, feed) {
        Err(StoreError::UnknownFeed(_)) => Ok(false),
        known => known.map(|()| true),
    }
}

/// True for an item that is not forgotten. One that is damaged is removed again.
fn is_shown(source: &dyn RowReader, feed: FeedNo, id: ItemId) -> Result<bool, StoreError> {
    match reads::Items::of(source, feed)?.item(id) {
        Ok(item) => Ok(item.is_some_and(|item| !item.content.is_forgotten())),
        Err(StoreError::Damaged(_) | StoreError::DamagedItem { .. }) => is_known(source, feed),
        Err(error) => Err(error),
    }
}

/// Removes again what is due. No number of it is given again.
// Limit: an item that came after the copy and was removed comes again if the publisher still shows
// it, and goes with the next start.
pub(super) fn apply(writing: &mut Writing<'_>, due: &[DueRemoval]) -> Result<(), StoreError> {
    for DueRemoval { removed } in due {
        let done = match *removed {
            Removed::Feed(feed) => {
                not_again(writing.look(), reads::LAST_FEED_KEY, feed.0)?;
                catalog::forget(writing, feed)
            }
            Removed::Item(feed, item) => forget_item(writing, feed, item),
            Removed::User(user) => {
                not_again(writing.look(), LAST_USER_KEY, user.0)?;
                accounts::remove_user(writing, user)
            }
            Removed::Token(token) => {
                not_again(writing.look(), LAST_TOKEN_KEY, token.0)?;
                accounts::remove_token(writing, token)
            }
            Removed::Password(user, digest) => accounts::close_password(writing, user, digest),
        };
        match done {
            Ok(true) => tracing::warn!("Removed again from an older copy of the store: {removed}"),
            Ok(false) => {}
            Err(error @ (StoreError::Damaged(_) | StoreError::DamagedItem { .. })) => {
                tracing::error!(
                    "Cannot remove again from an older copy of the store: {removed}: {error}"
                );
            }
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// Sees to it that a number is not given again.
fn not_again<N>(tx: &dyn RowWriter, key: &'static str, number: N) -> Result<(), StoreError>
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
    let snapshot = match reads::snapshot(writing.look(), feed, &[]) {
        Err(StoreError::UnknownFeed(_)) => return Ok(false),
        snapshot => snapshot?,
    };
    let item = reads::Items::of(writing.look(), feed)?.item(id)?;
    if item.is_none_or(|item| item.content.is_forgotten()) {
        return Ok(false);
    }
    commit::commit(writing, &Commit::forgetting(snapshot, id)).map(|_| true)
}
