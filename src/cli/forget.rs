//! `everfeed forget`: removes what is kept of a feed that is configured no more, or one item of a
//! feed, through the running process when there is one, else on the store itself.

use super::{WithConfig, ask::ask};
use crate::{
    app::{self, forgotten},
    config::Config,
};
use anyhow::{Context as _, bail};
use clap::Args;
use http::Method;
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};

#[derive(Debug, Args)]
pub(super) struct ForgetOptions {
    #[command(flatten)]
    pub(super) with: WithConfig,
    /// The name of the feed.
    feed: String,
    /// An item of it, which then may be configured: our id, its publisher's, or its permalink. It
    /// never comes back.
    item: Option<String>,
}

/// Forgets a feed or an item.
pub(super) async fn run(options: &ForgetOptions, config: &Config) -> anyhow::Result<()> {
    let (name, item) = (options.feed.as_str(), options.item.as_deref());
    let address = config.server.admin_listen;
    let encoded = |text: &str| utf8_percent_encode(text, NON_ALPHANUMERIC).to_string();
    let mut url = format!("http://{address}/forget/{}", encoded(name));
    if let Some(item) = item {
        url += &format!("?item={}", encoded(item));
    }
    match ask(Method::POST, &url, config.server.admin_token.as_ref()).await {
        Ok((status, text)) if status.is_success() => print!("{text}"),
        Ok((_, text)) => bail!("{}", text.trim()),
        Err(_) => {
            let done = match item {
                None => app::forget(config, name).await,
                Some(item) => app::forget_item(config, name, item).await,
            };
            let kept = done
                .with_context(|| format!("no everfeed answers at {address}, and on its store"))?;
            print!("{}", forgotten(name, item, kept.as_deref()));
        }
    }
    Ok(())
}
