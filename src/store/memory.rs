//! The store as plain maps: the model that every other store is tested against; nothing in it outlives the process.

use super::{
    Answer, Commit, Receipt, Store, StoreError, Subscription, SubscriptionNo, codec, guard::ClockGuard,
    paging, plan,
};
use crate::{
    clock::Clock,
    feed::{
        archive::{ArchiveWalk, StagedPage, StagedWalk, StagingChange},
        item::{Item, ItemId, KeyHash},
        observation_record::{OBSERVATIONS_MAX, ObservationRecord},
        order::Axis,
        page::{Listing, ListingPlace, ListingRow, ListingRows, Page, PageQuery, Range},
        reconcile::{Evidence, Known, WINDOW_ENTRIES_MAX, WindowState},
        record::{FeedNo, FeedRecord},
        schedule::PollState,
        stamp::Stamp,
    },
};
use everfeed_adapters::Key;
use std::{
    collections::{BTreeMap, HashMap},
    sync::{Arc, Mutex, PoisonError},
};

/// A store in memory.
pub struct Memory {
    clock: Arc<dyn Clock>,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    closed: bool,
    guard: ClockGuard,
    feeds: BTreeMap<FeedNo, Feed>,
    hosts: BTreeMap<String, Stamp>,
    subs: BTreeMap<SubscriptionNo, Subscription>,
    last_sub: u64,
}

struct Feed {
    record: FeedRecord,
    items: BTreeMap<Stamp, Kept>,
    ids: HashMap<ItemId, Stamp>,
    created: BTreeMap<Stamp, Stamp>,
    keys: HashMap<KeyHash, ItemId>,
    evidence: BTreeMap<(ItemId, Stamp), Evidence>,
    observations: BTreeMap<u64, ObservationRecord>,
    last: WindowState,
    poll: Option<PollState>,
    walk: Option<ArchiveWalk>,
    staged: BTreeMap<u32, StagedPage>,
}

/// An item, and what it would weigh in a file.
#[derive(Clone)]
struct Kept {
    item: Arc<Item>,
    bytes: usize,
}

impl Memory {
    /// An empty store that takes the time from this clock.
    pub fn new(clock: Arc<dyn Clock>) -> Self {
        Self { clock, state: Mutex::default() }
    }

    /// Answers when polled, as every store does; the lock is never held across an await.
    fn answer<'a, T: 'a>(
        &'a self,
        work: impl FnOnce(&mut State, Stamp) -> Result<T, StoreError> + Send + 'a,
    ) -> Answer<'a, T> {
        Box::pin(async move {
            // Nothing below panics halfway through a change, so a poisoned state is still whole.
            let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
            if state.closed {
                return Err(StoreError::Closed);
            }
            work(&mut state, Stamp::from_micros(self.clock.now_us()))
        })
    }
}

