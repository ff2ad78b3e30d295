//! From a question (since, until, max, order) to a page, over any listing; the listing itself is a
//! store's business.

use super::{
    cursor::Toc,
    filter::Filter,
    item::Item,
    moment::Moment,
    order::Order,
    position::{Position, Span},
    record::{FeedNo, FeedRecord},
    stamp::Stamp,
};
use cursor_place::resolve;
use std::{ops::Bound, sync::Arc};

mod cursor_place;

#[cfg(test)]
mod tests;

/// A question to a store.
#[derive(Clone, Debug)]
pub struct PageQuery {
    /// Which feed.
    pub feed: FeedNo,
    /// In which order.
    pub order: Order,
    /// After this position in list order.
    pub since: Option<Position>,
    /// Before this position in list order.
    pub until: Option<Position>,
    /// Items at most; at least 1.
    pub max: usize,
    /// Bytes of stored items at most, though never less than one item.
    pub bytes_max: usize,
    /// The items that are shown; others count neither in `max` nor in the budget.
    pub filter: Filter,
    /// Count the items that terms of a filter show; without terms they are counted anyway.
    pub with_total: bool,
    /// The part that numbers of items have in it.
    pub numbering: Numbering,
    /// True for a question for the last item of the opposite order: its view is of that order, and
    /// shows what has left it.
    pub is_last: bool,
}

/// The part of the numbers of items in a question. The number of an item is the count of items
/// before it in list order. Only a view of all items has numbers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Numbering {
    /// None.
    #[default]
    None,
    /// The page tells the number of its first item, where it is known.
    Told,
    /// The page begins with the item of this number, and tells it. `since` does not count.
    From(u64),
}

impl PageQuery {
    /// A question for everything of a feed in one page.
    pub fn all(feed: FeedNo, order: Order) -> Self {
        Self {
            feed,
            order,
            since: None,
            until: None,
            max: usize::MAX,
            bytes_max: usize::MAX,
            filter: Filter::All,
            with_total: false,
            numbering: Numbering::None,
            is_last: false,
        }
    }
}

/// A page as read back from a store, in one snapshot.
#[derive(Clone, Debug)]
pub struct Page {
    /// The items in list order.
    pub items: Vec<Arc<Item>>,
    /// The cursor to go on from.
    pub last_cursor: String,
    /// True when more items stand in the range now.
    pub more: bool,
    /// Number of items in the view; `None` when they were not counted, or are more than can be
    /// counted at once.
    pub total: Option<u64>,
    /// The number of the first item in the view, where it was asked for and is known.
    pub index: Option<u64>,
    /// The cursor of the last item that was looked at, where a filter hid those behind
    /// `last_cursor`.
    pub scanned: Option<String>,
    /// The feed in the same snapshot: its head, its totals, its mark.
    pub record: Arc<FeedRecord>,
    /// Degradation of a cursor; that of `since` goes first.
    pub degraded: Option<Degraded>,
}

impl PageQuery {
    /// A question for the last item of a feed in an order, of those that a filter shows or that have
    /// left its view.
    pub fn last(feed: FeedNo, order: Order, filter: Filter) -> Self {
        Self {
            max: 1,
            bytes_max: 1,
            filter,
            is_last: true,
            ..Self::all(feed, order.reversed())
        }
    }

    /// The order of its view.
    pub fn view_order(&self) -> Order {
        if self.is_last {
            self.order.reversed()
        } else {
            self.order
        }
    }

    /// The question to a listing.
    pub fn ask(&self) -> ListingQuery<'_> {
        ListingQuery {
            order: self.order,
            since: self.since.as_ref(),
            until: self.until.as_ref(),
            max: self.max,
            bytes_max: self.bytes_max,
        }
    }
}

/// A place in canonical ascending order: a stamp, and the offset among those that share it (0 in
/// production, where stamps are unique).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ListingPosition {
    /// The stamp on the listing's axis.
    pub t: Moment,
    /// Number of items with the same stamp before it.
    pub o: u32,
}

impl ListingPosition {
    /// The place of an item that has its stamp alone.
    pub fn at(t: impl Into<Moment>) -> Self {
        Self { t: t.into(), o: 0 }
    }
}

