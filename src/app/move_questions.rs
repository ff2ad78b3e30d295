//! Questions about feeds of sites that may have moved: an address that is listed no more, and one
//! that comes in its place; not the answer, which is a name in the configuration.

use crate::{
    catalog::{Destination, FeedSettings, LegacyAddress, RegistryNames, SiteSettings},
    config::Config,
    feed::record::FeedNo,
    secret::logged_url,
    store::{Store, StoreError, listing},
};
use futures_util::TryStreamExt as _;
use serde::{Deserialize, Serialize};
use std::{
    collections::{HashMap, HashSet},
    fmt,
};
use url::Url;

/// A feed of a site that is not configured any more, beside new ones that may be the same feed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct MoveQuestion {
    /// The name of the feed that is not configured.
    pub feed: String,
    /// Items that are kept of it, tombstones included.
    pub items: u64,
    /// The address at which it was, without its scheme.
    pub former: String,
    /// The feeds that would begin without items.
    pub new: Vec<NewFeed>,
}

/// A feed of a site that the store does not know.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct NewFeed {
    /// The name that it would get.
    pub name: String,
    /// Its path.
    pub path: String,
}

/// New feeds that a question names at most.
const NEW_NAMED_MAX: usize = 3;

impl fmt::Display for MoveQuestion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { feed, items, .. } = self;
        let former = logged_url(&self.former);
        let named = self.new.iter().take(NEW_NAMED_MAX);
        let paths: Vec<String> = named.map(|new| logged_url(&new.path)).collect();
        let more = match self.new.len().saturating_sub(NEW_NAMED_MAX) {
            0 => String::new(),
            more => format!(" and {more} more"),
        };
        let (are, begin) = match self.new.len() {
            1 => ("is", "begins"),
            _ => ("are", "begin"),
        };
        let Some(first) = self.new.first() else {
            return Ok(());
        };
        write!(
            f,
            "has feed `{feed}` moved? Its address {former} is not configured any more, and {}{more} {are} new. If it has moved, \
             write {{ path = \"{}\", name = \"{feed}\" }} into `feeds` of the [[site]]: it keeps its {items} items, its ids and its \
             subscribers. If {} {are} another feed, write its name: {{ path = \"{}\", name = \"{}\" }}. Without an answer {} {begin} \
             without items",
            paths.join(", "),
            first.path,
            paths.join(", "),
            first.path,
            first.name,
            paths.join(", "),
        )
    }
}

/// A feed of the store that is not configured.
struct Withdrawn {
    no: FeedNo,
    name: String,
    namespace: String,
    items: u64,
}

impl Withdrawn {
    /// The address by which it was known first, without its scheme.
    fn address(&self) -> &str {
        self.namespace.split('#').next().unwrap_or_default()
    }

    /// True for a site that has the host by which it was known first.
    fn has_host(&self, site: &SiteSettings, public_url: &Url) -> bool {
        let root = site.public_root(public_url);
        let host = &root[url::Position::BeforeHost..url::Position::BeforePath];
        self.address().split('/').next() == Some(host)
    }

    /// True for a path that ends the address by which it was known first.
    fn has_path(&self, path: &str) -> bool {
        let address = self.address();
        let at = address.find('/').unwrap_or(address.len());
        address[at..] == *path
    }
}

