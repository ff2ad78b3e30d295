//! The sites before which we stand: which one a request is for, which feeds they have, and what
//! these are called; not what requests are answered.

use super::{Destination, FeedSettings, PrivatePlaces, SiteFeeds, SiteSettings};
use crate::store::{Store, StoreError, listing};
use futures_util::TryStreamExt as _;
use http::{header::HOST, request::Parts};
use std::{
    borrow::Cow,
    collections::{HashMap, HashSet},
    sync::Arc,
};
use url::Url;

/// A site before which we stand.
#[derive(Clone, Debug)]
pub struct ProxiedSite {
    /// Its number among the sites, from 0.
    pub no: usize,
    /// Its settings.
    pub settings: SiteSettings,
    /// The server to which it leads.
    server: Destination,
    /// True where all feeds of that server are private: a site with private feeds leads there.
    is_private_server: bool,
}

impl ProxiedSite {
    // Decides: Which sites lead to a server with a private feed?
    /// True for a site by which documents of a private feed could come: its origin has one, of
    /// whatever site it is, or one is known by its host.
    pub fn leads_to_any_of(&self, places: &PrivatePlaces, public_url: &Url) -> bool {
        let host = self.settings.host.as_deref().or(public_url.host_str());
        self.is_private_server || places.are_at(&self.server, host)
    }
}

/// All sites, by host.
#[derive(Clone, Debug, Default)]
pub struct Sites {
    all: Vec<Arc<ProxiedSite>>,
    by_host: HashMap<String, Arc<ProxiedSite>>,
    /// The site of every host that has none of its own.
    any: Option<Arc<ProxiedSite>>,
}

impl Sites {
    /// The configured sites.
    pub fn new(settings: &[SiteSettings]) -> Self {
        let mut sites = Self::default();
        let private: HashSet<Destination> = settings
            .iter()
            .filter(|site| site.access.is_private())
            .map(|site| Destination::server(&site.origin))
            .collect();
        for (no, settings) in settings.iter().enumerate() {
            let server = Destination::server(&settings.origin);
            let site = Arc::new(ProxiedSite {
                no,
                settings: settings.clone(),
                is_private_server: private.contains(&server),
                server,
            });
            sites.all.push(site.clone());
            match &settings.host {
                Some(host) => {
                    sites.by_host.insert(host.clone(), site);
                }
                None => sites.any = Some(site),
            }
        }
        sites
    }

    /// True without any site.
    pub fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    /// All sites, in the order of their numbers.
    pub fn iter(&self) -> impl Iterator<Item = &Arc<ProxiedSite>> {
        self.all.iter()
    }

    // Decides: Which site is a request for?
    /// The site that a request is for.
    pub fn of(&self, request: &Parts) -> Option<&Arc<ProxiedSite>> {
        // Asked several times with every request: one site of every host, the usual case, needs no
        // name.
        if !self.by_host.is_empty()
            && let Some(host) = host(request)
            && let Some(site) = self.by_host.get(&*host)
        {
            return Some(site);
        }
        self.any.as_ref()
    }
}

/// The host of a request, without port and in lower case. The target goes before the `Host` header
/// (RFC 9112 section 3.2.2).
fn host(request: &Parts) -> Option<Cow<'_, str>> {
    let host = match request.uri.authority() {
        Some(authority) => authority.as_str(),
        None => request.headers.get(HOST)?.to_str().ok()?,
    };
    let without_user = host.rsplit('@').next().unwrap_or(host);
    let bare = match without_user.strip_prefix('[') {
        Some(rest) => &without_user[..rest.find(']')? + 2],
        None => without_user.split(':').next().unwrap_or_default(),
    };
    let bare = bare.trim_end_matches('.');
    let is_lower = !bare.bytes().any(|byte| byte.is_ascii_uppercase());
    Some(if is_lower {
        bare.into()
    } else {
        bare.to_ascii_lowercase().into()
    })
}