impl Store for Memory {
    fn register<'a>(&'a self, name: &'a str, namespace: &'a str) -> Answer<'a, FeedRecord> {
        self.answer(move |state, _| state.register(name, namespace))
    }

    fn feeds(&self) -> Answer<'_, Vec<FeedRecord>> {
        self.answer(|state, _| Ok(state.feeds.values().map(|feed| feed.record.clone()).collect()))
    }

    fn feed(&self, feed: FeedNo) -> Answer<'_, FeedRecord> {
        self.answer(move |state, _| Ok(state.feed(feed)?.record.clone()))
    }

    fn known(&self, feed: FeedNo, keys: Vec<KeyHash>) -> Answer<'_, Known> {
        self.answer(move |state, _| Ok(state.feed(feed)?.known(&keys)))
    }

    fn commit(&self, commit: Commit) -> Answer<'_, Receipt> {
        self.answer(move |state, now| state.commit(commit, now))
    }

    fn polls(&self) -> Answer<'_, Vec<(FeedNo, PollState)>> {
        let of = |(no, feed): (&FeedNo, &Feed)| feed.poll.clone().map(|poll| (*no, poll));
        self.answer(move |state, _| Ok(state.feeds.iter().filter_map(of).collect()))
    }

    fn save_polls(&self, polls: Vec<(FeedNo, PollState)>, hosts: Vec<(String, Stamp)>) -> Answer<'_, ()> {
        self.answer(move |state, now| state.save_polls(polls, hosts, now))
    }

    fn hosts(&self) -> Answer<'_, Vec<(String, Stamp)>> {
        self.answer(|state, _| Ok(state.hosts.clone().into_iter().collect()))
    }

    fn stage(&self, feed: FeedNo, walk: ArchiveWalk, page: Option<StagedPage>) -> Answer<'_, ()> {
        self.answer(move |state, now| state.stage(feed, walk, page, now))
    }

    fn staged(&self, feed: FeedNo) -> Answer<'_, StagedWalk> {
        self.answer(move |state, _| {
            let feed = state.feed(feed)?;
            Ok(StagedWalk { walk: feed.walk.clone(), pages: feed.staged.values().cloned().collect() })
        })
    }

    fn walks(&self) -> Answer<'_, Vec<(FeedNo, ArchiveWalk)>> {
        let of = |(no, feed): (&FeedNo, &Feed)| feed.walk.clone().map(|walk| (*no, walk));
        self.answer(move |state, _| Ok(state.feeds.iter().filter_map(of).collect()))
    }

    fn page(&self, query: PageQuery) -> Answer<'_, Page> {
        self.answer(move |state, _| {
            let feed = state.feed(query.feed)?;
            paging::page(Along { feed, axis: query.order.axis }, &query, &feed.record)
        })
    }

    fn item(&self, feed: FeedNo, id: ItemId) -> Answer<'_, Option<Arc<Item>>> {
        self.answer(move |state, _| Ok(state.feeds.get(&feed).and_then(|feed| feed.item(id))))
    }

    fn evidence(&self, feed: FeedNo, id: ItemId) -> Answer<'_, Vec<(Stamp, Evidence)>> {
        self.answer(move |state, _| {
            let Some(feed) = state.feeds.get(&feed) else { return Ok(Vec::new()) };
            let of_item = feed.evidence.range((id, Stamp::ZERO)..=(id, Stamp::MAX));
            Ok(of_item.map(|((_, t), evidence)| (*t, evidence.clone())).collect())
        })
    }

    fn observations(&self, feed: FeedNo) -> Answer<'_, Vec<(u64, ObservationRecord)>> {
        self.answer(move |state, _| {
            let Some(feed) = state.feeds.get(&feed) else { return Ok(Vec::new()) };
            Ok(feed.observations.iter().map(|(seq, observed)| (*seq, observed.clone())).collect())
        })
    }

    fn put_sub(&self, sub: Subscription) -> Answer<'_, SubscriptionNo> {
        self.answer(move |state, _| state.put_sub(sub))
    }

    fn sub(&self, sub: SubscriptionNo) -> Answer<'_, Option<Subscription>> {
        self.answer(move |state, _| Ok(state.subs.get(&sub).cloned()))
    }

    fn find_sub<'a>(&'a self, topic: &'a str, callback: &'a str) -> Answer<'a, Option<Subscription>> {
        self.answer(move |state, _| Ok(state.find_sub(topic, callback).cloned()))
    }

    fn subs(&self) -> Answer<'_, Vec<Subscription>> {
        self.answer(|state, _| Ok(state.subs.values().cloned().collect()))
    }

    fn subs_of(&self, feed: FeedNo) -> Answer<'_, Vec<Subscription>> {
        self.answer(move |state, _| {
            Ok(state.subs.values().filter(|sub| sub.feed() == feed).cloned().collect())
        })
    }

    fn drop_sub(&self, sub: SubscriptionNo) -> Answer<'_, bool> {
        self.answer(move |state, _| Ok(state.subs.remove(&sub).is_some()))
    }

    fn advance(&self, sub: SubscriptionNo, from: String, to: String) -> Answer<'_, bool> {
        self.answer(move |state, _| Ok(state.subs.get_mut(&sub).is_some_and(|sub| sub.advance(&from, to))))
    }

    fn check(&self) -> Answer<'_, ()> {
        self.answer(|state, now| state.guard.check(now))
    }

    fn accept_clock(&self) -> Answer<'_, ()> {
        self.answer(|state, now| {
            state.guard.accept(now);
            Ok(())
        })
    }

    fn close(&self) -> Answer<'_, ()> {
        self.answer(|state, _| {
            state.closed = true;
            Ok(())
        })
    }
}

