//! Groups: what becomes of them whatever their members do, and whenever members come and go. Rows
//! SF-96 and those of issue 13.

use super::rig::{Rig, START, all, commit, ids, title};
use crate::{
    clock::Clock as _,
    feed::{
        group::{GroupRecord, Holder, post_key},
        item::{Item, ItemDigests, ItemId, KeyHash, Reason},
        order::Order,
        page::PageQuery,
        position::Position,
        reconcile::{Change, Delete, Evidence, Put, PutKind},
        record::FeedNo,
    },
    store::{GROUP_BATCH_ITEMS, GroupStep, Receipt, Store, WantedGroup, redb::verify},
};
use everfeed_adapters::{Digest, Entry, Key, Link, Metadata, Person, Source, Text};
use proptest::{collection::vec, prelude::*, sample::subsequence};
use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};
use tokio::runtime::Builder;

/// Feeds that are members now and then.
const MEMBERS: usize = 3;

fn namespace(member: usize) -> String {
    format!("m{member}.example/feed")
}

fn guid(n: u32) -> String {
    format!("post {n}")
}

fn id(member: usize, n: u32) -> ItemId {
    KeyHash::of(&namespace(member), &Key::Id(guid(n)).stripped()).item_id()
}

/// An entry as a member shows it.
#[derive(Clone, Copy, Debug, Default)]
struct Shown {
    /// Its link, of a few; 0: none.
    link: u32,
    /// Its text.
    text: u32,
}

fn entry(n: u32, Shown { link, text }: Shown) -> Entry {
    let href = format!("http://example.org/{n}/{link}");
    let links = (link > 0).then(|| Link {
        href,
        rel: "alternate".into(),
        ..Link::default()
    });
    Entry {
        id: Some(guid(n)),
        title: Some(Text::plain(format!("{n} {text}"))),
        links: links.into_iter().collect(),
        ..Entry::default()
    }
}

fn put(kind: PutKind, member: usize, n: u32, shown: Shown) -> Change {
    let namespace = namespace(member);
    let key = Key::Id(guid(n));
    let digest = Digest::of(format!("{n} {shown:?}").as_bytes());
    Change::Put(Put {
        kind,
        id: id(member, n),
        iri: crate::feed::item::iri(&namespace, &key),
        keys: vec![KeyHash::of(&namespace, &key.stripped())],
        entry: Arc::new(entry(n, shown)),
        published_us: Some(1_000_000_000_000_000 + i64::from(n)),
        digests: ItemDigests {
            raw: digest,
            content: digest,
            version: 1,
        },
        witnesses: Vec::new(),
    })
}

fn delete(member: usize, n: u32, reason: Reason) -> Change {
    let evidence = Evidence {
        reason,
        observed_at: START,
        when: None,
        comment: None,
        suspect: None,
        archive_suspect: None,
    };
    Change::Delete(Delete {
        id: id(member, n),
        reason,
        first_missing: None,
        last_seen: Some(START),
        evidence,
    })
}

/// Some feeds, and a group that is to hold them.
struct World {
    rig: Rig,
    members: Vec<FeedNo>,
    group: FeedNo,
}

impl World {
    async fn new(rig: Rig) -> Self {
        let mut members = Vec::new();
        for member in 0..MEMBERS {
            members.push(
                rig.register(&format!("m{member}"), &namespace(member))
                    .await
                    .unwrap()
                    .no,
            );
        }
        let group = rig.register("planet", "group:planet").await.unwrap().no;
        Self {
            rig,
            members,
            group,
        }
    }

    /// The group with these members.
    fn wanted(&self, members: &[usize]) -> WantedGroup {
        let metadata = Metadata {
            title: Some(Text::plain("Planet")),
            ..Metadata::default()
        };
        let url = |member: &usize| {
            (
                self.members[*member],
                format!("http://f.example/feeds/m{member}.atom"),
            )
        };
        WantedGroup {
            metadata: Arc::new(metadata),
            members: members.iter().map(url).collect(),
        }
    }

    async fn set(&self, members: &[usize]) -> GroupStep {
        self.rig
            .set_group(self.group, self.wanted(members))
            .await
            .unwrap()
    }

    async fn settle(&self, items_max: usize) -> GroupStep {
        loop {
            let step = self.rig.advance_group(self.group, items_max).await.unwrap();
            if step.is_settled {
                return step;
            }
        }
    }

