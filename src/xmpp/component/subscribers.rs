//! Subscriptions of addresses of XMPP, in memory and in the store: how they are made, found, renewed
//! and ended; not what is pushed to them.

use super::{
    end_reason::EndReason,
    fault::of_store,
    lease::{AddressLease, LeaseCheck, LeaseStep, lease_secs},
    node::Node,
    reached::Reached,
    stanza::Failure,
    stanza_error::StanzaError,
};
use crate::{
    clock::ClockReading,
    feed::{filter::Filter, order::Order, record::FeedNo, stamp::Stamp, view::View},
    locks::lock,
    registrable_domain::registrable_domain,
    render::Representation,
    store::{
        Store, StoreError, Subscription, SubscriptionNo, listing,
        subscriptions::{
            Intent, Lease, LeaseTerms, NewSubscription, Pending, Progress, Start, Target,
            XmppTarget,
        },
    },
};
use futures_util::TryStreamExt as _;
use jid::Jid;
use std::{
    collections::{HashMap, HashSet},
    sync::{Arc, Mutex, MutexGuard},
};
use tokio::sync::Notify as Bell;
use tracing::{info, warn};

/// Messages in a row that may come back before a subscription ends.
const BOUNCES_MAX: u32 = 20;

/// A subscription.
#[derive(Clone, Debug)]
pub(super) struct Subscriber {
    pub(super) no: SubscriptionNo,
    pub(super) jid: Jid,
    /// The feed that was asked for by name.
    pub(super) feed: FeedNo,
    pub(super) order: Order,
    pub(super) filter: Filter,
    pub(super) has_payload: bool,
    /// The node as the subscriber spelt it.
    pub(super) node: String,
    pub(super) topic: String,
    /// The place up to which the server has read everything; `None` until the feed is served.
    pub(super) taken: Option<Reached>,
    /// Its cursor as the store has it.
    pub(super) saved: Option<String>,
    pub(super) lease: AddressLease,
    /// Time at which something was last taken, since the start.
    pub(super) taken_at: Option<Stamp>,
    /// The last message that came back, and when, until it is heard of again.
    pub(super) bounced: Option<(Failure, Stamp)>,
    bounces: u32,
}

/// Bounds on subscriptions.
#[derive(Clone, Copy, Debug)]
pub(super) struct SubscriptionLimits {
    pub(super) subscriptions_max: usize,
    pub(super) per_jid_max: usize,
    pub(super) per_domain_max: usize,
}

/// All subscriptions.
pub(super) struct Subscribers {
    store: Arc<dyn Store>,
    room: SubscriptionLimits,
    table: Mutex<Table>,
    /// Rings when the table has changed.
    pub(super) bell: Bell,
}

#[derive(Default)]
struct Table {
    is_loaded: bool,
    all: HashMap<SubscriptionNo, Subscriber>,
    by_key: HashMap<Key, Option<SubscriptionNo>>,
    by_bare: HashMap<String, HashSet<SubscriptionNo>>,
    by_feed: HashMap<FeedNo, HashSet<SubscriptionNo>>,
    /// Feeds with new subscriptions.
    new_of: HashSet<FeedNo>,
    /// Subscriptions that the operator wants tried.
    retried: Vec<SubscriptionNo>,
    /// Subscriptions of addresses at each registered domain and its subdomains.
    by_domain: HashMap<String, HashSet<SubscriptionNo>>,
    /// Bare addresses that asked for something.
    seen: HashSet<String>,
    /// Subscriptions that are to end.
    ending: HashMap<SubscriptionNo, EndReason>,
    /// Time of the last look at leases while there was a stream.
    looked_at: Option<Stamp>,
}

/// Identity of a subscription: the URI of its node, and its address.
type Key = (String, String);

impl Table {
    /// The subscriptions of these numbers that are still there.
    fn those<'n>(&self, numbers: impl IntoIterator<Item = &'n SubscriptionNo>) -> Vec<Subscriber> {
        let numbers = numbers.into_iter();
        numbers.filter_map(|no| self.all.get(no).cloned()).collect()
    }

    fn insert(&mut self, subscriber: Subscriber) {
        let no = subscriber.no;
        self.by_key.insert(key_of(&subscriber), Some(no));
        let bare = subscriber.jid.to_bare().to_string();
        self.by_bare.entry(bare).or_default().insert(no);
        let domain = registrable_domain(subscriber.jid.domain().as_str());
        self.by_domain.entry(domain).or_default().insert(no);
        self.by_feed.entry(subscriber.feed).or_default().insert(no);
        self.new_of.insert(subscriber.feed);
        self.all.insert(no, subscriber);
    }

    fn remove(&mut self, no: SubscriptionNo) -> Option<Subscriber> {
        let subscriber = self.all.remove(&no)?;
        self.by_key.remove(&key_of(&subscriber));
        let bare = subscriber.jid.to_bare().to_string();
        take_out(&mut self.by_bare, &bare, no);
        let domain = registrable_domain(subscriber.jid.domain().as_str());
        take_out(&mut self.by_domain, &domain, no);
        take_out(&mut self.by_feed, &subscriber.feed, no);
        Some(subscriber)
    }
}

