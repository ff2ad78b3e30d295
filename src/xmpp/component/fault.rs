//! Faults of reads and of the store as errors of stanzas; not the other mistakes of a request.

use super::stanza_error::StanzaError;
use crate::{readers::ReadError, store::StoreError};

pub(super) fn of_read(error: ReadError) -> StanzaError {
    match error {
        ReadError::NotReady | ReadError::Busy => StanzaError::BUSY.saying(error.to_string()),
        ReadError::UnknownFeed | ReadError::UnknownArchive => StanzaError::ITEM_NOT_FOUND,
        ReadError::Store(error) => match &*error {
            StoreError::UnknownId => StanzaError::ITEM_NOT_FOUND,
            StoreError::MovingOrder => StanzaError::NOT_IMPLEMENTED,
            StoreError::Unnumbered => StanzaError::NOT_IMPLEMENTED.saying(error.to_string()),
            error => of_failure(error),
        },
    }
}

pub(super) fn of_store(error: StoreError) -> StanzaError {
    match error {
        StoreError::UnknownFeed(_) => StanzaError::ITEM_NOT_FOUND,
        error => of_failure(&error),
    }
}

/// A failure of ours. The operator is told what it was, the asker is not.
fn of_failure(error: &StoreError) -> StanzaError {
    tracing::warn!(error = %error, "A request over XMPP could not be answered: {error}");
    StanzaError::INTERNAL.saying("the fault is ours; try again later")
}
