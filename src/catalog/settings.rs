//! `[[feed]]`: the settings of a feed and their checks; not where they are read from.

use crate::{auth::AccessSettings, setting::RefusedSetting};
use everfeed_adapters::platforms::Platforms;
use serde::{Deserialize, Serialize};
use url::Url;

mod poll;

mod deletions;

mod import;

mod keep;

mod record;

mod platform;

mod show;

mod group;

mod private_addresses;

mod legacy_address;

mod site_feeds;

mod site;

mod opml;

pub use deletions::DeletionSettings;
pub use group::{
    FEED_GROUPS_MAX, GROUP_MEMBERS_MAX, GROUPS_MAX, GroupSettings, MEMBERS_WANTED, NamedFeeds,
};
pub use import::ImportSettings;
pub use keep::KeepSettings;
pub use legacy_address::{FeedNamer, FormerAddress, LegacyAddress, ServePlain, topic_at};
pub use opml::{LISTS_MAX, OpmlPlace, OpmlSettings};
pub use platform::PlatformChoice;
pub use poll::PollSettings;
pub use private_addresses::PrivateAddresses;
pub use record::RecordSettings;
pub use show::ShowRule;
pub(in crate::catalog) use show::{parts_of, shown_by};
pub use site::SiteSettings;
pub use site_feeds::{ListedPath, SiteFeeds};

/// `[[feed]]`: an upstream and how it is treated.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FeedSettings {
    /// Its name in our URLs: `[a-z0-9][a-z0-9-]{0,62}`.
    pub name: String,
    /// The URL of the old feed. May carry `user:password@`.
    pub url: Url,
    /// True if the feed is asked for at public addresses only, because no operator wrote its URL:
    /// it came from a list of somebody else.
    #[serde(default)]
    pub public_hosts_only: bool,
    /// The feed's public URLs, where they differ from `url`. Relative references are resolved
    /// against the first; it changes no id.
    #[serde(default)]
    pub aliases: Vec<Url>,
    /// Categories by which groups name it.
    #[serde(default)]
    pub categories: Vec<String>,
    /// The namespace that its ids are hashed with; fixed when the feed is first seen. Derived from
    /// the URL when absent.
    #[serde(default)]
    pub id_namespace: Option<String>,
    /// The use that is made of its document.
    #[serde(default)]
    pub format: DocumentFormat,
    /// The software that makes it, for what that software is known to do: `auto`, `none`, or the
    /// name of a profile.
    #[serde(default)]
    pub platform: PlatformChoice,
    /// Those who may read it: `"public"`, `"private"` (every user), or a list of users.
    #[serde(default)]
    pub access: AccessSettings,
    /// The parts of it that its readers see; the first rule that fits one counts. Without any, they
    /// see everything.
    #[serde(default)]
    pub show: Vec<ShowRule>,
    /// The bounds within which it is polled.
    #[serde(default)]
    pub poll: PollSettings,
    /// The proof that a deletion needs.
    #[serde(default)]
    pub deletions: DeletionSettings,
    /// False to tell nobody what is gone of it.
    #[serde(default = "yes")]
    pub announce_deletes: bool,
    /// The reading of its archives.
    #[serde(default)]
    pub import: ImportSettings,
    /// Limits of what is kept of it.
    #[serde(default)]
    pub keep: KeepSettings,
    /// True while it is not polled. Its items stay, and are served.
    #[serde(default)]
    pub paused: bool,
    /// The name of the `[[opml]]` list that brought it, and that may pause and resume it.
    #[serde(default)]
    pub from_list: Option<String>,
    /// `[feed.record]`: keeps its last documents, for `everfeed replay`. None is kept without it.
    #[serde(default)]
    pub record: Option<RecordSettings>,
    /// Its place in a `[[site]]`, if it is a feed of one; no key of its own.
    #[serde(skip)]
    pub legacy: Option<Box<LegacyAddress>>,
    /// The group that it is, if it is one: it has members in the place of an upstream. No key of
    /// its own.
    #[serde(skip)]
    pub group: Option<Box<GroupSettings>>,
}

