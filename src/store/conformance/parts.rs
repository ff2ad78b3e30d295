//! Parts of a feed: what becomes of them whatever happens to their feed, and whenever their filters
//! change. Row SF-131.

use super::rig::{NAMESPACE, Rig, add, all, commit, delete, edit, guid, id, put, revive, title};
use crate::{
    clock::Clock as _,
    feed::{
        filter::Filter,
        item::{Content, Item, ItemId, Reason},
        order::Order,
        page::{Degraded, PageQuery},
        part::WantedPart,
        position::Position,
        reconcile::{Change, Delete, Put, PutKind},
        record::{FeedNo, FeedRecord},
    },
    store::{Commit, GROUP_BATCH_ITEMS, WantedGroup, redb::verify},
};
use everfeed_adapters::{Entry, Metadata, Person};
use proptest::{collection::vec, prelude::*};
use std::{collections::BTreeMap, sync::Arc};
use tokio::runtime::Builder;

fn filter(words: &str) -> Filter {
    Filter::of(&[("q", words)]).unwrap()
}

fn wanted(filter: Filter, audience: &str) -> WantedPart {
    WantedPart {
        filter,
        audience: audience.to_owned(),
    }
}

/// Brings a part to what its filter says, in batches of so many items.
async fn settle(rig: &Rig, part: FeedNo, items_max: usize) -> FeedRecord {
    loop {
        let step = rig.advance_group(part, items_max).await.unwrap();
        if step.is_settled {
            return step.feed;
        }
        assert!(!step.feed.is_ready(), "nobody reads what is half done");
    }
}

/// The only part of a feed, for bob.
async fn part(rig: &Rig, feed: FeedNo, words: &str) -> FeedNo {
    let wanted = vec![wanted(filter(words), "bob")];
    let no = rig.set_parts(feed, wanted).await.unwrap()[0].no;
    settle(rig, no, GROUP_BATCH_ITEMS).await;
    no
}

async fn titles(rig: &Rig, feed: FeedNo) -> Vec<String> {
    let page = rig.list(feed, Order::MODIFIED, None).await;
    page.items
        .iter()
        .map(|item| title(item).unwrap_or("gone").to_owned())
        .collect()
}

on_every_store! {
    a_part_holds_what_its_filter_shows_and_follows_in_the_same_transaction,
    what_leaves_a_part_says_nothing_of_itself_and_comes_back_as_it_is,
    a_change_that_is_hidden_moves_nothing_of_a_part,
    a_part_has_no_name_and_goes_with_its_feed,
    a_changed_filter_edits_the_part_of_its_readers_and_an_unused_one_is_forgotten,
    a_part_is_served_when_its_feed_is,
    a_cursor_of_another_feed_begins_anew_in_a_part_and_back,
    what_is_forgotten_goes_from_parts_too,
    a_quota_holds_for_parts_too,
    the_namespace_that_a_feed_takes_is_that_of_its_parts,
}

async fn a_part_holds_what_its_filter_shows_and_follows_in_the_same_transaction(rig: Rig) {
    let feed = rig.blog().await;
    let first = vec![
        add(1),
        put(PutKind::Added, 2, "red one"),
        put(PutKind::Added, 3, "red two"),
    ];
    rig.change(feed, first).await.unwrap();
    let part = part(&rig, feed, "red").await;
    assert_eq!(titles(&rig, part).await, ["red one", "red two"]);
    let receipt = rig
        .change(
            feed,
            vec![edit(1, "red now"), delete(2), edit(3, "red still")],
        )
        .await
        .unwrap();
    let moved: Vec<FeedNo> = receipt.groups.iter().map(|group| group.no).collect();
    assert_eq!(moved, [part]);
    assert_eq!(titles(&rig, part).await, ["red now", "gone", "red still"]);
    let record = rig.feed(part).await.unwrap();
    assert_eq!((record.items.total, record.items.live), (3, 2));
    assert_eq!(
        (record.name.as_str(), record.ids.namespace.as_str()),
        ("blog", NAMESPACE)
    );
    let (own, of_feed) = (
        rig.item(part, id(3)).await.unwrap(),
        rig.item(feed, id(3)).await.unwrap(),
    );
    let (own, of_feed) = (own.unwrap(), of_feed.unwrap());
    assert_eq!(
        (&own.iri, &own.publisher_id),
        (&of_feed.iri, &of_feed.publisher_id)
    );
    assert_eq!(own.content, of_feed.content, "without a source");
    let by_guid = PageQuery {
        since: Some(Position::Id(guid(3))),
        ..all(part, Order::CREATED)
    };
    assert_eq!(rig.page(by_guid).await.unwrap().items.len(), 1);
}

