//! Everything that is registered at one moment, with its look-ups by name, number and origin.

use super::{
    BesideWorker, FeedSettings, NamedFeeds, PrivateAddresses, ProxiedSite, RegistryNames, Sites,
    settings::shown_by,
    spelling::{PathRelation, PathSpelling},
};
use crate::{
    auth::{Principal, may_read},
    feed::{filter::Filter, record::FeedNo},
    mistakes::{Mistake, is_made},
    secret::public_url,
};
use http::request::Parts;
use imbl::{OrdMap, OrdSet, ordmap::DiffItem};
use std::{
    collections::HashMap,
    hash::{DefaultHasher, Hasher as _},
    ops::Bound,
    sync::Arc,
};
use url::Url;

/// A feed that is registered: its number in the store, and its settings.
#[derive(Clone, Debug, PartialEq)]
pub struct RegisteredFeed {
    /// Its number.
    pub no: FeedNo,
    /// Its settings, its name included.
    pub settings: Arc<FeedSettings>,
}

impl RegisteredFeed {
    /// A feed with its number.
    pub fn new(no: FeedNo, settings: impl Into<Arc<FeedSettings>>) -> Self {
        let settings = settings.into();
        Self { no, settings }
    }

    /// True for a group, which has members in the place of an upstream.
    pub fn is_group(&self) -> bool {
        self.settings.group.is_some()
    }

    /// True for a feed that has an upstream and is not paused.
    pub fn is_polled(&self) -> bool {
        !self.is_group() && !self.settings.paused
    }

    /// The upstream's URL without what is secret in it, for the operator.
    pub fn shown_url(&self) -> String {
        public_url(&self.settings.url)
    }

    /// The address at which readers know it: the first of its public URLs, or else the upstream's,
    /// which may be one of this machine or of a network behind it.
    pub fn known_url(&self) -> String {
        self.settings
            .aliases
            .first()
            .map_or_else(|| self.shown_url(), public_url)
    }
}

/// Everything that is registered at one moment.
///
/// The maps of all feeds share their nodes with those of the snapshot before, so a change of one feed costs the same beside ten
/// feeds and beside a hundred thousand.
#[derive(Clone, Debug, Default)]
pub struct CatalogSnapshot {
    feeds: OrdMap<String, Arc<RegisteredFeed>>,
    by_no: OrdMap<FeedNo, Arc<RegisteredFeed>>,
    /// Digests of the URLs by which publishers know the feeds; true where it is only an alias. A digest says where to look, and
    /// the settings decide.
    by_origin: OrdSet<(u64, bool, FeedNo)>,
    /// Digests of the namespaces of ids that feeds have in their settings; and in the store, registered or withdrawn, where it
    /// was asked for them.
    namespaces: OrdSet<(u64, FeedNo)>,
    knows_stored_namespaces: bool,
    /// By the number of their site, and by path and query in it.
    by_place: HashMap<usize, HashMap<String, FeedNo>>,
    /// By the number of their site, those that not everybody may read.
    guarded: HashMap<usize, Vec<(PathSpelling, FeedNo)>>,
    withdrawn: OrdMap<String, FeedNo>,
    withdrawn_nos: OrdSet<FeedNo>,
    /// By the number of their group.
    members: HashMap<FeedNo, Vec<FeedNo>>,
    /// By the number of their feed, each with what it shows.
    parts: HashMap<FeedNo, Vec<(Filter, FeedNo)>>,
    private: Arc<PrivateAddresses>,
    registry: Arc<RegistryNames>,
    beside_worker: Arc<BesideWorker>,
    sites: Arc<Sites>,
}

impl CatalogSnapshot {
    /// A snapshot of these feeds. Of `withdrawn`, feeds that the store remembers, those count that
    /// are not registered.
    pub fn new(
        feeds: impl IntoIterator<Item = RegisteredFeed>,
        withdrawn: impl IntoIterator<Item = (String, FeedNo)>,
    ) -> Self {
        let mut snapshot = Self::default();
        for feed in feeds.into_iter().map(Arc::new) {
            snapshot.by_origin.extend(origins(&feed));
            let namespace = digest(&feed.settings.namespace());
            snapshot.namespaces.insert((namespace, feed.no));
            snapshot.by_no.insert(feed.no, feed.clone());
            if let Some(place) = &feed.settings.legacy {
                let paths = snapshot.by_place.entry(place.site).or_default();
                paths.insert(place.path.clone(), feed.no);
                snapshot.guard(place.site, &place.path, &feed);
            }
            snapshot.feeds.insert(feed.settings.name.clone(), feed);
        }
        snapshot.place_former();
        let settings = snapshot.feeds.values().map(|feed| &*feed.settings);
        snapshot.private = Arc::new(PrivateAddresses::of(settings));
        snapshot.members = snapshot.members_of_groups();
        let is_withdrawn = |(name, _): &(String, FeedNo)| !snapshot.feeds.contains_key(name);
        snapshot.withdrawn = withdrawn.into_iter().filter(is_withdrawn).collect();
        snapshot.withdrawn_nos = snapshot.withdrawn.values().copied().collect();
        snapshot
    }

