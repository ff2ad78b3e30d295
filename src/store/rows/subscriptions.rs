//! Subscriptions: found by number, by topic and address, and by feed; not what they
//! mean.

use super::{
    Engine, Writing,
    open_table::{Table, TableEdit as _, TableSource as _},
    reads::{self, known_feed},
    tables::{
        FEED_SUBSCRIPTIONS, FEEDS, META, POSITIONS, SUBSCRIPTION_KEYS, SUBSCRIPTIONS,
        SubscriptionKey, feed_key, feed_subscription_key, subscription_key, subscription_of,
        topic_key,
    },
};
use crate::{
    feed::{record::FeedNo, stamp::Stamp},
    store::{
        StoreError, StoreFuture, Subscription, SubscriptionNo, Subscriptions,
        engine::{NamedRows, RowLock, RowPart, RowReader, RowWriter},
        stored::damaged,
        subscriptions::{
            Acknowledged, Attempts, NewSubscription, Progress, Target, unless_damaged,
        },
    },
};
use std::collections::BTreeSet;

impl<E: Engine> Subscriptions for E {
    fn subscribe(&self, new: NewSubscription) -> StoreFuture<'_, Subscription> {
        self.write(move |writing| subscribe(writing, &new))
    }

    fn change_subscription(
        &self,
        subscription: Subscription,
        progress: Option<Progress>,
    ) -> StoreFuture<'_, u64> {
        self.write(move |writing| change(writing, subscription.clone(), progress.as_ref()))
    }

    fn subscription(
        &self,
        no: SubscriptionNo,
    ) -> StoreFuture<'_, Option<(Subscription, Progress)>> {
        self.read(move |snapshot| subscription(snapshot, no))
    }

    fn subscriptions_of(
        &self,
        numbers: Vec<SubscriptionNo>,
    ) -> StoreFuture<'_, Vec<Option<(Subscription, Progress)>>> {
        self.read(move |snapshot| subscriptions_of(snapshot, &numbers))
    }

    fn find_subscription<'a>(
        &'a self,
        topic: &'a str,
        address: &'a str,
    ) -> StoreFuture<'a, Option<(Subscription, Progress)>> {
        let (topic, address) = (topic.to_owned(), address.to_owned());
        self.read(move |snapshot| find(snapshot, &topic, &address))
    }

    fn subscriptions(
        &self,
        feed: Option<FeedNo>,
        after: Option<SubscriptionNo>,
        max: usize,
    ) -> StoreFuture<'_, Vec<(Subscription, Progress)>> {
        self.read(move |snapshot| list(snapshot, feed, after, max))
    }

    fn count_active(&self, feed: FeedNo, now: Stamp) -> StoreFuture<'_, usize> {
        let counted =
            move |snapshot: &dyn RowReader, read_max| count_active(snapshot, feed, now, read_max);
        Box::pin(async move {
            // Every poll asks, and most feeds have few: nobody is woken for that.
            let few = self.read_in_place(move |snapshot| counted(snapshot, FEW));
            if let Some(active) = few.await? {
                return Ok(active);
            }
            let all = self.read(move |snapshot| counted(snapshot, usize::MAX));
            Ok(all.await?.unwrap_or_default())
        })
    }

    fn end_subscription(&self, no: SubscriptionNo) -> StoreFuture<'_, bool> {
        self.write(move |writing| end(writing, no))
    }

    fn acknowledge(&self, acknowledged: Vec<Acknowledged>) -> StoreFuture<'_, Vec<bool>> {
        self.write(move |writing| acknowledge(writing, &acknowledged))
    }

    fn save_attempts(&self, attempts: Vec<(SubscriptionNo, Attempts)>) -> StoreFuture<'_, ()> {
        self.write(move |writing| save_attempts(writing, &attempts))
    }
}

/// Key in META of the last number given, so that none is given twice.
pub(in crate::store) const LAST_SUBSCRIPTION_KEY: &str = "last_sub";

/// One subscription and its position.
pub(in crate::store) fn subscription(
    source: &dyn RowReader,
    no: SubscriptionNo,
) -> Result<Option<(Subscription, Progress)>, StoreError> {
    let Some(terms) = terms(source, no)? else {
        return Ok(None);
    };
    match progress(source, no)? {
        Some(progress) => Ok(Some((terms, progress))),
        None => Err(damaged(format!("subscription {no} has no position"))),
    }
}

/// The subscriptions of these numbers and their positions.
fn subscriptions_of(
    source: &dyn RowReader,
    numbers: &[SubscriptionNo],
) -> Result<Vec<Option<(Subscription, Progress)>>, StoreError> {
    source.name(|| {
        let keys: Vec<_> = numbers.iter().map(|no| subscription_key(*no)).collect();
        [SUBSCRIPTIONS, POSITIONS]
            .map(|table| table.named_all(&keys))
            .into()
    })?;
    let found = numbers.iter().map(|no| {
        let found = subscription(source, *no).transpose();
        found.map_or(Ok(None), |found| unless_damaged(*no, found))
    });
    found.collect()
}

