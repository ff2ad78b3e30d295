//! Duties of every engine: ranges from both ends, in batches, and transactions that
//! are whole or not at all.

use crate::{
    clock::Manual,
    store::{
        StoreError,
        conformance::rig::{START, open},
        engine::{EngineTable, KeyRange, KeyWidth},
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
    Remove(EngineTable, u8),
    RemoveRange(EngineTable, u8, u8),
}

fn change() -> impl Strategy<Value = RowChange> {
    let table = || select(tables().to_vec());
    prop_oneof![
        4 => (table(), 0..KEYS, any::<u8>()).prop_map(|(table, key, value)| RowChange::Put(table, key, value)),
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
        let done = engine.write(move |writing| {
            let tx = writing.change();
            for change in &made {
                match *change {
                    RowChange::Put(table, no, value) => {
                        let mut rows = tx.open_to_write(table)?;
                        let was_there = rows.get(&key(table, no))?.is_some();
                        assert_eq!(rows.put(&key(table, no), &[value])?, was_there);
                    }
                    RowChange::Remove(table, no) => {
                        tx.open_to_write(table)?.remove(&key(table, no))?;
                    }
                    RowChange::RemoveRange(table, first, last) => tx
                        .open_to_write(table)?
                        .remove_range(&key(table, first), &key(table, last))?,
                }
            }
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
        for asked in questions {
            let expected = expected(&model, asked);
            let all = model.keys().filter(|(name, _)| *name == asked.table.name);
            let question = asked.clone();
            let told = engine.read(move |snapshot| {
                let Asked {
                    table,
                    low,
                    high,
                    is_reverse,
                    rows_max,
                } = question;
                let (low, high) = (low.map(|no| key(table, no)), high.map(|no| key(table, no)));
                let rows = snapshot.open(table)?;
                let batch = rows.range(KeyRange {
                    low: low.as_ref().map(Vec::as_slice),
                    high: high.as_ref().map(Vec::as_slice),
                    is_reverse,
                    rows_max,
                })?;
                Ok((batch, rows.count()?))
            });
            let (batch, count) = told.await.unwrap();
            assert_eq!(count, all.count() as u64);
            let told = batch
                .rows
                .into_iter()
                .map(|row| (row.key, row.value.unwrap()));
            let told: Vec<_> = told.collect();
            let wanted = expected.len().min(asked.rows_max);
            assert_eq!(told, expected[..wanted], "{asked:?}");
            assert!(batch.has_more || told.len() == expected.len(), "{asked:?}");
        }
    }
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
