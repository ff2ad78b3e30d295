//! `everfeed probe`: fetches or reads a document once and says what would be kept of it. Nothing is
//! stored.

use super::load_if_named;
use crate::{
    app::probe::{Choice, DocumentFormat},
    config::Config,
    secret::masked,
};
use clap::Args;
use everfeed_adapters::{neutral_line, platforms::Platforms, slice};
use findings::Findings;
use std::{
    ffi::OsString,
    io::{self, Write},
    path::PathBuf,
    sync::Arc,
};
use url::Url;

mod source;

mod findings;

mod report;

mod facts;

mod history;

mod entries;

pub(super) mod blog;

pub(super) mod sheet;

/// The documents to read, and the form of the report.
#[derive(Debug, Args)]
#[command(arg_required_else_help = true)]
pub struct ProbeOptions {
    /// An http or https URL, a file, or `-` for standard input.
    #[arg(value_name = "URL|FILE")]
    target: OsString,
    /// Print one line of JSON (the neutral form) instead of a page for people.
    #[arg(long)]
    json: bool,
    /// Take the whole document as the only entry, as `format = "resource"` does.
    #[arg(long)]
    resource: bool,
    /// Show every entry instead of the first ones.
    #[arg(long)]
    all: bool,
    /// Use the limits, the contact URL and the platforms of this configuration. Without it, the
    /// defaults apply.
    #[arg(long, short, value_name = "FILE")]
    config: Option<PathBuf>,
}

/// Reason why there is no report. Text that an upstream wrote cannot steer the terminal from here
/// either.
#[derive(Debug, thiserror::Error)]
#[error("{text}")]
pub struct Trouble {
    text: String,
    /// True when the command itself cannot be meant.
    pub(super) is_misused: bool,
}

impl Trouble {
    pub(super) fn new(text: impl AsRef<str>) -> Self {
        Self {
            text: sheet::tame(text.as_ref()),
            is_misused: false,
        }
    }

    /// The same trouble in other words, line by line.
    pub(super) fn with_text(&self, text: impl AsRef<str>) -> Self {
        let lines: Vec<String> = text.as_ref().lines().map(sheet::tame).collect();
        Self {
            text: lines.join("\n"),
            is_misused: self.is_misused,
        }
    }

    /// A misuse that is told in several lines.
    pub(super) fn misused_lines(text: &str) -> Self {
        Self::misused("").with_text(text)
    }

    pub(super) fn misused(text: impl AsRef<str>) -> Self {
        Self {
            is_misused: true,
            ..Self::new(text)
        }
    }
}

/// Reads what the options name, and tells of it on standard output.
pub(super) fn run(options: &ProbeOptions) -> anyhow::Result<()> {
    print(options, &mut io::stdout().lock())
}

fn print(options: &ProbeOptions, out: &mut impl Write) -> anyhow::Result<()> {
    let target = &options.target;
    let config = load_if_named(options.config.as_deref())?;
    let format = if options.resource {
        DocumentFormat::Resource
    } else {
        DocumentFormat::Auto
    };
    let given = source::read(target, config.as_ref(), format);
    let given = given
        .or_else(|trouble| failed(options, &masked(&target.to_string_lossy()), trouble, out))?;
    let read = slice(&given.bytes, &given.hints());
    if options.json {
        let line = neutral_line(&given.name, read.as_ref()).to_string();
        writeln!(out, "{}", sheet::tame_json(&line))?;
    }
    let window = read.map_err(|error| given.no_feed(&error))?;
    if !options.json {
        let shown_max = if options.all {
            usize::MAX
        } else {
            entries::SHOWN_MAX
        };
        let (platforms, choice) = platform(config.as_ref(), &target.to_string_lossy());
        let findings = Findings::of(&given, &window, &platforms, &choice);
        out.write_all(report::page(&findings, shown_max, sheet::width()).as_bytes())?;
    }
    Ok(out.flush()?)
}

/// Every known profile, and what the configuration says of the platform of this feed.
fn platform(config: Option<&Config>, target: &str) -> (Arc<Platforms>, Choice) {
    let platforms = config.map(|config| config.platforms.profiles());
    let platforms = platforms.unwrap_or_else(|| Arc::new(Platforms::embedded().clone()));
    let url = Url::parse(target).ok();
    let mut feeds = config.iter().flat_map(|config| &config.feed);
    let feed = feeds.find(|feed| Some(&feed.url) == url.as_ref());
    let choice = feed.map(|feed| feed.platform.clone());
    (platforms, choice.unwrap_or_default())
}

/// The trouble, which `--json` tells on standard output as well.
fn failed<T>(
    options: &ProbeOptions,
    name: &str,
    trouble: Trouble,
    out: &mut impl Write,
) -> anyhow::Result<T> {
    if options.json {
        let line = serde_json::json!({ "file": name, "ok": false, "error": trouble.to_string() });
        writeln!(out, "{}", sheet::tame_json(&line.to_string()))?;
    }
    Err(trouble.into())
}
