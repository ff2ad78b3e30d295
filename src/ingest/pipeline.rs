//! One poll, from the request to the commit: fetch, slice, observe, decide, commit, wake; not when that is due.

use super::{
    config::Config,
    platform,
    poller::FeedSpec,
    upstream::{Fetched, Reply, Upstream},
};
use crate::{
    clock::Clock,
    feed::{
        absence::WindowEvent,
        archive::ArchiveWalk,
        reconcile::{keys_needed, observe},
        schedule::{self, Document, Failure, FaultNote, Outcome, PollState, Whose},
        stamp::Stamp,
    },
    notify::Notify,
    store::{Receipt, Store, StoreError},
    telemetry::Metrics,
};
use everfeed_adapters::platforms::{Detected, Platforms};
use std::{sync::Arc, time::Instant};
use tokio_util::sync::CancellationToken;
use tracing::{debug, error, info, warn};
use url::Url;

mod decided;

mod archives;

mod probes;

mod rewalks;

use archives::{Gate, Import};
pub use archives::{Stepped, again_at, is_settled};
use decided::{Decided, Sliced};
pub use probes::Probed;

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
    /// What is counted.
    pub metrics: Metrics,
    /// What is known of blog software.
    pub platforms: Arc<Platforms>,
    /// Seconds between two requests for pages of missed items to one host, at least.
    pub probe_gap_secs: u64,
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
    /// A walk through the feed's archives that begins with this document.
    pub walk: Option<ArchiveWalk>,
    /// When the page of an item that the document lacks is to be asked for.
    pub probe_at: Option<Stamp>,
    /// When the feed's archives are walked again, if that was decided with this document.
    pub again_at: Option<Stamp>,
}

/// How long another feed must answer before it is taken for the feed itself, in seconds.
const STRANGER_SECS: u64 = 7 * 86_400;

/// How often one document is decided on again because the feed moved on meanwhile.
const TRIES_MAX: usize = 5;

impl Pipeline {
    /// A pipeline whose polls fall out of step at random.
    pub fn new(
        store: Arc<dyn Store>,
        notify: Arc<Notify>,
        clock: Arc<dyn Clock>,
        upstream: Upstream,
    ) -> Self {
        let (jitter, metrics, platforms) =
            (rand::random::<f64> as fn() -> f64, Metrics::default(), platform::embedded());
        let probe_gap_secs = Config::default().probe_gap_secs;
        Self { store, notify, clock, upstream, jitter, metrics, platforms, probe_gap_secs }
    }

    /// Polls a feed. `None` when `stop` came before there was anything to finish.
    pub async fn poll(&self, feed: &FeedSpec, state: &PollState, stop: &CancellationToken) -> Option<Polled> {
        let started = Instant::now();
        let plan = state.plan(feed.deletions.audit_secs, self.now());
        let subscribers = self.subscribers(feed).await;
        // Nothing has happened yet that could not be dropped; what comes after is finished.
        let reply = tokio::select! {
            reply = self.upstream.fetch(feed, &plan, state, subscribers) => reply,
            () = stop.cancelled() => return None,
        };
        Some(self.answered(feed, state, reply, started).await)
    }

    /// What an answer comes to, wherever it came from: from the publisher now, or from a record of what it once sent.
    pub async fn answered(
        &self,
        feed: &FeedSpec,
        state: &PollState,
        reply: Reply,
        started: Instant,
    ) -> Polled {
        let polled = match reply {
            Reply::Unchanged(answer) => self.remember(feed, state, &Outcome::Unchanged(answer)),
            Reply::Deferred { wait_secs } => self.remember(feed, state, &Outcome::Deferred { wait_secs }),
            Reply::Document(fetched) => match self.take_in(feed, state, fetched, started).await {
                Ok(polled) => polled,
                Err(failure) => self.fail(feed, state, failure, None),
            },
            Reply::Failed { failure, host } => self.fail(feed, state, failure, host),
        };
        let polled = self.release_due(feed, polled, started).await;
        if state.failures > 0 && polled.state.failures == 0 {
            info!(feed.name = %feed.name, failures = state.failures, "`{}` answers well again", feed.name);
        }
        self.metrics.poll(outcome(&polled), started.elapsed().as_secs_f64());
        debug!(feed.name = %feed.name, next_at = %polled.state.next_at.rfc3339(), "Polled `{}`", feed.name);
        polled
    }