fn key_of(subscriber: &Subscriber) -> Key {
    (subscriber.topic.clone(), subscriber.jid.to_string())
}

fn take_out<K: std::hash::Hash + Eq>(
    index: &mut HashMap<K, HashSet<SubscriptionNo>>,
    key: &K,
    no: SubscriptionNo,
) {
    if let Some(numbers) = index.get_mut(key) {
        numbers.remove(&no);
        if numbers.is_empty() {
            index.remove(key);
        }
    }
}

/// A subscription that is asked for.
#[derive(Clone, Debug)]
pub(super) struct Wish {
    pub(super) jid: Jid,
    pub(super) feed: FeedNo,
    pub(super) node: Node,
    /// The node as it was spelt.
    pub(super) spelt: String,
    /// The URI of the node.
    pub(super) topic: String,
}

/// The place that is kept for a subscription while the store makes it.
struct ReservedSubscription<'s> {
    subscribers: &'s Subscribers,
    key: Key,
}

impl Drop for ReservedSubscription<'_> {
    fn drop(&mut self) {
        let mut table = self.subscribers.lock();
        if table.by_key.get(&self.key) == Some(&None) {
            table.by_key.remove(&self.key);
        }
    }
}

impl Subscribers {
    /// None yet.
    pub(super) fn new(store: Arc<dyn Store>, room: SubscriptionLimits) -> Self {
        Self {
            store,
            room,
            table: Mutex::default(),
            bell: Bell::new(),
        }
    }

