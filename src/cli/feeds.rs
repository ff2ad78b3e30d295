//! `everfeed feeds`: the feeds beside the configuration file, through the running process when there
//! is one, else on the store itself.

use super::{
    ListOptions, WithConfig,
    ask::Running,
    probe::sheet::{Column, Keep, table, tame, tame_json, width},
};
use crate::cli::output::{out, outln};
use crate::{
    app::{
        self,
        registry::{
            ListedFeed, RegistryAnswer, RegistryCommand, RegistryPage, ShadowedEntry, UnreadEntry,
        },
    },
    config::{Config, FeedSettings},
};
use anyhow::Context as _;
use clap::{Args, Subcommand};
use http::StatusCode;
use serde::Deserialize;
use serde_json::json;
use std::path::{Path, PathBuf};
use url::Url;

#[derive(Debug, Subcommand)]
pub(super) enum FeedsCommand {
    /// Register or change every feed of a file with [[feed]] tables: all or none, at once.
    Apply(ApplyOptions),
    /// List all feeds: name, url, and where each comes from (file, registry or site).
    List(ListOptions),
    /// Remove a feed from the registry, at once. Its items are kept.
    Remove(RemoveOptions),
}

#[derive(Debug, Args)]
pub(super) struct ApplyOptions {
    #[command(flatten)]
    with: WithConfig,
    /// The file, with the keys of [[feed]] as in a configuration.
    #[arg(value_name = "FEEDS")]
    file: PathBuf,
}

#[derive(Debug, Args)]
pub(super) struct RemoveOptions {
    #[command(flatten)]
    with: WithConfig,
    /// The name of the feed.
    name: String,
}

/// A change that was refused because of a setting. Nothing has changed.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub(super) struct FeedsRefused(String);

/// The parts of a problem that are printed.
#[derive(Debug, Deserialize)]
struct Problem {
    detail: String,
}

/// Pages of feeds that are asked for at most.
const PAGES_MAX: usize = 1000;

impl FeedsCommand {
    pub(super) fn with(&self) -> &WithConfig {
        match self {
            Self::Apply(options) => &options.with,
            Self::List(options) => &options.with,
            Self::Remove(options) => &options.with,
        }
    }
}

/// Carries out a command.
pub(super) async fn run(command: &FeedsCommand, config: &Config) -> anyhow::Result<()> {
    let file = &command.with().config;
    match command {
        FeedsCommand::Apply(options) => {
            let of_file = || format!("{} cannot be read", options.file.display());
            let toml = std::fs::read_to_string(&options.file).with_context(of_file)?;
            let named = |refused: FeedsRefused| {
                let lines = refused.0.lines();
                let lines = lines.map(|line| format!("{}: {line}", options.file.display()));
                FeedsRefused(lines.collect::<Vec<_>>().join("\n"))
            };
            let applied = ask(config, file, RegistryCommand::Apply(toml)).await;
            let told = applied.map_err(|error| match error.downcast::<FeedsRefused>() {
                Ok(refused) => named(refused).into(),
                Err(other) => other,
            })?;
            out!("{told}");
        }
        FeedsCommand::List(options) => list(config, file, options.json).await?,
        FeedsCommand::Remove(options) => {
            let name = options.name.clone();
            ask(config, file, RegistryCommand::Remove(name)).await?;
            outln!(
                "removed  feed.{}\nIts items are kept: `everfeed forget {0}` deletes them.",
                options.name
            );
        }
    }
    Ok(())
}

/// The answer to a command, by the running process or by the store. A refusal is an error.
async fn ask(config: &Config, file: &Path, command: RegistryCommand) -> anyhow::Result<String> {
    let running = Running::of(config);
    let (method, target, body) = command.request();
    if let Ok((status, text)) = running.send(method, &target, body).await {
        if status.is_success() {
            return Ok(text);
        }
        let why = match serde_json::from_str::<Problem>(&text) {
            Ok(problem) => problem.detail,
            Err(_) => text,
        };
        return Err(refused(status, &why));
    }
    let answer = app::change_registry(config, file, command).await;
    match answer.with_context(|| running.absent())? {
        RegistryAnswer::Told(text)
        | RegistryAnswer::Added(text)
        | RegistryAnswer::Applied(text) => Ok(text),
        RegistryAnswer::Removed => Ok(String::new()),
        RegistryAnswer::Refused { status, why, .. } => Err(refused(status, &why)),
    }
}

fn refused(status: StatusCode, why: &str) -> anyhow::Error {
    let why = tame_lines(why.trim_end());
    match status {
        StatusCode::CONFLICT | StatusCode::UNPROCESSABLE_ENTITY => FeedsRefused(why).into(),
        _ => anyhow::anyhow!("{why}"),
    }
}

fn tame_lines(text: &str) -> String {
    text.split('\n').map(tame).collect::<Vec<_>>().join("\n")
}

