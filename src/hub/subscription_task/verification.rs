//! Verifications: the question that is put, and what its answer does to the subscription; not when
//! one is due.

use super::{SubscriptionTask, row::SubscriptionRow};
use crate::{
    feed::stamp::Stamp,
    hub::{
        admission::ClientNet,
        deliver::question::{Question, Verdict},
        index::Standing,
        push::RESOURCE,
        renewal::{self, Confirmation, Term},
        retry_schedule,
        verify::{self, Answered},
    },
    mistakes::{Mistake, is_made},
    store::subscriptions::{Attempts, Intent, Lease, LeaseTerms, Pending, Progress, Start},
};
use futures_util::future::{BoxFuture, FutureExt as _};
use std::time::Duration;
use tokio::sync::oneshot;
use tracing::{debug, info};

#[cfg(test)]
mod tests;

/// The question under way, and whoever waits for its answer.
#[derive(Default)]
pub(super) struct Verification {
    pub(super) question: Option<BoxFuture<'static, Answered>>,
    pub(super) awaiting: Option<oneshot::Sender<Verdict>>,
}

impl SubscriptionTask {
    /// Starts a verification.
    pub(super) fn ask(&mut self) {
        let Some(mut question) = question(&self.row, self.place.client) else {
            return;
        };
        question.awaited = self.verification.awaiting.is_some();
        let now = self.place.shared.now();
        let until = self
            .row
            .sub
            .pending
            .as_ref()
            .map_or(now, |pending| pending.give_up_at);
        question.wait_max = Duration::from_micros(until.micros().saturating_sub(now.micros()));
        let (shared, entry) = (self.place.shared.clone(), self.place.entry);
        let held = move || shared.index.note(entry, Standing::Unanswered);
        self.verification.question =
            Some(verify::ask(self.place.shared.clone(), question, held).boxed());
    }

    /// Puts our own question to a legacy subscriber whose lease ends (P03-6). It lives in memory:
    /// after a restart it is due again.
    pub(super) fn refresh(&mut self, now: Stamp) {
        let Some(lease) = &self.row.sub.lease else {
            return;
        };
        self.row.sub.pending = Some(Pending {
            intent: Intent::Refresh,
            attempts: 0,
            next_try: now,
            give_up_at: lease.until,
            start: Start::Head(None),
            principal: self.row.sub.principal,
            scanned: None,
        });
    }

    pub(super) async fn answered(&mut self, Answered { verdict, sent_at }: Answered) {
        self.place.shared.metrics.verification(verdict.word());
        let awaiting = self.verification.awaiting.take();
        match &verdict {
            Verdict::Confirmed(confirmation) => self.confirmed(sent_at, confirmation).await,
            Verdict::Refused(why) => self.refused(why).await,
            Verdict::Later { why, retry_after } => self.postpone(why, *retry_after).await,
            Verdict::Busy => self.postpone("there was no room to ask", None).await,
        }
        // Told only now: what was confirmed is kept by then.
        if let Some(awaiting) = awaiting {
            let _ = awaiting.send(verdict);
        }
    }

    /// The callback wants it: now, and not before, a new lease and the confirmed terms replace the
    /// old ones (HUB-6).
    async fn confirmed(&mut self, sent_at: Stamp, confirmation: &Confirmation) {
        let Some(mut pending) = self.row.sub.pending.take() else {
            return;
        };
        let named = confirmation.methods;
        let host = self.row.host();
        match pending.intent {
            Intent::Unsubscribe { .. } => {
                info!(callback.host = %host, "`{}` has unsubscribed at {host}", self.row.shown_topic());
                self.pushing.stop();
                return self.row.end().await;
            }
            Intent::Refresh => {
                self.row.sub.target.note_named(named);
                if let Some(lease) = &mut self.row.sub.lease {
                    lease.until = sent_at.plus_secs(lease.terms.secs);
                }
            }
            Intent::Subscribe {
                mut target,
                mut lease,
            } => {
                if let Some(active) = &self.row.sub.lease {
                    target = renewal::renewed(&self.row.sub.target, target, confirmation);
                    lease = renewed_lease(active.terms, lease);
                    if !confirmation.terms.contains(&Term::Cursor) {
                        pending.start = pending.start.unless_given();
                    }
                    pending.principal = pending.principal.or(self.row.sub.principal);
                }
                target.note_named(named);
                let acked = start(&self.row.progress, &pending.start);
                let is_kept = acked == self.row.progress.acked;
                let scanned = if is_kept {
                    self.row.progress.scanned.take()
                } else {
                    pending.scanned
                };
                if let Start::Given(_) = pending.start {
                    // It may have lost what it has taken.
                    self.pushing.forget_taken();
                }
                if is_kept {
                    self.pushing.look_anew();
                } else {
                    // What is under way follows on a position that no longer counts.
                    self.pushing.stop();
                }
                info!(
                    callback.host = %host, lease_secs = lease.secs,
                    "`{}` is pushed to {host} for {} s", self.row.shown_topic(), lease.secs
                );
                self.row.sub.principal = pending.principal;
                self.row.sub.target = target;
                self.row.sub.lease = Some(Lease {
                    until: sent_at.plus_secs(lease.secs),
                    terms: lease,
                });
                // Whoever renews is there: an old back-off would only keep the backlog from it.
                let on_behalf_of = self.row.progress.on_behalf_of;
                let channel_t = self.row.progress.channel_t;
                self.row.progress = Progress {
                    acked,
                    attempts: Attempts::default(),
                    on_behalf_of,
                    scanned,
                    channel_t: channel_t.or_else(|| self.channel_now()),
                };
                self.place.note_failing(None);
            }
        }
        self.row.save().await;
    }

