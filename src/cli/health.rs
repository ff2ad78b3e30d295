//! `everfeed health`: tells by its exit code whether the running process is alive and ready, for
//! supervisors of containers.

use super::ask::{ask, unanswered};
use crate::config::{self, Config};
use anyhow::{Context as _, bail};
use http::{Method, StatusCode};
use std::{path::Path, time::Duration};
use tokio::time::timeout;

/// Seconds for one answer: a process that takes longer is not healthy.
const ANSWER_SECS: u64 = 5;

/// Asks `/live` and `/ready`. The file is read for the address of the process only, so that a
/// mistake in it, made while everything runs, does not count as ill health.
pub(super) async fn run(file: &Path) -> anyhow::Result<()> {
    let (address, token) = Config::admin_contact(file, config::environment());
    for path in ["/live", "/ready"] {
        let url = format!("http://{address}{path}");
        let answered = timeout(
            Duration::from_secs(ANSWER_SECS),
            ask(Method::GET, &url, token.as_ref()),
        )
        .await;
        let answered =
            answered.with_context(|| format!("no answer from {url} within {ANSWER_SECS} s"))?;
        let (status, text) = answered.map_err(|error| unanswered(file, &address, error))?;
        if status != StatusCode::OK {
            bail!("{path} answered {}: {}", status.as_u16(), text.trim());
        }
    }
    println!("healthy");
    Ok(())
}
