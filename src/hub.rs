//! The hub: who wants to be told of changes, and telling them. A subscription is a reader with a
//! position; there is no queue of payloads, and nothing is pushed that was not read back from the
//! store.

use crate::{
    auth::PrincipalId,
    catalog::{CatalogSnapshot, PathSpelling, ReadGate, topic_at},
    clock::{Clock, SettledClock},
    feed::{
        cursor::Toc,
        filter::Filter,
        order::Order,
        page::{Page, PageQuery},
        record::{FeedNo, Head},
        stamp::Stamp,
        view::{Deletions, View},
    },
    locks::{read, write},
    notify::Notify,
    readers::{PushMax, Readers, usual_deletions},
    render::{Representation, Site, link_header},
    secret::public_url,
    setting::{RefusedSetting, all_at_least_one},
    store::{
        Store, StoreError, Subscription, listing,
        subscriptions::{Lease, Progress, PushWishes, Target},
    },
    telemetry::Metrics,
};
use futures_util::TryStreamExt as _;
use http::HeaderValue;
use reqwest::dns::Resolve;
use serde::{Deserialize, Serialize};
use std::{
    collections::HashMap,
    sync::{Arc, RwLock},
    time::Duration,
};
use tokio::runtime::Handle;
use tokio_util::{sync::CancellationToken, task::TaskTracker};
use tracing::{info, warn};
use url::Url;

mod endpoint;
mod form;

mod admission;

mod command;
mod dispatch;
mod index;
mod next_step;
mod remembered;
mod subscription_task;

mod client;
mod process_addresses;
mod question_budget;
mod question_pace;
mod verify;

mod acknowledgements;
mod deliver;
mod push;
mod signature;

mod lease;
mod renewal;
mod retry_schedule;

mod set_back;

mod webhook;

mod callback_permits;
mod desk;
mod health;

#[cfg(test)]
mod tests;

pub use client::Callbacks;
pub use desk::{Subscriber, SubscriberPage, WantedSubscribers};
pub use index::{FailingSubscriber, SubscriptionCounts};
pub use process_addresses::{AnswersItself, HostsOfSites, ProcessAddresses};

pub use webhook::{WEBHOOKS_MAX, WebhookSettings};

use acknowledgements::Acknowledgements;
use admission::{Admission, ClientNet};
use callback_permits::CallbackPermits;
use client::CallbackClient;
use endpoint::Subject;
use index::{Applicant, FailingSubscriber as Failing, GroupKey, Index, Key, Rest, RestKind};
use next_step::{NextStep, PushStage, Times, UnderWay};
use push::Push;
use question_budget::QuestionBudget;
use remembered::Remembered;

/// `[hub]`: leases, the size of a push, and how much is done at once.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    /// The shortest lease granted, seconds. Short ones turn subscribing into a weapon against the
    /// callback.
    pub lease_min_secs: u64,
    /// The lease of those who ask for none, seconds.
    pub lease_default_secs: u64,
    /// The longest lease granted, seconds. No lease is for ever (HUB-16).
    pub lease_max_secs: u64,
    /// True to allow callbacks at loopback and private addresses, and at any port.
    pub callbacks_private: bool,
    /// Items in a push at most; the rest follows in the next.
    pub push_items_max: usize,
    /// Bytes of stored items in a push at most, though never less than one item.
    pub push_bytes_max: usize,
    /// Seconds for one push or verification: connecting, sending, and the answer.
    pub deliver_secs: u64,
    /// Subscriptions at most; one more is answered 503.
    pub subscriptions_max: usize,
    /// Subscriptions whose callbacks are at one host at most.
    pub subscriptions_per_host_max: usize,
    /// Subscriptions that one client asked for at most, counted since the start: a stored one does
    /// not tell who asked for it.
    pub subscriptions_per_client_max: usize,
    /// Subscriptions that were never verified, at most. When there are so many, those whose
    /// callback did not confirm give way, and one more is answered 503 where none of them did.
    pub unverified_max: usize,
    /// True to poll a feed soon when somebody says that it has changed (`hub.mode=publish`).
    pub publish_hints: bool,
    /// True to take listeners of rssCloud (`pleaseNotify`), and to name us as their cloud in old
    /// documents of RSS.
    pub rsscloud: bool,
    /// Requests to callbacks under way at once at most. Those without an answer after 2 s count
    /// apart, up to half as many.
    pub in_flight_max: usize,
    /// Requests to the callbacks of one host and port under way at once at most.
    pub in_flight_per_host_max: usize,
    /// Beginnings of callbacks whose `X-Hub-On-Behalf-Of` counts: URLs at and below whose paths
    /// they are. All others are one reader.
    pub on_behalf: Vec<Url>,
}

