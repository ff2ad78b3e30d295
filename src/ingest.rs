//! Ingest: polls publishers, decides what their documents change, and writes that to the store. No consumer is served
//! from here: who waits is woken, and reads the store.

pub mod config;

pub mod platform;

pub mod poller;

mod queue;

mod registered;

mod hosts;

pub mod pipeline;

pub mod recording;

pub mod upstream;

pub use crate::catalog::settings::{
    DeletionSettings as Deletions, DocumentFormat as Format, ImportSettings as Import,
    RecordSettings as Record,
};
pub use config::Config;
pub use hosts::hosts_of;
pub use pipeline::Pipeline;
pub use poller::{FeedSpec, Poller};
pub use upstream::Upstream;

#[cfg(test)]
mod testing;
