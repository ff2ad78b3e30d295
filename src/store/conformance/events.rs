//! Events for the operator.

use super::rig::Rig;
use crate::{
    events::{
        AffectedFeeds, Cause, EVENTS_MAX, Event, EventKind, EventTopic, FaultOwner, Severity,
    },
    feed::stamp::Stamp,
};

on_every_store![
    events_are_kept_and_read_newest_first,
    the_oldest_events_go_and_an_open_cause_stays,
];

/// An event of so many seconds.
pub(in crate::store) fn event(secs: u64, key: &str, kind: EventKind) -> Event {
    Event {
        at: Stamp::from_secs(secs),
        kind,
        cause: Cause::new(EventTopic::Feeds, key),
        severity: Severity::Fault,
        whose: FaultOwner::Upstream,
        owner: "the publisher's".into(),
        since: Stamp::from_secs(7),
        title: "`blog` fails".into(),
        text: "500 <b>ö</b>".into(),
        remedy: "wait".into(),
        feeds: AffectedFeeds::one("blog"),
        joined_at: None,
    }
}

async fn events_are_kept_and_read_newest_first(rig: Rig) {
    assert_eq!(rig.events(None, 9).await.unwrap(), []);
    let all: Vec<Event> = (1..=5)
        .map(|secs| event(secs, "a", EventKind::Happened))
        .collect();
    rig.keep_events(all[..2].to_vec()).await.unwrap();
    rig.keep_events(all[2..].to_vec()).await.unwrap();
    // Once more, as after an answer that did not arrive.
    rig.keep_events(all[2..].to_vec()).await.unwrap();
    let rig = rig.reopen();
    let newest: Vec<Event> = all.iter().rev().cloned().collect();
    assert_eq!(rig.events(None, 9).await.unwrap(), newest);
    assert_eq!(rig.events(None, 2).await.unwrap(), newest[..2]);
    let before = rig.events(Some(Stamp::from_secs(3)), 9).await.unwrap();
    assert_eq!(before, newest[3..]);
}

async fn the_oldest_events_go_and_an_open_cause_stays(rig: Rig) {
    let open = event(1, "open", EventKind::Began);
    rig.keep_events(vec![open.clone()]).await.unwrap();
    let most = u64::try_from(EVENTS_MAX).unwrap();
    let others: Vec<Event> = (2..most + 12)
        .map(|secs| event(secs, "a", EventKind::Happened))
        .collect();
    rig.keep_events(others).await.unwrap();
    let held = rig.reopen().events(None, 2 * EVENTS_MAX).await.unwrap();
    assert_eq!(held.len(), EVENTS_MAX);
    assert_eq!(held.last(), Some(&open));
    assert_eq!(held[EVENTS_MAX - 2].at, Stamp::from_secs(13));
}
