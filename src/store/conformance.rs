//! Behaviour of every store, tested on each of them: in memory, in a file and in a database; not what
//! only one of them does.

/// Runs each of these tests on every store.
macro_rules! on_every_store {
    ($($name:ident),+ $(,)?) => {
        mod memory {
            $(#[tokio::test] async fn $name() { super::$name($crate::store::conformance::rig::Rig::memory()).await; })+
        }
        mod redb {
            $(#[tokio::test] async fn $name() { super::$name($crate::store::conformance::rig::Rig::redb()).await; })+
        }
        #[cfg(feature = "postgres")]
        mod postgres {
            $(#[tokio::test] async fn $name() { super::$name($crate::store::conformance::rig::Rig::postgres()).await; })+
        }
    };
}

pub(super) mod rig;

#[cfg(feature = "postgres")]
pub(super) mod postgres_server;

mod feeds;

mod commits;

mod groups;

mod parts;

pub(super) mod archives;

mod pages;

pub(super) mod subscriptions;

pub(super) mod accounts;

mod registry;

pub(super) mod events;

pub(super) mod pushed_feeds;

pub(super) mod index_now;

pub(super) mod opml_lists;

mod sharing;

mod properties;

mod engines;
