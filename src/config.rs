//! One typed tree made of each module's configuration; alone in reading the file and the
//! environment.

use crate::{
    alerts::AlertSettings,
    catalog::{GroupSettings, OpmlSettings, SiteSettings},
    hub::{self, WebhookSettings},
    ingest::{self, CredentialSettings},
    readers, search_engines,
    secret::{AdminToken, logged_text, masked_with_query},
    serve::{
        self,
        own_addresses::{Listeners, OwnAddresses},
    },
    setting::RefusedSetting,
    store, subscriber, xmpp,
};
use config_text::{ConfigText, INCLUDE, IncludedFile};
use serde::{Deserialize, Deserializer, Serialize};
use std::{
    net::SocketAddr,
    path::{Path, PathBuf},
};
use typed::{ConfigReading, LackingFeed};
use url::Url;

mod digest;
mod in_force;

mod source;

mod config_text;

mod typed;

mod parts;

mod registered;

mod beside_registry;

mod keys;

mod key_table;

mod problems;

mod profiles;

mod warnings;

pub use crate::catalog::FeedSettings;
pub use in_force::{Origin, Setting, settings_in_force};
pub use key_table::{Effect, REFERENCE, effect, waiting_for_restart};
pub use registered::{EntryReader, FeedEntry, Registered};
pub use source::ConfigError;

#[cfg(test)]
mod tests;

/// Everything that can be configured.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    /// `include`: paths and patterns of further files.
    #[serde(deserialize_with = "one_or_many")]
    pub include: Vec<String>,
    /// `[server]`.
    pub server: serve::Config,
    /// `[store]`.
    pub store: store::Config,
    /// `[upstream]`.
    pub upstream: ingest::Config,
    /// `[push]`.
    pub push: subscriber::Config,
    /// `[search_engines]`.
    pub search_engines: search_engines::Config,
    /// `[hub]`.
    pub hub: hub::Config,
    /// `[xmpp]`.
    pub xmpp: xmpp::Config,
    /// `[platforms]`.
    pub platforms: ingest::platform::Config,
    /// `[[feed]]`, once for each; and the feeds of sites that are no `[[feed]]` of their own.
    pub feed: Vec<FeedSettings>,
    /// `[[group]]`, once for each.
    pub group: Vec<GroupSettings>,
    /// `[[site]]`, once for each.
    pub site: Vec<SiteSettings>,
    /// `[[webhook]]`, once for each.
    pub webhook: Vec<WebhookSettings>,
    /// `[[credentials]]`, once for each.
    pub credentials: Vec<CredentialSettings>,
    /// `[[alert]]`, once for each.
    pub alert: Vec<AlertSettings>,
    /// `[[opml]]`, once for each.
    pub opml: Vec<OpmlSettings>,
    /// Feeds that the file names and lacks: the registry may have them.
    #[serde(skip)]
    lacking: Vec<LackingFeed>,
    /// The sockets of this process, once they are bound.
    #[serde(skip)]
    bound: Listeners,
}

impl Config {
    /// Reads a file, lets the environment override it, and checks the whole. Feeds that it names
    /// may be those of the registry: [`Config::with_registered`] tells those that are missing.
    pub fn load(
        file: &Path,
        environment: impl IntoIterator<Item = (String, String)>,
    ) -> Result<Self, ConfigError> {
        let text = source::read(file)?;
        let included = source::included(file, &text)?;
        // A service is started in other folders than a shell.
        let folder = file.with_file_name("");
        let mut config = Self::from_text(file, &text, &included, environment, |config| {
            config.store.path = folder.join(&config.store.path);
            config.server.listen.below(&folder);
            let tls = &mut config.server.tls;
            let mut paths = vec![
                &mut config.store.key_file,
                &mut tls.certificate,
                &mut tls.key,
                &mut config.upstream.identity,
                &mut config.upstream.identity_also,
                &mut config.xmpp.secret_file,
                &mut config.xmpp.tls_root,
            ];
            if let Some(acme) = &mut tls.acme {
                paths.extend([&mut acme.root, &mut acme.folder]);
            }
            for path in paths.into_iter().flatten() {
                *path = folder.join(&*path);
            }
            let of_certificate = problems::certificate_problem(config)
                .into_iter()
                .chain(problems::acme_problems(config))
                .chain(problems::key_file_problem(config))
                .chain(problems::identity_problem(config))
                .chain(xmpp::problem_with_files(&config.xmpp).map(|it| it.within("xmpp")));
            problems::store_problem(config)
                .into_iter()
                .chain(of_certificate)
                .collect()
        })?;
        for record in config
            .feed
            .iter_mut()
            .filter_map(|feed| feed.record.as_mut())
        {
            record.folder = folder.join(&record.folder);
        }
        for file in config.opml.iter_mut().filter_map(|list| list.file.as_mut()) {
            *file = folder.join(&*file);
        }
        Ok(config)
    }

