//! Calls up subscriptions at rest, and starts their tasks: when their time comes, when the feed that
//! they follow moves, and when what they are offered changes. The next step of each is
//! decided in [`next_step`](super::next_step).

use super::{
    Shared,
    command::TaskCommand,
    index::{CalledUp, GroupKey, GroupOffer},
    next_step::Offer,
    subscription_task::{SubscriptionTask, TaskSlot},
};
use crate::{
    clock::{Jump, JumpWatch, LOOK_AGAIN},
    feed::record::FeedNo,
    mistakes::{Mistake, is_made},
    notify::Moves,
    secret::logged_url,
    store::{StoreError, SubscriptionNo},
};
use std::{sync::Arc, time::Duration};
use tracing::{Instrument as _, info_span, warn};

/// Rows that are read at once.
const ROWS_AT_ONCE: usize = 256;
/// Subscriptions that are called up at once because their time has come.
const DUE_AT_ONCE: usize = 1024;
/// Wait after a row could not be read, seconds.
const AGAIN_SECS: u64 = 5;

impl Shared {
    /// Calls up subscriptions until the hub stops.
    pub(super) async fn dispatch(self: Arc<Self>, moves: Moves) {
        let mut catalog = self.gate.catalog.watch();
        let mut accounts = self.gate.auth.watch();
        let mut clock = JumpWatch::new(self.now().micros());
        // Either may have changed while the stored subscriptions were taken in.
        self.offers_changed();
        loop {
            let now = self.times().now;
            if let Some(Jump::Back(by)) = clock.look(now.micros()) {
                self.start_all(self.index.set_back(by));
            }
            let due = self.index.due(now, DUE_AT_ONCE);
            let is_full = due.len() == DUE_AT_ONCE;
            self.start_all(due);
            if is_full {
                tokio::task::yield_now().await;
                continue;
            }
            let next = self.index.next_time();
            let left_us = next.map(|next| next.micros().saturating_sub(now.micros()));
            let wait = left_us.map_or(LOOK_AGAIN, Duration::from_micros);
            tokio::select! {
                biased;
                () = self.stop.cancelled() => return,
                moved = moves.next() => {
                    for feed in moved {
                        self.start_all(self.index.moved(feed));
                    }
                }
                Ok(()) = catalog.changed() => self.offers_changed(),
                Ok(()) = accounts.changed() => self.offers_changed(),
                () = self.index.earlier() => {}
                () = tokio::time::sleep(wait.min(LOOK_AGAIN)) => {}
            }
        }
    }

    fn offers_changed(self: &Arc<Self>) {
        self.start_all(self.index.offers_changed(|group| self.offer(group)));
    }

    /// The present offer to a group, as the catalog and the users in force have it.
    pub(super) fn offer(&self, group: &GroupKey) -> GroupOffer {
        let GroupKey { feed, principal } = *group;
        let catalog = self.gate.catalog.snapshot();
        let offer = match catalog.feed_no(feed) {
            Some(_) if self.gate.still_admits(principal, feed) => Offer::Served,
            Some(_) => Offer::Denied,
            None if catalog.is_withdrawn(feed) => Offer::Withdrawn,
            None => Offer::Forgotten,
        };
        let read = self.gate.still_reads(principal, feed);
        GroupOffer { offer, read }
    }

    /// Starts the tasks of subscriptions that were called up.
    pub(super) fn start_all(self: &Arc<Self>, called_up: Vec<CalledUp>) {
        if !called_up.is_empty() {
            let shared = self.clone();
            self.spawn(async move { shared.read_and_start(called_up).await });
        }
    }

    // On a database the node that works calls up all. A push is told from others by its position,
    // and twice the same does no harm: here another node could be handed some of the numbers.
    /// Reads the rows of subscriptions, many at once, and starts their tasks.
    pub(super) async fn read_and_start(self: Arc<Self>, called_up: Vec<CalledUp>) {
        let mut called_up = called_up.into_iter();
        loop {
            let mut some: Vec<CalledUp> = called_up.by_ref().take(ROWS_AT_ONCE).collect();
            if some.is_empty() {
                return;
            }
            let numbers: Vec<SubscriptionNo> = some.iter().map(|called_up| called_up.sub).collect();
            let rows = loop {
                match self.store.subscriptions_of(numbers.clone()).await {
                    Ok(rows) => break rows,
                    Err(error) => {
                        let count = numbers.len();
                        warn!("{count} subscriptions could not be read: {error}");
                        some.iter_mut().for_each(|one| refuse_commands(one, &error));
                    }
                }
                tokio::select! {
                    biased;
                    () = self.stop.cancelled() => return,
                    () = tokio::time::sleep(Duration::from_secs(AGAIN_SECS)) => {}
                }
            };
            for (one, row) in some.into_iter().zip(rows) {
                let Some((sub, mut progress)) = row else {
                    // It has ended, or it is damaged.
                    self.index.remove(one.entry);
                    continue;
                };
                if is_made(Mistake::StartAtTheHead) {
                    progress.acked = None;
                }
                let place = TaskSlot::new(&self, one.entry, one.client, one.leave);
                let topic = sub.topic.clone();
                let task = SubscriptionTask::new(place, sub, progress, one.commands, one.rested);
                self.start_one(&topic, task.run());
            }
        }
    }

    /// Starts the task of a subscription.
    pub(super) fn start_one(&self, topic: &str, task: impl Future<Output = ()> + Send + 'static) {
        let span = info_span!("subscription", topic = %logged_url(topic));
        self.spawn(task.instrument(span));
    }

    /// Starts a task that ends with the hub.
    pub(super) fn spawn(&self, task: impl Future<Output = ()> + Send + 'static) {
        let task = self.cut.clone().run_until_cancelled_owned(task);
        self.tasks.spawn_on(task, &self.runtime);
    }

    /// Calls up all subscriptions to a feed, and lets none of them rest until
    /// [`Index::let_rest`](super::index::Index::let_rest). Returns when their rows were read.
    pub(super) async fn keep_at_work(self: &Arc<Self>, feed: FeedNo) {
        let called_up = self.index.keep_at_work(feed);
        self.clone().read_and_start(called_up).await;
    }
}

/// Tells those who sent a command that it cannot be kept.
fn refuse_commands(called_up: &mut CalledUp, error: &StoreError) {
    while let Ok(command) = called_up.commands.try_recv() {
        if let TaskCommand::Change(change) = command {
            let error = StoreError::Failed(error.to_string());
            // Nobody there to hear it means that the consumer hung up.
            let _ = change.kept.send(Err(error));
        }
    }
}