    /// What a poll comes to that ended unexpectedly.
    pub(super) fn broken(&self, feed: &FeedSpec, state: &PollState) -> Polled {
        self.fail(feed, state, ours("the poll broke off; this is a bug in everfeed"), None)
    }

    /// Who is pushed to. A count that cannot be read is none that could be told to a publisher.
    async fn subscribers(&self, feed: &FeedSpec) -> usize {
        let now = self.now();
        let subs = self.store.subs_of(feed.no).await.unwrap_or_default();
        subs.iter().filter(|sub| sub.is_active(now)).count()
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
        let fetched = self.record(feed, fetched).await?;
        let (last_body, at_rest) = (state.body, state.at_rest);
        // Behind a sidecar the document came from a place that only we can reach.
        let base_url = feed.public_url.as_ref().map_or_else(|| fetched.base_url.clone(), Url::to_string);
        let landed = fetched.base_url.clone();
        let fetched = Arc::new(Fetched { base_url, ..fetched });
        let document = Arc::clone(&fetched);
        let (choice, known, platforms) =
            (feed.platform.clone(), state.platform.clone(), self.platforms.clone());
        let sliced = compute(move || {
            let sliced = Sliced::new(&document, last_body)?;
            Ok(sliced.map(|sliced| {
                let mut sliced = sliced.recognised(&choice, &platforms, known.as_ref(), &document);
                sliced.after_rest |= at_rest;
                sliced
            }))
        });
        let Some(sliced) = sliced.await?? else {
            let confirms = state.wants_audit && !answer.conditional;
            let unchanged = Outcome::Unchanged(answer);
            return if confirms {
                self.confirm(feed, state, &unchanged, started).await
            } else {
                Ok(self.remember(feed, state, &unchanged))
            };
        };
        let sliced = Arc::new(sliced);
        tell_platform(feed, state.platform.as_ref(), sliced.platform.as_ref());
        let (begun, import) = match self.gate(feed, &sliced, &fetched, &landed).await? {
            Gate::Open(begun, import) => (begun, import),
            Gate::Closed(begun, until) => {
                return Ok(self.held_back(feed, state, &sliced, answer, begun.map(|walk| *walk), until));
            }
        };
        for _ in 0..TRIES_MAX {
            let Some(decided) = self.decide(feed, &sliced, &import).await? else { continue };
            if let Some(text) = decided.different_feed.clone().filter(|text| !self.persists(state, text)) {
                return Err(Failure {
                    whose: Whose::Upstream,
                    text,
                    status: Some(200),
                    retry_after_secs: None,
                });
            }
            let document = Document {
                body: sliced.body,
                rhythm: &sliced.window.metadata.rhythm,
                arrived: decided.arrived(),
                remark: decided.remark.clone(),
                wants_audit: decided.wants_audit(),
                held_until: decided.held_until(),
                platform: sliced.platform.clone(),
            };
            let polled = self.remember(feed, state, &Outcome::Document(answer.clone(), document));
            if let Some(polled) = self.settle(feed, decided, polled, started).await? {
                return Ok(Polled { walk: begun.map(|walk| *walk), ..polled });
            }
        }
        Err(ours("the feed kept changing while its document was decided on"))
    }

    /// Keeps the document as it came, if the feed is recorded. That it cannot be kept is no reason not to read it.
    async fn record(&self, feed: &FeedSpec, fetched: Fetched) -> Result<Fetched, Failure> {
        let Some(record) = feed.record.clone() else { return Ok(fetched) };
        let (name, now) = (feed.name.clone(), self.now());
        compute(move || {
            if let Err(error) = record.keep(&name, &fetched, now) {
                let folder = record.folder.display();
                warn!(feed.name = %name, "A document of `{name}` could not be kept in {folder}: {error}");
            }
            fetched
        })
        .await
    }

    /// Whether polls have failed for the same reason for so long that it must be meant.
    fn persists(&self, state: &PollState, text: &str) -> bool {
        let is_old =
            |fault: &FaultNote| fault.text == text && self.now() >= fault.since.plus_secs(STRANGER_SECS);
        state.fault.as_ref().is_some_and(is_old)
    }

