//! The last time recorded, by which a clock is believed.

use super::{StoredKind, table::stored_structs};
use crate::store::clock_guard::ClockGuard;

impl StoredKind for ClockGuard {
    const NAME: &'static str = "clock";
}

stored_structs! {
    ClockGuard { recorded, accepted }
}
