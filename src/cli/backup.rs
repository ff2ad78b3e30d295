//! `everfeed backup`: through the running process when there is one, else from the file itself; and
//! `everfeed restore`, which needs that nobody serves the store.

use super::{
    WithConfig,
    ask::{Running, encoded},
};
use crate::cli::output::{out, outln};
use crate::{
    app::backup::{from_file, restore, restore_here},
    config::Config,
};
use anyhow::Context as _;
use clap::Args;
use http::Method;
use std::path::PathBuf;

#[derive(Debug, Args)]
pub(super) struct BackupOptions {
    #[command(flatten)]
    pub(super) with: WithConfig,
    /// The file to write, on the machine of the running everfeed. It replaces an older backup, but
    /// no other file.
    file: PathBuf,
}

/// Makes a backup and prints what is in it.
pub(super) async fn run(options: &BackupOptions, config: &Config) -> anyhow::Result<()> {
    let running = Running::of(config);
    let file = std::path::absolute(&options.file)?;
    let name = file
        .to_str()
        .context("the path of a backup must be UTF-8")?;
    let path = format!("/backup?file={}", encoded(name));
    if let Some(told) = running.command(Method::POST, &path).await? {
        out!("{told}");
        return Ok(());
    }
    let made = from_file(config, &file).await;
    outln!("{}", made.with_context(|| running.absent())?);
    Ok(())
}

#[derive(Debug, Args)]
pub(super) struct RestoreOptions {
    #[command(flatten)]
    pub(super) with: WithConfig,
    /// The backup to restore. It stays as it is.
    #[arg(required_unless_present = "here")]
    file: Option<PathBuf>,
    /// The store is a database that was put back to an earlier time: its feeds begin new generations.
    #[arg(long, conflicts_with = "file")]
    here: bool,
}

/// Restores a backup and prints what was done.
pub(super) async fn run_restore(options: &RestoreOptions, config: &Config) -> anyhow::Result<()> {
    let done = match &options.file {
        Some(file) => restore(config, file).await,
        None => restore_here(config).await,
    };
    outln!("{}", done.context("nothing was restored")?);
    Ok(())
}
