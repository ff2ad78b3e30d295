//! The registry of feeds: its entries beside the feeds of the configuration file, and what a command
//! changes in it; not how a change is put in force.

use crate::{
    catalog::{self, CatalogSnapshot, FeedSettings, RegistryNames},
    config::{Config, EntryReader, FeedEntry, Registered},
    feed::record::FeedNo,
    secret::{masked_with_query, public_url},
    setting::{RefusedSetting, differing_keys},
    store::{RegistryChange, Store, StoreError, listing},
};
use futures_util::TryStreamExt as _;
use http::StatusCode;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::{
    collections::{HashMap, HashSet},
    fmt::Write as _,
    path::Path,
};

pub use crate::catalog::settings::{GROUP_MEMBERS_MAX, GROUPS_MAX};
pub use crate::serve::admin::{RegistryAnswer, RegistryCommand};

/// Entries at most.
pub(super) const ENTRIES_MAX: usize = 100_000;

/// Bytes of an entry at most, as it is kept.
pub(super) const ENTRY_BYTES_MAX: usize = 16 << 10;

/// Feeds of one page of the list.
const PAGE_FEEDS_MAX: usize = 1000;

/// Entries that cannot be read and are told one by one in the log; the others are counted.
const TOLD_MAX: usize = 20;

/// A page of the list of feeds.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct RegistryPage {
    /// The feeds, by name.
    pub feeds: Vec<ListedFeed>,
    /// All entries that cannot be read; on the first page only.
    pub unread: Vec<UnreadEntry>,
    /// All entries that are shadowed; on the first page only.
    pub shadowed: Vec<ShadowedEntry>,
    /// The name after which the next page begins.
    pub next: Option<String>,
}

/// A feed of the list.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ListedFeed {
    /// Its name.
    pub name: String,
    /// Its upstream, without credentials and query.
    pub url: String,
    /// True if the URL has a query, which is not shown.
    pub has_query: bool,
    /// The place that it comes from: `file`, `registry`, or `site` for one that a site has besides.
    pub source: String,
    /// Its categories.
    pub categories: Vec<String>,
    /// The `[[opml]]` list that brought it, if one did.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub from_list: Option<String>,
    /// True while it is paused.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub paused: bool,
}

/// An entry that cannot be read.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct UnreadEntry {
    /// The name of its feed.
    pub name: String,
    /// The reason.
    pub why: String,
}

/// An entry that is neither polled nor served, because the configuration file has a feed or a group
/// of the same name or with the same ids.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ShadowedEntry {
    /// The name of the entry.
    pub name: String,
    /// The reason and the remedy.
    pub why: String,
}

/// A change that a command asks for.
pub(super) enum WantedChange {
    /// Put these entries.
    Put(Vec<FeedEntry>),
    /// Remove the entry of a name.
    Remove(String),
}

/// The outcome for one entry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Outcome {
    Added,
    Changed(Vec<String>),
    Same,
    Removed,
}

/// A change that was decided on and is not made yet.
pub(super) struct PlannedChange {
    /// The changes of the registry.
    pub(super) changes: Vec<RegistryChange>,
    /// The feeds after it.
    pub(super) feeds: NextFeeds,
    /// The entries after it.
    pub(super) names: RegistryNames,
    pub(super) outcomes: Vec<(String, Outcome)>,
}

/// The feeds after a change.
pub(super) enum NextFeeds {
    /// All of them: those of the file, of the registry and of sites, and the groups.
    All(Vec<FeedSettings>),
    /// The plain feeds that the change concerns. All others stay.
    Plain(PlainFeeds),
}

/// Plain feeds ([`FeedSettings::is_plain`]) that a change concerns.
#[derive(Default)]
pub(super) struct PlainFeeds {
    /// Those that are put in the place of the ones of their names.
    pub(super) put: Vec<FeedSettings>,
    /// Those that are removed.
    pub(super) removed: Vec<FeedNo>,
}

impl PlannedChange {
    /// Takes the feeds out, once the change is made.
    pub(super) fn take_feeds(&mut self) -> NextFeeds {
        let none = NextFeeds::Plain(PlainFeeds::default());
        std::mem::replace(&mut self.feeds, none)
    }

    /// True when an entry is new.
    pub(super) fn adds(&self) -> bool {
        let mut outcomes = self.outcomes.iter();
        outcomes.any(|(_, outcome)| *outcome == Outcome::Added)
    }

