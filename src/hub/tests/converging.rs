//! A subscriber that does nothing but apply its pushes ends with what the feed holds, whatever
//! happens on the way.

use super::rig::{CALLBACK, Call, Reply, Rig};
use crate::{
    feed::{order::Order, page::PageQuery},
    hub::Config,
    layers::FetchError,
};
use rand::{RngExt as _, SeedableRng as _, rngs::StdRng};
use serde_json::Value;
use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex},
};

const TOPIC: &str = "http://feeds.example:8080/feeds/blog.json?order=modified";
/// Things that happen in one life.
const EVENTS: usize = 120;
/// Items that things happen to.
const ITEMS: u32 = 12;

/// The knowledge of a subscriber: of every item its T and whether it is deleted.
#[derive(Default)]
struct Mirror {
    items: BTreeMap<String, (String, bool)>,
    /// Prev and last of the push before.
    before: (String, String),
}

impl Mirror {
    /// Takes a push, which follows on the one before or sends that once more.
    fn take(&mut self, push: &Call) {
        let page: Value = serde_json::from_slice(&push.body).unwrap();
        let text = |value: &Value| value.as_str().unwrap().to_owned();
        let (prev, last) = (text(&page["prev_cursor"]), text(&page["last_cursor"]));
        assert_eq!(
            (prev.as_str(), last.as_str()),
            (push.prev(), push.last()),
            "body and headers agree"
        );
        assert!(
            prev == self.before.1 || prev == self.before.0,
            "{prev} follows on {:?}",
            self.before
        );
        assert!(page.get("next").is_none(), "SF-84");
        let items = page["items"].as_array().unwrap();
        assert!((1..=5).contains(&items.len()), "a push of the named size");
        for item in items {
            let new = (text(&item["updated"]), item["deleted"] == Value::Bool(true));
            let old = self.items.insert(text(&item["id"]), new.clone());
            assert!(
                old.is_none_or(|old| old.0 <= new.0),
                "an item never goes back in time"
            );
        }
        self.before = (prev, last);
    }
}

/// The items of the feed, in the same words.
async fn held(rig: &Rig) -> BTreeMap<String, (String, bool)> {
    let query = PageQuery::all(rig.feed, Order::MODIFIED);
    let page = rig.store.page(query).await.unwrap();
    let row = |item: &Arc<crate::feed::item::Item>| {
        (
            item.id.to_string(),
            (item.modified.rfc3339(), item.is_gone()),
        )
    };
    page.items.iter().map(row).collect()
}

/// A callback that takes most pushes, loses some answers, and is now and then down or slow.
fn moody(mirror: Arc<Mutex<Mirror>>, seed: u64) -> impl FnMut(&Call) -> Reply + Send + 'static {
    let mut chance = StdRng::seed_from_u64(seed);
    move |push| {
        let mood = chance.random_range(0..10);
        if mood < 7 {
            mirror.lock().unwrap().take(push);
        }
        match mood {
            0..4 => Reply::status(204),
            4 => Reply::status(200).after(4),
            5 => Reply::fail(FetchError::Cut(
                crate::layers::error::CutFault::Unanswered,
                "reset".into(),
            )),
            6 => Reply::status(200).after(60),
            7 => Reply::status(500),
            8 => Reply::down().after(2),
            _ => Reply::status(503).with("retry-after", "30"),
        }
    }
}

async fn live(seed: u64) {
    let mut chance = StdRng::seed_from_u64(seed);
    let mirror = Arc::new(Mutex::new(Mirror::default()));
    let mut rig = Rig::with(Config {
        push_items_max: 5,
        ..Config::default()
    })
    .await;
    let form = [
        ("hub.mode", "subscribe"),
        ("hub.topic", TOPIC),
        ("hub.callback", CALLBACK),
    ];
    assert_eq!(rig.ask(&form).await.0, 202);
    rig.wait(1).await;
    rig.net.on_push(moody(mirror.clone(), seed + 1));
    let mut alive: BTreeMap<u32, bool> = BTreeMap::new();
    for event in 0..EVENTS {
        let n = chance.random_range(0..ITEMS);
        match chance.random_range(0..8) {
            0..5 => match alive.get(&n) {
                None => {
                    rig.add(n).await;
                    alive.insert(n, true);
                }
                Some(true) if chance.random_bool(0.3) => {
                    rig.delete(n).await;
                    alive.insert(n, false);
                }
                Some(true) => rig.edit(n, &format!("event {event}")).await,
                Some(false) => {
                    rig.revive(n).await;
                    alive.insert(n, true);
                }
            },
            5 => rig.wait(chance.random_range(0..90)).await,
            6 => rig = rig.killed().await,
            _ => assert_eq!(rig.ask(&form).await.0, 202, "a renewal changes nothing"),
        }
    }
    let settled = mirror.clone();
    rig.net.on_push(move |push| {
        settled.lock().unwrap().take(push);
        Reply::status(204)
    });
    rig.wait(2 * 3600).await;
    let (held, head) = (held(&rig).await, rig.head().await);
    let mirror = mirror.lock().unwrap();
    assert_eq!(
        (&mirror.items, &mirror.before.1),
        (&held, &head),
        "seed {seed}"
    );
    assert_eq!(rig.net.pushes_at_once(), 1, "strictly one push under way");
}

// DESIGN section 1, promise 1; SF-71, SF-93.
#[tokio::test(start_paused = true)]
async fn pushes_alone_make_a_mirror_of_the_feed() {
    for seed in 0..25 {
        live(seed * 1000).await;
    }
}
