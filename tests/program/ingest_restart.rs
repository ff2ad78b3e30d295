//! The poller over real sockets and a store on disk, stopped and started again in the middle.

use everfeed::{
    clock::{Clock as _, System},
    feed::{record::FeedNo, stamp::Stamp},
    ingest::{Config, Context, FeedSpec, Poller, Upstream},
    layers::{Governor, upstream},
    notify::{HintFate, Notify},
    store::{
        redb::{self, Redb},
        traits::*,
    },
};
use std::{path::Path, sync::Arc};
use testkit::{
    publisher::{Answer, Publisher, with_headers},
    wait::PATIENCE,
};
use tokio::{task::JoinHandle, time::timeout};
use tokio_util::sync::CancellationToken;
use url::Url;

/// A process, as far as ingest goes.
struct Process {
    store: Arc<Redb>,
    notify: Arc<Notify>,
    poller: Poller,
    feed: FeedNo,
    stop: CancellationToken,
    task: JoinHandle<()>,
}

impl Process {
    async fn start(file: &Path, url: &str) -> Self {
        let clock = Arc::new(System);
        let store = Arc::new(Redb::open(file, &redb::Config::default(), clock.clone()).unwrap());
        let notify = Arc::new(Notify::new());
        let config = Config::default();
        let client = upstream(&config.client(), Governor::default()).unwrap();
        let upstream = Upstream::new(
            client,
            url::Url::parse("http://127.0.0.1/").unwrap(),
            clock.clone(),
        );
        let context = Context::new(store.clone(), notify.clone(), clock);
        let feed = store.register("blog", "blog").await.unwrap().no;
        let spec = FeedSpec::new(feed, "blog", Url::parse(url).unwrap());
        let poller = Poller::load(context, upstream, vec![spec]).await.unwrap();
        let (stop, running) = (CancellationToken::new(), poller.clone());
        let token = stop.clone();
        let task = tokio::spawn(async move { running.run(token).await.unwrap() });
        Self {
            store,
            notify,
            poller,
            feed,
            stop,
            task,
        }
    }

    /// Waits until the feed holds so many items.
    async fn wait_for(&self, items: u64) {
        let mut waiter = self
            .notify
            .watch(self.feed)
            .expect("a poller announces its feeds");
        let reached = async {
            while self.store.feed(self.feed).await.unwrap().items.total < items {
                waiter.changed().await.unwrap();
            }
        };
        timeout(PATIENCE, reached).await.expect("the items come");
    }

    async fn stop(self) {
        self.stop.cancel();
        timeout(PATIENCE, self.task)
            .await
            .expect("a stop is bounded")
            .unwrap();
        self.store.close().await.unwrap();
    }
}

fn document(items: usize) -> Answer {
    let item = |n: usize| format!("<item><guid>{n}</guid><title>post {n}</title></item>");
    let items_text: String = (1..=items).rev().map(item).collect();
    let text =
        format!("<rss version=\"2.0\"><channel><title>blog</title>{items_text}</channel></rss>");
    with_headers(
        200,
        &[
            ("etag", &format!("\"{items}\"")),
            ("last-modified", "today"),
        ],
        text.as_bytes(),
    )
}

#[tokio::test]
async fn a_restart_forgets_nothing_and_asks_for_nothing_twice() {
    // FRB 010, 015, 016, 037.
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("everfeed.redb");
    let publisher = Publisher::start().await;
    let url = publisher.url("/rss");
    publisher.says(document(2));
    let process = Process::start(&file, &url).await;
    process.wait_for(2).await;
    process.stop().await;

    for items in 3..=5 {
        let process = Process::start(&file, &url).await;
        let known = process.poller.status(process.feed).unwrap();
        assert_eq!(
            (
                known.health.failures,
                known.validators.and_then(|pair| pair.etag)
            ),
            (0, Some(format!("\"{}\"", items - 1)))
        );
        assert_eq!(
            publisher.requests().len(),
            items - 2,
            "a start polls nothing that is not due"
        );
        publisher.says(document(items));
        assert_eq!(
            process
                .notify
                .hint(process.feed, Stamp::from_micros(System.now_us())),
            HintFate::Taken
        );
        process.wait_for(items as u64).await;
        let request = publisher.requests().pop().unwrap();
        assert!(
            request.contains(&format!("if-none-match: \"{}\"\r\n", items - 1)),
            "{request}"
        );
        assert!(
            request.contains("if-modified-since: today\r\n"),
            "{request}"
        );
        process.stop().await;
    }
}