impl Default for Config {
    fn default() -> Self {
        let push = PushMax::default();
        Self {
            lease_min_secs: 300,
            lease_default_secs: 864_000,
            lease_max_secs: 2_592_000,
            callbacks_private: false,
            push_items_max: push.items,
            push_bytes_max: push.bytes,
            deliver_secs: 10,
            subscriptions_max: 20_000,
            subscriptions_per_host_max: 10_000,
            subscriptions_per_client_max: 5_000,
            unverified_max: 2_000,
            publish_hints: true,
            rsscloud: true,
            in_flight_max: 300,
            in_flight_per_host_max: 20,
            on_behalf: Vec::new(),
        }
    }
}

impl Config {
    /// The settings in force once others are reloaded: what clients, mounts and limits of requests are
    /// made from stays until the next start.
    #[must_use]
    pub fn reloaded(&self, new: &Self) -> Self {
        Self {
            callbacks_private: self.callbacks_private,
            deliver_secs: self.deliver_secs,
            rsscloud: self.rsscloud,
            in_flight_max: self.in_flight_max,
            in_flight_per_host_max: self.in_flight_per_host_max,
            ..new.clone()
        }
    }

    /// Refuses values that cannot work.
    pub fn check(&self) -> Result<(), RefusedSetting> {
        let counts = [
            ("lease_min_secs", self.lease_min_secs),
            ("push_items_max", self.push_items_max as u64),
            ("push_bytes_max", self.push_bytes_max as u64),
            ("deliver_secs", self.deliver_secs),
            ("subscriptions_max", self.subscriptions_max as u64),
            (
                "subscriptions_per_host_max",
                self.subscriptions_per_host_max as u64,
            ),
            (
                "subscriptions_per_client_max",
                self.subscriptions_per_client_max as u64,
            ),
            ("unverified_max", self.unverified_max as u64),
            ("in_flight_max", self.in_flight_max as u64),
            ("in_flight_per_host_max", self.in_flight_per_host_max as u64),
        ];
        all_at_least_one(counts, "use 1 or more")?;
        let is_beginning = |url: &Url| {
            let is_bare =
                url.query().is_none() && url.fragment().is_none() && url.username().is_empty();
            matches!(url.scheme(), "http" | "https") && is_bare && url.password().is_none()
        };
        if let Some(url) = self.on_behalf.iter().find(|url| !is_beginning(url)) {
            let wanted = "give http or https URLs at which callbacks begin, without query: for instance [\"https://reader.example/push/\"]";
            return Err(RefusedSetting::new(
                "on_behalf",
                format!("\"{}\"", public_url(url)),
                wanted,
            ));
        }
        let (min, default, max) = (
            self.lease_min_secs,
            self.lease_default_secs,
            self.lease_max_secs,
        );
        if !(min..=LEASE_END_SECS).contains(&max) {
            let wanted = format!("use {min} (lease_min_secs) to {LEASE_END_SECS} (ten years)");
            return Err(RefusedSetting::new("lease_max_secs", max, wanted));
        }
        if !(min..=max).contains(&default) {
            let wanted = format!("use {min} (lease_min_secs) to {max} (lease_max_secs)");
            return Err(RefusedSetting::new("lease_default_secs", default, wanted));
        }
        Ok(())
    }

