//! The task of one subscription, which alone writes its row: it takes commands, and does what is
//! next, until it has nothing to do but wait. Then it ends, and the subscription rests. What is next
//! is decided in [`next_step`](super::next_step); how it is done, below.

use super::{
    Shared,
    admission::ClientNet,
    command::{SubscriptionCommand, TaskCommand},
    index::{
        EntryNo, FailingSubscriber, GroupKey, GroupOffer, NewTask, NoRest, Rest, Rested, Standing,
    },
    next_step::{self, NextStep, Offer, PushStage, UnderWay},
    remembered::Remembered,
    set_back,
    verify::{self, Return},
};
use crate::{
    auth::authenticator::AccountsInForce,
    catalog::{CatalogSnapshot, Destination},
    clock::{Jump, JumpWatch, LeaseWatch},
    feed::{stamp::Stamp, view::View},
    store::{
        Subscription,
        subscriptions::{Attempts, Lease, Progress},
    },
};
use futures_util::future::BoxFuture;
use pushing::Pushing;
use row::SubscriptionRow;
use std::{future, sync::Arc, time::Duration};
use tokio::{
    sync::{mpsc, oneshot, watch},
    time::Instant,
};
use tokio_util::sync::CancellationToken;
use tracing::{debug, info};
use verification::Verification;
use warning::LeaseWarning;

mod row;

mod verification;

mod pushing;

mod warning;

#[cfg(test)]
mod tests;

/// A subscription at work.
pub(super) struct SubscriptionTask {
    place: TaskSlot,
    row: SubscriptionRow,
    commands: mpsc::Receiver<TaskCommand>,
    catalog: watch::Receiver<Arc<CatalogSnapshot>>,
    accounts: watch::Receiver<AccountsInForce>,
    verification: Verification,
    pushing: Pushing,
    warning: LeaseWarning,
    lease: LeaseWatch,
    clock: JumpWatch,
}

/// The longest sleep, seconds: a clock that is set is noticed at the latest then.
const SLEEP_MAX_SECS: u64 = 600;
/// Wait after troubles of our own, seconds.
const OURS_SECS: u64 = 5;

impl SubscriptionTask {
    /// The task of a stored subscription, which was at rest.
    pub(super) fn new(
        place: TaskSlot,
        mut sub: Subscription,
        mut progress: Progress,
        commands: mpsc::Receiver<TaskCommand>,
        rested: Rested,
    ) -> Self {
        if progress.attempts.failed == 0 {
            // An acknowledgement clears the count only; what belongs to an older failure is over
            // too.
            progress.attempts = Attempts::default();
        }
        let shared = &place.shared;
        let now = shared.now();
        // What changes is saved with whatever is next: after another start it is the same.
        if rested.set_back.is_zero() {
            set_back::clamp(&mut sub, &mut progress, now);
        } else {
            set_back::bring_forward(&mut sub, &mut progress, rested.set_back, now);
        }
        // Stored while the word of every callback counted.
        let is_believed =
            progress.on_behalf_of.is_none() || shared.config().may_speak_for_many(sub.target.url());
        progress.on_behalf_of = progress.on_behalf_of.filter(|_| is_believed);
        let mut row = SubscriptionRow::new(shared.clone(), sub, progress);
        row.unsaved = (!is_believed || !rested.set_back.is_zero()).then_some(now);
        let mut remembered = rested.remembered;
        if !rested.set_back.is_zero() {
            // A warning at the wrong time was none.
            remembered.warned = None;
        }
        row.progress.channel_t = row.progress.channel_t.or(remembered.channel_t);
        let mut pushing = Pushing::new(&shared.config(), &row.sub.target, &remembered);
        pushing.resume(rested.behind, rested.read, rested.seen);
        let mut task = Self {
            row,
            clock: JumpWatch::new(now.micros()),
            commands,
            catalog: shared.gate.catalog.watch(),
            accounts: shared.gate.auth.watch(),
            verification: Verification::default(),
            warning: LeaseWarning::after(remembered.warned),
            lease: remembered.lease,
            pushing,
            place,
        };
        // What was found is of no use where another feed is read by now.
        task.look_at_offer();
        task
    }

