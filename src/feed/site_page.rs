//! The page of a post at a web site: its URL there, and the time at which it last changed. Search
//! engines are shown both; not how they are.

use super::{
    item::{Item, plausible},
    moment::Moment,
};
use everfeed_adapters::{Entry, IsPermaLink};
use url::Url;

/// Characters of the URL of a page at most (R-10: fewer than 2,048).
pub const PAGE_URL_CHARS_MAX: usize = 2047;

/// Seconds between the date of a post and its first sight within which everfeed has seen it appear:
/// what was changed of it before that would be little.
const SEEN_NEW_SECS: i64 = 86_400;

const SECOND_US: i64 = 1_000_000;

// Decides: Which URL of a post are search engines shown?
/// The URL of a post's page at the site with this root: its permalink, else its guid where that is
/// one. `None` if neither is at the host of the site, and for an item that was forgotten.
/// A place on a page stands for the page. The URL has the scheme of the site: an old feed may name
/// the other one.
pub fn page_of(item: &Item, root: &Url) -> Option<String> {
    let link = match item.entry() {
        Some(entry) => entry.permalink(),
        None => item
            .publisher_id
            .as_ref()
            .and_then(|kept| kept.link.as_deref()),
    };
    let is_permalink = matches!(
        item.is_permalink(),
        Some(IsPermaLink::Unstated | IsPermaLink::True)
    );
    let guid = is_permalink.then_some(item.iri.as_str());
    let mut addresses = link.into_iter().chain(guid);
    addresses.find_map(|address| at_site(address, root))
}

/// An address as a URL of the site; `None` if it is of no page there, or too long.
fn at_site(address: &str, root: &Url) -> Option<String> {
    let mut url = Url::parse(address.trim()).ok()?;
    let is_bare = url.username().is_empty() && url.password().is_none();
    let is_web = matches!(url.scheme(), "http" | "https");
    if !is_web || !is_bare || url.host() != root.host() || !is_same_port(&url, root) {
        return None;
    }
    url.set_fragment(None);
    // A port is taken off before the scheme changes, or it would stay as it was.
    url.set_port(None).ok()?;
    url.set_scheme(root.scheme()).ok()?;
    url.set_port(root.port()).ok()?;
    (url.as_str().len() <= PAGE_URL_CHARS_MAX).then(|| url.into())
}

/// True for equal ports, and for the usual ones of both schemes.
fn is_same_port(one: &Url, other: &Url) -> bool {
    let is_usual = |url: &Url| url.port().is_none();
    one.port_or_known_default() == other.port_or_known_default()
        || (is_usual(one) && is_usual(other))
}

