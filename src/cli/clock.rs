//! `everfeed clock accept`: through the running process when there is one, else on the file itself.

use super::ask::ask;
use crate::{app, config::Config};
use anyhow::{Context as _, bail};

/// Takes the clock for right although it jumped.
pub(super) async fn accept(config: &Config) -> anyhow::Result<()> {
    let url = format!("http://{}/clock/accept", config.server.admin_listen);
    match ask(http::Method::POST, &url, config.server.admin_token.as_ref()).await {
        Ok((status, text)) if status.is_success() => {
            print!("{text}");
            Ok(())
        }
        Ok((status, text)) => bail!("the running everfeed answered {status}: {}", text.trim()),
        Err(_) => {
            app::accept_clock(config)
                .await
                .context("no everfeed answers at admin_listen, and its store")?;
            println!("the clock is accepted");
            Ok(())
        }
    }
}
