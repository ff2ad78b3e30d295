//! The worker that sends what is due to hubs and clouds, and writes what has changed; not what is
//! sent.

use super::{Shared, Subscriber, fresh_path, may_be_pushed, ready_requests::ReadyRequest};
use crate::{
    catalog::RegisteredFeed,
    feed::{
        pushed_feed::{CallbackRoot, DueRequest, NamedPush, PushService, RequestEnd},
        record::FeedNo,
        stamp::{SECOND_US, Stamp},
    },
    locks::lock,
    store::{StoreError, listing},
};
use futures_util::TryStreamExt as _;
use std::{
    collections::{HashMap, HashSet},
    sync::Arc,
    time::Duration,
};
use tokio::{
    task::JoinSet,
    time::{Instant, sleep_until},
};
use tokio_util::sync::CancellationToken;
use tracing::{debug, warn};
use url::Url;

/// Requests to hubs and clouds under way at once.
const IN_FLIGHT_MAX: usize = 8;
/// Seconds between the beginnings of two requests to one host.
const HOST_GAP_SECS: u64 = 1;
/// Hosts whose pace is remembered, before those that rest are forgotten.
const HOSTS_MAX: usize = 1024;
/// Seconds after which rows are written that only say when a push came.
const WRITE_SECS: u64 = 30;
/// Seconds after which something is looked at again that could not be done.
const AGAIN_SECS: u64 = 60;
/// Feeds from which on all records are read one after another instead of each for itself.
const FEW_FEEDS: usize = 100;

/// The end of a request, and whose it was.
type EndedRequest = (FeedNo, DueRequest, RequestEnd);

/// A subscriber at work.
struct Worker<'a> {
    shared: &'a Arc<Shared>,
    in_flight: JoinSet<EndedRequest>,
    /// Times before which no request to a host begins.
    hosts: HashMap<String, Stamp>,
    /// Feeds that have a turn at their host, which comes when they are due.
    waiting: HashSet<FeedNo>,
    /// Feeds whose services are known as far as they are.
    seen: HashSet<FeedNo>,
    /// Time at which rows are written again.
    write_at: Instant,
}

impl Subscriber {
    /// Sends what is due until `stop`, then writes what is to be remembered.
    pub async fn run(self, stop: CancellationToken) {
        let mut catalog = self.0.parts.catalog.watch();
        let mut worker = Worker {
            shared: &self.0,
            in_flight: JoinSet::new(),
            hosts: HashMap::new(),
            waiting: HashSet::new(),
            seen: HashSet::new(),
            write_at: Instant::now() + Duration::from_secs(WRITE_SECS),
        };
        catalog.mark_changed();
        loop {
            worker.start_due();
            let wake = worker.wake_at();
            tokio::select! {
                biased;
                () = stop.cancelled() => break,
                Some(ended) = worker.in_flight.join_next() => match ended {
                    Ok(ended) => worker.take_in(ended),
                    Err(error) => warn!("A request to a hub broke off; this is a bug in everfeed: {error}"),
                },
                Ok(()) = catalog.changed() => {
                    catalog.mark_unchanged();
                    let follow = worker.follow_catalog();
                    if stop.run_until_cancelled(follow).await.is_none() {
                        break;
                    }
                }
                () = self.0.bell.notified() => {}
                () = sleep_until(wake) => {
                    if Instant::now() >= worker.write_at {
                        worker.write_all().await;
                    }
                }
            }
        }
        worker.in_flight.shutdown().await;
        worker.write_all().await;
    }
}

