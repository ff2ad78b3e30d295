//! A store around another one whose calls can be tapped: counted, kept back, failed. Compiled for
//! tests only.

use super::{
    AccountStore, BackupReport, CatalogStore, Commit, EventStore, Feeds, FoundFeeds, GroupStep,
    Groups, HostPause, IndexNowStore, Nodes, OpmlStore, Polls, PushedFeeds, Receipt,
    RegistryChange, RegistryEntry, RegistryStore, SiteStore, Snapshot, Store, StoreCondition,
    StoreCounts, StoreFuture, Subscription, SubscriptionNo, Subscriptions, Upkeep, Walks,
    WantedGroup, Watched, Witnessed,
    condition::FileFigures,
    subscriptions::{Acknowledged, Attempts, NewSubscription, Progress},
};
use crate::{
    auth::{AccessToken, NewAccessToken, NewUser, TokenNo, User, UserNo},
    events::Event,
    feed::{
        archive::{ArchiveWalk, StagedPage, StagedWalk},
        group::{GroupRecord, Holder},
        index_now::IndexNow,
        item::{Item, ItemId, KeyHash},
        legacy_document::LegacyDocument,
        observation_record::ObservationRecord,
        opml_list::OpmlList,
        page::{Page, PageQuery},
        part::WantedPart,
        pushed_feed::PushedFeed,
        reconcile::Evidence,
        record::{FeedNo, FeedRecord},
        schedule::PollState,
        stamp::Stamp,
    },
};
use std::{path::Path, sync::Arc, time::Duration};

/// A store whose calls go through a tap.
pub(crate) struct Wrapped<T> {
    /// The store itself, past the tap.
    pub(crate) inner: Box<dyn Store>,
    pub(crate) tap: T,
}

/// Writes the tap, whose methods pass everything on, and the traits of a store over it.
macro_rules! tapped {
    ($a:lifetime $($of:ident { $($name:ident($($arg:ident: $kind:ty),*) -> $out:ty;)* })*) => {
        /// Looks at calls, or answers in the place of the store. A call that is not named is passed
        /// on.
        pub(crate) trait Tap: Send + Sync + 'static {
            $($(fn $name<$a>(&$a self, inner: &$a dyn Store, $($arg: $kind),*) -> StoreFuture<$a, $out> {
                inner.$name($($arg),*)
            })*)*

            fn condition(&self, inner: &dyn Store) -> StoreCondition {
                inner.condition()
            }

            fn figures(&self, inner: &dyn Store) -> FileFigures {
                inner.figures()
            }

            fn ended_uncleanly(&self, inner: &dyn Store) -> bool {
                inner.ended_uncleanly()
            }

            fn polls_gather(&self, inner: &dyn Store) -> Duration {
                inner.polls_gather()
            }

            fn nodes<$a>(&$a self, inner: &$a dyn Store) -> Option<&$a Nodes> {
                inner.nodes()
            }
        }

        impl<T: Tap> Watched for Wrapped<T> {
            fn condition(&self) -> StoreCondition {
                self.tap.condition(self.inner.as_ref())
            }

            fn figures(&self) -> FileFigures {
                self.tap.figures(self.inner.as_ref())
            }

            fn ended_uncleanly(&self) -> bool {
                self.tap.ended_uncleanly(self.inner.as_ref())
            }

            fn polls_gather(&self) -> Duration {
                self.tap.polls_gather(self.inner.as_ref())
            }

            fn nodes(&self) -> Option<&Nodes> {
                self.tap.nodes(self.inner.as_ref())
            }
        }

        $(impl<T: Tap> $of for Wrapped<T> {
            $(fn $name<$a>(&$a self, $($arg: $kind),*) -> StoreFuture<$a, $out> {
                self.tap.$name(self.inner.as_ref(), $($arg),*)
            })*
        })*
    };
}

