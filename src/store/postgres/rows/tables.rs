//! Tables of rows in the database: the engine's contract in SQL. What is named is fetched in one
//! round trip; what is written goes out with the next one, and what was fetched or written is read
//! without asking. Not what a row means.

use super::{
    known::{KeySpan, TableState, after},
    named::{Chain, ranged, statement, table_name},
};
use crate::store::{
    StoreError,
    engine::{
        BATCH_BYTES_MAX, EngineRow, EngineTable, KeyRange, NamedRows, ReadTable, RowBatch, RowLock,
        RowPart, RowReader, RowWriter, WhichRows, WriteTable,
    },
    postgres::wire::{
        session::DatabaseSession,
        statement::{SqlParam, SqlStatement, column, number_at},
    },
};
use std::{
    cell::RefCell,
    collections::{BTreeMap, BTreeSet},
    mem::take,
};
use tokio_postgres::Row;

/// Bytes of rows of a table that are kept in memory after they were sent.
const KNOWN_BYTES_MAX: usize = 64 << 20;

/// The tables of a transaction.
pub(in crate::store::postgres) struct RowTables<'s> {
    session: &'s DatabaseSession,
    tables: RefCell<BTreeMap<&'static str, TableState>>,
    /// Rows that are locked, by table and key.
    locked: RefCell<BTreeMap<(&'static str, Vec<u8>), RowLock>>,
}

impl<'s> RowTables<'s> {
    /// The tables of a transaction in which nothing was done yet.
    pub(in crate::store::postgres) fn of(session: &'s DatabaseSession) -> Self {
        Self {
            session,
            tables: RefCell::default(),
            locked: RefCell::default(),
        }
    }

    fn look<T>(&self, table: EngineTable, work: impl FnOnce(&TableState) -> T) -> T {
        match self.tables.borrow().get(table.name) {
            Some(state) => work(state),
            None => work(&TableState::default()),
        }
    }

    fn change<T>(&self, table: EngineTable, work: impl FnOnce(&mut TableState) -> T) -> T {
        let mut tables = self.tables.borrow_mut();
        let state = tables.entry(table.name).or_default();
        state.is_announced = table.is_announced;
        work(state)
    }

    /// Has what was written sent with the next round trip.
    pub(in crate::store::postgres) fn flush(&self) {
        for (name, state) in &mut *self.tables.borrow_mut() {
            let of_table = |sql: &str| SqlStatement::new(sql.replace("{}", name));
            for (first, last) in take(&mut state.cleared) {
                self.session.expect_long();
                let sql = of_table("DELETE FROM rows_{} WHERE key >= $1 AND key <= $2");
                self.session.change(sql.with(first).with(last));
            }
            let (mut gone, mut written, mut new) = (Vec::new(), Rows::default(), Rows::default());
            for (key, value) in take(&mut state.changed) {
                state.sent_bytes += key.len() + value.as_ref().map_or(0, Vec::len);
                match value {
                    None => gone.push(key),
                    Some(value) if state.new.remove(&key) => new.push(key, value),
                    Some(value) => written.push(key, value),
                }
            }
            if !gone.is_empty() {
                let sql = of_table("DELETE FROM rows_{} WHERE key = ANY($1)");
                self.session.change(sql.with(gone));
            }
            let insert = "INSERT INTO rows_{} (key, value) \
                          SELECT * FROM unnest($1::bytea[], $2::bytea[])";
            if !written.keys.is_empty() {
                let sql = of_table(&format!(
                    "{insert} ON CONFLICT (key) DO UPDATE SET value = excluded.value"
                ));
                self.session.change(written.of(sql));
            }
            if !new.keys.is_empty() {
                self.session.change(new.of(of_table(insert)));
            }
            if state.sent_bytes > KNOWN_BYTES_MAX {
                // They are read from the database, if they are wanted again.
                state.known.clear();
                state.spans.clear();
                state.sent_bytes = 0;
            }
        }
    }

