//! Subscriptions in the file: found by number, by topic and callback, and by feed; not what they mean.

use super::{
    commit::known_feed,
    tables::{FEED_SUBS, FeedSubKey, META, SUB_KEYS, SUBS, Source, feed_sub_key, sub_key, sub_of, topic_key},
    writer::Writing,
};
use crate::{
    feed::record::FeedNo,
    store::{
        StoreError, Subscription, SubscriptionNo,
        codec::{damaged, decode, encode},
    },
};
use redb::{ReadableTable, WriteTransaction};

/// Where META keeps the last number given, so that none is given twice.
const LAST_SUB_KEY: &str = "last_sub";

/// One subscription.
pub(super) fn sub(source: &impl Source, no: SubscriptionNo) -> Result<Option<Subscription>, StoreError> {
    let subs = source.table(SUBS)?;
    let stored = subs.get(&sub_key(no))?;
    stored.map(|stored| read(no, stored.value())).transpose()
}

/// The subscription of a callback to a topic.
pub(super) fn find(
    source: &impl Source,
    topic: &str,
    callback: &str,
) -> Result<Option<Subscription>, StoreError> {
    let Some(no) = number(source, topic, callback)? else { return Ok(None) };
    let found = sub(source, no)?.filter(|sub| sub.topic == topic && sub.callback == callback);
    found.ok_or_else(|| damaged(&format!("subscription {no}"), "is not what its topic leads to")).map(Some)
}

/// Every subscription.
pub(super) fn all(source: &impl Source) -> Result<Vec<Subscription>, StoreError> {
    let mut all = Vec::new();
    for row in source.table(SUBS)?.iter()? {
        let (key, value) = row?;
        all.push(read(sub_of(key.value()), value.value())?);
    }
    Ok(all)
}

/// The subscriptions to a feed.
pub(super) fn of_feed(source: &impl Source, feed: FeedNo) -> Result<Vec<Subscription>, StoreError> {
    let (first, last) = (feed_sub_key(feed, SubscriptionNo(0)), feed_sub_key(feed, SubscriptionNo(u64::MAX)));
    let mut all = Vec::new();
    for row in source.table(FEED_SUBS)?.range::<&FeedSubKey>(&first..=&last)? {
        let no = sub_of(row?.0.value());
        let found = sub(source, no)?.filter(|sub| sub.feed() == feed);
        all.push(
            found.ok_or_else(|| damaged(&format!("subscription {no}"), "is not what its feed leads to"))?,
        );
    }
    Ok(all)
}

/// Makes or replaces a subscription.
pub(super) fn put(writing: &mut Writing<'_>, sub: &Subscription) -> Result<SubscriptionNo, StoreError> {
    let source = writing.look();
    known_feed(source, sub.feed())?;
    let before = find(source, &sub.topic, &sub.callback)?;
    let no = match &before {
        Some(before) => sub.no.replacing(before.no)?,
        None => {
            sub.no.is_new()?;
            SubscriptionNo(last_number(source)? + 1)
        }
    };
    let tx = writing.change();
    match before {
        Some(before) => drop(tx.open_table(FEED_SUBS)?.remove(&feed_sub_key(before.feed(), no))?),
        None => drop(tx.open_table(META)?.insert(LAST_SUB_KEY, encode(&no.0)?.as_slice())?),
    }
    write(tx, &Subscription { no, ..sub.clone() })?;
    tx.open_table(SUB_KEYS)?.insert(&topic_key(&sub.topic, &sub.callback), &sub_key(no))?;
    tx.open_table(FEED_SUBS)?.insert(&feed_sub_key(sub.feed(), no), ())?;
    Ok(no)
}

/// Ends a subscription.
pub(super) fn end(writing: &mut Writing<'_>, no: SubscriptionNo) -> Result<bool, StoreError> {
    let Some(sub) = sub(writing.look(), no)? else { return Ok(false) };
    let tx = writing.change();
    tx.open_table(SUBS)?.remove(&sub_key(no))?;
    tx.open_table(SUB_KEYS)?.remove(&topic_key(&sub.topic, &sub.callback))?;
    tx.open_table(FEED_SUBS)?.remove(&feed_sub_key(sub.feed(), no))?;
    Ok(true)
}

/// Moves an acknowledged position by compare-and-set.
pub(super) fn advance(
    writing: &mut Writing<'_>,
    no: SubscriptionNo,
    from: &str,
    to: &str,
) -> Result<bool, StoreError> {
    let Some(mut sub) = sub(writing.look(), no)? else { return Ok(false) };
    let moved = sub.advance(from, to.to_owned());
    if moved {
        write(writing.change(), &sub)?;
    }
    Ok(moved)
}

fn number(source: &impl Source, topic: &str, callback: &str) -> Result<Option<SubscriptionNo>, StoreError> {
    let keys = source.table(SUB_KEYS)?;
    Ok(keys.get(&topic_key(topic, callback))?.map(|no| sub_of(no.value())))
}

fn last_number(source: &impl Source) -> Result<u64, StoreError> {
    let meta = source.table(META)?;
    meta.get(LAST_SUB_KEY)?.map_or(Ok(0), |last| decode("the last subscription's number", last.value()))
}

fn read(no: SubscriptionNo, bytes: &[u8]) -> Result<Subscription, StoreError> {
    let what = format!("subscription {no}");
    let sub: Subscription = decode(&what, bytes)?;
    if sub.no == no { Ok(sub) } else { Err(damaged(&what, "says that it is another one")) }
}

fn write(tx: &WriteTransaction, sub: &Subscription) -> Result<(), StoreError> {
    tx.open_table(SUBS)?.insert(&sub_key(sub.no), encode(sub)?.as_slice())?;
    Ok(())
}
