//! The feeds of a list as feeds of the registry: the choice of those to add, their names, and the
//! changes that pause and resume them.

use super::reading::Outlines;
use crate::{
    app::{
        address_spelling::spelling,
        feed_name::{FIRST_NUMBER, label, names_from},
        folder_categories::{FEED_CATEGORIES_MAX, Folders},
        outline_address::outline_address,
        registry::{self, RegistryAnswer, WantedChange},
        reload::Reloader,
    },
    catalog::{CatalogSnapshot, FeedSettings, OpmlSettings},
    config::{EntryReader, FeedEntry},
    secret::logged_url,
    setting::RefusedSetting,
    store::{Store, StoreError},
};
use http::StatusCode;
use serde_json::{Map, Value};
use std::{
    collections::{HashMap, HashSet},
    fmt,
    sync::Arc,
};
use url::Url;

/// Feeds of one change of the registry.
const BATCH_FEEDS: usize = 500;
/// Feeds that the registry refuses in one read; after so many the rest waits for the next whole read.
const REFUSED_MAX: usize = 100;

/// A feed of a list, once.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct OutlineFeed {
    pub(super) url: Url,
    pub(super) title: Option<String>,
    pub(super) categories: Vec<String>,
}

/// The feeds of a list, once each, by what all spellings of their addresses share.
#[derive(Debug, Default)]
pub(super) struct OutlineFeeds {
    /// In the order of the list.
    pub(super) feeds: Vec<OutlineFeed>,
    spellings: HashMap<String, usize>,
    /// Outlines that were left out, each with the reason.
    pub(super) skipped: Vec<String>,
}

impl OutlineFeeds {
    // Decides: Which outlines of a list that is read again are feeds?
    /// The feeds of a list.
    pub(super) fn of(outlines: Outlines, takes_private: bool) -> Self {
        let mut listed = Self::default();
        let left_out = outlines.skipped.into_iter();
        listed.skipped = left_out.map(|(url, why)| format!("{url}: {why}")).collect();
        let mut folders = Folders::default();
        for feed in outlines.feeds {
            let url = match outline_address(&feed.url, takes_private) {
                Ok(url) => url,
                Err(refused) => {
                    let shown = logged_url(&feed.url);
                    listed.skipped.push(format!("{shown}: {refused}"));
                    continue;
                }
            };
            let mut categories = folders.categories_of(&feed.folders);
            if let Some(at) = listed.spellings.get(&spelling(&url)) {
                let first = &mut listed.feeds[*at];
                categories.retain(|category| !first.categories.contains(category));
                first.categories.append(&mut categories);
                first.categories.truncate(FEED_CATEGORIES_MAX);
                continue;
            }
            listed.spellings.insert(spelling(&url), listed.feeds.len());
            listed.feeds.push(OutlineFeed {
                url,
                title: feed.title,
                categories,
            });
        }
        listed
    }

    /// True if the list has a feed, by one of its addresses.
    pub(super) fn has(&self, feed: &FeedSettings) -> bool {
        let mut addresses = feed.addresses();
        addresses.any(|url| self.spellings.contains_key(&spelling(url)))
    }

    // Decides: Which feeds of a list that is read again are added?
    /// The feeds that neither the catalog nor one of these entries has.
    pub(super) fn new_beside<'a>(
        &'a self,
        catalog: &CatalogSnapshot,
        beside: &[FeedSettings],
    ) -> impl Iterator<Item = &'a OutlineFeed> {
        let of_catalog = catalog.upstreams().map(|feed| &*feed.settings);
        let known: HashSet<String> = of_catalog
            .chain(beside)
            .flat_map(FeedSettings::addresses)
            .map(spelling)
            .collect();
        let is_new = move |feed: &&OutlineFeed| !known.contains(&spelling(&feed.url));
        self.feeds.iter().filter(is_new)
    }
}

/// The outcome of a change of the registry by a list.
#[derive(Debug, Default)]
pub(super) struct ListChange {
    /// Names of the feeds that were changed.
    pub(super) done: Vec<String>,
    /// Names of the feeds that were refused, each with the reason.
    pub(super) refused: Vec<(String, String)>,
    /// The reason for which the rest was not tried.
    pub(super) end: Option<ListChangeEnd>,
}

/// A reason for which a change ends before its time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum ListChangeEnd {
    /// The registry cannot be changed now.
    Away(String),
    /// It has refused too many feeds.
    Refusals,
}

impl fmt::Display for ListChangeEnd {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Away(why) => f.write_str(why),
            Self::Refusals => write!(f, "the registry refused {REFUSED_MAX} feeds"),
        }
    }
}