    /// Places feeds at the addresses that they had before, where no feed has them now.
    fn place_former(&mut self) {
        let feeds: Vec<Arc<RegisteredFeed>> = self.feeds.values().cloned().collect();
        for feed in feeds {
            let place = feed.settings.legacy.iter();
            for former in place.flat_map(|place| &place.former) {
                let Some(site) = former.site else { continue };
                let paths = self.by_place.entry(site).or_default();
                if !paths.contains_key(&former.path) {
                    paths.insert(former.path.clone(), feed.no);
                    self.guard(site, &former.path, &feed);
                }
            }
        }
    }

    /// Guards the path of a feed at a site, if not everybody may read it.
    fn guard(&mut self, site: usize, path: &str, feed: &RegisteredFeed) {
        if feed.settings.is_private() {
            let guarded = self.guarded.entry(site).or_default();
            guarded.push((PathSpelling::of(path), feed.no));
        }
    }

    /// The same snapshot, which knows the namespaces of ids that its feeds have in the store, registered or withdrawn.
    #[must_use]
    pub(super) fn with_namespaces<'a>(
        mut self,
        stored: impl IntoIterator<Item = (FeedNo, &'a str)>,
    ) -> Self {
        let stored = stored.into_iter();
        let stored = stored.map(|(no, namespace)| (digest(namespace), no));
        self.namespaces.extend(stored);
        self.knows_stored_namespaces = true;
        self
    }

    /// The feed whose settings give this namespace of ids.
    pub fn by_namespace(&self, namespace: &str) -> Option<&Arc<RegisteredFeed>> {
        let mut found = self.with_namespace_digest(namespace);
        found.find_map(|no| {
            let feed = self.by_no.get(&no)?;
            (feed.settings.namespace() == namespace).then_some(feed)
        })
    }

    fn with_namespace_digest(&self, namespace: &str) -> impl Iterator<Item = FeedNo> {
        let digest = digest(namespace);
        let range = (digest, FeedNo(0))..=(digest, FeedNo(u32::MAX));
        self.namespaces.range(range).map(|(_, no)| *no)
    }

    // Decides: Which feeds may have a namespace of ids?
    /// The feeds, registered or withdrawn, that may have this namespace of ids, in their settings or in the store: all that do,
    /// and seldom another. `None` where the store was not asked for them.
    pub fn may_have_namespace(&self, namespace: &str) -> Option<Vec<FeedNo>> {
        let found = || self.with_namespace_digest(namespace).collect();
        self.knows_stored_namespaces.then(found)
    }

    /// The same snapshot with some plain feeds ([`FeedSettings::is_plain`]) put in the place of those of their names, which are
    /// plain, too, and without others. Takes as long as the change is, whatever the number of feeds.
    ///
    /// The feeds that are put have the ids of their settings' namespace.
    #[must_use]
    pub fn with_plain(
        &self,
        put: impl IntoIterator<Item = RegisteredFeed>,
        removed: impl IntoIterator<Item = FeedNo>,
    ) -> Self {
        let mut snapshot = self.clone();
        for feed in put.into_iter().map(Arc::new) {
            let name = &feed.settings.name;
            if let Some(before) = snapshot.feeds.insert(name.clone(), feed.clone()) {
                snapshot.forget_addresses(&before);
            }
            if let Some(no) = snapshot.withdrawn.remove(name) {
                snapshot.withdrawn_nos.remove(&no);
            }
            snapshot.by_origin.extend(origins(&feed));
            let namespace = digest(&feed.settings.namespace());
            snapshot.namespaces.insert((namespace, feed.no));
            snapshot.by_no.insert(feed.no, feed);
        }
        for no in removed {
            let Some(feed) = snapshot.by_no.remove(&no) else {
                continue;
            };
            let name = &feed.settings.name;
            snapshot.forget_addresses(&feed);
            snapshot.feeds.remove(name);
            snapshot.withdrawn.insert(name.clone(), no);
            snapshot.withdrawn_nos.insert(no);
        }
        snapshot
    }

