//! Named rows and ranges as SQL; not when they are asked for.

use super::known::{KeySpan, after};
use crate::store::{
    engine::{BATCH_BYTES_MAX, EngineTable, NamedRows, RowPart, WhichRows},
    postgres::wire::statement::{SqlParam, SqlStatement},
};

/// Rows of a range above which their bytes are counted before they are sent.
const UNMEASURED_ROWS: usize = 256;

/// The name of a table in the database.
pub(in crate::store::postgres) fn table_name(table: EngineTable) -> String {
    format!("rows_{}", table.name)
}

/// A chain of named rows as SQL: the tables, and the key and the value of each.
pub(super) struct Chain {
    pub(super) from: String,
    pub(super) keys: Vec<String>,
    pub(super) values: Vec<String>,
}

impl Chain {
    pub(super) fn of(named: &NamedRows, params: &mut Vec<SqlParam>) -> Self {
        let (mut from, filter) = match &named.which {
            WhichRows::Keys(keys) => {
                params.push(SqlParam::from(keys.clone()));
                let filter = format!(" WHERE r0.key = ANY(${})", params.len());
                (format!("FROM {} r0", table_name(named.table)), filter)
            }
            WhichRows::Range {
                first,
                last,
                is_reverse,
                rows_max,
            } => {
                let span = KeySpan {
                    from: first.clone(),
                    to: Some(after(last)),
                };
                let rows = ranged(named.table, &span, *is_reverse, *rows_max, params);
                let direction = if *is_reverse { " DESC" } else { "" };
                let order = format!(" ORDER BY r0.key{direction}");
                (format!("FROM ({rows}) r0"), order)
            }
        };
        let (mut keys, mut values) = (vec!["r0.key".to_owned()], vec!["r0.value".to_owned()]);
        for (at, via) in (1..).zip(&named.via) {
            params.push(SqlParam::from(via.prefix.clone()));
            let part = match via.part {
                RowPart::KeyFrom(byte) => format!("substring({} FROM {})", keys[at - 1], byte + 1),
                RowPart::Value => values[at - 1].clone(),
            };
            let key = format!("(${}::bytea || {part})", params.len());
            from.push_str(&format!(
                " LEFT JOIN {} r{at} ON r{at}.key = {key}",
                table_name(via.table)
            ));
            keys.push(key);
            values.push(format!("r{at}.value"));
        }
        from.push_str(&filter);
        Self { from, keys, values }
    }

    pub(super) fn read(named: &NamedRows) -> SqlStatement {
        let mut params = Vec::new();
        let Self { from, keys, values } = Self::of(named, &mut params);
        let columns: Vec<String> = keys
            .iter()
            .zip(&values)
            .map(|(key, value)| format!("{key}, {value}"))
            .collect();
        statement(format!("SELECT {} {from}", columns.join(", ")), params)
    }
}

/// The rows of a range: as many as are wanted, or fewer when their values reach
/// [`BATCH_BYTES_MAX`].
pub(super) fn ranged(
    table: EngineTable,
    span: &KeySpan,
    is_reverse: bool,
    rows_max: usize,
    params: &mut Vec<SqlParam>,
) -> String {
    params.push(SqlParam::from(span.from.clone()));
    let mut filter = format!("key >= ${}", params.len());
    if let Some(to) = &span.to {
        params.push(SqlParam::from(to.clone()));
        filter.push_str(&format!(" AND key < ${}", params.len()));
    }
    params.push(SqlParam::from(i64::try_from(rows_max).unwrap_or(i64::MAX)));
    let direction = if is_reverse { " DESC" } else { "" };
    let rows = format!(
        "SELECT key, value FROM {} WHERE {filter} ORDER BY key{direction} LIMIT ${}",
        table_name(table),
        params.len()
    );
    if rows_max <= UNMEASURED_ROWS {
        return rows;
    }
    format!(
        "SELECT key, value FROM (SELECT key, value, sum(octet_length(value)) \
         OVER (ORDER BY key{direction} ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS before \
         FROM ({rows}) AS wanted) AS measured WHERE coalesce(before, 0) < {BATCH_BYTES_MAX}"
    )
}

pub(super) fn statement(sql: String, params: Vec<SqlParam>) -> SqlStatement {
    let statement = SqlStatement::new(sql);
    params.into_iter().fold(statement, SqlStatement::with)
}