// Decides: When did the page of a post last change?
/// The time of the last change of a post: the publisher's `updated`; else the time at which
/// everfeed saw an edit; else, of a post that everfeed saw appear, its date. `None` if it is unknown,
/// and for an item that is gone. A resurrection is a change.
pub fn last_change(item: &Item) -> Option<Moment> {
    let modified = Moment::from(item.modified);
    let updated = |entry: &Entry| plausible(entry.updated.as_ref()?.at_us);
    let change = match updated(item.entry()?) {
        Some(updated) => Some(updated.min(modified)),
        None if item.modified > item.created => Some(modified),
        None => item.published().and_then(|published| {
            let created = Moment::from(item.created);
            let age_us = created.micros().saturating_sub(published.micros());
            (age_us <= SEEN_NEW_SECS * SECOND_US).then_some(published.min(created))
        }),
    };
    change.max(item.revived.map(Moment::from))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        item::{Content, ItemDigests, ItemId, PublisherId, Reason},
        stamp::Stamp,
    };
    use everfeed_adapters::{Date, Link};
    use std::sync::Arc;

    const CREATED: Stamp = Stamp::from_secs(1_800_000_000);

    fn date(secs: i64) -> Option<Date> {
        Some(Date {
            at_us: Some(secs * SECOND_US),
            ..Date::default()
        })
    }

    fn item(link: &str, entry: Entry) -> Item {
        let link = Link {
            rel: "alternate".into(),
            href: link.into(),
            ..Link::default()
        };
        Item {
            id: ItemId([1; 10]),
            iri: "http://blog.example/?p=1".into(),
            modified: CREATED,
            created: CREATED,
            revived: None,
            published_us: None,
            content: Content::Live(Arc::new(Entry {
                links: vec![link],
                ..entry
            })),
            tombstone_count: 0,
            digests: ItemDigests::default(),
            publisher_id: None,
        }
    }

    #[track_caller]
    fn check(root: &str, link: &str, expect: Option<&str>) {
        let root = Url::parse(root).unwrap();
        let found = page_of(&item(link, Entry::default()), &root);
        assert_eq!(found.as_deref(), expect, "{link}");
    }

    #[test]
    fn a_page_is_at_the_host_of_its_site_and_has_its_scheme_r_1_r_10() {
        let site = "https://blog.example/";
        check(
            site,
            "https://blog.example/a?b=c&d",
            Some("https://blog.example/a?b=c&d"),
        );
        check(
            site,
            " http://BLOG.example:80/a ",
            Some("https://blog.example/a"),
        );
        check(
            site,
            "http://blog.example/2026/1.html#a7",
            Some("https://blog.example/2026/1.html"),
        );
        check(
            site,
            "https://blog.example/caf\u{e9} <1>",
            Some("https://blog.example/caf%C3%A9%20%3C1%3E"),
        );
        check(site, "https://other.example/a", None);
        check(site, "https://www.blog.example/a", None);
        check(site, "https://blog.example:8443/a", None);
        check(site, "https://me:secret@blog.example/a", None);
        check(site, "mailto:me@blog.example", None);
        check(site, "/relative", None);
        check(
            "http://127.0.0.1:8080/",
            "http://127.0.0.1:8080/a",
            Some("http://127.0.0.1:8080/a"),
        );
        check("http://127.0.0.1:8080/", "http://127.0.0.1:8081/a", None);
        let long = |chars: usize| format!("{site}{}", "a".repeat(chars - site.len()));
        check(site, &long(2047), Some(&long(2047)));
        check(site, &long(2048), None);
        check(site, &long(3000), None);
    }

    #[test]
    fn a_guid_stands_for_a_page_only_if_it_is_a_permalink() {
        let root = Url::parse("http://blog.example/").unwrap();
        let with = |is_permalink| Item {
            publisher_id: Some(PublisherId {
                is_permalink,
                ..PublisherId::default()
            }),
            ..item("https://elsewhere.example/linked", Entry::default())
        };
        let page = |is_permalink| page_of(&with(is_permalink), &root);
        let guid = Some("http://blog.example/?p=1".to_owned());
        assert_eq!(page(Some(IsPermaLink::Unstated)), guid);
        assert_eq!(page(Some(IsPermaLink::True)), guid);
        assert_eq!(page(Some(IsPermaLink::False)), None);
        assert_eq!(page(None), None);
    }

    #[test]
    fn a_deleted_post_keeps_its_page_and_a_forgotten_one_has_none_r_4() {
        let root = Url::parse("http://blog.example/").unwrap();
        let live = item("http://blog.example/a", Entry::default());
        let gone = |reason, publisher_id| Item {
            content: Content::Gone {
                reason,
                first_missing: None,
                last_seen: None,
            },
            publisher_id,
            ..live.clone()
        };
        let deleted = gone(Reason::Gone, PublisherId::of_gone(&live, None));
        assert_eq!(
            page_of(&deleted, &root).as_deref(),
            Some("http://blog.example/a")
        );
        let forgotten = gone(Reason::Forgotten, PublisherId::of_forgotten(None));
        assert_eq!(page_of(&forgotten, &root), None);
        let back = PublisherId::with_source(deleted.publisher_id.as_ref(), None);
        assert!(back.is_none_or(|kept| kept.link.is_none()));
    }

    #[test]
    fn the_last_change_is_the_publishers_or_one_that_was_seen_or_unknown_r_11() {
        let created = CREATED.secs().cast_signed();
        let check = |item: Item, expect: Option<i64>| {
            let found = last_change(&item).map(|at| at.micros() / SECOND_US);
            assert_eq!(found, expect);
        };
        let bare = || item("http://blog.example/a", Entry::default());
        let dated = |updated| {
            item(
                "http://blog.example/a",
                Entry {
                    updated,
                    ..Entry::default()
                },
            )
        };
        let later = CREATED.plus_secs(500);
        check(bare(), None);
        check(dated(date(5_000_000)), Some(5_000_000));
        check(dated(date(created + 9_000)), Some(created));
        check(dated(date(-30_610_224_001)), None);
        let edited = Item {
            modified: later,
            ..bare()
        };
        check(edited.clone(), Some(created + 500));
        check(
            Item {
                modified: later,
                ..dated(date(5_000_000))
            },
            Some(5_000_000),
        );
        let published = |secs: i64| Item {
            published_us: Some(secs * SECOND_US),
            ..bare()
        };
        check(published(created - 3_600), Some(created - 3_600));
        check(published(created + 3_600), Some(created));
        check(published(created - 3 * 86_400), None);
        check(
            Item {
                modified: later,
                revived: Some(later),
                ..dated(date(5_000_000))
            },
            Some(created + 500),
        );
        let gone = Item {
            content: Content::Gone {
                reason: Reason::Gone,
                first_missing: None,
                last_seen: None,
            },
            ..edited
        };
        check(gone, None);
    }
}
