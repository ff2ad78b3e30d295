//! One poll, from the request to the commit and the wake-up; not the time at which it is due.

use super::{
    Context, FeedSpec, Upstream,
    recording::{QuietPoll, RecordedAnswer, RecordedPoll, record_answer},
    upstream::DocumentReply,
};
use crate::{
    feed::{
        archive::ArchiveWalk,
        schedule::{self, Failure, FaultKind, Plan, Policy, PollOutcome, PollState, Repeat, Whose},
        stamp::Stamp,
    },
    secret::public_text,
};
use std::time::Instant;
use tokio_util::sync::CancellationToken;
use tracing::{debug, error, info, warn};

mod decided;

mod document;

mod import_gate;

mod legacy;

mod page_feed;

mod poll_end;

mod pushed;

mod recognition;

mod resource_deletion;

mod restless;

pub use poll_end::{ChangeCounts, PollEnd};

#[cfg(test)]
mod tests;

/// One poll of a feed.
pub struct Poll<'a> {
    context: &'a Context,
    feed: &'a FeedSpec,
    state: &'a PollState,
    started: Instant,
    /// Time of the answer: what is decided on it is decided as of then, now and in a replay.
    answered_at: Stamp,
    /// True when the document is read even if it is the last one again: it is not kept yet for
    /// plain readers.
    wants_document: bool,
    /// True when no validators are sent, so that a publisher who answers 304 by mistake sends the
    /// document.
    is_unconditional: bool,
}

/// Result of a poll.
#[derive(Clone, Debug)]
pub struct Polled {
    /// Its end, for whoever asked for it.
    pub end: PollEnd,
    /// The poll state from now on.
    pub state: PollState,
    /// Place of the poll state.
    pub saving: PollSaving,
    /// A pause of a host, and its end.
    pub host_pause: Option<(String, Stamp)>,
    /// An archive walk that begins with this document.
    pub walk: Option<ArchiveWalk>,
    /// Time at which a permalink check is due for an item that the document lacks.
    pub check_at: Option<Stamp>,
    /// Time at which the feed's archives are walked again, if that was decided with this document.
    pub again_at: Option<Stamp>,
}

impl Polled {
    /// Nothing that was polled, with this state.
    fn resting(state: PollState) -> Self {
        Self {
            end: PollEnd::Document(ChangeCounts::default()),
            state,
            saving: PollSaving::Late,
            host_pause: None,
            walk: None,
            check_at: None,
            again_at: None,
        }
    }
}

/// Place of the state of a poll that has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PollSaving {
    /// In the store already, as part of a commit.
    Committed,
    /// Nowhere yet, and it is saved at once: the publisher asked to be left alone, or the operator
    /// has said something.
    AtOnce,
    /// Nowhere yet: it is noted with those of other feeds, and may be lost with the process.
    Late,
}

impl PollSaving {
    // Decides: Which poll state may be lost with the process?
    /// Place of the state after an outcome that is not committed. Only words of the publisher to be
    /// left alone are never lost.
    fn of(outcome: &PollOutcome<'_>) -> Self {
        match outcome {
            PollOutcome::Failed(failure)
                if failure.retry_after_secs.is_some() || failure.status() == Some(410) =>
            {
                Self::AtOnce
            }
            _ => Self::Late,
        }
    }
}

/// Seconds until a poll is repeated whose result could not be kept because the store was away.
const STORE_AGAIN_SECS: u64 = 5;

impl<'a> Poll<'a> {
    /// A poll of this feed that begins now, with what is remembered of the last one.
    pub fn new(context: &'a Context, feed: &'a FeedSpec, state: &'a PollState) -> Self {
        Self {
            context,
            feed,
            state,
            started: Instant::now(),
            answered_at: context.now(),
            wants_document: false,
            is_unconditional: false,
        }
    }

    /// The same without validators.
    pub fn unconditional(self) -> Self {
        Self {
            is_unconditional: true,
            ..self
        }
    }

