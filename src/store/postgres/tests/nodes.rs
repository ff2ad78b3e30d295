//! Several processes on one database, as stores in one process: who works, what the others learn,
//! and what becomes of one that died, stands still or is cut off.

use super::{Cutter, clock};
use crate::{
    feed::record::{FeedNo, Head},
    store::{
        AccountStore as _, CatalogStore as _, Duty, Feeds as _, Moves, NodeFace, NodesStatus,
        Question, SealKey, StoreError, Upkeep as _, WakeMode, Watched as _,
        conformance::{
            postgres_server::{
                execute, fresh_database, fresh_schema, on_a_thread, open, open_node,
            },
            rig::{NAMESPACE, add, commit},
        },
        database_url::DatabaseUrl,
        postgres::{DatabaseTime, Postgres, schema::SERVING_LOCK},
    },
};
use bytes::Bytes;
use std::{
    cell::Cell, collections::HashMap, os::unix::fs::PermissionsExt as _, thread, time::Duration,
};
use testkit::{
    postgres::PostgresServer,
    wait::{PATIENCE, until},
};
use tokio::{sync::mpsc, time::timeout};

fn node(database: &DatabaseUrl) -> Postgres {
    open_node(database, clock(), WakeMode::Notify)
}

pub(super) fn duty(node: &Postgres) -> Duty {
    *node.nodes().unwrap().duty().borrow()
}

pub(super) async fn works(node: &Postgres) {
    until("it works", async || duty(node) == Duty::Working).await;
}

async fn follows(node: &Postgres) {
    until("it follows", async || duty(node) == Duty::Following).await;
}

/// A node of which only the connections are gone, as after a kill.
fn kill(node: &Postgres) {
    crate::locks::lock(&node.watch).take().unwrap().abort();
}

#[tokio::test]
async fn one_of_several_works_and_when_it_ends_the_next_one_does_at_once() {
    let database = fresh_database();
    let first = node(&database);
    assert_eq!(duty(&first), Duty::Working);
    let (second, third) = (node(&database), node(&database));
    assert_eq!(
        (duty(&second), duty(&third)),
        (Duty::Following, Duty::Following)
    );
    let feed = first.register("blog", NAMESPACE).await.unwrap();
    assert_eq!(second.feed(feed.no).await.unwrap(), feed);
    let refused = second.register("other", "other").await.unwrap_err();
    assert!(
        refused.to_string().contains("another node works"),
        "{refused}"
    );
    assert!(second.condition().outage().is_none() && second.check().await.is_ok());
    first.close().await.unwrap();
    until("another one works", async || {
        duty(&second) == Duty::Working || duty(&third) == Duty::Working
    })
    .await;
    let (worker, other) = match duty(&second) {
        Duty::Working => (&second, &third),
        Duty::Following => (&third, &second),
    };
    assert_eq!(duty(other), Duty::Following);
    assert!(!worker.ended_uncleanly(), "it ended in order");
    worker.register("other", "other").await.unwrap();
}

#[tokio::test]
async fn a_node_that_died_is_followed_by_another_and_changes_nothing_when_it_lives_on() {
    let database = fresh_database();
    let (dead, other) = (node(&database), node(&database));
    let feed = dead.register("blog", NAMESPACE).await.unwrap();
    kill(&dead);
    works(&other).await;
    assert!(other.ended_uncleanly());
    let receipt = other.commit(commit(&feed, vec![add(1)])).await.unwrap();
    // It was only stopped, and knows nothing of that yet.
    assert_eq!(duty(&dead), Duty::Working);
    let stale = dead.commit(commit(&feed, vec![add(2)])).await.unwrap_err();
    assert!(stale.to_string().contains("another node works"), "{stale}");
    assert_eq!(duty(&dead), Duty::Following);
    assert!(dead.condition().outage().is_none());
    assert_eq!(dead.feed(feed.no).await.unwrap(), receipt.feed);
}

