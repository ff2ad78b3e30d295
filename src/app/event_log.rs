//! The events as the operator reads them: those of the store, and those that could not be stored yet.

use crate::{
    events::Event,
    feed::stamp::Stamp,
    locks::lock,
    render::event_list::EventList,
    serve::admin::{EventForm, EventRange},
    store::{Store, StoreError},
};
use std::{
    collections::VecDeque,
    sync::{Arc, Mutex},
};

/// Events at most that wait for a store that is away; the oldest ones give way.
const UNSTORED_MAX: usize = 200;

/// The events of this everfeed. Cheap to clone.
#[derive(Clone)]
pub(super) struct EventLog {
    pub(super) store: Arc<dyn Store>,
    /// Events that are not stored yet, oldest first.
    unstored: Arc<Mutex<VecDeque<Event>>>,
    public_url: String,
    /// The time at which the work began.
    since: Stamp,
}

impl EventLog {
    pub(super) fn new(store: Arc<dyn Store>, public_url: String, since: Stamp) -> Self {
        Self {
            store,
            unstored: Arc::default(),
            public_url,
            since,
        }
    }

    /// Adds events, which [`EventLog::store_all`] stores.
    pub(super) fn add(&self, events: Vec<Event>) {
        let mut unstored = lock(&self.unstored);
        // A revised one takes the place of the one of its time.
        unstored.retain(|held| events.iter().all(|event| event.at != held.at));
        unstored.extend(events);
        let too_many = unstored.len().saturating_sub(UNSTORED_MAX);
        unstored.drain(..too_many);
    }

    /// True when there is something to store.
    pub(super) fn has_unstored(&self) -> bool {
        !lock(&self.unstored).is_empty()
    }

    /// Stores what is not stored yet.
    pub(super) async fn store_all(&self) -> Result<(), StoreError> {
        let events: Vec<Event> = lock(&self.unstored).iter().cloned().collect();
        if events.is_empty() {
            return Ok(());
        }
        self.store.keep_events(events.clone()).await?;
        lock(&self.unstored).retain(|event| !events.contains(event));
        Ok(())
    }

    /// The document of a range of events.
    pub(super) async fn document(
        &self,
        form: EventForm,
        range: &EventRange,
    ) -> Result<String, StoreError> {
        let unstored = lock(&self.unstored).clone();
        let is_wanted = |event: &&Event| range.before.is_none_or(|before| event.at < before);
        let mut events: Vec<Event> = unstored.iter().filter(is_wanted).cloned().collect();
        let stored = self.store.events(range.before, range.max).await?;
        // One may have been stored between the two looks.
        let is_new = |event: &Event| events.iter().all(|other| other.at != event.at);
        let stored: Vec<Event> = stored.into_iter().filter(is_new).collect();
        events.extend(stored);
        events.sort_by_key(|event| std::cmp::Reverse(event.at));
        events.truncate(range.max);
        let list = EventList {
            public_url: &self.public_url,
            own_url: range.own_url.as_deref(),
            events: &events,
            since: self.since,
        };
        Ok(match form {
            EventForm::Atom => list.atom(),
            EventForm::Json => list.json(),
        })
    }
}
