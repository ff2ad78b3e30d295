//! The row of a subscription, here and in the store: how it is made, changed and ended, and what is
//! still to be saved of it.

use super::{NewTerms, OURS_SECS, TaskSlot};
use crate::{
    feed::stamp::Stamp,
    hub::{Shared, host_of, push::Advance},
    mistakes::{Mistake, is_made},
    secret::logged_url,
    store::{
        StoreError, Subscription,
        subscriptions::{Acknowledged, Attempts, Intent, NewSubscription, Pending, Progress},
    },
};
use std::sync::Arc;
use tracing::warn;

/// A subscription and its position, as they are in memory; the store has the same, unless `unsaved`
/// is set.
pub(super) struct SubscriptionRow {
    shared: Arc<Shared>,
    pub(super) sub: Subscription,
    pub(super) progress: Progress,
    /// Time of the next try to save what is in memory and not in the store yet.
    pub(super) unsaved: Option<Stamp>,
}

/// End of the acknowledgement of a push.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Acknowledgement {
    /// The position has moved.
    Kept,
    /// The row was read again, and what is there counts.
    Overtaken,
    /// The store takes nothing now.
    Unkept,
}

impl SubscriptionRow {
    pub(super) fn new(shared: Arc<Shared>, sub: Subscription, progress: Progress) -> Self {
        Self {
            shared,
            sub,
            progress,
            unsaved: None,
        }
    }

    /// The host of the target: all of its address that is logged.
    pub(super) fn host(&self) -> String {
        host_of(self.sub.target.address())
    }

    /// The topic as it may be logged.
    pub(super) fn shown_topic(&self) -> String {
        logged_url(&self.sub.topic)
    }

    /// Keeps a request that waits for its verification.
    pub(super) async fn replace_pending(&mut self, pending: Pending) -> Result<(), StoreError> {
        let changed = Subscription {
            pending: Some(pending),
            ..self.sub.clone()
        };
        let rev = self
            .shared
            .store
            .change_subscription(changed.clone(), None)
            .await?;
        self.sub = Subscription { rev, ..changed };
        Ok(())
    }

    pub(super) async fn save(&mut self) {
        self.unsaved = None;
        let (sub, progress) = (self.sub.clone(), self.progress.clone());
        match self
            .shared
            .store
            .change_subscription(sub, Some(progress))
            .await
        {
            Ok(rev) => self.sub.rev = rev,
            Err(StoreError::UnknownSubscription(_) | StoreError::Conflict { .. }) => {
                self.reload().await;
            }
            Err(error) => self.keep_for_later(&error),
        }
    }

    /// Moves the position in the store, then here. A crash between a push and this sends the push
    /// once more.
    pub(super) async fn advance(&mut self, advance: Advance) -> Acknowledgement {
        let Advance {
            from,
            to,
            scanned,
            on_behalf_of,
            channel_t,
            is_delivered,
            ..
        } = advance;
        if self.is_at(&to, scanned.as_ref(), channel_t)
            && self.progress.on_behalf_of == on_behalf_of
        {
            // A push without news that was taken as the one before it.
            return Acknowledgement::Kept;
        }
        let subscription = self.sub.no;
        let acknowledged = Acknowledged {
            subscription,
            from,
            to: to.clone(),
            on_behalf_of,
            scanned: scanned.clone(),
            channel_t,
        };
        let kept = if is_made(Mistake::AcknowledgedInMemory) {
            Ok(true)
        } else {
            self.shared.acknowledgements.keep(acknowledged).await
        };
        match kept {
            Ok(true) => {
                self.progress = Progress {
                    acked: Some(to),
                    attempts: Attempts::default(),
                    on_behalf_of,
                    scanned,
                    channel_t,
                };
                Acknowledgement::Kept
            }
            Ok(false) => {
                self.reload().await;
                Acknowledgement::Overtaken
            }
            Err(error) => {
                let is_unknown = matches!(&*error, StoreError::OutcomeUnknown(_));
                if is_unknown && self.reload().await {
                    return Acknowledgement::Overtaken;
                }
                // Once for a push: it is tried again until the store is back.
                if is_delivered {
                    let topic = self.shown_topic();
                    warn!(
                        "The position of a subscription to `{topic}` could not be saved: {error}"
                    );
                }
                self.pause();
                Acknowledgement::Unkept
            }
        }
    }

