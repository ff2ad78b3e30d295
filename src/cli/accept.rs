//! `everfeed accept`: takes the documents of a feed's changed url although they share nothing with
//! what is held; through the running process when there is one, else on the file itself.

use super::{
    WithConfig,
    ask::{Running, encoded},
    probe::sheet::tame,
};
use crate::app::moments::relative;
use crate::cli::output::outln;
use crate::{app, config::Config};
use anyhow::bail;
use chrono::Utc;
use clap::Args;
use http::{Method, StatusCode};

/// The feed with the changed URL.
#[derive(Debug, Args)]
pub(super) struct AcceptOptions {
    #[command(flatten)]
    pub(super) with: WithConfig,
    /// The name of the feed.
    feed: String,
}

/// Accepts the changed URL of the feed.
pub(super) async fn run(options: &AcceptOptions, config: &Config) -> anyhow::Result<()> {
    let feed = &options.feed;
    let told = |text: &str| relative(&tame(text), Utc::now());
    let path = format!("/accept/{}", encoded(feed));
    match Running::of(config).ask(Method::POST, &path).await {
        Ok((StatusCode::OK, text)) => {
            outln!("the url of `{feed}` is accepted; {}", told(&text));
            Ok(())
        }
        Ok((_, text)) => bail!("{}", told(&text)),
        Err(_) => {
            app::accept_url(config, feed).await?;
            outln!(
                "the url of `{feed}` is accepted for the next poll. If that poll fails, run this again"
            );
            Ok(())
        }
    }
}
