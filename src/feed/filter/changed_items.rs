//! Changed items of a feed, held against many filters: texts are folded once, and a filter meets
//! those items only that have a term of it; not where the changes are read, nor who waits for them.

use super::{
    Filter, ItemWords, index_terms,
    index_terms::{IndexClause, IndexTerm},
};
use crate::{
    item::Item,
    order::{Axis, Order},
    record::FeedRecord,
};
use std::{collections::HashMap, sync::Arc};

/// Items that were changed, each in its newest form.
#[derive(Debug)]
pub struct ChangedItems {
    items: Vec<(Arc<Item>, ItemWords)>,
    feed: Arc<FeedRecord>,
    /// Places of the items that have a term.
    by_term: HashMap<IndexTerm, Vec<usize>>,
    /// Places of the items with too many terms, which every filter looks at.
    without_terms: Vec<usize>,
    /// True when one of them was there before.
    has_edited: bool,
}

/// Meaning of some changes for a view.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ViewChange {
    /// True when the view may show one of them, be it as having left; else it is as it was.
    pub is_shown: bool,
    /// Items that the view holds more than before; `None` where some of them may have been in it
    /// already.
    pub added: Option<u64>,
}

impl ChangedItems {
    /// Changes of a feed, and the feed when they were read.
    pub fn new(items: Vec<Arc<Item>>, feed: Arc<FeedRecord>) -> Self {
        let items: Vec<_> = items
            .into_iter()
            .map(|item| (item, ItemWords::default()))
            .collect();
        let mut by_term: HashMap<_, Vec<_>> = HashMap::new();
        let mut without_terms = Vec::new();
        for (place, (item, words)) in items.iter().enumerate() {
            match index_terms::terms_of(item, words) {
                Some(terms) => terms
                    .into_iter()
                    .for_each(|term| by_term.entry(term).or_default().push(place)),
                None => without_terms.push(place),
            }
        }
        let has_edited = items.iter().any(|(item, _)| item.modified > item.created);
        Self {
            items,
            feed,
            by_term,
            without_terms,
            has_edited,
        }
    }

    /// The feed when they were read.
    pub fn feed(&self) -> &Arc<FeedRecord> {
        &self.feed
    }

    /// The items.
    pub fn items(&self) -> impl Iterator<Item = &Arc<Item>> {
        self.items.iter().map(|(item, _)| item)
    }

    /// Their meaning for the view with this filter and this order.
    pub fn in_view(&self, filter: &Filter, order: Order) -> ViewChange {
        let shown = self
            .likely(&filter.index_clauses())
            .into_iter()
            .filter(|&place| {
                let (item, words) = &self.items[place];
                filter.shows_folded(item, &self.feed, words)
            });
        let shown = shown.count();
        let has_left = self.items().any(|item| filter.shows_as_left(item, order));
        // What was there before may have stood at a position that is now read otherwise.
        let has_moved = self.has_edited && order.axis == Axis::Published;
        ViewChange {
            is_shown: shown > 0 || has_left || has_moved,
            added: (!self.has_edited).then_some(shown as u64),
        }
    }

    /// Places of the items that may meet some clauses: those of the clause that fewest meet.
    fn likely(&self, clauses: &[IndexClause]) -> Vec<usize> {
        let met = |clause: &IndexClause| {
            let mut places: Vec<usize> = clause
                .iter()
                .filter_map(|term| self.by_term.get(term))
                .flatten()
                .copied()
                .collect();
            places.extend(&self.without_terms);
            places.sort_unstable();
            places.dedup();
            places
        };
        clauses
            .iter()
            .map(met)
            .min_by_key(Vec::len)
            .unwrap_or_else(|| (0..self.items.len()).collect())
    }
}