#[tokio::test]
async fn a_node_whose_lock_broke_takes_it_again_and_one_alone_needs_nobody() {
    let database = fresh_database();
    let only = node(&database);
    execute(
        &database,
        "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity WHERE pid IN \
         (SELECT pid FROM pg_locks WHERE locktype = 'advisory' AND granted \
          AND objid = (hashtextextended('everfeed works in ' || current_schema() || ' 1', 0) & 4294967295)::oid)",
    );
    let other = node(&database);
    let works = async || duty(&only) == Duty::Working || duty(&other) == Duty::Working;
    until("one works", works).await;
    let worker = if duty(&other) == Duty::Working {
        &other
    } else {
        &only
    };
    worker.register("blog", NAMESPACE).await.unwrap();
}

/// The process that works is stopped in the middle of a transaction: it beats no more, its locks are
/// held, and the epoch is shared by a transaction that does not end.
#[tokio::test]
async fn a_node_that_is_stopped_in_the_middle_of_a_transaction_does_not_hold_up_the_next_one() {
    let database = fresh_database();
    let (stopped, other) = (node(&database), node(&database));
    let held = database.clone();
    let holding = thread::spawn(move || {
        let sql = "BEGIN ISOLATION LEVEL READ COMMITTED; \
                   SELECT number FROM meta WHERE name = 'epoch' FOR SHARE; \
                   SELECT number FROM meta WHERE name = 'beat' FOR UPDATE; SELECT pg_sleep(60)";
        try_execute(&held, sql)
    });
    works(&other).await;
    let ended = holding.join().unwrap();
    assert!(ended.is_err(), "its connection was ended");
    follows(&stopped).await;
    other.register("blog", NAMESPACE).await.unwrap();
    assert!(stopped.register("other", "other").await.is_err());
}

fn try_execute(database: &DatabaseUrl, sql: &str) -> Result<(), StoreError> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    runtime.block_on(crate::store::postgres::execute_in(database, sql))
}

async fn next(moves: &mut mpsc::Receiver<Moves>) -> Moves {
    timeout(PATIENCE, moves.recv()).await.unwrap().unwrap()
}

/// Moves that a node was told so far.
pub(super) struct ToldMoves(mpsc::Receiver<Moves>, HashMap<FeedNo, Head>);

impl ToldMoves {
    pub(super) fn of(node: &Postgres) -> Self {
        Self(node.nodes().unwrap().take_moves().unwrap(), HashMap::new())
    }

    /// Waits until a feed is told as another node has it.
    pub(super) async fn comes_to(&mut self, feed: FeedNo, node: &Postgres) {
        let head = node.feed(feed).await.unwrap().head();
        while self.1.get(&feed) != Some(&head) {
            self.1.extend(next(&mut self.0).await.feeds);
        }
    }
}

#[tokio::test]
async fn whoever_follows_learns_what_moved_by_notification_and_by_looking() {
    for wake in [WakeMode::Notify, WakeMode::Poll] {
        let database = fresh_database();
        let worker = open_node(&database, clock(), wake);
        let other = open_node(&database, clock(), wake);
        let mut told = ToldMoves::of(&other);
        let mut record = worker.register("blog", NAMESPACE).await.unwrap();
        while !next(&mut told.0).await.catalog {}
        for n in 0..9 {
            let receipt = worker.commit(commit(&record, vec![add(n)])).await.unwrap();
            record = receipt.feed;
            told.comes_to(record.no, &worker).await;
        }
        let user = crate::store::conformance::accounts::user("ann");
        worker.add_user(user).await.unwrap().unwrap();
        while !next(&mut told.0).await.accounts {}
        let status = other.nodes().unwrap().status().await.unwrap();
        assert_eq!(
            status.wake_lag_ms.is_some(),
            wake == WakeMode::Notify,
            "{status:?}"
        );
    }
}

fn key(folder: &tempfile::TempDir, digits: &str) -> SealKey {
    let file = folder.path().join(digits);
    std::fs::write(&file, digits.repeat(32)).unwrap();
    std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o600)).unwrap();
    SealKey::read(&file).unwrap()
}

