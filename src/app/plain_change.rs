//! A change of the registry that concerns plain feeds alone ([`FeedSettings::is_plain`]). It is decided on by the catalog in
//! force and by the rows of its own feeds, so it takes as long beside a hundred thousand entries as beside ten. Whatever it
//! cannot decide is left to [`registry::plan`](super::registry::plan), which reads all entries and gives the exact refusal.

use super::registry::{
    ENTRIES_MAX, ENTRY_BYTES_MAX, NextFeeds, Outcome, PlainFeeds, PlannedChange, WantedChange,
};
use crate::{
    catalog::{BATCH_FEEDS_MAX, CatalogSnapshot, RegisteredFeed},
    config::{Config, FeedEntry},
    feed::record::FeedNo,
    hub::WebhookSettings,
    setting::differing_keys,
    store::{RegistryChange, Store, StoreError},
};
use std::collections::HashSet;

/// The settings beside which a change is made.
#[derive(Clone, Copy)]
pub(super) struct BesidePlain<'a> {
    /// The configuration in force, without feeds and groups.
    pub(super) in_force: &'a Config,
    /// The webhooks in force.
    pub(super) webhooks: &'a [WebhookSettings],
}

/// Decides on a change. `None` where all entries have to be read for it.
pub(super) async fn plan(
    store: &dyn Store,
    beside: BesidePlain<'_>,
    catalog: &CatalogSnapshot,
    wanted: &WantedChange,
) -> Option<PlannedChange> {
    let in_force = beside.in_force;
    let is_alone = store.nodes().is_none()
        && in_force.site.is_empty()
        && !in_force.lacks_feeds()
        && catalog.groups().next().is_none();
    if !is_alone {
        return None;
    }
    match wanted {
        WantedChange::Put(entries) => put(store, in_force, catalog, entries).await,
        WantedChange::Remove(name) => remove(beside.webhooks, catalog, name),
    }
}

async fn put(
    store: &dyn Store,
    in_force: &Config,
    catalog: &CatalogSnapshot,
    entries: &[FeedEntry],
) -> Option<PlannedChange> {
    let mut names = (**catalog.registry()).clone();
    let mut namespaces = HashSet::new();
    let (mut changes, mut outcomes, mut put) = (Vec::new(), Vec::new(), Vec::new());
    for FeedEntry { settings, text } in entries {
        let name = &settings.name;
        let namespace = settings.namespace();
        let is_sound = settings.is_plain()
            && text.len() <= ENTRY_BYTES_MAX
            && !names.unread.contains_key(name)
            && !names.shadowed.contains_key(name)
            && namespaces.insert(namespace.clone())
            && in_force.own_urls_of(settings).is_empty();
        if !is_sound {
            return None;
        }
        let before = catalog.feed(name);
        let no = match before {
            Some(before) => {
                let stays = before.settings.is_plain()
                    && names.sound.contains(name)
                    && before.settings.namespace() == namespace;
                if !stays {
                    return None;
                }
                Some(before.no)
            }
            None => catalog.withdrawn(name),
        };
        let holders = catalog.may_have_namespace(&namespace)?;
        if holders.iter().any(|holder| Some(*holder) != no) {
            return None;
        }
        if let Some(no) = no {
            // One that was made by another URL keeps its ids, or is refused.
            let record = store.feed(no).await.ok()?;
            if record.ids.namespace != namespace {
                return None;
            }
        }
        let outcome = match before {
            Some(before) if *before.settings == *settings => Outcome::Same,
            Some(before) => Outcome::Changed(differing_keys(&before.settings, settings)),
            None => Outcome::Added,
        };
        names.sound.insert(name.clone());
        put.push(settings.clone());
        outcomes.push((name.clone(), outcome));
        let (name, text) = (name.clone(), text.clone());
        changes.push(RegistryChange::Put { name, text });
    }
    if names.len() > ENTRIES_MAX {
        return None;
    }
    // New feeds get their numbers by name.
    put.sort_by(|one, other| one.name.cmp(&other.name));
    let feeds = NextFeeds::Plain(PlainFeeds {
        put,
        ..PlainFeeds::default()
    });
    Some(PlannedChange {
        changes,
        feeds,
        names,
        outcomes,
    })
}

fn remove(
    webhooks: &[WebhookSettings],
    catalog: &CatalogSnapshot,
    name: &String,
) -> Option<PlannedChange> {
    let mut names = (**catalog.registry()).clone();
    let feed = catalog.feed(name)?;
    let is_named = webhooks.iter().any(|webhook| webhook.feed == *name);
    let may_go = feed.settings.is_plain()
        && names.sound.remove(name).is_some()
        && !is_named
        && catalog.feeds().len() > 1;
    may_go.then(|| PlannedChange {
        changes: vec![RegistryChange::Remove(name.clone())],
        feeds: NextFeeds::Plain(PlainFeeds {
            removed: vec![feed.no],
            ..PlainFeeds::default()
        }),
        names,
        outcomes: vec![(name.clone(), Outcome::Removed)],
    })
}

