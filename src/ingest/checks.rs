//! Permalink checks (POLLING 2.3): the own page of a missed item, or of a tombstone that might be
//! back, is asked for, and what it says is committed. Before that a control is asked for
//! (`control`). `feed::absence` knows when a check is due; the worker, how many run.

use super::{
    Context, FeedSpec, Upstream,
    compute::compute,
    events::tell,
    recording::{RecordedAnswer, RecordedPage, record_answer},
    transact::{Decision, transact},
    upstream::{PageAnswer, PageReply},
};
use crate::{
    feed::{
        absence::{AnsweredPage, CheckResult, ControlNeed},
        archive::OwnOrigins,
        item::{Content, Item, ItemId},
        observation_record::ObservationRecord,
        reconcile::{Decisions, WindowState, recheck_tombstone, reconcile_check},
        record::FeedRecord,
        schedule::{Failure, PollState, host_pause_until},
        stamp::Stamp,
    },
    secret::logged_url,
    store::Commit,
};
use everfeed_adapters::{Entry, Hints, PageText};
use http::StatusCode;
use std::{sync::Arc, time::Instant};
use tokio_util::sync::CancellationToken;
use tracing::{debug, warn};

mod control;

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

impl Checked {
    /// A check without a request, and the time of the next one.
    pub(super) fn at(next_at: Option<Stamp>) -> Self {
        Self {
            next_at,
            ..Self::default()
        }
    }
}

/// Seconds until a check that failed on our side is made again.
const CHECK_AGAIN_SECS: u64 = 60;

impl<'a> Check<'a> {
    /// A check for this feed.
    pub fn new(context: &'a Context, feed: &'a FeedSpec, state: &'a PollState) -> Self {
        Self {
            context,
            feed,
            state,
        }
    }

    /// Asks for the page of the item that is due, if one is. `None` when `stop` came before there
    /// was an answer.
    pub async fn run(self, upstream: &Upstream, stop: &CancellationToken) -> Option<Checked> {
        match self.try_check(upstream, stop).await {
            Ok(checked) => checked,
            Err(failure) => {
                let name = &self.feed.name;
                warn!(feed.name = %name, "The answer of a page of `{name}` could not be stored: {failure}");
                let next_at = self.context.now().plus_secs(CHECK_AGAIN_SECS);
                Some(Checked::at(Some(next_at)))
            }
        }
    }

    async fn try_check(
        &self,
        upstream: &Upstream,
        stop: &CancellationToken,
    ) -> Result<Option<Checked>, Failure> {
        let (context, feed) = (self.context, self.feed);
        let last = context.store.known(feed.no, Vec::new()).await?.window;
        let Some(subject) = CheckSubject::due(&last, context.now()) else {
            return Ok(Some(Checked::at(last.next_check_at())));
        };
        let id = subject.id();
        let item = context.store.item(feed.no, id).await?;
        let item = item.ok_or_else(|| Failure::ours("a missed item is not in the store"))?;
        let entry = subject.entry(&last, &item);
        let url = entry.as_ref().and_then(|entry| page_of(feed, entry));
        let (Some(url), Some(entry)) = (url, entry) else {
            return self
                .concluded(subject, &item, CheckResult::NoPage)
                .await
                .map(Some);
        };
        let need = last.absence.control_need(id, context.now());
        // Of a tombstone only a page that shows it again matters, and that is seldom.
        if !subject.is_tombstone() {
            match need {
                ControlNeed::Ready => {}
                ControlNeed::Ask(tried) => return self.control(upstream, &last, tried, stop).await,
                ControlNeed::Useless(finding) => {
                    let said = CheckResult::Uninformative(finding);
                    return self.concluded(subject, &item, said).await.map(Some);
                }
            }
        }
        let reply = tokio::select! {
            reply = upstream.page(feed, &url) => reply,
            () = stop.cancelled() => return Ok(None),
        };
        let now = context.now();
        let (said, page, host_pause) = match reply {
            PageReply::Deferred { wait_secs } => {
                let next_at = now.plus_secs(wait_secs.max(1));
                return Ok(Some(Checked::at(Some(next_at))));
            }
            PageReply::Failed => (CheckResult::Nothing, AnsweredPage::default(), None),
            PageReply::Elsewhere => (CheckResult::Elsewhere, AnsweredPage::default(), None),
            PageReply::Answer(answer) => {
                let host_pause = pause(&answer, feed, self.state, now);
                let landing = answer
                    .landing
                    .clone()
                    .map_or_else(|| url.clone(), String::from);
                let (said, words) = compute(move || said(&answer, &entry)).await?;
                (said, AnsweredPage { landing, words }, host_pause)
            }
        };
        if said == CheckResult::Shown
            && let ControlNeed::Ask(tried) = need
        {
            let control = self.control(upstream, &last, tried, stop).await?;
            return Ok(control.map(|control| Checked {
                asked: true,
                ..control
            }));
        }
        let weighed = match need {
            ControlNeed::Useless(finding) if said == CheckResult::Shown => {
                CheckResult::Uninformative(finding)
            }
            _ => last.absence.weigh(said, id, &page),
        };
        debug!(feed.name = %feed.name, %id, url = logged_url(&url), "The page of a missed item says: {said:?}, which counts as {weighed:?}");
        let checked = self.concluded(subject, &item, weighed).await?;
        Ok(Some(Checked {
            asked: true,
            host_pause,
            ..checked
        }))
    }