#[tokio::test]
async fn sealed_rows_are_written_by_the_node_that_works_and_read_by_all_that_have_the_key() {
    let (database, folder) = (fresh_database(), tempfile::tempdir().unwrap());
    let (worker, other) = (node(&database), node(&database));
    let mut told = ToldMoves::of(&other);
    let rows = |node: &Postgres, digits| node.nodes().unwrap().sealed_rows(key(&folder, digits));
    let (written, read) = (rows(&worker, "0f"), rows(&other, "0f"));
    assert_eq!(read.read("row").await.unwrap(), None);
    for value in [&b"PRIVATE KEY"[..], b"", b"PRIVATE KEY"] {
        written.write("row", value).await.unwrap();
        while !next(&mut told.0).await.sealed {}
        assert_eq!(read.read("row").await.unwrap().unwrap(), value);
    }
    // Nobody else can read it, and none of the two that follow writes.
    let refused = rows(&other, "f0").read("row").await.unwrap_err();
    assert!(refused.to_string().contains("another key"), "{refused}");
    execute(
        &database,
        "INSERT INTO sealed SELECT 'other', value FROM sealed; \
         DO 'BEGIN ASSERT (SELECT count(*) FROM sealed WHERE position(''PRIVATE''::bytea IN value) > 0) = 0; END'",
    );
    let swapped = read.read("other").await.unwrap_err();
    assert!(matches!(swapped, StoreError::Damaged(_)), "{swapped}");
    let refused = read.write("row", b"x").await.unwrap_err();
    assert!(
        refused.to_string().contains("another node works"),
        "{refused}"
    );
    written.remove("row").await.unwrap();
    while !next(&mut told.0).await.sealed {}
    assert_eq!(read.read("row").await.unwrap(), None);
}

/// Transactions end in another order than they began in, and none of them is missed.
#[tokio::test]
async fn no_move_is_lost_while_an_older_transaction_is_open() {
    let database = fresh_database();
    let worker = open_node(&database, clock(), WakeMode::Poll);
    let other = open_node(&database, clock(), WakeMode::Poll);
    let slow = worker.register("slow", "slow").await.unwrap();
    let mut fast = worker.register("fast", "fast").await.unwrap();
    let mut told = ToldMoves::of(&other);
    let held = database.clone();
    let holding = thread::spawn(move || {
        let sql = "BEGIN ISOLATION LEVEL READ COMMITTED; \
                   SELECT key FROM rows_feeds ORDER BY key LIMIT 1 FOR UPDATE; SELECT pg_sleep(1); COMMIT";
        try_execute(&held, sql)
    });
    thread::sleep(Duration::from_millis(200));
    let slowly = worker.commit(commit(&slow, vec![add(1)]));
    let quickly = async {
        for n in 0..5 {
            let receipt = worker.commit(commit(&fast, vec![add(n)])).await.unwrap();
            fast = receipt.feed;
            told.comes_to(fast.no, &worker).await;
        }
    };
    let (receipt, ()) = tokio::join!(slowly, quickly);
    assert_eq!(receipt.unwrap().feed.items.total, 1);
    holding.join().unwrap().unwrap();
    told.comes_to(slow.no, &worker).await;
}

/// Commits of the one before are told before the duty is.
#[tokio::test]
async fn whoever_takes_over_has_told_before_what_the_last_one_committed() {
    let database = fresh_database();
    let first = open_node(&database, clock(), WakeMode::Poll);
    let other = open_node(&database, clock(), WakeMode::Poll);
    let mut moves = other.nodes().unwrap().take_moves().unwrap();
    let record = first.register("blog", NAMESPACE).await.unwrap();
    let receipt = first.commit(commit(&record, vec![add(1)])).await.unwrap();
    first.close().await.unwrap();
    works(&other).await;
    let mut told = Vec::new();
    while let Ok(moves) = moves.try_recv() {
        told.extend(moves.feeds);
    }
    let head = receipt.feed.head();
    assert!(told.contains(&(record.no, head)), "{told:?}");
}

