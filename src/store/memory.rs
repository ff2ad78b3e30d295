//! The store as plain maps: the model that every other store is tested against; nothing in it
//! outlives the process.

use super::{
    BackupReport, CatalogStore, Commit, Feeds, FoundFeeds, GroupStep, Groups, HostPause, Polls,
    Receipt, SiteStore, Snapshot, StoreCounts, StoreError, StoreFuture, Subscription,
    SubscriptionNo, Subscriptions, Upkeep, Walks, WantedGroup, Watched, Witnessed, check_namespace,
    clock_guard::ClockGuard,
    group_plan::MemberCommit,
    paging, plan,
    subscriptions::{Acknowledged, Attempts, NewSubscription, Progress},
};
use crate::{
    clock::Clock,
    feed::{
        archive::{ArchiveWalk, StagedPage, StagedWalk},
        group::{GroupRecord, Holder},
        item::{Item, ItemId, KeyHash},
        legacy_document::LegacyDocument,
        observation_record::ObservationRecord,
        page::{Page, PageQuery},
        part::WantedPart,
        reconcile::Evidence,
        record::{FeedNo, FeedRecord},
        schedule::{Pause, PollState},
        stamp::Stamp,
    },
    locks::lock,
};
use std::{
    collections::{BTreeMap, HashSet},
    ops::Bound,
    path::Path,
    sync::{Arc, Mutex},
};

mod accounts;

mod feed;

mod groups;

mod listing;

mod registry;

use accounts::MemoryAccounts;
use feed::MemoryFeed;
use groups::MemoryGroup;
use listing::MemoryListing;

/// A store in memory.
pub struct Memory {
    clock: Arc<dyn Clock>,
    state: Mutex<MemoryState>,
}

#[derive(Default)]
struct MemoryState {
    closed: bool,
    guard: ClockGuard,
    feeds: BTreeMap<FeedNo, MemoryFeed>,
    hosts: BTreeMap<String, Pause>,
    found_feeds: BTreeMap<String, FoundFeeds>,
    /// Texts of entries by name.
    registry: BTreeMap<String, String>,
    groups: BTreeMap<FeedNo, MemoryGroup>,
    subs: BTreeMap<SubscriptionNo, (Subscription, Progress)>,
    accounts: MemoryAccounts,
    last_feed: u32,
    last_sub: u64,
    /// The generation of feeds that are made from now on.
    generation: Stamp,
}

impl Memory {
    /// An empty store that takes the time from this clock.
    pub fn new(clock: Arc<dyn Clock>) -> Self {
        Self {
            clock,
            state: Mutex::default(),
        }
    }

    /// Answers when polled, as every store does; the lock is never held across an await.
    fn answer<'a, T: 'a>(
        &'a self,
        work: impl FnOnce(&mut MemoryState, Stamp) -> Result<T, StoreError> + Send + 'a,
    ) -> StoreFuture<'a, T> {
        Box::pin(async move {
            let mut state = lock(&self.state);
            if state.closed {
                return Err(StoreError::Closed);
            }
            work(&mut state, Stamp::from_micros(self.clock.now_us()))
        })
    }
}

impl CatalogStore for Memory {
    fn register_all(&self, feeds: Vec<(String, String)>) -> StoreFuture<'_, Vec<FeedRecord>> {
        self.answer(move |state, now| {
            for (name, namespace) in &feeds {
                if let Some(feed) = state.named(name) {
                    check_namespace(&feed.record, namespace)?;
                }
            }
            feeds
                .iter()
                .map(|(name, namespace)| state.register(name, namespace, now))
                .collect()
        })
    }

    fn feed_named<'a>(&'a self, name: &'a str) -> StoreFuture<'a, Option<FeedRecord>> {
        self.answer(move |state, _| Ok(state.named(name).map(|feed| feed.record.clone())))
    }

    fn feeds(&self, after: Option<FeedNo>, max: usize) -> StoreFuture<'_, Vec<FeedRecord>> {
        self.answer(move |state, _| {
            let feeds = state.feeds.range(following(after)).take(max);
            Ok(feeds.map(|(_, feed)| feed.record.clone()).collect())
        })
    }

    fn feed_names(
        &self,
        after: Option<String>,
        max: usize,
    ) -> StoreFuture<'_, Vec<(String, FeedNo)>> {
        self.answer(move |state, _| {
            let names = state
                .named_feeds()
                .map(|feed| (feed.record.name.clone(), feed.record.no));
            let mut names: Vec<_> = names
                .filter(|(name, _)| after.as_ref() < Some(name))
                .collect();
            names.sort();
            names.truncate(max);
            Ok(names)
        })
    }

    fn forget(&self, feed: FeedNo) -> StoreFuture<'_, bool> {
        self.answer(move |state, now| {
            let last_t = state.feeds.values().map(|feed| feed.record.last_t).max();
            let was_there = state.forget(feed, now)?;
            if was_there {
                let last = last_t.unwrap_or_default().max(now);
                state.generation = last.max(state.generation.next());
            }
            Ok(was_there)
        })
    }

    fn counts(&self) -> StoreFuture<'_, StoreCounts> {
        self.answer(|state, _| {
            let items = state
                .feeds
                .values()
                .map(|feed| feed.held.items.len() as u64)
                .sum();
            let feeds = state.named_feeds().count() as u64;
            let subscriptions = state.subs.len() as u64;
            Ok(StoreCounts {
                feeds,
                items,
                subscriptions,
            })
        })
    }
}

