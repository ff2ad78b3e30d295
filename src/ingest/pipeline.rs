//! One poll, from the request to the commit: fetch, slice, observe, decide, commit, wake; not when that is due.

use super::{
    poller::FeedSpec,
    upstream::{Fetched, Reply, Upstream},
};
use crate::{
    clock::Clock,
    feed::{
        reconcile::{Change, Decisions, Known, Observation, PutKind, keys_needed, observe, reconcile},
        record::FeedRecord,
        schedule::{self, Document, Failure, Outcome, PollState, Whose},
        stamp::Stamp,
    },
    notify::Notify,
    store::{Commit, Receipt, Store, StoreError},
};
use everfeed_adapters::{Digest, Head, Hints, NotAFeed, Note, Window, slice};
use std::{sync::Arc, time::Instant};
use tokio_util::sync::CancellationToken;
use tracing::{debug, error, info, warn};

#[cfg(test)]
mod tests;

/// Everything that a poll needs.
#[derive(Clone)]
pub struct Pipeline {
    /// Where items go.
    pub store: Arc<dyn Store>,
    /// Who is woken.
    pub notify: Arc<Notify>,
    /// What time it is.
    pub clock: Arc<dyn Clock>,
    /// Who is asked.
    pub upstream: Upstream,
    /// A random number of 0..1, so that polls fall out of step.
    pub jitter: fn() -> f64,
}

/// What came of a poll.
#[derive(Clone, Debug)]
pub struct Polled {
    /// What is to be remembered.
    pub state: PollState,
    /// Whether the store has that already, since it was part of a commit.
    pub is_saved: bool,
    /// A host that wants to be left alone until then.
    pub hold: Option<(String, Stamp)>,
}

/// How often one document is decided on again because the feed moved on meanwhile.
const TRIES_MAX: usize = 5;

impl Pipeline {
    /// Polls a feed. `None` when `stop` came before there was anything to finish.
    pub async fn poll(&self, feed: &FeedSpec, state: &PollState, stop: &CancellationToken) -> Option<Polled> {
        let started = Instant::now();
        let plan = state.plan(self.now());
        // A count that cannot be read is none that could be told to a publisher.
        let subscribers = self.store.subs_of(feed.no).await.map_or(0, |subs| subs.len());
        // Nothing has happened yet that could not be dropped; what comes after is finished.
        let reply = tokio::select! {
            reply = self.upstream.fetch(&feed.url, &plan, state, subscribers) => reply,
            () = stop.cancelled() => return None,
        };
        let polled = match reply {
            Reply::Unchanged(answer) => self.remember(feed, state, &Outcome::Unchanged(answer)),
            Reply::Deferred { wait_secs } => self.remember(feed, state, &Outcome::Deferred { wait_secs }),
            Reply::Document(fetched) => match self.take_in(feed, state, fetched, started).await {
                Ok(polled) => polled,
                Err(failure) => self.fail(feed, state, failure, None),
            },
            Reply::Failed { failure, host } => self.fail(feed, state, failure, host),
        };
        Some(polled)
    }

    /// What a poll comes to that ended unexpectedly.
    pub(super) fn broken(&self, feed: &FeedSpec, state: &PollState) -> Polled {
        self.fail(feed, state, ours("the poll broke off; this is a bug in everfeed"), None)
    }

    fn now(&self) -> Stamp {
        Stamp::from_micros(self.clock.now_us())
    }

    /// A document is read and what it changes is committed, together with the poll state.
    async fn take_in(
        &self,
        feed: &FeedSpec,
        state: &PollState,
        fetched: Fetched,
        started: Instant,
    ) -> Result<Polled, Failure> {
        let answer = fetched.answer.clone();
        let last_body = state.body;
        let Some(sliced) = compute(move || Sliced::new(&fetched, last_body)).await?? else {
            return Ok(self.remember(feed, state, &Outcome::Unchanged(answer)));
        };
        let sliced = Arc::new(sliced);
        for _ in 0..TRIES_MAX {
            let Some(decided) = self.decide(feed, &sliced).await? else { continue };
            let document = Document {
                body: sliced.body,
                rhythm: &sliced.window.head.rhythm,
                arrived: decided.arrived(),
                remark: decided.remark.clone(),
            };
            let polled = self.remember(feed, state, &Outcome::Document(answer.clone(), document));
            if decided.is_nothing() {
                return Ok(polled);
            }
            match self.store.commit(decided.commit(&polled.state)).await {
                Ok(receipt) => {
                    self.announce(feed, &receipt, started);
                    return Ok(Polled { is_saved: true, ..polled });
                }
                Err(StoreError::Conflict { found }) => {
                    debug!(feed.name = %feed.name, rev = found, "`{}` moved on, deciding again", feed.name);
                }
                Err(error) => return Err(ours(error)),
            }
        }
        Err(ours("the feed kept changing while its document was decided on"))
    }

