//! Connections to the database, and statements in transactions; not what they are for.

pub(in crate::store::postgres) mod address;

pub(in crate::store::postgres) mod connections;

pub(in crate::store::postgres) mod fault;

pub(in crate::store::postgres) mod kept_connection;

pub(in crate::store::postgres) mod prepared;

pub(in crate::store::postgres) mod session;

pub(in crate::store::postgres) mod statement;

mod tls;