    /// Keeps and commits the result of a check.
    async fn concluded(
        &self,
        subject: CheckSubject,
        item: &Item,
        said: CheckResult,
    ) -> Result<Checked, Failure> {
        let now = self.context.now();
        self.record(subject, item, said, now).await?;
        let next_at = match subject {
            CheckSubject::Suspect(id) => self.answered(id, said, now).await?,
            CheckSubject::Tombstone(id) => self.rechecked(id, said, now).await?,
        };
        Ok(Checked::at(next_at))
    }

    /// Keeps the result, if the feed is recorded: without it, its documents play to another end.
    async fn record(
        &self,
        subject: CheckSubject,
        item: &Item,
        said: CheckResult,
        now: Stamp,
    ) -> Result<(), Failure> {
        if self.feed.record.is_none() {
            return Ok(());
        }
        let behind = self.context.store.known(self.feed.no, Vec::new()).await?;
        let behind = behind.window.absence.decided_at();
        let link = item
            .entry()
            .and_then(|entry| entry.permalink())
            .map(str::to_owned);
        let page = RecordedPage {
            at_us: now.micros(),
            at: now.rfc3339(),
            iri: item.iri.clone(),
            id: Some(item.id.to_string()),
            is_tombstone: subject.is_tombstone(),
            behind_us: Some(behind.micros()),
            link,
            said,
        };
        record_answer(self.feed, RecordedAnswer::Page(page)).await
    }

    /// Commits the result of a check of a tombstone's page, wherever it is known from, as of `now`,
    /// and tells when the next check is due.
    pub async fn rechecked(
        &self,
        id: ItemId,
        said: CheckResult,
        now: Stamp,
    ) -> Result<Option<Stamp>, Failure> {
        let (context, feed, started) = (self.context, self.feed, Instant::now());
        let committed = transact(
            context,
            feed,
            "the page of a tombstone was asked for",
            |snapshot| async move {
                let (record, known) = (&snapshot.record, &snapshot.known);
                let is_gone = context.store.item(feed.no, id).await?;
                let is_gone = is_gone.is_some_and(|item| item.is_gone());
                let mut decisions = recheck_tombstone(known, id, said, now);
                if !is_gone {
                    // It came back by another way.
                    decisions.changes.clear();
                    decisions.window.tombstones.retain(|gone| gone.id != id);
                }
                let observed = Some(ObservationRecord::of_page(&decisions, id, said, now));
                Ok(Decision::Commit(commit(record, decisions, observed), ()))
            },
        );
        let (receipt, ()) = committed.await?.expect("every result is committed");
        context.metrics.permalink_check(word(said));
        context.announce(feed, &receipt, started);
        Ok(receipt.feed.window.next_check_at)
    }

