//! `everfeed store`: checks the file of a store that nobody serves.

use super::WithConfig;
use crate::{config::ConfigError, store::redb::verify};
use anyhow::{Context as _, bail};
use clap::{Args, Subcommand};
use std::path::{Path, PathBuf};

#[derive(Debug, Subcommand)]
pub(super) enum StoreCommand {
    /// Read the whole store or a backup, and print what it holds and what is damaged. Writes
    /// nothing. Stop everfeed first, or verify a backup.
    Verify(VerifyOptions),
}

#[derive(Debug, Args)]
pub(super) struct VerifyOptions {
    #[command(flatten)]
    pub(super) with: WithConfig,
    /// The file to read instead of the store in the configuration.
    #[arg(long, value_name = "FILE")]
    file: Option<PathBuf>,
}

impl VerifyOptions {
    /// The file to read; the configuration is read only when none is given.
    pub(super) fn path(&self) -> Result<PathBuf, ConfigError> {
        match &self.file {
            Some(file) => Ok(file.clone()),
            None => Ok(self.with.load()?.store.path),
        }
    }
}

/// Reads the file at a path and prints what was found.
pub(super) fn verify_file(path: &Path) -> anyhow::Result<()> {
    anyhow::ensure!(path.exists(), "there is no store at {}", path.display());
    let report = verify(path).context("nothing was verified")?;
    println!("{}", path.display());
    print!("{report}");
    if let Some(doubt) = report.doubt {
        println!("perhaps damaged: {doubt}; look whether the newest posts are there");
    }
    if report.is_sound() {
        println!("nothing is damaged");
        return Ok(());
    }
    bail!(
        "{} is damaged. Stop everfeed and keep a copy of the file. Then restore a backup, or move the file away and begin anew",
        path.display()
    )
}