impl Feeds for Memory {
    fn feed(&self, feed: FeedNo) -> StoreFuture<'_, FeedRecord> {
        self.answer(move |state, _| Ok(state.feed(feed)?.record.clone()))
    }

    fn snapshot(&self, feed: FeedNo, keys: Vec<KeyHash>) -> StoreFuture<'_, Snapshot> {
        self.answer(move |state, _| Ok(state.feed(feed)?.snapshot(&keys)))
    }

    fn witnessed(&self, feed: FeedNo, witnesses: Vec<KeyHash>) -> StoreFuture<'_, Witnessed> {
        self.answer(move |state, _| {
            let feed = state.feed(feed)?;
            let mut met = HashSet::new();
            let ids = witnesses
                .iter()
                .filter_map(|witness| feed.held.witnesses.get(witness))
                .flatten();
            let ids = ids.filter(|id| met.insert(**id));
            Ok(Witnessed {
                rev: feed.record.rev,
                items: ids.filter_map(|id| feed.item(*id)).collect(),
            })
        })
    }

    fn ids(&self, feed: FeedNo, keys: Vec<KeyHash>) -> StoreFuture<'_, Vec<(KeyHash, ItemId)>> {
        self.answer(move |state, _| {
            let feed = state.feed(feed)?;
            Ok(keys
                .into_iter()
                .filter_map(|key| Some((key, *feed.held.keys.get(&key)?)))
                .collect())
        })
    }

    fn commit(&self, commit: Commit) -> StoreFuture<'_, Receipt> {
        self.answer(move |state, now| state.commit(commit, now))
    }

    fn page(&self, query: PageQuery) -> StoreFuture<'_, Page> {
        self.answer(move |state, _| {
            let feed = state.feed(query.feed)?;
            let axis = query.order.axis;
            paging::page(MemoryListing { feed, axis }, &query, &feed.record)
        })
    }

    fn item(&self, feed: FeedNo, id: ItemId) -> StoreFuture<'_, Option<Arc<Item>>> {
        self.answer(move |state, _| Ok(state.feeds.get(&feed).and_then(|feed| feed.item(id))))
    }

    fn evidence(&self, feed: FeedNo, id: ItemId) -> StoreFuture<'_, Vec<(Stamp, Evidence)>> {
        self.answer(move |state, _| {
            let Some(feed) = state.feeds.get(&feed) else {
                return Ok(Vec::new());
            };
            let of_item = feed.evidence.range((id, Stamp::ZERO)..=(id, Stamp::MAX));
            Ok(of_item
                .map(|((_, t), evidence)| (*t, evidence.clone()))
                .collect())
        })
    }

    fn observations(&self, feed: FeedNo) -> StoreFuture<'_, Vec<(u64, ObservationRecord)>> {
        self.answer(move |state, _| {
            let Some(feed) = state.feeds.get(&feed) else {
                return Ok(Vec::new());
            };
            Ok(feed
                .observations
                .iter()
                .map(|(seq, observed)| (*seq, observed.clone()))
                .collect())
        })
    }
}

