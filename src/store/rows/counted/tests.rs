//! Counts in the file: few rows whatever leaves, and a store that knew none.

use super::*;
use crate::{
    feed::{
        order::Order,
        page::{Numbering, PageQuery},
    },
    store::conformance::rig::{Rig, add, all, edit, id, ids},
};
use redb::{Database, ReadableDatabase as _};

const FEED: FeedNo = FeedNo(7);
/// Items of a long feed.
const MILLION: u64 = 1_000_000;
/// Rows that a look-up may read.
const ROWS_READ_MAX: usize = 1_000;

/// Counts of a file in sizes of the file.
struct CountedRows {
    database: Database,
    _folder: tempfile::TempDir,
    last: u64,
    live: Vec<u64>,
    seed: u64,
}

impl CountedRows {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        Self {
            database: Database::create(folder.path().join("counts.redb")).unwrap(),
            _folder: folder,
            last: 0,
            live: Vec::new(),
            seed: 1,
        }
    }

    fn change(&self, change: impl FnOnce(&mut Counts<'_>)) {
        let tx = self.database.begin_write().unwrap();
        change(&mut Counts::of(&tx, FEED, CountedAxis::Modified, SIZES).unwrap());
        tx.commit().unwrap();
    }

    /// So many rows at the end.
    fn append(&mut self, rows: u64) {
        let stamps: Vec<u64> = (self.last + 1..=self.last + rows).collect();
        self.last += rows;
        let through = Stamp::from_micros(self.last);
        let stamps_of = stamps.iter().map(|t| Stamp::from_micros(*t));
        self.change(|counts| counts.append(stamps_of, through).unwrap());
        self.live.extend(stamps);
    }

    fn take_out(&mut self, is_left: impl Fn(u64) -> bool) {
        let (left, live): (Vec<u64>, Vec<u64>) = self.live.iter().partition(|t| is_left(**t));
        self.live = live;
        let stamps = left.into_iter().map(Stamp::from_micros).collect();
        self.change(|counts| assert!(counts.take_out(stamps).unwrap()));
    }

    fn chance(&mut self) -> u64 {
        self.seed = self
            .seed
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        self.seed
    }

    /// Holds the counts against the rows, and tells how many rows a look-up reads at most.
    fn rows_read(&self) -> usize {
        let snapshot = self.database.begin_read().unwrap();
        let table = snapshot.table(COUNTED).unwrap();
        let rows: Vec<PlacedChunk> = table
            .rows(&feed_key(FEED))
            .map(|row| placed(row.unwrap()).unwrap())
            .collect();
        let (mut at, mut most) = (0, 0);
        let stretches: Vec<Stretch> = rows
            .iter()
            .flat_map(|(_, chunk)| chunk.stretches.clone())
            .collect();
        for (no, stretch) in stretches.iter().enumerate() {
            let end = stretches
                .get(no + 1)
                .map_or(u64::MAX, |next| next.first.micros());
            let begin = at;
            while self.live.get(at).is_some_and(|t| *t < end) {
                assert!(self.live[at] >= stretch.first.micros());
                at += 1;
            }
            assert_eq!(at - begin, stretch.rows as usize);
            most = most.max(at - begin);
        }
        assert_eq!(at, self.live.len());
        rows.len() + most
    }
}

#[test]
fn a_million_rows_are_found_by_reading_less_than_a_thousand() {
    let mut rows = CountedRows::new();
    rows.append(MILLION);
    let read = rows.rows_read();
    assert!(read <= 260, "{read}");
    // Edits of any items, over and over.
    for _ in 0..4 {
        let salt = rows.chance();
        rows.take_out(|t| (t ^ salt).wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 62 != 0);
        rows.append(MILLION - rows.live.len() as u64);
        let read = rows.rows_read();
        assert!(read <= ROWS_READ_MAX, "{read}");
    }
    // Few are left of each stretch, and those of the end went first.
    for part in (0..10).rev() {
        let from = part * rows.last / 10;
        rows.take_out(|t| t >= from && t % 64 != 0);
    }
    let left = rows.live.len() as u64;
    rows.append(MILLION - left);
    let read = rows.rows_read();
    assert!(read <= ROWS_READ_MAX, "{read}");
    rows.take_out(|_| true);
    assert_eq!(rows.rows_read(), 0);
}

fn from(feed: FeedNo, number: u64) -> PageQuery {
    PageQuery {
        numbering: Numbering::From(number),
        max: 2,
        ..all(feed, Order::MODIFIED)
    }
}

#[tokio::test]
async fn a_long_feed_of_a_store_that_knew_no_counts_is_counted_with_its_next_change() {
    let rig = Rig::redb();
    let feed = rig.blog().await;
    rig.change(feed, (1..=40).map(add).collect()).await.unwrap();
    let rig = rig.changed_by(|file| {
        let tx = Database::open(file).unwrap().begin_write().unwrap();
        forget(&tx, feed).unwrap();
        tx.commit().unwrap();
    });
    let page = rig.page(from(feed, 9)).await;
    assert!(matches!(page, Err(StoreError::Unnumbered)), "{page:?}");
    let told = rig.list(feed, Order::MODIFIED, None).await;
    assert_eq!(told.index, None);
    rig.change(feed, vec![edit(3, "again")]).await.unwrap();
    let page = rig.page(from(feed, 9)).await.unwrap();
    assert_eq!((ids(&page), page.index), (vec![id(11), id(12)], Some(9)));
    let page = rig.page(from(feed, 39)).await.unwrap();
    assert_eq!(ids(&page), vec![id(3)]);
}
