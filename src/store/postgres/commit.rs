//! Applying a commit, with what is saved beside the items and what it changes in groups; what it
//! comes to is planned elsewhere. It takes two round trips: one locks and reads, one writes and
//! commits. What follows in groups, and what is rare, takes more.

use super::{
    database::DatabaseWriting,
    feed_locks::{locked, locked_groups, locked_with_groups, numbers},
    forgotten, groups,
    items::FeedItems,
    planned::{witnesses_asked, write_planned, write_value},
    rows,
    session::DatabaseSession,
    staged_pages::{staged_numbers, staged_page, write_page},
    statement::{SqlStatement, column, feed_at, number_at, number_column},
};
use crate::{
    feed::{
        archive::{ArchiveWalk, PageFate, StagedBody, StagedPage, StagingChange},
        item::ItemId,
        observation_record::OBSERVATIONS_MAX,
        reconcile::WINDOW_ENTRIES_MAX,
        record::FeedNo,
        schedule::PollState,
    },
    store::{
        Commit, HostPause, Receipt, StoreError,
        group_plan::MemberCommit,
        plan,
        stored::{decode, encode},
    },
};
use std::collections::{BTreeSet, HashMap};

/// Applies a commit, whole or not at all.
pub(super) fn commit(
    writing: &DatabaseWriting<'_>,
    commit: &Commit,
) -> Result<Receipt, StoreError> {
    let (session, feed) = (writing.session, commit.basis.feed);
    let ids: BTreeSet<[u8; 10]> = commit
        .changes
        .iter()
        .map(|change| change.id().0)
        .chain(commit.copies.iter().map(|item| item.id.0))
        .collect();
    let ids: Vec<ItemId> = ids.into_iter().map(ItemId).collect();
    let last_observation =
        SqlStatement::new("SELECT coalesce(max(no), 0) FROM observations WHERE feed = $1");
    // Behind the lock each statement sees what was committed before it was ours.
    let answers = session.ask(vec![
        locked_with_groups(feed),
        groups::groups_asked(feed),
        rows::record_asked(feed),
        FeedItems::newest_asked(feed),
        FeedItems::asked(feed, ids.clone()),
        witnesses_asked(commit),
        last_observation.with(feed),
    ])?;
    let record = rows::record_in(feed, &answers[2])?;
    writing.check_clock()?;
    let groups = locked_groups(session, &answers[0], &answers[1])?;
    let held = FeedItems::of(session, feed);
    held.take_newest(&answers[3])?;
    held.take(ids, &answers[4])?;
    let (name, total_before) = (record.name.clone(), record.items.total);
    let planned = plan::plan(record, commit, writing.now()?, &held);
    let mut plan = planned.map_err(|error| named(error, &name, commit))?;
    let member = MemberCommit {
        planned: &plan,
        commit,
    };
    let followers = groups::followers(writing, groups, member)?;
    groups::forget_posts(session, feed, &plan.forgotten)?;
    write_planned(session, commit, &plan, &answers[5], total_before)?;
    if let Some(last) = &commit.last {
        let mut kept = last.clone();
        kept.entries.truncate(WINDOW_ENTRIES_MAX);
        write_value(session, WINDOW_WRITTEN, feed, &kept)?;
    }
    if let Some(observed) = &commit.observed {
        let last = answers[6]
            .first()
            .map(|row| number_at(row, 0))
            .transpose()?;
        let no = last.unwrap_or_default() + 1;
        let sql = "INSERT INTO observations (feed, no, value) VALUES ($1, $2, $3)";
        let written = SqlStatement::new(sql).with(feed).with(number_column(no));
        session.change(written.with(encode(observed)?));
        if let Some(old) = no.checked_sub(OBSERVATIONS_MAX) {
            let sql = "DELETE FROM observations WHERE feed = $1 AND no <= $2";
            session.change(SqlStatement::new(sql).with(feed).with(number_column(old)));
        }
    }
    if let Some(poll) = &commit.poll {
        write_value(session, POLL_WRITTEN, feed, poll)?;
    }
    if let Some(archives) = &commit.archives
        && let Some(unstage) = archives.unstage
    {
        unstage_pages(session, feed, unstage)?;
    }
    let feed_now = &plan.receipt.feed;
    if plan.may_show_forgotten(commit) {
        forgotten::cut_kept(session, feed_now)?;
    }
    for rows in followers {
        plan.receipt.groups.extend(groups::write(session, rows)?);
    }
    writing.record_clock();
    Ok(plan.receipt)
}

/// Damage of an item that a commit changes, told with the item where it changes one.
fn named(error: StoreError, feed_name: &str, commit: &Commit) -> StoreError {
    match (error, commit.changes.as_slice()) {
        (StoreError::Damaged(what), [change]) => StoreError::DamagedItem {
            feed: feed_name.to_owned(),
            id: change.id(),
            what,
        },
        (error, _) => error,
    }
}

