//! A store, a pipeline with the real client stack, and a mirror that pulls; no server.

use everfeed::{
    clock::{Clock, Manual, System},
    feed::{
        item::{Item, ItemId},
        order::Order,
        page::PageQuery,
        position::Position,
        record::FeedNo,
        schedule::PollState,
    },
    ingest::{
        Context, FeedSpec, PollSettings, Upstream,
        polls::{Poll, Polled},
    },
    layers::{ClientConfig, Governor, upstream},
    notify::Notify,
    store::{Store, memory::Memory},
};
use std::{collections::HashMap, num::NonZeroU32, sync::Arc, time::Duration};
use tokio_util::sync::CancellationToken;
use url::Url;

/// One feed from its publisher to its store.
pub(crate) struct Pipeline {
    pub(crate) store: Arc<dyn Store>,
    pub(crate) feed: FeedSpec,
    pub(crate) state: PollState,
    pub(crate) context: Context,
    pub(crate) upstream: Upstream,
    /// The clock, where it goes on by [`Self::wait`] alone.
    manual: Option<Arc<Manual>>,
}

impl Pipeline {
    /// Registers a feed at a URL, in a store in memory.
    pub(crate) async fn new(name: &str, url: &str, limits: &ClientConfig) -> Self {
        let clock = Arc::new(Manual::at(System.now_us()));
        let store = Arc::new(Memory::new(clock.clone()));
        let mut pipeline = Self::over(store, clock.clone(), name, url, limits).await;
        pipeline.manual = Some(clock);
        // A sequence is polled faster than any feed.
        pipeline.feed.poll = PollSettings {
            min_secs: Some(1),
            max_secs: 60,
        };
        pipeline
    }

    /// Registers a feed in a store, or takes up what is stored of it.
    pub(crate) async fn over(
        store: Arc<dyn Store>,
        clock: Arc<dyn Clock>,
        name: &str,
        url: &str,
        limits: &ClientConfig,
    ) -> Self {
        // Loopback needs no politeness.
        let many = NonZeroU32::new(1_000_000).unwrap();
        let client = upstream(limits, Governor::new(many, many)).unwrap();
        let contact = Url::parse("https://me.example/").unwrap();
        let upstream = Upstream::new(client, contact, clock.clone());
        let no = store.register(name, name).await.unwrap().no;
        Self {
            feed: FeedSpec::new(no, name, Url::parse(url).unwrap()),
            state: PollState::unpolled(url),
            context: Context::new(store.clone(), Arc::new(Notify::new()), clock),
            store,
            upstream,
            manual: None,
        }
    }

    /// Lets so much time pass, in seconds. Does nothing over a store that was given.
    pub(crate) fn wait(&self, secs: u64) {
        if let Some(clock) = &self.manual {
            clock.advance(Duration::from_secs(secs));
        }
    }

    /// Polls once, as the poller would, a second later.
    pub(crate) async fn poll(&mut self) -> Polled {
        self.wait(1);
        let stop = CancellationToken::new();
        let polled = Poll::new(&self.context, &self.feed, &self.state)
            .run(&self.upstream, &stop)
            .await
            .expect("nobody stops it");
        self.state = polled.state.clone();
        polled
    }
}

/// A consumer that follows `since=last_cursor`.
#[derive(Default)]
pub(crate) struct Mirror {
    pub(crate) items: HashMap<ItemId, Arc<Item>>,
    pub(crate) last_cursor: String,
}

impl Mirror {
    /// Pulls what is new; answers with the items as they came, and what was held of each before.
    pub(crate) async fn pull(
        &mut self,
        store: &dyn Store,
        feed: FeedNo,
    ) -> Vec<(Arc<Item>, Option<Arc<Item>>)> {
        let mut news = Vec::new();
        loop {
            let page = store
                .page(query(feed, &self.last_cursor, 20))
                .await
                .unwrap();
            for item in page.items {
                let before = self.items.insert(item.id, item.clone());
                news.push((item, before));
            }
            self.last_cursor = page.last_cursor;
            if !page.more {
                return news;
            }
        }
    }

    /// True when it holds exactly what the store holds.
    pub(crate) async fn equals(&self, store: &dyn Store, feed: FeedNo) -> bool {
        let page = store.page(query(feed, "", usize::MAX)).await.unwrap();
        assert!(!page.more);
        let held = page
            .items
            .iter()
            .all(|item| self.items.get(&item.id) == Some(item));
        held && page.items.len() == self.items.len()
            && page.record.items.total == page.items.len() as u64
    }
}

fn query(feed: FeedNo, since: &str, max: usize) -> PageQuery {
    let since = (!since.is_empty()).then(|| Position::of_cursor(since));
    PageQuery {
        since,
        max,
        ..PageQuery::all(feed, Order::MODIFIED)
    }
}
