//! XMPP: feeds as nodes of Publish-Subscribe (XEP-0060) at an external component (XEP-0114), and
//! who is pushed what changes; not how feeds are read, and not other protocols.

mod config;
mod parts;

#[cfg(not(feature = "xmpp"))]
mod absent;
#[cfg(feature = "xmpp")]
mod component;

#[cfg(not(feature = "xmpp"))]
pub use absent::{Component, problem_with_files};
#[cfg(feature = "xmpp")]
pub use component::{Component, problem_with_files};
pub use config::Config;
pub use parts::{ConnectionState, EndedSubscription, Parts, SubscriptionState};
