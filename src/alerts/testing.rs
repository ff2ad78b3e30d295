//! A message for the tests of the ways.

use super::message::{AlertMessage, MessageContent};
use crate::{
    events::{AffectedFeeds, Cause, Event, EventKind, EventTopic, FaultOwner, Severity},
    feed::stamp::Stamp,
};

/// A message of one event whose texts are this one.
pub(super) fn message(text: &str) -> AlertMessage {
    let at = Stamp::from_secs(1_795_824_000);
    let event = Event {
        at,
        kind: EventKind::Began,
        cause: Cause::new(EventTopic::Feeds, text),
        severity: Severity::Fault,
        whose: FaultOwner::Upstream,
        owner: "the publisher's".into(),
        since: at,
        title: text.into(),
        text: text.into(),
        remedy: "wait".into(),
        feeds: AffectedFeeds::default(),
        joined_at: None,
    };
    AlertMessage {
        id: "event_1".into(),
        at,
        content: MessageContent::One(event),
    }
}
