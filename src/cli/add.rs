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
use crate::cli::output::outln;
use crate::{
    config::{self, Config},
    secret::masked,
};
use anyhow::Context as _;
use clap::Args;
use std::{collections::BTreeSet, fs::File, path::Path};
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
    let config = before(&options.with)?;
    let url = address(&options.url)?;
    refuse_known(config.as_ref(), &url, file)?;
    let mut feed = the_feed(look(&url, config.as_ref())?)?;
    feed.url.set_fragment(None);
    // Another one may have been added in the meantime. From here on the next one waits.
    let _alone = lock_beside(file)?;
    let config = before(&options.with)?;
    refuse_known(config.as_ref(), &feed.url, file)?;
    let name = name(options, config.as_ref(), &feed)?;
    let text = std::fs::read_to_string(file)
        .with_context(|| format!("{} cannot be read", file.display()))?;
    let text = with_feed(&text, &name, feed.url.as_str()).map_err(|why| {
        Trouble::misused(format!("{}: {why}. Nothing was changed", file.display()))
    })?;
    replace(file, &text, config::environment())?;
    outln!(
        "Added `{name}` ({}) to {}.",
        masked(feed.url.as_str()),
        file.display()
    );
    let with = match file == Path::new(super::DEFAULT_CONFIG) {
        true => String::new(),
        false => format!(" --config {}", file.display()),
    };
    outln!("\nNext, while everfeed runs:\n  everfeed reload{with}");
    Ok(())
}

/// The configuration as it is; `None` for one that is good but for having no feed yet.
fn before(with: &WithConfig) -> anyhow::Result<Option<Config>> {
    if let Ok(config) = with.load() {
        return Ok(Some(config));
    }
    let text = std::fs::read_to_string(&with.config).unwrap_or_default();
    let has_none = text.parse::<DocumentMut>().is_ok_and(|document| {
        let sources = ["feed", "group", "site"];
        let mut sources = sources.iter().filter_map(|key| document.get(key));
        !with.config.is_dir() && with.config.exists() && sources.all(is_empty_list)
    });
    if has_none {
        return Ok(None);
    }
    // It has feeds, so this tells what else is wrong; or another process has just added the first.
    Ok(Some(with.load()?))
}

fn is_empty_list(item: &Item) -> bool {
    item.as_array().is_some_and(|list| list.is_empty())
}

/// Lets one process at a time change what is in the folder of a file, until the lock is dropped.
fn lock_beside(file: &Path) -> anyhow::Result<File> {
    let locked = || {
        let file = file.canonicalize()?;
        let lock = File::open(file.parent().unwrap_or(&file))?;
        lock.lock().map(|()| lock)
    };
    locked().with_context(|| format!("the folder of {} cannot be locked", file.display()))
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
fn refuse_known(config: Option<&Config>, url: &Url, file: &Path) -> Result<(), Trouble> {
    let wanted = without_login(url);
    let mut feeds = config.iter().flat_map(|config| &config.feed);
    let known = feeds.find(|feed| {
        let aliases = feed.aliases.iter();
        let mut urls = aliases.chain([&feed.url, feed.known_as()]);
        urls.any(|known| without_login(known) == wanted)
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

/// A URL without user, password and fragment. Feeds of one path may differ in their query.
fn without_login(url: &Url) -> Url {
    let mut url = url.clone();
    url.set_fragment(None);
    // A URL that cannot have them has none.
    let _ = url.set_username("");
    let _ = url.set_password(None);
    url
}

/// The name of the feed: the one that is wanted, else a free one.
fn name(options: &AddOptions, config: Option<&Config>, feed: &BlogFeed) -> anyhow::Result<String> {
    let mut taken: BTreeSet<String> = config
        .iter()
        .flat_map(|config| config.registered())
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
    if let Some(config) = config {
        let file = &options.with.config;
        taken.extend(super::runtime()?.block_on(check::kept_names(config, file)));
    }
    let mut names = names(&feed.url, feed.title.as_deref());
    let free = names.find(|name| !taken.contains(name));
    Ok(free.expect("there are names without end"))
}

/// The text of a configuration with one more feed behind the others.
fn with_feed(text: &str, name: &str, url: &str) -> Result<String, String> {
    let mut document: DocumentMut = text
        .parse()
        .map_err(|error| format!("it is no TOML: {error}"))?;
    if document.get("feed").is_some_and(is_empty_list) {
        document.remove("feed");
    }
    // What stands below the last feed belongs to it.
    let is_last = text
        .lines()
        .rfind(|line| line.starts_with('['))
        .is_some_and(|line| line.starts_with("[[feed]]") || line.starts_with("[feed."));
    let mut below = String::new();
    if is_last {
        below = document.trailing().as_str().unwrap_or_default().to_owned();
        document.set_trailing("");
        if !below.is_empty() && !below.ends_with('\n') {
            below.push('\n');
        }
    }
    let feeds = document
        .entry("feed")
        .or_insert_with(|| Item::ArrayOfTables(ArrayOfTables::new()));
    let feeds = feeds.as_array_of_tables_mut();
    let feeds =
        feeds.ok_or("its feeds are written as a list in one line; write each as [[feed]]")?;
    let mut feed = Table::new();
    feed.insert("name", value(name));
    feed.insert("url", value(url));
    feed.decor_mut().set_prefix(below + "\n");
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
        let hint = "# aliases = [\"http://a.example/\"]  # its public address\n";
        check(&format!("{before}{hint}"), "");
        check(
            &format!("[[group]]\nname = \"g\"\nmembers = [\"a\"]\n{before}{hint}"),
            "",
        );
        check("[server]\nlisten = \"127.0.0.1:1\"\n", "");
        check("[[site]]\norigin = \"http://127.0.0.1:1\"\n", "");
    }

    #[test]
    fn feeds_of_one_path_differ_in_their_queries() {
        let url = |text: &str| without_login(&Url::parse(text).unwrap());
        assert_ne!(url("http://a/q?cat=1"), url("http://a/q?cat=2"));
        assert_eq!(url("http://u:p@a/q?cat=1#x"), url("http://a/q?cat=1"));
    }

    #[test]
    fn an_empty_list_becomes_the_first_feed() {
        let found = with_feed("feed = []\n", "b", "http://b/").unwrap();
        assert_eq!(found, ADDED);
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