async fn what_leaves_a_part_says_nothing_of_itself_and_comes_back_as_it_is(rig: Rig) {
    let feed = rig.blog().await;
    rig.change(feed, vec![put(PutKind::Added, 1, "red")])
        .await
        .unwrap();
    let part = part(&rig, feed, "red").await;
    let first = rig.item(part, id(1)).await.unwrap().unwrap();
    rig.change(feed, vec![edit(1, "secret")]).await.unwrap();
    let left = rig.item(part, id(1)).await.unwrap().unwrap();
    assert!(matches!(
        left.content,
        Content::Gone {
            reason: Reason::LeftView,
            ..
        }
    ));
    assert!(left.iri.starts_with("urn:uuid:") && left.publisher_id.is_none());
    assert!(left.published_us.is_none() && rig.evidence(part, id(1)).await.unwrap().is_empty());
    let receipt = rig.change(feed, vec![delete(1)]).await.unwrap();
    assert!(receipt.groups.is_empty(), "its deletion is not told");
    rig.change(feed, vec![put(PutKind::Revived, 1, "red again")])
        .await
        .unwrap();
    let back = rig.item(part, id(1)).await.unwrap().unwrap();
    assert_eq!((&back.iri, back.created), (&first.iri, first.created));
    assert_eq!(
        (title(&back), back.revived),
        (Some("red again"), Some(back.modified))
    );
}

async fn a_change_that_is_hidden_moves_nothing_of_a_part(rig: Rig) {
    let feed = rig.blog().await;
    rig.change(feed, vec![add(1), put(PutKind::Added, 2, "red")])
        .await
        .unwrap();
    let part = part(&rig, feed, "red").await;
    let before = (rig.feed(part).await.unwrap(), titles(&rig, part).await);
    for changes in [
        vec![add(3)],
        vec![edit(1, "blue")],
        vec![delete(3)],
        vec![revive(3)],
    ] {
        let receipt = rig.change(feed, changes).await.unwrap();
        assert!(receipt.groups.is_empty());
    }
    assert_eq!(
        (rig.feed(part).await.unwrap(), titles(&rig, part).await),
        before
    );
}

async fn a_part_has_no_name_and_goes_with_its_feed(rig: Rig) {
    let feed = rig.blog().await;
    rig.change(feed, vec![put(PutKind::Added, 2, "red")])
        .await
        .unwrap();
    let part = part(&rig, feed, "red").await;
    let group = rig.register("planet", "group:planet").await.unwrap().no;
    assert_eq!(rig.feed_named("blog").await.unwrap().unwrap().no, feed);
    assert_eq!(rig.feed_names(None, 9).await.unwrap().len(), 2);
    assert_eq!(rig.counts().await.unwrap().feeds, 2);
    assert_eq!(rig.blog().await, feed);
    let planet = WantedGroup {
        metadata: Arc::default(),
        members: vec![(feed, "u".to_owned())],
    };
    rig.set_group(group, planet).await.unwrap();
    while !rig.advance_group(group, 9).await.unwrap().is_settled {}
    rig.change(feed, vec![put(PutKind::Added, 3, "red too")])
        .await
        .unwrap();
    assert_eq!(titles(&rig, group).await.len(), 2, "a post is in it once");
    let rig = rig.reopen();
    assert_eq!(titles(&rig, part).await.len(), 2);
    assert_sound(&rig).await;
    assert!(rig.forget(feed).await.unwrap());
    assert!(rig.feed(part).await.is_err() && rig.group(part).await.unwrap().is_none());
    assert_eq!(rig.counts().await.unwrap().feeds, 1);
    let next = rig.register("next", "n").await.unwrap().no;
    assert!(next > part, "no number is given twice");
}

