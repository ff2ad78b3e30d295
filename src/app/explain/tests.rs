//! The explanation of a feed, from what a store remembers of it.

mod churn;

mod archives;

mod polling;

pub(in crate::app) mod names;
