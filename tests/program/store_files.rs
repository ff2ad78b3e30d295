//! Store files as they are met in life: left by a killed process, or written by an earlier version;
//! no store's logic.

mod content;

mod golden;

mod kill;
