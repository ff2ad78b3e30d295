//! Tables that a newer everfeed brings up to date under three nodes of this one: as long as it only
//! adds, both run side by side; when it does more, this one stops and changes nothing.

use super::{World, worker};
use http::Method;
use nix::sys::signal::Signal;
use std::time::Duration;
use testkit::wait::until;

/// The longest wait when all is quiet.
const SETTLE: Duration = Duration::from_secs(60);

/// A next migration that only adds.
const EXPANDS: &str = "
    UPDATE meta SET number = number WHERE name = 'epoch';
    ALTER TABLE rows_items ADD COLUMN mood text NOT NULL DEFAULT 'calm';
    ALTER TABLE meta ADD COLUMN noted timestamptz DEFAULT now();
    CREATE TABLE moods (feed integer PRIMARY KEY, mood text NOT NULL);
    INSERT INTO meta (name) VALUES ('moods');
    UPDATE meta SET number = 90 WHERE name = 'schema'";

/// One behind it that changes what this everfeed uses.
const CONTRACTS: &str = "
    UPDATE meta SET number = number + 1 WHERE name = 'epoch';
    ALTER TABLE rows_feeds RENAME COLUMN value TO record;
    UPDATE meta SET number = 91 WHERE name IN ('schema', 'oldest_schema')";

/// The way back from that, as a dump of before would have it.
const RESTORED: &str = "
    ALTER TABLE rows_feeds RENAME COLUMN record TO value;
    UPDATE meta SET number = 90 WHERE name = 'schema';
    UPDATE meta SET number = 5 WHERE name = 'oldest_schema'";

/// Everything that was committed so far, as a digest.
const REVISIONS: &str = "SELECT md5(string_agg(rows_feeds::text, '' ORDER BY key)) FROM rows_feeds";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_newer_everfeed_that_only_adds_runs_beside_this_one_and_no_other_does() {
    let mut world = World::start(1).await;
    let mirrors = world.follow();
    world.subscribe().await;
    world.is_polled().await;

    world.cluster.migrate(EXPANDS);
    world.is_polled().await;
    let works = worker(&world.blogs);
    let node = &mut world.cluster.nodes[works];
    node.signal(Signal::SIGTERM);
    assert!(
        node.until_ended().await.success(),
        "{}",
        node.place.read("log")
    );
    world.is_polled().await;
    world.cluster.nodes[works].start();
    world.cluster.ready().await;
    let logs = world.cluster.logs();
    assert!(!logs.contains("ERROR"), "{logs}");

    world.cluster.migrate(CONTRACTS);
    let before = world.cluster.ask(REVISIONS);
    for (no, node) in world.cluster.nodes.iter().enumerate() {
        until("each node says that it cannot go on", async || {
            let live = world.operator(no, Method::GET, "/live", "").await;
            live.status == 503
                && live
                    .text()
                    .contains("a newer everfeed has changed the tables")
        })
        .await;
        let answer = node.reader.fresh_answer("blog-0", no as u64).await;
        assert_eq!(answer.status(), 503, "node {no}");
    }
    for node in &mut world.cluster.nodes {
        node.kill();
    }
    let node = &mut world.cluster.nodes[works];
    node.start();
    assert!(!node.until_ended().await.success());
    let log = node.place.read("log");
    assert!(log.contains("of a newer everfeed (number 91;"), "{log}");
    assert_eq!(world.cluster.ask(REVISIONS), before, "nothing was written");

    world.cluster.ask(RESTORED);
    for node in &mut world.cluster.nodes {
        node.start();
    }
    world.cluster.ready().await;
    let stores = world.settled(mirrors).await;
    for (name, store) in &stores {
        let chain = world.subscriber.settled(name, store, SETTLE).await;
        assert_eq!(chain.mirror.contents(), store.contents(), "{name}");
    }
    world.cluster.stop().await;
}