impl State {
    fn feed(&self, feed: FeedNo) -> Result<&Feed, StoreError> {
        self.feeds.get(&feed).ok_or(StoreError::UnknownFeed(feed))
    }

    fn register(&mut self, name: &str, namespace: &str) -> Result<FeedRecord, StoreError> {
        if let Some(feed) = self.feeds.values().find(|feed| feed.record.name == name) {
            plan::check_namespace(&feed.record, namespace)?;
            return Ok(feed.record.clone());
        }
        let no = FeedNo(self.feeds.keys().last().map_or(1, |last| last.0 + 1));
        let record = FeedRecord::new(no, name, namespace);
        self.feeds.insert(no, Feed::new(record.clone()));
        Ok(record)
    }

    fn commit(&mut self, commit: Commit, now: Stamp) -> Result<Receipt, StoreError> {
        let feed = self.feeds.get_mut(&commit.feed).ok_or(StoreError::UnknownFeed(commit.feed))?;
        self.guard.check(now)?;
        let plan = plan::plan(feed.record.clone(), &commit, now, &*feed)?;
        let receipt = feed.apply(plan, commit)?;
        self.guard.record(now);
        Ok(receipt)
    }

    fn save_polls(
        &mut self,
        polls: Vec<(FeedNo, PollState)>,
        hosts: Vec<(String, Stamp)>,
        now: Stamp,
    ) -> Result<(), StoreError> {
        polls.iter().try_for_each(|(no, _)| self.feed(*no).map(drop))?;
        for (no, poll) in polls {
            self.feeds.entry(no).and_modify(|feed| feed.poll = Some(poll));
        }
        if !hosts.is_empty() {
            self.hosts.retain(|_, until| *until > now);
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
        let held = self.feeds.get_mut(&feed).ok_or(StoreError::UnknownFeed(feed))?;
        held.walk = Some(walk.token());
        held.staged.extend(page.map(|page| (page.no, page)));
        self.guard.record(now);
        Ok(())
    }

    fn find_sub(&self, topic: &str, callback: &str) -> Option<&Subscription> {
        self.subs.values().find(|sub| sub.topic == topic && sub.callback == callback)
    }

    fn put_sub(&mut self, mut sub: Subscription) -> Result<SubscriptionNo, StoreError> {
        self.feed(sub.feed())?;
        let found = self.find_sub(&sub.topic, &sub.callback).map(|sub| sub.no);
        sub.no = match found {
            Some(no) => sub.no.replacing(no)?,
            None => {
                sub.no.is_new()?;
                self.last_sub += 1;
                SubscriptionNo(self.last_sub)
            }
        };
        let no = sub.no;
        self.subs.insert(no, sub);
        Ok(no)
    }
}

impl Feed {
    fn new(record: FeedRecord) -> Self {
        Self {
            record,
            items: BTreeMap::new(),
            ids: HashMap::new(),
            created: BTreeMap::new(),
            keys: HashMap::new(),
            evidence: BTreeMap::new(),
            observations: BTreeMap::new(),
            last: WindowState::default(),
            poll: None,
            walk: None,
            staged: BTreeMap::new(),
        }
    }

    fn item(&self, id: ItemId) -> Option<Arc<Item>> {
        let t = self.ids.get(&id)?;
        self.items.get(t).map(|kept| Arc::clone(&kept.item))
    }

    fn known(&self, keys: &[KeyHash]) -> Known {
        let behind = |key: &KeyHash| Some((*key, self.item(*self.keys.get(key)?)?));
        Known {
            rev: self.record.rev,
            id_rule: self.record.id_rule,
            window: self.last.clone(),
            items: keys.iter().filter_map(behind).collect(),
        }
    }

