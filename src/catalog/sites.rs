//! The sites before which we stand: which one a request is for, which feeds they have, and what
//! these are called; not what requests are answered.

use super::{
    Destination, FeedSettings, ListedPath, PrivateAddresses, SiteFeeds, SiteSettings,
    settings::namespace_of,
};
use crate::store::{Store, StoreError, listing};
use futures_util::TryStreamExt as _;
use http::{header::HOST, request::Parts};
use std::{
    borrow::Cow,
    collections::{HashMap, HashSet},
    sync::Arc,
};
use url::Url;

#[cfg(test)]
mod tests;

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
    pub fn leads_to_any_of(&self, places: &PrivateAddresses, public_url: &Url) -> bool {
        let host = self.settings.host.as_deref().or(public_url.host_str());
        self.is_private_server || places.are_at(&self.server, host)
    }
}

/// The site that a request is for, among those that were in force when this was decided.
#[derive(Clone, Debug)]
pub struct SiteOfRequest {
    /// The sites.
    pub sites: Arc<Sites>,
    /// The number of the one that is meant.
    pub no: usize,
}

impl SiteOfRequest {
    /// The site; `None` for a number that none has.
    pub fn site(&self) -> Option<&Arc<ProxiedSite>> {
        self.sites.all.get(self.no)
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

    /// The settings of all sites, in the order of their numbers.
    pub fn settings(&self) -> Vec<SiteSettings> {
        self.all.iter().map(|site| site.settings.clone()).collect()
    }

    /// The hosts that have a site of their own, in lower case and without ports.
    pub fn hosts(&self) -> Vec<String> {
        self.by_host.keys().cloned().collect()
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
                        let path = ListedPath::from(path.as_str());
                        SiteSettings::join(sites, no, &[path], public_url, feeds);
                    }
                }
            }
        }
    }
    let is_of_site = |feed: &FeedSettings| feed.legacy.is_some();
    if !feeds.iter().any(is_of_site) {
        return Ok(());
    }
    let stored = StoredNames::read(store).await?;
    keep_names(&stored, sites, feeds);
    keep_addresses(&stored, sites, public_url, feeds);
    Ok(())
}

/// Gives those feeds of sites that are called by their addresses the names under which the store
/// has them: sites that come, go or change places in the file may change how a feed would be called
/// today.
fn keep_names(stored: &StoredNames, sites: &[SiteSettings], feeds: &mut Vec<FeedSettings>) {
    let (called, mut kept): (Vec<FeedSettings>, Vec<FeedSettings>) = std::mem::take(feeds)
        .into_iter()
        .partition(FeedSettings::is_called_by_address);
    let mut taken: HashSet<String> = kept.iter().map(|feed| feed.name.clone()).collect();
    let mut new = Vec::new();
    for mut feed in called {
        let site = feed.legacy.as_ref().and_then(|place| sites.get(place.site));
        stored.keep_namespace(&mut feed, site.is_some_and(|site| site.host.is_none()));
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
}

// Decides: By which former addresses is a feed of a site known?
/// Gives the feeds of sites the addresses by which they were known first, which their namespaces
/// tell: readers and subscribers may hold them. The present address of another feed is left out.
fn keep_addresses(
    stored: &StoredNames,
    sites: &[SiteSettings],
    public_url: &Url,
    feeds: &mut [FeedSettings],
) {
    let present: HashSet<Url> = feeds
        .iter()
        .filter_map(|feed| feed.legacy_url().cloned())
        .collect();
    for feed in feeds.iter_mut().filter(|feed| feed.legacy.is_some()) {
        let Some(url) = stored.first_address(feed) else {
            continue;
        };
        // A front page is nobody's former feed, and a query cannot be kept private.
        let is_page = url.path() == "/" && url.query().is_none();
        let is_unguarded = feed.is_private() && url.query().is_some();
        if !present.contains(&url) && !is_page && !is_unguarded {
            SiteSettings::add_former(sites, public_url, feed, url);
        }
    }
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

    /// The address by which a feed of a site was known first, by its namespace. That of a feed which
    /// had a table of its own then may be the one that was polled, on this machine: it is none.
    fn first_address(&self, feed: &FeedSettings) -> Option<Url> {
        let namespace = self.by_name.get(&feed.name)?;
        let (address, _) = namespace.split_once('#').unwrap_or((namespace, ""));
        let scheme = feed.legacy_url()?.scheme();
        let url = Url::parse(&format!("{scheme}://{address}")).ok()?;
        let is_public = url.domain().is_some_and(|host| host.contains('.'));
        let is_here = Some(url.host()) == feed.legacy_url().map(Url::host);
        // A namespace that the operator gave may be anything.
        let is_address = namespace_of(&url) == address && address.contains('/');
        (is_address && (is_public || is_here)).then_some(url)
    }

    /// Gives a feed that is called by its address the namespace under which the store has its name,
    /// where it is the same feed: of a site without a host the same path, since its host is that of
    /// `server.public_url`, which may change; of any site the URL that is polled, since it may have
    /// had a table of its own.
    fn keep_namespace(&self, feed: &mut FeedSettings, is_of_any_host: bool) {
        let path = |namespace: &str| namespace.split_once('/').map(|(_, path)| path.to_owned());
        let own = feed.namespace();
        let Some(stored) = self.by_name.get(&feed.name) else {
            return;
        };
        let is_same =
            (is_of_any_host && path(stored) == path(&own)) || *stored == namespace_of(&feed.url);
        if is_same && self.of_namespace(&own).is_empty() {
            feed.id_namespace = Some(stored.clone());
        }
    }
}