    /// Sends the request and takes in the answer. `None` when `stop` came before there was anything
    /// to finish.
    pub async fn run(mut self, upstream: &Upstream, stop: &CancellationToken) -> Option<Polled> {
        if let Err(error) = self.context.settle_doubts().await {
            // The next poll tries again.
            debug!("The heads of feeds could not be read after a commit in doubt: {error}");
        }
        self.wants_document = self.lacks_legacy_document().await;
        let plan = self
            .state
            .plan(self.feed.deletions.audit_secs, self.context.now());
        let conditional = plan.conditional
            && !self.wants_document
            && !self.is_unconditional
            && !self.doubts_resource();
        let plan = Plan {
            conditional,
            ..plan
        };
        let subscribers = self.context.subscribers(self.feed).await;
        // Nothing has happened yet that could not be dropped; what comes after is finished.
        let fetching = async {
            let reply = upstream
                .fetch(self.feed, &plan, self.state, subscribers)
                .await;
            let reply = self.or_named_feed(upstream, subscribers, reply).await;
            if !plan.conditional || !self.is_deletion(&reply) {
                return reply;
            }
            // Only an answer to a request without validators is a word on the resource itself.
            let plan = Plan {
                conditional: false,
                ..plan
            };
            upstream
                .fetch(self.feed, &plan, self.state, subscribers)
                .await
        };
        let reply = tokio::select! {
            biased;
            reply = fetching => reply,
            () = stop.cancelled() => return None,
        };
        Some(self.answered(reply).await)
    }

    /// Takes in an answer, wherever it came from: from the publisher now, or from a record of what
    /// it once sent.
    pub async fn answered(mut self, reply: DocumentReply) -> Polled {
        self.answered_at = self.context.now();
        let (feed, state) = (self.feed, self.state);
        self.record_quiet(&reply).await;
        let polled = match reply {
            DocumentReply::Unchanged(answer) => self.remember(&PollOutcome::Unchanged(answer)),
            DocumentReply::Deferred { wait_secs } => {
                self.remember(&PollOutcome::Deferred { wait_secs })
            }
            DocumentReply::Document(fetched) => match self.take_in(fetched).await {
                Ok(polled) => polled,
                Err(failure) if matches!(failure.kind, FaultKind::StoreAway { .. }) => {
                    self.store_is_away(&failure)
                }
                Err(failure) => self.fail(failure, None),
            },
            DocumentReply::Failed { failure, host } => {
                let is_gone = failure.status() == Some(410);
                let polled = self.fail(failure, host);
                if is_gone {
                    self.note_gone(polled).await
                } else {
                    polled
                }
            }
        };
        let polled = self.release_due(polled).await;
        if state.health.failures > 0 && polled.state.health.failures == 0 {
            info!(feed.name = %feed.name, failures = state.health.failures, "`{}` answers well again", feed.name);
        }
        if let Some(named) = polled
            .state
            .named_address()
            .filter(|named| state.named_address() != Some(named))
        {
            let to = public_text(named);
            info!(feed.name = %feed.name, "The url of `{}` is a web page; the feed that it names is polled: {to}", feed.name);
        }
        let redirect =
            |state: &PollState| state.health.moved.as_ref().map(|moved| moved.url.clone());
        if let Some(to) = redirect(&polled.state)
            .filter(|to| redirect(state).as_ref() != Some(to) && polled.state.named.is_none())
        {
            let to = public_text(&to);
            warn!(feed.name = %feed.name, "`{}` redirects for good to {to}; give that as its url in the configuration", feed.name);
        }
        self.tell_announced(&polled.state);
        self.tell_news(&polled.end);
        self.context
            .metrics
            .poll(outcome(&polled), self.started.elapsed().as_secs_f64());
        debug!(feed.name = %feed.name, next_at = %polled.state.timetable.next_at.rfc3339(), "Polled `{}`", feed.name);
        polled
    }

    /// Tells whoever is pushed the news of the feed that a poll found some.
    fn tell_news(&self, end: &PollEnd) {
        let found = matches!(end, PollEnd::Document(counts) if counts.new > 0);
        if found && let Some(push) = self.context.notify.upstream_push() {
            let before = self.state.timetable.polled_at;
            push.found_by_poll(self.feed.no, before, self.answered_at);
        }
    }

    /// Tells of a move that documents announce: once when they begin, and once when it is followed.
    fn tell_announced(&self, now: &PollState) {
        let Some(announced) = &now.health.announced else {
            return;
        };
        let (name, to) = (&self.feed.name, public_text(&announced.url));
        let before = self.state.health.announced.as_ref();
        let before = before.filter(|before| before.url == announced.url);
        match (before, announced.is_taken) {
            (Some(before), is_taken) if before.is_taken == is_taken => {}
            (_, true) => {
                warn!(feed.name = %name, "`{name}` is polled at {to} from now on: its documents have said for days that it has moved. Give that as its url in the configuration")
            }
            (_, false) => {
                warn!(feed.name = %name, "The document of `{name}` says that the feed has moved to {to}. If it goes on to say so, the feed is polled there in 7 days")
            }
        }
    }

    /// Takes in that a poll failed, as a record of it says. The log tells nothing of it: it happened
    /// long ago.
    pub async fn failed_once(mut self, failure: &Failure) -> Polled {
        self.answered_at = self.context.now();
        let mut polled = self.remember(&PollOutcome::Failed(failure.clone()));
        if failure.status() == Some(410) {
            polled = self.note_gone(polled).await;
        }
        self.release_due(polled).await
    }

