//! Writing what a commit comes to: items, keys, witnesses and evidence, and the record of the feed;
//! not what is saved beside them.

use super::{
    rows::witnesses_in,
    session::DatabaseSession,
    statement::{SqlStatement, column, number_column, stamp_at},
};
use crate::{
    feed::{
        filter::index_terms::{IndexTerm, index_terms},
        item::{Item, ItemId, KeyHash},
        moment::Moment,
        record::{FeedNo, FeedRecord},
        stamp::Stamp,
    },
    store::{
        Commit, StoreError,
        plan::{self, Moved, PlannedCommit},
        stored::{StoredKind, encode, item::decode_item},
    },
};
use std::{
    collections::{BTreeMap, HashMap, hash_map::Entry},
    fmt::Write as _,
};
use tokio_postgres::Row;

/// Items of a feed from which on its words are indexed; a shorter one is looked through.
pub(super) const INDEXED_ITEMS_MIN: u64 = if cfg!(test) { 3 } else { 2_000 };

/// Items that are taken into the index at once, when a feed grows beyond that.
const INDEXED_AT_ONCE: i64 = 200;

/// Term of the items that have too many terms: every search looks at them.
pub(super) const EVERY_SEARCH: IndexTerm = IndexTerm(0);

/// A term of a feed in the index. The numbers of terms are hashes, and one index holds all feeds.
pub(super) const fn term_column(feed: FeedNo, IndexTerm(term): IndexTerm) -> i64 {
    (((feed.0 as u64) << 32) | term as u64).cast_signed()
}

/// The terms of an item of a feed with so many items, as PostgreSQL writes a list; `None` where they
/// are not indexed.
pub(super) fn terms_column(feed: FeedNo, total: u64, item: &Item) -> Option<String> {
    if total < INDEXED_ITEMS_MIN {
        return None;
    }
    let terms = index_terms(item).unwrap_or_else(|| vec![EVERY_SEARCH]);
    let mut list = String::from("{");
    for (at, term) in terms.into_iter().enumerate() {
        let comma = if at == 0 { "" } else { "," };
        let _ = write!(list, "{comma}{}", term_column(feed, term));
    }
    list.push('}');
    Some(list)
}

/// Writes the value of a feed in a table with a row a feed.
pub(super) fn write_value(
    session: &DatabaseSession,
    sql: &'static str,
    feed: FeedNo,
    value: &impl StoredKind,
) -> Result<(), StoreError> {
    session.change(SqlStatement::new(sql).with(feed).with(encode(value)?));
    Ok(())
}

/// Asks for the items that have the witnesses of a commit.
pub(super) fn witnesses_asked(commit: &Commit) -> SqlStatement {
    let sql = "SELECT key, items FROM witnesses WHERE feed = $1 AND key = ANY($2)";
    let keys: Vec<KeyHash> = plan::witnesses(commit).map(|(key, _)| key).collect();
    SqlStatement::new(sql).with(commit.basis.feed).with(keys)
}

/// Writes the items of a commit, what leads to them, and the record of the feed. `witnessed` is the
/// answer to [`witnesses_asked`]. `total_before` is the number of items before it.
pub(super) fn write_planned(
    session: &DatabaseSession,
    commit: &Commit,
    plan: &PlannedCommit,
    witnessed: &[Row],
    total_before: u64,
) -> Result<(), StoreError> {
    let record = &plan.receipt.feed;
    write_items(session, record, plan);
    if total_before < INDEXED_ITEMS_MIN && record.items.total >= INDEXED_ITEMS_MIN {
        index_others(session, record)?;
    }
    bind_keys(session, commit);
    bind_witnesses(session, commit, witnesses_in(witnessed)?);
    write_evidence(session, record.no, plan)?;
    write_record(session, record)
}

/// Writes the record of a feed, which may be new.
pub(super) fn write_record(
    session: &DatabaseSession,
    record: &FeedRecord,
) -> Result<(), StoreError> {
    let sql = "INSERT INTO feeds (no, name, rev, last_t, total, value) VALUES ($1, $2, $3, $4, $5, $6) \
               ON CONFLICT (no) DO UPDATE SET rev = excluded.rev, last_t = excluded.last_t, \
               total = excluded.total, value = excluded.value";
    // The parts of a feed have its name, and do not go by it.
    let name = Some(record.name.clone()).filter(|_| record.part_of.is_none());
    session.note_feed(record);
    session.change(
        SqlStatement::new(sql)
            .with(record.no)
            .with(name)
            .with(number_column(record.rev))
            .with(record.last_t)
            .with(number_column(record.items.total))
            .with(encode(record)?),
    );
    Ok(())
}

