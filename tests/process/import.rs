//! A large first import: what it costs in memory, and what is left of it when the process is killed
//! in the middle of it.
//!
//! `cargo test --release --test process import::memory -- --ignored --nocapture` says what an
//! import of `EVERFEED_PAGES` archives (1,000 when it says nothing) of 100 KiB takes.

mod kill;
mod memory;
mod publisher;
