//! Several processes on one database: which of them works, what they tell each other, and what they
//! ask. One process alone uses the lock and the epoch.

pub(in crate::store::postgres) mod keeper;

mod questions;

mod roster;

mod sealed;

pub(in crate::store::postgres) mod serving_epoch;

pub(in crate::store::postgres) mod serving_lock;

pub(in crate::store::postgres) mod surroundings;

mod sweep;

mod vacancy;

pub(in crate::store::postgres) mod wake_ups;
