//! A lease of a feed as it is kept and reported; the rules of taking one are in `leases`.

use crate::feed::stamp::Stamp;

/// A lease of a feed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FeedLease {
    /// Name of the process that drives the feed.
    pub owner: String,
    /// Rises with every taking; never reused.
    pub epoch: u64,
    /// End of the lease.
    pub until: Stamp,
}
