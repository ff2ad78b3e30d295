//! The real binary as an operator runs it: its commands, its processes that are killed, reloaded
//! and stormed, and its limits.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

/// The program.
const EVERFEED: &str = env!("CARGO_BIN_EXE_everfeed");

mod accounts;
mod book;
mod closed_output;
mod database;
mod doors;
mod events;
mod explain;
mod import;
mod init;
mod kill;
mod mirrors;
mod moved;
mod nodes;
mod operator;
mod opml;
mod ping;
mod probe;
mod pushed;
mod readers;
mod registry;
mod reload;
mod search_engines;
mod sites;
mod store_file;
mod storms;
