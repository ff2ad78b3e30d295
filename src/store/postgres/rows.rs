//! The tables of the database: how rows are read and written, how tables are made, and how they are
//! copied.

pub(in crate::store::postgres) mod generations;

mod known;

pub(in crate::store::postgres) mod moves;

mod named;

pub(in crate::store::postgres) mod schema;

pub(in crate::store::postgres) mod tables;
