//! The life of one subscription, in one task that alone writes its row: verified, pushed to one at a time, renewed,
//! ended. Not the requests that start it, nor what a push or a question looks like.

use super::{
    Shared,
    command::SubscriptionCommand,
    deliver::{self, Moved, Outcome, Push},
    lease, retry,
    roster::{Key, Standing, Ticket},
    verify::{self, Answered, Question, Verdict},
};
use crate::{
    catalog::CatalogSnapshot,
    feed::{record::Head, stamp::Stamp, view::View},
    render::Representation,
    store::{
        StoreError, Subscription,
        subscriptions::{Acknowledged, Attempts, Intent, NewSubscription, Pending, Progress, Start},
    },
};
use futures_util::future::{BoxFuture, FutureExt as _};
use std::{future, sync::Arc, time::Duration};
use tokio::sync::{mpsc, oneshot, watch};
use tracing::{debug, info, warn};

#[cfg(test)]
mod tests;

/// A subscription at work.
pub(super) struct SubscriptionTask {
    shared: Arc<Shared>,
    place: TaskPlace,
    sub: Subscription,
    progress: Progress,
    commands: mpsc::Receiver<SubscriptionCommand>,
    changes: Option<watch::Receiver<Head>>,
    catalog: Option<watch::Receiver<Arc<CatalogSnapshot>>>,
    question: Option<BoxFuture<'static, Answered>>,
    awaiting: Option<oneshot::Sender<Verdict>>,
    push: Option<BoxFuture<'static, Outcome>>,
    /// Nothing to push until the feed moves.
    caught_up: bool,
    items_max: usize,
    /// Time of the next try to save what is in memory and not in the store yet.
    unsaved: Option<Stamp>,
}

/// The next thing to do. Decided from the row and the time alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step {
    /// Write the row again.
    Save,
    /// The lease is over.
    Expire,
    /// The pending request was never answered.
    GiveUp,
    /// Verify.
    Ask,
    /// Ask a legacy subscriber whether to go on.
    Refresh,
    /// Deliver.
    Push,
    /// The subscription has ended; its task stops.
    End,
    /// Wait, at the longest until then.
    Wait(Stamp),
}

/// Reasons not to take a step yet.
#[derive(Clone, Copy, Debug, Default)]
struct UnderWay {
    asking: bool,
    pushing: bool,
    caught_up: bool,
}

/// The longest sleep, seconds: a clock that is set is noticed at the latest then.
const SLEEP_MAX_SECS: u64 = 600;
/// Wait after troubles of our own, seconds.
const OURS_SECS: u64 = 5;

impl SubscriptionTask {
    /// The task of a stored subscription.
    pub(super) fn new(
        place: TaskPlace,
        sub: Subscription,
        mut progress: Progress,
        commands: mpsc::Receiver<SubscriptionCommand>,
    ) -> Self {
        if progress.attempts.failed == 0 {
            // An acknowledgement clears the count only; what belongs to an older failure is over too.
            progress.attempts = Attempts::default();
        }
        let shared = place.shared.clone();
        let items_max = shared.config.push_items_max.max(1);
        let catalog = Some(shared.catalog.watch());
        Self {
            shared,
            place,
            sub,
            progress,
            commands,
            changes: None,
            catalog,
            question: None,
            awaiting: None,
            push: None,
            caught_up: false,
            items_max,
            unsaved: None,
        }
    }

    /// Lives until the subscription ends or the hub stops.
    pub(super) async fn run(mut self) {
        let stop = self.shared.stop.clone();
        self.live().await;
        if stop.is_cancelled() {
            self.finish().await;
        }
    }