/// The feeds of the registry, as far as they are known.
#[derive(Default)]
pub(super) struct RegistryFeeds {
    /// Those whose URL is known.
    pub(super) feeds: Vec<FeedSettings>,
    /// Names of those whose URL has a query, which the running process does not show.
    pub(super) hidden: Vec<String>,
}

// Limit: the running process shows no query of a URL, because it may hold a secret.
/// The feeds of the registry, by the running process or by the store. Those that the configuration
/// shadows are left out.
pub(super) async fn of_registry(config: &Config, file: &Path) -> anyhow::Result<RegistryFeeds> {
    let (method, target, _) = RegistryCommand::List { after: None }.request();
    if Running::of(config).ask(method, &target).await.is_err() {
        let feeds = app::registered_feeds(config, file).await?;
        let hidden = Vec::new();
        return Ok(RegistryFeeds { feeds, hidden });
    }
    let mut found = RegistryFeeds::default();
    let listed = all(config, file).await?.feeds.into_iter();
    for feed in listed.filter(|feed| feed.source == "registry") {
        match Url::parse(&feed.url) {
            Ok(url) if !feed.has_query => found.feeds.push(FeedSettings {
                categories: feed.categories,
                ..FeedSettings::new(&feed.name, url)
            }),
            _ => found.hidden.push(feed.name),
        }
    }
    Ok(found)
}

/// All pages of the list of feeds.
async fn all(config: &Config, file: &Path) -> anyhow::Result<RegistryPage> {
    let mut all = RegistryPage::default();
    let mut after = None;
    for _ in 0..PAGES_MAX {
        let text = ask(config, file, RegistryCommand::List { after }).await?;
        let page: RegistryPage = serde_json::from_str(&text)
            .context("the answer of the running everfeed cannot be read. Is it another version?")?;
        all.feeds.extend(page.feeds);
        all.unread.extend(page.unread);
        all.shadowed.extend(page.shadowed);
        after = page.next;
        if after.is_none() {
            break;
        }
    }
    Ok(all)
}

async fn list(config: &Config, file: &Path, as_json: bool) -> anyhow::Result<()> {
    let all = all(config, file).await?;
    if as_json {
        outln!(
            "{}",
            tame_json(&serde_json::to_string_pretty(
                &json!({ "feeds": all.feeds, "unread": all.unread, "shadowed": all.shadowed })
            )?)
        );
        return Ok(());
    }
    for line in lines(&all, width()) {
        outln!("{line}");
    }
    Ok(())
}

/// The source of a feed in words: `registry, from the list planet, paused`.
fn source_of(feed: &ListedFeed) -> String {
    let mut source = tame(&feed.source);
    if let Some(list) = &feed.from_list {
        source += &format!(", from the list {}", tame(list));
    }
    if feed.paused {
        source += ", paused";
    }
    source
}

fn lines(page: &RegistryPage, width: usize) -> Vec<String> {
    let columns = [
        Column::cut("name", Keep::Start, 1),
        Column::text("source"),
        Column::cut("url", Keep::End, 2),
    ];
    let rows = page.feeds.iter();
    let rows: Vec<Vec<String>> = rows
        .map(|feed| vec![tame(&feed.name), source_of(feed), tame(&feed.url)])
        .collect();
    let mut lines = table(&columns, &rows, width);
    for UnreadEntry { name, why } in &page.unread {
        lines.push(format!(
            "{}: its entry in the registry cannot be read: {}",
            tame(name),
            tame(why)
        ));
    }
    for ShadowedEntry { name, why } in &page.shadowed {
        lines.push(format!(
            "{}: its entry in the registry is shadowed: {}",
            tame(name),
            tame(why)
        ));
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_feed_is_a_line_and_an_entry_that_cannot_be_read_is_told() {
        let feed = |name: &str, source: &str| ListedFeed {
            name: name.to_owned(),
            url: format!("http://x/{name}"),
            source: source.to_owned(),
            ..ListedFeed::default()
        };
        let page = RegistryPage {
            feeds: vec![
                feed("a", "file"),
                ListedFeed {
                    from_list: Some("planet".to_owned()),
                    paused: true,
                    ..feed("b", "registry")
                },
            ],
            unread: vec![UnreadEntry {
                name: "c".to_owned(),
                why: "of a newer \u{1b}everfeed".to_owned(),
            }],
            shadowed: vec![ShadowedEntry {
                name: "d".to_owned(),
                why: "the file has it".to_owned(),
            }],
            next: None,
        };
        let told = lines(&page, 100);
        assert_eq!(told.len(), 5, "{told:?}");
        assert!(told[4].starts_with("d: ") && told[4].contains("shadowed"));
        assert!(
            told[1].contains("file") && told[2].contains("registry, from the list planet, paused")
        );
        assert!(told[3].starts_with("c: ") && !told[3].contains('\u{1b}'));
    }
}