    /// Runs until the subscription rests or ends, or the hub stops.
    pub(super) async fn run(mut self) {
        let stop = self.place.shared.stop.clone();
        let attempts = self.row.progress.attempts.clone();
        if let Some(why) = attempts.failure.filter(|_| attempts.failed > 0) {
            // Stored before this start.
            self.note_failing(why);
        }
        let ended = self.work().await;
        if stop.is_cancelled() {
            Box::pin(self.finish_push()).await;
        } else {
            match ended {
                WorkEnd::Over => {}
                WorkEnd::Rests => self.place.is_kept = true,
                WorkEnd::Withdrawn => Box::pin(self.withdraw()).await,
                WorkEnd::GivesWay => Box::pin(self.give_way()).await,
            }
        }
    }

    /// Does what is next, until there is nothing more to do. All but the wait is in memory of its
    /// own while it lasts: thousands may wait at once for their places.
    async fn work(&mut self) -> WorkEnd {
        let (stop, leave) = (self.place.shared.stop.clone(), self.place.leave.clone());
        loop {
            let is_behind = matches!(
                self.pushing.stage(),
                PushStage::Behind | PushStage::UnderWay
            );
            let standing = standing(&self.row.sub, &self.row.progress);
            self.place.note(standing, is_behind);
            let times = self.place.shared.times();
            let now = times.now;
            if let Some(Jump::Back(by)) = self.clock.look(now.micros()) {
                set_back::bring_forward(&mut self.row.sub, &mut self.row.progress, by, now);
                // A warning at the wrong time was none.
                self.warning.forget();
                Box::pin(self.row.save()).await;
            }
            let under_way = self.under_way(now);
            let (sub, progress) = (&self.row.sub, &self.row.progress);
            let offer = self.offer();
            match next_step::next(sub, progress, offer.offer, under_way, times) {
                NextStep::Save => Box::pin(self.row.save()).await,
                NextStep::Expire => Box::pin(self.expire()).await,
                NextStep::GiveUp => Box::pin(self.refused("it did not answer in time")).await,
                NextStep::Ask => self.ask(),
                NextStep::Refresh => self.refresh(now),
                NextStep::Warn => self.warn(now),
                NextStep::Follow => self.follow(),
                NextStep::Push => Box::pin(self.push_next()).await,
                NextStep::Deny => Box::pin(self.deny()).await,
                NextStep::Withdraw => return WorkEnd::Withdrawn,
                NextStep::End => return WorkEnd::Over,
                NextStep::Wait(until) => {
                    match self.rest(offer, until) {
                        Ok(()) => return WorkEnd::Rests,
                        Err(NoRest::Stale) => {
                            self.look_at_offer();
                            self.pushing.look_anew_after_nothing();
                            tokio::task::yield_now().await;
                            continue;
                        }
                        Err(NoRest::Busy) => self.wait_at_work(),
                    }
                    let longest = now.plus_secs(SLEEP_MAX_SECS);
                    let left_us = until.min(longest).micros().saturating_sub(now.micros());
                    tokio::select! {
                        biased;
                        () = stop.cancelled() => return WorkEnd::Over,
                        () = leave.cancelled(), if self.row.sub.lease.is_none() => return WorkEnd::GivesWay,
                        Some(command) = self.commands.recv() => Box::pin(self.accept(command)).await,
                        answered = or_never(&mut self.verification.question) => Box::pin(self.answered(answered)).await,
                        outcome = or_never(&mut self.pushing.push) => Box::pin(self.pushed(outcome)).await,
                        found = or_never(&mut self.pushing.look) => self.pushing.found(found),
                        found = or_never(&mut self.pushing.wait) => self.pushing.found(found),
                        is_heard = or_never(&mut self.warning.under_way) => self.warned(is_heard),
                        Ok(()) = self.catalog.changed() => self.look_at_offer(),
                        Ok(()) = self.accounts.changed() => self.look_at_offer(),
                        () = tokio::time::sleep(Duration::from_micros(left_us)) => {}
                    }
                }
            }
        }
    }

