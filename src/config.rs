//! One typed tree made of each module's configuration; alone in reading the file and the environment.

use crate::{
    hub,
    ingest::{self, platform::Choice},
    serve, store,
};
use everfeed_adapters::platforms::Platforms;
use serde::Deserialize;
use std::{
    collections::{BTreeMap, BTreeSet},
    path::Path,
};
use url::Url;

mod profiles;
mod source;
mod wanted;

pub use source::{ConfigError, Problem};

#[cfg(test)]
mod tests;

/// Everything that can be configured.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    /// `[server]`.
    pub server: serve::Config,
    /// `[store]`.
    pub store: store::redb::Config,
    /// `[upstream]`.
    pub upstream: ingest::Config,
    /// `[hub]`.
    pub hub: hub::Config,
    /// `[platforms]`.
    pub platforms: ingest::platform::Config,
    /// `[[feed]]`, once for each.
    pub feed: Vec<Feed>,
}

/// `[[feed]]`: an upstream and how it is treated.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Feed {
    /// Its name in our URLs: `[a-z0-9][a-z0-9-]{0,62}`.
    pub name: String,
    /// Where the old feed is. May carry `user:password@`.
    pub url: Url,
    /// The feed's public URLs, where they differ from `url`. Relative references are resolved against the first; it
    /// changes no id.
    #[serde(default)]
    pub aliases: Vec<Url>,
    /// What its ids are hashed with; fixed when the feed is first seen. Derived from the URL when absent.
    #[serde(default)]
    pub id_namespace: Option<String>,
    /// What is made of its document.
    #[serde(default)]
    pub format: ingest::Format,
    /// Which software makes it, for what that software is known to do: `auto`, `none`, or the name of a profile.
    #[serde(default)]
    pub platform: ingest::platform::Choice,
    /// How often it is polled.
    #[serde(default)]
    pub poll: ingest::Poll,
    /// How much absence proves that an item is gone.
    #[serde(default)]
    pub deletions: ingest::Deletions,
    /// How its archives are read.
    #[serde(default)]
    pub import: ingest::Import,
    /// `[feed.record]`: keeps its last documents, for `everfeed replay`. None is kept without it.
    #[serde(default)]
    pub record: Option<ingest::Record>,
}

/// The longest name of a feed, characters.
const NAME_CHARS_MAX: usize = 63;

impl Config {
    /// Reads a file, lets the environment override it, and checks the whole.
    pub fn load(
        file: &Path,
        environment: impl IntoIterator<Item = (String, String)>,
    ) -> Result<Self, ConfigError> {
        let text = source::read(file)?;
        let config = Self::from_text(file, &text, environment)?;
        match store_problem(&config.store.path) {
            Some(problem) => Err(ConfigError { file: file.to_owned(), problems: vec![problem] }),
            None => Ok(config),
        }
    }

    /// Reads a text that stands in no file; `name` is what errors call it.
    pub fn parse(name: &str, text: &str) -> Result<Self, ConfigError> {
        Self::from_text(Path::new(name), text, [])
    }

    fn from_text(
        file: &Path,
        text: &str,
        environment: impl IntoIterator<Item = (String, String)>,
    ) -> Result<Self, ConfigError> {
        let mut config: Self = source::typed(file, text, environment, wanted::wanted)?;
        let mut problems = Vec::new();
        match config.platforms.folder.as_deref().map(profiles::read) {
            Some(Ok(profiles)) => config.platforms.know(profiles),
            Some(Err(problem)) => problems.push(problem),
            None => {}
        }
        problems.extend(config.problems());
        if problems.is_empty() { Ok(config) } else { Err(ConfigError { file: file.to_owned(), problems }) }
    }

    /// Everything that has the right type and still cannot be meant.
    fn problems(&self) -> Vec<Problem> {
        let mut problems = server_problems(&self.server);
        problems.extend(self.upstream.check().err().map(|mistake| refused("upstream", mistake)));
        problems.extend(
            self.hub.check().err().map(|bad| Problem::new(format!("hub.{}", bad.key), bad.found, bad.wanted)),
        );
        if self.feed.is_empty() {
            problems.push(Problem::new(
                "feed",
                "no feed",
                "give at least one [[feed]] with a name and a url",
            ));
        }
        let mut names = BTreeSet::new();
        let profiles = self.platforms.profiles();
        problems.extend(shared_namespaces(&self.feed));
        for feed in &self.feed {
            if !names.insert(&feed.name) {
                problems.push(Problem::new(
                    "feed.name",
                    shown(&feed.name),
                    "a second feed of that name; give each its own",
                ));
            }
            problems.extend(feed.problems());
            problems.extend(feed.platform_problem(&profiles));
        }
        problems
    }

