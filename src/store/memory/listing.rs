//! A feed in memory along one axis, for [`page::select`](crate::feed::page::select).

use super::feed::{Kept, MemoryFeed};
use crate::{
    feed::{
        item::{Item, KeyHash},
        moment::Moment,
        order::Axis,
        page::{Listing, ListingPlace, ListingRow, ListingRows, Range},
        stamp::Stamp,
    },
    store::{StoreError, paging},
};
use everfeed_adapters::Key;
use std::{ops::RangeBounds as _, sync::Arc};

/// A feed along one axis.
pub(super) struct MemoryListing<'a> {
    pub(super) feed: &'a MemoryFeed,
    pub(super) axis: Axis,
}

impl MemoryListing<'_> {
    fn at(&self, place: Moment) -> Vec<&Kept> {
        let held = &self.feed.held;
        let created = || held.created.get(&place.stamp()?).copied();
        let ts: Vec<Stamp> = match self.axis {
            Axis::Modified => place.stamp().into_iter().collect(),
            Axis::Created => created().into_iter().collect(),
            Axis::Published => held
                .published
                .range((place, Stamp::ZERO)..=(place, Stamp::MAX))
                .map(|(_, t)| *t)
                .collect(),
        };
        ts.iter().filter_map(|t| held.items.get(t)).collect()
    }
}

impl<'a> MemoryListing<'a> {
    fn published(&'a self, range: Range, reverse: bool) -> ListingRows<'a, Self> {
        let stamps = paging::whole_moments(range);
        let held = &self.feed.held;
        let mut rows = Vec::new();
        for ((listed, _), t) in &held.published {
            if let Some(kept) = held.items.get(t)
                && stamps.contains(listed)
            {
                rows.push(Ok((*listed, kept.clone())));
            }
        }
        if reverse {
            rows.reverse();
        }
        Box::new(paging::placed(rows.into_iter(), range, reverse))
    }
}

/// The model has no index: every row is looked at.
impl paging::IndexedListing for MemoryListing<'_> {
    fn rows_before(&self, place: ListingPlace) -> Result<Option<u64>, StoreError> {
        let Some(t) = place.t.stamp() else {
            return Ok(None);
        };
        let held = &self.feed.held;
        Ok(match self.axis {
            Axis::Modified => Some(held.items.range(..t).count() as u64),
            Axis::Created => Some(held.created.range(..t).count() as u64),
            Axis::Published => None,
        })
    }

    fn row_numbered(&self, number: u64) -> Result<Option<(ListingPlace, String)>, StoreError> {
        let number = usize::try_from(number).unwrap_or(usize::MAX);
        let held = &self.feed.held;
        let at = match self.axis {
            Axis::Modified => held.items.keys().nth(number),
            Axis::Created => held.created.keys().nth(number),
            Axis::Published => return Err(StoreError::Unnumbered),
        };
        let place = at.map(|at| ListingPlace::at(*at));
        let row = |place: ListingPlace| Some((place, self.at(place.t).first()?.id()));
        Ok(place.and_then(row))
    }
}

impl Listing for MemoryListing<'_> {
    type ListingRow = Kept;
    type Error = StoreError;

    fn ids_at(&self, t: Moment) -> Result<Vec<String>, StoreError> {
        Ok(self.at(t).into_iter().map(ListingRow::id).collect())
    }

    fn first_seen(&self) -> Result<Option<Moment>, StoreError> {
        let first = self.feed.held.created.keys().next();
        Ok(first.map(|first| (*first).into()))
    }

    fn place_of(&self, id: &str) -> Result<Option<ListingPlace>, StoreError> {
        let ours = id.parse().ok().and_then(|id| self.feed.item(id));
        let item = ours.or_else(|| {
            let key = KeyHash::of(
                &self.feed.record.ids.namespace,
                &Key::Id(id.to_owned()).stripped(),
            );
            self.feed.item(*self.feed.held.keys.get(&key)?)
        });
        Ok(item.map(|item| match self.axis {
            // In the order of publication an id is no position (SF-27).
            Axis::Modified | Axis::Published => ListingPlace::at(item.modified),
            Axis::Created => ListingPlace::at(item.created),
        }))
    }

    fn rows<'a>(
        &'a self,
        range: Range,
        reverse: bool,
    ) -> Result<ListingRows<'a, Self>, StoreError> {
        if self.axis == Axis::Published {
            return Ok(self.published(range, reverse));
        }
        let range = paging::stamps(range);
        let row = |t: &Stamp| {
            let place = Moment::from(*t);
            let kept = self.at(place).first().map(|kept| Kept::clone(kept))?;
            Some(Ok((ListingPlace::at(place), kept)))
        };
        let stamps: Box<dyn DoubleEndedIterator<Item = &'a Stamp>> = match self.axis {
            Axis::Modified | Axis::Published => {
                Box::new(self.feed.held.items.range(range).map(|(t, _)| t))
            }
            Axis::Created => Box::new(self.feed.held.created.range(range).map(|(c, _)| c)),
        };
        Ok(if reverse {
            Box::new(stamps.rev().filter_map(row))
        } else {
            Box::new(stamps.filter_map(row))
        })
    }
}

impl ListingRow for Kept {
    fn id(&self) -> String {
        self.item.id.to_string()
    }

    fn weight_bytes(&self) -> usize {
        self.bytes
    }
}

impl paging::ListedRow for Kept {
    fn is_gone(&self) -> bool {
        self.item.is_gone()
    }

    fn item(&self) -> Result<Arc<Item>, StoreError> {
        Ok(self.item.clone())
    }
}
