//! The place of a feed in the site before which we stand: the address by which its readers know it,
//! and those by which they knew it; not what is answered there.

use serde::{Deserialize, Serialize};
use url::Url;

/// `serve_plain` of a site: the document that a plain reader of a legacy feed URL gets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ServePlain {
    /// Our last good copy, with the links to us inserted.
    #[default]
    Rewritten,
    /// Our last good copy as it came.
    Untouched,
    /// The origin's answer.
    Origin,
}

/// The place of a feed in the site before which we stand.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LegacyAddress {
    /// The number of the site, from 0.
    pub site: usize,
    /// Path and query, byte for byte.
    pub path: String,
    /// The whole address, as readers know it; also the topic of those that subscribe to it.
    pub url: Url,
    /// Addresses that the feed had before: they are answered as its own.
    pub former: Vec<FormerAddress>,
    /// The document that a plain reader gets.
    pub plain: ServePlain,
    /// Seconds for which the document is given without asking the origin; 0: it is never asked for
    /// readers. Not set: as usual for its origin.
    pub fresh_secs: Option<u64>,
    /// The source of the feed's name.
    pub named_by: FeedNamer,
}

/// An address that a feed of a site had before.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FormerAddress {
    /// The site that has its host now; `None` if none has: then it is a topic only.
    pub site: Option<usize>,
    /// Path and query.
    pub path: String,
    /// The whole address.
    pub url: Url,
}

/// The source of the name of a feed of a site.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FeedNamer {
    /// Its path.
    Address,
    /// `name` beside its path in `feeds`.
    Site,
    /// A `[[feed]]`, or an entry of the registry.
    Table,
}

impl LegacyAddress {
    /// An address of the first site, of a feed that is served as usual.
    pub fn at(url: Url) -> Self {
        Self {
            site: 0,
            path: path_of(&url),
            url,
            former: Vec::new(),
            plain: ServePlain::default(),
            fresh_secs: None,
            named_by: FeedNamer::Table,
        }
    }

    /// All its addresses, the present one first.
    pub fn urls(&self) -> impl Iterator<Item = &Url> {
        std::iter::once(&self.url).chain(self.former.iter().map(|former| &former.url))
    }

    /// The paths of all its addresses, the present one first.
    pub fn paths(&self) -> impl Iterator<Item = &str> {
        let former = self.former.iter().map(|former| former.path.as_str());
        std::iter::once(self.path.as_str()).chain(former)
    }

    /// The address of these that a topic begins with, and the query of ours behind it.
    pub fn split_topic<'a>(&'a self, topic: &'a str) -> Option<(&'a Url, &'a str)> {
        self.urls().find_map(|url| {
            let rest = topic.strip_prefix(url.as_str())?;
            (rest.is_empty() || rest.starts_with(['?', '&'])).then_some((url, rest))
        })
    }

    /// The spellings that a topic at one of these addresses has at the others.
    pub fn former_topics(&self, topic: &str) -> Vec<String> {
        let Some((url, rest)) = self.split_topic(topic) else {
            return Vec::new();
        };
        let others = self.urls().filter(|other| *other != url);
        others.map(|other| topic_at(other.as_str(), rest)).collect()
    }

    /// The address of these that a spelling of a topic means, whatever its scheme.
    pub fn url_spelt(&self, topic: &str) -> Option<&Url> {
        let mut topic = Url::parse(topic).ok()?;
        self.urls().find(|url| {
            // Refused for schemes that no feed has.
            let _ = topic.set_scheme(url.scheme());
            let rest = topic.as_str().strip_prefix(url.as_str());
            rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(['?', '&']))
        })
    }
}

/// The topic at an address, with the query of ours that stands behind another address of the feed.
pub fn topic_at(address: &str, rest: &str) -> String {
    let glue = if address.contains('?') { '&' } else { '?' };
    match rest.get(1..) {
        Some(ours) => format!("{address}{glue}{ours}"),
        None => address.to_owned(),
    }
}

/// Path and query of a URL.
pub(super) fn path_of(url: &Url) -> String {
    url[url::Position::BeforePath..url::Position::AfterQuery].to_owned()
}