async fn a_changed_filter_edits_the_part_of_its_readers_and_an_unused_one_is_forgotten(rig: Rig) {
    let feed = rig.blog().await;
    let all = ["red", "blue", "red blue", "green"].iter().zip(1..);
    let changes = all
        .map(|(title, n)| put(PutKind::Added, n, title))
        .collect();
    rig.change(feed, changes).await.unwrap();
    let red = part(&rig, feed, "red").await;
    let seen = rig.list(red, Order::MODIFIED, None).await.last_cursor;
    let two = vec![
        wanted(filter("green"), "eve"),
        wanted(filter("blue"), "bob"),
    ];
    let parts = rig.set_parts(feed, two.clone()).await.unwrap();
    assert_eq!(parts[1].no, red, "bob has the same part");
    assert_ne!(parts[0].no, red);
    assert!(parts.iter().all(|part| !part.is_ready()));
    for part in &parts {
        settle(&rig, part.no, 1).await;
    }
    assert_eq!(titles(&rig, parts[0].no).await, ["green"]);
    let page = rig.list(red, Order::MODIFIED, Some(&seen)).await;
    let told: Vec<_> = page
        .items
        .iter()
        .map(|item| (item.id, item.is_gone()))
        .collect();
    assert!(!matches!(
        page.degraded,
        Some(Degraded::Reset | Degraded::Time)
    ));
    assert!(
        told.contains(&(id(1), true)) && told.contains(&(id(2), false)),
        "{told:?}"
    );
    assert!(
        !told.contains(&(id(3), true)) && told.len() == 2,
        "{told:?}"
    );
    let again = rig.set_parts(feed, two).await.unwrap();
    assert!(
        again.iter().all(FeedRecord::is_ready),
        "nothing has changed"
    );
    // Who did not see the red ones must not learn of them.
    let others = vec![wanted(filter("blue"), "bob carol")];
    let other = rig.set_parts(feed, others).await.unwrap()[0].no;
    settle(&rig, other, 9).await;
    assert!(other != red && rig.feed(red).await.is_err());
    assert_eq!(titles(&rig, other).await, ["blue", "red blue"]);
    assert!(rig.set_parts(feed, Vec::new()).await.unwrap().is_empty());
    assert!(rig.feed(other).await.is_err());
    assert_eq!(rig.feeds(None, 9).await.unwrap().len(), 1);
}

async fn a_part_is_served_when_its_feed_is(rig: Rig) {
    let feed = rig.blog().await;
    let parts = rig
        .set_parts(feed, vec![wanted(filter("red"), "bob")])
        .await
        .unwrap();
    let part = settle(&rig, parts[0].no, 9).await;
    assert!(!part.is_ready());
    let receipt = rig
        .change(feed, vec![put(PutKind::Added, 1, "red")])
        .await
        .unwrap();
    assert!(receipt.feed.is_ready() && receipt.groups[0].is_ready());
    let record = rig.feed(feed).await.unwrap();
    let metadata = Metadata {
        language: Some("de".into()),
        ..Metadata::default()
    };
    let titled = Commit {
        metadata: Some(Arc::new(metadata)),
        ..commit(&record, Vec::new())
    };
    let receipt = rig.commit(titled).await.unwrap();
    assert_eq!(receipt.groups[0].metadata, receipt.feed.metadata);
}