    async fn live(&mut self) {
        let stop = self.shared.stop.clone();
        loop {
            self.note();
            let now = self.shared.now();
            match next(&self.sub, &self.progress, self.under_way(), self.unsaved, now) {
                Step::Save => self.save().await,
                Step::Expire => self.expire().await,
                Step::GiveUp => self.refused("it did not answer in time").await,
                Step::Ask => self.ask(),
                Step::Refresh => self.refresh(now),
                Step::Push => self.start_push(),
                Step::End => return,
                Step::Wait(until) => {
                    let longest = now.plus_secs(SLEEP_MAX_SECS);
                    let left_us = until.min(longest).micros().saturating_sub(now.micros());
                    tokio::select! {
                        biased;
                        () = stop.cancelled() => return,
                        command = self.commands.recv() => if let Some(command) = command { self.accept(command).await },
                        answered = or_never(&mut self.question) => self.answered(answered).await,
                        outcome = or_never(&mut self.push) => self.pushed(outcome).await,
                        () = changed(&mut self.changes), if self.caught_up => self.caught_up = false,
                        // A feed that is served again may have waited for its pushes.
                        () = changed(&mut self.catalog), if self.caught_up => self.caught_up = false,
                        // A feed that was never announced wakes nobody, so look whether it is there by now.
                        () = tokio::time::sleep(Duration::from_micros(left_us)) => {
                            self.caught_up &= self.changes.is_some();
                        }
                    }
                }
            }
        }
    }

    /// Lets the push under way come to its end, so that what was taken is not sent again after a restart. How long
    /// that may take is bounded by the client, and by whoever stops us.
    async fn finish(&mut self) {
        if self.push.is_some() {
            let outcome = or_never(&mut self.push).await;
            self.pushed(outcome).await;
        }
    }

    fn under_way(&self) -> UnderWay {
        UnderWay { asking: self.question.is_some(), pushing: self.push.is_some(), caught_up: self.caught_up }
    }

    fn note(&self) {
        let standing = match (&self.sub.active, self.progress.attempts.failed) {
            (None, _) => Standing::Unverified,
            (Some(_), 0) => Standing::Well,
            (Some(_), _) => Standing::Failing,
        };
        self.place.note(standing);
    }

    /// Takes a command. It is acknowledged once it is kept; the newest one counts.
    async fn accept(&mut self, command: SubscriptionCommand) {
        let before = self.sub.pending.replace(command.pending);
        match self.shared.store.change_subscription(self.sub.clone(), None).await {
            Ok(rev) => {
                self.sub.rev = rev;
                self.question = None;
                self.awaiting = command.verdict;
                // Nobody there to hear it means that the consumer hung up; the request stands all the same.
                let _ = command.kept.send(Ok(()));
            }
            Err(error) => {
                self.sub.pending = before;
                let _ = command.kept.send(Err(error));
            }
        }
    }

    /// Starts a verification.
    fn ask(&mut self) {
        let Some(pending) = &self.sub.pending else { return };
        let (mode, terms, verify_token, dialect) = match &pending.intent {
            Intent::Subscribe(terms) => ("subscribe", Some(terms), &terms.verify_token, terms.dialect),
            Intent::Refresh => {
                let Some(terms) = &self.sub.active else { return };
                ("subscribe", Some(terms), &terms.verify_token, terms.dialect)
            }
            Intent::Unsubscribe { verify_token, dialect } => ("unsubscribe", None, verify_token, *dialect),
        };
        let question = Question {
            callback: self.sub.callback.clone(),
            mode,
            topic: pending.topic_as_sent.clone(),
            lease_secs: terms.map(|terms| terms.lease_secs),
            verify_token: verify_token.clone(),
            cursor: terms.and_then(|_| start(&self.progress, &pending.start)),
            dialect,
            awaited: self.awaiting.is_some(),
        };
        self.question = Some(verify::ask(self.shared.clone(), question).boxed());
    }

    /// Puts our own question to a legacy subscriber whose lease ends (P03-6). It lives in memory: after a restart it
    /// is due again.
    fn refresh(&mut self, now: Stamp) {
        self.sub.pending = Some(Pending {
            intent: Intent::Refresh,
            topic_as_sent: self.sub.topic_as_sent.clone(),
            attempts: 0,
            next_try: now,
            give_up_at: self.sub.lease_until,
            start: Start::Head(None),
        });
    }

    async fn answered(&mut self, Answered { verdict, sent_at }: Answered) {
        self.shared.metrics.verification(verdict.word());
        let awaiting = self.awaiting.take();
        match &verdict {
            Verdict::Confirmed => self.confirmed(sent_at).await,
            Verdict::Refused(why) => self.refused(why).await,
            Verdict::Later { why, retry_after } => self.postpone(why, *retry_after).await,
            Verdict::Busy => self.postpone("there was no room to ask", None).await,
        }
        // Told only now: what was confirmed is kept by then.
        if let Some(awaiting) = awaiting {
            let _ = awaiting.send(verdict);
        }
    }

