//! `feeds` of a `[[site]]`: the paths at which it has feeds, with the names that the operator gives
//! them; not how those are served.

use serde::{Deserialize, Serialize};
use url::Url;

/// `feeds` of a site.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum SiteFeeds {
    /// Those that its front page names, looked for once a day.
    Found(FoundWord),
    /// Those that are listed.
    Listed(Vec<ListedPath>),
}

/// The word for feeds that are looked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum FoundWord {
    /// `"auto"`.
    Auto,
}

/// A path in `feeds`, as a text or as a table: `{ path = "/new.xml", name = "blog-rss-xml" }`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "WrittenPath")]
pub struct ListedPath {
    /// Path and query, as they stand in a request.
    pub path: String,
    /// The name of the feed. Without it the feed is called by its path.
    pub name: Option<String>,
    /// Addresses that the feed had before: paths of the site, or whole URLs. What was served there
    /// is served there still.
    pub former: Vec<String>,
}

/// A path as it is written.
#[derive(Deserialize)]
#[serde(untagged)]
enum WrittenPath {
    Text(String),
    Table(PathTable),
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct PathTable {
    path: String,
    name: Option<String>,
    #[serde(default)]
    former: Vec<String>,
}

impl From<WrittenPath> for ListedPath {
    fn from(written: WrittenPath) -> Self {
        match written {
            WrittenPath::Text(path) => path.into(),
            WrittenPath::Table(PathTable { path, name, former }) => Self { path, name, former },
        }
    }
}

impl<T: Into<String>> From<T> for ListedPath {
    fn from(path: T) -> Self {
        Self {
            path: path.into(),
            name: None,
            former: Vec::new(),
        }
    }
}

impl Default for SiteFeeds {
    fn default() -> Self {
        Self::Found(FoundWord::Auto)
    }
}

/// Former addresses of a feed at most: each is looked up with the requests to its site.
const FORMER_MAX: usize = 16;

const FEEDS_WANTED: &str = "give \"auto\", or paths of feeds: for instance [\"/feed.xml\", \"/comments/feed/\"], or \
    [{ path = \"/feed.xml\", name = \"blog\" }]";
const FORMER_WANTED: &str = "give at most 16 paths or http and https URLs that are no paths of `feeds`: for instance \
    { path = \"/new.xml\", name = \"blog-rss-xml\", former = [\"/rss.xml\"] }";
const TWICE_WANTED: &str = "this path is listed twice. List it once, with one name";

impl SiteFeeds {
    /// The paths that are listed.
    pub fn listed(&self) -> &[ListedPath] {
        match self {
            Self::Found(_) => &[],
            Self::Listed(paths) => paths,
        }
    }

    /// True for a path that is listed.
    pub fn lists(&self, path: &str) -> bool {
        self.listed().iter().any(|listed| listed.path == path)
    }

    /// The first value that cannot be meant, and the value that would do.
    pub(super) fn problem(&self) -> Option<(&str, &'static str)> {
        let listed = self.listed();
        for (at, feed) in listed.iter().enumerate() {
            if !is_path(&feed.path) {
                return Some((&feed.path, FEEDS_WANTED));
            }
            let is_same = |other: &&ListedPath| other.path == feed.path && *other != feed;
            if listed[..at].iter().any(|other| is_same(&other)) {
                return Some((&feed.path, TWICE_WANTED));
            }
            let is_former = |address: &&String| is_former(address) && !self.lists(address);
            if let Some(address) = feed.former.iter().find(|address| !is_former(address)) {
                return Some((address, FORMER_WANTED));
            }
            if feed.former.len() > FORMER_MAX {
                return Some((&feed.path, FORMER_WANTED));
            }
            let others = listed[..at].iter().flat_map(|other| &other.former);
            let mut others = others.filter(|other| feed.former.contains(other));
            if let Some(address) = others.next() {
                return Some((
                    address,
                    "two feeds cannot have had one address. Give it to one of them",
                ));
            }
        }
        None
    }
}

/// True for a path with its query as it stands in a request.
pub(super) fn is_path(path: &str) -> bool {
    path.starts_with('/')
        && !path.starts_with("//")
        && !path.contains('#')
        && path.bytes().all(|b| b.is_ascii_graphic())
}

/// True for an address that a feed may have had: a path, or a URL that tells no password.
fn is_former(address: &str) -> bool {
    let is_url = |url: Url| {
        matches!(url.scheme(), "http" | "https")
            && url.username().is_empty()
            && url.password().is_none()
            && url.fragment().is_none()
    };
    is_path(address) || Url::parse(address).is_ok_and(is_url)
}
