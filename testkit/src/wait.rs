//! Waiting for what is about to happen over real sockets and in other processes.

use std::time::Duration;
use tokio::time::{sleep, timeout};

/// Longer than anything takes that a test waits for, also beside a build that has the machine.
pub const PATIENCE: Duration = Duration::from_secs(120);

/// Between two looks at something that is about to happen.
pub const GLANCE: Duration = Duration::from_millis(20);

/// Waits until something is so.
pub async fn until(what: &str, is_so: impl AsyncFn() -> bool) {
    assert!(comes(is_so).await, "not within {PATIENCE:?}: {what}");
}

/// Waits likewise; false when the patience has ended.
pub async fn comes(is_so: impl AsyncFn() -> bool) -> bool {
    let waited = async {
        while !is_so().await {
            sleep(GLANCE).await;
        }
    };
    timeout(PATIENCE, waited).await.is_ok()
}
