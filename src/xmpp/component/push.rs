//! Pushes: whoever is subscribed is sent what stands behind its position, as soon as there is a
//! stream and something to send; not how a message is written, and not who may subscribe.

use super::{
    end_reason::{EndReason, Notice},
    lease::LOOK_SECS,
    notice::{self, Envelope, PushHeaders},
    plan::Plan,
    proof::Proofs,
    reached::Reached,
    shown::{ShownItem, ShownPages, Wanted},
    stream::{self, Outbox, StreamGone},
    subscribers::{Subscriber, Subscribers},
};
use crate::{
    catalog::{CatalogSnapshot, ReadGate},
    clock::SettledClock,
    feed::{
        filter::Filter,
        order::Order,
        page::Degraded,
        record::{FeedNo, Head},
        stamp::Stamp,
        view::View,
    },
    notify::Notify,
    readers::ReadError,
    store::{Store, StoreError, SubscriptionNo},
    telemetry::Metrics,
};
use futures_util::{FutureExt as _, StreamExt as _};
use std::{
    collections::HashMap,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};
use tokio::{
    sync::watch,
    time::{MissedTickBehavior, interval, sleep},
};
use tokio_util::sync::CancellationToken;
use tracing::warn;

/// Items at most that one is sent who is behind; beyond that the newest alone, by which it sees
/// that it has to read.
pub(super) const ITEMS_BEHIND_MAX: usize = 100;
/// Subscribers to whom something is written at most before their positions are noted.
const RECIPIENTS_AT_ONCE_MAX: usize = 64;
/// Seconds after a failure of the store before a feed is read again.
const OURS_SECS: u64 = 5;

/// Pushes to all subscribers.
pub(super) struct Pusher {
    pub(super) jid: String,
    pub(super) subscribers: Arc<Subscribers>,
    pub(super) pages: Arc<ShownPages>,
    pub(super) store: Arc<dyn Store>,
    pub(super) gate: ReadGate,
    pub(super) notify: Arc<Notify>,
    pub(super) proofs: Arc<Proofs>,
    /// The clock of leases.
    pub(super) settled: SettledClock,
    pub(super) metrics: Metrics,
    pub(super) outbox: watch::Receiver<Option<Outbox>>,
    /// Number of messages so far, and chance: together their ids.
    pub(super) messages: AtomicU64,
    pub(super) nonce: u64,
}

/// Subscribers who are sent the same.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Group {
    order: Order,
    filter: Filter,
    /// The cursor of the last item that was written to them.
    written: String,
    since: String,
}

/// The items that a group is sent.
struct Behind {
    items: Vec<ShownItem>,
    /// The cursor before the first of them.
    previous: String,
    total: Option<u64>,
    /// The position after them, where it moves.
    to: Option<String>,
    /// The cursor up to which nothing more is shown.
    looked: Option<String>,
    /// True where items were left out.
    has_gap: bool,
    /// The reason for which whoever is sent this begins anew.
    anew: Option<Degraded>,
    generation: Stamp,
}

/// The end of a push that did not end well.
enum PushFault {
    Gone,
    Store(StoreError),
}

impl From<StreamGone> for PushFault {
    fn from(StreamGone: StreamGone) -> Self {
        Self::Gone
    }
}

impl Pusher {
    /// Pushes until `stop`.
    pub(super) async fn run(&self, stop: &CancellationToken) {
        let mut plan = Plan::default();
        let (mut outbox, mut way) = (self.outbox.clone(), None);
        let (mut catalog, mut accounts) = (self.gate.catalog.watch(), self.gate.auth.watch());
        let mut leases = interval(Duration::from_secs(LOOK_SECS));
        leases.set_missed_tick_behavior(MissedTickBehavior::Delay);
        self.look_at(&mut plan, self.subscribers.feeds()).await;
        loop {
            tokio::select! {
                biased;
                () = stop.cancelled() => return,
                changed = outbox.changed() => {
                    if changed.is_err() {
                        return;
                    }
                    way = outbox.borrow_and_update().clone();
                    self.proofs.forget_unproved();
                    plan.due.extend(plan.readers.keys());
                    self.look_at(&mut plan, self.subscribers.feeds()).await;
                }
                Ok(()) = catalog.changed() => self.look_at(&mut plan, self.subscribers.feeds()).await,
                Ok(()) = accounts.changed() => self.look_at(&mut plan, self.subscribers.feeds()).await,
                () = self.subscribers.bell.notified() => {
                    for (subscriber, reason) in self.subscribers.take_ending() {
                        self.end(&subscriber, reason).await;
                    }
                    self.look_at(&mut plan, self.subscribers.take_new()).await;
                    self.retry(&mut plan).await;
                }
                Some(moved) = plan.moves.next() => plan.note(moved),
                _ = leases.tick() => self.keep_leases().await,
                () = self.proofs.changed() => {}
            }
            while let Some(Some(moved)) = plan.moves.next().now_or_never() {
                plan.note(moved);
            }
            let pushing = async {
                if let Some(outbox) = &way {
                    self.push_due(&mut plan, outbox).await;
                }
            };
            if stop.run_until_cancelled(pushing).await.is_none() {
                return;
            }
        }
    }

