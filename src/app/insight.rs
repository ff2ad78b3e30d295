//! Answers to the operator, gathered from the components.

use super::{
    accepted_url,
    accounts::AccountCommands,
    current_work::active_subscribers,
    event_log::EventLog,
    explain::{self, Explainer, Explanation, under_way, words},
    feed_sort::{ItemCounts, sorted_page},
    forget_item::{forget_item, forgotten, remembered},
    gauges,
    opml_lists::OpmlLists,
    overview, reader_list,
    registry::{self, RegistryAnswer, RegistryCommand},
    registry_service::{ChangeScope, RegistryService},
    relay::Relay,
    reload::{ForgetRefused, ReloadRefused, Reloader},
    removed::removed_feeds,
    requested_poll,
    site_feeds::SiteFaults,
    status::{
        CauseStatus, CertificateStatus, FailingStatus, FaultStatus, FeedStatus, GapStatus,
        PushStatus, RegistryStatus, SiteFault, Status, StoreStatus, SubscriberStatus, WaitStatus,
        XmppStatus,
    },
    subscribers::SubscriberCommands,
};
use crate::{
    acme::CertificateWatch,
    auth::commands::{AccountAnswer, AccountCommand},
    catalog::{Catalog, CatalogSnapshot, RegisteredFeed},
    events::failing_now,
    feed::{
        archive::ArchiveWalk,
        record::{FeedNo, FeedRecord, Gap},
        schedule::{FaultKind, FaultNote, Health, PollState},
        stamp::Stamp,
    },
    hub::{FailingSubscriber, Hub},
    ingest::{PollWait, Poller, Urgency, WaitCause},
    notify::Notify,
    readership::{ReaderList, Readership},
    search_engines::SearchEngines,
    secret::{public_text, public_url},
    serve::{
        admin::{EventForm, EventRange, Insight, OperatorAnswer, OwnInsight, SubscriberCommand},
        feeds::{
            list_range::{FEEDS_DEFAULT, FeedRange, FeedSort, FeedSortKey, WordSearch},
            long_poll::Waiters,
        },
    },
    store::{NodesStatus, Outage, Store, StoreError},
    subscriber::Subscriber,
    xmpp::Component,
};
use chrono::Utc;
use futures_util::future::BoxFuture;
use prometheus_client::registry::Registry;
use serde::Serialize;
use std::{path::Path, sync::Arc, time::Duration};
use tokio::time::timeout;

/// Everything that the operator may ask.
pub(super) struct Overview {
    pub(super) explainer: Explainer,
    pub(super) notify: Arc<Notify>,
    pub(super) poller: Poller,
    pub(super) hub: Arc<Hub>,
    pub(super) xmpp: Option<Arc<Component>>,
    pub(super) subscriber: Option<Subscriber>,
    pub(super) waiters: Waiters,
    pub(super) readership: Arc<Readership>,
    pub(super) reloader: Arc<Reloader>,
    pub(super) accounts: AccountCommands,
    /// The certificate that everfeed gets itself.
    pub(super) certificate: Option<CertificateWatch>,
    pub(super) site_faults: SiteFaults,
    pub(super) search_engines: SearchEngines,
    pub(super) lists: OpmlLists,
    pub(super) events: EventLog,
    pub(super) item_counts: ItemCounts,
    pub(super) started_at: String,
}

/// Everything that the operator may ask a process that follows about itself.
pub(super) struct Following {
    pub(super) store: Arc<dyn Store>,
    pub(super) catalog: Catalog,
    pub(super) notify: Arc<Notify>,
    pub(super) relay: Relay,
    pub(super) reloader: Arc<Reloader>,
    pub(super) waiters: Waiters,
    pub(super) readership: Arc<Readership>,
    pub(super) started_at: String,
}

impl Following {
    /// The readers of the feeds of a range, as far as this process answers them.
    fn reader_list(&self, range: &FeedRange) -> ReaderList {
        let catalog = self.catalog.snapshot();
        reader_list::list(&self.readership, &catalog, range, None, explain::now())
    }

