//! The whole program or a large part of it in the test's own process, over real sockets or in
//! paused time. Tests that start the binary are in `tests/process`.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use everfeed::{app::App, config::Config};
use testkit::place::Place;

/// Starts everfeed in this process, with further lines of `[server]` and what stands behind the
/// path in `[store]`.
async fn start(place: &Place, server: &str, rest: &str) -> App {
    let config = Config::parse("the test's configuration", &place.text(server, rest));
    App::start(config.unwrap()).await.unwrap()
}

mod archives;
mod cases;
mod groups;
mod heads;
mod history;
mod http;
mod ingest_bad_input;
mod ingest_restart;
mod mirror;
mod opml_lists;
mod registry;
mod render_jsonp;
mod render_well_formed;
mod sidecar;
mod store_files;

#[path = "../support/pipeline.rs"]
mod pipeline;

#[path = "../support/polling.rs"]
mod polling;
