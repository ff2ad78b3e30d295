//! A primary with a standby below two nodes: the one ends and the other is promoted, with all that
//! was committed and without the last of it.

use super::{
    clock,
    nodes::{duty, is_sound},
};
use crate::{
    feed::record::FeedRecord,
    store::{
        CatalogStore as _, Duty, Feeds as _, StoreError, WakeMode, Watched as _,
        conformance::{
            postgres_server::open_node,
            rig::{NAMESPACE, add, commit},
        },
        database_url::DatabaseUrl,
        postgres::Postgres,
    },
};
use std::cell::Cell;
use testkit::{postgres::PostgresServer, wait::until};

/// Two nodes on whichever of two servers takes changes.
struct Pair {
    primary: PostgresServer,
    standby: PostgresServer,
    nodes: [Postgres; 2],
}

impl Pair {
    fn start() -> Self {
        let primary = PostgresServer::start();
        let standby = PostgresServer::standby_of(&primary);
        let url = DatabaseUrl::new(primary.url_with(&standby));
        let node = || open_node(&url, clock(), WakeMode::Notify);
        let nodes = [node(), node()];
        Self {
            primary,
            standby,
            nodes,
        }
    }

    fn worker(&self) -> Option<&Postgres> {
        self.nodes.iter().find(|node| duty(node) == Duty::Working)
    }

    async fn add(&self, record: &FeedRecord, n: u32) -> Result<FeedRecord, StoreError> {
        until("one works", async || self.worker().is_some()).await;
        let worker = self.worker().expect("one works");
        let committed = worker.commit(commit(record, vec![add(n)])).await;
        committed.map(|receipt| receipt.feed)
    }

    /// The primary ends as by a crash, and the standby is promoted.
    async fn fail_over(&mut self) {
        self.primary.end();
        assert_eq!(self.standby.ask("SELECT pg_promote()"), "t");
        for node in &self.nodes {
            is_sound(node).await;
        }
    }
}

#[tokio::test]
async fn a_synchronous_standby_that_is_promoted_goes_on_with_all_that_was_committed() {
    let mut pair = Pair::start();
    let primary = &pair.primary;
    primary.ask("ALTER SYSTEM SET synchronous_standby_names = '*'");
    primary.ask("SELECT pg_reload_conf()");
    until("it is synchronous", async || {
        primary.ask("SELECT count(*) FROM pg_stat_replication WHERE sync_state = 'sync'") == "1"
    })
    .await;
    let record = pair.nodes[0].register("blog", NAMESPACE).await.unwrap();
    let mut record = pair.add(&record, 1).await.unwrap();
    record = pair.add(&record, 2).await.unwrap();
    pair.fail_over().await;
    // The new primary has no standby to wait for.
    pair.standby
        .ask("ALTER SYSTEM RESET synchronous_standby_names");
    pair.standby.ask("SELECT pg_reload_conf()");
    record = pair.add(&record, 3).await.unwrap();
    assert_eq!(record.items.total, 3);
    for node in &pair.nodes {
        let found = node.feed(record.no).await.unwrap();
        assert_eq!((&found, found.lineage.lost.len()), (&record, 0));
        assert!(node.restored().is_none());
    }
}

#[tokio::test]
async fn a_standby_that_lacks_the_last_commits_begins_a_new_generation_when_it_is_promoted() {
    let mut pair = Pair::start();
    let record = pair.nodes[0].register("blog", NAMESPACE).await.unwrap();
    let record = pair.add(&record, 1).await.unwrap();
    let far = pair.primary.ask("SELECT pg_current_wal_lsn()");
    until("the standby has it", async || {
        let asked = format!("SELECT pg_last_wal_replay_lsn() >= '{far}'::pg_lsn");
        pair.standby.ask(&asked) == "t"
    })
    .await;
    pair.standby.ask("ALTER SYSTEM SET primary_conninfo = ''");
    pair.standby.ask("SELECT pg_reload_conf()");
    until("the standby is cut off", async || {
        pair.primary.ask("SELECT count(*) FROM pg_stat_replication") == "0"
    })
    .await;
    let lost = pair.add(&record, 2).await.unwrap();
    pair.fail_over().await;
    until("all is told", async || {
        let all_told = pair.nodes.iter().all(|node| node.restored().is_some());
        all_told && pair.worker().is_some()
    })
    .await;
    for node in &pair.nodes {
        let found = node.feed(record.no).await.unwrap();
        assert_eq!((found.items.total, found.lineage.lost.len()), (1, 1));
        assert!(found.lineage.generation() > lost.last_t, "{found:?}");
    }
    let found = pair.nodes[0].feed(record.no).await.unwrap();
    // The other node may take the work over in between.
    let added = Cell::new(0);
    until("the node that works adds an item", async || {
        let record = pair.add(&found, 3).await;
        added.set(record.map_or(0, |record| record.items.total));
        added.get() > 0
    })
    .await;
    assert_eq!(added.get(), 2);
}
