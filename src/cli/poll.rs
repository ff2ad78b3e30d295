//! `everfeed poll`: asks the running process to poll a feed now, and prints what came of it.

use super::{
    PollOptions,
    ask::{Running, Unanswered, encoded, unanswered},
    probe::sheet::tame,
};
use crate::app::moments::relative;
use crate::cli::output::outln;
use anyhow::{anyhow, bail};
use chrono::Utc;
use http::{Method, StatusCode};

/// Asks for the poll. The file is read for the address of the process only.
pub(super) async fn run(options: &PollOptions) -> anyhow::Result<()> {
    let file = &options.with.config;
    let running = Running::in_file(file);
    let now = if options.now { "?now" } else { "" };
    let path = format!("/poll/{}{now}", encoded(&options.feed));
    let answered = running.ask(Method::POST, &path).await;
    let (status, text) = answered.map_err(|error| {
        let error = unanswered(file, &running.address, &error);
        if error.is::<Unanswered>() {
            return error;
        }
        anyhow!("{error}. Only a running everfeed polls; start it with `everfeed serve`")
    })?;
    let told = relative(&tame(&text), Utc::now());
    if status != StatusCode::OK {
        bail!("{told}");
    }
    outln!("{told}");
    Ok(())
}