    /// The last body came again, unasked by any validator: a full confirmation of what it lacks (DESIGN section 3).
    async fn confirm(
        &self,
        feed: &FeedSpec,
        state: &PollState,
        unchanged: &Outcome<'_>,
        started: Instant,
    ) -> Result<Polled, Failure> {
        for _ in 0..TRIES_MAX {
            let record = self.store.feed(feed.no).await.map_err(ours)?;
            let known = self.store.known(feed.no, Vec::new()).await.map_err(ours)?;
            if known.rev != record.rev {
                continue;
            }
            let decided = Decided::again(record, &known, &feed.deletions, self.now());
            let mut polled = self.remember(feed, state, unchanged);
            let hides_deletions = self.hides_deletions(state);
            polled.state.wants_audit = hides_deletions || decided.wants_audit();
            if let Some(polled) = self.settle(feed, decided, polled, started).await? {
                return Ok(polled);
            }
        }
        Err(ours("the feed kept changing while its document was confirmed"))
    }

    /// Commits what is held back and waits no longer: its day is over, whatever the publisher answers, or its entries have
    /// ceased to change with every poll. What cannot be committed now is tried again with the next poll.
    async fn release_due(&self, feed: &FeedSpec, polled: Polled, started: Instant) -> Polled {
        let now = self.now();
        let at_rest = polled.state.at_rest;
        if !polled.state.held_until.is_some_and(|until| at_rest || until <= now) {
            return polled;
        }
        for _ in 0..TRIES_MAX {
            match self.release(feed, polled.clone(), started).await {
                Ok(Some(released)) => return released,
                Ok(None) => {}
                Err(failure) => {
                    let (name, text) = (&feed.name, &failure.text);
                    error!(feed.name = %name, "What is held back of `{name}` could not be committed: {text}");
                    break;
                }
            }
        }
        polled
    }

    /// The same, once; `None` when the feed moved on meanwhile.
    async fn release(
        &self,
        feed: &FeedSpec,
        polled: Polled,
        started: Instant,
    ) -> Result<Option<Polled>, Failure> {
        let record = self.store.feed(feed.no).await.map_err(ours)?;
        let last = self.store.known(feed.no, Vec::new()).await.map_err(ours)?.window;
        let keys = last.deferred.iter().map(|held| held.key).collect();
        let known = self.store.known(feed.no, keys).await.map_err(ours)?;
        if known.rev != record.rev {
            return Ok(None);
        }
        let decided = Decided::released(record, &known, polled.state.at_rest, self.now());
        let state = PollState { held_until: decided.held_until(), ..polled.state.clone() };
        self.settle(feed, decided, Polled { state, ..polled }, started).await
    }

    /// Whether the validators of the platform that a feed is made with hide deletions.
    fn hides_deletions(&self, state: &PollState) -> bool {
        let profile = super::platform::profile(&self.platforms, state.platform.as_ref());
        profile.is_some_and(|profile| profile.http.hides_deletes)
    }

    /// Commits what was decided; `None` when the feed moved on meanwhile.
    async fn settle(
        &self,
        feed: &FeedSpec,
        decided: Decided,
        polled: Polled,
        started: Instant,
    ) -> Result<Option<Polled>, Failure> {
        let events = decided.events().to_vec();
        let ends_walk = decided.ends_walk();
        match self.store.commit(decided.commit(&polled.state)).await {
            Ok(receipt) => {
                self.announce(feed, &receipt, started);
                events.into_iter().for_each(|event| tell(feed, event));
                let walked = receipt.feed.last_walk.as_ref().filter(|_| ends_walk);
                let again_at = walked.and_then(|walked| again_at(feed, walked));
                Ok(Some(Polled { is_saved: true, again_at, probe_at: receipt.feed.next_check_at, ..polled }))
            }
            Err(StoreError::Conflict { found }) => {
                debug!(feed.name = %feed.name, rev = found, "`{}` moved on, deciding again", feed.name);
                Ok(None)
            }
            Err(error) => Err(ours(error)),
        }
    }

