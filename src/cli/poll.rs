//! `everfeed poll`: asks the running process to poll a feed now, and prints what came of it.

use super::{
    PollOptions,
    ask::{ask, unanswered},
    moments::relative,
    probe::sheet::tame,
};
use crate::config::{self, Config};
use anyhow::bail;
use chrono::Utc;
use http::{Method, StatusCode};
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};

/// Asks for the poll. The file is read for the address of the process only.
pub(super) async fn run(options: &PollOptions) -> anyhow::Result<()> {
    let file = &options.with.config;
    let (address, token) = Config::admin_contact(file, config::environment());
    let name = utf8_percent_encode(&options.feed, NON_ALPHANUMERIC);
    let now = if options.now { "?now" } else { "" };
    let (status, text) = ask(
        Method::POST,
        &format!("http://{address}/poll/{name}{now}"),
        token.as_ref(),
    )
    .await
    .map_err(|error| {
        let only = "only a running everfeed polls: `everfeed serve`";
        unanswered(file, &address, error.context(only))
    })?;
    let told = relative(&tame(&text), Utc::now());
    if status != StatusCode::OK {
        bail!("{told}");
    }
    println!("{told}");
    Ok(())
}