/// The terms of a subscription.
fn terms(source: &dyn RowReader, no: SubscriptionNo) -> Result<Option<Subscription>, StoreError> {
    let what = format!("subscription {no}");
    let stored: Option<Subscription> = source
        .table(SUBSCRIPTIONS)?
        .read(&subscription_key(no), &what)?;
    if stored.as_ref().is_some_and(|terms| terms.no != no) {
        return Err(damaged(format!("{what} says that it is another one")));
    }
    Ok(stored)
}

/// The position of a subscription.
fn progress(source: &dyn RowReader, no: SubscriptionNo) -> Result<Option<Progress>, StoreError> {
    source
        .table(POSITIONS)?
        .read(&subscription_key(no), "the position of a subscription")
}

/// The subscription of the target with an address to a topic.
pub(in crate::store) fn find(
    source: &dyn RowReader,
    topic: &str,
    address: &str,
) -> Result<Option<(Subscription, Progress)>, StoreError> {
    let Some(no) = number(source, topic, address)? else {
        return Ok(None);
    };
    if let Some(found) = subscription(source, no)?
        && found.0.topic == topic
        && found.0.target.address() == address
    {
        return Ok(Some(found));
    }
    Err(damaged(format!(
        "subscription {no} is not what its topic leads to"
    )))
}

/// The subscriptions after a number, of one feed or of all. One that is damaged is left out, and
/// told: it must not take all others with it.
pub(in crate::store) fn list(
    source: &dyn RowReader,
    feed: Option<FeedNo>,
    mut after: Option<SubscriptionNo>,
    max: usize,
) -> Result<Vec<(Subscription, Progress)>, StoreError> {
    let mut listed = Vec::new();
    while listed.len() < max {
        source.name(|| match feed {
            Some(feed) => named_of(feed, after, max - listed.len()),
            None => {
                let first = after.map_or([0; 8], |no| subscription_key(SubscriptionNo(no.0 + 1)));
                [SUBSCRIPTIONS, POSITIONS]
                    .map(|table| {
                        table.named_range(&first, &[u8::MAX; 8], false, max - listed.len())
                    })
                    .into()
            }
        })?;
        let numbers = match feed {
            Some(feed) => numbers_of(source, feed, after, max - listed.len())?,
            None => numbers(source, after, max - listed.len())?,
        };
        let Some(last) = numbers.last().copied() else {
            break;
        };
        after = Some(last);
        for no in numbers {
            let found = match subscription(source, no) {
                Ok(Some(found)) if feed.is_none_or(|feed| found.0.feed() == feed) => Ok(found),
                Ok(_) => Err(damaged(format!(
                    "subscription {no} is not what its feed leads to"
                ))),
                Err(error) => Err(error),
            };
            listed.extend(unless_damaged(no, found)?);
        }
    }
    Ok(listed)
}

/// Ends every subscription to a feed, damaged ones included.
pub(in crate::store) fn end_all(writing: &mut Writing<'_>, feed: FeedNo) -> Result<(), StoreError> {
    let numbers = numbers_of(writing.look(), feed, None, usize::MAX)?;
    lock_positions(writing, numbers.iter().copied())?;
    writing
        .look()
        .name(|| named_of(feed, None, numbers.len()))?;
    for no in numbers {
        match end(writing, no) {
            Err(StoreError::Damaged(_)) => {
                let (tx, key) = (writing.change(), subscription_key(no));
                tx.edit(SUBSCRIPTIONS)?.remove(&key)?;
                tx.edit(POSITIONS)?.remove(&key)?;
                tx.edit(FEED_SUBSCRIPTIONS)?
                    .remove(&feed_subscription_key(feed, no))?;
                // Its topic is not known any more.
                tx.edit(SUBSCRIPTION_KEYS)?
                    .retain(|leads_to| leads_to != Some(key.as_slice()))?;
            }
            ended => drop(ended?),
        }
    }
    Ok(())
}

/// Subscriptions that are read at once.
const AT_ONCE: usize = 1000;

/// Puts the callbacks of every feed at a cursor of its former generation: the next push tells each
/// of them so. The other targets only show posts, and are told nothing.
pub(in crate::store) fn set_back(tx: &dyn RowWriter) -> Result<(), StoreError> {
    let mut after = None;
    loop {
        let listed = list(tx, None, after, AT_ONCE)?;
        let Some((last, _)) = listed.last() else {
            return Ok(());
        };
        after = Some(last.no);
        for (subscription, mut progress) in listed {
            if !matches!(subscription.target, Target::Callback(_)) || progress.acked.is_none() {
                continue;
            }
            // A feed that is damaged has begun no generation.
            if let Ok(record) = reads::record(tx, subscription.feed()) {
                (progress.acked, progress.scanned) = (Some(record.lost_cursor()), None);
                write_progress(tx, subscription.no, &progress)?;
            }
        }
    }
}

