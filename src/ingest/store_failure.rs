//! An error of the store as the failure of a job: whether the feed is to blame, or the job is only
//! repeated.

use crate::{
    feed::schedule::{Failure, FaultKind},
    store::StoreError,
};

/// A store that is away is nobody's fault: the job is repeated without blame.
impl From<StoreError> for Failure {
    fn from(error: StoreError) -> Self {
        match error {
            StoreError::Quota {
                bytes, quota_bytes, ..
            } => Self::of(FaultKind::Quota { bytes, quota_bytes }),
            error if error.is_away() => Self::of(FaultKind::StoreAway {
                reason: error.to_string(),
            }),
            error => Self::ours(error),
        }
    }
}