const SOON: Duration = Duration::from_secs(30);

#[tokio::test]
async fn the_one_that_works_answers_questions_each_at_most_once() {
    let database = fresh_database();
    let (worker, other) = (node(&database), node(&database));
    let mut questions = worker.nodes().unwrap().take_questions().unwrap();
    let asked = other.nodes().unwrap();
    let answering = async {
        let Question { words, answer } = questions.recv().await.unwrap();
        answer.send([&words[..], b"!"].concat().into()).unwrap();
    };
    let (answer, ()) = tokio::join!(asked.ask(Bytes::from("who"), SOON), answering);
    assert_eq!(answer.unwrap(), "who!");
    let dropping = async { drop(questions.recv().await.unwrap()) };
    let (answer, ()) = tokio::join!(asked.ask(Bytes::from("who"), SOON), dropping);
    assert!(answer.unwrap_err().is_away());
    // Nobody answers in time.
    let late = asked.ask(Bytes::from("late"), Duration::from_millis(300));
    let told = late.await.unwrap_err();
    assert!(matches!(told, StoreError::OutcomeUnknown(_)), "{told}");
    assert_eq!(questions.recv().await.unwrap().words, "late");
    // The one that took it dies, and another one works.
    let lost = asked.ask(Bytes::from("lost"), SOON);
    let dying = async {
        let taken = questions.recv().await.unwrap();
        execute(&database, "UPDATE questions SET taken = 0");
        taken
    };
    let (told, _taken) = tokio::join!(lost, dying);
    let told = told.unwrap_err();
    assert!(told.to_string().contains("works no more"), "{told}");
    // The one that works asks itself, too.
    let itself = worker.nodes().unwrap();
    let answering = async {
        let question = questions.recv().await.unwrap();
        question.answer.send(question.words).unwrap();
    };
    let (answer, ()) = tokio::join!(itself.ask(Bytes::from("me"), SOON), answering);
    assert_eq!(answer.unwrap(), "me");
    assert!(questions.try_recv().is_err(), "none came twice");
}

fn face(name: &str, url: &str) -> NodeFace {
    NodeFace {
        name: name.into(),
        public_url: url.into(),
        prefix: "/".into(),
        former: Vec::new(),
    }
}

async fn status(node: &Postgres) -> NodesStatus {
    node.nodes().unwrap().status().await.unwrap()
}

#[tokio::test]
async fn nodes_know_each_other_and_one_that_disagrees_is_refused() {
    let database = fresh_database();
    let (first, second, third) = (node(&database), node(&database), node(&database));
    let here = "https://a.example";
    for (node, name) in [(&first, "one"), (&second, "two")] {
        let introduced = node.nodes().unwrap().introduce(face(name, here));
        introduced.await.unwrap();
    }
    let refused = third
        .nodes()
        .unwrap()
        .introduce(face("three", "https://b.example"));
    let refused = refused.await.unwrap_err();
    assert!(matches!(refused, StoreError::Schema(_)), "{refused:?}");
    assert!(
        refused.to_string().contains("https://b.example"),
        "{refused}"
    );
    let seen = status(&second).await;
    let names: Vec<(&str, bool, bool)> = seen
        .nodes
        .iter()
        .map(|node| (&*node.name, node.works, node.is_this))
        .collect();
    assert_eq!(names, [("one", true, false), ("two", false, true)]);
    assert_eq!(seen.epoch, 1);
}

