//! The store in a database, as far as no other store does the same: its round trips, its lock, and what it makes of a database
//! that is somebody else's or goes away. Each test that cuts connections has a server of its own.

use super::{
    Connections, DatabaseTime, Postgres,
    database::{Outcome, SERVER},
    node_lease::KnownHead,
    rows::schema,
    wire::address,
};
use crate::{
    clock::{Clock as _, Manual},
    feed::{
        item::Reason,
        order::Order,
        page::PageQuery,
        position::Position,
        reconcile::{Change, Delete},
        stamp::Stamp,
    },
    store::{
        CatalogStore as _, Feeds as _, Groups as _, Remedy, StoreError, Subscription,
        Subscriptions as _, WantedGroup, Watched as _,
        conformance::{
            postgres_server::{execute, fresh_database, on_a_thread, open},
            rig::{NAMESPACE, START, add, all, commit, delete, edit, ids, ids_of},
            subscriptions::{lease, new},
        },
        database_url::DatabaseUrl,
        subscriptions::Lease,
    },
};
use nix::{
    sys::signal::{self, Signal},
    unistd::Pid,
};
use std::{
    io::{Read as _, Write as _},
    net::Shutdown,
    os::unix::net::{UnixListener, UnixStream},
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    thread,
    time::Duration,
};
use testkit::{postgres::PostgresServer, wait::until};

mod nodes;
mod pooler;
mod standby;

fn clock() -> Arc<Manual> {
    Arc::new(Manual::at(START.micros()))
}

fn check_refused(url: &DatabaseUrl, expect: &str) {
    let told = open(url, clock()).err().expect("it is refused").to_string();
    assert!(told.contains(expect), "{told}");
}

#[tokio::test]
async fn an_ordinary_commit_takes_two_round_trips() {
    let store = open(&fresh_database(), clock()).unwrap();
    let feed = store.register("blog", NAMESPACE).await.unwrap().no;
    let mut record = store.feed(feed).await.unwrap();
    for n in 0..4 {
        let before = round_trips(&store);
        record = store
            .commit(commit(&record, vec![add(n)]))
            .await
            .unwrap()
            .feed;
        let taken = round_trips(&store) - before;
        // The third item is the one from which on words are indexed: those before are read.
        let expect = if n == 2 { 2..=4 } else { 2..=2 };
        assert!(expect.contains(&taken), "commit {n} took {taken}");
    }
}

#[tokio::test]
async fn a_commit_that_moves_groups_takes_three_round_trips() {
    let store = open(&fresh_database(), clock()).unwrap();
    let mut record = store.register("blog", NAMESPACE).await.unwrap();
    for name in ["all", "some"] {
        let group = store.register(name, name).await.unwrap().no;
        let wanted = WantedGroup {
            metadata: Arc::default(),
            members: vec![(record.no, "http://blog.example/".into())],
        };
        store.set_group(group, wanted).await.unwrap();
        while !store.advance_group(group, 10).await.unwrap().is_settled {}
    }
    let mut taken = Vec::new();
    for change in [add(1), add(2), edit(1, "another"), delete(2)] {
        let before = round_trips(&store);
        let receipt = store.commit(commit(&record, vec![change])).await.unwrap();
        assert_eq!(receipt.groups.len(), 2);
        record = receipt.feed;
        taken.push(round_trips(&store) - before);
    }
    assert_eq!(taken, [3, 3, 3, 3]);
}

#[tokio::test]
async fn readers_behind_subscriptions_are_counted_in_one_round_trip() {
    let store = open(&fresh_database(), clock()).unwrap();
    let feed = store.register("blog", NAMESPACE).await.unwrap().no;
    let asked = async |now: Stamp| {
        let before = round_trips(&store);
        let readers = store.count_active(feed, now).await.unwrap();
        (readers, round_trips(&store) - before)
    };
    assert_eq!(asked(START).await, (0, 1));
    for n in 1..=4 {
        let made = store.subscribe(new(feed, &format!("http://a/{n}"))).await;
        let made = made.unwrap();
        let lease = Lease {
            until: START.plus_secs(90),
            ..lease()
        };
        let verified = Subscription {
            lease: Some(lease),
            ..made
        };
        store.change_subscription(verified, None).await.unwrap();
        assert_eq!(asked(START.plus_secs(61)).await, (n, 1));
    }
    assert_eq!(asked(START.plus_secs(130)).await, (0, 1));
    assert_eq!(asked(START.plus_secs(89)).await, (4, 1));
}

fn round_trips(store: &Postgres) -> u64 {
    store.database.round_trips.load(Ordering::SeqCst)
}