    /// `server.admin_listen` and `server.admin_token` as a file has them, whatever else is wrong
    /// with the file; their defaults where it has none.
    pub fn admin_contact(
        file: &Path,
        environment: impl IntoIterator<Item = (String, String)>,
    ) -> (SocketAddr, Option<AdminToken>) {
        // A feed that the environment overrides may not be in the file any more.
        let environment = environment
            .into_iter()
            .filter(|(name, _)| !name.starts_with("EVERFEED__FEED__"));
        let text = source::read(file).unwrap_or_default();
        let included = source::included(file, &text).unwrap_or_default();
        let written = ConfigText::read_files(&text, &included, environment);
        let found = |key: &str| {
            let value = written
                .table
                .get("server")
                .and_then(|server| server.get(key)?.as_str());
            // Of a file that is no TOML the line is read by itself.
            value.or_else(|| text.lines().find_map(|line| value_of_line(line, key)))
        };
        let address = found("admin_listen").and_then(|address| address.parse().ok());
        let address = address.unwrap_or_else(|| serve::Config::default().admin_listen);
        (address, found("admin_token").map(AdminToken::new))
    }

    /// True for a file that is TOML and names `server.admin_listen`, or for an environment that
    /// does. One that is no TOML may have any part of it cut or changed.
    pub fn names_admin_listen(
        file: &Path,
        environment: impl IntoIterator<Item = (String, String)>,
    ) -> bool {
        let is_named = |text: String| {
            let table = toml::from_str::<toml::Table>(&text).ok()?;
            table.get("server")?.get("admin_listen")?.as_str().map(drop)
        };
        let mut environment = environment.into_iter();
        environment.any(|(name, _)| name == "EVERFEED__SERVER__ADMIN_LISTEN")
            || source::read(file).is_ok_and(|text| {
                let included = source::included(file, &text).unwrap_or_default();
                let texts = included.into_iter().map(|file| file.text);
                std::iter::once(text)
                    .chain(texts)
                    .any(|text| is_named(text).is_some())
            })
    }

    /// Reads a text that stands in no file; `name` is what errors call it.
    pub fn parse(name: &str, text: &str) -> Result<Self, ConfigError> {
        let file = Path::new(name);
        let config = Self::from_text(file, text, &[], [], |_| Vec::new())?;
        config.with_registered(&Registered::default(), file)
    }

    // Decides: Which mistakes of a configuration are told?
    /// Reads a text and the files that it includes, and finds every mistake in them. `beside` looks for
    /// those outside of the text.
    fn from_text(
        file: &Path,
        text: &str,
        included: &[IncludedFile],
        environment: impl IntoIterator<Item = (String, String)>,
        beside: impl Fn(&mut Self) -> Vec<RefusedSetting>,
    ) -> Result<Self, ConfigError> {
        let environment: Vec<(String, String)> = environment.into_iter().collect();
        let parts = if included.is_empty() {
            parts::parts(text)
        } else {
            vec![text]
        };
        let folder = file.with_file_name("");
        let (mut config, mut problems) =
            Self::read(&parts, included, environment.clone(), &folder, &beside);
        if parts.len() > 1 && !(problems.is_empty() && config.lacking.is_empty()) {
            // Lines, and mistakes that concern two parts, are known only of the whole.
            (config, problems) = Self::read(&[text], included, environment, &folder, &beside);
        }
        if problems.is_empty() {
            return Ok(config);
        }
        let lacking = config.lacking.into_iter().map(|lacking| lacking.mistake);
        problems.extend(lacking);
        Err(ConfigError::of(file, problems))
    }

