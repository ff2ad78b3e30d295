//! Question 4: what a cursor costs. Look-ups in the listing are counted and asserted; times are for
//! orientation.

use crate::{
    content::{NAMESPACE, guid},
    report::Report,
};
use anyhow::{Result, ensure};
use everfeed::feed::{
    cursor::Toc,
    item::KeyHash,
    moment::Moment,
    order::Order,
    page::{Listing, ListingPosition, ListingQuery, ListingRow, ListingRows, Range, head, select},
    position::Position,
    stamp::Stamp,
};
use everfeed_adapters::Key;
use std::{cell::Cell, convert::Infallible, hint::black_box, ops::Bound, time::Instant};

/// Look-ups that one cursor may cost.
const LOOKUPS_MAX: usize = 2;
const ROWS: u32 = 100_000;
const PAGE_ITEMS: usize = 50;
const TIMES: u32 = 1_000_000;

pub(crate) fn ask(report: &Report) -> Result<()> {
    report.question(
        "(4) Cursors",
        "look-ups in the listing beside the walk over the page: an id at a stamp, or the edge of a range; counted, asserted",
    );
    let listing = Counting::new(ROWS);
    let middle = listing.cursor(ROWS as usize / 2);
    let later = listing.cursor(ROWS as usize / 2 + 10);
    let last = listing.cursor(ROWS as usize - 1);
    let stale = Toc::parse(&middle).map(|toc| Toc { c: !toc.c, ..toc }.to_string());
    for (what, since, until, cursors) in [
        ("a full page after a cursor", Some(&middle), None, 1),
        (
            "a range between two cursors",
            Some(&middle),
            Some(&later),
            2,
        ),
        (
            "an empty page at the head, as a waiter reads it",
            Some(&last),
            None,
            1,
        ),
        ("a cursor that does not hold", stale.as_ref(), None, 1),
        ("no cursor", None, None, 0),
    ] {
        let (checks, makes) = listing.count(since, until)?;
        ensure!(
            checks <= LOOKUPS_MAX * cursors && makes <= LOOKUPS_MAX,
            "{what}: {checks} and {makes} look-ups"
        );
        report.figure(
            what,
            format!("{checks} to check, {makes} to make"),
            format!("aim <= {LOOKUPS_MAX} each  met"),
        );
    }
    listing.lookups.take();
    let Ok(newest) = head(&listing);
    ensure!(
        newest == last && listing.lookups.take().1 <= LOOKUPS_MAX,
        "the head's cursor"
    );

    let (t, id) = &listing.rows[ROWS as usize / 2];
    report.figure(
        "to make one from T and id, as text",
        nanos(|| Toc::of(black_box(*t), [id]).map(|toc| toc.to_string())),
        "",
    );
    report.figure(
        "to read one from text and hold it against the id",
        nanos(|| Toc::parse(black_box(&middle)).is_some_and(|toc| toc.holds([id]))),
        "",
    );
    let (checked, made) = (Position::of_cursor(&last), question(None, None));
    let waiting = ListingQuery {
        since: Some(&checked),
        ..made
    };
    report.figure(
        "the whole question of a waiter at the head, in memory",
        nanos(|| select(&listing, black_box(&waiting)).is_ok()),
        "",
    );
    Ok(())
}

fn nanos<T>(mut work: impl FnMut() -> T) -> String {
    let start = Instant::now();
    for _ in 0..TIMES {
        black_box(work());
    }
    format!(
        "{:.0} ns",
        start.elapsed().as_secs_f64() * 1e9 / f64::from(TIMES)
    )
}

fn question<'a>(since: Option<&'a Position>, until: Option<&'a Position>) -> ListingQuery<'a> {
    ListingQuery {
        order: Order::MODIFIED,
        since,
        until,
        max: PAGE_ITEMS,
        bytes_max: usize::MAX,
    }
}

/// A listing that counts how often it is looked into.
struct Counting {
    rows: Vec<(Stamp, String)>,
    /// Ids asked for at a stamp or by name, and edges of ranges.
    lookups: Cell<(usize, usize)>,
}

