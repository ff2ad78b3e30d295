//! Commands on their way to the task of a subscription: accepted requests, and the operator's.

use super::deliver::question::Verdict;
use crate::store::{
    StoreError,
    subscriptions::{Pending, Target},
};
use tokio::sync::oneshot;

/// A request that was accepted, on its way to the subscription's task.
#[derive(Debug)]
pub(super) struct SubscriptionCommand {
    /// The request.
    pub(super) pending: Pending,
    /// Told when the request is kept and so survives us.
    pub(super) kept: oneshot::Sender<Result<(), StoreError>>,
    /// Told what the first try came to, in the synchronous dialect. Who waits here wants one try
    /// only unless the pending request says otherwise.
    pub(super) verdict: Option<oneshot::Sender<Verdict>>,
}

/// A command to the task of a subscription.
#[derive(Debug)]
pub(super) enum TaskCommand {
    /// A request of its subscriber.
    Change(Box<SubscriptionCommand>),
    /// The operator wants it tried now.
    Retry(oneshot::Sender<()>),
    /// The operator ends it.
    End {
        /// True to tell the subscriber.
        is_told: bool,
        done: oneshot::Sender<()>,
    },
    /// The configuration gives it another target at the same address.
    Retarget {
        /// The target.
        target: Box<Target>,
        done: oneshot::Sender<()>,
    },
}