    /// The size of a push at most.
    fn push_max(&self) -> PushMax {
        PushMax {
            items: self.push_items_max,
            bytes: self.push_bytes_max,
        }
    }

    // Decides: For how many readers does a subscriber speak?
    /// True for a callback whose word on the number of its readers counts.
    fn may_speak_for_many(&self, callback: &str) -> bool {
        let Ok(callback) = Url::parse(callback) else {
            return false;
        };
        self.on_behalf.iter().any(|named| {
            let below = callback.path().strip_prefix(named.path());
            let is_below = |rest: &str| {
                rest.is_empty() || named.path().ends_with('/') || rest.starts_with('/')
            };
            let (spelt, beginning) = (PathSpelling::of(callback.path()), named.path());
            // A server may take an escaped step back for one.
            let is_left = !beginning.trim_matches('/').is_empty()
                && spelt.relation_to(&PathSpelling::of(beginning)).is_none();
            callback.origin() == named.origin() && below.is_some_and(is_below) && !is_left
        })
    }
}

/// The longest lease that may be configured, seconds: ten years are not for ever.
const LEASE_END_SECS: u64 = 315_360_000;

/// Parts of a hub.
pub struct Parts {
    /// Limits.
    pub config: Config,
    /// Pages to push, and the URLs of topics.
    pub readers: Arc<Readers>,
    /// The store of subscriptions.
    pub store: Arc<dyn Store>,
    /// Wake-ups, and hints for the poller.
    pub notify: Arc<Notify>,
    /// The time, for leases and retries.
    pub clock: Arc<dyn Clock>,
    /// The way to callbacks.
    pub callbacks: CallbackParts,
    /// The feeds that can be subscribed to, and who may read them.
    pub gate: ReadGate,
    /// Counters.
    pub metrics: Metrics,
    /// A random number of 0..1, so that subscribers that failed together do not come back together.
    pub jitter: fn() -> f64,
}

/// Parts of the way to callbacks.
pub struct CallbackParts {
    /// The client.
    pub service: Callbacks,
    /// Addresses of their hosts, for the count of questions to each.
    pub resolver: Arc<dyn Resolve>,
    /// The `User-Agent` of requests to them.
    pub user_agent: HeaderValue,
    /// The places at which this process answers itself: they are none.
    pub own: ProcessAddresses,
}

/// The hub.
pub struct Hub {
    shared: Arc<Shared>,
    /// Hints for the poller.
    notify: Arc<Notify>,
    admission: Admission,
}

/// Shared parts of all subscription tasks.
struct Shared {
    config: RwLock<Arc<Config>>,
    readers: Arc<Readers>,
    store: Arc<dyn Store>,
    clock: Arc<dyn Clock>,
    /// The same, for what ends for good.
    settled: SettledClock,
    client: CallbackClient,
    gate: ReadGate,
    /// Requests to callbacks at once.
    places: CallbackPermits,
    /// Questions to callbacks an hour.
    questions: QuestionBudget,
    /// Positions on their way to the store.
    acknowledgements: Acknowledgements,
    metrics: Metrics,
    /// A random number of 0..1.
    jitter: fn() -> f64,
    index: Index,
    stop: CancellationToken,
    tasks: TaskTracker,
    /// The runtime of the tasks, wherever the request comes from that starts one.
    runtime: Handle,
    /// Ends the tasks where they stand, when they have not ended by themselves in time.
    cut: CancellationToken,
}