/// Another cluster on a database is refused also while nobody lives there: it would push and poll in
/// the name of the first.
#[tokio::test]
async fn a_database_keeps_the_public_url_of_its_nodes_when_all_are_gone() {
    let database = fresh_database();
    let (first, second) = (node(&database), node(&database));
    let introduced = async |node: &Postgres, face: NodeFace| {
        let introduced = node.nodes().unwrap().introduce(face);
        introduced.await.map_err(|error| error.to_string())
    };
    let (a, b) = ("https://a.example/", "https://b.example/");
    introduced(&first, face("one", a)).await.unwrap();
    introduced(&second, face("two", a)).await.unwrap();
    first.close().await.unwrap();
    kill(&second);
    let third = node(&database);
    let refused = introduced(&third, face("three", b)).await.unwrap_err();
    for word in [
        "https://a.example ",
        "https://b.example.",
        "former_public_urls = [\"https://a.example\"]",
    ] {
        assert!(refused.contains(word), "{refused}");
    }
    let prefixed = NodeFace {
        prefix: "/smart".into(),
        ..face("three", a)
    };
    assert!(introduced(&third, prefixed).await.is_err());
    let unrelated = NodeFace {
        former: vec!["https://c.example".into()],
        ..face("three", b)
    };
    assert!(introduced(&third, unrelated).await.is_err());
    third.close().await.unwrap();
    // Those whose database it is come back, with the root in any spelling.
    let again = node(&database);
    introduced(&again, face("one", "https://a.example"))
        .await
        .unwrap();
}

/// The address changes, and nodes are given it one after the other, while the others live.
#[tokio::test]
async fn nodes_move_to_another_public_url_one_after_the_other_and_back() {
    let database = fresh_database();
    let (a, b) = ("https://a.example/", "https://b.example/");
    let introduced = async |node: &Postgres, face: NodeFace| {
        let introduced = node.nodes().unwrap().introduce(face);
        introduced.await.map_err(|error| error.to_string())
    };
    let moved = |name: &str, url: &str, former: &str| NodeFace {
        former: vec![former.into()],
        ..face(name, url)
    };
    let (first, second) = (node(&database), node(&database));
    introduced(&first, face("one", a)).await.unwrap();
    introduced(&second, face("two", a)).await.unwrap();
    second.close().await.unwrap();
    let second = node(&database);
    introduced(&second, moved("two", b, a)).await.unwrap();
    assert_eq!(duty(&first), Duty::Working, "it goes on as it was started");
    let late = node(&database);
    let refused = introduced(&late, face("late", a)).await.unwrap_err();
    assert!(
        refused.contains("holds the feeds of https://b.example"),
        "{refused}"
    );
    late.close().await.unwrap();
    first.close().await.unwrap();
    works(&second).await;
    let first = node(&database);
    introduced(&first, moved("one", b, a)).await.unwrap();
    // Back, by the same way.
    second.close().await.unwrap();
    let second = node(&database);
    introduced(&second, moved("two", a, b)).await.unwrap();
}

#[tokio::test]
async fn of_two_clusters_that_come_to_a_new_database_at_once_one_is_refused() {
    let database = fresh_database();
    let (first, second) = (node(&database), node(&database));
    let introduced = [
        (&first, "https://a.example"),
        (&second, "https://b.example"),
    ]
    .map(|(node, url)| node.nodes().unwrap().introduce(face("one", url)));
    let ended = futures_util::future::join_all(introduced).await;
    let refused = ended.iter().filter(|introduced| introduced.is_err());
    assert_eq!(refused.count(), 1, "{ended:?}");
}