    fn apply(&mut self, plan: plan::PlannedCommit, commit: Commit) -> Result<Receipt, StoreError> {
        for (id, moved) in plan.items {
            let bytes = codec::encode_item(&moved.item)?.len();
            let (t, created) = (moved.item.modified, moved.item.created);
            moved.from.map(|from| self.items.remove(&from));
            self.items.insert(t, Kept { item: moved.item, bytes });
            self.ids.insert(id, t);
            self.created.insert(created, t);
        }
        for (key, id) in plan::bindings(&commit) {
            self.keys.entry(key).or_insert(id);
        }
        self.evidence.extend(plan.evidence.into_iter().map(|(id, t, evidence)| ((id, t), evidence)));
        if let Some(mut last) = commit.last {
            last.entries.truncate(WINDOW_ENTRIES_MAX);
            self.last = last;
        }
        if let Some(observed) = commit.observed {
            let seq = self.observations.keys().last().map_or(1, |last| last + 1);
            self.observations.insert(seq, observed);
            self.observations.retain(|old, _| old + OBSERVATIONS_MAX > seq);
        }
        self.poll = commit.poll.or(self.poll.take());
        match commit.archives.and_then(|archives| archives.unstage) {
            Some(StagingChange::Since(no)) => {
                self.staged = self.staged.split_off(&no);
                self.staged.values_mut().for_each(|page| page.deflated = Vec::new());
            }
            Some(StagingChange::Without(no)) => drop(self.staged.split_off(&no)),
            Some(StagingChange::Below(no)) => {
                self.staged.range_mut(..no).for_each(|(_, page)| page.deflated = Vec::new());
            }
            None => {}
        }
        self.record = plan.receipt.feed.clone();
        Ok(plan.receipt)
    }
}

impl plan::Held for Feed {
    fn item(&self, id: ItemId) -> Result<Option<Arc<Item>>, StoreError> {
        Ok(self.item(id))
    }

    fn id_at(&self, t: Stamp) -> Result<Option<ItemId>, StoreError> {
        Ok(self.items.get(&t).map(|kept| kept.item.id))
    }
}

/// A feed along one axis.
struct Along<'a> {
    feed: &'a Feed,
    axis: Axis,
}

impl Along<'_> {
    fn at(&self, stamp: Stamp) -> Option<&Kept> {
        let t = match self.axis {
            Axis::Modified => &stamp,
            Axis::Created => self.feed.created.get(&stamp)?,
        };
        self.feed.items.get(t)
    }
}

impl Listing for Along<'_> {
    type ListingRow = Kept;
    type Error = StoreError;

    fn ids_at(&self, t: Stamp) -> Result<Vec<String>, StoreError> {
        Ok(self.at(t).map(ListingRow::id).into_iter().collect())
    }

    fn place_of(&self, id: &str) -> Result<Option<ListingPlace>, StoreError> {
        let ours = id.parse().ok().and_then(|id| self.feed.item(id));
        let item = ours.or_else(|| {
            let key = KeyHash::of(&self.feed.record.namespace, &Key::Id(id.to_owned()).stripped());
            self.feed.item(*self.feed.keys.get(&key)?)
        });
        Ok(item.map(|item| match self.axis {
            Axis::Modified => ListingPlace { t: item.modified, o: 0 },
            Axis::Created => ListingPlace { t: item.created, o: 0 },
        }))
    }

    fn rows<'a>(&'a self, range: Range, reverse: bool) -> Result<ListingRows<'a, Self>, StoreError> {
        let range = paging::stamps(range);
        let row = |t: &Stamp| Some(Ok((ListingPlace { t: *t, o: 0 }, self.at(*t)?.clone())));
        let stamps: Box<dyn DoubleEndedIterator<Item = &'a Stamp>> = match self.axis {
            Axis::Modified => Box::new(self.feed.items.range(range).map(|(t, _)| t)),
            Axis::Created => Box::new(self.feed.created.range(range).map(|(c, _)| c)),
        };
        Ok(if reverse { Box::new(stamps.rev().filter_map(row)) } else { Box::new(stamps.filter_map(row)) })
    }
}

impl ListingRow for Kept {
    fn id(&self) -> String {
        self.item.id.to_string()
    }

    fn weight_bytes(&self) -> usize {
        self.bytes
    }
}

impl paging::Held for Kept {
    fn is_gone(&self) -> bool {
        self.item.is_gone()
    }

    fn into_item(self) -> Result<Arc<Item>, StoreError> {
        Ok(self.item)
    }
}
