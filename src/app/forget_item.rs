//! Removal of one item by its operator here: its content and its evidence go, and a stub stays, so
//! that consumers are told and the item does not come back.

use super::{
    explain::Explainer,
    reload::ForgetRefused,
    still_held::{FEEDS_MAX, PostNames, StillHeld, groups_of},
};
use crate::{
    catalog::{CatalogSnapshot, ServePlain},
    feed::{item::ItemId, record::FeedNo},
    secret::public_url,
    store::{Commit, Receipt, Store, StoreError},
};

use std::io::ErrorKind;

/// Times that a removal is tried while the feed changes.
const TRIES_MAX: usize = 5;

/// An item that was removed, and what is told of it.
#[derive(Debug)]
pub(super) struct RemovedItem {
    pub(super) receipt: Receipt,
    /// The words for what was removed.
    removed: String,
    /// The words for what still shows it, a line each.
    still_shown: String,
}

/// Removes an item of a feed, found by any of its names.
pub(super) async fn forget_item(
    explainer: &Explainer,
    feed: &str,
    item: &str,
) -> Result<RemovedItem, ForgetRefused> {
    let unknown = || ForgetRefused::UnknownItem {
        feed: feed.to_owned(),
        item: item.to_owned(),
    };
    let record = explainer.store.feed_named(feed).await?;
    let record = record.ok_or_else(|| ForgetRefused::Unknown(feed.to_owned()))?;
    let (id, names) = match explainer.find(&record, item).await {
        Ok(found) => {
            let found = found.ok_or_else(unknown)?;
            (found.id, PostNames::of(Some(&found), item))
        }
        // Its id is all that is known of an item that cannot be read.
        Err(StoreError::DamagedItem { id, .. })
            if item.parse().is_ok_and(|named: ItemId| named == id) =>
        {
            (id, PostNames::of(None, item))
        }
        Err(error) => return Err(error.into()),
    };
    let receipt = remove(&*explainer.store, record.no, id).await?;
    let recordings = remove_recordings(explainer, feed).await;
    tracing::info!(feed.name = %feed, item.id = %id, "Removed an item of `{feed}` for good. A tombstone without content stays");
    let held = names.still_held(explainer).await;
    let catalog = explainer.catalog.snapshot();
    let (removed, still_shown) = findings(&catalog, feed, item, &recordings, held);
    Ok(RemovedItem {
        receipt,
        removed,
        still_shown,
    })
}

/// End of the recordings of a feed.
enum Recordings {
    /// There were none.
    None,
    Removed,
    /// They stay, for this reason.
    Left(String),
}

/// Removes the documents and the answers of pages that were recorded of a feed: any of them may
/// show the item.
async fn remove_recordings(explainer: &Explainer, feed: &str) -> Recordings {
    let catalog = explainer.catalog.snapshot();
    let registered = catalog.feed(feed);
    let record = registered.and_then(|registered| registered.settings.record.as_ref());
    let Some(folder) = record.map(|record| record.folder.join(feed)) else {
        return Recordings::None;
    };
    let why = match tokio::fs::remove_dir_all(&folder).await {
        Ok(()) => {
            tracing::info!(feed.name = %feed, "Removed the recordings of `{feed}`");
            return Recordings::Removed;
        }
        Err(error) if error.kind() == ErrorKind::NotFound => return Recordings::None,
        Err(error) => error.to_string(),
    };
    let why = format!(
        "the recordings in {} could not be removed and may show it: {why}",
        folder.display()
    );
    tracing::error!(feed.name = %feed, "A forgotten item is left in recordings: {why}");
    Recordings::Left(why)
}

async fn remove(store: &dyn Store, feed: FeedNo, id: ItemId) -> Result<Receipt, StoreError> {
    let mut tries = 0;
    loop {
        let snapshot = store.snapshot(feed, Vec::new()).await?;
        let commit = Commit::forgetting(snapshot, id);
        tries += 1;
        match store.commit(commit).await {
            Err(error) if error.wants_another_look() && tries < TRIES_MAX => {}
            committed => return committed,
        }
    }
}

