//! Namespaces of XMPP, by the extension that defines each.

pub(super) const COMPONENT: &str = "jabber:component:accept";
pub(super) const STREAM: &str = "http://etherx.jabber.org/streams";
pub(super) const STREAM_ERROR: &str = "urn:ietf:params:xml:ns:xmpp-streams";
pub(super) const STANZA_ERROR: &str = "urn:ietf:params:xml:ns:xmpp-stanzas";
pub(super) const DISCO_INFO: &str = "http://jabber.org/protocol/disco#info";
pub(super) const DISCO_ITEMS: &str = "http://jabber.org/protocol/disco#items";
pub(super) const PUBSUB: &str = "http://jabber.org/protocol/pubsub";
pub(super) const PUBSUB_OWNER: &str = "http://jabber.org/protocol/pubsub#owner";
pub(super) const PUBSUB_ERRORS: &str = "http://jabber.org/protocol/pubsub#errors";
pub(super) const RSM: &str = "http://jabber.org/protocol/rsm";
pub(super) const SHIM: &str = "http://jabber.org/protocol/shim";
pub(super) const DATA_FORM: &str = "jabber:x:data";
pub(super) const ORDER_BY: &str = "urn:xmpp:order-by:1";
pub(super) const PING: &str = "urn:xmpp:ping";
pub(super) const SOCIAL_FEED: &str = "urn:xmpp:pubsub-social-feed:1";
