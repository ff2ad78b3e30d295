//! The thing that a request asks for, read from its element alone; not who asks, nor what there is.

use super::{
    element::Element,
    ns,
    rsm::{AskedSet, number},
    stanza::Request,
    stanza_error::StanzaError,
};

/// A request that can be carried out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Asked {
    /// The service, or a node of it, is to tell what it is.
    Info { node: Option<String> },
    /// The nodes, or the items of one, are to be listed.
    List { node: Option<String>, set: AskedSet },
    /// Items of a node are wanted.
    Items { node: String, wanted: WantedItems },
    /// An address is to be pushed what changes.
    Subscribe { node: String, jid: Option<String> },
    /// It is to be pushed nothing more.
    Unsubscribe { node: String, jid: Option<String> },
    /// The asker's subscriptions are to be listed: all, or those to a node.
    Subscriptions { node: Option<String> },
    /// Nothing: we are to answer.
    Ping,
}

/// Items that are wanted of a node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum WantedItems {
    /// Those of these ids.
    Named(Vec<String>),
    /// A part of the feed, in an order where one is asked for beside the node (XMPP-60).
    Part {
        set: AskedSet,
        order: Option<String>,
    },
    /// So many that were changed last.
    Newest(usize),
}

/// Items at most that one request names.
const NAMED_MAX: usize = 100;

impl Asked {
    // Decides: What does a request over XMPP ask for?
    /// Reads a request. Whatever it is, there is one answer to it.
    pub(super) fn of(request: &Request) -> Result<Self, StanzaError> {
        let Some(asked) = &request.asked else {
            return Err(StanzaError::BAD_REQUEST.saying("a request holds one element"));
        };
        let node = asked.attribute("node").filter(|node| !node.is_empty());
        let node = node.map(str::to_owned);
        match (asked.namespace(), asked.name(), request.is_set) {
            (ns::DISCO_INFO, "query", false) => Ok(Self::Info { node }),
            (ns::DISCO_ITEMS, "query", false) => Ok(Self::List {
                node,
                set: AskedSet::of(asked)?.unwrap_or_default(),
            }),
            (ns::PING, "ping", false) => Ok(Self::Ping),
            (ns::PUBSUB, "pubsub", is_set) => pubsub(asked, is_set),
            (ns::PUBSUB_OWNER, "pubsub", _) => Err(StanzaError::unsupported(owner_feature(asked))),
            _ => Err(StanzaError::NO_SERVICE),
        }
    }
}

fn pubsub(pubsub: &Element, is_set: bool) -> Result<Asked, StanzaError> {
    let of_pubsub = |child: &&Element| child.namespace() == ns::PUBSUB;
    let Some(wanted) = pubsub.elements().find(of_pubsub) else {
        return Err(StanzaError::BAD_REQUEST.saying("`pubsub` holds nothing that is known"));
    };
    let node = wanted.attribute("node").filter(|node| !node.is_empty());
    let needed = || node.map(str::to_owned).ok_or(StanzaError::NODE_REQUIRED);
    let jid = || wanted.attribute("jid").map(str::to_owned);
    match (wanted.name(), is_set) {
        ("items", false) => Ok(Asked::Items {
            node: needed()?,
            wanted: items(pubsub, wanted)?,
        }),
        ("subscribe", true) => Ok(Asked::Subscribe {
            node: needed()?,
            jid: jid(),
        }),
        ("unsubscribe", true) => Ok(Asked::Unsubscribe {
            node: needed()?,
            jid: jid(),
        }),
        ("subscriptions", false) => Ok(Asked::Subscriptions {
            node: node.map(str::to_owned),
        }),
        ("publish", _) => Err(StanzaError::unsupported("publish")),
        ("retract", _) => Err(StanzaError::unsupported("delete-items")),
        ("create", _) => Err(StanzaError::unsupported("create-nodes")),
        ("configure", _) => Err(StanzaError::unsupported("config-node")),
        ("options" | "default", _) => Err(StanzaError::unsupported("subscription-options")),
        ("affiliations", _) => Err(StanzaError::unsupported("retrieve-affiliations")),
        _ => Err(StanzaError::BAD_REQUEST.saying("`pubsub` holds nothing that is known")),
    }
}

fn items(pubsub: &Element, items: &Element) -> Result<WantedItems, StanzaError> {
    let named = items.elements().filter(|item| item.is(ns::PUBSUB, "item"));
    let named: Vec<String> = named
        .filter_map(|item| item.attribute("id"))
        .map(str::to_owned)
        .collect();
    if named.len() > NAMED_MAX {
        let text = format!("at most {NAMED_MAX} items can be named in one request");
        return Err(StanzaError::TOO_LARGE.saying(text));
    }
    if !named.is_empty() {
        return Ok(WantedItems::Named(named));
    }
    let order = pubsub
        .child(ns::ORDER_BY, "order")
        .and_then(|order| order.attribute("by"));
    let order = match order {
        None => None,
        Some("creation") => Some("created".to_owned()),
        Some("modification") => Some("modified".to_owned()),
        Some(_) => return Err(StanzaError::NOT_IMPLEMENTED),
    };
    // A set goes before a number of items (XMPP-30).
    let set = AskedSet::of(pubsub)?;
    let newest = number("max_items", items.attribute("max_items").map(str::to_owned))?;
    match (set, newest) {
        (None, Some(newest)) => Ok(WantedItems::Newest(
            usize::try_from(newest).unwrap_or(usize::MAX),
        )),
        (set, _) => Ok(WantedItems::Part {
            set: set.unwrap_or_default(),
            order,
        }),
    }
}

/// The feature of XEP-0060 that an owner's request asks for.
fn owner_feature(pubsub: &Element) -> &'static str {
    match pubsub.elements().next().map(Element::name) {
        Some("configure" | "default") => "config-node",
        Some("delete") => "delete-nodes",
        Some("purge") => "purge-nodes",
        Some("subscriptions") => "manage-subscriptions",
        Some("affiliations") => "modify-affiliations",
        _ => "config-node",
    }
}
