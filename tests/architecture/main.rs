//! The rules of ARCHITECTURE.md, held against syntax trees: which component may name which, purity,
//! circles, that each decision is where its table says, and the pages for people. Changing a table here is a design
//! change: say why.

mod tree;

mod names;

mod components;

mod purity;

mod circles;

mod decided;

mod book;

mod words;