/// `format` of a feed: the use that is made of its document.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum DocumentFormat {
    /// It must be a feed of some format, which is found out anew for each document.
    #[default]
    Auto,
    /// It is the only item itself, whatever it is: a text, JSON, a picture.
    Resource,
}

/// The longest name of a feed, characters.
const NAME_CHARS_MAX: usize = 63;

const NAME_WANTED: &str = "give lower-case letters, digits and hyphens, at most 63, the first no hyphen: for instance \"blog\"";
const CATEGORY_WANTED: &str =
    "give names of lower-case letters, digits and hyphens: for instance [\"friends\"]";
const URL_WANTED: &str = "give the feed's http or https URL, without a #fragment: for instance \"http://127.0.0.1:8081/rss.xml\"";
const ALIAS_WANTED: &str =
    "give http or https URLs without credentials: for instance [\"https://blog.example/rss.xml\"]";

impl FeedSettings {
    /// A feed with the usual settings.
    pub fn new(name: impl Into<String>, url: Url) -> Self {
        Self {
            name: name.into(),
            url,
            public_hosts_only: false,
            aliases: Vec::new(),
            categories: Vec::new(),
            id_namespace: None,
            format: DocumentFormat::default(),
            platform: PlatformChoice::default(),
            access: AccessSettings::default(),
            show: Vec::new(),
            poll: PollSettings::default(),
            deletions: DeletionSettings::default(),
            announce_deletes: true,
            import: ImportSettings::default(),
            keep: KeepSettings::default(),
            paused: false,
            from_list: None,
            record: None,
            legacy: None,
            group: None,
        }
    }

    /// True unless everybody may read everything of it: then nobody is given a copy that was made
    /// for another.
    pub fn is_private(&self) -> bool {
        self.access.is_private() || !self.show.is_empty()
    }

    /// True for a feed by which nothing else of the catalog changes: neither a group nor at an address of a site, and readable as
    /// a whole by everybody.
    pub fn is_plain(&self) -> bool {
        self.group.is_none() && self.legacy.is_none() && !self.is_private()
    }

    /// The users that are named as its readers, in `access` and in `show`.
    pub fn readers(&self) -> impl Iterator<Item = &str> {
        self.access
            .names()
            .chain(self.show.iter().flat_map(|rule| rule.access.names()))
    }

    /// True for a feed whose document is its only item.
    pub fn is_resource(&self) -> bool {
        self.format == DocumentFormat::Resource
    }

    /// True for a feed of a site that is called by its address there.
    pub fn is_called_by_address(&self) -> bool {
        self.is_named_by(FeedNamer::Address)
    }

    /// True for a feed whose settings are those of its site: it has no table of its own.
    pub fn is_given_by_site(&self) -> bool {
        self.is_called_by_address() || self.is_named_by(FeedNamer::Site)
    }

    fn is_named_by(&self, namer: FeedNamer) -> bool {
        self.legacy
            .as_ref()
            .is_some_and(|place| place.named_by == namer)
    }

    /// The URL by which its readers know it: its address at a site, else the one that is polled.
    pub fn known_as(&self) -> &Url {
        self.legacy_url().unwrap_or(&self.url)
    }

    /// The URLs at which it is known: the one that is polled, that of its readers, and its aliases.
    pub fn addresses(&self) -> impl Iterator<Item = &Url> {
        self.aliases.iter().chain([&self.url, self.known_as()])
    }

    /// Its address at a site, if it is a feed of one.
    pub fn legacy_url(&self) -> Option<&Url> {
        self.legacy.as_ref().map(|place| &place.url)
    }

    /// The namespace that the feed's ids are hashed with: as configured, else host, port, path and
    /// query of its URL, or of its address at the site that gives it, without scheme, credentials and fragment, so that a move to https changes
    /// no id (DESIGN section 3).
    pub fn namespace(&self) -> String {
        if let Some(namespace) = &self.id_namespace {
            return namespace.clone();
        }
        // The old server of a site may move; its readers' address stays, and the ids with it.
        let url = if self.is_given_by_site() {
            self.known_as()
        } else {
            &self.url
        };
        namespace_of(url)
    }