/// Makes changes of the registry for a list.
pub(super) struct RegistryChanges<'a> {
    pub(super) store: &'a dyn Store,
    pub(super) reloader: &'a Arc<Reloader>,
    pub(super) settings: &'a OpmlSettings,
}

impl RegistryChanges<'_> {
    fn reader(&self) -> EntryReader {
        self.reloader.entry_reader()
    }

    /// The entries of the registry that are shadowed: their addresses are not in the catalog.
    pub(super) async fn shadowed(
        &self,
        catalog: &CatalogSnapshot,
    ) -> Result<Vec<FeedSettings>, StoreError> {
        let reader = self.reader();
        let mut found = Vec::new();
        for name in catalog.registry().shadowed.keys() {
            let text = registry::text_of(self.store, name).await?;
            let read = text.and_then(|text| reader.of_json(name, &text.ok()?).ok());
            found.extend(read.map(|entry| entry.settings));
        }
        Ok(found)
    }

    /// Adds feeds.
    pub(super) async fn add(
        &self,
        catalog: &CatalogSnapshot,
        feeds: Vec<&OutlineFeed>,
    ) -> Result<ListChange, StoreError> {
        let mut names = FreeNames {
            catalog,
            taken: HashSet::new(),
            numbers: HashMap::new(),
        };
        let reader = self.reader();
        let mut entries = Vec::with_capacity(feeds.len());
        let mut refused = Vec::new();
        for feed in feeds {
            let shown = logged_url(feed.url.as_str());
            if let Some(removed) = self.removed_as(catalog, feed).await? {
                let why = format!(
                    "it was removed as feed `{removed}`, and a list does not bring it back. Register it yourself, or forget it: \
                     `everfeed forget {removed}`"
                );
                refused.push((shown, why));
                continue;
            }
            let name = names.take(feed);
            match reader.of_json(&name, &self.text_of(&name, feed)) {
                Ok(entry) => entries.push(entry),
                Err(mistakes) => refused.push((shown, in_words(&mistakes))),
            }
        }
        let mut change = self.put(entries).await;
        change.refused.splice(0..0, refused);
        Ok(change)
    }

    // Decides: Does a list bring back a feed that was removed?
    /// The name of the removed feed that has the address of a feed. Its items may be for its former readers alone, and a list
    /// does not know who they are.
    async fn removed_as(
        &self,
        catalog: &CatalogSnapshot,
        feed: &OutlineFeed,
    ) -> Result<Option<String>, StoreError> {
        let namespace = FeedSettings::new("", feed.url.clone()).namespace();
        let holders = match catalog.may_have_namespace(&namespace) {
            Some(holders) => holders,
            None => catalog.all_withdrawn().map(|(_, no)| no).collect(),
        };
        for no in holders {
            if catalog.feed_no(no).is_some() {
                continue;
            }
            match self.store.feed(no).await {
                Ok(record) if record.ids.namespace == namespace => return Ok(Some(record.name)),
                Ok(_) => {}
                // A damaged one is left alone.
                Err(error) if error.is_of_one_feed() => {}
                Err(error) => return Err(error),
            }
        }
        Ok(None)
    }

    /// The text of the entry of a feed.
    fn text_of(&self, name: &str, feed: &OutlineFeed) -> String {
        let mut table = Map::new();
        table.insert("name".to_owned(), name.into());
        table.insert("url".to_owned(), feed.url.as_str().into());
        if !feed.categories.is_empty() {
            table.insert("categories".to_owned(), feed.categories.clone().into());
        }
        if !self.settings.private_hosts {
            table.insert("public_hosts_only".to_owned(), true.into());
        }
        table.insert("from_list".to_owned(), self.settings.name.clone().into());
        Value::Object(table).to_string()
    }

    /// Pauses feeds that the list brought, or resumes them.
    pub(super) async fn set_paused(
        &self,
        names: &[String],
        is_paused: bool,
    ) -> Result<ListChange, StoreError> {
        self.change_entries(names, |table, _| set_paused(table, is_paused))
            .await
    }

    /// Makes feeds of another list, which lacks them now, feeds of this one. Those in `paused` were
    /// paused by that list, and are resumed.
    pub(super) async fn take_over(
        &self,
        names: &[String],
        paused: &HashSet<String>,
    ) -> Result<ListChange, StoreError> {
        self.change_entries(names, |table, name| {
            table.insert("from_list".to_owned(), self.settings.name.clone().into());
            if paused.contains(name) {
                set_paused(table, false);
            }
        })
        .await
    }

    /// Changes the entries of feeds.
    async fn change_entries(
        &self,
        names: &[String],
        change_one: impl Fn(&mut Map<String, Value>, &str),
    ) -> Result<ListChange, StoreError> {
        let reader = self.reader();
        let mut entries = Vec::with_capacity(names.len());
        let mut refused = Vec::new();
        for name in names {
            let text = registry::text_of(self.store, name).await?;
            let text = text.and_then(Result::ok);
            let table = text.and_then(|text| serde_json::from_str(&text).ok());
            let changed = table.map(|mut table| {
                change_one(&mut table, name);
                Value::Object(table).to_string()
            });
            match changed.and_then(|text| reader.of_json(name, &text).ok()) {
                Some(entry) => entries.push(entry),
                None => refused.push((name.clone(), "its entry cannot be read".to_owned())),
            }
        }
        let mut change = self.put(entries).await;
        change.refused.extend(refused);
        Ok(change)
    }

    /// Puts entries in batches. A batch that is refused is halved until the refused entry stands alone.
    async fn put(&self, entries: Vec<FeedEntry>) -> ListChange {
        let mut change = ListChange::default();
        let mut batches: Vec<Vec<FeedEntry>> = Vec::new();
        let mut rest = entries.into_iter().peekable();
        while rest.peek().is_some() {
            batches.push(rest.by_ref().take(BATCH_FEEDS).collect());
        }
        batches.reverse();
        while let Some(mut batch) = batches.pop() {
            let names = batch.iter().map(|entry| entry.settings.name.clone());
            let names: Vec<String> = names.collect();
            match self.put_all(batch.clone()).await {
                Ok(()) => change.done.extend(names),
                Err((StatusCode::SERVICE_UNAVAILABLE, why)) => {
                    change.end = Some(ListChangeEnd::Away(why));
                    break;
                }
                Err((_, why)) if batch.len() == 1 => {
                    let name = batch
                        .first()
                        .map(|entry| logged_url(entry.settings.url.as_str()));
                    change.refused.push((name.unwrap_or_default(), why));
                    if change.refused.len() >= REFUSED_MAX {
                        change.end = Some(ListChangeEnd::Refusals);
                        break;
                    }
                }
                Err(_) => {
                    let second = batch.split_off(batch.len() / 2);
                    batches.extend([second, batch]);
                }
            }
        }
        change
    }

    async fn put_all(&self, entries: Vec<FeedEntry>) -> Result<(), (StatusCode, String)> {
        let reloader = Arc::clone(self.reloader);
        let wanted = WantedChange::Put(entries);
        // An end of the work between the store and the catalog would leave them apart.
        let changed = tokio::spawn(async move { reloader.change_registry(wanted).await });
        match changed.await {
            Ok(Ok(_)) => Ok(()),
            Ok(Err(RegistryAnswer::Refused {
                status,
                why,
                mistakes,
            })) => Err((
                status,
                if mistakes.is_empty() {
                    why
                } else {
                    in_words(&mistakes)
                },
            )),
            Ok(Err(_)) => Err((
                StatusCode::SERVICE_UNAVAILABLE,
                "the registry gave another answer".to_owned(),
            )),
            Err(error) => Err((StatusCode::SERVICE_UNAVAILABLE, error.to_string())),
        }
    }
}

