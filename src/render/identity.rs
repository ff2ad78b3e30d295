//! Name, title and id of a feed, also when it does not say so; not what it holds.

use super::{
    document::Document,
    text::{ShownText, plain},
};
use crate::feed::{item::is_absolute_iri, record::FeedRecord};
use everfeed_adapters::Text;
use std::borrow::Cow;
use url::Host;

/// `atom:id` of a document: that of the feed. It outlives a renamed feed and another public URL,
/// which the base URL would not; and it is not the upstream's own id, because that names another
/// resource: a feed that forgets, and that somebody may read beside ours. At the address of the old
/// feed it is the publisher's own where that is an IRI, because there the document stands for his.
pub(super) fn document_iri(document: &Document<'_>) -> String {
    let feed = document.feed();
    let own = feed
        .metadata
        .id
        .as_ref()
        .filter(|id| document.links.is_old_address && is_absolute_iri(id));
    own.cloned().unwrap_or_else(|| feed.iri())
}

/// The title as upstream has it, else the host it comes from.
pub(super) fn title(feed: &FeedRecord) -> Cow<'_, Text> {
    match ShownText::of(feed.metadata.title.as_ref()) {
        Some(title) => Cow::Borrowed(title.marked()),
        None => Cow::Owned(Text::plain(host(feed))),
    }
}

/// The title in plain words.
pub(super) fn name(feed: &FeedRecord) -> Cow<'_, str> {
    let title = feed
        .metadata
        .title
        .as_ref()
        .map(plain)
        .filter(|title| !title.is_empty());
    title.unwrap_or_else(|| host(feed).into())
}

/// The public host of the upstream; of one that only this machine or its network knows, which is
/// nobody's business, the name of the feed. Neither changes while the feed is the same.
pub(super) fn host(feed: &FeedRecord) -> &str {
    let host = feed
        .ids
        .namespace
        .split(['/', '?'])
        .next()
        .unwrap_or_default();
    if is_public(host) { host } else { &feed.name }
}

/// True for a host, with or without a port, that others may know too, as far as its name tells.
fn is_public(host: &str) -> bool {
    const INTERNAL: &str = "arpa internal intranet lan local localdomain localhost";
    let name = match host.rsplit_once(':') {
        Some((name, port)) if port.bytes().all(|b| b.is_ascii_digit()) => name,
        _ => host,
    };
    match Host::parse(name) {
        Ok(Host::Ipv4(ip)) => {
            let is_shared = ip.octets()[0] == 100 && ip.octets()[1] & 0xC0 == 64;
            !(ip.is_loopback()
                || ip.is_private()
                || ip.is_link_local()
                || ip.is_unspecified()
                || is_shared)
        }
        Ok(Host::Ipv6(ip)) => {
            let is_near = ip.is_loopback() || ip.is_unique_local() || ip.is_unicast_link_local();
            !(is_near || ip.is_unspecified() || ip.to_ipv4_mapped().is_some())
        }
        Ok(Host::Domain(name)) => {
            let (rest, last) = name
                .trim_end_matches('.')
                .rsplit_once('.')
                .unwrap_or_default();
            !rest.is_empty() && INTERNAL.split(' ').all(|known| known != last)
        }
        Err(_) => false,
    }
}

#[cfg(test)]
mod tests {
    use super::is_public;

    #[test]
    fn hosts_that_only_this_machine_or_its_network_knows_are_told_apart() {
        for host in [
            "127.0.0.1:8081",
            "[::1]:80",
            "10.0.0.3",
            "192.168.1.4:80",
            "100.64.0.1",
            "169.254.1.1",
            "[fd00::1]",
            "[::ffff:10.0.0.1]:80",
            "localhost:81",
            "blog",
            "blog:8080",
            "wp.internal",
            "nas.local.",
            "a.home.arpa",
            "",
        ] {
            assert!(!is_public(host), "{host}");
        }
        for host in [
            "blog.example",
            "blog.example:8080",
            "93.184.216.34",
            "[2606:2800::1]:80",
            "x.co.uk.",
        ] {
            assert!(is_public(host), "{host}");
        }
    }
}
