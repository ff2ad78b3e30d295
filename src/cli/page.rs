//! The page of the book with the long help of every command. `EVERFEED_WRITE_BOOK=1` writes it.

use super::Arguments;
use clap::{Command, CommandFactory as _};
use std::path::Path;

/// Columns of the help.
const COLUMNS: usize = 100;

const PAGE: &str = "docs/reference/command-line.md";

const HEAD: &str = "# Command line

This page is printed from the program: `everfeed COMMAND --help` says the same.

| Exit code | Meaning |
|---|---|
| 0 | The command did what it says. |
| 1 | It did not. The error says who is at fault. |
| 64 | The command or the configuration has a mistake. Nothing was started or changed. |
";

/// The whole page.
fn page() -> String {
    let mut root = Arguments::command().term_width(COLUMNS);
    root.build();
    let mut page = HEAD.to_owned();
    add(&mut root, "everfeed", &mut page);
    page
}

/// The help of a command, and then those of the commands below it.
fn add(command: &mut Command, name: &str, page: &mut String) {
    let help = command.render_long_help().to_string();
    let lines: Vec<&str> = help.lines().map(str::trim_end).collect();
    let help = lines.join("\n");
    page.push_str(&format!(
        "\n## {name}\n\n```text\n{}\n```\n",
        help.trim_end()
    ));
    for below in command.get_subcommands_mut() {
        if below.get_name() != "help" && !below.is_hide_set() {
            let name = format!("{name} {}", below.get_name());
            add(below, &name, page);
        }
    }
}

#[test]
fn the_book_has_the_help_of_every_command() {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join(PAGE);
    let page = page();
    if std::env::var_os("EVERFEED_WRITE_BOOK").is_some() {
        std::fs::write(&file, &page).unwrap();
    }
    let book = std::fs::read_to_string(&file).unwrap_or_default();
    assert!(
        book == page,
        "{PAGE} is not what the program prints. EVERFEED_WRITE_BOOK=1 cargo test --lib cli::page writes it"
    );
}

#[test]
fn every_command_says_what_it_does() {
    fn check(command: &Command) {
        let name = command.get_name();
        assert!(name == "help" || command.get_about().is_some(), "{name}");
        command.get_subcommands().for_each(check);
    }
    let mut root = Arguments::command();
    root.build();
    check(&root);
    assert!(page().matches("\n## everfeed ").count() > 20);
}