    /// Reads the document even if it is the last one again.
    #[must_use]
    pub fn rereading(self, wants_document: bool) -> Self {
        Self {
            wants_document,
            ..self
        }
    }

    /// Keeps that a poll brought no document, if the feed is recorded and something depends on it.
    async fn record_quiet(&self, reply: &DocumentReply) {
        let document = &self.state.document;
        let fault = self.state.health.fault.as_ref();
        let (poll, failure, is_news) = match reply {
            DocumentReply::Unchanged(_) => (
                QuietPoll::Unchanged,
                None,
                document.repeat == Repeat::Changed || fault.is_some(),
            ),
            // A resource is deleted by the second 410.
            DocumentReply::Failed { failure, .. } => (
                QuietPoll::Failed,
                Some(failure),
                self.is_deletion(reply)
                    || fault.is_none_or(|fault| !fault.kind.is_same(&failure.kind)),
            ),
            DocumentReply::Document(_) | DocumentReply::Deferred { .. } => return,
        };
        if is_news || document.deferred_until.is_some() {
            let at = self.answered_at;
            let recorded = RecordedPoll {
                at_us: at.micros(),
                at: at.rfc3339(),
                poll,
                why: failure.map(|failure| failure.kind.to_string()),
                status: failure.and_then(Failure::status),
            };
            // It is told in the log when it cannot be kept.
            let _ = record_answer(self.feed, RecordedAnswer::Poll(recorded)).await;
        }
    }

    /// The result of a poll that ended in a panic.
    pub(super) fn broken(self) -> Polled {
        self.fail(
            Failure::ours("the poll broke off; this is a bug in everfeed"),
            None,
        )
    }

    /// The poll state after an outcome that is no failure.
    fn remember(&self, outcome: &PollOutcome<'_>) -> Polled {
        let (now, jitter) = (self.context.now(), (self.context.jitter)());
        let push = self.context.notify.upstream_push();
        let policy = Policy {
            // What is subscribed to is a former URL until a document of the new one is taken.
            is_pushed: self.state.url_change.is_none()
                && push.is_some_and(|push| push.works(self.feed.no, now)),
            ..self.feed.policy()
        };
        let next = schedule::next(self.state, outcome, &policy, now, jitter);
        Polled {
            end: PollEnd::of(outcome),
            saving: PollSaving::of(outcome),
            ..Polled::resting(next)
        }
    }

    /// The poll state when the store could not be reached: the poll is repeated soon, and nobody is
    /// to blame.
    fn store_is_away(&self, failure: &Failure) -> Polled {
        let name = &self.feed.name;
        warn!(feed.name = %name, "The document of `{name}` could not be stored, will poll again: {failure}");
        let end = PollEnd::NotKept {
            cause: failure.to_string(),
            wait_secs: STORE_AGAIN_SECS,
        };
        Polled {
            end,
            ..self.remember(&PollOutcome::Deferred {
                wait_secs: STORE_AGAIN_SECS,
            })
        }
    }

    /// The poll state after a failure, which changes nothing else.
    fn fail(&self, failure: Failure, host: Option<String>) -> Polled {
        let feed = self.feed;
        let polled = self.remember(&PollOutcome::Failed(failure.clone()));
        let until = self.context.host_pause(feed, &polled.state, &failure);
        let (name, text, status) = (&feed.name, &failure.kind, failure.status());
        let is_new = self
            .state
            .health
            .fault
            .as_ref()
            .is_none_or(|fault| !fault.kind.is_same(&failure.kind));
        match failure.whose() {
            // Once per fault, not once per poll.
            _ if !is_new => {
                debug!(feed.name = %name, http.status = status, "Polling `{name}` still fails: {text}")
            }
            Whose::Upstream | Whose::Network | Whose::Configuration => {
                warn!(feed.name = %name, http.status = status, "Polling `{name}` failed: {text}")
            }
            Whose::Ours if self.context.is_forgotten(feed) => {
                debug!(feed.name = %name, "`{name}` was forgotten while it was polled: {text}")
            }
            Whose::Ours => error!(feed.name = %name, "Polling `{name}` failed on our side: {text}"),
        }
        Polled {
            host_pause: host.zip(until),
            ..polled
        }
    }
}

/// The label under which a poll is counted.
fn outcome(polled: &Polled) -> &'static str {
    match polled {
        Polled { state, .. } if state.health.failures > 0 => "failed",
        Polled {
            saving: PollSaving::Committed,
            ..
        } => "stored",
        _ => "unchanged",
    }
}