/// The catalog with the feeds of a change that is kept, and the numbers of those that are new in it.
pub(super) async fn registered(
    store: &dyn Store,
    catalog: &CatalogSnapshot,
    feeds: PlainFeeds,
) -> Result<(CatalogSnapshot, Vec<FeedNo>), StoreError> {
    let known = |name: &str| catalog.feed(name).map(|feed| feed.no);
    let is_new = |name: &str| known(name).or_else(|| catalog.withdrawn(name)).is_none();
    let new = feeds.put.iter().filter(|feed| is_new(&feed.name));
    let new: Vec<_> = new
        .map(|feed| (feed.name.clone(), feed.namespace()))
        .collect();
    let mut made = Vec::with_capacity(new.len());
    for batch in new.chunks(BATCH_FEEDS_MAX) {
        made.extend(store.register_all(batch.to_vec()).await?);
    }
    let mut made = made.into_iter();
    let (mut put, mut added) = (Vec::new(), Vec::new());
    for settings in feeds.put {
        let name = &settings.name;
        let no = if let Some(no) = known(name) {
            no
        } else if let Some(no) = catalog.withdrawn(name) {
            // It may have been shown in parts when it left.
            store.set_parts(no, Vec::new()).await?;
            added.push(no);
            no
        } else {
            let record = made.next();
            let no = record.map(|record| record.no);
            let no =
                no.ok_or_else(|| StoreError::Failed(format!("feed `{name}` has no number")))?;
            added.push(no);
            no
        };
        put.push(RegisteredFeed::new(no, settings));
    }
    Ok((catalog.with_plain(put, feeds.removed), added))
}

#[cfg(test)]
mod tests {
    use super::super::registry::{self, RegistryAnswer};
    use super::*;
    use crate::{
        catalog::{self, RegistrationProgress},
        clock::Manual,
        config::EntryReader,
        store::{memory::Memory, traits::*},
    };
    use proptest::prelude::*;
    use std::sync::Arc;

    /// A store with its registry, and what is in force.
    struct Side {
        store: Memory,
        config: Config,
        reader: EntryReader,
        catalog: CatalogSnapshot,
    }

    impl Side {
        async fn new() -> Self {
            let text = "[server]\npublic_url = \"http://b.example\"\n[store]\npath = \"x\"\n\
                        [[feed]]\nname = \"of-file\"\nurl = \"http://x/f\"\n";
            let config = Config::parse("test", text).unwrap();
            let store = Memory::new(Arc::new(Manual::at(1_780_272_000_000_000)));
            let progress = RegistrationProgress::default();
            let feeds = config.registered();
            let catalog = catalog::register(&store, feeds, &progress).await.unwrap();
            let reader = registry::reader(&config, None);
            Self {
                store,
                config,
                reader,
                catalog,
            }
        }

        async fn apply(
            &mut self,
            wanted: WantedChange,
            may_be_short: bool,
        ) -> Result<(String, bool), RegistryAnswer> {
            let store = &self.store;
            let beside = BesidePlain {
                in_force: &self.config,
                webhooks: &self.config.webhook,
            };
            let short = plan(store, beside, &self.catalog, &wanted).await;
            let short = short.filter(|_| may_be_short);
            let is_short = short.is_some();
            let mut planned = match short {
                Some(planned) => planned,
                None => {
                    registry::plan(store, &|| self.config.clone(), &self.reader, wanted).await?
                }
            };
            registry::make(store, &mut planned).await?;
            let catalog = match planned.take_feeds() {
                NextFeeds::Plain(feeds) => registered(store, &self.catalog, feeds).await.unwrap().0,
                NextFeeds::All(feeds) => {
                    let progress = RegistrationProgress::default();
                    catalog::register(store, feeds, &progress).await.unwrap()
                }
            };
            self.catalog = catalog.with_registry(planned.names.clone());
            Ok((planned.report(), is_short))
        }

        fn put(&self, entries: &[Entry]) -> Option<WantedChange> {
            let tables: Vec<String> = entries.iter().map(Entry::table).collect();
            Some(WantedChange::Put(
                self.reader.of_toml(&tables.concat()).ok()?,
            ))
        }

        /// Everything that the catalog answers about a handful of names and addresses.
        fn answers(&self) -> String {
            let feeds: Vec<_> = self
                .catalog
                .feeds()
                .map(|feed| (feed.no, &feed.settings))
                .collect();
            let withdrawn: Vec<_> = self.catalog.all_withdrawn().collect();
            // Which feeds may have a namespace is not compared: the short way may name one too many, and is not gone then.
            let known: Vec<_> = URLS.iter().map(|url| self.catalog.by_origin(url)).collect();
            format!(
                "{feeds:?}\n{withdrawn:?}\n{known:?}\n{:?}",
                self.catalog.registry()
            )
        }
    }