// Decides: Is it asked whether a feed of a site has moved?
/// The questions about these feeds, which are those of the configuration and those that were found.
/// A feed with a given name is an answer.
pub(super) async fn move_questions(
    store: &dyn Store,
    config: &Config,
    feeds: &[FeedSettings],
    registry: &RegistryNames,
) -> Result<Vec<MoveQuestion>, StoreError> {
    let mut new: HashMap<&str, &LegacyAddress> = feeds
        .iter()
        .filter(|feed| feed.is_called_by_address())
        .filter_map(|feed| Some((feed.name.as_str(), &**feed.legacy.as_ref()?)))
        .collect();
    if new.is_empty() {
        return Ok(Vec::new());
    }
    let configured: HashSet<&str> = feeds.iter().map(|feed| feed.name.as_str()).collect();
    let mut withdrawn = Vec::new();
    let mut records = listing::feeds(store);
    while let Some(record) = records.try_next().await? {
        new.remove(record.name.as_str());
        let namespace = record.ids.namespace;
        let is_feed = record.part_of.is_none() && !namespace.starts_with("group:");
        let is_configured =
            configured.contains(record.name.as_str()) || registry.contains(&record.name);
        if is_feed && !is_configured && record.items.total > 0 {
            withdrawn.push(Withdrawn {
                no: record.no,
                name: record.name,
                namespace,
                items: record.items.total,
            });
        }
    }
    drop(records);
    if new.is_empty() {
        return Ok(Vec::new());
    }
    let mut new: Vec<(&str, &LegacyAddress)> = new.into_iter().collect();
    new.sort_unstable_by_key(|(name, place)| (place.site, *name));
    let mut questions = Vec::new();
    for gone in withdrawn {
        let polled = store.poll(gone.no).await?;
        let polled = polled.and_then(|poll| Url::parse(&poll.url).ok());
        let public_url = &config.server.public_url;
        let has_host = |site: &SiteSettings| gone.has_host(site, public_url);
        let is_of_host = config.site.iter().any(has_host);
        let may_be_it = |place: &LegacyAddress| {
            let Some(site) = config.site.get(place.site) else {
                return false;
            };
            if is_of_host {
                return has_host(site);
            }
            // Its site has another host, or is new: it has the old server or the old path.
            let server = Destination::server(&site.origin);
            let is_at_server = |url: &Url| Destination::server(url) == server;
            polled.as_ref().is_some_and(is_at_server) || gone.has_path(&place.path)
        };
        let new = new.iter().filter(|(_, place)| may_be_it(place));
        let new: Vec<NewFeed> = new
            .map(|(name, place)| NewFeed {
                name: (*name).to_owned(),
                path: place.path.clone(),
            })
            .collect();
        if !new.is_empty() {
            questions.push(MoveQuestion {
                former: gone.address().to_owned(),
                feed: gone.name,
                items: gone.items,
                new,
            });
        }
    }
    questions.sort_by(|one, other| one.feed.cmp(&other.feed));
    Ok(questions)
}

/// Questions that are told one by one in the log.
const TOLD_MAX: usize = 20;

/// Tells the log of them.
pub(super) fn tell(questions: &[MoveQuestion]) {
    for question in questions.iter().take(TOLD_MAX) {
        tracing::warn!(feed.name = %question.feed, items = question.items, "A question: {question}");
    }
}

/// An address that a feed of a site has left, by which it is not known any more.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LeftAddress {
    /// The feed.
    pub feed: String,
    /// The path.
    pub path: String,
}

impl LeftAddress {
    /// The path at which a feed was polled last, if it is of a site and that is none of its
    /// addresses.
    pub(super) fn of(feed: &FeedSettings, polled: &str) -> Option<Self> {
        let place = feed.legacy.as_ref().filter(|_| feed.is_given_by_site())?;
        let polled = Url::parse(polled).ok()?;
        let path = &polled[url::Position::BeforePath..url::Position::AfterQuery];
        let is_known = place.paths().any(|known| known == path);
        (!is_known).then(|| Self {
            feed: feed.name.clone(),
            path: path.to_owned(),
        })
    }
}