    /// Reads the parts of a text, and finds every mistake in them. Where there are several,
    /// mistakes only tell that there are any. Relative paths of what is read besides count from
    /// `folder`.
    fn read(
        parts: &[&str],
        included: &[IncludedFile],
        environment: Vec<(String, String)>,
        folder: &Path,
        beside: impl Fn(&mut Self) -> Vec<RefusedSetting>,
    ) -> (Self, Vec<RefusedSetting>) {
        let (first, rest) = parts
            .split_first()
            .map_or(("", &[][..]), |(first, rest)| (*first, rest));
        let written = ConfigText::read_files(first, included, environment);
        let mut reading = ConfigReading::new(written);
        reading.refuse_control_characters();
        reading.refuse_both("store", "path", "url");
        let mut config = Self {
            include: reading.top(INCLUDE),
            server: serve::Config {
                readers: reading.section("server", readers::Config::check),
                ..reading.section("server", serve::Config::check)
            },
            store: reading.section("store", |_| Ok(())),
            upstream: reading.section("upstream", ingest::Config::check),
            push: reading.section("push", |_| Ok(())),
            search_engines: reading.section("search_engines", search_engines::Config::check),
            hub: reading.section("hub", hub::Config::check),
            xmpp: reading.section("xmpp", xmpp::Config::check),
            platforms: reading.section("platforms", |_| Ok(())),
            feed: Vec::new(),
            group: Vec::new(),
            site: Vec::new(),
            webhook: reading
                .list("webhook")
                .into_iter()
                .map(|(_, webhook)| webhook)
                .collect(),
            credentials: reading
                .list("credentials")
                .into_iter()
                .map(|(_, one)| one)
                .collect(),
            alert: Vec::new(),
            opml: Vec::new(),
            lacking: Vec::new(),
            bound: Listeners::default(),
        };
        problems::of_credentials(&config.credentials, &mut reading);
        match config
            .platforms
            .folder
            .as_deref()
            .map(|profiles| profiles::read(&folder.join(profiles)))
        {
            Some(Ok(profiles)) => config.platforms.know(profiles),
            Some(Err(problem)) => reading.add(problem),
            None => {}
        }
        let sites: Vec<(String, SiteSettings)> = reading.list("site");
        let mut feeds: Vec<(String, FeedSettings)> = reading.list("feed");
        let mut groups: Vec<(String, GroupSettings)> = reading.list("group");
        for part in rest {
            let mut further = ConfigReading::new(ConfigText::read(part, []));
            further.refuse_control_characters();
            feeds.extend(further.list("feed"));
            groups.extend(further.list("group"));
            reading.take_over_all(further);
        }
        let problems = problems::of_server(&config.server);
        problems
            .into_iter()
            .chain(beside(&mut config))
            .for_each(|problem| reading.take_over(problem));
        let hosts: Vec<_> = sites.iter().map(|(_, site)| site.host.clone()).collect();
        let own = OwnAddresses::of(&config.server, &Listeners::default(), &hosts);
        problems::of_sites(&sites, &config.server, &own, &mut reading);
        for (path, feed) in &feeds {
            let found = problems::own_urls(feed, &own).into_iter();
            found.for_each(|problem| reading.take_over(problem.within(path)));
        }
        problems::of_own_webhooks(&config.webhook, &own, &mut reading);
        config.alert = problems::sound_alerts(&own, &mut reading);
        config.opml = problems::sound_lists(&own, &mut reading);
        let feeds = config.join_listed(feeds, &groups, &sites, &mut reading);
        config.feed = feeds.into_iter().map(|(_, feed)| feed).collect();
        config.group = groups.into_iter().map(|(_, group)| group).collect();
        config.site = sites.into_iter().map(|(_, site)| site).collect();
        config.lacking = reading.take_lacking();
        (config, reading.into_mistakes())
    }