/// Adds the feeds that were found on sites to those that are configured.
pub async fn join_found(
    store: &dyn Store,
    sites: &[SiteSettings],
    public_url: &Url,
    feeds: &mut Vec<FeedSettings>,
) -> Result<(), StoreError> {
    for (no, site) in sites.iter().enumerate() {
        if matches!(site.feeds, SiteFeeds::Found(_)) {
            let mut found = store
                .found_feeds(site.public_root(public_url).as_str())
                .await?;
            let is_private = |path: &str| {
                let known = feeds.iter().find(|feed| site.has(no, path, feed));
                site.access.is_private() || known.is_some_and(FeedSettings::is_private)
            };
            found
                .paths
                .retain(|path| !is_private(path) || SiteSettings::can_be_private(path));
            for path in &found.paths {
                match site.private_feed_at(sites, no, path, public_url, feeds) {
                    // Nobody has said that everybody may read it.
                    Some(name) => tracing::warn!(
                        "{} of {} is not taken in: it is an address of the private feed `{name}`; if it is another feed, list it in site.feeds",
                        crate::secret::logged_url(path),
                        site.public_root(public_url)
                    ),
                    None => {
                        let path = std::slice::from_ref(path);
                        SiteSettings::join(sites, no, path, public_url, feeds);
                    }
                }
            }
        }
    }
    keep_names(store, sites, feeds).await
}

/// Gives those feeds of sites that are called by their addresses the names under which the store
/// has them: sites that come, go or change places in the file may change how a feed would be called
/// today.
async fn keep_names(
    store: &dyn Store,
    sites: &[SiteSettings],
    feeds: &mut Vec<FeedSettings>,
) -> Result<(), StoreError> {
    let (called, mut kept): (Vec<FeedSettings>, Vec<FeedSettings>) = std::mem::take(feeds)
        .into_iter()
        .partition(FeedSettings::is_called_by_site);
    let stored = if called.is_empty() {
        StoredNames::default()
    } else {
        StoredNames::read(store).await?
    };
    let mut taken: HashSet<String> = kept.iter().map(|feed| feed.name.clone()).collect();
    let mut new = Vec::new();
    for mut feed in called {
        let site = feed.legacy.as_ref().and_then(|place| sites.get(place.site));
        if site.is_some_and(|site| site.host.is_none()) {
            stored.keep_namespace(&mut feed);
        }
        let names = stored.of_namespace(&feed.namespace());
        let usual = usual_names(sites, &feed);
        let first = usual.iter().filter(|name| names.contains(name));
        match first.chain(names).find(|name| !taken.contains(*name)) {
            Some(name) => {
                taken.insert(name.clone());
                kept.push(FeedSettings {
                    name: name.clone(),
                    ..feed
                });
            }
            None => new.push(feed),
        }
    }
    for feed in new {
        let is_free = |name: &String| !taken.contains(name) && !stored.by_name.contains_key(name);
        match usual_names(sites, &feed).into_iter().find(is_free) {
            Some(name) => {
                taken.insert(name.clone());
                kept.push(FeedSettings { name, ..feed });
            }
            None => tracing::warn!(
                "There is no feed for {}, because another feed is named `{}`. Give it a [[feed]] with another name and the url {}",
                crate::secret::logged_url(feed.known_as().as_str()),
                feed.name,
                crate::secret::public_url(&feed.url)
            ),
        }
    }
    *feeds = kept;
    Ok(())
}

/// The names by which a feed of a site may be called, the one to be preferred first.
fn usual_names(sites: &[SiteSettings], feed: &FeedSettings) -> Vec<String> {
    let place = feed.legacy.as_ref();
    let long = place.and_then(|place| Some(sites.get(place.site)?.long_name(&place.path)));
    std::iter::once(feed.name.clone()).chain(long).collect()
}

/// The feeds that the store has.
#[derive(Debug, Default)]
struct StoredNames {
    /// Namespaces by names.
    by_name: HashMap<String, String>,
    /// Names by namespaces.
    by_namespace: HashMap<String, Vec<String>>,
}

