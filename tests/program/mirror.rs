//! A mirror that follows `since=last_cursor` over HTTP through hundreds of random changes upstream
//! and several restarts in the middle ends with exactly what the store holds, and with what is
//! true. Real sockets, a real store on disk, real time.
//!
//! Rows: SF-1, SF-4, SF-7, SF-8, SF-12, SF-24, SF-42, SF-90, SF-91, SF-95; point 11 of the minimal
//! list; DESIGN section 1, the promise of convergence, and section 8.

mod old_blog;

use everfeed::app::App;
use http::Method;
use old_blog::{OldBlog, Truth};
use rand::{RngExt as _, SeedableRng as _, rngs::StdRng};
use serde_json::Value;
use std::{
    collections::{BTreeMap, BTreeSet},
    net::SocketAddr,
    time::Duration,
};
use testkit::{client::ask, place::Place, wait::PATIENCE};
use tokio::{
    sync::watch,
    time::{sleep, timeout},
};

/// Changes upstream.
const CHANGES: usize = 200;
/// Between two polls at most so many, so that the window shows each, also when a restart cuts a
/// poll off.
const BATCH_MAX: usize = 12;
/// Before a consumer comes again to a server that was not there.
const RETRY: Duration = Duration::from_millis(20);

/// Items by id, as a consumer holds them.
type Items = BTreeMap<String, Value>;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_mirror_ends_with_the_store_and_the_truth_through_changes_and_restarts() {
    let given = std::env::var("EVERFEED_SEED")
        .ok()
        .and_then(|text| text.parse().ok());
    let seed: u64 = given.unwrap_or_else(rand::random);
    println!("EVERFEED_SEED={seed}");
    let mut chance = StdRng::seed_from_u64(seed);
    let place = Place::unbound();
    let blog = OldBlog::start(seed).await;
    (0..30).for_each(|_| blog.change());

    let mut app = start(&place, &blog).await;
    let address = watch::Sender::new(app.address());
    let (held, mut mirror) = watch::channel(Items::new());
    let following = tokio::spawn(follow(address.subscribe(), held));
    let (mut left, mut restarts) = (CHANGES, 0);
    while left > 0 {
        let batch = chance.random_range(1..=BATCH_MAX.min(left));
        left -= batch;
        // Some batches are made while nobody polls, some while everfeed comes up or goes down.
        let restart =
            chance.random_range(0..4) == 0 || CHANGES - left > (restarts + 1) * CHANGES / 7;
        (0..batch / 2).for_each(|_| blog.change());
        if restart {
            restarts += 1;
            timeout(PATIENCE, app.stop())
                .await
                .expect("a stop is bounded")
                .unwrap();
            (0..batch - batch / 2).for_each(|_| blog.change());
            app = start(&place, &blog).await;
            address.send_replace(app.address());
        } else {
            (0..batch - batch / 2).for_each(|_| blog.change());
        }
        if chance.random_range(0..3) == 0 {
            publish(app.address(), &blog.url()).await;
        }
        timeout(PATIENCE, blog.is_read())
            .await
            .expect("the blog is polled");
    }
    assert!(restarts >= 5, "{restarts} restarts");

    let truth = blog.truth();
    let is_true = timeout(
        PATIENCE,
        mirror.wait_for(|items| differences(items, &truth).is_empty()),
    )
    .await
    .is_ok();
    let mirrored = mirror.borrow().clone();
    assert!(
        is_true,
        "the mirror does not become true: {:?}",
        differences(&mirrored, &truth)
    );
    assert_eq!(
        mirrored,
        walk(app.address()).await,
        "the mirror equals the store"
    );
    assert!(
        truth.values().any(Option::is_none)
            && mirrored.values().any(|item| item["deleted"] == true)
    );
    let stopped = timeout(PATIENCE, app.stop())
        .await
        .expect("a stop is bounded");
    stopped.unwrap();
    following.abort();
    assert!(
        following.await.is_err_and(|ended| ended.is_cancelled()),
        "the mirror met nothing unexpected"
    );
    println!(
        "{CHANGES} changes, {restarts} restarts, {} items",
        mirrored.len()
    );
}