    /// Notes for the operator that pushes fail.
    fn note_failing(&self, why: String) {
        let attempts = &self.row.progress.attempts;
        self.place.note_failing(Some(FailingSubscriber {
            host: self.row.host(),
            why,
            since: attempts.since.unwrap_or_else(|| self.place.shared.now()),
            failures: attempts.failed,
            next_try: attempts.next_try,
        }));
    }

    /// Ends the task for a rest, where nothing of it is under way or still to be stored.
    fn rest(&mut self, offer: GroupOffer, until: Stamp) -> Result<(), NoRest> {
        let Some((kind, again_at)) = self.pushing.rest_kind(&self.row.sub, offer.offer) else {
            return Err(NoRest::Busy);
        };
        let is_busy = self.verification.question.is_some()
            || self.verification.awaiting.is_some()
            || self.warning.under_way.is_some()
            || self.row.unsaved.is_some();
        if is_busy {
            return Err(NoRest::Busy);
        }
        let shared = self.place.shared.clone();
        let mut call_at = until;
        if let Some(again_at) = again_at {
            let left = again_at.saturating_duration_since(Instant::now());
            let left_us = u64::try_from(left.as_micros()).unwrap_or(u64::MAX);
            let again_at = shared.now().micros().saturating_add(left_us);
            call_at = call_at.min(Stamp::from_micros(again_at));
        }
        let rest = Rest {
            sub: self.row.sub.no,
            group: self.group(),
            offer,
            seen: self.pushing.seen_head(),
            kind,
            call_at,
            remembered: Remembered {
                warned: self.warning.tried(),
                lease: self.lease,
                ..self.pushing.remembered(&self.row.sub.target)
            },
        };
        let present = |group: &GroupKey| {
            let offer = shared.offer(group);
            let head = offer.read.and_then(|read| shared.readers.head(read).ok());
            (offer, head)
        };
        shared
            .index
            .rest(self.place.entry, &self.commands, rest, present)
    }

    /// The subscriptions to which the same is offered as to this one.
    fn group(&self) -> GroupKey {
        GroupKey {
            feed: self.row.sub.feed(),
            principal: Shared::principal_of(&self.row.sub),
        }
    }

    /// Its offer, as the catalog and the users in force have it.
    fn offer(&self) -> GroupOffer {
        self.place.shared.offer(&self.group())
    }

    /// Stops following a feed that is not served any more, or not read for the principal.
    fn look_at_offer(&mut self) {
        if self.offer().offer != Offer::Served {
            self.pushing.look_anew();
        }
        self.pushing
            .look_at(self.place.shared.still_read(&self.row.sub));
    }

    fn under_way(&mut self, now: Stamp) -> UnderWay {
        let lease = self.row.sub.lease.map(|lease| Lease {
            until: self.lease_end(lease, now),
            ..lease
        });
        UnderWay {
            is_asking: self.verification.question.is_some(),
            pushing: self.pushing.stage(),
            unsaved: self.row.unsaved,
            warn_at: lease.and_then(|lease| self.warn_at(lease)),
            lease_end: lease.map(|lease| lease.until),
        }
    }

    /// The end of the lease in force. The stored one may be further ahead than it can be.
    fn lease_end(&mut self, lease: Lease, now: Stamp) -> Stamp {
        let (until, secs) = (lease.until.micros(), lease.terms.secs);
        Stamp::from_micros(self.lease.end_us(until, secs, now.micros()))
    }

    async fn accept(&mut self, command: TaskCommand) {
        match command {
            TaskCommand::Change(change) => self.change(*change).await,
            TaskCommand::Retry(done) => {
                self.retry();
                let _ = done.send(());
            }
            TaskCommand::End { is_told, done } => self.end(is_told, done).await,
            TaskCommand::Retarget { target, done } => {
                // A try under way has the target before it; the next one has this.
                self.row.sub.target = *target;
                self.row.save().await;
                let _ = done.send(());
            }
        }
    }

