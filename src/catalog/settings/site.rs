//! `[[site]]`: the settings of an old web site before which everfeed stands as a reverse proxy; not
//! how requests are passed on.

use super::{
    DeletionSettings, FeedNamer, FeedSettings, FormerAddress, ImportSettings, KeepSettings,
    LegacyAddress, PollSettings, ServePlain, SiteFeeds, legacy_address::path_of,
    site_feeds::ListedPath, site_feeds::is_path,
};
use crate::{
    auth::AccessSettings,
    catalog::{Destination, PrivateAddresses},
    secret::AddressSecret,
    setting::{RefusedSetting, at_least_one},
};
use serde::{Deserialize, Serialize};
use url::Url;

/// `[[site]]`: an old web site, and how everfeed serves it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SiteSettings {
    /// The host by which readers know the site. Without it the site gets every request that is for
    /// no other one.
    #[serde(default)]
    pub host: Option<String>,
    /// The address of the old server: scheme, host and port.
    pub origin: Url,
    /// Its feeds.
    #[serde(default)]
    pub feeds: SiteFeeds,
    /// Those who may read its feeds. A `[[feed]]` of it that names readers of its own has those.
    #[serde(default)]
    pub access: AccessSettings,
    /// The document that a plain reader of a legacy feed URL gets.
    #[serde(default)]
    pub serve_plain: ServePlain,
    /// Seconds for which its old documents are given without asking the origin whether they have
    /// changed; 0: it is never asked for readers. Not set: 60 for an origin on this machine or its
    /// network, else 900.
    #[serde(default)]
    pub fresh_secs: Option<u64>,
    /// The bounds within which its feeds are polled. This and what follows is for feeds of the site
    /// that have no such table of their own.
    #[serde(default)]
    pub poll: PollSettings,
    /// The proof that a deletion needs.
    #[serde(default)]
    pub deletions: DeletionSettings,
    /// The reading of their archives.
    #[serde(default)]
    pub import: ImportSettings,
    /// Limits of what is kept of them.
    #[serde(default)]
    pub keep: KeepSettings,
    /// True to take pings of its blog (weblogUpdates at `/RPC2`) for hints that its feeds have
    /// changed; all other calls are passed on.
    #[serde(default = "pings")]
    pub pings: bool,
    /// True to tell search engines of new, changed and deleted posts of its public feeds by
    /// `IndexNow`.
    #[serde(default)]
    pub indexnow: bool,
    /// True to answer at `/sitemap.xml` with the posts of its public feeds, if the old server has
    /// nothing there.
    #[serde(default)]
    pub sitemap: bool,
    /// The secret at the end of the address at which the owner of the site sees who reads its feeds;
    /// there is no such page without one.
    #[serde(default)]
    pub readers_secret: Option<AddressSecret>,
    /// Seconds until a connection to the origin stands at most.
    #[serde(default = "connect_secs")]
    pub connect_secs: u64,
    /// Seconds until the origin begins its answer at most, once it has the request.
    #[serde(default = "head_secs")]
    pub head_secs: u64,
    /// Seconds for which either side may send nothing in the middle of a body, or of a connection
    /// that was upgraded.
    #[serde(default = "idle_secs")]
    pub idle_secs: u64,
    /// Requests at the origin at once, WebSockets too; for one more the slowest may go, else it gets
    /// 503.
    #[serde(default = "requests_max")]
    pub requests_max: usize,
}

fn pings() -> bool {
    true
}

fn connect_secs() -> u64 {
    5
}

fn head_secs() -> u64 {
    60
}

fn idle_secs() -> u64 {
    120
}

fn requests_max() -> usize {
    1000
}

/// The longest name of a feed that is made from its path, characters: the rest of the path becomes
/// a checksum.
const SLUG_CHARS_MAX: usize = 40;

const HOST_WANTED: &str = "give one host name in small letters, without scheme, port, path, `*` and a dot at its end: for instance \
    \"blog.example.org\"";
const ORIGIN_WANTED: &str =
    "give scheme, host and port of the old server, no path: for instance \"http://127.0.0.1:8081\"";

const PRIVATE_FEEDS_WANTED: &str = "a feed at a query cannot be private: the old server may understand other spellings of that \
    query. Give the path of the feed without a query, or leave it out and let the old server refuse it";