    /// A group that these are members of already.
    async fn settled(rig: Rig, members: &[usize]) -> Self {
        let world = Self::new(rig).await;
        world.set(members).await;
        assert!(world.settle(GROUP_BATCH_ITEMS).await.feed.is_ready());
        world
    }

    async fn change(&self, member: usize, changes: Vec<Change>) -> Receipt {
        self.rig
            .change(self.members[member], changes)
            .await
            .unwrap()
    }

    async fn add(&self, member: usize, n: u32, shown: Shown) -> Receipt {
        self.change(member, vec![put(PutKind::Added, member, n, shown)])
            .await
    }

    /// The group in the order of its changes.
    async fn posts(&self) -> Vec<Arc<Item>> {
        self.rig.list(self.group, Order::MODIFIED, None).await.items
    }

    /// The titles of the living posts, in the order of their changes.
    async fn titles(&self) -> Vec<String> {
        self.posts()
            .await
            .iter()
            .filter_map(|item| title(item).map(str::to_owned))
            .collect()
    }

    async fn post(&self, id: ItemId) -> Arc<Item> {
        self.rig.item(self.group, id).await.unwrap().unwrap()
    }
}

fn source(item: &Item) -> Source {
    item.entry().unwrap().source.as_deref().cloned().unwrap()
}

fn reason(item: &Item) -> Option<Reason> {
    match item.content {
        crate::feed::item::Content::Gone { reason, .. } => Some(reason),
        crate::feed::item::Content::Live(_) => None,
    }
}

const LINKED: Shown = Shown { link: 1, text: 0 };

on_every_store! {
    a_change_of_a_member_is_one_of_the_group_in_the_same_transaction,
    a_post_names_the_feed_that_it_is_from,
    a_tombstone_names_the_feed_that_its_post_was_from,
    a_post_that_two_members_have_shows_once_until_both_have_deleted_it,
    a_post_shows_as_the_member_has_it_that_is_known_longest,
    a_campaign_in_a_link_makes_no_other_post,
    posts_with_one_id_and_two_links_are_two,
    a_post_that_moves_to_another_member_is_the_same,
    a_member_that_joins_brings_what_it_has_oldest_first_in_batches,
    a_member_that_leaves_takes_what_is_only_its_own,
    whoever_comes_goes_in_before_whoever_leaves_goes_out,
    what_changes_between_two_batches_is_not_lost,
    a_feed_that_is_forgotten_goes_from_its_groups_at_once,
    a_post_removed_for_good_stays_away_and_its_copy_goes,
    a_group_that_is_forgotten_leaves_nothing_behind,
}

async fn a_change_of_a_member_is_one_of_the_group_in_the_same_transaction(rig: Rig) {
    let world = World::settled(rig, &[0, 1]).await;
    let group_of = |receipt: &Receipt| {
        receipt
            .groups
            .iter()
            .map(|group| group.no)
            .collect::<Vec<_>>()
    };
    let added = world.add(0, 1, LINKED).await;
    assert_eq!(
        (group_of(&added), world.titles().await),
        (vec![world.group], vec!["1 0".to_owned()])
    );
    let first = world.post(id(0, 1)).await;
    let edited = put(PutKind::Edited, 0, 1, Shown { text: 9, ..LINKED });
    world.change(0, vec![edited]).await;
    let second = world.post(id(0, 1)).await;
    assert_eq!(
        (title(&second), second.created),
        (Some("1 9"), first.created)
    );
    assert!(second.modified > first.modified);
    world.change(0, vec![delete(0, 1, Reason::Gone)]).await;
    let third = world.post(id(0, 1)).await;
    assert_eq!(
        (reason(&third), third.tombstone_count),
        (Some(Reason::Gone), 1)
    );
    assert_eq!(
        world
            .rig
            .evidence(world.group, third.id)
            .await
            .unwrap()
            .len(),
        1
    );
    let revived = world
        .change(0, vec![put(PutKind::Revived, 0, 1, LINKED)])
        .await;
    assert_eq!(
        world.post(id(0, 1)).await.revived,
        Some(revived.groups[0].last_t)
    );
    assert_eq!(
        (revived.groups[0].items.total, revived.groups[0].items.live),
        (1, 1)
    );
    // Of a feed that is no member, and of a commit that changes nothing, the group hears nothing.
    assert!(group_of(&world.add(2, 1, LINKED).await).is_empty());
    assert!(group_of(&world.change(0, Vec::new()).await).is_empty());
}

