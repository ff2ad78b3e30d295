//! The feeds of sites: looked for on the front page at the start and once a day, and taken in while
//! everything runs; not how they are polled.

use super::{probe::ask, reload::Reloader};
use crate::{
    catalog::{Catalog, SiteFeeds, SiteSettings, Sites},
    clock::Clock,
    feed::{
        record::FeedNo,
        schedule::{Failure, FaultNote},
        stamp::Stamp,
    },
    ingest::{DocumentFormat, FeedSpec, LegacyAddress, Upstream},
    locks::lock,
    secret::{logged_url, public_url},
    store::{FoundFeeds, Store},
};
use everfeed_adapters::{Hints, named_feeds, platforms::Platforms, slice};
use futures_util::future::join_all;
use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Arc, Mutex},
    time::Duration,
};
use tokio_util::sync::CancellationToken;
use tracing::{debug, info, warn};
use url::Url;

/// Time between two looks at the front page of a site.
const LOOK_EVERY: Duration = Duration::from_secs(86_400);
/// Time until a look is repeated after one that failed; it doubles, up to a day.
const AGAIN_AFTER: Duration = Duration::from_secs(15);
/// Feeds of one site at most that are taken in by themselves.
const FEEDS_MAX: usize = 32;

/// Paths at which blog software puts its feeds, tried where the front page names neither feeds nor
/// its software.
pub const USUAL_PATHS: [&str; 6] = [
    "/feed/",
    "/feed.xml",
    "/rss.xml",
    "/atom.xml",
    "/index.xml",
    "/index.rdf",
];

/// The feeds of which the front page of a site tells.
struct FrontPage {
    /// Paths of those that it names.
    named: Vec<String>,
    /// Paths at which its software has feeds: of each group the first that is there.
    usual: Vec<Vec<String>>,
    /// True when it shows by what software it is made.
    is_of_platform: bool,
}

/// Looks for feeds on the sites in force.
#[derive(Clone)]
pub(super) struct SiteWatches {
    pub(super) public_url: Url,
    pub(super) catalog: Catalog,
    pub(super) store: Arc<dyn Store>,
    pub(super) upstream: Upstream,
    pub(super) clock: Arc<dyn Clock>,
    pub(super) reloader: Arc<Reloader>,
    pub(super) platforms: Arc<Platforms>,
    pub(super) faults: SiteFaults,
}

/// The faults of origins at which feeds were looked for in vain, by origin. Cheap to clone.
#[derive(Clone, Debug, Default)]
pub(super) struct SiteFaults(Arc<Mutex<BTreeMap<String, FaultNote>>>);

impl SiteFaults {
    /// Those of now.
    pub(super) fn all(&self) -> BTreeMap<String, FaultNote> {
        lock(&self.0).clone()
    }

    /// Forgets those of origins at which nobody looks any more.
    fn keep_of(&self, sites: &[SiteSettings]) {
        let origins: BTreeSet<String> = sites.iter().map(|site| public_url(&site.origin)).collect();
        lock(&self.0).retain(|origin, _| origins.contains(origin));
    }

    /// Notes how a look at an origin ended.
    fn note(&self, origin: &Url, failure: Option<&Failure>, now: Stamp) {
        let mut faults = lock(&self.0);
        let origin = public_url(origin);
        let since = faults.remove(&origin).map_or(now, |fault| fault.since);
        if let Some(failure) = failure {
            let kind = failure.kind.clone();
            faults.insert(origin, FaultNote { kind, since });
        }
    }
}

/// A site whose feeds are looked for.
struct SiteWatch {
    site: SiteSettings,
    parts: SiteWatches,
}

impl SiteWatches {
    /// Looks for feeds until `stop`.
    pub(super) async fn run(self, stop: CancellationToken) {
        let work = |sites: Arc<Sites>, stop: CancellationToken| {
            let all = sites.iter().map(|site| site.settings.clone());
            let finding: Vec<_> = all
                .filter(|site| matches!(site.feeds, SiteFeeds::Found(_)))
                .collect();
            self.faults.keep_of(&finding);
            let watches = finding.into_iter().map(|site| {
                let parts = self.clone();
                SiteWatch { site, parts }.run(stop.clone())
            });
            let all = join_all(watches);
            async move {
                all.await;
            }
        };
        self.catalog.run_for_sites(stop, work).await;
    }
}

impl SiteWatch {
    /// Looks for feeds until `stop`.
    async fn run(self, stop: CancellationToken) {
        let mut again = AGAIN_AFTER;
        loop {
            let looked = self.look().await;
            let now = Stamp::from_micros(self.parts.clock.now_us());
            self.parts
                .faults
                .note(&self.site.origin, looked.as_ref().err(), now);
            let wait = match looked {
                Ok(()) => {
                    again = AGAIN_AFTER;
                    LOOK_EVERY
                }
                Err(failure) => {
                    let origin = &self.site.origin;
                    if again == AGAIN_AFTER {
                        let secs = again.as_secs();
                        warn!(
                            "The feeds of {origin} could not be looked for, will try again in {secs} s: {failure}"
                        );
                    } else {
                        debug!("The feeds of {origin} could not be looked for: {failure}");
                    }
                    let wait = again;
                    again = (again * 2).min(LOOK_EVERY);
                    wait
                }
            };
            tokio::select! {
                () = tokio::time::sleep(wait) => {}
                () = stop.cancelled() => return,
            }
        }
    }

