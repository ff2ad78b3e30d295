//! Poll states, pauses of hosts, and walks through archives with the pages that they have read.

use super::{
    Engine, Writing, forgotten,
    open_table::{TableEdit as _, TableSource as _},
    reads::{self, by_feed},
    tables::{FEEDS, HOSTS, META, POLLS, STAGING, WALKS, feed_key, page_key},
};
use crate::{
    feed::{
        archive::{ArchiveWalk, StagedPage, StagedWalk},
        record::FeedNo,
        schedule::PollState,
    },
    secret::masked_with_query,
    store::{
        HostPause, Polls, StoreError, StoreFuture, Walks,
        engine::{RowLock, RowReader},
        stored::{
            decode,
            pause::{decode_pause, encode_pause},
        },
    },
};
use std::{collections::BTreeSet, ops::Bound};

impl<E: Engine> Polls for E {
    fn polls(
        &self,
        after: Option<FeedNo>,
        max: usize,
    ) -> StoreFuture<'_, Vec<(FeedNo, PollState)>> {
        self.read(move |snapshot| polls(snapshot, after, max))
    }

    fn poll(&self, feed: FeedNo) -> StoreFuture<'_, Option<PollState>> {
        self.read(move |snapshot| reads::poll(snapshot, feed))
    }

    fn save_polls(
        &self,
        polls: Vec<(FeedNo, PollState)>,
        pauses: Vec<HostPause>,
    ) -> StoreFuture<'_, ()> {
        self.write(move |writing| {
            save_polls(writing, &polls, &pauses)?;
            writing.sync();
            Ok(())
        })
    }

    fn note_polls(&self, polls: Vec<(FeedNo, PollState)>) -> StoreFuture<'_, ()> {
        self.write(move |writing| save_polls(writing, &polls, &[]))
    }

    fn host_pauses(&self, after: Option<String>, max: usize) -> StoreFuture<'_, Vec<HostPause>> {
        self.read(move |snapshot| host_pauses(snapshot, after.as_deref(), max))
    }
}

impl<E: Engine> Walks for E {
    fn walks(
        &self,
        after: Option<FeedNo>,
        max: usize,
    ) -> StoreFuture<'_, Vec<(FeedNo, ArchiveWalk)>> {
        self.read(move |snapshot| walks(snapshot, after, max))
    }

    fn walk(&self, feed: FeedNo) -> StoreFuture<'_, Option<ArchiveWalk>> {
        self.read(move |snapshot| walk(snapshot, feed))
    }

    fn stage(
        &self,
        feed: FeedNo,
        walk: ArchiveWalk,
        page: Option<StagedPage>,
    ) -> StoreFuture<'_, ()> {
        self.write(move |writing| stage(writing, feed, &walk, page.as_ref()))
    }

    fn staged(&self, feed: FeedNo) -> StoreFuture<'_, StagedWalk> {
        self.read(move |snapshot| staged(snapshot, feed))
    }
}

/// The poll states of the feeds after a number.
fn polls(
    source: &dyn RowReader,
    after: Option<FeedNo>,
    max: usize,
) -> Result<Vec<(FeedNo, PollState)>, StoreError> {
    let read = |feed, bytes: &[u8]| Ok((feed, decode("a poll state", bytes)?));
    let (polls, damaged) = by_feed(&source.table(POLLS)?, after, max, read)?;
    for feed in damaged {
        tracing::error!(feed.no = %feed, "The poll state of a feed is damaged; the feed is polled as if it were new");
    }
    Ok(polls)
}

/// The walks of the feeds after a number.
fn walks(
    source: &dyn RowReader,
    after: Option<FeedNo>,
    max: usize,
) -> Result<Vec<(FeedNo, ArchiveWalk)>, StoreError> {
    let read = |feed, bytes: &[u8]| Ok((feed, decode("a walk", bytes)?));
    let (walks, damaged) = by_feed(&source.table(WALKS)?, after, max, read)?;
    for feed in damaged {
        tracing::error!(feed.no = %feed, "The archive walk of a feed is damaged; the walk does not go on");
    }
    Ok(walks)
}

/// The walk of a feed.
fn walk(source: &dyn RowReader, feed: FeedNo) -> Result<Option<ArchiveWalk>, StoreError> {
    source.table(WALKS)?.read(&feed_key(feed), "a walk")
}

/// The staged pages of a feed, by number.
fn staged(source: &dyn RowReader, feed: FeedNo) -> Result<StagedWalk, StoreError> {
    reads::record(source, feed)?;
    let staging = source.table(STAGING)?;
    let pages = staging.rows(&feed_key(feed));
    Ok(StagedWalk {
        walk: walk(source, feed)?,
        pages: pages
            .map(|row| decode("a staged page", row?.1.value()))
            .collect::<Result<_, _>>()?,
    })
}

/// The pauses of the authorities after a name. One that is damaged is left out, and told.
fn host_pauses(
    source: &dyn RowReader,
    after: Option<&str>,
    max: usize,
) -> Result<Vec<HostPause>, StoreError> {
    let after = after.map_or(Bound::Unbounded, Bound::Excluded);
    let hosts = source.table(HOSTS)?;
    let mut pauses = Vec::new();
    for row in hosts.range_unchecked((after, Bound::Unbounded)) {
        let (host, pause) = row?;
        let host = host.value().to_owned();
        match pause.and_then(|pause| decode_pause(pause.value())) {
            Ok(pause) => pauses.push((host, pause)),
            Err(StoreError::Damaged(what)) => tracing::error!(
                "The pause of {} is damaged, and its feeds are polled when they are due: {what}",
                masked_with_query(&host)
            ),
            Err(error) => return Err(error),
        }
        if pauses.len() == max {
            break;
        }
    }
    Ok(pauses)
}

/// Keeps a walk and the page that it read.
fn stage(
    writing: &mut Writing<'_>,
    feed: FeedNo,
    walk: &ArchiveWalk,
    page: Option<&StagedPage>,
) -> Result<(), StoreError> {
    let key = feed_key(feed);
    writing
        .look()
        .name(|| vec![FEEDS.named(&key).locked(RowLock::Change), FEEDS.named(&key)])?;
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
    writing.record_clock()?;
    Ok(())
}

/// Notes poll states and host pauses, to be on disk later.
fn save_polls(
    writing: &mut Writing<'_>,
    polls: &[(FeedNo, PollState)],
    pauses: &[HostPause],
) -> Result<(), StoreError> {
    writing.look().name(|| {
        let feeds: BTreeSet<_> = polls.iter().map(|(feed, _)| feed_key(*feed)).collect();
        vec![
            META.named(reads::LAST_FEED_KEY),
            FEEDS.named_all(&feeds).locked(RowLock::Keep),
            FEEDS.named_all(&feeds),
            POLLS.named_all(&feeds),
        ]
    })?;
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
    let now = writing.now()?;
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
    writing.record_clock()?;
    Ok(())
}
