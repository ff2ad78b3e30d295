//! The feeds of one page of the operator, in the order that is asked for; not what is said of them.
//!
//! A page of a hundred feeds is found among all without a copy of the text of any: what is compared is
//! a number for each feed, and its name where two have the same.

use crate::{
    catalog::{CatalogSnapshot, RegisteredFeed},
    feed::{
        record::{FeedNo, FeedRecord},
        stamp::Stamp,
    },
    notify::Notify,
    serve::feeds::list_range::{FeedRange, FeedSort, FeedSortKey},
    store::{Store, StoreError, listing},
};
use futures_util::TryStreamExt as _;
use std::{cmp::Ordering, collections::HashMap, sync::Arc};
use tokio::sync::{Mutex, MutexGuard};

/// The feeds of a page.
pub(super) struct SortedPage<'a> {
    /// The feeds, in their order.
    pub(super) feeds: Vec<&'a Arc<RegisteredFeed>>,
    /// The place in the order of the last one, if there are more behind it.
    pub(super) goes_on_at: Option<u64>,
}

// Decides: Which feeds are on a page of the operator, and in which order?
/// The page of a range, of so many feeds at most. `key` is the place of a feed in the order.
pub(super) fn sorted_page<'a>(
    feeds: impl Iterator<Item = &'a Arc<RegisteredFeed>>,
    key: impl Fn(&RegisteredFeed) -> u64,
    range: &FeedRange,
    feeds_max: usize,
) -> SortedPage<'a> {
    let FeedSort { by, is_reversed } = range.sort;
    let name = |feed: &'a Arc<RegisteredFeed>| feed.settings.name.as_str();
    let order = |one: (u64, &str), other: (u64, &str)| {
        let by_key = one.0.cmp(&other.0);
        let by_name = || one.1.cmp(other.1);
        match (by, is_reversed) {
            (FeedSortKey::Name, true) => by_name().reverse(),
            (_, true) => by_key.reverse().then_with(by_name),
            (_, false) => by_key.then_with(by_name),
        }
    };
    let begin = range.after.as_deref().map(|after| (range.at, after));
    let is_behind = |place| begin.is_none_or(|begin| order(place, begin) == Ordering::Greater);
    let mut found: Vec<(u64, &Arc<RegisteredFeed>)> = feeds
        .map(|feed| (key(feed), feed))
        .filter(|(key, feed)| is_behind((*key, name(feed))))
        .collect();
    let compare = |one: &(u64, &'a Arc<RegisteredFeed>), other: &(u64, &'a Arc<RegisteredFeed>)| {
        order((one.0, name(one.1)), (other.0, name(other.1)))
    };
    let has_more = found.len() > feeds_max;
    if has_more {
        found.select_nth_unstable_by(feeds_max, compare);
        found.truncate(feeds_max);
    }
    found.sort_unstable_by(compare);
    SortedPage {
        goes_on_at: found.last().filter(|_| has_more).map(|(key, _)| *key),
        feeds: found.into_iter().map(|(_, feed)| feed).collect(),
    }
}

/// Numbers of live items, for the order by them. They are read once of each feed, and again once it
/// has moved.
#[derive(Debug, Default)]
pub(super) struct ItemCounts(Mutex<HashMap<FeedNo, CountedItems>>);

/// Live items of a feed when it was read.
#[derive(Clone, Copy, Debug)]
pub(super) struct CountedItems {
    /// The last T of the feed then.
    last_t: Stamp,
    /// Its live items.
    pub(super) live: u64,
}

/// Feeds that are read one by one; if more have moved, all are read.
const READ_ALONE_MAX: usize = 256;

impl ItemCounts {
    /// The numbers of the feeds of a catalog. Those that cannot be read are left out, or are as they
    /// were.
    pub(super) async fn now(
        &self,
        store: &dyn Store,
        notify: &Notify,
        catalog: &CatalogSnapshot,
    ) -> MutexGuard<'_, HashMap<FeedNo, CountedItems>> {
        let mut counts = self.0.lock().await;
        if counts.len() > 2 * catalog.feeds().len() + READ_ALONE_MAX {
            counts.retain(|no, _| catalog.feed_no(*no).is_some());
        }
        let has_moved = |feed: &&Arc<RegisteredFeed>| {
            let counted = counts.get(&feed.no).map(|counted| counted.last_t);
            notify.head(feed.no).map(|head| head.last_t) != counted
        };
        let moved: Vec<FeedNo> = catalog
            .feeds()
            .filter(has_moved)
            .map(|feed| feed.no)
            .collect();
        let read = if moved.len() > READ_ALONE_MAX {
            read_all(store, &mut counts).await
        } else {
            read_each(store, &moved, &mut counts).await
        };
        if let Err(error) = read {
            tracing::debug!("The items of the feeds could not be counted: {error}");
        }
        counts
    }
}

