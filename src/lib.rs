//! everfeed gives an old feed a memory and a voice: it polls a legacy feed, keeps every item for
//! ever and offers the result as a Smart Feed by pull, long poll and push.

pub mod byte_budget;
pub mod client_net;
pub mod clock;
pub mod identity;
pub mod locks;
pub mod one_line;
pub mod registrable_domain;
pub mod setting;
pub mod standard_webhooks;
pub mod telemetry;
pub mod threads;
pub mod tls_client;

pub use everfeed_feed as feed;
// Foundations that a feed stands on, too.
pub use everfeed_feed::{mistakes, secret};

pub mod events;

pub mod auth;
pub mod layers;
pub mod notify;
pub mod render;
pub mod store;

pub mod acme;

pub mod catalog;
pub mod edge;
pub mod readers;
pub mod readership;

pub mod alerts;
pub mod hub;
pub mod ingest;
pub mod proxy;
pub mod search_engines;
pub mod serve;
pub mod subscriber;
pub mod xmpp;

pub mod config;

pub mod app;

pub mod cli;
