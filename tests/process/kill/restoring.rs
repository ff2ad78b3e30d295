//! Restores between kills: each mirror ends with what the store holds, and with nothing that only
//! the lost time knew.

use super::{SETTLE, blogs::Blogs, consumer::Consumer, number, rig::Rig};
use rand::{RngExt as _, SeedableRng as _, rngs::StdRng};
use std::{
    sync::Arc,
    time::{Duration, Instant},
};

/// Feeds under load.
const FEEDS: usize = 3;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn mirrors_equal_a_store_that_was_restored_between_kills() {
    let restores = number("EVERFEED_RESTORES", 4);
    let seed = number("EVERFEED_SEED", u64::from(std::process::id()));
    println!("restoring {restores} times, EVERFEED_SEED={seed}");
    let mut chance = StdRng::seed_from_u64(seed);
    let blogs = Arc::new(Blogs::start(FEEDS, seed).await);
    let mut rig = Rig::new(&blogs);
    rig.start().await;
    let consumers: Vec<_> = blogs
        .names()
        .map(|name| (name, Consumer::start(&rig, name)))
        .collect();
    let mut pause = async |range: std::ops::Range<u64>| {
        let millis = chance.random_range(range);
        tokio::time::sleep(Duration::from_millis(millis)).await;
        millis
    };
    for _ in 0..restores {
        pause(1000..3000).await;
        rig.back_up("backup.redb");
        // Mirrors learn what the backup does not know.
        pause(1000..3000).await;
        rig.process.kill();
        rig.start().await;
        pause(500..5000).await;
        rig.process.kill();
        let after = Duration::from_millis(pause(0..200).await);
        rig.restore("backup.redb", after).await;
        rig.start().await;
    }
    pause(4000..5000).await;
    blogs.rest();
    let mut anew = 0;
    for (name, consumer) in consumers {
        let begun = Instant::now();
        // A poll that is under way may bring more after the mirror has settled: both are read together.
        let (mirror, store) = loop {
            let store = rig.reader.walk(name).await;
            let mirror = consumer.now();
            if mirror == store || begun.elapsed() > SETTLE {
                break (mirror, store);
            }
            tokio::time::sleep(Duration::from_millis(500)).await;
        };
        consumer.end();
        assert_eq!(mirror, store, "{name}: the mirror equals the store");
        anew += mirror.anew;
    }
    rig.process.end().await;
    println!("{restores} restores: mirrors were read anew {anew} times");
    assert!(anew > 0, "something was lost");
}
