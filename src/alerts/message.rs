//! A message: one event, or a digest of several; as text and as JSON.

use crate::{
    events::Event, feed::stamp::Stamp, one_line::one_line, render::event_list::event_json,
};
use serde_json::{Value, json};
use std::fmt::Write as _;

/// Events that a digest names at most; the others are counted.
pub(super) const DIGEST_EVENTS_MAX: usize = 50;
/// Characters of a subject at most.
const SUBJECT_CHARS_MAX: usize = 150;

/// A message to the operator.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct AlertMessage {
    /// Its id: the same for each try.
    pub(super) id: String,
    /// The time at which it was made.
    pub(super) at: Stamp,
    pub(super) content: MessageContent,
}

/// What a message tells.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum MessageContent {
    /// One event.
    One(Event),
    /// One event that was told before, and lasts.
    Repeated(Event),
    /// Several events, oldest first, and the number of those that are not among them.
    Digest { events: Vec<Event>, more: u64 },
}

impl AlertMessage {
    /// The events in it.
    pub(super) fn events(&self) -> &[Event] {
        match &self.content {
            MessageContent::One(event) | MessageContent::Repeated(event) => {
                std::slice::from_ref(event)
            }
            MessageContent::Digest { events, .. } => events,
        }
    }

    /// One line that says what it is about.
    pub(super) fn subject(&self) -> String {
        let subject = match &self.content {
            MessageContent::One(event) => event.headline(),
            MessageContent::Repeated(event) => format!("Lasts: {}", event.title),
            MessageContent::Digest { events, more } => {
                format!("{} events", events.len() as u64 + more)
            }
        };
        format!("[everfeed] {}", one_line(&subject, SUBJECT_CHARS_MAX))
    }

    /// The whole as plain text.
    pub(super) fn text(&self, public_url: &str) -> String {
        let mut text = String::new();
        match &self.content {
            MessageContent::One(event) | MessageContent::Repeated(event) => {
                let _ = writeln!(text, "{}\n\n{}", self.subject(), event.lines());
            }
            MessageContent::Digest { events, more } => {
                for event in events {
                    let at = Stamp::from_secs(event.at.secs()).rfc3339();
                    let lines = event.lines().replace('\n', "\n  ");
                    let _ = writeln!(text, "{at}  {}\n  {lines}\n", event.headline());
                }
                if *more > 0 {
                    let _ = writeln!(
                        text,
                        "and {more} more: /events.atom of the operator's listener has the last ones\n"
                    );
                }
            }
        }
        let _ = writeln!(text, "\n-- \neverfeed at {public_url}");
        text
    }

    /// The whole for programs: a payload as Standard Webhooks have it.
    pub(super) fn json(&self, public_url: &str) -> Value {
        let (kind, mut data) = match &self.content {
            MessageContent::One(event) => (event.type_name(), event_json(event)),
            MessageContent::Repeated(event) => {
                let mut data = event_json(event);
                data["repeated"] = true.into();
                (event.type_name(), data)
            }
            MessageContent::Digest { events, more } => {
                let events: Vec<Value> = events.iter().map(event_json).collect();
                (
                    "digest".to_owned(),
                    json!({ "events": events, "more": more }),
                )
            }
        };
        data["subject"] = self.subject().into();
        data["public_url"] = public_url.into();
        json!({ "type": kind, "timestamp": self.at.rfc3339(), "data": data })
    }
}
