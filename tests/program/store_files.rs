//! Store files as they are met in life: left by a killed process, or written by an earlier version;
//! no store's logic.

#![expect(
    clippy::unwrap_used,
    reason = "tests may unwrap, and so may what they share"
)]

mod content;

mod golden;

mod kill;