async fn a_cursor_of_another_feed_begins_anew_in_a_part_and_back(rig: Rig) {
    let feed = rig.blog().await;
    rig.change(
        feed,
        (1..=3)
            .map(|n| put(PutKind::Added, n, "red blue"))
            .collect(),
    )
    .await
    .unwrap();
    let two = vec![wanted(filter("red"), "bob"), wanted(filter("blue"), "eve")];
    let parts = rig.set_parts(feed, two).await.unwrap();
    for part in &parts {
        settle(&rig, part.no, 9).await;
    }
    // One commit gives one T in all of them.
    rig.change(feed, vec![put(PutKind::Added, 4, "red blue")])
        .await
        .unwrap();
    let feeds = [feed, parts[0].no, parts[1].no];
    for order in [Order::MODIFIED, Order::CREATED] {
        for of in feeds {
            let cursor = rig.list(of, order, None).await.last_cursor;
            for read in feeds {
                let page = rig.list(read, order, Some(&cursor)).await;
                let is_own = read == of;
                let expect = if is_own {
                    (0, None)
                } else {
                    (4, Some(Degraded::Reset))
                };
                assert_eq!(
                    (page.items.len(), page.degraded),
                    expect,
                    "{cursor} {of} {read}"
                );
            }
        }
    }
    // One of its own whose item has moved on is none of another.
    let cursor = rig
        .list(parts[0].no, Order::MODIFIED, None)
        .await
        .last_cursor;
    rig.change(feed, vec![edit(4, "red"), edit(1, "red")])
        .await
        .unwrap();
    let page = rig.list(parts[0].no, Order::MODIFIED, Some(&cursor)).await;
    assert_eq!(
        (page.items.len(), page.degraded),
        (2, Some(Degraded::Moved))
    );
}

fn forget(n: u32) -> Change {
    let Change::Delete(delete) = delete(n) else {
        unreachable!()
    };
    Change::Delete(Delete {
        reason: Reason::Forgotten,
        ..delete
    })
}

async fn what_is_forgotten_goes_from_parts_too(rig: Rig) {
    let feed = rig.blog().await;
    rig.change(
        feed,
        (1..=3).map(|n| put(PutKind::Added, n, "red")).collect(),
    )
    .await
    .unwrap();
    let part = part(&rig, feed, "red").await;
    rig.change(feed, vec![edit(2, "blue"), delete(3)])
        .await
        .unwrap();
    rig.change(feed, (1..=3).map(forget).collect())
        .await
        .unwrap();
    for n in 1..=3 {
        let item = rig.item(part, id(n)).await.unwrap().unwrap();
        assert!(item.content.is_forgotten(), "{n}");
        let is_told = item
            .publisher_id
            .as_ref()
            .is_some_and(|id| id.text.is_some() || id.source.is_some());
        assert!(item.iri.starts_with("urn:uuid:") && !is_told, "{n}");
    }
    assert!(rig.feed(part).await.unwrap().completeness.has_forgotten);
}

async fn a_quota_holds_for_parts_too(rig: Rig) {
    let feed = rig.blog().await;
    rig.change(feed, vec![put(PutKind::Added, 1, "red")])
        .await
        .unwrap();
    let part = part(&rig, feed, "red").await;
    let record = rig.feed(feed).await.unwrap();
    let mut too_much = commit(&record, vec![put(PutKind::Added, 2, "red")]);
    too_much.basis.limits.quota_bytes = Some(1);
    assert!(rig.commit(too_much).await.is_err());
    assert_eq!(titles(&rig, part).await, ["red"]);
    let record = rig.feed(part).await.unwrap();
    let bytes = record.items.bytes.unwrap();
    assert!(bytes > 0 && bytes <= rig.feed(feed).await.unwrap().items.bytes.unwrap());
}

async fn the_namespace_that_a_feed_takes_is_that_of_its_parts(rig: Rig) {
    let feed = rig.register("blog", "wrong").await.unwrap().no;
    let part = rig
        .set_parts(feed, vec![wanted(filter("red"), "bob")])
        .await
        .unwrap()[0]
        .no;
    rig.register("blog", NAMESPACE).await.unwrap();
    assert_eq!(rig.feed(part).await.unwrap().ids.namespace, NAMESPACE);
    assert_eq!(
        rig.feed(part).await.unwrap().iri(),
        rig.feed(feed).await.unwrap().iri()
    );
}

/// A change of the world of a feed with parts.
#[derive(Clone, Debug)]
enum Step {
    /// An entry is as these words say, whatever it was.
    Say(u32, usize),
    Delete(u32),
    Forget(u32),
    /// The feed names another author and language.
    Feed(usize),
    /// Its parts have these filters.
    Parts(Vec<usize>),
    Clock(u64),
    Reopen,
}