    /// What a document changes; `None` when the feed moved on between two looks at it.
    async fn decide(&self, feed: &FeedSpec, sliced: &Arc<Sliced>) -> Result<Option<Decided>, Failure> {
        let record = self.store.feed(feed.no).await.map_err(ours)?;
        let mut known = self.store.known(feed.no, Vec::new()).await.map_err(ours)?;
        if sliced.window.entries.is_empty() && sliced.window.deletions.is_empty() && !known.window.is_empty()
        {
            return Ok(Some(Decided::emptied(record, &known)));
        }
        let (window, document) = (known.window.clone(), Arc::clone(sliced));
        let namespace = record.namespace.clone();
        let (seen, keys, notes) = compute(move || {
            let (seen, notes) = observe(&window, &document.window);
            let keys = keys_needed(&namespace, &seen);
            (seen, keys, notes)
        })
        .await?;
        if !keys.is_empty() {
            let rev = known.rev;
            known = self.store.known(feed.no, keys).await.map_err(ours)?;
            if known.rev != rev {
                return Ok(None);
            }
        }
        let (now, sliced) = (self.now(), Arc::clone(sliced));
        compute(move || Some(Decided::new(record, &known, &seen, &sliced, notes, now))).await
    }

    /// The poll state after an outcome that is no failure.
    fn remember(&self, feed: &FeedSpec, state: &PollState, outcome: &Outcome<'_>) -> Polled {
        let next = schedule::next(state, outcome, &feed.policy, self.now(), (self.jitter)());
        if state.failures > next.failures {
            info!(feed.name = %feed.name, failures = state.failures, "`{}` answers well again", feed.name);
        }
        debug!(feed.name = %feed.name, next_at = %next.next_at.rfc3339(), "Polled `{}`", feed.name);
        Polled { state: next, is_saved: false, hold: None }
    }

    /// A failure changes nothing but the poll state.
    fn fail(&self, feed: &FeedSpec, state: &PollState, failure: Failure, host: Option<String>) -> Polled {
        let now = self.now();
        let outcome = Outcome::Failed(failure.clone());
        let next = schedule::next(state, &outcome, &feed.policy, now, (self.jitter)());
        let until = schedule::host_not_before(&next, &failure, &feed.policy, now);
        let (name, text, status) = (&feed.name, &failure.text, failure.status);
        let is_new = state.fault.as_ref().is_none_or(|fault| fault.text != failure.text);
        match failure.whose {
            // Once per fault, not once per poll.
            _ if !is_new => {
                debug!(feed.name = %name, http.status = status, "Polling `{name}` still fails: {text}")
            }
            Whose::Upstream => {
                warn!(feed.name = %name, http.status = status, "Polling `{name}` failed: {text}")
            }
            Whose::Ours => error!(feed.name = %name, "Polling `{name}` failed on our side: {text}"),
        }
        Polled { state: next, is_saved: false, hold: host.zip(until) }
    }

    /// Wakes who waits, after the commit is durable.
    fn announce(&self, feed: &FeedSpec, receipt: &Receipt, started: Instant) {
        self.notify.moved(feed.no, receipt.feed.mark());
        let (name, items) = (&feed.name, receipt.stamped.len());
        if items > 0 {
            let duration_ms = started.elapsed().as_millis();
            info!(feed.name = %name, items, duration_ms, "Stored {items} changes for `{name}`");
        }
    }
}

/// A document cut into entries.
struct Sliced {
    /// Digest of its bytes; `None` for a part of one.
    body: Option<Digest>,
    window: Window,
    is_part: bool,
}

impl Sliced {
    /// `None` when the body is the last one again: nothing to parse.
    fn new(fetched: &Fetched, last: Option<Digest>) -> Result<Option<Self>, Failure> {
        let body = (!fetched.is_part).then(|| Digest::of(&fetched.body));
        if body.is_some() && body == last {
            return Ok(None);
        }
        let content_type = fetched.content_type.as_deref();
        let hints = Hints { content_type, base_url: Some(&fetched.base_url) };
        let window = slice(&fetched.body, &hints).map_err(|error| no_feed(&error))?;
        Ok(Some(Self { body, window, is_part: fetched.is_part }))
    }
}

