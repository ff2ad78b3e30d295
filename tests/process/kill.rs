//! Kills a real everfeed at random moments under load, as often as `EVERFEED_KILLS` says, and then
//! holds it to its promises: no item lost, every cursor ever handed out still valid, the chain of
//! pushes unbroken. Between kills the store is compacted, and copied to another file and back, and
//! those are killed, too. When `EVERFEED_KILLS` says nothing, 15 kills have each of these after each
//! kind of end.
//!
//! `EVERFEED_KILLS=500 cargo test --test process kill:: -- --nocapture` runs it longer. The seed is
//! printed; `EVERFEED_SEED` sets it.

pub(crate) mod blogs;
pub(crate) mod consumer;
mod database;
mod forgetting;
pub(crate) mod reader;
mod resource;
mod restoring;
mod rig;
pub(crate) mod subscriber;

use blogs::Blogs;
use consumer::{Consumer, Mirror};
use rand::{RngExt as _, SeedableRng as _, rngs::StdRng};
use rig::Rig;
use std::{sync::Arc, time::Duration};
use subscriber::Subscriber;

/// Feeds under load, each on a loopback address of its own, since politeness is counted per host.
const FEEDS: usize = 6;
/// The longest wait when all is quiet.
const SETTLE: Duration = Duration::from_secs(60);

/// A number from the environment.
pub(crate) fn number(name: &str, default: u64) -> u64 {
    std::env::var(name)
        .ok()
        .and_then(|text| text.parse().ok())
        .unwrap_or(default)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_is_lost_however_often_it_is_killed() {
    let kills = number("EVERFEED_KILLS", 15);
    let seed = number("EVERFEED_SEED", u64::from(std::process::id()));
    println!("killing {kills} times, EVERFEED_SEED={seed}");
    let mut chance = StdRng::seed_from_u64(seed);
    let blogs = Arc::new(Blogs::start(FEEDS, seed).await);
    let subscriber = Arc::new(Subscriber::start().await);
    let mut rig = Rig::new(&blogs);
    rig.start().await;
    let consumers: Vec<_> = blogs
        .names()
        .map(|name| Consumer::start(&rig, name))
        .collect();
    for name in blogs.names() {
        rig.reader.subscribe(name, &subscriber.callback(name)).await;
    }
    for kill in 0..kills {
        // Nobody is polled in the first three seconds after a kill. After an orderly end they are at
        // once, and what changes nothing is on disk later.
        let run = Duration::from_millis(chance.random_range(50..4500));
        tokio::time::sleep(run).await;
        if kill % 3 == 2 {
            rig.restart().await;
        }
        rig.process.kill();
        let after = Duration::from_millis(chance.random_range(0..120));
        match kill % 5 {
            1 => rig.compact(after).await,
            3 => rig.copy_away_and_back(after).await,
            _ => {}
        }
        rig.start().await;
    }
    let figures = settled(&blogs, consumers, &subscriber, &rig).await;
    rig.process.end().await;
    figures.print(&format!("{kills} kills"));
}

/// Lets everything come to rest, and holds mirrors, store and pushes against what the feeds held.
async fn settled(
    blogs: &Blogs,
    consumers: Vec<Consumer>,
    subscriber: &Subscriber,
    rig: &Rig,
) -> Figures {
    blogs.rest();
    let mut figures = Figures::default();
    for (name, consumer) in blogs.names().zip(consumers) {
        let truth = blogs.truth(name);
        let mirror = consumer.settled(&truth, SETTLE).await;
        assert_eq!(
            mirror.contents(),
            truth,
            "{name}: a mirror by long poll holds what the feed held; {}",
            rig.state().await
        );
        let store = rig.reader.walk(name).await;
        assert_eq!(mirror, store, "{name}: the mirror equals the store");
        assert_eq!(mirror.anew, 0, "{name}: no generation began");
        let chain = subscriber.settled(name, &store, SETTLE).await;
        assert_eq!(
            chain.mirror.contents(),
            truth,
            "{name}: a mirror by push holds what the feed held"
        );
        assert_eq!(
            chain.outdated, 0,
            "{name}: no push came after its successor"
        );
        for cursor in mirror.cursors().iter().chain(&chain.cursors) {
            rig.reader.check_cursor(name, cursor, &store).await;
        }
        figures.add(&mirror, &chain);
    }
    figures
}

#[derive(Default)]
struct Figures {
    items: usize,
    pages: usize,
    pushes: usize,
    repeated: usize,
    cursors: usize,
}

impl Figures {
    fn print(&self, what: &str) {
        println!(
            "{what}: {} items, {} long-poll pages, {} pushes of which {} were sent again, {} cursors still valid",
            self.items, self.pages, self.pushes, self.repeated, self.cursors
        );
        assert!(self.pushes > 0 && self.items > FEEDS, "there was load");
    }

    fn add(&mut self, mirror: &Mirror, chain: &subscriber::Chain) {
        self.items += mirror.contents().len();
        self.pages += mirror.pages;
        self.pushes += chain.pushes;
        self.repeated += chain.repeated;
        self.cursors += mirror.cursors().len() + chain.cursors.len();
    }
}
