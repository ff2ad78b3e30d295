//! `everfeed man` and `everfeed completions`: manual pages and completions of shells, from the same
//! arguments that are read.

use super::Arguments;
use crate::cli::output::outln;
use anyhow::Context as _;
use chrono::{DateTime, Utc};
use clap::{Args, CommandFactory as _};
use clap_complete::Shell;
use clap_mangen::Man;
use std::{
    fs,
    io::{self, Write as _},
    path::PathBuf,
};

#[derive(Debug, Args)]
pub(super) struct CompletionOptions {
    /// The shell.
    shell: Shell,
}

#[derive(Debug, Args)]
pub(super) struct ManOptions {
    /// Write a page for each command into this folder, which is made where it is missing.
    #[arg(long, value_name = "FOLDER")]
    folder: Option<PathBuf>,
}

/// The name of the program, whatever its file is called.
const NAME: &str = "everfeed";

/// Prints the script of a shell.
pub(super) fn complete(options: &CompletionOptions) -> anyhow::Result<()> {
    let mut script = Vec::new();
    clap_complete::generate(options.shell, &mut Arguments::command(), NAME, &mut script);
    Ok(io::stdout().write_all(&script)?)
}

/// Prints the page of the program, or writes all pages.
pub(super) fn write(options: &ManOptions) -> anyhow::Result<()> {
    let date = date()?;
    let Some(folder) = &options.folder else {
        let (_, page) = pages(&date)?.swap_remove(0);
        return Ok(io::stdout().write_all(&page)?);
    };
    let failed = || format!("no manual page can be written into {}", folder.display());
    fs::create_dir_all(folder).with_context(failed)?;
    let pages = pages(&date)?;
    let count = pages.len();
    for (name, page) in pages {
        fs::write(folder.join(format!("{name}.1")), page).with_context(failed)?;
    }
    outln!("{}: {count} pages", folder.display());
    Ok(())
}

/// The date of the pages: that of `SOURCE_DATE_EPOCH`, by which packages are the same each time, else
/// today.
fn date() -> anyhow::Result<String> {
    let now = match std::env::var("SOURCE_DATE_EPOCH") {
        Ok(secs) => secs
            .parse()
            .ok()
            .and_then(|secs| DateTime::from_timestamp(secs, 0))
            .with_context(|| {
                format!("SOURCE_DATE_EPOCH: found \"{secs}\"; give seconds since 1970")
            })?,
        Err(_) => Utc::now(),
    };
    Ok(now.format("%Y-%m-%d").to_string())
}

/// Every page by its name, that of the program first.
fn pages(date: &str) -> io::Result<Vec<(String, Vec<u8>)>> {
    let mut root = Arguments::command().name(NAME);
    root.build();
    let mut pages = Vec::new();
    add(root, NAME, date, &mut pages)?;
    Ok(pages)
}

/// The page of a command, and then those of the commands below it.
fn add(
    command: clap::Command,
    name: &str,
    date: &str,
    pages: &mut Vec<(String, Vec<u8>)>,
) -> io::Result<()> {
    let below: Vec<clap::Command> = command
        .get_subcommands()
        .filter(|below| below.get_name() != "help" && !below.is_hide_set())
        .cloned()
        .collect();
    let mut page = Vec::new();
    let title = name.to_uppercase();
    Man::new(command.display_name(name.to_owned()))
        .title(title)
        .date(date)
        .source(concat!("everfeed ", env!("CARGO_PKG_VERSION")))
        .manual("everfeed")
        .render(&mut page)?;
    pages.push((name.to_owned(), tidied(&page)));
    for command in below {
        let name = format!("{name}-{}", command.get_name());
        add(command, &name, date, pages)?;
    }
    Ok(())
}

/// A page without the breaks of a line before and after an empty one, of which formatters warn.
fn tidied(page: &[u8]) -> Vec<u8> {
    let lines: Vec<&[u8]> = page.split(|byte| *byte == b'\n').collect();
    let is_empty = |at: Option<usize>| {
        let line = at.and_then(|at| lines.get(at));
        line.is_some_and(|line| line.is_empty() || *line == b".sp")
    };
    let is_kept = |at: &usize| {
        let is_beside = is_empty(at.checked_sub(1)) || is_empty(at.checked_add(1));
        lines[*at] != b".br" || !is_beside
    };
    let kept = (0..lines.len()).filter(is_kept).map(|at| lines[at]);
    kept.collect::<Vec<_>>().join(&b'\n')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_command_has_a_page() {
        let pages = pages("2026-06-01").unwrap();
        let names: Vec<&str> = pages.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(names[0], "everfeed");
        for name in [
            "everfeed-serve",
            "everfeed-feeds-apply",
            "everfeed-token-new",
        ] {
            assert!(names.contains(&name), "{names:?}");
        }
        for (name, page) in &pages {
            let page = String::from_utf8(page.clone()).unwrap();
            assert!(page.contains(".SH SYNOPSIS"), "{name}: {page}");
            assert!(page.contains(" 2026-06-01 "), "{name}: {page}");
            assert!(
                !page.contains(".br\n\n") && !page.contains("\n\n.br"),
                "{name}"
            );
        }
    }
}
