//! The service: one answer to each request, from what is registered, who asks, and the store; not
//! the stream that carries them.

use super::{
    asked::{Asked, WantedItems},
    disco::{self, NodeFacts, SHIM_NODE},
    element::Element,
    fault::{of_read, of_store},
    node::Node,
    ns,
    rsm::{AnsweredSet, AskedSet, position_spec},
    shim,
    shown::{ShownItem, ShownPage, ShownPages, Wanted},
    stanza::Request,
    stanza_error::StanzaError,
    subscribers::{Subscribers, Wish},
};
use crate::{
    auth::Principal,
    catalog::{CatalogSnapshot, ReadGate, RegisteredFeed, is_open_to},
    clock::Clock,
    feed::{
        filter::Filter, item::ItemId, order::Order, page::PageQuery, record::FeedNo, stamp::Stamp,
        view::View,
    },
    readers::ReadError,
    render::words,
    store::Store,
};
use jid::Jid;
use std::sync::Arc;

/// Items in a part when the asker does not say how many.
const ITEMS_DEFAULT: usize = 50;
/// Items in a part at most; its bytes are limited, too.
const ITEMS_MAX: usize = 1_000;
/// Nodes in a part of their list, at most and when the asker does not say how many.
const NODES_MAX: usize = 200;

/// Parts from which requests are answered.
pub(super) struct Service {
    /// Our address.
    pub(super) jid: String,
    pub(super) store: Arc<dyn Store>,
    pub(super) gate: ReadGate,
    pub(super) pages: Arc<ShownPages>,
    pub(super) subscribers: Arc<Subscribers>,
    pub(super) clock: Arc<dyn Clock>,
}

/// A view that the asker may see.
struct SeenView {
    feed: Arc<RegisteredFeed>,
    node: Node,
    view: View,
}

impl Service {
    /// The answer to a request: there is always exactly one (XMPP-6).
    pub(super) async fn answer(&self, request: &Request) -> Element {
        match self.carry_out(request).await {
            Ok(answer) => request.result(answer),
            Err(error) => request.error(&error),
        }
    }

    async fn carry_out(&self, request: &Request) -> Result<Option<Element>, StanzaError> {
        if request.to.node().is_some() {
            return Err(StanzaError::ITEM_NOT_FOUND);
        }
        match Asked::of(request)? {
            Asked::Ping => Ok(None),
            Asked::Info { node } => self.info(request, node.as_deref()).await.map(Some),
            Asked::List { node: None, set } => self.list(request, &set).await.map(Some),
            Asked::List {
                node: Some(node),
                set,
            } => self.list_items(request, &node, &set).await.map(Some),
            Asked::Items { node, wanted } => self.items(request, &node, &wanted).await.map(Some),
            Asked::Subscribe { node, jid } => {
                let jid = jid.as_deref();
                self.subscribe(request, &node, jid).await.map(Some)
            }
            Asked::Unsubscribe { node, jid } => {
                let jid = jid.as_deref();
                self.unsubscribe(request, &node, jid).await.map(|()| None)
            }
            Asked::Subscriptions { node } => self.subscriptions(request, node.as_deref()).map(Some),
        }
    }

    /// The asker. The server vouches for its address.
    fn principal(&self, request: &Request) -> Principal {
        let bare = request.from.to_bare();
        self.gate.auth.accounts().by_jid(bare.as_str())
    }

    // Decides: What does an address of XMPP see of a node?
    /// The view that the asker sees under the name of a node. One that is not for it is as if it
    /// were not there.
    fn seen(&self, request: &Request, name: &str) -> Result<SeenView, StanzaError> {
        let node = Node::parse(name)?;
        let catalog = self.gate.catalog.snapshot();
        let feed = catalog
            .feed(&node.feed)
            .ok_or(StanzaError::ITEM_NOT_FOUND)?;
        let principal = self.principal(request);
        let read = catalog.read_by(feed, Some(&principal));
        let read = read.ok_or(StanzaError::ITEM_NOT_FOUND)?;
        Ok(SeenView {
            feed: feed.clone(),
            view: View::all(read, node.order).filtered(node.filter.clone()),
            node,
        })
    }

