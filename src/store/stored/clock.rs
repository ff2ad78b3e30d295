//! The last time recorded, by which a clock is believed.

use super::{Kind, table::stored_structs};
use crate::store::guard::ClockGuard;

impl Kind for ClockGuard {
    const NAME: &'static str = "clock";
}

stored_structs! {
    ClockGuard { recorded, accepted }
}
