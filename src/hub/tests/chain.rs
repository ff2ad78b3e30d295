//! A strict subscriber: it does what the Smart Feeds text says of synchronisation (SF-92, SF-93,
//! SF-94), and ends with what the store holds, on every kind of topic.

use super::rig::{CALLBACK, Call, Reply, Rig};
use crate::{
    feed::{cursor::Toc, filter::Filter, order::Order, view::View},
    hub::Config,
    layers::{FetchError, error::CutFault},
    readers::{ReadRequest, testing},
    render::Representation,
};
use rand::{RngExt as _, SeedableRng as _, rngs::StdRng};
use serde_json::Value;
use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Arc, Mutex},
};

const BASE: &str = "http://feeds.example:8080/feeds/blog";
/// Things that happen in one run.
const EVENTS: usize = 100;
/// Items that things happen to.
const ITEMS: u32 = 10;

/// A kind of topic, and what its subscriber reads to catch up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Modified,
    Created,
    Filtered,
    /// Newest posts, without deletions.
    Classic,
    /// Newest posts, with deletions.
    ClassicTold,
}

impl Kind {
    const ALL: [Self; 5] = [
        Self::Modified,
        Self::Created,
        Self::Filtered,
        Self::Classic,
        Self::ClassicTold,
    ];

    fn topic(self) -> String {
        let end = match self {
            Self::Modified => ".jsonfeed?order=modified",
            Self::Created => ".jsonfeed?order=created",
            Self::Filtered => ".jsonfeed?order=modified&q=even",
            Self::Classic | Self::ClassicTold => "/classic.jsonfeed",
        };
        format!("{BASE}{end}")
    }

    fn view(self, rig: &Rig) -> View {
        let order = match self {
            Self::Created => Order::CREATED,
            _ => Order::MODIFIED,
        };
        let filter = match self {
            Self::Filtered => Filter::of(&[("q", "even")]).unwrap(),
            _ => Filter::All,
        };
        View::all(rig.feed, order).filtered(filter)
    }

    async fn subscribe(self, rig: &Rig) {
        let topic = self.topic();
        let mut form = vec![
            ("hub.mode", "subscribe"),
            ("hub.topic", topic.as_str()),
            ("hub.callback", CALLBACK),
        ];
        if self == Self::ClassicTold {
            form.push(("deletions", "announce"));
        }
        let (status, said) = rig.ask(&form).await;
        assert_eq!(status, 202, "{said}");
        rig.wait(1).await;
    }
}

/// The knowledge of a strict subscriber.
#[derive(Debug, Default)]
struct Strict {
    /// The title of every live item, by the id of its publisher.
    items: BTreeMap<String, String>,
    /// Every id that it was told of, be it alive or not.
    told: BTreeSet<String>,
    /// The cursor L of the newest item that it knows.
    last: String,
    /// Pushes that did not follow on what it knows.
    breaks: usize,
    has_to_pull: bool,
}

fn t(cursor: &str) -> i64 {
    Toc::parse(cursor).map_or(0, |toc| toc.t.micros())
}

impl Strict {
    fn apply(&mut self, page: &Value) {
        for item in page["items"].as_array().unwrap() {
            let (id, title) = (
                item["id"].as_str().unwrap(),
                item["title"].as_str().unwrap(),
            );
            self.items.insert(id.to_owned(), title.to_owned());
            self.told.insert(id.to_owned());
        }
        for gone in page["_everfeed"]["deleted"].as_array().unwrap_or(&vec![]) {
            let id = gone["item_id"].as_str().unwrap();
            self.items.remove(id);
            self.told.insert(id.to_owned());
        }
    }

    /// Takes a push by the rule of the text: what follows on L is applied, an old push is dropped,
    /// all else is a gap.
    fn take(&mut self, push: &Call) {
        let page: Value = serde_json::from_slice(&push.body).unwrap();
        let said = &page["_everfeed"];
        assert_eq!(
            (said["prev_cursor"].as_str(), said["last_cursor"].as_str()),
            (Some(push.prev()), Some(push.last())),
            "body and headers agree"
        );
        if push.prev() == self.last {
            self.apply(&page);
            push.last().clone_into(&mut self.last);
        } else if t(push.last()) > t(&self.last) {
            self.breaks += 1;
            self.has_to_pull = true;
        }
    }

    /// Reads what stands behind L.
    async fn pull(&mut self, rig: &Rig, kind: Kind) {
        loop {
            let since = format!("cursor:{}", self.last);
            let form = Representation::named("jsonfeed").unwrap();
            let reading = ReadRequest::page(kind.view(rig), form, &since, "", 7).unwrap();
            let page = rig.hub.shared.readers.read(&reading).await.unwrap();
            self.apply(&serde_json::from_slice(&page.body).unwrap());
            page.last_cursor.clone_into(&mut self.last);
            if !page.more {
                self.has_to_pull = false;
                return;
            }
        }
    }