    /// Joins the feeds of sites to these, and checks all that is listed beside each other. Each has
    /// the path of its keys.
    fn join_listed(
        &self,
        feeds: Vec<(String, FeedSettings)>,
        groups: &[(String, GroupSettings)],
        sites: &[(String, SiteSettings)],
        reading: &mut ConfigReading<'_>,
    ) -> Vec<(String, FeedSettings)> {
        if feeds.is_empty() && sites.is_empty() && self.opml.is_empty() {
            lack_any_feed(reading);
        }
        let feeds = join_feeds_of_sites(sites, feeds, &self.server.public_url);
        problems::of_listed_feeds(sites, &feeds, reading);
        problems::of_feeds(&feeds, sites, &self.platforms.profiles(), reading);
        problems::of_groups(groups, &feeds, sites, &self.opml, reading);
        problems::of_webhooks(&self.webhook, &feeds, groups, sites, reading);
        feeds
    }

    /// The same, which knows the sockets of this process.
    #[must_use]
    pub fn listening_at(self, bound: Listeners) -> Self {
        Self { bound, ..self }
    }

    /// The addresses at which we answer ourselves.
    pub fn own_addresses(&self) -> OwnAddresses {
        let hosts: Vec<_> = self.site.iter().map(|site| site.host.clone()).collect();
        OwnAddresses::of(&self.server, &self.bound, &hosts)
    }

    /// The URLs of a feed that is put beside this configuration at which we answer ourselves.
    pub fn own_urls_of(&self, feed: &FeedSettings) -> Vec<RefusedSetting> {
        let found = problems::own_urls(feed, &self.own_addresses()).into_iter();
        let key = format!("feed.{}", feed.name);
        found.map(|problem| problem.within(&key)).collect()
    }

    /// The same configuration with other sites.
    #[must_use]
    pub fn with_sites(&self, site: Vec<SiteSettings>) -> Self {
        let mut config = self.clone();
        config.site = site;
        config
    }

    /// The origins of sites at which we answer ourselves.
    pub fn own_origins(&self) -> Vec<RefusedSetting> {
        problems::own_origins(&self.site, &self.own_addresses())
    }

    /// The URL by which publishers find out who asks.
    pub fn contact_url(&self) -> &Url {
        self.upstream.contact_url_or(&self.server.public_url)
    }

    /// The feeds that are registered: those of the file and of sites, and the groups.
    pub fn registered(&self) -> Vec<FeedSettings> {
        let groups = self.group.iter().map(GroupSettings::as_feed);
        self.feed.iter().cloned().chain(groups).collect()
    }

    /// Warnings about settings that are allowed, but risky: each with its key and a remedy.
    pub fn warnings(&self) -> Vec<String> {
        let found = warnings::warnings(self);
        // The log has them, too.
        found.iter().map(|text| logged_text(text)).collect()
    }