#[tokio::test]
async fn a_page_takes_one_round_trip() {
    let store = open(&fresh_database(), clock()).unwrap();
    let feed = store.register("blog", NAMESPACE).await.unwrap();
    let changes = (0..9).map(add).collect();
    store.commit(commit(&feed, changes)).await.unwrap();
    for order in [
        Order::MODIFIED,
        Order::MODIFIED_REVERSE,
        Order::CREATED,
        Order::CREATED_REVERSE,
    ] {
        let mut query = PageQuery {
            max: 5,
            ..PageQuery::all(feed.no, order)
        };
        // The first five, the last four, and nothing behind them.
        for expect in [5, 4, 0] {
            let before = round_trips(&store);
            let page = store.page(query.clone()).await.unwrap();
            assert_eq!(page.items.len(), expect, "{order}");
            assert_eq!(round_trips(&store) - before, 1, "{order} {expect}");
            query.since = Some(Position::of_cursor(&page.last_cursor));
        }
    }
}

/// A row that cannot be read is told with its item, and can be removed for good.
#[tokio::test]
async fn a_damaged_item_is_named_and_forgotten() {
    let database = fresh_database();
    let store = open(&database, clock()).unwrap();
    let feed = store.register("blog", NAMESPACE).await.unwrap();
    let receipt = store.commit(commit(&feed, vec![add(1), add(2)])).await;
    let receipt = receipt.unwrap();
    execute(
        &database,
        "UPDATE rows_items SET value = '\\x00' WHERE key = (SELECT key FROM rows_items ORDER BY key LIMIT 1)",
    );
    let read = store.page(PageQuery::all(feed.no, Order::MODIFIED)).await;
    let told = read.unwrap_err().to_string();
    let (damaged, _) = receipt.stamped[0];
    assert!(told.contains(&damaged.to_string()), "{told}");
    let Change::Delete(of_any) = delete(1) else {
        unreachable!("it is a deletion")
    };
    let forgotten = Change::Delete(Delete {
        id: damaged,
        reason: Reason::Forgotten,
        ..of_any
    });
    store
        .commit(commit(&receipt.feed, vec![forgotten]))
        .await
        .unwrap();
    let page = store.page(PageQuery::all(feed.no, Order::MODIFIED)).await;
    assert_eq!(page.unwrap().items.len(), 2);
}

/// A server that crashed gives numbers of transactions again that were not on disk: one that is
/// said to be committed may be of somebody else.
#[tokio::test]
async fn the_number_of_a_transaction_proves_nothing_after_the_server_began_anew() {
    let server = PostgresServer::start();
    let store = open(&DatabaseUrl::new(server.url()), clock()).unwrap();
    let feed = store.register("blog", NAMESPACE).await.unwrap();
    let receipt = store.commit(commit(&feed, vec![add(1)])).await.unwrap();
    let there = KnownHead::of(&receipt.feed);
    let lost = KnownHead {
        rev: there.rev + 1,
        ..there
    };
    let committed = server.ask("SELECT pg_current_xact_id()");
    let began = server.ask(&format!("SELECT {SERVER}"));
    let told = |server: &str, moved: &[KnownHead]| {
        let moved: Vec<_> = moved.iter().map(|known| (feed.no, *known)).collect();
        on_a_thread(|| store.database.outcome(&committed, server, &moved))
    };
    assert_eq!(told(&began, &[lost]), Outcome::Committed);
    assert_eq!(told("another time", &[there]), Outcome::Committed);
    assert_eq!(told("another time", &[lost]), Outcome::Aborted);
    assert_eq!(told("another time", &[]), Outcome::Unknown);
    // It begins anew with the same process when one of those below it dies.
    let process =
        server.ask("SELECT pid FROM pg_stat_activity WHERE application_name = 'everfeed' LIMIT 1");
    let postmaster = "SELECT pg_postmaster_start_time()";
    let before = server.ask(postmaster);
    signal::kill(Pid::from_raw(process.parse().unwrap()), Signal::SIGKILL).unwrap();
    until("it is there again", async || {
        matches!(told(&began, &[lost]), Outcome::Aborted)
    })
    .await;
    assert_eq!(server.ask(postmaster), before);
    assert_eq!(told(&began, &[there]), Outcome::Committed);
}

#[tokio::test]
async fn one_process_at_a_time_serves_a_database() {
    let database = fresh_database();
    let store = open(&database, clock()).unwrap();
    check_refused(&database, "another everfeed serves the database");
    assert!(!store.ended_uncleanly());
    drop(store);
    let store = open(&database, clock()).unwrap();
    assert!(!store.ended_uncleanly(), "it ended in order");
    // Whoever takes over begins an epoch, in which no commit of this one counts.
    store.register("blog", NAMESPACE).await.unwrap();
    execute(
        &database,
        "UPDATE meta SET number = number + 1 WHERE name = 'epoch'",
    );
    let fenced = store.register("other", "other").await.unwrap_err();
    assert!(fenced.to_string().contains("has taken over"), "{fenced}");
    assert!(store.condition().outage().is_some());
}

