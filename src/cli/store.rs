//! `everfeed store`: checks, measures, shrinks and copies the file of a store that nobody serves.

use super::{WithConfig, probe::sheet::tame_json};
use crate::cli::output::{out, outln};
use crate::{
    clock::{self, Clock as _},
    feed::stamp::Stamp,
    store::{
        self,
        database_url::DatabaseUrl,
        redb::{StoreReport, compact, copy_store, move_store, report, verify},
    },
};
use anyhow::{Context as _, bail};
use clap::{Args, Subcommand};
use serde_json::json;
use std::{
    fmt,
    path::{Path, PathBuf},
    sync::Arc,
};

#[derive(Debug, Subcommand)]
pub(super) enum StoreCommand {
    /// Read the whole store or a backup, and print what it holds and what is damaged. Writes
    /// nothing. Stop everfeed first, or verify a backup.
    Verify(FileOptions),
    /// Print the bytes of the store or of a backup by table, and what is free. Writes nothing. Stop
    /// everfeed first, or measure a backup.
    Report(ReportOptions),
    /// Write the store anew without free space. Stop everfeed first. It takes room for both files
    /// meanwhile, and the store is as it was if it fails.
    Compact(FileOptions),
    /// Copy a store to a new file, or between a file and a database. The copy goes on with all cursors
    /// and subscriptions. FROM refuses to be served from then on. Stop everfeed first. If it was cut
    /// off, run it again.
    Copy(CopyOptions),
}

#[derive(Debug, Args)]
pub(super) struct FileOptions {
    #[command(flatten)]
    with: WithConfig,
    /// The file to take instead of the store in the configuration.
    #[arg(long, value_name = "FILE")]
    file: Option<PathBuf>,
}

impl FileOptions {
    /// The file; the configuration is read only when none is given.
    fn path(&self) -> anyhow::Result<PathBuf> {
        if let Some(file) = &self.file {
            return Ok(file.clone());
        }
        let store = self.with.load()?.store;
        anyhow::ensure!(
            store.url.is_none(),
            "the store is a database, which PostgreSQL checks, measures and shrinks; this command is for a file (--file)"
        );
        Ok(store.path)
    }
}

#[derive(Debug, Args)]
pub(super) struct ReportOptions {
    #[command(flatten)]
    of: FileOptions,
    /// Print the report as JSON.
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Args)]
pub(super) struct CopyOptions {
    /// The store to copy: a file, or the URL of a database.
    from: PathBuf,
    /// The file to make, at which nothing may be; or the URL of an empty database.
    to: PathBuf,
    /// Leave FROM as it is. The copy begins new generations, and has no subscriptions.
    #[arg(long)]
    keep: bool,
}

/// Runs one of the commands.
pub(super) fn run(command: StoreCommand) -> anyhow::Result<()> {
    match command {
        StoreCommand::Verify(options) => verify_file(&options.path()?),
        StoreCommand::Report(options) => report_file(&options.of.path()?, options.json),
        StoreCommand::Compact(options) => compact_file(&options.path()?),
        StoreCommand::Copy(options) => copy_file(&options),
    }
}

/// Prints the bytes of a file by table.
fn report_file(path: &Path, as_json: bool) -> anyhow::Result<()> {
    let found = report(path).context("nothing was measured")?;
    if as_json {
        outln!("{}", tame_json(&told(path, &found).to_string()));
        return Ok(());
    }
    outln!("{}", path.display());
    out!("{}", table(&found));
    Ok(())
}

/// The bytes of a file for programs; tables without rows are left out, as in the lines.
fn told(path: &Path, found: &StoreReport) -> serde_json::Value {
    let tables = found.tables.iter().filter(|table| table.rows > 0);
    let tables = tables.map(|table| {
        json!({
            "name": table.name, "rows": table.rows, "row_bytes": table.row_bytes, "page_bytes": table.page_bytes,
        })
    });
    json!({
        "file": path.display().to_string(),
        "bytes": found.bytes,
        "disk_bytes": found.disk_bytes,
        "free_bytes": found.free_bytes(),
        "tables": tables.collect::<Vec<_>>(),
    })
}

/// The bytes of a file as lines: tables with rows, then what none of them has.
fn table(found: &StoreReport) -> String {
    let share = |bytes: u64| bytes as f64 * 100.0 / found.bytes.max(1) as f64;
    let line = |name: &str, rows: String, row_bytes: String, bytes: u64| {
        let percent = share(bytes);
        format!("{name:<14} {rows:>12} {row_bytes:>15} {bytes:>15} {percent:>6.1} %\n")
    };
    let mut text = format!(
        "{:<14} {:>12} {:>15} {:>15} {:>8}\n",
        "table", "rows", "bytes of rows", "bytes of pages", "share"
    );
    for table in found.tables.iter().filter(|table| table.rows > 0) {
        let (rows, bytes) = (table.rows.to_string(), table.row_bytes.to_string());
        text += &line(table.name, rows, bytes, table.page_bytes);
    }
    let none = String::new;
    text += &line("free", none(), none(), found.free_bytes());
    text += &line("file", none(), none(), found.bytes);
    text + &line("on the disk", none(), none(), found.disk_bytes)
}

