//! Search engines are told of new, changed and deleted posts of the sites before which everfeed
//! stands, by `IndexNow`. Which URLs are due is decided in `feed::index_now`; sitemaps
//! are answered by `serve`.

mod engine;
mod findings;
mod worker;

#[cfg(test)]
mod tests;

use crate::{
    catalog::{Catalog, Sites},
    clock::Clock,
    feed::{
        index_now::{IndexNow, IndexNowFault},
        stamp::Stamp,
    },
    layers::{FetchError, Request},
    locks::lock,
    notify::Notify,
    secret::masked,
    setting::RefusedSetting,
    store::Store,
};
use bytes::Bytes;
use http::{HeaderValue, Response};
use serde::{Deserialize, Serialize};
use std::{
    collections::HashMap,
    fmt,
    sync::{Arc, Mutex},
};
use tower::util::BoxCloneSyncService;
use url::Url;

/// Service for requests to an engine, and to the key files of sites.
pub type EngineClient = BoxCloneSyncService<Request, Response<Bytes>, FetchError>;

/// `[search_engines]`: the search engine that sites with `indexnow` tell of their posts.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    /// The address of an engine for `IndexNow`. One suffices: it tells the others.
    pub indexnow_url: Url,
}

/// The address of the engine that passes everything on to all others.
const INDEX_NOW_URL: &str = "https://api.indexnow.org/indexnow";

impl Default for Config {
    fn default() -> Self {
        Self {
            indexnow_url: Url::parse(INDEX_NOW_URL).expect("the address of the engine is a URL"),
        }
    }
}

impl Config {
    /// Refuses an address at which no engine can be.
    pub fn check(&self) -> Result<(), RefusedSetting> {
        let url = &self.indexnow_url;
        let is_web = matches!(url.scheme(), "http" | "https");
        if is_web && url.username().is_empty() && url.password().is_none() {
            return Ok(());
        }
        let wanted = format!("give an http or https URL: for instance \"{INDEX_NOW_URL}\"");
        let found = format!("\"{}\"", masked(url.as_str()));
        Err(RefusedSetting::new("indexnow_url", found, wanted))
    }
}

/// A site before which everfeed stands.
#[derive(Clone, Debug)]
pub struct AnnouncedSite {
    /// Its number among the sites, from 0.
    pub no: usize,
    /// Its root as readers know it.
    pub root: Url,
    /// True if search engines are told of its posts.
    pub is_on: bool,
}

/// The parts by which search engines are told.
pub struct SearchEngineParts {
    /// `[search_engines]`.
    pub config: Config,
    /// `server.public_url`, below which a site without a host is.
    pub public_url: Url,
    /// The store.
    pub store: Arc<dyn Store>,
    /// The heads of feeds.
    pub notify: Arc<Notify>,
    /// The sites and their feeds.
    pub catalog: Catalog,
    /// Source of the time.
    pub clock: Arc<dyn Clock>,
    /// The way to the engine, and to the key files: guarded addresses, no redirects.
    pub client: EngineClient,
    /// The name by which everfeed asks.
    pub user_agent: HeaderValue,
}

/// Tells search engines of the posts of sites. Cheap to clone; one of the clones runs.
#[derive(Clone)]
pub struct SearchEngines(Arc<Shared>);

/// The parts that all clones share.
struct Shared {
    parts: SearchEngineParts,
    /// The state of each site as it was last, by its root. It is not there before it was read.
    told: Mutex<HashMap<Url, AnnouncedState>>,
}

/// The state of a site, for the operator.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AnnouncedState {
    /// Number of URLs that the engine has accepted.
    pub accepted: u64,
    /// Time of the last batch that it accepted.
    pub accepted_at: Option<Stamp>,
    /// The fault of the last request, if it had one.
    pub fault: Option<IndexNowFault>,
}

impl From<&IndexNow> for AnnouncedState {
    fn from(row: &IndexNow) -> Self {
        Self {
            accepted: row.accepted,
            accepted_at: row.accepted_at,
            fault: row.fault.clone(),
        }
    }
}

impl Shared {
    fn sites(&self, sites: &Sites) -> Vec<AnnouncedSite> {
        let announced = sites.iter().map(|site| AnnouncedSite {
            no: site.no,
            root: site.settings.public_root(&self.parts.public_url),
            is_on: site.settings.indexnow,
        });
        announced.collect()
    }
}

impl fmt::Debug for SearchEngines {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SearchEngines").finish_non_exhaustive()
    }
}

impl SearchEngines {
    /// Tells nobody yet: that begins with `run`.
    pub fn new(parts: SearchEngineParts) -> Self {
        let told = Mutex::default();
        Self(Arc::new(Shared { parts, told }))
    }

    /// The sites that search engines are told of, with their states; `None` for one whose state was
    /// not read yet.
    pub fn told(&self) -> Vec<(AnnouncedSite, Option<AnnouncedState>)> {
        let sites = self.0.sites(self.0.parts.catalog.snapshot().sites());
        let told = lock(&self.0.told);
        let on = sites.into_iter().filter(|site| site.is_on);
        on.map(|site| {
            let state = told.get(&site.root).cloned();
            (site, state)
        })
        .collect()
    }
}
