//! One statement with its parameters, each of a type that is named: it may be sent without being
//! prepared, so that a pooler may give each transaction another connection. Not how it is sent.

use crate::{feed::stamp::Stamp, store::StoreError};
use std::borrow::Cow;
use tokio_postgres::{
    Row,
    types::{FromSql, ToSql, Type},
};

/// A statement.
pub(in crate::store::postgres) struct SqlStatement {
    pub(in crate::store::postgres) sql: Cow<'static, str>,
    pub(in crate::store::postgres) params: Vec<SqlParam>,
}

/// A parameter of a statement.
pub(in crate::store::postgres) struct SqlParam {
    pub(in crate::store::postgres) value: Box<dyn ToSql + Sync + Send>,
    pub(in crate::store::postgres) kind: Type,
}

impl SqlStatement {
    /// A statement without parameters.
    pub(in crate::store::postgres) fn new(sql: impl Into<Cow<'static, str>>) -> Self {
        Self {
            sql: sql.into(),
            params: Vec::new(),
        }
    }

    /// The same with another parameter behind those that it has.
    #[must_use]
    pub(in crate::store::postgres) fn with(mut self, param: impl Into<SqlParam>) -> Self {
        self.params.push(param.into());
        self
    }

    /// The values of its parameters, in order.
    pub(in crate::store::postgres) fn values(&self) -> Vec<&(dyn ToSql + Sync)> {
        let values = self.params.iter();
        values
            .map(|param| &*param.value as &(dyn ToSql + Sync))
            .collect()
    }
}

impl SqlParam {
    fn new(value: impl ToSql + Sync + Send + 'static, kind: Type) -> Self {
        Self {
            value: Box::new(value),
            kind,
        }
    }
}

/// A number in a column.
pub(in crate::store::postgres) fn number_column(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

impl From<i64> for SqlParam {
    fn from(number: i64) -> Self {
        Self::new(number, Type::INT8)
    }
}

impl From<Vec<u8>> for SqlParam {
    fn from(bytes: Vec<u8>) -> Self {
        Self::new(bytes, Type::BYTEA)
    }
}

impl From<Vec<Vec<u8>>> for SqlParam {
    fn from(values: Vec<Vec<u8>>) -> Self {
        Self::new(values, Type::BYTEA_ARRAY)
    }
}

impl From<String> for SqlParam {
    fn from(text: String) -> Self {
        Self::new(text, Type::TEXT)
    }
}

impl From<&str> for SqlParam {
    fn from(text: &str) -> Self {
        Self::from(text.to_owned())
    }
}

impl From<i32> for SqlParam {
    fn from(number: i32) -> Self {
        Self::new(number, Type::INT4)
    }
}

impl From<Option<i64>> for SqlParam {
    fn from(number: Option<i64>) -> Self {
        Self::new(number, Type::INT8)
    }
}

impl From<Option<Vec<u8>>> for SqlParam {
    fn from(bytes: Option<Vec<u8>>) -> Self {
        Self::new(bytes, Type::BYTEA)
    }
}

impl From<Option<String>> for SqlParam {
    fn from(text: Option<String>) -> Self {
        Self::new(text, Type::TEXT)
    }
}

impl From<Vec<String>> for SqlParam {
    fn from(texts: Vec<String>) -> Self {
        Self::new(texts, Type::TEXT_ARRAY)
    }
}

/// A column of a row.
pub(in crate::store::postgres) fn column<'r, T: FromSql<'r>>(
    row: &'r Row,
    at: usize,
) -> Result<T, StoreError> {
    row.try_get(at).map_err(|error| {
        StoreError::Damaged(format!(
            "a row of the database has another form than it should: {error}"
        ))
    })
}

/// A stamp in a column.
pub(in crate::store::postgres) fn stamp_at(row: &Row, at: usize) -> Result<Stamp, StoreError> {
    Ok(Stamp::from_micros(number_at(row, at)?))
}

/// A number in a column.
pub(in crate::store::postgres) fn number_at(row: &Row, at: usize) -> Result<u64, StoreError> {
    let number: i64 = column(row, at)?;
    Ok(u64::try_from(number).unwrap_or(0))
}