/// The first mistakes of an entry, in words and without secrets.
fn in_words(mistakes: &[RefusedSetting]) -> String {
    const TOLD_MAX: usize = 2;
    let told = mistakes.iter().take(TOLD_MAX);
    let told: Vec<String> = told.map(|mistake| mistake.wanted.clone()).collect();
    told.join("; ")
}

fn set_paused(table: &mut Map<String, Value>, is_paused: bool) {
    if is_paused {
        table.insert("paused".to_owned(), true.into());
    } else {
        table.remove("paused");
    }
}

/// Names that no other feed has.
struct FreeNames<'a> {
    catalog: &'a CatalogSnapshot,
    taken: HashSet<String>,
    /// The last number behind a label in a name that was taken, by label: a list may have thousands of
    /// feeds of one host.
    numbers: HashMap<String, u64>,
}

impl FreeNames<'_> {
    /// Takes a free name for a feed, which no removed feed has, either.
    fn take(&mut self, feed: &OutlineFeed) -> String {
        let label = label(&feed.url);
        let number = self.numbers.get(&label).copied();
        let names = names_from(
            &feed.url,
            feed.title.as_deref(),
            number.unwrap_or(FIRST_NUMBER),
        );
        for name in names {
            let is_taken = self.taken.contains(&name)
                || self.catalog.feed(&name).is_some()
                || self.catalog.registry().contains(&name)
                || self.catalog.withdrawn(&name).is_some();
            if is_taken {
                continue;
            }
            let number = name.strip_prefix(&label);
            let number = number.and_then(|rest| rest.strip_prefix('-')?.parse().ok());
            if let Some(number) = number {
                self.numbers.insert(label, number);
            }
            self.taken.insert(name.clone());
            return name;
        }
        unreachable!("there are names without end")
    }
}