    /// A line for each entry.
    pub(super) fn report(&self) -> String {
        let mut lines = String::new();
        for (name, outcome) in &self.outcomes {
            let _ = match outcome {
                Outcome::Added => writeln!(lines, "added    feed.{name}"),
                Outcome::Removed => writeln!(lines, "removed  feed.{name}"),
                Outcome::Same => writeln!(lines, "same     feed.{name}"),
                Outcome::Changed(keys) => {
                    let keys = keys
                        .iter()
                        .map(|key| format!("changed  feed.{name}.{key}\n"));
                    lines.write_str(&keys.collect::<String>())
                }
            };
        }
        lines
    }
}

/// Reads the registry of a store.
pub(super) async fn registered(
    store: &dyn Store,
    reader: &EntryReader,
) -> Result<Registered, StoreError> {
    let mut registered = Registered::default();
    let mut entries = listing::registry(store);
    while let Some(entry) = entries.try_next().await? {
        registered.take(entry.name, entry.text, reader);
    }
    Ok(registered)
}

/// The reader of entries for a configuration in a file.
pub(super) fn reader(config: &Config, file: Option<&Path>) -> EntryReader {
    EntryReader {
        profiles: config.platforms.profiles(),
        folder: file.map(|file| file.with_file_name("")).unwrap_or_default(),
    }
}

/// A configuration with the feeds of the registry of its store, and their names. Entries that clash
/// with the file are shadowed. Refused where the file lacks a feed that it names.
pub(super) async fn joined(
    store: &dyn Store,
    config: Config,
    file: Option<&Path>,
) -> anyhow::Result<(Config, RegistryNames)> {
    let mut registered = registered(store, &reader(&config, file)).await?;
    config.shadow(&mut registered);
    let file = file.unwrap_or(Path::new("the configuration"));
    let config = config.with_registered(&registered, file)?;
    Ok((config, registered.names))
}

/// Tells the log of entries that cannot be read.
pub(super) fn tell_unread(names: &RegistryNames) {
    for (name, why) in names.unread.iter().take(TOLD_MAX) {
        tracing::error!(
            feed.name = %name,
            "The registry's entry of feed `{name}` cannot be read, so the feed is not polled and not served. Its items are kept. \
             Put the entry anew, or run `everfeed feeds remove {name}`: {why}"
        );
    }
    let more = names.unread.len().saturating_sub(TOLD_MAX);
    if more > 0 {
        tracing::error!(
            entries = more,
            "{more} more entries of the registry cannot be read"
        );
    }
}

/// Reports the entries that are shadowed in the log.
pub(super) fn tell_shadowed(names: &RegistryNames) {
    for (name, why) in names.shadowed.iter().take(TOLD_MAX) {
        tracing::warn!(
            feed.name = %name,
            "The entry `{name}` of the registry is shadowed: {why}"
        );
    }
    let more = names.shadowed.len().saturating_sub(TOLD_MAX);
    if more > 0 {
        tracing::warn!(
            entries = more,
            "{more} more entries of the registry are shadowed"
        );
    }
}

/// The entries that are shadowed.
pub(super) fn shadowed(names: &RegistryNames) -> Vec<ShadowedEntry> {
    let entry = |(name, why): (&String, &String)| ShadowedEntry {
        name: name.clone(),
        why: why.clone(),
    };
    names.shadowed.iter().map(entry).collect()
}

/// The entries that cannot be read.
pub(super) fn unread(names: &RegistryNames) -> Vec<UnreadEntry> {
    let entry = |(name, why): (&String, &String)| UnreadEntry {
        name: name.clone(),
        why: why.clone(),
    };
    names.unread.iter().map(entry).collect()
}

/// Gives the configuration without the feeds of the registry, beside which a change is to stand. It
/// is long, and seldom needed twice.
pub(super) type GiveConfig<'a> = &'a (dyn Fn() -> Config + Sync);

