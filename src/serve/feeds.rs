//! Answers about feeds, for consumers: pages, streams, lists and descriptions; not the addresses of
//! old sites (`sites`).

pub(super) mod admission;
pub mod context;
mod noted_request;

pub(super) mod delta;
pub(super) mod pull;

pub(super) mod event_stream;
pub mod long_poll;

pub(super) mod discovery;
pub mod list_range;
