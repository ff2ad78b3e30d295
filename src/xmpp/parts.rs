//! Everything that the component is made from, and what it tells the operator; not what it does.

use super::config::Config;
use crate::{
    catalog::ReadGate, clock::Clock, feed::stamp::Stamp, notify::Notify, readers::Readers,
    store::Store, telemetry::Metrics,
};
use std::sync::Arc;

/// Parts of a component.
pub struct Parts {
    /// The server, our address there, and limits.
    pub config: Config,
    /// Pages.
    pub readers: Arc<Readers>,
    /// Feeds, items and subscriptions.
    pub store: Arc<dyn Store>,
    /// The feeds that are nodes, and who may read them.
    pub gate: ReadGate,
    /// Wake-ups.
    pub notify: Arc<Notify>,
    /// The time.
    pub clock: Arc<dyn Clock>,
    /// Counters.
    pub metrics: Metrics,
}

/// State of a subscription, for the operator.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SubscriptionState {
    /// True where pushes do not go out, or came back.
    pub is_failing: bool,
    /// Seconds between the newest change and the last one that was looked at for it.
    pub lag_secs: Option<u64>,
    /// `taken` by the server, or the reason of the last failure.
    pub last_answer: Option<String>,
    /// Time of that, if it came since the start.
    pub answered_at: Option<Stamp>,
}

/// The end of a subscription by the operator.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EndedSubscription {
    /// Its subscriber is told.
    Told,
    /// There is no stream by which it could be told.
    Untold,
}

/// State of the connection, for the operator.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConnectionState {
    /// True while a stream is open.
    pub is_online: bool,
    /// Since when.
    pub since: Stamp,
    /// Streams that were opened so far.
    pub streams: u64,
    /// The reason for which there is none; `None` before the first try and while there is one.
    pub fault: Option<String>,
}
