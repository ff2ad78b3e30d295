//! Permalink probes (POLLING 2.3): the own page of an item that its feed lacks is asked for, and what it says is committed.
//! When that is due `feed::absence` knows; how many may be asked for, the poller.

use super::{FeedSpec, Pipeline, TRIES_MAX, archives::HOLD_SECS_MAX, compute, ours};
use crate::{
    feed::{
        absence::CheckResult,
        archive::OwnOrigins,
        item::{Item, ItemId},
        observation_record::ObservationRecord,
        reconcile::reconcile_probe,
        schedule::{Failure, PollState},
        stamp::Stamp,
    },
    ingest::{
        platform,
        recording::RecordedPage,
        upstream::{PageAnswer, PageReply},
    },
    store::{Commit, StoreError},
};
use everfeed_adapters::{Hints, shows_entry};
use http::StatusCode;
use std::{sync::Arc, time::Instant};
use tokio_util::sync::CancellationToken;
use tracing::{debug, warn};

/// What came of a probe.
#[derive(Clone, Debug, Default)]
pub struct Probed {
    /// When the next one of this feed is due, if any is.
    pub next_at: Option<Stamp>,
    /// Whether a request was sent, so that its host is to be left alone for a while.
    pub asked: bool,
    /// A host that wants to be left alone until then.
    pub hold: Option<(String, Stamp)>,
}

/// Until a probe that failed on our side is made again, in seconds.
const PROBE_AGAIN_SECS: u64 = 60;

impl Pipeline {
    /// Asks for the page of the item that is due, if one is. `None` when `stop` came before there was an answer.
    pub async fn probe(
        &self,
        feed: &FeedSpec,
        state: &PollState,
        stop: &CancellationToken,
    ) -> Option<Probed> {
        match self.try_probe(feed, state, stop).await {
            Ok(probed) => probed,
            Err(failure) => {
                let (name, text) = (&feed.name, &failure.text);
                warn!(feed.name = %name, "What a page of `{name}` says could not be kept: {text}");
                let next_at = Some(self.now().plus_secs(PROBE_AGAIN_SECS));
                Some(Probed { next_at, ..Probed::default() })
            }
        }
    }

    async fn try_probe(
        &self,
        feed: &FeedSpec,
        state: &PollState,
        stop: &CancellationToken,
    ) -> Result<Option<Probed>, Failure> {
        let last = self.store.known(feed.no, Vec::new()).await.map_err(ours)?.window;
        let Some(id) = last.absence.due_check(self.now()) else {
            return Ok(Some(Probed { next_at: last.absence.next_check_at(), ..Probed::default() }));
        };
        let item = self.store.item(feed.no, id).await.map_err(ours)?;
        let item = item.ok_or_else(|| ours("a missed item is not in the store"))?;
        let Some(url) = page_of(feed, &item) else {
            self.record_page(feed, &item, CheckResult::NoPage).await?;
            let next_at = self.page_said(feed, state, id, CheckResult::NoPage).await?;
            return Ok(Some(Probed { next_at, ..Probed::default() }));
        };
        let reply = tokio::select! {
            reply = self.upstream.page(feed, &url) => reply,
            () = stop.cancelled() => return Ok(None),
        };
        let now = self.now();
        let (said, hold) = match reply {
            PageReply::Deferred { wait_secs } => {
                let next_at = Some(now.plus_secs(wait_secs.max(1)));
                return Ok(Some(Probed { next_at, ..Probed::default() }));
            }
            PageReply::Failed => (CheckResult::Nothing, None),
            PageReply::Elsewhere => (CheckResult::Elsewhere, None),
            PageReply::Answer(answer) => {
                let hold = answer.hold.clone();
                let hold = hold.map(|(host, secs)| (host, now.plus_secs(secs.min(HOLD_SECS_MAX))));
                let item = Arc::clone(&item);
                (compute(move || said(&answer, &item)).await?, hold)
            }
        };
        debug!(feed.name = %feed.name, %id, url, "The page of a missed item says: {said:?}");
        self.record_page(feed, &item, said).await?;
        let next_at = self.page_said(feed, state, id, said).await?;
        Ok(Some(Probed { next_at, asked: true, hold }))
    }