impl Hub {
    /// A hub at rest, whose tasks will be on the present runtime. Until [`Hub::start`] it takes
    /// requests, and pushes nothing.
    pub fn new(parts: Parts) -> Self {
        let (config, callbacks) = (parts.config, parts.callbacks);
        let client = CallbackClient {
            service: callbacks.service,
            user_agent: callbacks.user_agent,
            within: Duration::from_secs(config.deliver_secs),
            own: Arc::new(callbacks.own),
        };
        let shared = Shared {
            readers: parts.readers,
            acknowledgements: Acknowledgements::new(parts.store.clone()),
            store: parts.store,
            settled: SettledClock::new(parts.clock.clone()),
            clock: parts.clock,
            client,
            gate: parts.gate,
            places: CallbackPermits::new(config.in_flight_max, config.in_flight_per_host_max),
            questions: QuestionBudget::new(callbacks.resolver),
            metrics: parts.metrics,
            jitter: parts.jitter,
            index: Index::default(),
            stop: CancellationToken::new(),
            tasks: TaskTracker::new(),
            runtime: Handle::current(),
            cut: CancellationToken::new(),
            config: RwLock::new(Arc::new(config)),
        };
        Self {
            shared: Arc::new(shared),
            notify: parts.notify,
            admission: Admission::new(),
        }
    }

    /// Puts other settings in force: for each request, subscription and push that begins from now on.
    /// Those that clients and limits of requests were made from stay as they are.
    pub fn reload(&self, config: &Config) {
        let mut in_force = write(&self.shared.config);
        let reloaded = in_force.reloaded(config);
        *in_force = Arc::new(reloaded);
    }

    /// Takes in every stored subscription, at rest: it goes on where it stood. Call it once the feeds
    /// are announced and before requests are served. Webhooks are those of the configuration; one
    /// that is stored and is none of them ends.
    pub async fn start(&self, webhooks: &[WebhookSettings]) -> Result<(), StoreError> {
        // Told of moves before anything is read of feeds.
        let moves = self.notify.moves();
        let registered = self.register_webhooks(webhooks).await?;
        let mut count = 0;
        let mut stored = listing::subscriptions(&*self.shared.store, None);
        while let Some((sub, progress)) = stored.try_next().await? {
            if matches!(sub.target, Target::Webhook(_)) && !registered.contains(&sub.no) {
                let host = host_of(sub.target.url());
                info!(callback.host = %host, "A webhook at {host} has ended: it is not configured any more");
                self.shared.store.end_subscription(sub.no).await?;
                continue;
            }
            if sub.target.is_of_hub() {
                self.take_in(&sub, &progress);
                count += 1;
            }
        }
        self.shared.spawn(self.shared.clone().dispatch(moves));
        if count > 0 {
            info!(
                subscriptions = count,
                "Took up the stored subscriptions: {count}"
            );
        }
        Ok(())
    }

    /// Takes in a stored subscription. One that has something to do, or may have, is called up at
    /// once.
    fn take_in(&self, sub: &Subscription, progress: &Progress) {
        let shared = &self.shared;
        let (mut clamped, mut clamped_progress) = (sub.clone(), progress.clone());
        let times = shared.times();
        set_back::clamp(&mut clamped, &mut clamped_progress, times.now);
        let group = GroupKey {
            feed: sub.feed(),
            principal: Shared::principal_of(sub),
        };
        let offer = shared.offer(&group);
        let seen = offer.read.and_then(|read| shared.readers.head(read).ok());
        let follows = seen.is_some_and(|head| has_all(progress, head));
        let under_way = UnderWay {
            pushing: if follows {
                PushStage::Following
            } else {
                PushStage::Unknown
            },
            warn_at: sub
                .lease
                .and_then(|lease| lease::warn_at(lease, &sub.target.wishes())),
            ..UnderWay::default()
        };
        let next = next_step::next(&clamped, &clamped_progress, offer.offer, under_way, times);
        // A lease that is longer than it was granted for is watched from now on.
        let is_too_long = |lease: Lease| lease.until > times.now.plus_secs(lease.terms.secs);
        let call_at = match next {
            NextStep::Wait(until) if !sub.lease.is_some_and(is_too_long) => until,
            _ => Stamp::ZERO,
        };
        let rest = Rest {
            sub: sub.no,
            group,
            offer,
            seen,
            kind: if follows {
                RestKind::Following
            } else {
                RestKind::Waiting
            },
            call_at,
            remembered: Remembered::of_channel(
                seen.filter(|_| follows && progress.channel_t.is_none()),
            ),
        };
        let applicant = Applicant {
            feed: sub.feed(),
            standing: subscription_task::standing(sub, progress),
            client: ClientNet::of(None),
        };
        let address = sub.target.address();
        let key = Key::of(&sub.topic, address);
        let entry = shared.index.take_in(key, applicant, address, rest);
        let attempts = &progress.attempts;
        if let Some(entry) = entry
            && attempts.failed > 0
            && let Some(why) = &attempts.failure
        {
            let failing = Failing {
                host: host_of(address),
                why: why.clone(),
                since: attempts.since.unwrap_or(times.now),
                failures: attempts.failed,
                next_try: attempts.next_try,
            };
            shared.index.note_failing(entry, Some(failing));
        }
    }

