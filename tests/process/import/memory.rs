//! The peak of a process that reads a thousand archives, beside the bytes of the archives.

use super::publisher::{Past, start};
use everfeed::{
    clock::System,
    feed::archive::History,
    ingest::{Context, FeedSpec, ImportSettings, Poller, Upstream},
    layers::{ClientConfig, Governor, upstream},
    notify::Notify,
    store::{
        redb::{self, Redb, StoreReport},
        traits::*,
    },
};
use std::{
    num::NonZeroU32,
    sync::Arc,
    time::{Duration, Instant},
};
use tokio_util::sync::CancellationToken;
use url::Url;

/// Bytes of memory per byte of archives at most, inflated.
const TIMES_MAX: f64 = 4.0;

/// A line of `/proc/self/status` in bytes.
fn status(name: &str) -> f64 {
    let text = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = text.lines().find(|line| line.starts_with(name)).unwrap();
    line.split_whitespace()
        .nth(1)
        .unwrap()
        .parse::<f64>()
        .unwrap()
        * 1024.0
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "it takes a minute, and measures the whole process, so nothing else may run in it"]
async fn an_import_takes_a_small_multiple_of_its_archives() {
    let number = |name, default| {
        let text = std::env::var(name).ok();
        text.and_then(|text| text.parse().ok()).unwrap_or(default)
    };
    let pages = number("EVERFEED_PAGES", 1000);
    let past = Past {
        archives: pages,
        posts: number("EVERFEED_POSTS", 20),
        bytes: number("EVERFEED_BYTES", 5 << 10),
        pause: Duration::ZERO,
    };
    let archives = past.document(0).len() * pages;
    let publisher = start(past).await;
    let folder = tempfile::tempdir().unwrap();
    let clock = Arc::new(System);
    let store = Redb::open(
        &folder.path().join("everfeed.redb"),
        &redb::Config::default(),
        clock.clone(),
    );
    let store = Arc::new(store.unwrap());
    let many = NonZeroU32::new(1_000_000).unwrap();
    let client = upstream(&ClientConfig::default(), Governor::new(many, many)).unwrap();
    let upstream = Upstream::new(
        client,
        Url::parse("http://me.example/").unwrap(),
        clock.clone(),
    );
    let context = Context::new(store.clone(), Arc::new(Notify::new()), clock);
    let no = store.register("blog", "blog").await.unwrap().no;
    let import = ImportSettings {
        serve_after_secs: 3600,
        page_gap_secs: 0,
        loopback_gap_secs: 0,
        ..ImportSettings::default()
    };
    let url = Url::parse(&publisher.url("/feed")).unwrap();
    let feed = FeedSpec::new(no, "blog", url).with(|feed| feed.import = import);
    let poller = Poller::load(context, upstream, vec![feed]).await.unwrap();
    let stop = CancellationToken::new();
    let (token, begun, before) = (stop.clone(), Instant::now(), status("VmHWM"));
    let task = tokio::spawn(async move { poller.run(token).await.unwrap() });
    let mut walked = 0.0;
    // It is served when all is read, and complete when that is proven.
    while store.feed(no).await.unwrap().completeness.history != History::Complete {
        assert!(
            begun.elapsed() < Duration::from_secs(600),
            "it comes to an end"
        );
        if publisher.paths().len() <= pages {
            walked = status("VmHWM");
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    let peak = status("VmHWM");
    stop.cancel();
    task.await.unwrap();
    let record = store.feed(no).await.unwrap();
    assert_eq!(
        (record.items.total, record.completeness.history),
        (past.total() as u64, History::Complete)
    );
    let mib = |bytes: f64| bytes / f64::from(1 << 20);
    let times = (peak - before) / archives as f64;
    println!(
        "{pages} archives, {:.0} MiB inflated: peak {:.0} MiB ({:.0} before, {:.0} while walking), {times:.1} bytes for each, {:.0} s",
        mib(archives as f64),
        mib(peak),
        mib(before),
        mib(walked),
        begun.elapsed().as_secs_f64()
    );
    store.close().await.unwrap();
    drop(store);
    let content = past.content_bytes() as f64;
    println!("{content:.0} bytes of content");
    let path = folder.path().join("everfeed.redb");
    print_report("imported", &redb::report(&path).unwrap(), content);
    redb::compact(&path).unwrap();
    print_report("compacted", &redb::report(&path).unwrap(), content);
    if let Some(folder) = std::env::var_os("EVERFEED_DOCUMENTS") {
        for page in 0..=pages {
            let file = std::path::Path::new(&folder).join(format!("{page:05}.xml"));
            std::fs::write(file, past.document(page)).unwrap();
        }
    }
    // Short posts cost more than their text.
    assert!(past.bytes < 5 << 10 || times < TIMES_MAX, "{times:.1}");
}

/// Prints the bytes of a file by table, for each byte of content.
fn print_report(when: &str, report: &StoreReport, content: f64) {
    println!("{when}: {:.2}", report.bytes as f64 / content);
    for table in report.tables.iter().filter(|table| table.rows > 0) {
        let part = table.page_bytes as f64 / content;
        println!("    {:<12} {:>8} rows {part:.3}", table.name, table.rows);
    }
    println!("    free {:.3}", report.free_bytes() as f64 / content);
}
