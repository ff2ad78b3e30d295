//! From settings to a snapshot: gives each feed its number in the store, in batches; and how far
//! that is.

use super::{
    CatalogSnapshot, FeedSettings, RegisteredFeed, namespaces::AllStoredIds, settings::parts_of,
};
use crate::{
    feed::{
        filter::Filter,
        part::{self, PartChoice, PartRecord, WantedPart},
        record::FeedNo,
    },
    store::{Store, StoreError, listing},
};
use futures_util::{StreamExt as _, TryStreamExt as _, stream};
use std::{
    collections::{HashMap, HashSet},
    fmt,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
};

/// Feeds registered in one transaction at most: what else is to be written waits for one batch, not
/// for all.
pub const BATCH_FEEDS_MAX: usize = 2_000;

/// Feeds whose parts are set at the same time, so that they share transactions.
const PARTED_AT_ONCE: usize = 64;

/// Progress of a registration; what follows it takes its time, too, until everything is opened.
#[derive(Debug, Default)]
pub struct RegistrationProgress {
    registered: AtomicUsize,
    feeds: AtomicUsize,
}

impl RegistrationProgress {
    /// None of so many feeds is registered.
    pub fn of(feeds: usize) -> Self {
        Self {
            registered: AtomicUsize::new(0),
            feeds: AtomicUsize::new(feeds),
        }
    }

    /// Feeds that were found at sites join those of the configuration.
    fn expect(&self, feeds: usize) {
        self.feeds.store(feeds, Ordering::Relaxed);
    }

    fn add(&self, feeds: usize) {
        self.registered.fetch_add(feeds, Ordering::Relaxed);
    }
}

impl fmt::Display for RegistrationProgress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (registered, feeds) = (
            self.registered.load(Ordering::Relaxed),
            self.feeds.load(Ordering::Relaxed),
        );
        if registered < feeds || feeds == 0 {
            write!(f, "{registered} of {feeds} feeds are registered")
        } else {
            write!(
                f,
                "all {feeds} feeds are registered; their polls and subscriptions are being taken up"
            )
        }
    }
}

/// Registers feeds, and makes a snapshot of them. Nothing is registered when one of them cannot
/// have its namespace.
pub async fn register(
    store: &dyn Store,
    settings: Vec<FeedSettings>,
    progress: &RegistrationProgress,
) -> Result<CatalogSnapshot, StoreError> {
    progress.expect(settings.len());
    let stored = AllStoredIds::read(store).await?;
    let namespaces = stored.namespaces(&settings)?;
    let at: HashMap<&str, usize> = settings
        .iter()
        .enumerate()
        .map(|(at, feed)| (feed.name.as_str(), at))
        .collect();
    let mut numbers = vec![None; settings.len()];
    let mut withdrawn = Vec::new();
    // The number of a feed whose record is damaged is known, too: whoever asks for it is told so.
    let mut names = listing::feed_names(store);
    while let Some((name, no)) = names.try_next().await? {
        let Some(at) = at.get(name.as_str()).copied() else {
            withdrawn.push((name, no));
            continue;
        };
        numbers[at] = Some(no);
        progress.add(1);
    }
    drop((names, at));
    let is_another = |at: &usize| {
        stored
            .of(&settings[*at].name)
            .is_some_and(|ids| ids.namespace != namespaces[*at])
    };
    let new: Vec<usize> = (0..settings.len())
        .filter(|at| numbers[*at].is_none() || is_another(at))
        .collect();
    for batch in new.chunks(BATCH_FEEDS_MAX) {
        let names = batch
            .iter()
            .map(|at| (settings[*at].name.clone(), namespaces[*at].clone()))
            .collect();
        let made = batch.iter().filter(|at| numbers[**at].is_none()).count();
        for (at, record) in batch.iter().zip(store.register_all(names).await?) {
            numbers[*at] = Some(record.no);
        }
        progress.add(made);
    }
    let of_withdrawn = |(name, no): &(String, FeedNo)| Some((*no, &*stored.of(name)?.namespace));
    let of_withdrawn: Vec<(FeedNo, &str)> = withdrawn.iter().filter_map(of_withdrawn).collect();
    let of_registered = numbers.iter().zip(&namespaces);
    let of_registered = of_registered.filter_map(|(no, namespace)| Some(((*no)?, &**namespace)));
    let stored_namespaces: Vec<(FeedNo, &str)> = of_registered.chain(of_withdrawn).collect();
    let registered =
        |(settings, no): (FeedSettings, Option<_>)| Some(RegisteredFeed::new(no?, settings));
    let snapshot = CatalogSnapshot::new(
        settings
            .into_iter()
            .zip(numbers.iter().copied())
            .filter_map(registered),
        withdrawn.iter().cloned(),
    );
    let snapshot = snapshot.with_namespaces(stored_namespaces);
    with_parts(store, snapshot, &stored.parted).await
}