/// Posts of the world.
const POSTS: u32 = 6;
const WORDS: [&str; 4] = ["red", "blue", "red blue", "green"];

fn filters() -> Vec<Filter> {
    let of = |given: &[(&str, &str)]| Filter::of(given).unwrap();
    vec![
        filter("red"),
        filter("blue"),
        of(&[("author", "ann")]),
        of(&[("lang", "de")]),
        of(&[("deleted", "only")]),
        of(&[("deleted", "no")]),
        of(&[("q", "red"), ("author", "bo")]),
    ]
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        6 => (0..POSTS, 0..WORDS.len()).prop_map(|(n, words)| Step::Say(n, words)),
        3 => (0..POSTS).prop_map(Step::Delete),
        1 => (0..POSTS).prop_map(Step::Forget),
        2 => (0..4_usize).prop_map(Step::Feed),
        2 => vec(0..filters().len(), 0..3).prop_map(Step::Parts),
        1 => (0..3_u64).prop_map(Step::Clock),
        1 => Just(Step::Reopen),
    ];
    vec(step, 1..25)
}

/// A reader that follows one feed, as the protocol says.
#[derive(Default)]
struct Mirror {
    cursor: String,
    items: BTreeMap<ItemId, Arc<Item>>,
}

impl Mirror {
    async fn follow(&mut self, rig: &Rig, feed: FeedNo) {
        loop {
            let query = PageQuery {
                since: Some(Position::of_cursor(&self.cursor)),
                max: 2,
                ..all(feed, Order::MODIFIED)
            };
            let page = rig.page(query).await.unwrap();
            if page.degraded == Some(Degraded::Reset) {
                self.items.clear();
            }
            for item in &page.items {
                self.items.insert(item.id, Arc::clone(item));
            }
            self.cursor.clone_from(&page.last_cursor);
            if !page.more {
                return;
            }
        }
    }

    fn live(&self) -> BTreeMap<ItemId, Facts> {
        let live = self.items.values().filter(|item| !item.is_gone());
        live.map(|item| (item.id, facts(item))).collect()
    }
}

/// The facts of an item that a part shows as its feed does.
type Facts = (String, Content, Option<i64>, String);

fn facts(item: &Item) -> Facts {
    let id = format!("{:?}", item.publisher_id);
    (
        item.iri.clone(),
        item.content.clone(),
        item.published_us,
        id,
    )
}

/// A feed with parts, and one mirror a filter, whose reader has that part whatever its number is.
struct PartWorld {
    rig: Rig,
    feed: FeedNo,
    filters: Vec<usize>,
    parts: Vec<FeedNo>,
    mirrors: BTreeMap<usize, Mirror>,
}

impl PartWorld {
    async fn take(&mut self, step: &Step) {
        let rig = &self.rig;
        match step {
            Step::Say(n, words) => {
                let kind = match rig.item(self.feed, id(*n)).await.unwrap() {
                    None => PutKind::Added,
                    Some(item) if item.content.is_forgotten() => return,
                    Some(item) if item.is_gone() => PutKind::Revived,
                    Some(_) => PutKind::Edited,
                };
                rig.change(self.feed, vec![said(kind, *n, WORDS[*words])])
                    .await
                    .unwrap();
            }
            Step::Delete(n) | Step::Forget(n) => {
                let held = rig.item(self.feed, id(*n)).await.unwrap();
                let change = if matches!(step, Step::Forget(_)) {
                    forget(*n)
                } else {
                    delete(*n)
                };
                let is_forgetting = matches!(step, Step::Forget(_));
                let fits = held.is_some_and(|item| {
                    !item.is_gone() || is_forgetting && !item.content.is_forgotten()
                });
                if fits {
                    rig.change(self.feed, vec![change]).await.unwrap();
                }
            }
            Step::Feed(n) => {
                let record = rig.feed(self.feed).await.unwrap();
                let author = Person {
                    name: Some(["Ann", "Bo"][n % 2].into()),
                    ..Person::default()
                };
                let metadata = Metadata {
                    authors: vec![author],
                    language: (*n > 1).then(|| "de".into()),
                    ..Metadata::default()
                };
                let named = Commit {
                    metadata: Some(Arc::new(metadata)),
                    ..commit(&record, Vec::new())
                };
                rig.commit(named).await.unwrap();
            }
            Step::Parts(filters) => {
                let mut filters = filters.clone();
                filters.dedup();
                let known = self::filters();
                let wanted = filters
                    .iter()
                    .zip(["bob", "eve", "carol"])
                    .map(|(at, audience)| wanted(known[*at].clone(), audience));
                let mut distinct: Vec<WantedPart> = wanted.collect();
                if distinct.len() == 3 && filters[0] == filters[2] {
                    distinct.pop();
                    filters.pop();
                }
                let parts = rig.set_parts(self.feed, distinct).await.unwrap();
                self.parts = parts.iter().map(|part| part.no).collect();
                self.filters = filters;
            }
            Step::Clock(secs) => rig.clock.set(rig.clock.now_us() + secs * 1_000_000),
            Step::Reopen => {}
        }
    }

