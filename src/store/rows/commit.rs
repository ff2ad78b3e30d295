//! Applying a commit, with what is saved beside the items and what it changes in groups; what it
//! comes to is planned elsewhere.

use super::{
    Writing, counted, forgotten, groups,
    open_table::{TableEdit as _, TableSource as _},
    planned::write_planned,
    reads,
    removed::Removed,
    salvage,
    tables::{
        FEEDS, IDS, ITEMS, KEYS, OBSERVATIONS, POLLS, SEGMENTS, STAGING, WALKS, WINDOWS, WITNESSES,
        feed_key, hash_key, id_key, seq_key, seq_of,
    },
};
use crate::{
    feed::{
        archive::{PageFate, StagedBody, StagedPage, StagingChange},
        item::Reason,
        observation_record::{OBSERVATIONS_MAX, ObservationRecord},
        reconcile::{Change, WINDOW_ENTRIES_MAX},
        record::FeedNo,
    },
    store::{
        Commit, Receipt, StoreError,
        engine::{NamedRows, RowPart, RowWriter},
        group_plan::MemberCommit,
        plan,
    },
};
use std::collections::BTreeSet;

/// Applies a commit, whole or not at all.
pub(in crate::store) fn commit(
    writing: &mut Writing<'_>,
    commit: &Commit,
) -> Result<Receipt, StoreError> {
    let feed = commit.basis.feed;
    writing.look().name(|| named(commit))?;
    let record = reads::record(writing.look(), feed)?;
    writing.check_clock()?;
    salvage::mend_removed(writing, commit)?;
    let is_late = commit.may_be_late(&record);
    let mut plan = plan::plan(
        record,
        commit,
        writing.now()?,
        &reads::Items::of(writing.look(), feed)?,
    )?;
    let member = MemberCommit {
        planned: &plan,
        commit,
    };
    let followers = groups::followers(writing, member)?;
    let tx = if is_late && followers.is_empty() {
        writing.change_late()
    } else {
        writing.change()
    };
    groups::forget_posts(tx, feed, &plan.forgotten)?;
    write_planned(tx, commit, &plan)?;
    if let Some(last) = &commit.last {
        let mut kept = last.clone();
        kept.entries.truncate(WINDOW_ENTRIES_MAX);
        tx.edit(WINDOWS)?.write(&feed_key(feed), &kept)?;
    }
    if let Some(observed) = &commit.observed {
        write_observed(tx, feed, observed)?;
    }
    if let Some(poll) = &commit.poll {
        tx.edit(POLLS)?.write(&feed_key(feed), poll)?;
    }
    if let Some(archives) = &commit.archives
        && let Some(unstage) = archives.unstage
    {
        unstage_pages(tx, feed, unstage)?;
    }
    let feed_now = &plan.receipt.feed;
    if plan.may_show_forgotten(commit) {
        let has_cut = forgotten::cut_kept(tx, feed_now)?;
        if has_cut || !plan.forgotten.is_empty() {
            writing.request_rewrite()?;
        }
    }
    for rows in followers {
        plan.receipt.groups.extend(groups::write(tx, rows)?);
    }
    for change in &commit.changes {
        if let Change::Delete(delete) = change
            && delete.reason == Reason::Forgotten
        {
            writing.record_removed(Removed::Item(feed, delete.id));
        }
    }
    if !plan.items.is_empty() {
        let feeds = plan.receipt.groups.iter().chain([&plan.receipt.feed]);
        feeds.for_each(|feed| writing.record_content(feed.last_t));
    }
    writing.record_clock()?;
    Ok(plan.receipt)
}

/// The rows that a commit locks and reads, as far as the commit tells them.
fn named(commit: &Commit) -> Vec<NamedRows> {
    let feed = commit.basis.feed;
    let key = feed_key(feed);
    let ids = commit.changes.iter().map(Change::id);
    let ids = ids.chain(commit.copies.iter().map(|item| item.id));
    let ids: BTreeSet<_> = ids.map(|id| id_key(feed, id)).collect();
    let keys: BTreeSet<_> = plan::bindings(commit)
        .map(|(key, _)| hash_key(feed, key))
        .collect();
    let witnesses: BTreeSet<_> = plan::witnesses(commit)
        .map(|(witness, _)| hash_key(feed, witness))
        .collect();
    let mut named = groups::locked_with_groups(feed);
    named.extend([
        FEEDS.named(&key),
        groups::named_of(feed),
        groups::named_records(feed),
        ITEMS.named_last(&key, 1),
        OBSERVATIONS.named_last(&key, 1),
    ]);
    if !ids.is_empty() {
        let items = IDS.named_all(&ids);
        named.extend([
            items.via(ITEMS.of_engine(), &key, RowPart::Value),
            KEYS.named_all(&keys),
            WITNESSES.named_all(&witnesses),
            SEGMENTS.named_last(&key, 1),
        ]);
        named.extend(counted::named_tails(feed));
    } else if !keys.is_empty() {
        named.push(KEYS.named_all(&keys));
    }
    named
}

/// Forgets the pages that are items now, or their bytes.
fn unstage_pages(
    tx: &dyn RowWriter,
    feed: FeedNo,
    unstage: StagingChange,
) -> Result<(), StoreError> {
    if unstage == StagingChange::All {
        tx.edit(WALKS)?.remove(&feed_key(feed))?;
    }
    let keys = reads::staged_keys(tx, feed)?;
    let mut table = tx.edit(STAGING)?;
    // One at a time: together they may be all of a large import.
    for key in keys {
        let Some(mut page) = table.read::<StagedPage>(&key, "a staged page")? else {
            continue;
        };
        match unstage.fate(page.no) {
            PageFate::Forgotten => table.remove(&key)?,
            PageFate::Stripped if page.waits() => {
                page.content = StagedBody::Traces;
                table.write(&key, &page)?;
            }
            PageFate::Stripped | PageFate::Kept => {}
        }
    }
    Ok(())
}

/// Adds an observation after the last, and takes out the one that is too old now.
fn write_observed(
    tx: &dyn RowWriter,
    feed: FeedNo,
    observed: &ObservationRecord,
) -> Result<(), StoreError> {
    let mut table = tx.edit(OBSERVATIONS)?;
    let newest = table.last_row(&feed_key(feed))?;
    let seq = newest.map_or(1, |(key, _)| seq_of(key.value()).saturating_add(1));
    table.write(&seq_key(feed, seq), observed)?;
    if let Some(old) = seq.checked_sub(OBSERVATIONS_MAX) {
        table.remove(&seq_key(feed, old))?;
    }
    Ok(())
}
