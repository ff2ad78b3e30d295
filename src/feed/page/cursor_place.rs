//! The place of a cursor or another position in a view, and what becomes of one that cannot be
//! applied: `time`, `moved`, `ahead` or `reset`; not the page that follows.

use super::{Degraded, Listing, ListingPosition, Unanswerable, edge, time_bound};
use crate::mistakes::{Mistake, is_made};
use crate::{
    moment::Moment,
    order::Order,
    position::{Position, Span},
};
use std::ops::Bound;

/// Place of a position in ascending order, and its degradation if there was one.
pub(super) struct Resolved {
    pub(super) bound: Bound<ListingPosition>,
    pub(super) degraded: Option<Degraded>,
}

// Decides: What happens with a cursor that cannot be applied?
/// The place from which a view is read for a position.
pub(super) fn resolve<L: Listing>(
    listing: &L,
    position: Option<&Position>,
    order: Order,
    is_lower: bool,
) -> Result<Resolved, Unanswerable<L::Error>> {
    let whole = |bound| {
        Ok(Resolved {
            bound,
            degraded: None,
        })
    };
    match position {
        None => whole(Bound::Unbounded),
        Some(Position::Start { degraded }) => Ok(Resolved {
            bound: Bound::Unbounded,
            degraded: degraded.then_some(Degraded::Reset),
        }),
        Some(Position::Time { span, degraded }) => Ok(Resolved {
            bound: time_bound(*span, is_lower),
            degraded: degraded.then_some(Degraded::Time),
        }),
        Some(Position::Cursor { toc, .. }) => {
            let (mark, toc) = toc.unmarked();
            if mark != listing.cursor_mark() {
                // Of another feed of this name: what its reader holds was chosen by another filter.
                return Ok(Resolved {
                    bound: Bound::Unbounded,
                    degraded: Some(Degraded::Reset).filter(|_| !is_made(Mistake::ResetUntold)),
                });
            }
            let (generation, toc) = toc.without_generation();
            let ids = listing.ids_at(toc.t)?;
            // Items move in the modified orders only, and leave nothing at their former T.
            let may_have_moved = !order.takes_ids() && ids.is_empty() && toc.o == 0;
            if toc.holds(ids) {
                return whole(Bound::Excluded(ListingPosition { t: toc.t, o: toc.o }));
            }
            let degraded = if listing.is_ahead(toc.t, generation) {
                Degraded::Ahead
            } else if may_have_moved && may_be_ours(listing, toc.t)? {
                Degraded::Moved
            } else {
                Degraded::Time
            };
            let mut span = Span::of_moment(toc.t);
            if is_made(Mistake::FallbackSkipsASecond) {
                span.low_us = span.low_us.div_euclid(1_000_000) * 1_000_000 + 1_000_000;
            }
            Ok(Resolved {
                bound: time_bound(span, is_lower),
                degraded: Some(degraded),
            })
        }
        Some(Position::Id(_)) if !order.takes_ids() => Err(Unanswerable::MovingOrder),
        Some(Position::Id(id)) => whole(Bound::Excluded(
            listing.place_of(id)?.ok_or(Unanswerable::UnknownId)?,
        )),
    }
}

/// True for a T at which an item of the feed may have stood: not before the first sight of any, and
/// before the last change.
fn may_be_ours<L: Listing>(listing: &L, t: Moment) -> Result<bool, L::Error> {
    let is_late_enough = listing.first_seen()?.is_some_and(|first| first <= t);
    let last = || edge(listing, (Bound::Unbounded, Bound::Unbounded), true);
    Ok(is_late_enough && last()?.is_some_and(|(last, _)| last.t > t))
}
