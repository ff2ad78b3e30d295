//! Messages to subscribers (XEP-0060, XEP-0131): one item each, the end of a node, the end of a
//! subscription; not when they are sent.

use super::{disco::HEADERS, element::Element, ns, shown::ShownItem};
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

/// The three headers of a push; the first two are left out where there is nothing to tell.
#[derive(Clone, Copy, Debug)]
pub(super) struct PushHeaders<'a> {
    pub(super) total: Option<u64>,
    /// The cursor before the item; empty before the first item ever.
    pub(super) previous: &'a str,
    pub(super) last: &'a str,
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

/// A push of one item: what it is now, or that it is gone (XMPP-50 to XMPP-54).
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
    let total = headers.total.map(|total| total.to_string());
    let [of_total, of_previous, of_last] = HEADERS;
    let values = [
        (of_total, total.as_deref()),
        (
            of_previous,
            Some(headers.previous).filter(|it| !it.is_empty()),
        ),
        (of_last, Some(headers.last)),
    ];
    let header = |(name, value): (&str, Option<&str>)| {
        Some(
            Element::new(ns::SHIM, "header")
                .with("name", name)
                .saying(value?),
        )
    };
    let headers = values.into_iter().filter_map(header);
    envelope
        .event(items)
        .holding(Element::new(ns::SHIM, "headers").holding_all(headers))
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
