//! everfeed beside servers of Debian, which `tests/run` installs: web servers before it and its nodes, a
//! certificate authority, dpkg with its package, servers of XMPP, subscribers that others wrote, Prometheus, the
//! libraries that verify webhooks, a parser of sitemaps, and a mail server.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

/// The program.
const EVERFEED: &str = env!("CARGO_BIN_EXE_everfeed");

mod acme;
mod alerts;
mod clients;
mod deploy;
mod nodes;
mod package;
mod prometheus;
mod sitemaps;
mod webhooks;

#[cfg(feature = "xmpp")]
mod xmpp;