impl Polls for Memory {
    fn polls(
        &self,
        after: Option<FeedNo>,
        max: usize,
    ) -> StoreFuture<'_, Vec<(FeedNo, PollState)>> {
        self.answer(move |state, _| {
            let feeds = state.feeds.range(following(after));
            Ok(feeds
                .filter_map(|(no, feed)| Some((*no, feed.poll.clone()?)))
                .take(max)
                .collect())
        })
    }

    fn poll(&self, feed: FeedNo) -> StoreFuture<'_, Option<PollState>> {
        self.answer(move |state, _| Ok(state.feeds.get(&feed).and_then(|feed| feed.poll.clone())))
    }

    fn save_polls(
        &self,
        polls: Vec<(FeedNo, PollState)>,
        pauses: Vec<HostPause>,
    ) -> StoreFuture<'_, ()> {
        self.answer(move |state, now| state.save_polls(polls, pauses, now))
    }

    fn note_polls(&self, polls: Vec<(FeedNo, PollState)>) -> StoreFuture<'_, ()> {
        self.save_polls(polls, Vec::new())
    }

    fn host_pauses(&self, after: Option<String>, max: usize) -> StoreFuture<'_, Vec<HostPause>> {
        self.answer(move |state, _| {
            let pauses = state.hosts.range(following(after)).take(max);
            Ok(pauses.map(|(host, pause)| (host.clone(), *pause)).collect())
        })
    }
}

impl Walks for Memory {
    fn walks(
        &self,
        after: Option<FeedNo>,
        max: usize,
    ) -> StoreFuture<'_, Vec<(FeedNo, ArchiveWalk)>> {
        self.answer(move |state, _| {
            let feeds = state.feeds.range(following(after));
            Ok(feeds
                .filter_map(|(no, feed)| Some((*no, feed.walk.clone()?)))
                .take(max)
                .collect())
        })
    }

    fn walk(&self, feed: FeedNo) -> StoreFuture<'_, Option<ArchiveWalk>> {
        self.answer(move |state, _| Ok(state.feeds.get(&feed).and_then(|feed| feed.walk.clone())))
    }

    fn stage(
        &self,
        feed: FeedNo,
        walk: ArchiveWalk,
        page: Option<StagedPage>,
    ) -> StoreFuture<'_, ()> {
        self.answer(move |state, now| state.stage(feed, walk, page, now))
    }

    fn staged(&self, feed: FeedNo) -> StoreFuture<'_, StagedWalk> {
        self.answer(move |state, _| {
            let feed = state.feed(feed)?;
            Ok(StagedWalk {
                walk: feed.walk.clone(),
                pages: feed.staged.values().cloned().collect(),
            })
        })
    }
}

impl Subscriptions for Memory {
    fn subscribe(&self, new: NewSubscription) -> StoreFuture<'_, Subscription> {
        self.answer(move |state, _| state.subscribe(new))
    }

    fn change_subscription(
        &self,
        sub: Subscription,
        progress: Option<Progress>,
    ) -> StoreFuture<'_, u64> {
        self.answer(move |state, _| state.change_subscription(sub, progress))
    }

    fn subscription(
        &self,
        sub: SubscriptionNo,
    ) -> StoreFuture<'_, Option<(Subscription, Progress)>> {
        self.answer(move |state, _| Ok(state.subs.get(&sub).cloned()))
    }

    fn find_subscription<'a>(
        &'a self,
        topic: &'a str,
        address: &'a str,
    ) -> StoreFuture<'a, Option<(Subscription, Progress)>> {
        self.answer(move |state, _| Ok(state.find_subscription(topic, address).cloned()))
    }

    fn subscriptions(
        &self,
        feed: Option<FeedNo>,
        after: Option<SubscriptionNo>,
        max: usize,
    ) -> StoreFuture<'_, Vec<(Subscription, Progress)>> {
        self.answer(move |state, _| {
            let subs = state.subs.range(following(after)).map(|(_, sub)| sub);
            Ok(subs
                .filter(|(sub, _)| feed.is_none_or(|feed| sub.feed() == feed))
                .take(max)
                .cloned()
                .collect())
        })
    }

    fn count_active(&self, feed: FeedNo, now: Stamp) -> StoreFuture<'_, usize> {
        self.answer(move |state, _| {
            let due = state
                .subs
                .values()
                .filter(|(sub, _)| sub.feed() == feed && sub.is_active(now));
            Ok(due.map(|(_, progress)| progress.readers()).sum())
        })
    }

    fn end_subscription(&self, sub: SubscriptionNo) -> StoreFuture<'_, bool> {
        self.answer(move |state, _| Ok(state.subs.remove(&sub).is_some()))
    }

    fn acknowledge(&self, acknowledged: Vec<Acknowledged>) -> StoreFuture<'_, Vec<bool>> {
        self.answer(move |state, _| {
            let moved = acknowledged.into_iter().map(|acknowledged| {
                let held = state.subs.get_mut(&acknowledged.subscription);
                held.is_some_and(|(_, progress)| progress.acknowledge(acknowledged))
            });
            Ok(moved.collect())
        })
    }

    fn save_attempts(&self, attempts: Vec<(SubscriptionNo, Attempts)>) -> StoreFuture<'_, ()> {
        self.answer(move |state, _| {
            for (no, attempts) in attempts {
                state
                    .subs
                    .entry(no)
                    .and_modify(|(_, progress)| progress.attempts = attempts);
            }
            Ok(())
        })
    }
}