impl Worker<'_> {
    /// Starts the requests that are due, as long as there is room.
    fn start_due(&mut self) {
        while self.in_flight.len() < IN_FLIGHT_MAX {
            let now = self.shared.now();
            let mut rows = lock(&self.shared.rows);
            let Some(feed) = rows.pop_due(now) else {
                return;
            };
            let address = rows.row(feed).and_then(|row| row.due_address(now));
            let turn = address.and_then(|address| self.turn(feed, &address, now));
            if let Some(later) = turn {
                rows.put_off(feed, later);
                continue;
            }
            drop(rows);
            self.start(feed, now);
        }
    }

    // Decides: How often is a host of hubs asked?
    /// The time at which a feed has its turn at a host; `None` for now.
    fn turn(&mut self, feed: FeedNo, address: &str, now: Stamp) -> Option<Stamp> {
        if self.waiting.remove(&feed) {
            return None;
        }
        if self.hosts.len() >= HOSTS_MAX {
            self.hosts.retain(|_, free_at| *free_at > now);
        }
        let url = Url::parse(address).ok();
        let host = url.as_ref().and_then(Url::host_str).unwrap_or_default();
        let free_at = self.hosts.entry(host.to_owned()).or_default();
        let turn = (*free_at).max(now);
        *free_at = turn.plus_secs(HOST_GAP_SECS);
        if turn == now {
            return None;
        }
        self.waiting.insert(feed);
        Some(turn)
    }

    fn start(&mut self, feed: FeedNo, now: Stamp) {
        let shared = self.shared;
        let root = CallbackRoot {
            url: &shared.parts.callbacks,
        };
        let errand = lock(&shared.rows).change(feed, |row| row.errand(root, now, fresh_path));
        let Some(errand) = errand else {
            // What changes nothing stays in no queue.
            let mut rows = lock(&shared.rows);
            let next_at = rows.row(feed).map_or(Stamp::MAX, |row| row.next_at());
            rows.put_off(feed, next_at.max(now.plus_secs(1)));
            return;
        };
        let shared = self.shared.clone();
        self.in_flight.spawn(async move {
            // The hub may call back before it answers, also after a restart.
            if let Err(error) = shared.write(feed).await {
                debug!("A hub is not asked, because that could not be kept: {error}");
                let wait_secs = AGAIN_SECS;
                return (feed, errand, RequestEnd::Postponed { wait_secs });
            }
            let end = match ReadyRequest::of(&errand, &shared.parts) {
                Ok(ready) => ready.send().await,
                Err(end) => end,
            };
            (feed, errand, end)
        });
    }

    fn take_in(&mut self, (feed, errand, end): EndedRequest) {
        let now = self.shared.now();
        let times = self.shared.change(feed, |row| {
            row.ended(&errand.to, &end, now);
            row.failures(&errand.to)
        });
        let host = Url::parse(&errand.url).ok();
        let host = host.as_ref().and_then(Url::host_str).unwrap_or_default();
        let (RequestEnd::Refused { why } | RequestEnd::Failed { why, .. }) = &end else {
            debug!(feed.no = %feed, "Asked {host}: {end:?}");
            return;
        };
        let name = self.shared.name_of(feed);
        let what = match errand.to {
            PushService::Hub { .. } => "hub",
            PushService::Cloud => "cloud",
        };
        if times == 1 {
            warn!(feed.name = %name, "The {what} {host} of `{name}` cannot be used now, and the feed is polled as usual: {why}");
        } else {
            debug!(feed.name = %name, "The {what} {host} of `{name}` still cannot be used: {why}");
        }
    }

    fn wake_at(&self) -> Instant {
        let now = self.shared.now();
        let next_at = if self.in_flight.len() < IN_FLIGHT_MAX {
            lock(&self.shared.rows).next_at()
        } else {
            Stamp::MAX
        };
        let wait_us = next_at.micros().saturating_sub(now.micros());
        let wait_us = wait_us.min(AGAIN_SECS * SECOND_US);
        (Instant::now() + Duration::from_micros(wait_us)).min(self.write_at)
    }

    /// Writes the rows that have changed.
    async fn write_all(&mut self) {
        self.write_at = Instant::now() + Duration::from_secs(WRITE_SECS);
        let unwritten = lock(&self.shared.rows).unwritten();
        for feed in unwritten {
            if let Err(error) = self.shared.write(feed).await {
                debug!("The row of a hub could not be written: {error}");
                return;
            }
        }
    }

    /// Leaves the hubs of feeds that are not polled any more, and takes up those of new ones.
    async fn follow_catalog(&mut self) {
        let catalog = self.shared.parts.catalog.snapshot();
        let is_pushed = |feed: FeedNo| {
            catalog
                .feed_no(feed)
                .is_some_and(|feed| may_be_pushed(feed))
        };
        let held = lock(&self.shared.rows).feeds();
        let now = self.shared.now();
        for feed in held.into_iter().filter(|feed| !is_pushed(*feed)) {
            self.shared.change(feed, |row| row.leave(now));
            lock(&self.shared.documents).forget(feed);
        }
        self.seen.retain(|feed| is_pushed(*feed));
        let new: Vec<Arc<RegisteredFeed>> = catalog
            .polled()
            .filter(|feed| may_be_pushed(feed) && !self.seen.contains(&feed.no))
            .cloned()
            .collect();
        match self.take_up(&new).await {
            Ok(()) => self.seen.extend(new.iter().map(|feed| feed.no)),
            Err(error) => {
                debug!("The hubs of feeds could not be read from their records: {error}");
            }
        }
    }

    // Limit: hubs that only a header names are known after the next document.
    /// Takes up the services that the last documents of feeds named, from before there was a row of
    /// them.
    async fn take_up(&self, new: &[Arc<RegisteredFeed>]) -> Result<(), StoreError> {
        let shared = self.shared;
        let is_known = |feed: FeedNo| {
            let rows = lock(&shared.rows);
            rows.row(feed)
                .is_some_and(|row| row.named != NamedPush::default())
        };
        let lacking: HashMap<FeedNo, &Arc<RegisteredFeed>> = new
            .iter()
            .filter(|feed| !is_known(feed.no))
            .map(|feed| (feed.no, feed))
            .collect();
        let store = &*shared.parts.store;
        let take_up = |feed: &RegisteredFeed, metadata: &everfeed_adapters::Metadata| {
            let named = NamedPush::of(&[], metadata, &feed.settings.url);
            shared.name(feed.no, named);
        };
        if lacking.len() <= FEW_FEEDS {
            for feed in lacking.values() {
                match store.feed(feed.no).await {
                    Ok(record) => take_up(feed, &record.metadata),
                    // Whoever asks for it is told.
                    Err(error) if error.is_of_one_feed() => {}
                    Err(error) => return Err(error),
                }
            }
            return Ok(());
        }
        let mut records = listing::feeds(store);
        while let Some(record) = records.try_next().await? {
            if let Some(feed) = lacking.get(&record.no) {
                take_up(feed, &record.metadata);
            }
        }
        Ok(())
    }
}
