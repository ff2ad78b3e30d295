//! `everfeed check`, beside the configuration itself: what `serve` would refuse of it, what is kept
//! of feeds that it does not name, and who may read the feeds of its sites, by the running process
//! or by the store.

use super::{WithConfig, ask::Running, probe::sheet::tame, reload::other_file, status};
use crate::cli::output::{out, outln};
use crate::{
    app::{
        self, BesideStore, ConfigBesideStore, RemovedFeed, moved_line,
        registry::{ShadowedEntry, UnreadEntry},
        site_addresses::{address_lines, at_sites, configured_at_sites},
        status::{FeedStatus, Status},
    },
    config::{Config, ConfigError, Registered},
    secret::public_url,
    store::StoreError,
};
use anyhow::{Context as _, bail};
use clap::Args;
use http::{Method, StatusCode};
use std::{
    collections::{BTreeMap, HashSet},
    path::Path,
};
use url::Url;

mod tries;

/// The configuration that is checked, and what else is printed.
#[derive(Debug, Args)]
pub(super) struct CheckOptions {
    #[command(flatten)]
    pub(super) with: WithConfig,
    /// Print what a reload of the running everfeed would change, and nothing else.
    #[arg(long)]
    diff: bool,
}

/// A configuration that the running process would refuse.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub(super) struct CheckRefused(String);

/// Checks a configuration that can be read beside what is stored, and prints what it means. An
/// error is the one by which `serve` would refuse it.
pub(super) async fn run(mut config: Config, options: &CheckOptions) -> anyhow::Result<()> {
    let file = &*options.with.config;
    if options.diff {
        return print_diff(&config, file).await;
    }
    let (looked, trouble) = match look(&config, file).await {
        Ok(looked) => (looked, None),
        Err(error) if is_refused_at_start(&error) => return Err(error),
        // The configuration is good all the same.
        Err(error) => {
            let config = config.clone();
            let config = config.with_registered(&Registered::default(), file)?;
            let feeds = configured_at_sites(&config);
            let looked = ConfigBesideStore {
                feeds,
                ..ConfigBesideStore::default()
            };
            (looked, Some(error))
        }
    };
    let warnings = match app::database_warnings(&config).await {
        Ok(warnings) => warnings,
        Err(error) if is_refused_at_start(&error) => return Err(error),
        // The look at the store tells the same.
        Err(_) => Vec::new(),
    };
    for feed in &mut config.feed {
        if let Some(namespace) = looked.beside.namespaces.get(&feed.name) {
            feed.id_namespace = Some(namespace.clone());
        }
    }
    let (questions, left) = (&looked.beside.questions, &looked.beside.left);
    let summary = config.summary(file);
    // A configuration that would begin a feed without its items is not called good.
    match summary.split_once('\n') {
        Some((_, rest)) if !questions.is_empty() => {
            outln!("{}: asks whether a feed has moved", file.display());
            for question in questions {
                outln!("  question    {question}");
            }
            out!("{rest}");
        }
        _ => out!("{summary}"),
    }
    for line in address_lines(&config, &looked.feeds) {
        outln!("{line}");
    }
    for feed in &looked.beside.moved {
        outln!("  ids         {}", moved_line(feed));
    }
    for left in left {
        outln!("  left        {left}");
    }
    let registered = looked.beside.registered.len();
    if registered > 0 {
        outln!("  registry    feeds: {registered}; `everfeed feeds list` names them");
    }
    for UnreadEntry { name, why } in &looked.beside.unread {
        outln!("  registry    the entry of feed `{name}` cannot be read: {why}");
    }
    for ShadowedEntry { name, why } in &looked.beside.shadowed {
        outln!("  registry    the entry `{name}` is shadowed: {why}");
    }
    for feed in &looked.kept {
        outln!("  kept        {feed}");
    }
    for warning in warnings {
        outln!("  database    {warning}");
    }
    if let Some(error) = trouble {
        outln!("  store       was not looked at: {error:#}");
    }
    for line in tries::all(&config, file, &looked.beside.reload).await {
        outln!("  tried       {line}");
    }
    match questions.len() {
        0 => Ok(()),
        open => Err(CheckRefused(format!(
            "{}: unanswered questions about feeds that may have moved: {open}; see above",
            file.display()
        ))
        .into()),
    }
}

/// Prints what a reload would change.
async fn print_diff(config: &Config, file: &Path) -> anyhow::Result<()> {
    let beside = look(config, file).await?.beside;
    if beside.reload.is_empty() {
        bail!(
            "no everfeed runs with {}, so there is nothing to compare it with",
            file.display()
        );
    }
    for line in &beside.reload {
        outln!("{}", tame(line));
    }
    Ok(())
}

/// True for what `serve` would end with, too; not for a store that another process has open, or
/// that this user may not read.
fn is_refused_at_start(error: &anyhow::Error) -> bool {
    super::is_misconfigured(error)
        || error.is::<ConfigError>()
        || matches!(error.downcast_ref(), Some(StoreError::Damaged(_)))
}

