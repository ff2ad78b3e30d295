use super::*;

/// Bytes of the future that a function makes.
fn bytes_of_run<F>(_: impl FnOnce(SubscriptionTask) -> F) -> usize {
    size_of::<F>()
}

fn bytes_of_begin<A, B, C, F>(_: impl FnOnce(A, B, C) -> F) -> usize {
    size_of::<F>()
}

#[test]
fn a_subscription_at_work_takes_little_memory() {
    let (run, begin) = (bytes_of_run(SubscriptionTask::run), bytes_of_begin(begin));
    println!("a task: {run} bytes, one that begins: {begin}");
    assert!(run <= 4096, "{run}");
    assert!(begin <= 4096 + 1024, "{begin}");
}
