//! Stanzas by kind: requests that want one answer, answers to our own, and messages that came back;
//! not what a request asks for.

use super::{element::Element, frames::STANZA_BYTES_MAX, ns, stanza_error::StanzaError};
use jid::Jid;

/// A stanza that concerns us.
#[derive(Debug)]
pub(super) enum Received {
    /// An iq that wants exactly one answer.
    Request(Request),
    /// The answer to an iq of ours.
    Answer(Answer),
    /// A message of ours that came back.
    Bounce(Bounce),
    /// Nothing to do.
    Nothing,
}

/// An iq of somebody.
#[derive(Debug)]
pub(super) struct Request {
    pub(super) from: Jid,
    /// The address as it was written: answers come from there.
    pub(super) to: Jid,
    pub(super) id: String,
    pub(super) is_set: bool,
    /// The only element in it; `None` where there is none, or several.
    pub(super) asked: Option<Element>,
}

/// An answer to an iq of ours.
#[derive(Debug)]
pub(super) struct Answer {
    pub(super) from: Jid,
    pub(super) id: String,
    /// The condition of the error, unless it is a result.
    pub(super) error: Option<Failure>,
}

/// A message of ours that came back.
#[derive(Debug)]
pub(super) struct Bounce {
    pub(super) from: Jid,
    pub(super) failure: Failure,
}

/// An error as another wrote it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Failure {
    pub(super) kind: String,
    pub(super) condition: String,
}

/// Bytes of the id at most of a request that is carried out. A longer one is that of no client.
const ID_BYTES_MAX: usize = 1_024;
/// Bytes of the id of an answer at most, as it is written, so that the answer is no larger than
/// what we take ourselves.
const ID_WRITTEN_BYTES_MAX: usize = STANZA_BYTES_MAX - (8 << 10);

impl Received {
    /// Reads a stanza; `is_whole` where it was within its limits.
    pub(super) fn of(stanza: Element) -> Self {
        if stanza.namespace() != ns::COMPONENT {
            return Self::Nothing;
        }
        let jid = |name: &str| stanza.attribute(name).and_then(|jid| Jid::new(jid).ok());
        // What comes from nobody cannot be answered.
        let (Some(from), Some(to)) = (jid("from"), jid("to")) else {
            return Self::Nothing;
        };
        let kind = stanza.attribute("type").unwrap_or_default();
        let id = stanza.attribute("id").unwrap_or_default();
        match (stanza.name(), kind) {
            ("iq", "get" | "set") => {
                let is_set = kind == "set";
                let id = echoed(id);
                let mut elements = stanza.elements();
                let asked = elements
                    .next()
                    .filter(|_| elements.next().is_none())
                    .cloned();
                Self::Request(Request {
                    from,
                    to,
                    id,
                    is_set,
                    asked,
                })
            }
            ("iq", "result") => Self::Answer(Answer {
                from,
                id: id.to_owned(),
                error: None,
            }),
            ("iq", "error") => Self::Answer(Answer {
                from,
                id: id.to_owned(),
                error: Some(Failure::of(&stanza)),
            }),
            ("message", "error") => Self::Bounce(Bounce {
                from,
                failure: Failure::of(&stanza),
            }),
            _ => Self::Nothing,
        }
    }
}

/// An id as an answer has it: whole, as long as that fits into a stanza (XMPP-6).
fn echoed(id: &str) -> String {
    let mut left = ID_WRITTEN_BYTES_MAX;
    let fits = |c: &char| {
        let bytes = match c {
            '&' | '<' | '>' | '"' | '\'' => 6,
            c if c.is_control() => 6,
            c => c.len_utf8(),
        };
        let room = left.checked_sub(bytes);
        left = room.unwrap_or_default();
        room.is_some()
    };
    id.chars().take_while(fits).collect()
}

impl Failure {
    fn of(stanza: &Element) -> Self {
        let Some(error) = stanza.child(ns::COMPONENT, "error") else {
            return Self::default();
        };
        let mut conditions = error.elements();
        let is_condition =
            |child: &&Element| child.namespace() == ns::STANZA_ERROR && child.name() != "text";
        Self {
            kind: error.attribute("type").unwrap_or_default().to_owned(),
            condition: conditions
                .find(is_condition)
                .map(|condition| condition.name().to_owned())
                .unwrap_or_default(),
        }
    }
}

impl Request {
    /// True for one whose id is too long.
    pub(super) fn has_long_id(&self) -> bool {
        self.id.len() > ID_BYTES_MAX
    }

    /// The answer that all is well, holding what was asked for, if anything.
    pub(super) fn result(&self, answer: Option<Element>) -> Element {
        self.reply("result").holding_all(answer)
    }

    /// The answer that it is not.
    pub(super) fn error(&self, error: &StanzaError) -> Element {
        self.reply("error").holding(error.element())
    }

    fn reply(&self, kind: &str) -> Element {
        Element::new(ns::COMPONENT, "iq")
            .with("type", kind)
            .with("id", &self.id)
            .with("from", self.to.as_str())
            .with("to", self.from.as_str())
    }
}