    /// Makes what waits due now, and lets a request pass to its host.
    fn retry(&mut self) {
        let shared = &self.place.shared;
        let now = shared.now();
        self.row.progress.attempts.next_try = now;
        if let Some(pending) = &mut self.row.sub.pending {
            pending.next_try = now;
        }
        shared
            .places
            .let_pass(&Destination::of(self.row.sub.target.url()));
    }

    /// Ends for the operator, and tells the subscriber where that is wanted (W-10).
    async fn end(&mut self, is_told: bool, done: oneshot::Sender<()>) {
        let (host, topic) = (self.row.host(), self.row.shown_topic());
        info!(callback.host = %host, "`{topic}` at {host} is ended by the operator");
        let target = self.row.sub.target.clone();
        let is_told = is_told && self.row.sub.lease.is_some();
        self.verification.question = None;
        self.pushing.stop();
        self.row.end().await;
        let _ = done.send(());
        if is_told {
            let why = "the operator of the hub ended it";
            verify::deny(&self.place.shared, &target, why, Return::Open).await;
        }
    }

    /// Takes a request. It is acknowledged once it is kept; the newest one counts.
    async fn change(&mut self, command: SubscriptionCommand) {
        let kept = self.row.replace_pending(command.pending).await;
        if kept.is_ok() {
            self.verification = Verification {
                question: None,
                awaiting: command.verdict,
            };
        }
        // Nobody there to hear it means that the consumer hung up; the request stands all the same.
        let _ = command.kept.send(kept);
    }

    /// Ends for others who ask, as its callback did not confirm it.
    async fn give_way(&mut self) {
        let host = self.row.host();
        debug!(callback.host = %host, "A request for `{}` at {host} gives way to others", self.row.shown_topic());
        self.place.shared.metrics.verification("gave_way");
        self.row.end().await;
    }

    async fn expire(&mut self) {
        let host = self.row.host();
        info!(callback.host = %host, "The lease of `{}` at {host} is over", self.row.shown_topic());
        let target = self.row.sub.target.clone();
        self.retire().await;
        if target.wishes().warning_secs.is_some() {
            let why = "the lease is over";
            verify::deny(&self.place.shared, &target, why, Return::Open).await;
        }
    }

    /// Ends the active subscription; a request for a new one that is being verified goes on.
    async fn retire(&mut self) {
        self.pushing.stop();
        self.row.retire().await;
    }

    /// Ends because its principal may not read the feed any more, and tells the subscriber once
    /// (W-10, SF-131). A callback that never confirmed is told nothing.
    async fn deny(&mut self) {
        let (host, topic) = (self.row.host(), self.row.shown_topic());
        info!(callback.host = %host, "The subscription of {host} to `{topic}` ends: its user may not read the feed any more");
        let target = self.row.sub.target.clone();
        self.verification.question = None;
        if self.row.sub.lease.is_none() {
            return self.row.end().await;
        }
        self.retire().await;
        let why = "the subscriber may not read this feed any more";
        verify::deny(&self.place.shared, &target, why, Return::Closed).await;
    }

    /// Ends with the feed, whose row went with it, and tells the subscriber (W-10).
    async fn withdraw(self) {
        let Self { place, row, .. } = self;
        let shared = place.shared.clone();
        // Another feed may have the topic by now, and this subscriber come back to it.
        drop(place);
        let (host, topic) = (row.host(), row.shown_topic());
        info!(callback.host = %host, "`{topic}` at {host} ends with its feed, which was forgotten");
        let why = "the feed was removed";
        verify::deny(&shared, &row.sub.target, why, Return::Closed).await;
    }
}

/// The end of a task's work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum WorkEnd {
    /// There is nothing more to do.
    Over,
    /// There is nothing to do now.
    Rests,
    /// The feed was forgotten.
    Withdrawn,
    /// It gives way to others.
    GivesWay,
}

