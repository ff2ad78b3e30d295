//! Commands: accepted requests on their way to the task of their subscription.

use super::deliver::question::Verdict;
use crate::store::{StoreError, subscriptions::Pending};
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