    fn forget_addresses(&mut self, feed: &RegisteredFeed) {
        for origin in origins(feed) {
            self.by_origin.remove(&origin);
        }
    }

    /// The same snapshot, some feeds of which are from the registry.
    #[must_use]
    pub fn with_registry(self, registry: impl Into<Arc<RegistryNames>>) -> Self {
        let registry = registry.into();
        Self { registry, ..self }
    }

    /// The same snapshot beside these sites, by whose numbers its feeds have their addresses.
    #[must_use]
    pub fn with_sites(self, sites: Arc<Sites>) -> Self {
        Self { sites, ..self }
    }

    /// The sites before which we stand.
    pub fn sites(&self) -> &Arc<Sites> {
        &self.sites
    }

    /// The site that a request is for.
    pub fn site_of(&self, request: &Parts) -> Option<&Arc<ProxiedSite>> {
        self.sites.of(request)
    }

    /// The same snapshot in a process that follows, with its differences from that of the process
    /// that works.
    #[must_use]
    pub fn with_beside_worker(self, beside_worker: impl Into<Arc<BesideWorker>>) -> Self {
        let beside_worker = beside_worker.into();
        Self {
            beside_worker,
            ..self
        }
    }

    /// Compares the snapshot with what the process that works told: the feeds of the store that it
    /// does not serve. `awaited` are feeds of this process that the store does not know.
    pub fn compared<'a>(
        &'a self,
        awaited: impl IntoIterator<Item = &'a str>,
        withdrawn: Option<&[FeedNo]>,
    ) -> BesideWorker {
        let served = self
            .feeds()
            .map(|feed| (feed.settings.name.as_str(), feed.no));
        let remembered = self.all_withdrawn();
        let remembered = remembered.filter(|(name, _)| !self.registry.contains(name));
        BesideWorker::of(served, remembered, awaited, withdrawn)
    }

    /// The differences from the snapshot of the process that works.
    pub fn beside_worker(&self) -> &BesideWorker {
        &self.beside_worker
    }

    /// The entries of the registry.
    pub fn registry(&self) -> &Arc<RegistryNames> {
        &self.registry
    }

    /// The same snapshot with the parts of one of its feeds.
    #[must_use]
    pub fn with_parts(mut self, feed: FeedNo, parts: Vec<(Filter, FeedNo)>) -> Self {
        if let Some(registered) = self.by_no.get(&feed).cloned() {
            let numbers = parts.iter().map(|(_, no)| (*no, Arc::clone(&registered)));
            self.by_no.extend(numbers);
            self.parts.insert(feed, parts);
        }
        self
    }

    /// The numbers of all parts of feeds.
    pub fn parts(&self) -> impl Iterator<Item = FeedNo> {
        self.parts.values().flatten().map(|(_, no)| *no)
    }

    // Decides: Which part of a feed does a principal see?
    /// The feed that a principal, `None` for nobody known, reads under the name of a feed: the feed
    /// itself, or a part of it; `None` for nothing. All who read anything ask this first (SF-131).
    pub fn read_by(&self, feed: &RegisteredFeed, principal: Option<&Principal>) -> Option<FeedNo> {
        match shown_to(feed, principal)? {
            _ if is_made(Mistake::ShowsEverything) => Some(feed.no),
            Filter::All => Some(feed.no),
            shown => {
                let mut parts = self.parts.get(&feed.no)?.iter();
                Some(parts.find(|(filter, _)| *filter == shown)?.1)
            }
        }
    }

    fn members_of_groups(&self) -> HashMap<FeedNo, Vec<FeedNo>> {
        let named = NamedFeeds::of(self.feeds.values().map(|feed| &*feed.settings));
        let mut members = HashMap::new();
        for feed in self.feeds.values() {
            if let Some(group) = &feed.settings.group {
                let of_group = named.members_of(group).into_iter();
                let numbers = of_group.filter_map(|member| Some(self.feeds.get(&member.name)?.no));
                members.insert(feed.no, numbers.collect());
            }
        }
        members
    }

    /// The members of a group; `None` for a feed that is none.
    pub fn members(&self, group: FeedNo) -> Option<&[FeedNo]> {
        self.members.get(&group).map(Vec::as_slice)
    }

    /// The names of the members of a group; `None` for a feed that is none.
    pub fn member_names(&self, group: FeedNo) -> Option<Vec<&str>> {
        let members = self
            .members(group)?
            .iter()
            .filter_map(|no| self.feed_no(*no));
        Some(members.map(|feed| feed.settings.name.as_str()).collect())
    }

    /// The feeds that have an upstream: all but the groups.
    pub fn upstreams(&self) -> impl Iterator<Item = &Arc<RegisteredFeed>> {
        self.feeds.values().filter(|feed| !feed.is_group())
    }

    /// The feeds that are polled: all but the groups and those that are paused.
    pub fn polled(&self) -> impl Iterator<Item = &Arc<RegisteredFeed>> {
        self.feeds.values().filter(|feed| feed.is_polled())
    }

    /// The groups, by number.
    pub fn groups(&self) -> impl Iterator<Item = &Arc<RegisteredFeed>> {
        let mut groups: Vec<FeedNo> = self.members.keys().copied().collect();
        groups.sort_unstable();
        groups.into_iter().filter_map(|no| self.by_no.get(&no))
    }

    // Decides: Of which feeds of a site are search engines told?
    /// The feeds of the site of this number that everybody may read whole, of those that are feeds
    /// of posts.
    pub fn public_feeds_of_site(&self, site: usize) -> impl Iterator<Item = &Arc<RegisteredFeed>> {
        self.upstreams().filter(move |feed| {
            let settings = &feed.settings;
            let place = settings.legacy.as_ref();
            place.is_some_and(|place| place.site == site)
                && !settings.is_private()
                && !settings.is_resource()
        })
    }

    /// The registered feeds, by name.
    pub fn feeds(&self) -> impl ExactSizeIterator<Item = &Arc<RegisteredFeed>> {
        self.feeds.values()
    }

    /// The registered feeds after this name, by name.
    pub fn feeds_after<'a>(
        &'a self,
        after: Option<&'a str>,
    ) -> impl Iterator<Item = &'a Arc<RegisteredFeed>> {
        let from = after.map_or(Bound::Unbounded, Bound::Excluded);
        self.feeds
            .range::<_, str>((from, Bound::Unbounded))
            .map(|(_, feed)| feed)
    }

    /// The feeds in which another snapshot differs, by name: as they are here, and as they are there.
    pub(super) fn differing<'a>(
        &'a self,
        other: &'a Self,
    ) -> impl Iterator<
        Item = (
            Option<&'a Arc<RegisteredFeed>>,
            Option<&'a Arc<RegisteredFeed>>,
        ),
    > {
        self.feeds.diff(&other.feeds).map(|item| match item {
            DiffItem::Add(_, now) => (None, Some(now)),
            DiffItem::Remove(_, before) => (Some(before), None),
            DiffItem::Update { old, new } => (Some(old.1), Some(new.1)),
        })
    }

    /// The registered feed of this name.
    pub fn feed(&self, name: &str) -> Option<&Arc<RegisteredFeed>> {
        self.feeds.get(name)
    }

    /// The registered feed of this number, or that which has a part of this number.
    pub fn feed_no(&self, no: FeedNo) -> Option<&Arc<RegisteredFeed>> {
        self.by_no.get(&no)
    }

    // Decides: Is anybody told what is gone of a feed?
    /// True where readers of a feed are told what is gone of it; of a group where those of all its
    /// members are.
    pub fn announces_deletions(&self, no: FeedNo) -> bool {
        let announces = |no: &FeedNo| {
            let feed = self.feed_no(*no);
            feed.is_none_or(|feed| feed.settings.announce_deletes)
        };
        let group = self.feed_no(no).map_or(no, |feed| feed.no);
        announces(&no)
            && self
                .members(group)
                .unwrap_or_default()
                .iter()
                .all(announces)
    }

    /// The registered feed whose publisher knows it by this URL: the one that is polled, or one of
    /// its public names.
    pub fn by_origin(&self, url: &str) -> Option<FeedNo> {
        let url = normal(url);
        let digest = digest(&url);
        // The URL that is polled goes before another feed's public name.
        let range = (digest, false, FeedNo(0))..=(digest, true, FeedNo(u32::MAX));
        let found = self.by_origin.range(range);
        let of_feed = |(_, is_alias, no): &(u64, bool, FeedNo)| {
            let settings = &self.by_no.get(no)?.settings;
            let has = if *is_alias {
                let mut aliases = settings.aliases.iter();
                aliases.any(|alias| normal(alias.as_str()) == url)
            } else {
                normal(settings.url.as_str()) == url
            };
            has.then_some((*is_alias, &settings.name, *no))
        };
        let first = found.filter_map(of_feed).min();
        first.map(|(_, _, no)| no)
    }

    /// True while there is something that not everybody may read.
    pub fn has_private(&self) -> bool {
        self.private.is_any()
    }

    /// The addresses of what not everybody may read.
    pub fn private_places(&self) -> &PrivateAddresses {
        &self.private
    }

    /// The feed at a path, with its query, of the site of this number.
    pub fn at_place(&self, site: usize, path: &str) -> Option<&Arc<RegisteredFeed>> {
        self.feed_no(*self.by_place.get(&site)?.get(path)?)
    }

    // Decides: Which addresses of a site could be that of a private feed?
    /// The private feed that a server may take a path of the site of this number for, however it is
    /// spelt; and true where the path is that of the feed itself, not one below it.
    pub fn guarded_place(&self, site: usize, path: &str) -> Option<(&Arc<RegisteredFeed>, bool)> {
        let relations = self.guarded.get(&site)?.iter();
        let asked = PathSpelling::of(path);
        let fits = relations.filter_map(|(place, no)| Some((*no, asked.relation_to(place)?)));
        let (no, relation) = fits.min_by_key(|(_, relation)| *relation == PathRelation::Below)?;
        Some((self.feed_no(no)?, relation == PathRelation::Same))
    }

    /// The resource that is known by this URL, by http and https alike, and not one of a site.
    pub fn by_resource_url(&self, url: &str) -> Option<&Arc<RegisteredFeed>> {
        let known = |url: &str| self.feed_no(self.by_origin(url)?);
        let feed = known(url).or_else(|| known(&in_other_scheme(url)?))?;
        let settings = &feed.settings;
        (settings.is_resource() && settings.legacy.is_none()).then_some(feed)
    }

    /// The feed of a site that readers know, or knew, by this URL, by http and https alike.
    pub fn by_legacy_url(&self, url: &str) -> Option<&Arc<RegisteredFeed>> {
        let known = |url: &str| {
            let feed = self.feed_no(self.by_origin(url)?)?;
            let place = feed.settings.legacy.as_ref()?;
            let mut addresses = place.urls().map(|address| normal(address.as_str()));
            addresses
                .any(|address| address == normal(url))
                .then_some(feed)
        };
        known(url).or_else(|| known(&in_other_scheme(url)?))
    }

    /// The feed of this name that is not registered any more, while the store remembers it.
    pub fn withdrawn(&self, name: &str) -> Option<FeedNo> {
        self.withdrawn.get(name).copied()
    }

    /// True for the number of a feed that is not registered any more, while the store remembers it.
    pub fn is_withdrawn(&self, no: FeedNo) -> bool {
        self.withdrawn_nos.contains(&no)
    }

    /// The snapshot without the memory of a feed that is not registered any more.
    #[must_use]
    pub fn without(&self, forgotten: FeedNo) -> Self {
        let mut snapshot = self.clone();
        if snapshot.withdrawn_nos.remove(&forgotten).is_some() {
            let mut withdrawn = self.withdrawn.iter();
            if let Some((name, _)) = withdrawn.find(|(_, no)| **no == forgotten) {
                snapshot.withdrawn.remove(name);
            }
            // Its namespace is nobody's now, which only a look at all of them shows.
            let namespaces = self.namespaces.iter();
            let namespaces = namespaces.filter(|(_, no)| *no != forgotten);
            snapshot.namespaces = namespaces.copied().collect();
        }
        snapshot
    }

    /// The feeds that are not registered any more, by name.
    pub fn all_withdrawn(&self) -> impl Iterator<Item = (&str, FeedNo)> {
        self.withdrawn.iter().map(|(name, no)| (name.as_str(), *no))
    }
}

