//! A document that a poll brought: read, decided on and committed with the poll state, and deferred
//! edits released; not the request for it.

use super::{ChangeCounts, Poll, PollSaving, Polled, decided::Decided, import_gate::Gate};
use crate::{
    feed::{
        absence::WindowEvent,
        inquiry::{DecisionBasis, Facts, Inquiry},
        pushed_feed::NamedPush,
        reconcile::{Observation, observe},
        schedule::{Answer, BodyKind, Failure, FaultKind, PollOutcome, PolledDocument, Repeat},
    },
    ingest::{
        DocumentFormat, Fetched,
        documents::{Import, Sliced},
        events::{tell, tell_platform},
        feed_spec::{reference_base, without_credentials},
        platform,
        recording::RecordedSettings,
        transact::{Decision, answered, transact},
    },
    mistakes::{Mistake, is_made},
    store::Receipt,
};
use everfeed_adapters::NotAFeed;
use http::header::LINK;
use std::sync::Arc;
use tracing::{error, warn};
use url::Url;

/// Seconds for which another feed must answer before it is taken for the feed itself.
const DIFFERENT_FEED_SECS: u64 = 7 * 86_400;

/// Seconds for which every document must be cut short until its whole entries count as the feed.
const ALWAYS_CUT_SECS: u64 = 86_400;

/// Results of a decision that are needed after its commit.
pub(super) struct Settled {
    polled: Polled,
    counts: ChangeCounts,
    events: Vec<WindowEvent>,
    ends_walk: bool,
    /// True when the document is kept for its readers after the commit only.
    may_rename_forgotten: bool,
}

impl Settled {
    /// The commit of a decision, and what goes with it.
    pub(super) fn of(decided: Decided, polled: Polled) -> Decision<Self> {
        let (events, ends_walk, counts) = (
            decided.events().to_vec(),
            decided.ends_walk(),
            decided.counts(),
        );
        let may_rename_forgotten = decided.may_rename_forgotten();
        Decision::Commit(
            decided.commit(&polled.state),
            Self {
                polled,
                counts,
                events,
                ends_walk,
                may_rename_forgotten,
            },
        )
    }
}

