//! Callback hosts beside each other: none of them delays another.

use super::rig::{Call, Reply, Rig, TOPIC};
use std::time::Duration;

/// Milliseconds that a healthy callback takes to answer.
const WELL_MS: u64 = 50;

/// Subscribes callbacks: so many hosts of that name, with so many callbacks each.
async fn subscribe(rig: &Rig, name: &str, hosts: u32, each: u32) {
    for host in 0..hosts {
        for n in 0..each {
            let callback = format!("http://{name}-{host}.example/cb/{n}");
            let form = [
                ("hub.mode", "subscribe"),
                ("hub.topic", TOPIC),
                ("hub.callback", &callback),
            ];
            assert_eq!(rig.ask(&form).await.0, 202);
            // So that no limit on requests is met.
            tokio::time::sleep(Duration::from_millis(110)).await;
        }
    }
    rig.wait(60).await;
}

/// Median and 95th percentile of the time until a healthy callback has taken an item, in
/// milliseconds, of so many items.
async fn delays(rig: &Rig, items: std::ops::Range<u32>) -> Vec<(u64, u64)> {
    let mut all = Vec::new();
    for n in items {
        rig.net.taken();
        let began = tokio::time::Instant::now();
        let before = rig.net.elapsed();
        rig.add(n).await;
        rig.wait(180).await;
        assert!(began.elapsed() >= Duration::from_secs(180));
        let is_well = |push: &Call| push.url.contains("well-");
        let mut taken: Vec<u64> = rig
            .net
            .pushes()
            .iter()
            .filter(|push| is_well(push))
            .map(|push| u64::try_from((push.at - before).as_millis()).unwrap() + WELL_MS)
            .collect();
        assert_eq!(taken.len(), 60, "each has its push");
        taken.sort_unstable();
        all.push((taken[30], taken[57]));
    }
    all
}

fn replies(call: &Call) -> Reply {
    if call.url.contains("slow-") {
        Reply::status(200).after(9)
    } else {
        Reply::status(200).after_ms(WELL_MS)
    }
}

// 300 callbacks that take nine seconds, on 15 hosts, are all due at the same moment as 60 healthy
// ones on 12.
#[tokio::test(start_paused = true)]
async fn slow_hosts_delay_no_healthy_one() {
    let rig = Rig::new().await;
    subscribe(&rig, "well", 12, 5).await;
    rig.net.on_push(replies);
    let alone = delays(&rig, 1..2).await[0];
    // The slow ones go first wherever order counts.
    let rig = Rig::new().await;
    subscribe(&rig, "slow", 15, 20).await;
    subscribe(&rig, "well", 12, 5).await;
    rig.net.on_push(replies);
    for (round, (median, p95)) in delays(&rig, 1..6).await.into_iter().enumerate() {
        let is_near = |with: u64, without: u64| with * 10 <= without * 13;
        assert!(
            is_near(median, alone.0) && is_near(p95, alone.1),
            "round {round}: median {median} ms, p95 {p95} ms; alone {alone:?}"
        );
    }
    assert_eq!(
        rig.counts().failing,
        0,
        "the slow ones have taken everything, too"
    );
}

#[tokio::test(start_paused = true)]
async fn a_host_that_answers_nobody_is_left_alone_and_found_again() {
    let rig = Rig::new().await;
    subscribe(&rig, "dead", 1, 100).await;
    let is_dead = |call: &Call| call.url.contains("dead-");
    rig.net.on_push(move |call| {
        if is_dead(call) {
            Reply::down()
        } else {
            Reply::status(200)
        }
    });
    rig.net.taken();
    rig.add(1).await;
    rig.wait(3600).await;
    let tries = rig.net.pushes().len();
    assert!(
        (5..40).contains(&tries),
        "100 callbacks of a host that is down: {tries} tries in an hour"
    );
    rig.net.willing();
    rig.wait(3600).await;
    assert_eq!(
        rig.net.pushes().len(),
        100,
        "each has its push once the host is back"
    );
    assert_eq!(rig.counts().failing, 0);
}