    /// The state of this process alone.
    async fn own_status(&self) -> Status {
        let catalog = self.catalog.snapshot();
        Status {
            version: env!("CARGO_PKG_VERSION").to_owned(),
            started_at: self.started_at.clone(),
            waiters: self.waiters.held(),
            config: self.reloader.status(),
            registry: registry_status(&catalog),
            store: store_status(&*self.store),
            nodes: nodes_status(&*self.store).await,
            feeds_total: catalog.feeds().len(),
            ..Status::default()
        }
    }

    /// Feeds with the readers of this process in the place of those of another.
    fn with_own_readers(&self, feeds: Vec<FeedStatus>) -> Vec<FeedStatus> {
        let catalog = self.catalog.snapshot();
        let own = |feed: FeedStatus| {
            let known = catalog.feed(&feed.name);
            let readers = known
                .and_then(|known| reader_list::status(&self.readership, known.no, explain::now()));
            FeedStatus { readers, ..feed }
        };
        feeds.into_iter().map(own).collect()
    }

    /// The state of the process that works, with what is of this one; where that one does not
    /// answer, what this one knows, and the reason.
    async fn status_of_both(&self, range: &FeedRange) -> Status {
        let own = self.own_status().await;
        match self.relay.status(&range.query()).await {
            Ok(of_worker) => Status {
                version: own.version,
                started_at: own.started_at,
                waiters: own.waiters,
                config: own.config,
                store: own.store,
                nodes: own.nodes,
                feeds: self.with_own_readers(of_worker.feeds),
                ..of_worker
            },
            Err(why) => {
                let catalog = self.catalog.snapshot();
                // Nobody here knows which of them fail, or anything else that they are sorted by.
                let search = range.word_search();
                let registered = candidates(&catalog, range).filter(|feed| is_found(&search, feed));
                let known = registered.take(range.max.unwrap_or(FEEDS_DEFAULT));
                let feed = |feed: &Arc<RegisteredFeed>| FeedStatus {
                    name: feed.settings.name.clone(),
                    url: feed.shown_url(),
                    served: self.notify.head(feed.no).is_some_and(|head| head.ready),
                    history: UNREAD.to_owned(),
                    waiters: self.waiters.held_of(feed.no),
                    readers: reader_list::status(&self.readership, feed.no, explain::now()),
                    ..FeedStatus::default()
                };
                Status {
                    feeds: known.map(feed).collect(),
                    worker_fault: Some(why),
                    ..own
                }
            }
        }
    }
}

/// The feeds of a catalog that may be in a range, by name: one that it names, or all behind another.
fn candidates<'a>(
    catalog: &'a CatalogSnapshot,
    range: &'a FeedRange,
) -> Box<dyn Iterator<Item = &'a Arc<RegisteredFeed>> + Send + 'a> {
    match &range.name {
        Some(name) => Box::new(catalog.feed(name).into_iter()),
        None => Box::new(catalog.feeds_after(range.after.as_deref())),
    }
}

/// True for a feed with the words that are looked for.
fn is_found(search: &WordSearch, feed: &RegisteredFeed) -> bool {
    let (name, url) = (&*feed.settings.name, feed.settings.url.as_str());
    // The whole URL may hold more, and is there without a copy.
    search.shows([name, url]) && (search.is_empty() || search.shows([name, &feed.shown_url()]))
}

/// The history of a feed while the store cannot be read.
const UNREAD: &str = "not known while the store cannot be read";

/// Causes for which feeds fail that the status shows at most; the feeds of others stand alone.
const CAUSES_MAX: usize = 1000;

/// Failing subscribers of a feed that the status shows at most.
const FAILING_SHOWN_MAX: usize = 10;

fn owned(names: Vec<&str>) -> Vec<String> {
    names.into_iter().map(str::to_owned).collect()
}

/// A failing subscriber, as the status shows it.
fn failing_status(failing: FailingSubscriber) -> FailingStatus {
    FailingStatus {
        host: failing.host,
        error: failing.why,
        since: failing.since.rfc3339(),
        failed: failing.failures,
        next_try_at: failing.next_try.rfc3339(),
    }
}

/// A feed of which nothing can be read, as the status shows it.
fn damaged_status(feed: &RegisteredFeed, error: &StoreError) -> FeedStatus {
    let note = FaultNote {
        kind: FaultKind::Internal {
            reason: error.to_string(),
        },
        since: explain::now(),
    };
    FeedStatus {
        name: feed.settings.name.clone(),
        url: feed.shown_url(),
        fault: Some(FaultStatus::from(&note)),
        ..FeedStatus::default()
    }
}