    /// Looks who reads which feed for the subscribers of some, and ends those that may read nothing
    /// or whose feed is no more.
    async fn look_at(&self, plan: &mut Plan, feeds: Vec<FeedNo>) {
        let catalog = self.gate.catalog.snapshot();
        for feed in feeds {
            for subscriber in self.subscribers.of_feed(feed) {
                match self.read_for(&catalog, &subscriber) {
                    Some(read) => plan.put(subscriber.no, read, &self.notify),
                    None => self.withdraw(plan, &catalog, &subscriber).await,
                }
            }
        }
    }

    /// The feed that is read for a subscriber now, by what its address may see (XMPP-56).
    fn read_for(&self, catalog: &CatalogSnapshot, subscriber: &Subscriber) -> Option<FeedNo> {
        let feed = catalog.feed_no(subscriber.feed)?;
        let bare = subscriber.jid.to_bare();
        let principal = self.gate.auth.accounts().by_jid(bare.as_str());
        catalog.read_by(feed, Some(&principal))
    }

    /// Ends a subscription whose feed is no more, or not for its address any more (XMPP-55).
    async fn withdraw(&self, plan: &mut Plan, catalog: &CatalogSnapshot, subscriber: &Subscriber) {
        plan.take(subscriber.no);
        let reason = match catalog.feed_no(subscriber.feed) {
            Some(_) => EndReason::NotForIt,
            None => EndReason::FeedRemoved,
        };
        self.end(subscriber, reason).await;
    }

    /// Ends a subscription once its subscriber is told, if that one is to be told. Without a stream
    /// it goes on: the reason comes again with the next.
    async fn end(&self, subscriber: &Subscriber, reason: EndReason) {
        if let Some(notice) = reason.notice()
            && self.tell(subscriber, notice).await.is_err()
        {
            return;
        }
        self.metrics.xmpp_push("ended");
        self.subscribers.end_for(subscriber, reason).await;
    }

    /// Makes due what is read for subscriptions that the operator wants tried, and asks their
    /// addresses whether they are there.
    async fn retry(&self, plan: &mut Plan) {
        for subscriber in self.subscribers.take_retried() {
            plan.due.extend(plan.read_for.get(&subscriber.no));
            self.ask(&subscriber).await;
        }
    }

    /// Sends a subscriber a message about its node, such as that its subscription is no more
    /// (XMPP-55).
    pub(super) async fn tell(
        &self,
        subscriber: &Subscriber,
        notice: Notice,
    ) -> Result<(), StreamGone> {
        let outbox = self.outbox.borrow().clone().ok_or(StreamGone)?;
        let (to, id) = (subscriber.jid.to_string(), self.message_id());
        let envelope = Envelope {
            from: &self.jid,
            to: &to,
            id: &id,
        };
        outbox.push(notice(envelope, &subscriber.node)).await
    }

    /// Asks an address whether it is there, while there is a stream. A bare one is answered for by
    /// its server.
    async fn ask(&self, subscriber: &Subscriber) {
        let Some(outbox) = self.outbox.borrow().clone() else {
            return;
        };
        if subscriber.jid.is_full() {
            let id = probe_id(subscriber.no);
            let question = stream::ping(&self.jid, subscriber.jid.as_str(), &id);
            // With the next stream everything is due again.
            let _ = outbox.answer(&question).await;
        }
    }

    /// The head of the feed that is read for a subscriber.
    pub(super) fn head_for(&self, subscriber: &Subscriber) -> Option<Head> {
        let read = self.read_for(&self.gate.catalog.snapshot(), subscriber)?;
        self.notify.head(read)
    }