/// Writes a file anew and prints what that came to.
fn compact_file(path: &Path) -> anyhow::Result<()> {
    let done = compact(path).context("the store was not compacted")?;
    outln!(
        "{}: {} bytes, {} before",
        path.display(),
        done.after,
        done.before
    );
    Ok(())
}

/// Copies a store and prints what was done.
fn copy_file(options: &CopyOptions) -> anyhow::Result<()> {
    let keep = options.keep;
    let (from, to) = (
        StoreLocation::of(&options.from),
        StoreLocation::of(&options.to),
    );
    outln!(
        "{}",
        copied(&from, &to, keep).context("the store was not copied")?
    );
    if keep {
        outln!(
            "{from} stays as it is. In the copy each feed begins a new generation, and there are no subscriptions"
        );
    } else {
        outln!(
            "{from} is not served any more. Set {} to the copy",
            to.key()
        );
    }
    Ok(())
}

/// The place of a store on the command line.
enum StoreLocation {
    File(PathBuf),
    Database(DatabaseUrl),
}

impl StoreLocation {
    fn of(given: &Path) -> Self {
        match given.to_str() {
            Some(url) if DatabaseUrl::is_named_by(url) => Self::Database(DatabaseUrl::new(url)),
            _ => Self::File(given.to_owned()),
        }
    }

    /// The key of a configuration that names it.
    fn key(&self) -> &'static str {
        match self {
            Self::File(_) => "store.path",
            Self::Database(_) => "store.url",
        }
    }
}

impl fmt::Display for StoreLocation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File(path) => path.display().fmt(f),
            Self::Database(url) => url.fmt(f),
        }
    }
}

/// Copies a store; the words for what is in the copy.
fn copied(from: &StoreLocation, to: &StoreLocation, keep: bool) -> anyhow::Result<String> {
    let now = Stamp::from_micros(clock::System.now_us());
    match (from, to) {
        (StoreLocation::File(from), StoreLocation::File(to)) => {
            let report = if keep {
                copy_store(from, to, now)?
            } else {
                move_store(from, to, now)?
            };
            Ok(format!("{}: {} bytes", to.display(), report.bytes))
        }
        (StoreLocation::Database(_), StoreLocation::Database(_)) => bail!(
            "both are databases; pg_dump and pg_restore copy one to another, with all cursors"
        ),
        (StoreLocation::File(path), StoreLocation::Database(url)) => {
            let rows = store::copy_to_database(path, url, keep, Arc::new(clock::System))?;
            Ok(format!("{url}: {rows} rows"))
        }
        (StoreLocation::Database(url), StoreLocation::File(path)) => {
            let bytes = store::copy_from_database(url, path, keep, Arc::new(clock::System))?;
            Ok(format!("{}: {bytes} bytes", path.display()))
        }
    }
}

/// The words on a damaged file: what a start does with it, and what helps.
fn damage_advice(path: &Path, refused_start: Option<&str>) -> String {
    let path = path.display();
    match refused_start {
        None => format!(
            "{path} is damaged. everfeed starts with it, and serves what is not damaged. Keep a copy of the file, and restore a backup if one is sound"
        ),
        Some(why) => format!(
            "{path} is damaged, and everfeed does not start with it: {why}. Keep a copy of the file, and restore a backup"
        ),
    }
}

/// Reads the file at a path and prints what was found.
pub(super) fn verify_file(path: &Path) -> anyhow::Result<()> {
    anyhow::ensure!(path.exists(), "there is no store at {}", path.display());
    let report = verify(path).context("nothing was verified")?;
    outln!("{}", path.display());
    out!("{report}");
    if !report.is_sound() {
        bail!("{}", damage_advice(path, report.refused_start.as_deref()));
    }
    if let Some(behind) = report.behind {
        bail!(
            "{behind}. It is an older copy, or its first bytes are damaged and hide the newest commits. Nothing else is damaged. At the next start each feed begins a new generation"
        );
    }
    match report.doubt {
        Some(doubt) => outln!(
            "perhaps damaged: {doubt}; look whether the newest posts are there. Nothing else is damaged"
        ),
        None => outln!("nothing is damaged"),
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::redb::TableReport;

    #[test]
    fn a_report_for_programs_has_what_its_lines_say() {
        let table = |name, rows| TableReport {
            name,
            rows,
            row_bytes: 10 * rows,
            page_bytes: 4096 * rows,
        };
        let found = StoreReport {
            bytes: 20_000,
            disk_bytes: 16_384,
            tables: vec![table("items", 3), table("walks", 0)],
        };
        assert_eq!(
            told(Path::new("x.redb"), &found),
            json!({
                "file": "x.redb", "bytes": 20_000, "disk_bytes": 16_384, "free_bytes": 20_000 - 3 * 4096,
                "tables": [{ "name": "items", "rows": 3, "row_bytes": 30, "page_bytes": 3 * 4096 }],
            })
        );
        assert!(!super::table(&found).contains("walks"));
    }
}