async fn a_post_names_the_feed_that_it_is_from(rig: Rig) {
    // RFC 4287 section 4.2.11.
    let world = World::settled(rig, &[0]).await;
    let site = Link {
        href: "http://m0.example/".into(),
        rel: "alternate".into(),
        ..Link::default()
    };
    let secret = Link {
        href: "http://u:p@10.0.0.1/feed".into(),
        rel: "self".into(),
        ..Link::default()
    };
    let metadata = Metadata {
        title: Some(Text::plain("Blog")),
        links: vec![secret, site.clone()],
        language: Some("de".into()),
        authors: vec![person("Ann")],
        ..Metadata::default()
    };
    let record = world.rig.feed(world.members[0]).await.unwrap();
    let own = Source {
        title: Some(Text::plain("Elsewhere")),
        ..Source::default()
    };
    let signed = Source {
        authors: vec![person("Bo")],
        ..own.clone()
    };
    let carried = |number, source: &Source| {
        let Change::Put(put) = put(PutKind::Added, 0, number, LINKED) else {
            unreachable!()
        };
        let entry = Entry {
            source: Some(Box::new(source.clone())),
            ..Entry::clone(&put.entry)
        };
        Change::Put(Put {
            entry: Arc::new(entry),
            ..put
        })
    };
    let changes = vec![
        put(PutKind::Added, 0, 1, LINKED),
        carried(2, &own),
        carried(3, &signed),
    ];
    let added = crate::store::Commit {
        metadata: Some(Arc::new(metadata)),
        ..commit(&record, changes)
    };
    let member = world.rig.commit(added).await.unwrap().feed;
    let post = world.post(id(0, 1)).await;
    let found = source(&post);
    assert_eq!(found.title, Some(Text::plain("Blog")));
    assert_eq!(found.id, Some(member.iri()));
    let links: Vec<&str> = found.links.iter().map(|link| link.href.as_str()).collect();
    assert_eq!(
        links,
        ["http://f.example/feeds/m0.atom", "http://m0.example/"]
    );
    assert!(found.updated.is_some_and(|date| date.at_us.is_some()));
    assert_eq!(post.entry().unwrap().language.as_deref(), Some("de"));
    assert_eq!(
        (found.authors, post.entry().unwrap().authors.len()),
        (vec![person("Ann")], 0)
    );
    // RFC 4287 section 4.2.1: who wrote a post that names nobody is said by its source, else by the
    // feed that it stood in.
    let carried = world.post(id(0, 2)).await;
    assert_eq!(source(&carried), own, "a source of its own stays");
    assert_eq!(carried.entry().unwrap().authors, [person("Ann")]);
    let signed_post = world.post(id(0, 3)).await;
    assert_eq!(
        (
            source(&signed_post),
            signed_post.entry().unwrap().authors.len()
        ),
        (signed, 0)
    );
}

async fn a_tombstone_names_the_feed_that_its_post_was_from(rig: Rig) {
    let world = World::settled(rig, &[0, 1]).await;
    world.add(0, 1, LINKED).await;
    world.add(1, 2, LINKED).await;
    let told = |item: &Item| {
        let source = item
            .ended_source()
            .cloned()
            .expect("a tombstone names its source");
        (
            source.id,
            source.links.first().map(|link| link.href.clone()),
        )
    };
    let own = source(&*world.post(id(0, 1)).await);
    world.change(0, vec![delete(0, 1, Reason::Gone)]).await;
    let gone = world.post(id(0, 1)).await;
    assert_eq!(
        told(&gone),
        (own.id, Some("http://f.example/feeds/m0.atom".to_owned()))
    );
    assert_eq!(
        world
            .rig
            .item(world.members[0], id(0, 1))
            .await
            .unwrap()
            .unwrap()
            .ended_source(),
        None
    );
    // One that leaves with its member, too.
    world.set(&[0]).await;
    world.settle(GROUP_BATCH_ITEMS).await;
    let left = world.post(id(1, 2)).await;
    assert_eq!(reason(&left), Some(Reason::LeftGroup));
    assert_eq!(
        told(&left).1,
        Some("http://f.example/feeds/m1.atom".to_owned())
    );
    // And so does one that left a view, whose item lives on.
    let stub = crate::feed::filter::left_view(&left);
    assert_eq!(stub.ended_source(), left.ended_source());
    world
        .change(0, vec![put(PutKind::Revived, 0, 1, LINKED)])
        .await;
    assert_eq!(
        world.post(id(0, 1)).await.ended_source(),
        None,
        "a living post has it in its entry"
    );
    world.change(0, vec![delete(0, 1, Reason::Forgotten)]).await;
    assert_eq!(
        world.post(id(0, 1)).await.ended_source(),
        None,
        "of what was removed for good nothing is told"
    );
}

