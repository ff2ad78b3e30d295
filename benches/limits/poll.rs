//! Question 5: a poll of a document of 100 KB that is unchanged or has one new entry. The whole
//! pipeline, the saving of the poll state included, against a GET by reqwest and SHA-256 of the
//! body.

use crate::{
    bare::Bare,
    content::{NAMESPACE, guid, prose},
    report::{Aim, Report},
    rounds::{Spread, compare},
};
use anyhow::{Context as _, Result, ensure};
use bytes::Bytes;
use everfeed::{
    clock::{Clock, System},
    feed::schedule::PollState,
    ingest::{
        Context, FeedSpec, PollSettings, Upstream,
        polls::{Poll, PollSaving},
    },
    layers::{ClientConfig, Governor, upstream},
    notify::Notify,
    store::{
        Store, StoreError,
        memory::Memory,
        redb::{Config, Redb},
    },
};
use sha2::{Digest as _, Sha256};
use std::{cell::RefCell, hint::black_box, num::NonZeroU32, sync::Arc, time::Instant};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;
use url::Url;

const ENTRIES: u32 = 50;
const ROUNDS: usize = 7;
const UNCHANGED_POLLS: usize = 200;
const NEW_POLLS: usize = 30;

pub(crate) async fn ask(report: &Report) -> Result<()> {
    let bytes = document(0).len();
    report.question(
        &format!("(5) Poll of a document of {ENTRIES} entries, {} KB", bytes / 1000),
        "pipeline: fetch, slice, decide, commit / GET by reqwest and SHA-256 of the body; loopback, no validators",
    );
    let clock: Arc<dyn Clock> = Arc::new(System);
    let folder = tempfile::tempdir()?;
    let redb = Redb::open(
        &folder.path().join("store.redb"),
        &Config::default(),
        clock.clone(),
    )?;
    let stores: [(&str, Arc<dyn Store>); 2] = [
        ("memory", Arc::new(Memory::new(clock.clone()))),
        ("redb", Arc::new(redb)),
    ];
    for (name, store) in stores {
        let subject = Subject::new(store, &clock).await?;
        let unchanged = subject.compare(UNCHANGED_POLLS, 0).await?;
        report.ratio(format!("unchanged, {name}"), unchanged, Aim::AtLeast(0.6));
        let one_new = subject.compare(NEW_POLLS, 1).await?;
        report.ratio(
            format!("one new entry each time, {name}"),
            one_new,
            Aim::AtLeast(0.2),
        );
    }
    Ok(())
}

/// A publisher, a feed that is polled from it, and a client that only gets.
struct Subject {
    publisher: Bare,
    context: Context,
    upstream: Upstream,
    feed: FeedSpec,
    polled: RefCell<Polled>,
    noting: RefCell<Option<JoinHandle<Result<(), StoreError>>>>,
    client: reqwest::Client,
}

/// The state of the feed.
struct Polled {
    state: PollState,
    /// The newest entry that was published.
    newest: u32,
}

impl Subject {
    async fn new(store: Arc<dyn Store>, clock: &Arc<dyn Clock>) -> Result<Self> {
        let publisher = Bare::serve("application/rss+xml", document(0)).await?;
        let url = Url::parse(&format!("http://{}/feed", publisher.address))?;
        // Politeness is not what is measured.
        let many = NonZeroU32::MAX;
        let wire = upstream(&ClientConfig::default(), Governor::new(many, many))?;
        let upstream = Upstream::new(wire, Url::parse("https://me.example/")?, clock.clone());
        let no = store.register("blog", NAMESPACE).await?.no;
        let context = Context::new(store, Arc::new(Notify::new()), clock.clone());
        let state = PollState::unpolled(url.as_str());
        let client = reqwest::Client::builder()
            .no_proxy()
            .tls_certs_only([])
            .build()?;
        let mut feed = FeedSpec::new(no, "blog", url);
        feed.poll = PollSettings {
            min_secs: Some(1),
            max_secs: 60,
        };
        let polled = RefCell::new(Polled { state, newest: 0 });
        let subject = Self {
            publisher,
            context,
            upstream,
            feed,
            polled,
            noting: RefCell::default(),
            client,
        };
        subject.poll().await?;
        Ok(subject)
    }

