//! `everfeed add`: adds a feed to a configuration, and keeps its comments and its order. The file is
//! written whole or not at all.

use super::{
    WithConfig, check,
    config_file::replace,
    feed_name::names,
    probe::{
        Trouble,
        blog::{Blog, BlogFeed, address, look},
        sheet::tame,
    },
};
use crate::{
    config::{self, Config},
    secret::{masked, public_url},
};
use anyhow::Context as _;
use clap::Args;
use std::{collections::BTreeSet, path::Path};
use toml_edit::{ArrayOfTables, DocumentMut, Item, Table, value};
use url::Url;

/// The feed to add.
#[derive(Debug, Args)]
pub(super) struct AddOptions {
    /// The address of the feed, or of a page that names one.
    #[arg(value_name = "URL")]
    url: String,
    #[command(flatten)]
    with: WithConfig,
    /// The name of the feed. Without it `add` finds a free one.
    #[arg(long)]
    name: Option<String>,
}

/// Looks at the feed, and adds it.
pub(super) fn run(options: &AddOptions) -> anyhow::Result<()> {
    let file = &options.with.config;
    let config = options.with.load()?;
    let url = address(&options.url)?;
    refuse_known(&config, &url, file)?;
    let mut feed = the_feed(look(&url, Some(&config))?)?;
    feed.url.set_fragment(None);
    refuse_known(&config, &feed.url, file)?;
    let name = name(options, &config, &feed)?;
    let text = std::fs::read_to_string(file)
        .with_context(|| format!("{} cannot be read", file.display()))?;
    let text = with_feed(&text, &name, feed.url.as_str()).map_err(|why| {
        Trouble::misused(format!("{}: {why}. Nothing was changed", file.display()))
    })?;
    replace(file, &text, config::environment())?;
    println!(
        "Added `{name}` ({}) to {}.",
        masked(feed.url.as_str()),
        file.display()
    );
    let with = match file == Path::new(super::DEFAULT_CONFIG) {
        true => String::new(),
        false => format!(" --config {}", file.display()),
    };
    println!("\nNext, while everfeed runs:\n  everfeed reload{with}");
    Ok(())
}

/// The one feed that is meant.
fn the_feed(mut blog: Blog) -> Result<BlogFeed, Trouble> {
    if blog.feeds.len() > 1 {
        let list = blog.feeds.iter().map(|feed| {
            let title = feed
                .title
                .as_deref()
                .map(|title| format!(" ({})", tame(title)));
            format!(
                "\n  {}{}",
                masked(feed.url.as_str()),
                title.unwrap_or_default()
            )
        });
        let list: String = list.collect();
        return Err(Trouble::misused_lines(&format!(
            "{} names several feeds. Give the URL of the one that you want; nothing was changed:{list}",
            blog.url
        )));
    }
    Ok(blog.feeds.remove(0))
}

/// Refuses a URL that the configuration has already.
fn refuse_known(config: &Config, url: &Url, file: &Path) -> Result<(), Trouble> {
    let wanted = public_url(url);
    let known = config.feed.iter().find(|feed| {
        let aliases = feed.aliases.iter();
        let mut urls = aliases.chain([&feed.url, feed.known_as()]);
        urls.any(|known| public_url(known) == wanted)
    });
    match known {
        Some(feed) => Err(Trouble::misused(format!(
            "{} has this feed already, under the name `{}`. Nothing was changed",
            file.display(),
            feed.name
        ))),
        None => Ok(()),
    }
}

/// The name of the feed: the one that is wanted, else a free one.
fn name(options: &AddOptions, config: &Config, feed: &BlogFeed) -> anyhow::Result<String> {
    let mut taken: BTreeSet<String> = config
        .registered()
        .into_iter()
        .map(|feed| feed.name)
        .collect();
    if let Some(name) = &options.name {
        if taken.contains(name) {
            return Err(Trouble::misused(format!(
                "another feed is named `{name}`. Give another name with --name"
            ))
            .into());
        }
        return Ok(name.clone());
    }
    // Under the name of a removed feed, this one would be taken for it. A store that cannot be
    // looked at stands in nobody's way.
    let file = &options.with.config;
    let kept = super::runtime()?.block_on(check::kept_names(config, file));
    taken.extend(kept);
    let mut names = names(&feed.url, feed.title.as_deref());
    let free = names.find(|name| !taken.contains(name));
    Ok(free.expect("there are names without end"))
}

/// The text of a configuration with one more feed behind the others.
fn with_feed(text: &str, name: &str, url: &str) -> Result<String, String> {
    let mut document: DocumentMut = text
        .parse()
        .map_err(|error| format!("it is no TOML: {error}"))?;
    let feeds = document
        .entry("feed")
        .or_insert_with(|| Item::ArrayOfTables(ArrayOfTables::new()));
    let feeds = feeds.as_array_of_tables_mut();
    let feeds =
        feeds.ok_or("its feeds are written as a list in one line; write each as [[feed]]")?;
    let mut feed = Table::new();
    feed.insert("name", value(name));
    feed.insert("url", value(url));
    feed.decor_mut().set_prefix("\n");
    feeds.push(feed);
    Ok(document.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    const ADDED: &str = "\n[[feed]]\nname = \"b\"\nurl = \"http://b/\"\n";

    #[test]
    fn everything_else_stays_as_it_was() {
        let before = "# The first line.\n[server]   # here\nlisten='127.0.0.1:1'\n\n# One feed.\n[[feed]]\n  url = \"http://a/\" # its url\n\
             name = \"a\"\n[feed.poll]\nmin_secs = 900\n";
        let after = "\n# Groups come behind.\n[[group]]\nname = \"g\"\nmembers = [\n  \"a\", # one\n]\n# The end.\n";
        let check = |before: &str, after: &str| {
            let found = with_feed(&format!("{before}{after}"), "b", "http://b/").unwrap();
            assert_eq!(found, format!("{before}{ADDED}{after}"));
        };
        check(before, after);
        check(before, "");
        check("[[site]]\norigin = \"http://127.0.0.1:1\"\n", "");
    }

    #[test]
    fn feeds_in_one_line_are_refused() {
        let error = with_feed(
            "feed = [{ name = \"a\", url = \"http://a/\" }]\n",
            "b",
            "http://b/",
        )
        .unwrap_err();
        assert!(error.contains("[[feed]]"), "{error}");
    }

    #[test]
    fn a_text_without_an_end_of_line_is_kept_whole() {
        let text = "[[feed]]\nname = \"a\"\nurl = \"http://a/\"";
        let found = with_feed(text, "b", "http://b/").unwrap();
        assert_eq!(found, format!("{text}\n{ADDED}"));
    }
}
