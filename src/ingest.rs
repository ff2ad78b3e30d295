//! Ingest: polls publishers, decides what their documents change, and writes that to the store. No
//! consumer is served from here: who waits is woken, and reads the store.

pub mod config;

mod credentials;

pub mod platform;

mod fetched;

mod answer_dates;

pub mod recording;

mod feed_spec;

mod context;

pub mod upstream;

mod compute;

mod store_failure;

mod transact;

mod events;

mod documents;

pub mod polls;

pub mod walks;

pub mod checks;

mod due_queue;

mod host_pauses;

mod lane;

pub mod poller;

pub use crate::catalog::settings::{
    DeletionSettings, DocumentFormat, ImportSettings, LegacyAddress, PollSettings, RecordSettings,
};
pub use compute::Computing;
pub use config::Config;
pub use context::Context;
pub use credentials::{CREDENTIALS_MAX, CredentialSettings, Credentials};
pub use feed_spec::{FeedSpec, without_credentials};
pub use fetched::Fetched;
pub use host_pauses::hosts_of;
pub use poller::{
    FeedChange, GoodTimes, LONE_WAIT, PollAnswer, PollWait, Poller, Troubles, Urgency, WaitCause,
};
pub use upstream::Upstream;

#[cfg(test)]
mod testing;
