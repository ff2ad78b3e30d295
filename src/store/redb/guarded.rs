//! Calls into redb that may panic: a damaged page breaks its assumptions. Such a panic ends the
//! call as an error, and is not printed as if everfeed had failed.

use crate::store::StoreError;
use std::{
    cell::Cell,
    panic::{self, AssertUnwindSafe},
    sync::Once,
};

thread_local! {
    /// True while this thread is in a guarded call.
    static IS_GUARDED: Cell<bool> = const { Cell::new(false) };
}

/// Does this; the message of a panic is the error.
pub(super) fn guarded<T>(work: impl FnOnce() -> T) -> Result<T, String> {
    static QUIET: Once = Once::new();
    QUIET.call_once(|| {
        let before = panic::take_hook();
        panic::set_hook(Box::new(move |info| {
            if !IS_GUARDED.get() {
                before(info);
            }
        }));
    });
    let was_guarded = IS_GUARDED.replace(true);
    // The caller throws away what the work was done on when it ends like this.
    let done = panic::catch_unwind(AssertUnwindSafe(work));
    IS_GUARDED.set(was_guarded);
    done.map_err(|panic| {
        let text = panic.downcast_ref::<String>().map(String::as_str);
        let text = text
            .or_else(|| panic.downcast_ref::<&str>().copied())
            .unwrap_or("no message");
        format!("a page of the file does not hold together (redb: {text})")
    })
}

/// Does this; a panic is damage.
pub(super) fn sheltered<T>(work: impl FnOnce() -> Result<T, StoreError>) -> Result<T, StoreError> {
    guarded(work).unwrap_or_else(|panic| Err(StoreError::Damaged(panic)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_is_an_error_with_its_message() {
        assert_eq!(guarded(|| 7), Ok(7));
        let at = 9;
        let told = guarded(|| assert!(at < 7, "page {at}")).unwrap_err();
        assert_eq!(
            told,
            "a page of the file does not hold together (redb: page 9)"
        );
        assert!(!IS_GUARDED.get());
    }
}