/// Names the first subscriptions to a feed after a number, and their positions.
fn named_of(feed: FeedNo, after: Option<SubscriptionNo>, max: usize) -> Vec<NamedRows> {
    let first = after.map_or(0, |no| no.0.saturating_add(1));
    let first = feed_subscription_key(feed, SubscriptionNo(first));
    let last = feed_subscription_key(feed, SubscriptionNo(u64::MAX));
    let to = |table: Table<SubscriptionKey>| {
        let numbers = FEED_SUBSCRIPTIONS.named_range(&first, &last, false, max);
        numbers.via(table.of_engine(), &[], RowPart::KeyFrom(4))
    };
    vec![to(SUBSCRIPTIONS), to(POSITIONS)]
}

fn numbers(
    source: &dyn RowReader,
    after: Option<SubscriptionNo>,
    max: usize,
) -> Result<Vec<SubscriptionNo>, StoreError> {
    let table = source.table(SUBSCRIPTIONS)?;
    let rows = table
        .unchecked_after(&[], after.map(subscription_key))
        .take(max);
    rows.map(|row| Ok(subscription_of(row?.0.value())))
        .collect()
}

fn numbers_of(
    source: &dyn RowReader,
    feed: FeedNo,
    after: Option<SubscriptionNo>,
    max: usize,
) -> Result<Vec<SubscriptionNo>, StoreError> {
    let after = after.map(|no| feed_subscription_key(feed, no));
    let table = source.table(FEED_SUBSCRIPTIONS)?;
    let rows = table.unchecked_after(&feed_key(feed), after).take(max);
    rows.map(|row| Ok(subscription_of(row?.0.value())))
        .collect()
}

/// Subscriptions that are counted on the thread of whoever asks.
pub(in crate::store) const FEW: usize = 16;

// Limit: every subscription of the feed is read.
/// The number of readers behind the subscriptions to a feed whose deliveries are due at this time;
/// `None` when the feed has more subscriptions than are to be read.
pub(in crate::store) fn count_active(
    source: &dyn RowReader,
    feed: FeedNo,
    now: Stamp,
    read_max: usize,
) -> Result<Option<usize>, StoreError> {
    source.name(|| named_of(feed, None, read_max.saturating_add(1)))?;
    let numbers = numbers_of(source, feed, None, read_max.saturating_add(1))?;
    if numbers.len() > read_max {
        return Ok(None);
    }
    let mut active = 0;
    for no in numbers {
        if terms(source, no)?.is_some_and(|terms| terms.is_active(now)) {
            active += progress(source, no)?.unwrap_or_default().readers();
        }
    }
    Ok(Some(active))
}

/// Makes a subscription.
pub(in crate::store) fn subscribe(
    writing: &mut Writing<'_>,
    new: &NewSubscription,
) -> Result<Subscription, StoreError> {
    let source = writing.look();
    let key = topic_key(&new.topic, new.target.address());
    // Numbers are given one after another, so of two requests for one target the second sees the
    // subscription of the first.
    source.name(|| {
        let feed = feed_key(new.view.feed);
        vec![
            FEEDS.named(&feed).locked(RowLock::Keep),
            META.named(LAST_SUBSCRIPTION_KEY).locked(RowLock::Change),
            FEEDS.named(&feed),
            SUBSCRIPTION_KEYS.named(&key),
        ]
    })?;
    known_feed(source, new.view.feed)?;
    if let Some(no) = number(source, &new.topic, new.target.address())? {
        return Err(StoreError::Subscribed(no));
    }
    let subscription = new
        .clone()
        .numbered(SubscriptionNo(last_number(source)? + 1));
    let no = subscription.no;
    let tx = writing.change();
    tx.edit(META)?.write(LAST_SUBSCRIPTION_KEY, &no.0)?;
    write(tx, &subscription)?;
    write_progress(tx, no, &Progress::default())?;
    tx.edit(SUBSCRIPTION_KEYS)?
        .insert(&key, &subscription_key(no))?;
    tx.edit(FEED_SUBSCRIPTIONS)?
        .insert(&feed_subscription_key(subscription.feed(), no), &[])?;
    Ok(subscription)
}