    /// The rows of announced tables that were written.
    pub(in crate::store::postgres) fn take_announced(&self) -> Vec<(Vec<u8>, Vec<u8>)> {
        let mut tables = self.tables.borrow_mut();
        let states = tables.values_mut();
        states
            .flat_map(|state| take(&mut state.announced))
            .collect()
    }

    /// The rows of a statement, which sees what was written.
    fn ask(&self, statement: SqlStatement) -> Result<Vec<Row>, StoreError> {
        self.flush();
        self.session.rows(statement)
    }

    /// Fetches a range.
    fn fetch(&self, table: EngineTable, range: KeyRange<'_>) -> Result<RowBatch, StoreError> {
        let mut params = Vec::new();
        let sql = ranged(
            table,
            &KeySpan::of(range),
            range.is_reverse,
            range.rows_max,
            &mut params,
        );
        let rows = self.ask(statement(sql, params))?;
        let mut bytes = 0;
        let rows: Vec<EngineRow> = rows
            .iter()
            .map(|row| {
                let value: Vec<u8> = column(row, 1)?;
                bytes += value.len();
                Ok(EngineRow {
                    key: column(row, 0)?,
                    value: Ok(value),
                })
            })
            .collect::<Result<_, StoreError>>()?;
        Ok(RowBatch {
            has_more: rows.len() == range.rows_max || bytes >= BATCH_BYTES_MAX,
            rows,
        })
    }

    /// The statements that lock rows, those of one table in one, by the order of their keys: so no two
    /// transactions wait for each other.
    fn locks(&self, named: &[NamedRows]) -> Vec<(LockedTable, SqlStatement)> {
        let mut parts: BTreeMap<(&str, RowLock), LockPart> = BTreeMap::new();
        for named in named {
            if named.lock == RowLock::None || self.are_locked(named) {
                continue;
            }
            let table = named.via.last().map_or(named.table, |via| via.table);
            let part = parts.entry((table.name, named.lock));
            let LockPart {
                selects, params, ..
            } = part.or_insert_with(|| LockPart::of(table));
            selects.push(match &named.which {
                WhichRows::Keys(keys) if named.via.is_empty() => {
                    params.push(SqlParam::from(keys.clone()));
                    format!("(SELECT unnest(${}::bytea[]))", params.len())
                }
                _ => {
                    let chain = Chain::of(named, params);
                    format!("(SELECT {} {})", chain.keys[named.via.len()], chain.from)
                }
            });
        }
        let statements = parts.into_iter().map(|((name, lock), part)| {
            let LockPart {
                table,
                selects,
                params,
            } = part;
            let strength = match lock {
                RowLock::Keep => "KEY SHARE",
                RowLock::None | RowLock::Change => "NO KEY UPDATE",
            };
            let sql = format!(
                "SELECT key FROM rows_{name} WHERE key = ANY(ARRAY({})) ORDER BY key FOR {strength}",
                selects.join(" UNION ALL ")
            );
            (LockedTable { table, lock }, statement(sql, params))
        });
        statements.collect()
    }

    fn are_locked(&self, named: &NamedRows) -> bool {
        let WhichRows::Keys(keys) = &named.which else {
            return false;
        };
        let locked = self.locked.borrow();
        let name = named.table.name;
        let holds = |key: &Vec<u8>| {
            let held = locked.get(&(name, key.clone()));
            held.is_some_and(|held| *held >= named.lock)
        };
        named.via.is_empty() && keys.iter().all(holds)
    }

    /// True when there is nothing to fetch.
    fn are_known(&self, named: &NamedRows) -> bool {
        match &named.which {
            WhichRows::Keys(keys) if keys.is_empty() => true,
            WhichRows::Keys(keys) if named.via.is_empty() => {
                let is_known = |state: &TableState| keys.iter().all(|key| state.get(key).is_some());
                self.look(named.table, is_known)
            }
            _ => false,
        }
    }