impl Poll<'_> {
    /// Reads a document and commits what it changes, together with the poll state.
    pub(super) async fn take_in(&self, fetched: Fetched) -> Result<Polled, Failure> {
        let (answer, _memory) = (fetched.answer.clone(), fetched.memory.clone());
        let fetched = self.record(fetched).await?;
        // Behind a sidecar the document came from a place that only we can reach.
        let base_url = self
            .feed
            .public_url()
            .map_or_else(|| reference_base(&fetched.base_url), Url::to_string);
        let landed = fetched.base_url.clone();
        let fetched = Arc::new(Fetched {
            base_url,
            ..fetched
        });
        let Some(sliced) = self.slice(&fetched).await? else {
            let confirms = self.state.timetable.wants_audit && !answer.conditional;
            let unchanged = PollOutcome::Unchanged(answer);
            return if confirms {
                self.confirm(&unchanged).await
            } else {
                Ok(self.remember(&unchanged))
            };
        };
        if let Some(paused) = self.paused_resource() {
            return Ok(paused);
        }
        self.recognise(&sliced, answer.address).await?;
        tell_platform(
            self.feed,
            self.state.document.platform.as_ref(),
            sliced.platform.as_ref(),
        );
        let legacy = self.legacy_document(&fetched, &sliced);
        let (begun, import) = match self.gate(&sliced, &fetched, &landed).await? {
            Gate::Open(begun, import) => (begun, import),
            Gate::Closed(begun, until) => {
                self.keep_legacy(legacy.as_ref()).await;
                return Ok(self.held_back(&sliced, answer, begun.map(|walk| *walk), until));
            }
        };
        let named = self.named_push(&sliced, &fetched, &landed);
        // Its bytes are not held while what it changes is written.
        drop(fetched);
        let (sliced, import, answer, legacy) = (&sliced, &import, &answer, &legacy);
        let settled = transact(
            self.context,
            self.feed,
            "its document was decided on",
            |snapshot| async move {
                let Some(decided) = self.decide(snapshot, sliced, import).await? else {
                    return Ok(Decision::Moved);
                };
                // One of a new URL was recognised before, or the operator means it.
                if self.state.url_change.is_none()
                    && let Some(other) = &decided.different_feed
                {
                    let kind = FaultKind::DifferentFeed {
                        title: other.title.clone(),
                    };
                    if !self.persists(&kind) {
                        return Err(Failure::of(kind));
                    }
                }
                // Before the commit, so that whoever is woken by it finds both.
                if !decided.may_rename_forgotten() {
                    self.keep_legacy(legacy.as_ref()).await;
                }
                let document = PolledDocument {
                    body: sliced.body,
                    rhythm: &sliced.window.metadata.rhythm,
                    arrived: decided.arrived(),
                    remark: decided.remark().map(str::to_owned),
                    wants_audit: decided.wants_audit(),
                    agrees_at: decided.agrees_at(self.answered_at),
                    deferred_until: decided.deferred_until(),
                    platform: sliced.platform.clone(),
                    broken_since: self.broken_since(sliced),
                    announces: self.announced_by(sliced, answer),
                    has_suspects: decided.has_suspects(),
                };
                let polled = self.remember(&PollOutcome::Document(answer.clone(), document));
                Ok(Settled::of(decided, polled))
            },
        );
        let settled = settled.await;
        if settled.is_err() && is_made(Mistake::FailedCommitTaken) {
            return Ok(self.remember(&PollOutcome::Unchanged(answer.clone())));
        }
        let (receipt, settled) = settled?.expect("every document is committed");
        if let Some((push, named)) = self.context.notify.upstream_push().zip(named) {
            push.document_taken(self.feed.no, named);
        }
        if settled.may_rename_forgotten {
            self.keep_legacy(legacy.as_ref()).await;
        }
        let polled = self.settled((receipt, settled));
        Ok(Polled {
            walk: begun.map(|walk| *walk),
            ..polled
        })
    }

    /// Cuts a document into entries; `None` when it is the last one again.
    async fn slice(&self, fetched: &Arc<Fetched>) -> Result<Option<Arc<Sliced>>, Failure> {
        // What waits for the answer to an unconditional request is decided by it, also when it is the
        // last document again.
        let agrees_at = self.state.timetable.agrees_at;
        let decides = agrees_at.is_some_and(|at| at <= self.answered_at);
        let is_read = self.wants_document || decides && !fetched.answer.conditional;
        let last_body = self.state.document.body.filter(|_| !is_read);
        let repeat = self.state.document.repeat;
        let (choice, known, platforms) = (
            self.feed.platform.clone(),
            self.state.document.platform.clone(),
            self.context.platforms.clone(),
        );
        let document = Arc::clone(fetched);
        let was_feed = self.state.health.good_at.is_some();
        let state = &self.state.document;
        let is_lasting = |since| self.answered_at.secs_since(since) >= ALWAYS_CUT_SECS;
        // A first document has no longer one before it.
        let is_always_cut = state.body.is_none() || state.broken_since.is_some_and(is_lasting);
        let read_at = self.answered_at;
        self.context
            .compute(move || {
                let sliced = Sliced::new(&document, last_body, was_feed, read_at)?;
                Ok::<_, Failure>(sliced.map(|mut sliced| {
                    if is_always_cut {
                        sliced = sliced.always_cut(document.coverage);
                    }
                    let mut sliced =
                        sliced.recognised(&choice, &platforms, known.as_ref(), &document);
                    if repeat == Repeat::Unchanged {
                        sliced.previous = repeat;
                    }
                    Arc::new(sliced)
                }))
            })
            .await?
            .map_err(|failure: Failure| match failure.kind {
                FaultKind::SaysMoved { to } if self.feed.legacy.is_some() => {
                    Failure::of(FaultKind::NotAFeed {
                        reason: NotAFeed::Moved { to }.to_string(),
                        kind: Some(BodyKind::Xml),
                    })
                }
                kind => Failure::of(kind),
            })
    }

    /// The services of push that an answer names; `None` for what is no feed of somebody else.
    fn named_push(&self, sliced: &Sliced, fetched: &Fetched, landed: &str) -> Option<NamedPush> {
        if self.feed.legacy.is_some() || self.feed.format != DocumentFormat::Auto {
            return None;
        }
        let landed = without_credentials(&Url::parse(landed).ok()?);
        let links = fetched.headers.get_all(LINK).iter();
        let links: Vec<&str> = links.filter_map(|value| value.to_str().ok()).collect();
        Some(NamedPush::of(&links, &sliced.window.metadata, &landed))
    }

    /// The address to which a document says that the feed has moved. A feed of a site is at its place
    /// there, whatever it says, and so is one at its own public addresses.
    pub(super) fn announced_by(&self, sliced: &Sliced, answer: &Answer) -> Option<String> {
        let to = sliced.announces(&answer.asked)?;
        let is_own = self.feed.aliases.iter().any(|alias| alias.as_str() == to);
        (!is_own && self.feed.legacy.is_none()).then_some(to)
    }

    /// Keeps the document as it came, if the feed is recorded. A document that cannot be kept is
    /// read all the same.
    async fn record(&self, fetched: Fetched) -> Result<Fetched, Failure> {
        let Some(record) = self.feed.record.clone() else {
            return Ok(fetched);
        };
        let (name, now) = (self.feed.name.clone(), self.answered_at);
        let known = self.context.store.feed(self.feed.no).await?;
        let under = RecordedSettings {
            namespace: Some(known.ids.namespace),
            deletions: Some(self.feed.deletions),
            public_url: self.feed.public_url().map(Url::to_string),
            resource: fetched.resource.clone(),
            address: fetched.address.clone(),
            is_reread: self.wants_document,
        };
        self.context.compute(move || {
            if let Err(error) = record.keep(&name, &fetched, under, now) {
                let folder = record.folder.display();
                warn!(feed.name = %name, "A document of `{name}` could not be kept in {folder}: {error}");
            }
            fetched
        })
        .await
    }

    /// True when polls have failed for the same reason for so long that it must be meant.
    fn persists(&self, kind: &FaultKind) -> bool {
        let now = self.context.now();
        match &self.state.health.fault {
            Some(fault) if fault.kind.is_same(kind) => {
                now >= fault.since.plus_secs(DIFFERENT_FEED_SECS)
            }
            _ => false,
        }
    }

    /// Commits the last body once more, unasked by any validator: a full confirmation of what it
    /// lacks (DESIGN section 3).
    async fn confirm(&self, unchanged: &PollOutcome<'_>) -> Result<Polled, Failure> {
        let hides_deletions = self
            .context
            .profile(self.state)
            .as_deref()
            .is_some_and(platform::hides_deletions);
        let settled = transact(
            self.context,
            self.feed,
            "its document was confirmed",
            |snapshot| async move {
                let decided = Decided::again(snapshot, &self.feed.deletions, self.answered_at);
                let mut polled = self.remember(unchanged);
                polled.state.timetable.wants_audit = hides_deletions || decided.wants_audit();
                polled.state.document.has_suspects = decided.has_suspects();
                Ok(Settled::of(decided, polled))
            },
        );
        Ok(self.settled(settled.await?.expect("every confirmation is committed")))
    }

    /// Commits deferred edits that wait no longer: their day is over, whatever the publisher
    /// answers, or their entries have ceased to change with every poll. What cannot be committed
    /// now is tried again with the next poll.
    pub(super) async fn release_due(&self, polled: Polled) -> Polled {
        let now = self.answered_at;
        let poll = polled.state.document.repeat;
        let Some(until) = polled.state.document.deferred_until else {
            return polled;
        };
        if poll != Repeat::Unchanged && now < until {
            return polled;
        }
        let before = &polled;
        let released = transact(
            self.context,
            self.feed,
            "its deferred edits were committed",
            |snapshot| async move {
                let inquiry = Inquiry::new(snapshot, Observation::default(), &[]);
                let Some(facts) = answered(self.context, self.feed, inquiry).await? else {
                    return Ok(Decision::Moved);
                };
                let decided = Decided::released(facts.basis, poll, self.answered_at);
                let mut polled = before.clone();
                polled.state.document.deferred_until = decided.deferred_until();
                Ok(Settled::of(decided, polled))
            },
        );
        match released.await {
            Ok(Some(settled)) => self.settled(settled),
            Ok(None) => polled,
            Err(failure) => {
                let name = &self.feed.name;
                error!(feed.name = %name, "Deferred edits of `{name}` could not be committed: {failure}");
                polled
            }
        }
    }

    /// Tells of a commit, and completes the result of the poll with it.
    pub(super) fn settled(&self, (receipt, settled): (Receipt, Settled)) -> Polled {
        self.context.announce(self.feed, &receipt, self.started);
        for event in settled.events {
            tell(self.context, self.feed, event);
        }
        let again_at = match &receipt.feed.completeness.last_walk {
            Some(walked) if settled.ends_walk => self.feed.walks_again_at(walked),
            _ => None,
        };
        let end = settled.polled.end.clone().with(settled.counts);
        Polled {
            end,
            saving: PollSaving::Committed,
            again_at,
            check_at: receipt.feed.window.next_check_at,
            ..settled.polled
        }
    }

    /// Decides on a document; `None` when the feed moved on between two looks at it.
    pub(super) async fn decide(
        &self,
        snapshot: DecisionBasis,
        sliced: &Arc<Sliced>,
        import: &Import,
    ) -> Result<Option<Decided>, Failure> {
        let deletions = self.feed.deletions;
        if sliced.says_nothing() && !snapshot.known.window.entries.is_empty() {
            return Ok(Some(Decided::emptied(
                snapshot,
                sliced,
                &deletions,
                self.answered_at,
            )));
        }
        let (document, pages) = (Arc::clone(sliced), Arc::clone(&import.pages));
        let now = self.answered_at;
        let inquiry = self
            .context
            .compute(move || {
                let (last, profile) = (&snapshot.known.window, document.profile.clone());
                let mut live = observe(last, &document.window, profile, document.coverage);
                if document.only_hints_deletions {
                    live.deletion_hints = std::mem::take(&mut live.deletions);
                }
                live.previous = document.previous;
                live.dates = document.dates.at(now);
                Inquiry::new(snapshot, live, &pages)
            })
            .await?;
        let Some(facts) = answered(self.context, self.feed, inquiry).await? else {
            return Ok(None);
        };
        let (sliced, said) = (Arc::clone(sliced), import.said.clone());
        self.context
            .compute(move || {
                let Facts { basis, live, older } = facts;
                let policy = deletions.policy(false);
                let older = older.decide(&basis, sliced.profile.clone(), &policy, now);
                let decided = Decided::new(basis, &live, &sliced, &deletions, now);
                Some(decided.with_older(older).saying(said))
            })
            .await
    }
}
