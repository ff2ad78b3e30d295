//! Permalink checks (POLLING 2.3): the own page of a missed item is asked for, and what it says is committed. When a check
//! is due `feed::absence` knows; how many run, the worker.

use super::{
    Context, FeedSpec, Upstream,
    compute::compute,
    events::tell,
    recording::RecordedPage,
    transact::{Decision, transact},
    upstream::{PageAnswer, PageReply},
};
use crate::ingest::store_failure::store_failure;
use crate::{
    feed::{
        absence::CheckResult,
        archive::OwnOrigins,
        item::{Item, ItemId},
        observation_record::ObservationRecord,
        reconcile::reconcile_probe,
        schedule::{Failure, PollState, host_pause_until},
        stamp::Stamp,
    },
    store::Commit,
};
use everfeed_adapters::{Hints, shows_entry};
use http::StatusCode;
use std::{sync::Arc, time::Instant};
use tokio_util::sync::CancellationToken;
use tracing::{debug, warn};

#[cfg(test)]
mod tests;

/// One permalink check of a feed.
pub struct Check<'a> {
    context: &'a Context,
    feed: &'a FeedSpec,
    state: &'a PollState,
}

/// Result of a permalink check.
#[derive(Clone, Debug, Default)]
pub struct Checked {
    /// Time at which the next one of this feed is due, if any is.
    pub next_at: Option<Stamp>,
    /// True when a request was sent, so that its host is to be left alone for a while.
    pub asked: bool,
    /// A pause of a host, and its end.
    pub host_pause: Option<(String, Stamp)>,
}

/// Seconds until a check that failed on our side is made again.
const CHECK_AGAIN_SECS: u64 = 60;

impl<'a> Check<'a> {
    /// A check for this feed.
    pub fn new(context: &'a Context, feed: &'a FeedSpec, state: &'a PollState) -> Self {
        Self { context, feed, state }
    }

    /// Asks for the page of the item that is due, if one is. `None` when `stop` came before there was an answer.
    pub async fn run(self, upstream: &Upstream, stop: &CancellationToken) -> Option<Checked> {
        match self.try_check(upstream, stop).await {
            Ok(checked) => checked,
            Err(failure) => {
                let name = &self.feed.name;
                warn!(feed.name = %name, "What a page of `{name}` says could not be kept: {failure}");
                let next_at = Some(self.context.now().plus_secs(CHECK_AGAIN_SECS));
                Some(Checked { next_at, ..Checked::default() })
            }
        }
    }

    async fn try_check(
        &self,
        upstream: &Upstream,
        stop: &CancellationToken,
    ) -> Result<Option<Checked>, Failure> {
        let (context, feed) = (self.context, self.feed);
        let last = context.store.known(feed.no, Vec::new()).await.map_err(store_failure)?.window;
        let Some(id) = last.absence.due_check(context.now()) else {
            return Ok(Some(Checked { next_at: last.absence.next_check_at(), ..Checked::default() }));
        };
        let item = context.store.item(feed.no, id).await.map_err(store_failure)?;
        let item = item.ok_or_else(|| Failure::ours("a missed item is not in the store"))?;
        let Some(url) = page_of(feed, &item) else {
            self.record(&item, CheckResult::NoPage).await?;
            let next_at = self.answered(id, CheckResult::NoPage).await?;
            return Ok(Some(Checked { next_at, ..Checked::default() }));
        };
        let reply = tokio::select! {
            reply = upstream.page(feed, &url) => reply,
            () = stop.cancelled() => return Ok(None),
        };
        let now = context.now();
        let (said, host_pause) = match reply {
            PageReply::Deferred { wait_secs } => {
                let next_at = Some(now.plus_secs(wait_secs.max(1)));
                return Ok(Some(Checked { next_at, ..Checked::default() }));
            }
            PageReply::Failed => (CheckResult::Nothing, None),
            PageReply::Elsewhere => (CheckResult::Elsewhere, None),
            PageReply::Answer(answer) => {
                let host_pause = answer.host.clone().zip(pause(&answer, feed, self.state, now));
                let item = Arc::clone(&item);
                (compute(move || said(&answer, &item)).await?, host_pause)
            }
        };
        debug!(feed.name = %feed.name, %id, url, "The page of a missed item says: {said:?}");
        self.record(&item, said).await?;
        let next_at = self.answered(id, said).await?;
        Ok(Some(Checked { next_at, asked: true, host_pause }))
    }

    /// Keeps the result, if the feed is recorded: without it, its documents play to another end.
    async fn record(&self, item: &Item, said: CheckResult) -> Result<(), Failure> {
        let Some(record) = self.feed.record.clone() else { return Ok(()) };
        let (name, now) = (self.feed.name.clone(), self.context.now());
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

    /// Commits the result of a check, wherever it is known from, and tells when the next one is due.
    pub async fn answered(&self, id: ItemId, said: CheckResult) -> Result<Option<Stamp>, Failure> {
        let (context, feed, started) = (self.context, self.feed, Instant::now());
        let profile = context.profile(self.state);
        let profile = profile.as_deref();
        let committed = transact(context, feed, "a page of it was asked for", |snapshot| async move {
            let (record, known) = (&snapshot.record, &snapshot.known);
            let policy = feed.deletions.policy_for(record.metadata.is_complete(), profile);
            let now = context.now();
            let decisions = reconcile_probe(known, id, said, &policy, now);
            let events = decisions.events.clone();
            // Where nobody was asked and nothing came of it there is nothing to tell.
            let tells = said != CheckResult::NoPage || !decisions.changes.is_empty();
            let observed = tells.then(|| ObservationRecord::of_page(&decisions, id, said, now));
            let (changes, last) = (decisions.changes, Some(decisions.window));
            Ok(Decision::Commit(Commit { changes, last, observed, ..Commit::nothing(record) }, events))
        });
        let (receipt, events) = committed.await?.expect("every result is committed");
        context.metrics.permalink_check(word(said));
        context.announce(feed, &receipt, started);
        events.into_iter().for_each(|event| tell(feed, event));
        Ok(receipt.feed.next_check_at)
    }
}

/// The address of an item's page, if it is of its feed's own origin. Of a list of links to elsewhere nobody is asked.
fn page_of(feed: &FeedSpec, item: &Arc<Item>) -> Option<String> {
    let reach = OwnOrigins::new(feed.url.clone(), feed.aliases.clone());
    reach.mapped(item.entry()?.permalink()?)
}

/// End of the pause of the host that gave an answer.
pub(super) fn pause(answer: &PageAnswer, feed: &FeedSpec, state: &PollState, now: Stamp) -> Option<Stamp> {
    let status = Some(answer.status.as_u16());
    host_pause_until(state, &feed.policy, status, answer.retry_after_secs, now)
}

/// The result that an answer means.
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