/// The same snapshot with the parts of its feeds, as the store has them from now on. `parted` are
/// the feeds of which the store may have parts that are wanted no more.
pub(super) async fn with_parts(
    store: &dyn Store,
    snapshot: CatalogSnapshot,
    parted: &HashSet<FeedNo>,
) -> Result<CatalogSnapshot, StoreError> {
    let mut wanted: Vec<(FeedNo, Vec<WantedPart>)> = Vec::new();
    for feed in snapshot.feeds() {
        let FeedSettings { access, show, .. } = &*feed.settings;
        if !show.is_empty() || parted.contains(&feed.no) {
            wanted.push((feed.no, parts_of(access, show)));
        }
    }
    let mut set = stream::iter(wanted)
        .map(|(feed, wanted)| async move {
            let filters: Vec<Filter> = wanted.iter().map(|part| part.filter.clone()).collect();
            (feed, filters, store.set_parts(feed, wanted).await)
        })
        .buffered(PARTED_AT_ONCE);
    let mut parted = snapshot;
    while let Some((feed, filters, parts)) = set.next().await {
        match parts {
            Ok(parts) => {
                let numbers = parts.into_iter().map(|part| part.no);
                parted = parted.with_parts(feed, filters.into_iter().zip(numbers).collect());
            }
            // Nobody reads a part of it then, and it takes no other feed with it.
            Err(error @ (StoreError::DamagedFeed { .. } | StoreError::Damaged(_))) => {
                tracing::error!("The parts of a feed that its readers see are not there: {error}");
            }
            Err(error) => return Err(error),
        }
    }
    Ok(parted)
}

/// A snapshot of those feeds that the store knows already; writes nothing.
pub async fn observe(
    store: &dyn Store,
    settings: Vec<FeedSettings>,
) -> Result<CatalogSnapshot, StoreError> {
    Ok(observe_all(store, settings).await?.0)
}

/// The same, and the feeds that the store does not know.
async fn observe_all(
    store: &dyn Store,
    settings: Vec<FeedSettings>,
) -> Result<(CatalogSnapshot, Vec<FeedSettings>), StoreError> {
    let stored: HashMap<String, FeedNo> = listing::feed_names(store).try_collect().await?;
    let (mut feeds, mut unknown) = (Vec::new(), Vec::new());
    for settings in settings {
        match stored.get(&settings.name) {
            Some(no) => feeds.push(RegisteredFeed::new(*no, settings)),
            None => unknown.push(settings),
        }
    }
    Ok((CatalogSnapshot::new(feeds, stored), unknown))
}

/// A snapshot of the feeds and parts that the store has, for a process that another one works for;
/// and the feeds that the store does not know.
pub async fn follow(
    store: &dyn Store,
    settings: Vec<FeedSettings>,
) -> Result<(CatalogSnapshot, Vec<FeedSettings>), StoreError> {
    let (mut snapshot, unknown) = observe_all(store, settings).await?;
    let shown = snapshot
        .feeds()
        .filter(|feed| !feed.settings.show.is_empty());
    let shown: Vec<Arc<RegisteredFeed>> = shown.cloned().collect();
    if shown.is_empty() {
        return Ok((snapshot, unknown));
    }
    let held = held_parts(store).await?;
    for feed in shown {
        let FeedSettings { access, show, .. } = &*feed.settings;
        let wanted = parts_of(access, show);
        let choices = part::choose(held.get(&feed.no).map_or(&[], Vec::as_slice), &wanted);
        // A part that is not there yet is made by the process that works. Nobody reads it before.
        let kept = wanted
            .into_iter()
            .zip(choices)
            .filter_map(|(wanted, choice)| match choice {
                PartChoice::Kept(no) => Some((wanted.filter, no)),
                PartChoice::Edited(_) | PartChoice::New => None,
            });
        snapshot = snapshot.with_parts(feed.no, kept.collect());
    }
    Ok((snapshot, unknown))
}

