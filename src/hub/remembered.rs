//! Knowledge of a subscription that is not in its row: kept while it rests, and forgotten with the
//! process.

use crate::{
    clock::LeaseWatch,
    feed::{record::Head, stamp::Stamp},
};
use tokio::time::Instant;

/// The knowledge of a task that ends for a rest.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Remembered {
    /// The end of the lease that was warned of, and the time of the next try.
    pub(super) warned: Option<(Stamp, Option<Stamp>)>,
    /// The watch over a lease that has more left than it was granted for.
    pub(super) lease: LeaseWatch,
    /// Items in a push at most, of a subscriber that takes no more.
    pub(super) items_max: Option<usize>,
    /// Time of the last delivery, of a subscriber that wants heartbeats.
    pub(super) delivered_at: Option<Instant>,
    /// Time up to which pushes of the channel alone are used up.
    pub(super) channel_spent: Option<Instant>,
    /// The last change of the channel that it knows of, where the store has none.
    pub(super) channel_t: Option<Stamp>,
}

impl Remembered {
    /// Of a stored subscription that knows the channel as it is, where the store does not tell.
    pub(super) fn of_channel(seen: Option<Head>) -> Self {
        Self {
            channel_t: seen.map(|head| head.metadata_t),
            ..Self::default()
        }
    }
}