    /// What is bold, but allowed.
    pub fn warnings(&self) -> Vec<String> {
        let of = |feed: &Feed| {
            let mut found = feed.deletions.check().unwrap_or_default();
            found.extend(feed.import.warnings());
            let name = feed.name.clone();
            found.into_iter().map(move |warning| format!("feed.{name}: {warning}"))
        };
        self.feed.iter().flat_map(of).collect()
    }

    /// What the configuration means, for people, without secrets.
    pub fn summary(&self, file: &Path) -> String {
        let Self { server, store, hub, feed, .. } = self;
        let mut lines = vec![
            format!("{}: good", file.display()),
            format!("  consumers   {} as {}", server.listen, server.public_url),
            format!("  operator    {}", server.admin_listen),
            format!("  store       {}", store.path.display()),
            format!(
                "  callbacks   {}",
                if hub.callbacks_private { "public and private" } else { "public only" }
            ),
        ];
        for feed in feed {
            let poll = feed.poll.policy();
            let least = poll.min_secs.map_or_else(
                || "3600 s unless the feed hints at less".to_owned(),
                |secs| format!("{secs} s"),
            );
            lines.push(format!("  feed        {}: {}", feed.name, masked(feed.url.as_str())));
            lines.push(format!(
                "              polled after {least}, and after {} s at the latest",
                poll.max_secs
            ));
            lines.push(format!("              ids in namespace {}", masked(&feed.namespace())));
            if let Some(alias) = feed.aliases.first() {
                lines.push(format!("              relative links lead from {alias}"));
            }
        }
        lines.extend(self.warnings().iter().map(|warning| format!("  warning     {warning}")));
        lines.join("\n") + "\n"
    }
}

impl Feed {
    fn problems(&self) -> Vec<Problem> {
        let key = |key: &str| format!("feed.{}.{key}", self.name);
        let mut problems = Vec::new();
        if !is_name(&self.name) {
            problems.push(Problem::new("feed.name", shown(&self.name), wanted::NAME));
        }
        if !matches!(self.url.scheme(), "http" | "https") || self.url.fragment().is_some() {
            problems.push(Problem::new(key("url"), shown(&masked(self.url.as_str())), wanted::FEED_URL));
        }
        let is_alias = |url: &Url| {
            matches!(url.scheme(), "http" | "https") && url.username().is_empty() && url.password().is_none()
        };
        if let Some(bad) = self.aliases.iter().find(|url| !is_alias(url)) {
            problems.push(Problem::new(key("aliases"), shown(&masked(bad.as_str())), wanted::ALIAS));
        }
        if self.id_namespace.as_deref().is_some_and(|given| given.is_empty() || given.contains('\n')) {
            let found = shown(self.id_namespace.as_deref().unwrap_or_default());
            problems.push(Problem::new(key("id_namespace"), found, "give one line of text, or leave it out"));
        }
        let of_feed = |mistake| refused(&format!("feed.{}", self.name), mistake);
        problems.extend(self.poll.check().err().map(of_feed));
        problems.extend(self.deletions.check().err().map(of_feed));
        problems.extend(self.record.as_ref().and_then(|record| record.check().err()).map(of_feed));
        problems
    }

    fn platform_problem(&self, profiles: &Platforms) -> Option<Problem> {
        let Choice::Named(name) = &self.platform else { return None };
        if profiles.get(name).is_some() {
            return None;
        }
        let known: Vec<&str> = profiles.iter().map(|profile| profile.name.as_str()).collect();
        let wanted = format!("give auto, none, or one of {}", known.join(", "));
        Some(Problem::new(format!("feed.{}.platform", self.name), shown(name), wanted))
    }

    /// What the feed's ids are hashed with: as configured, else host, port, path and query of its URL, without scheme,
    /// credentials and fragment, so that a move to https changes no id (DESIGN section 3).
    pub fn namespace(&self) -> String {
        self.id_namespace.clone().unwrap_or_else(|| {
            let host = self.url.host_str().unwrap_or_default().to_ascii_lowercase();
            let port = self.url.port().map(|port| format!(":{port}")).unwrap_or_default();
            let query = self.url.query().map(|query| format!("?{query}")).unwrap_or_default();
            format!("{host}{port}{}{query}", self.url.path())
        })
    }
}

