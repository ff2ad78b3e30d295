//! The number of a subscription.

use std::fmt;

/// The number of a subscription, never given twice.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct SubscriptionNo(pub u64);

impl fmt::Display for SubscriptionNo {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}
