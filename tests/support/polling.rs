//! A pipeline whose feed the poller polls, over a store on disk; it is stopped, killed and started
//! again.

use crate::pipeline::Pipeline;
use everfeed::{
    clock::{Clock, System},
    feed::record::FeedNo,
    ingest::Poller,
    layers::ClientConfig,
    notify::Notify,
    store::{
        Store,
        redb::{self, Redb},
    },
};
use std::{path::Path, sync::Arc};
use testkit::wait::PATIENCE;
use tokio::{task::JoinHandle, time::timeout};
use tokio_util::sync::CancellationToken;

/// A poller at work, as in a process.
pub(crate) struct Polling {
    pub(crate) store: Arc<dyn Store>,
    pub(crate) notify: Arc<Notify>,
    pub(crate) poller: Poller,
    pub(crate) feed: FeedNo,
    stop: CancellationToken,
    task: JoinHandle<()>,
}

/// The feed `blog` in the store of a folder, with what is stored of it.
pub(crate) async fn in_folder(folder: &Path, url: &str) -> Pipeline {
    let clock: Arc<dyn Clock> = Arc::new(System);
    let file = folder.join("everfeed.redb");
    let store = Redb::open(&file, &redb::Config::default(), clock.clone());
    let limits = ClientConfig::default();
    Pipeline::over(Arc::new(store.unwrap()), clock, "blog", url, &limits).await
}

impl Polling {
    pub(crate) async fn start(pipeline: Pipeline) -> Self {
        let Pipeline {
            store,
            feed,
            context,
            upstream,
            ..
        } = pipeline;
        let (no, notify) = (feed.no, context.notify.clone());
        let poller = Poller::load(context, upstream, vec![feed]).await.unwrap();
        let (stop, running) = (CancellationToken::new(), poller.clone());
        let token = stop.clone();
        let task = tokio::spawn(async move { running.run(token).await.unwrap() });
        Self {
            store,
            notify,
            poller,
            feed: no,
            stop,
            task,
        }
    }

    pub(crate) async fn stop(self) {
        self.stop.cancel();
        timeout(PATIENCE, self.task)
            .await
            .expect("a stop is bounded")
            .unwrap();
        self.store.close().await.unwrap();
    }

    /// Ends it as a kill would, as far as one process can do that to itself.
    pub(crate) async fn kill(self) {
        self.task.abort();
        drop(self.task.await);
        drop(self.store);
    }
}
