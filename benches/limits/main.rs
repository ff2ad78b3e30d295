//! The cost of everfeed beside the physical limit of the same work: fifteen questions, both sides asked
//! in turn by the same tool in one process. No test: the machine is what it is, so only counts are
//! asserted and figures are printed.
//!
//! `cargo bench` asks all, `cargo bench -- hot poll` some of them; `size-10m`, `database-1m` and `rest-1m`
//! are asked by name alone. `xmpp` needs Prosody and `database` PostgreSQL, which `tests/run` installs.

use anyhow::{Context as _, Result, ensure};
use report::Report;
use std::env;
use tokio::runtime::{Builder, Runtime};

mod report;
mod rounds;

mod content;
mod house;

mod at_rest;
mod bare;
mod load;

mod cold_page;
mod cursor;
mod fan_out;
mod filters;
mod hot_page;
mod poll;
mod rendering;
mod search;
mod size;
mod wake_up;
mod window;

#[cfg(feature = "postgres")]
mod database;
#[cfg(feature = "xmpp")]
mod xmpp;

/// The allocator that the binary has; both sides of each question use it.
#[cfg(feature = "jemalloc")]
#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

const QUESTIONS: [&str; 17] = [
    "hot",
    "cold",
    "wake",
    "cursor",
    "poll",
    "window",
    "search",
    "render",
    "size",
    "filters",
    "fan",
    "rest",
    "xmpp",
    "database",
    "database-1m",
    "rest-1m",
    "size-10m",
];

fn main() -> Result<()> {
    // Cargo adds flags of its own.
    let wanted: Vec<String> = env::args()
        .skip(1)
        .filter(|arg| !arg.starts_with('-'))
        .collect();
    for name in &wanted {
        ensure!(
            QUESTIONS.contains(&name.as_str()),
            "no question `{name}`; there are {}",
            QUESTIONS.join(", ")
        );
    }
    let is_wanted = |name: &str| wanted.is_empty() || wanted.iter().any(|wanted| wanted == name);

    let runtime = Runtime::new().context("a runtime")?;
    // One thread for whoever asks, so that its share of the processor can be told from that of the
    // servers.
    let askers = Builder::new_multi_thread()
        .worker_threads(1)
        .thread_name("load")
        .enable_all()
        .build()?;
    let report = Report::begin();
    runtime.block_on(async {
        if is_wanted("hot") {
            hot_page::ask(&report, askers.handle())
                .await
                .context("hot page")?;
        }
        if is_wanted("cold") {
            cold_page::ask(&report).await.context("cold page")?;
        }
        if is_wanted("wake") {
            wake_up::ask(&report, askers.handle())
                .await
                .context("wake-up")?;
        }
        if is_wanted("cursor") {
            cursor::ask(&report).context("cursor")?;
        }
        if is_wanted("poll") {
            poll::ask(&report).await.context("poll")?;
        }
        if is_wanted("window") {
            window::ask(&report).await.context("window")?;
        }
        if is_wanted("search") {
            search::ask(&report).await.context("search")?;
        }
        if is_wanted("render") {
            rendering::ask(&report).await.context("render")?;
        }
        if is_wanted("size") {
            size::ask(&report, &[1_000, 100_000])
                .await
                .context("size")?;
        }
        if is_wanted("filters") {
            filters::ask(&report).await.context("filters")?;
        }
        if is_wanted("fan") {
            fan_out::ask(&report, askers.handle())
                .await
                .context("fan-out")?;
        }
        if is_wanted("rest") {
            at_rest::ask(&report, 100_000, 60 << 20)
                .await
                .context("at rest")?;
        }
        if wanted.iter().any(|wanted| wanted == "rest-1m") {
            at_rest::ask(&report, 1_000_000, 400 << 20)
                .await
                .context("at rest")?;
        }
        #[cfg(feature = "xmpp")]
        if is_wanted("xmpp") {
            xmpp::ask(&report, askers.handle()).await.context("XMPP")?;
        }
        #[cfg(feature = "postgres")]
        if is_wanted("database") {
            database::ask(&report, 10_000).await.context("PostgreSQL")?;
        }
        #[cfg(feature = "postgres")]
        if wanted.iter().any(|wanted| wanted == "database-1m") {
            database::ask(&report, 100_000)
                .await
                .context("PostgreSQL")?;
        }
        if wanted.iter().any(|wanted| wanted == "size-10m") {
            size::ask(&report, &[1_000, 100_000, 10_000_000])
                .await
                .context("size")?;
        }
        Ok(())
    })
}
