//! One typed tree made of each module's configuration; alone in reading the file and the environment.

use crate::{
    catalog::FeedSettings,
    hub, ingest,
    secret::{AdminToken, masked},
    serve,
    setting::{RefusedSetting, at_least_one},
    store,
};
use serde::{Deserialize, Serialize};
use std::{
    collections::{BTreeMap, BTreeSet},
    net::SocketAddr,
    path::{Path, PathBuf},
};

mod effect;
mod profiles;
mod source;
mod wanted;

pub use effect::{Effect, effect, waiting_for_restart};
pub use source::ConfigError;

#[cfg(test)]
mod tests;

/// Everything that can be configured.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
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
    pub feed: Vec<FeedSettings>,
}

impl Config {
    /// Reads a file, lets the environment override it, and checks the whole.
    pub fn load(
        file: &Path,
        environment: impl IntoIterator<Item = (String, String)>,
    ) -> Result<Self, ConfigError> {
        let text = source::read(file)?;
        let mut config = Self::from_text(file, &text, environment)?;
        // A service is started in other folders than a shell.
        config.store.path = file.with_file_name("").join(&config.store.path);
        match store_problem(&config.store.path) {
            Some(problem) => Err(ConfigError { file: file.to_owned(), problems: vec![problem] }),
            None => Ok(config),
        }
    }

    /// `server.admin_listen` and `server.admin_token` as a file has them, whatever else is wrong with the file; their defaults
    /// where it has none.
    pub fn admin_contact(
        file: &Path,
        environment: impl IntoIterator<Item = (String, String)>,
    ) -> (SocketAddr, Option<AdminToken>) {
        #[derive(Default, Deserialize)]
        #[serde(default)]
        struct OfServer {
            admin_listen: Option<SocketAddr>,
            admin_token: Option<AdminToken>,
        }
        #[derive(Deserialize)]
        struct OfFile {
            #[serde(default)]
            server: OfServer,
        }
        // A feed that the environment overrides may not be in the file any more.
        let environment: Vec<_> =
            environment.into_iter().filter(|(name, _)| !name.starts_with("EVERFEED__FEED__")).collect();
        let read = |text: &str| {
            let table = source::table(file, text, environment.iter().cloned()).ok()?;
            source::typed::<OfFile>(file, &table, wanted::wanted).ok().map(|found| found.server)
        };
        let text = source::read(file).unwrap_or_default();
        let found = read(&text).unwrap_or_else(|| {
            // Of a file that is no TOML, or has another mistake there, the lines are read by themselves.
            let overridden = read("").unwrap_or_default();
            let of_line = |key| text.lines().find_map(|line| value_of_line(line, key));
            OfServer {
                admin_listen: overridden
                    .admin_listen
                    .or_else(|| of_line("admin_listen").and_then(|address| address.parse().ok())),
                admin_token: overridden.admin_token.or_else(|| of_line("admin_token").map(AdminToken::new)),
            }
        });
        let address = found.admin_listen.unwrap_or_else(|| serve::Config::default().admin_listen);
        (address, found.admin_token)
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
        let table = source::table(file, text, environment)?;
        source::refuse_renamed(file, &table, RENAMED)?;
        let mut config: Self = source::typed(file, &table, wanted::wanted)?;
        let mut problems = Vec::new();
        match config.platforms.folder.as_deref().map(profiles::read) {
            Some(Ok(profiles)) => config.platforms.know(profiles),
            Some(Err(problem)) => problems.push(problem),
            None => {}
        }
        problems.extend(config.problems());
        if problems.is_empty() { Ok(config) } else { Err(ConfigError { file: file.to_owned(), problems }) }
    }

    /// Every setting that has the right type and still cannot be meant.
    fn problems(&self) -> Vec<RefusedSetting> {
        let mut problems = server_problems(&self.server);
        problems.extend(self.upstream.check().err().map(|refused| refused.within("upstream")));
        problems.extend(self.hub.check().err().map(|refused| refused.within("hub")));
        if self.feed.is_empty() {
            let wanted = "give at least one [[feed]] with a name and a url";
            problems.push(RefusedSetting::new("feed", "no feed", wanted));
        }
        let mut names = BTreeSet::new();
        let profiles = self.platforms.profiles();
        problems.extend(shared_namespaces(&self.feed));
        for feed in &self.feed {
            if !names.insert(&feed.name) {
                let wanted = "a second feed of that name; give each its own";
                problems.push(RefusedSetting::new("feed.name", quoted(&feed.name), wanted));
            }
            problems.extend(feed.problems(&profiles));
        }
        problems
    }

    /// Warnings about settings that are allowed, but risky.
    pub fn warnings(&self) -> Vec<String> {
        let is_open = !self.server.admin_listen.ip().to_canonical().is_loopback();
        let untold = "server.admin_listen is beyond loopback, and without server.admin_token it answers nothing but /live, \
                      /ready and /metrics: `everfeed reload` and others need the token";
        let unguarded = (is_open && self.server.admin_token.is_none()).then(|| untold.to_owned());
        unguarded.into_iter().chain(self.feed.iter().flat_map(FeedSettings::warnings)).collect()
    }

