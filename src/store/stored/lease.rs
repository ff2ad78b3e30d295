//! Leases of feeds.

use super::{Kind, table::stored_structs};
use crate::store::FeedLease;

impl Kind for FeedLease {
    const NAME: &'static str = "lease";
}

stored_structs! {
    FeedLease { owner, epoch, until }
}
