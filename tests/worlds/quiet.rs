//! The checks of a world at rest: every consumer holds what its view holds, and each feed
//! holds what its publisher shows.

use super::{
    everfeed_life::{GROUP, Life, feed_name},
    mirror::{Present, held_form, is_in, present, present_of},
    plan::{Category, HOUR, Shown},
    play::STILL_HOURS_MAX,
    publisher::{PostKey, Publisher, post_of},
    world::World,
};
use everfeed::{
    feed::{absence::recent_tombstone::RecentTombstone, item::Item, stamp::Stamp},
    store::traits::Feeds as _,
};
use futures_util::FutureExt as _;
use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
    time::Duration,
};
use tokio::time::{sleep, timeout};

/// The first difference between a feed and its publisher, or a group and its members.
pub(crate) fn of_feeds(world: &World, life: &Life) -> Option<String> {
    for feed in &world.plan.feeds {
        let why = of_feed(world, life, feed.no).or_else(|| of_part(world, life, feed.no));
        if let Some(why) = why {
            return Some(format!("feed {}: {why}", feed.no));
        }
    }
    if world.plan.has_group {
        return of_group(world, life).map(|why| format!("the group: {why}"));
    }
    None
}

/// The first post that a publisher shows and its feed never held.
pub(crate) fn missing(world: &World, life: &Life) -> Option<String> {
    for feed in &world.plan.feeds {
        let no = feed.no;
        let Some(items) = items(life, &feed_name(no)) else {
            return Some(format!("feed {no} cannot be read"));
        };
        let state = world.state();
        let publisher = state.publishers.get(&no)?;
        let link = |item: &Arc<Item>| match item.entry() {
            Some(entry) => entry.permalink().and_then(post_of),
            None => post_of(&item.iri),
        };
        let held: BTreeSet<PostKey> = items.iter().filter_map(link).collect();
        let has_unknown = items.iter().any(|item| link(item).is_none());
        let lacking = publisher.document(&state.publishers).into_iter();
        let lacking = lacking
            .map(|post| post.key())
            .find(|key| !held.contains(key));
        if let Some(key) = lacking.filter(|_| !has_unknown) {
            return Some(format!("feed {no}: post {key:?} was never taken"));
        }
    }
    None
}

/// The first difference between what a consumer holds and what its view holds.
pub(crate) async fn of_consumers(life: &Life) -> Option<String> {
    for (_, consumer) in life.callback_side().consumers {
        // A consumer that waits holds its place.
        let consumer = timeout(Duration::from_secs(900), consumer.lock()).await;
        let Ok(consumer) = consumer else {
            return Some("a consumer waits for ever".to_owned());
        };
        if let Some(why) = of_consumer(
            life,
            &consumer.feed(),
            &consumer.mirror,
            consumer.plan.filter,
        ) {
            return Some(format!("consumer {}: {why}", consumer.plan.no));
        }
    }
    None
}

/// The last T of each feed, and of the group.
pub(crate) fn heads(world: &World, life: &Life) -> Vec<Option<Stamp>> {
    let feeds = world.plan.feeds.iter().map(|feed| feed_name(feed.no));
    let names = feeds.chain(world.plan.has_group.then(|| GROUP.to_owned()));
    let last_t = |name: String| Some(present(life, &name)?.record.last_t);
    names.map(last_t).collect()
}

/// Checks that it stays so: two hours later, and for as long as a page may prove a deletion.
pub(crate) async fn check_rest(world: &World, life: &Life) {
    let mut before = heads(world, life);
    sleep(Duration::from_millis(2 * HOUR)).await;
    for _ in 0..STILL_HOURS_MAX {
        let now = heads(world, life);
        if now == before {
            break;
        }
        before = now;
        sleep(Duration::from_millis(HOUR)).await;
    }
    let why = of_consumers(life).await.or_else(|| of_feeds(world, life));
    if let Some(why) = why {
        world.fault(format!("after a rest: {why}"));
    }
}

/// All items of a feed, whoever may see them.
fn items(life: &Life, name: &str) -> Option<Vec<Arc<Item>>> {
    Some(present_of(life, life.feed_no(name)?)?.items.clone())
}