const READERS_SECRET_WANTED: &str =
    "give 20 to 128 letters, digits, `-` and `_`, such as what `openssl rand -hex 20` prints";
const PRIVATE_PLAIN_WANTED: &str =
    "private feeds are served from here alone; give \"rewritten\" or \"untouched\"";

impl SiteSettings {
    /// A site with the usual settings.
    pub fn new(origin: Url) -> Self {
        Self {
            host: None,
            origin,
            feeds: SiteFeeds::default(),
            access: AccessSettings::default(),
            serve_plain: ServePlain::default(),
            fresh_secs: None,
            poll: PollSettings::default(),
            deletions: DeletionSettings::default(),
            import: ImportSettings::default(),
            keep: KeepSettings::default(),
            pings: pings(),
            indexnow: false,
            sitemap: false,
            readers_secret: None,
            connect_secs: connect_secs(),
            head_secs: head_secs(),
            idle_secs: idle_secs(),
            requests_max: requests_max(),
        }
    }

    /// The root of the site as readers know it: our public URL, with the host of the site.
    pub fn public_root(&self, public_url: &Url) -> Url {
        let mut root = public_url.clone();
        if let Some(host) = &self.host {
            // A name that is refused is told by `problems`.
            let _ = root.set_host(Some(host));
        }
        root.set_path("/");
        root
    }

    /// The feed at a path of the site of this number: it is polled at the origin, and known by its
    /// public URL.
    fn feed_at(
        sites: &[Self],
        number: usize,
        listed: &ListedPath,
        public_url: &Url,
    ) -> Option<FeedSettings> {
        let site = sites.get(number)?;
        let (name, named_by) = match &listed.name {
            Some(name) => (name.clone(), FeedNamer::Site),
            None => {
                let label = site.label(&sites[..number]);
                (feed_name(&label, &listed.path), FeedNamer::Address)
            }
        };
        let feed = FeedSettings::new(name, site.origin.join(&listed.path).ok()?);
        let mut feed = Self::feed_of(sites, number, listed, public_url, feed)?;
        let mut place = feed.legacy.take()?;
        place.named_by = named_by;
        feed.legacy = Some(place);
        Some(feed)
    }

    /// A feed as one of the site of this number at a path, whatever its settings.
    fn feed_of(
        sites: &[Self],
        number: usize,
        listed: &ListedPath,
        public_url: &Url,
        mut feed: FeedSettings,
    ) -> Option<FeedSettings> {
        let site = sites.get(number)?;
        let root = site.public_root(public_url);
        let url = root.join(&listed.path).ok()?;
        // The address that readers know goes first: relative links are resolved against it.
        if !feed.aliases.contains(&url) {
            feed.aliases.insert(0, url.clone());
        }
        if !feed.is_private() {
            feed.access = site.access.clone();
        }
        let before = feed.legacy.as_ref();
        let named_by = before.map_or(FeedNamer::Table, |place| place.named_by);
        site.lend_settings(&mut feed);
        feed.legacy = Some(Box::new(LegacyAddress {
            site: number,
            path: listed.path.clone(),
            url,
            former: Vec::new(),
            plain: site.serve_plain,
            fresh_secs: site.fresh_secs,
            named_by,
        }));
        for address in &listed.former {
            Self::add_former(sites, public_url, &mut feed, root.join(address).ok()?);
        }
        Some(feed)
    }

    /// Gives a feed of a site an address that it had before: it is known by that, too, and is
    /// answered there where a site has the host now.
    pub(in crate::catalog) fn add_former(
        sites: &[Self],
        public_url: &Url,
        feed: &mut FeedSettings,
        url: Url,
    ) {
        let Some(place) = feed.legacy.as_mut() else {
            return;
        };
        if place.urls().any(|known| *known == url) {
            return;
        }
        let has_host = |site: &Self| site.public_root(public_url).host() == url.host();
        let of_every_host = || sites.iter().position(|site| site.host.is_none());
        place.former.push(FormerAddress {
            site: sites.iter().position(has_host).or_else(of_every_host),
            path: path_of(&url),
            url: url.clone(),
        });
        if !feed.aliases.contains(&url) {
            feed.aliases.push(url);
        }
    }

