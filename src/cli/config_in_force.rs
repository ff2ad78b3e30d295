//! `everfeed config --config FILE`: the settings in force and where each is set.

use super::probe::sheet::{tame, tame_json};
use crate::cli::output::outln;
use crate::config::{self, ConfigSource, Origin, Setting, settings_in_force};
use clap::Args;
use serde::Serialize as _;
use serde_json::{Value, json};
use std::{
    io::{self, Write as _},
    path::PathBuf,
};
use toml::ser::ValueSerializer;

#[derive(Debug, Args)]
pub(super) struct ConfigOptions {
    /// The configuration whose settings are printed, as TOML with the origin of each as a comment:
    /// the file with its line, a variable of the environment, or the default. Credentials are masked.
    #[arg(long, short, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Print the settings as JSON.
    #[arg(long, requires = "config")]
    json: bool,
}

/// Prints the reference of keys, or the settings of a file.
pub(super) fn run(options: &ConfigOptions) -> anyhow::Result<()> {
    let Some(file) = &options.config else {
        return Ok(io::stdout().write_all(config::REFERENCE.as_bytes())?);
    };
    let settings = settings_in_force(&ConfigSource::of(file))?;
    if options.json {
        let told = json!({ "file": file.display().to_string(), "settings": settings });
        outln!("{}", tame_json(&serde_json::to_string_pretty(&told)?));
        return Ok(());
    }
    outln!(
        "# {}, as the next start reads it",
        tame(&file.display().to_string())
    );
    for line in lines(&settings) {
        outln!("{line}");
    }
    Ok(())
}

/// The settings as TOML. Those without a value are left out, since TOML has no word for it.
fn lines(settings: &[Setting]) -> Vec<String> {
    let mut lines = Vec::new();
    let mut table = "";
    for setting in settings {
        if setting.table != table {
            table = &setting.table;
            lines.push(String::new());
            let list = table.split(['.', '[']).next().unwrap_or(table);
            lines.push(if list == table {
                format!("[{table}]")
            } else {
                format!("[[{list}]]")
            });
        }
        if !setting.value.is_null() {
            let (key, value) = (tame(&setting.key), written(&setting.value));
            lines.push(format!("{key} = {value} # {}", shown(&setting.origin)));
        }
    }
    lines
}

fn shown(origin: &Origin) -> String {
    tame(&origin.to_string())
}

/// A value as TOML writes it on one line.
fn written(value: &Value) -> String {
    let mut text = String::new();
    match value.serialize(ValueSerializer::new(&mut text)) {
        Ok(_) => tame(&text),
        // A list may hold tables with parts that have no value.
        Err(_) => tame(&value.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_are_toml_again() {
        let setting = |table: &str, key: &str, value: Value| Setting {
            table: table.to_owned(),
            key: key.to_owned(),
            value,
            origin: Origin::Default,
        };
        let settings = [
            setting("server", "listen", json!("127.0.0.1:1")),
            setting("server", "tls.key", Value::Null),
            setting("feed.a", "url", json!("http://x/ \u{1b}")),
            setting("feed.a", "poll.max_secs", json!(60)),
            setting("feed.b", "aliases", json!(["http://y/", "z"])),
        ];
        let text = lines(&settings).join("\n");
        let table: toml::Table = text.parse().unwrap();
        assert_eq!(table["feed"][0]["poll"]["max_secs"].as_integer(), Some(60));
        assert_eq!(
            table["feed"][1]["aliases"].as_array().map(Vec::len),
            Some(2)
        );
        assert_eq!(table["server"]["listen"].as_str(), Some("127.0.0.1:1"));
        assert!(
            !text.contains('\u{1b}') && text.contains("# default"),
            "{text}"
        );
    }
}