    /// What a document changes; `None` when the feed moved on between two looks at it.
    async fn decide(
        &self,
        feed: &FeedSpec,
        sliced: &Arc<Sliced>,
        import: &Import,
    ) -> Result<Option<Decided>, Failure> {
        let record = self.store.feed(feed.no).await.map_err(ours)?;
        let mut known = self.store.known(feed.no, Vec::new()).await.map_err(ours)?;
        if known.rev != record.rev {
            return Ok(None);
        }
        if sliced.says_nothing() && !known.window.entries.is_empty() {
            return Ok(Some(Decided::emptied(record, &known, sliced, &feed.deletions, self.now())));
        }
        let (last, document) = (known.window.clone(), Arc::clone(sliced));
        let namespace = record.namespace.clone();
        let pages = Arc::clone(&import.pages);
        let (seen, older, keys, notes) = compute(move || {
            let profile = document.profile.clone();
            let (mut seen, notes) = observe(&last, &document.window, profile, document.class);
            seen.after_rest = document.after_rest;
            let older = archives::older(&mut seen, &pages);
            let mut keys = keys_needed(&namespace, &last, &seen);
            keys.extend(archives::keys(&namespace, &last, &older));
            (seen, older, keys, notes)
        })
        .await?;
        if !keys.is_empty() {
            known = self.store.known(feed.no, keys).await.map_err(ours)?;
            if known.rev != record.rev {
                return Ok(None);
            }
        }
        let (now, sliced, deletions) = (self.now(), Arc::clone(sliced), feed.deletions);
        let said = import.said.clone();
        compute(move || {
            let policy = deletions.policy(false);
            let older = older.decide(&record.namespace, &known, sliced.profile.clone(), &policy, now);
            let decided = Decided::new(record, &known, &seen, &sliced, notes, &deletions, now);
            Some(decided.with_older(older).saying(said))
        })
        .await
    }

    /// The poll state after an outcome that is no failure.
    fn remember(&self, feed: &FeedSpec, state: &PollState, outcome: &Outcome<'_>) -> Polled {
        let next = schedule::next(state, outcome, &feed.policy, self.now(), (self.jitter)());
        Polled { state: next, is_saved: false, hold: None, walk: None, probe_at: None, again_at: None }
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
        Polled {
            state: next,
            is_saved: false,
            hold: host.zip(until),
            walk: None,
            probe_at: None,
            again_at: None,
        }
    }

    /// Wakes who waits, after the commit is durable.
    fn announce(&self, feed: &FeedSpec, receipt: &Receipt, started: Instant) {
        self.notify.moved(feed.no, receipt.feed.head());
        let (name, items) = (&feed.name, receipt.stamped.len());
        if items > 0 {
            self.metrics.items_changed.inc_by(items as u64);
            let duration_ms = started.elapsed().as_millis();
            info!(feed.name = %name, items, duration_ms, "`{name}` has changed; items: {items}");
        }
    }
}

/// What happened to a window as a whole, in the operator's words.
fn tell(feed: &FeedSpec, event: WindowEvent) {
    let name = &feed.name;
    match event {
        WindowEvent::Gap => {
            warn!(feed.name = %name, "Nothing of the last document of `{name}` is in this one; items may be missing between the two")
        }
        WindowEvent::Rebaselined => {
            info!(feed.name = %name, "The order of `{name}` could not be followed; its window begins anew")
        }
        WindowEvent::Quarantined => {
            warn!(feed.name = %name, "Too much of `{name}` is missing at once; nothing is taken for deleted until it is back, or for a week")
        }
        WindowEvent::Reformatted => {
            info!(feed.name = %name, "`{name}` was reformatted: most of its entries were edited at once, none of them by its date")
        }
        WindowEvent::QuarantineEnded => {
            warn!(feed.name = %name, "Much of `{name}` stayed missing for a week; its window begins anew, and nothing was deleted")
        }
        WindowEvent::DailyLimit => {
            warn!(feed.name = %name, "More items of `{name}` seem to be gone than is believed in a day; the rest waits")
        }
        WindowEvent::Doubted => {
            warn!(feed.name = %name, "Posts that `{name}` left out came back; for a month they must be missing for seven days to be taken for deleted")
        }
        WindowEvent::AbsenceOff => {
            warn!(feed.name = %name, "Posts of `{name}` that had been missing for seven days came back; for a month none is taken for deleted because it is missing")
        }
        WindowEvent::Pinned => {
            info!(feed.name = %name, "What rolls off `{name}` is missing from before an end that stays; its documents prove no deletion, only pages do")
        }
    }
}

/// Says which software a feed is thought to be made with, once.
fn tell_platform(feed: &FeedSpec, before: Option<&Detected>, now: Option<&Detected>) {
    let Some(now) = now.filter(|now| before.is_none_or(|before| before.platform != now.platform)) else {
        return;
    };
    let (name, platform, why) = (&feed.name, &now.platform, &now.why);
    info!(feed.name = %name, feed.platform = %platform, "`{name}` is read as {platform}: {why}");
}

/// What a poll came to, in the word that is counted.
fn outcome(polled: &Polled) -> &'static str {
    match polled {
        Polled { state, .. } if state.failures > 0 => "failed",
        Polled { is_saved: true, .. } => "stored",
        _ => "unchanged",
    }
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