/// The wait of a feed, as the status shows it.
fn wait_status(wait: PollWait, configured_at: &str) -> WaitStatus {
    // A first poll waits since the feed was configured.
    let of_first = (wait.cause == WaitCause::FirstPoll).then(|| configured_at.to_owned());
    let why = match wait.cause {
        WaitCause::Pause(authority) => {
            format!("{authority} asked to be left alone (Retry-After or 429)")
        }
        WaitCause::Gone => "the publisher says that the feed is gone for good (410)".to_owned(),
        WaitCause::Quota => {
            "it is at its quota (keep.quota_bytes), and nothing more can be stored".to_owned()
        }
        WaitCause::BackOff => "the last poll failed".to_owned(),
        WaitCause::FirstPoll => "it has not been polled yet".to_owned(),
        WaitCause::PingBudget => "the pings before it brought nothing new".to_owned(),
    };
    WaitStatus {
        until: wait.until.map(|at| at.rfc3339()),
        since: wait.since.map(|at| at.rfc3339()).or(of_first),
        why,
        pinged_at: wait.pinged_at.map(|at| at.rfc3339()),
    }
}

/// A gap marker, as the status shows it.
fn gap_status(gap: &Gap) -> GapStatus {
    GapStatus {
        at: gap.at.rfc3339(),
        why: words::event(gap.event).to_owned(),
        before: gap.before.clone(),
        after: gap.after.clone(),
    }
}

/// The certificate that everfeed gets itself, as the status shows it.
fn certificate_status(watch: &CertificateWatch) -> CertificateStatus {
    let state = watch.state();
    let moment = |secs: u64| Stamp::from_secs(secs).rfc3339();
    CertificateStatus {
        names: state.names,
        authority: state.authority,
        expires_at: state.expires_at.map(moment),
        next_order_at: moment(state.next_order_at),
        failures: state.failures,
        fault: state.fault.map(|fault| fault.to_string()),
    }
}

/// The connection to the server of XMPP, as the status shows it.
fn xmpp_status(component: &Arc<Component>) -> XmppStatus {
    let state = component.state();
    XmppStatus {
        jid: component.jid().to_owned(),
        online: state.is_online,
        since: state.since.rfc3339(),
        streams: state.streams,
        subscriptions: component.counts().values().sum(),
        fault: state.fault,
    }
}

/// The fault of an origin, as the status shows it.
fn site_fault(origin: &str, note: &FaultNote) -> SiteFault {
    SiteFault {
        origin: origin.to_owned(),
        fault: FaultStatus::from(note),
    }
}

/// The state of a store.
fn store_status(store: &dyn Store) -> StoreStatus {
    let (condition, figures) = (store.condition(), store.figures());
    let outage = condition.outage();
    let removals = store.removal_faults();
    StoreStatus {
        fault: outage.map(|outage| outage.cause.clone()),
        since: outage.map(|outage| outage.since.rfc3339()),
        bytes: figures.bytes,
        faults: figures.faults,
        restored: store.restored(),
        removals_unwritten: removals.unwritten,
        removals_unread: removals.unread,
    }
}

/// The state of the registry.
fn registry_status(catalog: &CatalogSnapshot) -> RegistryStatus {
    RegistryStatus {
        entries: catalog.registry().len(),
        unread: registry::unread(catalog.registry()),
        shadowed: registry::shadowed(catalog.registry()),
    }
}

/// Time for the words about the processes on a store.
const NODES_MAX: Duration = Duration::from_secs(2);

/// The processes on a store, as the status shows them; `None` where one is alone, or where they
/// cannot be read.
async fn nodes_status(store: &dyn Store) -> Option<NodesStatus> {
    let asked = store.nodes()?.status();
    timeout(NODES_MAX, asked).await.ok()?.ok()
}

/// A reload that was refused, in the words of its error.
fn refused(error: ReloadRefused) -> OperatorAnswer {
    let why = error.to_string();
    match error {
        ReloadRefused::Store(_) => OperatorAnswer::Away(why),
        _ => OperatorAnswer::Misconfigured(why),
    }
}

/// An answer for people and programs.
fn json(told: &impl Serialize) -> Result<String, String> {
    serde_json::to_string_pretty(told).map_err(|error| error.to_string())
}

