//! Events for the operator: faults that lasted, their ends, and what happened once. Pure: findings
//! and the time are arguments; not where findings are gathered, and not who is told.

mod cause;

mod finding;

mod feed_faults;

mod happening;

mod event;

mod journal;

pub use cause::{Cause, EventTopic, FaultOwner};
pub use event::{Event, EventKind};
pub use feed_faults::{
    FailingFeeds, FeedTrouble, LASTING_POLLS, Observed, failing_now, observed_feeds,
};
pub use finding::{AffectedFeeds, FEEDS_NAMED_MAX, Finding, Severity};
pub use happening::{Happening, Happenings};
pub use journal::{EVENTS_MAX, Journal, Reported, removed_beyond};
