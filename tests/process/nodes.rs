//! Three everfeeds on one database, and faults of all of them, as many as `EVERFEED_NODE_FAULTS`
//! says (50 when it says nothing). Whoever follows a feed from node to node sees all of it, in
//! order, and publishers and subscribers see one everfeed.
//!
//! `EVERFEED_NODE_FAULTS=1000 cargo test --test process nodes:: -- --nocapture` runs it longer. The
//! seed is printed; `EVERFEED_SEED` sets it. `EVERFEED_NODE_LOG` sets what the nodes log.

mod again;
mod checks;
mod cluster;
mod deeds;
mod faults;
mod fence;
mod figures;
mod files;
mod full_disk;
mod mirrors;
mod proxy;
mod versions;

use crate::kill::{
    blogs::Blogs,
    consumer::Mirror,
    number,
    subscriber::{Chain, Subscriber},
};
use checks::{too_soon, unexcused};
use cluster::{Cluster, NODES, node_of, on_all};
use deeds::{Deeds, Done, PRIVATE, opens};
use faults::Campaign;
use http::Method;
use mirrors::{RovingMirror, Way};
use std::{
    collections::BTreeMap,
    sync::Arc,
    time::{Duration, Instant},
};
use testkit::{
    client::{Answer, ask},
    postgres::PostgresServer,
    publisher::{Publisher, rss},
    wait::{GLANCE, until},
};
use tokio::time::sleep;

/// Feeds under load.
const FEEDS: usize = 3;

/// The longest wait when all is quiet.
const SETTLE: Duration = Duration::from_secs(60);

/// A request of a subscriber or an operator comes with every so many faults.
const DEED_EVERY: u64 = 4;

/// After every so many faults the next one waits until the feeds are polled, but not for ever.
const WORK_EVERY: u64 = 5;
const WORK_MAX: Duration = Duration::from_secs(20);

/// Cursors of a feed that are tried at every node; the others are tried at one.
const CURSORS_EVERYWHERE: usize = 10;

/// Time after which all nodes know what an operator said to one. The aim is 2 s on a quiet machine.
const SPREAD_MAX: Duration = Duration::from_secs(10);

/// All that goes on.
struct World {
    blogs: Arc<Blogs>,
    subscriber: Arc<Subscriber>,
    cluster: Cluster,
    campaign: Campaign,
    deeds: Deeds,
    quiet: Publisher,
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_is_lost_whichever_node_or_line_fails() {
    let faults = number("EVERFEED_NODE_FAULTS", 50);
    let seed = number("EVERFEED_SEED", u64::from(std::process::id()));
    println!("{faults} faults, EVERFEED_SEED={seed}");
    let mut world = World::start(seed).await;
    let mirrors = world.follow();
    world.subscribe().await;
    let names: Vec<_> = world.blogs.names().map(str::to_owned).collect();
    for fault in 0..faults {
        world.campaign.pause(&mut world.cluster).await;
        let worker = worker(&world.blogs);
        world.campaign.inflict(&mut world.cluster, worker).await;
        if fault % DEED_EVERY == 1 {
            let (node, feed) = (fault as usize % NODES, fault as usize % FEEDS);
            world.deeds.begin(node, &names[feed]);
        }
        if fault % WORK_EVERY == WORK_EVERY - 1 {
            world.work(Instant::now()).await;
        }
    }
    let begun = Instant::now();
    world.campaign.heal_all(&mut world.cluster).await;
    let healed = begun.elapsed();
    println!(
        "healed within {healed:.1?}; starts in vain: {:#?}",
        world.campaign.fell
    );
    let done = world.deeds.done().await;
    let stores = world.settled(mirrors).await;
    world.check_polls();
    world.check_pushes(&done, &stores).await;
    world.check_deeds(&done).await;
    world.check_again().await;
    let logs = world.cluster.logs();
    assert!(!logs.contains("panicked"), "{logs}");
    world.cluster.stop().await;
}

/// The node that polled last.
fn worker(blogs: &Blogs) -> usize {
    let last = blogs.names().filter_map(|name| blogs.polls(name).pop());
    last.max_by_key(|poll| poll.at)
        .map_or(0, |poll| node_of(&poll.by))
}

impl World {
    async fn start(seed: u64) -> Self {
        Self::on(PostgresServer::start, Blogs::start(FEEDS, seed).await, seed).await
    }