    const URLS: [&str; 5] = [
        "http://x/a",
        "http://x/b",
        "http://x/c",
        "http://x/d",
        "http://x/f",
    ];

    #[derive(Clone, Debug)]
    struct Entry {
        name: &'static str,
        url: &'static str,
        lines: &'static str,
    }

    impl Entry {
        fn table(&self) -> String {
            let Self { name, url, lines } = self;
            format!("[[feed]]\nname = \"{name}\"\nurl = \"{url}\"\n{lines}\n")
        }
    }

    #[derive(Clone, Debug)]
    enum Step {
        Put(Vec<Entry>),
        Remove(&'static str),
        Poll(&'static str),
    }

    fn name() -> impl Strategy<Value = &'static str> {
        prop::sample::select(vec!["a", "b", "c", "of-file"])
    }

    fn step() -> impl Strategy<Value = Step> {
        let lines = prop::sample::select(vec![
            "",
            "",
            "",
            "categories = [\"c\"]",
            "aliases = [\"http://x/d\"]",
            "id_namespace = \"own\"",
            "access = { readers = [\"ann\"] }",
        ]);
        let entry = (name(), prop::sample::select(URLS.to_vec()), lines);
        let entry = entry.prop_map(|(name, url, lines)| Entry { name, url, lines });
        prop_oneof![
            4 => prop::collection::vec(entry, 1..3).prop_map(Step::Put),
            2 => name().prop_map(Step::Remove),
            1 => name().prop_map(Step::Poll),
        ]
    }

    /// Gives a feed an item, so that it keeps its ids.
    async fn poll(side: &Side, name: &str) {
        if side.catalog.feed(name).is_some() {
            let record = side.store.feed_named(name).await.unwrap().unwrap();
            if record.items.total > 0 {
                return;
            }
            catalog::testing::keep_item(&side.store, name, &record.ids.namespace).await;
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 128, ..ProptestConfig::default() })]

        /// The short way answers and leaves what the whole way does.
        #[test]
        fn a_change_by_the_short_way_is_that_by_the_whole(steps in prop::collection::vec(step(), 1..14)) {
            let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
            runtime.block_on(async {
                let (mut short, mut whole) = (Side::new().await, Side::new().await);
                for step in steps {
                    let (one, other) = match &step {
                        Step::Put(entries) => (short.put(entries), whole.put(entries)),
                        Step::Remove(name) => {
                            let remove = || Some(WantedChange::Remove((*name).to_owned()));
                            (remove(), remove())
                        }
                        Step::Poll(name) => {
                            poll(&short, name).await;
                            poll(&whole, name).await;
                            continue;
                        }
                    };
                    let Some((one, other)) = one.zip(other) else { continue };
                    let one = short.apply(one, true).await.map(|(report, _)| report);
                    let other = whole.apply(other, false).await.map(|(report, _)| report);
                    prop_assert_eq!(format!("{one:?}"), format!("{other:?}"), "{:?}", step);
                    prop_assert_eq!(short.answers(), whole.answers(), "{:?}", step);
                }
                Ok(())
            })?;
        }
    }

    #[tokio::test]
    async fn ordinary_changes_go_the_short_way() {
        let mut side = Side::new().await;
        let entry = |lines| Entry {
            name: "a",
            url: "http://x/a",
            lines,
        };
        for change in [
            side.put(&[entry("")]),
            side.put(&[entry("categories = [\"c\"]")]),
            Some(WantedChange::Remove("a".to_owned())),
            side.put(&[entry("")]),
        ] {
            let (report, is_short) = side.apply(change.unwrap(), true).await.unwrap();
            assert!(is_short, "{report}");
        }
    }

    #[tokio::test]
    async fn a_feed_that_a_webhook_in_force_names_does_not_go_the_short_way() {
        let mut side = Side::new().await;
        let entry = Entry {
            name: "a",
            url: "http://x/a",
            lines: "",
        };
        let wanted = side.put(&[entry]).unwrap();
        side.apply(wanted, true).await.unwrap();
        let text = "url = \"http://h/\"\nfeed = \"a\"\nsecret = \"whsec_\"\n";
        let webhook: WebhookSettings = toml::from_str(text).unwrap();
        let wanted = WantedChange::Remove("a".to_owned());
        for (webhooks, is_short) in [(vec![webhook], false), (Vec::new(), true)] {
            let beside = BesidePlain {
                in_force: &side.config,
                webhooks: &webhooks,
            };
            let planned = plan(&side.store, beside, &side.catalog, &wanted).await;
            assert_eq!(planned.is_some(), is_short);
        }
    }
}