/// The address to which a feed redirects, if a feed `is_configured` and no page; or to which its
/// documents say that it has moved.
fn moved_to(health: &Health, is_configured: bool) -> Option<&String> {
    let moved = health.moved.as_ref().filter(|_| is_configured);
    let announced = health.announced.as_ref().map(|announced| &announced.url);
    moved.map(|moved| &moved.url).or(announced)
}

fn in_words(error: StoreError) -> String {
    error.to_string()
}

impl Overview {
    /// The readers of the feeds of a range.
    fn reader_list(&self, range: &FeedRange) -> ReaderList {
        let catalog = self.explainer.catalog.snapshot();
        let pushed = active_subscribers(&self.hub, self.xmpp.as_ref());
        reader_list::list(
            &self.readership,
            &catalog,
            range,
            Some(&pushed),
            explain::now(),
        )
    }

    /// The push of the news of a feed. Until a document of a changed URL is taken, the subscription
    /// is of the former URL, and pushes nothing of this one.
    fn push_status(&self, feed: FeedNo) -> Option<PushStatus> {
        let standing = self.subscriber.as_ref()?.standing(feed)?;
        Some(PushStatus::from(standing))
    }

    /// The state of a feed as far as it is known without the store.
    fn feed_in_memory(&self, feed: &RegisteredFeed, subscribers: SubscriberStatus) -> FeedStatus {
        let poll = self.poller.status(feed.no).unwrap_or_default();
        self.feed_by(feed, poll, subscribers)
    }

    /// The state of a feed by the state of its polls.
    fn feed_by(
        &self,
        feed: &RegisteredFeed,
        poll: PollState,
        subscribers: SubscriberStatus,
    ) -> FeedStatus {
        // The pause of its host puts its poll off.
        let next_at = poll
            .timetable
            .next_at
            .max(self.poller.paused_until(feed.no));
        let catalog = self.explainer.catalog.snapshot();
        FeedStatus {
            name: feed.settings.name.clone(),
            url: feed.shown_url(),
            members: catalog.member_names(feed.no).map(owned),
            from_list: feed.settings.from_list.clone(),
            paused: feed.settings.paused,
            old_url: feed
                .settings
                .legacy
                .as_ref()
                .map(|place| public_url(&place.url)),
            served: self.notify.head(feed.no).is_some_and(|head| head.ready),
            last_poll_at: poll.timetable.polled_at.map(|at| at.rfc3339()),
            last_good_at: poll.health.good_at.map(|at| at.rfc3339()),
            next_poll_at: (next_at.micros() > 0 && !feed.settings.paused)
                .then(|| next_at.rfc3339()),
            waits: self
                .poller
                .wait(feed.no)
                .map(|wait| wait_status(wait, &self.reloader.status().loaded_at)),
            named_by_page: poll.named_address().map(|url| public_text(url)),
            moved_to: moved_to(&poll.health, poll.named.is_none()).map(|url| public_text(url)),
            failures: poll.health.failures,
            fault: poll
                .health
                .fault
                .as_ref()
                .filter(|_| !feed.settings.paused)
                .map(Into::into),
            push: self
                .push_status(feed.no)
                .filter(|_| poll.url_change.is_none()),
            platform: poll
                .document
                .platform
                .as_ref()
                .map(|found| format!("{}: {}", found.platform, found.why)),
            history: UNREAD.to_owned(),
            subscribers,
            waiters: self.waiters.held_of(feed.no),
            readers: reader_list::status(&self.readership, feed.no, explain::now()),
            remark: poll.document.remark.clone(),
            ..FeedStatus::default()
        }
    }

