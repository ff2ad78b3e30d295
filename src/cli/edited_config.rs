//! A configuration to which feeds and groups are added: its comments and its order stay, and it is
//! written whole or not at all. Not which feeds those are.

use super::{WithConfig, check, config_file::replace, probe::Trouble};
use crate::{
    app::{
        BesideStore, ConfigBesideStore,
        address_spelling::{digest, spelling},
        feed_name::{FIRST_NUMBER, label, names_from},
    },
    cli::output::errln,
    config::{self, Config},
};
use anyhow::Context as _;
use std::{
    collections::{BTreeSet, HashMap},
    fmt,
    fs::File,
    path::Path,
};
use toml_edit::{Array, ArrayOfTables, DocumentMut, Item, Table, value};
use url::Url;

/// A configuration that this process alone changes, until it is dropped.
pub(super) struct EditedConfig<'w> {
    with: &'w WithConfig,
    _alone: File,
    /// The configuration before; `None` for one that is good but for having no feed yet.
    pub(super) config: Option<Config>,
    /// Names that a new feed or group cannot have.
    taken: BTreeSet<String>,
    /// The last number behind a label in a name that was taken, by label: a list may have thousands of
    /// feeds of one host.
    numbers: HashMap<String, u64>,
    /// Names of its feeds, by what is the same in all spellings of their addresses.
    known: HashMap<String, String>,
    /// The registry of its store. Empty where the store cannot be looked at.
    registry: BesideStore,
}

/// The place of a feed that is there already.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum KnownIn {
    /// The configuration file.
    File,
    /// The registry of the store.
    Registry,
}

impl fmt::Display for KnownIn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::File => "there",
            Self::Registry => "in the registry",
        })
    }
}

/// A feed that is added.
pub(super) struct AddedFeed {
    pub(super) name: String,
    pub(super) url: Url,
    pub(super) categories: Vec<String>,
    pub(super) public_hosts_only: bool,
}

/// A group that is added.
pub(super) struct AddedGroup {
    pub(super) name: String,
    pub(super) title: String,
    pub(super) members: Vec<String>,
}

impl<'w> EditedConfig<'w> {
    /// Waits until nobody else changes the file, and reads it.
    pub(super) fn begin(with: &'w WithConfig) -> anyhow::Result<Self> {
        let alone = lock_beside(&with.config)?;
        let config = before(with)?;
        let registered = config.iter().flat_map(|config| config.registered());
        let mut taken: BTreeSet<String> = registered.map(|feed| feed.name).collect();
        // Under the name of a removed feed, a new one would be taken for it. A store that cannot be
        // looked at stands in nobody's way.
        let mut registry = BesideStore::default();
        if let Some(config) = &config {
            let looked = super::runtime()?.block_on(check::look(config, &with.config));
            let looked = looked.unwrap_or_else(|why| {
                // Neither file nor registry has a feed yet: nobody has to be told that.
                if !config.lacks_feeds() {
                    errln!("The registry of feeds was not looked at: {why:#}");
                }
                ConfigBesideStore::default()
            });
            taken.extend(looked.kept.into_iter().map(|feed| feed.name));
            registry = looked.beside;
            taken.extend(registry.registry_names().map(str::to_owned));
        }
        Ok(Self {
            with,
            _alone: alone,
            known: known(config.as_ref()),
            config,
            taken,
            numbers: HashMap::new(),
            registry,
        })
    }

    /// Takes a name that the operator wants. Only a feed that is configured or registered stands in
    /// its way.
    pub(super) fn wanted_name(&mut self, name: &str) -> Result<String, Trouble> {
        let mut registered = self.config.iter().flat_map(|config| config.registered());
        let is_in_file = registered.any(|feed| feed.name == name);
        if is_in_file || self.registry.registry_names().any(|taken| taken == name) {
            return Err(Trouble::misused(format!(
                "another feed is named `{name}`. Give another name with --name"
            )));
        }
        self.taken.insert(name.to_owned());
        Ok(name.to_owned())
    }