#[tokio::test]
async fn tables_of_others_and_of_newer_everfeeds_are_refused() {
    let database = fresh_database();
    execute(&database, "CREATE TABLE items (id integer)");
    check_refused(&database, "not everfeed's");
    let database = fresh_database();
    drop(open(&database, clock()).unwrap());
    execute(
        &database,
        "UPDATE meta SET number = 99 WHERE name = 'schema'",
    );
    // A newer one says which older ones may run beside it.
    drop(open(&database, clock()).unwrap());
    execute(
        &database,
        "UPDATE meta SET number = 99 WHERE name = 'oldest_schema'",
    );
    check_refused(&database, "newer everfeed");
    execute(
        &database,
        "UPDATE meta SET number = 4 WHERE name = 'oldest_schema'",
    );
    drop(open(&database, clock()).unwrap());
    execute(&database, "ALTER TABLE meta RENAME COLUMN number TO count");
    check_refused(&database, "not everfeed's");
}

#[tokio::test]
async fn a_migration_that_meets_a_change_crosswise_is_begun_again() {
    let server = PostgresServer::start();
    let database = DatabaseUrl::new(server.url());
    // Tables of before the last migrations.
    for text in &schema::MIGRATIONS[..2] {
        server.ask(text);
    }
    server.ask("INSERT INTO meta (name, number) VALUES ('schema', 2)");
    let held = database.clone();
    // It has what the migration waits for, and then waits for what the migration has. The server ends
    // whoever looks first: that is the migration.
    let crossing = thread::spawn(move || {
        execute(
            &held,
            "BEGIN; SET LOCAL deadlock_timeout = '30s'; \
             INSERT INTO meta (name) VALUES ('sealed'); SELECT pg_sleep(0.5); \
             UPDATE meta SET number = number WHERE name = 'epoch'; ROLLBACK",
        );
    });
    let sleeps = "SELECT count(*) FROM pg_stat_activity WHERE wait_event = 'PgSleep'";
    until("the change is under way", async || {
        server.ask(sleeps) == "1"
    })
    .await;
    let store = open(&database, clock()).unwrap();
    crossing.join().unwrap();
    store.register("blog", NAMESPACE).await.unwrap();
    assert_eq!(
        server.ask("SELECT number FROM meta WHERE name = 'schema'"),
        schema::SCHEMA.to_string()
    );
}

#[test]
fn what_is_wrong_with_a_connection_is_said_without_secrets() {
    let server = PostgresServer::start();
    server.ask("CREATE ROLE guest LOGIN");
    let socket = server.folder().display().to_string().replace('/', "%2F");
    let at = |user: &str, database: &str, more: &str| {
        DatabaseUrl::new(format!(
            "postgresql://{user}:hunter2@{socket}/{database}{more}"
        ))
    };
    for (url, expect) in [
        (at("everfeed", "nowhere", ""), "createdb"),
        (at("nobody", "postgres", ""), "SQLSTATE 28000"),
        (
            at("guest", "postgres", ""),
            "make it the owner of the database",
        ),
        (
            at("everfeed", "postgres", "?options=-csearch_path%3Dnone"),
            "no schema",
        ),
        (
            DatabaseUrl::new("postgresql://u:hunter2@127.0.0.1:9/d"),
            "cannot be reached",
        ),
        (
            DatabaseUrl::new("postgresql://u:hunter2@h/d?sslmode=prefer"),
            "sslmode",
        ),
    ] {
        let told = open(&url, clock())
            .err()
            .expect("it is refused")
            .to_string();
        assert!(told.contains(expect), "{told}");
        assert!(!told.contains("hunter2"), "{told}");
    }
}

/// A socket before that of a server: it cuts connections around COMMIT.
struct Cutter {
    folder: tempfile::TempDir,
    /// COMMITs that are still cut, and how: an odd one is passed on first.
    cuts: Arc<AtomicUsize>,
}

impl Cutter {
    fn before(server: &Path) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let listener = UnixListener::bind(folder.path().join(".s.PGSQL.5432")).unwrap();
        let cuts = Arc::new(AtomicUsize::new(0));
        let (kept, target) = (cuts.clone(), server.join(".s.PGSQL.5432"));
        thread::spawn(move || {
            for client in listener.incoming().flatten() {
                let (cuts, target) = (kept.clone(), target.clone());
                thread::spawn(move || pass_on(client, &target, &cuts));
            }
        });
        Self { folder, cuts }
    }

    fn url(&self) -> DatabaseUrl {
        let socket = self.folder.path().display().to_string().replace('/', "%2F");
        DatabaseUrl::new(format!("postgresql://everfeed@{socket}/postgres"))
    }
}