/// Looks at a configuration beside its store, through the running process if there is one.
pub(super) async fn look(config: &Config, file: &Path) -> anyhow::Result<ConfigBesideStore> {
    let running = Running::of(config);
    let status = running.ask(Method::GET, "/status?max=1").await;
    if let Ok((StatusCode::OK, text)) = status
        && other_file(&text, file).is_none()
    {
        match running.ask(Method::GET, "/check").await? {
            (StatusCode::OK, text) => {
                let beside: BesideStore =
                    serde_json::from_str(&text).context("a finding that is no JSON")?;
                let pages = status::pages(file, &running).await?;
                let polled = pages.iter().flat_map(|page| &page.feeds);
                let old = polled.filter_map(|feed| Some((&*feed.name, feed.old_url.as_deref()?)));
                let mut kept = unnamed(&pages, config);
                let BesideStore { registered, .. } = &beside;
                kept.retain(|feed| !registered.contains(&feed.name));
                return Ok(ConfigBesideStore {
                    beside,
                    kept,
                    feeds: at_sites(config, old),
                });
            }
            (StatusCode::UNPROCESSABLE_ENTITY, why) => {
                return Err(CheckRefused(format!("{}: {}", file.display(), why.trim_end())).into());
            }
            // It has another store, or is older.
            _ => {}
        }
    }
    app::beside_store(config, file).await
}

/// The feeds of a running process that the configuration does not name.
fn unnamed(pages: &[Status], config: &Config) -> Vec<RemovedFeed> {
    let registered = config.registered();
    let names: HashSet<&str> = registered.iter().map(|feed| feed.name.as_str()).collect();
    // Those that were found at a site are named by it.
    let is_found = |feed: &FeedStatus| {
        let url = feed.old_url.as_ref().and_then(|url| Url::parse(url).ok());
        let mut sites = config.site.iter();
        url.is_some_and(|url| sites.any(|site| site.may_have(&url, &config.server.public_url)))
    };
    // One server may have several sites: their feeds are told apart by their addresses there.
    let urls: BTreeMap<String, &str> = config
        .feed
        .iter()
        .map(|feed| (public_url(feed.known_as()), feed.name.as_str()))
        .collect();
    let mut kept = Vec::new();
    let running = pages.iter().flat_map(|page| &page.feeds);
    for feed in running.filter(|feed| !is_found(feed)) {
        let url = feed.old_url.as_ref().unwrap_or(&feed.url);
        kept.push(RemovedFeed {
            name: feed.name.clone(),
            items: feed.items.unwrap_or_default(),
            renamed_to: urls.get(url).map(|name| (*name).to_owned()),
        });
    }
    if let Some(first) = pages.first() {
        kept.extend(first.removed_feeds.iter().cloned());
    }
    kept.retain(|feed| !names.contains(feed.name.as_str()));
    kept.sort_by(|one, other| one.name.cmp(&other.name));
    kept
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn read(page: Value) -> Status {
        serde_json::from_value(page).unwrap()
    }

    #[test]
    fn feeds_that_run_and_are_not_named_any_more_are_kept() {
        let text = "[[feed]]\nname = \"a\"\nurl = \"http://x/a\"\n[[feed]]\nname = \"new\"\nurl = \"http://u:p@x/b?t=1\"\n";
        let config = Config::parse("x", text).unwrap();
        let feed = |name: &str, url: &str| json!({ "name": name, "url": url, "items": 5 });
        let first = json!({ "feeds": [feed("a", "http://x/a"), feed("b", "http://x/b")], "removed_feeds": [{ "name": "old", "items": 2, "renamed_to": "a" }] });
        let kept = unnamed(
            &[
                read(first),
                read(json!({ "feeds": [feed("c", "http://x/c")] })),
            ],
            &config,
        );
        let told: Vec<_> = kept
            .iter()
            .map(|feed| (feed.name.as_str(), feed.items, feed.renamed_to.as_deref()))
            .collect();
        assert_eq!(
            told,
            [("b", 5, Some("new")), ("c", 5, None), ("old", 2, Some("a"))]
        );
    }

    #[test]
    fn groups_and_feeds_that_were_found_at_a_site_are_named() {
        let text = |feeds: &str, host: &str| {
            format!(
                "[server]\npublic_url = \"http://feeds.example\"\n[[site]]\nhost = \"{host}\"\norigin = \"http://127.0.0.1:1\"\nfeeds = {feeds}\n\
                 [[feed]]\nname = \"a\"\nurl = \"http://x/a\"\n[[group]]\nname = \"g\"\nmembers = [\"a\"]\n"
            )
        };
        let page = read(json!({ "feeds": [
            { "name": "a", "url": "http://x/a", "items": 1 },
            { "name": "g", "url": "group:g", "members": ["a"], "items": 1 },
            { "name": "blog-rss-xml", "url": "http://127.0.0.1:1/rss.xml", "old_url": "http://blog.example/rss.xml", "items": 1 },
        ] }));
        let kept = |text: String| {
            let config = Config::parse("x", &text).unwrap();
            let kept = unnamed(std::slice::from_ref(&page), &config);
            kept.into_iter().map(|feed| feed.name).collect::<Vec<_>>()
        };
        assert!(kept(text("\"auto\"", "blog.example")).is_empty());
        assert!(kept(text("[\"/rss.xml\"]", "blog.example")).is_empty());
        assert_eq!(
            kept(text("[\"/other.xml\"]", "blog.example")),
            ["blog-rss-xml"]
        );
        assert_eq!(
            kept(text("\"auto\"", "elsewhere.example")),
            ["blog-rss-xml"]
        );
    }
}