    /// Takes a free name for a feed.
    pub(super) fn free_name(&mut self, url: &Url, title: Option<&str>) -> String {
        let label = label(url);
        let number = self.numbers.get(&label).copied();
        let name = self.first_free(names_from(url, title, number.unwrap_or(FIRST_NUMBER)));
        let number = name.strip_prefix(&label);
        let number = number.and_then(|rest| rest.strip_prefix('-')?.parse().ok());
        if let Some(number) = number {
            self.numbers.insert(label, number);
        }
        name
    }

    /// Takes the first name that is free.
    pub(super) fn first_free(&mut self, mut names: impl Iterator<Item = String>) -> String {
        let free = names.find(|name| self.taken.insert(name.clone()));
        free.expect("there are names without end")
    }

    /// The place and the name of the feed at a URL, if the configuration or the registry has it.
    pub(super) fn known(&self, url: &Url) -> Option<(KnownIn, &str)> {
        let in_file = self.known.get(&spelling(url));
        let in_file = in_file.map(|name| (KnownIn::File, name.as_str()));
        in_file.or_else(|| {
            let name = self.registry.addresses.get(&digest(url))?;
            Some((KnownIn::Registry, name.as_str()))
        })
    }

    /// Writes the configuration with these feeds and groups behind the others.
    pub(super) fn write(&self, feeds: &[AddedFeed], groups: &[AddedGroup]) -> anyhow::Result<()> {
        let file = &self.with.config;
        let text = std::fs::read_to_string(file)
            .with_context(|| format!("{} cannot be read", file.display()))?;
        let text = with_tables(&text, feeds, groups).map_err(|why| {
            Trouble::misused(format!("{}: {why}. Nothing was changed", file.display()))
        })?;
        replace(file, &text, config::environment())
    }

    /// The line that puts the change in force.
    pub(super) fn reload_command(&self) -> String {
        let file = &self.with.config;
        if file == Path::new(super::DEFAULT_CONFIG) {
            "everfeed reload".to_owned()
        } else {
            format!("everfeed reload --config {}", file.display())
        }
    }
}

impl AddedFeed {
    /// A feed with the usual settings.
    pub(super) fn new(name: String, url: Url) -> Self {
        Self {
            name,
            url,
            categories: Vec::new(),
            public_hosts_only: false,
        }
    }

    fn table(&self) -> Table {
        let mut table = Table::new();
        table.insert("name", value(&self.name));
        table.insert("url", value(self.url.as_str()));
        if !self.categories.is_empty() {
            table.insert(
                "categories",
                value(self.categories.iter().collect::<Array>()),
            );
        }
        if self.public_hosts_only {
            table.insert("public_hosts_only", value(true));
        }
        table
    }
}

impl AddedGroup {
    fn table(&self) -> Table {
        let mut table = Table::new();
        table.insert("name", value(&self.name));
        table.insert("title", value(&self.title));
        table.insert("members", value(self.members.iter().collect::<Array>()));
        table
    }
}