/// What a document changes, ready to be committed.
struct Decided {
    record: FeedRecord,
    rev: u64,
    decisions: Decisions,
    /// The new window; `None` leaves the old one.
    keeps_window: bool,
    head: Option<Arc<Head>>,
    makes_ready: bool,
    remark: Option<String>,
}

impl Decided {
    fn new(
        record: FeedRecord,
        known: &Known,
        seen: &Observation,
        sliced: &Sliced,
        notes: Vec<Note>,
        now: Stamp,
    ) -> Self {
        let decisions = reconcile(&record.namespace, known, seen, now);
        let head = &sliced.window.head;
        let speaks_anew = !sliced.is_part && is_said_otherwise(&record.head, head);
        Self {
            rev: known.rev,
            keeps_window: sliced.is_part || decisions.window == known.window,
            head: speaks_anew.then(|| Arc::new(head.clone())),
            makes_ready: !sliced.is_part && !record.is_ready(),
            remark: remark(sliced.window.notes.iter().chain(&notes)),
            record,
            decisions,
        }
    }

    /// A document without any entry after one with some proves nothing, so it changes nothing.
    fn emptied(record: FeedRecord, known: &Known) -> Self {
        let remark = format!("the document holds no entries; the one before held {}", known.window.len());
        Self {
            rev: known.rev,
            decisions: Decisions { id_rule: known.id_rule, ..Decisions::default() },
            keeps_window: true,
            head: None,
            makes_ready: false,
            remark: Some(remark),
            record,
        }
    }

    fn arrived(&self) -> bool {
        let is_added = |change: &Change| matches!(change, Change::Put(put) if put.kind == PutKind::Added);
        self.decisions.changes.iter().any(is_added)
    }

    /// Whether there is nothing to commit.
    fn is_nothing(&self) -> bool {
        self.decisions.changes.is_empty()
            && self.keeps_window
            && self.head.is_none()
            && !self.makes_ready
            && self.decisions.id_rule == self.record.id_rule
    }

    fn commit(self, poll: &PollState) -> Commit {
        Commit {
            feed: self.record.no,
            rev: self.rev,
            changes: self.decisions.changes,
            window: (!self.keeps_window).then_some(self.decisions.window),
            head: self.head,
            id_rule: self.decisions.id_rule,
            ready: self.makes_ready || self.record.is_ready(),
            poll: Some(poll.clone()),
        }
    }
}

/// Whether a head says anything but other dates: those churn, and what they and the rhythm mean is in the poll state.
fn is_said_otherwise(old: &Head, new: &Head) -> bool {
    let lasting = |head: &Head| {
        let (updated, published, rhythm) = Default::default();
        Head { updated, published, rhythm, ..head.clone() }
    };
    lasting(old) != lasting(new)
}

/// Notes told to the operator at most.
const NOTES_MAX: usize = 3;

/// What was odd about a document, in a line.
fn remark<'a>(notes: impl Iterator<Item = &'a Note>) -> Option<String> {
    let mut told: Vec<String> = Vec::new();
    for note in notes {
        let text = match note {
            Note::Truncated => "the document ends early; its last entry was dropped".into(),
            Note::Mismatched => "tags did not match and were mended".into(),
            Note::Encoding(used) => format!("the encoding declared was wrong, {used} was used"),
            Note::BadDate(text) => format!("a date could not be understood: {text}"),
            Note::EntryLost(why) => format!("an entry was left out: {why}"),
            Note::TooManyEntries => "there are more entries than are read".into(),
            Note::Other(text) => text.clone(),
        };
        if !told.contains(&text) {
            told.push(text);
        }
    }
    let rest = told.len().saturating_sub(NOTES_MAX);
    told.truncate(NOTES_MAX);
    if rest > 0 {
        told.push(format!("and {rest} more"));
    }
    (!told.is_empty()).then(|| told.join("; "))
}

/// Runs what computes, away from the tasks that wait. A panic in it is our fault and harms nothing else: what it held
/// is dropped, and what was stored stays.
async fn compute<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> Result<T, Failure> {
    let span = tracing::Span::current();
    tokio::task::spawn_blocking(move || span.in_scope(work))
        .await
        .map_err(|_| ours("reading the document broke off; this is a bug in everfeed"))
}

fn ours(why: impl ToString) -> Failure {
    Failure { whose: Whose::Ours, text: why.to_string(), status: None, retry_after_secs: None }
}

fn no_feed(why: &NotAFeed) -> Failure {
    Failure { whose: Whose::Upstream, text: why.to_string(), status: Some(200), retry_after_secs: None }
}
