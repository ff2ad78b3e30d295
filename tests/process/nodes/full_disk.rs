//! A disk that is full under the database of three nodes: first no table can grow, then the log of
//! the database cannot be written, and it crashes.

use super::{FEEDS, World, checks::unexcused, cluster::NODES, worker};
use crate::kill::blogs::Blogs;
use http::Method;
use std::time::{Duration, Instant};
use testkit::{
    client::get,
    postgres::PostgresServer,
    wait::{GLANCE, until},
};
use tokio::time::sleep;

/// Letters in each post: each commit takes room.
const LETTERS: usize = 4000;

/// Looks at a node by which an outage that ends now and then would be found.
const LOOKS: u64 = 40;

/// The longest wait when all is quiet.
const SETTLE: Duration = Duration::from_secs(60);

/// The words by which everfeed names what is full.
const FULL: &str = "the disk of the database is full";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_full_disk_of_the_database_stops_what_is_new_and_loses_nothing() {
    let blogs = Blogs::of_long_posts(FEEDS, 1, LETTERS).await;
    let world = World::on(PostgresServer::start_on_small_disk, blogs, 1).await;
    let mirrors = world.follow();
    world.subscribe().await;
    world.is_polled().await;

    let cluster = &world.cluster;
    cluster.to_database(|server| server.fill_disk()).await;
    let filled = Instant::now();
    let works = worker(&world.blogs);
    until("the node that works says what is full", async || {
        let live = world.operator(works, Method::GET, "/live", "").await;
        live.status == 503 && live.text().contains(FULL)
    })
    .await;
    world.check_full(works).await;
    cluster.to_database(|server| server.empty_disk()).await;
    let emptied = Instant::now();
    world.is_polled().await;
    let again = emptied.elapsed();

    cluster.to_database(|server| server.fill_disk()).await;
    cluster
        .to_database(|server| server.crash_on_full_disk())
        .await;
    let crashed = Instant::now();
    cluster
        .to_database(|server| {
            server.end();
            server.empty_disk();
            server.start_again();
        })
        .await;
    world.is_polled().await;
    println!(
        "polled {again:.1?} after there was room, and {:.1?} after the crash",
        crashed.elapsed()
    );

    let stores = world.settled(mirrors).await;
    for (name, store) in &stores {
        let chain = world.subscriber.settled(name, store, SETTLE).await;
        assert_eq!(chain.mirror.contents(), store.contents(), "{name}");
        let strays = unexcused(&chain.strays, &[filled, crashed]);
        assert_eq!(strays, 0, "{name}: {:?}", chain.strays);
    }
    let logs = world.cluster.logs();
    assert!(!logs.contains("panicked"), "{logs}");
    let began = logs
        .matches("Nothing can be stored in the database")
        .count();
    assert!((1..=2 * NODES).contains(&began), "{began} outages: {logs}");
    world.cluster.stop().await;
}

impl World {
    /// All that is kept is served by every node, what is new is refused by each, and no publisher is
    /// to blame.
    async fn check_full(&self, works: usize) {
        for look in 0..LOOKS {
            for (no, node) in self.cluster.nodes.iter().enumerate() {
                let answer = node.reader.fresh_answer("blog-0", 1 + look).await;
                assert_eq!(answer.status(), 200, "node {no}: {}", self.cluster.logs());
            }
            sleep(GLANCE).await;
        }
        for (no, node) in self.cluster.nodes.iter().enumerate() {
            let callback = self.subscriber.callback("refused");
            let asked = node.reader.ask_hub("subscribe", "blog-0", &callback);
            assert_eq!(asked.await, Some(503), "node {no}: {}", self.cluster.logs());
            let put = r#"{"url": "http://127.0.0.1:9/rss.xml"}"#;
            let put = self.operator(no, Method::PUT, "/feeds/refused", put).await;
            assert_eq!(put.status, 503, "node {no}: {}", put.text());
            assert!(put.text().contains(FULL), "node {no}: {}", put.text());
        }
        let place = &self.cluster.nodes[works].place;
        let status = get(place.operator, "/status").await.json();
        assert_eq!(
            status["failing"].as_object().map(|it| it.len()),
            Some(0),
            "{status}"
        );
        let fault = status["store"]["fault"].as_str().unwrap_or_default();
        assert!(fault.contains(FULL), "{status}");
    }
}