    /// Ends what is over, which is told, and asks addresses whether they are there.
    async fn keep_leases(&self) {
        let clock = self.settled.look();
        let has_stream = self.outbox.borrow().is_some();
        let leases = self.subscribers.keep_leases(clock, has_stream).await;
        for subscriber in &leases.over {
            self.end(subscriber, EndReason::LeaseOver).await;
        }
        for subscriber in &leases.to_ask {
            self.ask(subscriber).await;
        }
    }

    /// Pushes what is due. Where the stream has ended meanwhile, everything is due again with the
    /// next.
    async fn push_due(&self, plan: &mut Plan, outbox: &Outbox) {
        if self.keep_proofs(outbox).await.is_err() {
            return;
        }
        while let Some(feed) = plan.due.first().copied() {
            let Some(numbers) = plan.readers.get(&feed) else {
                plan.due.remove(&feed);
                continue;
            };
            let numbers: Vec<_> = numbers.iter().copied().collect();
            match self.push_feed(feed, &numbers, outbox).await {
                Ok(()) => {
                    plan.due.remove(&feed);
                }
                Err(PushFault::Gone) => return,
                Err(PushFault::Store(error)) => {
                    warn!("Pushes over XMPP wait for the store: {error}");
                    plan.due.remove(&feed);
                    plan.moves.push(Box::pin(async move {
                        sleep(Duration::from_secs(OURS_SECS)).await;
                        (feed, None)
                    }));
                }
            }
        }
    }

    /// Pushes what a feed holds to those who read it.
    async fn push_feed(
        &self,
        feed: FeedNo,
        numbers: &[SubscriptionNo],
        outbox: &Outbox,
    ) -> Result<(), PushFault> {
        let catalog = self.gate.catalog.snapshot();
        // What comes in from here on is looked at with the next move.
        let head = self.notify.head(feed);
        let mut groups: HashMap<Group, Vec<Subscriber>> = HashMap::new();
        for subscriber in self.subscribers.those(numbers) {
            // Once more at the moment of the push (XMPP-56).
            if self.read_for(&catalog, &subscriber) != Some(feed) {
                continue;
            }
            let Some(reached) = self.proofs.written_to(&subscriber) else {
                self.settle(feed, &subscriber).await?;
                continue;
            };
            let group = Group {
                order: subscriber.order,
                filter: subscriber.filter.clone(),
                since: reached.looked.unwrap_or_else(|| reached.cursor.clone()),
                written: reached.cursor,
            };
            groups.entry(group).or_default().push(subscriber);
        }
        for (group, subscribers) in groups {
            let behind = match self.behind(feed, &group).await {
                Ok(behind) => behind,
                Err(ReadError::Store(error)) if error.is_of_one_feed() => continue,
                Err(ReadError::NotReady | ReadError::UnknownFeed | ReadError::UnknownArchive) => {
                    continue;
                }
                Err(error) => {
                    return Err(PushFault::Store(StoreError::Away(error.to_string())));
                }
            };
            let through = head.map(|head| head.last_t);
            self.send(&behind, through, &subscribers, outbox).await?;
        }
        Ok(())
    }

    /// Gives a subscription that was made before its feed was served its first position.
    async fn settle(&self, feed: FeedNo, subscriber: &Subscriber) -> Result<(), PushFault> {
        let record = self.store.feed(feed).await.map_err(PushFault::Store)?;
        let Some(first) = &record.completeness.first_cursor else {
            return Ok(());
        };
        let settled = self.subscribers.settle(subscriber.no, first).await;
        settled.map_err(PushFault::Store)
    }

    // Decides: What is pushed over XMPP, and what after an outage?
    /// The items behind the position of a group: all, or the newest alone where they are too many.
    async fn behind(&self, feed: FeedNo, group: &Group) -> Result<Behind, ReadError> {
        let view = View::all(feed, group.order).filtered(group.filter.clone());
        let mut behind = Behind {
            items: Vec::new(),
            previous: group.written.clone(),
            total: None,
            to: None,
            looked: None,
            has_gap: false,
            anew: None,
            generation: Stamp::ZERO,
        };
        let mut since = group.since.clone();
        loop {
            let wanted = Wanted::First {
                since: format!("cursor:{since}"),
                until: String::new(),
            };
            let left = ITEMS_BEHIND_MAX + 1 - behind.items.len();
            let page = self.pages.read(view.clone(), &wanted, left).await?;
            // Only the position of the group can be of another part or generation.
            let anew = page.degraded.filter(|degraded| degraded.begins_anew());
            behind.anew = behind.anew.or(anew);
            behind.generation = page.generation;
            behind.items.extend(page.items.iter().cloned());
            if behind.items.len() > ITEMS_BEHIND_MAX {
                return self.newest(view, behind).await;
            }
            behind.total = page.total;
            behind.looked.clone_from(&page.scanned);
            let is_further = page.last_cursor != since;
            if !page.more || !is_further {
                behind.to = behind.items.last().map(|last| last.cursor.clone());
                return Ok(behind);
            }
            since.clone_from(&page.last_cursor);
        }
    }