impl fmt::Display for LeftAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { feed, path } = self;
        write!(
            f,
            "feed `{feed}` leaves {path}, and is not answered there any more. To keep its readers and subscribers there, write \
             former = [\"{path}\"] beside its name in `feeds`"
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        app::all_feeds, catalog::testing::keep_item, clock::Manual, store::memory::Memory,
    };
    use std::sync::Arc;

    const A: &str = "[[site]]\nhost = \"a.example\"\norigin = \"http://127.0.0.1:1\"\n";
    const B: &str = "[[site]]\nhost = \"b.example\"\norigin = \"http://127.0.0.1:2\"\n";

    /// The names of the new feeds about which it is asked beside those of a store, which has some
    /// feeds with items, by names and namespaces.
    async fn check(stored: &[(&str, &str)], text: &str, expect: &[(&str, &[&str])]) {
        let store = Memory::new(Arc::new(Manual::at(1_780_272_000_000_000)));
        for (name, namespace) in stored {
            keep_item(&store, name, namespace).await;
        }
        let server = "[server]\npublic_url = \"http://feeds.example/\"\n";
        let config = Config::parse("x", &format!("{server}{text}")).unwrap();
        let (feeds, names) = all_feeds(&store, &config).await.unwrap();
        let asked = move_questions(&store, &config, &feeds, &names)
            .await
            .unwrap();
        let asked: Vec<(&str, Vec<&str>)> = asked
            .iter()
            .map(|question| {
                let new = question.new.iter().map(|new| &*new.name);
                (&*question.feed, new.collect())
            })
            .collect();
        let expect: Vec<(&str, Vec<&str>)> = expect
            .iter()
            .map(|(feed, new)| (*feed, new.to_vec()))
            .collect();
        assert_eq!(asked, expect, "{text}");
    }

    #[tokio::test]
    async fn a_new_path_is_asked_about_beside_one_that_has_gone_and_not_once_it_has_a_name() {
        let stored = [("a-rss-xml", "a.example/rss.xml")];
        let asked: &[(&str, &[&str])] = &[("a-rss-xml", &["a-new-xml"])];
        let check = async |feeds: &str, expect| {
            check(&stored, &format!("{A}feeds = {feeds}\n"), expect).await;
        };
        check("[\"/rss.xml\"]", &[]).await;
        check("[\"/rss.xml\", \"/new.xml\"]", &[]).await;
        check("[]", &[]).await;
        check("[\"/new.xml\"]", asked).await;
        let two: &[(&str, &[&str])] = &[("a-rss-xml", &["a-new-xml", "a-newer-xml"])];
        check("[\"/new.xml\", \"/newer.xml\"]", two).await;
        check("[{ path = \"/new.xml\", name = \"a-rss-xml\" }]", &[]).await;
        check("[{ path = \"/new.xml\", name = \"a-new-xml\" }]", &[]).await;
    }

    #[tokio::test]
    async fn another_host_is_asked_about_unless_the_old_one_has_a_site_still() {
        let stored = [("a-rss-xml", "a.example/rss.xml")];
        let b = format!("{B}feeds = [\"/rss.xml\"]\n");
        check(&stored, &b, &[("a-rss-xml", &["b-rss-xml"])]).await;
        check(&stored, &format!("{A}feeds = []\n{b}"), &[]).await;
        let named = b.replace(
            "\"/rss.xml\"",
            "{ path = \"/rss.xml\", name = \"a-rss-xml\" }",
        );
        check(&stored, &named, &[]).await;
        // Of what has another address nothing is known.
        let other = b.replace("/rss.xml", "/other.xml");
        check(&stored, &other, &[]).await;
    }

    #[tokio::test]
    async fn a_feed_that_had_a_table_of_its_own_is_asked_about_and_a_group_is_not() {
        let a = format!("{A}feeds = [\"/rss.xml\"]\n");
        check(&[("blog", "a.example/rss.xml")], &a, &[]).await;
        check(
            &[("blog", "old.example/rss.xml")],
            &a,
            &[("blog", &["a-rss-xml"])],
        )
        .await;
        check(&[("blog", "group:rss.xml")], &a, &[]).await;
    }

    #[test]
    fn an_address_is_told_that_a_feed_leaves() {
        let text = format!(
            "{A}feeds = [{{ path = \"/c\", name = \"x\", former = [\"/b\"] }}]\n[store]\npath = \"x\"\n"
        );
        let config = Config::parse("x", &text).unwrap();
        let left = |path: &str| {
            let left = LeftAddress::of(&config.feed[0], &format!("http://127.0.0.1:9{path}"));
            left.map(|left| left.path)
        };
        assert_eq!((left("/b"), left("/c")), (None, None));
        assert_eq!(left("/a?x=1").as_deref(), Some("/a?x=1"));
    }
}