    /// Takes in the rows that were fetched for a name.
    fn learn(&self, named: &NamedRows, rows: &[Row]) -> Result<(), StoreError> {
        if let WhichRows::Keys(keys) = &named.which {
            let found: BTreeSet<&[u8]> = rows
                .iter()
                .map(|row| column(row, 0))
                .collect::<Result<_, _>>()?;
            self.change(named.table, |state| {
                let missing = keys.iter().filter(|key| !found.contains(key.as_slice()));
                missing.for_each(|key| state.learn(key.clone(), None));
            });
        }
        let mut bytes = 0;
        for row in rows {
            let value: Vec<u8> = column(row, 1)?;
            bytes += value.len();
            let key = column(row, 0)?;
            self.change(named.table, |state| state.learn(key, Some(value)));
            for (at, via) in (1..).zip(&named.via) {
                let key: Option<Vec<u8>> = column(row, at * 2)?;
                let value: Option<Vec<u8>> = column(row, at * 2 + 1)?;
                if let Some(key) = key {
                    self.change(via.table, |state| state.learn(key, value));
                }
            }
        }
        if let WhichRows::Range {
            first,
            last,
            is_reverse,
            rows_max,
        } = &named.which
        {
            let end = rows
                .last()
                .map(|row| column::<Vec<u8>>(row, 0))
                .transpose()?;
            let is_cut = rows.len() == *rows_max || bytes >= BATCH_BYTES_MAX;
            let end = end.filter(|_| is_cut);
            let (from, to) = match end {
                Some(end) if *is_reverse => (end, after(last)),
                Some(end) => (first.clone(), after(&end)),
                None => (first.clone(), after(last)),
            };
            self.change(named.table, |state| {
                state.spans.push(KeySpan { from, to: Some(to) });
            });
        }
        Ok(())
    }

    /// Notes the rows that are locked. Rows that lead to others may have come since these were
    /// locked; the transaction is done again then.
    fn note_locked(
        &self,
        named: &[NamedRows],
        answers: Vec<(LockedTable, Vec<Row>)>,
    ) -> Result<(), StoreError> {
        let mut locked = self.locked.borrow_mut();
        let mut note = |table: EngineTable, key: Vec<u8>, lock: RowLock| {
            let held = locked.entry((table.name, key)).or_insert(lock);
            *held = lock.max(*held);
        };
        for (LockedTable { table, lock }, rows) in answers {
            for row in &rows {
                note(table, column(row, 0)?, lock);
            }
        }
        for named in named {
            // One that is not there cannot come back under its number.
            if let (WhichRows::Keys(keys), []) = (&named.which, named.via.as_slice()) {
                let keys = keys.iter().filter(|_| named.lock != RowLock::None);
                keys.for_each(|key| note(named.table, key.clone(), named.lock));
            }
        }
        for named in named {
            if named.lock == RowLock::None {
                continue;
            }
            if let (WhichRows::Range { first, last, .. }, [via]) =
                (&named.which, named.via.as_slice())
            {
                let span = KeySpan {
                    from: first.clone(),
                    to: Some(after(last)),
                };
                let rows = self.look(named.table, |state| {
                    state.range(&span, false, usize::MAX).unwrap_or_default()
                });
                for EngineRow { key, value } in rows.rows {
                    let part = match via.part {
                        RowPart::KeyFrom(at) => key.get(at..).unwrap_or_default().to_vec(),
                        RowPart::Value => value?,
                    };
                    let target = [via.prefix.as_slice(), &part].concat();
                    if !locked.contains_key(&(via.table.name, target)) {
                        return Err(self
                            .session
                            .crossed("a row that leads to others came while these were locked"));
                    }
                }
            }
        }
        Ok(())
    }
}

/// The keys of a table that one statement locks, as SELECTs.
struct LockPart {
    table: EngineTable,
    selects: Vec<String>,
    params: Vec<SqlParam>,
}

impl LockPart {
    const fn of(table: EngineTable) -> Self {
        Self {
            table,
            selects: Vec::new(),
            params: Vec::new(),
        }
    }
}

/// A table of which one statement locks rows.
struct LockedTable {
    table: EngineTable,
    lock: RowLock,
}

/// Rows that are written by one statement.
#[derive(Default)]
struct Rows {
    keys: Vec<Vec<u8>>,
    values: Vec<Vec<u8>>,
}

