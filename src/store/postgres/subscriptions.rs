//! Subscriptions in the database: found by number, by topic and address, and by feed; not what they
//! mean.

use super::{
    database::DatabaseWriting,
    rows,
    session::DatabaseSession,
    statement::{SqlStatement, column, number_at, number_column},
};
use crate::{
    feed::{record::FeedNo, stamp::Stamp},
    store::{
        StoreError, Subscription, SubscriptionNo,
        stored::{damaged, decode, encode},
        subscriptions::{Acknowledged, Attempts, NewSubscription, Progress, unless_damaged},
    },
};
use sha2::{Digest as _, Sha256};
use std::collections::BTreeMap;
use tokio_postgres::Row;

/// Key of a subscription by its topic and the address of its target.
pub(super) fn address_key(topic: &str, address: &str) -> Vec<u8> {
    let hash = Sha256::new().chain_update(topic).chain_update(b"\n");
    hash.chain_update(address).finalize().to_vec()
}

/// The columns that [`subscription_of`] reads.
const COLUMNS: &str = "SELECT s.no, s.value, p.value FROM subscriptions s \
     LEFT JOIN positions p ON p.no = s.no";

fn subscription_of(row: &Row) -> Result<(Subscription, Progress), StoreError> {
    let no = SubscriptionNo(number_at(row, 0)?);
    let terms: Subscription = decode(&format!("subscription {no}"), column(row, 1)?)?;
    if terms.no != no {
        return Err(damaged(format!(
            "subscription {no} says that it is another one"
        )));
    }
    let position: Option<&[u8]> = column(row, 2)?;
    let position = position.ok_or_else(|| damaged(format!("subscription {no} has no position")))?;
    Ok((terms, decode("the position of a subscription", position)?))
}

/// One subscription and its position.
pub(super) fn subscription(
    session: &DatabaseSession,
    no: SubscriptionNo,
) -> Result<Option<(Subscription, Progress)>, StoreError> {
    let asked = SqlStatement::new(format!("{COLUMNS} WHERE s.no = $1"));
    let row = session.row(asked.with(number_column(no.0)))?;
    row.as_ref().map(subscription_of).transpose()
}

/// The subscription of the target with an address to a topic.
pub(super) fn find(
    session: &DatabaseSession,
    topic: &str,
    address: &str,
) -> Result<Option<(Subscription, Progress)>, StoreError> {
    let asked = SqlStatement::new(format!("{COLUMNS} WHERE s.address_key = $1"));
    let row = session.row(asked.with(address_key(topic, address)))?;
    row.as_ref().map(subscription_of).transpose()
}

/// The subscriptions after a number, of one feed or of all. One that is damaged is left out, and
/// told: it must not take all others with it.
pub(super) fn list(
    session: &DatabaseSession,
    feed: Option<FeedNo>,
    after: Option<SubscriptionNo>,
    max: usize,
) -> Result<Vec<(Subscription, Progress)>, StoreError> {
    let mut listed = Vec::new();
    let mut after = after.map_or(-1, |no| number_column(no.0));
    while listed.len() < max {
        let wanted = max - listed.len();
        let asked = match feed {
            Some(feed) => SqlStatement::new(format!(
                "{COLUMNS} WHERE s.no > $1 AND s.feed = $3 ORDER BY s.no LIMIT $2"
            ))
            .with(after)
            .with(rows::limit(wanted))
            .with(feed),
            None => SqlStatement::new(format!("{COLUMNS} WHERE s.no > $1 ORDER BY s.no LIMIT $2"))
                .with(after)
                .with(rows::limit(wanted)),
        };
        let rows = session.rows(asked)?;
        for row in &rows {
            after = column(row, 0)?;
            listed.extend(unless_damaged(
                SubscriptionNo(number_at(row, 0)?),
                subscription_of(row),
            )?);
        }
        if rows.len() < wanted {
            break;
        }
    }
    Ok(listed)
}

/// Refuses a feed that is not there, and keeps one that is until this is over.
fn known_feed(session: &DatabaseSession, feed: FeedNo) -> Result<(), StoreError> {
    let asked = SqlStatement::new("SELECT no FROM feeds WHERE no = $1 FOR KEY SHARE").with(feed);
    match session.row(asked)? {
        Some(_) => Ok(()),
        None => Err(StoreError::UnknownFeed(feed)),
    }
}

/// Makes a subscription.
pub(super) fn subscribe(
    writing: &DatabaseWriting<'_>,
    new: &NewSubscription,
) -> Result<Subscription, StoreError> {
    let session = writing.session;
    known_feed(session, new.view.feed)?;
    // Numbers are given one after another, so of two requests for one target the second sees the
    // subscription of the first.
    let no = SubscriptionNo(rows::next_number(session, "last_subscription")?);
    if let Some((found, _)) = find(session, &new.topic, new.target.address())? {
        return Err(StoreError::Subscribed(found.no));
    }
    let subscription = new.clone().numbered(no);
    let sql = "INSERT INTO subscriptions (no, feed, address_key, lease_until, value) \
               VALUES ($1, $2, $3, $4, $5)";
    session.change(
        SqlStatement::new(sql)
            .with(number_column(no.0))
            .with(subscription.feed())
            .with(address_key(
                &subscription.topic,
                subscription.target.address(),
            ))
            .with(lease_until(&subscription))
            .with(encode(&subscription)?),
    );
    write_progress(writing, no, &Progress::default())?;
    Ok(subscription)
}