    async fn info(&self, request: &Request, node: Option<&str>) -> Result<Element, StanzaError> {
        let Some(name) = node else {
            return Ok(disco::service(self.gate.catalog.snapshot().has_private()));
        };
        if name == SHIM_NODE {
            return Ok(disco::headers());
        }
        let seen = self.seen(request, name)?;
        let record = self.store.feed(seen.view.feed).await.map_err(of_store)?;
        let topic = seen.node.uri(&self.jid);
        let announces = self.gate.catalog.snapshot();
        let announces = announces.announces_deletions(seen.view.feed);
        let text = |text: &Option<_>| text.as_ref().map(|text| words(text).into_owned());
        let facts = NodeFacts {
            title: text(&record.metadata.title).unwrap_or_else(|| seen.node.feed.clone()),
            description: text(&record.metadata.description),
            is_private: seen.feed.settings.is_private(),
            has_payload: seen.node.has_payload,
            tells_deletions: announces && !seen.node.filter.asks_for_live_alone(),
            generation: record.head().generation,
            subscribers: self.subscribers.count_of(seen.feed.no, &topic),
            uri: seen.node.shown_uri(&self.jid),
        };
        Ok(disco::node(name, &facts))
    }

    /// The nodes that the asker may see: one for each feed, in its usual order (XMPP-13).
    async fn list(&self, request: &Request, set: &AskedSet) -> Result<Element, StanzaError> {
        let catalog = self.gate.catalog.snapshot();
        let principal = self.principal(request);
        let seen = |feed: &&Arc<RegisteredFeed>| is_open_to(feed, Some(&principal));
        let names: Vec<&str> = catalog
            .feeds()
            .filter(seen)
            .map(|feed| feed.settings.name.as_str())
            .collect();
        let (part, index) = part_of(&names, set)?;
        let titles = self.titles(&catalog, part).await?;
        let ends = part.first().zip(part.last());
        let set = AnsweredSet {
            ends: ends.map(|(first, last)| ((*first).to_owned(), (*last).to_owned())),
            index: Some(index as u64),
            count: Some(names.len() as u64),
        };
        Ok(disco::nodes(
            &self.jid,
            part.iter().copied().zip(titles),
            &set,
        ))
    }

    async fn titles(
        &self,
        catalog: &CatalogSnapshot,
        names: &[&str],
    ) -> Result<Vec<String>, StanzaError> {
        let mut titles = Vec::with_capacity(names.len());
        for name in names {
            let no = catalog.feed(name).map_or(FeedNo(0), |feed| feed.no);
            let title = match self.store.feed(no).await {
                Ok(record) => record
                    .metadata
                    .title
                    .as_ref()
                    .map(|it| words(it).into_owned()),
                Err(error) if error.is_of_one_feed() => None,
                Err(error) => return Err(of_store(error)),
            };
            titles.push(title.unwrap_or_else(|| (*name).to_owned()));
        }
        Ok(titles)
    }

    async fn list_items(
        &self,
        request: &Request,
        name: &str,
        set: &AskedSet,
    ) -> Result<Element, StanzaError> {
        let seen = self.seen(request, name)?;
        let (page, max) = self.part(&seen, set).await?;
        let items = &page.items[..page.items.len().min(max)];
        let ids = items.iter().map(|item| item.id.as_str());
        let set = answered(&page, max);
        let headers = shim::of_page(&page);
        Ok(disco::items(&self.jid, name, ids, &set, headers))
    }