// Decides: Which change of the registry is refused?
/// Decides on a change. Refused with every mistake that the change would bring.
// Limit: it reads all entries and compares all feeds, as a reload does. A change of plain feeds alone does without (`plain_change`).
pub(super) async fn plan(
    store: &dyn Store,
    config: GiveConfig<'_>,
    reader: &EntryReader,
    wanted: WantedChange,
) -> Result<PlannedChange, RegistryAnswer> {
    let base = config();
    let mut before = registered(store, reader).await.map_err(away)?;
    // A shadowed entry that is put again becomes an ordinary one, and is refused if it clashes.
    base.shadow(&mut before);
    let mut after = before.clone();
    let is_put = matches!(wanted, WantedChange::Put(_));
    let (mut changes, mut outcomes) = (Vec::new(), Vec::new());
    match wanted {
        WantedChange::Put(entries) => {
            refuse_taken(&base, &entries)?;
            refuse_own(&base, &entries)?;
            for entry in entries {
                let name = entry.settings.name.clone();
                let outcome = outcome(&before, &entry.settings);
                after.put(entry.settings);
                let text = entry.text;
                outcomes.push((name.clone(), outcome));
                changes.push(RegistryChange::Put { name, text });
            }
            refuse_same_ids(&after, &changes)?;
        }
        WantedChange::Remove(name) => {
            if !after.remove(&name) {
                return Err(unknown(&base, &name));
            }
            outcomes.push((name.clone(), Outcome::Removed));
            changes.push(RegistryChange::Remove(name));
        }
    }
    if after.names.len() > ENTRIES_MAX.max(before.names.len()) {
        let wanted = format!("the registry holds {ENTRIES_MAX} feeds at most");
        let found = format!("{} feeds", after.names.len());
        return Err(refuse(StatusCode::CONFLICT, "feed", found, wanted));
    }
    let (site, public_url) = (base.site.clone(), base.server.public_url.clone());
    let (joined, mut mistakes) = base.beside(&after);
    if !mistakes.is_empty() {
        // Those that were there before are not those of the change.
        let (_, known) = config().beside(&before);
        mistakes.retain(|mistake| !known.contains(mistake));
    }
    if !mistakes.is_empty() {
        let status = match is_put {
            true => StatusCode::UNPROCESSABLE_ENTITY,
            false => StatusCode::CONFLICT,
        };
        return Err(RegistryAnswer::mistaken(status, mistakes));
    }
    let mut feeds = joined.registered();
    let found = catalog::join_found(store, &site, &public_url, &mut feeds).await;
    found.map_err(away)?;
    if is_put {
        let checked = catalog::namespaces(store, &feeds).await;
        checked.map_err(of_namespaces)?;
    }
    Ok(PlannedChange {
        changes,
        feeds: NextFeeds::All(feeds),
        names: after.names,
        outcomes,
    })
}

/// Refuses feeds that are put and have the ids of another one of the registry.
fn refuse_same_ids(after: &Registered, put: &[RegistryChange]) -> Result<(), RegistryAnswer> {
    let mut owners: HashMap<String, Vec<&FeedSettings>> = HashMap::new();
    for feed in after.feeds.values() {
        owners.entry(feed.namespace()).or_default().push(feed);
    }
    let put: HashSet<&str> = put.iter().map(RegistryChange::name).collect();
    let mut mistakes = Vec::new();
    for owners in owners.values().filter(|owners| owners.len() > 1) {
        let Some(feed) = owners.iter().find(|feed| put.contains(feed.name.as_str())) else {
            continue;
        };
        let mut others = owners.iter().filter(|other| other.name != feed.name);
        let other = others.next().map_or("", |other| &other.name);
        let wanted = format!(
            "feed `{other}` of the registry has the same ids. Give another URL, or set id_namespace"
        );
        let (key, found) = (format!("feed.{}.url", feed.name), feed.url.as_str());
        mistakes.push(RefusedSetting::new(key, format!("\"{found}\""), wanted));
    }
    if mistakes.is_empty() {
        return Ok(());
    }
    Err(RegistryAnswer::mistaken(
        StatusCode::UNPROCESSABLE_ENTITY,
        mistakes,
    ))
}

/// Refuses entries whose names the configuration has, and such that are too long.
fn refuse_taken(base: &Config, entries: &[FeedEntry]) -> Result<(), RegistryAnswer> {
    let feeds = base.feed.iter().map(|feed| feed.name.as_str());
    let groups = base.group.iter().map(|group| group.name.as_str());
    let taken: HashSet<&str> = feeds.chain(groups).collect();
    let mut status = StatusCode::CONFLICT;
    let mut mistakes = Vec::new();
    for FeedEntry { settings, text } in entries {
        let name = settings.name.as_str();
        if taken.contains(name) {
            let key = format!("feed.{name}.name");
            mistakes.push(RefusedSetting::new(key, format!("\"{name}\""), NAME_TAKEN));
        }
        if text.len() > ENTRY_BYTES_MAX {
            status = StatusCode::UNPROCESSABLE_ENTITY;
            let wanted = format!("a feed of the registry has {ENTRY_BYTES_MAX} bytes at most");
            let found = format!("{} bytes", text.len());
            mistakes.push(RefusedSetting::new(format!("feed.{name}"), found, wanted));
        }
    }
    if mistakes.is_empty() {
        return Ok(());
    }
    Err(RegistryAnswer::mistaken(status, mistakes))
}

/// Refuses entries with a URL at which this everfeed answers itself.
fn refuse_own(base: &Config, entries: &[FeedEntry]) -> Result<(), RegistryAnswer> {
    let settings = entries.iter().map(|entry| &entry.settings);
    let mistakes: Vec<_> = settings.flat_map(|feed| base.own_urls_of(feed)).collect();
    if mistakes.is_empty() {
        return Ok(());
    }
    let status = StatusCode::UNPROCESSABLE_ENTITY;
    Err(RegistryAnswer::mistaken(status, mistakes))
}