    /// Checks that this is what the store holds, as far as the topic tells it.
    async fn check(&self, rig: &Rig, kind: Kind, seed: u64) {
        let mut held = Strict::default();
        held.pull(rig, kind).await;
        match kind {
            // Of what becomes of an item later, this topic says nothing.
            Kind::Created => assert_eq!(self.told, held.told, "{kind:?}, seed {seed}"),
            Kind::Classic => assert!(
                held.items
                    .iter()
                    .all(|(id, title)| self.items.get(id) == Some(title)),
                "{kind:?}, seed {seed}: {:?}, not {:?}",
                self.items,
                held.items
            ),
            _ => assert_eq!(self.items, held.items, "{kind:?}, seed {seed}"),
        }
    }
}

/// A post is of one of two sorts, and an edit may bring it to the other.
fn title(chance: &mut StdRng, event: usize) -> String {
    let sort = if chance.random_bool(0.5) {
        "even"
    } else {
        "odd"
    };
    format!("{sort} {event}")
}

/// A callback that applies most pushes, loses some that it took, and is now and then down or slow.
fn moody(strict: Arc<Mutex<Strict>>, seed: u64) -> impl FnMut(&Call) -> Reply + Send + 'static {
    let mut chance = StdRng::seed_from_u64(seed);
    move |push| match chance.random_range(0..9) {
        // Dropped behind the callback.
        0 => Reply::status(204),
        // Cut before it was read, or down.
        1 => Reply::down().after(2),
        2 => Reply::status(503),
        mood => {
            strict.lock().unwrap().take(push);
            match mood {
                // Taken, and the answer lost: it comes twice.
                3 => Reply::fail(FetchError::Cut(CutFault::Unanswered, "reset".into())),
                4 => Reply::status(200).after(70),
                5 => Reply::status(200).after(3),
                _ => Reply::status(204),
            }
        }
    }
}

async fn run(kind: Kind, seed: u64, is_faulty: bool) {
    let mut chance = StdRng::seed_from_u64(seed);
    let mut rig = Rig::with(Config {
        push_items_max: 4,
        ..Config::default()
    })
    .await;
    kind.subscribe(&rig).await;
    let strict = Arc::new(Mutex::new(Strict::default()));
    let taking = strict.clone();
    if is_faulty {
        rig.net.on_push(moody(taking, seed + 1));
    } else {
        rig.net.on_push(move |push| {
            taking.lock().unwrap().take(push);
            Reply::status(204)
        });
    }
    let mut alive: BTreeMap<u32, bool> = BTreeMap::new();
    for event in 0..EVENTS {
        let mut changes = Vec::new();
        let mut touched = Vec::new();
        for _ in 0..chance.random_range(1..7) {
            let n = chance.random_range(0..ITEMS);
            if touched.contains(&n) {
                continue;
            }
            touched.push(n);
            let title = title(&mut chance, event);
            changes.push(match alive.get(&n) {
                None => testing::add_titled(n, &title),
                Some(true) if chance.random_bool(0.4) => testing::delete(n),
                Some(true) => testing::edit(n, &title),
                Some(false) => testing::revive_titled(n, &title),
            });
            let is_alive = !matches!(
                changes.last(),
                Some(crate::feed::reconcile::Change::Delete(_))
            );
            alive.insert(n, is_alive);
        }
        rig.commit(changes).await;
        if chance.random_bool(0.5) {
            rig.wait(chance.random_range(0..90)).await;
        }
        if is_faulty {
            if chance.random_range(0..8) == 0 {
                rig = rig.killed().await;
            }
            pull_if_needed(&rig, kind, &strict, false).await;
        }
    }
    rig.wait(6 * 3600).await;
    if is_faulty {
        // The periodic pull: what was lost last shows in no later push.
        pull_if_needed(&rig, kind, &strict, true).await;
    } else {
        assert_eq!(strict.lock().unwrap().breaks, 0, "{kind:?}, seed {seed}");
    }
    let known = std::mem::take(&mut *strict.lock().unwrap());
    known.check(&rig, kind, seed).await;
}

async fn pull_if_needed(rig: &Rig, kind: Kind, strict: &Mutex<Strict>, is_due: bool) {
    let mut known = std::mem::take(&mut *strict.lock().unwrap());
    if known.has_to_pull || is_due {
        known.pull(rig, kind).await;
    }
    *strict.lock().unwrap() = known;
}

// SF-75, SF-76, SF-93: nothing but a fault breaks a chain.
#[tokio::test(start_paused = true)]
async fn a_strict_subscriber_sees_no_break_that_nothing_caused() {
    for kind in Kind::ALL {
        for seed in 0..4 {
            run(kind, seed * 100, false).await;
        }
    }
}

