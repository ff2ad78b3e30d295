//! `everfeed clock accept`: through the running process when there is one, else on the file itself.

use super::ask::Running;
use crate::cli::output::{out, outln};
use crate::{app, config::Config};
use anyhow::{Context as _, bail};

/// Takes the clock for right although it jumped.
pub(super) async fn accept(config: &Config) -> anyhow::Result<()> {
    let running = Running::of(config);
    match running.ask(http::Method::POST, "/clock/accept").await {
        Ok((status, text)) if status.is_success() => {
            out!("{text}");
            Ok(())
        }
        Ok((status, text)) => bail!("the running everfeed answered {status}: {}", text.trim()),
        Err(_) => {
            app::accept_clock(config)
                .await
                .with_context(|| running.absent())?;
            outln!("the clock is accepted");
            Ok(())
        }
    }
}
