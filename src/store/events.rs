//! Events for the operator as a store keeps them: a bounded list; not which they are.

use super::StoreFuture;
use crate::{events::Event, feed::stamp::Stamp};

/// The events that were reported, up to [`EVENTS_MAX`](crate::events::EVENTS_MAX) of them.
pub trait EventStore: Send + Sync {
    /// Keeps events. The oldest ones go where there are too many, but for the last one of each cause
    /// that is open.
    fn keep_events(&self, events: Vec<Event>) -> StoreFuture<'_, ()>;

    /// The events before this time, newest first, at most so many. A damaged one is passed over.
    fn events(&self, before: Option<Stamp>, max: usize) -> StoreFuture<'_, Vec<Event>>;
}