fn person(name: &str) -> Person {
    Person {
        name: Some(name.into()),
        ..Person::default()
    }
}

async fn a_post_that_two_members_have_shows_once_until_both_have_deleted_it(rig: Rig) {
    let world = World::settled(rig, &[0, 1]).await;
    world.add(0, 1, LINKED).await;
    let same = world.add(1, 1, Shown { text: 5, ..LINKED }).await;
    assert!(same.groups.is_empty(), "what is shown has not changed");
    assert_eq!(world.titles().await, ["1 0"]);
    let holders = world.rig.holders(world.group, id(0, 1)).await.unwrap();
    let holder = |member: usize| Holder {
        feed: world.members[member],
        item: id(member, 1),
    };
    assert_eq!(holders, [holder(0), holder(1)]);
    world.change(0, vec![delete(0, 1, Reason::Gone)]).await;
    let post = world.post(id(0, 1)).await;
    assert_eq!(
        (title(&post), source(&post).id),
        (
            Some("1 5"),
            Some(world.rig.feed(world.members[1]).await.unwrap().iri())
        )
    );
    // It comes back to the one, and goes from the other: it stays.
    world
        .change(
            0,
            vec![put(PutKind::Revived, 0, 1, Shown { text: 7, ..LINKED })],
        )
        .await;
    world.change(1, vec![delete(1, 1, Reason::Gone)]).await;
    assert_eq!(world.titles().await, ["1 7"]);
    world.change(0, vec![delete(0, 1, Reason::Explicit)]).await;
    assert_eq!(reason(&*world.post(id(0, 1)).await), Some(Reason::Explicit));
    assert_eq!(world.rig.feed(world.group).await.unwrap().items.total, 1);
}

async fn a_post_shows_as_the_member_has_it_that_is_known_longest(rig: Rig) {
    let world = World::settled(rig, &[0, 1]).await;
    world.add(1, 1, Shown { text: 5, ..LINKED }).await;
    let newcomer = world.add(0, 1, LINKED).await;
    assert!(!newcomer.groups.is_empty());
    assert_eq!(world.titles().await, ["1 0"]);
    let post = world.post(id(1, 1)).await;
    assert_eq!(
        source(&post).id,
        Some(world.rig.feed(world.members[0]).await.unwrap().iri())
    );
    // An edit counts where the post is shown from.
    world
        .change(
            1,
            vec![put(PutKind::Edited, 1, 1, Shown { text: 6, ..LINKED })],
        )
        .await;
    assert_eq!(world.titles().await, ["1 0"]);
    world
        .change(
            0,
            vec![put(PutKind::Edited, 0, 1, Shown { text: 7, ..LINKED })],
        )
        .await;
    assert_eq!(world.titles().await, ["1 7"]);
}

async fn a_campaign_in_a_link_makes_no_other_post(rig: Rig) {
    let world = World::settled(rig, &[0, 1]).await;
    world.add(0, 1, LINKED).await;
    let Change::Put(same) = put(PutKind::Added, 1, 1, LINKED) else {
        unreachable!()
    };
    let mut entry = Entry::clone(&same.entry);
    entry.links[0].href.push_str("?utm_source=planet");
    world
        .change(
            1,
            vec![Change::Put(Put {
                entry: Arc::new(entry),
                ..same
            })],
        )
        .await;
    assert_eq!(world.titles().await, ["1 0"]);
    assert_eq!(
        world
            .rig
            .holders(world.group, id(0, 1))
            .await
            .unwrap()
            .len(),
        2
    );
}