    /// The callback wants it: now, and not before, new terms replace old ones (HUB-6).
    async fn confirmed(&mut self, sent_at: Stamp) {
        let Some(pending) = self.sub.pending.take() else { return };
        let host = super::host_of(&self.sub.callback);
        match pending.intent {
            Intent::Unsubscribe { .. } => {
                info!(callback.host = %host, "`{}` has unsubscribed at {host}", self.sub.topic);
                return self.end().await;
            }
            Intent::Refresh => {
                let lease_secs = self.sub.active.as_ref().map_or(0, |terms| terms.lease_secs);
                self.sub.lease_until = sent_at.plus_secs(lease_secs);
            }
            Intent::Subscribe(terms) => {
                let acked = start(&self.progress, &pending.start);
                if acked != self.progress.acked {
                    // What is under way follows on a position that no longer counts.
                    self.push = None;
                }
                info!(
                    callback.host = %host, lease_secs = terms.lease_secs,
                    "`{}` is pushed to {host} for {} s", self.sub.topic, terms.lease_secs
                );
                self.sub.lease_until = sent_at.plus_secs(terms.lease_secs);
                self.sub.topic_as_sent = pending.topic_as_sent;
                self.sub.active = Some(terms);
                // Whoever renews is there: an old back-off would only keep the backlog from it.
                self.progress = Progress { acked, attempts: Attempts::default() };
                self.caught_up = false;
            }
        }
        self.save().await;
    }

    /// The callback does not want it. What was active before goes on (HUB-6), unless the question was our own.
    async fn refused(&mut self, why: &str) {
        let host = super::host_of(&self.sub.callback);
        debug!(callback.host = %host, "A request for `{}` was not confirmed by {host}: {why}", self.sub.topic);
        let pending = self.sub.pending.take();
        self.question = None;
        if self.sub.active.is_none() || pending.is_some_and(|pending| pending.intent == Intent::Refresh) {
            return self.end().await;
        }
        self.save().await;
    }

    async fn postpone(&mut self, why: &str, retry_after: Option<Duration>) {
        let now = self.shared.now();
        let Some(pending) = &mut self.sub.pending else { return };
        pending.attempts = pending.attempts.saturating_add(1);
        pending.next_try = retry::verify_at(now, pending.attempts, retry_after);
        if pending.next_try > pending.give_up_at && pending.intent != Intent::Refresh {
            return self.refused(why).await;
        }
        self.save().await;
    }

    fn start_push(&mut self) {
        let Some(terms) = &self.sub.active else { return };
        let Some(representation) = Representation::named(&self.sub.representation) else {
            // Stored by a version that had it; the subscription ends with its lease.
            warn!(
                "`{}` is not pushed: there is no representation `{}`",
                self.sub.topic, self.sub.representation
            );
            self.caught_up = true;
            return;
        };
        if self.changes.is_none() {
            self.changes = self.shared.notify.watch(self.sub.feed());
        }
        if let Some(changes) = &mut self.changes {
            // Before the read, so that no change falls between the two.
            changes.borrow_and_update();
        }
        let push = Push {
            view: self.sub.view,
            representation,
            acked: self.progress.acked.clone(),
            callback: self.sub.callback.clone(),
            secret: terms.secret.clone(),
            algo: terms.algo,
            items_max: self.items_max,
        };
        self.push = Some(deliver::deliver(self.shared.clone(), push).boxed());
    }

    async fn pushed(&mut self, outcome: Outcome) {
        match outcome {
            Outcome::Nothing => self.caught_up = true,
            Outcome::Stopped => {}
            Outcome::Settled(cursor) => {
                self.progress.acked = Some(cursor);
                self.save().await;
            }
            Outcome::Moved(moved) => self.moved(moved).await,
            Outcome::Gone => self.gone().await,
            Outcome::Failed { why, retry_after, too_large } => self.failed(why, retry_after, too_large).await,
            Outcome::Ours(why) => {
                warn!("A push of `{}` could not be made: {why}", self.sub.topic);
                self.progress.attempts.next_try = self.shared.now().plus_secs(OURS_SECS);
            }
        }
    }

