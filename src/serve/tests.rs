//! Answers to consumers on the wire: every one through the whole tower stack, over a store in
//! memory; no sockets, which are in `tests/program/http.rs`.
//!
//! Rows: SF-3, SF-6, SF-9, SF-10, SF-16, SF-18..SF-21, SF-25..SF-32, SF-40..SF-62, SF-90..SF-92;
//! D-1..D-3, D-8..D-13, D-18, D-20, D-25, D-26; section 4 of the checklist, points 1, 2, 3, 5, 6,
//! 7, 8, 10.

mod rig;

mod archives;
mod asking;
mod paging;
mod parts;

mod negotiating;
mod script;

mod caching;
mod deltas;
mod describing;
mod readership;
mod routing;

mod holding;
mod streaming;

mod filtering;

mod pinging;
mod private;
