//! A view: the items of a feed that a consumer reads, and their order; not their representation,
//! nor where the consumer stands.

use super::{filter::Filter, order::Order, record::FeedNo};

/// The items to read and their order. Two reads of one view, from one position and in one
/// representation, get the same bytes.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct View {
    /// The feed.
    pub feed: FeedNo,
    /// The order of its items.
    pub order: Order,
    /// The items that are shown.
    pub filter: Filter,
}

/// Treatment of items that are gone in the pushes of a subscription.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Deletions {
    /// They are told, in the form that the syntax has for it.
    Announce,
    /// They are left out.
    Omit,
}

impl View {
    /// All items of a feed in an order.
    pub const fn all(feed: FeedNo, order: Order) -> Self {
        Self {
            feed,
            order,
            filter: Filter::All,
        }
    }

    /// The same view with those of its items that a filter shows.
    #[must_use]
    pub fn filtered(self, filter: Filter) -> Self {
        Self { filter, ..self }
    }
}