    /// True where all of this is stored already, and no failure with it.
    fn is_at(&self, to: &str, scanned: Option<&String>, channel_t: Option<Stamp>) -> bool {
        let Progress {
            acked,
            attempts,
            scanned: stored,
            channel_t: known,
            ..
        } = &self.progress;
        let is_same = acked.as_deref() == Some(to) && stored.as_ref() == scanned;
        is_same && *known == channel_t && *attempts == Attempts::default()
    }

    /// Keeps the state of failed deliveries.
    pub(super) async fn note_attempts(&mut self, attempts: Attempts) {
        self.progress.attempts = attempts.clone();
        if let Err(error) = self
            .shared
            .store
            .save_attempts(vec![(self.sub.no, attempts)])
            .await
        {
            self.keep_for_later(&error);
        }
    }

    /// Lets no delivery be made for a while, after a trouble of our own.
    pub(super) fn pause(&mut self) {
        self.progress.attempts.next_try = self.shared.now().plus_secs(OURS_SECS);
    }

    /// Ends the lease, and the subscription with it, unless a request for a new one is being
    /// verified.
    pub(super) async fn retire(&mut self) {
        self.sub.lease = None;
        match &self.sub.pending {
            Some(Pending {
                intent: Intent::Subscribe { .. },
                ..
            }) => self.save().await,
            _ => self.end().await,
        }
    }

    /// Removes the row. The task ends when there is neither a lease nor a pending request.
    pub(super) async fn end(&mut self) {
        (self.sub.lease, self.sub.pending) = (None, None);
        if let Err(error) = self.shared.store.end_subscription(self.sub.no).await {
            // Harmless: what is left ends with its lease after the next start.
            warn!(
                "An ended subscription to `{}` could not be removed: {error}",
                self.shown_topic()
            );
        }
    }

    /// Reads the row again: somebody else has written it, which only an operator does, or it is not
    /// known what is there. True when it was read.
    async fn reload(&mut self) -> bool {
        match self.shared.store.subscription(self.sub.no).await {
            Ok(Some((sub, progress))) => (self.sub, self.progress) = (sub, progress),
            Ok(None) => (self.sub.lease, self.sub.pending) = (None, None),
            Err(error) => {
                warn!(
                    "A subscription to `{}` could not be read back: {error}",
                    self.shown_topic()
                );
                self.pause();
                return false;
            }
        }
        true
    }

    /// Notes that what is in memory is still to be saved.
    fn keep_for_later(&mut self, error: &StoreError) {
        warn!(
            "A subscription to `{}` could not be saved: {error}",
            self.shown_topic()
        );
        self.unsaved = Some(self.shared.now().plus_secs(OURS_SECS));
    }
}

/// Stores a new subscription. A row that is there already is left of one whose end could not be
/// stored: nothing of it counts any more.
pub(super) async fn made(
    place: &TaskSlot,
    new: NewTerms,
    pending: Pending,
) -> Result<Subscription, StoreError> {
    let store = &place.shared.store;
    let NewTerms {
        topic,
        view,
        representation,
    } = new;
    let target = pending
        .intent
        .target()
        .cloned()
        .ok_or_else(|| no_target(&topic))?;
    let (new_representation, new_target) = (representation.clone(), target.clone());
    let new = NewSubscription {
        view: view.clone(),
        representation: new_representation,
        topic,
        target: new_target,
        pending: pending.clone(),
    };
    match store.subscribe(new).await {
        Err(StoreError::Subscribed(no)) => {
            let (left, _) = store
                .subscription(no)
                .await?
                .ok_or(StoreError::UnknownSubscription(no))?;
            let (principal, pending) = (pending.principal, Some(pending));
            let mut sub = Subscription {
                view,
                representation,
                target,
                lease: None,
                pending,
                principal,
                ..left
            };
            sub.rev = store
                .change_subscription(sub.clone(), Some(Progress::default()))
                .await?;
            Ok(sub)
        }
        made => made,
    }
}

/// A request of our own to go on never makes a subscription.
fn no_target(topic: &str) -> StoreError {
    StoreError::Failed(format!(
        "a request to subscribe to `{}` has no target",
        logged_url(topic)
    ))
}