/// A stretch of places.
pub type Range = (Bound<ListingPosition>, Bound<ListingPosition>);

/// One row of a listing.
pub trait ListingRow {
    /// The item's id, as it goes into the checksum.
    fn id(&self) -> String;
    /// Weight of the row against the byte budget: its bytes once escaped.
    fn weight_bytes(&self) -> usize;
}

/// One feed along one axis, in canonical ascending order.
pub trait Listing {
    /// Row of a page.
    type ListingRow: ListingRow;
    /// Error while reading.
    type Error;
    /// The ids of the items at `t`, in order. At most one in production.
    fn ids_at(&self, t: Moment) -> Result<Vec<String>, Self::Error>;
    /// Time at which any item of the feed was seen first, whatever the axis; `None` for an empty
    /// feed.
    fn first_seen(&self) -> Result<Option<Moment>, Self::Error>;
    /// The mark of its cursors; 0 for none.
    fn cursor_mark(&self) -> u32 {
        0
    }
    /// The mark of the generation in its cursors; 0 for none.
    fn generation_mark(&self) -> u32 {
        0
    }
    /// True for a T that the feed cannot have given out (see
    /// [`FeedRecord::is_ahead`](super::record::FeedRecord::is_ahead)), or for the mark of another
    /// generation.
    fn is_ahead(&self, _: Moment, _generation: u32) -> bool {
        false
    }
    /// Place of the item with this id, ours or the upstream's.
    fn place_of(&self, id: &str) -> Result<Option<ListingPosition>, Self::Error>;
    /// The rows in a range that is never inverted, ascending, or descending when `reverse`.
    fn rows<'a>(
        &'a self,
        range: Range,
        reverse: bool,
    ) -> Result<ListingRows<'a, Self>, Self::Error>;
    /// Those of them that may stand on a page. Cursors are reckoned on all, so that an item has one
    /// under every filter.
    fn shown<'a>(
        &'a self,
        range: Range,
        reverse: bool,
    ) -> Result<ListingRows<'a, Self>, Self::Error> {
        self.rows(range, reverse)
    }
}

/// Rows of a listing, read as they are asked for.
pub type ListingRows<'a, L> = Box<
    dyn Iterator<
            Item = Result<(ListingPosition, <L as Listing>::ListingRow), <L as Listing>::Error>,
        > + 'a,
>;

/// A question about a listing.
#[derive(Clone, Copy, Debug)]
pub struct ListingQuery<'a> {
    /// In which order.
    pub order: Order,
    /// After this position in list order.
    pub since: Option<&'a Position>,
    /// Before this position in list order.
    pub until: Option<&'a Position>,
    /// Items at most; at least 1.
    pub max: usize,
    /// Bytes at most, though never less than one item.
    pub bytes_max: usize,
}

/// The answer.
#[derive(Clone, Debug)]
pub struct Selection<R> {
    /// The rows in list order.
    pub rows: Vec<R>,
    /// The place of the first.
    pub first: Option<ListingPosition>,
    /// The cursor to go on from; empty when nothing stands before the range.
    pub last_cursor: String,
    /// True when more rows stand in the range now.
    pub more: bool,
    /// Degradation of `since`, when it could not be honoured as written.
    pub since_degraded: Option<Degraded>,
    /// Likewise for `until`.
    pub until_degraded: Option<Degraded>,
}

/// Degradation of a cursor: the value of the header `Smart-Feed-Cursor` (D-8).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Degraded {
    /// Treated as `time:{T}`, because the item at the cursor has moved on: it was edited or deleted
    /// since. That happens every day and costs nothing: from T on, only the item itself comes
    /// again, as it is now.
    Moved,
    /// Treated as `time:{T}`, because it is not a cursor of this feed.
    Time,
    /// Treated as the start of the feed.
    Reset,
    /// The feed has not given that T out: its store was restored from an older copy. As `since` it
    /// is treated as the start of the feed, as `until` as `time:{T}`. A mirror reads the whole feed,
    /// and drops what it did not meet.
    Ahead,
}

