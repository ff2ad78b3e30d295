//! Names of nodes, both ways: a feed, with its order, its filter and the wish for payloads in the
//! form of a query; not who may read it.

use super::stanza_error::StanzaError;
use crate::{
    feed::{filter::Filter, order::Order},
    render::{Query, xmpp_node_uri},
};
use url::form_urlencoded;

/// A node as it was meant.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Node {
    /// The name of the feed.
    pub(super) feed: String,
    pub(super) order: Order,
    pub(super) filter: Filter,
    /// True where pushes hold the posts, not their ids alone.
    pub(super) has_payload: bool,
}

/// The parameter that leaves payloads out of pushes.
const PAYLOAD: &str = "payload";
/// Parameters that say which items are wanted, for which XMPP has words of its own.
const RESERVED: [&str; 5] = ["since", "until", "max", "timeout", "callback"];
/// Bytes of the name of a node at most (XEP-0060 takes a resource part, RFC 7622).
pub(super) const NODE_BYTES_MAX: usize = 1_023;

impl Node {
    // Decides: Which node of XMPP is which view?
    /// Reads a name. What no feed can be called, or a parameter that there is not, names no node.
    pub(super) fn parse(name: &str) -> Result<Self, StanzaError> {
        if name.len() > NODE_BYTES_MAX {
            return Err(StanzaError::ITEM_NOT_FOUND);
        }
        let (feed, raw) = name.split_once('?').unwrap_or((name, ""));
        let mut has_payload = None;
        let mut rest = form_urlencoded::Serializer::new(String::new());
        for (key, value) in form_urlencoded::parse(raw.as_bytes()) {
            if RESERVED.contains(&&*key) {
                let text = format!("`{key}` is no part of a node; use Result Set Management");
                return Err(StanzaError::BAD_REQUEST.saying(text));
            }
            if key == PAYLOAD {
                let value = match &*value {
                    "true" => true,
                    "false" => false,
                    _ => return Err(bad("`payload` must be true or false")),
                };
                if has_payload.replace(value).is_some() {
                    return Err(bad("the parameter `payload` is given more than once"));
                }
                continue;
            }
            if !Query::names().any(|name| name == key) {
                return Err(StanzaError::ITEM_NOT_FOUND);
            }
            rest.append_pair(&key, &value);
        }
        let query = Query::parse(&rest.finish()).map_err(|error| bad(&error.to_string()))?;
        Ok(Self {
            feed: feed.to_owned(),
            order: query.order,
            filter: query.filter,
            has_payload: has_payload.unwrap_or(true),
        })
    }

    /// The one spelling of the node: two names that mean the same have the same.
    pub(super) fn canonical(&self) -> String {
        let query = Query {
            order: self.order,
            filter: self.filter.clone(),
            ..Query::default()
        };
        let payload = if self.has_payload {
            ""
        } else {
            "&payload=false"
        };
        format!("{}?{query}{payload}", self.feed)
    }

    /// The URI of the canonical node at a service: the topic of its subscriptions.
    pub(super) fn uri(&self, service: &str) -> String {
        xmpp_node_uri(service, &self.canonical())
    }

    /// The URI of the node as it is shown: that of a whole feed in its usual order is the one that
    /// lists of nodes and documents name, too (XMPP-61).
    pub(super) fn shown_uri(&self, service: &str) -> String {
        let is_usual = self.order == Order::default() && self.filter == Filter::default();
        match is_usual && self.has_payload {
            true => xmpp_node_uri(service, &self.feed),
            false => self.uri(service),
        }
    }
}

fn bad(text: &str) -> StanzaError {
    StanzaError::BAD_REQUEST.saying(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_names_that_mean_the_same_node_have_one_spelling() {
        let canonical = |name: &str| Node::parse(name).unwrap().canonical();
        for (name, expect) in [
            ("blog", "blog?order=modified"),
            ("blog?", "blog?order=modified"),
            ("blog?payload=true&order=modified", "blog?order=modified"),
            ("blog?payload=false", "blog?order=modified&payload=false"),
            (
                "blog?author=a%20b&order=created",
                "blog?order=created&author=a%20b",
            ),
            (
                "blog?order=created&author=a+b",
                "blog?order=created&author=a%20b",
            ),
        ] {
            assert_eq!(canonical(name), expect, "{name}");
            assert_eq!(canonical(expect), expect);
        }
        // XMPP-61.
        assert_eq!(
            Node::parse("comments?order=created")
                .unwrap()
                .uri("feeds.example"),
            "xmpp:feeds.example?;node=comments%3Forder%3Dcreated"
        );
        for (name, expect) in [
            ("blog", "blog"),
            ("blog?order=modified", "blog"),
            ("blog?order=created", "blog%3Forder%3Dcreated"),
            (
                "blog?payload=false",
                "blog%3Forder%3Dmodified%26payload%3Dfalse",
            ),
        ] {
            let uri = Node::parse(name).unwrap().shown_uri("feeds.example");
            assert_eq!(uri, format!("xmpp:feeds.example?;node={expect}"));
        }
    }

    #[test]
    fn a_parameter_that_is_none_names_no_node_and_a_range_is_no_part_of_one() {
        // Section 6 of the brief: unknown, reserved and bad parameters.
        for (name, expect) in [
            ("blog?x=1", "cancel item-not-found"),
            ("blog?since=cursor:1", "modify bad-request"),
            ("blog?max=5", "modify bad-request"),
            ("blog?callback=f", "modify bad-request"),
            ("blog?order=bogus", "modify bad-request"),
            ("blog?order=created&order=created", "modify bad-request"),
            ("blog?payload=maybe", "modify bad-request"),
            ("blog?payload=true&payload=true", "modify bad-request"),
            ("blog?lang=%00", "modify bad-request"),
        ] {
            assert_eq!(Node::parse(name).unwrap_err().words(), expect, "{name}");
        }
        let long = "a".repeat(NODE_BYTES_MAX + 1);
        assert_eq!(
            Node::parse(&long).unwrap_err().words(),
            "cancel item-not-found"
        );
    }
}