/// The configuration as it is; `None` for one that is good but for having no feed yet.
pub(super) fn before(with: &WithConfig) -> anyhow::Result<Option<Config>> {
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

/// Names of the feeds of a configuration, by what is the same in all spellings of their addresses.
pub(super) fn known(config: Option<&Config>) -> HashMap<String, String> {
    let mut known = HashMap::new();
    for feed in config.iter().flat_map(|config| &config.feed) {
        for url in feed.addresses() {
            known
                .entry(spelling(url))
                .or_insert_with(|| feed.name.clone());
        }
    }
    known
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

/// The text of a configuration with more feeds and groups, each behind the others of its kind.
fn with_tables(text: &str, feeds: &[AddedFeed], groups: &[AddedGroup]) -> Result<String, String> {
    let mut document: DocumentMut = text
        .parse()
        .map_err(|error| format!("it is no TOML: {error}"))?;
    // What stands below the last table belongs to it.
    let last = text.lines().rfind(|line| line.starts_with('['));
    let last = last.unwrap_or_default().trim_start_matches('[');
    push(
        &mut document,
        "feed",
        last,
        feeds.iter().map(AddedFeed::table),
    )?;
    push(
        &mut document,
        "group",
        last,
        groups.iter().map(AddedGroup::table),
    )?;
    Ok(document.to_string())
}

/// Adds tables to those of a key. `last` is the header of the last table of the text.
fn push(
    document: &mut DocumentMut,
    key: &str,
    last: &str,
    tables: impl ExactSizeIterator<Item = Table>,
) -> Result<(), String> {
    if tables.len() == 0 {
        return Ok(());
    }
    if document.get(key).is_some_and(is_empty_list) {
        document.remove(key);
    }
    let is_last = last
        .strip_prefix(key)
        .is_some_and(|rest| rest.starts_with([']', '.']));
    let mut below = String::new();
    if is_last {
        below = document.trailing().as_str().unwrap_or_default().to_owned();
        document.set_trailing("");
        if !below.is_empty() && !below.ends_with('\n') {
            below.push('\n');
        }
    }
    let list = document
        .entry(key)
        .or_insert_with(|| Item::ArrayOfTables(ArrayOfTables::new()));
    let list = list.as_array_of_tables_mut().ok_or_else(|| {
        format!("its {key}s are written as a list in one line; write each as [[{key}]]")
    })?;
    for mut table in tables {
        table
            .decor_mut()
            .set_prefix(std::mem::take(&mut below) + "\n");
        list.push(table);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    const ADDED: &str = "\n[[feed]]\nname = \"b\"\nurl = \"http://b/\"\n";

    fn with_feed(text: &str) -> Result<String, String> {
        let url = Url::parse("http://b/").unwrap();
        with_tables(text, &[AddedFeed::new("b".to_owned(), url)], &[])
    }

    #[test]
    fn everything_else_stays_as_it_was() {
        let before = "# The first line.\n[server]   # here\nlisten='127.0.0.1:1'\n\n# One feed.\n[[feed]]\n  url = \"http://a/\" # its url\n\
             name = \"a\"\n[feed.poll]\nmin_secs = 900\n";
        let after = "\n# Groups come behind.\n[[group]]\nname = \"g\"\nmembers = [\n  \"a\", # one\n]\n# The end.\n";
        let check = |before: &str, after: &str| {
            let found = with_feed(&format!("{before}{after}")).unwrap();
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
    fn feeds_and_groups_come_behind_those_that_are_there() {
        let feed = "[[feed]]\nname = \"a\"\nurl = \"http://a/\"\n";
        let group = "\n[[group]]\nname = \"g\"\nmembers = [\"a\"]\n";
        let added = AddedFeed {
            categories: vec!["t".to_owned()],
            public_hosts_only: true,
            ..AddedFeed::new("b".to_owned(), Url::parse("http://b/").unwrap())
        };
        let added_feed = format!("{ADDED}categories = [\"t\"]\npublic_hosts_only = true\n");
        let groups = [AddedGroup {
            name: "t".to_owned(),
            title: "T".to_owned(),
            members: vec!["category:t".to_owned()],
        }];
        let added_group = "\n[[group]]\nname = \"t\"\ntitle = \"T\"\nmembers = [\"category:t\"]\n";
        let end = "# Of the group above.\n";
        let found = with_tables(&format!("{feed}{group}{end}"), &[added], &groups).unwrap();
        assert_eq!(
            found,
            format!("{feed}{added_feed}{group}{end}{added_group}")
        );
    }

    #[test]
    fn an_empty_list_becomes_the_first_feed() {
        assert_eq!(with_feed("feed = []\n").unwrap(), ADDED);
    }

    #[test]
    fn feeds_in_one_line_are_refused() {
        let error = with_feed("feed = [{ name = \"a\", url = \"http://a/\" }]\n").unwrap_err();
        assert!(error.contains("[[feed]]"), "{error}");
    }

    #[test]
    fn a_text_without_an_end_of_line_is_kept_whole() {
        let text = "[[feed]]\nname = \"a\"\nurl = \"http://a/\"";
        assert_eq!(with_feed(text).unwrap(), format!("{text}\n{ADDED}"));
    }
}
