//! `everfeed backup`: through the running process when there is one, else from the file itself.

use super::{WithConfig, ask::ask};
use crate::{app::backup::from_file, config::Config};
use anyhow::{Context as _, bail};
use clap::Args;
use http::Method;
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use std::path::PathBuf;

#[derive(Debug, Args)]
pub(super) struct BackupOptions {
    #[command(flatten)]
    pub(super) with: WithConfig,
    /// The file to write, on the machine of the running everfeed. A backup that is there is
    /// replaced, anything else is not.
    file: PathBuf,
}

/// Makes a backup and prints what is in it.
pub(super) async fn run(options: &BackupOptions, config: &Config) -> anyhow::Result<()> {
    let address = config.server.admin_listen;
    let file = std::path::absolute(&options.file)?;
    let name = file
        .to_str()
        .context("the path of a backup must be UTF-8")?;
    let url = format!(
        "http://{address}/backup?file={}",
        utf8_percent_encode(name, NON_ALPHANUMERIC)
    );
    match ask(Method::POST, &url, config.server.admin_token.as_ref()).await {
        Ok((status, text)) if status.is_success() => print!("{text}"),
        Ok((_, text)) => bail!("{}", text.trim()),
        Err(_) => {
            let told = from_file(config, &file).await;
            println!(
                "{}",
                told.with_context(|| format!("no everfeed answers at {address}, and its store"))?
            );
        }
    }
    Ok(())
}