    /// Both sides ask as often; before each request `step` new entries are published.
    async fn compare(&self, polls: usize, step: u32) -> Result<Spread> {
        compare(
            ROUNDS,
            async |_| self.timed(polls, step, async || self.poll().await).await,
            async |_| self.timed(polls, step, async || self.get().await).await,
        )
        .await
    }

    /// Seconds that some requests took, without the making of the documents.
    async fn timed(
        &self,
        polls: usize,
        step: u32,
        work: impl AsyncFn() -> Result<()>,
    ) -> Result<f64> {
        let mut secs = 0.0;
        for _ in 0..polls {
            if step > 0 {
                let mut polled = self.polled.borrow_mut();
                polled.newest += step;
                self.publisher.says(document(polled.newest));
            }
            let start = Instant::now();
            work().await?;
            secs += start.elapsed().as_secs_f64();
        }
        let start = Instant::now();
        self.noted().await?;
        secs += start.elapsed().as_secs_f64();
        // What was published while nobody polled is taken in before the next round.
        self.poll().await?;
        let total = self.context.store.feed(self.feed.no).await?.items.total;
        ensure!(
            total == u64::from(ENTRIES + self.polled.borrow().newest),
            "every entry is in the store"
        );
        Ok(secs)
    }

    async fn poll(&self) -> Result<()> {
        let state = self.polled.borrow().state.clone();
        let stop = CancellationToken::new();
        let polled = Poll::new(&self.context, &self.feed, &state)
            .run(&self.upstream, &stop)
            .await
            .context("nobody stops it")?;
        ensure!(
            polled.state.health.fault.is_none(),
            "the poll failed: {:?}",
            polled.state.health.fault
        );
        if polled.saving != PollSaving::Committed {
            self.noted().await?;
            let polls = vec![(self.feed.no, polled.state.clone())];
            let store = Arc::clone(&self.context.store);
            // As the poller does it: the next poll goes on meanwhile.
            let noting = tokio::spawn(async move { store.note_polls(polls).await });
            *self.noting.borrow_mut() = Some(noting);
        }
        self.polled.borrow_mut().state = polled.state;
        Ok(())
    }

    /// Waits until the last poll state is noted.
    async fn noted(&self) -> Result<()> {
        let noting = self.noting.borrow_mut().take();
        if let Some(noting) = noting {
            noting.await??;
        }
        Ok(())
    }

    async fn get(&self) -> Result<()> {
        let body = self
            .client
            .get(self.feed.url.clone())
            .send()
            .await?
            .bytes()
            .await?;
        black_box(Sha256::digest(&body));
        Ok(())
    }
}

/// The document whose newest entry is this one.
fn document(newest: u32) -> Bytes {
    let entry = |n: u32| {
        let (guid, prose) = (guid(n), prose(n).replace('&', "&amp;").replace('<', "&lt;"));
        format!(
            "<item><guid isPermaLink=\"false\">{guid}</guid><title>What happened on day {n}, and why</title>\
             <link>https://blog.example/2014/01/what-happened-on-day-{n}</link>\
             <pubDate>Wed, 02 Oct 2002 13:00:00 GMT</pubDate><category>diary</category>\
             <description>{prose}</description></item>\n"
        )
    };
    let entries: String = (newest..newest + ENTRIES).rev().map(entry).collect();
    let head =
        "<title>A diary</title><link>https://blog.example/</link><description>Days</description>";
    Bytes::from(format!(
        "<?xml version=\"1.0\"?>\n<rss version=\"2.0\"><channel>{head}\n{entries}</channel></rss>\n"
    ))
}