impl Counting {
    fn new(rows: u32) -> Self {
        let id = |n| {
            KeyHash::of(NAMESPACE, &Key::Id(guid(n)).stripped())
                .item_id()
                .to_string()
        };
        // A microsecond beyond each second, so that cursors carry a fraction, as nearly all do.
        let t = |n: u32| Stamp::from_secs(1_780_000_000 + u64::from(n)).next();
        Self {
            rows: (0..rows).map(|n| (t(n), id(n))).collect(),
            lookups: Cell::default(),
        }
    }

    fn cursor(&self, at: usize) -> String {
        let (t, id) = &self.rows[at];
        Toc::of(*t, [id]).map_or_else(String::new, |toc| toc.to_string())
    }

    /// Look-ups for checking and for making that a question costs.
    fn count(&self, since: Option<&String>, until: Option<&String>) -> Result<(usize, usize)> {
        let position = |cursor: &String| Position::of_cursor(cursor);
        let (since, until) = (since.map(position), until.map(position));
        self.lookups.take();
        select(self, &question(since.as_ref(), until.as_ref()))?;
        Ok(self.lookups.take())
    }

    fn walk(&self, (low, high): Range, reverse: bool) -> ListingRows<'_, Self> {
        let place = |t: Stamp| ListingPosition { t: t.into(), o: 0 };
        let start = match low {
            Bound::Unbounded => 0,
            Bound::Included(low) => self.rows.partition_point(|(t, _)| place(*t) < low),
            Bound::Excluded(low) => self.rows.partition_point(|(t, _)| place(*t) <= low),
        };
        let end = match high {
            Bound::Unbounded => self.rows.len(),
            Bound::Included(high) => self.rows.partition_point(|(t, _)| place(*t) <= high),
            Bound::Excluded(high) => self.rows.partition_point(|(t, _)| place(*t) < high),
        };
        let rows = self.rows[start..end]
            .iter()
            .map(move |(t, id)| Ok((place(*t), Id(id.clone()))));
        if reverse {
            Box::new(rows.rev())
        } else {
            Box::new(rows)
        }
    }
}

#[derive(Clone)]
struct Id(String);

impl ListingRow for Id {
    fn id(&self) -> String {
        self.0.clone()
    }

    fn weight_bytes(&self) -> usize {
        self.0.len()
    }
}

impl Listing for Counting {
    type ListingRow = Id;
    type Error = Infallible;

    fn ids_at(&self, t: Moment) -> Result<Vec<String>, Infallible> {
        let (checks, makes) = self.lookups.get();
        self.lookups.set((checks + 1, makes));
        let found = self
            .rows
            .binary_search_by_key(&t, |(t, _)| Moment::from(*t));
        Ok(found
            .ok()
            .map(|at| self.rows[at].1.clone())
            .into_iter()
            .collect())
    }

    fn first_seen(&self) -> Result<Option<Moment>, Infallible> {
        let (checks, makes) = self.lookups.get();
        self.lookups.set((checks + 1, makes));
        Ok(self.rows.first().map(|(t, _)| (*t).into()))
    }

    fn place_of(&self, id: &str) -> Result<Option<ListingPosition>, Infallible> {
        let (checks, makes) = self.lookups.get();
        self.lookups.set((checks + 1, makes));
        Ok(self
            .rows
            .iter()
            .find(|(_, held)| held == id)
            .map(|(t, _)| ListingPosition {
                t: (*t).into(),
                o: 0,
            }))
    }

    fn rows<'a>(
        &'a self,
        range: Range,
        reverse: bool,
    ) -> Result<ListingRows<'a, Self>, Infallible> {
        let (checks, makes) = self.lookups.get();
        self.lookups.set((checks, makes + 1));
        Ok(self.walk(range, reverse))
    }

    /// The page itself, which is walked whatever cursors cost.
    fn shown<'a>(
        &'a self,
        range: Range,
        reverse: bool,
    ) -> Result<ListingRows<'a, Self>, Infallible> {
        Ok(self.walk(range, reverse))
    }
}