    /// The state of a feed with what the store holds of it; of one that is `paused` with that of its
    /// polls, which nobody has in memory.
    fn feed(
        &self,
        feed: &RegisteredFeed,
        record: &FeedRecord,
        walk: Option<&ArchiveWalk>,
        paused: Option<PollState>,
        subscribers: SubscriberStatus,
    ) -> FeedStatus {
        FeedStatus {
            served: record.is_ready(),
            history: record.completeness.history.to_string(),
            archives: walk.and_then(|walk| under_way(record, walk, explain::now())),
            gaps: record.completeness.gaps.iter().map(gap_status).collect(),
            quarantined_since: record.window.quarantined_since.map(|since| since.rfc3339()),
            suspects: record.window.suspects as usize,
            deferred_edits: record.window.deferred as usize,
            reformatted_at: record.window.reformatted_at.map(|at| at.rfc3339()),
            items: Some(record.items.total),
            live_items: Some(record.items.live),
            shortened_items: Some(record.items.shortened),
            item_bytes: record.items.bytes,
            ..match paused {
                Some(poll) => self.feed_by(feed, poll, subscribers),
                None => self.feed_in_memory(feed, subscribers),
            }
        }
    }

    /// True for an error that says nothing of what was asked for: the store cannot be read at all.
    fn is_away(&self, error: &StoreError) -> bool {
        error.is_away() || self.explainer.store.condition().outage().is_some()
    }

    async fn gather(&self, range: FeedRange) -> Result<Status, StoreError> {
        let catalog = self.explainer.catalog.snapshot();
        let (feeds, next) = self.feeds(&range).await?;
        let removed_feeds = match removed_feeds(&*self.explainer.store, &catalog).await {
            // The operator is told of the fault, whatever else cannot be read.
            Err(error) if self.is_away(&error) => Vec::new(),
            removed => removed?,
        };
        let failing = self.poller.failing().into_iter();
        let site_faults = self.site_faults.all();
        let engines = self.search_engines.findings(explain::now());
        Ok(Status {
            version: env!("CARGO_PKG_VERSION").to_owned(),
            started_at: self.started_at.clone(),
            waiters: self.waiters.held(),
            config: self.reloader.status(),
            registry: registry_status(&catalog),
            // Behind the reads, which may have met its fault first.
            store: store_status(&*self.explainer.store),
            worker_fault: None,
            nodes: nodes_status(&*self.explainer.store).await,
            certificate: self.certificate.as_ref().map(certificate_status),
            xmpp: self.xmpp.as_ref().map(xmpp_status),
            feeds_total: catalog.feeds().len(),
            failing: failing
                .map(|(whose, feeds)| (whose.to_string(), feeds))
                .collect(),
            causes: if range.after.is_none() && range.name.is_none() {
                self.causes()
            } else {
                Vec::new()
            },
            site_faults: site_faults
                .iter()
                .map(|(origin, note)| site_fault(origin, note))
                .collect(),
            search_engines: engines.into_iter().map(CauseStatus::from).collect(),
            lists: self.lists.status(),
            feeds,
            next,
            removed: removed_feeds.iter().map(|feed| feed.name.clone()).collect(),
            removed_feeds,
        })
    }

    /// The causes for which feeds fail.
    fn causes(&self) -> Vec<CauseStatus> {
        let troubles = self.poller.troubles().all();
        let troubles = troubles.iter().map(|trouble| &**trouble);
        let failing = failing_now(troubles, self.poller.polled(), CAUSES_MAX);
        failing.into_iter().map(CauseStatus::from).collect()
    }

    /// The feeds of a range, and the path of those after them.
    async fn feeds(
        &self,
        range: &FeedRange,
    ) -> Result<(Vec<FeedStatus>, Option<String>), StoreError> {
        let catalog = self.explainer.catalog.snapshot();
        let (registered, goes_on) = self.page_of(&catalog, range).await;
        let counts = self.hub.counts();
        let of_xmpp = self.xmpp.as_ref().map(|xmpp| xmpp.counts());
        let of_xmpp = of_xmpp.unwrap_or_default();
        let mut failing = self.hub.failing(FAILING_SHOWN_MAX);
        let store = &self.explainer.store;
        let mut feeds = Vec::new();
        let mut is_away = false;
        for feed in &registered {
            let mut subscribers = SubscriberStatus::default();
            if let Some(counted) = counts.get(&feed.no) {
                let failures = failing.remove(&feed.no).into_iter().flatten();
                subscribers = SubscriberStatus {
                    active: counted.active,
                    pending: counted.pending,
                    failing: counted.failing,
                    failures: failures.map(failing_status).collect(),
                };
            }
            subscribers.active += of_xmpp.get(&feed.no).copied().unwrap_or_default();
            if is_away {
                // Each try may take a while.
                feeds.push(self.feed_in_memory(feed, subscribers));
                continue;
            }
            let read = async {
                let paused = match feed.settings.paused {
                    true => Some(store.poll(feed.no).await?.unwrap_or_default()),
                    false => None,
                };
                let record = store.feed(feed.no).await?;
                Ok((record, store.walk(feed.no).await?, paused))
            };
            feeds.push(match read.await {
                Ok((record, walk, paused)) => {
                    self.feed(feed, &record, walk.as_ref(), paused, subscribers)
                }
                Err(error) if StoreError::is_of_one_feed(&error) => damaged_status(feed, &error),
                Err(error) if self.is_away(&error) => {
                    is_away = true;
                    self.feed_in_memory(feed, subscribers)
                }
                Err(error) => return Err(error),
            });
        }
        Ok((feeds, goes_on.map(|query| format!("/status?{query}"))))
    }

