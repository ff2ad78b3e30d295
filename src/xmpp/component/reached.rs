//! A place in a feed up to which a subscriber was sent everything; not by which proof.

use crate::feed::stamp::Stamp;

/// A place in a feed up to which a subscriber was sent everything.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Reached {
    /// The cursor of the last item.
    pub(super) cursor: String,
    /// The cursor up to which a filter hid everything behind that.
    pub(super) looked: Option<String>,
    /// The last T of the feed at that time; `None` before the first look since the start.
    pub(super) through: Option<Stamp>,
}

impl Reached {
    /// The place behind an item.
    pub(super) fn at(cursor: String) -> Self {
        Self {
            cursor,
            looked: None,
            through: None,
        }
    }
}
