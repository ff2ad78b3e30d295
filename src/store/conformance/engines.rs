//! Duties of every engine: ranges from both ends, in batches, and transactions that
//! are whole or not at all.

#[cfg(feature = "postgres")]
use super::postgres_server;
use crate::{
    clock::Manual,
    store::{
        StoreError,
        conformance::rig::{START, open},
        engine::{EngineTable, KeyRange, KeyWidth, NamedRows, RowLock, RowReader, WhichRows},
        memory::Memory,
        rows::{
            Engine,
            tables::{FEEDS, ITEMS, REGISTRY},
        },
    },
};
use proptest::{collection::vec, prelude::*, sample::select};
use std::{collections::BTreeMap, ops::Bound, sync::Arc};

/// Keys of a table that are in use.
const KEYS: u8 = 24;

fn tables() -> [EngineTable; 3] {
    [FEEDS.of_engine(), ITEMS.of_engine(), REGISTRY.of_engine()]
}

/// A key of a table, in the order of the numbers.
fn key(table: EngineTable, no: u8) -> Vec<u8> {
    match table.key {
        KeyWidth::Bytes(width) => {
            let mut key = vec![0; width];
            key[width - 1] = no;
            key
        }
        KeyWidth::Text => format!("name {no:03}").into_bytes(),
    }
}

/// A change of a row, or of many.
#[derive(Clone, Debug)]
enum RowChange {
    Put(EngineTable, u8, u8),
    /// Puts a value where there is none.
    Insert(EngineTable, u8, u8),
    /// Names rows, which are read and perhaps locked.
    Name(EngineTable, u8, u8, RowLock),
    Remove(EngineTable, u8),
    RemoveRange(EngineTable, u8, u8),
}

fn change() -> impl Strategy<Value = RowChange> {
    let table = || select(tables().to_vec());
    let lock = select(vec![RowLock::None, RowLock::Keep, RowLock::Change]);
    prop_oneof![
        4 => (table(), 0..KEYS, any::<u8>()).prop_map(|(table, key, value)| RowChange::Put(table, key, value)),
        2 => (table(), 0..KEYS, any::<u8>()).prop_map(|(table, key, value)| RowChange::Insert(table, key, value)),
        2 => (table(), 0..KEYS, 0..6_u8, lock)
            .prop_map(|(table, key, more, lock)| RowChange::Name(table, key, key + more, lock)),
        1 => (table(), 0..KEYS).prop_map(|(table, key)| RowChange::Remove(table, key)),
        1 => (table(), 0..KEYS, 0..6_u8)
            .prop_map(|(table, key, more)| RowChange::RemoveRange(table, key, key + more)),
    ]
}

/// Changes that are made together, and whether they stay.
type Transaction = (Vec<RowChange>, bool);

/// A range, and the part of it that is asked for.
#[derive(Clone, Debug)]
struct Asked {
    table: EngineTable,
    low: Bound<u8>,
    high: Bound<u8>,
    is_reverse: bool,
    rows_max: usize,
}

fn asked() -> impl Strategy<Value = Asked> {
    let end = || {
        prop_oneof![
            (0..KEYS).prop_map(Bound::Included),
            (0..KEYS).prop_map(Bound::Excluded),
            Just(Bound::Unbounded),
        ]
    };
    let table = select(tables().to_vec());
    (table, end(), end(), any::<bool>(), 1..8_usize).prop_map(
        |(table, low, high, is_reverse, rows_max)| Asked {
            table,
            low,
            high,
            is_reverse,
            rows_max,
        },
    )
}