/// Replaces the terms of a subscription, and its position if one is given.
pub(in crate::store) fn change(
    writing: &mut Writing<'_>,
    subscription: Subscription,
    progress: Option<&Progress>,
) -> Result<u64, StoreError> {
    let source = writing.look();
    let no = subscription.no;
    source.name(|| {
        let feed = feed_key(subscription.feed());
        let mut named = locked(no);
        named.extend([FEEDS.named(&feed).locked(RowLock::Keep), FEEDS.named(&feed)]);
        named
    })?;
    let stored = terms(source, no)?.ok_or(StoreError::UnknownSubscription(no))?;
    known_feed(source, subscription.feed())?;
    let changed = subscription.replacing(&stored)?;
    let tx = writing.change();
    let mut of_feeds = tx.edit(FEED_SUBSCRIPTIONS)?;
    of_feeds.remove(&feed_subscription_key(stored.feed(), no))?;
    of_feeds.insert(&feed_subscription_key(changed.feed(), no), &[])?;
    write(tx, &changed)?;
    if let Some(progress) = progress {
        write_progress(tx, no, progress)?;
    }
    Ok(changed.rev)
}

/// Ends a subscription.
pub(in crate::store) fn end(
    writing: &mut Writing<'_>,
    no: SubscriptionNo,
) -> Result<bool, StoreError> {
    writing.look().name(|| locked(no))?;
    let Some(stored) = terms(writing.look(), no)? else {
        return Ok(false);
    };
    let tx = writing.change();
    tx.edit(SUBSCRIPTIONS)?.remove(&subscription_key(no))?;
    tx.edit(POSITIONS)?.remove(&subscription_key(no))?;
    tx.edit(SUBSCRIPTION_KEYS)?
        .remove(&topic_key(&stored.topic, stored.target.address()))?;
    tx.edit(FEED_SUBSCRIPTIONS)?
        .remove(&feed_subscription_key(stored.feed(), no))?;
    Ok(true)
}

/// Moves positions, each by compare-and-set.
pub(in crate::store) fn acknowledge(
    writing: &mut Writing<'_>,
    acknowledged: &[Acknowledged],
) -> Result<Vec<bool>, StoreError> {
    let numbers = acknowledged.iter();
    lock_positions(
        writing,
        numbers.map(|acknowledged| acknowledged.subscription),
    )?;
    let mut moved = Vec::with_capacity(acknowledged.len());
    for acknowledged in acknowledged {
        let no = acknowledged.subscription;
        let mut has_moved = false;
        if let Some(mut progress) = progress(writing.look(), no)? {
            has_moved = progress.acknowledge(acknowledged.clone());
            if has_moved {
                write_progress(writing.change(), no, &progress)?;
            }
        }
        moved.push(has_moved);
    }
    Ok(moved)
}

/// Saves the state of deliveries.
pub(in crate::store) fn save_attempts(
    writing: &mut Writing<'_>,
    attempts: &[(SubscriptionNo, Attempts)],
) -> Result<(), StoreError> {
    lock_positions(writing, attempts.iter().map(|(no, _)| *no))?;
    for (no, attempts) in attempts {
        if let Some(mut progress) = progress(writing.look(), *no)? {
            progress.attempts = attempts.clone();
            write_progress(writing.change(), *no, &progress)?;
        }
    }
    Ok(())
}

/// Locks a subscription, and names it.
fn locked(no: SubscriptionNo) -> Vec<NamedRows> {
    let key = subscription_key(no);
    vec![
        SUBSCRIPTIONS.named(&key).locked(RowLock::Change),
        SUBSCRIPTIONS.named(&key),
    ]
}

/// Locks positions that are to be changed, and names them.
fn lock_positions(
    writing: &Writing<'_>,
    numbers: impl Iterator<Item = SubscriptionNo>,
) -> Result<(), StoreError> {
    writing.look().name(|| {
        let keys: BTreeSet<_> = numbers.map(subscription_key).collect();
        vec![
            POSITIONS.named_all(&keys).locked(RowLock::Change),
            POSITIONS.named_all(&keys),
        ]
    })
}

fn number(
    source: &dyn RowReader,
    topic: &str,
    address: &str,
) -> Result<Option<SubscriptionNo>, StoreError> {
    let keys = source.table(SUBSCRIPTION_KEYS)?;
    Ok(keys
        .get(&topic_key(topic, address))?
        .map(|no| subscription_of(no.value())))
}

fn last_number(source: &dyn RowReader) -> Result<u64, StoreError> {
    let meta = source.table(META)?;
    let last = meta.read(LAST_SUBSCRIPTION_KEY, "the last subscription's number")?;
    Ok(last.unwrap_or_default())
}

fn write(tx: &dyn RowWriter, subscription: &Subscription) -> Result<(), StoreError> {
    let key = subscription_key(subscription.no);
    tx.edit(SUBSCRIPTIONS)?.write(&key, subscription)
}

fn write_progress(
    tx: &dyn RowWriter,
    no: SubscriptionNo,
    progress: &Progress,
) -> Result<(), StoreError> {
    tx.edit(POSITIONS)?.write(&subscription_key(no), progress)
}
