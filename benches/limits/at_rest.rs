//! Question 13: subscriptions of which nothing is to be pushed: the time to take them all up, and
//! the memory that they take.

use crate::{
    fan_out::{callbacks, resident_bytes},
    house::PollerRig,
    report::Report,
};
use anyhow::{Result, ensure};
use everfeed::{
    catalog::{Catalog, CatalogSnapshot, FeedSettings, ReadGate, RegisteredFeed},
    clock::{Clock, System},
    feed::{order::Order, record::FeedRecord, stamp::Stamp, view::View},
    hub::{self, Hub},
    store::{
        Commit, Store, Subscription,
        subscriptions::{
            Algo, CallbackTarget, Dialect, Intent, Lease, LeaseTerms, NewSubscription, Pending,
            Progress, PushWishes, Start, Target,
        },
    },
    telemetry::Metrics,
};
use futures_util::{StreamExt as _, TryStreamExt as _, stream};
use std::{
    sync::Arc,
    time::{Duration, Instant},
};
use url::Url;

const TOPICS: usize = 1_000;
/// Rows that are written at once.
const WRITING: usize = 256;
const LEASE_SECS: u64 = 864_000;
/// The aim of the time, in seconds.
const START_AIM_SECS: f64 = 5.0;
/// Time in which all tasks have come to rest.
const REST: Duration = Duration::from_secs(5);

/// Asks with so many subscriptions, which are to take so many bytes at most.
pub(crate) async fn ask(report: &Report, subscriptions: usize, bytes_max: usize) -> Result<()> {
    report.question(
        &format!("(13) {subscriptions} subscriptions to {TOPICS} topics, at rest"),
        "the hub starts, until all are taken up",
    );
    let (house, _) = PollerRig::new(1).await?;
    let names = (0..TOPICS).map(|n| (format!("feed{n}"), format!("feed{n}.example/")));
    let records = house.store.register_all(names.collect()).await?;
    let mut ready = Vec::with_capacity(TOPICS);
    for record in &records {
        let commit = Commit {
            ready: true,
            ..Commit::nothing(record)
        };
        let record = house.store.commit(commit).await?.feed;
        house.notify.moved(record.no, record.head());
        ready.push(record);
    }
    let kept = stream::iter(0..subscriptions)
        .map(|n| keep(&*house.store, &ready[n % TOPICS], n))
        .buffer_unordered(WRITING);
    kept.try_collect::<()>().await?;
    let feeds = ready.iter().map(|record| {
        let url = Url::parse(&format!("https://{}.example/feed", record.name))?;
        Ok(RegisteredFeed::new(
            record.no,
            FeedSettings::new(&record.name, url),
        ))
    });
    let feeds: Vec<_> = feeds.collect::<Result<_>>()?;
    let before = resident_bytes()?;
    let clock: Arc<dyn Clock> = Arc::new(System);
    let start = Instant::now();
    let hub = Hub::new(hub::Parts {
        config: hub::Config::default(),
        readers: Arc::new(house.readers()?),
        store: house.store.clone(),
        notify: house.notify.clone(),
        clock: clock.clone(),
        callbacks: callbacks()?,
        gate: ReadGate::without_users(Catalog::new(CatalogSnapshot::new(feeds, [])), clock),
        metrics: Metrics::default(),
        jitter: rand::random,
    });
    hub.start(&[]).await?;
    let active: usize = hub.counts().values().map(|counts| counts.active).sum();
    let started = start.elapsed().as_secs_f64();
    ensure!(active == subscriptions, "all are taken up: {active}");
    tokio::time::sleep(REST).await;
    let memory = resident_bytes()?.saturating_sub(before);
    let verdict = |is_met| if is_met { "met" } else { "MISSED" };
    report.figure(
        "start",
        format!("{started:.1} s"),
        verdict(started < START_AIM_SECS),
    );
    report.figure(
        "memory",
        format!(
            "{} MB, {:.1} KB each",
            memory >> 20,
            memory as f64 / subscriptions as f64 / 1e3
        ),
        verdict(memory < bytes_max),
    );
    hub.shutdown(Duration::from_secs(5)).await;
    Ok(())
}

/// Keeps a subscription that is verified and has everything.
async fn keep(store: &dyn Store, feed: &FeedRecord, n: usize) -> Result<()> {
    let topic = format!(
        "http://127.0.0.1:8080/feeds/{}.atom?order=modified",
        feed.name
    );
    let target = Target::Callback(CallbackTarget {
        url: format!("http://h{n}.example/{n}"),
        topic_as_sent: topic.clone(),
        dialect: Dialect::WebSub,
        secret: None,
        algo: Algo::Sha256,
        verify_token: None,
        wishes: PushWishes::default(),
    });
    let terms = LeaseTerms {
        secs: LEASE_SECS,
        auto_refresh: false,
    };
    let now = Stamp::from_micros(System.now_us());
    let head = feed.completeness.first_cursor.clone();
    let new = NewSubscription {
        view: View::all(feed.no, Order::MODIFIED),
        representation: "atom".to_owned(),
        topic,
        target: target.clone(),
        pending: Pending {
            intent: Intent::Subscribe {
                target,
                lease: terms,
            },
            attempts: 0,
            next_try: now,
            give_up_at: now,
            start: Start::Head(head.clone()),
            principal: None,
            scanned: None,
        },
    };
    let sub = store.subscribe(new).await?;
    let lease = Lease {
        until: now.plus_secs(LEASE_SECS),
        terms,
    };
    let active = Subscription {
        lease: Some(lease),
        pending: None,
        ..sub
    };
    let progress = Progress {
        acked: head,
        ..Progress::default()
    };
    store.change_subscription(active, Some(progress)).await?;
    Ok(())
}
