//! Answers of service discovery (XEP-0030): what the service and its nodes are, and lists of them;
//! not who may see them.

use super::{element::Element, ns, rsm::AnsweredSet, shim};
use crate::feed::stamp::Stamp;

/// A node as `disco#info` describes it.
#[derive(Clone, Debug, Default)]
pub(super) struct NodeFacts {
    pub(super) title: String,
    pub(super) description: Option<String>,
    pub(super) is_private: bool,
    pub(super) has_payload: bool,
    /// True where what is gone is told: the social feed profile demands it (XMPP-62).
    pub(super) tells_deletions: bool,
    pub(super) generation: Stamp,
    pub(super) subscribers: usize,
    /// The URI of the node.
    pub(super) uri: String,
}

/// Features of the service, beside who may read. Only what is true stands here (XMPP-10).
const FEATURES: [&str; 14] = [
    ns::DISCO_INFO,
    ns::DISCO_ITEMS,
    ns::PING,
    ns::PUBSUB,
    ns::RSM,
    ns::SHIM,
    ns::ORDER_BY,
    "http://jabber.org/protocol/pubsub#rsm",
    "http://jabber.org/protocol/pubsub#item-ids",
    "http://jabber.org/protocol/pubsub#meta-data",
    "http://jabber.org/protocol/pubsub#persistent-items",
    "http://jabber.org/protocol/pubsub#retrieve-items",
    "http://jabber.org/protocol/pubsub#retrieve-subscriptions",
    "http://jabber.org/protocol/pubsub#subscribe",
];

/// The field of the URI of a node (XMPP-61). A name that is not registered has its namespace in it
/// (XEP-0068).
pub(super) const URI_FIELD: &str = "{http://fanout.org/protocol/atom}uri";
/// The field of the generation of its feed, likewise.
pub(super) const GENERATION_FIELD: &str = "{http://fanout.org/protocol/atom}generation";

/// The node that lists the headers.
pub(super) const SHIM_NODE: &str = ns::SHIM;

fn feature(name: &str) -> Element {
    Element::new(ns::DISCO_INFO, "feature").with("var", name)
}

fn identity(kind: &str, name: &str) -> Element {
    Element::new(ns::DISCO_INFO, "identity")
        .with("category", "pubsub")
        .with("type", kind)
        .with("name", name)
}

/// The service.
pub(super) fn service(has_private: bool) -> Element {
    let mut features: Vec<&str> = FEATURES.to_vec();
    features.push("http://jabber.org/protocol/pubsub#access-open");
    if has_private {
        features.push("http://jabber.org/protocol/pubsub#access-whitelist");
    }
    Element::new(ns::DISCO_INFO, "query")
        .holding(identity("service", "everfeed"))
        .holding_all(features.into_iter().map(feature))
}

/// A node.
pub(super) fn node(name: &str, facts: &NodeFacts) -> Element {
    Element::new(ns::DISCO_INFO, "query")
        .with("node", name)
        .holding(identity("leaf", &facts.title))
        .holding_all([ns::PUBSUB, ns::RSM, ns::SHIM].map(feature))
        .holding(meta_data(facts))
}

/// The form of a node's metadata (XEP-0060 section 5.4, XMPP-11, XMPP-62).
fn meta_data(facts: &NodeFacts) -> Element {
    let field = |name: &str, value: &str| {
        Element::new(ns::DATA_FORM, "field")
            .with("var", name)
            .holding(Element::new(ns::DATA_FORM, "value").saying(value))
    };
    let access = if facts.is_private {
        "whitelist"
    } else {
        "open"
    };
    let subscribers = facts.subscribers.to_string();
    let flag = |is_on| if is_on { "1" } else { "0" };
    let kind = facts.tells_deletions.then_some(ns::SOCIAL_FEED);
    let form_type =
        field("FORM_TYPE", "http://jabber.org/protocol/pubsub#meta-data").with("type", "hidden");
    let description = facts.description.as_deref();
    Element::new(ns::DATA_FORM, "x")
        .with("type", "result")
        .holding(form_type)
        .holding(field("pubsub#title", &facts.title))
        .holding_all(description.map(|text| field("pubsub#description", text)))
        .holding_all(kind.map(|kind| field("pubsub#type", kind)))
        .holding(field("pubsub#access_model", access))
        .holding(field("pubsub#num_subscribers", &subscribers))
        .holding(field("pubsub#notify_retract", flag(facts.tells_deletions)))
        .holding(field("pubsub#max_items", "max"))
        .holding(field("pubsub#deliver_payloads", flag(facts.has_payload)))
        .holding(field("pubsub#persist_items", "1"))
        .holding(field("pubsub#send_last_published_item", "never"))
        .holding(field(URI_FIELD, &facts.uri))
        .holding(field(GENERATION_FIELD, &facts.generation.to_string()))
}

/// The headers that pushes and pages have.
pub(super) fn headers() -> Element {
    Element::new(ns::DISCO_INFO, "query")
        .with("node", SHIM_NODE)
        .holding(feature(ns::SHIM))
        .holding_all(shim::NAMES.map(|name| feature(&format!("{}#{name}", ns::SHIM))))
}

/// A list of nodes, each with its title.
pub(super) fn nodes<'a>(
    service: &str,
    nodes: impl Iterator<Item = (&'a str, String)>,
    set: &AnsweredSet,
) -> Element {
    let item = |(node, name): (&str, String)| {
        Element::new(ns::DISCO_ITEMS, "item")
            .with("jid", service)
            .with("node", node)
            .with("name", &name)
    };
    Element::new(ns::DISCO_ITEMS, "query")
        .holding_all(nodes.map(item))
        .holding(set.element())
}

/// A list of items of a node (XMPP-14).
pub(super) fn items<'a>(
    service: &str,
    node: &str,
    ids: impl Iterator<Item = &'a str>,
    set: &AnsweredSet,
    headers: Element,
) -> Element {
    let item = |id: &str| {
        Element::new(ns::DISCO_ITEMS, "item")
            .with("jid", service)
            .with("name", id)
    };
    Element::new(ns::DISCO_ITEMS, "query")
        .with("node", node)
        .holding_all(ids.map(item))
        .holding(set.element())
        .holding(headers)
}