fn write_items(session: &DatabaseSession, record: &FeedRecord, plan: &PlannedCommit) {
    if plan.items.is_empty() {
        return;
    }
    let moved = plan.items.values();
    let left: Vec<Stamp> = moved.filter_map(|moved| Some(moved.from?.t)).collect();
    if !left.is_empty() {
        let sql = "DELETE FROM items WHERE feed = $1 AND t = ANY($2)";
        session.change(SqlStatement::new(sql).with(record.no).with(left));
    }
    let mut by_t: Vec<&Moved> = plan.items.values().collect();
    by_t.sort_unstable_by_key(|moved| moved.item.modified);
    let items = || by_t.iter().map(|moved| &moved.item);
    let sql = "INSERT INTO items (feed, t, id, created, listed, terms, value) \
               SELECT $1, t, id, created, listed, terms::bigint[], value FROM unnest($2::bigint[], \
               $3::bytea[], $4::bigint[], $5::bigint[], $6::text[], $7::bytea[]) \
               AS of_item (t, id, created, listed, terms, value)";
    session.change(
        SqlStatement::new(sql)
            .with(record.no)
            .with(items().map(|item| item.modified).collect::<Vec<Stamp>>())
            .with(items().map(|item| item.id).collect::<Vec<ItemId>>())
            .with(items().map(|item| item.created).collect::<Vec<Stamp>>())
            .with(items().map(|item| item.listed()).collect::<Vec<Moment>>())
            .with(
                items()
                    .map(|item| terms_column(record.no, record.items.total, item))
                    .collect::<Vec<Option<String>>>(),
            )
            .with(
                by_t.iter()
                    .map(|moved| moved.encoded.clone())
                    .collect::<Vec<Vec<u8>>>(),
            ),
    );
}

/// Takes into the index what was held before the feed was long enough for one.
fn index_others(session: &DatabaseSession, record: &FeedRecord) -> Result<(), StoreError> {
    let mut after = Stamp::ZERO;
    loop {
        let sql = "SELECT t, value FROM items WHERE feed = $1 AND t > $2 AND terms IS NULL \
                   ORDER BY t LIMIT $3";
        let asked = SqlStatement::new(sql)
            .with(record.no)
            .with(after)
            .with(INDEXED_AT_ONCE);
        let rows = session.rows(asked)?;
        let Some(last) = rows.last() else {
            return Ok(());
        };
        after = stamp_at(last, 0)?;
        let (mut stamps, mut terms) = (Vec::new(), Vec::new());
        for row in &rows {
            let t = stamp_at(row, 0)?;
            let item = decode_item(t, column(row, 1)?)?;
            stamps.push(t);
            terms.push(terms_column(record.no, record.items.total, &item));
        }
        let sql = "UPDATE items SET terms = of_item.terms::bigint[] \
                   FROM unnest($2::bigint[], $3::text[]) AS of_item (t, terms) \
                   WHERE items.feed = $1 AND items.t = of_item.t";
        session.change(
            SqlStatement::new(sql)
                .with(record.no)
                .with(stamps)
                .with(terms),
        );
    }
}

/// Only unknown keys are bound: two known items are never merged.
fn bind_keys(session: &DatabaseSession, commit: &Commit) {
    let mut first = BTreeMap::new();
    for (key, id) in plan::bindings(commit) {
        first.entry(key.0).or_insert(id);
    }
    if first.is_empty() {
        return;
    }
    let sql = "INSERT INTO keys (feed, key, item) \
               SELECT $1, key, item FROM unnest($2::bytea[], $3::bytea[]) AS bound (key, item) \
               ON CONFLICT (feed, key) DO NOTHING";
    let rows = first.into_iter().map(|(key, id)| (KeyHash(key), id));
    let (keys, ids): (Vec<_>, Vec<ItemId>) = rows.unzip();
    let write = SqlStatement::new(sql).with(commit.basis.feed);
    session.change(write.with(keys).with(ids));
}

fn bind_witnesses(
    session: &DatabaseSession,
    commit: &Commit,
    mut held: HashMap<KeyHash, Vec<ItemId>>,
) {
    let mut changed = BTreeMap::new();
    for (witness, id) in plan::witnesses(commit) {
        let of_witness = match held.entry(witness) {
            Entry::Occupied(held) => held.into_mut(),
            Entry::Vacant(place) => place.insert(Vec::new()),
        };
        if let Some(more) = plan::witnessed(of_witness, id) {
            changed.insert(
                witness.0,
                more.iter().flat_map(|id| id.0).collect::<Vec<u8>>(),
            );
            *of_witness = more;
        }
    }
    if changed.is_empty() {
        return;
    }
    let sql = "INSERT INTO witnesses (feed, key, items) \
               SELECT $1, key, items FROM unnest($2::bytea[], $3::bytea[]) AS of_key (key, items) \
               ON CONFLICT (feed, key) DO UPDATE SET items = excluded.items";
    let rows = changed.into_iter().map(|(key, ids)| (KeyHash(key), ids));
    let (keys, ids): (Vec<_>, Vec<Vec<u8>>) = rows.unzip();
    let write = SqlStatement::new(sql).with(commit.basis.feed);
    session.change(write.with(keys).with(ids));
}

fn write_evidence(
    session: &DatabaseSession,
    feed: FeedNo,
    plan: &PlannedCommit,
) -> Result<(), StoreError> {
    if !plan.forgotten.is_empty() {
        let sql = "DELETE FROM evidence WHERE feed = $1 AND item = ANY($2)";
        session.change(
            SqlStatement::new(sql)
                .with(feed)
                .with(plan.forgotten.clone()),
        );
    }
    if plan.evidence.is_empty() {
        return Ok(());
    }
    let (mut ids, mut stamps, mut values) = (Vec::new(), Vec::new(), Vec::new());
    for (id, t, evidence) in &plan.evidence {
        ids.push(*id);
        stamps.push(*t);
        values.push(encode(evidence)?);
    }
    let sql = "INSERT INTO evidence (feed, item, t, value) \
               SELECT $1, item, t, value FROM unnest($2::bytea[], $3::bigint[], $4::bytea[]) \
               AS of_item (item, t, value)";
    session.change(
        SqlStatement::new(sql)
            .with(feed)
            .with(ids)
            .with(stamps)
            .with(values),
    );
    Ok(())
}