fn server_problems(server: &serve::Config) -> Vec<Problem> {
    let mut problems = Vec::new();
    let url = &server.public_url;
    if !matches!(url.scheme(), "http" | "https")
        || url.query().is_some()
        || url.fragment().is_some()
        || !url.username().is_empty()
    {
        problems.push(Problem::new("server.public_url", shown(&masked(url.as_str())), wanted::PUBLIC_URL));
    }
    let (one, other) = (server.listen, server.admin_listen);
    let everywhere = one.ip().is_unspecified() || other.ip().is_unspecified();
    if one.port() == other.port() && one.port() != 0 && (everywhere || one.ip() == other.ip()) {
        let wanted = "the operator's port is not for consumers; give it another than server.listen";
        problems.push(Problem::new("server.admin_listen", server.admin_listen, wanted));
    }
    if !is_prefix(&server.prefix) {
        problems.push(Problem::new(
            "server.prefix",
            shown(&server.prefix),
            "give a path such as \"/smart\", or nothing",
        ));
    }
    let at_least_one = [
        ("waiters_max", server.waiters_max as u64),
        ("connections_max", server.connections_max as u64),
        ("page_items_max", server.page_items_max as u64),
        ("page_bytes_max", server.page_bytes_max as u64),
        ("classic_items", server.classic_items as u64),
        ("shutdown_secs", server.shutdown_secs),
    ];
    let zero = at_least_one.into_iter().filter(|(_, value)| *value == 0);
    problems.extend(zero.map(|(key, _)| Problem::new(format!("server.{key}"), 0, "give at least 1")));
    problems
}

/// Steps of plain characters, none of which a client would undo.
fn is_prefix(prefix: &str) -> bool {
    let plain = |step: &str| step.bytes().all(|b| b.is_ascii_alphanumeric() || b"-._~".contains(&b));
    let prefix = prefix.strip_prefix('/').unwrap_or(prefix);
    let prefix = prefix.strip_suffix('/').unwrap_or(prefix);
    prefix.is_empty() || prefix.split('/').all(|step| !matches!(step, "" | "." | "..") && plain(step))
}

fn refused(table: &str, mistake: ingest::Mistake) -> Problem {
    Problem::new(format!("{table}.{}", mistake.key), masked(&mistake.found), mistake.remedy)
}

fn is_name(name: &str) -> bool {
    let plain = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit();
    let mut bytes = name.bytes();
    bytes.next().is_some_and(plain) && bytes.all(|b| plain(b) || b == b'-') && name.len() <= NAME_CHARS_MAX
}

fn shown(text: &str) -> String {
    format!("\"{text}\"")
}

/// The variables of the environment that can be read; one that is not UTF-8 is none of ours.
pub fn environment() -> impl Iterator<Item = (String, String)> {
    let readable = |(name, value): (std::ffi::OsString, std::ffi::OsString)| {
        Some((name.into_string().ok()?, value.into_string().ok()?))
    };
    std::env::vars_os().filter_map(readable)
}

/// What is wrong with the place of the store, as far as looking tells.
fn store_problem(path: &Path) -> Option<Problem> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let wanted = if !folder.is_dir() {
        "a file in a folder that does not exist; make the folder, or give another path"
    } else if path.is_dir() {
        "a folder; give the path of a file in it, such as everfeed.redb"
    } else {
        return None;
    };
    Some(Problem::new("store.path", format!("\"{}\"", path.display()), wanted))
}

/// Feeds whose ids would be the same (DESIGN section 3: ids are unique across feeds).
fn shared_namespaces(feeds: &[Feed]) -> Vec<Problem> {
    let mut owners: BTreeMap<String, &str> = BTreeMap::new();
    let mut problems = Vec::new();
    for feed in feeds {
        let namespace = feed.namespace();
        if let Some(owner) = owners.get(&namespace) {
            let wanted = format!(
                "the ids of feed `{owner}` are made with the same; poll it once, or set id_namespace"
            );
            problems.push(Problem::new(
                format!("feed.{}.url", feed.name),
                shown(&masked(&namespace)),
                wanted,
            ));
        }
        owners.entry(namespace).or_insert(&feed.name);
    }
    problems
}

/// A text whose credentials must not be shown: whatever stands before an `@` where a URL has its authority.
pub fn masked(text: &str) -> String {
    let start = text.find("//").map_or(0, |at| at + 2);
    let end = text[start..].find(['/', '?', '#']).map_or(text.len(), |at| start + at);
    match text[start..end].rfind('@') {
        Some(at) => format!("{}***{}", &text[..start], &text[start + at..]),
        None => text.to_owned(),
    }
}

/// A feed's URL as everybody may see it: without credentials, and without a query, which may be a token.
pub fn public(url: &Url) -> String {
    let mut url = url.clone();
    // Both fail only for URLs without a host, which have no credentials.
    let _ = url.set_username("");
    let _ = url.set_password(None);
    url.set_query(None);
    url.into()
}
