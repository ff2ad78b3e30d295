//! An error of the store as the failure of a job: whether the feed is to blame, or the job is only
//! repeated.

use crate::{
    feed::schedule::{Failure, FaultKind},
    store::StoreError,
};

/// The failure that an error of the store comes to. A store that is away is nobody's fault: the job
/// is repeated without blame.
pub(super) fn store_failure(error: StoreError) -> Failure {
    if error.is_away() {
        Failure::of(FaultKind::StoreAway {
            reason: error.to_string(),
        })
    } else if let StoreError::Quota {
        bytes, quota_bytes, ..
    } = error
    {
        Failure::of(FaultKind::Quota { bytes, quota_bytes })
    } else {
        Failure::ours(error)
    }
}
