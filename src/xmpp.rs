//! XMPP: feeds as nodes of Publish-Subscribe (XEP-0060) at an external component (XEP-0114), and
//! who is pushed what changes; not how feeds are read, and not other protocols.

mod config;
mod parts;

#[cfg(not(feature = "xmpp"))]
mod absent;

#[cfg(feature = "xmpp")]
mod asked;
#[cfg(feature = "xmpp")]
mod connect;
#[cfg(feature = "xmpp")]
mod disco;
#[cfg(feature = "xmpp")]
mod element;
#[cfg(feature = "xmpp")]
mod fault;
#[cfg(feature = "xmpp")]
mod frames;
#[cfg(feature = "xmpp")]
mod node;
#[cfg(feature = "xmpp")]
mod notice;
#[cfg(feature = "xmpp")]
mod ns;
#[cfg(feature = "xmpp")]
mod pace;
#[cfg(feature = "xmpp")]
mod push;
#[cfg(feature = "xmpp")]
mod rsm;
#[cfg(feature = "xmpp")]
mod service;
#[cfg(feature = "xmpp")]
mod shown;
#[cfg(feature = "xmpp")]
mod stanza;
#[cfg(feature = "xmpp")]
mod stanza_error;
#[cfg(feature = "xmpp")]
mod stream;
#[cfg(feature = "xmpp")]
mod subscribers;
#[cfg(feature = "xmpp")]
mod supervisor;

#[cfg(feature = "xmpp")]
mod component;

#[cfg(feature = "xmpp")]
#[cfg(test)]
mod tests;

#[cfg(feature = "xmpp")]
pub use component::Component;

#[cfg(not(feature = "xmpp"))]
pub use absent::Component;
pub use config::Config;
pub use parts::{ConnectionState, Parts};
