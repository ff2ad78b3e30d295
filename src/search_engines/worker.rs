//! The tasks that send what is due, one for each site, so that none waits for another. What is sent,
//! and when, is decided in `feed::index_now`.

use super::{
    AnnouncedSite, SearchEngines, Shared,
    engine::{KeySeen, look_at_key, send},
};
use crate::{
    catalog::{CatalogSnapshot, Sites},
    feed::{
        index_now::{EngineAnswer, IndexNow, IndexNowFaultKind, OfferedItem, UrlBatch},
        order::Order,
        page::PageQuery,
        position::Position,
        record::FeedNo,
        stamp::Stamp,
    },
    locks::lock,
    secret::Secret,
    store::StoreError,
};
use std::{sync::Arc, time::Duration};
use tokio::{
    task::JoinSet,
    time::{MissedTickBehavior, interval},
};
use tokio_util::sync::CancellationToken;
use tracing::{debug, info, warn};
use url::Url;

/// Time between two looks for news. News of a site are sent together that come within it.
pub(super) const LOOK_EVERY: Duration = Duration::from_secs(5);
/// Items that are read at once.
const ITEMS_MAX: usize = 500;
/// Bytes of stored items that are read at once, though never less than one item.
const BYTES_MAX: usize = 4 << 20;
/// Bytes of a key: 128 bits, which nobody guesses.
const KEY_BYTES: usize = 16;

impl SearchEngines {
    /// Sends what is due until `stop`. A batch that is under way then comes to its end, so that it is
    /// not sent again.
    pub async fn run(self, stop: CancellationToken) {
        let catalog = &self.0.parts.catalog;
        catalog
            .run_for_sites(stop, |sites, stop| self.run_for(sites, stop))
            .await;
    }

    async fn run_for(&self, sites: Arc<Sites>, stop: CancellationToken) {
        let announced = self.0.sites(&sites);
        let is_on = |root: &Url| {
            announced
                .iter()
                .any(|site| site.is_on && site.root == *root)
        };
        lock(&self.0.told).retain(|root, _| is_on(root));
        let mut tasks = JoinSet::new();
        for site in announced {
            let (shared, stop) = (self.0.clone(), stop.clone());
            let sites = sites.clone();
            tasks.spawn(async move {
                let site = SiteTask {
                    shared,
                    sites,
                    site,
                };
                site.run(stop).await;
            });
        }
        while tasks.join_next().await.is_some() {}
    }
}

/// The task of one site.
struct SiteTask {
    shared: Arc<Shared>,
    /// The sites among which it has its number.
    sites: Arc<Sites>,
    site: AnnouncedSite,
}

/// The state of a site while its task runs.
struct SiteState {
    row: IndexNow,
    /// True if the row in the store is an older one.
    is_unwritten: bool,
    /// True once the key file was looked at.
    is_key_seen: bool,
    /// True once the engine has refused the key.
    is_stopped: bool,
}

impl SiteTask {
    fn now(&self) -> Stamp {
        Stamp::from_micros(self.shared.parts.clock.now_us())
    }

    async fn run(self, stop: CancellationToken) {
        let mut ticks = interval(LOOK_EVERY);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut state = None;
        loop {
            tokio::select! {
                biased;
                () = stop.cancelled() => return,
                _ = ticks.tick() => {}
            }
            let looked = match &mut state {
                None => match self.open().await {
                    Ok(Some(opened)) => {
                        state = Some(opened);
                        Ok(())
                    }
                    // It is off, and nothing is kept of it any more.
                    Ok(None) => return,
                    Err(error) => Err(error),
                },
                Some(state) => self.look(state).await,
            };
            if let Err(error) = looked {
                debug!(
                    "Search engines are told later of {}: {error}",
                    self.site.root
                );
            }
            if let Some(state) = &state {
                lock(&self.shared.told).insert(self.site.root.clone(), (&state.row).into());
            }
        }
    }

    /// Reads the row of the site, or begins one; `None` where it is off: then its row goes, so that it
    /// gets a new key and begins anew when it is on again.
    async fn open(&self) -> Result<Option<SiteState>, StoreError> {
        let store = &self.shared.parts.store;
        let root = self.site.root.as_str();
        let row = store.index_now(root).await?;
        if !self.site.is_on {
            if row.is_some() {
                store.keep_index_now(root, None).await?;
            }
            return Ok(None);
        }
        let is_new = row.is_none();
        let row = row.unwrap_or_else(|| {
            let key: [u8; KEY_BYTES] = rand::random();
            IndexNow::begin(Secret::new(hex::encode(key)), self.now())
        });
        let mut state = SiteState {
            row,
            is_unwritten: is_new,
            is_key_seen: false,
            is_stopped: false,
        };
        self.take_up_feeds(&mut state).await?;
        self.write(&mut state).await?;
        if is_new {
            info!("Search engines are told of the posts of {root} from now on");
        }
        Ok(Some(state))
    }

    async fn write(&self, state: &mut SiteState) -> Result<(), StoreError> {
        if state.is_unwritten {
            let (store, root) = (&self.shared.parts.store, self.site.root.as_str());
            let row = Some(state.row.clone());
            store.keep_index_now(root, row).await?;
            state.is_unwritten = false;
        }
        Ok(())
    }

    fn catalog(&self) -> Arc<CatalogSnapshot> {
        self.shared.parts.catalog.snapshot()
    }

