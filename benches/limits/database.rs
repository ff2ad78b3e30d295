//! Questions 14 and 15: commits to PostgreSQL from several writers, beside pgbench with the same bare
//! statements; and its pages, beside the raw SELECT. One server of the tests on a socket, both sides
//! on it in turn.

use crate::{
    content::{Chance, NAMESPACE, added},
    report::{Aim, Report},
    rounds::{Spread, compare},
};
use anyhow::{Context as _, Result, bail, ensure};
use everfeed::{
    clock::System,
    feed::{
        cursor::Toc,
        item::ItemId,
        order::Order,
        page::PageQuery,
        position::Position,
        record::{FeedNo, FeedRecord},
        stamp::Stamp,
    },
    store::{
        Commit, Store,
        database_url::DatabaseUrl,
        postgres::{DatabaseTime, Postgres},
    },
};
use futures_util::{StreamExt as _, TryStreamExt as _, stream};
use std::{cell::RefCell, fs, hint::black_box, process::Command, sync::Arc, time::Instant};
use tempfile::TempDir;
use testkit::postgres::PostgresServer;
use tokio_postgres::{Client, Config, NoTls, types::Type};

/// Both sides have their statements prepared: nothing stands between.
const CACHE: &str = "statement_cache_size=200";

const WRITERS: [usize; 3] = [1, 8, 32];
/// Commits of all writers in a round.
const COMMITS: usize = 640;
const ROUNDS: usize = 5;
const PAGE_ITEMS: usize = 50;
const PAGES: usize = 100;
const PAGE_ROUNDS: usize = 21;
/// Items of a feed among many.
const FEED_ITEMS: u32 = 10;
/// Commits under way while the store is filled.
const FILLING: usize = 8;

/// Tables with a column for each part of a key, and feeds in them.
const TABLES: &str = include_str!("database/tables.sql");

/// The statements of a commit of one new item in those tables.
const COMMIT_SCRIPT: &str = include_str!("database/commit.sql");

/// Asks of a server that serves nothing else. `feeds` are those of the large store.
pub(crate) async fn ask(report: &Report, feeds: u32) -> Result<()> {
    let server = PostgresServer::start();
    commits(report, &server).await?;
    pages(report, &server, feeds).await
}

async fn commits(report: &Report, server: &PostgresServer) -> Result<()> {
    report.question(
        "(14) Commits of one new item of 2 KB to PostgreSQL, each writer to a feed of its own",
        "everfeed's store / pgbench with the statements of a commit to tables of columns, in two round trips",
    );
    let store = opened(server, "ours").await?;
    server.ask("CREATE SCHEMA bare");
    server.ask(&format!("SET search_path = bare; {TABLES}"));
    let most = WRITERS.iter().copied().max().unwrap_or_default();
    let names: Vec<_> = (0..most)
        .map(|n| (format!("feed{n}"), format!("feed.example/{n}")))
        .collect();
    let records = store.register_all(names).await?;
    let script = TempDir::new()?;
    let path = script.path().join("commit.sql");
    fs::write(&path, COMMIT_SCRIPT)?;
    let records: Vec<RefCell<FeedRecord>> = records.into_iter().map(RefCell::new).collect();
    for writers in WRITERS {
        let spread = compare(
            ROUNDS,
            async |_| {
                let start = Instant::now();
                let written = stream::iter(&records[..writers])
                    .map(|record| write(&*store, record, COMMITS / writers))
                    .buffer_unordered(writers);
                written.try_collect::<()>().await?;
                Ok(start.elapsed().as_secs_f64())
            },
            async |_| pgbench(server, &path.display().to_string(), writers),
        );
        let what = format!("{writers} writers: commits a second");
        report.ratio(what, spread.await?, Aim::AtLeast(0.5));
    }
    Ok(store.close().await?)
}

/// A store in a schema of its own.
async fn opened(server: &PostgresServer, schema: &str) -> Result<Arc<dyn Store>> {
    server.ask(&format!("CREATE SCHEMA {schema}"));
    let options = format!("options=-csearch_path%3D{schema}&{CACHE}");
    let url = format!("{}?{options}", server.url());
    let url = DatabaseUrl::new(url);
    let opening = move || Postgres::open(&url, Arc::new(System), DatabaseTime::OfDatabase);
    Ok(Arc::new(tokio::task::spawn_blocking(opening).await??))
}

/// Commits so many items, one after the other.
async fn write(store: &dyn Store, record: &RefCell<FeedRecord>, commits: usize) -> Result<()> {
    for _ in 0..commits {
        let held = record.borrow().clone();
        let n = u32::try_from(held.items.total)?;
        let commit = Commit {
            changes: vec![added(n)],
            ready: true,
            ..Commit::nothing(&held)
        };
        let receipt = store.commit(commit).await?;
        *record.borrow_mut() = receipt.feed;
    }
    Ok(())
}