/// The rows as they should be: by name of the table and number of the key.
type Model = BTreeMap<(&'static str, u8), u8>;

fn apply(model: &mut Model, change: &RowChange) {
    match *change {
        RowChange::Put(table, key, value) => drop(model.insert((table.name, key), value)),
        RowChange::Insert(table, key, value) => {
            model.entry((table.name, key)).or_insert(value);
        }
        RowChange::Name(..) => {}
        RowChange::Remove(table, key) => drop(model.remove(&(table.name, key))),
        RowChange::RemoveRange(table, first, last) => {
            model.retain(|(name, key), _| *name != table.name || !(first..=last).contains(key))
        }
    }
}

fn expected(model: &Model, asked: &Asked) -> Vec<(Vec<u8>, Vec<u8>)> {
    let is_in = |key: u8| {
        (match asked.low {
            Bound::Included(low) => low <= key,
            Bound::Excluded(low) => low < key,
            Bound::Unbounded => true,
        }) && (match asked.high {
            Bound::Included(high) => key <= high,
            Bound::Excluded(high) => key < high,
            Bound::Unbounded => true,
        })
    };
    let rows = model.iter();
    let rows = rows.filter(|((name, key), _)| *name == asked.table.name && is_in(*key));
    let mut rows: Vec<_> = rows
        .map(|((_, no), value)| (key(asked.table, *no), vec![*value]))
        .collect();
    if asked.is_reverse {
        rows.reverse();
    }
    rows
}

/// Makes the changes, and holds what is read against the model after each.
async fn holds_rows(engine: &impl Engine, transactions: &[Transaction], questions: &[Asked]) {
    let mut model = Model::new();
    for (changes, stays) in transactions {
        let (made, stays) = (changes.clone(), *stays);
        let mut seen = model.clone();
        changes.iter().for_each(|change| apply(&mut seen, change));
        let asked = questions.to_vec();
        let done = engine.write(move |writing| {
            let tx = writing.change();
            for change in &made {
                match *change {
                    RowChange::Put(table, no, value) => {
                        tx.open_to_write(table)?.put(&key(table, no), &[value])?;
                    }
                    RowChange::Insert(table, no, value) => {
                        let mut rows = tx.open_to_write(table)?;
                        // A database may learn only later that there is one.
                        if rows.get(&key(table, no))?.is_none() {
                            assert!(rows.insert(&key(table, no), &[value])?);
                        }
                    }
                    RowChange::Name(table, first, last, lock) => {
                        let keys = (first..=last).map(|no| key(table, no)).collect();
                        let range = WhichRows::Range {
                            first: key(table, first),
                            last: key(table, last),
                            is_reverse: value_is_even(first),
                            rows_max: 3,
                        };
                        let named = |which, lock| NamedRows {
                            table,
                            which,
                            via: Vec::new(),
                            lock,
                        };
                        let keys = WhichRows::Keys(keys);
                        tx.prefetch(&[
                            named(keys.clone(), lock),
                            named(keys, RowLock::None),
                            named(range, RowLock::None),
                        ])?;
                    }
                    RowChange::Remove(table, no) => {
                        tx.open_to_write(table)?.remove(&key(table, no))?;
                    }
                    RowChange::RemoveRange(table, first, last) => tx
                        .open_to_write(table)?
                        .remove_range(&key(table, first), &key(table, last))?,
                }
            }
            asked
                .iter()
                .try_for_each(|asked| answer(tx, &seen, asked))?;
            if stays {
                Ok(())
            } else {
                Err(StoreError::Failed("given up".into()))
            }
        });
        assert_eq!(done.await.is_ok(), stays);
        if stays {
            changes.iter().for_each(|change| apply(&mut model, change));
        }
        let (model, asked) = (model.clone(), questions.to_vec());
        let told = engine.read(move |snapshot| {
            asked
                .iter()
                .try_for_each(|asked| answer(snapshot, &model, asked))
        });
        told.await.unwrap();
    }
}

/// Holds the answer to a question against the model.
fn answer(source: &dyn RowReader, model: &Model, asked: &Asked) -> Result<(), StoreError> {
    let Asked {
        table,
        low,
        high,
        is_reverse,
        rows_max,
    } = *asked;
    let expected = expected(model, asked);
    let (low, high) = (low.map(|no| key(table, no)), high.map(|no| key(table, no)));
    let rows = source.open(table)?;
    let batch = rows.range(KeyRange {
        low: low.as_ref().map(Vec::as_slice),
        high: high.as_ref().map(Vec::as_slice),
        is_reverse,
        rows_max,
    })?;
    let told = batch.rows.into_iter();
    let told: Vec<_> = told.map(|row| (row.key, row.value.unwrap())).collect();
    let wanted = expected.len().min(rows_max);
    // An engine that holds some of the rows already answers with those.
    let is_part = batch.has_more && !told.is_empty() && told.len() < wanted;
    let wanted = if is_part { told.len() } else { wanted };
    assert_eq!(told, expected[..wanted], "{asked:?}");
    assert!(batch.has_more || told.len() == expected.len(), "{asked:?}");
    let all = model.keys().filter(|(name, _)| *name == table.name);
    assert_eq!(rows.count()?, all.count() as u64);
    Ok(())
}

const fn value_is_even(no: u8) -> bool {
    no.is_multiple_of(2)
}

fn runtime() -> tokio::runtime::Runtime {
    let mut runtime = tokio::runtime::Builder::new_current_thread();
    runtime.enable_all().build().unwrap()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    #[test]
    fn a_store_in_memory_holds_rows(
        transactions in vec((vec(change(), 0..12), any::<bool>()), 1..8),
        questions in vec(asked(), 1..8),
    ) {
        let memory = Memory::new(Arc::new(Manual::at(START.micros())));
        runtime().block_on(holds_rows(&memory, &transactions, &questions));
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 16, ..ProptestConfig::default() })]

    #[test]
    fn a_file_holds_rows(
        transactions in vec((vec(change(), 0..12), any::<bool>()), 1..8),
        questions in vec(asked(), 1..8),
    ) {
        let folder = tempfile::tempdir().unwrap();
        let clock = Arc::new(Manual::at(START.micros()));
        runtime().block_on(async {
            let file = open(folder.path().join("store.redb"), clock).unwrap();
            holds_rows(&file, &transactions, &questions).await;
        });
    }
}

#[cfg(feature = "postgres")]
proptest! {
    #![proptest_config(ProptestConfig { cases: 16, ..ProptestConfig::default() })]

    #[test]
    fn a_database_holds_rows(
        transactions in vec((vec(change(), 0..12), any::<bool>()), 1..8),
        questions in vec(asked(), 1..8),
    ) {
        let clock = Arc::new(Manual::at(START.micros()));
        let database = postgres_server::open(&postgres_server::fresh_database(), clock).unwrap();
        runtime().block_on(holds_rows(&database, &transactions, &questions));
    }
}