async fn a_post_that_moves_to_another_member_is_the_same(rig: Rig) {
    let world = World::settled(rig, &[0, 1]).await;
    world.add(0, 1, LINKED).await;
    let first = world.post(id(0, 1)).await;
    world.change(0, vec![delete(0, 1, Reason::Gone)]).await;
    assert!(world.titles().await.is_empty());
    world.add(1, 1, LINKED).await;
    let moved = world.post(id(0, 1)).await;
    assert_eq!(
        (title(&moved), &moved.iri, moved.created),
        (Some("1 0"), &first.iri, first.created)
    );
    assert_eq!(world.titles().await.len(), 1);
    // Back in the first, too, it is still one; under another link it is another.
    world
        .change(0, vec![put(PutKind::Revived, 0, 1, LINKED)])
        .await;
    assert_eq!(world.titles().await, ["1 0"]);
    world.change(1, vec![delete(1, 1, Reason::Gone)]).await;
    assert_eq!(world.titles().await, ["1 0"]);
    world.change(0, vec![delete(0, 1, Reason::Gone)]).await;
    world
        .change(
            0,
            vec![put(PutKind::Revived, 0, 1, Shown { link: 7, text: 7 })],
        )
        .await;
    world
        .change(1, vec![put(PutKind::Revived, 1, 1, LINKED)])
        .await;
    let titles: BTreeSet<_> = world.titles().await.into_iter().collect();
    assert_eq!(titles, BTreeSet::from(["1 7".to_owned(), "1 0".to_owned()]));
}

async fn posts_with_one_id_and_two_links_are_two(rig: Rig) {
    let world = World::settled(rig, &[0, 1]).await;
    world.add(0, 1, Shown { link: 1, text: 1 }).await;
    world.add(1, 1, Shown { link: 2, text: 2 }).await;
    assert_eq!(world.titles().await, ["1 1", "1 2"]);
    // Whoever tells them by their ids sees two, and a tombstone names the one that it is of.
    let iris =
        [world.post(id(0, 1)).await, world.post(id(1, 1)).await].map(|post| post.iri.clone());
    assert_eq!(
        iris[0],
        world
            .rig
            .item(world.members[0], id(0, 1))
            .await
            .unwrap()
            .unwrap()
            .iri
    );
    assert!(
        iris[1] != iris[0] && iris[1].starts_with("urn:uuid:"),
        "{iris:?}"
    );
    assert_eq!(world.post(id(1, 1)).await.given_id(), iris[1]);
    world
        .change(
            0,
            vec![put(PutKind::Edited, 0, 1, Shown { link: 1, text: 4 })],
        )
        .await;
    world
        .change(
            1,
            vec![put(PutKind::Edited, 1, 1, Shown { link: 2, text: 2 })],
        )
        .await;
    let again =
        [world.post(id(0, 1)).await, world.post(id(1, 1)).await].map(|post| post.iri.clone());
    assert_eq!(again, iris, "they keep them");
    world
        .change(
            0,
            vec![put(PutKind::Edited, 0, 1, Shown { link: 1, text: 1 })],
        )
        .await;
    // Links that become the same make one post of them, and links that part two.
    world
        .change(
            1,
            vec![put(PutKind::Edited, 1, 1, Shown { link: 1, text: 2 })],
        )
        .await;
    assert_eq!(world.titles().await, ["1 1"]);
    assert_eq!(
        reason(&*world.post(id(1, 1)).await),
        Some(Reason::LeftGroup)
    );
    world
        .change(
            0,
            vec![put(PutKind::Edited, 0, 1, Shown { link: 2, text: 3 })],
        )
        .await;
    assert_eq!(
        world.titles().await.into_iter().collect::<BTreeSet<_>>(),
        ["1 2".into(), "1 3".into()].into()
    );
    // Without links nothing tells that posts are the same.
    world.add(0, 2, Shown::default()).await;
    world.add(1, 2, Shown { link: 0, text: 8 }).await;
    assert_eq!(world.titles().await.len(), 4);
}

async fn a_member_that_joins_brings_what_it_has_oldest_first_in_batches(rig: Rig) {
    let world = World::new(rig).await;
    for (member, n) in [(0, 2), (1, 1), (0, 4), (1, 3), (0, 5)] {
        world.add(member, n, LINKED).await;
    }
    world.change(0, vec![delete(0, 4, Reason::Gone)]).await;
    assert!(!world.set(&[0, 1]).await.is_settled);
    let first = world.rig.advance_group(world.group, 2).await.unwrap();
    assert_eq!(
        (
            first.is_settled,
            first.feed.is_ready(),
            world.titles().await.len()
        ),
        (false, false, 2)
    );
    let world = World {
        rig: world.rig.reopen(),
        ..world
    };
    let last = world.settle(2).await;
    assert!(last.feed.is_ready());
    assert_eq!(
        world.titles().await,
        ["1 0", "2 0", "3 0", "5 0"],
        "by date, whoever has it"
    );
    assert_eq!(
        world.rig.feed(world.group).await.unwrap().items.total,
        4,
        "no tombstone of before comes in"
    );
    let again = world.set(&[0, 1]).await;
    assert_eq!(
        (again.is_settled, again.feed.rev),
        (true, last.feed.rev),
        "nothing is to be done"
    );
}