    /// The feeds of the site, and the T of the newest item of each.
    fn feeds(&self) -> Vec<(FeedNo, Stamp)> {
        let catalog = self.catalog();
        if !Arc::ptr_eq(catalog.sites(), &self.sites) {
            // Its number may be that of another site now, and it ends soon.
            return Vec::new();
        }
        let feeds = catalog.public_feeds_of_site(self.site.no);
        let head = |no| self.shared.parts.notify.head(no).filter(|head| head.ready);
        feeds
            .filter_map(|feed| Some((feed.no, head(feed.no)?.last_t)))
            .collect()
    }

    /// Takes up feeds that are new here.
    async fn take_up_feeds(&self, state: &mut SiteState) -> Result<(), StoreError> {
        for (feed, _) in self.feeds() {
            if state.row.cursor(feed).is_none() {
                let record = self.shared.parts.store.feed(feed).await?;
                state.row.take_up(&record);
                state.is_unwritten = true;
            }
        }
        Ok(())
    }

    /// Sends a batch, if anything is due.
    async fn look(&self, state: &mut SiteState) -> Result<(), StoreError> {
        // What was sent is noted before anything else is.
        self.write(state).await?;
        let now = self.now();
        if state.is_stopped || now < state.row.next_at {
            return Ok(());
        }
        self.take_up_feeds(state).await?;
        let is_behind = |(feed, last_t): (FeedNo, Stamp)| state.row.cursor(feed) < Some(last_t);
        if !self.feeds().into_iter().any(is_behind) && state.row.due(now).is_empty() {
            return self.write(state).await;
        }
        let batch = self.gather(&state.row, now).await?;
        if batch.urls.is_empty() {
            state.is_unwritten |= state.row.passed(&batch, now);
            return self.write(state).await;
        }
        let answer = self.answer(state, &batch).await;
        self.take_in(state, &batch, answer);
        self.write(state).await
    }

    /// The batch that is due.
    async fn gather(&self, row: &IndexNow, now: Stamp) -> Result<UrlBatch, StoreError> {
        let store = &self.shared.parts.store;
        let catalog = self.catalog();
        let root = &self.site.root;
        let feeds = self.feeds();
        let mut batch = row.batch(now);
        for page in row.due(now) {
            // One that is private now is not told of.
            let is_public = feeds.iter().any(|(feed, _)| *feed == page.feed);
            let item = if is_public {
                store.item(page.feed, page.item).await?
            } else {
                None
            };
            let offered = item.as_deref().map(|item| OfferedItem {
                feed: page.feed,
                item,
                root,
                announces_deletions: catalog.announces_deletions(page.feed),
            });
            if !batch.offer_due(page, offered) {
                return Ok(batch);
            }
        }
        for (feed, _) in feeds {
            let Some(cursor) = row.cursor(feed) else {
                continue;
            };
            let announces_deletions = catalog.announces_deletions(feed);
            let mut since = Position::at(cursor.next());
            loop {
                let query = PageQuery {
                    since: Some(since),
                    max: ITEMS_MAX,
                    bytes_max: BYTES_MAX,
                    ..PageQuery::all(feed, Order::MODIFIED)
                };
                let page = store.page(query).await?;
                for item in &page.items {
                    let offered = OfferedItem {
                        feed,
                        item,
                        root,
                        announces_deletions,
                    };
                    if !batch.offer(offered) {
                        return Ok(batch);
                    }
                }
                if !page.more {
                    break;
                }
                since = Position::of_cursor(&page.last_cursor);
            }
        }
        Ok(batch)
    }

    /// Looks at the key file, the first time, and sends a batch.
    async fn answer(&self, state: &mut SiteState, batch: &UrlBatch) -> EngineAnswer {
        let (parts, site) = (&self.shared.parts, &self.site);
        let key = &state.row.key;
        if !state.is_key_seen {
            if let KeySeen::No(why) = look_at_key(parts, site, key).await {
                return EngineAnswer::KeyUnread { why };
            }
            state.is_key_seen = true;
        }
        send(parts, site, key, &batch.urls).await
    }

    /// Takes in the answer to a batch, and logs it.
    fn take_in(&self, state: &mut SiteState, batch: &UrlBatch, answer: EngineAnswer) {
        let root = &self.site.root;
        let engine = self.shared.parts.config.indexnow_url.host_str();
        let engine = engine.unwrap_or_default();
        let before = state.row.fault.as_ref().map(|fault| fault.kind);
        state.row.answered(batch, answer, self.now());
        state.is_unwritten = true;
        let urls = batch.urls.len();
        let Some(fault) = &state.row.fault else {
            info!(
                index_now.urls = urls,
                "Told {engine} of {urls} URLs of {root}"
            );
            return;
        };
        state.is_stopped = fault.kind == IndexNowFaultKind::Forbidden;
        let why = &fault.why;
        match fault.kind {
            IndexNowFaultKind::Refused => {
                warn!("{engine} refused {urls} URLs of {root}, which are dropped: {why}");
            }
            IndexNowFaultKind::Forbidden => {
                warn!(
                    "{engine} does not take the key of {root}; nothing is sent until the next start: {why}"
                );
            }
            _ if before == Some(fault.kind) => {
                debug!("{engine} still cannot be told of {root}: {why}");
            }
            IndexNowFaultKind::KeyUnread => {
                warn!("Search engines cannot read the key file of {root}, will try again: {why}");
            }
            IndexNowFaultKind::Failing => {
                warn!(
                    "{engine} cannot be told of {urls} URLs of {root} now, will try again: {why}"
                );
            }
        }
    }
}