/// The header that names how a cursor was taken that cannot be applied, on pages and pushes (D-8).
pub const DEGRADED: &str = "smart-feed-cursor";

impl Degraded {
    /// The header's value.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Moved => "moved",
            Self::Time => "time",
            Self::Reset => "reset",
            Self::Ahead => "ahead",
        }
    }

    /// True where what the consumer holds may be of no use: it is of another feed, or of a state
    /// that the feed no longer knows.
    pub fn begins_anew(self) -> bool {
        matches!(self, Self::Reset | Self::Ahead)
    }
}

/// Reason why there is no page.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unanswerable<E> {
    /// `id:` of an item that the feed never held: 404.
    #[error("no item of this feed has that id")]
    UnknownId,
    /// `id:` in an order where items move: 400 (SF-27).
    #[error("id positions need an order in which items do not move: created or -created")]
    MovingOrder,
    /// The listing could not be read.
    #[error(transparent)]
    Listing(#[from] E),
}

/// Rows for which room is made before the walk: no more than a page nearly always has, whatever was
/// asked for.
const ROWS_EXPECTED: usize = 64;

// Decides: Which items are on a page, and where does it end?
/// Answers a question with at most two look-ups for checking cursors and one walk.
pub fn select<L: Listing>(
    listing: &L,
    ask: &ListingQuery<'_>,
) -> Result<Selection<L::ListingRow>, Unanswerable<L::Error>> {
    let mut since = resolve(listing, ask.since, ask.order, !ask.order.reverse)?;
    let until = resolve(listing, ask.until, ask.order, ask.order.reverse)?;
    if since.degraded == Some(Degraded::Ahead) {
        // What its reader holds is of another generation, of which this one knows no part.
        since.bound = Bound::Unbounded;
    }
    let (low, high) = if ask.order.reverse {
        (until.bound, since.bound)
    } else {
        (since.bound, until.bound)
    };
    let mut rows = Vec::with_capacity(ask.max.min(ROWS_EXPECTED));
    let (mut first, mut last) = (None, None);
    let mut more = false;
    let mut bytes = 0_usize;
    if !is_inverted(low, high) {
        for row in listing.shown((low, high), ask.order.reverse)? {
            let (place, row) = row?;
            bytes = bytes.saturating_add(row.weight_bytes());
            if rows.len() == ask.max || (bytes > ask.bytes_max && !rows.is_empty()) {
                more = true;
                break;
            }
            first = first.or(Some(place));
            last = Some(place);
            rows.push(row);
        }
    }
    let last_cursor = match (last, rows.last()) {
        (Some(place), Some(row)) => cursor_at(listing, place, row.id())?,
        // Never what cannot be gone on from.
        _ if since.degraded == Some(Degraded::Ahead) => head(listing)?,
        _ => cursor_of_nothing(listing, ask, since.bound)?,
    };
    Ok(Selection {
        rows,
        first,
        last_cursor,
        more,
        since_degraded: since.degraded,
        until_degraded: until.degraded,
    })
}

/// The cursor of the newest item on this axis, `""` for an empty feed.
pub fn head<L: Listing>(listing: &L) -> Result<String, L::Error> {
    match edge(listing, (Bound::Unbounded, Bound::Unbounded), true)? {
        Some((place, row)) => cursor_at(listing, place, row.id()),
        None => Ok(String::new()),
    }
}

/// Until when an empty range may still get items.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Growth {
    /// Never: it ends at something that exists or is past.
    Never,
    /// Until this moment.
    Until(Stamp),
    /// As long as one likes to wait.
    Open,
}