    /// Every setting that has the right type and still cannot be meant. Keys are those of the
    /// feed's own table.
    pub fn problems(&self, profiles: &Platforms) -> Vec<RefusedSetting> {
        let quoted = |text: &str| format!("\"{text}\"");
        let mut problems = Vec::new();
        let mut refuse = |key: &str, found: String, wanted: &str| {
            problems.push(RefusedSetting::new(key, found, wanted));
        };
        if !is_name(&self.name) {
            refuse("name", quoted(&self.name), NAME_WANTED);
        }
        if !matches!(self.url.scheme(), "http" | "https") || self.url.fragment().is_some() {
            refuse("url", quoted(self.url.as_str()), URL_WANTED);
        }
        let is_alias = |url: &Url| {
            matches!(url.scheme(), "http" | "https")
                && url.username().is_empty()
                && url.password().is_none()
        };
        if let Some(bad) = self.aliases.iter().find(|url| !is_alias(url)) {
            refuse("aliases", quoted(bad.as_str()), ALIAS_WANTED);
        }
        if let Some(bad) = self.categories.iter().find(|category| !is_name(category)) {
            refuse("categories", quoted(bad), CATEGORY_WANTED);
        }
        if let Some(given) = &self.id_namespace
            && (given.is_empty() || given.contains('\n'))
        {
            let wanted = "give one line of text, or leave it out";
            refuse("id_namespace", quoted(given), wanted);
        }
        problems.extend(self.platform_problem(profiles));
        problems.extend(self.access.problems());
        let refused = self.show.iter().flat_map(|rule| rule.access.problems());
        problems.extend(refused.map(|problem| problem.within("show")));
        problems.extend(self.poll.problems());
        problems.extend(self.deletions.problems());
        problems.extend(self.keep.problems());
        if let Some(list) = self.from_list.as_ref().filter(|list| !is_name(list)) {
            let wanted = "give the name of an [[opml]] list, or leave it out";
            refuse_list(&mut problems, list, wanted);
        }
        problems.extend(self.record.iter().flat_map(RecordSettings::problems));
        problems
    }

    /// The problem with a platform that no profile is of.
    pub fn platform_problem(&self, profiles: &Platforms) -> Option<RefusedSetting> {
        let PlatformChoice::Named(name) = &self.platform else {
            return None;
        };
        if profiles.get(name).is_some() {
            return None;
        }
        let known: Vec<&str> = profiles.iter().map(|profile| &*profile.name).collect();
        let wanted = format!("give auto, none, or one of {}", known.join(", "));
        Some(RefusedSetting::new(
            "platform",
            format!("\"{name}\""),
            wanted,
        ))
    }

    /// Warnings about settings that are allowed, but risky.
    pub fn warnings(&self) -> Vec<String> {
        let found = self.deletions.warnings().into_iter();
        let found = found.chain(self.import.warnings());
        found
            .map(|warning| format!("feed.{}: {warning}", self.name))
            .collect()
    }
}

fn refuse_list(problems: &mut Vec<RefusedSetting>, list: &str, wanted: &str) {
    problems.push(RefusedSetting::new(
        "from_list",
        format!("\"{list}\""),
        wanted,
    ));
}

const fn yes() -> bool {
    true
}

/// The namespace that a URL gives.
pub(in crate::catalog) fn namespace_of(url: &Url) -> String {
    let mut namespace = url.host_str().unwrap_or_default().to_ascii_lowercase();
    if let Some(port) = url.port() {
        namespace += &format!(":{port}");
    }
    namespace + &legacy_address::path_of(url)
}

fn is_name(name: &str) -> bool {
    let plain = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit();
    let mut bytes = name.bytes();
    bytes.next().is_some_and(plain)
        && bytes.all(|b| plain(b) || b == b'-')
        && name.len() <= NAME_CHARS_MAX
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_namespace_is_the_url_without_scheme_credentials_and_default_port() {
        let check = |url: &str, expect: &str| {
            assert_eq!(
                FeedSettings::new("a", Url::parse(url).unwrap()).namespace(),
                expect
            );
        };
        check("http://EXAMPLE.org:80/a?b=c", "example.org/a?b=c");
        check("https://cal:hunter2@example.org/a#b", "example.org/a");
        check("http://example.org:8081", "example.org:8081/");
    }
}