    /// Keeps what a page said, if the feed is recorded: without it, its documents play to another end.
    async fn record_page(&self, feed: &FeedSpec, item: &Item, said: CheckResult) -> Result<(), Failure> {
        let Some(record) = feed.record.clone() else { return Ok(()) };
        let (name, now) = (feed.name.clone(), self.now());
        let link = item.entry().and_then(|entry| entry.permalink()).map(str::to_owned);
        let page = RecordedPage { at_us: now.micros(), at: now.rfc3339(), iri: item.iri.clone(), link, said };
        compute(move || {
            if let Err(error) = record.keep_page(&name, &page) {
                let folder = record.folder.display();
                warn!(feed.name = %name, "What a page of `{name}` said could not be kept in {folder}: {error}");
            }
        })
        .await
    }

    /// Commits what the page of an item says, wherever that is known from, and tells when the next one is due.
    pub async fn page_said(
        &self,
        feed: &FeedSpec,
        state: &PollState,
        id: ItemId,
        said: CheckResult,
    ) -> Result<Option<Stamp>, Failure> {
        let started = Instant::now();
        let profile = platform::profile(&self.platforms, state.platform.as_ref());
        for _ in 0..TRIES_MAX {
            let record = self.store.feed(feed.no).await.map_err(ours)?;
            let known = self.store.known(feed.no, Vec::new()).await.map_err(ours)?;
            if known.rev != record.rev {
                continue;
            }
            let policy = feed.deletions.policy_for(record.metadata.is_complete(), profile.as_deref());
            let now = self.now();
            let decisions = reconcile_probe(&known, id, said, &policy, now);
            let events = decisions.events.clone();
            // Where nobody was asked and nothing came of it there is nothing to tell.
            let tells = said != CheckResult::NoPage || !decisions.changes.is_empty();
            let observed = tells.then(|| ObservationRecord::of_page(&decisions, id, said, now));
            let (changes, last) = (decisions.changes, Some(decisions.window));
            let commit = Commit { changes, last, observed, ..Commit::nothing(&record) };
            match self.store.commit(commit).await {
                Ok(receipt) => {
                    self.metrics.probe(word(said));
                    self.announce(feed, &receipt, started);
                    events.into_iter().for_each(|event| super::tell(feed, event));
                    return Ok(receipt.feed.next_check_at);
                }
                Err(StoreError::Conflict { .. }) => {}
                Err(error) => return Err(ours(error)),
            }
        }
        Err(ours("the feed kept changing while a page of it was asked for"))
    }
}

/// The address of an item's page, if it is of its feed's own origin. Of a list of links to elsewhere nobody is asked.
fn page_of(feed: &FeedSpec, item: &Arc<Item>) -> Option<String> {
    let reach = OwnOrigins::new(feed.url.clone(), feed.aliases.clone());
    reach.mapped(item.entry()?.permalink()?)
}

/// What an answer means.
fn said(answer: &PageAnswer, item: &Item) -> CheckResult {
    let hints = Hints { content_type: answer.content_type.as_deref(), ..Hints::default() };
    match answer.status {
        StatusCode::GONE => CheckResult::Gone,
        StatusCode::NOT_FOUND => CheckResult::NotFound,
        StatusCode::OK | StatusCode::NON_AUTHORITATIVE_INFORMATION => {
            let shows = item.entry().is_some_and(|entry| shows_entry(&answer.body, &hints, entry));
            match shows {
                true => CheckResult::Shown,
                // What was not read may show it.
                false if answer.is_cut => CheckResult::Nothing,
                false => CheckResult::Another,
            }
        }
        _ => CheckResult::Nothing,
    }
}

/// The word that is counted.
fn word(said: CheckResult) -> &'static str {
    match said {
        CheckResult::Gone => "gone",
        CheckResult::NotFound => "not_found",
        CheckResult::Shown => "shown",
        CheckResult::Another => "another",
        CheckResult::Elsewhere => "elsewhere",
        CheckResult::Nothing => "nothing",
        CheckResult::NoPage => "no_page",
    }
}