    /// Moves the position in the store, then here. A crash between the push and this sends the push once more.
    async fn moved(&mut self, moved: Moved) {
        let acknowledged = Acknowledged { subscription: self.sub.no, from: moved.from, to: moved.to.clone() };
        match self.shared.store.acknowledge(vec![acknowledged]).await.map(|moved| moved == [true]) {
            Ok(true) => {
                self.progress = Progress { acked: Some(moved.to), attempts: Attempts::default() };
                self.caught_up = !moved.more;
                self.items_max = self.shared.config.push_items_max.max(1);
            }
            Ok(false) | Err(StoreError::OutcomeUnknown(_)) => self.reload().await,
            Err(error) => {
                warn!("The position of a subscription to `{}` could not be saved: {error}", self.sub.topic);
                self.progress.attempts.next_try = self.shared.now().plus_secs(OURS_SECS);
            }
        }
    }

    /// Somebody else has written the row, which only an operator does.
    async fn reload(&mut self) {
        match self.shared.store.subscription(self.sub.no).await {
            Ok(Some((sub, progress))) => (self.sub, self.progress) = (sub, progress),
            Ok(None) => (self.sub.active, self.sub.pending) = (None, None),
            Err(error) => {
                warn!("A subscription to `{}` could not be read back: {error}", self.sub.topic);
                self.progress.attempts.next_try = self.shared.now().plus_secs(OURS_SECS);
            }
        }
    }

    /// The subscription stays, whatever fails, until its lease ends (HUB-22).
    async fn failed(&mut self, why: String, retry_after: Option<Duration>, too_large: bool) {
        if too_large {
            // Fewer items are all that can help a subscriber with a small limit.
            self.items_max = (self.items_max / 2).max(1);
        }
        let host = super::host_of(&self.sub.callback);
        debug!(callback.host = %host, "A push of `{}` was not taken by {host}: {why}", self.sub.topic);
        let failed = self.progress.attempts.failed.saturating_add(1);
        let next_try = retry::delivery_at(self.shared.now(), failed, retry_after);
        self.progress.attempts = Attempts { failed, next_try, failure: Some(why) };
        let attempts = vec![(self.sub.no, self.progress.attempts.clone())];
        if let Err(error) = self.shared.store.save_attempts(attempts).await {
            self.keep_for_later(&error);
        }
    }

    async fn gone(&mut self) {
        let host = super::host_of(&self.sub.callback);
        info!(callback.host = %host, "`{}` is gone at {host}: it answered 410", self.sub.topic);
        // What is subscribed anew starts anew.
        self.progress.acked = None;
        self.retire().await;
    }

    async fn expire(&mut self) {
        let host = super::host_of(&self.sub.callback);
        info!(callback.host = %host, "The lease of `{}` at {host} is over", self.sub.topic);
        self.retire().await;
    }

    /// Ends the active subscription; a request for a new one that is being verified goes on.
    async fn retire(&mut self) {
        self.sub.active = None;
        self.push = None;
        match &self.sub.pending {
            Some(Pending { intent: Intent::Subscribe(_), .. }) => self.save().await,
            _ => self.end().await,
        }
    }

    /// Removes the row. The loop ends when nothing is active and nothing pending.
    async fn end(&mut self) {
        (self.sub.active, self.sub.pending, self.question, self.push) = (None, None, None, None);
        if let Err(error) = self.shared.store.end_subscription(self.sub.no).await {
            // Harmless: what is left ends with its lease after the next start.
            warn!("An ended subscription to `{}` could not be removed: {error}", self.sub.topic);
        }
    }

    async fn save(&mut self) {
        self.unsaved = None;
        let (sub, progress) = (self.sub.clone(), self.progress.clone());
        match self.shared.store.change_subscription(sub, Some(progress)).await {
            Ok(rev) => self.sub.rev = rev,
            Err(StoreError::UnknownSubscription(_) | StoreError::Conflict { .. }) => self.reload().await,
            Err(error) => self.keep_for_later(&error),
        }
    }

    /// Notes that what is in memory is still to be saved.
    fn keep_for_later(&mut self, error: &StoreError) {
        warn!("A subscription to `{}` could not be saved: {error}", self.sub.topic);
        self.unsaved = Some(self.shared.now().plus_secs(OURS_SECS));
    }
}

/// The place of a task on the roster.
pub(super) struct TaskPlace {
    pub(super) shared: Arc<Shared>,
    pub(super) key: Key,
    pub(super) ticket: Ticket,
}

impl TaskPlace {
    fn note(&self, standing: Standing) {
        self.shared.roster.note(&self.key, self.ticket, standing);
    }
}

