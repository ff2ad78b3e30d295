//! The plan of an alert: which event is sent next, and when. A function of the events, of what was
//! sent and of the time; not the sending.

use super::{
    message::{AlertMessage, DIGEST_EVENTS_MAX, MessageContent},
    quiet_hours::QuietHours,
};
use crate::{
    events::{Cause, Event, EventTopic},
    feed::stamp::Stamp,
    locks::lock,
};
use std::{
    collections::{BTreeMap, VecDeque},
    sync::{Arc, Mutex},
};

/// Messages within an hour at most.
const HOURLY_MAX: usize = 20;
const HOUR_SECS: u64 = 3600;
/// Seconds after a message that could not be sent, before the next one.
const FAILED_SECS: u64 = 600;
/// Causes at most that are remembered.
const CAUSES_MAX: usize = 1000;

/// The plan of one alert.
#[derive(Clone, Debug)]
pub(super) struct AlertPlan {
    quiet: Option<QuietHours>,
    again_after_secs: u64,
    causes: BTreeMap<Cause, ReportedCause>,
    /// The messages to the same receiver within the last hour.
    sent: SentTimes,
    /// The time before which nothing is sent, because the last message could not be.
    not_before: Stamp,
    /// True while events wait because nothing may be sent: they become a digest.
    gathers: bool,
    /// Events that were dropped because too many causes waited.
    dropped: u64,
}

/// The times at which messages were sent to one receiver within the last hour. Clones share them: after
/// a reload an alert goes on with the count of its predecessor, which may still send what is due.
#[derive(Clone, Debug, Default)]
pub(super) struct SentTimes(Arc<Mutex<VecDeque<Stamp>>>);

impl SentTimes {
    fn note(&self, now: Stamp) {
        lock(&self.0).push_back(now);
    }

    /// The time from which on another message may be sent; `None` while one may be now.
    fn full_until(&self, now: Stamp) -> Option<Stamp> {
        let mut sent = lock(&self.0);
        sent.retain(|at| now < at.plus_secs(HOUR_SECS));
        let first = sent.front().filter(|_| sent.len() >= HOURLY_MAX);
        first.map(|first| first.plus_secs(HOUR_SECS))
    }
}

/// A cause, as its receiver knows it.
#[derive(Clone, Debug, Default)]
struct ReportedCause {
    /// The time at which it was told last.
    told_at: Option<Stamp>,
    /// The newest event that was not told yet.
    news: Option<Event>,
    /// The fault, while it lasts.
    lasting: Option<Event>,
}

/// What to do next.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum AlertStep {
    /// Send this.
    Send(Box<AlertMessage>),
    /// Wait for an event, and no longer than until then.
    Wait(Option<Stamp>),
}

impl ReportedCause {
    /// The time from which on it may be told; `None` for one of which there is nothing to tell.
    fn due_at(&self, again_after_secs: u64) -> Option<Stamp> {
        match (self.told_at, &self.news, &self.lasting) {
            (None, Some(_), _) => Some(Stamp::ZERO),
            (Some(told_at), Some(_), _) | (Some(told_at), None, Some(_)) => {
                Some(told_at.plus_secs(again_after_secs))
            }
            (_, None, _) => None,
        }
    }
}