    /// Gives a feed the settings of the site, where it has the usual ones.
    fn lend_settings(&self, feed: &mut FeedSettings) {
        if feed.poll == PollSettings::default() {
            feed.poll = self.poll;
        }
        if feed.deletions == DeletionSettings::default() {
            feed.deletions = self.deletions;
        }
        if feed.import == ImportSettings::default() {
            feed.import = self.import;
        }
        if feed.keep == KeepSettings::default() {
            feed.keep = self.keep;
        }
    }

    /// True for a key of a feed whose value is that of the site: what is wrong with it is told of the
    /// site.
    pub fn lends(&self, key: &str, feed: &FeedSettings) -> bool {
        match key.split('.').next() {
            Some("poll") => feed.poll == self.poll,
            Some("deletions") => feed.deletions == self.deletions,
            Some("keep") => feed.keep == self.keep,
            _ => false,
        }
    }

    /// Adds the feeds at paths of the site of this number to others; a feed that is polled at the
    /// same URL is the site's, with its own name and settings, unless it is that of another site:
    /// one server may have several, by their hosts.
    pub fn join(
        sites: &[Self],
        number: usize,
        paths: &[ListedPath],
        public_url: &Url,
        feeds: &mut Vec<FeedSettings>,
    ) {
        for listed in paths {
            let Some(feed) = Self::feed_at(sites, number, listed, public_url) else {
                continue;
            };
            match Self::position(sites, number, &listed.path, public_url, feeds) {
                Some(at) => {
                    let known = feeds[at].clone();
                    let known = Self::feed_of(sites, number, listed, public_url, known);
                    feeds[at] = known.unwrap_or(feed);
                }
                // The operator gave the name to another feed. One that is given twice is refused.
                None if listed.name.is_none()
                    && feeds
                        .iter()
                        .any(|known| known.name == feed.name && !known.is_called_by_address()) => {}
                None => feeds.push(feed),
            }
        }
    }

    /// The feed among others that is the one at a path of the site of this number.
    fn position(
        sites: &[Self],
        number: usize,
        path: &str,
        public_url: &Url,
        feeds: &[FeedSettings],
    ) -> Option<usize> {
        let elsewhere: Vec<Url> = (0..sites.len())
            .filter(|other| *other != number)
            .filter_map(|other| sites[other].public_root(public_url).join(path).ok())
            .collect();
        // A feed that the operator gave may say by its aliases which site it is of.
        let is_elsewhere = |known: &FeedSettings| {
            known.aliases.iter().any(|alias| elsewhere.contains(alias)) && known.legacy.is_none()
        };
        let site = sites.get(number)?;
        feeds
            .iter()
            .position(|known| site.has(number, path, known) && !is_elsewhere(known))
    }

    /// The name of the private feed, for others than the readers of the site, that has the address
    /// of a path of the site, which has this number, and is not the feed of the site there.
    pub fn private_feed_at(
        &self,
        sites: &[Self],
        number: usize,
        path: &str,
        public_url: &Url,
        feeds: &[FeedSettings],
    ) -> Option<String> {
        let own = Self::position(sites, number, path, public_url, feeds);
        let is_for_others =
            |feed: &FeedSettings| !feed.show.is_empty() || !self.access.is_within(&feed.access);
        let others = feeds
            .iter()
            .enumerate()
            .filter(|(at, feed)| Some(*at) != own && is_for_others(feed));
        let places = PrivateAddresses::of(others.map(|(_, feed)| feed));
        let addresses = [
            self.origin.join(path),
            self.public_root(public_url).join(path),
        ];
        let mut names = addresses
            .iter()
            .flatten()
            .filter_map(|url| places.feed_at(url));
        names.next().map(str::to_owned)
    }

    /// True for the feed at a path of the site, which has this number: one that is polled there,
    /// and is of no other site.
    pub fn has(&self, number: usize, path: &str, feed: &FeedSettings) -> bool {
        let is_free = feed
            .legacy
            .as_ref()
            .is_none_or(|place| place.site == number);
        is_free && self.origin.join(path).is_ok_and(|url| url == feed.url)
    }