const NAME_TAKEN: &str =
    "the configuration has a feed or a group of this name. Give another name, or take it out there";

/// The outcome for an entry that is put.
fn outcome(before: &Registered, settings: &FeedSettings) -> Outcome {
    match before.feeds.get(&settings.name) {
        Some(known) if known == settings => Outcome::Same,
        Some(known) => Outcome::Changed(differing_keys(known, settings)),
        None => Outcome::Added,
    }
}

fn refuse(status: StatusCode, key: &str, found: String, wanted: String) -> RegistryAnswer {
    RegistryAnswer::mistaken(status, vec![RefusedSetting::new(key, found, wanted)])
}

/// The refusal to change or to show what the registry does not have.
fn unknown(base: &Config, name: &str) -> RegistryAnswer {
    let is_in_file = base.feed.iter().any(|feed| feed.name == name);
    not_there(name, is_in_file)
}

/// The refusal of a name that the registry does not have.
pub(super) fn not_there(name: &str, is_in_file: bool) -> RegistryAnswer {
    let why = if is_in_file {
        format!(
            "feed `{name}` is not in the registry, but in the configuration. Change it there, and reload"
        )
    } else {
        format!("the registry has no feed `{name}`")
    };
    RegistryAnswer::refused(StatusCode::NOT_FOUND, why)
}

/// The answer when the store fails.
pub(super) fn away(error: StoreError) -> RegistryAnswer {
    RegistryAnswer::refused(StatusCode::SERVICE_UNAVAILABLE, error.to_string())
}

/// The answer when the store does not admit the namespace of a feed.
fn of_namespaces(error: StoreError) -> RegistryAnswer {
    let why = error.to_string();
    let (key, found) = match &error {
        StoreError::Namespace { feed, given, .. } => (format!("feed.{feed}.id_namespace"), given),
        StoreError::NamespaceHeld {
            feed, namespace, ..
        } => (format!("feed.{feed}.url"), namespace),
        _ => return away(error),
    };
    let found = format!("ids in namespace \"{found}\"");
    refuse(StatusCode::UNPROCESSABLE_ENTITY, &key, found, why)
}

/// The text of an entry; `None` where there is none.
pub(super) async fn text_of(
    store: &dyn Store,
    name: &str,
) -> Result<Option<Result<String, String>>, StoreError> {
    let entry = store.registry_entry(name.to_owned()).await?;
    Ok(entry.map(|entry| entry.text))
}

/// Makes a change that was decided on.
pub(super) async fn make(
    store: &dyn Store,
    planned: &mut PlannedChange,
) -> Result<(), RegistryAnswer> {
    let changes = std::mem::take(&mut planned.changes);
    store.change_registry(changes).await.map_err(away)?;
    let report = planned.report();
    tracing::info!(
        "Changed the registry: {}",
        report.trim_end().replace('\n', "; ")
    );
    Ok(())
}

/// The text of an entry without what is secret in its URLs.
pub(super) fn shown(text: &str) -> Option<String> {
    let mut table: Value = serde_json::from_str(text).ok()?;
    let mask = |value: &mut Value| {
        if let Value::String(text) = value {
            *text = masked_with_query(text);
        }
    };
    if let Some(url) = table.get_mut("url") {
        mask(url);
    }
    let aliases = table.get_mut("aliases").and_then(Value::as_array_mut);
    aliases.into_iter().flatten().for_each(mask);
    Some(table.to_string())
}

/// A page of all feeds, by name, with the places that they come from.
pub(super) fn list(catalog: &CatalogSnapshot, after: Option<&str>) -> RegistryPage {
    let names = catalog.registry();
    let feeds = catalog.feeds_after(after).map(|feed| &*feed.settings);
    let mut feeds = feeds.filter(|feed| feed.group.is_none());
    let mut page = RegistryPage::default();
    for feed in feeds.by_ref().take(PAGE_FEEDS_MAX) {
        let source = if names.sound.contains(&feed.name) {
            "registry"
        } else if feed.is_given_by_site() {
            "site"
        } else {
            "file"
        };
        page.feeds.push(ListedFeed {
            name: feed.name.clone(),
            url: public_url(&feed.url),
            has_query: feed.url.query().is_some(),
            source: source.to_owned(),
            categories: feed.categories.clone(),
            from_list: feed.from_list.clone(),
            paused: feed.paused,
        });
    }
    if feeds.next().is_some() {
        page.next = page.feeds.last().map(|feed| feed.name.clone());
    }
    if after.is_none() {
        page.unread = unread(names);
        page.shadowed = shadowed(names);
    }
    page
}