    /// These blogs on this database.
    async fn on(server: fn() -> PostgresServer, blogs: Blogs, seed: u64) -> Self {
        let blogs = Arc::new(blogs);
        let subscriber = Arc::new(Subscriber::start().await);
        let quiet = Publisher::of(|_| rss(3)).await;
        let quiet_url = quiet.url("/rss.xml");
        let private = testkit::place::feed(PRIVATE, &quiet_url, "access = \"private\"");
        let cluster = Cluster::on(server, &(blogs.settings() + &private)).await;
        Self {
            deeds: Deeds::new(&cluster, &subscriber, &quiet_url),
            campaign: Campaign::new(seed),
            blogs,
            subscriber,
            cluster,
            quiet,
        }
    }

    /// A mirror of each feed that goes from node to node, and of the first one two that stay.
    fn follow(&self) -> Vec<RovingMirror> {
        let first = self.blogs.names().next().unwrap();
        let roving = self.blogs.names().map(|name| (name, Way::EachElsewhere));
        let all = roving.chain([(first, Way::LongPoll), (first, Way::Stream)]);
        all.map(|(name, way)| RovingMirror::start(&self.cluster.nodes, name, way))
            .collect()
    }

    /// Subscribes to each feed, at one node after the other.
    async fn subscribe(&self) {
        for (node, name) in self.blogs.names().enumerate() {
            let callback = self.subscriber.callback(name);
            let reader = &self.cluster.nodes[node % NODES].reader;
            reader.subscribe(name, &callback).await;
        }
    }

    /// Waits until each feed is polled once more.
    async fn is_polled(&self) {
        let now = Instant::now();
        until("all feeds are polled", async || self.polled_since(now) > 0).await;
    }

    /// The answer of a node to the operator.
    async fn operator(&self, node: usize, method: Method, path: &str, body: &str) -> Answer {
        let place = &self.cluster.nodes[node].place;
        let headers = [("content-type", "application/json")];
        let answer = ask(place.operator, method, path, &headers, body).await;
        answer.expect("it answers")
    }

    /// Waits until each feed has been polled since then, while faults heal.
    async fn work(&mut self, since: Instant) {
        while self.polled_since(since) == 0 && since.elapsed() < WORK_MAX {
            self.campaign.heal(&mut self.cluster).await;
            sleep(GLANCE).await;
        }
    }

    /// The polls since then of the feed that was polled least.
    fn polled_since(&self, then: Instant) -> usize {
        let since = |name| {
            let polls = self.blogs.polls(name);
            polls.iter().filter(|poll| poll.at > then).count()
        };
        self.blogs.names().map(since).min().unwrap_or_default()
    }

    /// Lets mirrors come to rest, and holds them against the nodes and what the feeds held. The
    /// answer is the store of each feed.
    async fn settled(&self, mirrors: Vec<RovingMirror>) -> BTreeMap<String, Mirror> {
        self.blogs.rest();
        let mut stores = BTreeMap::new();
        for mirror in mirrors {
            let (feed, way) = (mirror.feed.clone(), mirror.way);
            let what = format!("{feed} by {way:?}");
            let truth = self.blogs.truth(&feed);
            let seen = mirror.settled(&truth, SETTLE).await;
            assert!(
                seen.problems.is_empty(),
                "{what}: {:#?}\n{}\n{}",
                seen.problems,
                self.campaign,
                self.cluster.logs()
            );
            assert_eq!(
                seen.mirror.contents(),
                truth,
                "{what}\n{}\n{}",
                self.campaign,
                self.cluster.logs()
            );
            for (no, node) in self.cluster.nodes.iter().enumerate() {
                let store = node.reader.walk(&feed).await;
                assert_eq!(seen.mirror, store, "{what} and node {no}");
            }
            self.check_cursors(&feed, &seen.mirror).await;
            println!(
                "{what}: {} items, {} pages, {} requests without an answer",
                truth.len(),
                seen.mirror.pages,
                seen.unanswered
            );
            stores.insert(feed, seen.mirror);
        }
        stores
    }