    /// The first word in the names of its feeds: the first label of its host, or the whole host
    /// where a site before it has that label. Sites that come to the end of the file change no
    /// name.
    fn label(&self, before: &[Self]) -> String {
        let first = |site: &Self| {
            let label = site
                .host
                .as_deref()
                .and_then(|host| host.split('.').find(|label| *label != "www"));
            label.unwrap_or("site").to_lowercase()
        };
        let label = first(self);
        match &self.host {
            Some(host) if before.iter().any(|site| first(site) == label) => host.clone(),
            _ => label,
        }
    }

    /// True for a path whose document can be kept from everybody else: all its spellings are known.
    /// A server may take a query from elsewhere, or for another path.
    pub fn can_be_private(path: &str) -> bool {
        !path.contains('?')
    }

    /// The path of a URL in the site, if it is in it: as readers know it, or as the origin does.
    pub fn path_of(&self, url: &Url, public_url: &Url) -> Option<String> {
        let root = self.public_root(public_url);
        let is_here = url.host_str() == root.host_str()
            || Destination::server(url) == Destination::server(&self.origin);
        let path = path_of(url);
        (is_here && matches!(url.scheme(), "http" | "https") && is_path(&path)).then_some(path)
    }

    /// True for a URL at which the site may have a feed: any of its own where they are found by
    /// themselves, else those that are listed.
    pub fn may_have(&self, url: &Url, public_url: &Url) -> bool {
        self.path_of(url, public_url)
            .is_some_and(|path| match &self.feeds {
                SiteFeeds::Found(_) => true,
                SiteFeeds::Listed(_) => self.feeds.lists(&path),
            })
    }

    /// The name of a feed of the site with the whole host in it, for one whose usual name is taken.
    pub fn long_name(&self, path: &str) -> String {
        feed_name(self.host.as_deref().unwrap_or("site"), path)
    }

    /// Every setting that has the right type and still cannot be meant. Keys are those of the
    /// site's own table.
    pub fn problems(&self) -> Vec<RefusedSetting> {
        let mut problems = Vec::new();
        let mut refuse = |key: &str, found: &str, wanted: &str| {
            problems.push(RefusedSetting::new(key, format!("\"{found}\""), wanted));
        };
        if let Some(host) = &self.host
            && !is_host(host)
        {
            refuse("host", host, HOST_WANTED);
        }
        if self
            .readers_secret
            .as_ref()
            .is_some_and(|secret| !secret.is_good())
        {
            // Whoever reads the log need not know it.
            refuse("readers_secret", "***", READERS_SECRET_WANTED);
        }
        let origin = &self.origin;
        let is_bare = matches!(origin.scheme(), "http" | "https")
            && origin.path() == "/"
            && origin.query().is_none()
            && origin.fragment().is_none()
            && origin.username().is_empty()
            && origin.password().is_none();
        if !is_bare {
            refuse("origin", origin.as_str(), ORIGIN_WANTED);
        }
        if let Some((found, wanted)) = self.feeds.problem() {
            refuse("feeds", found, wanted);
        }
        if self.access.is_private() {
            let listed = self.feeds.listed().iter();
            let mut addresses =
                listed.flat_map(|feed| std::iter::once(&feed.path).chain(&feed.former));
            if let Some(path) = addresses.find(|path| !Self::can_be_private(path)) {
                refuse("feeds", path, PRIVATE_FEEDS_WANTED);
            }
            if self.serve_plain == ServePlain::Origin {
                refuse("serve_plain", "origin", PRIVATE_PLAIN_WANTED);
            }
        }
        problems.extend(self.access.problems());
        problems.extend(self.poll.problems());
        problems.extend(self.deletions.problems());
        problems.extend(self.keep.problems());
        let counts = [
            ("connect_secs", self.connect_secs),
            ("head_secs", self.head_secs),
            ("idle_secs", self.idle_secs),
            ("requests_max", self.requests_max as u64),
        ];
        let zero = counts
            .into_iter()
            .filter_map(|(key, count)| at_least_one(key, count, "give at least 1").err());
        problems.extend(zero);
        problems
    }
}

/// True for a host as it stands in a URL, and nothing else.
fn is_host(host: &str) -> bool {
    let is_name = Url::parse(&format!("http://{host}/"))
        .is_ok_and(|url| url.host_str() == Some(host) && url.port().is_none());
    is_name && !host.contains('*') && !host.ends_with('.')
}

