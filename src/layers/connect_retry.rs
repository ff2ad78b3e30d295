//! A second attempt where the first never reached the other side. Not for statuses, timeouts or cut
//! bodies: what those mean for the next attempt is the caller's schedule.

use std::future::{Ready, ready};

use tower::retry::Policy;

use super::{FetchError, Request};

/// Tries again once, at once, when no connection could be made. Nothing was sent then, so any
/// method may.
#[derive(Debug, Clone, Default)]
pub struct ConnectOnce {
    is_used: bool,
}

impl<R> Policy<Request, R, FetchError> for ConnectOnce {
    type Future = Ready<()>;

    fn retry(&mut self, _: &mut Request, result: &mut Result<R, FetchError>) -> Option<Ready<()>> {
        if self.is_used || !matches!(result, Err(FetchError::Connect(..))) {
            return None;
        }
        self.is_used = true;
        Some(ready(()))
    }

    fn clone_request(&mut self, request: &Request) -> Option<Request> {
        Some(request.clone())
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{answering, body_of, get};
    use super::super::{Awaited, ConnectFault, NameFault};
    use super::*;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::time::Duration;
    use tower::{ServiceBuilder, ServiceExt};

    /// Number of requests that went out, and whether an answer came, when the first `failures`
    /// attempts end in `error`.
    async fn attempts(failures: usize, error: fn() -> FetchError) -> (usize, bool) {
        let sent = Arc::new(AtomicUsize::new(0));
        let counter = sent.clone();
        let stack = ServiceBuilder::new()
            .retry(ConnectOnce::default())
            .service(answering(move |_| {
                if counter.fetch_add(1, Ordering::SeqCst) < failures {
                    return Err(error());
                }
                Ok(http::Response::new(body_of(&[])))
            }));
        let answer = stack.oneshot(get("http://a.example/")).await;
        (sent.load(Ordering::SeqCst), answer.is_ok())
    }

    #[tokio::test]
    async fn a_failed_connection_is_tried_once_more_and_not_twice() {
        let connect = || FetchError::Connect(ConnectFault::Refused, "refused".into());
        assert_eq!(attempts(0, connect).await, (1, true));
        assert_eq!(attempts(1, connect).await, (2, true));
        assert_eq!(attempts(2, connect).await, (2, false));
    }

    #[tokio::test]
    async fn nothing_else_is_tried_again() {
        assert_eq!(
            attempts(1, || FetchError::Cut(
                crate::layers::error::CutFault::Body,
                "".into()
            ))
            .await,
            (1, false)
        );
        assert_eq!(
            attempts(1, || FetchError::Resolve(NameFault::Unknown, "".into())).await,
            (1, false)
        );
        assert_eq!(
            attempts(1, || FetchError::Timeout {
                after: Duration::ZERO,
                awaited: Awaited::Head
            })
            .await,
            (1, false)
        );
        assert_eq!(
            attempts(1, || FetchError::Throttled {
                wait: Duration::ZERO
            })
            .await,
            (1, false)
        );
    }
}
