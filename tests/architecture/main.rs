//! The rules of docs/design/architecture.md, held against syntax trees: which component may name
//! which, purity, circles, the page of decisions, the pages for people, and what watches the
//! metrics. Changing a table here is a design change: say why.

mod tree;

mod names;

mod components;

mod purity;

mod circles;

mod decided;

mod book;

mod metrics;
