//! Requests to an old site, before which we stand: its feeds, its pages and its pings; not how they
//! are passed on (`proxy`).

pub(super) mod legacy;
pub(super) mod trackers;

pub mod poll_for_reader;

pub mod readers_page;

pub(super) mod private_site;
pub(super) mod site_pages;

pub(super) mod pings;

pub(super) mod index_key;

pub mod sitemap;

mod look_ahead;
