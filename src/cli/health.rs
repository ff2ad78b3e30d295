//! `everfeed health`: tells by its exit code whether the running process is alive and ready, for
//! supervisors of containers.

use super::ask::{Running, unanswered};
use crate::cli::output::outln;
use anyhow::{Context as _, bail};
use http::{Method, StatusCode};
use std::{path::Path, time::Duration};
use tokio::time::timeout;

/// Seconds for one answer: a process that takes longer is not healthy.
const ANSWER_SECS: u64 = 5;

/// Asks `/live` and `/ready`. The file is read for the address of the process only, so that a
/// mistake in it, made while everything runs, does not count as ill health.
pub(super) async fn run(file: &Path) -> anyhow::Result<()> {
    let running = Running::in_file(file);
    for path in ["/live", "/ready"] {
        let answer = running.ask(Method::GET, path);
        let late = || {
            let address = running.address;
            format!("no answer from http://{address}{path} within {ANSWER_SECS} s")
        };
        let answered = timeout(Duration::from_secs(ANSWER_SECS), answer).await;
        let answered = answered.with_context(late)?;
        let (status, text) =
            answered.map_err(|error| unanswered(file, &running.address, &error))?;
        if status != StatusCode::OK {
            bail!("{path} answered {}: {}", status.as_u16(), text.trim());
        }
    }
    outln!("healthy");
    Ok(())
}