    /// Commits the result of a check, wherever it is known from, as of `now`, and tells when the next
    /// one is due.
    pub async fn answered(
        &self,
        id: ItemId,
        said: CheckResult,
        now: Stamp,
    ) -> Result<Option<Stamp>, Failure> {
        let (context, feed, started) = (self.context, self.feed, Instant::now());
        let profile = context.profile(self.state);
        let profile = profile.as_deref();
        let committed = transact(
            context,
            feed,
            "a page of it was asked for",
            |snapshot| async move {
                let (record, known) = (&snapshot.record, &snapshot.known);
                let policy = feed
                    .deletions
                    .policy_for(record.metadata.is_complete(), profile);
                let decisions = reconcile_check(known, id, said, &policy, now);
                let events = decisions.events.clone();
                // Where nobody was asked and nothing came of it there is nothing to tell.
                let tells = said != CheckResult::NoPage || !decisions.changes.is_empty();
                let observed = tells.then(|| ObservationRecord::of_page(&decisions, id, said, now));
                Ok(Decision::Commit(
                    commit(record, decisions, observed),
                    events,
                ))
            },
        );
        let (receipt, events) = committed.await?.expect("every result is committed");
        context.metrics.permalink_check(word(said));
        context.announce(feed, &receipt, started);
        events.into_iter().for_each(|event| tell(feed, event));
        Ok(receipt.feed.window.next_check_at)
    }
}

/// The commit of what a page proves.
fn commit(record: &FeedRecord, proven: Decisions, observed: Option<ObservationRecord>) -> Commit {
    Commit {
        changes: proven.changes,
        last: Some(proven.window),
        observed,
        ..Commit::nothing(record)
    }
}

/// The item whose page is to be asked for.
#[derive(Clone, Copy)]
enum CheckSubject {
    /// It is missing, and not decided on.
    Suspect(ItemId),
    /// It is a tombstone, and might be back.
    Tombstone(ItemId),
}

impl CheckSubject {
    /// The one that is due, suspects first.
    fn due(last: &WindowState, now: Stamp) -> Option<Self> {
        let tombstone = || {
            last.tombstones
                .iter()
                .filter(|gone| gone.next_at <= now)
                .min_by_key(|gone| gone.next_at)
        };
        last.absence
            .due_check(now)
            .map(Self::Suspect)
            .or_else(|| Some(Self::Tombstone(tombstone()?.id)))
    }

    fn is_tombstone(self) -> bool {
        matches!(self, Self::Tombstone(_))
    }

    fn id(self) -> ItemId {
        match self {
            Self::Suspect(id) | Self::Tombstone(id) => id,
        }
    }

    /// The content that its page would show.
    fn entry(self, last: &WindowState, item: &Item) -> Option<Arc<Entry>> {
        match (self, &item.content) {
            (_, Content::Live(entry)) => Some(Arc::clone(entry)),
            (Self::Tombstone(id), Content::Gone { .. }) => last
                .tombstones
                .iter()
                .find(|gone| gone.id == id)
                .map(|gone| Arc::clone(&gone.entry)),
            (Self::Suspect(_), Content::Gone { .. }) => None,
        }
    }
}

/// The address of an entry's page, if it is of its feed's own origin. Of a list of links to
/// elsewhere nobody is asked.
fn page_of(feed: &FeedSpec, entry: &Entry) -> Option<String> {
    let reach = OwnOrigins::new(feed.url.clone(), feed.aliases.clone());
    reach.mapped(entry.permalink()?)
}

/// The pause of the host that gave an answer, and its end.
pub(super) fn pause(
    answer: &PageAnswer,
    feed: &FeedSpec,
    state: &PollState,
    now: Stamp,
) -> Option<(String, Stamp)> {
    let host = answer.host.clone()?;
    let status = Some(answer.status.as_u16());
    let until = host_pause_until(state, &feed.policy(), status, answer.retry_after_secs, now)?;
    Some((host, until))
}

/// The result that an answer means, and how often it holds the words of the entry.
fn said(answer: &PageAnswer, entry: &Entry) -> (CheckResult, u32) {
    let hints = Hints {
        content_type: answer.content_type.as_deref(),
        ..Hints::default()
    };
    let said = match answer.status {
        StatusCode::GONE => CheckResult::Gone,
        StatusCode::NOT_FOUND => CheckResult::NotFound,
        StatusCode::OK | StatusCode::NON_AUTHORITATIVE_INFORMATION => {
            return match few(PageText::new(&answer.body, &hints).count(entry)) {
                // What was not read may show it.
                0 if answer.is_cut => (CheckResult::Nothing, 0),
                0 => (CheckResult::Another, 0),
                words => (CheckResult::Shown, words),
            };
        }
        _ => CheckResult::Nothing,
    };
    (said, 0)
}

fn few(count: usize) -> u32 {
    u32::try_from(count).unwrap_or(u32::MAX)
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
        CheckResult::Uninformative(_) => "uninformative",
    }
}