impl Rows {
    fn push(&mut self, key: Vec<u8>, value: Vec<u8>) {
        self.keys.push(key);
        self.values.push(value);
    }

    fn of(self, statement: SqlStatement) -> SqlStatement {
        statement.with(self.keys).with(self.values)
    }
}

impl RowReader for RowTables<'_> {
    fn open(&self, table: EngineTable) -> Result<Box<dyn ReadTable + '_>, StoreError> {
        Ok(Box::new(OpenRows {
            tables: self,
            table,
        }))
    }

    fn fetches_named(&self) -> bool {
        true
    }

    fn prefetch(&self, named: &[NamedRows]) -> Result<(), StoreError> {
        self.flush();
        let locks = self.locks(named);
        if !locks.is_empty() {
            // Others may have changed rows before these were locked.
            for state in self.tables.borrow_mut().values_mut() {
                state.known.clear();
                state.spans.clear();
            }
        }
        let is_read = |named: &&NamedRows| named.lock == RowLock::None && !self.are_known(named);
        let wanted: Vec<&NamedRows> = named.iter().filter(is_read).collect();
        if locks.is_empty() && wanted.is_empty() {
            return Ok(());
        }
        let (tables, mut statements): (Vec<_>, Vec<_>) = locks.into_iter().unzip();
        statements.extend(wanted.iter().copied().map(Chain::read));
        let mut answers = self.session.ask(statements)?.into_iter();
        let locked: Vec<_> = tables.into_iter().zip(answers.by_ref()).collect();
        for (named, rows) in wanted.into_iter().zip(answers) {
            self.learn(named, &rows)?;
        }
        self.note_locked(named, locked)
    }
}

impl RowWriter for RowTables<'_> {
    fn open_to_write(&self, table: EngineTable) -> Result<Box<dyn WriteTable + '_>, StoreError> {
        Ok(Box::new(OpenRows {
            tables: self,
            table,
        }))
    }
}

/// A table that is open.
struct OpenRows<'t, 's> {
    tables: &'t RowTables<'s>,
    table: EngineTable,
}

impl ReadTable for OpenRows<'_, '_> {
    fn get(&self, key: &[u8]) -> Result<Option<Vec<u8>>, StoreError> {
        if let Some(known) = self.tables.look(self.table, |state| state.get(key)) {
            return Ok(known);
        }
        let sql = format!(
            "SELECT value FROM {} WHERE key = $1",
            table_name(self.table)
        );
        let rows = self.tables.ask(SqlStatement::new(sql).with(key.to_vec()))?;
        rows.first().map(|row| column(row, 0)).transpose()
    }

    fn range(&self, range: KeyRange<'_>) -> Result<RowBatch, StoreError> {
        let span = KeySpan::of(range);
        if span.is_empty() {
            return Ok(RowBatch::default());
        }
        let known = self.tables.look(self.table, |state| {
            state.range(&span, range.is_reverse, range.rows_max)
        });
        known.map_or_else(|| self.tables.fetch(self.table, range), Ok)
    }

    fn count(&self) -> Result<u64, StoreError> {
        let sql = format!("SELECT count(*) FROM {}", table_name(self.table));
        let rows = self.tables.ask(SqlStatement::new(sql))?;
        rows.first().map_or(Ok(0), |row| number_at(row, 0))
    }
}

impl WriteTable for OpenRows<'_, '_> {
    fn put(&mut self, key: &[u8], value: &[u8]) -> Result<(), StoreError> {
        self.tables
            .change(self.table, |state| state.put(key, value));
        Ok(())
    }

    fn insert(&mut self, key: &[u8], value: &[u8]) -> Result<bool, StoreError> {
        let table = self.table;
        Ok(self.tables.change(table, |state| state.insert(key, value)))
    }

    fn remove(&mut self, key: &[u8]) -> Result<(), StoreError> {
        self.tables.change(self.table, |state| state.remove(key));
        Ok(())
    }

    fn remove_range(&mut self, first: &[u8], last: &[u8]) -> Result<(), StoreError> {
        let table = self.table;
        self.tables
            .change(table, |state| state.remove_range(first, last));
        Ok(())
    }
}
