//! The readers behind all subscriptions, remembered: each poll tells those of its feed, and hardly
//! any poll finds that they changed. Not the subscriptions.

use super::{
    session::DatabaseSession,
    statement::{SqlStatement, feed_at, number_at, stamp_at},
};
use crate::{
    feed::{record::FeedNo, stamp::Stamp},
    locks::lock,
    store::StoreError,
};
use std::{
    collections::HashMap,
    sync::{
        Mutex,
        atomic::{AtomicU64, Ordering},
    },
};

/// Time for which they are remembered, in seconds: another process may have worked in between.
const REMEMBERED_SECS: u64 = 60;

/// Subscriptions that are remembered at most, of some 30 bytes each. Where there are more, each feed
/// is asked for.
const REMEMBERED_MAX: usize = if cfg!(test) { 3 } else { 100_000 };

/// The readers behind subscriptions, as this process remembers them.
#[derive(Default)]
pub(super) struct ActiveReaders {
    /// Changes of subscriptions that this process committed.
    changes: AtomicU64,
    remembered: Mutex<Option<Remembered>>,
}

struct Remembered {
    changes: u64,
    at: Stamp,
    /// The leases of a feed with their readers; `None` where there are too many.
    by_feed: Option<HashMap<FeedNo, Vec<ActiveLease>>>,
}

struct ActiveLease {
    until: Stamp,
    readers: u64,
}

impl ActiveReaders {
    /// Notes that subscriptions were changed, when that is committed.
    pub(super) fn note_change(&self) {
        self.changes.fetch_add(1, Ordering::SeqCst);
    }

    /// The number of readers behind the subscriptions to a feed whose deliveries are due at this
    /// time, if it is remembered.
    pub(super) fn known(&self, feed: FeedNo, now: Stamp) -> Option<usize> {
        let remembered = lock(&self.remembered);
        let remembered = remembered.as_ref()?;
        if !remembered.is_fresh(now) || remembered.changes != self.changes.load(Ordering::SeqCst) {
            return None;
        }
        let leases = remembered.by_feed.as_ref()?.get(&feed);
        let due = leases.into_iter().flatten();
        let due = due.filter(|lease| lease.until > now);
        let readers: u64 = due.map(|lease| lease.readers).sum();
        Some(usize::try_from(readers).unwrap_or(usize::MAX))
    }

    /// True when all are to be read. What changed since is asked for feed by feed until then.
    fn are_wanted(&self, now: Stamp) -> bool {
        let remembered = lock(&self.remembered);
        !remembered.as_ref().is_some_and(|kept| kept.is_fresh(now))
    }
}

impl Remembered {
    fn is_fresh(&self, now: Stamp) -> bool {
        self.at <= now && now.secs_since(self.at) < REMEMBERED_SECS
    }
}

/// Counts the readers of a feed that are not remembered, and remembers all where that is due.
pub(super) fn count(
    active: &ActiveReaders,
    session: &DatabaseSession,
    feed: FeedNo,
    now: Stamp,
) -> Result<usize, StoreError> {
    if active.are_wanted(now) {
        let changes = active.changes.load(Ordering::SeqCst);
        let by_feed = all(session)?;
        *lock(&active.remembered) = Some(Remembered {
            changes,
            at: now,
            by_feed,
        });
    }
    match active.known(feed, now) {
        Some(known) => Ok(known),
        None => asked(session, feed, now),
    }
}

fn all(session: &DatabaseSession) -> Result<Option<HashMap<FeedNo, Vec<ActiveLease>>>, StoreError> {
    let sql = "SELECT s.feed, s.lease_until, p.readers::bigint FROM subscriptions s \
               JOIN positions p ON p.no = s.no LIMIT $1";
    let max = i64::try_from(REMEMBERED_MAX).unwrap_or(i64::MAX);
    let rows = session.rows(SqlStatement::new(sql).with(max + 1))?;
    if rows.len() > REMEMBERED_MAX {
        return Ok(None);
    }
    let mut by_feed: HashMap<FeedNo, Vec<ActiveLease>> = HashMap::new();
    for row in &rows {
        by_feed
            .entry(feed_at(row, 0)?)
            .or_default()
            .push(ActiveLease {
                until: stamp_at(row, 1)?,
                readers: number_at(row, 2)?,
            });
    }
    Ok(Some(by_feed))
}

/// The number of readers behind the subscriptions to one feed.
fn asked(session: &DatabaseSession, feed: FeedNo, now: Stamp) -> Result<usize, StoreError> {
    let sql = "SELECT coalesce(sum(p.readers), 0)::bigint FROM subscriptions s \
               JOIN positions p ON p.no = s.no WHERE s.feed = $1 AND s.lease_until > $2";
    let row = session.row(SqlStatement::new(sql).with(feed).with(now))?;
    let readers = row.map_or(Ok(0), |row| number_at(&row, 0))?;
    Ok(usize::try_from(readers).unwrap_or(usize::MAX))
}
