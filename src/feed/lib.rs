//! The feed itself: items, stamps, positions, cursors, orders, pages and what a document changes.
//! Pure: nothing here awaits, opens anything or asks the time; `now` is an argument.

pub mod stamp;

pub mod moment;

pub mod item;

pub mod head_caps;
pub mod item_cap;
pub mod part_caps;

pub mod keep_limits;

pub mod history;

pub mod last_walk;

pub mod lineage;

pub mod legacy_document;

pub mod forgotten;

pub mod record;

pub mod group;

pub mod part;

pub mod order;

pub mod cursor;

pub mod position;

pub mod page;

pub mod view;

pub mod inheritance;

pub mod filter;

pub mod reconcile;

mod longest_rise;

pub mod absence;

pub mod different_feed;

pub mod archive;

pub mod inquiry;

pub mod observation_record;

pub mod pushed_feed;

pub mod site_page;

pub mod index_now;

pub mod opml_list;

pub mod schedule;

pub mod set_back;

pub mod mistakes;

pub mod secret;