    /// Calls up all subscriptions to a feed that is about to be forgotten, whose rows go with it:
    /// each of their subscribers is told. They rest again once what this returns is dropped.
    pub async fn before_forgetting(&self, feed: FeedNo) -> AtWork {
        self.shared.keep_at_work(feed).await;
        AtWork {
            shared: self.shared.clone(),
            feed,
        }
    }

    /// Counts of the subscriptions of each feed; feeds without any are left out.
    pub fn counts(&self) -> HashMap<FeedNo, SubscriptionCounts> {
        self.shared.index.counts()
    }

    /// The subscriptions whose pushes are not taken, so many of each feed at most; feeds without
    /// any are left out.
    pub fn failing(&self, of_feed_max: usize) -> HashMap<FeedNo, Vec<FailingSubscriber>> {
        self.shared.index.failing(of_feed_max)
    }

    /// Stops: no new pushes, those under way come to their end and their positions are saved, for
    /// at most `within`. A push that is cut off then is sent once more after the next start.
    pub async fn shutdown(&self, within: Duration) {
        let shared = &self.shared;
        shared.stop.cancel();
        shared.tasks.close();
        let ended = tokio::time::timeout(within, shared.tasks.wait()).await;
        if ended.is_err() {
            let left = shared.tasks.len();
            warn!(
                pushes = left,
                "{left} pushes were still under way when the hub stopped"
            );
            shared.cut.cancel();
            shared.tasks.wait().await;
        }
    }
}

/// The subscriptions to a feed while none of them rests.
pub struct AtWork {
    shared: Arc<Shared>,
    feed: FeedNo,
}

impl Drop for AtWork {
    fn drop(&mut self) {
        self.shared.index.let_rest(self.feed);
    }
}

/// True for a position that has everything up to a head: what a look at the items would find. Where
/// there was never an item, the beginning has.
fn has_all(progress: &Progress, head: Head) -> bool {
    let at = match progress.position() {
        Some("") => Some(Stamp::ZERO),
        position => position.and_then(Toc::parse).and_then(|toc| toc.t.stamp()),
    };
    let knows_channel = progress
        .channel_t
        .is_none_or(|known| known >= head.metadata_t);
    head.ready && at == Some(head.last_t) && knows_channel
}

impl Drop for Hub {
    /// Tasks end with their hub, also when nobody waits for them.
    fn drop(&mut self) {
        self.shared.stop.cancel();
    }
}

impl Shared {
    /// The settings in force.
    fn config(&self) -> Arc<Config> {
        read(&self.config).clone()
    }

    fn now(&self) -> Stamp {
        Stamp::from_micros(self.clock.now_us())
    }