async fn start(place: &Place, blog: &OldBlog) -> App {
    let feed = format!(
        "[[feed]]\nname = \"old\"\nurl = \"{}\"\npoll = {{ min_secs = 1, max_secs = 1 }}\n",
        blog.url()
    );
    crate::start(place, "public_url = \"http://feeds.example\"", &feed).await
}

/// A publisher says that something is new; only a hint, so that losing it loses nothing.
async fn publish(at: SocketAddr, url: &str) {
    let form = format!("hub.mode=publish&hub.url={url}");
    let headers = [("content-type", "application/x-www-form-urlencoded")];
    let answer = ask(at, Method::POST, "/hub", &headers, &form)
        .await
        .unwrap();
    assert!((200..300).contains(&answer.status), "{answer:?}");
}

/// The consumer: long polls from the last cursor, and puts whole objects where their predecessors
/// were.
async fn follow(mut at: watch::Receiver<SocketAddr>, held: watch::Sender<Items>) {
    let mut last = String::new();
    let mut seen = BTreeSet::new();
    loop {
        let address = *at.borrow_and_update();
        let target =
            format!("/feeds/old.json?order=modified&max=20&timeout=30&since=cursor%3A{last}");
        let Some(answer) = ask(address, Method::GET, &target, &[], "").await else {
            sleep(RETRY).await;
            continue;
        };
        if answer.status == 503 {
            assert_eq!(answer.header("retry-after"), "5");
            sleep(RETRY).await;
            continue;
        }
        assert_eq!(answer.status, 200, "{answer:?}");
        assert_ne!(
            answer.header("smart-feed-cursor"),
            "reset",
            "a restart forgets no cursor"
        );
        let page: Value = serde_json::from_slice(&answer.body).unwrap();
        for (id, item) in items(&page) {
            let version = (id.clone(), item["updated"].to_string());
            assert!(seen.insert(version), "{id} came twice in one version");
            held.send_modify(|held| drop(held.insert(id, item)));
        }
        last = page["last_cursor"].as_str().unwrap().to_owned();
    }
}

fn items(page: &Value) -> Vec<(String, Value)> {
    let items = page["items"].as_array().unwrap().iter();
    items
        .map(|item| (item["id"].as_str().unwrap().to_owned(), item.clone()))
        .collect()
}

/// All that the store holds, by following `next`.
async fn walk(at: SocketAddr) -> Items {
    let mut all = Items::new();
    let mut target = "/feeds/old.json?order=created&max=7".to_owned();
    loop {
        let answer = ask(at, Method::GET, &target, &[], "").await.unwrap();
        let page: Value = serde_json::from_slice(&answer.body).unwrap();
        all.extend(items(&page));
        match page["next"].as_str() {
            Some(next) => target = next.trim_start_matches("http://feeds.example").to_owned(),
            None => {
                assert_eq!(page["totalItems"], all.len());
                return all;
            }
        }
    }
}

/// Differences between what is held and the truth: live posts are live with their last title, and
/// deleted ones are not.
fn differences(items: &Items, truth: &Truth) -> Vec<String> {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let live = items.values().filter(|item| item["deleted"] != true);
    let live: BTreeMap<_, _> = live
        .map(|item| {
            (
                text(&item["object"]["id"]),
                text(&item["object"]["displayName"]),
            )
        })
        .collect();
    let wrong = |(id, title): (&String, &Option<String>)| {
        let found = live.get(id);
        (found != title.as_ref()).then(|| format!("{id} is {title:?}, found {found:?}"))
    };
    let unheard = live.keys().filter(|id| !truth.contains_key(*id));
    truth
        .iter()
        .filter_map(wrong)
        .chain(unheard.map(|id| format!("{id} never was")))
        .collect()
}
