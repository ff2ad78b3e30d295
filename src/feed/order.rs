//! The orders in which a feed can be listed; not how a listing is stored.

use std::{fmt, str::FromStr};

/// Which stamp a listing runs along.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Axis {
    /// T: an edit moves the item to the end. The axis to sync by.
    #[default]
    Modified,
    /// First seen: append-only, items never move (SF D-20).
    Created,
    /// The publisher's dates. Items come in anywhere and move when their dates are corrected, so
    /// nothing is synchronised by it.
    Published,
}

/// A listing order. Lists run oldest first; a leading `-` reverses them (SF D-1).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Order {
    /// The stamp that sorts.
    pub axis: Axis,
    /// Newest first.
    pub reverse: bool,
}

impl Order {
    /// The same with the other end first.
    #[must_use]
    pub const fn reversed(self) -> Self {
        Self {
            reverse: !self.reverse,
            ..self
        }
    }

    /// Oldest change first: the default.
    pub const MODIFIED: Self = Self {
        axis: Axis::Modified,
        reverse: false,
    };
    /// Newest change first.
    pub const MODIFIED_REVERSE: Self = Self {
        axis: Axis::Modified,
        reverse: true,
    };
    /// First seen first.
    pub const CREATED: Self = Self {
        axis: Axis::Created,
        reverse: false,
    };
    /// Last seen first.
    pub const CREATED_REVERSE: Self = Self {
        axis: Axis::Created,
        reverse: true,
    };
    /// Oldest publication first.
    pub const PUBLISHED: Self = Self {
        axis: Axis::Published,
        reverse: false,
    };
    /// Newest publication first.
    pub const PUBLISHED_REVERSE: Self = Self {
        axis: Axis::Published,
        reverse: true,
    };
    /// All orders on offer, in the order in which they are documented.
    pub const ALL: [Self; 6] = [
        Self::MODIFIED,
        Self::MODIFIED_REVERSE,
        Self::CREATED,
        Self::CREATED_REVERSE,
        Self::PUBLISHED,
        Self::PUBLISHED_REVERSE,
    ];

    /// True when `id:` positions make sense: only where items do not move (SF-27).
    pub const fn takes_ids(self) -> bool {
        matches!(self.axis, Axis::Created)
    }

    /// True when a consumer that follows the order misses nothing: what is new stands at its end
    /// (DESIGN section 3).
    pub const fn is_to_sync_by(self) -> bool {
        !matches!(self.axis, Axis::Published)
    }

    /// The name used in `order=`.
    pub const fn name(self) -> &'static str {
        match (self.axis, self.reverse) {
            (Axis::Modified, false) => "modified",
            (Axis::Modified, true) => "-modified",
            (Axis::Created, false) => "created",
            (Axis::Created, true) => "-created",
            (Axis::Published, false) => "published",
            (Axis::Published, true) => "-published",
        }
    }
}

/// An order that we do not know.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("unknown order: use modified, created or published, or one of them with a `-` before it")]
pub struct UnknownOrder;

impl FromStr for Order {
    type Err = UnknownOrder;

    fn from_str(text: &str) -> Result<Self, UnknownOrder> {
        Self::ALL
            .into_iter()
            .find(|order| order.name() == text)
            .ok_or(UnknownOrder)
    }
}

impl fmt::Display for Order {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_order_is_read_back_from_its_name() {
        for order in Order::ALL {
            assert_eq!(order.name().parse(), Ok(order));
        }
        assert_eq!("Modified".parse::<Order>(), Err(UnknownOrder));
        assert_eq!("updated".parse::<Order>(), Err(UnknownOrder));
    }
}