/// The words for a removal, unless an older copy of the store would undo it.
pub(super) fn remembered(store: &dyn Store, told: String) -> Result<String, ForgetRefused> {
    match store.removal_faults().unwritten {
        None => Ok(told),
        Some(why) => Err(ForgetRefused::Unremembered(format!("{told}{why}"))),
    }
}

/// Tells that a feed is forgotten, and for which reason the file of the store still holds it, if it
/// does.
pub(super) fn forgotten(feed: &str, kept: Option<&str>) -> String {
    let removed = format!(
        "feed `{feed}` is forgotten. Everything that was kept of it is removed from the store"
    );
    let beside = "recordings of the feed, ids of its items in tombstones of groups, ";
    words(&removed, kept, "", beside)
}

impl RemovedItem {
    /// Tells what was removed, for which reason the file of the store still holds it, if it does,
    /// what still shows it, and what cannot be reached.
    pub(super) fn told(&self, kept: Option<&str>) -> String {
        let beside = "other items that quote it, recordings elsewhere and later ones, ";
        words(&self.removed, kept, &self.still_shown, beside)
    }
}

fn words(removed: &str, kept: Option<&str>, still_shown: &str, beside: &str) -> String {
    let file = match kept {
        Some(why) => format!("NOT YET GONE: {why}"),
        None => "the file of the store was written anew without it".to_owned(),
    };
    format!(
        "{removed}\n{file}\n{still_shown}not reached: backups, logs, {beside}copies that readers, subscribers and caches have, and the publisher's own feed and pages\n"
    )
}

/// The words for what was removed with an item, and those for what still shows it.
fn findings(
    catalog: &CatalogSnapshot,
    feed: &str,
    item: &str,
    recordings: &Recordings,
    held: Result<Vec<StillHeld>, StoreError>,
) -> (String, String) {
    let settings = catalog.feed(feed).map(|registered| &registered.settings);
    let is_group = settings.is_some_and(|settings| settings.group.is_some());
    let place = settings.and_then(|settings| settings.legacy.as_ref());
    let of = if is_group { "group" } else { "feed" };
    let mut removed = vec!["the store".to_owned(), "its index".to_owned()];
    if !is_group {
        removed.push("its staged pages".to_owned());
    }
    let still = held.as_deref().unwrap_or_default();
    let is_shown = |group: &String| still.iter().any(|held| held.groups.contains(group));
    let mut groups = groups_of(catalog, feed);
    groups.retain(|group| held.is_ok() && !is_shown(group));
    if !groups.is_empty() {
        removed.push(format!("its groups {}", quoted(&groups)));
    }
    if matches!(recordings, Recordings::Removed) {
        removed.push("the recordings of the feed".to_owned());
    }
    let from_origin = place.filter(|place| place.plain == ServePlain::Origin);
    if place.is_some() && from_origin.is_none() {
        removed.push("the document at its old address and every later one".to_owned());
    }
    let removed = format!(
        "item `{item}` of {of} `{feed}` is removed from {}. A tombstone stays that names nothing of it",
        removed.join(", ")
    );
    let mut lines = Vec::new();
    if let Some(place) = from_origin {
        lines.push(format!(
            "still shown: at its old address {}. The old server answers there (serve_plain = \"origin\"), until its publisher removes it",
            public_url(&place.url)
        ));
    }
    if let Recordings::Left(why) = recordings {
        lines.push(format!("still there: {why}"));
    }
    match held {
        Ok(held) => lines.extend(held.iter().flat_map(StillHeld::lines)),
        Err(error) => lines.push(format!(
            "everfeed could not read which other feeds hold the post: {error}"
        )),
    }
    if catalog.upstreams().count() + catalog.all_withdrawn().count() > FEEDS_MAX {
        lines.push(format!(
            "everfeed looked at {FEEDS_MAX} feeds for the post. Others may hold it"
        ));
    }
    let still_shown = lines.iter().map(|line| format!("{line}\n")).collect();
    (removed, still_shown)
}

impl StillHeld {
    /// The command that removes each of its items, and what shows it until then.
    fn lines(&self) -> impl Iterator<Item = String> {
        let shows = if self.is_withdrawn {
            "keeps the post, too, but is not configured and not served".to_owned()
        } else if self.groups.is_empty() {
            "shows the post, too".to_owned()
        } else {
            let groups = quoted(&self.groups);
            format!("shows the post, too, and so do its groups {groups}")
        };
        self.items.iter().map(move |id| {
            format!(
                "still shown: feed `{0}` {shows}; remove it there with `everfeed forget {0} {id}`",
                self.feed
            )
        })
    }
}