    async fn check(&mut self) {
        let record = self.rig.feed(self.feed).await.unwrap();
        let page = self.rig.list(self.feed, Order::MODIFIED, None).await;
        let known = filters();
        for (at, part) in self.filters.iter().zip(&self.parts) {
            let part = settle(&self.rig, *part, 2).await;
            assert_eq!(part.is_ready(), record.is_ready());
            let filter = &known[*at];
            let shown = page.items.iter().filter(|item| filter.shows(item, &record));
            let (gone, live): (Vec<_>, Vec<_>) = shown.partition(|item| item.is_gone());
            let expect: BTreeMap<ItemId, Facts> =
                live.iter().map(|item| (item.id, facts(item))).collect();
            let mirror = self.mirrors.entry(*at).or_default();
            mirror.follow(&self.rig, part.no).await;
            assert_eq!(mirror.live(), expect, "{filter:?}");
            for item in gone {
                assert_eq!(facts(&mirror.items[&item.id]), facts(item), "{filter:?}");
            }
            let anew = self.rig.list(part.no, Order::MODIFIED, None).await;
            let live = anew.items.iter().filter(|item| !item.is_gone());
            assert_eq!(live.count() as u64, part.items.live);
            assert_eq!(anew.items.len() as u64, part.items.total);
        }
    }
}

fn said(kind: PutKind, n: u32, words: &str) -> Change {
    let Change::Put(before) = put(kind, n, words) else {
        unreachable!()
    };
    let author = Person {
        name: Some("Bo".into()),
        ..Person::default()
    };
    let entry = Entry {
        authors: if n.is_multiple_of(3) {
            vec![author]
        } else {
            Vec::new()
        },
        ..Entry::clone(&before.entry)
    };
    Change::Put(Put {
        entry: Arc::new(entry),
        ..before
    })
}

async fn mirrored(rig: Rig, steps: &[Step]) {
    let feed = rig.blog().await;
    let mut world = PartWorld {
        rig,
        feed,
        filters: Vec::new(),
        parts: Vec::new(),
        mirrors: BTreeMap::new(),
    };
    world.take(&Step::Feed(0)).await;
    world.take(&Step::Parts(vec![0, 2])).await;
    for step in steps {
        world.take(step).await;
        if matches!(step, Step::Reopen) {
            world.rig = world.rig.reopen();
        }
        world.check().await;
    }
    assert_sound(&world.rig).await;
}

/// Nothing in the file of a store disagrees with anything else.
async fn assert_sound(rig: &Rig) {
    let Some(path) = rig.path() else { return };
    let copy = path.with_extension("copy");
    rig.back_up(&copy).await.unwrap();
    let report = verify(&copy).unwrap();
    assert!(report.is_sound(), "{report}");
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, ..ProptestConfig::default() })]

    #[test]
    fn a_mirror_of_a_part_equals_the_filter_of_its_feed_after_every_change(steps in steps()) {
        let runtime = Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(mirrored(Rig::memory(), &steps));
        runtime.block_on(mirrored(Rig::redb(), &steps));
    }
}