    /// A summary of the configuration for people, without secrets.
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

/// Keys that once had another name, without indices, and the names that they have now.
const RENAMED: &[(&str, &str)] =
    &[("feed.deletions.probe", "permalink_checks"), ("upstream.probe_gap_secs", "permalink_check_gap_secs")];

fn server_problems(server: &serve::Config) -> Vec<RefusedSetting> {
    let mut problems = Vec::new();
    let url = &server.public_url;
    if !matches!(url.scheme(), "http" | "https")
        || url.query().is_some()
        || url.fragment().is_some()
        || !url.username().is_empty()
    {
        problems.push(RefusedSetting::new("server.public_url", quoted(url.as_str()), wanted::PUBLIC_URL));
    }
    if server.admin_token.as_ref().is_some_and(|token| !token.is_good()) {
        // Not shown, good or not.
        problems.push(RefusedSetting::new("server.admin_token", "***", wanted::ADMIN_TOKEN));
    }
    let (one, other) = (server.listen, server.admin_listen);
    let everywhere = one.ip().is_unspecified() || other.ip().is_unspecified();
    if one.port() == other.port() && one.port() != 0 && (everywhere || one.ip() == other.ip()) {
        let wanted = "the operator's port is not for consumers; give it another than server.listen";
        problems.push(RefusedSetting::new("server.admin_listen", server.admin_listen, wanted));
    }
    if !is_prefix(&server.prefix) {
        problems.push(RefusedSetting::new(
            "server.prefix",
            quoted(&server.prefix),
            "give a path such as \"/smart\", or nothing",
        ));
    }
    let counts = [
        ("waiters_max", server.waiters_max as u64),
        ("connections_max", server.connections_max as u64),
        ("page_items_max", server.page_items_max as u64),
        ("page_bytes_max", server.page_bytes_max as u64),
        ("classic_items", server.classic_items as u64),
        ("shutdown_secs", server.shutdown_secs),
    ];
    let zero =
        counts.into_iter().filter_map(|(key, value)| at_least_one(key, value, "give at least 1").err());
    problems.extend(zero.map(|refused| refused.within("server")));
    problems
}

/// Steps of plain characters, none of which a client would undo.
fn is_prefix(prefix: &str) -> bool {
    let plain = |step: &str| step.bytes().all(|b| b.is_ascii_alphanumeric() || b"-._~".contains(&b));
    let prefix = prefix.strip_prefix('/').unwrap_or(prefix);
    let prefix = prefix.strip_suffix('/').unwrap_or(prefix);
    prefix.is_empty() || prefix.split('/').all(|step| !matches!(step, "" | "." | "..") && plain(step))
}

fn quoted(text: &str) -> String {
    format!("\"{text}\"")
}

/// The file and the environment that a configuration is read from, so that it can be read again.
#[derive(Clone, Debug)]
pub struct ConfigSource {
    /// The file.
    pub file: PathBuf,
    /// Variables of the environment: those that begin with `EVERFEED__` override the file.
    pub environment: Vec<(String, String)>,
}

/// The value in a line such as `admin_listen = "127.0.0.1:8079"`.
fn value_of_line<'a>(line: &'a str, key: &str) -> Option<&'a str> {
    let value = line.trim_start().strip_prefix(key)?.trim_start().strip_prefix('=')?;
    Some(value.split('#').next()?.trim().trim_matches(['"', '\'']))
}

impl ConfigSource {
    /// A file, and the environment of this process.
    pub fn of(file: &Path) -> Self {
        Self { file: file.to_owned(), environment: environment().collect() }
    }

    /// Reads it.
    pub fn load(&self) -> Result<Config, ConfigError> {
        Config::load(&self.file, self.environment.clone())
    }
}

/// The variables of the environment that can be read. One that is not UTF-8 is passed over.
pub fn environment() -> impl Iterator<Item = (String, String)> {
    let readable = |(name, value): (std::ffi::OsString, std::ffi::OsString)| {
        Some((name.into_string().ok()?, value.into_string().ok()?))
    };
    std::env::vars_os().filter_map(readable)
}

/// The problem with the path of the store, as far as can be told without opening it.
fn store_problem(path: &Path) -> Option<RefusedSetting> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let wanted = if !folder.is_dir() {
        "a file in a folder that does not exist; make the folder, or give another path"
    } else if path.is_dir() {
        "a folder; give the path of a file in it, such as everfeed.redb"
    } else {
        return None;
    };
    Some(RefusedSetting::new("store.path", format!("\"{}\"", path.display()), wanted))
}

/// Feeds whose ids would be the same (DESIGN section 3: ids are unique across feeds).
fn shared_namespaces(feeds: &[FeedSettings]) -> Vec<RefusedSetting> {
    let mut owners: BTreeMap<String, &str> = BTreeMap::new();
    let mut problems = Vec::new();
    for feed in feeds {
        let namespace = feed.namespace();
        if let Some(owner) = owners.get(&namespace) {
            let wanted = format!(
                "the ids of feed `{owner}` are made with the same; poll it once, or set id_namespace"
            );
            problems.push(RefusedSetting::new(format!("feed.{}.url", feed.name), quoted(&namespace), wanted));
        }
        owners.entry(namespace).or_insert(&feed.name);
    }
    problems
}