/// A role without any right on a table holds the locks, for it may connect. Once it may not, nobody
/// is disturbed.
#[tokio::test]
async fn a_stranger_of_the_server_is_told_of_and_holds_no_lock_once_it_may_not_connect() {
    let server = PostgresServer::start();
    server.ask("CREATE ROLE owner LOGIN");
    server.ask("CREATE ROLE stranger LOGIN");
    server.ask("CREATE DATABASE feeds OWNER owner");
    let of = |role: &str| {
        let socket = server.folder().display().to_string().replace('/', "%2F");
        DatabaseUrl::new(format!("postgresql://{role}@{socket}/feeds"))
    };
    let ours = of("owner");
    drop(on_a_thread(|| Postgres::open(&ours, clock(), DatabaseTime::OfProcess)).unwrap());
    let look = || on_a_thread(|| Postgres::surroundings(&ours, clock())).unwrap();
    let found = look();
    assert!(
        found.admits_everybody && found.admits.is_empty(),
        "{found:?}"
    );
    assert!(found.warnings()[0].contains("REVOKE CONNECT ON DATABASE \"feeds\" FROM PUBLIC"));

    let lock = format!(
        "SELECT pg_advisory_lock({SERVING_LOCK}, hashtext('public')); SELECT pg_sleep(600)"
    );
    let stranger = of("stranger");
    let attack = lock.clone();
    let holding = thread::spawn(move || execute_or_end(&stranger, &attack));
    let sleeps = "SELECT count(*) FROM pg_stat_activity WHERE usename = 'stranger' AND wait_event = 'PgSleep'";
    until("the stranger holds the lock", async || {
        server.ask(sleeps) == "1"
    })
    .await;
    let refused = on_a_thread(|| {
        Postgres::open_node(&ours, clock(), DatabaseTime::OfProcess, WakeMode::Notify).err()
    });
    assert!(refused.is_some(), "the attack of everybody who may connect");

    server.ask("REVOKE CONNECT ON DATABASE feeds FROM PUBLIC");
    server.ask(
        "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity WHERE usename = 'stranger'",
    );
    holding.join().unwrap();
    let found = look();
    assert!(found.warnings().is_empty(), "{found:?}");
    assert!(
        !execute_or_end(&of("stranger"), &lock),
        "it may not connect"
    );
    assert_eq!(duty(&node(&ours)), Duty::Working);
    server.ask("GRANT CONNECT ON DATABASE feeds TO stranger");
    let found = look();
    assert_eq!(
        (found.admits_everybody, &*found.admits),
        (false, &["stranger".to_owned()][..])
    );
    assert!(found.warnings()[0].contains("FROM \"stranger\""));
}

/// Runs statements until they end, well or not. True where they were begun.
fn execute_or_end(url: &DatabaseUrl, sql: &str) -> bool {
    on_a_thread(|| {
        let mut config: tokio_postgres::Config = url.reveal().parse().unwrap();
        config.connect_timeout(PATIENCE);
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build();
        runtime.unwrap().block_on(async {
            let Ok((client, connection)) = config.connect(tokio_postgres::NoTls).await else {
                return false;
            };
            tokio::spawn(connection);
            // It may be ended by the server.
            let _ = client.batch_execute(sql).await;
            true
        })
    })
}

#[tokio::test]
async fn one_process_alone_and_several_together_keep_each_other_out() {
    let database = fresh_database();
    let several = node(&database);
    let refused = open(&database, clock()).err().expect("it is refused");
    assert!(
        refused.to_string().contains("another everfeed serves"),
        "{refused}"
    );
    several.close().await.unwrap();
    let alone = open(&database, clock()).unwrap();
    let refused = on_a_thread(|| {
        let time = DatabaseTime::OfProcess;
        Postgres::open_node(&database, clock(), time, WakeMode::Notify).err()
    });
    let refused = refused.expect("it is refused");
    assert!(
        refused.to_string().contains("another everfeed serves"),
        "{refused}"
    );
    alone.close().await.unwrap();
    assert_eq!(duty(&node(&database)), Duty::Working);
}

pub(super) async fn is_sound(node: &Postgres) {
    until("it is there", async || node.condition().outage().is_none()).await;
}

fn copy_data(server: &PostgresServer, from: &str, to: &str) {
    let folder = server.folder();
    let copied = std::process::Command::new("cp")
        .arg("-a")
        .args([folder.join(from), folder.join(to)])
        .status();
    assert!(copied.unwrap().success());
}

