//! The same promises with the store in PostgreSQL, while everfeed and the database are killed in
//! turn.
//!
//! `EVERFEED_DATABASE_KILLS=100 cargo test --test process kill::database -- --nocapture` runs it
//! longer.

use super::{blogs::Blogs, consumer::Consumer, number, rig::Rig, settled, subscriber::Subscriber};
use rand::{RngExt as _, SeedableRng as _, rngs::StdRng};
use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};
use testkit::{postgres::PostgresServer, wait::until};

/// Feeds under load.
const FEEDS: usize = 3;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_is_lost_in_a_database_whichever_of_the_two_is_killed() {
    let kills = number("EVERFEED_DATABASE_KILLS", 6);
    let seed = number("EVERFEED_SEED", u64::from(std::process::id()));
    println!("killing {kills} times, EVERFEED_SEED={seed}");
    let mut chance = StdRng::seed_from_u64(seed);
    let mut server = tokio::task::spawn_blocking(PostgresServer::start)
        .await
        .unwrap();
    let blogs = Arc::new(Blogs::start(FEEDS, seed).await);
    let subscriber = Arc::new(Subscriber::start().await);
    let mut rig = Rig::with_store(&blogs, Some(&server.url()));
    rig.start().await;
    let consumers: Vec<_> = blogs
        .names()
        .map(|name| Consumer::start(&rig, name))
        .collect();
    for name in blogs.names() {
        rig.reader.subscribe(name, &subscriber.callback(name)).await;
    }
    for kill in 0..kills {
        let run = Duration::from_millis(chance.random_range(50..2500));
        tokio::time::sleep(run).await;
        match kill % 3 {
            0 => {
                rig.process.kill();
                rig.start().await;
            }
            1 => server = killed_and_served(server, &rig).await,
            _ => {
                rig.process.kill();
                copy_away_and_back(&server, &rig);
                rig.start().await;
            }
        }
    }
    let figures = settled(&blogs, consumers, &subscriber, &rig).await;
    rig.process.end().await;
    figures.print(&format!("{kills} kills"));
    let running = server.ask("SELECT number FROM meta WHERE name = 'running'");
    assert_eq!(running, "0", "it was closed in the end");
}

/// Copies the store to a file, and from there to an empty database.
fn copy_away_and_back(server: &PostgresServer, rig: &Rig) {
    let url = server.url();
    rig.copy_store(&url, "other.redb");
    server.ask("DROP SCHEMA public CASCADE");
    server.ask("CREATE SCHEMA public");
    rig.copy_store("other.redb", &url);
    for suffix in ["", ".made", ".mark", ".removed"] {
        rig.remove_file(&format!("other.redb{suffix}"));
    }
}

/// Kills the database, and starts it again when consumers were told.
async fn killed_and_served(mut server: PostgresServer, rig: &Rig) -> PostgresServer {
    server.end();
    let secs = AtomicU64::new(0);
    let fresh = async || {
        let secs = secs.fetch_add(1, Ordering::Relaxed);
        rig.reader.fresh_answer("blog-0", secs).await
    };
    until("consumers are told to come again", async || {
        let answer = fresh().await;
        answer.status() == 503 && answer.headers().contains_key("retry-after")
    })
    .await;
    let server = tokio::task::spawn_blocking(move || {
        server.start_again();
        server
    });
    let server = server.await.unwrap();
    until("consumers are served again", async || {
        fresh().await.status() == 200
    })
    .await;
    server
}