async fn a_member_that_leaves_takes_what_is_only_its_own(rig: Rig) {
    let world = World::settled(rig, &[0, 1]).await;
    for n in 1..=3 {
        world.add(0, n, LINKED).await;
    }
    world.add(1, 2, Shown { text: 6, ..LINKED }).await;
    assert!(!world.set(&[1]).await.is_settled);
    world.settle(1).await;
    assert_eq!(world.titles().await, ["2 6"]);
    for n in [1, 3] {
        let post = world.post(id(0, n)).await;
        assert_eq!(
            (reason(&post), post.entry()),
            (Some(Reason::LeftGroup), None)
        );
    }
    let members = world.rig.group(world.group).await.unwrap().unwrap();
    assert_eq!(
        members
            .members
            .iter()
            .map(|member| member.feed)
            .collect::<Vec<_>>(),
        [world.members[1]]
    );
    assert!(
        world.add(0, 4, LINKED).await.groups.is_empty(),
        "it is no member any more"
    );
    world.set(&[1, 0]).await;
    world.settle(1).await;
    let titles: BTreeSet<String> = world.titles().await.into_iter().collect();
    assert_eq!(
        titles,
        ["1 0", "2 0", "3 0", "4 0"].map(str::to_owned).into()
    );
    assert!(world.post(id(0, 1)).await.revived.is_some());
}

async fn whoever_comes_goes_in_before_whoever_leaves_goes_out(rig: Rig) {
    let world = World::settled(rig, &[0]).await;
    for (member, n) in [(0, 1), (0, 2), (0, 3), (1, 3), (1, 4), (1, 5)] {
        world.add(member, n, LINKED).await;
    }
    world.set(&[1]).await;
    let mut fewest = usize::MAX;
    while !world
        .rig
        .advance_group(world.group, 1)
        .await
        .unwrap()
        .is_settled
    {
        fewest = fewest.min(world.titles().await.len());
        assert_eq!(reason(&*world.post(id(0, 3)).await), None, "both hold it");
    }
    assert_eq!(fewest, 3, "a mirror is never emptied");
    let titles: BTreeSet<String> = world.titles().await.into_iter().collect();
    assert_eq!(titles, ["3 0", "4 0", "5 0"].map(str::to_owned).into());
}

async fn what_changes_between_two_batches_is_not_lost(rig: Rig) {
    let world = World::new(rig).await;
    for n in 1..=4 {
        world.add(0, n, LINKED).await;
    }
    world.set(&[0]).await;
    world.rig.advance_group(world.group, 2).await.unwrap();
    // Before the place that the batches have reached, behind it, and beyond the end.
    world
        .change(
            0,
            vec![delete(0, 1, Reason::Gone), delete(0, 3, Reason::Gone)],
        )
        .await;
    world
        .change(
            0,
            vec![put(PutKind::Edited, 0, 4, Shown { text: 1, ..LINKED })],
        )
        .await;
    world.add(0, 9, LINKED).await;
    world.add(0, 0, LINKED).await;
    world.settle(1).await;
    let titles: BTreeSet<String> = world.titles().await.into_iter().collect();
    assert_eq!(
        titles,
        ["0 0", "2 0", "4 1", "9 0"].map(str::to_owned).into()
    );
    // The same on the way out.
    world.set(&[]).await;
    world.rig.advance_group(world.group, 2).await.unwrap();
    world.change(0, vec![delete(0, 2, Reason::Gone)]).await;
    world.add(0, 7, LINKED).await;
    world.settle(1).await;
    assert!(world.titles().await.is_empty());
}

