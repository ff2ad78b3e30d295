//! Messages to subscribers (XEP-0060, XEP-0131): one item each, the end of a node, the end of a
//! subscription; not when they are sent.

use super::{element::Element, ns, shim, shown::ShownItem};
use crate::feed::{page::Degraded, stamp::Stamp};
use bytes::Bytes;

/// Namespace of what is pushed.
const EVENT: &str = "http://jabber.org/protocol/pubsub#event";

/// Sender and recipient of a message.
#[derive(Clone, Copy, Debug)]
pub(super) struct Envelope<'a> {
    pub(super) from: &'a str,
    pub(super) to: &'a str,
    pub(super) id: &'a str,
}

/// The headers of a push; what there is nothing to tell of is left out.
#[derive(Clone, Copy, Debug)]
pub(super) struct PushHeaders<'a> {
    pub(super) total: Option<u64>,
    /// The cursor before the item; empty before the first item ever, and where its reader begins
    /// anew.
    pub(super) previous: &'a str,
    pub(super) last: &'a str,
    /// The reason for which its reader begins anew.
    pub(super) anew: Option<Degraded>,
    pub(super) generation: Stamp,
}

impl Envelope<'_> {
    fn message(&self) -> Element {
        Element::new(ns::COMPONENT, "message")
            .with("type", "headline")
            .with("id", self.id)
            .with("from", self.from)
            .with("to", self.to)
    }

    fn event(&self, what: Element) -> Element {
        self.message()
            .holding(Element::new(EVENT, "event").holding(what))
    }
}

/// A push of one item: what it is now, or that it is gone (XMPP-50 to XMPP-54, D-8).
pub(super) fn push(
    envelope: Envelope<'_>,
    node: &str,
    item: &ShownItem,
    has_payload: bool,
    headers: PushHeaders<'_>,
) -> Bytes {
    let told = if item.is_gone {
        Element::new(EVENT, "retract").with("id", &item.id)
    } else {
        let told = Element::new(EVENT, "item").with("id", &item.id);
        match has_payload {
            true => told.holding_written(item.entry.clone()),
            false => told,
        }
    };
    let items = Element::new(EVENT, "items")
        .with("node", node)
        .holding(told);
    let previous = Some(headers.previous).filter(|it| !it.is_empty());
    let headers = shim::headers([
        (shim::TOTAL, headers.total.map(|total| total.to_string())),
        (shim::PREVIOUS, previous.map(str::to_owned)),
        (shim::LAST, Some(headers.last.to_owned())),
        (
            shim::CURSOR,
            headers.anew.map(|anew| anew.name().to_owned()),
        ),
        (shim::GENERATION, Some(headers.generation.to_string())),
    ]);
    envelope
        .event(items)
        .holding(headers)
        .written(ns::COMPONENT)
}

/// A node is no more (XMPP-55).
pub(super) fn deleted(envelope: Envelope<'_>, node: &str) -> Bytes {
    let delete = Element::new(EVENT, "delete").with("node", node);
    envelope.event(delete).written(ns::COMPONENT)
}

/// A subscription is no more, for a reason that is not the subscriber's (XMPP-55).
pub(super) fn ended(envelope: Envelope<'_>, node: &str) -> Bytes {
    let subscription = Element::new(ns::PUBSUB, "subscription")
        .with("node", node)
        .with("jid", envelope.to)
        .with("subscription", "none");
    envelope
        .message()
        .holding(Element::new(ns::PUBSUB, "pubsub").holding(subscription))
        .written(ns::COMPONENT)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_push_after_a_restore_names_the_generation_and_no_cursor_before_it() {
        // D-8, XMPP-51.
        let item = ShownItem {
            id: "i".to_owned(),
            cursor: "5_0_1".to_owned(),
            is_gone: true,
            entry: Bytes::new(),
        };
        let envelope = Envelope {
            from: "a",
            to: "b",
            id: "1",
        };
        let headers = PushHeaders {
            total: None,
            previous: "",
            last: &item.cursor,
            anew: Some(Degraded::Ahead),
            generation: Stamp::from_secs(4),
        };
        let written = push(envelope, "blog", &item, true, headers);
        let written = std::str::from_utf8(&written).unwrap();
        let expect = "<header name=\"LastCursor\">5_0_1</header>\
             <header name=\"Smart-Feed-Cursor\">ahead</header>\
             <header name=\"Smart-Feed-Generation\">4</header></headers></message>";
        assert!(written.ends_with(expect), "{written}");
        assert!(!written.contains("PreviousCursor"), "{written}");
    }
}