    /// The newest item alone, behind the one before it.
    async fn newest(&self, view: View, behind: Behind) -> Result<Behind, ReadError> {
        let last = |until: String| Wanted::Last { until };
        let newest = self
            .pages
            .read(view.clone(), &last(String::new()), 1)
            .await?;
        let Some(item) = newest.items.last().cloned() else {
            return Ok(behind);
        };
        let until = format!("cursor:{}", item.cursor);
        let before = self.pages.read(view, &last(until), 1).await?;
        let previous = before.items.last().map(|before| before.cursor.clone());
        Ok(Behind {
            to: Some(item.cursor.clone()),
            items: vec![item],
            previous: previous.unwrap_or_default(),
            total: newest.total,
            looked: None,
            has_gap: true,
            anew: behind.anew,
            generation: newest.generation,
        })
    }

    /// Sends a group what it is behind, and notes the place that it has reached.
    async fn send(
        &self,
        behind: &Behind,
        through: Option<Stamp>,
        subscribers: &[Subscriber],
        outbox: &Outbox,
    ) -> Result<(), PushFault> {
        let Some(to) = &behind.to else {
            // A position that begins anew stays until there is an item to say it with.
            let is_further = behind.anew.is_none();
            for subscriber in subscribers {
                self.proofs.note_look(subscriber.no, |reached| {
                    reached.through = through;
                    if is_further {
                        reached.looked.clone_from(&behind.looked);
                    }
                });
            }
            return Ok(());
        };
        let reached = Reached {
            cursor: to.clone(),
            looked: behind.looked.clone(),
            through,
        };
        for part in subscribers.chunks(RECIPIENTS_AT_ONCE_MAX) {
            for subscriber in part {
                self.write(behind, subscriber, outbox).await?;
            }
            outbox.pushes_written().await?;
            self.proofs.note_written(part, &reached);
            let sent = behind.items.len() as u64 * part.len() as u64;
            self.metrics.xmpp_pushes("written", sent);
            if behind.has_gap {
                self.metrics.xmpp_pushes("gap", part.len() as u64);
            }
            self.keep_proofs(outbox).await?;
        }
        Ok(())
    }

    /// Hands the stream what a subscriber is behind.
    async fn write(
        &self,
        behind: &Behind,
        subscriber: &Subscriber,
        outbox: &Outbox,
    ) -> Result<(), StreamGone> {
        let address = subscriber.jid.to_string();
        // Nothing that is sent follows what a reader holds who begins anew.
        let (mut anew, mut previous) = match behind.anew {
            Some(anew) => (Some(anew), ""),
            None => (None, behind.previous.as_str()),
        };
        for item in &behind.items {
            let id = self.message_id();
            let envelope = Envelope {
                from: &self.jid,
                to: &address,
                id: &id,
            };
            let headers = PushHeaders {
                total: behind.total,
                previous,
                last: &item.cursor,
                anew: anew.take(),
                generation: behind.generation,
            };
            let (node, has_payload) = (&subscriber.node, subscriber.has_payload);
            let message = notice::push(envelope, node, item, has_payload, headers);
            outbox.push(message).await?;
            previous = &item.cursor;
        }
        Ok(())
    }

    /// Keeps the positions that are proved, and asks for the next proof once it is due.
    async fn keep_proofs(&self, outbox: &Outbox) -> Result<(), StreamGone> {
        self.proofs.keep_proved().await;
        match self.proofs.next_ping() {
            Some(ping) => outbox.push(ping).await,
            None => Ok(()),
        }
    }

    /// An id that no message before had.
    fn message_id(&self) -> String {
        let count = self.messages.fetch_add(1, Ordering::Relaxed);
        format!("{:x}-{count:x}", self.nonce)
    }
}

const PROBE: &str = "probe-";

fn probe_id(no: SubscriptionNo) -> String {
    format!("{PROBE}{}", no.0)
}

/// The subscription whose address answers a question with this id.
pub(super) fn probed(id: &str) -> Option<SubscriptionNo> {
    id.strip_prefix(PROBE)?.parse().ok().map(SubscriptionNo)
}