async fn a_feed_that_is_forgotten_goes_from_its_groups_at_once(rig: Rig) {
    let world = World::settled(rig, &[0, 1]).await;
    world.add(0, 1, LINKED).await;
    world.add(0, 2, LINKED).await;
    world.add(1, 2, Shown { text: 4, ..LINKED }).await;
    assert!(world.rig.forget(world.members[0]).await.unwrap());
    assert_eq!(world.titles().await, ["2 4"]);
    assert!(
        world
            .rig
            .group(world.group)
            .await
            .unwrap()
            .unwrap()
            .is_settled()
    );
    check_file(&world).await;
}

async fn a_post_removed_for_good_stays_away_and_its_copy_goes(rig: Rig) {
    let world = World::settled(rig, &[0]).await;
    for n in 1..=3 {
        world.add(0, n, LINKED).await;
    }
    // Removed from its feed: also from the group, with its evidence, whether it lived or not.
    world.change(0, vec![delete(0, 1, Reason::Gone)]).await;
    world
        .change(
            0,
            vec![
                delete(0, 1, Reason::Forgotten),
                delete(0, 2, Reason::Forgotten),
            ],
        )
        .await;
    for n in [1, 2] {
        assert_eq!(
            reason(&*world.post(id(0, n)).await),
            Some(Reason::Forgotten)
        );
        assert!(
            world
                .rig
                .evidence(world.group, id(0, n))
                .await
                .unwrap()
                .is_empty()
        );
    }
    // Removed from the group alone: its feed goes on, and it does not come back.
    let gone = match delete(0, 3, Reason::Forgotten) {
        Change::Delete(gone) => Change::Delete(Delete {
            id: id(0, 3),
            ..gone
        }),
        Change::Put(_) => unreachable!(),
    };
    world.rig.change(world.group, vec![gone]).await.unwrap();
    world
        .change(
            0,
            vec![put(PutKind::Edited, 0, 3, Shown { text: 1, ..LINKED })],
        )
        .await;
    world.set(&[]).await;
    world.settle(9).await;
    assert_eq!(
        reason(&*world.post(id(0, 3)).await),
        Some(Reason::Forgotten)
    );
    check_file(&world).await;
}

async fn a_group_that_is_forgotten_leaves_nothing_behind(rig: Rig) {
    let world = World::settled(rig, &[0]).await;
    world.add(0, 1, LINKED).await;
    assert!(world.rig.forget(world.group).await.unwrap());
    assert!(world.rig.group(world.group).await.unwrap().is_none());
    assert!(world.add(0, 2, LINKED).await.groups.is_empty());
    assert!(world.rig.advance_group(world.group, 1).await.is_err());
    check_file(&world).await;
}

/// Holds the rows of a file against each other, if the store has one.
async fn check_file(world: &World) {
    let Some(path) = world.rig.path() else { return };
    let copy = path.with_extension("copy");
    world.rig.back_up(&copy).await.unwrap();
    let report = verify(&copy).unwrap();
    assert!(report.is_sound(), "{report}");
    std::fs::remove_file(copy).unwrap();
}

/// Something that happens.
#[derive(Clone, Debug)]
enum Act {
    Write(usize, u32, Shown),
    Remove(usize, u32),
    /// These are the members from now on.
    Members(Vec<usize>),
    /// A batch of so many items.
    Batch(usize),
    /// A mirror reads a page of so many items.
    Read(usize),
    Restart,
}

fn act() -> impl Strategy<Value = Act> {
    let place = || (0..MEMBERS, 0..4_u32);
    let shown = (0..3_u32, 0..3_u32).prop_map(|(link, text)| Shown { link, text });
    let members = subsequence((0..MEMBERS).collect::<Vec<_>>(), 0..=MEMBERS).prop_shuffle();
    prop_oneof![
        8 => (place(), shown).prop_map(|((member, n), shown)| Act::Write(member, n, shown)),
        4 => place().prop_map(|(member, n)| Act::Remove(member, n)),
        2 => members.prop_map(Act::Members),
        4 => (1_usize..4).prop_map(Act::Batch),
        2 => (1_usize..4).prop_map(Act::Read),
        1 => Just(Act::Restart),
    ]
}

/// A copy of the group that follows its cursor.
#[derive(Default)]
struct Mirror {
    cursor: String,
    items: BTreeMap<ItemId, Arc<Item>>,
}