    /// The callback does not want it. What was active before goes on (HUB-6), unless the question
    /// was our own.
    pub(super) async fn refused(&mut self, why: &str) {
        let host = self.row.host();
        let topic = self.row.shown_topic();
        debug!(callback.host = %host, "A request for `{topic}` was not confirmed by {host}: {why}");
        let pending = self.row.sub.pending.take();
        self.verification.question = None;
        let is_ours = pending.is_some_and(|pending| pending.intent == Intent::Refresh);
        if self.row.sub.lease.is_none() || is_ours {
            self.pushing.stop();
            return self.row.end().await;
        }
        self.row.save().await;
    }

    async fn postpone(&mut self, why: &str, retry_after: Option<Duration>) {
        let shared = &self.place.shared;
        let (now, chance) = (shared.now(), (shared.jitter)());
        let (host, topic) = (self.row.host(), self.row.shown_topic());
        debug!(callback.host = %host, "A request for `{topic}` is asked about again at {host}: {why}");
        let Some(pending) = &mut self.row.sub.pending else {
            return;
        };
        pending.attempts = pending.attempts.saturating_add(1);
        pending.next_try = retry_schedule::verify_at(now, pending.attempts, retry_after, chance);
        self.row.save().await;
    }
}

/// The question that a pending request leads to.
fn question(row: &SubscriptionRow, client: ClientNet) -> Option<Question> {
    let pending = row.sub.pending.as_ref()?;
    let active = row.sub.lease.map(|lease| lease.terms);
    let (mode, lease, target) = match &pending.intent {
        Intent::Subscribe { lease, target } => {
            let target = match active {
                Some(_) => {
                    let all = Confirmation::of_everything();
                    renewal::renewed(&row.sub.target, target.clone(), &all)
                }
                None => target.clone(),
            };
            ("subscribe", Some(*lease), target)
        }
        Intent::Refresh => ("subscribe", Some(active?), row.sub.target.clone()),
        Intent::Unsubscribe { target } => ("unsubscribe", None, target.clone()),
    };
    let form = &row.sub.representation;
    Some(Question {
        form: (form != RESOURCE).then(|| form.clone()),
        mode,
        topic: row.sub.topic.clone(),
        lease_secs: lease.map(|lease| lease.secs),
        cursor: lease.and_then(|_| start(&row.progress, &pending.start)),
        target,
        awaited: false,
        is_known: row.sub.lease.is_some(),
        client,
        wait_max: Duration::ZERO,
    })
}

/// The terms of the lease after a renewal. A subscriber that is asked again by itself goes on to be:
/// it may know nothing of leases that end.
fn renewed_lease(active: LeaseTerms, asked: LeaseTerms) -> LeaseTerms {
    LeaseTerms {
        auto_refresh: active.auto_refresh || asked.auto_refresh,
        ..asked
    }
}

/// The position that pushes will follow on once a request is confirmed. A position that is there is
/// kept: a renewal changes terms, not history (DESIGN section 5).
fn start(progress: &Progress, start: &Start) -> Option<String> {
    match start {
        Start::Given(cursor) => Some(cursor.clone()),
        Start::Head(Some(head)) if is_made(Mistake::RenewalMovesOn) => Some(head.clone()),
        Start::Head(head) => progress.acked.clone().or_else(|| head.clone()),
    }
}