    /// The feeds of a range, in its order, and the query of those after them.
    async fn page_of(
        &self,
        catalog: &CatalogSnapshot,
        range: &FeedRange,
    ) -> (Vec<Arc<RegisteredFeed>>, Option<String>) {
        let failing = self.poller.troubles().failing_feeds();
        let search = range.word_search();
        let is_shown = |feed: &&Arc<RegisteredFeed>| {
            (!range.failing_only || failing.contains(&feed.no)) && is_found(&search, feed)
        };
        let feeds_max = range.max.unwrap_or(FEEDS_DEFAULT);
        if range.failing_only && failing.is_empty() {
            return (Vec::new(), None);
        }
        if range.sort == FeedSort::default() {
            let mut found = candidates(catalog, range).filter(is_shown);
            let feeds: Vec<_> = found.by_ref().take(feeds_max).cloned().collect();
            let last = feeds.last().filter(|_| found.next().is_some());
            let next = last.map(|last| range.next(&last.settings.name));
            return (feeds, next);
        }
        let counts = match range.sort.by {
            FeedSortKey::Items => {
                let store = &*self.explainer.store;
                Some(self.item_counts.now(store, &self.notify, catalog).await)
            }
            _ => None,
        };
        let good_times = self.poller.good_times();
        let key = |feed: &RegisteredFeed| match range.sort.by {
            FeedSortKey::Name => 0,
            FeedSortKey::State => {
                let is_served = self.notify.head(feed.no).is_some_and(|head| head.ready);
                match (failing.contains(&feed.no), is_served, feed.is_group()) {
                    (true, ..) => 0,
                    (false, false, _) => 1,
                    (false, true, false) => 2,
                    (false, true, true) => 3,
                }
            }
            FeedSortKey::LastGood if feed.is_group() => u64::MAX,
            FeedSortKey::LastGood => good_times.of(feed.no).map_or(0, |at| at.micros()),
            FeedSortKey::Items => {
                let counted = counts.as_ref().and_then(|counts| counts.get(&feed.no));
                counted.map_or(u64::MAX, |counted| u64::MAX - counted.live)
            }
        };
        let found = catalog.feeds().filter(is_shown);
        let page = sorted_page(found, key, range, feeds_max);
        let last = page.feeds.last().zip(page.goes_on_at);
        let next = last.map(|(last, at)| range.next_at(&last.settings.name, at));
        (page.feeds.into_iter().cloned().collect(), next)
    }

    /// Forgets a feed or an item, and tells the operator of it.
    async fn forget_now(&self, feed: &str, item: Option<&str>) -> Result<String, ForgetRefused> {
        let store = &self.explainer.store;
        let Some(item) = item else {
            self.reloader.forget(feed).await?;
            let told = forgotten(feed, store.keeps_forgotten().as_deref());
            return remembered(&**store, told);
        };
        let removed = forget_item(&self.explainer, feed, item).await;
        // It may be gone all the same.
        let removed = removed.inspect_err(|_| self.notify.doubt())?;
        let receipt = &removed.receipt;
        self.notify.committed(&receipt.feed, &receipt.groups);
        self.notify.document_kept(receipt.feed.no);
        remembered(&**store, removed.told(store.keeps_forgotten().as_deref()))
    }
}

/// Ok while a store takes changes, or those of the process that works.
fn live(store: &dyn Store) -> Result<(), String> {
    let condition = store.condition();
    let Some(Outage { cause, since, .. }) = condition.outage() else {
        return Ok(());
    };
    let since = since.rfc3339();
    Err(format!("nothing can be stored since {since}: {cause}"))
}