impl Groups for Memory {
    fn set_group(&self, group: FeedNo, wanted: WantedGroup) -> StoreFuture<'_, GroupStep> {
        self.answer(move |state, now| state.set_group(group, &wanted, now))
    }

    fn advance_group(&self, group: FeedNo, items_max: usize) -> StoreFuture<'_, GroupStep> {
        self.answer(move |state, now| state.advance_group(group, items_max, now))
    }

    fn set_parts(&self, feed: FeedNo, wanted: Vec<WantedPart>) -> StoreFuture<'_, Vec<FeedRecord>> {
        self.answer(move |state, now| state.set_parts(feed, &wanted, now))
    }

    fn group(&self, group: FeedNo) -> StoreFuture<'_, Option<GroupRecord>> {
        self.answer(move |state, _| Ok(state.groups.get(&group).map(|group| group.members.clone())))
    }

    fn holders(&self, group: FeedNo, post: ItemId) -> StoreFuture<'_, Vec<Holder>> {
        self.answer(move |state, _| {
            let post = state
                .groups
                .get(&group)
                .and_then(|group| group.posts.get(&post));
            Ok(post.map(|post| post.holders.clone()).unwrap_or_default())
        })
    }
}

impl SiteStore for Memory {
    fn keep_document(&self, feed: FeedNo, document: Arc<LegacyDocument>) -> StoreFuture<'_, ()> {
        self.answer(move |state, _| {
            let held = state.feed_mut(feed)?;
            if let Some(cut) = held.cut(document) {
                held.document = Some(cut);
            }
            Ok(())
        })
    }

    fn document(&self, feed: FeedNo) -> StoreFuture<'_, Option<LegacyDocument>> {
        self.answer(move |state, _| {
            Ok(state
                .feeds
                .get(&feed)
                .and_then(|held| held.document.as_deref().cloned()))
        })
    }

    fn keep_found_feeds<'a>(&'a self, site: &'a str, found: FoundFeeds) -> StoreFuture<'a, ()> {
        self.answer(move |state, _| {
            state.found_feeds.insert(site.to_owned(), found);
            Ok(())
        })
    }

    fn found_feeds<'a>(&'a self, site: &'a str) -> StoreFuture<'a, FoundFeeds> {
        self.answer(move |state, _| Ok(state.found_feeds.get(site).cloned().unwrap_or_default()))
    }
}

impl Watched for Memory {}

impl Upkeep for Memory {
    fn back_up<'a>(&'a self, _: &'a Path) -> StoreFuture<'a, BackupReport> {
        Box::pin(async {
            Err(StoreError::Failed(
                "a store in memory has no backups".into(),
            ))
        })
    }

    fn check(&self) -> StoreFuture<'_, ()> {
        self.answer(|state, now| state.guard.check(now))
    }

    fn accept_clock(&self) -> StoreFuture<'_, ()> {
        self.answer(|state, now| {
            state.guard.accept(now);
            Ok(())
        })
    }

    fn close(&self) -> StoreFuture<'_, ()> {
        self.answer(|state, _| {
            state.closed = true;
            Ok(())
        })
    }
}

/// The keys after this one, or all.
fn following<K>(after: Option<K>) -> (Bound<K>, Bound<K>) {
    (
        after.map_or(Bound::Unbounded, Bound::Excluded),
        Bound::Unbounded,
    )
}

impl MemoryState {
    fn feed(&self, feed: FeedNo) -> Result<&MemoryFeed, StoreError> {
        self.feeds.get(&feed).ok_or(StoreError::UnknownFeed(feed))
    }

    fn feed_mut(&mut self, feed: FeedNo) -> Result<&mut MemoryFeed, StoreError> {
        let held = self.feeds.get_mut(&feed);
        held.ok_or(StoreError::UnknownFeed(feed))
    }

