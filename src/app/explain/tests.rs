//! The explanation of a feed, from what a store remembers of it.

mod churn;

mod archives;

mod polling;

mod names;
