//! `everfeed forget`: removes what is kept of a feed that is configured no more, through the running process when there is
//! one, else on the store itself.

use super::ask::ask;
use crate::{app, config::Config};
use anyhow::{Context as _, bail};
use http::Method;
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};

/// Forgets a feed.
pub(super) async fn run(name: &str, config: &Config) -> anyhow::Result<()> {
    let address = config.server.admin_listen;
    let url = format!("http://{address}/forget/{}", utf8_percent_encode(name, NON_ALPHANUMERIC));
    match ask(Method::POST, &url).await {
        Ok((status, text)) if status.is_success() => print!("{text}"),
        Ok((_, text)) => bail!("{}", text.trim()),
        Err(_) => {
            app::forget(config, name)
                .await
                .with_context(|| format!("no everfeed answers at {address}, and on its store"))?;
            println!("feed `{name}` is forgotten");
        }
    }
    Ok(())
}