/// The database is put back to an earlier time below two nodes that saw a later one.
#[tokio::test]
async fn a_database_that_lost_commits_has_all_feeds_begin_one_new_generation() {
    let mut server = PostgresServer::start();
    let database = DatabaseUrl::new(server.url());
    let (first, second) = (node(&database), node(&database));
    let mut told = ToldMoves::of(&second);
    let quiet = first.register("quiet", "quiet").await.unwrap();
    let mut record = first.register("blog", NAMESPACE).await.unwrap();
    let receipt = first.commit(commit(&record, vec![add(1)])).await.unwrap();
    told.comes_to(record.no, &first).await;
    server.end();
    copy_data(&server, "data", "earlier");
    server.start_again();
    is_sound(&first).await;
    is_sound(&second).await;
    let nodes = [&first, &second];
    let working = || nodes.into_iter().find(|node| duty(node) == Duty::Working);
    until("one works", async || working().is_some()).await;
    record = receipt.feed;
    for n in 2..4 {
        let receipt = working()
            .unwrap()
            .commit(commit(&record, vec![add(n)]))
            .await;
        record = receipt.unwrap().feed;
    }
    let lost = record;
    let following = nodes.into_iter().find(|node| duty(node) == Duty::Following);
    // Both know what is lost.
    let seat = following.unwrap().database.seat.as_ref().unwrap();
    until("it is heard of", async || seat.newest().1 >= lost.last_t).await;
    server.end();
    std::fs::remove_dir_all(server.folder().join("data")).unwrap();
    copy_data(&server, "earlier", "data");
    server.start_again();
    until("all is there, and told", async || {
        let all_told = nodes.iter().all(|node| node.restored().is_some());
        let none_away = nodes.iter().all(|node| node.condition().outage().is_none());
        all_told && none_away && working().is_some()
    })
    .await;
    for node in nodes {
        for feed in [lost.no, quiet.no] {
            let lineage = node.feed(feed).await.unwrap().lineage;
            assert_eq!(lineage.lost.len(), 1, "once, by one of them: {lineage:?}");
            assert!(lineage.generation() > lost.last_t, "{lineage:?}");
        }
    }
    let record = first.feed(lost.no).await.unwrap();
    assert_eq!(record.items.total, 1);
    let worker = Cell::new(None);
    until("one that works takes it", async || {
        worker.set(working());
        let Some(node) = worker.get() else {
            return false;
        };
        node.commit(commit(&record, vec![add(4)])).await.is_ok()
    })
    .await;
    let worker = worker.get().unwrap();
    // Whoever comes next takes it for what it is.
    worker.close().await.unwrap();
    let other = nodes.into_iter().find(|node| !std::ptr::eq(*node, worker));
    let other = other.unwrap();
    works(other).await;
    let lineage = other.feed(lost.no).await.unwrap().lineage;
    assert_eq!(lineage.lost.len(), 1, "{lineage:?}");
}

#[tokio::test]
async fn whoever_puts_a_database_back_says_so_and_all_feeds_begin_a_new_generation() {
    let database = fresh_database();
    let before = node(&database);
    let feed = before.register("blog", NAMESPACE).await.unwrap();
    let receipt = before.commit(commit(&feed, vec![add(1)])).await.unwrap();
    assert_eq!(before.restored(), None);
    let begin = || Postgres::begin_generations(&database, clock());
    let refused = on_a_thread(begin).unwrap_err();
    assert!(
        refused.to_string().contains("another everfeed serves"),
        "{refused}"
    );
    before.close().await.unwrap();
    on_a_thread(begin).unwrap();
    let after = node(&database);
    let lineage = after.feed(feed.no).await.unwrap().lineage;
    assert!(lineage.generation() > receipt.feed.last_t, "{lineage:?}");
    until("it is told", async || after.restored().is_some()).await;
}