/// The standing of a subscription by its row.
pub(super) fn standing(sub: &Subscription, progress: &Progress) -> Standing {
    if sub.lease.is_some() {
        return match progress.attempts.failed {
            0 => Standing::Well,
            _ => Standing::Failing,
        };
    }
    match &sub.pending {
        Some(pending) if pending.attempts > 0 => Standing::Unanswered,
        _ => Standing::Unverified,
    }
}

/// The place of a task in the index.
pub(super) struct TaskSlot {
    pub(super) shared: Arc<Shared>,
    pub(super) entry: EntryNo,
    /// The client that asked for it first; after a restart nobody's.
    pub(super) client: ClientNet,
    /// Cancelled when it is to give way to others.
    pub(super) leave: CancellationToken,
    /// True where the entry stays when the task ends.
    is_kept: bool,
}

impl TaskSlot {
    pub(super) fn new(
        shared: &Arc<Shared>,
        entry: EntryNo,
        client: ClientNet,
        leave: CancellationToken,
    ) -> Self {
        Self {
            shared: shared.clone(),
            entry,
            client,
            leave,
            is_kept: false,
        }
    }

    /// The place of a new task.
    pub(super) fn of(shared: &Arc<Shared>, new: &NewTask) -> Self {
        Self::new(shared, new.entry, new.client, new.leave.clone())
    }

    fn note(&self, standing: Standing, is_behind: bool) {
        self.shared.index.note(self.entry, standing);
        self.shared.index.note_behind(self.entry, is_behind);
    }

    /// Notes for the operator that its callback has answered a delivery just now.
    fn note_answer(&self) {
        self.shared.index.note_answer(self.entry, self.shared.now());
    }

    /// Notes that pushes fail, or, with `None`, that they are taken.
    fn note_failing(&self, failing: Option<FailingSubscriber>) {
        self.shared.index.note_failing(self.entry, failing);
    }
}

impl Drop for TaskSlot {
    /// However the task ends: nobody is to write to a mailbox that nobody reads.
    fn drop(&mut self) {
        if !self.is_kept {
            self.shared.index.remove(self.entry);
        }
    }
}

/// The terms of a subscription that is to be made.
pub(super) struct NewTerms {
    pub(super) topic: String,
    pub(super) view: View,
    pub(super) representation: String,
}

/// Makes a subscription with the first command for it, and runs its task.
pub(super) async fn begin(place: TaskSlot, new: NewTerms, commands: mpsc::Receiver<TaskCommand>) {
    // What it takes to begin is given back before the task waits.
    let begun = Box::pin(first_command(place, new, commands)).await;
    if let Some(task) = begun {
        task.run().await;
    }
}

/// The task of a subscription that its first command has made.
async fn first_command(
    place: TaskSlot,
    new: NewTerms,
    mut commands: mpsc::Receiver<TaskCommand>,
) -> Option<SubscriptionTask> {
    let stop = place.shared.stop.clone();
    let SubscriptionCommand {
        pending,
        kept,
        verdict,
    } = loop {
        let first = tokio::select! {
            biased;
            () = stop.cancelled() => None,
            command = commands.recv() => command,
        };
        // There is nothing yet that the operator could mean.
        if let TaskCommand::Change(change) = first? {
            break *change;
        }
    };
    match row::made(&place, new, pending).await {
        Ok(sub) => {
            let (progress, rested) = (Progress::default(), Rested::default());
            let mut task = SubscriptionTask::new(place, sub, progress, commands, rested);
            task.verification.awaiting = verdict;
            // Nobody there to hear it means that the consumer hung up; the request stands all the
            // same.
            let _ = kept.send(Ok(()));
            Some(task)
        }
        Err(error) => {
            drop(kept.send(Err(error)));
            None
        }
    }
}

/// The end of what is under way, which then is no more; never, when nothing is.
async fn or_never<T>(slot: &mut Option<BoxFuture<'static, T>>) -> T {
    match slot {
        Some(under_way) => {
            let done = under_way.await;
            *slot = None;
            done
        }
        None => future::pending().await,
    }
}
