//! What must be true once a world rests: every consumer holds what its view holds, and each feed
//! holds what its publisher shows.

use super::{
    everfeed_life::{GROUP, Life, feed_name},
    mirror::{held_form, is_in, present},
    plan::{Category, HOUR},
    publisher::post_at,
    world::World,
};
use everfeed::feed::{item::Item, order::Order, page::PageQuery};
use futures_util::FutureExt as _;
use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
    time::Duration,
};
use tokio::time::sleep;

/// The first difference between what somebody holds and what is; `None` when all are equal.
pub(crate) async fn difference(world: &World, life: &Life) -> Option<String> {
    for feed in &world.plan.feeds {
        if let Some(why) = of_feed(world, life, feed.no) {
            return Some(format!("feed {}: {why}", feed.no));
        }
    }
    if world.plan.has_group
        && let Some(why) = of_group(world, life)
    {
        return Some(format!("the group: {why}"));
    }
    for (_, consumer) in life.callback_side().consumers {
        // A consumer that waits holds its place.
        let consumer = tokio::time::timeout(Duration::from_secs(900), consumer.lock()).await;
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

/// Checks that nothing changes any more: two hours later every head is the same.
pub(crate) async fn check_rest(world: &World, life: &Life) {
    let heads = |life: &Life| {
        let feeds = world.plan.feeds.iter().map(|feed| feed_name(feed.no));
        let feeds = feeds.chain(world.plan.has_group.then(|| GROUP.to_owned()));
        let record = |name: String| present(life, &name).map(|(_, _, record)| record.last_t);
        feeds.map(record).collect::<Vec<_>>()
    };
    let before = heads(life);
    sleep(Duration::from_millis(2 * HOUR)).await;
    if heads(life) != before {
        // A deletion may have been proved meanwhile, which everybody is told.
        sleep(Duration::from_millis(HOUR)).await;
    }
    if let Some(why) = difference(world, life).await {
        world.fault(format!("after a rest: {why}"));
    }
}

/// All items of a feed, whoever may see them.
fn items(life: &Life, name: &str) -> Option<Vec<Arc<Item>>> {
    let query = PageQuery::all(life.feed_no(name)?, Order::MODIFIED);
    Some(life.store.page(query).now_or_never()?.ok()?.items)
}

fn of_feed(world: &World, life: &Life, no: usize) -> Option<String> {
    let Some(items) = items(life, &feed_name(no)) else {
        return Some("it cannot be read".to_owned());
    };
    let state = world.state();
    let publisher = state.publishers.get(&no)?;
    let mut live: BTreeMap<u32, Vec<(String, String)>> = BTreeMap::new();
    for item in &items {
        let Some(entry) = item.entry() else { continue };
        let post = entry.permalink().and_then(post_at);
        let Some(post) = post else {
            return Some(format!("{} is no post", item.id));
        };
        let title = held_form(item).title.unwrap_or_default();
        let content = entry.content.as_ref().map(|body| &body.text);
        let text = content.or(entry.summary.as_ref());
        let text = text.map(|text| text.value.clone()).unwrap_or_default();
        live.entry(post).or_default().push((title, text));
    }
    if let Some((post, _)) = live.iter().find(|(_, items)| items.len() > 1) {
        return Some(format!("post {post} lives twice"));
    }
    for post in publisher.shown() {
        let Some(held) = live.get(&post.no) else {
            return Some(format!("post {} is shown and does not live", post.no));
        };
        let expect = (post.title(), publisher.text(post));
        if held[0] != expect {
            return Some(format!(
                "post {} is {expect:?}, and {:?} is served",
                post.no, held[0]
            ));
        }
    }
    None
}

/// The group holds what its members hold.
fn of_group(world: &World, life: &Life) -> Option<String> {
    let Some(items) = items(life, GROUP) else {
        return Some("it cannot be read".to_owned());
    };
    let titles = |items: &[Arc<Item>], no: usize| {
        let titles = items.iter().filter_map(|item| held_form(item).title);
        titles.map(|title| (no, title)).collect::<Vec<_>>()
    };
    let mut expect = Vec::new();
    let configured = world.state().configured.clone();
    for (no, shown) in configured {
        if shown.is_none() {
            expect.extend(titles(&self::items(life, &feed_name(no))?, no));
        }
    }
    let mut expect: Vec<String> = expect.into_iter().map(|(_, title)| title).collect();
    let mut held: Vec<String> = titles(&items, 0)
        .into_iter()
        .map(|(_, title)| title)
        .collect();
    expect.sort();
    held.sort();
    if expect == held {
        return None;
    }
    let missing: Vec<&String> = expect
        .iter()
        .filter(|title| !held.contains(title))
        .collect();
    let surplus: Vec<&String> = held
        .iter()
        .filter(|title| !expect.contains(title))
        .collect();
    Some(format!(
        "it lacks {missing:?} and has besides {surplus:?}; {} of {}",
        held.len(),
        expect.len()
    ))
}

fn of_consumer(
    life: &Life,
    name: &str,
    mirror: &super::mirror::Mirror,
    filter: Option<Category>,
) -> Option<String> {
    let Some((_, items, record)) = present(life, name) else {
        return Some("its feed cannot be read".to_owned());
    };
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
