//! Signs that a document belongs to another feed, or to a planet; not what follows from that.

use everfeed_adapters::{Key, Link, Metadata, SlicedDocument};
use std::collections::HashMap;
use url::Url;

/// Another feed, whose document came in the place of the one that was asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DifferentFeed {
    /// Its title.
    pub title: String,
}

/// The other feed that a document belongs to, if nothing in it was known: a hoster's parking page
/// in RSS, a proxy that mixed two up (POLLING 2.2). Its title differs, and its id or the host of
/// its site; a feed that only renames itself changes less.
pub fn different_feed(held: &Metadata, found: &Metadata) -> Option<DifferentFeed> {
    let differ = |held: Option<&str>, found: Option<&str>| matches!((held, found), (Some(a), Some(b)) if a != b);
    let title = |metadata: &'_ Metadata| metadata.title.as_ref().map(|title| title.value.clone());
    let site = |metadata: &Metadata| {
        Url::parse(metadata.link("alternate")?)
            .ok()?
            .host_str()
            .map(str::to_owned)
    };
    let has_other_title = differ(title(held).as_deref(), title(found).as_deref());
    let has_other_id = differ(held.id.as_deref(), found.id.as_deref());
    if !has_other_title || !has_other_id && !differ(site(held).as_deref(), site(found).as_deref()) {
        return None;
    }
    Some(DifferentFeed {
        title: title(found).unwrap_or_default(),
    })
}

/// By what a page of a feed names its feed: the title, the site, the id. Where each page has its
/// own address for an id, as `rdf:about` often is, its host says no less, and no page is a
/// different_feed for its number.
pub fn named(metadata: &Metadata) -> Metadata {
    let of_site = |link: &&Link| link.rel == "alternate";
    let host = |id: &String| {
        Url::parse(id)
            .ok()
            .and_then(|url| url.host_str().map(str::to_owned))
    };
    Metadata {
        id: metadata
            .id
            .as_ref()
            .map(|id| host(id).unwrap_or_else(|| id.clone())),
        title: metadata.title.clone(),
        links: metadata.links.iter().filter(of_site).cloned().collect(),
        ..Metadata::default()
    }
}

/// Hosts from which a planet's entries come at least.
const PLANET_HOSTS_MIN: usize = 3;

/// True when the entries of a document come from several blogs: their ids, or where they have none
/// their links, name three hosts and more, none of which has four fifths of them.
pub fn is_planet(window: &SlicedDocument) -> bool {
    let mut hosts: HashMap<String, usize> = HashMap::new();
    for entry in &window.entries {
        let (Key::Id(name) | Key::Link(name)) = &entry.key else {
            continue;
        };
        let host = match name.strip_prefix("tag:") {
            // RFC 4151: an authority, a comma, a date. What only begins so names no host.
            Some(tag) => tag
                .split_once(',')
                .map(|(authority, _)| authority.to_ascii_lowercase()),
            None => Url::parse(name)
                .ok()
                .and_then(|url| url.host_str().map(str::to_owned)),
        };
        if let Some(host) = host {
            *hosts.entry(host).or_default() += 1;
        }
    }
    let most = hosts.values().max().copied().unwrap_or_default();
    hosts.len() >= PLANET_HOSTS_MIN && most * 5 < hosts.values().sum::<usize>() * 4
}

#[cfg(test)]
mod tests {
    use super::*;
    use everfeed_adapters::{Hints, slice};

    fn check(ids: &[&str], expect: bool) {
        let item = |id: &&str| format!("<item><guid>{id}</guid></item>");
        let items: String = ids.iter().map(item).collect();
        let text = format!("<rss version=\"2.0\"><channel><title>t</title>{items}</channel></rss>");
        assert_eq!(
            is_planet(&slice(text.as_bytes(), &Hints::default()).unwrap()),
            expect,
            "{ids:?}"
        );
    }

    #[test]
    fn three_hosts_make_a_planet_and_odd_ids_name_none() {
        check(&["http://a/1", "http://b/1", "http://c/1"], true);
        check(&["tag:a,2005:1", "tag:b,2005:1", "tag:c,2005:1"], true);
        check(&["http://a/1", "http://a/2", "http://b/1"], false);
        check(&["tag:1", "tag:2", "tag:3", "tag:4"], false);
        check(&["1", "post:2", "urn:uuid:3"], false);
    }
}