/// The digests of the addresses by which a publisher knows a feed.
fn origins(feed: &RegisteredFeed) -> impl Iterator<Item = (u64, bool, FeedNo)> {
    let (settings, no) = (&feed.settings, feed.no);
    let polled = (!feed.is_group()).then_some((&settings.url, false));
    let aliases = settings.aliases.iter().map(|alias| (alias, true));
    polled
        .into_iter()
        .chain(aliases)
        .map(move |(url, is_alias)| (digest(&normal(url.as_str())), is_alias, no))
}

/// The digest by which a text is looked up.
fn digest(text: &str) -> u64 {
    let mut hasher = DefaultHasher::new();
    hasher.write(text.as_bytes());
    hasher.finish()
}

/// The part of a feed that a principal may see; `None` for nothing of it.
fn shown_to(feed: &RegisteredFeed, principal: Option<&Principal>) -> Option<Filter> {
    if !may_read(principal, &feed.settings.access) {
        return None;
    }
    shown_by(&feed.settings.show, principal)
}

/// True when a principal may read a feed, or a part of it.
pub fn is_open_to(feed: &RegisteredFeed, principal: Option<&Principal>) -> bool {
    shown_to(feed, principal).is_some()
}

/// The same URL by http where it is by https, and the other way round; `None` for others.
fn in_other_scheme(url: &str) -> Option<String> {
    let mut url = Url::parse(url.trim()).ok()?;
    let other = match url.scheme() {
        "http" => "https",
        "https" => "http",
        _ => return None,
    };
    url.set_scheme(other).ok()?;
    Some(url.into())
}