    /// A summary of the configuration for people, without secrets.
    pub fn summary(&self, file: &Path) -> String {
        let Self {
            server,
            store,
            push,
            hub,
            xmpp,
            feed,
            group,
            site,
            webhook,
            alert,
            opml,
            ..
        } = self;
        let mut lines = vec![
            format!("{}: good", file.display()),
            format!("  consumers   {} as {}", server.listen, server.public_url),
            format!("  operator    {}", server.admin_listen),
            format!("  store       {store}"),
            format!(
                "  callbacks   {}",
                if hub.callbacks_private {
                    "public and private"
                } else {
                    "public only"
                }
            ),
        ];
        if push.is_on(&server.public_url) {
            lines.push("  push        subscribes at the hubs that feeds name".to_owned());
        }
        if let (Some(jid), Some(server)) = (&xmpp.jid, &xmpp.server) {
            lines.push(format!("  xmpp        {jid}, at {server}"));
        }
        if let Some(acme) = &server.tls.acme {
            let (names, authority) = (acme.names().join(", "), &acme.directory);
            let place = match &store.url {
                Some(_) => "the database".to_owned(),
                None => acme.folder(&store.path).display().to_string(),
            };
            lines.push(format!(
                "  certificate {names}, from {authority}, kept in {place}"
            ));
        }
        for site in site {
            let host = site.host.as_deref().unwrap_or("every other host");
            lines.push(format!("  site        {host} in front of {}", site.origin));
        }
        for feed in feed {
            let poll = feed.poll.policy();
            let least = poll.min_secs.map_or_else(
                || "3600 s (less if the feed asks for it)".to_owned(),
                |secs| format!("{secs} s"),
            );
            lines.push(format!(
                "  feed        {}: {}",
                feed.name,
                masked_with_query(feed.url.as_str())
            ));
            lines.push(format!(
                "              polled every {least} to {} s",
                poll.max_secs
            ));
            lines.push(format!(
                "              ids in namespace {}",
                masked_with_query(&feed.namespace())
            ));
            if let Some(alias) = feed.aliases.first() {
                lines.push(format!("              relative links start at {alias}"));
            }
        }
        for group in group {
            lines.push(format!(
                "  group       {}: {}",
                group.name,
                group.members.join(", ")
            ));
        }
        for list in opml {
            let (name, place, secs) = (&list.name, list.shown_place(), list.every_secs);
            lines.push(format!("  list        {name}: {place}"));
            lines.push(format!("              read every {secs} s"));
        }
        for webhook in webhook {
            let host = webhook.url.host_str().unwrap_or_default();
            lines.push(format!("  webhook     {}: to {host}", webhook.feed));
        }
        for alert in alert {
            lines.push(format!("  alert       {}", alert.receiver()));
        }
        lines.extend(
            self.warnings()
                .iter()
                .map(|warning| format!("  warning     {warning}")),
        );
        lines.join("\n") + "\n"
    }
}

/// Reads a text, or a list of texts.
fn one_or_many<'de, D: Deserializer<'de>>(values: D) -> Result<Vec<String>, D::Error> {
    #[derive(Deserialize)]
    #[serde(untagged)]
    enum OneOrMany {
        One(String),
        Many(Vec<String>),
    }
    Ok(match OneOrMany::deserialize(values)? {
        OneOrMany::One(one) => vec![one],
        OneOrMany::Many(many) => many,
    })
}

/// Says that there is no feed at all.
fn lack_any_feed(reading: &mut ConfigReading<'_>) {
    let wanted = "give at least one [[feed]] with a name and a url";
    reading.lack("", "feed", "no feed", wanted);
}

/// Adds the feeds that sites list to those of the file, each with the path of its site's setting.
fn join_feeds_of_sites(
    sites: &[(String, SiteSettings)],
    feeds: Vec<(String, FeedSettings)>,
    public_url: &Url,
) -> Vec<(String, FeedSettings)> {
    let (mut keys, mut feeds): (Vec<String>, Vec<FeedSettings>) = feeds.into_iter().unzip();
    let all: Vec<SiteSettings> = sites.iter().map(|(_, site)| site.clone()).collect();
    for (no, (key, site)) in sites.iter().enumerate() {
        SiteSettings::join(&all, no, site.feeds.listed(), public_url, &mut feeds);
        keys.resize(feeds.len(), format!("{key}.feeds"));
    }
    keys.into_iter().zip(feeds).collect()
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
    let value = line
        .trim_start()
        .strip_prefix(key)?
        .trim_start()
        .strip_prefix('=')?;
    Some(value.split('#').next()?.trim().trim_matches(['"', '\'']))
}

impl ConfigSource {
    /// A file, and the environment of this process.
    pub fn of(file: &Path) -> Self {
        Self {
            file: file.to_owned(),
            environment: environment().collect(),
        }
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