const WINDOW_WRITTEN: &str = "INSERT INTO windows (feed, value) VALUES ($1, $2) \
     ON CONFLICT (feed) DO UPDATE SET value = excluded.value";
const POLL_WRITTEN: &str = "INSERT INTO polls (feed, value) VALUES ($1, $2) \
     ON CONFLICT (feed) DO UPDATE SET value = excluded.value";
const WALK_WRITTEN: &str = "INSERT INTO walks (feed, value) VALUES ($1, $2) \
     ON CONFLICT (feed) DO UPDATE SET value = excluded.value";

/// Forgets the pages that are items now, or their bytes.
fn unstage_pages(
    session: &DatabaseSession,
    feed: FeedNo,
    unstage: StagingChange,
) -> Result<(), StoreError> {
    if unstage == StagingChange::All {
        session.change(SqlStatement::new("DELETE FROM walks WHERE feed = $1").with(feed));
    }
    for no in staged_numbers(session, feed)? {
        let fate = u32::try_from(no).map_or(PageFate::Kept, |no| unstage.fate(no));
        if fate == PageFate::Forgotten {
            let sql = "DELETE FROM staging WHERE feed = $1 AND no = $2";
            session.change(SqlStatement::new(sql).with(feed).with(no));
        }
        if fate != PageFate::Stripped {
            continue;
        }
        // One at a time: together they may be all of a large import.
        if let Some(mut page) = staged_page(session, feed, no)?
            && page.waits()
        {
            page.content = StagedBody::Traces;
            write_page(session, feed, &page)?;
        }
    }
    Ok(())
}

/// Keeps a walk and the page that it read.
pub(super) fn stage(
    writing: &DatabaseWriting<'_>,
    feed: FeedNo,
    walk: &ArchiveWalk,
    page: Option<&StagedPage>,
) -> Result<(), StoreError> {
    let session = writing.session;
    let answers = session.ask(vec![locked(vec![feed]), rows::record_asked(feed)])?;
    let record = rows::record_in(feed, &answers[1])?;
    let cut = match page {
        Some(page) => forgotten::cut_page(session, &record, page)?,
        None => None,
    };
    write_value(session, WALK_WRITTEN, feed, walk)?;
    if let Some(page) = cut.as_ref().or(page) {
        write_page(session, feed, page)?;
    }
    writing.record_clock();
    Ok(())
}

/// Saves poll states and host pauses.
pub(super) fn save_polls(
    writing: &DatabaseWriting<'_>,
    polls: &[(FeedNo, PollState)],
    pauses: &[HostPause],
) -> Result<(), StoreError> {
    let session = writing.session;
    let feeds: Vec<FeedNo> = polls.iter().map(|(feed, _)| *feed).collect();
    let held = SqlStatement::new("SELECT feed, value FROM polls WHERE feed = ANY($1)");
    let answers = session.ask(vec![
        locked(feeds.clone()),
        held.with(feeds),
        SqlStatement::new("SELECT number FROM meta WHERE name = 'last_feed'"),
    ])?;
    let known: BTreeSet<u32> = numbers(&answers[0])?.into_iter().collect();
    let last_given = answers[2]
        .first()
        .map(|row| number_at(row, 0))
        .transpose()?;
    let mut held = HashMap::new();
    for row in &answers[1] {
        // One that is damaged is replaced.
        if let Ok(poll) = decode::<PollState>("a poll state", column(row, 1)?) {
            held.insert(feed_at(row, 0)?, poll);
        }
    }
    let now = writing.now()?;
    for (feed, poll) in polls {
        if !known.contains(&feed.0) {
            // A number that was given once is that of a feed that was forgotten.
            if u64::from(feed.0) > last_given.unwrap_or_default() {
                return Err(StoreError::UnknownFeed(*feed));
            }
            continue;
        }
        if held
            .get(feed)
            .is_some_and(|held| poll.is_outdated_by(held, now))
        {
            continue;
        }
        held.insert(*feed, poll.clone());
        write_value(session, POLL_WRITTEN, *feed, poll)?;
    }
    if !pauses.is_empty() {
        // Pauses are rare and most are over soon, so the table stays short when each new one sweeps
        // it.
        let swept = SqlStatement::new("DELETE FROM pauses WHERE paused_until <= $1");
        session.change(swept.with(now));
    }
    for (host, pause) in pauses {
        let sql = "INSERT INTO pauses (host, paused_since, paused_until) VALUES ($1, $2, $3) \
                   ON CONFLICT (host) DO UPDATE SET paused_since = excluded.paused_since, \
                   paused_until = excluded.paused_until";
        let written = SqlStatement::new(sql).with(host.as_str());
        session.change(written.with(pause.since).with(pause.until));
    }
    writing.record_clock();
    Ok(())
}