async fn reload(reloader: &Reloader) -> OperatorAnswer {
    match reloader.reload().await {
        Ok(report) => OperatorAnswer::Done(report.to_string()),
        Err(error) => refused(error),
    }
}

async fn check(reloader: &Reloader) -> OperatorAnswer {
    match reloader.check().await {
        Ok(Some(beside)) => match serde_json::to_string(&beside) {
            Ok(told) => OperatorAnswer::Done(told),
            Err(error) => OperatorAnswer::Away(error.to_string()),
        },
        Ok(None) => {
            OperatorAnswer::Away("the file names another store than this process has".into())
        }
        Err(error) => refused(error),
    }
}

/// The page of the operator about a range of feeds, or about the one that it names; `None` where
/// there is none of that name.
fn overview_page(
    status: &Status,
    failing: &Status,
    range: &FeedRange,
    readers: &ReaderList,
) -> Option<Vec<u8>> {
    match &range.name {
        Some(name) => {
            let feed = status.feeds.iter().find(|feed| feed.name == *name)?;
            let readers = readers.feeds.iter().find(|it| it.feed == *name);
            Some(overview::feed_page(feed, readers, Utc::now()))
        }
        None => Some(overview::page(status, failing, range, Utc::now())),
    }
}

/// The range of the one feed whose page is asked for; of none where it is the page of all.
fn one_feed(range: &FeedRange) -> FeedRange {
    FeedRange {
        name: Some(range.name.clone().unwrap_or_default()),
        ..FeedRange::default()
    }
}

impl OwnInsight for Overview {
    fn readers(&self, range: FeedRange) -> BoxFuture<'_, Result<String, String>> {
        Box::pin(async move { json(&self.reader_list(&range)) })
    }

    fn status(&self, range: FeedRange) -> BoxFuture<'_, Result<String, String>> {
        Box::pin(async move { json(&self.gather(range).await.map_err(in_words)?) })
    }

    fn page(&self, range: FeedRange) -> BoxFuture<'_, Result<Option<Vec<u8>>, String>> {
        Box::pin(async move {
            let status = self.gather(range.clone()).await.map_err(in_words)?;
            let failing = self.gather(overview::failing_range()).await;
            let readers = self.reader_list(&one_feed(&range));
            let failing = failing.map_err(in_words)?;
            Ok(overview_page(&status, &failing, &range, &readers))
        })
    }

    fn live(&self) -> Result<(), String> {
        live(&*self.explainer.store)
    }

    fn ready(&self) -> BoxFuture<'_, Result<(), String>> {
        Box::pin(async { self.explainer.store.check().await.map_err(in_words) })
    }

    fn gauges(&self, mut counters: Registry) -> BoxFuture<'_, Result<Registry, String>> {
        Box::pin(async move {
            // Of more feeds than a range holds no series are made: their sums say enough.
            let status = self.gather(FeedRange::default()).await.map_err(in_words)?;
            gauges::register(&mut counters, &status);
            Ok(counters)
        })
    }

    fn reload(&self) -> BoxFuture<'_, OperatorAnswer> {
        Box::pin(reload(&self.reloader))
    }

    fn check(&self) -> BoxFuture<'_, OperatorAnswer> {
        Box::pin(check(&self.reloader))
    }
}

impl OwnInsight for Following {
    fn readers(&self, range: FeedRange) -> BoxFuture<'_, Result<String, String>> {
        Box::pin(async move { json(&self.reader_list(&range)) })
    }

    fn live(&self) -> Result<(), String> {
        live(&*self.store)
    }

    fn ready(&self) -> BoxFuture<'_, Result<(), String>> {
        Box::pin(async { self.store.check().await.map_err(in_words) })
    }

    fn status(&self, range: FeedRange) -> BoxFuture<'_, Result<String, String>> {
        Box::pin(async move { json(&self.status_of_both(&range).await) })
    }

    fn page(&self, range: FeedRange) -> BoxFuture<'_, Result<Option<Vec<u8>>, String>> {
        Box::pin(async move {
            let status = self.status_of_both(&range).await;
            let failing = self.status_of_both(&overview::failing_range()).await;
            let readers = self.reader_list(&one_feed(&range));
            Ok(overview_page(&status, &failing, &range, &readers))
        })
    }

    fn gauges(&self, mut counters: Registry) -> BoxFuture<'_, Result<Registry, String>> {
        Box::pin(async move {
            gauges::register_following(&mut counters, &self.own_status().await);
            Ok(counters)
        })
    }

    fn reload(&self) -> BoxFuture<'_, OperatorAnswer> {
        Box::pin(reload(&self.reloader))
    }

    fn check(&self) -> BoxFuture<'_, OperatorAnswer> {
        Box::pin(check(&self.reloader))
    }
}