impl ListingQuery<'_> {
    /// True when a range that is empty at `now` can still grow (D-11).
    pub fn growth(&self, now: Stamp) -> Growth {
        if self.is_inside_out() {
            return Growth::Never;
        }
        if self.order.reverse {
            return if self.since.is_some() {
                Growth::Never
            } else {
                Growth::Open
            };
        }
        match self.until {
            None | Some(Position::Start { .. }) => Growth::Open,
            Some(Position::Time { span, .. }) => grows_until(*span, now),
            Some(Position::Cursor { toc, .. }) => grows_until(Span::of_moment(toc.t), now),
            Some(Position::Id(_)) => Growth::Never,
        }
    }

    /// True when it ends before it begins, by the stamps that are written in it.
    fn is_inside_out(&self) -> bool {
        let span = |position: Option<&Position>| match position {
            Some(Position::Time { span, .. }) => Some(*span),
            Some(Position::Cursor { toc, .. }) => Some(Span::of_moment(toc.t)),
            _ => None,
        };
        match (span(self.since), span(self.until)) {
            (Some(since), Some(until)) if self.order.reverse => since.high_us < until.low_us,
            (Some(since), Some(until)) => since.low_us > until.high_us,
            _ => false,
        }
    }
}

fn grows_until(span: Span, now: Stamp) -> Growth {
    match u64::try_from(span.high_us).map(Stamp::from_micros) {
        Ok(end) if end > now => Growth::Until(end),
        _ => Growth::Never,
    }
}

/// An inclusive bound over the span.
fn time_bound(span: Span, is_lower: bool) -> Bound<ListingPosition> {
    let place = |us: i64| ListingPosition {
        t: Moment::from_micros(us),
        o: 0,
    };
    if is_lower {
        Bound::Included(place(span.low_us))
    } else {
        Bound::Excluded(place(span.high_us.saturating_add(1)))
    }
}

/// True when no place can lie between the bounds. Ordered maps refuse such ranges, so they are
/// never asked.
fn is_inverted(low: Bound<ListingPosition>, high: Bound<ListingPosition>) -> bool {
    match (low, high) {
        (Bound::Unbounded, _) | (_, Bound::Unbounded) => false,
        (Bound::Included(low), Bound::Included(high)) => low > high,
        (
            Bound::Included(low) | Bound::Excluded(low),
            Bound::Included(high) | Bound::Excluded(high),
        ) => low >= high,
    }
}

/// The first row of a range in the given direction.
fn edge<L: Listing>(
    listing: &L,
    range: Range,
    reverse: bool,
) -> Result<Option<(ListingPosition, L::ListingRow)>, L::Error> {
    listing.rows(range, reverse)?.next().transpose()
}

/// The cursor of the item with this id at a place. With unique stamps it takes no look-up.
pub fn cursor_at<L: Listing>(
    listing: &L,
    place: ListingPosition,
    id: String,
) -> Result<String, L::Error> {
    let toc = if place.o == 0 {
        Toc::of(place.t, [id])
    } else {
        Toc::of(
            place.t,
            listing
                .ids_at(place.t)?
                .into_iter()
                .take(place.o as usize + 1),
        )
    };
    let marked = |toc: Toc| {
        toc.in_generation(listing.generation_mark())
            .marked(listing.cursor_mark())
    };
    Ok(toc.map_or_else(String::new, |toc| marked(toc).to_string()))
}

/// `last_cursor` of an empty page (DESIGN section 3, in place of D-10): after a full, canonically
/// spelt cursor that string when its T is not beyond the head's, else the head's; otherwise that of
/// the item before the range in list order.
fn cursor_of_nothing<L: Listing>(
    listing: &L,
    ask: &ListingQuery<'_>,
    since: Bound<ListingPosition>,
) -> Result<String, L::Error> {
    if let Some(Position::Cursor {
        toc,
        canonical: true,
    }) = ask.since
        && toc.unmarked().0 == listing.cursor_mark()
    {
        let head = edge(listing, (Bound::Unbounded, Bound::Unbounded), true)?;
        return match head {
            Some((place, row)) if place.t < toc.t => cursor_at(listing, place, row.id()),
            Some(_) => Ok(toc.to_string()),
            None => Ok(String::new()),
        };
    }
    let outside = match since {
        Bound::Unbounded => return Ok(String::new()),
        Bound::Included(place) => Bound::Excluded(place),
        Bound::Excluded(place) => Bound::Included(place),
    };
    let before = if ask.order.reverse {
        (outside, Bound::Unbounded)
    } else {
        (Bound::Unbounded, outside)
    };
    match edge(listing, before, !ask.order.reverse)? {
        Some((place, row)) => cursor_at(listing, place, row.id()),
        None => Ok(String::new()),
    }
}