    async fn items(
        &self,
        request: &Request,
        name: &str,
        wanted: &WantedItems,
    ) -> Result<Element, StanzaError> {
        let mut seen = self.seen(request, name)?;
        let (shown, told) = match wanted {
            WantedItems::Named(ids) => (self.named(&seen, ids).await?, None),
            WantedItems::Newest(max) => {
                let set = AskedSet {
                    max: Some(*max),
                    before: Some(String::new()),
                    ..AskedSet::default()
                };
                self.shown_part(&seen, &set).await?
            }
            WantedItems::Part { set, order } => {
                if let Some(order) = order {
                    let axis = order.parse::<Order>().map(|order| order.axis);
                    seen.view.order.axis = axis.unwrap_or_default();
                }
                self.shown_part(&seen, set).await?
            }
        };
        let item = |item: &ShownItem| {
            Element::new(ns::PUBSUB, "item")
                .with("id", &item.id)
                .holding_written(item.entry.clone())
        };
        // The node is echoed byte for byte (XMPP-20).
        let items = Element::new(ns::PUBSUB, "items")
            .with("node", name)
            .holding_all(shown.iter().map(item));
        // An iq holds one element (RFC 6120 section 8.2.3), so the headers stand within, as the set
        // does.
        let told = told.map(|(set, headers): (AnsweredSet, _)| [set.element(), headers]);
        Ok(Element::new(ns::PUBSUB, "pubsub")
            .holding(items)
            .holding_all(told.into_iter().flatten()))
    }

    /// The items of a part, its set and its headers: a cursor that could not be applied is told as
    /// by HTTP (D-8).
    async fn shown_part(
        &self,
        seen: &SeenView,
        set: &AskedSet,
    ) -> Result<(Vec<ShownItem>, Option<(AnsweredSet, Element)>), StanzaError> {
        let (page, max) = self.part(seen, set).await?;
        let items = page.items.iter().take(max).cloned().collect();
        Ok((items, Some((answered(&page, max), shim::of_page(&page)))))
    }

    // Decides: Which items does a set of Result Set Management select?
    /// The part of a view that a set asks for, and how many of its items are told: none where only
    /// the count is wanted (XMPP-24, XMPP-25).
    async fn part(
        &self,
        seen: &SeenView,
        set: &AskedSet,
    ) -> Result<(Arc<ShownPage>, usize), StanzaError> {
        let order = seen.view.order;
        let max = set.max.unwrap_or(ITEMS_DEFAULT).min(ITEMS_MAX);
        let since = position_spec(&set.after, order)?;
        let wanted = match (set.index, &set.before) {
            // Filtered views, and the dates of the publisher, have no numbers (XMPP-26).
            (Some(index), _) => Wanted::From { index },
            (None, Some(before)) if since.is_empty() => Wanted::Last {
                until: position_spec(before, order)?,
            },
            (None, before) => Wanted::First {
                since,
                until: position_spec(before.as_deref().unwrap_or_default(), order)?,
            },
        };
        let page = self.pages.read(seen.view.clone(), &wanted, max);
        Ok((page.await.map_err(of_read)?, max))
    }

    /// The items of these ids that the view shows; others are left out (XMPP-31).
    async fn named(&self, seen: &SeenView, ids: &[String]) -> Result<Vec<ShownItem>, StanzaError> {
        let record = self.store.feed(seen.view.feed).await.map_err(of_store)?;
        if !record.is_ready() {
            return Err(of_read(ReadError::NotReady));
        }
        let mut shown = Vec::new();
        let mut left = self.pages.bytes_max();
        for id in ids {
            let Ok(id) = id.parse::<ItemId>() else {
                continue;
            };
            let item = self.store.item(record.no, id).await.map_err(of_store)?;
            if let Some(item) = item.filter(|item| seen.view.filter.shows(item, &record)) {
                let item = self.pages.single(&item, &record);
                if item.entry.len() > left && !shown.is_empty() {
                    break;
                }
                left = left.saturating_sub(item.entry.len());
                shown.push(item);
            }
        }
        Ok(shown)
    }
}

impl Service {
    // Decides: Which node and which address can be subscribed over XMPP?
    /// Subscribes an address of the asker (XMPP-40 to XMPP-42).
    async fn subscribe(
        &self,
        request: &Request,
        name: &str,
        jid: Option<&str>,
    ) -> Result<Element, StanzaError> {
        let jid = jid.and_then(|jid| Jid::new(jid).ok());
        let is_own = |jid: &Jid| jid.to_bare() == request.from.to_bare();
        let jid = jid.filter(is_own).ok_or(StanzaError::INVALID_JID)?;
        let seen = self.seen(request, name)?;
        if !seen.node.order.is_to_sync_by() || seen.node.order.reverse {
            let text = "items come in anywhere in this order; take modified or created";
            return Err(StanzaError::NOT_IMPLEMENTED.saying(text));
        }
        let last = PageQuery::last(seen.view.feed, seen.view.order, Filter::All);
        let last = self.store.page(last).await.map_err(of_store)?;
        let start = last.record.is_ready().then_some(last.last_cursor);
        let topic = seen.node.uri(&self.jid);
        let subscription = subscription(name, &jid);
        let wish = Wish {
            jid,
            feed: seen.feed.no,
            node: seen.node,
            spelt: name.to_owned(),
            topic,
        };
        let now = Stamp::from_micros(self.clock.now_us());
        self.subscribers.subscribe(wish, start, now).await?;
        Ok(Element::new(ns::PUBSUB, "pubsub").holding(subscription))
    }

