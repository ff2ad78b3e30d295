//! Poll states.

use super::{
    Kind,
    table::{stored_enums, stored_structs},
};
use crate::feed::schedule::{FaultNote, Moved, PollState, Whose};
use everfeed_adapters::platforms::{Detected, Weight};

impl Kind for PollState {
    const NAME: &'static str = "poll-state";
}

stored_structs! {
    PollState {
        url, etag, last_modified, validators_url, body, next_at, polled_at, good_at, unconditional_at, wants_audit,
        at_rest, held_until, arrivals, failures, fault, remark, platform, gone_at, moved, hinted_secs, skip_hours,
        skip_days,
    }
    Moved { url, since }
    FaultNote { whose, text, status, since }
    Detected { platform, why, weight }
}

stored_enums! {
    Whose { 0 Upstream, 1 Ours }
    Weight { 0 Weak, 1 Strong }
}
