//! Question 2: a page that nobody asked for before. The store, and readers with their rendering,
//! against redb's raw range and the decoding of items over a copy of the same file.

use crate::{
    content::Chance,
    house::PollerRig,
    report::{Aim, Report},
    rounds::compare,
};
use anyhow::{Result, ensure};
use everfeed::{
    feed::{
        cursor::Toc,
        item::{Item, ItemId},
        order::Order,
        page::PageQuery,
        position::Position,
        record::FeedNo,
        stamp::Stamp,
        view::View,
    },
    readers::ReadRequest,
    render::Representation,
    store::{redb::Config, stored_item},
};
use redb::{Builder, Database, ReadableDatabase as _, TableDefinition};
use std::{hint::black_box, ops::Bound, time::Instant};

const PAGE_ITEMS: usize = 50;
const PAGES: usize = 100;
const ROUNDS: usize = 31;

/// As schema 1 keeps it: feed and T, big-endian, to the item.
const ITEMS: TableDefinition<'_, &[u8; 12], &[u8]> = TableDefinition::new("items");

pub(crate) async fn ask(report: &Report) -> Result<()> {
    report.question(
        "(2) Cold page of 50 items of 2 KB, another `since` each time",
        "everfeed, one page after the other / redb: a snapshot, a range of 50 rows, each decoded, on a copy of the file",
    );
    for items in [1_000, 500_000] {
        let (mut house, places) = PollerRig::new(items).await?;
        let copy = house.copied().await?;
        let mut builder = Builder::new();
        builder.set_cache_size(Config::default().cache_bytes);
        let raw = builder.open(copy)?;
        let subject = Subject { house, raw, places };
        let (store, readers) = subject.compare().await?;
        report.ratio(
            format!("{items} items: store.page"),
            store,
            Aim::AtLeast(0.5),
        );
        // The limit renders nothing, so this has no aim.
        report.ratio(
            format!("{items} items: readers.read, that is with rendering as Atom"),
            readers,
            Aim::None,
        );
    }
    Ok(())
}

/// A feed in a store, the same in a file that is read raw, and where its items stand.
struct Subject {
    house: PollerRig,
    raw: Database,
    places: Vec<(ItemId, Stamp)>,
}

impl Subject {
    async fn compare(&self) -> Result<(crate::rounds::Spread, crate::rounds::Spread)> {
        let limit = async |round| self.raw_pages(round);
        let store = compare(ROUNDS, async |round| self.store_pages(round).await, limit).await?;
        let readers = compare(ROUNDS, async |round| self.read_pages(round).await, limit).await?;
        Ok((store, readers))
    }

    /// The places after which the pages of a round begin: each but once, the same for both sides.
    fn sinces(&self, round: usize) -> Vec<(ItemId, Stamp)> {
        let mut chance = Chance::new(round as u64 + 1);
        let mut last = self.places.len() - PAGE_ITEMS;
        let mut at: Vec<usize> = (0..last).collect();
        let mut drawn = Vec::with_capacity(PAGES);
        while drawn.len() < PAGES {
            drawn.push(self.places[at.swap_remove(chance.below(last))]);
            last -= 1;
        }
        drawn
    }

    async fn store_pages(&self, round: usize) -> Result<f64> {
        let sinces: Vec<_> = self.sinces(round).into_iter().map(cursor).collect();
        let start = Instant::now();
        for since in &sinces {
            let query = PageQuery {
                since: Some(Position::of_cursor(since)),
                max: PAGE_ITEMS,
                ..PageQuery::all(self.house.feed(), Order::MODIFIED)
            };
            let page = self.house.store.page(query).await?;
            ensure!(
                page.items.len() == PAGE_ITEMS && page.degraded.is_none(),
                "a full page"
            );
            black_box(page);
        }
        Ok(start.elapsed().as_secs_f64())
    }

    async fn read_pages(&self, round: usize) -> Result<f64> {
        let view = View::all(self.house.feed(), Order::MODIFIED);
        let sinces: Vec<_> = self.sinces(round).into_iter().map(cursor).collect();
        // New ones in every round, so that no page is remembered.
        let readers = self.house.readers()?;
        let start = Instant::now();
        for since in &sinces {
            let reading = ReadRequest::page(
                view.clone(),
                Representation::ATOM,
                &format!("cursor:{since}"),
                "",
                PAGE_ITEMS,
            )?;
            let body = readers.read(&reading).await?;
            ensure!(
                body.count == PAGE_ITEMS && body.degraded.is_none(),
                "a full page"
            );
            black_box(body);
        }
        Ok(start.elapsed().as_secs_f64())
    }

    fn raw_pages(&self, round: usize) -> Result<f64> {
        let sinces = self.sinces(round);
        let start = Instant::now();
        for (_, since) in sinces {
            let items = raw_page(&self.raw, self.house.feed(), since)?;
            ensure!(
                items.len() == PAGE_ITEMS && items.iter().all(|item| item.modified > since),
                "a full page"
            );
            black_box(items);
        }
        Ok(start.elapsed().as_secs_f64())
    }
}

fn cursor((id, t): (ItemId, Stamp)) -> String {
    Toc::of(t, [id.to_string()]).map_or_else(String::new, |toc| toc.to_string())
}

fn raw_page(database: &Database, feed: FeedNo, since: Stamp) -> Result<Vec<Item>> {
    let items = database.begin_read()?.open_table(ITEMS)?;
    let (low, high) = (key(feed, since), key(feed, Stamp::MAX));
    let range = items.range::<&[u8; 12]>((Bound::Excluded(&low), Bound::Included(&high)))?;
    let decode = |row: Result<(_, redb::AccessGuard<'_, &[u8]>), redb::StorageError>| {
        let (key, value): (redb::AccessGuard<'_, &[u8; 12]>, _) = row?;
        Ok(stored_item(key.value(), value.value())?)
    };
    range.take(PAGE_ITEMS).map(decode).collect()
}

fn key(feed: FeedNo, t: Stamp) -> [u8; 12] {
    let mut key = [0; 12];
    key[..4].copy_from_slice(&feed.0.to_be_bytes());
    key[4..].copy_from_slice(&t.micros().to_be_bytes());
    key
}
