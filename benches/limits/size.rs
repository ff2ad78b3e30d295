//! Question 9: a page of a short and of a long feed. Nothing that a page costs may grow with the
//! items before it.

use crate::{
    report::{Aim, Report},
    rounds::Spread,
    search::{Search, filled},
};
use anyhow::Result;
use everfeed::{
    clock::System,
    feed::order::Order,
    store::{
        Store,
        redb::{Config, Redb},
    },
};
use std::{sync::Arc, time::Instant};

/// Words in an item: few, so that long feeds have room on a disk.
const ITEM_WORDS: usize = 20;
/// The longest that a page may take, in milliseconds.
const AIM_MS: f64 = 10.0;

/// Asks feeds of so many items. A feed of ten millions takes a file of 9 GB, and more than ten
/// minutes.
pub(crate) async fn ask(report: &Report, sizes: &[u32]) -> Result<()> {
    report.question(
        "(9) A page of 50 items of 20 words, from a place of the feed on, other places each time",
        "the slowest of 40 pages, after one that warms up (the median before it; and times the median in the shortest feed)",
    );
    let mut shortest = [None; 3];
    for items in sizes {
        let folder = tempfile::tempdir()?;
        let path = folder.path().join("store.redb");
        let store: Arc<dyn Store> =
            Arc::new(Redb::open(&path, &Config::default(), Arc::new(System))?);
        let start = Instant::now();
        let feed = filled(&*store, *items, ITEM_WORDS).await?;
        let rate = f64::from(*items) / start.elapsed().as_secs_f64();
        let gigabytes = std::fs::metadata(&path)?.len() as f64 / 1e9;
        report.figure(
            format!("{items} items: import"),
            format!("{rate:.0} items/s, a file of {gigabytes:.2} GB"),
            "",
        );
        let feed = Search { store, feed };
        let orders = [
            Order::MODIFIED,
            Order::CREATED_REVERSE,
            Order::PUBLISHED_REVERSE,
        ];
        for (order, shortest) in orders.into_iter().zip(&mut shortest) {
            let Spread {
                median, greatest, ..
            } = feed.pages(None, order).await?;
            let ratio = median / *shortest.get_or_insert(median);
            report.times(
                format!("{items} items, {order}"),
                format!("{greatest:.2} ms ({median:.2} ms, {ratio:.1})"),
                greatest,
                Aim::UnderMs(AIM_MS),
            );
        }
    }
    Ok(())
}