    /// Each cursor that was ever handed out leads to what came behind it.
    async fn check_cursors(&self, feed: &str, mirror: &Mirror) {
        let nodes = &self.cluster.nodes;
        let every = mirror.cursors().len().div_ceil(CURSORS_EVERYWHERE).max(1);
        for (no, cursor) in mirror.cursors().iter().enumerate() {
            let at = if no % every == 0 {
                0..NODES
            } else {
                no % NODES..no % NODES + 1
            };
            for node in &nodes[at] {
                node.reader.check_cursor(feed, cursor, mirror).await;
            }
        }
    }

    /// Publishers see the pace of one everfeed.
    fn check_polls(&self) {
        let costly = self.campaign.costly();
        for name in self.blogs.names() {
            let polls = self.blogs.polls(name);
            let soon = too_soon(&polls);
            println!(
                "{name}: {} polls, {} too soon, of which {} by another node than the one before",
                polls.len(),
                soon.times.len(),
                soon.by_others
            );
            let without = unexcused(&soon.times, &costly);
            assert_eq!(without, 0, "{name}: {soon:?}\n{}", self.campaign);
            assert!(polls.len() > costly.len() / 5, "{name} was polled");
        }
    }

    /// Subscribers get each change in order, and no push more than once for a fault.
    async fn check_pushes(&self, done: &Done, stores: &BTreeMap<String, Mirror>) {
        let first = stores.keys().map(|name| (name.clone(), name.clone()));
        for (feed, callback) in first.chain(done.subscribed.iter().cloned()) {
            let chain = self
                .subscriber
                .settled(&callback, &stores[&feed], SETTLE)
                .await;
            self.check_chain(&callback, &chain);
            assert_eq!(
                chain.mirror.contents(),
                stores[&feed].contents(),
                "{callback}: a mirror by push holds what the feed held"
            );
            for (no, cursor) in chain.cursors.iter().enumerate() {
                let node = &self.cluster.nodes[no % NODES];
                node.reader
                    .check_cursor(&feed, cursor, &stores[&feed])
                    .await;
            }
        }
        for callback in &done.left {
            let chain = self.subscriber.chain(callback);
            self.check_chain(callback, &chain);
            assert!(
                !chain.is_subscribed && chain.unasked <= 2,
                "{callback}: {}",
                chain.unasked
            );
        }
    }

    fn check_chain(&self, callback: &str, chain: &Chain) {
        println!(
            "{callback}: {} pushes, {} of them strays, of which {} were outdated",
            chain.pushes,
            chain.strays.len(),
            chain.outdated
        );
        assert!(chain.faults.is_empty(), "{callback}: {:#?}", chain.faults);
        let without = unexcused(&chain.strays, &self.campaign.costly());
        assert_eq!(
            without, 0,
            "{callback}: {:?}\n{}",
            chain.strays, self.campaign
        );
    }

    /// All nodes know what operators said to one of them.
    async fn check_deeds(&mut self, done: &Done) {
        let nodes = &self.cluster.nodes;
        for feed in &done.feeds {
            let path = format!("/feeds/{feed}.json");
            for node in nodes {
                node.place.answers(&path, 200).await;
            }
        }
        for (user, token) in &done.tokens {
            on_all(nodes, user, async |node| opens(node, token).await).await;
        }
        let Some((user, token)) = done.tokens.first() else {
            return;
        };
        let spread = self.deeds.spread(nodes, user, token).await;
        println!(
            "all nodes know a new feed after {:.1?}, a removed user after {:.1?}",
            spread[0], spread[1]
        );
        assert!(spread.iter().all(|time| *time < SPREAD_MAX), "{spread:?}");
    }
}