impl Drop for TaskPlace {
    /// However the task ends: nobody is to write to a mailbox that nobody reads.
    fn drop(&mut self) {
        self.shared.roster.remove(&self.key, self.ticket);
    }
}

/// Makes a subscription with the first command for it, and runs its task.
pub(super) async fn begin(
    place: TaskPlace,
    view: View,
    representation: String,
    mut commands: mpsc::Receiver<SubscriptionCommand>,
) {
    let stop = place.shared.stop.clone();
    let first = tokio::select! {
        biased;
        () = stop.cancelled() => None,
        command = commands.recv() => command,
    };
    let Some(command) = first else { return };
    match subscribe(&place, view, representation, &command.pending).await {
        Ok((sub, progress)) => {
            let mut task = SubscriptionTask::new(place, sub, progress, commands);
            task.awaiting = command.verdict;
            // Nobody there to hear it means that the consumer hung up; the request stands all the same.
            let _ = command.kept.send(Ok(()));
            task.run().await;
        }
        Err(error) => drop(command.kept.send(Err(error))),
    }
}

/// Stores a new subscription. A row that is there already is left of one whose end could not be stored: nothing of it
/// counts any more.
async fn subscribe(
    place: &TaskPlace,
    view: View,
    representation: String,
    pending: &Pending,
) -> Result<(Subscription, Progress), StoreError> {
    let (store, key) = (&place.shared.store, &place.key);
    let (topic, callback, pending) = (key.topic.clone(), key.callback.clone(), pending.clone());
    let new = NewSubscription {
        view,
        representation: representation.clone(),
        topic,
        callback,
        pending: pending.clone(),
    };
    match store.subscribe(new).await {
        Ok(sub) => Ok((sub, Progress::default())),
        Err(StoreError::Subscribed(no)) => {
            let (left, _) = store.subscription(no).await?.ok_or(StoreError::UnknownSubscription(no))?;
            let topic_as_sent = pending.topic_as_sent.clone();
            let (active, pending) = (None, Some(pending));
            let mut sub = Subscription { view, representation, topic_as_sent, active, pending, ..left };
            sub.rev = store.change_subscription(sub.clone(), Some(Progress::default())).await?;
            Ok((sub, Progress::default()))
        }
        Err(error) => Err(error),
    }
}

/// The position that pushes will follow on once a request is confirmed. A position that is there is kept: a renewal
/// changes terms, not history (DESIGN section 5).
fn start(progress: &Progress, start: &Start) -> Option<String> {
    match start {
        Start::Given(cursor) => Some(cursor.clone()),
        Start::Head(head) => progress.acked.clone().or_else(|| head.clone()),
    }
}

/// Decides what is due.
fn next(
    sub: &Subscription,
    progress: &Progress,
    under_way: UnderWay,
    unsaved: Option<Stamp>,
    now: Stamp,
) -> Step {
    if sub.active.is_none() && sub.pending.is_none() {
        return Step::End;
    }
    let mut wake = Stamp::MAX;
    if let Some(at) = unsaved {
        if at <= now {
            return Step::Save;
        }
        wake = wake.min(at);
    }
    if sub.active.is_some() {
        if sub.lease_until <= now {
            return Step::Expire;
        }
        wake = wake.min(sub.lease_until);
        if !under_way.pushing && !under_way.caught_up {
            if progress.attempts.next_try <= now {
                return Step::Push;
            }
            wake = wake.min(progress.attempts.next_try);
        }
    }
    match &sub.pending {
        Some(pending) if !under_way.asking => {
            if pending.attempts > 0 && pending.give_up_at <= now && pending.intent != Intent::Refresh {
                return Step::GiveUp;
            }
            if pending.next_try <= now {
                return Step::Ask;
            }
            wake = wake.min(pending.next_try);
        }
        Some(_) => {}
        None => {
            if let Some(at) = lease::refresh_at(sub) {
                if at <= now {
                    return Step::Refresh;
                }
                wake = wake.min(at);
            }
        }
    }
    Step::Wait(wake)
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

/// The next change; never, where nothing is watched, such as a feed that is not announced.
async fn changed<T>(changes: &mut Option<watch::Receiver<T>>) {
    match changes {
        Some(receiver) => {
            if receiver.changed().await.is_err() {
                *changes = None;
            }
        }
        None => future::pending().await,
    }
}
