//! A large first import: what it costs in memory, and what is left of it when the process is killed
//! in the middle of it.
//!
//! `cargo test --release --test process import::memory -- --ignored --nocapture` says what an
//! import of `EVERFEED_PAGES` archives (1,000 when it says nothing) takes, of `EVERFEED_POSTS` posts
//! (20) with `EVERFEED_BYTES` bytes of text (5 KiB) each; and the bytes of the store by table. The
//! documents are left in the folder `EVERFEED_DOCUMENTS`; `benches/sqlite_fts5.py` reads them.

mod kill;
mod memory;
mod publisher;
