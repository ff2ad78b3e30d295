//! Permalink checks (POLLING 2.3): the own page of a missed item, or of a tombstone that might be
//! back, is asked for, and what it says is committed. Before that a control is asked for
//! (`control`). `feed::absence` knows when a check is due; the worker, how many run.

use super::{
    Context, FeedSpec, Upstream,
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
        reconcile::{Decisions, WindowState, address_witness, recheck_tombstone, reconcile_check},
        record::FeedRecord,
        schedule::{Failure, PollState, host_pause_until},
        stamp::Stamp,
    },
    mistakes::{Mistake, is_made},
    secret::logged_url,
    store::Commit,
};
use everfeed_adapters::{Entry, Hints, PageText, links_of_page};
use http::StatusCode;
use std::{sync::Arc, time::Instant};
use tokio_util::sync::CancellationToken;
use tracing::{debug, warn};
use url::Url;

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
        let mut last = context.store.known(feed.no, Vec::new()).await?.window;
        last.set_back(context.now());
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
            biased;
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
                let asked_for = url.clone();
                let (said, page) = context
                    .compute(move || said(&answer, &entry, &asked_for))
                    .await?;
                (said, page, host_pause)
            }
        };
        let is_shown = said == CheckResult::Shown;
        let said = if is_shown && self.is_page_of_another(id, &url, &page.landing).await? {
            CheckResult::Another
        } else {
            said
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

    /// True when the request for the page of an item led to the page of another one, as software
    /// does that guesses which post was meant.
    async fn is_page_of_another(
        &self,
        id: ItemId,
        url: &str,
        landing: &str,
    ) -> Result<bool, Failure> {
        if !leads_away(url, landing) {
            return Ok(false);
        }
        let witness = address_witness(landing).into_iter().collect();
        let found = self.context.store.witnessed(self.feed.no, witness).await?;
        Ok(found
            .items
            .iter()
            .any(|item| item.id != id && !item.is_gone()))
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
        events
            .into_iter()
            .for_each(|event| tell(context, feed, event));
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

/// The result that an answer about an entry means, and the page that gave it.
fn said(answer: &PageAnswer, entry: &Entry, url: &str) -> (CheckResult, AnsweredPage) {
    let hints = hints(answer, url);
    let mut page = AnsweredPage {
        landing: landing(answer, &hints, url),
        words: 0,
    };
    let said = match answer.status {
        StatusCode::GONE => CheckResult::Gone,
        StatusCode::NOT_FOUND => CheckResult::NotFound,
        StatusCode::OK | StatusCode::NON_AUTHORITATIVE_INFORMATION => {
            let text = PageText::new(&answer.body, &hints);
            page.words = few(text.count(entry));
            if is_made(Mistake::PageTakenForGone) {
                CheckResult::Gone
            } else if page.words > 0 && !is_of_namesake(&text, entry, url, &page.landing) {
                CheckResult::Shown
            } else if answer.is_cut {
                // What was not read may show it.
                CheckResult::Nothing
            } else {
                CheckResult::Another
            }
        }
        _ => CheckResult::Nothing,
    };
    (said, page)
}

// Decides: Does a page that holds the title of a post show the post?
/// True when the title on a page is that of another entry: the request was led to another address,
/// or the entry is one of several on the page, as comments are, and neither its first words nor its
/// anchor are there.
fn is_of_namesake(page: &PageText, entry: &Entry, url: &str, landing: &str) -> bool {
    let lacks_text = page.shows_text(entry) == Some(false);
    let anchor = entry.permalink().and_then(anchor_of);
    match anchor {
        Some(anchor) => page.shows_text(entry) != Some(true) && !page.has_anchor(&anchor),
        None => lacks_text && leads_away(url, landing),
    }
}

/// The name within its page to which an address leads; `None` of a route of a script.
fn anchor_of(url: &str) -> Option<String> {
    let (_, fragment) = url.split_once('#')?;
    let is_name = !fragment.is_empty() && !fragment.starts_with(['/', '!', ':']);
    is_name.then(|| fragment.to_owned())
}

/// The address of a page: the one that it names itself, else that of the answer after redirects.
fn landing(answer: &PageAnswer, hints: &Hints<'_>, url: &str) -> String {
    let named = links_of_page(&answer.body, hints, "canonical");
    let answered = || answer.landing.as_ref().map(Url::to_string);
    named
        .into_iter()
        .next()
        .or_else(answered)
        .unwrap_or_else(|| url.to_owned())
}

fn hints<'a>(answer: &'a PageAnswer, url: &'a str) -> Hints<'a> {
    Hints {
        content_type: answer.content_type.as_deref(),
        base_url: Some(answer.landing.as_ref().map_or(url, Url::as_str)),
        ..Hints::default()
    }
}

/// True when a request for one page led to another: the path differs, whatever the host, the query
/// and the last slash. A site's front page with a query is told apart by that.
fn leads_away(url: &str, landing: &str) -> bool {
    let (Ok(url), Ok(landing)) = (Url::parse(url), Url::parse(landing)) else {
        return false;
    };
    let path = |url: &Url| url.path().trim_end_matches('/').to_owned();
    let (asked, answered) = (path(&url), path(&landing));
    asked != answered || asked.is_empty() && url.query() != landing.query()
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