tapped! { 'a
    CatalogStore {
        register_all(feeds: Vec<(String, String)>) -> Vec<FeedRecord>;
        feed_named(name: &'a str) -> Option<FeedRecord>;
        feeds(after: Option<FeedNo>, max: usize) -> Vec<FeedRecord>;
        feed_names(after: Option<String>, max: usize) -> Vec<(String, FeedNo)>;
        forget(feed: FeedNo) -> bool;
        counts() -> StoreCounts;
    }
    Feeds {
        feed(feed: FeedNo) -> FeedRecord;
        snapshot(feed: FeedNo, keys: Vec<KeyHash>) -> Snapshot;
        witnessed(feed: FeedNo, witnesses: Vec<KeyHash>) -> Witnessed;
        ids(feed: FeedNo, keys: Vec<KeyHash>) -> Vec<(KeyHash, ItemId)>;
        commit(commit: Commit) -> Receipt;
        page(query: PageQuery) -> Page;
        item(feed: FeedNo, id: ItemId) -> Option<Arc<Item>>;
        evidence(feed: FeedNo, id: ItemId) -> Vec<(Stamp, Evidence)>;
        observations(feed: FeedNo) -> Vec<(u64, ObservationRecord)>;
    }
    Groups {
        set_group(group: FeedNo, wanted: WantedGroup) -> GroupStep;
        advance_group(group: FeedNo, items_max: usize) -> GroupStep;
        set_parts(feed: FeedNo, wanted: Vec<WantedPart>) -> Vec<FeedRecord>;
        group(group: FeedNo) -> Option<GroupRecord>;
        holders(group: FeedNo, post: ItemId) -> Vec<Holder>;
    }
    Polls {
        polls(after: Option<FeedNo>, max: usize) -> Vec<(FeedNo, PollState)>;
        poll(feed: FeedNo) -> Option<PollState>;
        save_polls(polls: Vec<(FeedNo, PollState)>, pauses: Vec<HostPause>) -> ();
        note_polls(polls: Vec<(FeedNo, PollState)>) -> ();
        host_pauses(after: Option<String>, max: usize) -> Vec<HostPause>;
    }
    Walks {
        walks(after: Option<FeedNo>, max: usize) -> Vec<(FeedNo, ArchiveWalk)>;
        walk(feed: FeedNo) -> Option<ArchiveWalk>;
        stage(feed: FeedNo, walk: ArchiveWalk, page: Option<StagedPage>) -> ();
        staged(feed: FeedNo) -> StagedWalk;
    }
    Subscriptions {
        subscribe(new: NewSubscription) -> Subscription;
        change_subscription(subscription: Subscription, progress: Option<Progress>) -> u64;
        subscription(no: SubscriptionNo) -> Option<(Subscription, Progress)>;
        subscriptions_of(numbers: Vec<SubscriptionNo>) -> Vec<Option<(Subscription, Progress)>>;
        find_subscription(topic: &'a str, callback: &'a str) -> Option<(Subscription, Progress)>;
        subscriptions(feed: Option<FeedNo>, after: Option<SubscriptionNo>, max: usize) -> Vec<(Subscription, Progress)>;
        count_active(feed: FeedNo, now: Stamp) -> usize;
        end_subscription(no: SubscriptionNo) -> bool;
        acknowledge(acknowledged: Vec<Acknowledged>) -> Vec<bool>;
        save_attempts(attempts: Vec<(SubscriptionNo, Attempts)>) -> ();
    }
    AccountStore {
        add_user(new: NewUser) -> Option<User>;
        change_user(changed: User) -> bool;
        users(after: Option<UserNo>, max: usize) -> Vec<User>;
        remove_user(user: UserNo) -> bool;
        add_token(new: NewAccessToken) -> Option<AccessToken>;
        tokens(after: Option<TokenNo>, max: usize) -> Vec<AccessToken>;
        remove_token(token: TokenNo) -> bool;
    }
    SiteStore {
        keep_document(feed: FeedNo, document: Arc<LegacyDocument>) -> ();
        document(feed: FeedNo) -> Option<LegacyDocument>;
        keep_found_feeds(site: &'a str, found: FoundFeeds) -> ();
        found_feeds(site: &'a str) -> FoundFeeds;
    }
    RegistryStore {
        change_registry(changes: Vec<RegistryChange>) -> ();
        registry_entry(name: String) -> Option<RegistryEntry>;
        registry(after: Option<String>, max: usize) -> Vec<RegistryEntry>;
    }
    EventStore {
        keep_events(events: Vec<Event>) -> ();
        events(before: Option<Stamp>, max: usize) -> Vec<Event>;
    }
    PushedFeeds {
        keep_pushed_feed(feed: FeedNo, row: Option<PushedFeed>) -> ();
        pushed_feeds(after: Option<FeedNo>, max: usize) -> Vec<(FeedNo, PushedFeed)>;
    }
    IndexNowStore {
        keep_index_now(site: &'a str, row: Option<IndexNow>) -> ();
        index_now(site: &'a str) -> Option<IndexNow>;
    }
    OpmlStore {
        keep_opml_list(name: &'a str, row: Option<OpmlList>) -> ();
        opml_list(name: &'a str) -> Option<OpmlList>;
    }
    Upkeep {
        check() -> ();
        accept_clock() -> ();
        back_up(file: &'a Path) -> BackupReport;
        close() -> ();
    }
}
