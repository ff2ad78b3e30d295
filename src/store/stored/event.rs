//! Events for the operator.

use super::{
    StoredKind,
    table::{stored_enums, stored_structs},
};
use crate::events::{AffectedFeeds, Cause, Event, EventKind, EventTopic, FaultOwner, Severity};

impl StoredKind for Event {
    const NAME: &'static str = "event";
}

stored_structs! {
    Event { at, kind, cause, severity, whose, owner, since, title, text, remedy, feeds, joined_at }
    Cause { topic, key }
    AffectedFeeds { names, total }
}

stored_enums! {
    EventKind { 0 Began, 1 Ended, 2 Unsteady, 3 Happened }
    Severity { 0 Fault, 1 Notice }
    FaultOwner {
        0 Upstream, 1 Network, 2 Configuration, 3 Ours, 4 Machine, 5 Subscriber, 6 Receiver, 7 Service, 8 Nobody,
    }
    EventTopic {
        0 Feeds, 1 Network, 2 Moved, 3 Gap, 4 MassEdit, 5 Quarantine, 6 Subscribers, 7 Reload, 8 Certificate, 9 Disk, 10 Store,
        11 Restore, 12 Site, 13 Xmpp, 14 Alert, 15 Others, 16 SearchEngines, 17 Opml,
    }
}