fn quoted(names: &[String]) -> String {
    let quoted: Vec<String> = names.iter().map(|name| format!("`{name}`")).collect();
    quoted.join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        app::explain::tests::names::{START, explainer_of, with_post},
        catalog::{Catalog, RegistrationProgress, register},
        clock::Manual,
        config::Config,
        feed::{
            item::{ItemDigests, KeyHash, iri},
            reconcile::{Change, Put, PutKind, address_witness},
        },
        store::{GROUP_BATCH_ITEMS, WantedGroup, memory::Memory},
    };
    use everfeed_adapters::{Entry, Key, Link};
    use std::sync::Arc;

    const CONFIG: &str = "[server]\npublic_url = \"http://feeds.example\"\n\
        [[feed]]\nname = \"a\"\nurl = \"http://x.example/a\"\n\
        [[feed]]\nname = \"b\"\nurl = \"http://x.example/b\"\n\
        [[feed]]\nname = \"c\"\nurl = \"http://x.example/c\"\n\
        [[group]]\nname = \"g\"\nmembers = [\"a\", \"b\", \"c\"]\n";
    const LINK: &str = "http://blog.example/secret";

    /// A post of a feed under this id.
    async fn post(store: &dyn Store, feed: &str, id: &str) -> ItemId {
        let record = store.feed_named(feed).await.unwrap().unwrap();
        let namespace = &record.ids.namespace;
        let key = Key::Id(id.to_owned());
        let hash = KeyHash::of(namespace, &key.stripped());
        let link = Link {
            href: LINK.into(),
            rel: "alternate".into(),
            ..Link::default()
        };
        let put = Put {
            kind: PutKind::Added,
            id: hash.item_id(),
            iri: iri(namespace, &key),
            keys: vec![hash],
            entry: Arc::new(Entry {
                id: Some(id.into()),
                links: vec![link],
                ..Entry::default()
            }),
            published_us: None,
            digests: ItemDigests::default(),
            witnesses: address_witness(LINK).into_iter().collect(),
        };
        let commit = Commit {
            changes: vec![Change::Put(put)],
            ready: true,
            ..Commit::nothing(&record)
        };
        store.commit(commit).await.unwrap();
        hash.item_id()
    }

    async fn explainer(text: &str) -> Explainer {
        let store: Arc<dyn Store> =
            Arc::new(Memory::new(Arc::new(Manual::at(1_780_272_000_000_000))));
        let config = Config::parse("test", text).unwrap();
        let progress = RegistrationProgress::default();
        let catalog = register(&*store, config.registered(), &progress).await;
        Explainer {
            store,
            catalog: Catalog::new(catalog.unwrap()),
            platforms: config.platforms.profiles(),
        }
    }

    async fn forget(explainer: &Explainer, feed: &str, item: &str) -> String {
        forget_item(explainer, feed, item).await.unwrap().told(None)
    }

    #[tokio::test]
    async fn what_still_shows_a_forgotten_post_is_named_with_the_command_for_it() {
        let explainer = explainer(CONFIG).await;
        let store = &*explainer.store;
        let catalog = explainer.catalog.snapshot();
        let group = catalog.feed("g").unwrap().no;
        let members = catalog.upstreams().map(|feed| (feed.no, "u".to_owned()));
        let wanted = WantedGroup {
            metadata: Arc::default(),
            members: members.collect(),
        };
        let mut step = store.set_group(group, wanted).await.unwrap();
        while !step.is_settled {
            step = store.advance_group(group, GROUP_BATCH_ITEMS).await.unwrap();
        }
        post(store, "a", "tag:x,2005:1").await;
        post(store, "b", "7").await;
        let of_c = post(store, "c", "tag:x,2005:1").await;

        let told = forget(&explainer, "a", "tag:x,2005:1").await;
        let of_groups = format!(
            "feed `c` shows the post, too, and so do its groups `g`; remove it there with `everfeed forget c {of_c}`"
        );
        assert!(told.contains(&of_groups), "{told}");
        assert!(
            told.contains("`everfeed forget b "),
            "under its link: {told}"
        );
        for claim in ["its groups `g`, ", "old address", "recordings of the feed"] {
            assert!(!told.contains(&format!(", {claim}")), "{claim}: {told}");
        }
        // Once more: nothing is left of it but the name that the operator gives.
        assert!(
            forget(&explainer, "a", "tag:x,2005:1")
                .await
                .contains(&of_groups)
        );

        let told = forget(&explainer, "g", LINK).await;
        assert!(
            told.starts_with(&format!(
                "item `{LINK}` of group `g` is removed from the store, its index. A tomb"
            )),
            "{told}"
        );
        assert!(told.contains("everfeed forget c"), "{told}");
        forget(&explainer, "g", "tag:x,2005:1").await;
        let told = forget(&explainer, "b", LINK).await;
        assert!(
            told.contains("its groups `g`")
                && told.contains("feed `c` shows the post, too; remove"),
            "{told}"
        );
        let told = forget(&explainer, "c", LINK).await;
        assert!(!told.contains("still shown"), "{told}");
    }

    #[tokio::test]
    async fn an_old_address_that_the_old_server_answers_is_named_as_such() {
        for (plain, expect, never) in [
            (
                "origin",
                "still shown: at its old address",
                "the document at its old address",
            ),
            (
                "rewritten",
                "the document at its old address",
                "still shown",
            ),
            (
                "untouched",
                "the document at its old address",
                "still shown",
            ),
        ] {
            let site = format!(
                "[server]\npublic_url = \"http://blog.example\"\n[[site]]\norigin = \"http://127.0.0.1:1\"\n\
                 feeds = [\"/r.xml\"]\nserve_plain = \"{plain}\"\n"
            );
            let explainer = explainer(&site).await;
            let catalog = explainer.catalog.snapshot();
            let name = &catalog.upstreams().next().unwrap().settings.name;
            post(&*explainer.store, name, "1").await;
            let told = forget(&explainer, name, "1").await;
            assert!(told.contains(expect), "{plain}: {told}");
            assert!(!told.contains(never), "{plain}: {told}");
        }
    }

    #[tokio::test]
    async fn the_recordings_of_a_feed_go_with_an_item_and_those_of_others_stay() {
        let folder = tempfile::tempdir().unwrap();
        let store: Arc<dyn Store> = Arc::new(Memory::new(Arc::new(Manual::at(START.micros()))));
        let (_, id, _) = with_post(&*store).await;
        let settings = format!("record = {{ folder = {:?} }}\n", folder.path());
        let explainer = explainer_of(&store, &settings).await;
        for name in ["blog", "other"] {
            let bodies = folder.path().join(name).join("bodies");
            std::fs::create_dir_all(&bodies).unwrap();
            std::fs::write(bodies.join("1"), "Post 1").unwrap();
        }
        forget_item(&explainer, "blog", "Post 1").await.unwrap();
        assert!(!folder.path().join("blog").exists());
        assert!(folder.path().join("other/bodies/1").exists());
        let feed = store.feed_named("blog").await.unwrap().unwrap();
        let item = store.item(feed.no, id).await.unwrap().unwrap();
        assert!(item.content.is_forgotten());
        // Without any recordings it is no error.
        let again = forget_item(&explainer, "blog", &id.to_string()).await;
        assert!(again.is_ok(), "{again:?}");
    }

    #[test]
    fn the_command_says_what_is_not_reached_and_until_when() {
        let of_item = |kept: Option<&str>| words("removed", kept, "", "");
        let of_feed = |kept: Option<&str>| forgotten("blog", kept);
        for told in [&of_item as &dyn Fn(Option<&str>) -> String, &of_feed] {
            let gone = told(None);
            assert!(gone.contains("was written anew without it"), "{gone}");
            assert!(gone.contains("not reached: backups, logs, "), "{gone}");
            assert!(!gone.contains("NOT YET"), "{gone}");
            let kept = told(Some("free pages still hold it (its disk is full)"));
            assert!(
                kept.contains("NOT YET GONE: free pages still hold it (its disk is full)\n"),
                "{kept}"
            );
            assert!(!kept.contains("was written"), "{kept}");
        }
    }
}
