//! Applying a commit, with what is saved beside the items and what it changes in groups; what it
//! comes to is planned elsewhere.

use super::{
    forgotten, groups,
    planned::write_planned,
    rows, salvage,
    tables::{
        HOSTS, OBSERVATIONS, POLLS, PageKey, STAGING, SeqKey, TableEdit as _, WALKS, WINDOWS,
        feed_key, page_key, pause_value, seq_key, seq_of, stamp_of,
    },
    writer::Writing,
};
use crate::{
    feed::{
        archive::{ArchiveWalk, StagedBody, StagedPage, StagingChange},
        observation_record::{OBSERVATIONS_MAX, ObservationRecord},
        reconcile::WINDOW_ENTRIES_MAX,
        record::FeedNo,
        schedule::PollState,
    },
    store::{
        Commit, HostPause, Receipt, StoreError, plan,
        stored::{decode, encode},
    },
};
use redb::WriteTransaction;

/// Applies a commit, whole or not at all.
pub(super) fn commit(writing: &mut Writing<'_>, commit: &Commit) -> Result<Receipt, StoreError> {
    let feed = commit.basis.feed;
    let record = rows::record(writing.look(), feed)?;
    writing.check_clock()?;
    salvage::mend_removed(writing, commit)?;
    let mut plan = plan::plan(
        record,
        commit,
        writing.now,
        &rows::Items::of(writing.look(), feed)?,
    )?;
    let followers = groups::followers(writing, (&plan, commit))?;
    let tx = writing.change();
    groups::forget_posts(tx, feed, &plan.forgotten)?;
    write_planned(tx, commit, &plan)?;
    if let Some(last) = &commit.last {
        let mut kept = last.clone();
        kept.entries.truncate(WINDOW_ENTRIES_MAX);
        tx.edit(WINDOWS)?.insert(&feed_key(feed), &encode(&kept)?)?;
    }
    if let Some(observed) = &commit.observed {
        write_observed(tx, feed, observed)?;
    }
    if let Some(poll) = &commit.poll {
        tx.edit(POLLS)?.insert(&feed_key(feed), &encode(poll)?)?;
    }
    if let Some(unstage) = commit
        .archives
        .as_ref()
        .and_then(|archives| archives.unstage)
    {
        unstage_pages(tx, feed, unstage)?;
    }
    let feed_now = &plan.receipt.feed;
    // An alias may be the name under which a document shows what was forgotten.
    let is_forgetting = !plan.forgotten.is_empty();
    if is_forgetting || (feed_now.completeness.has_forgotten && !commit.aliases.is_empty()) {
        let has_cut = forgotten::cut_kept(tx, feed_now)?;
        if is_forgetting || has_cut {
            writing.request_rewrite()?;
        }
    }
    for rows in followers {
        plan.receipt.groups.extend(groups::write(tx, rows)?);
    }
    writing.record_clock();
    Ok(plan.receipt)
}

/// Forgets the pages that are items now, or their bytes.
fn unstage_pages(
    tx: &WriteTransaction,
    feed: FeedNo,
    unstage: StagingChange,
) -> Result<(), StoreError> {
    if unstage == StagingChange::All {
        tx.edit(WALKS)?.remove(&feed_key(feed))?;
    }
    let mut table = tx.edit(STAGING)?;
    let (first, last) = (page_key(feed, 0), page_key(feed, u32::MAX));
    let keys: Vec<PageKey> = table
        .range::<&PageKey>(&first..=&last)?
        .map(|row| row.map(|(key, _)| *key.value()))
        .collect::<Result<_, StoreError>>()?;
    // One at a time: together they may be all of a large import.
    for key in keys {
        let Some(page) = table
            .get(&key)?
            .map(|page| decode::<StagedPage>("a staged page", page.value()))
            .transpose()?
        else {
            continue;
        };
        let (is_forgotten, is_stripped) = match unstage {
            StagingChange::Below(no) => (false, page.no < no),
            StagingChange::Since(no) => (page.no < no, true),
            StagingChange::Without(no) => (page.no >= no, false),
            StagingChange::All => (true, false),
        };
        if is_forgotten {
            table.remove(&key)?;
        } else if is_stripped && page.waits() {
            let page = StagedPage {
                content: StagedBody::Traces,
                ..page
            };
            table.insert(&key, &encode(&page)?)?;
        }
    }
    Ok(())
}

/// Adds an observation after the last, and takes out the one that is too old now.
fn write_observed(
    tx: &WriteTransaction,
    feed: FeedNo,
    observed: &ObservationRecord,
) -> Result<(), StoreError> {
    let mut table = tx.edit(OBSERVATIONS)?;
    let (first, last) = (seq_key(feed, 0), seq_key(feed, u64::MAX));
    let newest = table
        .range::<&SeqKey>(&first..=&last)?
        .next_back()
        .transpose()?;
    let seq = newest.map_or(1, |(key, _)| seq_of(key.value()).saturating_add(1));
    table.insert(&seq_key(feed, seq), &encode(observed)?)?;
    if let Some(old) = seq.checked_sub(OBSERVATIONS_MAX) {
        table.remove(&seq_key(feed, old))?;
    }
    Ok(())
}

/// Keeps a walk and the page that it read.
pub(super) fn stage(
    writing: &mut Writing<'_>,
    feed: FeedNo,
    walk: &ArchiveWalk,
    page: Option<&StagedPage>,
) -> Result<(), StoreError> {
    let record = rows::record(writing.look(), feed)?;
    let cut = page
        .map(|page| forgotten::cut_page(writing.look(), &record, page))
        .transpose()?
        .flatten();
    let tx = writing.change();
    tx.edit(WALKS)?.insert(&feed_key(feed), &encode(walk)?)?;
    if let Some(page) = cut.as_ref().or(page) {
        tx.edit(STAGING)?
            .insert(&page_key(feed, page.no), &encode(page)?)?;
    }
    writing.record_clock();
    Ok(())
}

/// Saves poll states and host pauses.
pub(super) fn save_polls(
    writing: &mut Writing<'_>,
    polls: &[(FeedNo, PollState)],
    pauses: &[HostPause],
) -> Result<(), StoreError> {
    let last_given = rows::last_feed_number(writing.look())?;
    let mut known = Vec::with_capacity(polls.len());
    for (feed, poll) in polls {
        match rows::known_feed(writing.look(), *feed) {
            Ok(()) => known.push((feed, poll)),
            // A number that was given once is that of a feed that was forgotten.
            Err(StoreError::UnknownFeed(_)) if feed.0 <= last_given => {}
            Err(error) => return Err(error),
        }
    }
    let now = writing.now;
    let tx = writing.change();
    let mut table = tx.edit(POLLS)?;
    for (feed, poll) in known {
        table.insert(&feed_key(*feed), &encode(poll)?)?;
    }
    if !pauses.is_empty() {
        let mut table = tx.edit(HOSTS)?;
        // Pauses are rare and most are over soon, so the table stays short when each new one sweeps
        // it.
        table.retain(|until| stamp_of(until) > now)?;
        for (host, pause) in pauses {
            table.insert(host.as_str(), &pause_value(*pause))?;
        }
    }
    writing.record_clock();
    Ok(())
}