impl StoredNames {
    async fn read(store: &dyn Store) -> Result<Self, StoreError> {
        let mut stored = Self::default();
        let mut records = listing::feeds(store);
        while let Some(record) = records.try_next().await? {
            if record.part_of.is_some() {
                continue;
            }
            let (name, namespace) = (record.name, record.ids.namespace);
            let names = stored.by_namespace.entry(namespace.clone()).or_default();
            names.push(name.clone());
            stored.by_name.insert(name, namespace);
        }
        Ok(stored)
    }

    fn of_namespace(&self, namespace: &str) -> &[String] {
        self.by_namespace.get(namespace).map_or(&[], Vec::as_slice)
    }

    /// Gives the feed of a site without a host the namespace under which the store has its name,
    /// where the path is the same: its host is that of `server.public_url`, which may change.
    fn keep_namespace(&self, feed: &mut FeedSettings) {
        let path = |namespace: &str| namespace.split_once('/').map(|(_, path)| path.to_owned());
        let own = feed.namespace();
        if self.of_namespace(&own).is_empty()
            && let Some(stored) = self
                .by_name
                .get(&feed.name)
                .filter(|stored| path(stored) == path(&own))
        {
            feed.id_namespace = Some(stored.clone());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        auth::access::AccessSettings,
        clock::Manual,
        store::{FoundFeeds, SiteStore as _, memory::Memory},
    };

    #[test]
    fn a_request_is_for_the_site_of_its_host() {
        let site = |host: Option<&str>, port: u16| SiteSettings {
            host: host.map(str::to_owned),
            ..SiteSettings::new(Url::parse(&format!("http://127.0.0.1:{port}")).unwrap())
        };
        let check = |sites: &Sites, target: &str, named: Option<&str>, expect: Option<u16>| {
            let mut request = http::Request::get(target);
            if let Some(host) = named {
                request = request.header(HOST, host);
            }
            let (parts, ()) = request.body(()).unwrap().into_parts();
            let found = sites
                .of(&parts)
                .and_then(|site| site.settings.origin.port());
            assert_eq!(found, expect, "{target} {named:?}");
        };
        let named = [
            site(Some("a.example"), 1),
            site(Some("b.example"), 2),
            site(Some("[::1]"), 3),
        ];
        let sites = Sites::new(&named);
        check(&sites, "/", Some("a.example"), Some(1));
        check(&sites, "/", Some("B.EXAMPLE.:80"), Some(2));
        check(&sites, "/", Some("[::1]:8080"), Some(3));
        check(&sites, "http://a.example/", Some("b.example"), Some(1));
        check(&sites, "/", Some("c.example"), None);
        check(&sites, "/", None, None);
        let with_any = [named.to_vec(), vec![site(None, 4)]].concat();
        let sites = Sites::new(&with_any);
        check(&sites, "/", Some("c.example"), Some(4));
        check(&sites, "/", None, Some(4));
        check(&sites, "/", Some("a.example"), Some(1));
    }

    #[tokio::test]
    async fn what_was_found_joins_with_the_access_of_its_site_and_what_cannot_be_private_stays_out()
    {
        let store = Memory::new(Arc::new(Manual::at(1_780_272_000_000_000)));
        let public = Url::parse("http://blog.example/").unwrap();
        let site = SiteSettings::new(Url::parse("http://127.0.0.1:1").unwrap());
        let paths = ["/open.xml", "/closed.xml", "/?feed=rss2", "/?feed=atom"]
            .map(str::to_owned)
            .into();
        store
            .keep_found_feeds("http://blog.example/", FoundFeeds { paths })
            .await
            .unwrap();
        let feed = |name: &str, path: &str, access: AccessSettings| FeedSettings {
            access,
            ..FeedSettings::new(
                name,
                Url::parse("http://127.0.0.1:1")
                    .unwrap()
                    .join(path)
                    .unwrap(),
            )
        };
        let known = vec![
            feed("closed", "/closed.xml", AccessSettings::Users),
            feed("hidden", "/?feed=atom", AccessSettings::Users),
        ];
        let placed = async |site: &SiteSettings| {
            let mut feeds = known.clone();
            join_found(&store, std::slice::from_ref(site), &public, &mut feeds)
                .await
                .unwrap();
            let row =
                |feed: FeedSettings| (feed.name, feed.legacy.is_some(), feed.access.is_private());
            feeds.into_iter().map(row).collect::<Vec<_>>()
        };
        let row = |name: &str, is_placed, is_private| (name.to_owned(), is_placed, is_private);
        let listed = [
            row("closed", true, true),
            row("hidden", false, true),
            row("site-open-xml", true, false),
            row("site-feed-rss2-1877d22b", true, false),
        ];
        assert_eq!(placed(&site).await, listed);
        let private = SiteSettings {
            access: AccessSettings::Users,
            ..site
        };
        let listed = [
            row("closed", true, true),
            row("hidden", false, true),
            row("site-open-xml", true, true),
        ];
        assert_eq!(placed(&private).await, listed);
    }

    #[tokio::test]
    async fn no_address_of_a_private_feed_is_found_for_everybody() {
        let store = Memory::new(Arc::new(Manual::at(1_780_272_000_000_000)));
        let public = Url::parse("http://feeds.example/").unwrap();
        let site = |host: &str, port: u16| SiteSettings {
            host: Some(host.to_owned()),
            ..SiteSettings::new(Url::parse(&format!("http://127.0.0.1:{port}")).unwrap())
        };
        for host in ["a", "b", "c"] {
            let found = FoundFeeds {
                paths: vec!["/closed.xml".to_owned(), "/open.xml".to_owned()],
            };
            let root = format!("http://{host}.example/");
            store.keep_found_feeds(&root, found).await.unwrap();
        }
        let check = async |sites: &[SiteSettings], url: &str, alias: &str, expect: &[&str]| {
            let mut feeds = vec![FeedSettings {
                access: AccessSettings::Users,
                aliases: vec![Url::parse(alias).unwrap()],
                ..FeedSettings::new("closed", Url::parse(url).unwrap())
            }];
            join_found(&store, sites, &public, &mut feeds)
                .await
                .unwrap();
            let open = feeds.iter().filter(|feed| !feed.is_private());
            let mut open: Vec<&str> = open.map(|feed| feed.name.as_str()).collect();
            open.sort_unstable();
            assert_eq!(open, expect, "{url} {alias}");
        };
        let (a, b, c) = (
            site("a.example", 1),
            site("b.example", 1),
            site("c.example", 2),
        );
        let (of_a, of_b) = ("http://a.example/closed.xml", "http://b.example/closed.xml");
        let url = "http://127.0.0.1:1/closed.xml";
        for sites in [[a.clone(), b.clone()], [b.clone(), a.clone()]] {
            for alias in [of_a, of_b, "http://x.example/"] {
                check(&sites, url, alias, &["a-open-xml", "b-open-xml"]).await;
            }
        }
        let one = std::slice::from_ref(&a);
        for spelling in [
            "http://localhost:1/closed.xml",
            "http://[::1]:1/Closed.xml/",
            "http://user:pw@127.0.0.1:1//closed.xml?x=1",
            "http://127.0.0.1:9/elsewhere.xml",
            of_a,
        ] {
            check(one, spelling, of_a, &["a-open-xml"]).await;
        }
        let both = ["a-open-xml", "c-closed-xml", "c-open-xml"];
        check(&[a, c], url, of_a, &both).await;
        // Whoever reads the private one may read it there.
        let private = SiteSettings {
            access: AccessSettings::Users,
            ..b
        };
        check(&[private], "http://127.0.0.1:1/closed.xml/", of_a, &[]).await;
    }

    #[tokio::test]
    async fn a_feed_of_a_site_keeps_its_name_whatever_sites_come_go_and_change_places() {
        let store = Memory::new(Arc::new(Manual::at(1_780_272_000_000_000)));
        let public = Url::parse("http://feeds.example/").unwrap();
        let site = |host: &str, feeds: SiteFeeds| SiteSettings {
            host: Some(host.to_owned()),
            feeds,
            ..SiteSettings::new(Url::parse("http://127.0.0.1:1").unwrap())
        };
        let found = |host: &str| site(host, SiteFeeds::default());
        let listed = |host: &str| site(host, SiteFeeds::Listed(vec!["/feed".to_owned()]));
        for host in ["zero", "one", "two"] {
            let found = FoundFeeds {
                paths: vec!["/feed".to_owned()],
            };
            store
                .keep_found_feeds(&format!("http://blog.{host}.example/"), found)
                .await
                .unwrap();
        }
        let served = async |sites: &[SiteSettings]| {
            let mut feeds = vec![FeedSettings::new("other", Url::parse("http://x/").unwrap())];
            for number in 0..sites.len() {
                SiteSettings::join(
                    sites,
                    number,
                    sites[number].feeds.listed(),
                    &public,
                    &mut feeds,
                );
            }
            join_found(&store, sites, &public, &mut feeds)
                .await
                .unwrap();
            let progress = crate::catalog::RegistrationProgress::default();
            let snapshot = crate::catalog::register(&store, feeds, &progress)
                .await
                .unwrap();
            let row = |feed: &Arc<crate::catalog::RegisteredFeed>| {
                (
                    feed.settings.known_as().host_str().unwrap().to_owned(),
                    feed.settings.name.clone(),
                )
            };
            snapshot
                .feeds()
                .map(row)
                .collect::<std::collections::BTreeMap<_, _>>()
        };
        let rows = |rows: &[(&str, &str)]| {
            let row = |(host, name): &(&str, &str)| ((*host).to_owned(), (*name).to_owned());
            rows.iter()
                .map(row)
                .collect::<std::collections::BTreeMap<_, _>>()
        };
        let (zero, one, two) = ("blog.zero.example", "blog.one.example", "blog.two.example");
        let other = ("x", "other");
        let both = rows(&[(one, "blog-feed"), (two, "blog-two-example-feed"), other]);
        assert_eq!(served(&[found(one), found(two)]).await, both);
        assert_eq!(
            served(&[found(two), found(one)]).await,
            both,
            "they have changed places"
        );
        assert_eq!(
            served(&[listed(two), listed(one)]).await,
            both,
            "and are listed"
        );
        let alone = rows(&[(two, "blog-two-example-feed"), other]);
        assert_eq!(served(&[found(two)]).await, alone, "the first has gone");
        let three = rows(&[
            (zero, "blog-zero-example-feed"),
            (one, "blog-feed"),
            (two, "blog-two-example-feed"),
            other,
        ]);
        assert_eq!(
            served(&[found(zero), found(one), found(two)]).await,
            three,
            "one comes before them"
        );
        let moved = rows(&[("blog.one.test", "blog-one-test-feed"), other]);
        assert_eq!(
            served(&[listed("blog.one.test")]).await,
            moved,
            "another host is another feed, and no mistake"
        );
    }

    #[tokio::test]
    async fn the_feed_of_a_site_without_a_host_is_the_same_under_another_public_url() {
        let store = Memory::new(Arc::new(Manual::at(1_780_272_000_000_000)));
        let listed = SiteFeeds::Listed(vec!["/feed".to_owned()]);
        let site = SiteSettings {
            feeds: listed,
            ..SiteSettings::new(Url::parse("http://127.0.0.1:1").unwrap())
        };
        let registered = async |public: &str| {
            let (sites, public) = (std::slice::from_ref(&site), Url::parse(public).unwrap());
            let mut feeds = Vec::new();
            SiteSettings::join(sites, 0, site.feeds.listed(), &public, &mut feeds);
            join_found(&store, sites, &public, &mut feeds)
                .await
                .unwrap();
            let progress = crate::catalog::RegistrationProgress::default();
            let snapshot = crate::catalog::register(&store, feeds, &progress)
                .await
                .unwrap();
            let feed = snapshot.feed("site-feed").unwrap();
            (
                feed.no,
                feed.settings.namespace(),
                feed.settings.known_as().to_string(),
            )
        };
        let (no, namespace, _) = registered("http://127.0.0.1:8080").await;
        let moved = registered("https://blog.example").await;
        assert_eq!(
            moved,
            (no, namespace, "https://blog.example/feed".to_owned())
        );
    }
}