/// End of the lease; zero before the first verification.
pub(super) fn lease_until(subscription: &Subscription) -> Stamp {
    subscription.lease.map_or(Stamp::ZERO, |lease| lease.until)
}

/// Replaces the terms of a subscription, and its position if one is given.
pub(super) fn change(
    writing: &DatabaseWriting<'_>,
    subscription: Subscription,
    progress: Option<&Progress>,
) -> Result<u64, StoreError> {
    let (session, no) = (writing.session, subscription.no);
    let sql = "SELECT value FROM subscriptions WHERE no = $1 FOR UPDATE";
    let row = session.row(SqlStatement::new(sql).with(number_column(no.0)))?;
    let row = row.ok_or(StoreError::UnknownSubscription(no))?;
    let stored: Subscription = decode(&format!("subscription {no}"), column(&row, 0)?)?;
    known_feed(session, subscription.feed())?;
    let changed = subscription.replacing(&stored)?;
    writing.move_readers();
    let sql = "UPDATE subscriptions SET feed = $2, lease_until = $3, value = $4 WHERE no = $1";
    session.change(
        SqlStatement::new(sql)
            .with(number_column(no.0))
            .with(changed.feed())
            .with(lease_until(&changed))
            .with(encode(&changed)?),
    );
    if let Some(progress) = progress {
        write_progress(writing, no, progress)?;
    }
    Ok(changed.rev)
}

/// Ends a subscription.
pub(super) fn end(writing: &DatabaseWriting<'_>, no: SubscriptionNo) -> Result<bool, StoreError> {
    let session = writing.session;
    let sql = "SELECT no FROM subscriptions WHERE no = $1 FOR UPDATE";
    let found = session.row(SqlStatement::new(sql).with(number_column(no.0)))?;
    if found.is_none() {
        return Ok(false);
    }
    writing.move_readers();
    for sql in [
        "DELETE FROM subscriptions WHERE no = $1",
        "DELETE FROM positions WHERE no = $1",
    ] {
        session.change(SqlStatement::new(sql).with(number_column(no.0)));
    }
    Ok(true)
}

/// Ends every subscription to a feed.
pub(super) fn end_all(session: &DatabaseSession, feed: FeedNo) {
    for sql in [
        "DELETE FROM positions WHERE no IN (SELECT no FROM subscriptions WHERE feed = $1)",
        "DELETE FROM subscriptions WHERE feed = $1",
    ] {
        session.change(SqlStatement::new(sql).with(feed));
    }
}

/// Positions that are to be changed, locked in the order of their numbers.
fn positions(
    session: &DatabaseSession,
    numbers: impl Iterator<Item = SubscriptionNo>,
) -> Result<BTreeMap<SubscriptionNo, Progress>, StoreError> {
    let sql = "SELECT no, value FROM positions WHERE no = ANY($1) ORDER BY no FOR UPDATE";
    let numbers: Vec<i64> = numbers.map(|no| number_column(no.0)).collect();
    let rows = session.rows(SqlStatement::new(sql).with(numbers))?;
    let read = |row: &Row| {
        let progress = decode("the position of a subscription", column(row, 1)?)?;
        Ok((SubscriptionNo(number_at(row, 0)?), progress))
    };
    rows.iter().map(read).collect()
}

/// Moves positions, each by compare-and-set.
pub(super) fn acknowledge(
    writing: &DatabaseWriting<'_>,
    acknowledged: &[Acknowledged],
) -> Result<Vec<bool>, StoreError> {
    let numbers = acknowledged
        .iter()
        .map(|acknowledged| acknowledged.subscription);
    let mut held = positions(writing.session, numbers)?;
    let mut moved = Vec::with_capacity(acknowledged.len());
    for acknowledged in acknowledged {
        let no = acknowledged.subscription;
        let mut has_moved = false;
        if let Some(progress) = held.get_mut(&no) {
            has_moved = progress.acknowledge(acknowledged.clone());
            if has_moved {
                write_progress(writing, no, progress)?;
            }
        }
        moved.push(has_moved);
    }
    Ok(moved)
}

/// Saves the state of deliveries.
pub(super) fn save_attempts(
    writing: &DatabaseWriting<'_>,
    attempts: &[(SubscriptionNo, Attempts)],
) -> Result<(), StoreError> {
    let mut held = positions(writing.session, attempts.iter().map(|(no, _)| *no))?;
    for (no, attempts) in attempts {
        if let Some(progress) = held.get_mut(no) {
            progress.attempts = attempts.clone();
            write_progress(writing, *no, progress)?;
        }
    }
    Ok(())
}

fn write_progress(
    writing: &DatabaseWriting<'_>,
    no: SubscriptionNo,
    progress: &Progress,
) -> Result<(), StoreError> {
    let sql = "INSERT INTO positions (no, readers, value) VALUES ($1, $2, $3) \
               ON CONFLICT (no) DO UPDATE SET readers = excluded.readers, value = excluded.value";
    writing.move_readers();
    writing.session.change(
        SqlStatement::new(sql)
            .with(number_column(no.0))
            .with(rows::limit(progress.readers()))
            .with(encode(progress)?),
    );
    Ok(())
}