/// A URL without what its spelling may vary in: the case of the host, a default port, a fragment.
fn normal(url: &str) -> String {
    let Ok(mut url) = Url::parse(url.trim()) else {
        return url.to_owned();
    };
    url.set_fragment(None);
    url.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn feed(no: u32, name: &str, url: &str) -> RegisteredFeed {
        RegisteredFeed::new(
            FeedNo(no),
            FeedSettings::new(name, Url::parse(url).unwrap()),
        )
    }

    #[test]
    fn a_feed_is_found_by_name_by_number_and_by_its_origin_however_that_is_spelt() {
        let snapshot = CatalogSnapshot::new([feed(3, "blog", "http://Old.example:80/rss.xml")], []);
        assert_eq!(snapshot.feed("blog").unwrap().no, FeedNo(3));
        assert_eq!(snapshot.feed_no(FeedNo(3)).unwrap().settings.name, "blog");
        assert_eq!(
            snapshot.by_origin(" http://OLD.example/rss.xml#x"),
            Some(FeedNo(3))
        );
        assert_eq!(snapshot.by_origin("http://old.example/"), None);
        let mut named = feed(4, "sidecar", "http://127.0.0.1:8081/feed");
        Arc::make_mut(&mut named.settings).aliases =
            ["https://Blog.example/feed", "http://old.example/rss.xml"]
                .map(|url| url.parse().unwrap())
                .into();
        let snapshot =
            CatalogSnapshot::new([named, feed(3, "blog", "http://old.example/rss.xml")], []);
        assert_eq!(
            snapshot.by_origin("https://blog.example:443/feed"),
            Some(FeedNo(4))
        );
        assert_eq!(
            snapshot.by_origin("http://old.example/rss.xml"),
            Some(FeedNo(3)),
            "its own URL goes first"
        );
        assert!(snapshot.feed("other").is_none() && snapshot.feed_no(FeedNo(1)).is_none());
    }

    #[test]
    fn feeds_follow_each_other_by_name() {
        let snapshot =
            CatalogSnapshot::new([feed(1, "b", "http://b/"), feed(2, "a", "http://a/")], []);
        let after =
            |name| -> Vec<u32> { snapshot.feeds_after(name).map(|feed| feed.no.0).collect() };
        assert_eq!(
            (after(None), after(Some("a")), after(Some("aa"))),
            (vec![2, 1], vec![1], vec![1])
        );
        assert_eq!(after(Some("b")), [0; 0]);
    }

    #[test]
    fn what_the_store_remembers_is_withdrawn_unless_it_is_registered() {
        let remembered = [
            ("blog".to_owned(), FeedNo(1)),
            ("old".to_owned(), FeedNo(2)),
        ];
        let snapshot = CatalogSnapshot::new([feed(1, "blog", "http://x/")], remembered);
        assert_eq!(
            (snapshot.withdrawn("blog"), snapshot.withdrawn("old")),
            (None, Some(FeedNo(2)))
        );
        assert_eq!(
            snapshot.all_withdrawn().collect::<Vec<_>>(),
            [("old", FeedNo(2))]
        );
        assert!(snapshot.is_withdrawn(FeedNo(2)) && !snapshot.is_withdrawn(FeedNo(1)));
        let forgotten = snapshot.without(FeedNo(2));
        assert_eq!(
            (
                forgotten.withdrawn("old"),
                forgotten.is_withdrawn(FeedNo(2))
            ),
            (None, false)
        );
        assert!(forgotten.feed("blog").is_some());
    }
}
