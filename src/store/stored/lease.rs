//! Leases of feeds.

use super::{StoredKind, table::stored_structs};
use crate::store::FeedLease;

impl StoredKind for FeedLease {
    const NAME: &'static str = "lease";
}

stored_structs! {
    FeedLease { owner, epoch, until }
}
