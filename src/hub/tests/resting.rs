//! Subscriptions at rest: they have no task, and miss nothing.

use super::rig::{DAY_SECS, Reply, Rig};

#[tokio::test(start_paused = true)]
async fn a_subscription_with_nothing_to_do_has_no_task() {
    let rig = Rig::new().await;
    rig.subscribed(&[]).await;
    assert_eq!(rig.with_tasks(), 0);
    for n in 1..=3 {
        rig.add(n).await;
        assert_eq!((rig.net.pushes().len(), rig.with_tasks()), (1, 0), "{n}");
    }
    rig.net.on_push(|_| Reply::status(500));
    rig.add(4).await;
    assert_eq!(
        rig.with_tasks(),
        0,
        "one that waits for its next try rests, too"
    );
    let counts = rig.counts();
    assert_eq!((counts.active, counts.failing), (1, 1));
    rig.net.on_push(|_| Reply::status(204));
    rig.wait(60).await;
    assert_eq!((rig.acked().await, rig.with_tasks()), (rig.head().await, 0));
}

#[tokio::test(start_paused = true)]
async fn stored_subscriptions_that_have_everything_rest_from_the_start_on() {
    let rig = Rig::new().await;
    rig.subscribed(&[]).await;
    rig.add(1).await;
    let reads = rig.row_reads();
    let rig = rig.killed().await;
    rig.wait(DAY_SECS).await;
    assert_eq!((rig.row_reads(), rig.with_tasks()), (reads, 0));
    rig.net.taken();
    rig.add(2).await;
    assert_eq!(rig.net.pushes().len(), 1);
    assert!(rig.row_reads() > reads);
}

#[tokio::test(start_paused = true)]
async fn a_command_for_one_at_rest_fails_while_the_store_is_away_and_is_taken_later() {
    let rig = Rig::new().await;
    rig.subscribed(&[]).await;
    rig.fail_row_reads(true);
    let (status, text) = rig.ask_to("subscribe", &[]).await;
    assert_eq!(status, 503, "{text}");
    rig.fail_row_reads(false);
    rig.wait(10).await;
    assert_eq!(rig.ask_to("subscribe", &[]).await.0, 202);
    rig.add(1).await;
    assert_eq!((rig.counts().active, rig.with_tasks()), (1, 0));
    assert_eq!(rig.acked().await, rig.head().await);
}