    /// Ends the subscription of an address of the asker (XMPP-43).
    async fn unsubscribe(
        &self,
        request: &Request,
        name: &str,
        jid: Option<&str>,
    ) -> Result<(), StanzaError> {
        let jid = jid.and_then(|jid| Jid::new(jid).ok());
        let jid = jid.ok_or(StanzaError::INVALID_JID)?;
        if jid.to_bare() != request.from.to_bare() {
            return Err(StanzaError::FORBIDDEN);
        }
        let topic = Node::parse(name)?.uri(&self.jid);
        let ended = self.subscribers.unsubscribe(&topic, &jid).await;
        if ended.map_err(of_store)? {
            return Ok(());
        }
        self.seen(request, name)?;
        Err(StanzaError::NOT_SUBSCRIBED)
    }

    /// The subscriptions of the asker, all or those to a node (XMPP-44).
    fn subscriptions(&self, request: &Request, name: Option<&str>) -> Result<Element, StanzaError> {
        let topic = match name {
            Some(name) => Some(self.seen(request, name)?.node.uri(&self.jid)),
            None => None,
        };
        let bare = request.from.to_bare();
        let all = self.subscribers.of_bare(bare.as_str());
        let wanted = all
            .iter()
            .filter(|one| topic.as_ref().is_none_or(|topic| one.topic == *topic));
        let wanted = wanted.map(|one| subscription(&one.node, &one.jid));
        let subscriptions = Element::new(ns::PUBSUB, "subscriptions")
            .with_some("node", name)
            .holding_all(wanted);
        Ok(Element::new(ns::PUBSUB, "pubsub").holding(subscriptions))
    }
}

/// A subscription that stands.
fn subscription(node: &str, jid: &Jid) -> Element {
    Element::new(ns::PUBSUB, "subscription")
        .with("node", node)
        .with("jid", jid.as_str())
        .with("subscription", "subscribed")
}

/// The set that tells which part of a view a page is, of which so many items are told at most.
fn answered(page: &ShownPage, max: usize) -> AnsweredSet {
    let items = &page.items[..page.items.len().min(max)];
    // Always cursors, whatever was asked with (XMPP-23).
    let name = |item: &ShownItem| format!("cursor:{}", item.cursor);
    AnsweredSet {
        ends: items
            .first()
            .zip(items.last())
            .map(|(first, last)| (name(first), name(last))),
        index: page.index,
        count: page.total,
    }
}

/// The part of a list of names that a set asks for, and the place of its first.
fn part_of<'n, 's>(
    names: &'s [&'n str],
    set: &AskedSet,
) -> Result<(&'s [&'n str], usize), StanzaError> {
    let max = set.max.unwrap_or(NODES_MAX).min(NODES_MAX);
    let low = names.partition_point(|name| *name <= set.after.as_str());
    let low = if set.after.is_empty() { 0 } else { low };
    let high = match set.before.as_deref() {
        None | Some("") => names.len(),
        Some(before) => names.partition_point(|name| *name < before),
    };
    let high = high.max(low);
    if let Some(index) = set.index {
        let from = usize::try_from(index)
            .unwrap_or(usize::MAX)
            .min(names.len());
        return Ok((
            &names[from..names.len().min(from.saturating_add(max))],
            from,
        ));
    }
    if set.before.is_some() && set.after.is_empty() {
        let from = high.saturating_sub(max).max(low);
        return Ok((&names[from..high], from));
    }
    Ok((&names[low..high.min(low.saturating_add(max))], low))
}
