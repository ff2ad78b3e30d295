//! Rows that lead to others, worked out from those: a copy of a store makes them again, and a check
//! compares them. Commits write the same rows, sorted by table.

use super::{
    open_table::EngineRows,
    tables::{
        CREATED, FEED_NAMES, FEED_SUBSCRIPTIONS, FEEDS, IDS, ITEMS, PUBLISHED, SUBSCRIPTION_KEYS,
        SUBSCRIPTIONS, feed_key, feed_of, feed_subscription_key, id_key, published_key, stamp_key,
        stamp_of, stamp_value, subscription_key, subscription_of, topic_key,
    },
};
use crate::{
    feed::record::FeedRecord,
    store::{
        StoreError, Subscription,
        engine::{EngineRow, EngineTable, RowReader},
        stored::{
            decode,
            item::{decode_item, item_header},
        },
    },
};

/// A row that leads to another one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::store) struct Lead {
    pub(in crate::store) table: EngineTable,
    pub(in crate::store) key: Vec<u8>,
    pub(in crate::store) value: Vec<u8>,
}

impl Lead {
    fn new(table: EngineTable, key: &[u8], value: &[u8]) -> Self {
        Self {
            table,
            key: key.to_vec(),
            value: value.to_vec(),
        }
    }

    fn words(&self) -> String {
        let (what, _) = words_of(self.table);
        if self.table == FEED_NAMES.of_engine() {
            format!("{what} ({})", String::from_utf8_lossy(&self.key))
        } else if self.table == SUBSCRIPTION_KEYS.of_engine() {
            what.to_owned()
        } else {
            format!("{what} of feed {}", feed_of(&self.key))
        }
    }
}

/// Tables to whose rows others lead.
pub(in crate::store) const LED_TO: [EngineTable; 3] = [
    FEEDS.of_engine(),
    ITEMS.of_engine(),
    SUBSCRIPTIONS.of_engine(),
];

/// Tables whose rows lead to others.
pub(in crate::store) const LEADING: [EngineTable; 6] = [
    FEED_NAMES.of_engine(),
    IDS.of_engine(),
    CREATED.of_engine(),
    PUBLISHED.of_engine(),
    SUBSCRIPTION_KEYS.of_engine(),
    FEED_SUBSCRIPTIONS.of_engine(),
];

/// The rows that lead to a row of a table.
///
/// # Errors
/// `Damaged` for a value that cannot be read.
pub(in crate::store) fn leads_to(
    table: EngineTable,
    key: &[u8],
    value: &[u8],
) -> Result<Vec<Lead>, StoreError> {
    if table == FEEDS.of_engine() {
        let record: FeedRecord = decode("a feed", value)?;
        // A part goes by the name of its feed.
        let is_named = record.part_of.is_none();
        let name = Lead::new(
            FEED_NAMES.of_engine(),
            record.name.as_bytes(),
            &feed_key(record.no),
        );
        return Ok(Vec::from_iter(is_named.then_some(name)));
    }
    if table == ITEMS.of_engine() {
        let (feed, t) = (feed_of(key), stamp_of(key));
        let item = decode_item(t, value)?;
        let t = stamp_value(t);
        let listed = published_key(feed, item.listed(), item.created);
        return Ok(vec![
            Lead::new(IDS.of_engine(), &id_key(feed, item.id), &t),
            Lead::new(CREATED.of_engine(), &stamp_key(feed, item.created), &t),
            Lead::new(PUBLISHED.of_engine(), &listed, &t),
        ]);
    }
    if table == SUBSCRIPTIONS.of_engine() {
        let held: Subscription = decode("a subscription", value)?;
        let topic = topic_key(&held.topic, held.target.address());
        let no = subscription_key(held.no);
        let of_feed = feed_subscription_key(held.feed(), held.no);
        return Ok(vec![
            Lead::new(SUBSCRIPTION_KEYS.of_engine(), &topic, &no),
            Lead::new(FEED_SUBSCRIPTIONS.of_engine(), &of_feed, &[]),
        ]);
    }
    Ok(Vec::new())
}

/// The table and key to which a row of one of the [`LEADING`] tables leads.
pub(in crate::store) fn led_to(
    table: EngineTable,
    key: &[u8],
    value: &[u8],
) -> (EngineTable, Vec<u8>) {
    if table == FEED_NAMES.of_engine() {
        (FEEDS.of_engine(), value.to_vec())
    } else if table == SUBSCRIPTION_KEYS.of_engine() {
        (SUBSCRIPTIONS.of_engine(), value.to_vec())
    } else if table == FEED_SUBSCRIPTIONS.of_engine() {
        (SUBSCRIPTIONS.of_engine(), key[4..].to_vec())
    } else {
        (ITEMS.of_engine(), [&key[..4], value].concat())
    }
}

/// Holds the rows that lead to others against what they are made from, and tells each fault. What
/// cannot be read is not told here.
pub(in crate::store) fn check_leads(
    snapshot: &dyn RowReader,
    tell: &mut dyn FnMut(String),
) -> Result<(), StoreError> {
    let leading = LEADING.map(|table| (table, snapshot.open(table)));
    let mut expected = LEADING.map(|_| 0);
    for table in LED_TO {
        let rows = snapshot.open(table)?;
        for row in EngineRows::all(rows.as_ref()) {
            let EngineRow { key, value } = row?;
            let Ok(value) = value else { continue };
            for lead in leads_to(table, &key, &value).unwrap_or_default() {
                let at = LEADING.iter().position(|table| *table == lead.table);
                let Some(at) = at else { continue };
                expected[at] += 1;
                let Ok(leading) = &leading[at].1 else {
                    continue;
                };
                let Ok(found) = leading.get(&lead.key) else {
                    continue;
                };
                if found.as_ref() != Some(&lead.value) {
                    let (what, by) = (name_of(table, &key, &value), words_of(lead.table).1);
                    tell(format!("{what} is not found by its {by}"));
                }
            }
        }
    }
    for ((table, leading), expected) in leading.into_iter().zip(expected) {
        let leading = leading?;
        if leading.count()? == expected {
            continue;
        }
        for row in EngineRows::all(leading.as_ref()) {
            let EngineRow { key, value } = row?;
            let Ok(value) = value else { continue };
            let (base, at) = led_to(table, &key, &value);
            let found = snapshot.open(base)?.get(&at);
            let Ok(found) = found.map(Option::unwrap_or_default) else {
                continue;
            };
            let lead = Lead { table, key, value };
            if !leads_to(base, &at, &found).is_ok_and(|leads| leads.contains(&lead)) {
                tell(format!("{} leads to nothing", lead.words()));
            }
        }
    }
    Ok(())
}

/// The words for a row of a leading table, and for what it finds a row by.
fn words_of(table: EngineTable) -> (&'static str, &'static str) {
    match LEADING.iter().position(|leading| *leading == table) {
        Some(0) => ("a name", "name"),
        Some(1) => ("an id", "id"),
        Some(2) => ("a time of creation", "time of creation"),
        Some(3) => ("a date of publication", "date of publication"),
        Some(4) => ("a topic", "topic"),
        _ => ("a subscription", "feed"),
    }
}

/// The words for a row to which others lead.
fn name_of(table: EngineTable, key: &[u8], value: &[u8]) -> String {
    if table == ITEMS.of_engine() {
        let feed = feed_of(key);
        return match item_header(value) {
            Ok(header) => format!("item {} of feed {feed}", header.id),
            Err(_) => format!("an item of feed {feed}"),
        };
    }
    if table == FEEDS.of_engine() {
        return format!("feed {}", feed_of(key));
    }
    format!("subscription {}", subscription_of(key))
}
