//! `everfeed man` and `everfeed completions`: manual pages and completions of shells, from the same
//! arguments that are read.

use super::Arguments;
use crate::cli::output::outln;
use anyhow::Context as _;
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
    let Some(folder) = &options.folder else {
        let (_, page) = pages()?.swap_remove(0);
        return Ok(io::stdout().write_all(&page)?);
    };
    let failed = || format!("no manual page can be written into {}", folder.display());
    fs::create_dir_all(folder).with_context(failed)?;
    let pages = pages()?;
    let count = pages.len();
    for (name, page) in pages {
        fs::write(folder.join(format!("{name}.1")), page).with_context(failed)?;
    }
    outln!("{}: {count} pages", folder.display());
    Ok(())
}

/// Every page by its name, that of the program first.
fn pages() -> io::Result<Vec<(String, Vec<u8>)>> {
    let mut root = Arguments::command().name(NAME);
    root.build();
    let mut pages = Vec::new();
    add(root, NAME, &mut pages)?;
    Ok(pages)
}

/// The page of a command, and then those of the commands below it.
fn add(command: clap::Command, name: &str, pages: &mut Vec<(String, Vec<u8>)>) -> io::Result<()> {
    let below: Vec<clap::Command> = command
        .get_subcommands()
        .filter(|below| below.get_name() != "help" && !below.is_hide_set())
        .cloned()
        .collect();
    let mut page = Vec::new();
    let title = name.to_uppercase();
    Man::new(command.display_name(name.to_owned()))
        .title(title)
        .manual("everfeed")
        .render(&mut page)?;
    pages.push((name.to_owned(), page));
    for command in below {
        let name = format!("{name}-{}", command.get_name());
        add(command, &name, pages)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_command_has_a_page() {
        let pages = pages().unwrap();
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
        }
    }
}
