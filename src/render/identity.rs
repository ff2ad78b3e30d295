//! Name, title and id of a feed, also when it does not say so; not what it holds.

use super::text::{plain, visible};
use crate::feed::{item, record::FeedRecord};
use everfeed_adapters::Text;
use std::borrow::Cow;

/// `atom:id` of the feed: a `urn:uuid:` made of its namespace, which is fixed when the feed is first seen. So it
/// outlives a renamed feed and another public URL, which the base URL would not; and it is not the upstream's own id,
/// because that names another resource: a feed that forgets, and that somebody may read beside ours.
pub(super) fn iri(feed: &FeedRecord) -> String {
    // No item's key ends in a line feed, so no item has this IRI.
    item::uuid_iri(&feed.ids.namespace, "feed\n")
}

/// The title as upstream has it, else the host it comes from.
pub(super) fn title(feed: &FeedRecord) -> Cow<'_, Text> {
    match visible(feed.metadata.title.as_ref()) {
        Some(title) => Cow::Borrowed(title),
        None => Cow::Owned(Text::plain(host(feed))),
    }
}

/// The title in plain words.
pub(super) fn name(feed: &FeedRecord) -> Cow<'_, str> {
    let title = feed.metadata.title.as_ref().map(plain).filter(|title| !title.is_empty());
    title.unwrap_or_else(|| host(feed).into())
}

/// The host of the upstream, or whatever the namespace starts with.
pub(super) fn host(feed: &FeedRecord) -> &str {
    let host = feed.ids.namespace.split('/').next().unwrap_or_default();
    if host.is_empty() { &feed.name } else { host }
}