/// The parts that a store has, by the feed that each is of.
async fn held_parts(
    store: &dyn Store,
) -> Result<HashMap<FeedNo, Vec<(FeedNo, PartRecord)>>, StoreError> {
    let mut held: HashMap<FeedNo, Vec<_>> = HashMap::new();
    let mut records = listing::feeds(store);
    while let Some(record) = records.try_next().await? {
        let Some(feed) = record.part_of else { continue };
        let group = store.group(record.no).await?;
        if let Some(part) = group.and_then(|group| group.part) {
            held.entry(feed).or_default().push((record.no, part));
        }
    }
    Ok(held)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        auth::AccessSettings,
        catalog::ShowRule,
        clock::Manual,
        store::{memory::Memory, traits::*},
    };
    use std::sync::Arc;
    use url::Url;

    fn store() -> Memory {
        Memory::new(Arc::new(Manual::at(1_780_272_000_000_000)))
    }

    async fn register(
        store: &Memory,
        settings: Vec<FeedSettings>,
    ) -> Result<CatalogSnapshot, StoreError> {
        super::register(store, settings, &RegistrationProgress::default()).await
    }

    fn feed(name: &str, url: &str) -> FeedSettings {
        FeedSettings::new(name, Url::parse(url).unwrap())
    }

    #[tokio::test]
    async fn a_feed_keeps_its_number_and_one_that_left_is_withdrawn() {
        let store = store();
        let first = register(
            &store,
            vec![feed("a", "http://x/a"), feed("b", "http://x/b")],
        )
        .await
        .unwrap();
        let second = register(
            &store,
            vec![feed("b", "https://x/b"), feed("c", "http://x/c")],
        )
        .await
        .unwrap();
        let no = first.feed("b").unwrap().no;
        assert_eq!(second.feed("b").unwrap().no, no);
        assert_eq!(second.withdrawn("a"), Some(first.feed("a").unwrap().no));
        let observed = observe(
            &store,
            vec![feed("a", "http://x/a"), feed("new", "http://x/n")],
        )
        .await
        .unwrap();
        assert_eq!(observed.feeds().len(), 1);
        assert_eq!(
            store.counts().await.unwrap().feeds,
            3,
            "observing writes nothing"
        );
    }

    #[tokio::test]
    async fn who_follows_knows_the_parts_that_are_there_and_makes_none() {
        let store = store();
        let shown = |words: &str| {
            let mut settings = feed("a", "http://x/a");
            settings.show = vec![ShowRule {
                access: AccessSettings::default(),
                filter: Filter::of(&[("q", words)]).unwrap(),
            }];
            settings
        };
        let registered = register(&store, vec![shown("red")]).await.unwrap();
        let parts: Vec<FeedNo> = registered.parts().collect();
        let settings = vec![shown("red"), feed("new", "http://x/n")];
        let (followed, unknown) = follow(&store, settings).await.unwrap();
        assert_eq!(parts.len(), 1);
        assert_eq!(followed.parts().collect::<Vec<_>>(), parts);
        assert_eq!(unknown[0].name, "new");
        let (other, _) = follow(&store, vec![shown("blue")]).await.unwrap();
        assert_eq!(other.parts().count(), 0, "it is made by the one that works");
        assert_eq!(store.counts().await.unwrap().feeds, 1);
    }

    #[tokio::test]
    async fn nothing_is_registered_when_one_namespace_is_held_by_another() {
        let store = store();
        register(&store, vec![feed("b", "http://x/b")])
            .await
            .unwrap();
        let twins = vec![
            feed("a", "http://x/a"),
            feed("b", "http://x/moved"),
            feed("c", "https://x/moved"),
        ];
        let refused = register(&store, twins).await;
        assert!(matches!(refused, Err(StoreError::NamespaceHeld { feed, .. }) if feed == "c"));
        assert_eq!(store.counts().await.unwrap().feeds, 1);
        assert_eq!(
            store.feed_named("b").await.unwrap().unwrap().ids.namespace,
            "x/b"
        );
    }

    #[tokio::test]
    async fn a_corrected_address_of_a_feed_without_items_is_taken_with_its_namespace() {
        let store = store();
        let first = register(&store, vec![feed("a", "http://x/wrong")])
            .await
            .unwrap();
        let second = register(&store, vec![feed("a", "http://x/right")])
            .await
            .unwrap();
        let record = store.feed_named("a").await.unwrap().unwrap();
        assert_eq!(
            (record.no, record.ids.namespace.as_str()),
            (first.feed("a").unwrap().no, "x/right")
        );
        assert_eq!(second.feed("a").unwrap().no, record.no);
    }

    #[tokio::test]
    async fn many_feeds_are_registered_in_batches_each_with_its_own_number_and_the_progress_is_told()
     {
        let store = store();
        let feeds = |range: std::ops::Range<usize>| -> Vec<FeedSettings> {
            range
                .map(|n| feed(&format!("f{n}"), &format!("http://x/{n}")))
                .collect()
        };
        let many = 2 * BATCH_FEEDS_MAX + 1;
        register(&store, feeds(3..5)).await.unwrap();
        let progress = RegistrationProgress::of(many);
        assert_eq!(
            progress.to_string(),
            format!("0 of {many} feeds are registered")
        );
        let catalog = super::register(&store, feeds(0..many), &progress)
            .await
            .unwrap();
        let all = format!(
            "all {many} feeds are registered; their polls and subscriptions are being taken up"
        );
        assert_eq!(
            progress.to_string(),
            all,
            "it is not the feeds that are waited for"
        );
        let stored: HashMap<String, FeedNo> =
            listing::feed_names(&store).try_collect().await.unwrap();
        assert_eq!((stored.len(), catalog.feeds().len()), (many, many));
        assert!(
            catalog
                .feeds()
                .all(|feed| stored.get(&feed.settings.name) == Some(&feed.no))
        );
    }
}
