//! A feed from its publisher to a store in memory, watched until its archives are read or nothing
//! happens any more.

use super::{Fault, blog::Blog};
use everfeed::{
    clock::System,
    feed::{archive::History, filter::Filter, order::Order, page::PageQuery},
    ingest::{Context, FeedSpec, ImportSettings, Poller, Upstream},
    layers::{ClientConfig, Governor, upstream},
    notify::Notify,
    store::{memory::Memory, traits::*},
};
use std::{
    collections::{BTreeSet, HashMap},
    num::NonZeroU32,
    sync::{Arc, Mutex},
    time::{Duration, Instant},
};
use testkit::publisher::Publisher;
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;
use url::Url;

/// Longer than any of these archives takes to be read and proven.
const PATIENCE: Duration = Duration::from_secs(240);
/// So long a feed that is not complete must have asked nothing before it is taken for finished.
const SILENCE: Duration = Duration::from_secs(48);
const LOOK: Duration = Duration::from_millis(20);

/// Results of a world.
pub(crate) struct Seen {
    pub(crate) history: String,
    /// True when the history was ever said to be complete.
    pub(crate) was_complete: bool,
    /// Posts of the beginning that are alive and not held.
    pub(crate) lost: usize,
    pub(crate) held: usize,
    pub(crate) posts: usize,
    pub(crate) requests: usize,
}

/// Watches a blog; `until_complete` or until nothing happens any more.
pub(crate) async fn watch(blog: Blog, fault: Fault, until_complete: bool) -> Seen {
    let (posts, path) = (blog.posts.clone(), blog.feed());
    let blog = Arc::new(Mutex::new(blog));
    let serving = blog.clone();
    let mut times: HashMap<String, usize> = HashMap::new();
    let mut nth = 0;
    let publisher = Publisher::of(move |asked| {
        let mut blog = serving.lock().unwrap();
        let target = asked.path().to_owned();
        let before = times.entry(target.clone()).or_default();
        *before += 1;
        nth += 1;
        // The order of edits is not known to this server.
        let page = if target.contains("orderby=") {
            0
        } else {
            blog.number(&target)
        };
        let reply = fault(&mut blog, page, *before - 1, nth - 1);
        reply.unwrap_or_else(|| blog.answer(&target)).send()
    })
    .await;
    let store = Arc::new(Memory::new(Arc::new(System)));
    let many = NonZeroU32::new(1_000_000).unwrap();
    let client = upstream(&ClientConfig::default(), Governor::new(many, many)).unwrap();
    let upstream = Upstream::new(
        client,
        Url::parse("http://me.example/").unwrap(),
        Arc::new(System),
    );
    let context = Context::new(store.clone(), Arc::new(Notify::new()), Arc::new(System));
    let no = store.register("blog", "blog").await.unwrap().no;
    let import = ImportSettings {
        serve_after_secs: 45,
        page_gap_secs: 0,
        ..ImportSettings::default()
    };
    let url = Url::parse(&publisher.url(path)).unwrap();
    let feed = FeedSpec::new(no, "blog", url).with(|feed| feed.import = import);
    let poller = Poller::load(context, upstream, vec![feed]).await.unwrap();
    let stop = CancellationToken::new();
    let token = stop.clone();
    let task = tokio::spawn(async move { poller.run(token).await.unwrap() });
    let (begun, mut was_complete) = (Instant::now(), false);
    let mut asked = (0, Instant::now());
    loop {
        let record = store.feed(no).await.unwrap();
        was_complete |= record.is_ready() && record.completeness.history == History::Complete;
        let requests = publisher.paths().len();
        if requests != asked.0 {
            asked = (requests, Instant::now());
        }
        let is_quiet = asked.1.elapsed() > SILENCE;
        if until_complete && was_complete || is_quiet || begun.elapsed() > PATIENCE {
            break;
        }
        sleep(LOOK).await;
    }
    stop.cancel();
    task.await.unwrap();
    let query = PageQuery {
        filter: Filter::Live,
        ..PageQuery::all(no, Order::MODIFIED)
    };
    let page = store.page(query).await.unwrap();
    let title =
        |item: &Arc<everfeed::feed::item::Item>| Some(item.entry()?.title.as_ref()?.value.clone());
    let held: BTreeSet<String> = page.items.iter().filter_map(title).collect();
    let now = blog.lock().unwrap().posts.clone();
    let is_lost = |post: &&u32| now.contains(post) && !held.contains(&format!("Post {post}"));
    Seen {
        history: store
            .feed(no)
            .await
            .unwrap()
            .completeness
            .history
            .to_string(),
        was_complete,
        lost: posts.iter().filter(is_lost).count(),
        held: held.len(),
        posts: posts.len(),
        requests: publisher.paths().len(),
    }
}