#[tokio::test]
async fn an_election_whose_commit_is_cut_is_held_again_and_a_question_may_be_done() {
    let server = PostgresServer::start();
    let cutter = Cutter::before(server.folder());
    let first = node(&DatabaseUrl::new(server.url()));
    let second = node(&cutter.url());
    // A question that may be there may be done.
    cutter.cuts.store(1000, std::sync::atomic::Ordering::SeqCst);
    let asked = second.nodes().unwrap().ask(Bytes::from("who"), SOON);
    let told = asked.await.unwrap_err();
    assert!(matches!(told, StoreError::OutcomeUnknown(_)), "{told}");
    first.close().await.unwrap();
    // One is made and nobody is told, and the next one is not.
    cutter.cuts.store(8, std::sync::atomic::Ordering::SeqCst);
    works(&second).await;
    is_sound(&second).await;
    let feed = second.register("blog", NAMESPACE).await.unwrap();
    second.commit(commit(&feed, vec![add(1)])).await.unwrap();
    assert_eq!(duty(&second), Duty::Working);
}

#[test]
fn missing_rights_and_a_server_without_a_free_connection_are_said() {
    let server = PostgresServer::start();
    drop(node(&DatabaseUrl::new(server.url())));
    server.ask(
        "CREATE ROLE reader LOGIN; GRANT SELECT ON ALL TABLES IN SCHEMA public TO reader; \
         CREATE ROLE few LOGIN CONNECTION LIMIT 2; CREATE SCHEMA few AUTHORIZATION few",
    );
    let socket = server.folder().display().to_string().replace('/', "%2F");
    let of = |user: &str| DatabaseUrl::new(format!("postgresql://{user}@{socket}/postgres"));
    let refused = |url: &DatabaseUrl| {
        let opened = Postgres::open_node(url, clock(), DatabaseTime::OfProcess, WakeMode::Notify);
        opened.err().expect("it is refused").to_string()
    };
    let told = refused(&of("reader"));
    assert!(told.contains("lacks rights"), "{told}");
    let told = refused(&of("few").in_schema("few"));
    assert!(told.contains("no free connection"), "{told}");
    server.ask("ALTER ROLE few CONNECTION LIMIT 20");
    assert_eq!(duty(&node(&of("few").in_schema("few"))), Duty::Working);
}

/// The clock of the database is set an hour ahead, and an hour back, below two nodes. Nobody takes
/// over, and who lives is known.
#[tokio::test]
async fn a_clock_of_the_database_that_jumps_decides_nothing() {
    let schema = fresh_schema();
    let database = DatabaseUrl::new(format!("{}%2Cpg_catalog", schema.reveal()));
    let (first, second) = (node(&database), node(&database));
    for (node, name) in [(&first, "one"), (&second, "two")] {
        let introduced = node
            .nodes()
            .unwrap()
            .introduce(face(name, "https://a.example"));
        introduced.await.unwrap();
    }
    let mut questions = first.nodes().unwrap().take_questions().unwrap();
    let mut told = ToldMoves::of(&second);
    let mut record = first.register("blog", NAMESPACE).await.unwrap();
    for (n, by) in [(1, "+ interval '1 hour'"), (2, "- interval '1 hour'")] {
        execute(
            &database,
            &format!(
                "CREATE OR REPLACE FUNCTION clock_timestamp() RETURNS timestamptz LANGUAGE sql VOLATILE \
                 AS $$ SELECT pg_catalog.clock_timestamp() {by} $$"
            ),
        );
        let third = node(&database);
        let refused = third
            .nodes()
            .unwrap()
            .introduce(face("three", "https://b.example"));
        assert!(refused.await.is_err(), "both live");
        let receipt = first.commit(commit(&record, vec![add(n)])).await.unwrap();
        record = receipt.feed;
        told.comes_to(record.no, &first).await;
        let answering = async {
            let question = questions.recv().await.unwrap();
            question.answer.send(question.words).unwrap();
        };
        let asked = second.nodes().unwrap().ask(Bytes::from("who"), SOON);
        let (answer, ()) = tokio::join!(asked, answering);
        assert_eq!(answer.unwrap(), "who");
        // Each sign of life is by the clock that is in force when it is given.
        let both = async || status(&second).await.nodes.len() == 2;
        until("both have given a sign", both).await;
        assert_eq!(status(&second).await.epoch, 1);
    }
    assert_eq!(duty(&first), Duty::Working);
}
