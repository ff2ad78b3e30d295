//! Question 7: a page of a search by words, in feeds of ten thousand and of a million items, whose
//! words are as frequent as those of a language are; against a page of the same number of items
//! without a filter.

use crate::{
    content::{Chance, NAMESPACE, worded},
    report::{Aim, Report},
    rounds::Spread,
};
use anyhow::{Result, ensure};
use everfeed::{
    clock::System,
    feed::{filter::Filter, order::Order, page::PageQuery, position::Position, record::FeedNo},
    store::{
        Commit, Store,
        redb::{Config, Redb},
    },
};
use std::{fmt::Write as _, sync::Arc, time::Instant};

const PAGE_ITEMS: usize = 50;
const PAGES: usize = 40;
const COMMIT_ITEMS: u32 = 10_000;
/// Words in an item.
const ITEM_WORDS: usize = 300;
/// Words that there are: the n-th is met n times less often than the first.
const VOCABULARY: f64 = 200_000.0;
/// The longest that a page may take, in milliseconds.
const AIM_MS: f64 = 50.0;

pub(crate) async fn ask(report: &Report) -> Result<()> {
    report.question(
        "(7) Search: a page of 50 items with all words, from a place of the feed on, other places each time",
        "the slowest of 40 pages, after one that warms up (the median before it; and times the median of a page without a filter)",
    );
    for items in [10_000, 1_000_000] {
        let folder = tempfile::tempdir()?;
        let path = folder.path().join("store.redb");
        let store: Arc<dyn Store> =
            Arc::new(Redb::open(&path, &Config::default(), Arc::new(System))?);
        let start = Instant::now();
        let feed = filled(&*store, items, ITEM_WORDS).await?;
        let secs = start.elapsed().as_secs_f64();
        let gigabytes = std::fs::metadata(&path)?.len() as f64 / 1e9;
        report.figure(
            format!("{items} items: import with the index"),
            format!(
                "{:.0} items/s, a file of {gigabytes:.2} GB",
                f64::from(items) / secs
            ),
            "",
        );
        let search = Search { store, feed };
        let plain = search.pages(None, Order::MODIFIED).await?.median;
        for (what, words) in [
            ("a word of nearly every item", word(1)),
            ("a word of one item in 20", word(500)),
            ("a word of one item in 1,000", word(25_000)),
            (
                "two words of one item in 20",
                format!("{} {}", word(500), word(501)),
            ),
            ("two words that never meet", "odd even".to_owned()),
            ("no item's word", "nowhere".to_owned()),
        ] {
            for order in [
                Order::MODIFIED,
                Order::CREATED_REVERSE,
                Order::PUBLISHED_REVERSE,
            ] {
                let Spread {
                    median, greatest, ..
                } = search.pages(Some(&words), order).await?;
                report.times(
                    format!("{items} items, {order}: {what}"),
                    format!("{greatest:.2} ms ({median:.2} ms, {:.1})", median / plain),
                    greatest,
                    Aim::UnderMs(AIM_MS),
                );
            }
        }
    }
    Ok(())
}

/// Searches in a feed.
pub(crate) struct Search {
    pub(crate) store: Arc<dyn Store>,
    pub(crate) feed: FeedNo,
}

impl Search {
    /// The times of some pages in milliseconds, each of which begins elsewhere.
    pub(crate) async fn pages(&self, words: Option<&str>, order: Order) -> Result<Spread> {
        let filter = match words {
            Some(words) => Filter::of(&[("q", words)])?,
            None => Filter::All,
        };
        let mut chance = Chance::new(7);
        let mut times = Vec::with_capacity(PAGES);
        let record = self.store.feed(self.feed).await?;
        let (last, all) = (record.last_t.micros(), record.items.total);
        for page in 0..=PAGES {
            // Within an import, T rises by a microsecond an item.
            let place = last - chance.below(usize::try_from(all)?) as u64;
            let since = format!("time:{}.{:06}", place / 1_000_000, place % 1_000_000);
            let since = if page == 0 || order.axis == Order::PUBLISHED.axis {
                None
            } else {
                Position::parse(&since)?
            };
            let query = PageQuery {
                since,
                max: PAGE_ITEMS,
                filter: filter.clone(),
                ..PageQuery::all(self.feed, order)
            };
            let start = Instant::now();
            let answer = self.store.page(query).await?;
            if page > 0 {
                times.push(start.elapsed().as_secs_f64() * 1e3);
            }
            ensure!(answer.items.len() <= PAGE_ITEMS);
        }
        Ok(Spread::of(times))
    }
}

/// A feed of so many items, each of so many words.
pub(crate) async fn filled(store: &dyn Store, items: u32, words: usize) -> Result<FeedNo> {
    let mut record = store.register("blog", NAMESPACE).await?;
    let mut chance = Chance::new(1);
    for first in (0..items).step_by(COMMIT_ITEMS as usize) {
        let changes = (first..items.min(first + COMMIT_ITEMS))
            .map(|n| worded(n, &text(n, words, &mut chance)))
            .collect();
        let commit = Commit {
            changes,
            ready: true,
            ..Commit::nothing(&record)
        };
        record = store.commit(commit).await?.feed;
    }
    Ok(record.no)
}

/// A text whose words are as frequent as those of a language; every item is `odd` or `even`.
fn text(n: u32, words: usize, chance: &mut Chance) -> String {
    let mut text = String::from(if n.is_multiple_of(2) { "even" } else { "odd" });
    for _ in 0..words {
        let drawn = chance.below(1 << 24) as f64 / f64::from(1 << 24);
        // By the logarithm: each word as much rarer as it stands behind (Zipf).
        let nth = VOCABULARY.powf(drawn) as u32;
        let _ = write!(text, " {}", word(nth));
    }
    text
}

/// The n-th word: letters.
fn word(n: u32) -> String {
    let mut word = String::from("w");
    let mut rest = n;
    loop {
        word.push(char::from(b'a' + u8::try_from(rest % 26).unwrap_or(0)));
        rest /= 26;
        if rest == 0 {
            return word;
        }
    }
}