// SF-92, SF-93, SF-94, SF-95.
#[tokio::test(start_paused = true)]
async fn a_strict_subscriber_ends_with_what_the_store_holds_whatever_is_lost() {
    for kind in Kind::ALL {
        for seed in 0..4 {
            run(kind, 5_000 + seed * 100, true).await;
        }
    }
}

// SF-92: L is the newest item of the topic, and the first push follows on it. An item that has left the
// view of a filter is one: who holds the item before it has missed that.
#[tokio::test(start_paused = true)]
async fn a_chain_begins_at_the_last_item_that_a_pull_of_its_topic_finds() {
    for kind in [Kind::Modified, Kind::Created, Kind::Filtered] {
        let rig = Rig::new().await;
        rig.commit(vec![
            testing::add_titled(1, "even 1"),
            testing::add_titled(2, "odd 2"),
            testing::add_titled(3, "even 3"),
            testing::add_titled(4, "odd 4"),
        ])
        .await;
        rig.edit(3, "odd 3").await;
        kind.subscribe(&rig).await;
        let question = rig.net.taken().remove(0);
        let view = kind.view(&rig);
        let all = ReadRequest::page(view, Representation::JSON, "", "", 100).unwrap();
        let newest = rig.hub.shared.readers.read(&all).await.unwrap();
        assert!(!newest.more);
        assert_eq!(
            question.param("hub.cursor").as_deref(),
            Some(newest.last_cursor.as_str()),
            "{kind:?}"
        );
        // Nothing that was there before is pushed.
        assert_eq!(rig.net.pushes().len(), 0, "{kind:?}");
        rig.commit(vec![testing::add_titled(5, "even 5")]).await;
        let [push] = &rig.net.pushes()[..] else {
            panic!("{kind:?}: one push")
        };
        assert_eq!(push.prev(), newest.last_cursor, "{kind:?}");
    }
}

// X-5, SF-83: what stands in the body of a Smart Feed stands in the headers, too.
#[tokio::test(start_paused = true)]
async fn deletions_are_told_to_ordinary_readers_only_where_they_ask_for_them() {
    let forms = [
        ("classic.atom", "<at:deleted-entry "),
        ("classic.rss", "<at:deleted-entry "),
        ("classic.jsonfeed", "\"deleted\":[{"),
    ];
    for (form, told) in forms {
        let rig = Rig::new().await;
        rig.add_all(1..=3).await;
        let topic = format!("{BASE}/{form}");
        for (callback, deletions) in [
            ("http://plain.example/", None),
            ("http://told.example/", Some("announce")),
            ("http://spared.example/", Some("omit")),
        ] {
            let mut ask = vec![
                ("hub.mode", "subscribe"),
                ("hub.topic", topic.as_str()),
                ("hub.callback", callback),
            ];
            ask.extend(deletions.map(|wish| ("hub.deletions", wish)));
            assert_eq!(rig.ask(&ask).await.0, 202);
        }
        rig.wait(1).await;
        rig.net.taken();
        rig.delete(2).await;
        let pushes = rig.net.pushes();
        let [push] = &pushes[..] else {
            panic!("{form}: {} pushes", pushes.len())
        };
        assert_eq!(push.url, "http://told.example/", "{form}");
        let body = String::from_utf8(push.body.to_vec()).unwrap();
        assert!(body.contains(told), "{form}: {body}");
        assert!(
            body.contains(push.prev()) && body.contains(push.last()),
            "{body}"
        );
        assert!(!push.prev().is_empty());
        // The chains of the others go on where they were.
        rig.add(4).await;
        for push in rig.net.pushes() {
            let body = String::from_utf8(push.body.to_vec()).unwrap();
            assert!(!body.contains(told), "{form}: {body}");
        }
    }
    let full = format!("{BASE}.json");
    let rig = Rig::new().await;
    rig.add_all(1..=2).await;
    let ask = [
        ("hub.mode", "subscribe"),
        ("hub.topic", full.as_str()),
        ("hub.callback", CALLBACK),
        ("deletions", "omit"),
    ];
    assert_eq!(rig.ask(&ask).await.0, 202);
    rig.wait(1).await;
    rig.net.taken();
    rig.delete(1).await;
    assert_eq!(rig.net.pushes().len(), 0);
    rig.add(3).await;
    let [push] = &rig.net.pushes()[..] else {
        panic!("one push")
    };
    assert_eq!(push.header("smart-feed-total"), "2");
    let (status, said) = rig.ask_to("subscribe", &[("deletions", "maybe")]).await;
    assert_eq!((status, said.contains("announce or omit")), (400, true));
}