fn of_feed(world: &World, life: &Life, no: usize) -> Option<String> {
    let Some(items) = items(life, &feed_name(no)) else {
        return Some("it cannot be read".to_owned());
    };
    let last_titles = last_titles(life, no);
    let state = world.state();
    let publisher = state.publishers.get(&no)?;
    let mut live: BTreeMap<PostKey, Vec<(String, String)>> = BTreeMap::new();
    for item in &items {
        let Some(entry) = item.entry() else { continue };
        let post = entry.permalink().and_then(post_of);
        let Some(post) = post else {
            return Some(format!("{} is no post", item.id));
        };
        let title = held_form(item).title.unwrap_or_default();
        let content = entry.content.as_ref().map(|body| &body.text);
        let text = content.or(entry.summary.as_ref());
        let text = text.map(|text| text.value.clone()).unwrap_or_default();
        live.entry(post).or_default().push((title, text));
    }
    let copied = publisher
        .plan
        .copies
        .and_then(|of| state.publishers.get(&of));
    let has_renumbered =
        publisher.has_renumbered() || copied.is_some_and(Publisher::has_renumbered);
    if let Some((post, _)) = live.iter().find(|(_, items)| items.len() > 1)
        && !has_renumbered
    {
        return Some(format!("post {post:?} lives twice"));
    }
    for post in publisher.document(&state.publishers) {
        let Some(held) = live.get(&post.key()) else {
            return Some(format!("post {:?} is shown and does not live", post.key()));
        };
        let expect = (post.title(), post.text());
        if !held.contains(&expect) {
            return Some(format!(
                "post {:?} is {expect:?}, and {:?} is served",
                post.key(),
                held[0]
            ));
        }
    }
    if !publisher.plan.has_pages || publisher.plan.copies.is_some() || has_renumbered {
        return None;
    }
    // Where the page of a post says so, no absence makes one of those that are there gone. The page
    // of one that was edited since everfeed last saw it shows nothing of what is known.
    let gone = items.iter().filter(|item| item.is_gone());
    let gone: BTreeSet<PostKey> = gone.filter_map(|item| post_of(&item.iri)).collect();
    let mut as_known = publisher.living().filter(|post| {
        let last = last_titles.get(&post.key());
        last.is_none_or(|last| *last == post.title())
    });
    let falsely = as_known.find(|post| gone.contains(&post.key()));
    falsely.map(|post| format!("post {:?} is there, and was told to be gone", post.key()))
}

/// The last titles of posts whose pages are asked for again.
fn last_titles(life: &Life, no: usize) -> BTreeMap<PostKey, String> {
    let snapshot = life.feed_no(&feed_name(no)).and_then(|feed| {
        let asked = life.look.snapshot(feed, Vec::new());
        asked.now_or_never()?.ok()
    });
    let gone = snapshot
        .into_iter()
        .flat_map(|found| found.window.tombstones);
    let title = |gone: RecentTombstone| {
        let post = gone.entry.permalink().and_then(post_of)?;
        Some((post, gone.entry.title.as_ref()?.value.clone()))
    };
    gone.filter_map(title).collect()
}

/// The part that anonymous readers see holds what its filter shows of the feed.
fn of_part(world: &World, life: &Life, no: usize) -> Option<String> {
    let shown = world.state().configured.get(&no).copied();
    let Some(Shown::Only(category)) = shown else {
        return None;
    };
    let name = feed_name(no);
    let titles = |items: &[Arc<Item>]| -> BTreeSet<String> {
        let titles = items.iter().filter_map(|item| held_form(item).title);
        titles.collect()
    };
    let mut expect = titles(&items(life, &name)?);
    expect.retain(|title| is_in(title, Some(category)));
    let held = titles(&present(life, &name)?.items);
    let differing: Vec<_> = expect.symmetric_difference(&held).collect();
    (!differing.is_empty()).then(|| format!("its part differs in {differing:?}"))
}

/// The group holds what its members hold.
fn of_group(world: &World, life: &Life) -> Option<String> {
    let Some(items) = items(life, GROUP) else {
        return Some("it cannot be read".to_owned());
    };
    let posts = |items: &[Arc<Item>]| {
        let posts = items.iter().filter_map(|item| {
            let post = item.entry()?.permalink().and_then(post_of)?;
            Some((post, held_form(item).title?))
        });
        posts.collect::<Vec<_>>()
    };
    let mut expect: BTreeMap<PostKey, Vec<String>> = BTreeMap::new();
    let configured = world.state().configured.clone();
    for (no, shown) in configured {
        if shown == Shown::All {
            for (post, title) in posts(&self::items(life, &feed_name(no))?) {
                expect.entry(post).or_default().push(title);
            }
        }
    }
    let held = posts(&items);
    let keys: BTreeSet<PostKey> = held.iter().map(|(post, _)| *post).collect();
    let has_renumbered = world
        .state()
        .publishers
        .values()
        .any(Publisher::has_renumbered);
    if keys.len() != held.len() && !has_renumbered {
        return Some("a post lives in it twice".to_owned());
    }
    if let Some(post) = expect.keys().find(|post| !keys.contains(post)) {
        return Some(format!("it lacks post {post:?}"));
    }
    let strange = held.into_iter().find(|(post, title)| {
        !expect
            .get(post)
            .is_some_and(|titles| titles.contains(title))
    });
    strange.map(|(_, title)| format!("`{title}` is in it, and in no member"))
}

fn of_consumer(
    life: &Life,
    name: &str,
    mirror: &super::mirror::Mirror,
    filter: Option<Category>,
) -> Option<String> {
    let Some(present) = present(life, name) else {
        return Some("its feed cannot be read".to_owned());
    };
    let Present { items, record } = &*present;
    if !record.is_ready() {
        return Some("its feed is not ready".to_owned());
    }
    let expect: BTreeSet<(String, String)> = items
        .iter()
        .filter_map(|item| Some((item.id.to_string(), held_form(item).title?)))
        .filter(|(_, title)| is_in(title, filter))
        .collect();
    let held: BTreeSet<(String, String)> = mirror
        .items
        .iter()
        .filter_map(|(id, held)| Some((id.clone(), held.title.clone()?)))
        .collect();
    if expect == held {
        return mirror.check(life, name, filter).err();
    }
    let missing: Vec<_> = expect.difference(&held).collect();
    let surplus: Vec<_> = held.difference(&expect).collect();
    Some(format!("it lacks {missing:?} and has besides {surplus:?}"))
}