/// Has pgbench do as many commits; the seconds that they took.
fn pgbench(server: &PostgresServer, script: &str, writers: usize) -> Result<f64> {
    let output = Command::new("pgbench")
        .args(["-n", "-M", "prepared", "-f", script])
        .args(["-c", &writers.to_string(), "-j", "2"])
        .args(["-t", &(COMMITS / writers).to_string()])
        .args(["-U", "everfeed", "-h"])
        .arg(server.folder())
        .arg("postgres")
        .env("PGOPTIONS", "-csearch_path=bare")
        .output()
        .context("pgbench, which tests/run installs")?;
    let told = String::from_utf8_lossy(&output.stdout);
    ensure!(
        output.status.success(),
        "pgbench: {told}{}",
        String::from_utf8_lossy(&output.stderr)
    );
    // Without the time for connecting: ours are open, too.
    let Some(rate) = told.lines().find_map(|line| line.strip_prefix("tps = ")) else {
        bail!("pgbench told no rate: {told}");
    };
    let rate: f64 = rate
        .split(' ')
        .next()
        .unwrap_or_default()
        .parse()
        .context("a rate")?;
    Ok(COMMITS as f64 / rate)
}

/// A store with feeds, and a connection that reads it raw.
struct Subject {
    store: Arc<dyn Store>,
    raw: Client,
    places: Vec<(u32, ItemId, Stamp)>,
}

async fn pages(report: &Report, server: &PostgresServer, feeds: u32) -> Result<()> {
    report.question(
        "(15) Pages in PostgreSQL, one after the other",
        "everfeed's store.page / the raw SELECT of the same rows on one connection, prepared, nothing decoded",
    );
    let subject = filled(server, "long", 1, 1_000).await?;
    let spread = subject.compare(PAGE_ITEMS).await?;
    let what = "a feed of 1000 items: pages of 50 a second";
    report.ratio(what, spread, Aim::AtLeast(0.5));
    subject.store.close().await?;
    let subject = filled(server, "wide", feeds, FEED_ITEMS).await?;
    let spread = subject.compare(1).await?;
    let items = feeds * FEED_ITEMS;
    let what = format!("{items} items over {feeds} feeds: pages of {FEED_ITEMS} at most a second");
    report.ratio(what, spread, Aim::AtLeast(0.5));
    Ok(subject.store.close().await?)
}

/// A store with so many feeds of so many items each.
async fn filled(server: &PostgresServer, schema: &str, feeds: u32, items: u32) -> Result<Subject> {
    let store = opened(server, schema).await?;
    let mut places = Vec::new();
    let names = (0..feeds).map(|n| (format!("feed{n}"), format!("{NAMESPACE}/{n}")));
    let names: Vec<_> = names.collect();
    for names in names.chunks(1_000) {
        let records = store.register_all(names.to_vec()).await?;
        let made = stream::iter(records)
            .map(|record| {
                let commit = Commit {
                    changes: (0..items).map(added).collect(),
                    ready: true,
                    ..Commit::nothing(&record)
                };
                let store = store.clone();
                async move { store.commit(commit).await }
            })
            .buffer_unordered(FILLING);
        let made: Vec<_> = made.try_collect().await?;
        for receipt in made {
            let no = receipt.feed.no.0;
            places.extend(receipt.stamped.into_iter().map(|(id, t)| (no, id, t)));
        }
    }
    server.ask("ANALYZE");
    let mut config = Config::new();
    config
        .host_path(server.folder())
        .user("everfeed")
        .dbname("postgres")
        .options(format!("-csearch_path={schema}"));
    let (raw, connection) = config.connect(NoTls).await?;
    tokio::spawn(connection);
    Ok(Subject { store, raw, places })
}

impl Subject {
    async fn compare(&self, least: usize) -> Result<Spread> {
        let sql =
            "SELECT key, value FROM rows_items WHERE key > $1 AND key < $2 ORDER BY key LIMIT 50";
        let select = self.raw.prepare_typed(sql, &[Type::BYTEA, Type::BYTEA]);
        let select = select.await?;
        compare(
            PAGE_ROUNDS,
            async |round| {
                let start = Instant::now();
                for (feed, id, t) in self.sinces(round, least) {
                    let since = Toc::of(t, [id.to_string()]).context("a cursor")?;
                    let query = PageQuery {
                        since: Some(Position::of_cursor(&since.to_string())),
                        max: PAGE_ITEMS,
                        ..PageQuery::all(FeedNo(feed), Order::MODIFIED)
                    };
                    let page = self.store.page(query).await?;
                    ensure!(page.items.len() >= least, "a page");
                    black_box(page);
                }
                Ok(start.elapsed().as_secs_f64())
            },
            async |round| {
                let start = Instant::now();
                for (feed, _, t) in self.sinces(round, least) {
                    let from = [&feed.to_be_bytes()[..], &t.micros().to_be_bytes()].concat();
                    let to = (feed + 1).to_be_bytes().to_vec();
                    let rows = self.raw.query(&select, &[&from, &to]).await?;
                    ensure!(rows.len() >= least, "rows");
                    black_box(rows);
                }
                Ok(start.elapsed().as_secs_f64())
            },
        )
        .await
    }

    /// Places with enough items behind them, the same for both sides of a round.
    fn sinces(&self, round: usize, least: usize) -> Vec<(u32, ItemId, Stamp)> {
        let mut chance = Chance::new(round as u64 + 1);
        let last = self.places.len() - least;
        let mut drawn = Vec::with_capacity(PAGES);
        while drawn.len() < PAGES {
            let at = chance.below(last);
            // The one behind it is of the same feed.
            if self.places[at].0 == self.places[at + least].0 {
                drawn.push(self.places[at]);
            }
        }
        drawn
    }
}