    // Decides: Which feeds does a site have?
    /// Looks once, and takes in the feeds that are new. One that is not shown any more stays: its
    /// memory is ours to keep.
    async fn look(&self) -> Result<(), Failure> {
        let root = self.site.public_root(&self.parts.public_url);
        let known = self.parts.store.found_feeds(root.as_str()).await;
        let known = known.map_err(Failure::ours)?;
        let front = self.front_page().await?;
        let held: BTreeSet<&String> = known.paths.iter().collect();
        let mut paths = front.named;
        let mut new = Vec::new();
        for group in front.usual {
            // Its other feeds show the same posts in other formats.
            let is_met = |path: &String| held.contains(path) || paths.contains(path);
            if !group.iter().any(is_met) {
                new.extend(self.first_feed(&group).await?);
            }
        }
        if paths.is_empty() && known.paths.is_empty() && !front.is_of_platform {
            paths = USUAL_PATHS.map(str::to_owned).into();
        }
        let room = FEEDS_MAX.saturating_sub(held.len() + new.len());
        for path in paths.iter().filter(|path| !held.contains(path)).take(room) {
            if self.is_feed(path).await? {
                new.push(path.clone());
            }
        }
        if new.is_empty() {
            return Ok(());
        }
        let found: Vec<String> = new.iter().map(|path| logged_url(path)).collect();
        info!("Found feeds of {}: {}", self.site.origin, found.join(", "));
        if self.site.access.is_private()
            && let Some(path) = new.iter().find(|path| !SiteSettings::can_be_private(path))
        {
            warn!(
                "{} of {} is not taken in: a feed at a query cannot be private. Nothing of it is passed on; its readers need another address",
                logged_url(path),
                self.site.origin
            );
        }
        let all = FoundFeeds {
            paths: known.paths.iter().cloned().chain(new).collect(),
        };
        let kept = self.parts.store.keep_found_feeds(root.as_str(), all).await;
        kept.map_err(Failure::ours)?;
        if let Err(refused) = self.parts.reloader.take_in_found().await {
            warn!(
                "The feeds that were found at {} could not be taken in: {refused}",
                self.site.origin
            );
        }
        Ok(())
    }

    /// The first of some paths at which there is a feed.
    async fn first_feed(&self, paths: &[String]) -> Result<Option<String>, Failure> {
        for path in paths {
            if self.is_feed(path).await? {
                return Ok(Some(path.clone()));
            }
        }
        Ok(None)
    }

    /// The feeds of which the front page tells.
    async fn front_page(&self) -> Result<FrontPage, Failure> {
        let page = ask(&self.parts.upstream, &self.spec("/")?, &*self.parts.clock).await?;
        let root = self.site.public_root(&self.parts.public_url);
        let hints = Hints {
            content_type: page.content_type.as_deref(),
            base_url: Some(root.as_str()),
            ..Hints::default()
        };
        let headers = page.headers.iter();
        let headers =
            headers.filter_map(|(name, value)| Some((name.as_str(), value.to_str().ok()?)));
        let headers: Vec<(&str, &str)> = headers.collect();
        let platform = self.parts.platforms.of_page(&page.body, &hints, &headers);
        let mut paths = Vec::new();
        for feed in named_feeds(&page.body, &hints) {
            let url = Url::parse(&feed.link.href).ok();
            if let Some(path) = url.and_then(|url| self.site.path_of(&url, &self.parts.public_url))
                && !paths.contains(&path)
            {
                paths.push(path);
            }
        }
        let usual = platform.map(|profile| profile.usual_paths().into());
        Ok(FrontPage {
            named: paths,
            usual: usual.unwrap_or_default(),
            is_of_platform: platform.is_some(),
        })
    }

    /// True for a path at which there is a feed; a server that does not answer at all is an error.
    async fn is_feed(&self, path: &str) -> Result<bool, Failure> {
        match ask(&self.parts.upstream, &self.spec(path)?, &*self.parts.clock).await {
            Ok(document) => {
                let hints = Hints {
                    content_type: document.content_type.as_deref(),
                    ..Hints::default()
                };
                Ok(slice(&document.body, &hints).is_ok())
            }
            Err(refused) if refused.status().is_some() => Ok(false),
            Err(failure) => Err(failure),
        }
    }

    /// A page of the site as it is asked for: whatever it is, and under the name that readers know.
    fn spec(&self, path: &str) -> Result<FeedSpec, Failure> {
        let url = self.site.origin.join(path).map_err(Failure::ours)?;
        let known_as = self.site.public_root(&self.parts.public_url);
        let mut feed = FeedSpec::new(FeedNo(0), "site", url);
        feed.format = DocumentFormat::Resource;
        feed.legacy = Some(LegacyAddress::at(known_as).into());
        Ok(feed)
    }
}