fn pass_on(mut client: UnixStream, target: &PathBuf, cuts: &AtomicUsize) {
    let mut server = UnixStream::connect(target).unwrap();
    let (mut back, mut answers) = (client.try_clone().unwrap(), server.try_clone().unwrap());
    thread::spawn(move || std::io::copy(&mut answers, &mut back));
    let mut bytes = vec![0; 64 << 10];
    while let Ok(length @ 1..) = client.read(&mut bytes) {
        let has_commit = bytes[..length].windows(6).any(|word| word == b"COMMIT");
        let cut = has_commit
            && cuts
                .fetch_update(Ordering::SeqCst, Ordering::SeqCst, |left| {
                    left.checked_sub(1)
                })
                .is_ok();
        if cut {
            let is_passed_on = cuts.load(Ordering::SeqCst).is_multiple_of(2);
            // Nothing of the answer arrives.
            client.shutdown(Shutdown::Both).unwrap();
            if is_passed_on {
                server.write_all(&bytes[..length]).unwrap();
            }
            return;
        }
        server.write_all(&bytes[..length]).unwrap();
    }
}

#[tokio::test]
async fn a_commit_whose_connection_was_cut_is_read_back_and_made_once() {
    let server = PostgresServer::start();
    let cutter = Cutter::before(server.folder());
    let store = open(&cutter.url(), clock()).unwrap();
    let feed = store.register("blog", NAMESPACE).await.unwrap().no;
    let mut record = store.feed(feed).await.unwrap();
    for n in 0..6 {
        // Once it is committed and nobody is told, once it is not: then it is done again.
        cutter.cuts.store(1 + (n as usize) % 2, Ordering::SeqCst);
        let receipt = store.commit(commit(&record, vec![add(n)])).await.unwrap();
        assert_eq!(receipt.feed.rev, record.rev + 1);
        record = receipt.feed;
    }
    let page = store.page(all(feed, Order::MODIFIED)).await.unwrap();
    assert_eq!(ids(&page), ids_of(&[0, 1, 2, 3, 4, 5]));
    assert_eq!(store.feed(feed).await.unwrap(), record);
}

#[tokio::test]
async fn while_the_database_is_away_that_is_said_and_afterwards_all_goes_on() {
    let mut server = PostgresServer::start();
    let url = DatabaseUrl::new(server.url());
    let store = open(&url, clock()).unwrap();
    let feed = store.register("blog", NAMESPACE).await.unwrap();
    server.end();
    let away = store.feed(feed.no).await.unwrap_err();
    assert!(matches!(away, StoreError::Away(_)), "{away:?}");
    let condition = store.condition();
    let remedy = condition.outage().map(|outage| outage.remedy);
    assert_eq!(remedy, Some(Remedy::ComesBack));
    let away = store.commit(commit(&feed, vec![add(1)])).await.unwrap_err();
    assert!(away.is_away(), "{away:?}");
    server.start_again();
    until("it goes on", async || store.condition().outage().is_none()).await;
    store.commit(commit(&feed, vec![add(1)])).await.unwrap();
    assert_eq!(store.subscriptions(None, None, 9).await.unwrap(), []);
    // Sessions that an operator ends are opened anew.
    server.ask("SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity WHERE application_name = 'everfeed'");
    assert_eq!(store.feed(feed.no).await.unwrap().items.total, 1);
}

#[tokio::test]
async fn t_is_the_time_of_the_database() {
    let database = fresh_database();
    let behind = clock();
    let store = on_a_thread(|| Postgres::open(&database, behind.clone(), DatabaseTime::OfDatabase));
    let store = store.unwrap();
    let feed = store.register("blog", NAMESPACE).await.unwrap();
    let receipt = store.commit(commit(&feed, vec![add(1)])).await.unwrap();
    let (_, t) = receipt.stamped[0];
    assert!(t.micros() > behind.now_us(), "{t:?}");
}

#[tokio::test]
async fn a_host_that_takes_a_connection_and_says_nothing_keeps_nobody_from_the_next_one() {
    let server = PostgresServer::start();
    let silent = tempfile::tempdir().unwrap();
    let _never_accepts = UnixListener::bind(silent.path().join(".s.PGSQL.5432")).unwrap();
    let socket = |folder: &Path| folder.display().to_string().replace('/', "%2F");
    let hosts = format!("{},{}", socket(silent.path()), socket(server.folder()));
    let url = DatabaseUrl::new(format!("postgresql://everfeed@{hosts}/postgres"));
    let mut connections = Connections::new(address::address(&url).unwrap());
    connections.connect_max = Duration::from_millis(500);
    assert!(connections.connect().await.is_err(), "the first is silent");
    // It begins with either from now on.
    until("the second is reached", async || {
        connections.connect().await.is_ok()
    })
    .await;
}