impl Mirror {
    /// Reads a page. True when it was the last.
    async fn read(&mut self, store: &dyn Store, group: FeedNo, max: usize) -> bool {
        let since = Some(Position::of_cursor(&self.cursor));
        let page = store
            .page(PageQuery {
                since,
                max,
                ..all(group, Order::MODIFIED)
            })
            .await
            .unwrap();
        assert!(ids(&page).len() <= max);
        self.cursor.clone_from(&page.last_cursor);
        self.items
            .extend(page.items.iter().map(|item| (item.id, Arc::clone(item))));
        !page.more
    }
}

async fn run(rig: Rig, acts: Vec<Act>) {
    let mut world = World::new(rig).await;
    let mut live: BTreeMap<(usize, u32), bool> = BTreeMap::new();
    let (mut members, mut mirror) = (Vec::new(), Mirror::default());
    for act in acts {
        world.rig.clock.set(world.rig.clock.now_us() + 7);
        match act {
            Act::Write(member, n, shown) => {
                let kind = match live.insert((member, n), true) {
                    None => PutKind::Added,
                    Some(false) => PutKind::Revived,
                    Some(true) => PutKind::Edited,
                };
                world
                    .change(member, vec![put(kind, member, n, shown)])
                    .await;
            }
            Act::Remove(member, n) => {
                if live.get(&(member, n)) == Some(&true) {
                    live.insert((member, n), false);
                    world
                        .change(member, vec![delete(member, n, Reason::Gone)])
                        .await;
                }
            }
            Act::Members(now) => {
                world.set(&now).await;
                members = now;
            }
            Act::Batch(items) => {
                world.rig.advance_group(world.group, items).await.unwrap();
            }
            Act::Read(max) => {
                mirror.read(&*world.rig, world.group, max).await;
            }
            Act::Restart => world.rig = world.rig.reopen(),
        }
    }
    world.set(&members).await;
    world.settle(2).await;
    while !mirror.read(&*world.rig, world.group, 3).await {}
    check(&world, &members, &mirror).await;
    check_file(&world).await;
    // Members that have left for good leave no living post.
    world.set(&[]).await;
    world.settle(3).await;
    assert_eq!(world.rig.feed(world.group).await.unwrap().items.live, 0);
    assert_eq!(
        world.rig.group(world.group).await.unwrap(),
        Some(GroupRecord::default())
    );
    check_file(&world).await;
}

/// The mirror holds every living item of the members, each post once, and nothing else.
async fn check(world: &World, members: &[usize], mirror: &Mirror) {
    let mut expected: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for member in members {
        let listed = world
            .rig
            .list(world.members[*member], Order::MODIFIED, None)
            .await;
        for item in listed.items.iter().filter(|item| !item.is_gone()) {
            let name = post_key(item).map_or_else(|| item.id.to_string(), |key| format!("{key:?}"));
            expected
                .entry(name)
                .or_default()
                .insert(title(item).unwrap().to_owned());
        }
    }
    let live: Vec<&Arc<Item>> = mirror
        .items
        .values()
        .filter(|item| !item.is_gone())
        .collect();
    assert_eq!(live.len(), expected.len(), "{live:?} of {expected:?}");
    let mut met = BTreeSet::new();
    for post in live {
        let holders = world.rig.holders(world.group, post.id).await.unwrap();
        assert!(
            holders.is_sorted_by_key(|holder| holder.feed),
            "{holders:?}"
        );
        let shown = world
            .rig
            .item(holders[0].feed, holders[0].item)
            .await
            .unwrap()
            .unwrap();
        let name = post_key(&shown).map_or_else(|| shown.id.to_string(), |key| format!("{key:?}"));
        assert!(expected[&name].contains(title(post).unwrap()) && title(&shown) == title(post));
        assert!(met.insert(name), "a post shows twice");
        let source = world.rig.feed(holders[0].feed).await.unwrap().iri();
        assert_eq!(
            post.entry().unwrap().source.as_ref().unwrap().id,
            Some(source)
        );
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 96, ..ProptestConfig::default() })]

    #[test]
    fn a_mirror_of_a_group_is_the_union_of_its_members(acts in vec(act(), 1..60)) {
        Builder::new_current_thread().build().unwrap().block_on(run(Rig::memory(), acts));
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, ..ProptestConfig::default() })]

    #[test]
    fn a_mirror_of_a_group_in_a_file_is_the_union_of_its_members(acts in vec(act(), 1..60)) {
        Builder::new_current_thread().build().unwrap().block_on(run(Rig::redb(), acts));
    }
}