    /// The spellings that a topic of a feed had before: below our former roots, and at the former
    /// addresses of a feed of a site.
    fn former_topics(&self, feed: FeedNo, topic: &str) -> Vec<String> {
        let catalog = self.gate.catalog.snapshot();
        let feed = catalog.feed_no(feed);
        let place = feed.and_then(|feed| feed.settings.legacy.as_ref());
        let at_site = place.map(|place| place.former_topics(topic));
        let below_roots = self.readers.site().former_spellings(topic);
        below_roots.chain(at_site.unwrap_or_default()).collect()
    }

    /// The present time, and that by which something may end.
    fn times(&self) -> Times {
        let look = self.settled.look();
        Times {
            now: Stamp::from_micros(look.now_us),
            settled: Stamp::from_micros(look.settled_us),
        }
    }

    /// The subscription of an address to a topic, under the present spelling of that or a former one.
    async fn find_subscription(
        &self,
        feed: FeedNo,
        topic: &str,
        address: &str,
    ) -> Result<Option<(Subscription, Progress)>, StoreError> {
        let former = self.former_topics(feed, topic);
        for topic in std::iter::once(topic.to_owned()).chain(former) {
            let found = self.store.find_subscription(&topic, address).await?;
            if found.is_some() {
                return Ok(found);
            }
        }
        Ok(None)
    }

    /// The subscription of a callback to a translation, which was asked for by this spelling of the
    /// topic: clients wish for a form once, and go on with the topic that they were sent (HUB-7).
    async fn find_translated(
        &self,
        subject: &Subject,
        address: &str,
    ) -> Result<Option<(Subscription, Progress)>, StoreError> {
        for topic in &subject.translations {
            if !self.index.knows(Key::of(topic, address)) {
                continue;
            }
            let found = self.store.find_subscription(topic, address).await?;
            let is_meant = |sub: &Subscription| {
                let callback = sub.target.callback();
                callback.is_some_and(|callback| callback.topic_as_sent == subject.spelt)
            };
            if let Some(found) = found.filter(|(sub, _)| is_meant(sub)) {
                return Ok(Some(found));
            }
        }
        Ok(None)
    }

    /// The `Link` header of a push, the same as on our own pages (HUB-19); `None` for a feed that
    /// is not served.
    fn link(&self, push: &Push) -> Option<String> {
        let catalog = self.gate.catalog.snapshot();
        let name = &catalog.feed_no(push.view.feed)?.settings.name;
        if let Some(own_url) = &push.own_url {
            return Some(link_header(own_url, &self.readers.site().hub()));
        }
        let site = push.site.as_deref().unwrap_or(self.readers.site());
        let (order, filter) = (push.view.order, &push.view.filter);
        if push.representation.is_page() {
            let own_url = site.topic_url(name, push.representation, order, filter);
            return Some(link_header(&own_url, &site.hub()));
        }
        Some(site.link_header(name, push.representation, order, filter))
    }

    /// The start of a new subscription now, among the items that its principal may see; `None` while
    /// the feed is not served yet, or not to that principal.
    async fn start_for(
        &self,
        subject: &Subject,
        wishes: &PushWishes,
    ) -> Result<Option<ChainStart>, StoreError> {
        let Some(feed) = self.gate.still_reads(subject.principal, subject.view.feed) else {
            return Ok(None);
        };
        let view = View {
            feed,
            ..subject.view.clone()
        };
        let Some(head) = self.head(&view).await? else {
            return Ok(None);
        };
        let start = self.chain_start(&view, subject.representation, wishes, head);
        Ok(Some(start.await?))
    }

    /// The feed that is read for a subscription: its own, or the part of it that its principal
    /// sees; `None` for nothing.
    fn still_read(&self, sub: &Subscription) -> Option<FeedNo> {
        self.gate.still_reads(sub.principal, sub.feed())
    }

    /// The cursor of the newest item of a view now; `None` while the feed is not served yet.
    /// Filters leave it where it is.
    async fn head(&self, view: &View) -> Result<Option<String>, StoreError> {
        let page = self.newest(view, Filter::All).await?;
        Ok(page.record.is_ready().then_some(page.last_cursor))
    }

