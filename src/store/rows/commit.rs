//! Applying a commit, with what is saved beside the items and what it changes in groups; what it
//! comes to is planned elsewhere.

use super::{
    Writing, forgotten, groups,
    open_table::TableEdit as _,
    planned::write_planned,
    reads,
    removed::Removed,
    salvage,
    tables::{
        HOSTS, OBSERVATIONS, POLLS, STAGING, WALKS, WINDOWS, feed_key, page_key, seq_key, seq_of,
    },
};
use crate::{
    feed::{
        archive::{ArchiveWalk, PageFate, StagedBody, StagedPage, StagingChange},
        item::Reason,
        observation_record::{OBSERVATIONS_MAX, ObservationRecord},
        reconcile::{Change, WINDOW_ENTRIES_MAX},
        record::FeedNo,
        schedule::PollState,
    },
    store::{
        Commit, HostPause, Receipt, StoreError,
        engine::RowWriter,
        group_plan::MemberCommit,
        plan,
        stored::pause::{decode_pause, encode_pause},
    },
};

/// Applies a commit, whole or not at all.
pub(in crate::store) fn commit(
    writing: &mut Writing<'_>,
    commit: &Commit,
) -> Result<Receipt, StoreError> {
    let feed = commit.basis.feed;
    let record = reads::record(writing.look(), feed)?;
    writing.check_clock()?;
    salvage::mend_removed(writing, commit)?;
    let is_late = commit.may_be_late(&record);
    let mut plan = plan::plan(
        record,
        commit,
        writing.now,
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
    writing.record_clock();
    Ok(plan.receipt)
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
    let newest = table.rows(&feed_key(feed)).next_back().transpose()?;
    let seq = newest.map_or(1, |(key, _)| seq_of(key.value()).saturating_add(1));
    table.write(&seq_key(feed, seq), observed)?;
    if let Some(old) = seq.checked_sub(OBSERVATIONS_MAX) {
        table.remove(&seq_key(feed, old))?;
    }
    Ok(())
}

/// Keeps a walk and the page that it read.
pub(in crate::store) fn stage(
    writing: &mut Writing<'_>,
    feed: FeedNo,
    walk: &ArchiveWalk,
    page: Option<&StagedPage>,
) -> Result<(), StoreError> {
    let record = reads::record(writing.look(), feed)?;
    let cut = match page {
        Some(page) => forgotten::cut_page(writing.look(), &record, page)?,
        None => None,
    };
    // Walk and page are lost together, and the page is read once more.
    let tx = writing.change_late();
    tx.edit(WALKS)?.write(&feed_key(feed), walk)?;
    if let Some(page) = cut.as_ref().or(page) {
        tx.edit(STAGING)?.write(&page_key(feed, page.no), page)?;
    }
    writing.record_clock();
    Ok(())
}

/// Notes poll states and host pauses, to be on disk later.
pub(in crate::store) fn save_polls(
    writing: &mut Writing<'_>,
    polls: &[(FeedNo, PollState)],
    pauses: &[HostPause],
) -> Result<(), StoreError> {
    let last_given = reads::last_feed_number(writing.look())?;
    let mut known = Vec::with_capacity(polls.len());
    for (feed, poll) in polls {
        match reads::known_feed(writing.look(), *feed) {
            Ok(()) => known.push((feed, poll)),
            // A number that was given once is that of a feed that was forgotten.
            Err(StoreError::UnknownFeed(_)) if feed.0 <= last_given => {}
            Err(error) => return Err(error),
        }
    }
    let now = writing.now;
    let tx = writing.change_late();
    let mut table = tx.edit(POLLS)?;
    for (feed, poll) in known {
        // One that is damaged is replaced.
        let held = table.read::<PollState>(&feed_key(*feed), "a poll state");
        if !matches!(held, Ok(Some(held)) if poll.is_outdated_by(&held, now)) {
            table.write(&feed_key(*feed), poll)?;
        }
    }
    if !pauses.is_empty() {
        let mut table = tx.edit(HOSTS)?;
        // Pauses are rare and most are over soon, so the table stays short when each new one sweeps
        // it.
        table.retain(|pause| {
            let pause = pause.and_then(|pause| decode_pause(pause).ok());
            pause.is_some_and(|pause| pause.until > now)
        })?;
        for (host, pause) in pauses {
            table.insert(host.as_str(), &encode_pause(*pause))?;
        }
    }
    writing.record_clock();
    Ok(())
}