async fn read_all(
    store: &dyn Store,
    counts: &mut HashMap<FeedNo, CountedItems>,
) -> Result<(), StoreError> {
    let mut records = listing::feeds(store);
    while let Some(record) = records.try_next().await? {
        counts.insert(record.no, CountedItems::of(&record));
    }
    Ok(())
}

async fn read_each(
    store: &dyn Store,
    feeds: &[FeedNo],
    counts: &mut HashMap<FeedNo, CountedItems>,
) -> Result<(), StoreError> {
    for no in feeds {
        match store.feed(*no).await {
            Ok(record) => {
                counts.insert(*no, CountedItems::of(&record));
            }
            Err(error) if error.is_of_one_feed() => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

impl CountedItems {
    fn of(record: &FeedRecord) -> Self {
        Self {
            last_t: record.last_t,
            live: record.items.live,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::catalog::FeedSettings;
    use std::{cell::Cell, time::Instant};
    use url::Url;

    fn feeds(count: u32) -> Vec<Arc<RegisteredFeed>> {
        let feed = |no: u32| {
            let url = Url::parse(&format!("http://h{no}.example/feed")).unwrap();
            let settings = FeedSettings::new(format!("f{no:06}"), url);
            Arc::new(RegisteredFeed::new(FeedNo(no), settings))
        };
        (0..count).map(feed).collect()
    }

    fn range(query: &str) -> FeedRange {
        FeedRange::of_operator(query).unwrap()
    }

    /// Numbers of the feeds on all pages, one page after another.
    fn walked(all: &[Arc<RegisteredFeed>], query: &str, key: fn(u32) -> u64) -> Vec<u32> {
        let mut range = range(query);
        let mut found = Vec::new();
        loop {
            let page = sorted_page(all.iter(), |feed| key(feed.no.0), &range, 3);
            found.extend(page.feeds.iter().map(|feed| feed.no.0));
            let Some(at) = page.goes_on_at else {
                return found;
            };
            let last = &page.feeds.last().unwrap().settings.name;
            range = self::range(&range.next_at(last, at));
        }
    }

    #[test]
    fn pages_of_each_order_have_each_feed_once_and_go_on_where_the_last_one_ended() {
        let all = feeds(8);
        let halves = |no| u64::from(no / 2);
        let check = |query, key, expect: [u32; 8]| assert_eq!(walked(&all, query, key), expect);
        check("sort=name", |_| 0, [0, 1, 2, 3, 4, 5, 6, 7]);
        check("sort=-name", |_| 0, [7, 6, 5, 4, 3, 2, 1, 0]);
        check("sort=items", halves, [0, 1, 2, 3, 4, 5, 6, 7]);
        check("sort=-items", halves, [6, 7, 4, 5, 2, 3, 0, 1]);
        // The feed at the end of a page may be gone, or have another place by now.
        let behind = range("sort=items&after=f000003x&at=1");
        let page = sorted_page(all.iter(), |feed| halves(feed.no.0), &behind, 2);
        let found: Vec<u32> = page.feeds.iter().map(|feed| feed.no.0).collect();
        assert_eq!(found, [4, 5]);
    }

    #[test]
    fn a_page_among_very_many_feeds_asks_for_one_number_of_each_and_copies_none() {
        const FEEDS: u32 = 100_000;
        let all = feeds(FEEDS);
        let asked = Cell::new(0);
        let key = |feed: &RegisteredFeed| {
            asked.set(asked.get() + 1);
            u64::from(feed.no.0 % 7)
        };
        let owners = |feed: &Arc<RegisteredFeed>| {
            (Arc::strong_count(feed), Arc::strong_count(&feed.settings))
        };
        let began = Instant::now();
        let page = sorted_page(all.iter(), key, &range("sort=state"), 100);
        let took = began.elapsed();
        assert_eq!((page.feeds.len(), page.goes_on_at), (100, Some(0)));
        assert_eq!(asked.get(), FEEDS);
        // They are the feeds of the catalog themselves.
        let no = page.feeds[99].no.0 as usize;
        assert!(Arc::ptr_eq(page.feeds[99], &all[no]));
        assert!(all.iter().all(|feed| owners(feed) == (1, 1)));
        println!("{FEEDS} feeds: {took:?}");
    }
}