impl AlertPlan {
    /// A plan whose receiver was told of these events before a restart, oldest first. What it was not
    /// told because its cause had been told shortly before is still news, unless that is long ago; and so is what waits for the
    /// end of quiet hours. Of a fault that lasts it was told on time, so a restart repeats nothing.
    pub(super) fn after<'a>(
        quiet: Option<QuietHours>,
        again_after_secs: u64,
        known: impl IntoIterator<Item = &'a Event>,
        now: Stamp,
    ) -> Self {
        let mut causes: BTreeMap<Cause, ReportedCause> = BTreeMap::new();
        let mut gathers = false;
        for event in known.into_iter().filter(|event| is_sent(event)) {
            let told = causes.entry(event.cause.clone()).or_default();
            let next_at = told.told_at.map(|at| at.plus_secs(again_after_secs));
            if next_at.is_none_or(|next_at| next_at <= event.at) {
                let at = quiet.and_then(|quiet| quiet.end_at(event.at));
                let at = at.unwrap_or(event.at);
                if at <= now {
                    told.told_at = Some(at);
                    told.news = None;
                } else {
                    gathers = true;
                    told.news = Some(event.clone());
                }
            } else {
                told.news = next_at.filter(|at| now < *at).map(|_| event.clone());
            }
            told.lasting = event.is_lasting_fault().then(|| event.clone());
        }
        for told in causes.values_mut() {
            if let (Some(told_at), None, Some(_)) = (told.told_at, &told.news, &told.lasting) {
                let times = now.secs_since(told_at) / again_after_secs.max(1);
                told.told_at = Some(told_at.plus_secs(times * again_after_secs));
            }
        }
        Self {
            quiet,
            again_after_secs,
            causes,
            sent: SentTimes::default(),
            not_before: Stamp::ZERO,
            gathers,
            dropped: 0,
        }
    }

    /// The same, which goes on with the count of messages of another.
    pub(super) fn counting(self, sent: SentTimes) -> Self {
        Self { sent, ..self }
    }

    /// Takes in an event; one that was revised takes the place of the one of its time.
    pub(super) fn take_in(&mut self, event: Event) {
        if !is_sent(&event) {
            return;
        }
        if self.causes.len() >= CAUSES_MAX && !self.causes.contains_key(&event.cause) {
            self.causes
                .retain(|_, told| told.news.is_some() || told.lasting.is_some());
            if self.causes.len() >= CAUSES_MAX {
                self.dropped += 1;
                return;
            }
        }
        let told = self.causes.entry(event.cause.clone()).or_default();
        let is_revised = told
            .lasting
            .as_ref()
            .is_some_and(|held| held.at == event.at);
        told.lasting = event.is_lasting_fault().then(|| event.clone());
        // A revised one is not news, unless it was not told yet. Later messages have its present feeds.
        if !is_revised || told.news.is_some() {
            told.news = Some(event);
        }
    }

    // Decides: Which event is sent to an alert, and when?
    /// What to do next. A cause is told at once, and again after a time: its end, or that it lasts. In
    /// quiet hours, behind 20 messages within an hour and after a failure events gather, and become
    /// one digest.
    pub(super) fn next(&mut self, now: Stamp) -> AlertStep {
        let again_after = self.again_after_secs;
        // Of those that have nothing to tell only the time counts, and that has passed.
        self.causes.retain(|_, told| {
            let is_known = |at: Stamp| now < at.plus_secs(again_after);
            told.news.is_some() || told.lasting.is_some() || told.told_at.is_some_and(is_known)
        });
        let mut due: Vec<(&Cause, &ReportedCause)> = Vec::new();
        let mut next_due: Option<Stamp> = None;
        for (cause, told) in &self.causes {
            match told.due_at(again_after) {
                Some(at) if at <= now => due.push((cause, told)),
                Some(at) => next_due = Some(next_due.map_or(at, |next| next.min(at))),
                None => {}
            }
        }
        if due.is_empty() && self.dropped == 0 {
            return AlertStep::Wait(next_due);
        }
        if let Some(until) = self.held_until(now) {
            self.gathers = true;
            return AlertStep::Wait(Some(until));
        }
        let mut events: Vec<(Event, bool)> = due
            .into_iter()
            .filter_map(|(_, told)| match (&told.news, &told.lasting) {
                (Some(news), _) => Some((news.clone(), false)),
                (None, Some(lasting)) => Some((lasting.clone(), true)),
                (None, None) => None,
            })
            .collect();
        events.sort_by_key(|(event, _)| event.at);
        let message = if (self.gathers && events.len() > 1) || self.dropped > 0 {
            self.digest(events, now)
        } else {
            let (event, is_repeated) = events.swap_remove(0);
            one(event, is_repeated, now)
        };
        AlertStep::Send(Box::new(message))
    }

    /// The time until which nothing is sent; `None` when something may be.
    fn held_until(&self, now: Stamp) -> Option<Stamp> {
        let quiet = self.quiet.and_then(|quiet| quiet.end_at(now));
        let full = self.sent.full_until(now);
        let failed = (now < self.not_before).then_some(self.not_before);
        [quiet, full, failed].into_iter().flatten().max()
    }

    fn digest(&self, events: Vec<(Event, bool)>, now: Stamp) -> AlertMessage {
        let mut events: Vec<Event> = events.into_iter().map(|(event, _)| event).collect();
        let more = events.len().saturating_sub(DIGEST_EVENTS_MAX);
        // The newest ones are told.
        events.drain(..more);
        AlertMessage {
            id: format!("digest_{}", now.micros()),
            at: now,
            content: MessageContent::Digest {
                events,
                more: more as u64 + self.dropped,
            },
        }
    }

    /// Notes that a message was sent.
    pub(super) fn sent(&mut self, message: &AlertMessage, now: Stamp) {
        self.sent.note(now);
        self.not_before = Stamp::ZERO;
        let last = message.events().last().map(|event| event.at);
        let is_digest = matches!(message.content, MessageContent::Digest { .. });
        let again_after = self.again_after_secs;
        for (cause, told) in &mut self.causes {
            let is_in = message.events().iter().any(|event| event.cause == *cause);
            // A digest counts those that it does not name.
            let is_counted = is_digest
                && told.due_at(again_after).is_some_and(|at| at <= message.at)
                && told.news.as_ref().is_none_or(|news| Some(news.at) <= last);
            if is_in || is_counted {
                told.told_at = Some(now);
                // What came while it was sent is still to be told.
                told.news.take_if(|news| {
                    let told = message.events().iter().find(|event| event.cause == *cause);
                    told.is_none_or(|told| news.at <= told.at)
                });
            }
        }
        if is_digest {
            (self.gathers, self.dropped) = (false, 0);
        }
        if !self.is_anything_due(now) {
            self.gathers = false;
        }
    }

    /// Notes that a message could not be sent: what it told is told later.
    pub(super) fn failed(&mut self, now: Stamp) {
        self.not_before = now.plus_secs(FAILED_SECS);
        self.gathers = true;
    }

    fn is_anything_due(&self, now: Stamp) -> bool {
        let due = |told: &ReportedCause| told.due_at(self.again_after_secs);
        self.causes
            .values()
            .any(|told| due(told).is_some_and(|at| at <= now))
    }
}

/// True for an event that alerts are for: that an alert fails is told by no alert.
fn is_sent(event: &Event) -> bool {
    event.cause.topic != EventTopic::Alert
}

fn one(event: Event, is_repeated: bool, now: Stamp) -> AlertMessage {
    let at = event.at.micros();
    let id = if is_repeated {
        format!("event_{at}_{}", now.micros())
    } else {
        format!("event_{at}")
    };
    let content = if is_repeated {
        MessageContent::Repeated(event)
    } else {
        MessageContent::One(event)
    };
    AlertMessage {
        id,
        at: now,
        content,
    }
}

#[cfg(test)]
mod tests;