    fn register(
        &mut self,
        name: &str,
        namespace: &str,
        now: Stamp,
    ) -> Result<FeedRecord, StoreError> {
        if let Some(no) = self.named(name).map(|feed| feed.record.no) {
            check_namespace(&self.feed(no)?.record, namespace)?;
            let and_parts = self
                .feeds
                .values_mut()
                .filter(|feed| feed.record.no == no || feed.record.part_of == Some(no));
            for feed in and_parts.filter(|feed| feed.record.ids.namespace != namespace) {
                feed.take_namespace(namespace, now);
            }
            return Ok(self.feed(no)?.record.clone());
        }
        let no = self.next_number();
        let record = FeedRecord::new(no, name, namespace).of_generation(self.generation);
        self.feeds.insert(no, MemoryFeed::new(record.clone()));
        Ok(record)
    }

    fn next_number(&mut self) -> FeedNo {
        self.last_feed += 1;
        FeedNo(self.last_feed)
    }

    fn named(&self, name: &str) -> Option<&MemoryFeed> {
        self.named_feeds().find(|feed| feed.record.name == name)
    }

    /// The feeds that go by their names: all but the parts of others.
    fn named_feeds(&self) -> impl Iterator<Item = &MemoryFeed> {
        self.feeds
            .values()
            .filter(|feed| feed.record.part_of.is_none())
    }

    fn forget(&mut self, feed: FeedNo, now: Stamp) -> Result<bool, StoreError> {
        self.leave_all(feed, now)?;
        self.subs.retain(|_, (sub, _)| sub.feed() != feed);
        Ok(self.feeds.remove(&feed).is_some())
    }

    fn commit(&mut self, commit: Commit, now: Stamp) -> Result<Receipt, StoreError> {
        let no = commit.basis.feed;
        let feed = self.feed(no)?;
        self.guard.check(now)?;
        let plan = plan::plan(feed.record.clone(), &commit, now, feed)?;
        let member = MemberCommit {
            planned: &plan,
            commit: &commit,
        };
        let groups = self.followers(member, now)?;
        self.forget_posts(no, &plan.forgotten);
        let mut receipt = self.feed_mut(no)?.apply(plan, commit)?;
        for rows in groups {
            receipt.groups.extend(self.write_group(rows)?);
        }
        self.guard.record(now);
        Ok(receipt)
    }

    fn save_polls(
        &mut self,
        polls: Vec<(FeedNo, PollState)>,
        hosts: Vec<HostPause>,
        now: Stamp,
    ) -> Result<(), StoreError> {
        // A number that was given once is that of a feed that was forgotten.
        if let Some((never_given, _)) = polls.iter().find(|(no, _)| no.0 > self.last_feed) {
            return Err(StoreError::UnknownFeed(*never_given));
        }
        for (no, poll) in polls {
            let held = self.feeds.get_mut(&no);
            if let Some(feed) = held
                && !feed
                    .poll
                    .as_ref()
                    .is_some_and(|held| poll.is_outdated_by(held, now))
            {
                feed.poll = Some(poll);
            }
        }
        if !hosts.is_empty() {
            self.hosts.retain(|_, pause| pause.until > now);
            self.hosts.extend(hosts);
        }
        self.guard.record(now);
        Ok(())
    }

    fn stage(
        &mut self,
        feed: FeedNo,
        walk: ArchiveWalk,
        page: Option<StagedPage>,
        now: Stamp,
    ) -> Result<(), StoreError> {
        let held = self.feed_mut(feed)?;
        held.walk = Some(walk.token());
        let page = page.map(|page| held.cut_page(page));
        held.staged.extend(page.map(|page| (page.no, page)));
        self.guard.record(now);
        Ok(())
    }

    fn find_subscription(&self, topic: &str, address: &str) -> Option<&(Subscription, Progress)> {
        self.subs
            .values()
            .find(|(sub, _)| sub.topic == topic && sub.target.address() == address)
    }

    fn subscribe(&mut self, new: NewSubscription) -> Result<Subscription, StoreError> {
        self.feed(new.view.feed)?;
        if let Some((sub, _)) = self.find_subscription(&new.topic, new.target.address()) {
            return Err(StoreError::Subscribed(sub.no));
        }
        self.last_sub += 1;
        let sub = new.numbered(SubscriptionNo(self.last_sub));
        self.subs.insert(sub.no, (sub.clone(), Progress::default()));
        Ok(sub)
    }

    fn change_subscription(
        &mut self,
        sub: Subscription,
        progress: Option<Progress>,
    ) -> Result<u64, StoreError> {
        let unknown = StoreError::UnknownSubscription(sub.no);
        let known_feed = self.feed(sub.feed()).map(drop);
        let (stored, position) = self.subs.get_mut(&sub.no).ok_or(unknown)?;
        known_feed?;
        *stored = sub.replacing(stored)?;
        if let Some(progress) = progress {
            *position = progress;
        }
        Ok(stored.rev)
    }
}
