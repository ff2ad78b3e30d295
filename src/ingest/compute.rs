//! Computing away from the tasks that wait.

use crate::feed::schedule::Failure;

/// Runs `work` on the pool for blocking work. A panic in it is one failed job and our fault: what it held is dropped, and
/// what was stored stays.
pub(super) async fn compute<T: Send + 'static>(
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, Failure> {
    let span = tracing::Span::current();
    tokio::task::spawn_blocking(move || span.in_scope(work))
        .await
        .map_err(|_| Failure::ours("reading the document broke off; this is a bug in everfeed"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::feed::schedule::Whose;

    #[tokio::test]
    async fn a_panic_in_a_parser_is_our_fault_and_nothing_more() {
        let failure = compute(|| -> () { panic!("as a parser might") }).await.unwrap_err();
        assert_eq!(failure.whose(), Whose::Ours);
        assert!(failure.to_string().contains("bug in everfeed"));
    }
}