    /// The last page of a view in its order, with another filter.
    async fn newest(&self, view: &View, filter: Filter) -> Result<Page, StoreError> {
        let order = Order {
            reverse: false,
            ..view.order
        };
        let query = PageQuery::last(view.feed, order, filter);
        self.store.page(query).await
    }

    /// The start of a chain at `head`. The first push follows the last item that a pull of the view
    /// returns. Items that have left the view count, because a subscriber who missed one has to see
    /// another cursor than its own.
    async fn chain_start(
        &self,
        view: &View,
        representation: Representation,
        wishes: &PushWishes,
        head: String,
    ) -> Result<ChainStart, StoreError> {
        let deletions = wishes.deletions;
        let wish = deletions.unwrap_or(usual_deletions(representation));
        let filter = match wish {
            Deletions::Announce if self.readers.announces(view.feed) => view.filter.clone(),
            Deletions::Announce => view.filter.untold(),
            Deletions::Omit => view.filter.live(),
        };
        if filter == Filter::All {
            return Ok(ChainStart::at(head));
        }
        let shown = self.newest(view, filter).await?.last_cursor;
        let t = |cursor: &str| Toc::parse(cursor).map(|toc| toc.t);
        // What came since is pushed.
        if shown == head || t(&shown) > t(&head) {
            return Ok(ChainStart::at(head));
        }
        Ok(ChainStart {
            acked: shown,
            scanned: Some(head),
        })
    }

    /// The site below the secret of a topic; `None` for a topic without one.
    fn site_of(&self, topic: &str) -> Option<Arc<Site>> {
        let token = self.readers.site().topic(topic)?.secret?;
        Some(Arc::new(self.readers.site().below_secret(&token)))
    }

    /// The principal who answers for a subscription: who made it, or, before it is verified, who
    /// asked for it.
    fn principal_of(sub: &Subscription) -> Option<PrincipalId> {
        match (&sub.lease, &sub.pending) {
            (None, Some(pending)) => pending.principal,
            _ => sub.principal,
        }
    }
}

/// The position from which a new subscription goes on.
#[derive(Clone, Debug, PartialEq, Eq)]
struct ChainStart {
    /// The cursor that the first push names as previous.
    acked: String,
    /// The position behind items that are hidden from the subscriber, where that is another.
    scanned: Option<String>,
}

impl ChainStart {
    fn at(cursor: String) -> Self {
        Self {
            acked: cursor,
            scanned: None,
        }
    }
}

/// The topic of a subscription where that is at the address of an old feed: its documents call it
/// their own, by http or https, as the subscriber did.
fn legacy_topic(catalog: &CatalogSnapshot, sub: &Subscription) -> Option<Arc<str>> {
    if sub.representation == push::RESOURCE {
        return Some(sub.topic.as_str().into());
    }
    let feed = catalog.feed_no(sub.feed())?;
    let place = feed.settings.legacy.as_ref()?;
    let (url, rest) = place.split_topic(&sub.topic)?;
    let sent = sub
        .target
        .callback()
        .map(|callback| callback.topic_as_sent.as_str());
    // A feed that has moved is known to each subscriber by the address that it asked for last.
    let known = sent.and_then(|sent| place.url_spelt(sent)).unwrap_or(url);
    let sent = sent.and_then(|sent| Url::parse(sent).ok());
    let scheme = sent.as_ref().map_or(known.scheme(), Url::scheme);
    let (_, address) = known.as_str().split_once(':')?;
    let topic = topic_at(address, rest);
    Some(format!("{scheme}:{topic}").into())
}

/// The host of a URL: all of a callback that is logged, since its path and query may be its secret.
fn host_of(url: &str) -> String {
    let url = Url::parse(url).ok();
    url.as_ref()
        .and_then(Url::host_str)
        .unwrap_or_default()
        .to_owned()
}
