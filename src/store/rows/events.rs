//! Events for the operator.

use super::{
    Engine, Writing,
    open_table::{TableEdit as _, TableSource as _},
    tables::{EVENTS, StampValue, stamp_of, stamp_value},
};
use crate::{
    events::{EVENTS_MAX, Event, removed_beyond},
    feed::stamp::Stamp,
    store::{EventStore, StoreError, StoreFuture, engine::RowReader, stored::decode},
};
use std::ops::Bound;

impl<E: Engine> EventStore for E {
    fn keep_events(&self, events: Vec<Event>) -> StoreFuture<'_, ()> {
        self.write(move |writing| keep(writing, &events))
    }

    fn events(&self, before: Option<Stamp>, max: usize) -> StoreFuture<'_, Vec<Event>> {
        self.read(move |snapshot| events(snapshot, before, max))
    }
}

/// Keeps events, and removes those that are too many.
fn keep(writing: &mut Writing<'_>, new: &[Event]) -> Result<(), StoreError> {
    let mut table = writing.change().edit(EVENTS)?;
    for event in new {
        table.write(&stamp_value(event.at), event)?;
    }
    let mut damaged: Vec<StampValue> = Vec::new();
    let mut kept = Vec::new();
    let all: (Bound<&StampValue>, Bound<&StampValue>) = (Bound::Unbounded, Bound::Unbounded);
    for row in table.range_unchecked(all) {
        let (key, value) = row?;
        match value.and_then(|value| decode::<Event>("an event", value.value())) {
            Ok(event) => kept.push((stamp_of(key.value()), event.cause, event.kind)),
            Err(StoreError::Damaged(_)) => damaged.push(*key.value()),
            Err(error) => return Err(error),
        }
    }
    let removed = removed_beyond(&kept, EVENTS_MAX).into_iter();
    for key in removed.map(stamp_value).chain(damaged) {
        table.remove(&key)?;
    }
    Ok(())
}

/// The events before a time, newest first.
fn events(
    source: &dyn RowReader,
    before: Option<Stamp>,
    max: usize,
) -> Result<Vec<Event>, StoreError> {
    let before = before.map(stamp_value);
    let before = before.as_ref().map_or(Bound::Unbounded, Bound::Excluded);
    let table = source.table(EVENTS)?;
    let mut events = Vec::new();
    for row in table.range_unchecked((Bound::Unbounded, before)).rev() {
        if events.len() >= max {
            break;
        }
        let (_, value) = row?;
        match value.and_then(|value| decode::<Event>("an event", value.value())) {
            Ok(event) => events.push(event),
            Err(StoreError::Damaged(why)) => {
                tracing::error!("An event is damaged, and is passed over: {why}");
            }
            Err(error) => return Err(error),
        }
    }
    Ok(events)
}