// Decides: What is a feed of a site called?
/// The name of the feed at a path: `blog-feed-xml` for `/feed.xml` of a site with the label `blog`.
/// It depends on nothing else, so that a feed keeps its name whatever feeds the site gains and
/// loses.
fn feed_name(label: &str, path: &str) -> String {
    let words = format!("{label} {path}").to_lowercase();
    let words = words
        .split(|c: char| !c.is_ascii_alphanumeric())
        .filter(|word| !word.is_empty());
    let slug = words.collect::<Vec<_>>().join("-");
    // Characters that were left out may tell two paths apart.
    let is_plain = path
        .bytes()
        .all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b"/.".contains(&b));
    if is_plain && slug.len() <= SLUG_CHARS_MAX {
        return slug;
    }
    let kept: String = slug.chars().take(SLUG_CHARS_MAX).collect();
    format!(
        "{}-{:08x}",
        kept.trim_end_matches('-'),
        crc32fast::hash(path.as_bytes())
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn site(host: Option<&str>) -> SiteSettings {
        let origin = Url::parse("http://127.0.0.1:8081").unwrap();
        SiteSettings {
            host: host.map(str::to_owned),
            ..SiteSettings::new(origin)
        }
    }

    #[test]
    fn a_feed_is_named_by_its_path_and_known_by_its_public_url() {
        let public = Url::parse("https://feeds.example.org:8443/below").unwrap();
        let check = |host: Option<&str>, path: &str, name: &str, alias: &str| {
            let site = site(host);
            let sites = std::slice::from_ref(&site);
            let feed = SiteSettings::feed_at(sites, 0, &path.into(), &public).unwrap();
            assert_eq!(
                (feed.name.as_str(), feed.aliases[0].as_str()),
                (name, alias)
            );
            assert_eq!(feed.url.as_str(), format!("http://127.0.0.1:8081{path}"));
            assert_eq!(
                format!("https://{}", feed.namespace()),
                alias,
                "ids outlive a move of the old server"
            );
        };
        check(
            None,
            "/feed.xml",
            "site-feed-xml",
            "https://feeds.example.org:8443/feed.xml",
        );
        let blog = Some("www.blog.example.org");
        check(
            blog,
            "/comments/feed/",
            "blog-comments-feed",
            "https://www.blog.example.org:8443/comments/feed/",
        );
        check(
            blog,
            "/?feed=rss2",
            "blog-feed-rss2-1877d22b",
            "https://www.blog.example.org:8443/?feed=rss2",
        );
        let long = format!("/{}", "a".repeat(100));
        let feed = SiteSettings::feed_at(&[site(blog)], 0, &long.as_str().into(), &public);
        let name = feed.unwrap().name;
        assert!(name.len() <= 63 && name.starts_with("blog-aaaa"), "{name}");
    }

    #[test]
    fn a_feed_of_a_site_has_its_settings_unless_it_has_its_own() {
        let public = Url::parse("http://blog.example/").unwrap();
        let mut site: SiteSettings = toml::from_str(
            "origin = \"http://127.0.0.1:8081\"\npoll = { min_secs = 300, max_secs = 900 }\n\
             deletions = { confirmations = 3 }\nimport = { pages_max = 7 }\nkeep = { quota_bytes = 5000000 }",
        )
        .unwrap();
        assert_eq!(site.problems().len(), 0, "{:?}", site.problems());
        let own = PollSettings {
            min_secs: Some(60),
            max_secs: 120,
        };
        let url = site.origin.join("/own.xml").unwrap();
        let mut feeds = vec![FeedSettings {
            poll: own,
            ..FeedSettings::new("own", url)
        }];
        let paths = ["/own.xml", "/feed.xml"].map(ListedPath::from);
        SiteSettings::join(std::slice::from_ref(&site), 0, &paths, &public, &mut feeds);
        assert_eq!((feeds[0].poll, feeds[1].poll), (own, site.poll));
        for feed in &feeds {
            let lent = (feed.deletions, feed.import, feed.keep);
            assert_eq!(
                lent,
                (site.deletions, site.import, site.keep),
                "{}",
                feed.name
            );
        }
        site.poll.min_secs = Some(1000);
        assert_eq!(
            site.problems()[0].key,
            "poll.min_secs",
            "more than max_secs"
        );
    }

    #[test]
    fn sites_of_one_server_have_feeds_of_their_own() {
        let public = Url::parse("http://feeds.example.org").unwrap();
        let given = |name, path: &str| {
            FeedSettings::new(
                name,
                Url::parse("http://127.0.0.1:8081")
                    .unwrap()
                    .join(path)
                    .unwrap(),
            )
        };
        let named = Url::parse("http://other.example/b").unwrap();
        let mut feeds = vec![
            given("given", "/a"),
            FeedSettings {
                aliases: vec![named],
                ..given("named", "/b")
            },
        ];
        let hosts = ["blog.one.example", "www.blog.two.example", "other.example"];
        let mut sites: Vec<_> = hosts.iter().map(|host| site(Some(host))).collect();
        sites.push(site(None));
        let paths = ["/a", "/b"].map(ListedPath::from);
        // However often they are joined, as a reload does.
        for _ in 0..2 {
            for number in 0..sites.len() {
                SiteSettings::join(&sites, number, &paths, &public, &mut feeds);
            }
        }
        let place = |feed: &FeedSettings| feed.legacy.as_ref().unwrap().url.to_string();
        let mut found: Vec<_> = feeds
            .iter()
            .map(|feed| (feed.name.clone(), place(feed)))
            .collect();
        found.sort();
        let expect = [
            ("blog-b", "http://blog.one.example/b"),
            ("given", "http://blog.one.example/a"),
            ("named", "http://other.example/b"),
            ("other-a", "http://other.example/a"),
            ("site-a", "http://feeds.example.org/a"),
            ("site-b", "http://feeds.example.org/b"),
            ("www-blog-two-example-a", "http://www.blog.two.example/a"),
            ("www-blog-two-example-b", "http://www.blog.two.example/b"),
        ];
        assert_eq!(
            found,
            expect.map(|(name, url)| (name.to_owned(), url.to_owned()))
        );
        let namespaces: std::collections::BTreeSet<_> =
            feeds.iter().map(FeedSettings::namespace).collect();
        assert_eq!(namespaces.len(), feeds.len(), "ids are unique across feeds");
    }

    #[test]
    fn settings_that_cannot_be_meant_are_refused() {
        let keys = |site: SiteSettings| {
            site.problems()
                .into_iter()
                .map(|it| it.key)
                .collect::<Vec<_>>()
        };
        assert!(keys(site(Some("blog.example.org"))).is_empty());
        for host in [
            "", "http://x", "x:80", "x/y", "X.org", "a b", "u@x", "*.x.org", "x.org.",
        ] {
            assert_eq!(keys(site(Some(host))), ["host"], "{host}");
        }
        for origin in ["http://x/path", "http://u@x/", "ftp://x/", "http://x/?a"] {
            let origin = Url::parse(origin).unwrap();
            assert_eq!(
                keys(SiteSettings::new(origin.clone())),
                ["origin"],
                "{origin}"
            );
        }
        for path in ["feed.xml", "//x/feed", "/a#b", "/a b", "/\u{e9}"] {
            assert_eq!(
                keys(SiteSettings {
                    feeds: SiteFeeds::Listed(vec![path.into()]),
                    ..site(None)
                }),
                ["feeds"],
                "{path}"
            );
        }
        assert_eq!(
            keys(SiteSettings {
                head_secs: 0,
                requests_max: 0,
                ..site(None)
            }),
            ["head_secs", "requests_max"]
        );
        let private = |path: &str, serve_plain| SiteSettings {
            feeds: SiteFeeds::Listed(vec![path.into()]),
            access: AccessSettings::Users,
            serve_plain,
            ..site(None)
        };
        assert!(keys(private("/feed.xml", ServePlain::Untouched)).is_empty());
        assert_eq!(
            keys(private("/?feed=rss2", ServePlain::Untouched)),
            ["feeds"]
        );
        assert_eq!(
            keys(private("/feed.xml", ServePlain::Origin)),
            ["serve_plain"]
        );
        let nobody = AccessSettings::Named([].into());
        assert_eq!(
            keys(SiteSettings {
                access: nobody,
                ..site(None)
            }),
            ["access"]
        );
    }
}