impl Insight for Overview {
    fn explain<'a>(
        &'a self,
        feed: &'a str,
        item: Option<&'a str>,
    ) -> BoxFuture<'a, Result<Option<String>, String>> {
        Box::pin(async move {
            let poll = |no| self.poller.status(no);
            let told = self.explainer.explain(feed, item, poll).await;
            let catalog = self.explainer.catalog.snapshot();
            let push = catalog
                .feed(feed)
                .and_then(|feed| self.push_status(feed.no));
            let told = told.map_err(in_words)?.map(|told| Explanation {
                push: push.map(|push| push.in_words(str::to_owned)),
                ..told
            });
            told.map(|told| json(&told)).transpose()
        })
    }

    fn accept_clock(&self) -> BoxFuture<'_, Result<(), String>> {
        Box::pin(async { self.explainer.store.accept_clock().await.map_err(in_words) })
    }

    fn back_up<'a>(&'a self, file: &'a str) -> BoxFuture<'a, Result<String, String>> {
        Box::pin(async move {
            let made = super::backup::back_up(&*self.explainer.store, Path::new(file)).await;
            made.map_err(in_words)
        })
    }

    fn accept_url<'a>(&'a self, feed: &'a str) -> BoxFuture<'a, OperatorAnswer> {
        Box::pin(accepted_url::accept(
            &self.explainer.catalog,
            &self.poller,
            feed,
        ))
    }

    fn poll<'a>(&'a self, feed: &'a str, now: bool) -> BoxFuture<'a, OperatorAnswer> {
        let urgency = if now { Urgency::Now } else { Urgency::Polite };
        Box::pin(requested_poll::poll(
            &self.explainer.catalog,
            &self.poller,
            feed,
            urgency,
        ))
    }

    fn change_accounts(&self, command: AccountCommand) -> BoxFuture<'_, AccountAnswer> {
        Box::pin(self.accounts.run(command))
    }

    fn subscribers(&self, command: SubscriberCommand) -> BoxFuture<'_, OperatorAnswer> {
        let desk = SubscriberCommands {
            catalog: &self.explainer.catalog,
            hub: &self.hub,
            xmpp: self.xmpp.as_ref(),
        };
        Box::pin(desk.run(command))
    }

    fn registry(&self, command: RegistryCommand) -> BoxFuture<'_, RegistryAnswer> {
        let desk = RegistryService {
            store: self.explainer.store.clone(),
            catalog: self.explainer.catalog.snapshot(),
            reader: self.reloader.entry_reader(),
            place: ChangeScope::Running(self.reloader.clone()),
        };
        Box::pin(desk.run(command))
    }

    fn events<'a>(
        &'a self,
        form: EventForm,
        range: &'a EventRange,
    ) -> BoxFuture<'a, Result<String, String>> {
        Box::pin(async move { self.events.document(form, range).await.map_err(in_words) })
    }

    fn forget<'a>(&'a self, feed: &'a str, item: Option<&'a str>) -> BoxFuture<'a, OperatorAnswer> {
        Box::pin(async move {
            let refused = match self.forget_now(feed, item).await {
                Ok(told) => return OperatorAnswer::Done(told),
                Err(refused) => refused,
            };
            let why = refused.to_string();
            match refused {
                ForgetRefused::Configured(_) => OperatorAnswer::NotNow(why),
                ForgetRefused::Unknown(_) | ForgetRefused::UnknownItem { .. } => {
                    OperatorAnswer::Unknown(why)
                }
                ForgetRefused::Store(_) | ForgetRefused::Unremembered(_) => {
                    OperatorAnswer::Away(why)
                }
            }
        })
    }
}