    fn lock(&self) -> MutexGuard<'_, Table> {
        lock(&self.table)
    }

    /// Takes up what is stored. A row whose making was cut off has no lease, and ends.
    pub(super) async fn load(&self) -> Result<usize, StoreError> {
        let mut stored = listing::subscriptions(&*self.store, None);
        let (mut taken, mut cut) = (Vec::new(), Vec::new());
        while let Some((sub, progress)) = stored.try_next().await? {
            if let Target::Xmpp(target) = &sub.target {
                match of_row(&sub, target, &progress) {
                    Some(subscriber) => taken.push(subscriber),
                    None => cut.push(sub.no),
                }
            }
        }
        drop(stored);
        for no in cut {
            self.store.end_subscription(no).await?;
        }
        let count = taken.len();
        let mut table = self.lock();
        taken.into_iter().for_each(|one| table.insert(one));
        table.is_loaded = true;
        Ok(count)
    }

    // Decides: May an address have one more subscription over XMPP?
    /// Makes a subscription that begins at a cursor, or tells that it is there already (XMPP-41).
    pub(super) async fn subscribe(
        &self,
        wish: Wish,
        start: Option<String>,
        now: Stamp,
    ) -> Result<(), StanzaError> {
        let key = (wish.topic.clone(), wish.jid.to_string());
        {
            let mut table = self.lock();
            if !table.is_loaded {
                return Err(StanzaError::BUSY.saying("everfeed is starting; try again soon"));
            }
            match table.by_key.get(&key) {
                Some(Some(_)) => return Ok(()),
                Some(None) => return Err(StanzaError::BUSY.saying("it is being made already")),
                None => {}
            }
            let bare = wish.jid.to_bare().to_string();
            let of_bare = table.by_bare.get(&bare).map_or(0, HashSet::len);
            let of_domain = registrable_domain(wish.jid.domain().as_str());
            let of_domain = table.by_domain.get(&of_domain);
            let of_domain = of_domain.map_or(0, HashSet::len);
            if of_bare >= self.room.per_jid_max
                || of_domain >= self.room.per_domain_max
                || table.by_key.len() >= self.room.subscriptions_max
            {
                return Err(StanzaError::TOO_MANY_SUBSCRIPTIONS);
            }
            table.by_key.insert(key.clone(), None);
        }
        let place = ReservedSubscription {
            subscribers: self,
            key,
        };
        let made = self.make(&wish, start, now).await;
        let subscriber = made.map_err(of_store)?;
        self.lock().insert(subscriber);
        drop(place);
        self.bell.notify_one();
        Ok(())
    }

    async fn make(
        &self,
        wish: &Wish,
        start: Option<String>,
        now: Stamp,
    ) -> Result<Subscriber, StoreError> {
        let target = XmppTarget::new(wish.jid.as_str(), &wish.spelt);
        let secs = lease_secs(&wish.jid);
        let terms = LeaseTerms {
            secs,
            auto_refresh: true,
        };
        let new = NewSubscription {
            view: View::all(wish.feed, wish.node.order).filtered(wish.node.filter.clone()),
            representation: Representation::ATOM.name(),
            topic: wish.topic.clone(),
            target: Target::Xmpp(target.clone()),
            pending: Pending {
                intent: Intent::Subscribe {
                    target: Target::Xmpp(target.clone()),
                    lease: terms,
                },
                attempts: 0,
                next_try: now,
                give_up_at: now,
                start: Start::Head(start.clone()),
                principal: None,
                scanned: None,
            },
        };
        let made = match self.store.subscribe(new).await {
            // Left of one whose end could not be stored.
            Err(StoreError::Subscribed(no)) => match self.store.subscription(no).await? {
                Some((left, _)) => left,
                None => return Err(StoreError::UnknownSubscription(no)),
            },
            made => made?,
        };
        let sub = Subscription {
            target: Target::Xmpp(target.clone()),
            lease: Some(Lease {
                until: now.plus_secs(secs),
                terms,
            }),
            pending: None,
            ..made
        };
        let progress = Progress {
            acked: start,
            ..Progress::default()
        };
        let kept = (sub.clone(), progress.clone());
        self.store.change_subscription(kept.0, Some(kept.1)).await?;
        of_row(&sub, &target, &progress).ok_or(StoreError::UnknownSubscription(sub.no))
    }

    /// Ends the subscription of an address to a node. True when there was one.
    pub(super) async fn unsubscribe(&self, topic: &str, jid: &Jid) -> Result<bool, StoreError> {
        let key = (topic.to_owned(), jid.to_string());
        let Some(no) = self.lock().by_key.get(&key).copied().flatten() else {
            return Ok(false);
        };
        self.end(no).await?;
        Ok(true)
    }

    /// Ends a subscription.
    pub(super) async fn end(&self, no: SubscriptionNo) -> Result<(), StoreError> {
        self.store.end_subscription(no).await?;
        self.lock().remove(no);
        Ok(())
    }

    /// Forgets a subscription that the store does not have any more.
    pub(super) fn forget(&self, no: SubscriptionNo) {
        self.lock().remove(no);
    }

    /// The subscriptions of a bare address and of its resources, in the order of their making.
    pub(super) fn of_bare(&self, bare: &str) -> Vec<Subscriber> {
        let table = self.lock();
        let mut found = table.those(table.by_bare.get(bare).into_iter().flatten());
        found.sort_by_key(|subscriber| subscriber.no);
        found
    }

    /// The subscriptions of addresses at a domain, without those at its subdomains.
    pub(super) fn of_domain(&self, domain: &str) -> Vec<SubscriptionNo> {
        let table = self.lock();
        let owned = table.by_domain.get(&registrable_domain(domain));
        let is_there = |no: &&SubscriptionNo| {
            let subscriber = table.all.get(no);
            subscriber.is_some_and(|subscriber| subscriber.jid.domain().as_str() == domain)
        };
        owned
            .into_iter()
            .flatten()
            .filter(is_there)
            .copied()
            .collect()
    }

    /// Forgets what came back from an address, and notes that it is to be tried. False when there is
    /// no such subscription.
    pub(super) fn retry(&self, no: SubscriptionNo) -> bool {
        let mut table = self.lock();
        let Some(subscriber) = table.all.get_mut(&no) else {
            return false;
        };
        (subscriber.bounces, subscriber.bounced) = (0, None);
        table.retried.push(no);
        drop(table);
        self.bell.notify_one();
        true
    }

    /// The subscriptions that the operator wants tried, since the last call.
    pub(super) fn take_retried(&self) -> Vec<Subscriber> {
        let mut table = self.lock();
        let retried = std::mem::take(&mut table.retried);
        table.those(&retried)
    }

    /// The number of subscriptions to a node.
    pub(super) fn count_of(&self, feed: FeedNo, topic: &str) -> usize {
        let table = self.lock();
        let numbers = table.by_feed.get(&feed).into_iter().flatten();
        let of_topic = numbers.filter_map(|no| table.all.get(no));
        of_topic
            .filter(|subscriber| subscriber.topic == topic)
            .count()
    }

    /// The number of subscriptions of each feed that has any.
    pub(super) fn counts(&self) -> HashMap<FeedNo, usize> {
        let table = self.lock();
        let counts = table.by_feed.iter();
        counts
            .map(|(feed, numbers)| (*feed, numbers.len()))
            .collect()
    }

    /// The feeds that have any.
    pub(super) fn feeds(&self) -> Vec<FeedNo> {
        self.lock().by_feed.keys().copied().collect()
    }

    /// The feeds with new subscriptions since the last call.
    pub(super) fn take_new(&self) -> Vec<FeedNo> {
        std::mem::take(&mut self.lock().new_of)
            .into_iter()
            .collect()
    }

    /// The subscriptions of a feed, by number.
    pub(super) fn of_feed(&self, feed: FeedNo) -> Vec<Subscriber> {
        let table = self.lock();
        let mut found = table.those(table.by_feed.get(&feed).into_iter().flatten());
        found.sort_by_key(|subscriber| subscriber.no);
        found
    }

    /// The subscriptions of these numbers that are still there.
    pub(super) fn those(&self, numbers: &[SubscriptionNo]) -> Vec<Subscriber> {
        self.lock().those(numbers)
    }

    /// Changes a subscription in memory.
    pub(super) fn change(&self, no: SubscriptionNo, change: impl FnOnce(&mut Subscriber)) {
        if let Some(subscriber) = self.lock().all.get_mut(&no) {
            change(subscriber);
        }
    }

    /// Notes that an address asked for something: it is there.
    pub(super) fn note_seen(&self, bare: &str) {
        let mut table = self.lock();
        if table.by_bare.contains_key(bare) {
            table.seen.insert(bare.to_owned());
        }
    }

    // Decides: When does a message that came back end a subscription?
    /// Notes that a message to an address came back (XMPP-59).
    pub(super) fn note_bounce(&self, from: &Jid, failure: &Failure, now: Stamp) {
        let conditions = [
            "item-not-found",
            "gone",
            "jid-malformed",
            "remote-server-not-found",
        ];
        let is_final = failure.kind == "cancel" && conditions.contains(&failure.condition.as_str());
        let mut table = self.lock();
        let Table {
            all,
            by_bare,
            ending,
            ..
        } = &mut *table;
        let numbers = by_bare.get(from.to_bare().as_str()).into_iter().flatten();
        for no in numbers {
            let Some(subscriber) = all.get_mut(no).filter(|it| it.jid == *from) else {
                continue;
            };
            subscriber.bounces += 1;
            subscriber.bounced = Some((failure.clone(), now));
            if is_final {
                ending.entry(*no).or_insert(EndReason::NoAddress);
            } else if subscriber.bounces >= BOUNCES_MAX {
                ending.entry(*no).or_insert(EndReason::TooManyBounces);
            }
        }
        drop(table);
        self.bell.notify_one();
    }

    /// Notes the answer of an address that was asked if it is there.
    pub(super) fn note_probe(&self, no: SubscriptionNo, from: &Jid, error: Option<&Failure>) {
        let is_gone = error.is_some_and(|failure| {
            failure.kind == "cancel" && failure.condition == "service-unavailable"
        });
        let is_unsure = error.is_some_and(|failure| failure.kind == "wait");
        let mut table = self.lock();
        let Some(subscriber) = table.all.get(&no).filter(|it| it.jid == *from) else {
            return;
        };
        let address = subscriber.jid.to_string();
        if is_gone {
            table.ending.entry(no).or_insert(EndReason::NotThere);
        } else if !is_unsure {
            table.seen.insert(address);
        }
        drop(table);
        self.bell.notify_one();
    }

    /// The subscriptions that are to end, each with the reason.
    pub(super) fn take_ending(&self) -> Vec<(Subscriber, EndReason)> {
        let mut table = self.lock();
        let ending = std::mem::take(&mut table.ending);
        let known = ending.into_iter();
        known
            .filter_map(|(no, ending)| Some((table.all.get(&no)?.clone(), ending)))
            .collect()
    }

    /// Looks at all leases: renews those of addresses that were seen since the last look, and tells
    /// which are over, and which addresses are to be asked if they are there.
    pub(super) async fn keep_leases(&self, clock: ClockReading, has_stream: bool) -> Leases {
        let now = Stamp::from_micros(clock.now_us);
        let (leases, renewed) = self.look_at_leases(clock, has_stream);
        for no in renewed {
            if let Err(error) = self.renew(no, now).await {
                warn!("The lease of an address of XMPP could not be saved: {error}");
            }
        }
        leases
    }

    fn look_at_leases(
        &self,
        clock: ClockReading,
        has_stream: bool,
    ) -> (Leases, Vec<SubscriptionNo>) {
        let mut table = self.lock();
        let look = LeaseCheck::new(clock, has_stream, table.looked_at);
        if has_stream {
            table.looked_at = Some(Stamp::from_micros(clock.now_us));
        }
        let seen = std::mem::take(&mut table.seen);
        let (mut leases, mut renewed) = (Leases::default(), Vec::new());
        for subscriber in table.all.values_mut() {
            let is_seen = if subscriber.jid.is_full() {
                seen.contains(subscriber.jid.as_str())
            } else {
                seen.contains(subscriber.jid.to_bare().as_str())
            };
            if is_seen {
                (subscriber.bounces, subscriber.bounced) = (0, None);
            }
            match subscriber.lease.look(&subscriber.jid, is_seen, &look) {
                LeaseStep::Stays => {}
                LeaseStep::Renewed => renewed.push(subscriber.no),
                LeaseStep::Asked => leases.to_ask.push(subscriber.clone()),
                LeaseStep::Over => leases.over.push(subscriber.clone()),
            }
        }
        (leases, renewed)
    }

    async fn renew(&self, no: SubscriptionNo, now: Stamp) -> Result<(), StoreError> {
        let Some((sub, _)) = self.store.subscription(no).await? else {
            self.lock().remove(no);
            return Ok(());
        };
        let lease = sub.lease.map(|lease| Lease {
            until: now.plus_secs(lease.terms.secs),
            ..lease
        });
        let sub = Subscription { lease, ..sub };
        self.store.change_subscription(sub, None).await.map(drop)
    }

    /// Gives a subscription that was made before its feed was served its first position.
    pub(super) async fn settle(&self, no: SubscriptionNo, at: &str) -> Result<(), StoreError> {
        let Some((sub, progress)) = self.store.subscription(no).await? else {
            self.lock().remove(no);
            return Ok(());
        };
        let progress = Progress {
            acked: Some(at.to_owned()),
            ..progress
        };
        self.store.change_subscription(sub, Some(progress)).await?;
        self.change(no, |subscriber| {
            subscriber.taken = Some(Reached::at(at.to_owned()));
            subscriber.saved = Some(at.to_owned());
        });
        Ok(())
    }

    /// Ends a subscription for a reason, and says so in the log.
    pub(super) async fn end_for(&self, subscriber: &Subscriber, reason: EndReason) {
        let why = reason.why();
        let (node, host) = (&subscriber.node, subscriber.jid.domain());
        info!(xmpp.host = %host, "The subscription to `{node}` of an address at {host} ends: {why}");
        if let Err(error) = self.end(subscriber.no).await {
            warn!("A subscription of XMPP that has ended could not be removed: {error}");
        }
    }
}

/// Leases at one moment.
#[derive(Debug, Default)]
pub(super) struct Leases {
    pub(super) over: Vec<Subscriber>,
    pub(super) to_ask: Vec<Subscriber>,
}

/// A stored subscription; `None` for one without a lease, and for one that names nothing any more.
fn of_row(sub: &Subscription, target: &XmppTarget, progress: &Progress) -> Option<Subscriber> {
    let lease = sub.lease?;
    let taken = progress.acked.clone().map(|cursor| Reached {
        looked: progress.scanned.clone(),
        ..Reached::at(cursor)
    });
    Some(Subscriber {
        no: sub.no,
        jid: Jid::new(target.jid()).ok()?,
        feed: sub.feed(),
        order: sub.view.order,
        filter: sub.view.filter.clone(),
        has_payload: Node::parse(&target.node).ok()?.has_payload,
        node: target.node.clone(),
        topic: sub.topic.clone(),
        taken,
        saved: progress.acked.clone(),
        lease: AddressLease::until(lease.until),
        taken_at: None,
        bounced: None,
        bounces: 0,
    })
}
