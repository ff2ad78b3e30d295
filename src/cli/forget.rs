//! `everfeed forget`: removes what is kept of a feed that is configured no more, or one item of a
//! feed, through the running process when there is one, else on the store itself.

use super::{
    WithConfig,
    ask::{Running, encoded},
};
use crate::cli::output::out;
use crate::{app, config::Config};
use anyhow::Context as _;
use clap::Args;
use http::Method;

#[derive(Debug, Args)]
pub(super) struct ForgetOptions {
    #[command(flatten)]
    pub(super) with: WithConfig,
    /// The name of the feed.
    feed: String,
    /// An item of the feed: its id here, the publisher's id, or its permalink. The item never comes
    /// back. The feed may be configured.
    item: Option<String>,
}

/// Forgets a feed or an item.
pub(super) async fn run(options: &ForgetOptions, config: &Config) -> anyhow::Result<()> {
    let (name, item) = (options.feed.as_str(), options.item.as_deref());
    let running = Running::of(config);
    let mut path = format!("/forget/{}", encoded(name));
    if let Some(item) = item {
        path += &format!("?item={}", encoded(item));
    }
    let told = match (running.command(Method::POST, &path).await?, item) {
        (Some(told), _) => Ok(told),
        (None, None) => app::forget(config, name).await,
        (None, Some(item)) => app::forget_item(config, name, item).await,
    };
    out!("{}", told.with_context(|| running.absent())?);
    Ok(())
}
